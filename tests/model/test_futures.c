/* SPDX-License-Identifier: Apache-2.0 */
/* Futures: submitted runs give the bits of sp_model_run, whichever thread waits, in whichever way,
 * and without any wait. Queued runs, also behind host functions, are in test_futures_line.c. */
#include <string.h>

#include <streampool/null_device.h>
#include <streampool/storage.h>
#include <streampool/stream.h>

#include "base/clock.h"
#include "base/heap.h"
#include "base/thread.h"
#include "command_gate.h"
#include "run_fixture.h"

enum { RESULTS = 3 };

TEST(a_submitted_run_gives_the_bits_of_a_run_and_describes_its_outputs_at_once)
{
    const sp_model model = small_model(NULL);
    const small_row expected = small_run(model);
    small_row out = {{0}};
    sp_future future;
    const sp_host_tensor x = input_x(1);
    sp_host_tensor y = output_y((float *)(void *)out.bytes, 8);
    CHECK_OK(sp_model_submit(model, &x, 1, &y, 1, &future));
    CHECK_EQ_INT(y.dtype, SP_F32);
    CHECK_EQ_U64(y.rank, 2);
    CHECK(y.shape[0] == 1 && y.shape[1] == RESULTS);
    CHECK_EQ_U64(y.bytes, sizeof out);
    CHECK_OK(sp_future_wait(future));
    CHECK(small_is_same(&out, &expected));
    CHECK_OK(sp_future_wait(future)); /* any number of times */
    CHECK_OK(sp_future_wait_for(future, 0));
    CHECK_OK(sp_future_query(future));
    CHECK_OK(sp_future_release(future));
    CHECK_OK(sp_model_release(model));
}

enum { PIPELINE = 500 };

TEST(one_thread_keeps_hundreds_of_runs_under_way)
{
    const sp_model model = small_model(NULL);
    const small_row expected = small_run(model);
    static small_row out[PIPELINE];
    static sp_future futures[PIPELINE];
    for (uint64_t round = 0; round < test_count(100, 4); round++) {
        memset(out, 0xff, sizeof out);
        for (int i = 0; i < PIPELINE; i++) CHECK_OK(small_submit(model, &out[i], &futures[i]));
        for (int i = PIPELINE - 1; i >= 0; i--) {
            CHECK_OK(sp_future_wait(futures[i]));
            CHECK(small_is_same(&out[i], &expected));
            CHECK_OK(sp_future_release(futures[i]));
        }
    }
    sp_model_info info;
    sp_device_info device;
    CHECK_OK(sp_model_get_info(model, &info));
    CHECK_OK(sp_device_get_info((sp_device){0}, &device));
    CHECK(info.context_count <= device.run_slots);
    CHECK(info.most_in_flight <= device.run_slots);
    CHECK_OK(sp_model_release(model));
}

TEST(every_model_gives_the_bits_of_a_run)
{
    for (uint32_t i = 0; i < FIXTURE_MODELS; i++) {
        model_case c;
        if (!case_open(fixture_models[i], NULL, &c)) SKIP("no shared data");
        sp_host_tensor inputs[FIXTURE_PORTS];
        sp_host_tensor tensors[4][FIXTURE_PORTS];
        sp_array outputs[4][FIXTURE_PORTS] = {0};
        sp_future futures[4];
        for (uint32_t k = 0; k < c.input_count; k++) inputs[k] = tensor_of(&c.inputs[k], NULL);
        for (uint32_t f = 0; f < 4; f++) {
            outputs_make(&c, outputs[f]);
            outputs_wipe(&c, outputs[f]);
            for (uint32_t k = 0; k < c.output_count; k++) {
                tensors[f][k] = tensor_of(&outputs[f][k], NULL);
            }
            CHECK_OK(sp_model_submit(c.model, inputs, c.input_count, tensors[f], c.output_count,
                                     &futures[f]));
        }
        for (uint32_t f = 0; f < 4; f++) {
            CHECK_OK(sp_future_wait(futures[f]));
            CHECK(case_is_same(&c, outputs[f]));
            CHECK_OK(sp_future_release(futures[f]));
            outputs_free(&c, outputs[f]);
        }
        case_close(&c);
    }
}

TEST(outputs_may_be_left_out)
{
    const sp_model model = small_model(NULL);
    sp_future future;
    const sp_host_tensor x = input_x(1);
    CHECK_OK(sp_model_submit(model, &x, 1, NULL, 0, &future));
    CHECK_OK(sp_future_wait(future));
    CHECK_OK(sp_future_release(future));
    CHECK_OK(sp_model_release(model));
}

/* ---- misuse ---- */

TEST(a_wrong_call_is_refused_and_gives_no_future)
{
    const sp_model model = small_model(NULL);
    const sp_host_tensor x = input_x(1);
    small_row out;
    sp_host_tensor small = output_y((float *)(void *)out.bytes, 1);
    sp_future future = {1};
    CHECK_STATUS(sp_model_submit(model, &x, 1, &small, 1, &future), SP_MISMATCH);
    CHECK_MESSAGE("needs 12 bytes; its capacity is 4");
    CHECK_EQ_U64(future.bits, 0);
    CHECK_EQ_U64(small.bytes, 12);
    CHECK_EQ_U64(small.capacity, 4);
    CHECK_STATUS(sp_model_submit(model, NULL, 1, &small, 1, &future), SP_INVALID);
    CHECK_STATUS(sp_model_submit(model, &x, 0, &small, 1, &future), SP_MISMATCH);
    CHECK_STATUS(sp_model_submit(model, &x, 1, &small, 1, NULL), SP_INVALID);
    CHECK_STATUS(sp_model_submit((sp_model){0}, &x, 1, &small, 1, &future), SP_INVALID);
    CHECK_MESSAGE("model");
    CHECK_OK(sp_model_release(model));
    CHECK_STATUS(small_submit(model, &out, &future), SP_INVALID);
}

static void never(void *ctx, sp_status status)
{
    (void)ctx;
    (void)status;
    CHECK(false);
}

static void check_refused(sp_future future)
{
    CHECK_STATUS(sp_future_wait(future), SP_INVALID);
    CHECK_MESSAGE("future");
    CHECK_STATUS(sp_future_wait_for(future, 0), SP_INVALID);
    CHECK_STATUS(sp_future_query(future), SP_INVALID);
    CHECK_STATUS(sp_future_retain(future), SP_INVALID);
    CHECK_STATUS(sp_future_on_complete(future, never, NULL), SP_INVALID);
}

TEST(zero_stale_foreign_and_forged_handles_are_refused)
{
    const sp_model model = small_model(NULL);
    small_row out;
    sp_future future;
    CHECK_OK(small_submit(model, &out, &future));
    CHECK_OK(sp_future_retain(future));
    CHECK_OK(sp_future_release(future));
    CHECK_OK(sp_future_wait(future));
    CHECK_STATUS(sp_future_on_complete(future, NULL, NULL), SP_INVALID);
    CHECK_OK(sp_future_release(future));
    CHECK_STATUS(sp_future_release(future), SP_INVALID);
    check_refused(future);
    check_refused((sp_future){0});
    check_refused((sp_future){model.bits});
    check_refused((sp_future){UINT64_MAX});
    check_refused((sp_future){future.bits + 12345});
    CHECK_OK(sp_future_release((sp_future){0}));
    CHECK_OK(sp_model_release(model));
}

/* ---- waiting ---- */

TEST(a_wait_ends_with_its_time_and_the_run_goes_on)
{
    sp_model_options options = {0};
    CHECK_OK(sp_device_open("null", &options.device));
    const sp_model model = small_model(&options);
    const small_row expected = small_run(model);
    small_row out;
    sp_future future;
    command_gate_close(options.device);
    CHECK_OK(small_submit(model, &out, &future));
    CHECK_STATUS(sp_future_query(future), SP_NOT_READY);
    CHECK_STATUS(sp_future_wait_for(future, 0), SP_TIMEOUT);
    const uint64_t start = sp_clock_now();
    CHECK_STATUS(sp_future_wait_for(future, 1000000), SP_TIMEOUT);
    CHECK_MESSAGE("it continues");
    CHECK(sp_clock_now() - start >= 1000000);
    command_gate_open();
    CHECK_OK(sp_future_wait_for(future, -1));
    CHECK_OK(sp_future_query(future));
    CHECK(small_is_same(&out, &expected));
    CHECK_OK(sp_future_release(future));
    CHECK_OK(sp_model_release(model));
    CHECK_OK(sp_device_close(options.device));
}

typedef struct shared_wait {
    sp_future future;
    sp_atomic_u32 done;
} shared_wait;

static void wait_too(void *arg, uint32_t index)
{
    shared_wait *w = arg;
    CHECK_OK(index % 2 == 0 ? sp_future_wait(w->future)
                            : sp_future_wait_for(w->future, INT64_C(60000000000)));
    CHECK_OK(sp_future_query(w->future));
    sp_fetch_add_relaxed(&w->done, 1);
}

TEST(any_number_of_threads_wait_for_one_future)
{
    const sp_model model = small_model(NULL);
    for (uint64_t round = 0; round < test_count(200, 10); round++) {
        small_row out;
        shared_wait w = {0};
        CHECK_OK(small_submit(model, &out, &w.future));
        test_threads(8, wait_too, &w);
        CHECK_EQ_U64(sp_load_relaxed(&w.done), 8);
        CHECK_OK(sp_future_release(w.future));
    }
    CHECK_OK(sp_model_release(model));
}

/* ---- failures ---- */

TEST(a_kernel_that_fails_is_told_to_all_who_wait_and_hurts_no_other_run)
{
    sp_model_options options = {0};
    CHECK_OK(sp_device_open("null", &options.device));
    const sp_model model = small_model(&options);
    const small_row expected = small_run(model);
    sp_model_info info;
    CHECK_OK(sp_model_get_info(model, &info));
    for (uint64_t step = 0; step < info.step_count; step++) {
        small_row out[3];
        sp_future futures[3];
        CHECK_OK(sp_null_fail_command(options.device, step));
        CHECK_OK(small_submit(model, &out[0], &futures[0]));
        for (int i = 0; i < 2; i++) {
            CHECK_STATUS(sp_future_wait(futures[0]), SP_FAILED);
            CHECK_MESSAGE("node '");
            CHECK_MESSAGE("injected fault");
        }
        CHECK_STATUS(sp_future_query(futures[0]), SP_FAILED);
        for (int i = 1; i < 3; i++) CHECK_OK(small_submit(model, &out[i], &futures[i]));
        for (int i = 1; i < 3; i++) {
            CHECK_OK(sp_future_wait(futures[i]));
            CHECK(small_is_same(&out[i], &expected));
        }
        for (int i = 0; i < 3; i++) CHECK_OK(sp_future_release(futures[i]));
    }
    CHECK_OK(sp_model_release(model));
    CHECK_OK(sp_device_close(options.device));
}

TEST(a_lost_device_fails_what_is_under_way_and_refuses_more)
{
    sp_model_options options = {0};
    CHECK_OK(sp_device_open("null", &options.device));
    const sp_model model = small_model(&options);
    small_run(model);
    small_row out[2];
    sp_future future = {0};
    CHECK_OK(sp_null_lose(options.device));
    CHECK_OK(small_submit(model, &out[0], &future));
    CHECK_STATUS(sp_future_wait(future), SP_DEVICE_LOST);
    CHECK_OK(sp_future_release(future));
    CHECK_STATUS(small_submit(model, &out[1], &future), SP_DEVICE_LOST);
    CHECK_EQ_U64(future.bits, 0);
    CHECK_OK(sp_model_release(model));
    CHECK_OK(sp_device_close(options.device));
    CHECK_STATUS(small_submit(model, &out[1], &future), SP_INVALID);
}

TEST(each_allocation_that_fails_fails_the_call_or_its_future_and_leaves_nothing)
{
    sp_model_options options = {0};
    CHECK_OK(sp_device_open("null", &options.device));
    bool has_failed = true;
    uint64_t skip = 0;
    for (; has_failed;
         skip++) { /* the device's queues are created on the way, with one failure at a time */
        const sp_model model = small_model(&options);
        small_row out[2];
        sp_future future = {1};
        sp_heap_fail_after(skip);
        sp_status status = small_submit(model, &out[0], &future);
        if (status == SP_OK) status = sp_future_wait(future);
        has_failed = sp_heap_has_failed();
        sp_heap_fail_after(UINT64_MAX);
        CHECK(status == SP_OK || (has_failed && status == SP_OUT_OF_MEMORY));
        CHECK_OK(sp_future_release(future));
        CHECK_OK(small_submit(model, &out[1], &future));
        CHECK_OK(sp_future_wait(future));
        CHECK(status != SP_OK || small_is_same(&out[0], &out[1]));
        CHECK_OK(sp_future_release(future));
        CHECK_OK(sp_model_release(model));
    }
    test_note("%u allocations", (unsigned)skip);
    CHECK(skip > 10);
    CHECK_OK(sp_device_close(options.device));
}

TEST_MAIN
