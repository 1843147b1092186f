/* SPDX-License-Identifier: Apache-2.0 */
/* Failed leases: which thread is told of which failure, and what is kept if the table is full. */
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

/* A submission whose own command fails. */
static sp_fault fail(world *w, uint64_t lease, uint64_t thread)
{
    const sp_fault fault = fault_of(++w->value);
    sp__lease_faults_add(&w->faults, lease, thread, w->value, fault);
    return fault;
}

/* A submission with untracked bindings. */
static sp_fault consume(world *w, uint64_t lease, uint64_t thread)
{
    w->value++;
    return sp__lease_faults_consume(&w->faults, lease, thread, w->value);
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
    /* Threads that were not told may consume the third thread's failed command. */
    CHECK_EQ_U64(consume(&w, A, 2), SP_NO_FAULT);
    CHECK_EQ_U64(consume(&w, A, 1), SP_NO_FAULT);
    CHECK_EQ_U64(consume(&w, A, 4), first);
    tell(&w, 3);
    tell(&w, 4);
    for (uint64_t thread = 1; thread <= 4; thread++) {
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
    const sp_fault newer = fail(&w, A, 1); /* not the reported one */
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

/* Two threads that synchronize alternately, so that one always has an unreported failure. */
TEST(a_failure_does_not_go_round_among_threads_that_were_told)
{
    world w;
    begin(&w);
    const sp_fault root = fail(&w, A, 1);
    CHECK_EQ_U64(consume(&w, A, 2), root);
    tell(&w, 1);
    CHECK_EQ_U64(consume(&w, A, 1), SP_NO_FAULT);
    tell(&w, 2);
    CHECK_EQ_U64(consume(&w, A, 2), SP_NO_FAULT);
    CHECK_EQ_U64(sp_load_relaxed(&w.faults.count), 0);
    end(&w);
}

TEST(what_a_thread_is_told_while_another_fails_for_it_is_kept)
{
    world w;
    begin(&w);
    const sp_fault root = fail(&w, A, 1);
    w.value++;
    CHECK_EQ_U64(sp__lease_faults_consume(&w.faults, A, 2, w.value), root);
    sp__lease_faults_told(&w.faults, 1, w.value - 1); /* the consumer is not done yet */
    CHECK_EQ_U64(consume(&w, A, 1), SP_NO_FAULT);
    CHECK_EQ_U64(consume(&w, A, 3), root); /* for the second thread's failure */
    end(&w);
}

TEST(a_failure_of_its_own_does_not_tell_a_thread_of_an_older_one)
{
    world w;
    begin(&w);
    const sp_fault other = fail(&w, A, 1);
    CHECK_EQ_U64(consume(&w, A, 3), other);
    fail(&w, A, 2); /* not as a consumer: its bindings are tracked */
    tell(&w, 1);
    tell(&w, 2);
    CHECK_EQ_U64(consume(&w, A, 2), other); /* for the third thread's failure */
    tell(&w, 2);
    CHECK_EQ_U64(consume(&w, A, 2), SP_NO_FAULT);
    end(&w);
}

TEST(a_consumer_of_two_failures_counts_for_a_thread_that_was_told_of_the_first)
{
    world w;
    begin(&w);
    const sp_fault first = fail(&w, A, 1);
    CHECK_EQ_U64(consume(&w, A, 3), first);
    tell(&w, 3);
    fail(&w, A, 2);
    CHECK_EQ_U64(consume(&w, A, 4), first); /* it consumed the second as well */
    tell(&w, 2);
    CHECK(consume(&w, A, 3) != SP_NO_FAULT);
    tell(&w, 3);
    CHECK_EQ_U64(consume(&w, A, 3), SP_NO_FAULT);
    end(&w);
}

/* A thread that ends without a report, and `threads` threads that use the lease in turn. */
static uint32_t count_failures(uint64_t threads, uint32_t rounds, bool is_last_round)
{
    world w;
    begin(&w);
    fail(&w, A, threads + 1);
    uint32_t count = 0;
    for (uint32_t round = 0; round < rounds; round++) {
        for (uint64_t thread = 1; thread <= threads; thread++) {
            const bool is_failed = consume(&w, A, thread) != SP_NO_FAULT;
            if (is_failed && (!is_last_round || round == rounds - 1)) count++;
            /* Half of them synchronize only after others have submitted. */
            if (thread % 2 == 0) {
                tell(&w, thread - 1);
                tell(&w, thread);
            }
        }
    }
    end(&w);
    return count;
}

TEST(each_thread_fails_once_for_a_thread_that_ended_untold)
{
    for (uint64_t threads = 2; threads < SP_LEASE_THREADS; threads += 2) {
        CHECK_EQ_U64(count_failures(threads, 20, false), threads);
    }
}

TEST(failures_end_however_many_threads_there_are)
{
    for (uint64_t threads = SP_LEASE_THREADS; threads <= 1024; threads *= 2) {
        CHECK(count_failures(threads, 40, false) <= SP_LEASE_THREADS + SP_LEASE_FOLDS + 1);
        CHECK_EQ_U64(count_failures(threads, 40, true), 0);
    }
}

TEST(failures_of_every_lease_end_too)
{
    world w;
    begin(&w);
    sp_heap_fail_after(0);
    fail(&w, A, 5000);
    uint32_t count = 0;
    for (uint64_t i = 0; i < 4000; i++) {
        const uint64_t thread = 1 + i % (2 * SP_LEASE_THREADS);
        if (consume(&w, i % 2 == 0 ? A : B, thread) != SP_NO_FAULT) count++;
        tell(&w, thread);
    }
    sp_heap_fail_after(UINT64_MAX);
    CHECK(count >= 2 * SP_LEASE_THREADS);
    CHECK(count <= SP_LEASE_THREADS + SP_LEASE_FOLDS + 1);
    CHECK_EQ_U64(sp_load_relaxed(&w.faults.count), 0);
    end(&w);
}

TEST(a_new_failure_counts_when_the_older_ones_had_to_end)
{
    world w;
    begin(&w);
    fail(&w, A, 5000);
    for (uint64_t thread = 1; consume(&w, A, thread) != SP_NO_FAULT; thread++) tell(&w, thread);
    const sp_fault fault = fail(&w, A, 5001);
    CHECK_EQ_U64(consume(&w, A, 1), fault);
    end(&w);
}

TEST(a_thread_without_a_place_leaves_the_oldest_of_its_failures)
{
    world w;
    begin(&w);
    const sp_fault oldest = fail(&w, A, 1);
    fail(&w, A, 1);
    for (uint64_t thread = 2; thread <= 2 * SP_LEASE_THREADS; thread++) {
        CHECK_EQ_U64(consume(&w, A, thread), oldest);
    }
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

/* ---- released leases ---- */

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
    CHECK_EQ_U64(consume(&w, A, 1), a);
    w.value += 5; /* of other leases */
    sweep(&w, behind + 4);
    CHECK_EQ_U64(consume(&w, A, 1), a);
    sweep(&w, behind + 5);
    CHECK_EQ_U64(consume(&w, A, 1), SP_NO_FAULT);
    CHECK_EQ_U64(consume(&w, B, 1), b);
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
