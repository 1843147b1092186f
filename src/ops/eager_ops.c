/* SPDX-License-Identifier: Apache-2.0 */
/* The operators with their own public function. Each is one row of the registry, of the version
 * that takes as an attribute what newer ones take as an input, so no call waits for its axes. */
#include "base/error.h"
#include "base/macros.h"
#include "ops/eager.h"
#include "ops/registry.h"
#include "runtime/checker.h"
#include "tensor/onnx_dtype.h"

#define MAX_ATTRIBUTES 6

/* A call under construction; it stores the values of singular attributes. */
typedef struct named_call {
    const char *op;
    uint32_t version;
    sp_attribute items[MAX_ATTRIBUTES];
    int64_t ints[MAX_ATTRIBUTES];
    float floats[MAX_ATTRIBUTES];
    sp_text texts[MAX_ATTRIBUTES];
    uint32_t count;
    const void *call_site;
} named_call;

/* Used in the public function itself, so call_site is its caller. */
#define NAMED_CALL(op_, version_)                                                                  \
    ((named_call){.op = (op_), .version = (version_), .call_site = SP_CALL_SITE})

static void add_ints(named_call *u, const char *name, const int64_t *values, uint32_t count)
{
    u->items[u->count++] = (sp_attribute){
        .name = sp__text(name), .type = SP_ATTRIBUTE_INTS, .count = count, .as.ints = values};
}

static void add_int(named_call *u, const char *name, int64_t value)
{
    u->ints[u->count] = value;
    add_ints(u, name, &u->ints[u->count], 1);
    u->items[u->count - 1].type = SP_ATTRIBUTE_INT;
}

static void add_float(named_call *u, const char *name, float value)
{
    u->floats[u->count] = value;
    u->items[u->count] = (sp_attribute){.name = sp__text(name),
                                        .type = SP_ATTRIBUTE_FLOAT,
                                        .count = 1,
                                        .as.floats = &u->floats[u->count]};
    u->count++;
}

static void add_text(named_call *u, const char *name, const char *value)
{
    u->texts[u->count] = sp__text(value);
    u->items[u->count] = (sp_attribute){.name = sp__text(name),
                                        .type = SP_ATTRIBUTE_STRING,
                                        .count = 1,
                                        .as.strings = &u->texts[u->count]};
    u->count++;
}

static sp_status call_run_many(const named_call *u, const sp_tensor *inputs, uint32_t input_count,
                               sp_tensor *outputs, uint32_t output_count)
{
    SP_TRY(sp__eager_begin(u->op, inputs, input_count, outputs, output_count));
    sp_eager_request request = {.version = u->version,
                                .attributes = {u->items, u->count},
                                .inputs = inputs,
                                .input_count = input_count,
                                .output_count = output_count,
                                .call_site = u->call_site};
    SP_TRY(sp__op_find(sp__text(""), sp__text(u->op), u->version, &request.op));
    return sp__eager_run(&request, outputs);
}

static sp_status call_run(const named_call *u, const sp_tensor *inputs, uint32_t input_count,
                          sp_tensor *y)
{
    return call_run_many(u, inputs, input_count, y, 1);
}

/* ---- one and two inputs ---- */

#define UNARY(function, op, version)                                                               \
    sp_status function(sp_tensor x, sp_tensor *y)                                                  \
    {                                                                                              \
        const named_call u = NAMED_CALL(op, version);                                              \
        return call_run(&u, &x, 1, y);                                                             \
    }
#define BINARY(function, op, version)                                                              \
    sp_status function(sp_tensor a, sp_tensor b, sp_tensor *y)                                     \
    {                                                                                              \
        const named_call u = NAMED_CALL(op, version);                                              \
        return call_run(&u, (const sp_tensor[]){a, b}, 2, y);                                      \
    }

BINARY(sp_matmul, "MatMul", 13)
BINARY(sp_add, "Add", 14)
BINARY(sp_sub, "Sub", 14)
BINARY(sp_mul, "Mul", 14)
BINARY(sp_div, "Div", 14)
BINARY(sp_pow, "Pow", 15)
BINARY(sp_maximum, "Max", 13)
BINARY(sp_minimum, "Min", 13)
BINARY(sp_remainder, "Mod", 13)
BINARY(sp_equal, "Equal", 13)
BINARY(sp_less, "Less", 13)
BINARY(sp_less_or_equal, "LessOrEqual", 16)
BINARY(sp_greater, "Greater", 13)
BINARY(sp_greater_or_equal, "GreaterOrEqual", 16)
BINARY(sp_logical_and, "And", 7)
BINARY(sp_logical_or, "Or", 7)
BINARY(sp_logical_xor, "Xor", 7)

UNARY(sp_abs, "Abs", 13)
UNARY(sp_neg, "Neg", 13)
UNARY(sp_sign, "Sign", 13)
UNARY(sp_floor, "Floor", 13)
UNARY(sp_ceil, "Ceil", 13)
UNARY(sp_round, "Round", 11)
UNARY(sp_sqrt, "Sqrt", 13)
UNARY(sp_reciprocal, "Reciprocal", 13)
UNARY(sp_exp, "Exp", 13)
UNARY(sp_log, "Log", 13)
UNARY(sp_erf, "Erf", 13)
UNARY(sp_is_nan, "IsNaN", 13)
UNARY(sp_logical_not, "Not", 1)
UNARY(sp_relu, "Relu", 14)
UNARY(sp_sigmoid, "Sigmoid", 13)
UNARY(sp_tanh, "Tanh", 13)
UNARY(sp_softplus, "Softplus", 1)
UNARY(sp_mish, "Mish", 18)
UNARY(sp_hard_swish, "HardSwish", 14)

static sp_status call_run_with_float(named_call u, const char *name, float value, sp_tensor x,
                                     sp_tensor *y)
{
    add_float(&u, name, value);
    return call_run(&u, &x, 1, y);
}

sp_status sp_leaky_relu(sp_tensor x, float alpha, sp_tensor *y)
{
    return call_run_with_float(NAMED_CALL("LeakyRelu", 16), "alpha", alpha, x, y);
}

sp_status sp_elu(sp_tensor x, float alpha, sp_tensor *y)
{
    return call_run_with_float(NAMED_CALL("Elu", 6), "alpha", alpha, x, y);
}

sp_status sp_gelu(sp_tensor x, bool is_approximate, sp_tensor *y)
{
    named_call u = NAMED_CALL("Gelu", 20);
    add_text(&u, "approximate", is_approximate ? "tanh" : "none");
    return call_run(&u, &x, 1, y);
}

sp_status sp_silu(sp_tensor x, sp_tensor *y)
{
    const named_call sigmoid = NAMED_CALL("Sigmoid", 13), product = NAMED_CALL("Mul", 14);
    if (y == NULL) return sp__fail(SP_INVALID, "sp_silu: y is NULL");
    *y = (sp_tensor){0};
    sp_tensor gate;
    SP_TRY(call_run(&sigmoid, &x, 1, &gate));
    const sp_status status = call_run(&product, (const sp_tensor[]){x, gate}, 2, y);
    (void)sp_tensor_release(gate);
    return status;
}

sp_status sp_clip(sp_tensor x, float min, float max, sp_tensor *y)
{
    named_call u = NAMED_CALL("Clip", 6);
    add_float(&u, "min", min);
    add_float(&u, "max", max);
    return call_run(&u, &x, 1, y);
}

sp_status sp_cast(sp_tensor x, sp_dtype dtype, sp_tensor *y)
{
    named_call u = NAMED_CALL("Cast", 13);
    if (y != NULL) *y = (sp_tensor){0};
    if (sp_dtype_bytes(dtype) == 0) {
        return sp__fail(SP_INVALID, "sp_cast: %d is no element type", (int)dtype);
    }
    add_int(&u, "to", sp__onnx_data_type(dtype));
    return call_run(&u, &x, 1, y);
}

static sp_status call_run_with_axis(named_call u, int64_t axis, sp_tensor x, sp_tensor *y)
{
    add_int(&u, "axis", axis);
    return call_run(&u, &x, 1, y);
}

sp_status sp_softmax(sp_tensor x, int64_t axis, sp_tensor *y)
{
    return call_run_with_axis(NAMED_CALL("Softmax", 13), axis, x, y);
}

sp_status sp_log_softmax(sp_tensor x, int64_t axis, sp_tensor *y)
{
    return call_run_with_axis(NAMED_CALL("LogSoftmax", 13), axis, x, y);
}

/* ---- linear ---- */

/* The rows of a tensor as one matrix, and its shape with `columns` as last dimension. */
static sp_status as_rows(sp_tensor x, int64_t columns, sp_tensor *rows, sp_tensor_info *shape)
{
    SP_TRY(sp_tensor_get_info(x, shape));
    if (shape->rank == 0) {
        return sp__fail(SP_MISMATCH, "sp_linear: x is a scalar; expected one dimension or more");
    }
    const uint32_t last = shape->rank - 1;
    int64_t matrix[2] = {1, shape->shape[last]};
    for (uint32_t i = 0; i < last; i++) matrix[0] *= shape->shape[i];
    shape->shape[last] = columns;
    sp_tensor packed;
    SP_TRY(sp_tensor_contiguous(x, &packed));
    const sp_status status = sp_tensor_reshape(packed, 2, matrix, rows);
    (void)sp_tensor_release(packed);
    return status;
}

static sp_status multiply_rows(const named_call *u, sp_tensor rows, sp_tensor w, sp_tensor b,
                               const sp_tensor_info *shape, sp_tensor *y)
{
    const bool has_bias = b.bits != 0;
    sp_tensor product;
    SP_TRY(call_run(u, (const sp_tensor[]){rows, w, b}, has_bias ? 3 : 2, &product));
    const sp_status status = sp_tensor_reshape(product, shape->rank, shape->shape, y);
    (void)sp_tensor_release(product);
    return status;
}

sp_status sp_linear(sp_tensor x, sp_tensor w, sp_tensor b, sp_tensor *y)
{
    named_call u = NAMED_CALL("Gemm", 13);
    sp_tensor_info weights, shape;
    sp_tensor rows;
    if (y == NULL) return sp__fail(SP_INVALID, "sp_linear: y is NULL");
    *y = (sp_tensor){0};
    SP_TRY(sp_tensor_get_info(w, &weights));
    if (weights.rank != 2) {
        return sp__fail(SP_MISMATCH, "sp_linear: w has rank %u; expected [out, in]", weights.rank);
    }
    SP_TRY(as_rows(x, weights.shape[0], &rows, &shape));
    add_int(&u, "transB", 1);
    const sp_status status = multiply_rows(&u, rows, w, b, &shape, y);
    (void)sp_tensor_release(rows);
    return status;
}

/* ---- normalisation ---- */

sp_status sp_layer_norm(sp_tensor x, sp_tensor scale, sp_tensor bias, int64_t axis, float epsilon,
                        sp_tensor *y)
{
    named_call u = NAMED_CALL("LayerNormalization", 17);
    add_int(&u, "axis", axis);
    add_float(&u, "epsilon", epsilon);
    return call_run(&u, (const sp_tensor[]){x, scale, bias}, bias.bits != 0 ? 3 : 2, y);
}

sp_status sp_batch_norm(sp_tensor x, sp_tensor scale, sp_tensor bias, sp_tensor mean,
                        sp_tensor variance, float epsilon, sp_tensor *y)
{
    named_call u = NAMED_CALL("BatchNormalization", 15);
    add_float(&u, "epsilon", epsilon);
    return call_run(&u, (const sp_tensor[]){x, scale, bias, mean, variance}, 5, y);
}

/* ---- windows ---- */

static const int64_t *or_ones(const int64_t values[2], int64_t out[2])
{
    for (int i = 0; i < 2; i++) out[i] = values[i] != 0 ? values[i] : 1;
    return out;
}

/* ONNX allows any number of spatial dimensions; these functions are for two. */
static sp_status check_image(const char *function, sp_tensor x)
{
    sp_tensor_info info;
    SP_TRY(sp_tensor_get_info(x, &info));
    if (info.rank == 4) return SP_OK;
    return sp__fail(SP_MISMATCH, "%s: x has rank %u; expected [batch, channels, height, width]",
                    function, info.rank);
}

sp_status sp_conv2d(sp_tensor x, sp_tensor w, sp_tensor b, const sp_conv2d_options *options,
                    sp_tensor *y)
{
    static const sp_conv2d_options defaults = {0};
    named_call u = NAMED_CALL("Conv", 11);
    int64_t strides[2], dilations[2];
    if (y == NULL) return sp__fail(SP_INVALID, "sp_conv2d: y is NULL");
    *y = (sp_tensor){0};
    if (options == NULL) options = &defaults;
    SP_TRY(check_image("sp_conv2d", x));
    add_ints(&u, "strides", or_ones(options->stride, strides), 2);
    add_ints(&u, "pads", options->padding, 4);
    add_ints(&u, "dilations", or_ones(options->dilation, dilations), 2);
    add_int(&u, "group", options->groups != 0 ? options->groups : 1);
    return call_run(&u, (const sp_tensor[]){x, w, b}, b.bits != 0 ? 3 : 2, y);
}

static sp_status call_pool(named_call *u, const char *function, sp_tensor x,
                           const sp_pool2d_options *options, sp_tensor *y)
{
    int64_t strides[2];
    if (y == NULL || options == NULL) {
        return sp__fail(SP_INVALID, "%s: options or y is NULL", function);
    }
    *y = (sp_tensor){0};
    SP_TRY(check_image(function, x));
    add_ints(u, "kernel_shape", options->kernel, 2);
    add_ints(u, "strides", or_ones(options->stride, strides), 2);
    add_ints(u, "pads", options->padding, 4);
    add_int(u, "ceil_mode", options->is_ceil);
    return call_run(u, &x, 1, y);
}

sp_status sp_max_pool2d(sp_tensor x, const sp_pool2d_options *options, sp_tensor *y)
{
    named_call u = NAMED_CALL("MaxPool", 12);
    if (y != NULL) *y = (sp_tensor){0};
    if (options != NULL && options->counts_padding) {
        return sp__fail(
            SP_INVALID,
            "sp_max_pool2d: counts_padding is not supported, since padding is never the maximum");
    }
    return call_pool(&u, "sp_max_pool2d", x, options, y);
}

sp_status sp_avg_pool2d(sp_tensor x, const sp_pool2d_options *options, sp_tensor *y)
{
    named_call u = NAMED_CALL("AveragePool", 11);
    if (options != NULL) add_int(&u, "count_include_pad", options->counts_padding);
    return call_pool(&u, "sp_avg_pool2d", x, options, y);
}

/* ---- reductions ---- */

static sp_status call_reduce(named_call u, sp_tensor x, const int64_t *axes, uint32_t axis_count,
                             bool keeps_dims, sp_tensor *y)
{
    if (y != NULL) *y = (sp_tensor){0};
    if (axes == NULL && axis_count > 0) {
        return sp__fail(SP_INVALID, "%s: axes is NULL, with a count of %u", u.op, axis_count);
    }
    if (axis_count > 0) add_ints(&u, "axes", axes, axis_count);
    add_int(&u, "keepdims", keeps_dims);
    return call_run(&u, &x, 1, y);
}

#define REDUCTION(function, op, version)                                                           \
    sp_status function(sp_tensor x, const int64_t *axes, uint32_t axis_count, bool keeps_dims,     \
                       sp_tensor *y)                                                               \
    {                                                                                              \
        return call_reduce(NAMED_CALL(op, version), x, axes, axis_count, keeps_dims, y);           \
    }

REDUCTION(sp_reduce_sum, "ReduceSum", 11)
REDUCTION(sp_reduce_mean, "ReduceMean", 13)
REDUCTION(sp_reduce_max, "ReduceMax", 13)
REDUCTION(sp_reduce_min, "ReduceMin", 13)
REDUCTION(sp_reduce_prod, "ReduceProd", 13)

static sp_status find_extreme(named_call u, sp_tensor x, int64_t axis, bool keeps_dims,
                              sp_tensor *y)
{
    add_int(&u, "keepdims", keeps_dims);
    return call_run_with_axis(u, axis, x, y);
}

sp_status sp_argmax(sp_tensor x, int64_t axis, bool keeps_dims, sp_tensor *y)
{
    return find_extreme(NAMED_CALL("ArgMax", 13), x, axis, keeps_dims, y);
}

sp_status sp_argmin(sp_tensor x, int64_t axis, bool keeps_dims, sp_tensor *y)
{
    return find_extreme(NAMED_CALL("ArgMin", 13), x, axis, keeps_dims, y);
}

/* ---- copies of elements ---- */

sp_status sp_concat(const sp_tensor *xs, uint32_t count, int64_t axis, sp_tensor *y)
{
    named_call u = NAMED_CALL("Concat", 13);
    if (y != NULL) *y = (sp_tensor){0};
    add_int(&u, "axis", axis);
    return call_run(&u, xs, count, y);
}

sp_status sp_split(sp_tensor x, int64_t axis, const int64_t *sizes, uint32_t count, sp_tensor *ys)
{
    named_call u = NAMED_CALL("Split", 11);
    add_int(&u, "axis", axis);
    if (sizes != NULL) add_ints(&u, "split", sizes, count);
    return call_run_many(&u, &x, 1, ys, count);
}

sp_status sp_gather(sp_tensor x, sp_tensor indices, int64_t axis, sp_tensor *y)
{
    named_call u = NAMED_CALL("Gather", 13);
    add_int(&u, "axis", axis);
    return call_run(&u, (const sp_tensor[]){x, indices}, 2, y);
}

sp_status sp_where(sp_tensor condition, sp_tensor a, sp_tensor b, sp_tensor *y)
{
    const named_call u = NAMED_CALL("Where", 16);
    return call_run(&u, (const sp_tensor[]){condition, a, b}, 3, y);
}
