/* SPDX-License-Identifier: Apache-2.0 */
/* Device conformance: order, points, waits between streams, progress, overlap. primitive: an
 * application may wait with its own semaphore, which the library does not know. */
#include <semaphore.h>
#include <string.h>

#include "base/delay.h"
#include "base/heap.h"
#include "base/thread.h"
#include "device_fixture.h"

static sp_command append_of(const sp_binding *log, const uint32_t *item)
{
    return command_dispatch(&kernel_append, 1, log, 1, item, sizeof *item);
}

TEST(an_empty_submission_completes)
{
    fixture f = fixture_open();
    const sp_point point = submit(f.queues[0], NULL, 0);
    CHECK_EQ_U64(point.value, 1);
    CHECK_OK(wait_point(point));
    CHECK(sp__point_has_passed(point));
    fixture_close(&f);
}

TEST(submissions_of_one_queue_run_in_order)
{
    fixture f = fixture_open();
    const uint32_t count = 5000;
    sp_memory log = fixture_words(&f, count + 1);
    const sp_binding binding = bind_words(&log, 0, count + 1, SP_READ_WRITE);
    sp_point last = {0};
    for (uint32_t i = 0; i < count; i++) {
        const sp_command command = append_of(&binding, &i);
        last = submit(f.queues[0], &command, 1);
        if (i % 1000 == 999) CHECK_OK(wait_point(last));
    }
    CHECK_OK(wait_point(last));
    CHECK_EQ_U64(words_of(&log)[0], count);
    for (uint32_t i = 0; i < count; i++) REQUIRE_EQ_U64(words_of(&log)[1 + i], i);
    fixture_free(&log);
    fixture_close(&f);
}

typedef struct shared_log {
    fixture f;
    sp_memory log;
    uint32_t rounds;
} shared_log;

#define GROUP 5

static void append_groups(void *arg, uint32_t index)
{
    shared_log *shared = arg;
    const sp_binding binding =
        bind_words(&shared->log, 0, (uint32_t)(shared->log.bytes / 4), SP_READ_WRITE);
    for (uint32_t round = 0; round < shared->rounds; round++) {
        sp_command commands[GROUP];
        const uint32_t item = index * 1000000 + round;
        for (int i = 0; i < GROUP; i++) commands[i] = append_of(&binding, &item);
        const sp_point point = submit(shared->f.queues[0], commands, GROUP);
        if (round % 16 == 15) CHECK_OK(wait_point(point));
    }
}

TEST(threads_that_share_a_queue_interleave_whole_submissions)
{
    enum { THREADS = 4 };
    shared_log shared = {.f = fixture_open(), .rounds = (uint32_t)test_count(10000, 400)};
    const uint32_t total = THREADS * shared.rounds * GROUP;
    shared.log = fixture_words(&shared.f, total + 1);
    test_threads(THREADS, append_groups, &shared);
    CHECK_OK(wait_point(submit(shared.f.queues[0], NULL, 0)));

    const uint32_t *items = words_of(&shared.log) + 1;
    uint32_t next[THREADS] = {0};
    CHECK_EQ_U64(words_of(&shared.log)[0], total);
    for (uint32_t i = 0; i < total; i += GROUP) {
        const uint32_t thread = items[i] / 1000000;
        REQUIRE(thread < THREADS);
        REQUIRE_EQ_U64(items[i] % 1000000, next[thread]++);
        for (uint32_t j = 1; j < GROUP; j++) REQUIRE_EQ_U64(items[i + j], items[i]);
    }
    fixture_free(&shared.log);
    fixture_close(&shared.f);
}

TEST(copies_and_fills_move_the_bytes_they_name)
{
    fixture f = fixture_open();
    sp_memory a = fixture_words(&f, 64);
    sp_memory b = fixture_words(&f, 64);
    const uint32_t pattern = 0x01020304;
    const sp_binding target = bind_words(&a, 8, 16, SP_WRITE);
    const sp_binding pair[2] = {bind_words(&b, 0, 32, SP_WRITE), bind_words(&a, 4, 32, SP_READ)};
    const sp_command commands[2] = {command_fill(&target, &pattern), command_copy(pair)};
    CHECK_OK(wait_point(submit(f.queues[0], commands, 2)));
    for (uint32_t i = 0; i < 64; i++) {
        CHECK_EQ_U64(words_of(&a)[i], i >= 8 && i < 24 ? pattern : 0);
        CHECK_EQ_U64(words_of(&b)[i], i >= 4 && i < 20 ? pattern : 0);
    }
    fixture_free(&a);
    fixture_free(&b);
    fixture_close(&f);
}

TEST(every_tile_of_a_grid_runs_once)
{
    fixture f = fixture_open();
    sp_memory words = fixture_words(&f, 3000);
    const sp_binding binding = bind_words(&words, 0, 3000, SP_READ_WRITE);
    for (uint32_t tiles = 0; tiles <= 3000; tiles += 1000) {
        const sp_command command = command_dispatch(&kernel_add_one, tiles, &binding, 1, NULL, 0);
        CHECK_OK(wait_point(submit(f.queues[tiles / 1000], &command, 1)));
    }
    for (uint32_t i = 0; i < 3000; i++) REQUIRE_EQ_U64(words_of(&words)[i], 3 - i / 1000);
    fixture_free(&words);
    fixture_close(&f);
}

/* By one thread, and shared by several, which claim more than a tile at a time. */
TEST(every_tile_of_a_grid_runs_once_in_blocks_of_tiles)
{
    if (strcmp(fixture_kind(), "cuda") == 0) SKIP("a GPU has no blocks of tiles");
    const uint32_t grids[][3] = {{1, 1, 1},  {1000, 1, 1}, {1, 1000, 1}, {1, 1, 1000},
                                 {7, 11, 3}, {2, 250, 2},  {250, 2, 2},  {30, 33, 1}};
    fixture f = fixture_open();
    sp_memory words = fixture_words(&f, 1000);
    const sp_binding binding = bind_words(&words, 0, 1000, SP_READ_WRITE);
    uint32_t runs[1000] = {0};
    for (size_t i = 0; i < SP_COUNT_OF(grids); i++) {
        const uint32_t *grid = grids[i], tiles = grid[0] * grid[1] * grid[2];
        for (uint64_t ns = 0; ns <= 30000; ns += 30000) {
            sp_command command =
                command_dispatch(&kernel_add_block, 0, &binding, 1, &ns, sizeof ns);
            memcpy(command.grid, grid, sizeof command.grid);
            CHECK_OK(wait_point(submit(f.queues[0], &command, 1)));
            for (uint32_t k = 0; k < tiles; k++) runs[k]++;
        }
    }
    CHECK(memcmp(words_of(&words), runs, sizeof runs) == 0);
    fixture_free(&words);
    fixture_close(&f);
}

TEST(a_stream_waits_for_a_point_of_another_stream)
{
    fixture f = fixture_open();
    const uint32_t rounds = (uint32_t)test_count(100000, 2000);
    sp_memory log = fixture_words(&f, 2 * rounds + 1);
    const sp_binding binding = bind_words(&log, 0, 2 * rounds + 1, SP_READ_WRITE);
    sp_point before = {0};
    for (uint32_t i = 0; i < 2 * rounds; i++) {
        const sp_command command = append_of(&binding, &i);
        before = submit_after(f.queues[i % FIXTURE_QUEUES], &before, before.timeline != NULL,
                              &command, 1);
        if (i % 1024 == 1023) CHECK_OK(wait_point(before));
    }
    CHECK_OK(wait_point(before));
    for (uint32_t i = 0; i < 2 * rounds; i++) REQUIRE_EQ_U64(words_of(&log)[1 + i], i);
    fixture_free(&log);
    fixture_close(&f);
}

TEST(cpu_and_another_kind_play_ping_pong)
{
    fixture cpu = fixture_open_kind("cpu");
    fixture other = fixture_open_kind(strcmp(fixture_kind(), "cuda") == 0 ? "cuda" : "null");
    const uint32_t rounds = (uint32_t)test_count(100000, 1000);
    sp_memory log = fixture_words(&other, 2 * rounds + 1); /* accessible to the cpu too */
    const sp_binding binding = bind_words(&log, 0, 2 * rounds + 1, SP_READ_WRITE);
    sp_point before = {0};
    for (uint32_t i = 0; i < 2 * rounds; i++) {
        const sp_command command = append_of(&binding, &i);
        sp_queue *queue = i % 2 == 0 ? cpu.queues[0] : other.queues[0];
        before = submit_after(queue, &before, before.timeline != NULL, &command, 1);
        if (i % 256 == 255) CHECK_OK(wait_point(before));
    }
    CHECK_OK(wait_point(before));
    CHECK_EQ_U64(words_of(&log)[0], 2 * rounds);
    for (uint32_t i = 0; i < 2 * rounds; i++) REQUIRE_EQ_U64(words_of(&log)[1 + i], i);
    fixture_free(&log);
    fixture_stop(&cpu);
    fixture_stop(&other);
    fixture_close(&cpu);
    fixture_close(&other);
}

static sp_status post(void *ctx, sp_fault fault)
{
    (void)fault;
    sem_post(ctx);
    return SP_OK;
}

TEST(work_completes_without_any_further_call)
{
    fixture f = fixture_open();
    sem_t done;
    sem_init(&done, 0, 0);
    for (int i = 0; i < 200; i++) {
        /* Odd rounds let the workers fall asleep first. */
        if (i % 50 == 1) sp_clock_sleep(5000000);
        const sp_command command = command_host(post, &done);
        submit(f.queues[i % FIXTURE_QUEUES], &command, 1);
        struct timespec limit;
        clock_gettime(CLOCK_REALTIME, &limit);
        limit.tv_sec += 10;
        REQUIRE(sem_timedwait(&done, &limit) == 0);
    }
    sem_destroy(&done);
    fixture_close(&f);
}

TEST(two_streams_run_at_the_same_time)
{
    if (!fixture_has_meetings()) SKIP("a GPU does not see this memory of the host");
    fixture f = fixture_open();
    if (f.device->limits.width < 2) {
        fixture_close(&f);
        SKIP("the device runs one stream at a time");
    }
    meeting both = {.wanted = 2};
    const sp_command command = command_meet(&both, 1);
    const sp_point points[2] = {submit(f.queues[0], &command, 1), submit(f.queues[1], &command, 1)};
    CHECK_OK(sp__point_wait_all(points, 2, SP_NO_DEADLINE));
    CHECK_EQ_U64(sp_load_relaxed(&both.met), 2);
    fixture_close(&f);
}

TEST(as_many_streams_run_at_the_same_time_as_the_device_says)
{
    if (!fixture_has_meetings()) SKIP("a GPU does not see this memory of the host");
    fixture f = fixture_open();
    const uint32_t width = f.device->limits.width;
    CHECK(width >= 1);
    if (width > FIXTURE_QUEUES) {
        fixture_close(&f);
        SKIP("the device is wider than the fixture has queues");
    }
    const uint64_t rounds = test_count(1000, 50);
    for (uint64_t i = 0; i < rounds; i++) {
        sp_point points[FIXTURE_QUEUES];
        meeting all = {.wanted = width};
        const sp_command command = command_meet(&all, 1);
        for (uint32_t k = 0; k < width; k++) {
            points[k] = submit(f.queues[k], &command, 1);
            f.device->vtable->flush(f.queues[k]);
        }
        /* No thread helps: the device has its declared number of threads. */
        for (uint32_t k = 0; k < width; k++) {
            while (!sp__point_has_passed(points[k])) {
                sp_clock_sleep(20000);
                sp__point_flush(points[k]);
            }
        }
        REQUIRE_EQ_U64(sp_load_relaxed(&all.met), width);
    }
    fixture_close(&f);
}

/* The first kernel often goes to a worker that was about to fall asleep; the second must not depend
 * on that worker, whatever the order of its wake-up. No thread helps. */
TEST(a_stream_does_not_wait_for_a_busy_worker_while_others_are_idle)
{
    if (!fixture_has_meetings()) SKIP("a GPU does not see this memory of the host");
    fixture f = fixture_open();
    if (f.device->limits.width < 2) {
        fixture_close(&f);
        SKIP("the device runs one stream at a time");
    }
    const uint64_t rounds = test_count(20000, 300);
    sp_delay_configure(1, 300, 200000);
    for (uint64_t i = 0; i < rounds; i++) {
        meeting both = {.wanted = 2};
        const sp_command command = command_meet(&both, 1);
        sp_clock_sleep(i * 7919 % 2500 * 1000); /* the workers nap or sleep */
        sp_point points[2];
        for (int k = 0; k < 2; k++) {
            points[k] = submit(f.queues[k], &command, 1);
            f.device->vtable->flush(f.queues[k]);
            const uint64_t until = sp_clock_now() + i * 104729 % 100000;
            while (sp_clock_now() < until) sp_thread_yield();
        }
        while (!sp__point_has_passed(points[0]) || !sp__point_has_passed(points[1])) {
            sp_thread_yield();
            for (uint32_t k = 0; k < 2; k++) sp__point_flush(points[k]);
        }
        REQUIRE_EQ_U64(sp_load_relaxed(&both.met), 2);
    }
    sp_delay_configure(0, 0, 0);
    fixture_close(&f);
}

/* The first tile is long enough for the others to be shared. */
static sp_status run_meet_later(const sp_tile *tile)
{
    if (tile->index[0] > 0) return kernel_meet.run(tile);
    sp_clock_sleep(1000000);
    return SP_OK;
}

static const sp_kernel kernel_meet_later = {.name = "meet later", .run = run_meet_later};

TEST(tiles_of_one_long_dispatch_run_on_several_threads)
{
    if (strcmp(fixture_kind(), "cuda") == 0) SKIP("tiles of a GPU are its own affair");
    fixture f = fixture_open();
    if (f.device->limits.width < 2) {
        fixture_close(&f);
        SKIP("the device has one worker");
    }
    meeting both = {.wanted = 2};
    both.self = &both;
    const sp_command command =
        command_dispatch(&kernel_meet_later, 3, NULL, 0, &both.self, sizeof(meeting *));
    CHECK_OK(wait_point(submit(f.queues[0], &command, 1)));
    CHECK_EQ_U64(sp_load_relaxed(&both.met), 2);
    sp_queue_stats stats;
    f.device->vtable->queue_stats(f.queues[0], &stats);
    CHECK(stats.tiles_shared > 0);
    fixture_close(&f);
}

TEST(a_wait_ends_at_its_deadline_and_can_be_repeated)
{
    if (!fixture_has_meetings()) SKIP("a GPU does not see this memory of the host");
    fixture f = fixture_open();
    meeting held;
    const sp_point point = submit_held(f.queues[0], &held);
    CHECK_STATUS(sp__point_wait(point, 0), SP_TIMEOUT);
    const uint64_t start = sp_clock_now();
    CHECK_STATUS(sp__point_wait(point, sp_clock_deadline(50000000)), SP_TIMEOUT);
    CHECK(sp_clock_now() - start >= 50000000);
    CHECK(!sp__point_has_passed(point)); /* the wait has not run the command itself */
    let_go(&held);
    CHECK_OK(wait_point(point));
    CHECK_EQ_U64(sp_load_relaxed(&held.met), 1);
    fixture_close(&f);
}

TEST(a_wait_for_any_ends_with_the_first)
{
    if (!fixture_has_meetings()) SKIP("a GPU does not see this memory of the host");
    fixture f = fixture_open();
    const bool is_wide = f.device->limits.width > 1;
    meeting held;
    const sp_point points[2] = {submit_held(f.queues[0], &held), submit(f.queues[1], NULL, 0)};
    uint32_t which = 9;
    CHECK_STATUS(sp__point_wait_any(points, 0, SP_NO_DEADLINE, &which), SP_INVALID);
    CHECK_STATUS(sp__point_wait_any(points, 1, sp_clock_deadline(2000000), &which), SP_TIMEOUT);
    if (!is_wide) let_go(&held); /* the only worker may be inside */
    CHECK_OK(sp__point_wait_any(points, 2, SP_NO_DEADLINE, &which));
    if (is_wide) {
        CHECK_EQ_U64(which, 1);
        CHECK(!sp__point_has_passed(points[0]));
        let_go(&held);
    }
    CHECK_OK(sp__point_wait_all(points, 2, SP_NO_DEADLINE));
    CHECK_EQ_U64(sp_load_relaxed(&held.met), 1);
    fixture_close(&f);
}

TEST(workers_and_helpers_both_run_commands)
{
    fixture f = fixture_open();
    sp_memory words = fixture_words(&f, FIXTURE_QUEUES);
    for (uint32_t i = 0; i < 400; i++) {
        const uint32_t place = i % FIXTURE_QUEUES;
        const sp_binding binding = bind_words(&words, place, 1, SP_READ_WRITE);
        const uint64_t ns = 0;
        const sp_command command = command_dispatch(&kernel_slow, 1, &binding, 1, &ns, sizeof ns);
        const sp_point point = submit(f.queues[place], &command, 1);
        if (i % 2 == 0) {
            CHECK_OK(wait_point(point)); /* immediately: before a worker can run it */
        } else {
            f.device->vtable->flush(f.queues[place]);
            while (!sp__point_has_passed(point)) { /* no help */
                sp_thread_yield();
                sp__point_flush(point);
            }
        }
    }
    uint64_t by_workers = 0;
    uint64_t by_helpers = 0;
    for (uint32_t i = 0; i < FIXTURE_QUEUES; i++) {
        sp_queue_stats stats;
        f.device->vtable->queue_stats(f.queues[i], &stats);
        by_workers += stats.by_workers;
        by_helpers += stats.by_helpers;
        CHECK_EQ_U64(words_of(&words)[i], 50);
    }
    test_note("commands run by workers %llu, by helpers %llu", (unsigned long long)by_workers,
              (unsigned long long)by_helpers);
    if (strcmp(fixture_kind(), "cuda") != 0) CHECK(by_workers > 0);
    if (strcmp(fixture_kind(), "cpu") == 0) CHECK(by_helpers > 0);
    CHECK_EQ_U64(by_workers + by_helpers, 400);
    fixture_free(&words);
    fixture_close(&f);
}

TEST(timestamps_follow_the_order_of_commands)
{
    fixture f = fixture_open();
    sp_atomic_u64 times[3] = {0};
    sp_memory word = fixture_words(&f, 1);
    const sp_binding binding = bind_words(&word, 0, 1, SP_READ_WRITE);
    const uint64_t ns = 3000000;
    const sp_command commands[4] = {
        {.type = SP_COMMAND_TIMESTAMP, .timestamp = &times[0]},
        command_dispatch(&kernel_slow, 1, &binding, 1, &ns, sizeof ns),
        {.type = SP_COMMAND_TIMESTAMP, .timestamp = &times[1]},
        {.type = SP_COMMAND_TIMESTAMP, .timestamp = &times[2]},
    };
    const uint64_t before = sp_clock_now();
    CHECK_OK(wait_point(submit(f.queues[0], commands, 4)));
    CHECK(sp_load_acquire(&times[0]) >= before);
    CHECK(sp_load_acquire(&times[1]) >= sp_load_acquire(&times[0]) + ns);
    CHECK(sp_load_acquire(&times[2]) >= sp_load_acquire(&times[1]));
    CHECK(sp_load_acquire(&times[2]) <= sp_clock_now());
    fixture_free(&word);
    fixture_close(&f);
}

TEST(batching_commits_at_a_flush_or_a_limit_and_without_it_at_every_submit)
{
    if (strcmp(fixture_kind(), "cuda") == 0) SKIP("a GPU gets what is submitted at once");
    fixture f = fixture_open();
    sp_queue_stats stats;
    sp_point point = {0};
    for (int i = 0; i < 40; i++) point = submit(f.queues[0], NULL, 0);
    f.device->vtable->flush(f.queues[0]); /* a wait may find nothing to flush */
    CHECK_OK(wait_point(point));
    f.device->vtable->queue_stats(f.queues[0], &stats);
    CHECK_EQ_U64(stats.submissions, 40);
    CHECK_EQ_U64(stats.commits, 1);
    f.device->vtable->queue_set_batching(f.queues[0], false);
    for (int i = 0; i < 40; i++) point = submit(f.queues[0], NULL, 0);
    CHECK_OK(wait_point(point));
    f.device->vtable->queue_stats(f.queues[0], &stats);
    CHECK_EQ_U64(stats.commits, 41);
    f.device->vtable->queue_set_batching(f.queues[0], true);
    for (int i = 0; i < 640; i++) point = submit(f.queues[0], NULL, 0);
    f.device->vtable->queue_stats(f.queues[0], &stats);
    CHECK_EQ_U64(stats.commits, 51);
    CHECK_OK(wait_point(point));
    fixture_close(&f);
}

TEST(close_completes_what_was_accepted)
{
    fixture f = fixture_open();
    sem_t done;
    sem_init(&done, 0, 0);
    for (int i = 0; i < 100; i++) {
        const sp_command command = command_host(post, &done);
        submit(f.queues[i % FIXTURE_QUEUES], &command, 1);
    }
    fixture_close(&f);
    int count = 0;
    sem_getvalue(&done, &count);
    CHECK_EQ_INT(count, 100);
    sem_destroy(&done);
}

TEST_MAIN
