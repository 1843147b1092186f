/* SPDX-License-Identifier: Apache-2.0 */
/* Maximum over windows of up to three dimensions, of any type, with the place of each maximum if
 * that is wanted. Otherwise as max_pool_f32: padding is less than everything, a NaN wins, of equals
 * the first. A window that is all padding gives the type's least number, and place -1. */
#include "ops/cpu/arch/isa.h"
#include "ops/cpu/arch/math_f64.h"
#include "ops/cpu/conv/tap_range.h"

/* The place of an element among all of x. */
static int64_t place_of(const sp_window_constants *k, int64_t plane, const int64_t at[3])
{
    const int64_t *in = k->in;
    const int64_t first = plane * in[0] * in[1] * in[2];
    if (k->is_column_major) return first + at[0] + in[0] * (at[1] + in[1] * at[2]);
    return first + (at[0] * in[1] + at[1]) * in[2] + at[2];
}

#define FLOAT_BEATS(x, best) ((x) > (best) || ((x) != (x) && (best) == (best)))
#define INT_BEATS(x, best) ((x) > (best))
#define PLAIN(x) (x)

#define MAX_POOL_KERNEL(suffix, type, least, beats, store)                                         \
    static type best_##suffix(const sp_window_constants *k, const type *x, int64_t plane,          \
                              const int64_t start[3], int64_t *place)                              \
    {                                                                                              \
        type best = least;                                                                         \
        int64_t best_at[3] = {-1, -1, -1}, at[3];                                                  \
        sp_tap_range taps[3];                                                                      \
        for (int a = 0; a < 3; a++) {                                                              \
            taps[a] = sp_clip_taps(start[a], k->dilation[a], k->kernel[a], k->in[a]);              \
        }                                                                                          \
        for (int64_t i = taps[0].first; i < taps[0].last; i++) {                                   \
            at[0] = start[0] + i * k->dilation[0];                                                 \
            for (int64_t j = taps[1].first; j < taps[1].last; j++) {                               \
                at[1] = start[1] + j * k->dilation[1];                                             \
                const type *row = x + (at[0] * k->in[1] + at[1]) * k->in[2];                       \
                for (int64_t t = taps[2].first; t < taps[2].last; t++) {                           \
                    at[2] = start[2] + t * k->dilation[2];                                         \
                    const type value = row[at[2]];                                                 \
                    if (best_at[0] >= 0 && !(beats(value, best))) continue;                        \
                    best = value;                                                                  \
                    memcpy(best_at, at, sizeof(at));                                               \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        *place = best_at[0] < 0 ? -1 : place_of(k, plane, best_at);                                \
        return store(best);                                                                        \
    }                                                                                              \
                                                                                                   \
    sp_status SP_KERNEL(max_pool_any_##suffix)(const sp_tile *tile)                                \
    {                                                                                              \
        const sp_window_constants *k = tile->constants;                                            \
        const int64_t rows = k->planes * k->out[0] * k->out[1];                                    \
        const int64_t first = tile->index[0] * k->tile_rows;                                       \
        const int64_t last = rows - first < k->tile_rows ? rows : first + k->tile_rows;            \
        for (int64_t row = first; row < last; row++) {                                             \
            const int64_t plane = row / (k->out[0] * k->out[1]);                                   \
            const type *x =                                                                        \
                (const type *)tile->bindings[0] + plane * k->in[0] * k->in[1] * k->in[2];          \
            type *y = (type *)tile->bindings[1] + row * k->out[2];                                 \
            const int64_t start[3] = {row / k->out[1] % k->out[0] * k->stride[0] - k->pad[0],      \
                                      row % k->out[1] * k->stride[1] - k->pad[1], 0};              \
            for (int64_t c = 0; c < k->out[2]; c++) {                                              \
                int64_t place;                                                                     \
                const int64_t here[3] = {start[0], start[1], c * k->stride[2] - k->pad[2]};        \
                y[c] = best_##suffix(k, x, plane, here, &place);                                   \
                if (k->has_indices) {                                                              \
                    ((int64_t *)tile->bindings[2])[row * k->out[2] + c] = place;                   \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        return SP_OK;                                                                              \
    }

MAX_POOL_KERNEL(f32, float, -__builtin_inff(), FLOAT_BEATS, sp_canonical)
MAX_POOL_KERNEL(f64, double, -__builtin_inf(), FLOAT_BEATS, sp_canonical_f64)
MAX_POOL_KERNEL(u8, uint8_t, 0, INT_BEATS, PLAIN)
MAX_POOL_KERNEL(i8, int8_t, INT8_MIN, INT_BEATS, PLAIN)
