/* SPDX-License-Identifier: Apache-2.0 */
/* Timelines: the order of waiters, cancelling, and the memory of failures. */
#include "device/timeline.h"

#include <string.h>

#include "base/delay.h"
#include "base/error.h"
#include "base/heap.h"
#include "base/thread.h"
#include "support/test.h"

/* ---- waiters ---- */

typedef struct note {
    sp_waiter waiter;
    struct diary *diary;
    uint32_t name;
    bool is_cancelled; /* after it has fired, too */
} note;

typedef struct diary {
    sp_timeline timeline;
    uint32_t names[32]; /* of the waiters that were fired, in order */
    uint32_t count;
    note *next; /* registered by the next one that fires */
} diary;

static void write_down(sp_waiter *waiter)
{
    note *self = SP_CONTAINER_OF(waiter, note, waiter);
    diary *d = self->diary;
    const uint32_t name = self->name;
    /* The node belongs to the callee: the timeline does not access it any more, unless it is
     * cancelled. */
    if (!self->is_cancelled) memset(self, 0xee, sizeof *self);
    d->names[d->count++] = name;
    note *next = d->next;
    d->next = NULL;
    /* No lock is held during the call. */
    if (next != NULL) CHECK(sp__timeline_register(&d->timeline, &next->waiter));
}

static note note_of(diary *d, uint32_t name, uint64_t value)
{
    return (note){.waiter = {.value = value, .fire = write_down}, .diary = d, .name = name};
}

static void diary_open(diary *d)
{
    memset(d, 0, sizeof *d);
    sp__timeline_init(&d->timeline, NULL);
}

TEST(waiters_fire_in_the_order_of_their_values_and_then_of_their_registration)
{
    static const uint64_t values[] = {30, 10, 20, 10, 30, 5, 20, 10};
    static const uint32_t expected[] = {5, 1, 3, 7, 2, 6, 0, 4};
    diary d;
    diary_open(&d);
    note notes[SP_COUNT_OF(values)];
    for (uint32_t i = 0; i < SP_COUNT_OF(values); i++) {
        notes[i] = note_of(&d, i, values[i]);
        CHECK(sp__timeline_register(&d.timeline, &notes[i].waiter));
    }
    CHECK_EQ_U64(sp_load_relaxed(&d.timeline.wanted), 5);
    sp__timeline_advance(&d.timeline, 40);
    REQUIRE_EQ_U64(d.count, SP_COUNT_OF(expected));
    CHECK_EQ_MEM(d.names, expected, sizeof expected);
    CHECK_EQ_U64(sp_load_relaxed(&d.timeline.wanted), UINT64_MAX);
    sp__timeline_deinit(&d.timeline);
}

TEST(an_advance_fires_those_that_are_due_and_no_others)
{
    diary d;
    diary_open(&d);
    note notes[4];
    for (uint32_t i = 0; i < 4; i++) {
        notes[i] = note_of(&d, i, 10 * (i + 1));
        CHECK(sp__timeline_register(&d.timeline, &notes[i].waiter));
    }
    sp__timeline_advance(&d.timeline, 9);
    CHECK_EQ_U64(d.count, 0);
    sp__timeline_advance(&d.timeline, 10);
    CHECK_EQ_U64(d.count, 1);
    sp__timeline_advance(&d.timeline, 39);
    CHECK_EQ_U64(d.count, 3);
    CHECK_EQ_U64(sp_load_relaxed(&d.timeline.wanted), 40);
    sp__timeline_advance(&d.timeline, UINT64_MAX);
    CHECK_EQ_U64(d.count, 4);
    sp__timeline_deinit(&d.timeline);
}

TEST(a_value_that_has_passed_is_not_registered)
{
    diary d;
    diary_open(&d);
    note late = note_of(&d, 0, 7);
    note early = note_of(&d, 1, 8);
    sp__timeline_advance(&d.timeline, 7);
    CHECK(!sp__timeline_register(&d.timeline, &late.waiter));
    CHECK(sp__timeline_register(&d.timeline, &early.waiter));
    CHECK(!sp__timeline_register(&d.timeline, &late.waiter));
    CHECK_EQ_U64(sp_load_relaxed(&d.timeline.wanted), 8);
    sp__timeline_advance(&d.timeline, 8);
    CHECK_EQ_U64(d.count, 1);
    CHECK_EQ_U64(d.names[0], 1);
    sp__timeline_deinit(&d.timeline);
}

TEST(a_cancelled_waiter_does_not_fire_and_a_fired_one_cannot_be_cancelled)
{
    diary d;
    diary_open(&d);
    note notes[3];
    for (uint32_t i = 0; i < 3; i++) {
        notes[i] = note_of(&d, i, i + 1);
        CHECK(sp__timeline_register(&d.timeline, &notes[i].waiter));
    }
    sp_waiter *const fired = &notes[2].waiter;
    notes[2].is_cancelled = true;
    CHECK(sp__timeline_cancel(&d.timeline, &notes[0].waiter));
    CHECK(!sp__timeline_cancel(&d.timeline, &notes[0].waiter));
    CHECK_EQ_U64(sp_load_relaxed(&d.timeline.wanted), 2);
    CHECK(sp__timeline_cancel(&d.timeline, &notes[1].waiter));
    sp__timeline_advance(&d.timeline, 5);
    CHECK_EQ_U64(d.count, 1);
    CHECK_EQ_U64(d.names[0], 2);
    CHECK(!sp__timeline_cancel(&d.timeline, fired));
    sp__timeline_deinit(&d.timeline);
}

TEST(a_waiter_that_fires_may_register_the_next)
{
    diary d;
    diary_open(&d);
    note first = note_of(&d, 1, 1);
    note second = note_of(&d, 2, 2);
    d.next = &second;
    CHECK(sp__timeline_register(&d.timeline, &first.waiter));
    sp__timeline_advance(&d.timeline, 1);
    CHECK_EQ_U64(d.count, 1);
    sp__timeline_advance(&d.timeline, 2);
    CHECK_EQ_U64(d.count, 2);
    sp__timeline_deinit(&d.timeline);
}

TEST(the_point_without_a_timeline_has_always_passed_without_a_fault)
{
    CHECK(sp__point_has_passed((sp_point){0}));
    CHECK(sp__point_has_passed((sp_point){.value = UINT64_MAX}));
    CHECK_EQ_U64(sp__point_fault((sp_point){.value = 3}), SP_NO_FAULT);
}

/* ---- threads ---- */

#define STORM_THREADS 4

typedef struct storm storm;

typedef struct storm_waiter {
    sp_waiter waiter;
    storm *storm;
    sp_atomic_u32 fired;
} storm_waiter;

struct storm {
    sp_timeline timeline;
    uint64_t last;
    sp_atomic_u64 fired, cancelled, late;
};

static void count_fired(sp_waiter *waiter)
{
    storm_waiter *self = SP_CONTAINER_OF(waiter, storm_waiter, waiter);
    CHECK(sp_load_acquire(&self->storm->timeline.done) >= waiter->value);
    sp_fetch_add_relaxed(&self->storm->fired, (uint64_t)1);
    sp_fetch_add_release(&self->fired, 1); /* the last access: the node returns to its owner */
}

static void advance_to_the_end(storm *s)
{
    uint64_t value = 0;
    for (uint64_t i = 0; value < s->last; i++) {
        value += 1 + i % 3;
        sp__timeline_advance(&s->timeline, value);
        if (i % 64 == 0) sp_thread_yield();
    }
}

/* Registers, cancels every other node, and otherwise waits until it is fired: one or the other,
 * once. */
static void register_and_cancel(void *arg, uint32_t index)
{
    storm *s = arg;
    if (index == 0) {
        advance_to_the_end(s);
        return;
    }
    for (uint64_t i = 0;; i++) {
        const uint64_t done = sp_load_acquire(&s->timeline.done);
        if (done >= s->last) return;
        const uint64_t ahead = done + 1 + (i * 7 + index) % 5;
        storm_waiter mine = {
            .waiter = {.value = ahead < s->last ? ahead : s->last, .fire = count_fired},
            .storm = s};
        if (!sp__timeline_register(&s->timeline, &mine.waiter)) {
            CHECK(sp_load_acquire(&s->timeline.done) >= mine.waiter.value);
            sp_fetch_add_relaxed(&s->late, (uint64_t)1);
            continue;
        }
        if (i % 2 == 0 && sp__timeline_cancel(&s->timeline, &mine.waiter)) {
            sp_fetch_add_relaxed(&s->cancelled, (uint64_t)1);
            REQUIRE_EQ_U64(sp_load_acquire(&mine.fired), 0);
            continue;
        }
        while (sp_load_acquire(&mine.fired) == 0) sp_thread_yield();
        REQUIRE_EQ_U64(sp_load_acquire(&mine.fired), 1);
    }
}

TEST(each_waiter_is_either_fired_once_or_cancelled)
{
    storm s = {.last = test_count(1000000, 50000)};
    sp__timeline_init(&s.timeline, NULL);
    sp_delay_configure(1, 10, 20000);
    test_threads(STORM_THREADS, register_and_cancel, &s);
    sp_delay_configure(0, 0, 0);
    test_note("%llu fired, %llu cancelled, %llu too late to register",
              (unsigned long long)sp_load_relaxed(&s.fired),
              (unsigned long long)sp_load_relaxed(&s.cancelled),
              (unsigned long long)sp_load_relaxed(&s.late));
    CHECK(sp_load_relaxed(&s.fired) > 0);
    CHECK(sp_load_relaxed(&s.cancelled) > 0);
    CHECK_EQ_U64(sp_load_relaxed(&s.timeline.wanted), UINT64_MAX);
    sp__timeline_deinit(&s.timeline);
}

/* ---- failures ---- */

static sp_fault fault_of(uint64_t value)
{
    sp__fail(SP_FAILED, "value %llu", (unsigned long long)value);
    return sp__fault_create(SP_FAILED);
}

static sp_fault fail_value(sp_timeline *timeline, uint64_t value, uint64_t thread)
{
    const sp_fault fault = fault_of(value);
    sp__timeline_fail(timeline, value, thread, fault);
    return fault;
}

static sp_fault fault_at(sp_timeline *timeline, uint64_t value)
{
    return sp__point_fault((sp_point){timeline, value});
}

TEST(each_failed_value_is_found_among_the_others)
{
    sp_timeline timeline;
    sp__timeline_init(&timeline, NULL);
    CHECK_EQ_U64(fault_at(&timeline, 1), SP_NO_FAULT);
    static sp_fault faults[700];
    for (uint64_t i = 0; i < 700; i++) {
        faults[i] = fail_value(&timeline, 3 * i + 2, 1);
        if (i % 50 != 0) continue;
        for (uint64_t k = 0; k <= i; k++) REQUIRE_EQ_U64(fault_at(&timeline, 3 * k + 2), faults[k]);
    }
    for (uint64_t i = 0; i < 700; i++) {
        REQUIRE_EQ_U64(fault_at(&timeline, 3 * i + 1), SP_NO_FAULT);
        REQUIRE_EQ_U64(fault_at(&timeline, 3 * i + 2), faults[i]);
        REQUIRE_EQ_U64(fault_at(&timeline, 3 * i + 3), SP_NO_FAULT);
    }
    CHECK_EQ_U64(sp_load_relaxed(&timeline.failure_total), 700);
    sp__timeline_deinit(&timeline);
}

static void check_unknown(sp_timeline *timeline, uint64_t value)
{
    const sp_fault fault = fault_at(timeline, value);
    REQUIRE(fault != SP_NO_FAULT);
    CHECK_STATUS(sp__fault_report(fault), SP_FAILED);
    CHECK_MESSAGE("no longer known");
}

TEST(a_full_ring_forgets_the_oldest_and_says_so)
{
    sp_timeline timeline;
    sp__timeline_init(&timeline, NULL);
    const uint64_t extra = 1000; /* the ring wraps */
    sp_fault last = SP_NO_FAULT;
    for (uint64_t i = 1; i <= SP_TIMELINE_FAILURES + extra; i++) {
        last = fail_value(&timeline, 2 * i, 1);
    }
    check_unknown(&timeline, 2);
    check_unknown(&timeline, 3); /* that one succeeded, but is no longer recorded */
    check_unknown(&timeline, 2 * extra);
    CHECK(fault_at(&timeline, 2 * (extra + 1)) != SP_NO_FAULT);
    CHECK_EQ_U64(fault_at(&timeline, 2 * (extra + 1) + 1), SP_NO_FAULT);
    CHECK_EQ_U64(fault_at(&timeline, 2 * (SP_TIMELINE_FAILURES + extra)), last);
    sp__timeline_deinit(&timeline);
}

TEST(without_memory_for_the_first_failure_nothing_is_taken_for_a_success)
{
    sp_timeline timeline;
    sp__timeline_init(&timeline, NULL);
    const sp_fault fault = fault_of(5);
    sp_heap_fail_after(0);
    sp__timeline_fail(&timeline, 5, 1, fault);
    CHECK(sp_heap_has_failed());
    sp_heap_fail_after(UINT64_MAX);
    check_unknown(&timeline, 5);
    CHECK_EQ_U64(fault_at(&timeline, 6), SP_NO_FAULT);
    const sp_fault later = fail_value(&timeline, 7, 1);
    CHECK_EQ_U64(fault_at(&timeline, 7), later);
    CHECK_EQ_U64(fault_at(&timeline, 6), SP_NO_FAULT);
    check_unknown(&timeline, 4);
    sp__timeline_deinit(&timeline);
}

TEST(without_memory_to_grow_the_oldest_failures_make_room)
{
    sp_timeline timeline;
    sp__timeline_init(&timeline, NULL);
    sp_fault faults[24];
    for (uint64_t i = 0; i < 16; i++) faults[i] = fail_value(&timeline, i + 1, 1);
    for (uint64_t i = 16; i < 20; i++) {
        faults[i] = fault_of(i + 1);
        sp_heap_fail_after(0);
        sp__timeline_fail(&timeline, i + 1, 1, faults[i]);
        CHECK(sp_heap_has_failed());
        sp_heap_fail_after(UINT64_MAX);
    }
    for (uint64_t i = 0; i < 4; i++) check_unknown(&timeline, i + 1);
    /* Once memory is available the ring grows from its current position. */
    for (uint64_t i = 20; i < 24; i++) faults[i] = fail_value(&timeline, i + 1, 1);
    for (uint64_t i = 4; i < 24; i++) CHECK_EQ_U64(fault_at(&timeline, i + 1), faults[i]);
    check_unknown(&timeline, 4);
    sp__timeline_deinit(&timeline);
}

/* The first failure of the thread that it was not told of yet. */
static sp_fault take_failure(sp_timeline *timeline, uint64_t value, uint64_t thread)
{
    return sp__timeline_take_failures(timeline, value, thread);
}

TEST(a_thread_is_told_of_its_first_failure_once_and_of_no_others)
{
    sp_timeline timeline;
    sp__timeline_init(&timeline, NULL);
    CHECK_EQ_U64(take_failure(&timeline, 100, 1), SP_NO_FAULT);
    const sp_fault first = fail_value(&timeline, 2, 1);
    const sp_fault other = fail_value(&timeline, 3, 2);
    fail_value(&timeline, 4, 1);
    const sp_fault later = fail_value(&timeline, 9, 1);
    CHECK_EQ_U64(take_failure(&timeline, 1, 1), SP_NO_FAULT);
    CHECK_EQ_U64(take_failure(&timeline, 8, 3), SP_NO_FAULT);
    CHECK_EQ_U64(take_failure(&timeline, 8, 1), first); /* and the one of 4 with it */
    CHECK_EQ_U64(take_failure(&timeline, 8, 1), SP_NO_FAULT);
    CHECK_EQ_U64(take_failure(&timeline, 8, 2), other);
    CHECK_EQ_U64(take_failure(&timeline, 9, 1), later);
    CHECK_EQ_U64(take_failure(&timeline, 9, 1), SP_NO_FAULT);
    CHECK_EQ_U64(fault_at(&timeline, 2), first); /* a wait for the point still gets it */
    sp__timeline_deinit(&timeline);
}

TEST(a_failure_that_was_forgotten_untold_does_not_keep_others_from_being_told)
{
    sp_timeline timeline;
    sp__timeline_init(&timeline, NULL);
    for (uint64_t i = 1; i <= SP_TIMELINE_FAILURES + 3; i++) {
        sp__timeline_fail(&timeline, i, i % 2 + 1, fault_of(i));
    }
    CHECK(take_failure(&timeline, UINT64_MAX, 1) != SP_NO_FAULT);
    CHECK(take_failure(&timeline, UINT64_MAX, 2) != SP_NO_FAULT);
    CHECK_EQ_U64(take_failure(&timeline, UINT64_MAX, 1), SP_NO_FAULT);
    const sp_fault fresh = fail_value(&timeline, SP_TIMELINE_FAILURES + 10, 1);
    CHECK_EQ_U64(take_failure(&timeline, UINT64_MAX, 1), fresh);
    sp__timeline_deinit(&timeline);
}

TEST(what_a_lost_device_leaves_undone_fails_with_the_loss)
{
    sp_timeline timeline;
    sp__timeline_init(&timeline, NULL);
    sp__timeline_advance(&timeline, 2);
    const sp_fault own = fail_value(&timeline, 4, 1); /* it had failed already */
    const sp_fault loss = fault_of(7);
    sp__timeline_lose(&timeline, 5, loss);
    sp__timeline_advance(&timeline, 5);
    CHECK_EQ_U64(fault_at(&timeline, 2), SP_NO_FAULT);
    CHECK_EQ_U64(fault_at(&timeline, 3), loss);
    CHECK_EQ_U64(fault_at(&timeline, 4), own);
    CHECK_EQ_U64(fault_at(&timeline, 5), loss);
    CHECK_EQ_U64(sp_load_relaxed(&timeline.failure_total), 3);
    sp__timeline_lose(&timeline, 6, fault_of(8)); /* the first loss is the cause */
    sp__timeline_advance(&timeline, 6);
    CHECK_EQ_U64(fault_at(&timeline, 6), loss);
    CHECK_EQ_U64(sp_load_relaxed(&timeline.failure_total), 4);
    sp__timeline_deinit(&timeline);
}

TEST_MAIN
