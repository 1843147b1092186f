/* SPDX-License-Identifier: Apache-2.0 */
/* Runs on tensors that are refused, fail, are cancelled, or find no memory. */
#include <string.h>

#include <streampool/cancel.h>
#include <streampool/null_device.h>
#include <streampool/ops.h>

#include "base/heap.h"
#include "fake_cuda.h"
#include "support/onnx_writer.h"
#include "tensor_fixture.h"

static const sp_stream no_stream;

enum { ROWS = 5, OUT = ROWS * SMALL_OUT };

typedef struct small_case {
    sp_device device;
    sp_model model;
    sp_tensor x;
    float wanted[OUT];
} small_case;

static small_case small_begin(void)
{
    small_case c = {.device = segment_begin()};
    c.model = small_model(&(sp_model_options){.device = c.device});
    c.x = tensor_of_rows(c.device, 2, ROWS);
    small_of_rows(c.model, 2, ROWS, c.wanted);
    return c;
}

static void small_end(const small_case *c)
{
    CHECK_OK(sp_tensor_release(c->x));
    CHECK_OK(sp_model_release(c->model));
    segment_end();
}

static void check_works(const small_case *c)
{
    sp_tensor y;
    CHECK_OK(tensor_run_small(c->model, c->x, &y));
    CHECK(take_floats(y, c->wanted, OUT));
}

/* ---- refused arguments ---- */

static sp_tensor zeros(sp_device device, sp_dtype dtype, int64_t rows, int64_t columns)
{
    static const char bytes[64 * 8 * 8];
    const int64_t shape[] = {rows, columns};
    sp_tensor tensor = {0};
    CHECK_OK(sp_tensor_from_host(device, dtype, 2, shape, bytes,
                                 (uint64_t)(rows * columns) * sp_dtype_bytes(dtype), &tensor));
    return tensor;
}

static sp_status run_with(const small_case *c, const sp_model_tensor *input,
                          const sp_model_tensor *output)
{
    sp_model_tensor outputs[1] = {*output};
    const sp_status status = sp_model_run_tensors(c->model, no_stream, NULL, input, 1, outputs, 1);
    CHECK(outputs[0].tensor.bits == output->tensor.bits || status == SP_OK);
    return status;
}

static void check_refused(const small_case *c, sp_tensor x, sp_tensor y, sp_status status,
                          const char *message)
{
    const sp_model_tensor input = {.tensor = x}, output = {.tensor = y};
    CHECK_STATUS(run_with(c, &input, &output), status);
    CHECK_MESSAGE(message);
}

TEST(a_tensor_that_does_not_fit_is_refused)
{
    const small_case c = small_begin();
    sp_device other;
    CHECK_OK(sp_device_open(segment_is_cpu() ? "null" : "cpu", &other));
    const sp_tensor elsewhere = zeros(other, SP_F32, ROWS, SMALL_IN);
    const sp_tensor wide = zeros(c.device, SP_F32, ROWS, SMALL_IN + 1);
    const sp_tensor whole = zeros(c.device, SP_I32, ROWS, SMALL_IN);
    const sp_tensor y = zeros(c.device, SP_F32, ROWS, SMALL_OUT);
    const sp_tensor short_y = zeros(c.device, SP_F32, 1, SMALL_OUT);
    const sp_tensor stale = zeros(c.device, SP_F32, ROWS, SMALL_IN);
    static const int64_t shape[] = {ROWS, SMALL_OUT};
    sp_tensor repeated;
    CHECK_OK(sp_tensor_release(stale));
    CHECK_OK(sp_tensor_expand(short_y, 2, shape, &repeated));
    check_refused(&c, elsewhere, y, SP_INVALID, "input 0: the tensor is not on");
    check_refused(&c, c.x, elsewhere, SP_INVALID, "output 0: the tensor is not on");
    check_refused(&c, wide, y, SP_MISMATCH, "x");
    check_refused(&c, whole, y, SP_MISMATCH, "i32");
    check_refused(&c, c.x, short_y, SP_MISMATCH, "the given tensor is f32 of shape [1,3]");
    check_refused(&c, c.x, whole, SP_MISMATCH, "the given tensor is i32");
    check_refused(&c, stale, y, SP_INVALID, "input 0");
    check_refused(&c, c.x, stale, SP_INVALID, "output 0");
    check_refused(&c, c.x, repeated, SP_INVALID, "output 'y'");
    check_refused(&c, (sp_tensor){0}, y, SP_INVALID, "a tensor or host memory");
    const sp_tensor all[] = {elsewhere, wide, whole, y, short_y, repeated};
    for (uint32_t i = 0; i < SP_COUNT_OF(all); i++) CHECK_OK(sp_tensor_release(all[i]));
    check_works(&c);
    small_end(&c);
}

TEST(wrong_counts_names_and_null_are_refused)
{
    const small_case c = small_begin();
    sp_model_tensor x[3] = {{.tensor = c.x}, {.tensor = c.x}, {.tensor = c.x}}, y[2] = {0};
    sp_future future;
    CHECK_STATUS(sp_model_run_tensors(c.model, no_stream, NULL, x, 0, y, 1), SP_MISMATCH);
    CHECK_MESSAGE("input 'x' is missing");
    CHECK_STATUS(sp_model_run_tensors(c.model, no_stream, NULL, x, 2, y, 1), SP_MISMATCH);
    CHECK_STATUS(sp_model_run_tensors(c.model, no_stream, NULL, x, 1, y, 2), SP_MISMATCH);
    CHECK_STATUS(sp_model_run_tensors(c.model, no_stream, NULL, NULL, 1, y, 1), SP_INVALID);
    CHECK_STATUS(sp_model_run_tensors(c.model, no_stream, NULL, x, 1, NULL, 1), SP_INVALID);
    CHECK_STATUS(sp_model_run_tensors((sp_model){0}, no_stream, NULL, x, 1, y, 1), SP_INVALID);
    CHECK_STATUS(sp_model_submit_tensors(c.model, no_stream, NULL, x, 1, y, 1, NULL), SP_INVALID);
    x[0].name = "q";
    CHECK_STATUS(sp_model_run_tensors(c.model, no_stream, NULL, x, 1, y, 1), SP_NOT_FOUND);
    CHECK_MESSAGE("it has: x");
    x[0].name = "x";
    y[0].name = "z";
    CHECK_STATUS(sp_model_run_tensors(c.model, no_stream, NULL, x, 1, y, 1), SP_NOT_FOUND);
    y[0].name = y[1].name = "y";
    CHECK_STATUS(sp_model_run_tensors(c.model, no_stream, NULL, x, 1, y, 2), SP_INVALID);
    CHECK_MESSAGE("given twice");
    sp_host_tensor host = {0};
    y[0].host = &host;
    CHECK_STATUS(sp_model_submit_tensors(c.model, no_stream, NULL, x, 1, y, 1, &future),
                 SP_UNSUPPORTED);
    CHECK(future.bits == 0);
    y[0].tensor = c.x;
    CHECK_STATUS(sp_model_run_tensors(c.model, no_stream, NULL, x, 1, y, 1), SP_INVALID);
    CHECK_MESSAGE("not both");
    check_works(&c);
    small_end(&c);
}

TEST(host_memory_that_does_not_fit_is_refused)
{
    const small_case c = small_begin();
    float data[ROWS * SMALL_IN] = {0}, room[OUT - 1];
    sp_host_tensor host = {.data = data,
                           .bytes = sizeof data - 1,
                           .dtype = SP_F32,
                           .rank = 2,
                           .shape = {ROWS, SMALL_IN}};
    const sp_model_tensor input = {.host = &host};
    sp_model_tensor output = {.tensor = {0}};
    CHECK_STATUS(run_with(&c, &input, &output), SP_MISMATCH);
    CHECK_MESSAGE("79 bytes; its dtype and shape give 80");
    host.bytes++;
    host.data = NULL;
    CHECK_STATUS(run_with(&c, &input, &output), SP_INVALID);
    host.data = data;
    sp_host_tensor small = {.data = room, .capacity = sizeof room};
    output.host = &small;
    CHECK_STATUS(run_with(&c, &input, &output), SP_MISMATCH);
    CHECK_MESSAGE("needs 60 bytes; its capacity is 56");
    CHECK(small.bytes == 60 && small.rank == 2);
    small_end(&c);
}

TEST(wrong_streams_and_options_are_refused)
{
    const small_case c = small_begin();
    const sp_model_tensor x = {.tensor = c.x};
    sp_model_tensor y = {.tensor = {0}};
    sp_device other;
    CHECK_OK(sp_device_open(segment_is_cpu() ? "null" : "cpu", &other));
    const sp_stream foreign = new_stream_on(other), stale = new_stream_on(c.device);
    CHECK_OK(sp_stream_release(stale));
    CHECK_STATUS(sp_model_run_tensors(c.model, stale, NULL, &x, 1, &y, 1), SP_INVALID);
    CHECK_STATUS(sp_model_run_tensors(c.model, foreign, NULL, &x, 1, &y, 1), SP_INVALID);
    CHECK_MESSAGE("the stream is on");
    sp_run_options options = {.timeout_ns = SECOND};
    CHECK_STATUS(sp_model_run_tensors(c.model, no_stream, &options, &x, 1, &y, 1), SP_UNSUPPORTED);
    options.timeout_ns = -1;
    CHECK_STATUS(sp_model_run_tensors(c.model, no_stream, &options, &x, 1, &y, 1), SP_INVALID);
    options = (sp_run_options){.cancel_token = {77}};
    CHECK_STATUS(sp_model_run_tensors(c.model, no_stream, &options, &x, 1, &y, 1), SP_INVALID);
    CHECK(y.tensor.bits == 0);
    CHECK_OK(sp_stream_release(foreign));
    check_works(&c);
    small_end(&c);
}

TEST(a_frozen_output_is_refused)
{
    const small_case c = small_begin();
    const sp_tensor y = zeros(c.device, SP_F32, ROWS, SMALL_OUT);
    sp_tensor_info info;
    CHECK_OK(sp_tensor_get_info(y, &info));
    CHECK_OK(sp_storage_freeze(info.storage));
    check_refused(&c, c.x, y, SP_INVALID, "frozen");
    CHECK_OK(sp_tensor_release(y));
    check_works(&c);
    small_end(&c);
}

/* y = Neg(x), z = Abs(x), s = sums of the columns */
static sp_model load_three(sp_device device)
{
    static const int64_t dims[] = {-1, 2}, first = 0;
    writer graph = {0};
    writer axes = make_tensor("axes", 7, (const int64_t[]){1}, 1, &first, sizeof first);
    writer sum = make_node("ReduceSum", "x axes", "s");
    add_input(&graph, "x", 1, dims, 2);
    write_message(&graph, GRAPH_INITIALIZER_FIELD, &axes);
    add_attribute_int(&sum, "keepdims", 0);
    add_node(&graph, make_node("Neg", "x", "y"));
    add_node(&graph, make_node("Abs", "x", "z"));
    add_node(&graph, sum);
    add_output(&graph, "y");
    add_output(&graph, "z");
    add_output(&graph, "s");
    writer file = make_model(&graph, 13);
    sp_model model = {0};
    CHECK_OK(sp_model_load_from_memory(file.bytes, file.len, &(sp_model_options){.device = device},
                                       &model));
    writer_free(&file);
    return model;
}

TEST(outputs_that_overlap_are_refused)
{
    const small_case c = small_begin();
    const sp_model model = load_three(c.device);
    const sp_tensor x = zeros(c.device, SP_F32, 2, 2), all = zeros(c.device, SP_F32, 4, 2);
    const sp_model_tensor input = {.tensor = x};
    sp_model_tensor outputs[2] = {0};
    CHECK_OK(sp_tensor_slice(all, 0, 0, 2, 1, &outputs[0].tensor));
    CHECK_OK(sp_tensor_slice(all, 0, 1, 2, 1, &outputs[1].tensor));
    CHECK_STATUS(sp_model_run_tensors(model, no_stream, NULL, &input, 1, outputs, 2), SP_INVALID);
    CHECK_MESSAGE("output 'z' overlaps output 'y'");
    CHECK_OK(sp_tensor_release(outputs[1].tensor));
    CHECK_OK(sp_tensor_slice(all, 0, 2, 2, 1, &outputs[1].tensor));
    CHECK_OK(sp_model_run_tensors(model, no_stream, NULL, &input, 1, outputs, 2));
    const sp_tensor tensors[] = {x, all, outputs[0].tensor, outputs[1].tensor};
    for (uint32_t i = 0; i < SP_COUNT_OF(tensors); i++) CHECK_OK(sp_tensor_release(tensors[i]));
    CHECK_OK(sp_model_release(model));
    small_end(&c);
}

TEST(an_output_without_elements_overlaps_none)
{
    static const int64_t none[] = {0, 2};
    const small_case c = small_begin();
    const sp_model model = load_three(c.device);
    const sp_tensor x = zeros(c.device, SP_F32, 0, 2), all = zeros(c.device, SP_F32, 4, 2);
    const sp_model_tensor input = {.tensor = x};
    sp_model_tensor outputs[2] = {{.name = "y"}, {.name = "s"}};
    sp_tensor_info info;
    CHECK_OK(sp_tensor_get_info(all, &info));
    CHECK_OK(sp_tensor_from_storage(info.storage, 4, SP_F32, 2, none, NULL, &outputs[0].tensor));
    CHECK_OK(sp_tensor_select(all, 0, 0, &outputs[1].tensor));
    CHECK_OK(sp_model_run_tensors(model, no_stream, NULL, &input, 1, outputs, 2));
    const sp_tensor tensors[] = {x, all, outputs[0].tensor, outputs[1].tensor};
    for (uint32_t i = 0; i < SP_COUNT_OF(tensors); i++) CHECK_OK(sp_tensor_release(tensors[i]));
    CHECK_OK(sp_model_release(model));
    small_end(&c);
}

/* An output that is copied after the run is refused before it. */
TEST(a_frozen_view_is_refused_before_another_output_is_written)
{
    static const float values[] = {1, 2, 3, 4}, before[4];
    float got[4];
    const small_case c = small_begin();
    const sp_model model = load_three(c.device);
    const sp_tensor all = zeros(c.device, SP_F32, 2, 2), y = zeros(c.device, SP_F32, 2, 2);
    sp_model_tensor input = {.name = "x"}, outputs[2] = {{.tensor = y}};
    sp_tensor_info info;
    CHECK_OK(sp_tensor_from_host(c.device, SP_F32, 2, (const int64_t[]){2, 2}, values,
                                 sizeof values, &input.tensor));
    CHECK_OK(sp_tensor_transpose(all, 0, 1, &outputs[1].tensor));
    CHECK_OK(sp_tensor_get_info(all, &info));
    CHECK_OK(sp_storage_freeze(info.storage));
    CHECK_STATUS(sp_model_run_tensors(model, no_stream, NULL, &input, 1, outputs, 2), SP_INVALID);
    CHECK_MESSAGE("output 'z': a frozen storage");
    CHECK_OK(sp_tensor_read(y, got, sizeof got));
    CHECK_EQ_MEM(got, before, sizeof got);
    const sp_tensor tensors[] = {input.tensor, all, y, outputs[1].tensor};
    for (uint32_t i = 0; i < SP_COUNT_OF(tensors); i++) CHECK_OK(sp_tensor_release(tensors[i]));
    CHECK_OK(sp_model_release(model));
    small_end(&c);
}

/* ---- failures of a run ---- */

enum { SIZE = 5, COUNT = 3 };

/* y = Relu(Gather(x, i)) */
static sp_model load_gather(sp_device device)
{
    static const int64_t dims_x[] = {SIZE}, dims_i[] = {COUNT};
    writer graph = {0};
    add_input(&graph, "x", 1, dims_x, 1);
    add_input(&graph, "i", 7, dims_i, 1);
    add_node(&graph, make_node("Gather", "x i", "g"));
    add_node(&graph, make_node("Relu", "g", "y"));
    add_output(&graph, "y");
    writer file = make_model(&graph, 18);
    sp_model model = {0};
    CHECK_OK(sp_model_load_from_memory(file.bytes, file.len, &(sp_model_options){.device = device},
                                       &model));
    writer_free(&file);
    return model;
}

static void check_failure_reaches_readers(const char *cpu_ops)
{
    static const float data[SIZE] = {1, 2, 3, 4, 5}, wanted[COUNT] = {5, 1, 3};
    static const int64_t good[COUNT] = {4, -5, 2}, bad[COUNT] = {0, 9, 1};
    static const int64_t x_shape[] = {SIZE}, i_shape[] = {COUNT};
    const sp_device device = segment_begin();
    segment_set_ops(cpu_ops);
    const sp_model model = load_gather(device);
    sp_tensor x, right, wrong, y, sum;
    float got[COUNT];
    sp_future future;
    CHECK_OK(sp_tensor_from_host(device, SP_F32, 1, x_shape, data, sizeof data, &x));
    CHECK_OK(sp_tensor_from_host(device, SP_I64, 1, i_shape, good, sizeof good, &right));
    CHECK_OK(sp_tensor_from_host(device, SP_I64, 1, i_shape, bad, sizeof bad, &wrong));
    CHECK_OK(sp_tensor_create(device, SP_F32, 1, i_shape, &y));
    for (int round = 0; round < 3; round++) {
        sp_model_tensor inputs[2] = {{.tensor = x}, {.tensor = wrong}};
        sp_model_tensor output = {.tensor = y}, made = {.tensor = {0}};
        CHECK_OK(sp_model_submit_tensors(model, no_stream, NULL, inputs, 2, &output, 1, &future));
        CHECK_OK(sp_neg(y, &sum));
        CHECK_STATUS(sp_tensor_read(sum, got, sizeof got), SP_INVALID);
        CHECK_STATUS(sp_tensor_read(y, got, sizeof got), SP_INVALID);
        CHECK_MESSAGE("index 9 is out of range for a dimension of 5");
        CHECK_MESSAGE("(Gather");
        CHECK_STATUS(sp_future_wait(future), SP_INVALID);
        CHECK_MESSAGE("index 9 is out of range");
        CHECK_OK(sp_future_release(future));
        CHECK_OK(sp_tensor_release(sum));
        CHECK_STATUS(sp_stream_synchronize(current_on(device)), SP_INVALID);
        inputs[1].tensor = right; /* clears the poison */
        CHECK_OK(sp_model_run_tensors(model, no_stream, NULL, inputs, 2, &output, 1));
        CHECK_OK(sp_tensor_read(y, got, sizeof got));
        CHECK_EQ_MEM(got, wanted, sizeof got);
        CHECK_OK(sp_model_run_tensors(model, no_stream, NULL, inputs, 2, &made, 1));
        CHECK(take_floats(made.tensor, wanted, COUNT));
    }
    const sp_tensor tensors[] = {x, right, wrong, y};
    for (uint32_t i = 0; i < SP_COUNT_OF(tensors); i++) CHECK_OK(sp_tensor_release(tensors[i]));
    CHECK_OK(sp_model_release(model));
    segment_end();
    segment_set_ops(NULL);
}

TEST(a_run_that_fails_poisons_its_outputs)
{
    check_failure_reaches_readers("");
}

TEST(a_step_on_the_cpu_that_fails_poisons_the_outputs)
{
    check_failure_reaches_readers("Gather");
}

TEST(a_step_behind_those_on_the_cpu_is_skipped_if_they_fail)
{
    check_failure_reaches_readers("Gather,Relu");
}

TEST(a_poisoned_input_poisons_the_outputs)
{
    const small_case c = small_begin();
    const sp_tensor x = zeros(c.device, SP_F32, ROWS, SMALL_IN);
    sp_tensor_info info;
    CHECK_OK(sp_tensor_get_info(x, &info));
    submit_failing(current_on(c.device), info.storage);
    sp_tensor y;
    float got[OUT];
    CHECK_OK(tensor_run_small(c.model, x, &y));
    CHECK_STATUS(sp_tensor_read(y, got, sizeof got), SP_FAILED);
    CHECK_MESSAGE("fail on stream");
    (void)sp_stream_synchronize(current_on(c.device));
    CHECK_OK(sp_tensor_release(y));
    CHECK_OK(sp_tensor_release(x));
    check_works(&c);
    small_end(&c);
}

/* ---- cancel ---- */

TEST(a_cancelled_run_poisons_its_outputs)
{
    const small_case c = small_begin();
    const sp_stream stream = new_stream_on(c.device);
    float got[OUT];
    for (int by_token = 0; by_token < 2; by_token++) {
        sp_cancel_token token;
        CHECK_OK(sp_cancel_token_create(&token));
        const sp_run_options options = {.cancel_token = token};
        const sp_model_tensor x = {.tensor = c.x};
        sp_model_tensor y = {.tensor = {0}}, other = {.tensor = {0}};
        sp_future future;
        gate held = gate_on(c.device, stream);
        CHECK_OK(sp_model_submit_tensors(c.model, stream, &options, &x, 1, &y, 1, &future));
        CHECK_OK(sp_model_run_tensors(c.model, stream, NULL, &x, 1, &other, 1));
        if (by_token == 1) CHECK_OK(sp_cancel_token_cancel(token));
        else CHECK_OK(sp_future_cancel(future));
        gate_open(&held);
        CHECK_STATUS(sp_future_wait(future), SP_CANCELLED);
        CHECK_STATUS(sp_tensor_read(y.tensor, got, sizeof got), SP_CANCELLED);
        CHECK(take_floats(other.tensor, c.wanted, OUT));
        CHECK_OK(sp_future_release(future));
        CHECK_OK(sp_tensor_release(y.tensor));
        y.tensor.bits = 0;
        if (by_token == 1) {
            CHECK_STATUS(sp_model_run_tensors(c.model, stream, &options, &x, 1, &y, 1),
                         SP_CANCELLED);
            CHECK(y.tensor.bits == 0);
        }
        CHECK_OK(sp_cancel_token_release(token));
        gate_destroy(&held);
    }
    (void)sp_stream_synchronize(stream);
    CHECK_OK(sp_stream_release(stream));
    check_works(&c);
    small_end(&c);
}

/* ---- memory ---- */

static sp_status submit_small(const small_case *c, sp_stream stream, sp_tensor *y,
                              sp_future *future)
{
    const sp_model_tensor x = {.tensor = c->x};
    sp_model_tensor output = {.tensor = *y};
    const sp_status status =
        sp_model_submit_tensors(c->model, stream, NULL, &x, 1, &output, 1, future);
    *y = output.tensor;
    return status;
}

static void check_host_memory(const small_case *c, sp_tensor given)
{
    sp_status status = SP_OUT_OF_MEMORY;
    uint64_t skip = 0;
    for (; status != SP_OK && skip < 1000; skip++) {
        sp_tensor y = given;
        sp_future future = {0};
        sp_heap_fail_after(skip);
        status = submit_small(c, no_stream, &y, &future);
        const bool has_failed = sp_heap_has_failed();
        sp_heap_fail_after(UINT64_MAX);
        CHECK(status == SP_OK || (status == SP_OUT_OF_MEMORY && has_failed));
        CHECK((status == SP_OK) == (future.bits != 0));
        if (status != SP_OK) CHECK(y.bits == given.bits);
        if (status != SP_OK) continue;
        CHECK_OK(sp_future_wait(future));
        CHECK_OK(sp_future_release(future));
        if (y.bits != given.bits) CHECK(take_floats(y, c->wanted, OUT));
    }
    test_note("%u allocations of a call have failed", (uint32_t)skip - 1);
    CHECK(skip > 3);
}

TEST(each_allocation_of_host_memory_may_fail)
{
    const small_case c = small_begin();
    const sp_tensor given = zeros(c.device, SP_F32, ROWS, SMALL_OUT);
    check_host_memory(&c, (sp_tensor){0}); /* the first runs create plan and context */
    check_host_memory(&c, given);
    float got[OUT];
    CHECK_OK(sp_tensor_read(given, got, sizeof got));
    CHECK_EQ_MEM(got, c.wanted, sizeof got);
    CHECK_OK(sp_tensor_release(given));
    check_works(&c);
    small_end(&c);
}

/* One allocation of a run on a second stream fails: true if it was that of its context, and the run
 * follows that of the first stream, which is held. */
static bool is_context_shared(const small_case *c, uint64_t skip)
{
    const sp_stream one = new_stream_on(c->device), two = new_stream_on(c->device);
    sp_tensor first = {0}, second = zeros(c->device, SP_F32, ROWS, SMALL_OUT);
    sp_future done_first, done_second = {0};
    gate held = gate_on(c->device, one);
    CHECK_OK(submit_small(c, one, &first, &done_first));
    const uint32_t before = model_info_of(c->model).context_count;
    sp_heap_fail_after(skip);
    const sp_status status = submit_small(c, two, &second, &done_second);
    const bool has_failed = sp_heap_has_failed();
    sp_heap_fail_after(UINT64_MAX);
    const bool is_shared =
        status == SP_OK && has_failed && model_info_of(c->model).context_count == before;
    if (is_shared) CHECK_STATUS(sp_future_wait_for(done_second, 5 * MILLISECOND), SP_TIMEOUT);
    gate_open(&held);
    CHECK_OK(sp_future_wait(done_first));
    if (status == SP_OK) CHECK_OK(sp_future_wait(done_second));
    CHECK(take_floats(first, c->wanted, OUT));
    if (status == SP_OK) CHECK(take_floats(second, c->wanted, OUT));
    else CHECK_OK(sp_tensor_release(second));
    CHECK_OK(sp_future_release(done_first));
    CHECK_OK(sp_future_release(done_second));
    gate_destroy(&held);
    CHECK_OK(sp_stream_release(one));
    CHECK_OK(sp_stream_release(two));
    return is_shared;
}

TEST(without_memory_for_a_context_a_run_follows_that_of_another_stream)
{
    uint32_t shared = 0;
    for (uint64_t skip = 0; skip < 12; skip++) {
        const small_case c = small_begin();
        check_works(&c);
        if (is_context_shared(&c, skip)) shared++;
        small_end(&c);
    }
    test_note("%u of 12 allocations were of a context", shared);
    CHECK(shared > 0);
}

TEST(every_call_of_the_driver_may_fail)
{
    if (!segment_is_cuda()) SKIP("this is about the driver");
    static const char *const calls[] = {"cuMemHostAlloc",       "cuMemAlloc",
                                        "cuGraphCreate",        "cuGraphInstantiate",
                                        "cuGraphAddKernelNode", "cuGraphExecKernelNodeSetParams",
                                        "cuGraphLaunch"};
    for (size_t i = 0; i < SP_COUNT_OF(calls); i++) {
        for (uint64_t nth = 1; nth <= 3; nth++) {
            const small_case c = small_begin();
            float got[OUT];
            sp_tensor y = {0};
            fake_cuda_fail_call(calls[i], nth, 1, CUDA_ERROR_OUT_OF_MEMORY);
            sp_status status = tensor_run_small(c.model, c.x, &y);
            if (status == SP_OK) status = sp_tensor_read(y, got, sizeof got);
            if (status != SP_OK) CHECK_STATUS(status, SP_OUT_OF_MEMORY);
            fake_cuda_reset();
            if (y.bits != 0) CHECK_OK(sp_tensor_release(y));
            (void)sp_stream_synchronize(current_on(c.device));
            check_works(&c);
            small_end(&c);
        }
    }
}

/* On a device of its own, whose allocations of device memory and commands fail in turn. */
TEST(each_allocation_and_command_of_the_device_may_fail)
{
    const sp_device none = segment_begin();
    (void)none;
    null_fixture null = null_open();
    const sp_model model = small_model(&null.options);
    const sp_tensor x = tensor_of_rows(null.device, 2, ROWS);
    float wanted[OUT], got[OUT];
    small_of_rows(model, 2, ROWS, wanted);
    for (uint64_t skip = 0; skip < 6; skip++) {
        sp_tensor y = {0};
        CHECK_OK(sp_device_empty_cache(null.device));
        CHECK_OK(sp_null_fail_allocation(null.device, skip));
        const sp_status status = tensor_run_small(model, x, &y);
        CHECK(status == SP_OK || status == SP_OUT_OF_MEMORY);
        CHECK((status == SP_OK) == (y.bits != 0));
        CHECK_OK(sp_null_fail_allocation(null.device, UINT64_MAX));
        if (status == SP_OK) CHECK(take_floats(y, wanted, OUT));
    }
    for (uint64_t skip = 0; skip < 4; skip++) {
        sp_tensor y = {0};
        CHECK_OK(sp_null_fail_command(null.device, skip));
        CHECK_OK(tensor_run_small(model, x, &y));
        const sp_status status = sp_tensor_read(y, got, sizeof got);
        CHECK(status == SP_OK || status == SP_FAILED);
        if (skip == 0) CHECK_STATUS(status, SP_FAILED);
        if (status == SP_OK) CHECK_EQ_MEM(got, wanted, sizeof got);
        CHECK_OK(sp_null_fail_command(null.device, UINT64_MAX));
        CHECK_OK(sp_tensor_release(y));
        (void)sp_stream_synchronize(current_on(null.device));
    }
    CHECK_OK(sp_tensor_release(x));
    CHECK_OK(sp_model_release(model));
    segment_end();
}

TEST_MAIN
