/* SPDX-License-Identifier: Apache-2.0 */
/* The taps of a window that meet the input. */

/* The taps [first, last) of a window that are inside [0, size). */
struct sp_tap_range {
    int64_t first, last;
};

SP_CUDA_FUNCTION sp_tap_range sp_clip_taps(int64_t start, int64_t step, int64_t taps, int64_t size)
{
    sp_tap_range range = {0, taps};
    if (start < 0) range.first = sp_quotient(-start + step - 1, step);
    if (start + (taps - 1) * step >= size) {
        range.last = size > start ? sp_quotient(size - start + step - 1, step) : 0;
    }
    if (range.first > range.last) range.first = range.last;
    return range;
}
