/* SPDX-License-Identifier: Apache-2.0 */
/* A model with products that a precision makes narrow: y = relu(x w + b) v^T + c with x [n, depth]
 * free, by MatMul, Add, Relu and Gemm. */
#ifndef SP_TESTS_PRECISION_FIXTURE_H
#define SP_TESTS_PRECISION_FIXTURE_H

#include <streampool/model.h>

#include "support/model_data.h"

typedef struct precision_sizes {
    int64_t depth, width, columns;
} precision_sizes;

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
