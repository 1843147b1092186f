/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into the demo: one model run gets a wrong lowest bit. WRONG_RUN of the environment is
 * its number, from 1 on in the order of their ends; WRONG_OUTPUT is the index of the output, else
 * 0. primitive: it must not use the library that it intercepts. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#include <streampool/model.h>

typedef sp_status (*run_function)(sp_model model, const sp_host_tensor *inputs,
                                  uint32_t input_count, sp_host_tensor *outputs,
                                  uint32_t output_count);

static long number_of(const char *name)
{
    const char *text = getenv(name);
    return text == NULL ? 0 : strtol(text, NULL, 10);
}

sp_status sp_model_run(sp_model model, const sp_host_tensor *inputs, uint32_t input_count,
                       sp_host_tensor *outputs, uint32_t output_count)
{
    static atomic_long runs;
    run_function real;
    *(void **)&real = dlsym(RTLD_NEXT, "sp_model_run");
    if (real == NULL) return SP_INTERNAL;
    const sp_status status = real(model, inputs, input_count, outputs, output_count);
    if (status == SP_OK && atomic_fetch_add(&runs, 1) + 1 == number_of("WRONG_RUN")) {
        *(unsigned char *)outputs[number_of("WRONG_OUTPUT")].data ^= 1u;
    }
    return status;
}
