/* SPDX-License-Identifier: Apache-2.0 */
#include "peer.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "failure.h"
#include "peer_kind.h"
#include "process.h"
#include "tensors.h"
#include "text.h"

static const peer_kind *const kinds[] = {&sp__peer_onnxruntime, &sp__peer_openvino};

/* A wrong call or place in a table gives other numbers altogether; sums may be in another order. */
static const tensor_tolerance tolerance = {.absolute = 1e-3, .relative = 1e-2};

/* ---- the library ---- */

/* Until the process ends. dlopen does not search the working folder for a name without a folder. */
static void *library_open(const char *library)
{
    char path[FILENAME_MAX];
    const bool is_here = strchr(library, '/') == NULL && file_exists(library);
    const int length = snprintf(path, sizeof path, "%s%s", is_here ? "./" : "", library);
    const bool fits = length >= 0 && (size_t)length < sizeof path;
    return dlopen(fits ? path : library, RTLD_NOW | RTLD_LOCAL);
}

static const peer_kind *library_kind(void *library)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (dlsym(library, kinds[i]->symbol) != NULL) return kinds[i];
    }
    return NULL;
}

sp_status peer_load(peer *self, const char *library)
{
    *self = (peer){.run_threads = 1};
    void *handle = library_open(library);
    if (handle == NULL) {
        const char *reason = dlerror(); /* NOLINT(concurrency-mt-unsafe): per thread in glibc */
        return fail(SP_IO, "it cannot be opened: %s", reason);
    }
    self->kind = library_kind(handle);
    if (self->kind == NULL) {
        return fail(SP_UNSUPPORTED,
                    "it is neither the library of %s nor that of %s: it has no function %s or %s",
                    kinds[0]->label, kinds[1]->label, kinds[0]->symbol, kinds[1]->symbol);
    }
    self->state = calloc(1, self->kind->state_bytes);
    if (self->state == NULL) return fail(SP_OUT_OF_MEMORY, "no memory for %s", self->kind->label);
    return self->kind->load(self->state, handle, self->name);
}

void peer_close(peer *self)
{
    if (self->state != NULL) self->kind->close(self->state);
    free(self->state);
    *self = (peer){0};
}

/* ---- runs ---- */

sp_status peer_prepare(peer *self, uint32_t threads)
{
    return self->kind->prepare(self->state, threads);
}

sp_status peer_call(void *ctx, uint32_t thread)
{
    const peer *self = ctx;
    return self->kind->run(self->state, thread);
}

static sp_status output_check(peer *self, uint32_t i)
{
    const sp_host_tensor *want = &self->of->outputs[i];
    peer_output output = {0};
    tensor_difference difference;
    TRY(self->kind->get_output(self->state, i, &output));
    if (output.element_type != self->kind->element_types[want->dtype] ||
        output.count * sp_dtype_bytes(want->dtype) != want->bytes) {
        return fail(SP_MISMATCH, "output '%s' of %s has another type or size", want->name,
                    self->kind->label);
    }
    if (output.count == 0) return SP_OK;
    sp_host_tensor got = *want;
    got.data = output.data;
    TRY(tensor_compare(&got, want, tolerance, &difference));
    self->difference = fmax(self->difference, difference.largest);
    if (difference.bad_count == 0) return SP_OK;
    return fail(SP_MISMATCH, "output '%s' of %s has %g where ours has %g", want->name,
                self->kind->label, difference.got, difference.want);
}

sp_status peer_open(peer *self, const peer_case *of)
{
    self->of = of;
    uint64_t start_ns = clock_ns();
    TRY(self->kind->open(self->state, of, self->run_threads));
    self->load_ns = clock_ns() - start_ns;
    TRY(peer_prepare(self, 1));
    start_ns = clock_ns();
    TRY(peer_call(self, 0));
    self->first_run_ns = clock_ns() - start_ns;
    for (uint32_t i = 0; i < of->output_count; i++) TRY(output_check(self, i));
    return SP_OK;
}
