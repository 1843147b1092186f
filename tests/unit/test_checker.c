/* SPDX-License-Identifier: Apache-2.0 */
/* The hazard checker, on: runs with STREAMPOOL_CHECK=1. */
#include <streampool/check.h>
#include <streampool/runtime.h>

#include <string.h>

#include "base/clock.h"
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

static two_streams set_up(bool is_untracked)
{
    two_streams s = {0};
    const sp_storage_options options = {.is_untracked = is_untracked};
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
    CHECK_OK(sp_device_synchronize(cpu));
    CHECK_OK(sp_storage_release(s->a));
    CHECK_OK(sp_storage_release(s->b));
    CHECK_OK(sp_stream_release(s->streams[0]));
    CHECK_OK(sp_stream_release(s->streams[1]));
}

static void hold_up(void *ctx, sp_status status)
{
    (void)ctx, (void)status;
    sp_clock_sleep(20000000);
}

static void do_nothing(void *ctx, sp_status status)
{
    (void)ctx, (void)status;
}

/* Keeps stream 0 busy, so that nothing on it can pass by luck, and writes a there. */
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

/* A use without bytes: the checker looks at storages, and a real race would be one. */
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

/* The checker remembers the last few hundred changes of a stream's clock. */
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
    CHECK_OK(sp_storage_host_begin(s.b, SP_READ, &data));
    CHECK_EQ_U64(*(const uint32_t *)data, 49);
    CHECK_OK(sp_storage_host_end(s.b, SP_READ));
    CHECK_EQ_U64(s.reports.count, 0);
    tear_down(&s);
}

TEST_MAIN
