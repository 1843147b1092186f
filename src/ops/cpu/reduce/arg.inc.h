/* SPDX-License-Identifier: Apache-2.0 */
/* ArgMax and ArgMin of one type. Parameters: SP_TYPE; SP_IS_NAN(x). */

static SP_ALWAYS_INLINE void SP_OF(find)(const sp_axis_constants *k, const bool takes_least,
                                         const SP_ELEMENT *x, int64_t width, int64_t *places)
{
    SP_ELEMENT best[COLUMNS];
    for (int64_t c = 0; c < width; c++) {
        best[c] = x[c];
        places[c] = 0;
    }
    for (int64_t i = 1; i < k->extent; i++) {
        const SP_ELEMENT *row = x + i * k->inner;
        SP_INDEPENDENT for (int64_t c = 0; c < width; c++)
        {
            const SP_ELEMENT value = row[c], old = best[c];
            const bool wins = takes_least ? value < old : value > old;
            const bool ties = value == old || (SP_IS_NAN(value) && SP_IS_NAN(old));
            const bool better = (wins && !SP_IS_NAN(old)) || (SP_IS_NAN(value) && !SP_IS_NAN(old));
            const bool moves = better || (ties && k->takes_last);
            best[c] = moves ? value : old;
            places[c] = moves ? i : places[c];
        }
    }
}

sp_status SP_KERNEL(SP_OF(arg))(const sp_tile *tile)
{
    const sp_axis_constants *k = tile->constants;
    const SP_ELEMENT *x = tile->bindings[0];
    int64_t *y = tile->bindings[1];
    if (k->takes_least) {
        SP_FOR_ROWS(k, tile, SP_OF(find)(k, true, x + first, width, y + at));
    } else {
        SP_FOR_ROWS(k, tile, SP_OF(find)(k, false, x + first, width, y + at));
    }
    return SP_OK;
}

#undef SP_IS_NAN
#undef SP_TYPE
