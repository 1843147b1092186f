/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of the kernel by which a list of a GPU tells that it is done. */
#include <string.h>

#include "cuda/kernel_compare.h"
#include "support/test.h"

/* A number with neighbours that must remain. */
typedef struct number {
    uint64_t before, value, after;
} number;

static number number_of(data_random *random)
{
    return (number){data_next(random), data_next(random), data_next(random)};
}

static bool is_with_value(const number *is, const number *was, uint64_t value)
{
    return is->value == value && is->before == was->before && is->after == was->after;
}

void kernel_compare_signals(kernel_compare *compare, uint64_t seed, uint64_t count)
{
    data_random random = {seed};
    for (uint64_t i = 0; i < count; i++) {
        const number counter = number_of(&random), word = number_of(&random);
        number new_counter = counter, new_word = word;
        const sp_flat_constants k = {.count = (int64_t)(1 + data_next(&random) % 3)};
        sp_dispatch dispatch = {.kernel = SP_KERNEL_ID_signal_done,
                                .binding_count = 2,
                                .constant_bytes = sizeof k,
                                .bindings = {{.bytes = sizeof counter.value, .is_write = true},
                                             {.bytes = sizeof word.value, .is_write = true}}};
        memcpy(dispatch.constants, &k, sizeof k);
        void *const bindings[] = {&new_counter.value, &new_word.value};
        CHECK_OK(compare->run(&compare->kernels[SP_KERNEL_ID_signal_done], &dispatch, bindings,
                              compare->context));
        compare->runs[SP_KERNEL_ID_signal_done]++;
        const uint64_t sum = counter.value + (uint64_t)k.count;
        CHECK(is_with_value(&new_counter, &counter, sum));
        CHECK(is_with_value(&new_word, &word, sum));
    }
}
