/* SPDX-License-Identifier: Apache-2.0 */
/* Shared libraries through dlopen. */
#include "base/library.h"

#include <dlfcn.h>
#include <string.h>

#include "base/cancel.h"
#include "base/error.h"

sp_status sp_library_open(const char *const *names, sp_library *out)
{
    const char *reason = "no name was given";
    for (; *names != NULL; names++) {
        const int state = sp_cancel_defer(); /* for the constructors of the library */
        out->impl = dlopen(*names, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        sp_cancel_restore(state);
        if (out->impl != NULL) return SP_OK;
        reason = dlerror(); /* NOLINT(concurrency-mt-unsafe): per thread in glibc */
    }
    return sp__fail(SP_NOT_FOUND, "%s", reason);
}

sp_library_function sp_library_find(sp_library library, const char *symbol)
{
    void *address = dlsym(library.impl, symbol);
    sp_library_function function;
    _Static_assert(sizeof function == sizeof address, "POSIX: functions have data's addresses");
    memcpy(&function, &address, sizeof function);
    return function;
}
