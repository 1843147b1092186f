/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel SP_NAME, y = SP_NAME(a, b) with broadcasting; its rows are computed by row_SP_NAME,
 * and SP_FINISH(constants, y, n) is run on each n results, of several rows if they are short.
 * Included by other templates; parameters SP_NAME, SP_RESULT and SP_FINISH. */

sp_status SP_KERNEL(SP_NAME)(const sp_tile *tile)
{
    const sp_binary_constants *k = tile->constants;
    const SP_ELEMENT *a = tile->bindings[0], *b = tile->bindings[1];
    SP_RESULT *y = tile->bindings[2];
    const uint32_t last = k->rank - 1;
    int64_t at = sp_tile_first(tile, 0);
    const int64_t end = sp_tile_end(tile, 0, k->count);
    if (at >= end) return SP_OK;
    sp_walk walk;
    sp_walk_init(&walk, k->rank, k->dims, k->a, k->b, at / k->dims[last]);
    int64_t column = at % k->dims[last], finished = at;
    while (at < end) {
        int64_t n = k->dims[last] - column;
        if (n > end - at) n = end - at;
        if (n > SP_STRETCH) n = SP_STRETCH;
        SP_GLUE(row, SP_NAME)(a + walk.a + column * k->a[last], k->a[last],
                              b + walk.b + column * k->b[last], k->b[last], y + at, n);
        at += n;
        if (at - finished >= SP_STRETCH || at == end) {
            SP_FINISH(k, y + finished, at - finished);
            finished = at;
        }
        column += n;
        if (column < k->dims[last]) continue;
        column = 0;
        sp_walk_next(&walk);
    }
    return SP_OK;
}

#undef SP_FINISH
#undef SP_RESULT
#undef SP_NAME
