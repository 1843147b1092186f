/* SPDX-License-Identifier: Apache-2.0 */
/* Combines x[i] into y[i] by add, mul, max or min of the type. Parameter: SP_TYPE. */

static void SP_OF(combine)(uint32_t reduction, void *to, const void *from, int64_t n)
{
    SP_ELEMENT *y = to;
    const SP_ELEMENT *x = from;
    switch (reduction) {
    case SP_SCATTER_ADD:
        for (int64_t i = 0; i < n; i++) y[i] = SP_OF(add)(y[i], x[i]);
        break;
    case SP_SCATTER_MUL:
        for (int64_t i = 0; i < n; i++) y[i] = SP_OF(mul)(y[i], x[i]);
        break;
    case SP_SCATTER_MAX:
        for (int64_t i = 0; i < n; i++) y[i] = SP_OF(max)(y[i], x[i]);
        break;
    default:
        for (int64_t i = 0; i < n; i++) y[i] = SP_OF(min)(y[i], x[i]);
        break;
    }
}

#undef SP_TYPE
