/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_crowd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/macros.h"
#include "base/thread.h"
#include "base/wait.h"
#include "bench.h"

/* What a group computes for each member in a round, not counted: meanwhile the others fall asleep.
 */
#define WORK_NS 5000u

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
    /* Rounds of members, and what has been computed: written by the last one to arrive, read by
     * crowd_count: statistics (relaxed). */
    sp_atomic_u64 rounds, work_ns;
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

static void group_compute(crowd_group *group)
{
    const uint64_t begin = sp_clock_thread();
    uint64_t work_ns;
    do work_ns = sp_clock_thread() - begin;
    while (work_ns < (uint64_t)WORK_NS * group->count);
    sp_fetch_add_relaxed(&group->work_ns, work_ns);
}

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
        group_compute(group);
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
    if (lines == NULL) {
        fprintf(stderr, "benchmark: no memory for a crowd\n");
        exit(EXIT_FAILURE);
    }
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

typedef struct crowd_counts {
    uint64_t rounds;
    uint64_t ns; /* CPU time, without what was computed */
} crowd_counts;

static crowd_counts crowd_count(const crowd *self)
{
    crowd_counts counts = {.ns = bench_processor_clock()};
    for (uint32_t i = 0; i < self->group_count; i++) {
        counts.rounds += sp_load_relaxed(&self->groups[i].rounds);
        counts.ns -= sp_load_relaxed(&self->groups[i].work_ns);
    }
    return counts;
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

/* Sleeps for `ms`, and again until a group has ended a round: on a busy machine a short window may
 * pass without one. */
static crowd_counts crowd_count_later(const crowd *self, crowd_counts before, double ms)
{
    crowd_counts counts;
    do {
        sp_clock_sleep((uint64_t)(ms * 1e6));
        counts = crowd_count(self);
    } while (counts.rounds == before.rounds);
    return counts;
}

double bench_crowd_wake_ns(uint32_t threads, uint32_t share, double ms)
{
    if (threads < 2 || share < 2) return 0;
    crowd self = {0};
    crowd_start(&self, threads, share);
    sp_clock_sleep((uint64_t)(ms * 1e6 / 4));
    const crowd_counts before = crowd_count(&self);
    const crowd_counts after = crowd_count_later(&self, before, ms);
    crowd_stop(&self);
    return (double)(after.ns - before.ns) / (double)(after.rounds - before.rounds);
}
