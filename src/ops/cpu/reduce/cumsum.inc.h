/* SPDX-License-Identifier: Apache-2.0 */
/* CumSum of one type. Parameter: SP_TYPE. */

static void SP_OF(accumulate)(const sp_axis_constants *k, const SP_ELEMENT *x, int64_t width,
                              SP_ELEMENT *y)
{
    SP_ELEMENT sums[COLUMNS] = {0};
    for (int64_t i = 0; i < k->extent; i++) {
        const int64_t at = (k->is_reverse ? k->extent - 1 - i : i) * k->inner;
        SP_INDEPENDENT for (int64_t c = 0; c < width; c++)
        {
            const SP_ELEMENT sum = (SP_ELEMENT)((SP_WRAPPING)sums[c] + (SP_WRAPPING)x[at + c]);
            y[at + c] = SP_STORE(k->is_exclusive ? sums[c] : sum);
            sums[c] = sum;
        }
    }
}

sp_status SP_KERNEL(SP_OF(cumsum))(const sp_tile *tile)
{
    const sp_axis_constants *k = tile->constants;
    const SP_ELEMENT *x = tile->bindings[0];
    SP_ELEMENT *y = tile->bindings[1];
    SP_FOR_ROWS(k, tile, SP_OF(accumulate)(k, x + first, width, y + first));
    return SP_OK;
}

#undef SP_TYPE
