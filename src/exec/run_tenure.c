/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/run_tenure.h"

#include "base/clock.h"
#include "device/free_slots.h"
#include "exec/run_slots.h"

/* To return soon is to return sooner than another thread could be woken. */
#define SOON_NS 10000u
/* How often the clock is read for a thread that keeps its slot, in time and at least in runs. */
#define OBSERVE_NS (SP_RUN_QUANTUM_NS / 8)
#define OBSERVE_RUNS 16u
/* Runs that are so short that a thousand of them and more fit in a few quanta are waited for by
 * less than one in a thousand, if the quanta follow each other. */
#define SHORT_RUNS 256u /* in a quantum */
#define MOST_RUNS 4096u
#define MOST_QUANTA 8u
/* Of the time in the state of a kept slot, which begins anew after an hour; half of that is the
 * most that two times can be apart. */
#define TIME_UNIT_NS 4096u
#define TIME_UNITS_APART (UINT32_MAX / (SP_KEPT_KIND + 1) / 2)
/* More than the age of the last observed release. */
#define OVERDUE_NS (2 * OBSERVE_NS)

uint32_t sp__run_tenure_left_state(const sp_run_tenure *tenure)
{
    return (uint32_t)(tenure->observed / TIME_UNIT_NS) * (SP_KEPT_KIND + 1) + SP_KEPT_LEFT;
}

bool sp__run_tenure_is_overdue(uint32_t left_state, uint64_t now)
{
    const uint32_t as_now = (uint32_t)(now / TIME_UNIT_NS) * (SP_KEPT_KIND + 1) + SP_KEPT_LEFT;
    const uint32_t units = (as_now - left_state) / (SP_KEPT_KIND + 1);
    /* More: the slot was left after `now`, which the caller has read before the state. */
    return units > OVERDUE_NS / TIME_UNIT_NS && units <= TIME_UNITS_APART;
}

bool sp__run_tenure_return(sp_run_tenure *tenure)
{
    if (tenure->released == 0) return false;
    tenure->returns_soon = sp_clock_now() - tenure->released < SOON_NS;
    tenure->released = 0;
    return tenure->returns_soon;
}

void sp__run_tenure_begin(sp_run_tenure *tenure, uint64_t now)
{
    tenure->since = tenure->observed = now;
    tenure->stride = tenure->skipped = 0;
    tenure->runs = tenure->quanta = 0;
}

bool sp__run_tenure_may_go_on(const sp_run_tenure *tenure)
{
    const uint32_t quanta = tenure->quanta + 1;
    if (SP_PLANTED(quanta_for_ever)) return tenure->runs >= SHORT_RUNS;
    return tenure->runs >= SHORT_RUNS * quanta && tenure->runs < MOST_RUNS && quanta < MOST_QUANTA;
}

void sp__run_tenure_go_on(sp_run_tenure *tenure)
{
    tenure->since = tenure->observed = tenure->released;
    tenure->quanta++;
}

/* Sets how many releases are not observed from now on: a clock costs as much as a short run's other
 * work. */
static void tenure_observe(sp_run_tenure *tenure, uint64_t now)
{
    const uint64_t cycle = (now - tenure->observed) / (tenure->stride + 1);
    const uint64_t stride = cycle > 0 ? OBSERVE_NS / cycle : 0; /* 0: nothing is known yet */
    tenure->observed = now;
    tenure->stride = stride < OBSERVE_RUNS ? (uint32_t)stride : OBSERVE_RUNS;
    tenure->skipped = 0;
}

static uint64_t tenure_end(sp_run_tenure *tenure, uint64_t now)
{
    const uint64_t held_ns = now - tenure->since;
    tenure->since = 0;
    return held_ns != 0 ? held_ns : 1;
}

sp_release_action sp__run_tenure_release(sp_run_tenure *tenure, bool may_leave, uint64_t *held_ns)
{
    const bool returns_soon = tenure->returns_soon && may_leave;
    *held_ns = 0;
    tenure->runs++;
    if (returns_soon && tenure->skipped < tenure->stride) {
        tenure->skipped++;
        return SP_RELEASE_LEAVE;
    }
    const uint64_t now = sp_clock_now();
    tenure->released = now;
    if (tenure->since == 0) sp__run_tenure_begin(tenure, now);
    if (returns_soon && (now - tenure->since < SP_RUN_QUANTUM_NS || SP_PLANTED(no_quantum))) {
        tenure_observe(tenure, now);
        return SP_RELEASE_LEAVE;
    }
    *held_ns = tenure_end(tenure, now);
    return returns_soon ? SP_RELEASE_CALL_AND_STAY : SP_RELEASE_CALL;
}
