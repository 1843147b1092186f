/* SPDX-License-Identifier: Apache-2.0 */
/* Packed weights on a device with its own memory, and on two devices. */
#include <streampool/storage.h>

#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "segment_fixture.h"
#include "support/onnx_writer.h"

enum { WIDE = 512, NARROW = 4 };
enum { WIDE_BYTES = WIDE * WIDE * 4, NARROW_BYTES = WIDE * 16 * 4 };

/* y = x w v: w by MatMul, v by Gemm. */
static sp_model product_model(sp_device device)
{
    static const int64_t w_dims[2] = {WIDE, WIDE}, v_dims[2] = {WIDE, NARROW};
    static const int64_t x_dims[2] = {-1, WIDE};
    float *w = malloc(WIDE_BYTES), v[WIDE * NARROW];
    data_random random = {83};
    data_fill(&random, w, (size_t)WIDE * WIDE);
    data_fill(&random, v, SP_COUNT_OF(v));
    writer graph = {0};
    writer part = make_tensor("w", 1, w_dims, 2, w, WIDE_BYTES);
    write_message(&graph, GRAPH_INITIALIZER_FIELD, &part);
    part = make_tensor("v", 1, v_dims, 2, v, sizeof v);
    write_message(&graph, GRAPH_INITIALIZER_FIELD, &part);
    add_input(&graph, "x", 1, x_dims, 2);
    add_node(&graph, make_node("MatMul", "x w", "a"));
    add_node(&graph, make_node("Gemm", "a v", "y"));
    add_output(&graph, "y");
    writer file = make_model(&graph, 13);
    sp_model model = {0};
    const sp_model_options options = {.device = device};
    CHECK_OK(sp_model_load_from_memory(file.bytes, file.len, &options, &model));
    writer_free(&file);
    free(w);
    return model;
}

static sp_status run_product(sp_model model, float out[NARROW])
{
    static float x[WIDE];
    for (int i = 0; i < WIDE; i++) x[i] = (float)(i % 13) * 0.125f - 0.75f;
    memset(out, 0xff, NARROW * sizeof *out);
    const sp_host_tensor in = {
        .data = x, .bytes = sizeof x, .dtype = SP_F32, .rank = 2, .shape = {1, WIDE}};
    sp_host_tensor y = {.data = out, .capacity = NARROW * sizeof *out};
    return sp_model_run(model, &in, 1, &y, 1);
}

static void product_on_cpu(float want[NARROW])
{
    const sp_model model = product_model((sp_device){0});
    CHECK_OK(run_product(model, want));
    CHECK_OK(sp_model_release(model));
}

static uint64_t in_use(sp_device device)
{
    sp_memory_stats stats = {0};
    CHECK_OK(sp_device_get_memory_stats(device, &stats));
    return stats.in_use_bytes;
}

TEST(the_device_has_a_weight_in_one_layout)
{
    const sp_device device = segment_begin();
    float want[NARROW], got[NARROW];
    product_on_cpu(want);
    const uint64_t before = in_use(device);
    const sp_model model = product_model(device);
    CHECK_EQ_U64(in_use(device), before); /* both weights are only read packed */
    CHECK_OK(run_product(model, got));
    CHECK_EQ_MEM(got, want, sizeof got);
    CHECK_EQ_U64(model_info_of(model).packed_bytes, WIDE_BYTES + NARROW_BYTES);
    const uint64_t with = in_use(device) - before;
    if (segment_is_cuda()) CHECK(with >= WIDE_BYTES && with < 2 * WIDE_BYTES);
    else CHECK(with < WIDE_BYTES); /* the heap has them */
    CHECK_OK(sp_model_release(model));
    CHECK_EQ_U64(in_use(device), before);
    segment_end();
}

TEST(without_memory_of_the_device_the_run_fails_and_leaves_nothing)
{
    const sp_device device = segment_begin();
    float want[NARROW], got[NARROW];
    if (!segment_is_cuda()) {
        segment_end();
        SKIP("the heap has the copies");
    }
    product_on_cpu(want);
    const sp_model model = product_model(device);
    const uint64_t before = in_use(device);
    CHECK_OK(sp_device_set_memory_limit(device, WIDE_BYTES / 2));
    for (int i = 0; i < 3; i++) {
        CHECK_STATUS(run_product(model, got), SP_OUT_OF_MEMORY);
        CHECK_EQ_U64(model_info_of(model).packed_bytes, 0);
        CHECK_EQ_U64(model_info_of(model).plan_count, 0);
        CHECK_EQ_U64(in_use(device), before);
    }
    CHECK_OK(sp_device_set_memory_limit(device, 0));
    CHECK_OK(run_product(model, got));
    CHECK_EQ_MEM(got, want, sizeof got);
    CHECK_OK(sp_model_release(model));
    segment_end();
}

TEST(every_allocation_of_the_first_run_may_fail)
{
    const sp_device device = segment_begin();
    float want[NARROW], got[NARROW];
    product_on_cpu(want);
    bool has_failed = true;
    for (uint64_t skip = 0; has_failed; skip++) {
        const sp_model model = product_model(device);
        sp_heap_fail_after(skip);
        const sp_status status = run_product(model, got);
        has_failed = sp_heap_has_failed();
        sp_heap_fail_after(UINT64_MAX);
        if (status == SP_OK) CHECK_EQ_MEM(got, want, sizeof got);
        else CHECK_STATUS(status, SP_OUT_OF_MEMORY);
        CHECK_OK(run_product(model, got));
        CHECK_EQ_MEM(got, want, sizeof got);
        CHECK_EQ_U64(model_info_of(model).packed_bytes, WIDE_BYTES + NARROW_BYTES);
        CHECK_OK(sp_model_release(model));
    }
    segment_end();
}

TEST(each_device_packs_what_its_own_steps_read)
{
    static const char *const ops[] = {"Gemm", "MatMul", "MatMul,Gemm"};
    const sp_device device = segment_begin();
    float want[NARROW], got[NARROW];
    product_on_cpu(want);
    for (size_t i = 0; i < SP_COUNT_OF(ops); i++) {
        segment_set_ops(ops[i]);
        const sp_model model = product_model(device);
        const uint64_t before = in_use(device);
        CHECK_OK(run_product(model, got));
        CHECK_EQ_MEM(got, want, sizeof got);
        CHECK_EQ_U64(model_info_of(model).cpu_step_count, i < 2 ? 1 : 2);
        CHECK_EQ_U64(model_info_of(model).packed_bytes, WIDE_BYTES + NARROW_BYTES);
        const bool has_wide = in_use(device) - before >= WIDE_BYTES;
        CHECK(has_wide == (segment_is_cuda() && i == 0));
        CHECK_OK(sp_model_release(model));
    }
    segment_end();
}

/* One model, whose plans assign its steps to different devices. */
TEST(plans_of_one_model_share_what_is_on_one_device)
{
    const sp_device device = segment_begin();
    float want[NARROW], got[NARROW];
    product_on_cpu(want);
    const sp_model model = product_model(device);
    CHECK_OK(run_product(model, got));
    CHECK_EQ_MEM(got, want, sizeof got);
    segment_set_ops("Gemm");
    float x[2 * WIDE] = {0}, out[2 * NARROW];
    const sp_host_tensor in = {
        .data = x, .bytes = sizeof x, .dtype = SP_F32, .rank = 2, .shape = {2, WIDE}};
    sp_host_tensor y = {.data = out, .capacity = sizeof out};
    CHECK_OK(sp_model_run(model, &in, 1, &y, 1));
    CHECK_EQ_U64(model_info_of(model).packed_bytes, WIDE_BYTES + 2 * NARROW_BYTES);
    CHECK_OK(sp_model_release(model));
    segment_end();
}

TEST_MAIN
