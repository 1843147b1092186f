/* SPDX-License-Identifier: Apache-2.0 */
/* The hazard checker, on: runs with STREAMPOOL_CHECK=1. */
#include <streampool/check.h>
#include <streampool/runtime.h>

#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/heap.h"
#include "base/option.h"
#include "base/thread.h"
#include "runtime/checker.h"
#include "runtime/runtime_state.h"
#include "support/test.h"

static const sp_device cpu = {0};

typedef struct seen {
    uint32_t count;
    sp_check_report last;
} seen;

static void see(void *ctx, const sp_check_report *report)
{
    seen *all = ctx;
    all->count++;
    all->last = *report;
}

typedef struct two_streams {
    sp_stream streams[2];
    sp_storage a, b;
    seen reports;
} two_streams;

/* Whether a stream that is held up may continue. */
static sp_atomic_u32 may_continue;

static two_streams set_up(bool is_untracked)
{
    two_streams s = {0};
    const sp_storage_options options = {.is_untracked = is_untracked};
    sp_store_relaxed(&may_continue, 0);
    CHECK(sp_init() == SP_OK && sp_check_is_on());
    CHECK_OK(sp_stream_from_pool(cpu, &s.streams[0]));
    CHECK_OK(sp_stream_from_pool(cpu, &s.streams[1]));
    CHECK_OK(sp_storage_create(cpu, 4096, &options, &s.a));
    CHECK_OK(sp_storage_create(cpu, 4096, &options, &s.b));
    return s;
}

static void tear_down(two_streams *s)
{
    sp_check_set_callback(NULL, NULL);
    sp_store_release(&may_continue, 1);
    CHECK_OK(sp_device_synchronize(cpu));
    CHECK_OK(sp_storage_release(s->a));
    CHECK_OK(sp_storage_release(s->b));
    CHECK_OK(sp_stream_release(s->streams[0]));
    CHECK_OK(sp_stream_release(s->streams[1]));
}

static void hold_up(void *ctx, sp_status status)
{
    (void)ctx, (void)status;
    while (sp_load_acquire(&may_continue) == 0) sp_clock_sleep(50000);
}

static void do_nothing(void *ctx, sp_status status)
{
    (void)ctx, (void)status;
}

/* Keeps stream 0 busy until `may_continue`, so that nothing on it passes by chance, and writes a
 * there. */
static void write_late(const two_streams *s)
{
    const uint32_t seven = 7;
    CHECK_OK(sp_stream_host_function(s->streams[0], hold_up, NULL));
    CHECK_OK(sp_storage_fill_async(s->streams[0], (sp_storage_range){s->a, 0, 4096}, &seven, 4));
}

static sp_status read_on(const two_streams *s, int stream)
{
    return sp_storage_copy_async(s->streams[stream], (sp_storage_range){s->b, 0, 4096},
                                 (sp_storage_range){s->a, 0, 4096});
}

/* A use without bytes: the checker tracks storages, and a real race would be reported by
 * sanitizers. */
static sp_status use_on(const two_streams *s, int stream)
{
    return sp_storage_copy_async(s->streams[stream], (sp_storage_range){s->b, 0, 0},
                                 (sp_storage_range){s->a, 0, 0});
}

TEST(a_missing_wait_between_streams_is_reported_with_both_sides)
{
    two_streams s = set_up(true);
    sp_check_set_callback(see, &s.reports);
    const uint64_t before = sp_check_report_count();
    write_late(&s);
    CHECK_OK(use_on(&s, 1));
    REQUIRE_EQ_U64(s.reports.count, 1);
    CHECK_EQ_U64(sp_check_report_count(), before + 1);
    const sp_check_report *report = &s.reports.last;
    CHECK_EQ_STR(report->earlier.op, "fill");
    CHECK_EQ_STR(report->later.op, "copy");
    CHECK_EQ_INT(report->earlier.access, SP_WRITE);
    CHECK_EQ_INT(report->later.access, SP_READ);
    CHECK_EQ_STR(report->later.device, "cpu");
    CHECK(report->earlier.stream != report->later.stream);
    CHECK(report->earlier.thread != 0 && report->earlier.thread == report->later.thread);
    CHECK(report->earlier.call_site != NULL);
    CHECK(report->earlier.call_site != report->later.call_site);
    CHECK_EQ_U64(report->storage_bytes, 4096);
    tear_down(&s);
}

TEST(an_event_orders_two_streams)
{
    two_streams s = set_up(true);
    sp_check_set_callback(see, &s.reports);
    sp_event event;
    CHECK_OK(sp_event_create(NULL, &event));
    write_late(&s);
    CHECK_OK(sp_event_record(event, s.streams[0]));
    CHECK_OK(sp_stream_wait_event(s.streams[1], event));
    CHECK_OK(use_on(&s, 1));
    CHECK_EQ_U64(s.reports.count, 0);
    CHECK_OK(sp_event_release(event));
    tear_down(&s);
}

TEST(an_event_recorded_too_early_orders_nothing)
{
    two_streams s = set_up(true);
    sp_check_set_callback(see, &s.reports);
    sp_event event;
    CHECK_OK(sp_event_create(NULL, &event));
    CHECK_OK(sp_stream_host_function(s.streams[0], hold_up, NULL));
    CHECK_OK(sp_event_record(event, s.streams[0]));
    write_late(&s);
    CHECK_OK(sp_stream_wait_event(s.streams[1], event));
    CHECK_OK(use_on(&s, 1));
    CHECK_EQ_U64(s.reports.count, 1);
    CHECK_OK(sp_event_release(event));
    tear_down(&s);
}

TEST(a_wait_on_the_host_orders_what_is_submitted_afterwards)
{
    two_streams s = set_up(true);
    sp_check_set_callback(see, &s.reports);
    write_late(&s);
    sp_store_release(&may_continue, 1);
    CHECK_OK(sp_stream_synchronize(s.streams[0]));
    CHECK_OK(use_on(&s, 1));
    CHECK_EQ_U64(s.reports.count, 0);
    tear_down(&s);
}

TEST(order_is_transitive_over_a_third_stream)
{
    two_streams s = set_up(true);
    sp_check_set_callback(see, &s.reports);
    sp_stream third;
    sp_event events[2];
    CHECK_OK(sp_stream_from_pool(cpu, &third));
    CHECK_OK(sp_event_create(NULL, &events[0]));
    CHECK_OK(sp_event_create(NULL, &events[1]));
    write_late(&s);
    CHECK_OK(sp_event_record(events[0], s.streams[0]));
    CHECK_OK(sp_stream_wait_event(third, events[0]));
    CHECK_OK(sp_event_record(events[1], third));
    CHECK_OK(sp_stream_wait_event(s.streams[1], events[1]));
    CHECK_OK(use_on(&s, 1));
    CHECK_EQ_U64(s.reports.count, 0);
    CHECK_OK(sp_event_release(events[0]));
    CHECK_OK(sp_event_release(events[1]));
    CHECK_OK(sp_stream_release(third));
    tear_down(&s);
}

/* The checker keeps the last few hundred changes of a stream's clock. */
TEST(what_a_stream_came_after_long_ago_counts_as_ordered)
{
    two_streams s = set_up(true);
    sp_check_set_callback(see, &s.reports);
    sp_stream third;
    sp_event long_ago;
    sp_event newer;
    CHECK_OK(sp_stream_from_pool(cpu, &third));
    CHECK_OK(sp_event_create(NULL, &long_ago));
    CHECK_OK(sp_event_create(NULL, &newer));
    write_late(&s);
    CHECK_OK(sp_event_record(newer, s.streams[0]));
    CHECK_OK(sp_stream_wait_event(third, newer));
    CHECK_OK(sp_event_record(long_ago, third));
    for (int i = 0; i < 600; i++) {
        CHECK_OK(sp_stream_host_function(s.streams[0], do_nothing, NULL));
        CHECK_OK(sp_event_record(newer, s.streams[0]));
        CHECK_OK(sp_stream_wait_event(third, newer));
    }
    CHECK_OK(sp_stream_wait_event(s.streams[1], long_ago));
    CHECK_OK(use_on(&s, 1));
    CHECK_EQ_U64(s.reports.count, 0);
    CHECK_OK(sp_event_release(long_ago));
    CHECK_OK(sp_event_release(newer));
    CHECK_OK(sp_stream_release(third));
    tear_down(&s);
}

TEST(a_write_is_checked_against_every_reader)
{
    two_streams s = set_up(true);
    sp_check_set_callback(see, &s.reports);
    const uint32_t one = 1;
    CHECK_OK(sp_stream_host_function(s.streams[0], hold_up, NULL));
    CHECK_OK(use_on(&s, 0));
    CHECK_OK(sp_storage_fill_async(s.streams[1], (sp_storage_range){s.a, 0, 0}, &one, 4));
    CHECK_EQ_U64(s.reports.count, 1);
    CHECK_EQ_INT(s.reports.last.earlier.access, SP_READ);
    CHECK_EQ_INT(s.reports.last.later.access, SP_WRITE);
    tear_down(&s);
}

TEST(a_host_access_without_a_wait_is_reported)
{
    two_streams s = set_up(true);
    sp_check_set_callback(see, &s.reports);
    void *data;
    write_late(&s);
    CHECK_OK(sp_storage_host_begin(s.a, SP_READ, &data));
    CHECK_OK(sp_storage_host_end(s.a, SP_READ));
    CHECK_EQ_U64(s.reports.count, 1);
    CHECK_EQ_STR(s.reports.last.later.op, "host access");
    tear_down(&s);
}

TEST(a_use_during_a_host_access_is_reported_and_one_after_its_end_is_not)
{
    two_streams s = set_up(true);
    sp_check_set_callback(see, &s.reports);
    void *data;
    CHECK_OK(sp_storage_host_begin(s.a, SP_WRITE, &data));
    CHECK_OK(use_on(&s, 0));
    REQUIRE_EQ_U64(s.reports.count, 1);
    CHECK_EQ_STR(s.reports.last.earlier.op, "host access");
    CHECK_EQ_STR(s.reports.last.later.op, "copy");
    CHECK_OK(sp_stream_synchronize(s.streams[0]));
    CHECK_OK(sp_storage_host_end(s.a, SP_WRITE));
    CHECK_OK(use_on(&s, 1));
    CHECK_EQ_U64(s.reports.count, 1);
    tear_down(&s);
}

TEST(device_reads_during_a_host_read_are_fine)
{
    two_streams s = set_up(true);
    sp_check_set_callback(see, &s.reports);
    void *data;
    CHECK_OK(sp_storage_host_begin(s.a, SP_READ, &data));
    CHECK_OK(use_on(&s, 0));
    CHECK_EQ_U64(s.reports.count, 0);
    CHECK_OK(sp_storage_host_end(s.a, SP_READ));
    tear_down(&s);
}

TEST(tracked_uses_during_a_host_access_wait_for_it_and_are_not_reported)
{
    two_streams s = set_up(false);
    sp_check_set_callback(see, &s.reports);
    void *data;
    CHECK_OK(sp_storage_host_begin(s.a, SP_WRITE, &data));
    CHECK_OK(read_on(&s, 0));
    memset(data, 1, 4096);
    CHECK_OK(sp_storage_host_end(s.a, SP_WRITE));
    CHECK_EQ_U64(s.reports.count, 0);
    tear_down(&s);
}

/* ---- dropped history counts as ordered ---- */

/* Stream 0 writes `a` behind an open host access of `key`; a third stream follows it by an event,
 * and `after` is recorded behind that. */
typedef struct held_chain {
    sp_storage key;
    sp_stream third;
    sp_event written, after;
} held_chain;

static held_chain hold(const two_streams *s)
{
    held_chain c = {.key = {0}};
    void *data;
    const uint32_t seven = 7;
    CHECK_OK(sp_stream_from_pool(cpu, &c.third));
    CHECK_OK(sp_event_create(NULL, &c.written));
    CHECK_OK(sp_event_create(NULL, &c.after));
    CHECK_OK(sp_storage_create(cpu, 4, NULL, &c.key));
    CHECK_OK(sp_storage_host_begin(c.key, SP_WRITE, &data));
    CHECK_OK(sp_storage_fill_async(s->streams[0], (sp_storage_range){c.key, 0, 4}, &seven, 4));
    CHECK_OK(sp_storage_fill_async(s->streams[0], (sp_storage_range){s->a, 0, 4096}, &seven, 4));
    CHECK_OK(sp_event_record(c.written, s->streams[0]));
    return c;
}

static void follow(held_chain *c)
{
    CHECK_OK(sp_stream_wait_event(c->third, c->written));
    CHECK_OK(sp_event_record(c->after, c->third));
}

static void let_go(const held_chain *c)
{
    CHECK_OK(sp_storage_host_end(c->key, SP_WRITE));
    CHECK_OK(sp_device_synchronize(cpu));
    CHECK_OK(sp_storage_release(c->key));
    CHECK_OK(sp_event_release(c->written));
    CHECK_OK(sp_event_release(c->after));
    CHECK_OK(sp_stream_release(c->third));
}

TEST(order_from_before_the_oldest_remembered_change_still_counts)
{
    two_streams s = set_up(true);
    sp_check_set_callback(see, &s.reports);
    held_chain c = hold(&s);
    follow(&c);
    sp_storage other;
    sp_event event;
    CHECK_OK(sp_storage_create(cpu, 64, &(sp_storage_options){.is_untracked = true}, &other));
    CHECK_OK(sp_event_create(NULL, &event));
    for (uint32_t i = 0; i < 300; i++) { /* each changes what the third stream follows */
        CHECK_OK(sp_storage_fill_async(s.streams[0], (sp_storage_range){other, 0, 64}, &i, 4));
        CHECK_OK(sp_event_record(event, s.streams[0]));
        CHECK_OK(sp_stream_wait_event(c.third, event));
    }
    CHECK_OK(sp_stream_wait_event(s.streams[1], c.after));
    CHECK_OK(use_on(&s, 1));
    CHECK_EQ_U64(s.reports.count, 0);
    CHECK_OK(sp_event_release(event));
    let_go(&c);
    CHECK_OK(sp_storage_release(other));
    tear_down(&s);
}

/* The chain with allocation number `skip` failing in the third stream's first wait; false if it
 * needs fewer allocations. */
static bool follow_without_memory(const two_streams *s, uint64_t skip)
{
    held_chain c = hold(s);
    sp_heap_fail_after(skip);
    const sp_status status = sp_stream_wait_event(c.third, c.written);
    const bool has_failed = sp_heap_has_failed();
    sp_heap_fail_after(UINT64_MAX);
    CHECK(status == SP_OK || has_failed);
    if (status == SP_OK) {
        CHECK_OK(sp_event_record(c.after, c.third));
        CHECK_OK(sp_stream_wait_event(s->streams[1], c.after));
        CHECK_OK(use_on(s, 1));
    }
    let_go(&c);
    return has_failed;
}

TEST(order_that_there_is_no_memory_for_counts_as_given)
{
    for (uint64_t skip = 0;; skip++) {
        /* New streams, whose clocks are empty. */
        sp__check_reset();
        sp__check_start();
        two_streams s = set_up(true);
        sp_check_set_callback(see, &s.reports);
        const bool has_failed = follow_without_memory(&s, skip);
        CHECK_EQ_U64(s.reports.count, 0);
        tear_down(&s);
        if (!has_failed) break;
    }
}

TEST(streams_beyond_those_that_are_told_apart_count_as_ordered)
{
    enum { ACCESSES = 300 }; /* each a timeline */
    sp__check_reset();
    sp__check_start();
    two_streams s = set_up(true);
    sp_check_set_callback(see, &s.reports);
    void *data;
    for (int i = 0; i < 2; i++) {
        CHECK_OK(use_on(&s, i)); /* these two have clocks */
        CHECK_OK(sp_stream_synchronize(s.streams[i]));
    }
    for (int i = 0; i < ACCESSES; i++) CHECK_OK(sp_storage_host_begin(s.b, SP_READ, &data));
    for (int i = 0; i < ACCESSES; i++) CHECK_OK(sp_storage_host_end(s.b, SP_READ));
    held_chain c = hold(&s);
    follow(&c);
    CHECK_OK(sp_stream_wait_event(s.streams[1], c.after));
    CHECK_OK(use_on(&s, 1));
    CHECK_EQ_U64(s.reports.count, 0);
    CHECK(sp_check_missed_count() >= ACCESSES - 256);
    let_go(&c);
    tear_down(&s);
    sp__check_reset();
    sp__check_start();
}

typedef struct unknown_order {
    two_streams *streams;
    sp_atomic_u32 has_begun, may_end, has_ended, is_over;
} unknown_order;

static void await(sp_atomic_u32 *word)
{
    while (sp_load_acquire(word) == 0) sp_thread_yield();
}

static void write_on_host(unknown_order *self)
{
    void *data;
    CHECK_OK(sp_storage_host_begin(self->streams->a, SP_WRITE, &data));
    sp_store_release(&self->has_begun, 1);
    await(&self->may_end);
    CHECK_OK(sp_storage_host_end(self->streams->a, SP_WRITE));
    sp_store_release(&self->has_ended, 1);
    await(&self->is_over); /* the join of a thread orders */
}

/* Behind a stream without a clock, which may follow anything. */
static void use_behind_unknown(unknown_order *self)
{
    enum { ACCESSES = 300 };
    const two_streams *s = self->streams;
    const uint32_t seven = 7;
    void *data;
    sp_stream third;
    sp_event event;
    await(&self->has_begun);
    for (int i = 0; i < ACCESSES; i++) CHECK_OK(sp_storage_host_begin(s->b, SP_READ, &data));
    sp_store_release(&self->may_end, 1);
    await(&self->has_ended);
    for (int i = 0; i < ACCESSES; i++) CHECK_OK(sp_storage_host_end(s->b, SP_READ));
    CHECK_OK(sp_stream_from_pool(cpu, &third));
    CHECK_OK(sp_event_create(NULL, &event));
    CHECK_OK(sp_storage_fill_async(third, (sp_storage_range){s->b, 0, 64}, &seven, 4));
    CHECK_OK(sp_event_record(event, third));
    CHECK_OK(sp_stream_wait_event(s->streams[1], event));
    CHECK_OK(use_on(s, 1));
    CHECK_OK(sp_event_release(event));
    CHECK_OK(sp_stream_release(third));
    sp_store_release(&self->is_over, 1);
}

static void write_or_use(void *arg, uint32_t index)
{
    if (index == 0) {
        write_on_host(arg);
    } else {
        use_behind_unknown(arg);
    }
}

TEST(a_host_access_counts_as_ordered_before_what_is_behind_a_stream_that_is_not_told_apart)
{
    sp__check_reset();
    sp__check_start();
    two_streams s = set_up(true);
    sp_check_set_callback(see, &s.reports);
    CHECK_OK(use_on(&s, 1)); /* this one has a clock */
    CHECK_OK(sp_stream_synchronize(s.streams[1]));
    unknown_order order = {.streams = &s};
    test_threads(2, write_or_use, &order);
    CHECK_EQ_U64(s.reports.count, 0);
    CHECK(sp_check_missed_count() > 0);
    tear_down(&s);
    sp__check_reset();
    sp__check_start();
}

/* ---- the callback ---- */

typedef struct slow_report {
    sp_atomic_u32 is_inside, may_leave, has_left;
    sp_atomic_u32 is_replaced;
    two_streams *streams;
} slow_report;

static void stay_a_while(void *ctx, const sp_check_report *report)
{
    slow_report *self = ctx;
    (void)report;
    sp_store_release(&self->is_inside, 1);
    await(&self->may_leave);
    CHECK_EQ_U64(sp_load_acquire(&self->is_replaced), 0);
    sp_store_release(&self->has_left, 1);
}

static void report_or_replace(void *arg, uint32_t index)
{
    slow_report *self = arg;
    if (index == 0) {
        CHECK_OK(use_on(self->streams, 1)); /* not ordered behind the write */
    } else if (index == 1) {
        await(&self->is_inside);
        sp_check_set_callback(NULL, NULL);
        sp_store_release(&self->is_replaced, 1);
        CHECK_EQ_U64(sp_load_acquire(&self->has_left), 1);
    } else {
        await(&self->is_inside);
        sp_clock_sleep(20000000); /* the replacer is in its wait; otherwise the test proves less */
        sp_store_release(&self->may_leave, 1);
    }
}

TEST(a_replaced_callback_is_called_no_more_once_the_replacement_has_returned)
{
    two_streams s = set_up(true);
    slow_report self = {.streams = &s};
    sp_check_set_callback(stay_a_while, &self);
    held_chain c = hold(&s);
    test_threads(3, report_or_replace, &self);
    let_go(&c);
    tear_down(&s);
}

static void replace_itself(void *ctx, const sp_check_report *report)
{
    (void)report;
    ((seen *)ctx)->count++;
    sp_check_set_callback(see, ctx);
}

TEST(a_callback_may_replace_itself)
{
    two_streams s = set_up(true);
    sp_check_set_callback(replace_itself, &s.reports);
    held_chain c = hold(&s);
    CHECK_OK(use_on(&s, 1));
    CHECK_EQ_U64(s.reports.count, 1);
    let_go(&c);
    tear_down(&s);
}

TEST(tracked_storages_are_never_reported)
{
    two_streams s = set_up(false);
    sp_check_set_callback(see, &s.reports);
    for (int i = 0; i < 50; i++) {
        const uint32_t value = (uint32_t)i;
        if (i % 10 == 0) write_late(&s);
        CHECK_OK(
            sp_storage_fill_async(s.streams[i % 2], (sp_storage_range){s.a, 0, 4096}, &value, 4));
        CHECK_OK(read_on(&s, (i + 1) % 2));
    }
    void *data;
    sp_store_release(&may_continue, 1);
    CHECK_OK(sp_storage_host_begin(s.b, SP_READ, &data));
    CHECK_EQ_U64(*(const uint32_t *)data, 49);
    CHECK_OK(sp_storage_host_end(s.b, SP_READ));
    CHECK_EQ_U64(s.reports.count, 0);
    tear_down(&s);
}

static void end_in_report(void *ctx, const sp_check_report *report)
{
    see(ctx, report);
    sp_thread_exit();
}

static void use_on_second(void *arg)
{
    (void)use_on(arg, 1);
}

TEST(set_callback_does_not_wait_for_one_that_ended_its_thread)
{
    two_streams s = set_up(true);
    sp_thread thread;
    write_late(&s);
    sp_check_set_callback(end_in_report, &s.reports);
    REQUIRE_OK(sp_thread_create(&thread, "sp-test", use_on_second, &s));
    sp_thread_join(&thread);
    CHECK_EQ_U64(s.reports.count, 1);
    sp_check_set_callback(see, &s.reports);
    CHECK_OK(sp_stream_synchronize(s.streams[1])); /* the command was accepted */
    tear_down(&s);
}

static void fail_in_report(void *ctx, const sp_check_report *report)
{
    see(ctx, report);
    CHECK_STATUS(sp_event_release((sp_event){1}), SP_INVALID);
}

TEST(a_callback_leaves_the_last_error_of_the_call_that_reports)
{
    two_streams s = set_up(true);
    sp_check_set_callback(fail_in_report, &s.reports);
    write_late(&s);
    CHECK_STATUS(sp_stream_query((sp_stream){12345}), SP_INVALID);
    CHECK_MESSAGE("stream");
    CHECK_OK(use_on(&s, 1));
    CHECK_EQ_U64(s.reports.count, 1);
    CHECK_MESSAGE("stream");
    tear_down(&s);
}

static void begin_on_host(void *arg)
{
    const two_streams *s = arg;
    void *data;
    (void)sp_storage_host_begin(s->a, SP_WRITE, &data);
}

TEST(a_host_access_whose_report_ended_its_thread_is_open_for_any_thread_to_end)
{
    two_streams s = set_up(true);
    sp_thread thread;
    void *data;
    write_late(&s);
    sp_check_set_callback(end_in_report, &s.reports);
    REQUIRE_OK(sp_thread_create(&thread, "sp-test", begin_on_host, &s));
    sp_thread_join(&thread);
    CHECK_EQ_U64(s.reports.count, 1);
    sp_check_set_callback(see, &s.reports);
    CHECK_OK(sp_storage_host_end(s.a, SP_WRITE));
    CHECK_OK(sp_storage_host_begin(s.a, SP_WRITE, &data));
    CHECK_OK(sp_storage_host_end(s.a, SP_WRITE));
    tear_down(&s);
}

TEST(a_runtime_that_comes_up_again_without_the_check_reports_nothing)
{
    two_streams s = set_up(true);
    tear_down(&s);
    CHECK_OK(sp_shutdown());
    sp__runtime_reset();
    CHECK(unsetenv("STREAMPOOL_CHECK") == 0);
    sp__option_reset();
    CHECK(sp_init() == SP_OK && !sp_check_is_on());
    CHECK_OK(sp_shutdown());
    sp__runtime_reset();
    CHECK(setenv("STREAMPOOL_CHECK", "1", 1) == 0);
    sp__option_reset();
}

TEST_MAIN
