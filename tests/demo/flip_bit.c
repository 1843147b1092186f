/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into the demo: one model run, the 40th, gets a wrong lowest bit. primitive: it must not
 * use the library that it intercepts. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>

#include <streampool/model.h>

/* The first 34 are the sequential runs, and those with 1 and with 2 threads. */
#define WRONG_RUN 40

typedef sp_status (*run_function)(sp_model model, const sp_host_tensor *inputs,
                                  uint32_t input_count, sp_host_tensor *outputs,
                                  uint32_t output_count);

sp_status sp_model_run(sp_model model, const sp_host_tensor *inputs, uint32_t input_count,
                       sp_host_tensor *outputs, uint32_t output_count)
{
    static atomic_int runs;
    run_function real;
    *(void **)&real = dlsym(RTLD_NEXT, "sp_model_run");
    if (real == NULL) return SP_INTERNAL;
    const sp_status status = real(model, inputs, input_count, outputs, output_count);
    if (status == SP_OK && atomic_fetch_add(&runs, 1) + 1 == WRONG_RUN) {
        *(unsigned char *)outputs[0].data ^= 1u;
    }
    return status;
}
