/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_crowd.h"

#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/macros.h"
#include "base/thread.h"
#include "base/wait.h"
#include "bench.h"

typedef struct crowd_group crowd_group;

typedef struct crowd_member {
    SP_CACHE_ALIGNED sp_parker parker;
    crowd_group *group;
    sp_thread thread;
} crowd_member;

struct crowd_group {
    /* Arrivals of the present round. Members add (acq_rel) and the last one sees all; it writes 0
     * before it wakes them. */
    SP_CACHE_ALIGNED sp_atomic_u32 arrived;
    /* Rounds of members, written by the last one to arrive, read by crowd_rounds: a statistic
     * (relaxed). */
    sp_atomic_u64 rounds;
    sp_atomic_u32 is_over; /* written by crowd_stop (release), read by members (acquire) */
    crowd_member *members;
    uint32_t count;
};

typedef struct crowd {
    crowd_group *groups;
    crowd_member *members;
    uint32_t group_count, member_count;
} crowd;

/* ---- members ---- */

static void others_wake(crowd_group *group, const crowd_member *self)
{
    for (uint32_t i = 0; i < group->count; i++) {
        if (&group->members[i] != self) sp_parker_unpark(&group->members[i].parker);
    }
}

static void member_run(void *arg)
{
    crowd_member *self = arg;
    crowd_group *group = self->group;
    while (!sp_load_acquire(&group->is_over)) {
        if (sp_fetch_add_acq_rel(&group->arrived, 1) + 1 < group->count) {
            sp_parker_park(&self->parker, SP_NO_DEADLINE);
            continue;
        }
        sp_store_relaxed(&group->arrived, 0);
        sp_fetch_add_relaxed(&group->rounds, group->count);
        others_wake(group, self);
    }
}

/* ---- the crowd ---- */

/* Zeroed; a multiple of cache lines, since the members of both types begin with one. */
static void *lines_allocate(size_t bytes)
{
    void *lines = aligned_alloc(SP_CACHE_LINE, bytes);
    bench_check(lines != NULL, "memory for a crowd");
    return memset(lines, 0, bytes);
}

static void crowd_start(crowd *self, uint32_t threads, uint32_t share)
{
    self->group_count = (threads + share - 1) / share;
    self->member_count = threads;
    self->groups = lines_allocate(self->group_count * sizeof *self->groups);
    self->members = lines_allocate(threads * sizeof *self->members);
    for (uint32_t i = 0; i < threads; i++) {
        crowd_group *group = &self->groups[i / share];
        if (group->count++ == 0) group->members = &self->members[i];
        self->members[i].group = group;
    }
    for (uint32_t i = 0; i < threads; i++) {
        crowd_member *member = &self->members[i];
        bench_check(sp_thread_create(&member->thread, "crowd", member_run, member) == SP_OK,
                    "thread");
    }
}

static uint64_t crowd_rounds(const crowd *self)
{
    uint64_t rounds = 0;
    for (uint32_t i = 0; i < self->group_count; i++) {
        rounds += sp_load_relaxed(&self->groups[i].rounds);
    }
    return rounds;
}

/* An unpark leaves a token, so a member that is about to park sees is_over too. */
static void crowd_stop(crowd *self)
{
    for (uint32_t i = 0; i < self->group_count; i++) {
        sp_store_release(&self->groups[i].is_over, 1);
    }
    for (uint32_t i = 0; i < self->member_count; i++) sp_parker_unpark(&self->members[i].parker);
    for (uint32_t i = 0; i < self->member_count; i++) sp_thread_join(&self->members[i].thread);
    free(self->members);
    free(self->groups);
}

double bench_crowd_wake_ns(uint32_t threads, uint32_t share, double ms)
{
    if (threads < 2 || share < 2) return 0;
    crowd self = {0};
    crowd_start(&self, threads, share);
    sp_clock_sleep((uint64_t)(ms * 1e6 / 4));
    const uint64_t rounds_before = crowd_rounds(&self);
    const uint64_t before = bench_processor_clock();
    sp_clock_sleep((uint64_t)(ms * 1e6));
    const uint64_t rounds = crowd_rounds(&self) - rounds_before;
    const double ns = (double)(bench_processor_clock() - before);
    crowd_stop(&self);
    bench_check(rounds > 0, "rounds of a crowd");
    return ns / (double)rounds;
}
