/* SPDX-License-Identifier: Apache-2.0 */
/* Models on a device whose memory the host cannot reach: runs use staging memory, with the bits of
 * cpu; operations that need a host pointer of the device's memory are refused. */
#include <streampool/model.h>
#include <streampool/stream.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/option.h"
#include "exec/run_values.h"
#include "partial_fixture.h"
#include "runtime/runtime_state.h"
#include "support/own_memory.h"

/* More than kernels access in staging memory: has a place on the device. */
enum { COUNT = 8192 };

typedef struct chain_run {
    sp_model model;
    float x[COUNT], y[COUNT], z[COUNT];
    bool wants_z;
    sp_status status;
    char message[256];
} chain_run;

/* y = Sqrt(Tanh(Relu(x))), z = Abs(y); no weights. */
static sp_status load_chain(sp_device device, sp_model *out)
{
    static const int64_t dims[1] = {COUNT};
    const sp_model_options options = {.device = device};
    writer graph = {0};
    add_input(&graph, "x", ONNX_FLOAT, dims, 1);
    add_node(&graph, make_node("Relu", "x", "a"));
    add_node(&graph, make_node("Tanh", "a", "b"));
    add_node(&graph, make_node("Sqrt", "b", "y"));
    add_node(&graph, make_node("Abs", "y", "z"));
    add_output(&graph, "y");
    add_output(&graph, "z");
    return partial_load(&graph, &options, out);
}

static void run_chain(chain_run *r)
{
    const sp_host_tensor x = partial_floats("x", r->x, COUNT);
    sp_host_tensor outputs[2] = {partial_room("y", r->y, sizeof r->y),
                                 partial_room("z", r->z, sizeof r->z)};
    r->status = sp_model_run(r->model, &x, 1, outputs, r->wants_z ? 2 : 1);
    snprintf(r->message, sizeof r->message, "%s", r->status == SP_OK ? "" : sp_last_error());
}

static void run_inside(void *ctx, sp_status status)
{
    CHECK_OK(status);
    run_chain(ctx);
}

static chain_run *chain_new(sp_device device)
{
    chain_run *r = calloc(1, sizeof *r);
    CHECK_OK(load_chain(device, &r->model));
    const int zero = COUNT / 3;
    for (int i = 0; i < COUNT; i++) r->x[i] = (float)(i - zero) * 0.001f;
    r->wants_z = true;
    return r;
}

static void chain_free(chain_run *r)
{
    CHECK_OK(sp_model_release(r->model));
    free(r);
}

static void set_cpu_ops(const char *ops)
{
    setenv("STREAMPOOL_CPU_OPS", ops, 1);
    sp__option_reset();
}

static void check_bits(const char *cpu_ops, uint32_t segment_count)
{
    chain_run *wanted = chain_new((sp_device){0});
    run_chain(wanted);
    CHECK_OK(wanted->status);
    set_cpu_ops(cpu_ops);
    const sp_device device = open_own_memory(false);
    chain_run *r = chain_new(device);
    for (int round = 0; round < 3; round++) {
        memset(r->y, 0, sizeof r->y);
        memset(r->z, 0, sizeof r->z);
        r->wants_z = round != 1;
        run_chain(r);
        CHECK_OK(r->status);
        CHECK_EQ_MEM(r->y, wanted->y, sizeof r->y);
        if (r->wants_z) CHECK_EQ_MEM(r->z, wanted->z, sizeof r->z);
    }
    CHECK_EQ_U64(partial_info(r->model).segment_count, segment_count);
    chain_free(r);
    chain_free(wanted);
    CHECK_OK(sp_device_close(device));
    set_cpu_ops("");
}

TEST(a_run_has_the_bits_of_cpu)
{
    check_bits("", 1);
}

/* The fallback's steps use the host arena, the device's steps the device arena: only copies keep
 * the two equal. */
TEST(a_run_in_segments_has_the_bits_of_cpu)
{
    check_bits("Tanh", 3);
    check_bits("Relu,Sqrt", 5);
    check_bits("Relu,Tanh,Sqrt,Abs", 3);
}

static void check_inside(bool wants_z)
{
    const sp_device device = open_own_memory(false);
    chain_run *r = chain_new(device);
    sp_stream stream;
    r->wants_z = wants_z;
    r->status = SP_INTERNAL;
    CHECK_OK(sp_stream_current((sp_device){0}, &stream));
    CHECK_OK(sp_stream_host_function(stream, run_inside, r));
    CHECK_OK(sp_stream_synchronize(stream));
    CHECK_EQ_INT(r->status, SP_UNSUPPORTED);
    CHECK(strstr(r->message, "memory of null") != NULL);
    CHECK(strstr(r->message, "cannot be reached from the host") != NULL);
    r->status = SP_INTERNAL;
    run_chain(r); /* nothing is leaked */
    CHECK_OK(r->status);
    chain_free(r);
    CHECK_OK(sp_device_close(device));
}

TEST(a_run_inside_a_host_function_is_refused_for_its_arena)
{
    check_inside(true);
}

TEST(a_run_inside_a_host_function_is_refused_for_an_output_that_is_left_out)
{
    check_inside(false);
}

TEST(weights_cannot_be_put_there)
{
    static const int64_t dims[1] = {3};
    static const float bias[3] = {1, 2, 3};
    const sp_device device = open_own_memory(false);
    const sp_model_options options = {.device = device};
    writer graph = {0};
    sp_model model;
    add_input(&graph, "x", ONNX_FLOAT, dims, 1);
    partial_add_floats(&graph, "bias", bias, 3);
    add_node(&graph, make_node("Add", "x bias", "y"));
    add_output(&graph, "y");
    CHECK_UNREACHABLE(partial_load(&graph, &options, &model));
    CHECK_EQ_U64(model.bits, 0);
    CHECK_OK(sp_device_close(device));
}

TEST(a_device_that_hides_what_goes_in_and_out_runs_nothing)
{
    const sp_device device = open_own_memory(true);
    chain_run *r = chain_new(device);
    for (int round = 0; round < 2; round++) {
        run_chain(r);
        CHECK_EQ_INT(r->status, SP_UNSUPPORTED);
        CHECK(strstr(r->message, "cannot be reached from the host") != NULL);
    }
    chain_free(r);
    CHECK_OK(sp_device_close(device));
}

TEST(values_between_partial_plans_need_memory_that_the_host_reaches)
{
    const sp_shape large = {.rank = 1, .dims = {COUNT}};
    const sp_shape small = {.rank = 1, .dims = {4}};
    for (int hides = 0; hides < 2; hides++) {
        const sp_device handle = open_own_memory(hides == 1);
        sp_rt_device *device = NULL;
        CHECK_OK(sp__rt_device_find(handle, &device));
        sp_run_values values = {.device = device, .most_bytes = UINT64_MAX};
        sp_run_value value;
        void *data = NULL;
        CHECK_OK(sp__run_value_create(&values, SP_F32, &small, &value, &data)); /* of the heap */
        sp__run_value_release(&values, &value);
        if (hides == 1) {
            CHECK_UNREACHABLE(sp__run_value_create(&values, SP_F32, &large, &value, &data));
        } else {
            CHECK_OK(sp__run_value_create(&values, SP_F32, &large, &value, &data));
            memset(data, 1, COUNT * sizeof(float));
            sp__run_value_release(&values, &value);
        }
        CHECK_EQ_U64(values.bytes, 0);
        CHECK_OK(sp_device_close(handle));
    }
}

TEST_MAIN
