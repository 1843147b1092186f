/* SPDX-License-Identifier: Apache-2.0 */
/* The compiler's functions (NVRTC 12 and later), looked up by name. Thread-safe, with a separate
 * program for each call. */
#include "device/cuda/cuda_nvrtc.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "base/library.h"
#include "base/log.h"
#include "base/macros.h"
#include "base/option.h"
#include "base/thread.h"

typedef struct nvrtc_program *nvrtc_program;
typedef int nvrtc_result; /* 0 is success */

/* name, parameters; all return nvrtc_result. */
#define NVRTC_LIST(X)                                                                              \
    X(nvrtcVersion, (int *major, int *minor))                                                      \
    X(nvrtcCreateProgram,                                                                          \
      (nvrtc_program * program, const char *source, const char *name, int header_count,            \
       const char *const *headers, const char *const *include_names))                              \
    X(nvrtcDestroyProgram, (nvrtc_program * program))                                              \
    X(nvrtcCompileProgram, (nvrtc_program program, int option_count, const char *const *options))  \
    X(nvrtcGetCUBINSize, (nvrtc_program program, size_t *bytes))                                   \
    X(nvrtcGetCUBIN, (nvrtc_program program, char *image))                                         \
    X(nvrtcGetProgramLogSize, (nvrtc_program program, size_t *bytes))                              \
    X(nvrtcGetProgramLog, (nvrtc_program program, char *log))

/* process-wide: there is one compiler. Written by the one run of nvrtc_open_compiler, whose end
 * publishes it. */
/* NOLINTBEGIN(readability-identifier-naming): the compiler's names */
static struct {
    sp_once opened;
    sp_nvrtc_version version;
    const char *(*nvrtcGetErrorString)(nvrtc_result result);
#define NVRTC_MEMBER(name, params) nvrtc_result(*name) params;
    NVRTC_LIST(NVRTC_MEMBER)
#undef NVRTC_MEMBER
} compiler;
/* NOLINTEND(readability-identifier-naming) */

static sp_status nvrtc_check(nvrtc_result result, const char *call, const char *name)
{
    if (result == 0) return SP_OK;
    return sp__fail(SP_FAILED, "compiling the kernels '%s': %s: %s", name, call,
                    compiler.nvrtcGetErrorString(result));
}

static sp_status nvrtc_find_function(sp_library library, const char *name, void *place)
{
    const sp_library_function function = sp_library_find(library, name);
    if (function == NULL) {
        return sp__fail(SP_UNSUPPORTED, "CUDA's run-time compiler is too old: it has no %s", name);
    }
    memcpy(place, &function, sizeof function);
    return SP_OK;
}

static sp_status nvrtc_open_compiler(void *unused)
{
    (void)unused;
    const char *named = sp_option_text(SP_OPTION_NVRTC);
    const char *const one[] = {named, NULL};
    const char *const usual[] = {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", NULL};
    sp_library library;
    if (sp_library_open(named[0] != '\0' ? one : usual, &library) != SP_OK) {
        return sp__fail_prefix(SP_UNSUPPORTED,
                               "CUDA's run-time compiler is missing (install libnvrtc, or set "
                               "STREAMPOOL_NVRTC to its file): ");
    }
    SP_TRY(nvrtc_find_function(library, "nvrtcGetErrorString", &compiler.nvrtcGetErrorString));
#define NVRTC_FIND(name, params) SP_TRY(nvrtc_find_function(library, #name, &compiler.name));
    NVRTC_LIST(NVRTC_FIND)
#undef NVRTC_FIND
    return nvrtc_check(compiler.nvrtcVersion(&compiler.version.major, &compiler.version.minor),
                       "nvrtcVersion", "");
}

sp_status sp__nvrtc_open(sp_nvrtc_version *out)
{
    SP_TRY(sp_once_run(&compiler.opened, nvrtc_open_compiler, NULL));
    *out = compiler.version;
    return SP_OK;
}

/* Logs the compiler's log; the message has as much of it as fits. */
static sp_status nvrtc_fail_with_log(nvrtc_program program, const char *name, nvrtc_result result)
{
    size_t bytes = 0;
    char *text = NULL;
    if (compiler.nvrtcGetProgramLogSize(program, &bytes) == 0) text = sp_calloc(1, bytes + 1);
    if (text != NULL && compiler.nvrtcGetProgramLog(program, text) != 0) text[0] = '\0';
    SP_LOG(SP_LOG_ERROR, "compiling the kernels '%s' failed:\n%s", name, text != NULL ? text : "");
    const sp_status status = sp__fail(SP_FAILED, "the kernels '%s' do not compile: %s\n%s", name,
                                      compiler.nvrtcGetErrorString(result),
                                      text != NULL ? text : "(no memory for the log)");
    sp_free(text);
    return status;
}

static sp_status nvrtc_copy_image(nvrtc_program program, const char *name, void **image,
                                  size_t *image_bytes)
{
    size_t bytes = 0;
    SP_TRY(nvrtc_check(compiler.nvrtcGetCUBINSize(program, &bytes), "nvrtcGetCUBINSize", name));
    char *made = sp_malloc(bytes);
    if (made == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for the kernels '%s'", name);
    const sp_status status =
        nvrtc_check(compiler.nvrtcGetCUBIN(program, made), "nvrtcGetCUBIN", name);
    if (status != SP_OK) {
        sp_free(made);
        return status;
    }
    *image = made;
    *image_bytes = bytes;
    return SP_OK;
}

sp_status sp__nvrtc_compile(const char *name, const char *source, const char *architecture,
                            void **image, size_t *image_bytes)
{
    char target[48];
    snprintf(target, sizeof target, "--gpu-architecture=%s", architecture);
    const char *const options[] = {target, "--std=c++17", "--fmad=false"};
    nvrtc_program program;
    SP_TRY(nvrtc_check(compiler.nvrtcCreateProgram(&program, source, name, 0, NULL, NULL),
                       "nvrtcCreateProgram", name));
    const nvrtc_result result =
        compiler.nvrtcCompileProgram(program, (int)SP_COUNT_OF(options), options);
    const sp_status status = result == 0 ? nvrtc_copy_image(program, name, image, image_bytes)
                                         : nvrtc_fail_with_log(program, name, result);
    compiler.nvrtcDestroyProgram(&program);
    return status;
}
