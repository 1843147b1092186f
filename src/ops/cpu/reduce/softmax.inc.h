/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax of one type. The exponentials are kept in y between the passes, unless y is too narrow
 * or still read as x. Parameters: SP_TYPE; SP_SOFTMAX_ROW, a faster function for rows of one block,
 * or not defined. */
#include "ops/cpu/reduce/sums.inc.h"

static void SP_OF(row_softmax)(const sp_axis_constants *k, const SP_ELEMENT *x, SP_ELEMENT *y)
{
    const int64_t n = k->extent;
    const bool keeps = sizeof(SP_ELEMENT) == sizeof(SP_WIDE) && !k->is_log;
#if defined(SP_SOFTMAX_ROW)
    if (!k->is_log && n <= SP_REDUCTION_BLOCK) {
        SP_SOFTMAX_ROW(x, y, n);
        return;
    }
#endif
    SP_WIDE lanes[SP_LANES];
    for (int64_t l = 0; l < SP_LANES; l++) lanes[l] = -(SP_WIDE)__builtin_inff();
    SP_OF(row_max)(lanes, 0, x, n, 0);
    SP_OF(tree_max)(lanes, 1, n);
    const SP_WIDE most = lanes[0];
    SP_WIDE sum;
    if (keeps) {
        SP_INDEPENDENT for (int64_t i = 0; i < n; i++)
        {
            y[i] = SP_STORE(SP_WIDE_OF(sp_exp)(SP_LOAD(x[i]) - most));
        }
        sum = SP_OF(sum_row)(SP_OF(row_sum), y, n, 0);
    } else {
        sum = SP_OF(sum_row)(SP_OF(row_exp), x, n, most);
    }
    if (keeps) {
        SP_INDEPENDENT for (int64_t i = 0; i < n; i++) y[i] = SP_STORE(SP_LOAD(y[i]) / sum);
    } else if (!k->is_log) {
        SP_INDEPENDENT for (int64_t i = 0; i < n; i++)
        {
            y[i] = SP_STORE(SP_WIDE_OF(sp_exp)(SP_LOAD(x[i]) - most) / sum);
        }
    } else {
        const SP_WIDE base = SP_WIDE_OF(sp_log)(sum);
        SP_INDEPENDENT for (int64_t i = 0; i < n; i++)
        {
            y[i] = SP_STORE((SP_LOAD(x[i]) - most) - base);
        }
    }
}

/* `width` adjacent rows, whose elements have stride k->inner. */
static void SP_OF(columns_softmax)(const sp_axis_constants *k, const SP_ELEMENT *x, SP_ELEMENT *y,
                                   int64_t width)
{
    const int64_t n = k->extent;
    const bool keeps = sizeof(SP_ELEMENT) == sizeof(SP_WIDE) && !k->is_log;
    SP_WIDE lanes[ALL_LANES], most[COLUMNS] = {0};
    for (int64_t l = 0; l < ALL_LANES; l++) lanes[l] = -(SP_WIDE)__builtin_inff();
    SP_OF(columns_max)(lanes, 0, x, k->inner, n, width, most);
    SP_OF(tree_max)(lanes, COLUMNS, n);
    memcpy(most, lanes, sizeof(most));
    for (int64_t i = 0; keeps && i < n; i++) {
        const SP_ELEMENT *from = x + i * k->inner;
        SP_ELEMENT *to = y + i * k->inner;
        SP_INDEPENDENT for (int64_t c = 0; c < width; c++)
        {
            to[c] = SP_STORE(SP_WIDE_OF(sp_exp)(SP_LOAD(from[c]) - most[c]));
        }
    }
    if (keeps) SP_OF(sum_columns)(lanes, SP_OF(columns_sum), y, k->inner, n, width, most);
    else SP_OF(sum_columns)(lanes, SP_OF(columns_exp), x, k->inner, n, width, most);
    for (int64_t c = 0; k->is_log && c < width; c++) lanes[c] = SP_WIDE_OF(sp_log)(lanes[c]);
    for (int64_t i = 0; i < n; i++) {
        const SP_ELEMENT *from = x + i * k->inner;
        SP_ELEMENT *to = y + i * k->inner;
        if (keeps) {
            SP_INDEPENDENT for (int64_t c = 0; c < width; c++)
            {
                to[c] = SP_STORE(SP_LOAD(to[c]) / lanes[c]);
            }
        } else if (!k->is_log) {
            SP_INDEPENDENT for (int64_t c = 0; c < width; c++)
            {
                to[c] = SP_STORE(SP_WIDE_OF(sp_exp)(SP_LOAD(from[c]) - most[c]) / lanes[c]);
            }
        } else {
            SP_INDEPENDENT for (int64_t c = 0; c < width; c++)
            {
                to[c] = SP_STORE((SP_LOAD(from[c]) - most[c]) - lanes[c]);
            }
        }
    }
}

sp_status SP_KERNEL(SP_OF(softmax))(const sp_tile *tile)
{
    const sp_axis_constants *k = tile->constants;
    const SP_ELEMENT *x = tile->bindings[0];
    SP_ELEMENT *y = tile->bindings[1];
    if (k->inner == 1) {
        SP_FOR_ROWS(k, tile, SP_OF(row_softmax)(k, x + first, y + first));
    } else {
        SP_FOR_ROWS(k, tile, SP_OF(columns_softmax)(k, x + first, y + first, width));
    }
    return SP_OK;
}

#undef SP_SOFTMAX_ROW
#undef SP_TYPE
