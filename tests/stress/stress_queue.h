/* SPDX-License-Identifier: Apache-2.0 */
/* For stress tests with batch queues. */
#ifndef SP_TESTS_STRESS_QUEUE_H
#define SP_TESTS_STRESS_QUEUE_H

#include "batch_queue_fixture.h"
#include "stress.h"

/* Replaces all options, while requests wait. */
static inline void queue_options_change(sp_batch_queue queue, uint64_t *random)
{
    const sp_batch_queue_options options = {.max_batch = random_next(random) % 65,
                                            .max_delay_ns =
                                                (int64_t)(random_next(random) % 3) * 100000,
                                            .workers = random_next(random) % 9,
                                            .max_waiting = 1 + random_next(random) % 64,
                                            .refuse_when_full = random_next(random) % 2 == 0};
    CHECK_OK(sp_batch_queue_configure(queue, &options));
}

#endif
