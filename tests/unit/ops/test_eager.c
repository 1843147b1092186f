/* SPDX-License-Identifier: Apache-2.0 */
/* The guarantees of eager calls beyond their bits: ownership, order, waits, and that a result is
 * either complete or an error. */
#include <streampool/null_device.h>
#include <streampool/ops.h>

#include <fenv.h>
#include <string.h>

#include "runtime_fixture.h"

static sp_tensor floats_on(sp_device device, uint32_t rank, const int64_t *shape,
                           const float *values)
{
    sp_tensor tensor = {0};
    uint64_t count = 1;
    for (uint32_t i = 0; i < rank; i++) count *= (uint64_t)shape[i];
    CHECK_OK(
        sp_tensor_from_host(device, SP_F32, rank, shape, values, count * sizeof *values, &tensor));
    return tensor;
}

static sp_tensor list_of(const float *values, int64_t count)
{
    return floats_on(CPU, 1, &count, values);
}

static sp_tensor ints_of(const int64_t *values, int64_t count)
{
    sp_tensor tensor = {0};
    CHECK_OK(sp_tensor_from_host(CPU, SP_I64, 1, &count, values, (uint64_t)count * sizeof *values,
                                 &tensor));
    return tensor;
}

static void expect_floats(sp_tensor tensor, const float *wanted, uint64_t count)
{
    float values[64] = {0};
    CHECK_OK(sp_tensor_read(tensor, values, count * sizeof *values));
    CHECK_EQ_MEM(values, wanted, count * sizeof *values);
}

static sp_storage storage_of(sp_tensor tensor)
{
    sp_tensor_info info = {0};
    CHECK_OK(sp_tensor_get_info(tensor, &info));
    return info.storage;
}

static void release(sp_tensor tensor)
{
    CHECK_OK(sp_tensor_release(tensor));
}

/* ---- ownership ---- */

TEST(inputs_may_be_released_before_the_call_has_run)
{
    runtime_begin();
    const float values[3] = {1, -2, 3}, wanted[3] = {2, 0, 6};
    const sp_tensor x = list_of(values, 3);
    gate held = gate_closed(CPU);
    gate_hold(&held, current_stream());
    sp_tensor doubled, y;
    CHECK_OK(sp_add(x, x, &doubled));
    CHECK_OK(sp_relu(doubled, &y));
    release(x);
    release(doubled);
    gate_open(&held);
    expect_floats(y, wanted, 3);
    release(y);
    gate_destroy(&held);
    runtime_end();
}

TEST(a_result_never_shares_memory_with_an_input)
{
    runtime_begin();
    const float values[4] = {1, 2, 3, 4}, other[4] = {9, 9, 9, 9};
    const int64_t square[2] = {2, 2};
    const sp_tensor x = list_of(values, 4), shape = ints_of(square, 2);
    sp_tensor reshaped, same, cast;
    CHECK_OK(sp_op_run("Reshape", NULL, (const sp_tensor[]){x, shape}, 2, &reshaped, 1));
    CHECK_OK(sp_op_run("Identity", NULL, &x, 1, &same, 1));
    CHECK_OK(sp_cast(x, SP_F32, &cast));
    CHECK(storage_of(reshaped).bits != storage_of(x).bits);
    CHECK_OK(sp_tensor_write(x, other, sizeof other));
    expect_floats(reshaped, values, 4);
    expect_floats(same, values, 4);
    expect_floats(cast, values, 4);
    release(x);
    release(shape);
    release(reshaped);
    release(same);
    release(cast);
    runtime_end();
}

/* Every other column, reversed, both repeated: copies of the same elements give the same bits. */
TEST(views_of_views_are_inputs_like_any_other)
{
    runtime_begin();
    float values[24], got[24], wanted[24];
    for (int i = 0; i < 24; i++) values[i] = (float)i / 8 - 1;
    const int64_t matrix[2] = {4, 6}, repeated[3] = {2, 3, 4};
    const sp_tensor x = floats_on(CPU, 2, matrix, values);
    sp_tensor columns, turned, twice, packed, y, z;
    CHECK_OK(sp_tensor_slice(x, 1, 5, 3, -2, &columns));
    CHECK_OK(sp_tensor_transpose(columns, 0, 1, &turned));
    CHECK_OK(sp_tensor_expand(turned, 3, repeated, &twice));
    CHECK_OK(sp_tensor_contiguous(twice, &packed));
    CHECK_OK(sp_softmax(twice, 1, &y));
    CHECK_OK(sp_softmax(packed, 1, &z));
    CHECK_OK(sp_tensor_read(y, got, sizeof got));
    CHECK_OK(sp_tensor_read(z, wanted, sizeof wanted));
    CHECK_EQ_MEM(got, wanted, sizeof got);
    CHECK_EQ_MEM(got, got + 12, sizeof got / 2);
    const sp_tensor all[] = {x, columns, turned, twice, packed, y, z};
    for (size_t i = 0; i < SP_COUNT_OF(all); i++) release(all[i]);
    runtime_end();
}

/* ---- own tensors as outputs ---- */

static sp_status add_into(sp_tensor a, sp_tensor b, sp_tensor into, sp_tensor *y)
{
    const sp_op_options options = {.into = &into};
    return sp_op_run("Add", &options, (const sp_tensor[]){a, b}, 2, y, 1);
}

TEST(a_result_goes_into_a_tensor_of_the_caller)
{
    runtime_begin();
    const float values[3] = {1, 2, 3}, wanted[3] = {2, 4, 6}, again[3] = {3, 6, 9};
    const sp_tensor x = list_of(values, 3), into = list_of(values, 3);
    sp_tensor y;
    CHECK_OK(add_into(x, x, into, &y));
    CHECK_EQ_U64(y.bits, into.bits);
    release(y);
    expect_floats(into, wanted, 3);
    CHECK_OK(add_into(into, x, into, &y)); /* the same memory is read and written */
    release(y);
    expect_floats(into, again, 3);
    release(x);
    release(into);
    runtime_end();
}

TEST(a_result_goes_into_a_view_and_leaves_the_rest_alone)
{
    runtime_begin();
    const float values[6] = {1, 2, 3, 4, 5, 6}, ones[3] = {1, 1, 1};
    const float wanted[6] = {2, 2, 4, 4, 6, 6};
    const sp_tensor base = list_of(values, 6), one = list_of(ones, 3);
    sp_tensor evens, y;
    CHECK_OK(sp_tensor_slice(base, 0, 0, 3, 2, &evens));
    CHECK_OK(add_into(evens, one, evens, &y));
    expect_floats(base, wanted, 6);
    release(y);
    release(evens);
    release(one);
    release(base);
    runtime_end();
}

TEST(a_tensor_that_does_not_fit_the_result_is_refused_and_stays_as_it_is)
{
    runtime_begin();
    const float values[4] = {1, 2, 3, 4};
    const int64_t two = 2;
    const sp_tensor x = list_of(values, 3), longer = list_of(values, 4), one = list_of(values, 1);
    const sp_tensor ints = ints_of((const int64_t[]){1, 2, 3}, 3);
    sp_tensor y, repeated;
    CHECK_STATUS(add_into(x, x, longer, &y), SP_MISMATCH);
    CHECK_MESSAGE("Add of f32 [3], f32 [3]: output 0 is f32 of shape [3]; the given tensor is f32 "
                  "of shape [4]");
    CHECK_EQ_U64(y.bits, 0);
    CHECK_STATUS(add_into(x, x, ints, &y), SP_MISMATCH);
    CHECK_OK(sp_tensor_expand(one, 1, &two, &repeated));
    CHECK_STATUS(add_into(one, repeated, repeated, &y), SP_INVALID);
    CHECK_MESSAGE("share memory");
    expect_floats(longer, values, 4);
    CHECK_OK(sp_storage_freeze(storage_of(x)));
    CHECK_STATUS(add_into(longer, one, x, &y), SP_MISMATCH);
    CHECK_STATUS(add_into(x, x, x, &y), SP_INVALID);
    CHECK_MESSAGE("frozen");
    expect_floats(x, values, 3);
    release(repeated);
    release(x);
    release(longer);
    release(one);
    release(ints);
    runtime_end();
}

/* ---- order ---- */

static void write_slowly(void *arg)
{
    const sp_tensor tensor = *(const sp_tensor *)arg;
    const sp_storage storage = storage_of(tensor);
    uint32_t pattern = 0x40000000; /* 2.0f */
    submit_slow_fill(current_stream(), storage, 0, 20 * MILLISECOND);
    CHECK_OK(sp_storage_fill_async(current_stream(), whole(storage), &pattern, sizeof pattern));
}

TEST(a_call_follows_what_another_thread_has_submitted)
{
    runtime_begin();
    const float values[4] = {1, 1, 1, 1}, wanted[4] = {4, 4, 4, 4};
    const sp_tensor x = list_of(values, 4);
    sp_tensor y;
    run_on_thread(write_slowly, (void *)(uintptr_t)&x);
    CHECK_OK(sp_add(x, x, &y));
    expect_floats(y, wanted, 4);
    release(x);
    release(y);
    runtime_end();
}

TEST(later_writes_follow_the_call)
{
    runtime_begin();
    const float values[4] = {1, 1, 1, 1}, wanted[4] = {2, 2, 2, 2};
    const sp_tensor x = list_of(values, 4);
    gate held = gate_closed(CPU);
    gate_hold(&held, current_stream());
    sp_tensor y;
    CHECK_OK(sp_add(x, x, &y));
    run_on_thread(write_slowly, (void *)(uintptr_t)&x);
    gate_open(&held);
    expect_floats(y, wanted, 4);
    release(x);
    release(y);
    gate_destroy(&held);
    runtime_end();
}

TEST(a_call_returns_before_it_has_run)
{
    runtime_begin();
    const float values[4] = {1, 2, 3, 4}, wanted[4] = {2, 4, 6, 8};
    const sp_tensor x = list_of(values, 4);
    gate held = gate_closed(CPU);
    gate_hold(&held, current_stream());
    sp_tensor y;
    CHECK_OK(sp_add(x, x, &y));
    CHECK_STATUS(sp_stream_query(current_stream()), SP_NOT_READY);
    gate_open(&held);
    expect_floats(y, wanted, 4);
    release(x);
    release(y);
    gate_destroy(&held);
    runtime_end();
}

/* NonZero's shape depends on the data, so the call waits for the data: four elements, not two. */
TEST(an_op_whose_shape_is_in_its_data_waits_for_the_data)
{
    runtime_begin();
    const float values[4] = {0, 1, 0, 1};
    const sp_tensor x = list_of(values, 4);
    sp_tensor y;
    sp_tensor_info info;
    int64_t found[4] = {0};
    run_on_thread(write_slowly, (void *)(uintptr_t)&x);
    CHECK_OK(sp_op_run("NonZero", NULL, &x, 1, &y, 1));
    CHECK_OK(sp_tensor_get_info(y, &info));
    CHECK_EQ_INT(info.shape[1], 4);
    CHECK_OK(sp_tensor_read(y, found, info.bytes));
    CHECK_EQ_INT(found[3], 3);
    release(x);
    release(y);
    runtime_end();
}

static sp_tensor double_of(double value)
{
    sp_tensor tensor = {0};
    CHECK_OK(sp_tensor_from_host(CPU, SP_F64, 0, NULL, &value, sizeof value, &tensor));
    return tensor;
}

/* 6 / 0.3 is slightly above 20; and at 10 / 6, element 5 is slightly above or below element 3. */
TEST(shapes_and_numbers_do_not_depend_on_the_rounding_of_the_calling_thread)
{
    enum { WIDTH = 17 };
    static const int roundings[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    static const int64_t dims[3] = {1, 1, 6};
    runtime_begin();
    const float values[6] = {1, 2, 3, 4, 5, 6};
    const sp_tensor range[3] = {double_of(0), double_of(6), double_of(0.3)};
    const sp_tensor image = floats_on(CPU, 3, dims, values);
    float want[WIDTH + 1][WIDTH] = {{0}};
    for (size_t i = 0; i < SP_COUNT_OF(roundings); i++) {
        sp_tensor y;
        sp_tensor_info info;
        CHECK_EQ_INT(fesetround(roundings[i]), 0);
        const sp_status status = sp_op_run("Range", NULL, range, 3, &y, 1);
        CHECK_EQ_INT(fegetround(), roundings[i]);
        fesetround(FE_TONEAREST);
        REQUIRE_OK(status);
        CHECK_OK(sp_tensor_get_info(y, &info));
        CHECK_EQ_INT(info.shape[0], 20);
        release(y);
        for (int64_t width = 1; width <= WIDTH; width++) {
            const sp_op_attribute modes[] = {
                {.name = "mode", .type = SP_OP_STRING, .s = "nearest"},
                {.name = "nearest_mode", .type = SP_OP_STRING, .s = "floor"},
                {.name = "coordinate_transformation_mode",
                 .type = SP_OP_STRING,
                 .s = "asymmetric"}};
            const sp_op_options options = {.attributes = modes, .attribute_count = 3};
            const sp_tensor sizes = ints_of((const int64_t[]){1, 1, width}, 3);
            const sp_tensor inputs[4] = {image, {0}, {0}, sizes};
            float got[WIDTH] = {0};
            fesetround(roundings[i]);
            const sp_status resized = sp_op_run("Resize", &options, inputs, 4, &y, 1);
            fesetround(FE_TONEAREST);
            REQUIRE_OK(resized);
            CHECK_OK(sp_tensor_read(y, got, (uint64_t)width * sizeof *got));
            if (i == 0) memcpy(want[width], got, sizeof got);
            CHECK_EQ_MEM(got, want[width], sizeof got);
            release(y);
            release(sizes);
        }
    }
    for (int i = 0; i < 3; i++) release(range[i]);
    release(image);
    runtime_end();
}

/* ---- failures ---- */

TEST(an_index_outside_of_its_axis_fails_whoever_reads_the_result)
{
    runtime_begin();
    const float values[3] = {1, 2, 3};
    const sp_tensor x = list_of(values, 3), bad = ints_of((const int64_t[]){0, 3}, 2);
    sp_tensor y, z;
    float read[2];
    CHECK_OK(sp_gather(x, bad, 0, &y));
    CHECK_OK(sp_add(y, y, &z));
    const sp_status status = sp_tensor_read(z, read, sizeof read);
    CHECK(status != SP_OK);
    CHECK_MESSAGE("Gather");
    expect_floats(x, values, 3);
    (void)sp_stream_synchronize(current_stream());
    release(x);
    release(bad);
    release(y);
    release(z);
    runtime_end();
}

/* The op copies x, then writes one element of the copy: whichever fails, the whole result is
 * poisoned. */
TEST(a_failed_part_of_an_op_spoils_its_whole_result)
{
    for (uint64_t skip = 0; skip < 2; skip++) {
        runtime_begin();
        const sp_device null = open_null();
        const int64_t shape[1] = {3};
        const float values[3] = {1, 2, 3};
        const int64_t one = 1, index = 2;
        const sp_tensor x = floats_on(null, 1, shape, values);
        const sp_tensor update = floats_on(null, 1, &one, values);
        sp_tensor at, y;
        float read[3];
        CHECK_OK(sp_tensor_from_host(null, SP_I64, 1, &one, &index, sizeof index, &at));
        CHECK_OK(sp_device_synchronize(null));
        CHECK_OK(sp_null_fail_command(null, skip));
        CHECK_OK(sp_op_run("ScatterElements", NULL, (const sp_tensor[]){x, at, update}, 3, &y, 1));
        CHECK_STATUS(sp_tensor_read(y, read, sizeof read), SP_FAILED);
        CHECK_MESSAGE("injected");
        (void)sp_device_synchronize(null);
        release(x);
        release(at);
        release(update);
        release(y);
        CHECK_OK(sp_device_close(null));
        runtime_end();
    }
}

/* ---- refusals ---- */

TEST(messages_name_the_op_its_shapes_and_its_types)
{
    runtime_begin();
    const float values[6] = {1, 2, 3, 4, 5, 6};
    const int64_t shape[2] = {2, 3};
    const sp_tensor a = floats_on(CPU, 2, shape, values), b = list_of(values, 4);
    const sp_tensor ints = ints_of((const int64_t[]){1, 2, 3}, 3);
    sp_tensor y = {7};
    CHECK_STATUS(sp_add(a, b, &y), SP_MISMATCH);
    CHECK_MESSAGE("Add of f32 [2,3], f32 [4]: ");
    CHECK_EQ_U64(y.bits, 0);
    CHECK_STATUS(sp_add(a, ints, &y), SP_MISMATCH);
    CHECK_MESSAGE("Add of f32 [2,3], i64 [3]: inputs of types f32 and i64");
    CHECK_STATUS(sp_sigmoid(ints, &y), SP_UNSUPPORTED);
    CHECK_MESSAGE("Sigmoid of i64 [3]: not supported: Sigmoid version 13 for type i64");
    CHECK_STATUS(sp_softmax(a, 2, &y), SP_MISMATCH);
    CHECK_MESSAGE("Softmax of f32 [2,3]: ");
    CHECK_STATUS(sp_op_run("Softmux", NULL, &a, 1, &y, 1), SP_UNSUPPORTED);
    CHECK_MESSAGE("not supported: op Softmux");
    CHECK_STATUS(sp_op_run("Gelu", &(sp_op_options){.opset = 13}, &a, 1, &y, 1), SP_UNSUPPORTED);
    CHECK_MESSAGE("not supported: Gelu in opset 13");
    const sp_op_options foreign = {.domain = "com.example"};
    CHECK_STATUS(sp_op_run("Relu", &foreign, &a, 1, &y, 1), SP_UNSUPPORTED);
    CHECK_MESSAGE("com.example.Relu");
    release(a);
    release(b);
    release(ints);
    runtime_end();
}

TEST(tensors_of_two_devices_are_refused)
{
    runtime_begin();
    const sp_device null = open_null();
    const float values[3] = {1, 2, 3};
    const int64_t shape[1] = {3};
    const sp_tensor here = list_of(values, 3), there = floats_on(null, 1, shape, values);
    sp_tensor y;
    CHECK_STATUS(sp_add(here, there, &y), SP_INVALID);
    CHECK_MESSAGE("the tensors are on several devices");
    CHECK_STATUS(add_into(there, there, here, &y), SP_INVALID);
    const sp_op_options options = {.device = null};
    CHECK_STATUS(sp_op_run("Relu", &options, &here, 1, &y, 1), SP_INVALID);
    CHECK_OK(sp_op_run("Relu", &options, &there, 1, &y, 1));
    release(y);
    release(here);
    release(there);
    CHECK_OK(sp_device_close(null));
    runtime_end();
}

TEST(an_op_without_inputs_runs_where_the_options_say)
{
    runtime_begin();
    const sp_device null = open_null();
    sp_tensor y;
    sp_tensor_info info;
    float value;
    const sp_op_attribute half = {.name = "value_float", .type = SP_OP_FLOAT, .f = 0.5f};
    const sp_op_options options = {.device = null, .attributes = &half, .attribute_count = 1};
    CHECK_OK(sp_op_run("Constant", &options, NULL, 0, &y, 1));
    CHECK_OK(sp_tensor_get_info(y, &info));
    CHECK_EQ_U64(info.device.bits, null.bits);
    CHECK_OK(sp_tensor_read(y, &value, sizeof value));
    CHECK(value == 0.5f);
    release(y);
    CHECK_OK(sp_device_close(null));
    runtime_end();
}

/* ---- inside a host function ---- */

typedef struct visit {
    sp_tensor x, y;
    sp_status status;
} visit;

static void call_inside(void *ctx, sp_status status)
{
    visit *self = ctx;
    CHECK_OK(status);
    self->status = sp_relu(self->x, &self->y);
}

TEST(a_host_function_may_call)
{
    runtime_begin();
    const float values[3] = {-1, 2, -3}, wanted[3] = {0, 2, 0};
    visit self = {.x = list_of(values, 3)};
    CHECK_OK(sp_stream_host_function(current_stream(), call_inside, &self));
    CHECK_OK(sp_stream_synchronize(current_stream()));
    CHECK_OK(self.status);
    expect_floats(self.y, wanted, 3);
    release(self.x);
    release(self.y);
    runtime_end();
}

typedef struct shape_call {
    sp_stream stream;
    sp_atomic_u32 is_ready;
    sp_tensor x, y;
    sp_status status;
} shape_call;

static void ask_inside(void *ctx, sp_status status)
{
    shape_call *self = ctx;
    sp_stream_guard guard;
    CHECK_OK(status);
    await_at_least(&self->is_ready, 1);
    CHECK_OK(sp_stream_guard_begin(self->stream, &guard));
    self->status = sp_op_run("Shape", NULL, &self->x, 1, &self->y, 1);
    CHECK_OK(sp_stream_guard_end(&guard));
}

/* The result is written by the host. Memory of its size is used behind the function. */
TEST(a_result_that_is_known_waits_for_no_stream_inside_its_host_function)
{
    runtime_begin();
    const float values[2] = {1, 2};
    shape_call self = {.stream = current_stream(), .x = list_of(values, 2)};
    int64_t size;
    CHECK_OK(sp_stream_host_function(self.stream, ask_inside, &self));
    for (int i = 0; i < 4; i++) {
        sp_tensor used;
        CHECK_OK(sp_neg(self.x, &used));
        release(used);
    }
    raise_by_one(&self.is_ready);
    CHECK_OK(sp_stream_synchronize(self.stream));
    CHECK_OK(self.status);
    CHECK_OK(sp_tensor_read(self.y, &size, sizeof size));
    CHECK(size == 2);
    release(self.x);
    release(self.y);
    runtime_end();
}

TEST_MAIN
