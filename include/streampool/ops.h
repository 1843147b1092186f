/* SPDX-License-Identifier: Apache-2.0 */
/* Eager operators on tensors: the operators that models use (docs/operators.md, with the element
 * types of each), with the same shape rules and kernels, so the results have the same bits.
 *
 * Each call runs on the calling thread's current stream of its inputs' device and returns when it
 * is submitted. It is ordered after earlier uses of its storages on any stream and thread, as all
 * commands are. Inputs are borrowed: they may be released at once. Outputs are new, contiguous
 * tensors in new storages, released by the caller; they never share memory with an input (views
 * do: streampool/tensor.h). Inputs may be views with any strides: if a kernel needs a contiguous
 * input it is copied first, on the stream. The zero handle omits an optional input.
 *
 * Three kinds of calls wait, as sp_storage_host_begin does, before they return:
 * - operators whose output's shape, or axis, depends on the values of an input (the sizes of a
 *   Reshape, the axes of a ReduceSum, the data of a NonZero) wait for that input;
 * - Constant, Shape and Size write their output from the host, and wait for its memory;
 * - an operator without a kernel on the device (or named by STREAMPOOL_CPU_OPS) is computed on the
 *   calling thread, which waits for its inputs. Only cuda devices lack kernels.
 *
 * Errors of all calls; messages begin with the operator and its inputs' types and shapes:
 * SP_MISMATCH for incompatible shapes and types; SP_UNSUPPORTED for an unknown operator, version or
 * element type; SP_INVALID for invalid handles, tensors of several devices, and a wrong number of
 * inputs or wrong attributes; SP_EXHAUSTED for absurd sizes; those of sp_storage_create and
 * sp_storage_copy_async. A kernel that fails (an index outside its axis) poisons its outputs, as
 * every failed command does: their uses fail. */
#ifndef STREAMPOOL_OPS_H
#define STREAMPOOL_OPS_H

#include <stdbool.h>
#include <stdint.h>

#include <streampool/model.h>
#include <streampool/tensor.h>

SP_EXTERN_C_BEGIN

/* ---- any operator ---- */

typedef enum sp_op_attribute_type {
    SP_OP_FLOAT = 1,
    SP_OP_INT = 2,
    SP_OP_STRING = 3,
    SP_OP_TENSOR = 4,
    SP_OP_GRAPH = 5, /* of If, Loop and Scan, which sp_op_run does not take */
    SP_OP_FLOATS = 6,
    SP_OP_INTS = 7,
    SP_OP_STRINGS = 8
} sp_op_attribute_type;

/* An attribute: a named parameter of an operator. `type` selects the field with the value;
 * everything is borrowed for the call. {.name = "axis", .type = SP_OP_INT, .i = -1} */
typedef struct sp_op_attribute {
    const char *name;
    sp_op_attribute_type type;
    float f;
    int64_t i;
    const char *s;
    const sp_host_tensor *t; /* its `name` is ignored */
    uint32_t count;          /* of the lists */
    const float *floats;
    const int64_t *ints;
    const char *const *strings;
} sp_op_attribute;

typedef struct sp_op_options {
    const char *domain; /* NULL: ONNX's own */
    uint32_t opset;     /* the version of the domain that defines the operator; 0: the newest */
    const sp_op_attribute *attributes;
    uint32_t attribute_count;
    sp_device device; /* for operators without inputs; else that of the inputs, or zero */
    /* NULL, or one tensor for each output, which is written instead of a new one: of exactly the
     * output's type and shape, not frozen, with any strides under which no two elements share
     * memory. It may be an input, or overlap one: inputs are read first. Zero handle: a new tensor.
     */
    const sp_tensor *into;
} sp_op_options;

/* Runs the operator with the ONNX name `op` and returns its first `output_count` outputs. Operators
 * with subgraphs (If) are SP_UNSUPPORTED. An output given in `into` is that tensor, with one more
 * reference; if several are given and the call fails, the first ones may have been written. */
SP_API sp_status sp_op_run(const char *op, const sp_op_options *options, const sp_tensor *inputs,
                           uint32_t input_count, sp_tensor *outputs, uint32_t output_count);

/* ---- products ---- */

/* y = x * w' + b: x [..., in], w [out, in], b [out] or omitted; y [..., out]. Packs w in each call
 * (models pack once). */
SP_API sp_status sp_linear(sp_tensor x, sp_tensor w, sp_tensor b, sp_tensor *y);
/* Matrix products over the last two dimensions, the others broadcast (MatMul). */
SP_API sp_status sp_matmul(sp_tensor a, sp_tensor b, sp_tensor *y);

/* ---- two tensors of one type, broadcast ---- */

/* a + b. */
SP_API sp_status sp_add(sp_tensor a, sp_tensor b, sp_tensor *y);
/* a - b. */
SP_API sp_status sp_sub(sp_tensor a, sp_tensor b, sp_tensor *y);
/* a * b. */
SP_API sp_status sp_mul(sp_tensor a, sp_tensor b, sp_tensor *y);
/* a / b; of integers towards zero, by 0 it is 0. */
SP_API sp_status sp_div(sp_tensor a, sp_tensor b, sp_tensor *y);
/* a to the power of b, of a's type; b may be of another one. */
SP_API sp_status sp_pow(sp_tensor a, sp_tensor b, sp_tensor *y);
/* The larger one; NaN if one is. */
SP_API sp_status sp_maximum(sp_tensor a, sp_tensor b, sp_tensor *y);
/* The smaller one; NaN if one is. */
SP_API sp_status sp_minimum(sp_tensor a, sp_tensor b, sp_tensor *y);
/* The remainder of a / b for integers, with the sign of b (Mod). */
SP_API sp_status sp_remainder(sp_tensor a, sp_tensor b, sp_tensor *y);
/* a == b, as bool. */
SP_API sp_status sp_equal(sp_tensor a, sp_tensor b, sp_tensor *y);
/* a < b, as bool. */
SP_API sp_status sp_less(sp_tensor a, sp_tensor b, sp_tensor *y);
/* a <= b, as bool. */
SP_API sp_status sp_less_or_equal(sp_tensor a, sp_tensor b, sp_tensor *y);
/* a > b, as bool. */
SP_API sp_status sp_greater(sp_tensor a, sp_tensor b, sp_tensor *y);
/* a >= b, as bool. */
SP_API sp_status sp_greater_or_equal(sp_tensor a, sp_tensor b, sp_tensor *y);
/* a and b, of bools. */
SP_API sp_status sp_logical_and(sp_tensor a, sp_tensor b, sp_tensor *y);
/* a or b, of bools. */
SP_API sp_status sp_logical_or(sp_tensor a, sp_tensor b, sp_tensor *y);
/* Exactly one of both, of bools. */
SP_API sp_status sp_logical_xor(sp_tensor a, sp_tensor b, sp_tensor *y);

/* ---- each element by itself ---- */

/* |x|. */
SP_API sp_status sp_abs(sp_tensor x, sp_tensor *y);
/* -x. */
SP_API sp_status sp_neg(sp_tensor x, sp_tensor *y);
/* -1, 0 or 1. */
SP_API sp_status sp_sign(sp_tensor x, sp_tensor *y);
/* The nearest integer that is not larger. */
SP_API sp_status sp_floor(sp_tensor x, sp_tensor *y);
/* The nearest integer that is not smaller. */
SP_API sp_status sp_ceil(sp_tensor x, sp_tensor *y);
/* The nearest integer, ties to even. */
SP_API sp_status sp_round(sp_tensor x, sp_tensor *y);
/* The square root. */
SP_API sp_status sp_sqrt(sp_tensor x, sp_tensor *y);
/* 1 / x. */
SP_API sp_status sp_reciprocal(sp_tensor x, sp_tensor *y);
/* e to the power of x. */
SP_API sp_status sp_exp(sp_tensor x, sp_tensor *y);
/* The natural logarithm. */
SP_API sp_status sp_log(sp_tensor x, sp_tensor *y);
/* The error function. */
SP_API sp_status sp_erf(sp_tensor x, sp_tensor *y);
/* Whether x is NaN, as bool. */
SP_API sp_status sp_is_nan(sp_tensor x, sp_tensor *y);
/* Not x, of bools. */
SP_API sp_status sp_logical_not(sp_tensor x, sp_tensor *y);
/* Elements as another type (docs/decisions/0002 says how they are rounded). */
SP_API sp_status sp_cast(sp_tensor x, sp_dtype dtype, sp_tensor *y);
/* x between `min` and `max`, of floats: -INFINITY and INFINITY are no bounds. */
SP_API sp_status sp_clip(sp_tensor x, float min, float max, sp_tensor *y);

/* ---- activations ---- */

/* max(x, 0). */
SP_API sp_status sp_relu(sp_tensor x, sp_tensor *y);
/* x, or alpha * x below 0. */
SP_API sp_status sp_leaky_relu(sp_tensor x, float alpha, sp_tensor *y);
/* x, or alpha * (e^x - 1) below 0. */
SP_API sp_status sp_elu(sp_tensor x, float alpha, sp_tensor *y);
/* 1 / (1 + e^-x). */
SP_API sp_status sp_sigmoid(sp_tensor x, sp_tensor *y);
/* The hyperbolic tangent. */
SP_API sp_status sp_tanh(sp_tensor x, sp_tensor *y);
/* x * sigmoid(x), as two operations. */
SP_API sp_status sp_silu(sp_tensor x, sp_tensor *y);
/* x * (1 + erf(x / sqrt 2)) / 2, or its approximation by tanh. */
SP_API sp_status sp_gelu(sp_tensor x, bool is_approximate, sp_tensor *y);
/* log(1 + e^x). */
SP_API sp_status sp_softplus(sp_tensor x, sp_tensor *y);
/* x * tanh(softplus(x)). */
SP_API sp_status sp_mish(sp_tensor x, sp_tensor *y);
/* x * max(0, min(1, x / 6 + 1 / 2)). */
SP_API sp_status sp_hard_swish(sp_tensor x, sp_tensor *y);
/* e^x over the sum of them along an axis. */
SP_API sp_status sp_softmax(sp_tensor x, int64_t axis, sp_tensor *y);
/* The logarithm of that. */
SP_API sp_status sp_log_softmax(sp_tensor x, int64_t axis, sp_tensor *y);

/* ---- normalisation ---- */

/* (x - mean) / sqrt(variance + epsilon) * scale + bias, mean and variance over the dimensions from
 * `axis` on, whose shape `scale` and `bias` broadcast to; bias may be omitted. */
SP_API sp_status sp_layer_norm(sp_tensor x, sp_tensor scale, sp_tensor bias, int64_t axis,
                               float epsilon, sp_tensor *y);
/* The same with given mean and variance for each channel: x [batch, channels, ...], the others
 * [channels]. */
SP_API sp_status sp_batch_norm(sp_tensor x, sp_tensor scale, sp_tensor bias, sp_tensor mean,
                               sp_tensor variance, float epsilon, sp_tensor *y);

/* ---- windows over images: x [batch, channels, height, width] ---- */

typedef struct sp_conv2d_options {
    int64_t stride[2];   /* rows, columns; zero: 1 */
    int64_t padding[4];  /* top, left, bottom, right */
    int64_t dilation[2]; /* zero: 1 */
    int64_t groups;      /* zero: 1 */
} sp_conv2d_options;

/* w [out, channels / groups, rows, columns], b [out] or omitted. */
SP_API sp_status sp_conv2d(sp_tensor x, sp_tensor w, sp_tensor b, const sp_conv2d_options *options,
                           sp_tensor *y);

typedef struct sp_pool2d_options {
    int64_t kernel[2];   /* rows, columns; must be given */
    int64_t stride[2];   /* zero: 1 */
    int64_t padding[4];  /* top, left, bottom, right */
    bool is_ceil;        /* round the output size up: the last window may be partial */
    bool counts_padding; /* the average includes the padding's zeros */
} sp_pool2d_options;

/* The largest element of each window; NaN if the window has one. SP_INVALID for `counts_padding`.
 */
SP_API sp_status sp_max_pool2d(sp_tensor x, const sp_pool2d_options *options, sp_tensor *y);
/* The mean of each window. */
SP_API sp_status sp_avg_pool2d(sp_tensor x, const sp_pool2d_options *options, sp_tensor *y);

/* ---- reductions over `axis_count` axes; 0: all axes ---- */

/* The sum. With `keeps_dims` the axes are kept with size 1, else they are removed. */
SP_API sp_status sp_reduce_sum(sp_tensor x, const int64_t *axes, uint32_t axis_count,
                               bool keeps_dims, sp_tensor *y);
/* The mean. */
SP_API sp_status sp_reduce_mean(sp_tensor x, const int64_t *axes, uint32_t axis_count,
                                bool keeps_dims, sp_tensor *y);
/* The largest. */
SP_API sp_status sp_reduce_max(sp_tensor x, const int64_t *axes, uint32_t axis_count,
                               bool keeps_dims, sp_tensor *y);
/* The smallest. */
SP_API sp_status sp_reduce_min(sp_tensor x, const int64_t *axes, uint32_t axis_count,
                               bool keeps_dims, sp_tensor *y);
/* The product. */
SP_API sp_status sp_reduce_prod(sp_tensor x, const int64_t *axes, uint32_t axis_count,
                                bool keeps_dims, sp_tensor *y);
/* Index of the largest element along an axis, the first of equals, as i64. */
SP_API sp_status sp_argmax(sp_tensor x, int64_t axis, bool keeps_dims, sp_tensor *y);
/* Index of the smallest element, likewise. */
SP_API sp_status sp_argmin(sp_tensor x, int64_t axis, bool keeps_dims, sp_tensor *y);

/* ---- data movement. Permute, slice, reshape and expand are views (streampool/tensor.h);
 * sp_tensor_contiguous makes a copy of a view ---- */

/* Concatenation along an axis. */
SP_API sp_status sp_concat(const sp_tensor *xs, uint32_t count, int64_t axis, sp_tensor *y);
/* `count` pieces of the given sizes along an axis; NULL: equal sizes. */
SP_API sp_status sp_split(sp_tensor x, int64_t axis, const int64_t *sizes, uint32_t count,
                          sp_tensor *ys);
/* The slices of x along an axis at i64 or i32 indices; negative ones count from the end. */
SP_API sp_status sp_gather(sp_tensor x, sp_tensor indices, int64_t axis, sp_tensor *y);
/* a where the bool condition is true, else b; all broadcast. */
SP_API sp_status sp_where(sp_tensor condition, sp_tensor a, sp_tensor b, sp_tensor *y);

SP_EXTERN_C_END

#endif
