/* SPDX-License-Identifier: Apache-2.0 */
/* Models with products and convolutions that a precision makes narrow: y = relu(x w + b) v^T + c
 * with x [n, depth] free, by MatMul, Add, Relu and Gemm; or the same of images, by a convolution of
 * 3 x 3, Relu and a pointwise one. */
#ifndef SP_TESTS_PRECISION_FIXTURE_H
#define SP_TESTS_PRECISION_FIXTURE_H

#include <streampool/model.h>

#include "support/model_data.h"

typedef struct precision_sizes {
    int64_t depth, width, columns; /* of images: channels */
    int64_t image;                 /* height and width of images; 0: products */
    sp_dtype type;                 /* SP_F32, SP_F16 or SP_BF16, in the file; x and y are f32 */
} precision_sizes;

/* Elements of a row of x, and of y. */
int64_t precision_inputs(const precision_sizes *sizes);
int64_t precision_outputs(const precision_sizes *sizes);

/* With `is_exact` all values are small integers, so that each sum is exact in every order and in
 * every precision, and results have one set of bits. */
sp_status precision_load(const precision_sizes *sizes, bool is_exact,
                         const sp_model_options *options, sp_model *out);

/* Values of x for `rows` rows; to be freed by sp_free. */
float *precision_rows(const precision_sizes *sizes, bool is_exact, int64_t rows);

sp_status precision_run(sp_model model, const precision_sizes *sizes, const float *x, int64_t rows,
                        float *y);

/* The largest difference of two results, as a share of the largest number in `want`. */
double precision_difference(const float *got, const float *want, uint64_t count);

/* What the difference may be, from the bits that the precision keeps. */
double precision_bound(sp_precision precision);

#endif
