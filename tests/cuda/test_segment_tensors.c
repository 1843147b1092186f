/* SPDX-License-Identifier: Apache-2.0 */
/* Models on tensors: the bits of sp_model_run, in the order of streams and hazards. */
#include <stdio.h>
#include <string.h>

#include "device/cuda/cuda_api.h"
#include "support/onnx_writer.h"
#include "tensor_fixture.h"

static const sp_stream no_stream;

/* ---- bits ---- */

TEST(every_model_has_the_bits_of_the_cpu)
{
    const sp_device device = segment_begin();
    const bool is_instrumented = test_scale() < 1; /* large models take seconds each there */
    const char *const *names = is_instrumented ? fixture_models : fixture_all_models;
    const uint32_t count = is_instrumented ? FIXTURE_MODELS : FIXTURE_ALL_MODELS;
    for (uint32_t i = 0; i < count; i++) {
        model_case c;
        if (!segment_open(names[i], device, &c)) SKIP("no shared data");
        tensor_case t = tensor_case_make(&c, device);
        for (uint32_t round = 0; round < 2; round++) {
            CHECK_OK(tensor_case_run(&t, no_stream));
            const bool is_same = tensor_case_take(&t);
            CHECK(is_same);
            if (!is_same) test_note("%s differs", names[i]);
        }
        tensor_case_free(&t);
        case_close(&c);
    }
    segment_end();
}

/* ---- order ---- */

enum { ROWS = 5, OUT = ROWS * SMALL_OUT };

/* Whether the run of a future has to wait for something. */
static bool is_held(sp_future future)
{
    const sp_status status = sp_future_wait_for(future, 5 * MILLISECOND);
    return status == SP_TIMEOUT;
}

static sp_status submit(sp_model model, sp_stream stream, sp_tensor x, sp_tensor *y,
                        sp_future *future)
{
    const sp_model_tensor input = {.tensor = x};
    sp_model_tensor output = {.tensor = *y};
    const sp_status status =
        sp_model_submit_tensors(model, stream, NULL, &input, 1, &output, 1, future);
    *y = output.tensor;
    return status;
}

/* The second model is submitted before the first one has begun. */
static void check_two_in_a_row(bool are_on_one_stream)
{
    const sp_device device = segment_begin();
    const sp_model first = small_model(&(sp_model_options){.device = device});
    const sp_model second = tanh_model(device);
    float y[OUT], z[OUT];
    small_of_rows(first, 3, ROWS, y);
    tanh_of(y, OUT, z);
    const sp_tensor x = tensor_of_rows(device, 3, ROWS);
    const sp_stream one = new_stream_on(device);
    const sp_stream two = are_on_one_stream ? one : new_stream_on(device);
    gate held = gate_on(device, one);
    sp_tensor between = {0}, result = {0};
    sp_future done_first, done_second;
    CHECK_OK(submit(first, one, x, &between, &done_first));
    CHECK_OK(submit(second, two, between, &result, &done_second));
    CHECK_OK(sp_tensor_release(between));
    CHECK_OK(sp_tensor_release(x));
    CHECK(is_held(done_first));
    CHECK(is_held(done_second));
    gate_open(&held);
    CHECK_OK(sp_future_wait(done_second));
    CHECK_OK(sp_future_query(done_first));
    CHECK(take_floats(result, z, OUT));
    CHECK_OK(sp_future_release(done_first));
    CHECK_OK(sp_future_release(done_second));
    gate_destroy(&held);
    CHECK_OK(sp_stream_release(one));
    if (!are_on_one_stream) CHECK_OK(sp_stream_release(two));
    CHECK_OK(sp_model_release(first));
    CHECK_OK(sp_model_release(second));
    segment_end();
}

TEST(two_models_in_a_row_need_no_wait_between_them)
{
    check_two_in_a_row(true);
}

TEST(two_models_on_two_streams_are_ordered_by_the_tensor_between_them)
{
    check_two_in_a_row(false);
}

TEST(an_output_that_another_run_reads_is_written_after_it)
{
    const sp_device device = segment_begin();
    const sp_model model = tanh_model(device);
    static const float old[OUT] = {0.5f, -1, 2}, fresh[OUT] = {-0.25f, 3, 1};
    float old_result[OUT], fresh_result[OUT];
    tanh_of(old, OUT, old_result);
    tanh_of(fresh, OUT, fresh_result);
    static const int64_t shape[] = {ROWS, SMALL_OUT};
    sp_tensor x, other;
    CHECK_OK(sp_tensor_from_host(device, SP_F32, 2, shape, old, sizeof old, &x));
    CHECK_OK(sp_tensor_from_host(device, SP_F32, 2, shape, fresh, sizeof fresh, &other));
    const sp_stream slow = new_stream_on(device), fast = new_stream_on(device);
    gate held = gate_on(device, slow);
    sp_tensor y = {0}, into = x;
    sp_future reads, writes;
    CHECK_OK(submit(model, slow, x, &y, &reads));
    CHECK_OK(submit(model, fast, other, &into, &writes));
    CHECK(into.bits == x.bits);
    CHECK(is_held(writes));
    gate_open(&held);
    CHECK_OK(sp_future_wait(writes));
    CHECK(take_floats(y, old_result, OUT));
    CHECK(take_floats(x, fresh_result, OUT));
    CHECK_OK(sp_future_release(reads));
    CHECK_OK(sp_future_release(writes));
    CHECK_OK(sp_tensor_release(other));
    gate_destroy(&held);
    CHECK_OK(sp_stream_release(slow));
    CHECK_OK(sp_stream_release(fast));
    CHECK_OK(sp_model_release(model));
    segment_end();
}

TEST(runs_on_one_stream_share_a_context_however_many_are_queued)
{
    enum { RUNS = 50 };
    const sp_device device = segment_begin();
    const sp_model model = small_model(&(sp_model_options){.device = device});
    const sp_tensor x = tensor_of_rows(device, 0, ROWS);
    float y[OUT];
    small_of_rows(model, 0, ROWS, y);
    const uint32_t before = model_info_of(model).context_count;
    const sp_stream stream = new_stream_on(device), other = new_stream_on(device);
    gate held = gate_on(device, stream);
    gate_hold(&held, other);
    sp_tensor results[RUNS];
    for (uint32_t i = 0; i < RUNS; i++) {
        const sp_model_tensor input = {.tensor = x};
        sp_model_tensor output = {.tensor = {0}};
        CHECK_OK(
            sp_model_run_tensors(model, i % 5 == 4 ? other : stream, NULL, &input, 1, &output, 1));
        results[i] = output.tensor;
    }
    CHECK_EQ_U64(model_info_of(model).context_count, before + 2);
    gate_open(&held);
    for (uint32_t i = 0; i < RUNS; i++) CHECK(take_floats(results[i], y, OUT));
    CHECK_EQ_U64(model_info_of(model).context_count, before + 2);
    gate_destroy(&held);
    CHECK_OK(sp_tensor_release(x));
    CHECK_OK(sp_stream_release(stream));
    CHECK_OK(sp_stream_release(other));
    CHECK_OK(sp_model_release(model));
    segment_end();
}

TEST(everything_may_be_released_while_the_run_is_queued)
{
    const sp_device device = segment_begin();
    const sp_model model = small_model(&(sp_model_options){.device = device});
    const sp_tensor x = tensor_of_rows(device, 7, ROWS);
    float wanted[OUT];
    small_of_rows(model, 7, ROWS, wanted);
    const sp_stream stream = new_stream_on(device);
    gate held = gate_on(device, stream);
    const sp_model_tensor input = {.tensor = x};
    sp_model_tensor output = {.tensor = {0}};
    CHECK_OK(sp_model_run_tensors(model, stream, NULL, &input, 1, &output, 1));
    CHECK_OK(sp_model_release(model));
    CHECK_OK(sp_tensor_release(x));
    CHECK_OK(sp_stream_release(stream));
    gate_open(&held);
    CHECK(take_floats(output.tensor, wanted, OUT));
    gate_destroy(&held);
    segment_end();
}

/* On the same tensors no node of the graph is changed. */
TEST(a_run_on_cuda_is_one_launch_of_a_graph)
{
    enum { RUNS = 20 };
    if (!segment_is_cuda()) SKIP("not cuda");
    const sp_device device = segment_begin();
    segment_set_ops(""); /* else the run is in segments */
    const sp_model model = small_model(&(sp_model_options){.device = device});
    float wanted[2][OUT];
    sp_tensor x[2], y[2] = {0};
    for (uint32_t i = 0; i < 2; i++) {
        x[i] = tensor_of_rows(device, i, ROWS);
        small_of_rows(model, i, ROWS, wanted[i]);
        CHECK_OK(tensor_run_small(model, x[i], &y[i]));
    }
    const uint64_t launches = sp__cuda_call_count(SP_CUDA_CALL_cuGraphLaunch);
    const uint64_t kernels = sp__cuda_call_count(SP_CUDA_CALL_cuLaunchKernel);
    const uint64_t bound = sp__cuda_call_count(SP_CUDA_CALL_cuGraphExecKernelNodeSetParams);
    for (uint32_t i = 0; i < 2 * RUNS; i++) {
        const uint32_t which = i / RUNS;
        const sp_model_tensor input = {.tensor = x[which]};
        sp_model_tensor output = {.tensor = y[which]};
        CHECK_OK(sp_model_run_tensors(model, no_stream, NULL, &input, 1, &output, 1));
    }
    for (uint32_t i = 0; i < 2; i++) {
        CHECK(take_floats(y[i], wanted[i], OUT));
        CHECK_OK(sp_tensor_release(x[i]));
    }
    CHECK_EQ_U64(sp__cuda_call_count(SP_CUDA_CALL_cuLaunchKernel), kernels);
    CHECK_EQ_U64(sp__cuda_call_count(SP_CUDA_CALL_cuGraphLaunch), launches + 2 * RUNS);
    const uint64_t changed =
        sp__cuda_call_count(SP_CUDA_CALL_cuGraphExecKernelNodeSetParams) - bound;
    CHECK(changed > 0 && changed <= 2 * (uint64_t)model_info_of(model).step_count);
    CHECK_OK(sp_model_release(model));
    segment_end();
    segment_set_ops(NULL);
}

/* ---- threads ---- */

typedef struct shared_load {
    tensor_case *t;
    sp_device device;
    uint64_t rounds;
    sp_atomic_u32 differing;
} shared_load;

static void run_shared(void *arg, uint32_t index)
{
    shared_load *load = arg;
    tensor_case mine = *load->t;
    (void)index;
    for (uint64_t i = 0; i < load->rounds; i++) {
        CHECK_OK(tensor_case_run(&mine, no_stream));
        if (!tensor_case_take(&mine)) raise_by_one(&load->differing);
    }
}

TEST(a_tensor_is_the_input_of_runs_on_many_streams_at_once)
{
    const sp_device device = segment_begin();
    model_case c;
    if (!segment_open("torch_mlp", device, &c)) SKIP("no shared data");
    tensor_case t = tensor_case_make(&c, device);
    shared_load load = {.t = &t, .device = device, .rounds = test_count(500, 20)};
    test_threads(8, run_shared, &load);
    CHECK_EQ_U64(sp_load_relaxed(&load.differing), 0);
    tensor_case_free(&t);
    case_close(&c);
    segment_end();
}

/* ---- views ---- */

TEST(inputs_and_outputs_may_be_views)
{
    enum { WIDE = 3 * SMALL_OUT };
    const sp_device device = segment_begin();
    const sp_model model = small_model(&(sp_model_options){.device = device});
    float flat[ROWS * SMALL_IN], turned[ROWS * SMALL_IN], wanted[OUT], all[ROWS * WIDE];
    small_fill_rows(flat, 11, ROWS);
    small_of_rows(model, 11, ROWS, wanted);
    for (uint32_t i = 0; i < ROWS * SMALL_IN; i++) {
        turned[i % SMALL_IN * ROWS + i / SMALL_IN] = flat[i];
    }
    static const int64_t columns[] = {SMALL_IN, ROWS}, wide[] = {ROWS, WIDE};
    sp_tensor held, x, room, y;
    CHECK_OK(sp_tensor_from_host(device, SP_F32, 2, columns, turned, sizeof turned, &held));
    CHECK_OK(sp_tensor_transpose(held, 0, 1, &x));
    memset(all, 0x11, sizeof all);
    CHECK_OK(sp_tensor_from_host(device, SP_F32, 2, wide, all, sizeof all, &room));
    CHECK_OK(sp_tensor_slice(room, 1, 2, SMALL_OUT, 2, &y));
    const sp_model_tensor input = {.tensor = x};
    sp_model_tensor output = {.tensor = y};
    CHECK_OK(sp_model_run_tensors(model, no_stream, NULL, &input, 1, &output, 1));
    CHECK(output.tensor.bits == y.bits);
    for (uint32_t i = 0; i < OUT; i++) {
        all[i / SMALL_OUT * WIDE + 2 + i % SMALL_OUT * 2] = wanted[i];
    }
    float got[ROWS * WIDE];
    CHECK_OK(sp_tensor_read(room, got, sizeof got));
    CHECK_EQ_MEM(got, all, sizeof got);
    const sp_tensor tensors[] = {held, x, room, y};
    for (uint32_t i = 0; i < SP_COUNT_OF(tensors); i++) CHECK_OK(sp_tensor_release(tensors[i]));
    CHECK_OK(sp_model_release(model));
    segment_end();
}

TEST(outputs_may_be_parts_of_one_storage_and_of_that_of_the_input)
{
    const sp_device device = segment_begin();
    const sp_model model = tanh_model(device);
    float values[3 * OUT], wanted[3 * OUT];
    for (uint32_t i = 0; i < 3 * OUT; i++) values[i] = (float)i * 0.125f - 2;
    static const int64_t shape[] = {3 * ROWS, SMALL_OUT};
    sp_tensor all, first, second, both;
    CHECK_OK(sp_tensor_from_host(device, SP_F32, 2, shape, values, sizeof values, &all));
    CHECK_OK(sp_tensor_slice(all, 0, 0, ROWS, 1, &first));
    CHECK_OK(sp_tensor_slice(all, 0, ROWS, ROWS, 1, &second));
    CHECK_OK(sp_tensor_slice(all, 0, 1, 2 * ROWS, 1, &both));
    memcpy(wanted, values, sizeof wanted);
    sp_model_tensor input = {.tensor = first}, output = {.tensor = second};
    CHECK_OK(sp_model_run_tensors(model, no_stream, NULL, &input, 1, &output, 1));
    tanh_of(wanted, OUT, wanted + OUT);
    /* In place, and moved by a row. */
    input.tensor = second;
    output.tensor = second;
    CHECK_OK(sp_model_run_tensors(model, no_stream, NULL, &input, 1, &output, 1));
    float again[OUT];
    memcpy(again, wanted + OUT, sizeof again);
    tanh_of(again, OUT, wanted + OUT);
    sp_tensor low;
    CHECK_OK(sp_tensor_slice(all, 0, 0, 2 * ROWS, 1, &low));
    input.tensor = low;
    output.tensor = both;
    CHECK_OK(sp_model_run_tensors(model, no_stream, NULL, &input, 1, &output, 1));
    float moved[2 * OUT];
    tanh_of(wanted, 2 * OUT, moved);
    memcpy(wanted + SMALL_OUT, moved, sizeof moved);
    const sp_tensor tensors[] = {first, second, both, low};
    for (uint32_t i = 0; i < SP_COUNT_OF(tensors); i++) CHECK_OK(sp_tensor_release(tensors[i]));
    CHECK(take_floats(all, wanted, 3 * OUT));
    CHECK_OK(sp_model_release(model));
    segment_end();
}

TEST(tensors_may_have_no_elements)
{
    const sp_device device = segment_begin();
    const sp_model model = small_model(&(sp_model_options){.device = device});
    sp_tensor x = tensor_of_rows(device, 0, 0), y;
    sp_tensor_info info;
    for (int round = 0; round < 2; round++) {
        CHECK_OK(tensor_run_small(model, x, &y));
        CHECK_OK(sp_tensor_get_info(y, &info));
        CHECK(info.rank == 2 && info.shape[0] == 0 && info.shape[1] == SMALL_OUT);
        CHECK_OK(sp_tensor_read(y, NULL, 0));
        CHECK_OK(sp_tensor_release(y));
    }
    CHECK_OK(sp_tensor_release(x));
    CHECK_OK(sp_model_release(model));
    segment_end();
}

/* ---- host memory ---- */

TEST(host_memory_and_tensors_may_be_mixed)
{
    const sp_device device = segment_begin();
    const sp_model model = small_model(&(sp_model_options){.device = device});
    float x[ROWS * SMALL_IN], wanted[OUT], y[OUT] = {0};
    static float bias[SMALL_OUT] = {-0.5f, 0.5f, -1.0f}; /* the default of b */
    static const int64_t bias_shape[] = {SMALL_OUT};
    small_fill_rows(x, 20, ROWS);
    small_of_rows(model, 20, ROWS, wanted);
    sp_tensor b;
    CHECK_OK(sp_tensor_from_host(device, SP_F32, 1, bias_shape, bias, sizeof bias, &b));
    sp_host_tensor host = {
        .data = x, .bytes = sizeof x, .dtype = SP_F32, .rank = 2, .shape = {ROWS, SMALL_IN}};
    const sp_model_tensor inputs[2] = {{.name = "b", .tensor = b}, {.name = "x", .host = &host}};
    sp_host_tensor given = {.data = y, .capacity = sizeof y}, made = {.name = "other"};
    sp_model_tensor output = {.host = &given};
    CHECK_OK(sp_model_run_tensors(model, no_stream, NULL, inputs, 2, &output, 1));
    CHECK_EQ_MEM(y, wanted, sizeof y);
    CHECK(given.bytes == sizeof y && given.rank == 2 && given.shape[0] == ROWS);
    output.host = &made;
    CHECK_OK(sp_model_run_tensors(model, no_stream, NULL, inputs, 2, &output, 1));
    CHECK(made.data != NULL && made.capacity == sizeof y && output.tensor.bits == 0);
    if (made.data != NULL) CHECK_EQ_MEM(made.data, wanted, sizeof y);
    sp_host_tensor_free(&made);
    output = (sp_model_tensor){.name = "y"};
    CHECK_OK(sp_model_run_tensors(model, no_stream, NULL, inputs, 2, &output, 1));
    memset(x, 0, sizeof x); /* copied by the call */
    CHECK(take_floats(output.tensor, wanted, OUT));
    CHECK_OK(sp_model_run_tensors(model, no_stream, NULL, inputs, 2, NULL, 0));
    CHECK_OK(sp_tensor_release(b));
    CHECK_OK(sp_model_release(model));
    segment_end();
}

/* ---- ports ---- */

enum { PORTS = 80 };

/* y = x0 + ... + x79, z_i = Neg(x_i) for each. */
static sp_model load_many(sp_device device)
{
    static const int64_t dims[] = {SMALL_OUT};
    char names[PORTS * 4] = "", node[16];
    size_t length = 0;
    writer graph = {0};
    for (int i = 0; i < PORTS; i++) {
        snprintf(node, sizeof node, "x%d", i);
        length +=
            (size_t)snprintf(names + length, sizeof names - length, i > 0 ? " %s" : "%s", node);
        add_input(&graph, node, 1, dims, 1);
    }
    add_node(&graph, make_node("Sum", names, "y"));
    add_output(&graph, "y");
    for (int i = 0; i < PORTS; i++) {
        char from[16], to[16];
        snprintf(from, sizeof from, "x%d", i);
        snprintf(to, sizeof to, "z%d", i);
        add_node(&graph, make_node("Neg", from, to));
        add_output(&graph, to);
    }
    writer file = make_model(&graph, 13);
    sp_model model = {0};
    CHECK_OK(sp_model_load_from_memory(file.bytes, file.len, &(sp_model_options){.device = device},
                                       &model));
    writer_free(&file);
    return model;
}

TEST(a_run_may_have_any_number_of_inputs_and_outputs)
{
    static sp_model_tensor inputs[PORTS], outputs[PORTS + 1];
    const sp_device device = segment_begin();
    const sp_model model = load_many(device);
    static const int64_t shape[] = {SMALL_OUT};
    float sum[SMALL_OUT] = {0};
    for (uint32_t i = 0; i < PORTS; i++) {
        const float x[SMALL_OUT] = {(float)i, 2, -(float)i};
        for (int k = 0; k < SMALL_OUT; k++) sum[k] += x[k];
        inputs[i] = (sp_model_tensor){.name = NULL};
        CHECK_OK(sp_tensor_from_host(device, SP_F32, 1, shape, x, sizeof x, &inputs[i].tensor));
    }
    memset(outputs, 0, sizeof outputs);
    CHECK_OK(sp_model_run_tensors(model, no_stream, NULL, inputs, PORTS, outputs, PORTS + 1));
    CHECK(take_floats(outputs[0].tensor, sum, SMALL_OUT));
    for (uint32_t i = 0; i < PORTS; i++) {
        const float z[SMALL_OUT] = {-(float)i, -2, (float)i};
        CHECK(take_floats(outputs[i + 1].tensor, z, SMALL_OUT));
        CHECK_OK(sp_tensor_release(inputs[i].tensor));
    }
    CHECK_OK(sp_model_release(model));
    segment_end();
}

/* Every second z is written over its x, the others to parts of one storage. */
TEST(any_number_of_outputs_may_be_given)
{
    static sp_model_tensor inputs[PORTS], outputs[PORTS + 1];
    const sp_device device = segment_begin();
    const sp_model model = load_many(device);
    static const int64_t shape[] = {SMALL_OUT}, rows[] = {PORTS, SMALL_OUT};
    sp_tensor table;
    CHECK_OK(sp_tensor_create(device, SP_F32, 2, rows, &table));
    memset(outputs, 0, sizeof outputs);
    for (uint32_t i = 0; i < PORTS; i++) {
        const float x[SMALL_OUT] = {(float)i, 3, -(float)i};
        inputs[i] = (sp_model_tensor){.name = NULL};
        CHECK_OK(sp_tensor_from_host(device, SP_F32, 1, shape, x, sizeof x, &inputs[i].tensor));
        outputs[i + 1].tensor = inputs[i].tensor;
        if (i % 2 == 0) continue;
        CHECK_OK(sp_tensor_select(table, 0, PORTS - 1 - i, &outputs[i + 1].tensor));
    }
    const sp_tensor last = outputs[PORTS].tensor;
    outputs[PORTS].tensor = outputs[2].tensor;
    CHECK_STATUS(sp_model_run_tensors(model, no_stream, NULL, inputs, PORTS, outputs, PORTS + 1),
                 SP_INVALID);
    CHECK_MESSAGE("output 'z79' overlaps output 'z1'");
    outputs[PORTS].tensor = last;
    CHECK_OK(sp_model_run_tensors(model, no_stream, NULL, inputs, PORTS, outputs, PORTS + 1));
    for (uint32_t i = 0; i < PORTS; i++) {
        const float z[SMALL_OUT] = {-(float)i, -3, (float)i};
        CHECK(take_floats(outputs[i + 1].tensor, z, SMALL_OUT));
        if (i % 2 != 0) CHECK_OK(sp_tensor_release(inputs[i].tensor));
    }
    CHECK_OK(sp_tensor_release(outputs[0].tensor));
    CHECK_OK(sp_tensor_release(table));
    CHECK_OK(sp_model_release(model));
    segment_end();
}

/* y = Reshape(x, s), whose sizes are an input. */
TEST(values_that_decide_shapes_are_those_at_the_call)
{
    static const int64_t x_dims[] = {6}, s_dims[] = {2}, two[] = {2, 3}, three[] = {3, 2};
    const sp_device device = segment_begin();
    writer graph = {0};
    add_input(&graph, "x", 1, x_dims, 1);
    add_input(&graph, "s", 7, s_dims, 1);
    add_node(&graph, make_node("Reshape", "x s", "r"));
    add_node(&graph, make_node("Neg", "r", "y"));
    add_output(&graph, "y");
    writer file = make_model(&graph, 13);
    sp_model model = {0};
    CHECK_OK(sp_model_load_from_memory(file.bytes, file.len, &(sp_model_options){.device = device},
                                       &model));
    writer_free(&file);
    const float x[6] = {1, 2, 3, 4, 5, 6}, y[6] = {-1, -2, -3, -4, -5, -6};
    sp_model_tensor inputs[2] = {{.name = "x"}, {.name = "s"}}, output = {.name = "y"};
    CHECK_OK(sp_tensor_from_host(device, SP_F32, 1, x_dims, x, sizeof x, &inputs[0].tensor));
    CHECK_OK(sp_tensor_from_host(device, SP_I64, 1, s_dims, two, sizeof two, &inputs[1].tensor));
    CHECK_OK(sp_model_run_tensors(model, no_stream, NULL, inputs, 2, &output, 1));
    CHECK_OK(sp_tensor_write(inputs[1].tensor, three, sizeof three));
    sp_tensor_info info;
    CHECK_OK(sp_tensor_get_info(output.tensor, &info));
    CHECK(info.rank == 2 && info.shape[0] == 2 && info.shape[1] == 3);
    CHECK(take_floats(output.tensor, y, 6));
    output.tensor.bits = 0;
    CHECK_OK(sp_model_run_tensors(model, no_stream, NULL, inputs, 2, &output, 1));
    CHECK_OK(sp_tensor_get_info(output.tensor, &info));
    CHECK(info.rank == 2 && info.shape[0] == 3 && info.shape[1] == 2);
    CHECK(take_floats(output.tensor, y, 6));
    CHECK_OK(sp_tensor_release(inputs[0].tensor));
    CHECK_OK(sp_tensor_release(inputs[1].tensor));
    CHECK_OK(sp_model_release(model));
    segment_end();
}

/* y = NonZero(x), whose shape follows from the values of x: the call runs the model. */
TEST(a_model_of_several_plans_is_run_by_the_call)
{
    enum { LARGE = SP_SHAPE_INPUT_BYTES }; /* too large for a plan of its values */
    static const int64_t x_dims[] = {LARGE}, y_dims[] = {1, 3}, other_dims[] = {1, 2};
    static const int64_t wanted[] = {0, 2, LARGE - 1};
    const sp_device device = segment_begin();
    writer graph = {0};
    add_input(&graph, "x", 1, x_dims, 1);
    add_node(&graph, make_node("NonZero", "x", "y"));
    add_output(&graph, "y");
    writer file = make_model(&graph, 13);
    sp_model model = {0};
    CHECK_OK(sp_model_load_from_memory(file.bytes, file.len, &(sp_model_options){.device = device},
                                       &model));
    writer_free(&file);
    static const float x[LARGE] = {[0] = 1, [2] = 2, [LARGE - 1] = -1};
    int64_t got[3];
    sp_model_tensor input = {.name = "x"}, output = {.name = "y"};
    sp_host_tensor host = {.name = "unread"};
    sp_future future;
    CHECK_OK(sp_tensor_from_host(device, SP_F32, 1, x_dims, x, sizeof x, &input.tensor));
    CHECK_OK(sp_tensor_create(device, SP_I64, 2, other_dims, &output.tensor));
    CHECK_STATUS(sp_model_run_tensors(model, no_stream, NULL, &input, 1, &output, 1), SP_MISMATCH);
    CHECK_MESSAGE("the given tensor is i64 of shape [1,2]");
    CHECK_OK(sp_tensor_release(output.tensor));
    CHECK_OK(sp_tensor_create(device, SP_I64, 2, y_dims, &output.tensor));
    for (int round = 0; round < 2; round++) {
        CHECK_OK(sp_model_submit_tensors(model, no_stream, NULL, &input, 1, &output, 1, &future));
        CHECK_OK(sp_future_query(future));
        CHECK_OK(sp_future_release(future));
        CHECK_OK(sp_tensor_read(output.tensor, got, sizeof got));
        CHECK_EQ_MEM(got, wanted, sizeof got);
        CHECK_OK(sp_tensor_release(output.tensor));
        output.tensor.bits = 0; /* then a new one */
    }
    output.host = &host;
    CHECK_OK(sp_model_run_tensors(model, no_stream, NULL, &input, 1, &output, 1));
    CHECK(host.bytes == sizeof wanted && memcmp(host.data, wanted, sizeof wanted) == 0);
    CHECK_EQ_STR(host.name, "unread");
    sp_host_tensor_free(&host);
    CHECK_OK(sp_tensor_release(input.tensor));
    CHECK_OK(sp_model_release(model));
    segment_end();
}

/* ---- host functions ---- */

typedef struct inside_call {
    sp_model model;
    sp_tensor x, y;
    sp_status status;
} inside_call;

static void run_inside(void *ctx, sp_status status)
{
    inside_call *call = ctx;
    (void)status;
    call->status = tensor_run_small(call->model, call->x, &call->y);
}

TEST(a_host_function_may_submit_a_run)
{
    const sp_device device = segment_begin();
    const sp_model model = small_model(&(sp_model_options){.device = device});
    float wanted[OUT];
    small_of_rows(model, 1, ROWS, wanted);
    inside_call call = {.model = model, .x = tensor_of_rows(device, 1, ROWS)};
    const sp_stream stream = new_stream_on(device);
    CHECK_OK(sp_stream_host_function(stream, run_inside, &call));
    CHECK_OK(sp_stream_synchronize(stream));
    CHECK_OK(call.status);
    CHECK(take_floats(call.y, wanted, OUT));
    CHECK_OK(sp_tensor_release(call.x));
    CHECK_OK(sp_stream_release(stream));
    CHECK_OK(sp_model_release(model));
    segment_end();
}

TEST_MAIN
