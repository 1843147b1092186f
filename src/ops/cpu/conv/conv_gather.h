/* SPDX-License-Identifier: Apache-2.0 */
/* Reads part of an input row with its padding, for convolutions and pools. */
#ifndef SP_OPS_CPU_CONV_CONV_GATHER_H
#define SP_OPS_CPU_CONV_CONV_GATHER_H

#include "base/macros.h"
#include "ops/cpu/arch/vector_parts.h"
#include "ops/cpu/conv/tap_range.h"

/* The elements of a vector of inputs, 1 or 2 apart, that are not in the padding: as places in the
 * vector, and as places in the one or two vectors of memory that are loaded for it. The second one
 * begins with the last element of the first one, so that nothing beyond the last input is read. */
typedef struct sp_row_part {
    uint16_t inside, first, second;
} sp_row_part;

/* Of the inputs x, x + stride, ..., `count` of them, in a row of `width`. */
static inline sp_row_part sp_row_part_of(int64_t x, int64_t stride, int64_t count, int64_t width)
{
    const int64_t second = SP_VECTOR - 1;
    const sp_tap_range inside = sp_clip_taps(x, stride, count, width);
    if (inside.first >= inside.last) return (sp_row_part){0, 0, 0};
    const int64_t first = inside.first * stride, last = (inside.last - 1) * stride + 1;
    return (sp_row_part){(uint16_t)sp_vector_range(inside.first, inside.last),
                         (uint16_t)sp_vector_range(first, last),
                         (uint16_t)sp_vector_range(first - second, last - second)};
}

/* The vector from `from` on, `padding` where it is not inside. Whole vectors are loaded without
 * masks: loads with masks are slower where they miss the cache. */
static SP_ALWAYS_INLINE sp_vector sp_row_part_load(const float *from, const int64_t stride,
                                                   sp_row_part part, const float padding)
{
    const float *second = from + SP_VECTOR - 1;
    const sp_vector others = sp_vector_splat(padding), none = {0};
    if (SP_LIKELY(part.inside == SP_VECTOR_ALL)) {
        const sp_vector v = sp_vector_load(from);
        return stride == 1 ? v : sp_vector_alternate(v, sp_vector_load(second));
    }
    if (stride == 1) return sp_vector_load_part(from, part.first, others);
    const sp_vector v = sp_vector_alternate(sp_vector_load_part(from, part.first, none),
                                            sp_vector_load_part(second, part.second, none));
    return padding == 0 ? v : sp_vector_select(sp_vector_mask_of(part.inside), v, others);
}

/* out[i] = row[x + i * stride] for i in [0, n), +0 where the index is outside [0, width). A NULL
 * row is all padding. */
static inline void sp_gather_row(const float *row, int64_t width, int64_t x, int64_t stride,
                                 int64_t n, float *out)
{
    int64_t first = 0; /* the first i inside, and the first i after the last one inside */
    int64_t last = n;
    if (row == NULL) {
        for (int64_t i = 0; i < n; i++) out[i] = 0;
        return;
    }
    if (x < 0) first = stride == 1 ? -x : (-x + stride - 1) / stride;
    if (x + (n - 1) * stride >= width) {
        const int64_t inside = width > x ? width - x : 0;
        const int64_t fits = stride == 1 ? inside : (inside + stride - 1) / stride;
        if (fits < last) last = fits;
    }
    if (first > last) first = last;
    for (int64_t i = 0; i < first; i++) out[i] = 0;
    if (stride == 1 && first < last) {
        memcpy(out + first, row + x + first, (size_t)(last - first) * sizeof(float));
    } else {
        for (int64_t i = first; i < last; i++) out[i] = row[x + i * stride];
    }
    for (int64_t i = last; i < n; i++) out[i] = 0;
}

#endif
