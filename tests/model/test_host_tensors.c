/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs as host tensors: their capacity, and the ones that the library allocates. */
#include <string.h>

#include <streampool/null_device.h>

#include "base/heap.h"
#include "partial_fixture.h"
#include "run_fixture.h"

static void check_y(const sp_host_tensor *y, int64_t rows)
{
    CHECK_EQ_INT(y->dtype, SP_F32);
    CHECK_EQ_U64(y->rank, 2);
    CHECK_EQ_INT(y->shape[0], rows);
    CHECK_EQ_INT(y->shape[1], SMALL_OUT);
    CHECK_EQ_U64(y->bytes, (uint64_t)rows * SMALL_OUT * sizeof(float));
}

static void check_allocated(const sp_host_tensor *tensor)
{
    CHECK(tensor->data != NULL);
    CHECK_EQ_U64((uintptr_t)tensor->data % SP_HOST_TENSOR_ALIGNMENT, 0);
    CHECK_EQ_U64(tensor->capacity, tensor->bytes);
}

static void check_none(const sp_host_tensor *tensor)
{
    CHECK(tensor->data == NULL);
    CHECK_EQ_U64(tensor->capacity, 0);
}

/* x is [n, 4], and so are a and b. */
static sp_model two_outputs(const sp_model_options *options)
{
    static const int64_t dims[2] = {-1, 4};
    writer graph = {0};
    add_input(&graph, "x", ONNX_FLOAT, dims, 2);
    add_node(&graph, make_node("Relu", "x", "a"));
    add_node(&graph, make_node("Neg", "x", "b"));
    add_output(&graph, "a");
    add_output(&graph, "b");
    sp_model model = {0};
    CHECK_OK(partial_load(&graph, options, &model));
    return model;
}

/* ---- capacity ---- */

TEST(a_struct_is_used_again_after_a_smaller_result)
{
    const sp_model model = small_model(NULL);
    float out[6];
    sp_host_tensor y = output_y(out, 6);
    for (int64_t round = 0; round < 6; round++) {
        const int64_t rows = 2 - round % 2;
        const sp_host_tensor x = input_x(rows);
        CHECK_OK(sp_model_run(model, &x, 1, &y, 1));
        check_y(&y, rows);
        CHECK_EQ_U64(y.capacity, sizeof out);
        CHECK(y.data == out);
    }
    CHECK_OK(sp_model_release(model));
}

TEST(too_little_room_describes_all_outputs_and_writes_none)
{
    const sp_model model = two_outputs(NULL);
    const sp_host_tensor x = input_x(2);
    unsigned char a[32], b[32], former[32];
    memset(former, 0xaa, sizeof former);
    for (uint64_t capacity = 0; capacity < 32; capacity += 31) {
        memcpy(a, former, sizeof a);
        memcpy(b, former, sizeof b);
        sp_host_tensor out[3] = {{.name = "a", .data = a, .capacity = sizeof a},
                                 {.name = "b", .data = b, .capacity = capacity}};
        CHECK_STATUS(sp_model_run(model, &x, 1, out, 2), SP_MISMATCH);
        CHECK_MESSAGE("output 'b' is f32 of shape [2,4] and needs 32 bytes; its capacity is ");
        for (int i = 0; i < 2; i++) {
            CHECK_EQ_U64(out[i].bytes, 32);
            CHECK_EQ_INT(out[i].dtype, SP_F32);
            CHECK(out[i].rank == 2 && out[i].shape[0] == 2 && out[i].shape[1] == 4);
        }
        CHECK_EQ_MEM(a, former, sizeof a);
        CHECK_EQ_MEM(b, former, sizeof b);
        CHECK_EQ_U64(out[1].capacity, capacity);
        sp_future future;
        CHECK_STATUS(sp_model_submit(model, &x, 1, out, 2, &future), SP_MISMATCH);
        CHECK_EQ_U64(future.bits, 0);
    }
    CHECK_OK(sp_model_release(model));
}

TEST(data_without_capacity_and_capacity_without_data_are_refused)
{
    const sp_model model = small_model(NULL);
    const sp_host_tensor x = input_x(1);
    float out[3];
    sp_host_tensor y = {.data = out};
    CHECK_STATUS(sp_model_run(model, &x, 1, &y, 1), SP_MISMATCH);
    CHECK_MESSAGE("its capacity is 0");
    y = (sp_host_tensor){.data = out, .bytes = sizeof out}; /* the size is no capacity */
    CHECK_STATUS(sp_model_run(model, &x, 1, &y, 1), SP_MISMATCH);
    y = (sp_host_tensor){.capacity = sizeof out};
    CHECK_STATUS(sp_model_run(model, &x, 1, &y, 1), SP_INVALID);
    CHECK_MESSAGE("output 'y' has no data");
    CHECK_OK(sp_model_release(model));
}

TEST(infer_reads_no_data_or_capacity_and_writes_none)
{
    const sp_model model = small_model(NULL);
    const sp_host_tensor x = input_x(2);
    sp_host_tensor y = {.data = &y, .capacity = 5};
    CHECK_OK(sp_model_infer(model, &x, 1, &y, 1));
    check_y(&y, 2);
    CHECK(y.data == (void *)&y && y.capacity == 5);
    y = (sp_host_tensor){0};
    CHECK_OK(sp_model_infer(model, &x, 1, &y, 1));
    check_none(&y);
    CHECK_OK(sp_model_release(model));
}

/* ---- allocated by the library ---- */

TEST(an_output_without_data_is_allocated_and_may_be_used_again)
{
    const sp_model model = small_model(NULL);
    float expected[6];
    const sp_host_tensor x = input_x(2);
    sp_host_tensor given = output_y(expected, 6);
    CHECK_OK(sp_model_run(model, &x, 1, &given, 1));
    sp_host_tensor y = {.name = "y"};
    CHECK_OK(sp_model_run(model, &x, 1, &y, 1));
    check_y(&y, 2);
    check_allocated(&y);
    CHECK_EQ_MEM(y.data, expected, sizeof expected);
    void *const data = y.data;
    const sp_host_tensor one = input_x(1);
    CHECK_OK(sp_model_run(model, &one, 1, &y, 1));
    check_y(&y, 1);
    CHECK(y.data == data);
    CHECK_OK(sp_model_run(model, &x, 1, &y, 1)); /* what fitted once fits again */
    CHECK_EQ_MEM(y.data, expected, sizeof expected);
    sp_host_tensor_free(&y);
    check_none(&y);
    sp_host_tensor_free(&y);
    sp_host_tensor_free(NULL);
    CHECK_OK(sp_model_run(model, &x, 1, &y, 1));
    check_allocated(&y);
    sp_host_tensor_free(&y);
    CHECK_OK(sp_model_release(model));
}

TEST(outputs_are_given_allocated_and_unrequested_in_one_run)
{
    const sp_model model = two_outputs(NULL);
    const sp_host_tensor x = input_x(1);
    float a[4];
    sp_host_tensor out[2] = {{.name = "b"}, {.name = "a", .data = a, .capacity = sizeof a}};
    CHECK_OK(sp_model_run(model, &x, 1, out, 2));
    check_allocated(&out[0]);
    CHECK(a[3] == 4.0f && ((const float *)out[0].data)[3] == -4.0f);
    CHECK(out[1].data == a);
    sp_host_tensor_free(&out[0]);
    out[0] = (sp_host_tensor){.name = "b"};
    CHECK_OK(sp_model_run(model, &x, 1, out, 1));
    check_allocated(&out[0]);
    sp_host_tensor_free(&out[0]);
    const sp_host_tensor nothing = input_x(0);
    CHECK_OK(sp_model_run(model, &nothing, 1, out, 1)); /* 0 bytes need no memory */
    check_none(&out[0]);
    CHECK_EQ_INT(out[0].shape[0], 0);
    CHECK_OK(sp_model_release(model));
}

TEST(an_allocated_output_is_the_input_of_the_next_run)
{
    const sp_model model = two_outputs(NULL);
    sp_host_tensor x = input_x(2);
    sp_host_tensor b = {.name = "b"};
    CHECK_OK(sp_model_run(model, &x, 1, &b, 1));
    sp_host_tensor again = b, twice = {.name = "b"};
    again.name = "x";
    CHECK_OK(sp_model_run(model, &again, 1, &twice, 1));
    CHECK_EQ_MEM(twice.data, x.data, twice.bytes);
    CHECK_STATUS(sp_model_run(model, &again, 1, &b, 1), SP_INVALID);
    CHECK_MESSAGE("overlaps input 'x'");
    sp_host_tensor_free(&b);
    sp_host_tensor_free(&twice);
    CHECK_OK(sp_model_release(model));
}

TEST(a_run_that_fails_leaves_nothing_allocated)
{
    sp_model_options options = {0};
    CHECK_OK(sp_device_open("null", &options.device));
    const sp_model model = two_outputs(&options);
    const sp_host_tensor x = input_x(2);
    sp_host_tensor out[2] = {{0}};
    CHECK_OK(sp_model_run(model, &x, 1, NULL, 0));
    CHECK_OK(sp_null_fail_command(options.device, 0));
    CHECK_STATUS(sp_model_run(model, &x, 1, out, 2), SP_FAILED);
    for (int i = 0; i < 2; i++) check_none(&out[i]);
    unsigned char small[4];
    out[1] = (sp_host_tensor){.data = small, .capacity = sizeof small};
    CHECK_STATUS(sp_model_run(model, &x, 1, out, 2), SP_MISMATCH);
    check_none(&out[0]);
    CHECK_OK(sp_model_release(model));
    CHECK_OK(sp_device_close(options.device));
}

TEST(each_allocation_of_outputs_that_fails_fails_the_run)
{
    const sp_model model = two_outputs(NULL);
    const sp_host_tensor x = input_x(2);
    CHECK_OK(sp_model_run(model, &x, 1, NULL, 0));
    for (uint64_t skip = 0; skip < 2; skip++) {
        sp_host_tensor out[2] = {{0}};
        sp_heap_fail_after(skip);
        const sp_status status = sp_model_run(model, &x, 1, out, 2);
        CHECK(sp_heap_has_failed());
        sp_heap_fail_after(UINT64_MAX);
        CHECK_EQ_INT(status, SP_OUT_OF_MEMORY);
        CHECK_MESSAGE(skip == 0 ? "no memory for output 'a' of 32 bytes"
                                : "no memory for output 'b' of 32 bytes");
        for (int i = 0; i < 2; i++) check_none(&out[i]);
    }
    CHECK_OK(sp_model_release(model));
}

/* ---- submitted ---- */

static void *submit_allocated(sp_model model, sp_future *future)
{
    sp_host_tensor x = input_x(1);
    sp_host_tensor y = {0};
    CHECK_OK(sp_model_submit(model, &x, 1, &y, 1, future));
    check_allocated(&y);
    void *const data = y.data;
    memset(&x, 0xff, sizeof x); /* the run reads and writes the structs no more */
    memset(&y, 0xff, sizeof y);
    return data;
}

TEST(a_submitted_run_allocates_at_the_call)
{
    const sp_model model = small_model(NULL);
    const small_row expected = small_run(model);
    enum { COUNT = 20 };
    sp_future futures[COUNT];
    void *data[COUNT];
    for (int i = 0; i < COUNT; i++) data[i] = submit_allocated(model, &futures[i]);
    CHECK_OK(sp_future_wait_all(futures, COUNT, -1));
    for (int i = 0; i < COUNT; i++) {
        sp_host_tensor y = {.data = data[i]};
        CHECK_EQ_MEM(y.data, &expected, sizeof expected);
        sp_host_tensor_free(&y);
        CHECK_OK(sp_future_release(futures[i]));
    }
    CHECK_OK(sp_model_release(model));
}

TEST(outputs_of_a_submitted_run_that_fails_stay_the_callers)
{
    sp_model_options options = {0};
    CHECK_OK(sp_device_open("null", &options.device));
    const sp_model model = small_model(&options);
    small_run(model);
    sp_future future;
    CHECK_OK(sp_null_fail_command(options.device, 0));
    sp_host_tensor y = {.data = submit_allocated(model, &future)};
    CHECK_STATUS(sp_future_wait(future), SP_FAILED);
    sp_host_tensor_free(&y);
    CHECK_OK(sp_future_release(future));
    CHECK_OK(sp_model_release(model));
    CHECK_OK(sp_device_close(options.device));
}

/* ---- shapes that follow from values ---- */

enum { LONG = 300 };

static sp_model found_model(const sp_model_options *options)
{
    writer graph = {0};
    partial_add_found(&graph, "values");
    add_node(&graph, make_node("Neg", "values", "y"));
    add_output(&graph, "y");
    sp_model model = {0};
    CHECK_OK(partial_load(&graph, options, &model));
    return model;
}

/* The first `ones` elements are 1, the others 0. */
static sp_status run_found(sp_model model, int64_t ones, sp_host_tensor *y)
{
    float x[LONG] = {0};
    for (int64_t i = 0; i < ones; i++) x[i] = 1;
    const sp_host_tensor input = partial_floats("x", x, LONG);
    return sp_model_run(model, &input, 1, y, 1);
}

TEST(one_run_is_enough_where_the_shape_follows_from_values)
{
    const sp_model model = found_model(NULL);
    sp_host_tensor y = {0};
    CHECK_OK(run_found(model, 7, &y));
    check_allocated(&y);
    CHECK_EQ_INT(y.shape[0], 7);
    CHECK(((const float *)y.data)[6] == -1.0f);
    CHECK_EQ_U64(partial_info(model).runs, 1);
    CHECK_OK(run_found(model, 3, &y)); /* into the same memory */
    CHECK_EQ_U64(y.bytes, 12);
    CHECK_EQ_U64(y.capacity, 28);
    CHECK_STATUS(run_found(model, 9, &y), SP_MISMATCH);
    CHECK_MESSAGE("needs 36 bytes; its capacity is 28");
    CHECK_EQ_U64(y.bytes, 36);
    CHECK(((const float *)y.data)[6] == -1.0f); /* nothing was written */
    sp_host_tensor_free(&y);
    CHECK_OK(run_found(model, 9, &y));
    CHECK_EQ_U64(y.capacity, 36);
    sp_host_tensor_free(&y);
    CHECK_OK(run_found(model, 0, &y));
    check_none(&y);
    CHECK_OK(sp_model_release(model));
}

TEST(a_model_has_its_own_limit_of_memory_between_plans)
{
    const sp_model model = found_model(&(sp_model_options){.max_partial_bytes = 1024});
    sp_host_tensor y = {0};
    CHECK_STATUS(run_found(model, 200, &y), SP_EXHAUSTED);
    CHECK_MESSAGE("max_partial_bytes allows 1024");
    check_none(&y);
    CHECK_OK(sp_model_release(model));
    const sp_model larger = found_model(&(sp_model_options){.max_partial_bytes = 1 << 20});
    CHECK_OK(run_found(larger, 200, &y));
    sp_host_tensor_free(&y);
    CHECK_OK(sp_model_release(larger));
}

/* ---- many threads ---- */

enum { THREADS = 6 };

static void run_allocated(void *arg, uint32_t index)
{
    const sp_model *models = arg;
    sp_host_tensor kept = {0};
    for (uint64_t round = 0; round < test_count(500, 30); round++) {
        const int64_t ones = 1 + (int64_t)((round + index) % 8);
        sp_host_tensor y = {0}, found = {0};
        const sp_host_tensor x = input_x(2);
        CHECK_OK(sp_model_run(models[0], &x, 1, &y, 1));
        CHECK_OK(sp_model_run(models[0], &x, 1, &kept, 1));
        CHECK_EQ_MEM(y.data, kept.data, y.bytes);
        CHECK_OK(run_found(models[1], ones, &found));
        CHECK_EQ_INT(found.shape[0], ones);
        sp_host_tensor_free(&y);
        sp_host_tensor_free(&found);
    }
    sp_host_tensor_free(&kept);
}

TEST(threads_have_outputs_allocated_at_the_same_time)
{
    sp_model models[2] = {small_model(NULL), found_model(NULL)};
    test_threads(THREADS, run_allocated, models);
    for (int i = 0; i < 2; i++) CHECK_OK(sp_model_release(models[i]));
}

TEST_MAIN
