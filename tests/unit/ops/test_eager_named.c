/* SPDX-License-Identifier: Apache-2.0 */
/* The operators with their own function: each gives the bits of sp_op_run, for its arguments as
 * attributes, and refuses invalid ones. */
#include <streampool/ops.h>

#include <math.h>
#include <string.h>

#include "runtime_fixture.h"
#include "support/eager_case.h"

static data_random numbers = {.state = 3};

static sp_tensor tensor_of(sp_array array)
{
    sp_tensor tensor = {0};
    CHECK_OK(tensor_from_array(TESTED, &array, true, &tensor));
    sp__array_deinit(&array);
    return tensor;
}

#define FLOATS(...) tensor_of(data_floats(&numbers, &SHAPE(__VA_ARGS__)))

static sp_tensor bools(uint64_t count)
{
    sp_array array = data_counted(SP_BOOL, SHAPE((int64_t)count), 0);
    for (uint64_t i = 0; i < count; i++) ((uint8_t *)array.data)[i] = i % 3 == 1;
    return tensor_of(array);
}

static void release(sp_tensor tensor)
{
    CHECK_OK(sp_tensor_release(tensor));
}

/* Checks that both results have the same type, shape and bits, and releases them. */
static void expect_same(const char *what, sp_tensor got, sp_tensor wanted)
{
    sp_array a = {0}, b = {0};
    CHECK_OK(array_from_tensor(got, &a));
    CHECK_OK(array_from_tensor(wanted, &b));
    const bool is_same = arrays_are_same(&a, &b, 1);
    if (!is_same) test_note("%s", what);
    CHECK(is_same);
    sp__array_deinit(&a);
    sp__array_deinit(&b);
    release(got);
    release(wanted);
}

static sp_tensor run(const char *op, uint32_t opset, const sp_op_attribute *attributes,
                     uint32_t count, const sp_tensor *inputs, uint32_t input_count)
{
    sp_tensor y = {0};
    const sp_op_options options = {
        .opset = opset, .attributes = attributes, .attribute_count = count};
    CHECK_OK(sp_op_run(op, &options, inputs, input_count, &y, 1));
    return y;
}

#define INT(name_, value_) ((sp_op_attribute){.name = (name_), .type = SP_OP_INT, .i = (value_)})
#define FLOAT(name_, value_)                                                                       \
    ((sp_op_attribute){.name = (name_), .type = SP_OP_FLOAT, .f = (value_)})
#define LIST(name_, ...)                                                                           \
    ((sp_op_attribute){.name = (name_),                                                            \
                       .type = SP_OP_INTS,                                                         \
                       .count = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t),                \
                       .ints = (int64_t[]){__VA_ARGS__}})

typedef sp_status (*unary)(sp_tensor x, sp_tensor *y);
typedef sp_status (*binary)(sp_tensor a, sp_tensor b, sp_tensor *y);

static void check_unary(const char *op, unary function, sp_tensor x)
{
    sp_tensor y = {0};
    CHECK_OK(function(x, &y));
    expect_same(op, y, run(op, 0, NULL, 0, &x, 1));
    CHECK_STATUS(function(x, NULL), SP_INVALID);
    CHECK_STATUS(function((sp_tensor){0}, &y), SP_INVALID);
    CHECK_MESSAGE(op);
    CHECK_EQ_U64(y.bits, 0);
}

TEST(functions_of_one_tensor)
{
    static const struct {
        const char *op;
        unary function;
    } rows[] = {{"Abs", sp_abs},   {"Neg", sp_neg},
                {"Sign", sp_sign}, {"Floor", sp_floor},
                {"Ceil", sp_ceil}, {"Round", sp_round},
                {"Sqrt", sp_sqrt}, {"Reciprocal", sp_reciprocal},
                {"Exp", sp_exp},   {"Log", sp_log},
                {"Erf", sp_erf},   {"IsNaN", sp_is_nan},
                {"Relu", sp_relu}, {"Sigmoid", sp_sigmoid},
                {"Tanh", sp_tanh}, {"Softplus", sp_softplus},
                {"Mish", sp_mish}, {"HardSwish", sp_hard_swish}};
    runtime_begin();
    const sp_tensor x = FLOATS(3, 5);
    for (size_t i = 0; i < SP_COUNT_OF(rows); i++) {
        check_unary(rows[i].op, rows[i].function, x);
    }
    const sp_tensor is_set = bools(7);
    check_unary("Not", sp_logical_not, is_set);
    release(x);
    release(is_set);
    runtime_end();
}

static void check_binary(const char *op, binary function, sp_tensor a, sp_tensor b)
{
    sp_tensor y = {0};
    CHECK_OK(function(a, b, &y));
    expect_same(op, y, run(op, 0, NULL, 0, (const sp_tensor[]){a, b}, 2));
    CHECK_STATUS(function(a, b, NULL), SP_INVALID);
    CHECK_STATUS(function(a, (sp_tensor){0}, &y), SP_INVALID);
    CHECK_EQ_U64(y.bits, 0);
}

TEST(functions_of_two_tensors)
{
    static const struct {
        const char *op;
        binary function;
    } rows[] = {{"Add", sp_add},         {"Sub", sp_sub},
                {"Mul", sp_mul},         {"Div", sp_div},
                {"Pow", sp_pow},         {"Max", sp_maximum},
                {"Min", sp_minimum},     {"Equal", sp_equal},
                {"Less", sp_less},       {"LessOrEqual", sp_less_or_equal},
                {"Greater", sp_greater}, {"GreaterOrEqual", sp_greater_or_equal}};
    runtime_begin();
    const sp_tensor a = FLOATS(2, 3, 5), b = FLOATS(3, 1), left = bools(6), right = bools(1);
    for (size_t i = 0; i < SP_COUNT_OF(rows); i++) {
        check_binary(rows[i].op, rows[i].function, a, b);
    }
    check_binary("And", sp_logical_and, left, right);
    check_binary("Or", sp_logical_or, left, right);
    check_binary("Xor", sp_logical_xor, left, right);
    const sp_tensor x = tensor_of(INTS(7, -7, 9)), y = tensor_of(INTS(3, 3, -4));
    check_binary("Mod", sp_remainder, x, y);
    const sp_tensor m = FLOATS(2, 4, 3), n = FLOATS(3, 6);
    check_binary("MatMul", sp_matmul, m, n);
    const sp_tensor all[] = {a, b, left, right, x, y, m, n};
    for (size_t i = 0; i < SP_COUNT_OF(all); i++) release(all[i]);
    runtime_end();
}

TEST(activations_with_arguments)
{
    runtime_begin();
    const sp_tensor x = FLOATS(3, 5);
    sp_tensor y = {0}, swish = {0};
    CHECK_OK(sp_leaky_relu(x, 0.25f, &y));
    expect_same("leaky", y, run("LeakyRelu", 0, &FLOAT("alpha", 0.25f), 1, &x, 1));
    CHECK_OK(sp_elu(x, 0.5f, &y));
    expect_same("elu", y, run("Elu", 0, &FLOAT("alpha", 0.5f), 1, &x, 1));
    CHECK_OK(sp_gelu(x, false, &y));
    expect_same("gelu", y, run("Gelu", 0, NULL, 0, &x, 1));
    const sp_op_attribute tanh_form = {.name = "approximate", .type = SP_OP_STRING, .s = "tanh"};
    CHECK_OK(sp_gelu(x, true, &y));
    expect_same("gelu", y, run("Gelu", 0, &tanh_form, 1, &x, 1));
    CHECK_OK(sp_silu(x, &y));
    CHECK_OK(sp_sigmoid(x, &swish));
    expect_same("silu", y, run("Mul", 0, NULL, 0, (const sp_tensor[]){x, swish}, 2));
    release(swish);
    CHECK_STATUS(sp_silu(x, NULL), SP_INVALID);
    CHECK_OK(sp_clip(x, -0.5f, INFINITY, &y));
    expect_same("clip", y, run("Clip", 6, &FLOAT("min", -0.5f), 1, &x, 1));
    CHECK_OK(sp_cast(x, SP_I32, &y));
    expect_same("cast", y, run("Cast", 0, &INT("to", 6), 1, &x, 1));
    CHECK_STATUS(sp_cast(x, SP_DTYPE_NONE, &y), SP_INVALID);
    CHECK_STATUS(sp_cast(x, (sp_dtype)99, &y), SP_INVALID);
    CHECK_OK(sp_softmax(x, 0, &y));
    expect_same("softmax", y, run("Softmax", 0, &INT("axis", 0), 1, &x, 1));
    CHECK_OK(sp_log_softmax(x, 1, &y));
    expect_same("log_softmax", y, run("LogSoftmax", 0, &INT("axis", 1), 1, &x, 1));
    release(x);
    runtime_end();
}

TEST(linear_is_a_product_and_a_sum)
{
    runtime_begin();
    const sp_tensor x = FLOATS(2, 3, 5), w = FLOATS(4, 5), b = FLOATS(4), none = {0};
    sp_tensor y = {0}, turned = {0}, product = {0};
    CHECK_OK(sp_tensor_transpose(w, 0, 1, &turned));
    CHECK_OK(sp_matmul(x, turned, &product));
    CHECK_OK(sp_linear(x, w, b, &y));
    expect_same("linear", y, run("Add", 0, NULL, 0, (const sp_tensor[]){product, b}, 2));
    CHECK_OK(sp_linear(x, w, none, &y));
    expect_same("linear without b", y, product);
    const sp_tensor row = FLOATS(5), empty = FLOATS(0, 5),
                    scalar = tensor_of(data_counted(SP_F32, (sp_shape){0}, 0));
    sp_tensor_info info;
    CHECK_OK(sp_linear(row, w, b, &y));
    CHECK_OK(sp_tensor_get_info(y, &info));
    CHECK_EQ_INT(info.rank, 1);
    CHECK_EQ_INT(info.shape[0], 4);
    release(y);
    CHECK_OK(sp_linear(empty, w, b, &y));
    CHECK_OK(sp_tensor_get_info(y, &info));
    CHECK_EQ_INT(info.shape[0], 0);
    CHECK_EQ_INT(info.shape[1], 4);
    release(y);
    CHECK_STATUS(sp_linear(scalar, w, b, &y), SP_MISMATCH);
    CHECK_STATUS(sp_linear(x, b, b, &y), SP_MISMATCH);
    CHECK_MESSAGE("w has rank 1; expected [out, in]");
    CHECK_STATUS(sp_linear(b, w, b, &y), SP_MISMATCH);
    CHECK_MESSAGE("Gemm of f32 [1,4], f32 [4,5], f32 [4]: ");
    CHECK_STATUS(sp_linear(x, none, b, &y), SP_INVALID);
    CHECK_STATUS(sp_linear(none, w, b, &y), SP_INVALID);
    CHECK_STATUS(sp_linear(x, w, b, NULL), SP_INVALID);
    const sp_tensor all[] = {x, w, b, turned, row, empty, scalar};
    for (size_t i = 0; i < SP_COUNT_OF(all); i++) release(all[i]);
    runtime_end();
}

TEST(normalisation)
{
    runtime_begin();
    const sp_tensor x = FLOATS(2, 3, 5), scale = FLOATS(5), bias = FLOATS(5), none = {0};
    const sp_tensor c[4] = {FLOATS(3), FLOATS(3), FLOATS(3), tensor_of(INTS(1, 2, 3))};
    sp_tensor y = {0}, variance = {0};
    const sp_op_attribute layer[] = {INT("axis", -1), FLOAT("epsilon", 0.01f)};
    CHECK_OK(sp_layer_norm(x, scale, bias, -1, 0.01f, &y));
    expect_same("layer_norm", y,
                run("LayerNormalization", 0, layer, 2, (const sp_tensor[]){x, scale, bias}, 3));
    CHECK_OK(sp_layer_norm(x, scale, none, -1, 0.01f, &y));
    expect_same("layer_norm", y,
                run("LayerNormalization", 0, layer, 2, (const sp_tensor[]){x, scale}, 2));
    CHECK_OK(sp_cast(c[3], SP_F32, &variance));
    CHECK_OK(sp_batch_norm(x, c[0], c[1], c[2], variance, 0.01f, &y));
    expect_same("batch_norm", y,
                run("BatchNormalization", 0, &layer[1], 1,
                    (const sp_tensor[]){x, c[0], c[1], c[2], variance}, 5));
    const sp_tensor all[] = {x, scale, bias, c[0], c[1], c[2], c[3], variance};
    for (size_t i = 0; i < SP_COUNT_OF(all); i++) release(all[i]);
    runtime_end();
}

TEST(windows_over_images)
{
    runtime_begin();
    const sp_tensor x = FLOATS(2, 4, 7, 6), w = FLOATS(6, 2, 3, 3), b = FLOATS(6), none = {0};
    const sp_tensor line = FLOATS(2, 4, 7);
    sp_tensor y = {0};
    const sp_conv2d_options conv = {
        .stride = {2, 1}, .padding = {1, 0, 1, 2}, .dilation = {1, 2}, .groups = 2};
    const sp_op_attribute conv_attributes[] = {LIST("strides", 2, 1), LIST("pads", 1, 0, 1, 2),
                                               LIST("dilations", 1, 2), INT("group", 2)};
    CHECK_OK(sp_conv2d(x, w, b, &conv, &y));
    expect_same("conv2d", y, run("Conv", 0, conv_attributes, 4, (const sp_tensor[]){x, w, b}, 3));
    CHECK_OK(sp_conv2d(x, w, none, &(sp_conv2d_options){.groups = 2}, &y));
    expect_same("conv2d", y, run("Conv", 0, &conv_attributes[3], 1, (const sp_tensor[]){x, w}, 2));
    CHECK_STATUS(sp_conv2d(x, w, b, NULL, &y), SP_MISMATCH);
    CHECK_STATUS(sp_conv2d(line, w, b, &conv, &y), SP_MISMATCH);
    CHECK_MESSAGE("x has rank 3; expected [batch, channels, height, width]");
    CHECK_STATUS(sp_conv2d(x, w, b, &conv, NULL), SP_INVALID);

    sp_pool2d_options pool = {
        .kernel = {3, 2}, .stride = {2, 2}, .padding = {1, 0, 1, 0}, .is_ceil = true};
    const sp_op_attribute pool_attributes[] = {LIST("kernel_shape", 3, 2), LIST("strides", 2, 2),
                                               LIST("pads", 1, 0, 1, 0), INT("ceil_mode", 1),
                                               INT("count_include_pad", 1)};
    CHECK_OK(sp_max_pool2d(x, &pool, &y));
    expect_same("max_pool2d", y, run("MaxPool", 0, pool_attributes, 4, &x, 1));
    CHECK_OK(sp_avg_pool2d(x, &pool, &y));
    expect_same("avg_pool2d", y, run("AveragePool", 0, pool_attributes, 4, &x, 1));
    pool.counts_padding = true;
    CHECK_OK(sp_avg_pool2d(x, &pool, &y));
    expect_same("avg_pool2d", y, run("AveragePool", 0, pool_attributes, 5, &x, 1));
    CHECK_STATUS(sp_max_pool2d(x, &pool, &y), SP_INVALID);
    CHECK_STATUS(sp_avg_pool2d(x, NULL, &y), SP_INVALID);
    CHECK_STATUS(sp_avg_pool2d(x, &pool, NULL), SP_INVALID);
    CHECK_STATUS(sp_avg_pool2d(x, &(sp_pool2d_options){0}, &y), SP_MISMATCH);
    CHECK_STATUS(sp_avg_pool2d(line, &pool, &y), SP_MISMATCH);
    const sp_tensor all[] = {x, w, b, line};
    for (size_t i = 0; i < SP_COUNT_OF(all); i++) release(all[i]);
    runtime_end();
}

typedef sp_status (*reduction)(sp_tensor x, const int64_t *axes, uint32_t axis_count,
                               bool keeps_dims, sp_tensor *y);

static void check_reduction(const char *op, reduction function, sp_tensor x)
{
    const sp_op_attribute some[] = {INT("keepdims", 0), LIST("axes", 0, 2)};
    const uint32_t opset = strcmp(op, "ReduceSum") == 0 ? 11 : 13;
    sp_tensor y = {0};
    CHECK_OK(function(x, (const int64_t[]){0, 2}, 2, false, &y));
    expect_same(op, y, run(op, opset, some, 2, &x, 1));
    CHECK_OK(function(x, NULL, 0, true, &y));
    expect_same(op, y, run(op, opset, NULL, 0, &x, 1));
    CHECK_STATUS(function(x, NULL, 1, true, &y), SP_INVALID);
    CHECK_STATUS(function(x, (const int64_t[]){3}, 1, true, &y), SP_MISMATCH);
    CHECK_STATUS(function(x, NULL, 0, true, NULL), SP_INVALID);
}

TEST(reductions)
{
    runtime_begin();
    const sp_tensor x = FLOATS(3, 4, 40);
    check_reduction("ReduceSum", sp_reduce_sum, x);
    check_reduction("ReduceMean", sp_reduce_mean, x);
    check_reduction("ReduceMax", sp_reduce_max, x);
    check_reduction("ReduceMin", sp_reduce_min, x);
    check_reduction("ReduceProd", sp_reduce_prod, x);
    const sp_op_attribute arg[] = {INT("axis", 1), INT("keepdims", 0)};
    sp_tensor y = {0};
    CHECK_OK(sp_argmax(x, 1, false, &y));
    expect_same("argmax", y, run("ArgMax", 0, arg, 2, &x, 1));
    CHECK_OK(sp_argmin(x, 1, true, &y));
    expect_same("argmin", y, run("ArgMin", 0, arg, 1, &x, 1));
    CHECK_STATUS(sp_argmin(x, 5, true, &y), SP_MISMATCH);
    release(x);
    runtime_end();
}

TEST(moves)
{
    runtime_begin();
    const sp_tensor x = FLOATS(3, 6), other = FLOATS(3, 2), indices = tensor_of(INTS(2, -3, 0));
    const sp_tensor condition = bools(6);
    const sp_tensor pair[2] = {x, other};
    sp_tensor y = {0}, parts[3] = {{0}};
    CHECK_OK(sp_concat(pair, 2, 1, &y));
    expect_same("concat", y, run("Concat", 0, &INT("axis", 1), 1, pair, 2));
    CHECK_STATUS(sp_concat(pair, 2, 0, &y), SP_MISMATCH);
    CHECK_STATUS(sp_concat(NULL, 2, 0, &y), SP_INVALID);
    CHECK_STATUS(sp_concat(pair, 0, 0, &y), SP_INVALID);
    CHECK_OK(sp_gather(x, indices, 0, &y));
    expect_same("gather", y, run("Gather", 0, NULL, 0, (const sp_tensor[]){x, indices}, 2));
    CHECK_OK(sp_where(condition, x, x, &y));
    expect_same("where", y, run("Where", 0, NULL, 0, (const sp_tensor[]){condition, x, x}, 3));
    CHECK_OK(sp_split(x, 1, (const int64_t[]){1, 2, 3}, 3, parts));
    CHECK_OK(sp_concat(parts, 3, 1, &y));
    sp_tensor copy = {0};
    CHECK_OK(sp_tensor_contiguous(x, &copy));
    expect_same("split", y, copy);
    for (int i = 0; i < 3; i++) release(parts[i]);
    CHECK_OK(sp_split(x, -1, NULL, 2, parts));
    for (int i = 0; i < 2; i++) release(parts[i]);
    CHECK_STATUS(sp_split(x, 1, (const int64_t[]){1, 2, 4}, 3, parts), SP_MISMATCH);
    for (int i = 0; i < 3; i++) CHECK_EQ_U64(parts[i].bits, 0);
    CHECK_STATUS(sp_split(x, 1, NULL, 0, parts), SP_INVALID);
    CHECK_STATUS(sp_split(x, 1, NULL, UINT32_MAX, parts), SP_INVALID);
    CHECK_STATUS(sp_split(x, 1, NULL, 2, NULL), SP_INVALID);
    const sp_tensor all[] = {x, other, indices, condition};
    for (size_t i = 0; i < SP_COUNT_OF(all); i++) release(all[i]);
    runtime_end();
}

/* More rows than a grid has tiles, all empty. */
TEST(parts_of_any_number_of_empty_rows_cost_nothing)
{
    static const int64_t dims[2] = {INT64_C(1) << 33, 0};
    runtime_begin();
    sp_tensor x = {0}, y = {0}, parts[2] = {{0}, {0}};
    CHECK_OK(sp_tensor_create(TESTED, SP_U8, 2, dims, &x));
    CHECK_OK(sp_concat((sp_tensor[]){x, x}, 2, 1, &y));
    CHECK_OK(sp_split(y, 1, (const int64_t[]){0, 0}, 2, parts));
    const sp_tensor all[] = {y, parts[0], parts[1]};
    for (size_t i = 0; i < SP_COUNT_OF(all); i++) {
        sp_array array = {0};
        CHECK_OK(array_from_tensor(all[i], &array));
        CHECK_EQ_U64(array.bytes, 0);
        CHECK_EQ_INT(array.shape.dims[0], INT64_C(1) << 33);
        sp__array_deinit(&array);
        release(all[i]);
    }
    release(x);
    runtime_end();
}

TEST_MAIN
