/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of elements of one size. Parameter: SP_TYPE. */

static SP_ALWAYS_INLINE void SP_OF(copy_row)(copy_side from, copy_side to, int64_t n)
{
    const SP_ELEMENT *x = (const SP_ELEMENT *)from.base + from.offset;
    SP_ELEMENT *y = (SP_ELEMENT *)to.base + to.offset;
    const int64_t step = from.step, to_step = to.step;
    if (to_step != 1) SP_INDEPENDENT for (int64_t i = 0; i < n; i++) y[i * to_step] = x[i * step];
    else if (step == 1) memcpy(y, x, (size_t)n * sizeof(SP_ELEMENT));
    else SP_INDEPENDENT for (int64_t i = 0; i < n; i++) y[i] = x[i * step];
}

#undef SP_TYPE
