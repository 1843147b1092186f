/* SPDX-License-Identifier: Apache-2.0 */
/* Failed leases by themselves: who is told what, and what is kept when there is no room for all. */
#include "device/lease_faults.h"

#include "base/error.h"
#include "base/heap.h"
#include "support/test.h"

enum { A = 11, B = 12 }; /* leases */

typedef struct world {
    sp_lease_faults faults;
    uint64_t value; /* of the newest submission */
} world;

static void begin(world *w)
{
    sp__lease_faults_init(&w->faults);
    w->value = 0;
}

static void end(world *w)
{
    sp__lease_faults_deinit(&w->faults);
}

static sp_fault fault_of(uint64_t value)
{
    return (sp_fault)SP_FAILED << 24 | (sp_fault)value;
}

/* A submission that fails by itself. */
static sp_fault fail(world *w, uint64_t lease, uint64_t thread)
{
    const sp_fault fault = fault_of(++w->value);
    sp__lease_faults_add(&w->faults, lease, thread, w->value, fault, false);
    return fault;
}

/* A submission with untracked bindings. */
static sp_fault consume(world *w, uint64_t lease, uint64_t thread)
{
    w->value++;
    const sp_fault fault = sp__lease_faults_find(&w->faults, lease, thread);
    if (fault != SP_NO_FAULT) {
        sp__lease_faults_add(&w->faults, lease, thread, w->value, fault, true);
    }
    return fault;
}

static void tell(world *w, uint64_t thread)
{
    sp__lease_faults_told(&w->faults, thread, w->value);
}

TEST(a_lease_stays_failed_whatever_fails_on_others)
{
    world w;
    begin(&w);
    const sp_fault a = fail(&w, A, 1);
    const sp_fault b = fail(&w, B, 2);
    CHECK_EQ_U64(consume(&w, A, 1), a);
    CHECK_EQ_U64(consume(&w, B, 2), b);
    CHECK_EQ_U64(consume(&w, 13, 1), SP_NO_FAULT);
    tell(&w, 2);
    CHECK_EQ_U64(consume(&w, B, 2), SP_NO_FAULT);
    CHECK_EQ_U64(consume(&w, A, 1), a);
    tell(&w, 1);
    CHECK_EQ_U64(consume(&w, A, 1), SP_NO_FAULT);
    CHECK_EQ_U64(sp_load_relaxed(&w.faults.count), 0);
    end(&w);
}

TEST(a_failure_of_no_lease_concerns_no_command)
{
    world w;
    begin(&w);
    fail(&w, 0, 1);
    CHECK_EQ_U64(sp_load_relaxed(&w.faults.count), 0);
    tell(&w, 1);
    end(&w);
}

TEST(each_thread_is_told_before_its_commands_run_again)
{
    world w;
    begin(&w);
    const sp_fault first = fail(&w, A, 1);
    CHECK_EQ_U64(consume(&w, A, 2), first);
    tell(&w, 2); /* of its own command, which failed for that reason */
    CHECK_EQ_U64(consume(&w, A, 2), SP_NO_FAULT);
    CHECK_EQ_U64(consume(&w, A, 1), first);
    CHECK_EQ_U64(consume(&w, A, 3), first);
    tell(&w, 1);
    /* The third thread's failed command may be what others consume. */
    CHECK_EQ_U64(consume(&w, A, 2), first);
    tell(&w, 3);
    tell(&w, 2);
    for (uint64_t thread = 1; thread <= 3; thread++) {
        CHECK_EQ_U64(consume(&w, A, thread), SP_NO_FAULT);
    }
    end(&w);
}

TEST(a_thread_that_was_told_of_other_failures_is_not_told_of_this_one)
{
    world w;
    begin(&w);
    const sp_fault own = fail(&w, A, 2);
    const sp_fault other = fail(&w, A, 1);
    tell(&w, 2); /* of its own only */
    CHECK(own != other);
    CHECK_EQ_U64(consume(&w, A, 2), other);
    tell(&w, 2);
    CHECK_EQ_U64(consume(&w, A, 2), SP_NO_FAULT);
    const sp_fault newer = fail(&w, A, 1); /* not what it was told of */
    CHECK_EQ_U64(consume(&w, A, 2), newer);
    end(&w);
}

TEST(failures_beyond_the_point_that_was_waited_for_are_not_told)
{
    world w;
    begin(&w);
    fail(&w, A, 1);
    const uint64_t told = w.value;
    const sp_fault later = fail(&w, A, 1);
    sp__lease_faults_told(&w.faults, 1, told);
    CHECK_EQ_U64(consume(&w, A, 1), later);
    sp__lease_faults_told(&w.faults, 1, told);
    CHECK_EQ_U64(consume(&w, A, 1), later);
    tell(&w, 1);
    CHECK_EQ_U64(consume(&w, A, 1), SP_NO_FAULT);
    end(&w);
}

TEST(more_threads_than_there_are_places_for_fail_rather_too_often)
{
    enum { THREADS = 5 * SP_LEASE_THREADS };
    world w;
    begin(&w);
    for (uint64_t thread = 1; thread <= THREADS; thread++) fail(&w, A, thread);
    CHECK_EQ_U64(sp_load_relaxed(&w.faults.count), 1);
    for (uint64_t thread = 1; thread <= THREADS + 1; thread++) {
        CHECK(consume(&w, A, thread) != SP_NO_FAULT);
        tell(&w, thread);
        CHECK_EQ_U64(consume(&w, A, thread), SP_NO_FAULT);
    }
    CHECK_EQ_U64(consume(&w, B, 1), SP_NO_FAULT);
    end(&w);
}

TEST(without_memory_a_failure_counts_for_every_lease_of_the_queue)
{
    world w;
    begin(&w);
    sp_heap_fail_after(0);
    const sp_fault fault = fail(&w, A, 1);
    sp_heap_fail_after(UINT64_MAX);
    CHECK_EQ_U64(consume(&w, A, 1), fault);
    CHECK_EQ_U64(consume(&w, B, 2), fault);
    tell(&w, 2);
    CHECK_EQ_U64(consume(&w, B, 2), SP_NO_FAULT);
    CHECK_EQ_U64(consume(&w, B, 3), fault);
    tell(&w, 1);
    tell(&w, 3);
    for (uint64_t thread = 1; thread <= 3; thread++) {
        CHECK_EQ_U64(consume(&w, A, thread), SP_NO_FAULT);
        CHECK_EQ_U64(consume(&w, B, thread), SP_NO_FAULT);
    }
    CHECK_EQ_U64(sp_load_relaxed(&w.faults.count), 0);
    end(&w);
}

/* ---- leases that are over ---- */

static uint64_t ended_lease; /* process-wide: the predicate has no context */

static bool is_over(uint64_t lease)
{
    return lease == ended_lease;
}

static void sweep(world *w, uint64_t done)
{
    sp__lease_faults_sweep(&w->faults, is_over, w->value, done);
}

TEST(what_an_ended_lease_left_goes_when_its_last_command_is_done)
{
    world w;
    begin(&w);
    const sp_fault a = fail(&w, A, 1);
    const sp_fault b = fail(&w, B, 1);
    ended_lease = A;
    const uint64_t behind = w.value;
    w.value += 5; /* in flight, perhaps of the ended lease */
    sweep(&w, behind);
    CHECK_EQ_U64(sp__lease_faults_find(&w.faults, A, 1), a);
    w.value += 5; /* of other leases */
    sweep(&w, behind + 4);
    CHECK_EQ_U64(sp__lease_faults_find(&w.faults, A, 1), a);
    sweep(&w, behind + 5);
    CHECK_EQ_U64(sp__lease_faults_find(&w.faults, A, 1), SP_NO_FAULT);
    CHECK_EQ_U64(sp__lease_faults_find(&w.faults, B, 1), b);
    CHECK_EQ_U64(sp_load_relaxed(&w.faults.count), 1);
    end(&w);
}

TEST(leases_that_end_failed_leave_nothing_behind)
{
    world w;
    begin(&w);
    for (ended_lease = 1; ended_lease < 1000; ended_lease++) {
        fail(&w, ended_lease, ended_lease);
        sweep(&w, w.value);
        CHECK_EQ_U64(sp_load_relaxed(&w.faults.count), 0);
    }
    end(&w);
}

TEST_MAIN
