/* SPDX-License-Identifier: Apache-2.0 */
#include "batching_arrivals.h"

#include <math.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "base/thread.h"
#include "base/wait.h"
#include "bench.h"

/* Shorter waits cost less without a sleep. */
#define SPIN_NS 4000u
/* Until the threads have started. */
#define START_NS 1000000u

typedef struct schedule {
    uint64_t *at_ns; /* after the start; ascending */
    uint64_t count;
    uint64_t warm_up_count; /* arrivals of the warm-up */
} schedule;

typedef struct arrivals {
    const target *called;
    schedule schedule;
    uint64_t start_ns, given_up_ns; /* written before is_begun */
    sp_atomic_u32 is_begun;         /* written once (release), by the measuring thread; the others
                                       wait for it (acquire) */
    SP_CACHE_ALIGNED sp_atomic_u64 next; /* index of the next arrival; publishes nothing */
} arrivals;

typedef struct server {
    arrivals *owner;
    sp_thread thread;
    uint32_t number;
    uint64_t missed;
    latencies latencies;
} server;

/* ---- the schedule ---- */

static sp_status schedule_open(const window *asked, schedule *out)
{
    const double warm_up_ns = WINDOW_WARM_UP_SHARE * asked->seconds * 1e9;
    const double end_ns = warm_up_ns + asked->seconds * 1e9;
    const double mean_ns = 1e9 / asked->rate;
    /* Ten standard deviations above the mean of the Poisson distribution. */
    const double expected = end_ns / mean_ns;
    const double room = expected + 10 * sqrt(expected) + 10;
    unsigned short random[3] = {1, 2, 3};
    *out = (schedule){.at_ns = malloc((size_t)room * sizeof *out->at_ns)};
    if (out->at_ns == NULL) return fail(SP_OUT_OF_MEMORY, "no memory for %g arrivals", room);
    for (double at = 0; out->count < (uint64_t)room; out->count++) {
        at -= log(1 - erand48(random)) * mean_ns;
        if (at >= end_ns) break;
        if (at < warm_up_ns) out->warm_up_count++;
        out->at_ns[out->count] = (uint64_t)at;
    }
    return SP_OK;
}

/* ---- threads ---- */

static void wait_until(uint64_t at_ns)
{
    for (;;) {
        const uint64_t now = sp_clock_now();
        if (now >= at_ns) return;
        if (at_ns - now > SPIN_NS) sp_clock_sleep(at_ns - now);
        else sp_spin_hint();
    }
}

static void arrivals_serve(void *arg)
{
    server *self = arg;
    arrivals *owner = self->owner;
    const schedule *all = &owner->schedule;
    const load_side *side = &owner->called->side;
    prctl(PR_SET_TIMERSLACK, 1UL); /* wakes up for an arrival as soon as it can */
    while (!sp_load_acquire(&owner->is_begun)) sp_word_wait(&owner->is_begun, 0, SP_NO_DEADLINE);
    for (;;) {
        const uint64_t i = sp_fetch_add_relaxed(&owner->next, 1);
        if (i >= all->count) return;
        const uint64_t at = owner->start_ns + all->at_ns[i];
        if (sp_clock_now() >= owner->given_up_ns) {
            if (i >= all->warm_up_count) self->missed++;
            continue;
        }
        wait_until(at);
        bench_check(side->call(side->ctx, self->number) == SP_OK, "a run of an open loop");
        if (i >= all->warm_up_count) latencies_add(&self->latencies, sp_clock_now() - at);
    }
}

/* ---- the window ---- */

static void arrivals_run(arrivals *self, const window *asked, server *servers)
{
    for (uint32_t i = 0; i < asked->count; i++) {
        servers[i] = (server){.owner = self, .number = i};
        bench_check(sp_thread_create(&servers[i].thread, "arrivals", arrivals_serve, &servers[i]) ==
                        SP_OK,
                    "thread");
    }
    const double length_ns = (2 + WINDOW_WARM_UP_SHARE) * asked->seconds * 1e9;
    self->start_ns = sp_clock_now() + START_NS;
    self->given_up_ns = self->start_ns + (uint64_t)length_ns;
    sp_store_release(&self->is_begun, 1);
    sp_word_wake(&self->is_begun, SP_WAKE_ALL);
    for (uint32_t i = 0; i < asked->count; i++) sp_thread_join(&servers[i].thread);
}

sp_status window_arrivals(const window *asked, const target *called, window_result *out)
{
    arrivals self = {.called = called};
    load_result result = {0};
    server *servers = calloc(asked->count, sizeof *servers);
    if (servers == NULL) return fail(SP_OUT_OF_MEMORY, "no memory for %u threads", asked->count);
    const sp_status status = schedule_open(asked, &self.schedule);
    if (status == SP_OK) {
        arrivals_run(&self, asked, servers);
        for (uint32_t i = 0; i < asked->count; i++) {
            latencies_merge(&result.latencies, &servers[i].latencies);
            result.missed += servers[i].missed;
        }
        result.per_second = (double)result.latencies.count / asked->seconds;
        window_figures_fill(&result, &out->figures[0]);
    }
    free(self.schedule.at_ns);
    free(servers);
    return status;
}
