/* SPDX-License-Identifier: Apache-2.0 */
/* The times of a run's steps, and calls that are refused. */
#include <string.h>

#include "base/heap.h"
#include "partial_fixture.h"
#include "plan_fixture.h"

static sp_status small_time(sp_model model, float *y, uint64_t *step_ns, uint32_t step_count)
{
    const sp_host_tensor x = input_x(1);
    sp_host_tensor out = output_y(y, SMALL_OUT);
    return sp_model_time_steps(model, &x, 1, &out, 1, step_ns, step_count);
}

TEST(a_run_whose_steps_are_timed_has_the_bits_of_a_run)
{
    const sp_model model = small_model(NULL);
    const small_row expected = small_run(model);
    uint64_t step_ns[SMALL_STEPS] = {UINT64_MAX, UINT64_MAX};
    small_row row = {0};
    const uint64_t runs = model_info_of(model).runs;
    float y[SMALL_OUT];
    CHECK_OK(small_time(model, y, step_ns, SMALL_STEPS));
    memcpy(row.bytes, y, sizeof y);
    CHECK(small_is_same(&row, &expected));
    for (uint32_t i = 0; i < SMALL_STEPS; i++) CHECK(step_ns[i] < UINT64_C(60000000000));
    CHECK(step_ns[0] + step_ns[1] > 0);
    CHECK_EQ_U64(model_info_of(model).runs, runs);
    /* Outputs may also be the library's. */
    const sp_host_tensor x = input_x(1);
    sp_host_tensor out = {0};
    CHECK_OK(sp_model_time_steps(model, &x, 1, &out, 1, step_ns, SMALL_STEPS));
    REQUIRE(out.data != NULL);
    memcpy(row.bytes, out.data, sizeof row.bytes);
    CHECK(small_is_same(&row, &expected));
    sp_host_tensor_free(&out);
    CHECK_OK(sp_model_time_steps(model, &x, 1, NULL, 0, step_ns, SMALL_STEPS));
    CHECK_OK(sp_model_release(model));
}

TEST(steps_cannot_be_timed_with_other_counts_or_inputs)
{
    const sp_model model = small_model(NULL);
    uint64_t step_ns[SMALL_STEPS + 1];
    float y[SMALL_OUT];
    CHECK_STATUS(small_time(model, y, NULL, SMALL_STEPS), SP_INVALID);
    CHECK_MESSAGE("step_ns is NULL");
    CHECK_STATUS(small_time(model, y, step_ns, SMALL_STEPS + 1), SP_MISMATCH);
    CHECK_MESSAGE("has 2 steps; there is room for 3");
    CHECK_STATUS(small_time((sp_model){0}, y, step_ns, SMALL_STEPS), SP_INVALID);
    CHECK_STATUS(sp_model_time_steps(model, NULL, 0, NULL, 0, step_ns, SMALL_STEPS), SP_MISMATCH);
    CHECK_MESSAGE("input 'x' is missing");
    const sp_host_tensor x = input_x(1);
    sp_host_tensor none = {.name = "none"};
    CHECK_STATUS(sp_model_time_steps(model, &x, 1, &none, 1, step_ns, SMALL_STEPS), SP_NOT_FOUND);
    sp_host_tensor narrow = output_y(y, SMALL_OUT);
    narrow.capacity = 1;
    CHECK_STATUS(sp_model_time_steps(model, &x, 1, &narrow, 1, step_ns, SMALL_STEPS), SP_MISMATCH);
    CHECK_OK(sp_model_release(model));
}

TEST(steps_are_timed_on_the_cpu_only)
{
    sp_model_options options = {0};
    uint64_t step_ns[SMALL_STEPS];
    float y[SMALL_OUT];
    REQUIRE_OK(sp_device_open("null", &options.device));
    const sp_model model = small_model(&options);
    CHECK_STATUS(small_time(model, y, step_ns, SMALL_STEPS), SP_UNSUPPORTED);
    CHECK_MESSAGE("on the cpu only; its device is null");
    CHECK_OK(sp_device_close(options.device));
    CHECK_STATUS(small_time(model, y, step_ns, SMALL_STEPS), SP_CLOSED);
    CHECK_OK(sp_model_release(model));
}

TEST(the_steps_of_a_partial_plan_are_not_timed)
{
    writer graph = {0};
    partial_add_found(&graph, "values");
    add_node(&graph, make_node("Relu", "values", "y"));
    add_output(&graph, "y");
    sp_model model;
    uint64_t step_ns[8];
    float values[256] = {0}; /* too many for the key of a plan */
    REQUIRE_OK(partial_load(&graph, NULL, &model));
    const sp_host_tensor x = {
        .data = values, .bytes = sizeof values, .dtype = SP_F32, .rank = 1, .shape = {256}};
    CHECK_STATUS(sp_model_time_steps(model, &x, 1, NULL, 0, step_ns, 8), SP_UNSUPPORTED);
    CHECK_MESSAGE("if one plan computes it");
    CHECK_OK(sp_model_release(model));
}

TEST(without_memory_no_steps_are_timed_and_nothing_stays_behind)
{
    const sp_model model = small_model(NULL);
    uint64_t step_ns[SMALL_STEPS];
    small_run(model);
    bool has_failed = true;
    for (uint64_t skip = 0; has_failed; skip++) {
        const sp_host_tensor x = input_x(1);
        sp_host_tensor out = {0};
        sp_heap_fail_after(skip);
        const sp_status status = sp_model_time_steps(model, &x, 1, &out, 1, step_ns, SMALL_STEPS);
        has_failed = sp_heap_has_failed();
        sp_heap_fail_after(UINT64_MAX);
        CHECK_STATUS(status, has_failed ? SP_OUT_OF_MEMORY : SP_OK);
        sp_host_tensor_free(&out);
    }
    CHECK_OK(sp_model_release(model));
}

TEST_MAIN
