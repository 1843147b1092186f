/* SPDX-License-Identifier: Apache-2.0 */
/* Models on a device whose memory the host cannot reach: weights are uploaded, runs use staging
 * memory, runs on the calling thread memory of the host; all have the bits of cpu. */
#include <streampool/model.h>
#include <streampool/stream.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/option.h"
#include "device/null/null.h"
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

static void run_inside_a_host_function(chain_run *r)
{
    sp_stream stream;
    r->status = SP_INTERNAL;
    CHECK_OK(sp_stream_current((sp_device){0}, &stream));
    CHECK_OK(sp_stream_host_function(stream, run_inside, r));
    CHECK_OK(sp_stream_synchronize(stream));
    CHECK_OK(r->status);
}

TEST(a_run_inside_a_host_function_computes_in_memory_of_the_host)
{
    chain_run *wanted = chain_new((sp_device){0});
    run_chain(wanted);
    const sp_device device = open_own_memory(false);
    chain_run *r = chain_new(device);
    for (int round = 0; round < 3; round++) {
        memset(r->y, 0, sizeof r->y);
        memset(r->z, 0, sizeof r->z);
        r->wants_z = round != 1; /* an output that is left out has room there, too */
        run_inside_a_host_function(r);
        CHECK_EQ_MEM(r->y, wanted->y, sizeof r->y);
        if (r->wants_z) CHECK_EQ_MEM(r->z, wanted->z, sizeof r->z);
        run_chain(r);
        CHECK_OK(r->status);
    }
    chain_free(r);
    chain_free(wanted);
    CHECK_OK(sp_device_close(device));
}

/* ---- weights ---- */

/* The packed product takes several copies of the uploader. */
enum { DEPTH = 1200, COLUMNS = 1031 };

typedef struct product_run {
    sp_model model;
    float x[DEPTH], y[COLUMNS];
    sp_status status;
} product_run;

static void run_product(product_run *r)
{
    sp_host_tensor x = partial_floats("x", r->x, DEPTH);
    x.rank = 2;
    x.shape[0] = 1;
    x.shape[1] = DEPTH;
    sp_host_tensor y = partial_room("y", r->y, sizeof r->y);
    r->status = sp_model_run(r->model, &x, 1, &y, 1);
}

static void run_product_inside(void *ctx, sp_status status)
{
    CHECK_OK(status);
    run_product(ctx);
}

/* y = x * w + b; w is packed, b is not. */
static product_run *product_new(sp_device device)
{
    static const int64_t x_dims[2] = {1, DEPTH};
    static const int64_t w_dims[2] = {DEPTH, COLUMNS};
    product_run *r = calloc(1, sizeof *r);
    float *w = calloc(DEPTH * COLUMNS, sizeof *w);
    float b[COLUMNS];
    for (int i = 0; i < DEPTH * COLUMNS; i++) w[i] = (float)(i % 1009 - 504) * 0.01f;
    for (int i = 0; i < COLUMNS; i++) b[i] = (float)i;
    for (int i = 0; i < DEPTH; i++) r->x[i] = (float)(i % 13) - 6;
    writer graph = {0};
    add_input(&graph, "x", ONNX_FLOAT, x_dims, 2);
    writer tensor = make_tensor("w", ONNX_FLOAT, w_dims, 2, w, DEPTH * COLUMNS * sizeof *w);
    write_message(&graph, GRAPH_INITIALIZER_FIELD, &tensor);
    partial_add_floats(&graph, "b", b, COLUMNS);
    add_node(&graph, make_node("MatMul", "x w", "p"));
    add_node(&graph, make_node("Add", "p b", "s"));
    add_node(&graph, make_node("Mul", "s b", "y"));
    add_output(&graph, "y");
    const sp_model_options options = {.device = device};
    CHECK_OK(partial_load(&graph, &options, &r->model));
    free(w);
    return r;
}

static void product_free(product_run *r)
{
    CHECK_OK(sp_model_release(r->model));
    free(r);
}

TEST(weights_are_uploaded_plain_and_packed)
{
    product_run *wanted = product_new((sp_device){0});
    run_product(wanted);
    CHECK_OK(wanted->status);
    const sp_device device = open_own_memory(false);
    product_run *r = product_new(device);
    run_product(r);
    CHECK_OK(r->status);
    CHECK_EQ_MEM(r->y, wanted->y, sizeof r->y);
    sp_stream stream;
    memset(r->y, 0, sizeof r->y);
    CHECK_OK(sp_stream_current((sp_device){0}, &stream));
    CHECK_OK(sp_stream_host_function(stream, run_product_inside, r));
    CHECK_OK(sp_stream_synchronize(stream));
    CHECK_OK(r->status);
    CHECK_EQ_MEM(r->y, wanted->y, sizeof r->y);
    product_free(r);
    product_free(wanted);
    CHECK_OK(sp_device_close(device));
}

TEST(an_upload_that_fails_leaves_nothing_behind)
{
    const sp_device device = open_own_memory(false);
    sp_rt_device *rt = NULL;
    CHECK_OK(sp__rt_device_find(device, &rt));
    product_run *r = product_new(device);
    uint64_t failed = 0;
    for (uint64_t command = 0; command < 8; command++) {
        sp__null_fail_command(rt->dev, command);
        run_product(r); /* packs, until it succeeds */
        sp__null_fail_command(rt->dev, UINT64_MAX);
        if (r->status == SP_OK) break;
        CHECK_EQ_INT(r->status, SP_FAILED);
        failed++;
    }
    CHECK(failed > 1);
    CHECK_OK(r->status);
    product_free(r);
    sp_memory_stats stats;
    CHECK_OK(sp_device_get_memory_stats(device, &stats));
    CHECK_EQ_U64(stats.in_use_bytes, 0);
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
