/* SPDX-License-Identifier: Apache-2.0 */
/* Reads part of an input row with its padding, for convolutions. */
#ifndef SP_OPS_CPU_CONV_CONV_GATHER_H
#define SP_OPS_CPU_CONV_CONV_GATHER_H

#include "ops/cpu/arch/isa.h"

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
