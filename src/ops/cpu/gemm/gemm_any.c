/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix product of types other than f32, plain. A chain as gemm_f32 has it: from 0, over k in
 * order. f16 and bf16 compute in f32, fused, and round once more when they are stored, so they have
 * the bits of the f32 product rounded; f64 rounds products and sums; integers wrap. */
#include "base/macros.h"
#include "ops/cpu/arch/half.h"
#include "ops/cpu/arch/isa.h"

enum { STRIP = 16 };

/* Moves the operands to a batch entry; in elements. */
static void select_batch(const sp_gemm_constants *k, int64_t batch, int64_t *a, int64_t *b)
{
    *a = *b = 0;
    for (uint32_t i = k->batch_rank; i-- > 0;) {
        const int64_t at = batch % k->batch_dims[i];
        batch /= k->batch_dims[i];
        *a += at * k->a_batch[i];
        *b += at * k->b_batch[i];
    }
}

#define PLAIN(x) (x)
#define PLAIN_STEP(chain, a, b) ((chain) + (a) * (b))
#define F32_STEP(chain, a, b) sp_fmaf(a, b, chain)
#define SCALE(x, factor) ((x) * (factor))
/* Integers are never scaled: their op has no factors. */
#define NO_SCALE(x, factor) (x)

/* `wide` is what a chain is computed in. */
#define GEMM_KERNEL(suffix, type, wide, load, step, scale, store)                                  \
    static void strip_##suffix(const sp_gemm_any_constants *k, const type *a, const type *b,       \
                               int64_t width, wide *chain)                                         \
    {                                                                                              \
        for (int64_t i = 0; i < width; i++) chain[i] = 0;                                          \
        for (int64_t d = 0; d < k->gemm.depth; d++) {                                              \
            const wide left = (wide)load(a[d * k->gemm.a_depth]);                                  \
            const type *right = b + d * k->gemm.b_depth;                                           \
            for (int64_t i = 0; i < width; i++) {                                                  \
                chain[i] = step(chain[i], left, (wide)load(right[i * k->b_column]));               \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    sp_status SP_KERNEL(gemm_any_##suffix)(const sp_tile *tile)                                    \
    {                                                                                              \
        const sp_gemm_any_constants *any = tile->constants;                                        \
        const sp_gemm_constants *k = &any->gemm;                                                   \
        int64_t a_first, b_first;                                                                  \
        select_batch(k, tile->index[2], &a_first, &b_first);                                       \
        const type *a = (const type *)tile->bindings[0] + a_first;                                 \
        const type *b = (const type *)tile->bindings[1] + b_first;                                 \
        const type *c = k->has_c ? tile->bindings[2] : NULL;                                       \
        type *y =                                                                                  \
            (type *)tile->bindings[k->has_c ? 3 : 2] + tile->index[2] * k->rows * k->columns;      \
        const int64_t first = tile->index[0] * k->tile_rows;                                       \
        const int64_t last = k->rows - first < k->tile_rows ? k->rows : first + k->tile_rows;      \
        for (int64_t row = first; row < last; row++) {                                             \
            for (int64_t column = 0; column < k->columns; column += STRIP) {                       \
                const int64_t left = k->columns - column;                                          \
                const int64_t width = left < STRIP ? left : STRIP;                                 \
                wide chain[STRIP];                                                                 \
                strip_##suffix(any, a + row * k->a_row, b + column * any->b_column, width, chain); \
                for (int64_t i = 0; i < width; i++) {                                              \
                    wide out = scale(chain[i], (wide)k->alpha);                                    \
                    if (c) {                                                                       \
                        const type add = c[row * k->c_row + (column + i) * k->c_column];           \
                        out += scale((wide)load(add), (wide)k->beta);                              \
                    }                                                                              \
                    y[row * k->columns + column + i] = store(out);                                 \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        return SP_OK;                                                                              \
    }

GEMM_KERNEL(f64, double, double, PLAIN, PLAIN_STEP, SCALE, sp_canonical_f64)
GEMM_KERNEL(f16, uint16_t, float, sp_float_of_f16, F32_STEP, SCALE, sp_f16_of_float)
GEMM_KERNEL(bf16, uint16_t, float, sp_float_of_bf16, F32_STEP, SCALE, sp_bf16_of_float)
GEMM_KERNEL(i32, int32_t, uint32_t, PLAIN, PLAIN_STEP, NO_SCALE, (int32_t))
GEMM_KERNEL(i64, int64_t, uint64_t, PLAIN, PLAIN_STEP, NO_SCALE, (int64_t))
GEMM_KERNEL(u32, uint32_t, uint32_t, PLAIN, PLAIN_STEP, NO_SCALE, PLAIN)
GEMM_KERNEL(u64, uint64_t, uint64_t, PLAIN, PLAIN_STEP, NO_SCALE, PLAIN)
