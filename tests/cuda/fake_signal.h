/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel by which a list tells that it is done does on the fake driver. Not the CPU's
 * kernel, which is not instrumented: ThreadSanitizer is to see what the word publishes. */
#ifndef SP_TESTS_FAKE_SIGNAL_H
#define SP_TESTS_FAKE_SIGNAL_H

#include "base/atomic.h"
#include "ops/kernel_constants.h"

/* Of the parameters of a launch. */
static inline void fake_signal_run(void *const *bindings, const sp_flat_constants *k)
{
    uint64_t *counter = bindings[0];
    sp_atomic_u64 *word = bindings[1];
    *counter += (uint64_t)k->count;
    sp_store_release(word, *counter);
}

#endif
