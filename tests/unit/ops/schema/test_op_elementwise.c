/* SPDX-License-Identifier: Apache-2.0 */
/* Add, Sub, Mul, Div with broadcasting, old opsets, types, and Relu: values, bits, limits. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/model_data.h"
#include "support/test.h"

#define SHAPE(...)                                                                                 \
    ((sp_shape){.rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dims = {__VA_ARGS__}})

static const char *const ops[] = {"Add", "Sub", "Mul", "Div"};

static float apply_float(int op, float a, float b)
{
    const float y = op == 0 ? a + b : op == 1 ? a - b : op == 2 ? a * b : a / b;
    return isnan(y) ? NAN : y;
}

/* Wraps; x / 0 is 0. */
static int64_t apply_int(int op, int64_t a, int64_t b)
{
    const uint64_t x = (uint64_t)a, y = (uint64_t)b;
    if (op == 3) return b == 0 ? 0 : b == -1 ? (int64_t)(0 - x) : a / b;
    return (int64_t)(op == 0 ? x + y : op == 1 ? x - y : x * y);
}

/* The element of `in` for flat index `i` of an output of shape `y`. */
static uint64_t source(const sp_array *in, const sp_shape *y, uint64_t i)
{
    int64_t strides[SP_MAX_RANK], at = 0;
    sp__shape_broadcast_strides(&in->shape, y, strides);
    for (uint32_t d = y->rank; d-- > 0; i /= (uint64_t)y->dims[d]) {
        at += (int64_t)(i % (uint64_t)y->dims[d]) * strides[d];
    }
    return (uint64_t)at;
}

static void check_output(int op, const sp_array *in, const sp_array *out)
{
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < sp__shape_count(&out->shape); i++) {
        const uint64_t a = source(&in[0], &out->shape, i), b = source(&in[1], &out->shape, i);
        if (out->dtype == SP_F32) {
            const float *x = in[0].data, *y = in[1].data;
            const float want = apply_float(op, x[a], y[b]);
            wrong += !data_is_same(((const float *)out->data)[i], want);
        } else if (out->dtype == SP_I64) {
            const int64_t *x = in[0].data, *y = in[1].data;
            wrong += ((const int64_t *)out->data)[i] != apply_int(op, x[a], y[b]);
        } else {
            const int32_t *x = in[0].data, *y = in[1].data;
            wrong += ((const int32_t *)out->data)[i] != (int32_t)apply_int(op, x[a], y[b]);
        }
    }
    CHECK_EQ_U64(wrong, 0);
}

/* Random bits: NaNs, infinities, sometimes integer zeros. */
static sp_array random_array(data_random *random, sp_dtype dtype, const sp_shape *shape)
{
    sp_array array;
    if (sp__array_init(&array, dtype, shape) != SP_OK) abort();
    for (uint64_t i = 0; i < array.bytes / sp_dtype_bytes(dtype); i++) {
        uint64_t bits = data_next(random);
        if (dtype != SP_F32 && bits % 5 == 0) bits = bits / 5 % 2 == 0 ? 0 : UINT64_MAX;
        memcpy((char *)array.data + i * sp_dtype_bytes(dtype), &bits, sp_dtype_bytes(dtype));
    }
    return array;
}

static void check_binary(sp_dtype dtype, sp_shape a, sp_shape b, data_random *random)
{
    sp_array in[2] = {random_array(random, dtype, &a), random_array(random, dtype, &b)};
    for (int run = 0; run < 4 * SP_CPU_ISA_COUNT; run++) {
        const data_call call = {.op = ops[run % 4],
                                .version = 14,
                                .inputs = in,
                                .input_count = 2,
                                .output_count = 1,
                                .isa = (sp_cpu_isa)(run / 4)};
        if (sp__cpu_kernels(call.isa) == NULL) continue;
        sp_array out;
        REQUIRE_OK(data_run_op(&call, &out));
        check_output(run % 4, in, &out);
        sp__array_deinit(&out);
    }
    for (int i = 0; i < 2; i++) sp__array_deinit(&in[i]);
}

TEST(binary_ops_broadcast_and_round_once)
{
    data_random random = {21};
    static const sp_dtype dtypes[] = {SP_F32, SP_I32, SP_I64};
    for (size_t i = 0; i < SP_COUNT_OF(dtypes); i++) {
        const sp_dtype t = dtypes[i];
        check_binary(t, SHAPE(1000), SHAPE(1000), &random);
        check_binary(t, SHAPE(3, 5, 7), (sp_shape){0}, &random);
        check_binary(t, (sp_shape){0}, (sp_shape){0}, &random);
        check_binary(t, SHAPE(1, 8, 28, 28), SHAPE(8, 1, 1), &random);
        check_binary(t, SHAPE(5, 1, 7), SHAPE(3, 1), &random);
        check_binary(t, SHAPE(4, 33), SHAPE(33), &random);
        check_binary(t, SHAPE(33), SHAPE(4, 33), &random);
        check_binary(t, SHAPE(2, 1, 3, 1, 2, 1, 2, 1), SHAPE(1, 2, 1, 3, 1, 2, 1, 2), &random);
        check_binary(t, SHAPE(4, 0, 3), SHAPE(1, 3), &random);
        check_binary(t, SHAPE(300, 500), SHAPE(300, 1), &random); /* several tiles */
    }
}

TEST(types_must_agree)
{
    data_random random = {1};
    const sp_shape s = SHAPE(2);
    sp_array in[2] = {random_array(&random, SP_F32, &s), random_array(&random, SP_I64, &s)}, out;
    const data_call call = {
        .op = "Add", .version = 7, .inputs = in, .input_count = 2, .output_count = 1};
    CHECK_STATUS(data_run_op(&call, &out), SP_MISMATCH);
    CHECK_MESSAGE("f32 and i64");
    for (int i = 0; i < 2; i++) sp__array_deinit(&in[i]);
}

/* Opset 6: the second operand is aligned at `axis`, and repeated only on request. */
TEST(old_opsets_broadcast_by_attributes)
{
    data_random random = {4};
    const sp_shape a = SHAPE(2, 3, 4), b = SHAPE(3), c = SHAPE(4);
    const int64_t one = 1;
    sp_array in[2] = {data_floats(&random, &a), data_floats(&random, &b)}, out;
    const sp_attribute attributes[] = {data_attribute_int("broadcast", &one),
                                       data_attribute_int("axis", &one)};
    data_call call = {.op = "Add",
                      .version = 6,
                      .attributes = attributes,
                      .attribute_count = 2,
                      .inputs = in,
                      .input_count = 2,
                      .output_count = 1};
    REQUIRE_OK(data_run_op(&call, &out));
    for (int i = 0; i < 24; i++) {
        const float *x = in[0].data, *y = in[1].data;
        CHECK(data_is_same(((float *)out.data)[i], x[i] + y[i / 4 % 3]));
    }
    sp__array_deinit(&out);
    call.attribute_count = 1; /* at the end: 3 against 4 */
    CHECK_STATUS(data_run_op(&call, &out), SP_MISMATCH);
    CHECK_MESSAGE("[2,3,4] and [3");
    sp__array_deinit(&in[1]);
    in[1] = data_floats(&random, &c);
    call.attribute_count = 0;
    CHECK_STATUS(data_run_op(&call, &out), SP_MISMATCH);
    CHECK_MESSAGE("do not broadcast in opset 6");
    for (int i = 0; i < 2; i++) sp__array_deinit(&in[i]);
}

TEST(a_type_that_an_op_does_not_have_is_named_with_the_op)
{
    static const struct {
        const char *op;
        uint32_t version, inputs;
        sp_dtype dtype;
        const char *message;
    } calls[] = {{"Add", 14, 2, SP_BOOL, "Add version 14 for type bool"},
                 {"And", 7, 2, SP_F32, "And version 7 for type f32"},
                 {"Erf", 13, 1, SP_F64, "Erf version 13 for type f64"},
                 {"Sqrt", 13, 1, SP_I32, "Sqrt version 13 for type i32"},
                 {"Max", 13, 2, SP_BOOL, "Max version 13 for type bool"},
                 {"Pow", 15, 2, SP_U8, "Pow version 15 for type u8"},
                 {"Not", 1, 1, SP_I64, "Not version 1 for type i64"},
                 {"Mod", 13, 2, SP_F32, "not supported: Mod version 13, fmod '0' of type f32"}};
    const sp_shape s = SHAPE(3);
    for (size_t i = 0; i < SP_COUNT_OF(calls); i++) {
        data_random random = {5};
        sp_array out, in[2] = {random_array(&random, calls[i].dtype, &s),
                               random_array(&random, calls[i].dtype, &s)};
        const data_call call = {.op = calls[i].op,
                                .version = calls[i].version,
                                .inputs = in,
                                .input_count = calls[i].inputs,
                                .output_count = 1};
        CHECK_STATUS(data_run_op(&call, &out), SP_UNSUPPORTED);
        CHECK_MESSAGE(calls[i].message);
        for (int k = 0; k < 2; k++) sp__array_deinit(&in[k]);
    }
}

TEST(relu_keeps_positives_and_nans_and_gives_plus_zero)
{
    const float in[] = {1.5f, -2.0f, 0.0f, -0.0f, HUGE_VALF, -HUGE_VALF, 1e-45f, -1e-45f, -NAN};
    const float want[] = {1.5f, 0, 0, 0, HUGE_VALF, 0, 1e-45f, 0, NAN};
    const sp_shape s = SHAPE(SP_COUNT_OF(in));
    sp_array x, out;
    REQUIRE_OK(sp__array_init(&x, SP_F32, &s));
    memcpy(x.data, in, sizeof(in));
    for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
        const data_call call = {.op = "Relu",
                                .version = 14,
                                .inputs = &x,
                                .input_count = 1,
                                .output_count = 1,
                                .isa = (sp_cpu_isa)isa};
        if (sp__cpu_kernels(call.isa) == NULL) continue;
        REQUIRE_OK(data_run_op(&call, &out));
        CHECK_EQ_MEM(out.data, want, sizeof(want));
        sp__array_deinit(&out);
    }
    sp__array_deinit(&x);
}

TEST_MAIN
