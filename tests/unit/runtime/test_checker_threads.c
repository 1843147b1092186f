/* SPDX-License-Identifier: Apache-2.0 */
/* The hazard checker and threads: what one thread has observed is ordered for it, and for the
 * threads it synchronises with. Runs with STREAMPOOL_CHECK=1. Uses have no bytes: the checker
 * tracks storages, and a real race would be reported by sanitizers. */
#include <streampool/check.h>
#include <streampool/log.h>
#include <streampool/runtime.h>

#include <string.h>

#include "base/atomic.h"
#include "base/thread.h"
#include "runtime/checker.h"
#include "support/test.h"

static const sp_device cpu = {0};

/* Two streams, three storages, and a second thread for the whole test; the threads take turns. */
typedef struct world {
    sp_stream streams[2];
    sp_storage x, other; /* untracked */
    sp_storage tracked;
    sp_storage own[2]; /* of one thread each */
    sp_event event;
    sp_atomic_u32 turn;
    sp_atomic_u32 calls; /* of a callback or host function */
    int token;
    void (*on_first)(struct world *w);
    void (*on_second)(struct world *w); /* after the first */
    void (*on_third)(struct world *w);  /* on the first thread again */
} world;

static sp_storage create(bool is_untracked)
{
    sp_storage storage;
    const sp_storage_options options = {.is_untracked = is_untracked};
    CHECK_OK(sp_storage_create(cpu, 64, &options, &storage));
    return storage;
}

static void begin(world *w)
{
    memset(w, 0, sizeof *w);
    sp__check_reset();
    sp__check_start();
    CHECK(sp_init() == SP_OK && sp_check_is_on());
    for (int i = 0; i < 2; i++) CHECK_OK(sp_stream_from_pool(cpu, &w->streams[i]));
    w->x = create(true);
    w->other = create(true);
    w->tracked = create(false);
    for (int i = 0; i < 2; i++) w->own[i] = create(true);
    CHECK_OK(sp_event_create(NULL, &w->event));
}

static void end(world *w)
{
    CHECK_OK(sp_device_synchronize(cpu));
    CHECK_OK(sp_storage_release(w->x));
    CHECK_OK(sp_storage_release(w->other));
    CHECK_OK(sp_storage_release(w->tracked));
    for (int i = 0; i < 2; i++) CHECK_OK(sp_storage_release(w->own[i]));
    CHECK_OK(sp_event_release(w->event));
    for (int i = 0; i < 2; i++) CHECK_OK(sp_stream_release(w->streams[i]));
}

static void write_on(world *w, int stream, sp_storage storage)
{
    const uint32_t seven = 7;
    CHECK_OK(
        sp_storage_fill_async(w->streams[stream], (sp_storage_range){storage, 0, 0}, &seven, 4));
}

static void wait_for_turn(world *w, uint32_t turn)
{
    while (sp_load_acquire(&w->turn) != turn) sp_thread_yield();
}

static void take_turns(void *arg, uint32_t index)
{
    world *w = arg;
    /* Both are known to the checker before either has observed anything. */
    write_on(w, (int)index, w->own[index]);
    sp_fetch_add_acq_rel(&w->turn, 1);
    if (index == 0) {
        wait_for_turn(w, 2);
        w->on_first(w);
        sp_store_release(&w->turn, 3);
        wait_for_turn(w, 4);
        if (w->on_third != NULL) w->on_third(w);
        sp_store_release(&w->turn, 5);
    } else {
        wait_for_turn(w, 3);
        w->on_second(w);
        sp_store_release(&w->turn, 4);
        wait_for_turn(w, 5); /* the end of a thread would order its observations */
    }
}

/* The number of reports of the steps. */
static uint64_t reports_of(void (*first)(world *w), void (*second)(world *w),
                           void (*third)(world *w))
{
    world w;
    begin(&w);
    w.on_first = first;
    w.on_second = second;
    w.on_third = third;
    test_threads(2, take_turns, &w);
    const uint64_t reports = sp_check_report_count();
    end(&w);
    return reports;
}

static void write_first(world *w)
{
    write_on(w, 0, w->x);
}

static void write_and_see(world *w)
{
    write_first(w);
    CHECK_OK(sp_stream_synchronize(w->streams[0]));
}

static void write_second(world *w)
{
    write_on(w, 1, w->x);
}

static void see_first(world *w)
{
    CHECK_OK(sp_stream_synchronize(w->streams[0]));
}

/* ---- observations of one thread ---- */

TEST(a_thread_that_looks_hides_no_race_of_another)
{
    CHECK_EQ_U64(reports_of(write_first, see_first, write_second), 1);
}

TEST(what_a_thread_has_seen_itself_comes_before_what_it_submits)
{
    CHECK_EQ_U64(reports_of(write_first, see_first, NULL), 0);
    CHECK_EQ_U64(reports_of(write_and_see, see_first, write_second), 0);
}

static void look_and_write(world *w)
{
    CHECK_OK(sp_stream_query(w->streams[0]));
    write_second(w);
}

TEST(a_thread_that_is_told_by_other_means_looks_itself)
{
    CHECK_EQ_U64(reports_of(write_and_see, write_second, NULL), 1);
    CHECK_EQ_U64(reports_of(write_and_see, look_and_write, NULL), 0);
}

/* ---- hand-overs ---- */

static void write_see_and_say(world *w)
{
    write_and_see(w);
    sp_check_happens_before(&w->token);
}

static void hear_and_write(world *w)
{
    sp_check_happens_after(&w->token);
    write_second(w);
}

static void hear_of_another_and_write(world *w)
{
    sp_check_happens_after(w);
    write_second(w);
}

TEST(an_order_that_the_application_declares_counts)
{
    CHECK_EQ_U64(reports_of(write_see_and_say, hear_and_write, NULL), 0);
    CHECK_EQ_U64(reports_of(write_see_and_say, hear_of_another_and_write, NULL), 1);
}

static void write_see_and_record(world *w)
{
    write_and_see(w);
    CHECK_OK(sp_event_record(w->event, w->streams[1])); /* without a command behind the write */
}

static void wait_and_write(world *w)
{
    CHECK_OK(sp_stream_wait_event(w->streams[1], w->event));
    write_second(w);
}

TEST(what_a_thread_had_seen_goes_with_the_event_that_it_records)
{
    CHECK_EQ_U64(reports_of(write_see_and_record, wait_and_write, NULL), 0);
}

static void write_tracked(world *w)
{
    write_on(w, 0, w->tracked);
}

/* So many reads that the write, which has passed, is dropped from the frontier. */
static void see_and_drop(world *w)
{
    enum { READS = 5 };
    void *data;
    CHECK_OK(sp_stream_synchronize(w->streams[0]));
    for (int i = 0; i < READS; i++) CHECK_OK(sp_storage_host_begin(w->tracked, SP_READ, &data));
    for (int i = 0; i < READS; i++) CHECK_OK(sp_storage_host_end(w->tracked, SP_READ));
}

static void read_tracked(world *w)
{
    CHECK_OK(sp_storage_copy_async(w->streams[1], (sp_storage_range){w->other, 0, 0},
                                   (sp_storage_range){w->tracked, 0, 0}));
}

TEST(threads_that_use_one_tracked_storage_hand_over_what_they_have_seen)
{
    CHECK_EQ_U64(reports_of(write_tracked, see_and_drop, read_tracked), 0);
}

static void write_and_freeze(world *w)
{
    write_and_see(w);
    CHECK_OK(sp_storage_freeze(w->x));
}

static void read_frozen(world *w)
{
    CHECK_OK(sp_storage_copy_async(w->streams[1], (sp_storage_range){w->other, 0, 0},
                                   (sp_storage_range){w->x, 0, 0}));
}

TEST(a_frozen_storage_is_read_by_threads_that_did_not_freeze_it)
{
    CHECK_EQ_U64(reports_of(write_and_freeze, read_frozen, NULL), 0);
}

/* ---- threads that begin and end ---- */

static void write_and_see_on_thread(void *arg)
{
    write_and_see(arg);
}

static void write_second_on_thread(void *arg)
{
    write_second(arg);
}

static void run_on_thread(void (*fn)(void *arg), void *arg)
{
    sp_thread thread;
    REQUIRE_OK(sp_thread_create(&thread, "test", fn, arg));
    sp_thread_join(&thread);
}

TEST(starting_and_joining_a_thread_orders)
{
    world w;
    begin(&w);
    run_on_thread(write_and_see_on_thread, &w);
    write_second(&w);
    CHECK_OK(sp_stream_synchronize(w.streams[1]));
    write_and_see(&w);
    run_on_thread(write_second_on_thread, &w);
    CHECK_EQ_U64(sp_check_report_count(), 0);
    end(&w);
}

/* ---- the library's threads ---- */

static void write_in_function(void *ctx, sp_status status)
{
    world *w = ctx;
    CHECK_OK(status);
    write_second(w);
    sp_store_release(&w->calls, 1);
}

static void await_call(world *w)
{
    while (sp_load_acquire(&w->calls) == 0) sp_thread_yield();
}

TEST(a_host_function_comes_behind_the_commands_before_it)
{
    world w;
    begin(&w);
    write_first(&w);
    CHECK_OK(sp_stream_host_function(w.streams[0], write_in_function, &w));
    CHECK_OK(sp_stream_flush(w.streams[0]));
    await_call(&w);
    CHECK_EQ_U64(sp_check_report_count(), 0);
    write_first(&w); /* not behind what the function has submitted elsewhere */
    CHECK_EQ_U64(sp_check_report_count(), 1);
    end(&w);
}

TEST(a_callback_comes_behind_its_event)
{
    world w;
    begin(&w);
    write_first(&w);
    CHECK_OK(sp_event_record(w.event, w.streams[0]));
    CHECK_OK(sp_event_on_complete(w.event, write_in_function, &w));
    await_call(&w);
    CHECK_EQ_U64(sp_check_report_count(), 0);
    end(&w);
}

static void write_on_host(void *ctx, sp_status status)
{
    world *w = ctx;
    void *data;
    CHECK_OK(status);
    CHECK_OK(sp_storage_host_begin(w->x, SP_WRITE, &data));
    memset(data, 1, 64);
    CHECK_OK(sp_storage_host_end(w->x, SP_WRITE));
    sp_store_release(&w->calls, 1);
}

TEST(what_waits_for_a_point_comes_behind_the_host_function_before_it)
{
    for (int i = 0; i < 2; i++) { /* with and without an earlier wait of the stream */
        world w;
        begin(&w);
        if (i == 0) write_tracked(&w);
        CHECK_OK(sp_stream_host_function(w.streams[0], write_on_host, &w));
        CHECK_OK(sp_event_record(w.event, w.streams[0]));
        CHECK_OK(sp_stream_flush(w.streams[0]));
        await_call(&w);
        CHECK_OK(sp_event_synchronize(w.event));
        write_second(&w);
        CHECK_EQ_U64(sp_check_report_count(), 0);
        end(&w);
    }
}

static void write_on_host_later(void *ctx, sp_status status)
{
    world *w = ctx;
    while (sp_load_acquire(&w->turn) == 0) sp_thread_yield();
    write_on_host(ctx, status);
}

TEST(a_host_function_that_returns_when_much_was_submitted_behind_it_still_orders)
{
    for (uint32_t changes = 250; changes < 262; changes++) { /* around a clock's history length */
        world w;
        sp_event other;
        void *data;
        const uint32_t zero = 0;
        begin(&w);
        CHECK_OK(sp_event_create(NULL, &other));
        CHECK_OK(sp_stream_host_function(w.streams[0], write_on_host_later, &w));
        CHECK_OK(sp_event_record(w.event, w.streams[0]));
        CHECK_OK(sp_stream_flush(w.streams[0]));
        /* Blocks the second stream, so that each wait for it is a real one. */
        CHECK_OK(sp_storage_host_begin(w.tracked, SP_WRITE, &data));
        CHECK_OK(
            sp_storage_fill_async(w.streams[1], (sp_storage_range){w.tracked, 0, 64}, &zero, 4));
        for (uint32_t i = 0; i < changes; i++) { /* of what the first stream follows */
            CHECK_OK(
                sp_storage_fill_async(w.streams[1], (sp_storage_range){w.other, 0, 64}, &i, 4));
            CHECK_OK(sp_event_record(other, w.streams[1]));
            CHECK_OK(sp_stream_wait_event(w.streams[0], other));
        }
        sp_store_release(&w.turn, 1);
        await_call(&w);
        CHECK_OK(sp_storage_host_end(w.tracked, SP_WRITE));
        CHECK_OK(sp_event_synchronize(w.event));
        write_second(&w);
        CHECK_EQ_U64(sp_check_report_count(), 0);
        CHECK_OK(sp_event_release(other));
        end(&w);
    }
}

/* ---- limits ---- */

static void count_warnings(void *ctx, sp_log_level level, const char *message)
{
    if (level == SP_LOG_WARN && strstr(message, "beyond its limits") != NULL) ++*(int *)ctx;
}

TEST(limits_are_told_once_and_counted)
{
    enum { READERS = 80 }; /* more than are kept per storage */
    world w;
    int warnings = 0;
    void *data;
    begin(&w);
    sp_log_set_level(SP_LOG_WARN);
    sp_log_set_callback(count_warnings, &warnings);
    for (int i = 0; i < 64; i++) CHECK_OK(sp_storage_host_begin(w.x, SP_READ, &data));
    CHECK_EQ_U64(sp_check_missed_count(), 0);
    for (int i = 64; i < READERS; i++) CHECK_OK(sp_storage_host_begin(w.x, SP_READ, &data));
    CHECK_EQ_U64(sp_check_missed_count(), READERS - 64);
    CHECK_EQ_INT(warnings, 1);
    for (int i = 0; i < READERS; i++) CHECK_OK(sp_storage_host_end(w.x, SP_READ));
    sp_log_set_callback(NULL, NULL);
    end(&w);
}

TEST(tokens_beyond_the_limit_share_a_clock)
{
    enum { TOKENS = 5000 };
    static char tokens[TOKENS];
    world w;
    begin(&w);
    for (int i = 0; i < TOKENS; i++) sp_check_happens_before(&tokens[i]);
    CHECK_EQ_U64(sp_check_missed_count(), TOKENS - 4096);
    end(&w);
}

TEST_MAIN
