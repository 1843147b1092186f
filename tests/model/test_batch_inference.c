/* SPDX-License-Identifier: Apache-2.0 */
/* sp_batch_inference: many runs by one call, each with its own status and the bits of a run alone.
 * Needs STREAMPOOL_BATCHING=always. */
#include "batch_queue_fixture.h"

#include <string.h>

#include <streampool/stream.h>

#include "base/heap.h"
#include "base/thread.h"

enum { MOST = 3000 };

typedef struct one_inference {
    sp_host_tensor x, y;
    float in[SMALL_IN], out[SMALL_OUT], expected[SMALL_OUT];
} one_inference;

static one_inference all[MOST];
static sp_inference requests[MOST];

static void requests_init(sp_model model, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        one_inference *one = &all[i];
        *one = (one_inference){.x = input_x(1)};
        small_fill_rows(one->in, i, 1);
        memset(one->out, 0xff, sizeof one->out);
        one->x.data = one->in;
        one->y = output_y(one->out, SMALL_OUT);
        CHECK_OK(small_run_rows(model, one->in, 1, one->expected));
        requests[i] = (sp_inference){&one->x, &one->y, 1, 1, SP_INTERNAL};
    }
}

static void request_check(uint32_t i)
{
    CHECK_OK(requests[i].status);
    CHECK_EQ_MEM(all[i].out, all[i].expected, sizeof all[i].out);
    CHECK_EQ_U64(all[i].y.bytes, sizeof all[i].out);
}

TEST(results_are_in_order_with_the_bits_of_a_run)
{
    static const uint32_t counts[] = {0, 1, 2, 31, 1024, 1025, MOST};
    const sp_model model = queue_model();
    for (uint32_t k = 0; k < SP_COUNT_OF(counts); k++) {
        requests_init(model, counts[k]);
        CHECK_OK(sp_batch_inference(model, requests, counts[k]));
        for (uint32_t i = 0; i < counts[k]; i++) request_check(i);
    }
    CHECK_OK(sp_model_release(model));
}

enum { BUSY = 1000 }; /* all in flight at the same time */

static void infer_busy(void *arg)
{
    const sp_model *model = arg;
    CHECK_OK(sp_batch_inference(*model, requests, BUSY));
}

TEST(requests_are_merged)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    sp_thread thread;
    sp_model model = queue_model();
    requests_init(model, BUSY);
    const merged_runs before = merged_of(model);
    const uint64_t runs = model_info_of(model).runs;
    held_slots held = slots_hold(model);
    CHECK_OK(sp_thread_create(&thread, "caller", infer_busy, &model));
    while (model_info_of(model).runs < runs + BUSY) sp_thread_yield();
    slots_give(&held);
    sp_thread_join(&thread);
    for (uint32_t i = 0; i < BUSY; i++) request_check(i);
    CHECK(merged_since(model, before).runs > BUSY / 2);
    CHECK_OK(sp_model_release(model));
}

TEST(each_request_has_its_own_status)
{
    enum { COUNT = 1500 };
    const sp_model model = queue_model();
    requests_init(model, COUNT);
    all[700].x.shape[1] = 5;
    all[700].x.bytes = 20;
    all[20].y.capacity = 4;
    requests[1499].input_count = 0;
    CHECK_STATUS(sp_batch_inference(model, requests, COUNT), SP_MISMATCH);
    CHECK_MESSAGE("requests[20]: output");
    for (uint32_t i = 0; i < COUNT; i++) {
        const bool is_wrong = i == 20 || i == 700 || i == 1499;
        if (is_wrong) CHECK_EQ_INT(requests[i].status, SP_MISMATCH);
        else request_check(i);
    }
    CHECK_OK(sp_model_release(model));
}

TEST(a_request_that_fails_in_its_run_fails_alone)
{
    enum { COUNT = 200 };
    static int64_t index[COUNT];
    static float out[COUNT][TABLE_WIDTH];
    static sp_host_tensor x[COUNT], y[COUNT];
    const sp_model model = table_model(NULL);
    index[0] = 0;
    x[0] = table_input(&index[0]);
    (void)combining_prepare(model, x, 1);
    for (uint32_t i = 0; i < COUNT; i++) {
        index[i] = i % 50 == 49 ? TABLE_ROWS : i % TABLE_ROWS;
        x[i] = table_input(&index[i]);
        y[i] = output_y(out[i], TABLE_WIDTH);
        requests[i] = (sp_inference){&x[i], &y[i], 1, 1, SP_INTERNAL};
    }
    requests[120].input_count = 0; /* found before, reported after */
    CHECK_STATUS(sp_batch_inference(model, requests, COUNT), SP_INVALID);
    CHECK_MESSAGE("requests[49]: ");
    CHECK_MESSAGE("(Gather)");
    for (uint32_t i = 0; i < COUNT; i++) {
        if (i == 120) {
            CHECK_EQ_INT(requests[i].status, SP_MISMATCH);
        } else if (i % 50 == 49) {
            CHECK_EQ_INT(requests[i].status, SP_INVALID);
        } else {
            CHECK_EQ_INT(requests[i].status, SP_OK);
            CHECK(table_is_right(index[i], out[i]));
        }
    }
    CHECK_OK(sp_model_release(model));
}

TEST(outputs_may_be_allocated_by_the_call)
{
    enum { COUNT = 100 };
    const sp_model model = queue_model();
    requests_init(model, COUNT);
    for (uint32_t i = 0; i < COUNT; i++) all[i].y = (sp_host_tensor){0};
    CHECK_OK(sp_batch_inference(model, requests, COUNT));
    for (uint32_t i = 0; i < COUNT; i++) {
        CHECK_OK(requests[i].status);
        CHECK_EQ_MEM(all[i].y.data, all[i].expected, sizeof all[i].expected);
        sp_host_tensor_free(&all[i].y);
    }
    CHECK_OK(sp_model_release(model));
}

TEST(a_wrong_call_sets_every_status)
{
    const sp_model model = small_model(NULL);
    requests_init(model, 3);
    CHECK_STATUS(sp_batch_inference(model, NULL, 3), SP_INVALID);
    CHECK_OK(sp_batch_inference(model, NULL, 0));
    CHECK_OK(sp_model_release(model));
    CHECK_STATUS(sp_batch_inference(model, requests, 3), SP_INVALID);
    for (int i = 0; i < 3; i++) CHECK_EQ_INT(requests[i].status, SP_INVALID);
}

/* ---- from many threads, and inside callbacks ---- */

enum { THREADS = 8, PART = 64 };

typedef struct shared_load {
    sp_model model;
    uint64_t rounds;
} shared_load;

static void infer_part(void *arg, uint32_t index)
{
    const shared_load *load = arg;
    for (uint64_t i = 0; i < load->rounds; i++) {
        for (uint32_t k = 0; k < PART; k++) {
            memset(all[index * PART + k].out, 0xff, sizeof all[0].out);
        }
        CHECK_OK(sp_batch_inference(load->model, &requests[index * PART], PART));
        for (uint32_t k = 0; k < PART; k++) request_check(index * PART + k);
    }
}

TEST(threads_infer_beside_each_other)
{
    shared_load load = {.model = queue_model(), .rounds = test_count(500, 20)};
    requests_init(load.model, THREADS * PART);
    test_threads(THREADS, infer_part, &load);
    CHECK_OK(sp_model_release(load.model));
}

typedef struct inside {
    sp_model model;
    sp_atomic_u32 has_run;
} inside;

static void infer_inside(void *ctx, sp_status status)
{
    inside *in = ctx;
    CHECK_OK(status);
    CHECK_OK(sp_batch_inference(in->model, requests, 50));
    sp_store_release(&in->has_run, 1);
}

TEST(a_host_function_infers_though_all_run_slots_are_taken)
{
    inside in = {.model = queue_model()};
    sp_stream stream;
    CHECK_OK(sp_stream_from_pool((sp_device){0}, &stream));
    requests_init(in.model, 50);
    held_slots held = slots_hold(in.model);
    CHECK_OK(sp_stream_host_function(stream, infer_inside, &in));
    await_count(&in.has_run, 1);
    slots_give(&held);
    for (uint32_t i = 0; i < 50; i++) request_check(i);
    CHECK_OK(sp_stream_release(stream));
    CHECK_OK(sp_model_release(in.model));
}

TEST(every_allocation_of_the_call_may_fail)
{
    enum { COUNT = 5 };
    const sp_model model = queue_model();
    for (uint64_t skip = 0, has_failed = true; has_failed; skip++) {
        requests_init(model, COUNT);
        sp_heap_fail_after(skip);
        const sp_status status = sp_batch_inference(model, requests, COUNT);
        has_failed = sp_heap_has_failed();
        sp_heap_fail_after(UINT64_MAX);
        CHECK(status == SP_OK || (has_failed && status == SP_OUT_OF_MEMORY));
        for (uint32_t i = 0; i < COUNT; i++) {
            if (requests[i].status == SP_OK) request_check(i);
            else CHECK_EQ_INT(requests[i].status, SP_OUT_OF_MEMORY);
        }
    }
    CHECK_OK(sp_model_release(model));
}

TEST_MAIN
