/* SPDX-License-Identifier: Apache-2.0 */
/* Models of several plans on tensors: the call runs them, and refuses what other models refuse. */
#include <string.h>

#include "base/heap.h"
#include "exec/future.h"
#include "support/onnx_writer.h"
#include "tensor_fixture.h"

static const sp_stream no_stream;

enum { LARGE = SP_SHAPE_INPUT_BYTES, PLACES = 3 }; /* x is too large for a plan of its values */

static const int64_t large[] = {LARGE}, wide[] = {LARGE, 2};
static const float x_values[LARGE] = {[0] = 1, [2] = -2, [LARGE - 1] = 3};
static const int64_t y_values[PLACES] = {0, 2, LARGE - 1};

typedef struct partial_call {
    sp_device device;
    sp_model model;
    sp_model_tensor x, outputs[3]; /* y, z, w */
} partial_call;

static sp_tensor floats(sp_device device, uint32_t rank, const int64_t *shape)
{
    static const float values[2 * LARGE];
    const uint64_t count = rank == 1 ? LARGE : 2 * LARGE;
    sp_tensor tensor = {0};
    CHECK_OK(
        sp_tensor_from_host(device, SP_F32, rank, shape, values, count * sizeof *values, &tensor));
    return tensor;
}

/* y = NonZero(x), whose size follows from values that the run computes; z = Neg(x); w = Abs(x) */
static partial_call partial_begin(void)
{
    partial_call c = {.device = segment_begin(), .x = {.name = "x"}};
    writer graph = {0};
    add_input(&graph, "x", 1, large, 1);
    add_node(&graph, make_node("NonZero", "x", "y"));
    add_node(&graph, make_node("Neg", "x", "z"));
    add_node(&graph, make_node("Abs", "x", "w"));
    add_output(&graph, "y");
    add_output(&graph, "z");
    add_output(&graph, "w");
    writer file = make_model(&graph, 13);
    CHECK_OK(sp_model_load_from_memory(file.bytes, file.len,
                                       &(sp_model_options){.device = c.device}, &c.model));
    writer_free(&file);
    CHECK_OK(
        sp_tensor_from_host(c.device, SP_F32, 1, large, x_values, sizeof x_values, &c.x.tensor));
    return c;
}

static void partial_end(const partial_call *c)
{
    for (uint32_t i = 0; i < 3; i++) CHECK_OK(sp_tensor_release(c->outputs[i].tensor));
    CHECK_OK(sp_tensor_release(c->x.tensor));
    CHECK_OK(sp_model_release(c->model));
    segment_end();
}

static sp_status partial_run(partial_call *c)
{
    return sp_model_run_tensors(c->model, no_stream, NULL, &c->x, 1, c->outputs, 3);
}

static bool are_same(const void *a, const void *b, size_t bytes)
{
    return memcmp(a, b, bytes) == 0;
}

/* Whether nothing was written to it since `floats`. */
static bool is_unwritten(sp_tensor tensor)
{
    static const float zeros[LARGE];
    float got[LARGE] = {1};
    return sp_tensor_read(tensor, got, sizeof got) == SP_OK && are_same(got, zeros, sizeof got);
}

/* ---- refused outputs ---- */

TEST(outputs_that_overlap_are_refused)
{
    partial_call c = partial_begin();
    const sp_tensor table = floats(c.device, 2, wide);
    sp_tensor list;
    CHECK_OK(sp_tensor_reshape(table, 1, (const int64_t[]){2 * LARGE}, &list));
    CHECK_OK(sp_tensor_slice(list, 0, 0, LARGE, 1, &c.outputs[1].tensor));
    CHECK_OK(sp_tensor_slice(list, 0, LARGE - 1, LARGE, 1, &c.outputs[2].tensor));
    CHECK_STATUS(partial_run(&c), SP_INVALID);
    CHECK_MESSAGE("output 'w' overlaps output 'z'");
    CHECK(c.outputs[0].tensor.bits == 0);
    CHECK(is_unwritten(c.outputs[1].tensor) && is_unwritten(c.outputs[2].tensor));
    CHECK_OK(sp_tensor_release(c.outputs[2].tensor));
    CHECK_OK(sp_tensor_slice(list, 0, LARGE, LARGE, 1, &c.outputs[2].tensor));
    CHECK_OK(partial_run(&c));
    CHECK_OK(sp_tensor_release(list));
    CHECK_OK(sp_tensor_release(table));
    partial_end(&c);
}

TEST(a_frozen_output_is_refused_before_another_one_is_written)
{
    partial_call c = partial_begin();
    sp_tensor_info info;
    c.outputs[1].tensor = floats(c.device, 1, large);
    c.outputs[2].tensor = floats(c.device, 1, large);
    CHECK_OK(sp_tensor_get_info(c.outputs[2].tensor, &info));
    CHECK_OK(sp_storage_freeze(info.storage));
    CHECK_STATUS(partial_run(&c), SP_INVALID);
    CHECK_MESSAGE("output 'w': ");
    CHECK_MESSAGE("frozen");
    CHECK(c.outputs[0].tensor.bits == 0);
    CHECK(is_unwritten(c.outputs[1].tensor));
    partial_end(&c);
}

TEST(too_little_host_memory_is_described)
{
    partial_call c = partial_begin();
    int64_t room[PLACES];
    sp_host_tensor host = {.data = room, .capacity = sizeof room - 1};
    c.outputs[0].host = &host;
    CHECK_STATUS(partial_run(&c), SP_MISMATCH);
    CHECK_MESSAGE("output 'y'");
    CHECK(host.dtype == SP_I64 && host.rank == 2 && host.bytes == sizeof room);
    CHECK(host.data == room && host.capacity == sizeof room - 1);
    host.capacity++;
    CHECK_OK(partial_run(&c));
    CHECK_EQ_MEM(room, y_values, sizeof room);
    partial_end(&c);
}

/* ---- memory ---- */

/* Some may fail without a failure of the call. True if one has failed. */
static bool is_run_without_memory(partial_call *c, uint64_t skip)
{
    int64_t got[PLACES];
    sp_future future;
    sp__futures_deinit(); /* so that a future takes memory */
    sp_heap_fail_after(skip);
    const sp_status status =
        sp_model_submit_tensors(c->model, no_stream, NULL, &c->x, 1, c->outputs, 3, &future);
    const bool has_failed = sp_heap_has_failed();
    sp_heap_fail_after(UINT64_MAX);
    const bool is_done = status == SP_OK;
    CHECK(is_done || (status == SP_OUT_OF_MEMORY && has_failed));
    CHECK((future.bits != 0) == is_done);
    for (uint32_t i = 0; i < 3; i++) CHECK((c->outputs[i].tensor.bits != 0) == is_done);
    if (is_done) {
        CHECK_OK(sp_future_query(future));
        CHECK_OK(sp_tensor_read(c->outputs[0].tensor, got, sizeof got));
        CHECK_EQ_MEM(got, y_values, sizeof got);
    }
    CHECK_OK(sp_future_release(future));
    for (uint32_t i = 0; i < 3; i++) {
        CHECK_OK(sp_tensor_release(c->outputs[i].tensor));
        c->outputs[i].tensor.bits = 0;
    }
    return has_failed;
}

TEST(each_allocation_of_host_memory_may_fail)
{
    partial_call c = partial_begin();
    CHECK(!is_run_without_memory(&c, UINT64_MAX)); /* what later runs find is built */
    uint64_t skip = 0;
    while (skip < 1000 && is_run_without_memory(&c, skip)) skip++;
    test_note("%u allocations of a call have failed", (uint32_t)skip);
    CHECK(skip > 10 && skip < 1000);
    partial_end(&c);
}

TEST_MAIN
