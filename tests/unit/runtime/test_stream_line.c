/* SPDX-License-Identifier: Apache-2.0 */
/* The wait queue of a stream pool under the policy `wait`: its order, and what ends waits. */
#include "runtime_fixture.h"

#include <stdio.h>
#include <string.h>

/* One leased stream, which the test acquires first. */
static void begin_with_one_stream(void)
{
    runtime_begin_with(&(runtime_setting){.streams = "2", .policy = "wait", .wait_ms = "-1"});
}

typedef struct taker {
    sp_device device;
    sp_thread thread;
    sp_atomic_u32 *turns;    /* acquisitions so far, in the order of service */
    sp_atomic_u32 *answered; /* callers that have returned */
    uint32_t turn;
    sp_status status;
    char message[256];
} taker;

static void take_a_turn(void *arg)
{
    taker *self = arg;
    sp_stream stream;
    self->status = sp_stream_from_pool(self->device, &stream);
    if (self->status == SP_OK) {
        self->turn = sp_fetch_add_relaxed(self->turns, 1) + 1;
        CHECK_OK(sp_stream_release(stream));
    } else {
        CHECK_EQ_U64(stream.bits, 0);
        snprintf(self->message, sizeof self->message, "%s", sp_last_error());
    }
    raise_by_one(self->answered);
}

/* Returns when `count` callers are in the wait queue. */
static void await_line(sp_device device, uint32_t count)
{
    await_at_least(&rt_device(device)->pool.waiting, count);
}

static void start_takers(taker *takers, uint32_t count, sp_device device, sp_atomic_u32 *turns,
                         sp_atomic_u32 *answered)
{
    for (uint32_t i = 0; i < count; i++) {
        takers[i] = (taker){.device = device, .turns = turns, .answered = answered};
        CHECK_OK(sp_thread_create(&takers[i].thread, "taker", take_a_turn, &takers[i]));
        await_line(device, i + 1);
    }
}

static void join_takers(taker *takers, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) sp_thread_join(&takers[i].thread);
}

TEST(waiting_takers_are_served_in_the_order_in_which_they_came)
{
    enum { TAKERS = 6 };
    begin_with_one_stream();
    for (uint64_t round = 0; round < test_count(50, 10); round++) {
        taker takers[TAKERS];
        sp_atomic_u32 turns = {0};
        sp_atomic_u32 answered = {0};
        const sp_stream mine = new_stream();
        start_takers(takers, TAKERS, CPU, &turns, &answered);
        CHECK_OK(sp_stream_release(mine));
        /* This thread is last, even directly after its release. */
        const sp_stream again = new_stream();
        CHECK_EQ_U64(sp_load_relaxed(&turns), TAKERS);
        CHECK_OK(sp_stream_release(again));
        join_takers(takers, TAKERS);
        for (uint32_t i = 0; i < TAKERS; i++) CHECK_EQ_U64(takers[i].turn, i + 1);
    }
    runtime_end();
}

typedef struct hogs {
    sp_atomic_u32 is_over;
    sp_atomic_u32 takes;
} hogs;

/* The last thread acquires ten times; until then the others acquire and release without a pause. */
static void hog_or_take(void *arg, uint32_t index)
{
    hogs *self = arg;
    if (index < 2) {
        while (sp_load_relaxed(&self->is_over) == 0) {
            const sp_stream stream = new_stream();
            sp_fetch_add_relaxed(&self->takes, 1);
            CHECK_OK(sp_stream_release(stream));
        }
        return;
    }
    await_at_least(&self->takes, 1);
    for (int i = 0; i < 10; i++) {
        CHECK_OK(sp_stream_release(new_stream()));
    }
    sp_store_relaxed(&self->is_over, 1);
}

TEST(takers_that_come_again_and_again_keep_none_waiting)
{
    begin_with_one_stream();
    hogs self = {.takes = {0}};
    test_threads(3, hog_or_take, &self);
    runtime_end();
}

/* ---- the end of waits ---- */

static void check_refused(const taker *takers, uint32_t count, const char *name)
{
    for (uint32_t i = 0; i < count; i++) {
        CHECK_STATUS(takers[i].status, SP_CLOSED);
        CHECK(strstr(takers[i].message, name) != NULL);
        CHECK(strstr(takers[i].message, "closed") != NULL);
    }
}

TEST(a_close_ends_the_wait_of_takers)
{
    begin_with_one_stream();
    const sp_device device = open_null();
    const sp_stream mine = new_stream_on(device);
    taker takers[4];
    sp_atomic_u32 turns = {0};
    sp_atomic_u32 answered = {0};
    start_takers(takers, 4, device, &turns, &answered);
    CHECK_OK(sp_device_close(device));
    await_at_least(&answered, 4);
    join_takers(takers, 4);
    check_refused(takers, 4, "null:1");
    sp_stream late;
    CHECK_STATUS(sp_stream_from_pool(device, &late), SP_CLOSED);
    CHECK_OK(sp_stream_release(mine));
    CHECK_OK(sp_stream_release(new_stream())); /* the other device is unchanged */
    runtime_end();
}

TEST(a_shutdown_ends_the_wait_of_takers_of_every_device)
{
    begin_with_one_stream();
    const sp_device device = open_null();
    const sp_stream streams[] = {new_stream(), new_stream_on(device)};
    taker takers[4];
    sp_atomic_u32 turns = {0};
    sp_atomic_u32 answered = {0};
    start_takers(takers, 2, CPU, &turns, &answered);
    start_takers(takers + 2, 2, device, &turns, &answered);
    CHECK_OK(sp_shutdown());
    await_at_least(&answered, 4);
    join_takers(takers, 4);
    check_refused(takers, 2, "cpu");
    check_refused(takers + 2, 2, "null:1");
    for (int i = 0; i < 2; i++) CHECK_OK(sp_stream_release(streams[i]));
    runtime_end();
}

/* ---- work of a device that depends on an allocation on another ---- */

static void wait_for_a_taker(void *ctx, sp_status status)
{
    CHECK_OK(status);
    await_at_least(ctx, 1);
}

TEST(a_shutdown_completes_work_that_waits_for_the_end_of_a_taker)
{
    begin_with_one_stream();
    const sp_device device = open_null();
    const sp_stream mine = new_stream_on(device);
    sp_stream on_cpu;
    CHECK_OK(sp_stream_default(CPU, &on_cpu));
    taker one;
    sp_atomic_u32 turns = {0};
    sp_atomic_u32 answered = {0};
    start_takers(&one, 1, device, &turns, &answered);
    CHECK_OK(sp_stream_host_function(on_cpu, wait_for_a_taker, &answered));
    CHECK_OK(sp_shutdown()); /* cpu, the first of the devices, stops first */
    join_takers(&one, 1);
    check_refused(&one, 1, "null:1");
    CHECK_OK(sp_stream_release(mine));
    runtime_end();
}

TEST_MAIN
