/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise kernels that only the CPU has. A name is an operation and the type that it computes
 * in; f16 and bf16 are cast to f32 and back by the lowerings. Operations on integers that are the
 * same for signed and unsigned numbers have the signed name. */
#ifndef SP_OPS_ELEMENTWISE_LIST_H
#define SP_OPS_ELEMENTWISE_LIST_H

#include "ops/kernel_constants.h"

/* clang-format off */
#define SP_EACH_FLOAT(X, op) X(op##_f32) X(op##_f64)
#define SP_EACH_SIGNED(X, op) X(op##_i8) X(op##_i16) X(op##_i32) X(op##_i64)
#define SP_EACH_UNSIGNED(X, op) X(op##_u8) X(op##_u16) X(op##_u32) X(op##_u64)
#define SP_EACH_INT(X, op) SP_EACH_SIGNED(X, op) SP_EACH_UNSIGNED(X, op)

/* a, b, y of one type: sp_binary_constants. pow_u64 is pow_i64 with an exponent of u64. */
#define SP_BINARY_LIST(X)                                                                          \
    X(add_f64) X(add_i8) X(add_i16)                                                                \
    X(sub_f64) X(sub_i8) X(sub_i16)                                                                \
    X(mul_f64) X(mul_i8) X(mul_i16)                                                                \
    X(div_f64) X(div_i8) X(div_i16)                                                                \
    SP_EACH_UNSIGNED(X, div)                                                                       \
    SP_EACH_FLOAT(X, max) SP_EACH_INT(X, max)                                                      \
    SP_EACH_FLOAT(X, min) SP_EACH_INT(X, min)                                                      \
    SP_EACH_INT(X, mod)                                                                            \
    SP_EACH_FLOAT(X, fmod) SP_EACH_SIGNED(X, fmod)                                                 \
    SP_EACH_FLOAT(X, pow) X(pow_i64) X(pow_u64)                                                    \
    SP_EACH_FLOAT(X, prelu) X(prelu_i32) X(prelu_i64)                                              \
    X(and_bool) X(or_bool) X(xor_bool)

/* a, b of one type, y of bools: sp_binary_constants. */
#define SP_COMPARISON_LIST(X)                                                                      \
    SP_EACH_FLOAT(X, equal) SP_EACH_SIGNED(X, equal) X(equal_bool)                                 \
    SP_EACH_FLOAT(X, less) SP_EACH_INT(X, less)                                                    \
    SP_EACH_FLOAT(X, less_or_equal) SP_EACH_INT(X, less_or_equal)

/* condition, x, y, result, by the bits of an element: sp_select_constants. */
#define SP_SELECT_LIST(X) X(where_8) X(where_16) X(where_32) X(where_64)

/* x, y of one type: sp_flat_constants. */
#define SP_UNARY_LIST(X)                                                                           \
    SP_EACH_FLOAT(X, neg) SP_EACH_FLOAT(X, abs) SP_EACH_FLOAT(X, sign)                             \
    SP_EACH_FLOAT(X, sqrt) SP_EACH_FLOAT(X, reciprocal)                                            \
    SP_EACH_FLOAT(X, ceil) SP_EACH_FLOAT(X, floor) SP_EACH_FLOAT(X, round)                         \
    SP_EACH_FLOAT(X, log) SP_EACH_FLOAT(X, softsign) SP_EACH_FLOAT(X, hard_swish)                  \
    X(exp_f64) X(relu_f64)                                                                         \
    X(erf_f32) X(softplus_f32) X(mish_f32) X(gelu_f32) X(gelu_tanh_f32)                            \
    X(sin_f32) X(cos_f32) X(tan_f32) X(asin_f32) X(acos_f32) X(atan_f32)                           \
    X(sinh_f32) X(cosh_f32) X(asinh_f32) X(acosh_f32) X(atanh_f32)                                 \
    SP_EACH_SIGNED(X, neg) SP_EACH_SIGNED(X, abs) SP_EACH_SIGNED(X, relu)                          \
    SP_EACH_INT(X, sign)                                                                           \
    X(not_bool)

/* x, y of one type: sp_function_constants. divide: by alpha. */
#define SP_FUNCTION_LIST(X)                                                                        \
    SP_EACH_FLOAT(X, leaky_relu) SP_EACH_FLOAT(X, hard_sigmoid)                                    \
    SP_EACH_FLOAT(X, thresholded_relu) SP_EACH_FLOAT(X, clip) SP_EACH_FLOAT(X, divide)             \
    X(elu_f32) X(selu_f32) X(celu_f32)

/* x, y of bools: sp_function_constants. */
#define SP_PREDICATE_LIST(X) SP_EACH_FLOAT(X, is_nan) SP_EACH_FLOAT(X, is_inf)

/* x of the type, y of the type that the constants name: sp_cast_constants. */
#define SP_CAST_LIST(X)                                                                            \
    SP_EACH_FLOAT(X, cast) X(cast_f16) X(cast_bf16) SP_EACH_INT(X, cast) X(cast_bool)

#define SP_ELEMENTWISE_LIST(X)                                                                     \
    SP_BINARY_LIST(X)                                                                              \
    SP_COMPARISON_LIST(X)                                                                          \
    SP_SELECT_LIST(X)                                                                              \
    SP_UNARY_LIST(X)                                                                               \
    SP_FUNCTION_LIST(X)                                                                            \
    SP_PREDICATE_LIST(X)                                                                           \
    SP_CAST_LIST(X)
/* clang-format on */

/* As sp_binary_constants, for x where the condition holds and y elsewhere. */
typedef struct sp_select_constants {
    uint32_t rank;
    int64_t count;
    int64_t dims[SP_KERNEL_RANK], condition[SP_KERNEL_RANK], x[SP_KERNEL_RANK], y[SP_KERNEL_RANK];
} sp_select_constants;

/* Of functions with parameters, in the meaning that the function gives them. */
typedef struct sp_function_constants {
    int64_t count;
    double alpha, beta;
} sp_function_constants;

typedef struct sp_cast_constants {
    int64_t count;
    uint32_t to; /* sp_dtype */
} sp_cast_constants;

#define SP_ELEMENTWISE_CONSTANTS_LIST(X)                                                           \
    X(sp_select_constants, 272)                                                                    \
    X(sp_function_constants, 24)                                                                   \
    X(sp_cast_constants, 16)

#endif
