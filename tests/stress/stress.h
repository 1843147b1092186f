/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the stress tests: random numbers, a count of overlapping calls, full queues. */
#ifndef SP_TESTS_STRESS_H
#define SP_TESTS_STRESS_H

#include "runtime_fixture.h"

/* PCG's multiplier (M. O'Neill); one state per thread. */
static inline uint32_t random_next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static inline uint64_t random_seed(uint32_t index)
{
    return 0x9e3779b97f4a7c15u * (index + 1);
}

/* The maximum number of threads inside a call of the library: a test of concurrency that ran
 * serially would prove nothing. */
typedef struct overlap {
    sp_atomic_u32 inside;
    sp_atomic_u32 most;
} overlap;

static inline void overlap_enter(overlap *self)
{
    const uint32_t inside = sp_fetch_add_relaxed(&self->inside, 1) + 1;
    uint32_t most = sp_load_relaxed(&self->most);
    while (most < inside && !sp_cas_relaxed(&self->most, &most, inside)) {
    }
}

/* Waits inside until another thread has been inside at the same time: with few rounds one thread
 * could finish before the next one gets a processor. */
static inline void overlap_meet(overlap *self)
{
    while (sp_load_relaxed(&self->most) < 2) sp_thread_yield();
}

static inline void overlap_leave(overlap *self)
{
    sp_fetch_sub_relaxed(&self->inside, 1);
}

static inline void check_overlap(const overlap *self, uint32_t at_least)
{
    const uint32_t most = sp_load_relaxed(&self->most);
    test_note("%u threads inside at once", most);
    CHECK(most >= at_least);
}

/* True, after a wait, if the status says that the stream is full: the caller submits again. */
static inline bool is_busy(sp_status status, sp_stream stream)
{
    if (status != SP_BUSY) return false;
    sp_stream_synchronize(stream);
    return true;
}

#endif
