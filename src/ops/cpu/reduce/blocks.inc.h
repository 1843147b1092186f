/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of a reduction of more than one block, in order: each run of elements is cut where a
 * block ends. Included by other templates. */

/* The steps row_ and columns_ of a reduction (reduction*.inc.h). */
typedef void (*SP_OF(row_step))(SP_WIDE *lanes, int64_t phase, const SP_ELEMENT *x, int64_t n,
                                SP_WIDE shift);
typedef void (*SP_OF(columns_step))(SP_WIDE *lanes, int64_t phase, const SP_ELEMENT *x,
                                    int64_t stride, int64_t n, int64_t width, const SP_WIDE *shift);

/* Elements `first` to `first + n` of one output, contiguous in memory. */
static SP_ALWAYS_INLINE void SP_OF(row_blocks)(SP_LEVELS *s, SP_OF(row_step) row, int64_t first,
                                               const SP_ELEMENT *x, int64_t n, SP_WIDE shift)
{
    for (int64_t i = 0, count; i < n; i += count) {
        const int64_t at = (first + i) % SP_REDUCTION_BLOCK, left = SP_REDUCTION_BLOCK - at;
        count = n - i < left ? n - i : left;
        SP_WIDE_OF(sp_levels_enter)(s, (first + i) / SP_REDUCTION_BLOCK);
        row(s->lanes, at % SP_LANES, x + i, count, shift);
    }
}

/* The same elements of `width` contiguous outputs, with stride `stride`. */
static SP_ALWAYS_INLINE void SP_OF(columns_blocks)(SP_LEVELS *s, SP_OF(columns_step) columns,
                                                   int64_t first, const SP_ELEMENT *x,
                                                   int64_t stride, int64_t n, int64_t width,
                                                   const SP_WIDE *shift)
{
    for (int64_t i = 0, count; i < n; i += count) {
        const int64_t at = (first + i) % SP_REDUCTION_BLOCK, left = SP_REDUCTION_BLOCK - at;
        count = n - i < left ? n - i : left;
        SP_WIDE_OF(sp_levels_enter)(s, (first + i) / SP_REDUCTION_BLOCK);
        columns(s->lanes, at % SP_LANES, x + i * stride, stride, count, width, shift);
    }
}
