/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for several futures: for any of them, and for all. */
#include <string.h>

#include <streampool/null_device.h>

#include "base/clock.h"
#include "base/thread.h"
#include "command_gate.h"
#include "run_fixture.h"

#define MILLISECOND INT64_C(1000000)

/* One run on a device of its own, one on cpu. */
typedef struct race {
    sp_device slow_device;
    sp_model slow, fast;
    small_row expected;
    small_row out[2];
    sp_future futures[2]; /* the slow one, then the fast one */
} race;

static void race_open(race *r)
{
    *r = (race){0};
    CHECK_OK(sp_device_open("null", &r->slow_device));
    r->slow = small_model(&(sp_model_options){.device = r->slow_device});
    r->fast = small_model(NULL);
    r->expected = small_run(r->fast);
    const small_row same = small_run(r->slow);
    CHECK(small_is_same(&same, &r->expected));
}

static void race_submit(race *r)
{
    memset(r->out, 0xff, sizeof r->out);
    CHECK_OK(small_submit(r->slow, &r->out[0], &r->futures[0]));
    CHECK_OK(small_submit(r->fast, &r->out[1], &r->futures[1]));
}

static void race_release(race *r)
{
    for (int i = 0; i < 2; i++) CHECK_OK(sp_future_release(r->futures[i]));
}

static void race_close(race *r)
{
    CHECK_OK(sp_model_release(r->slow));
    CHECK_OK(sp_model_release(r->fast));
    CHECK_OK(sp_device_close(r->slow_device));
}

TEST(wait_any_returns_the_run_that_is_done_first)
{
    race r;
    uint32_t which = 7;
    race_open(&r);
    command_gate_close(r.slow_device);
    race_submit(&r);
    CHECK_OK(sp_future_wait_any(r.futures, 2, -1, &which));
    CHECK_EQ_U64(which, 1);
    CHECK(small_is_same(&r.out[1], &r.expected));
    CHECK_STATUS(sp_future_query(r.futures[0]), SP_NOT_READY);
    CHECK_OK(sp_future_wait_any(r.futures, 2, 0, &which)); /* still, and at once */
    CHECK_EQ_U64(which, 1);
    command_gate_open();
    CHECK_OK(sp_future_wait_any(r.futures, 1, -1, &which));
    CHECK_EQ_U64(which, 0);
    CHECK(small_is_same(&r.out[0], &r.expected));
    CHECK_OK(sp_future_wait_any(r.futures, 2, -1, &which)); /* the lowest index of those */
    CHECK_EQ_U64(which, 0);
    race_release(&r);
    race_close(&r);
}

TEST(a_wait_for_several_ends_with_its_time_and_the_runs_continue)
{
    race r;
    uint32_t which = 7;
    race_open(&r);
    command_gate_close(r.slow_device);
    race_submit(&r);
    const sp_future slow_twice[2] = {r.futures[0], r.futures[0]};
    CHECK_STATUS(sp_future_wait_any(slow_twice, 2, 0, &which), SP_TIMEOUT);
    CHECK_MESSAGE("none of 2 runs was done in time");
    CHECK_EQ_U64(which, 2);
    const uint64_t start = sp_clock_now();
    CHECK_STATUS(sp_future_wait_any(slow_twice, 2, MILLISECOND, &which), SP_TIMEOUT);
    CHECK(sp_clock_now() - start >= MILLISECOND);
    CHECK_STATUS(sp_future_wait_all(r.futures, 2, MILLISECOND), SP_TIMEOUT);
    CHECK_MESSAGE("it continues");
    command_gate_open();
    CHECK_OK(sp_future_wait_all(r.futures, 2, -1));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(sp_future_query(r.futures[i]));
        CHECK(small_is_same(&r.out[i], &r.expected));
    }
    CHECK_OK(sp_future_wait_all(r.futures, 2, 0));
    CHECK_OK(sp_future_wait_all(NULL, 0, 0));
    race_release(&r);
    race_close(&r);
}

TEST(a_run_that_fails_ends_a_wait_for_any_and_not_one_for_all)
{
    race r;
    uint32_t which = 7;
    race_open(&r);
    CHECK_OK(sp_null_fail_command(r.slow_device, 0));
    race_submit(&r);
    CHECK_STATUS(sp_future_wait_any(r.futures, 1, -1, &which), SP_FAILED);
    CHECK_MESSAGE("injected fault");
    CHECK_EQ_U64(which, 0);
    CHECK_STATUS(sp_future_wait_all(r.futures, 2, -1), SP_FAILED);
    CHECK_MESSAGE("injected fault");
    CHECK_OK(sp_future_query(r.futures[1])); /* it is done too */
    const sp_future reversed[2] = {r.futures[1], r.futures[0]};
    CHECK_STATUS(sp_future_wait_all(reversed, 2, -1), SP_FAILED);
    CHECK_OK(sp_future_wait_any(reversed, 2, -1, &which));
    race_release(&r);
    race_close(&r);
}

TEST(wrong_arguments_are_refused)
{
    const sp_model model = small_model(NULL);
    small_row out;
    sp_future futures[3];
    uint32_t which = 7;
    CHECK_OK(small_submit(model, &out, &futures[0]));
    CHECK_OK(sp_future_wait(futures[0]));
    CHECK_STATUS(sp_future_wait_any(futures, 1, -1, NULL), SP_INVALID);
    CHECK_STATUS(sp_future_wait_any(futures, 0, -1, &which), SP_INVALID);
    CHECK_EQ_U64(which, 0);
    CHECK_STATUS(sp_future_wait_any(NULL, 1, -1, &which), SP_INVALID);
    CHECK_STATUS(sp_future_wait_all(NULL, 1, -1), SP_INVALID);
    futures[1] = (sp_future){0};
    futures[2] = (sp_future){model.bits};
    CHECK_STATUS(sp_future_wait_any(futures, 2, -1, &which), SP_INVALID);
    CHECK_MESSAGE("futures[1]: ");
    CHECK_EQ_U64(which, 2);
    futures[1] = futures[0];
    CHECK_STATUS(sp_future_wait_all(futures, 3, -1), SP_INVALID);
    CHECK_MESSAGE("futures[2]: ");
    CHECK_OK(sp_future_wait_all(futures, 2, -1));
    CHECK_OK(sp_future_release(futures[0]));
    CHECK_STATUS(sp_future_wait_all(futures, 1, -1), SP_INVALID);
    CHECK_OK(sp_model_release(model));
}

enum { MANY = 200 };

TEST(a_loop_over_wait_any_meets_each_of_many_runs_once)
{
    const sp_model model = small_model(NULL);
    const small_row expected = small_run(model);
    static small_row out[MANY];
    for (uint64_t round = 0; round < test_count(50, 3); round++) {
        sp_future left[MANY];
        memset(out, 0xff, sizeof out);
        for (int i = 0; i < MANY; i++) CHECK_OK(small_submit(model, &out[i], &left[i]));
        for (uint32_t count = MANY; count > 0; count--) {
            uint32_t which = count;
            CHECK_OK(sp_future_wait_any(left, count, -1, &which));
            REQUIRE(which < count);
            CHECK_OK(sp_future_release(left[which]));
            left[which] = left[count - 1];
        }
        for (int i = 0; i < MANY; i++) CHECK(small_is_same(&out[i], &expected));
    }
    CHECK_OK(sp_model_release(model));
}

/* ---- from many threads ---- */

enum { WAITERS = 6, RUNS = 24 };

typedef struct crowd {
    sp_model model;
    small_row expected;
    small_row out[RUNS];
    sp_future futures[RUNS];
} crowd;

/* Each thread waits for runs in an order of its own. */
static void wait_in_turn(void *arg, uint32_t index)
{
    const crowd *c = arg;
    sp_future left[RUNS];
    uint32_t at[RUNS];
    for (uint32_t i = 0; i < RUNS; i++) {
        at[i] = (i * 5 + index) % RUNS;
        left[i] = c->futures[at[i]];
    }
    for (uint32_t count = RUNS; count > 0; count--) {
        uint32_t which = count;
        sp_status status = SP_TIMEOUT;
        const int64_t timeout_ns = index % 2 == 0 ? -1 : MILLISECOND / 10;
        while (status == SP_TIMEOUT) status = sp_future_wait_any(left, count, timeout_ns, &which);
        CHECK_OK(status);
        REQUIRE(which < count);
        CHECK(small_is_same(&c->out[at[which]], &c->expected));
        left[which] = left[count - 1];
        at[which] = at[count - 1];
    }
    CHECK_OK(sp_future_wait_all(c->futures, RUNS, -1));
}

TEST(many_threads_wait_for_any_and_all_of_the_same_runs)
{
    static crowd c;
    c.model = small_model(NULL);
    c.expected = small_run(c.model);
    for (uint64_t round = 0; round < test_count(100, 10); round++) {
        memset(c.out, 0xff, sizeof c.out);
        for (int i = 0; i < RUNS; i++) CHECK_OK(small_submit(c.model, &c.out[i], &c.futures[i]));
        test_threads(WAITERS, wait_in_turn, &c);
        for (int i = 0; i < RUNS; i++) CHECK_OK(sp_future_release(c.futures[i]));
    }
    CHECK_OK(sp_model_release(c.model));
}

TEST_MAIN
