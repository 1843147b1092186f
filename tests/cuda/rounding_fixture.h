/* SPDX-License-Identifier: Apache-2.0 */
/* Models whose products of two computed values have a precision (docs/decisions/0089), on any
 * device with tensor cores. */
#ifndef SP_TESTS_CUDA_ROUNDING_FIXTURE_H
#define SP_TESTS_CUDA_ROUNDING_FIXTURE_H

#include <streampool/device.h>
#include <streampool/model.h>

/* Attention of so many queries and keys, in three heads of so many columns. */
typedef struct rounding_sizes {
    int64_t length, depth;
} rounding_sizes;

/* With f16 and bf16: results differ from those in f32 within the bound of the type; the fused step
 * has the bits of its steps; an image has the same bits alone and among others. With tf32: those of
 * f32. */
void rounding_check_attention(sp_device device, const rounding_sizes *sizes);

/* A product of two computed matrices of small integers, [rows, depth] and [depth, columns]: exact.
 */
void rounding_check_product(sp_device device, int64_t rows, int64_t depth, int64_t columns);

#endif
