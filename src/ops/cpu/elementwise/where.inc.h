/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel SP_NAME: Where of elements of one size. Parameters: SP_TYPE; SP_NAME. */

/* The last strides are 0 or 1. */
static void SP_GLUE(row, SP_NAME)(const uint8_t *c, int64_t c_step, const SP_ELEMENT *x,
                                  int64_t x_step, const SP_ELEMENT *y, int64_t y_step,
                                  SP_ELEMENT *out, int64_t n)
{
    if (c_step == 1 && x_step == 1 && y_step == 1) {
        SP_INDEPENDENT for (int64_t i = 0; i < n; i++) out[i] = c[i] ? x[i] : y[i];
    } else {
        SP_INDEPENDENT for (int64_t i = 0; i < n; i++)
        {
            out[i] = c[i * c_step] ? x[i * x_step] : y[i * y_step];
        }
    }
}

/* Two parallel walks, since a walk has two operands. */
sp_status SP_KERNEL(SP_NAME)(const sp_tile *tile)
{
    const sp_select_constants *k = tile->constants;
    const uint8_t *c = tile->bindings[0];
    const SP_ELEMENT *x = tile->bindings[1], *y = tile->bindings[2];
    SP_ELEMENT *out = tile->bindings[3];
    const uint32_t last = k->rank - 1;
    int64_t at = sp_tile_first(tile, 0);
    const int64_t end = sp_tile_end(tile, 0, k->count);
    if (at >= end) return SP_OK;
    sp_walk sides, conditions;
    sp_walk_init(&sides, k->rank, k->dims, k->x, k->y, at / k->dims[last]);
    sp_walk_init(&conditions, k->rank, k->dims, k->condition, k->condition, at / k->dims[last]);
    for (int64_t column = at % k->dims[last]; at < end; column = 0) {
        const int64_t left = k->dims[last] - column;
        const int64_t n = left < end - at ? left : end - at;
        SP_GLUE(row, SP_NAME)(c + conditions.a + column * k->condition[last], k->condition[last],
                              x + sides.a + column * k->x[last], k->x[last],
                              y + sides.b + column * k->y[last], k->y[last], out + at, n);
        at += n;
        sp_walk_next(&sides);
        sp_walk_next(&conditions);
    }
    return SP_OK;
}

#undef SP_NAME
#undef SP_TYPE
