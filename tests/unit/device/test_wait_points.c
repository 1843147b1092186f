/* SPDX-License-Identifier: Apache-2.0 */
/* Host waits (device/wait.c) for timelines that the test itself advances. */
#include "device/wait.h"

#include "base/clock.h"
#include "base/delay.h"
#include "base/error.h"
#include "base/heap.h"
#include "base/thread.h"
#include "device/thread_record.h"
#include "support/test.h"

#define MS UINT64_C(1000000)
#define TIMELINES 6

typedef struct lines {
    sp_timeline timelines[TIMELINES];
    uint64_t rounds;
    sp_atomic_u32 ended; /* waiters that have ended */
    sp_atomic_u64 reached, timed_out;
} lines;

static void open_lines(lines *l)
{
    *l = (lines){.rounds = 0};
    for (int i = 0; i < TIMELINES; i++) sp__timeline_init(&l->timelines[i], NULL);
}

static void close_lines(lines *l)
{
    for (int i = 0; i < TIMELINES; i++) {
        CHECK_EQ_U64(sp_load_relaxed(&l->timelines[i].wanted), UINT64_MAX); /* no node remains */
        sp__timeline_deinit(&l->timelines[i]);
    }
}

static sp_point point_of(lines *l, int index, uint64_t value)
{
    return (sp_point){&l->timelines[index], value};
}

static sp_fault fail_value(lines *l, int index, uint64_t value, const char *why)
{
    sp__fail(SP_FAILED, "%s", why);
    const sp_fault fault = sp__fault_create(SP_FAILED);
    sp__timeline_fail(&l->timelines[index], value, 1, fault);
    return fault;
}

TEST(points_that_have_passed_cost_no_wait)
{
    lines l;
    open_lines(&l);
    sp__timeline_advance(&l.timelines[0], 5);
    CHECK_OK(sp__point_wait((sp_point){0}, 0));
    CHECK_OK(sp__point_wait(point_of(&l, 0, 5), 0));
    CHECK_OK(sp__point_wait(point_of(&l, 0, 0), SP_NO_DEADLINE));
    sp__point_flush(point_of(&l, 0, 5));
    sp__point_flush(point_of(&l, 0, 6)); /* no queue: nothing to flush */
    close_lines(&l);
}

TEST(a_wait_ends_at_its_deadline)
{
    lines l;
    open_lines(&l);
    CHECK_STATUS(sp__point_wait(point_of(&l, 0, 1), 0), SP_TIMEOUT);
    const uint64_t start = sp_clock_now();
    CHECK_STATUS(sp__point_wait(point_of(&l, 0, 1), start + 10 * MS), SP_TIMEOUT);
    const uint64_t waited = sp_clock_now() - start;
    CHECK(waited >= 10 * MS && waited < 2000 * MS);
    CHECK_MESSAGE("not reached in time");
    const sp_point points[2] = {point_of(&l, 0, 1), point_of(&l, 1, 1)};
    CHECK_STATUS(sp__point_wait_all(points, 2, start), SP_TIMEOUT);
    uint32_t which = 9;
    CHECK_STATUS(sp__point_wait_any(points, 2, sp_clock_now() + MS, &which), SP_TIMEOUT);
    CHECK_EQ_U64(which, 9);
    close_lines(&l);
}

TEST(the_status_of_a_wait_is_that_of_its_point)
{
    lines l;
    open_lines(&l);
    fail_value(&l, 0, 2, "second");
    fail_value(&l, 1, 1, "other");
    sp__timeline_advance(&l.timelines[0], 3);
    sp__timeline_advance(&l.timelines[1], 3);
    CHECK_OK(sp__point_wait(point_of(&l, 0, 1), 0));
    CHECK_STATUS(sp__point_wait(point_of(&l, 0, 2), 0), SP_FAILED);
    CHECK_MESSAGE("second");
    CHECK_OK(sp__point_wait(point_of(&l, 0, 3), 0));
    CHECK_OK(sp__point_wait_passed(point_of(&l, 0, 2), 0));
    const sp_point points[3] = {point_of(&l, 0, 1), point_of(&l, 1, 1), point_of(&l, 0, 2)};
    CHECK_STATUS(sp__point_wait_all(points, 3, SP_NO_DEADLINE), SP_FAILED);
    CHECK_MESSAGE("other");
    uint32_t which = 9;
    CHECK_STATUS(sp__point_wait_any(&points[1], 2, SP_NO_DEADLINE, &which), SP_FAILED);
    CHECK_EQ_U64(which, 0);
    CHECK_MESSAGE("other");
    close_lines(&l);
}

TEST(a_wait_for_all_of_none_is_over_and_for_any_of_none_is_an_error)
{
    uint32_t which = 9;
    CHECK_OK(sp__point_wait_all(NULL, 0, SP_NO_DEADLINE));
    CHECK_STATUS(sp__point_wait_any(NULL, 0, SP_NO_DEADLINE, &which), SP_INVALID);
}

TEST(a_wait_for_any_takes_the_first_of_those_that_have_passed)
{
    lines l;
    open_lines(&l);
    sp__timeline_advance(&l.timelines[2], 1);
    sp__timeline_advance(&l.timelines[3], 1);
    sp_point points[4];
    for (int i = 0; i < 4; i++) points[i] = point_of(&l, i, 1);
    uint32_t which = 9;
    CHECK_OK(sp__point_wait_any(points, 4, 0, &which));
    CHECK_EQ_U64(which, 2);
    close_lines(&l);
}

TEST(a_wait_for_any_without_memory_is_an_error_and_leaves_no_node)
{
    lines l;
    open_lines(&l);
    const sp_point points[2] = {point_of(&l, 0, 1), point_of(&l, 1, 1)};
    uint32_t which = 9;
    CHECK(sp__thread_record() != NULL); /* created before, so that only the nodes have no memory */
    sp_heap_fail_after(0);
    CHECK_STATUS(sp__point_wait_any(points, 2, SP_NO_DEADLINE, &which), SP_OUT_OF_MEMORY);
    sp_heap_fail_after(UINT64_MAX);
    close_lines(&l);
}

static void wait_without_memory(void *arg, uint32_t index)
{
    (void)index;
    lines *l = arg;
    uint32_t which = 9;
    const sp_point point = point_of(l, 0, 1);
    for (int i = 0; i < 2; i++) {
        sp_heap_fail_after(0);
        const sp_status status = i == 0 ? sp__point_wait(point, SP_NO_DEADLINE)
                                        : sp__point_wait_any(&point, 1, SP_NO_DEADLINE, &which);
        sp_heap_fail_after(UINT64_MAX);
        CHECK_STATUS(status, SP_OUT_OF_MEMORY);
    }
    CHECK_STATUS(sp__point_wait(point, sp_clock_now() + MS), SP_TIMEOUT);
}

TEST(a_thread_without_memory_for_its_record_does_not_wait)
{
    lines l;
    open_lines(&l);
    sp__thread_records_deinit(); /* records of former threads would be reused */
    test_threads(1, wait_without_memory, &l);
    close_lines(&l);
}

/* ---- threads ---- */

static void advance_or_wait(void *arg, uint32_t index)
{
    lines *l = arg;
    if (index == 0) {
        for (uint64_t i = 1; i <= l->rounds; i++) {
            if (i % 3 == 0) sp_thread_yield();
            sp__timeline_advance(&l->timelines[0], i);
        }
        return;
    }
    /* Every value, some early, some late, all reached. */
    for (uint64_t i = index; i <= l->rounds; i += index) {
        REQUIRE_OK(sp__point_wait(point_of(l, 0, i), sp_clock_now() + 60000 * MS));
        REQUIRE(sp_load_acquire(&l->timelines[0].done) >= i);
    }
}

TEST(no_wake_up_of_a_waiting_thread_is_lost)
{
    lines l;
    open_lines(&l);
    l.rounds = test_count(1000000, 20000);
    test_threads(4, advance_or_wait, &l);
    close_lines(&l);
}

#define WAITERS 4

static void advance_all(lines *l)
{
    uint64_t values[TIMELINES] = {0};
    for (uint64_t i = 0; sp_load_acquire(&l->ended) < WAITERS; i++) {
        const uint64_t line = (i * 5 + i / 7) % TIMELINES;
        values[line] += 1 + i % 2;
        sp__timeline_advance(&l->timelines[line], values[line]);
        if (i % 4 == 0) sp_thread_yield();
    }
}

/* Waits for a few points slightly ahead, with time-outs near the time they are reached, so that
 * nodes are cancelled before, while and after they are fired. */
static void wait_for_any_of_some(lines *l, uint32_t index)
{
    for (uint64_t i = 0; i < l->rounds; i++) {
        sp_point points[TIMELINES];
        const uint32_t count = 1 + (uint32_t)(i + index) % TIMELINES;
        for (uint32_t k = 0; k < count; k++) {
            const int line = (int)((i * index + k) % TIMELINES);
            const uint64_t done = sp_load_acquire(&l->timelines[line].done);
            points[k] = point_of(l, line, done + 1 + (i + k) % 3);
        }
        uint32_t which = UINT32_MAX;
        const uint64_t deadline = i % 5 == 0 ? SP_NO_DEADLINE : sp_clock_now() + i % 30000;
        const sp_status status = sp__point_wait_any(points, count, deadline, &which);
        if (status == SP_OK) {
            REQUIRE(which < count);
            REQUIRE(sp__point_has_passed(points[which]));
            sp_fetch_add_relaxed(&l->reached, (uint64_t)1);
        } else {
            REQUIRE_STATUS(status, SP_TIMEOUT);
            sp_fetch_add_relaxed(&l->timed_out, (uint64_t)1);
        }
    }
}

static void any_storm(void *arg, uint32_t index)
{
    lines *l = arg;
    if (index == 0) {
        advance_all(l);
        return;
    }
    wait_for_any_of_some(l, index);
    sp_fetch_add_release(&l->ended, 1);
}

TEST(waits_for_any_take_all_their_nodes_back_however_they_end)
{
    lines l;
    open_lines(&l);
    l.rounds = test_count(200000, 5000);
    sp_delay_configure(1, 5, 20000);
    test_threads(WAITERS + 1, any_storm, &l);
    sp_delay_configure(0, 0, 0);
    test_note("%llu waits were reached, %llu timed out",
              (unsigned long long)sp_load_relaxed(&l.reached),
              (unsigned long long)sp_load_relaxed(&l.timed_out));
    CHECK(sp_load_relaxed(&l.reached) > 0);
    CHECK(sp_load_relaxed(&l.timed_out) > 0);
    close_lines(&l);
}

TEST_MAIN
