/* SPDX-License-Identifier: Apache-2.0 */
/* Clipping of windows at the padding: the taps whose input index is in range. */
#ifndef SP_OPS_CPU_CONV_TAP_RANGE_H
#define SP_OPS_CPU_CONV_TAP_RANGE_H

#include <stdint.h>

/* The half-open range [first, last). */
typedef struct sp_tap_range {
    int64_t first, last;
} sp_tap_range;

/* The i of [0, taps) with start + i * step in [0, size). */
static inline sp_tap_range sp_clip_taps(int64_t start, int64_t step, int64_t taps, int64_t size)
{
    sp_tap_range range = {0, taps};
    if (start < 0) range.first = step == 1 ? -start : (-start + step - 1) / step;
    if (start + (taps - 1) * step >= size) {
        const int64_t inside = size > start ? size - start : 0;
        range.last = step == 1 ? inside : (inside + step - 1) / step;
    }
    if (range.first > range.last) range.first = range.last;
    return range;
}

#endif
