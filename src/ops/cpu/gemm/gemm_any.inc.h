/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of one type. Parameters: SP_TYPE; SP_SCALE(x, factor). */

static void SP_OF(segment)(const sp_gemm_any_constants *k, const SP_ELEMENT *a, const SP_ELEMENT *b,
                           int64_t first, int64_t end, int64_t width, SP_WRAPPING *chain)
{
    for (int64_t d = first; d < end; d++) {
        const SP_WRAPPING left = (SP_WRAPPING)SP_LOAD(a[d * k->gemm.a_depth]);
        const SP_ELEMENT *right = b + d * k->gemm.b_depth;
        for (int64_t i = 0; i < width; i++) {
            chain[i] = SP_WRAPPING_OF(sp_step)(chain[i], left,
                                               (SP_WRAPPING)SP_LOAD(right[i * k->b_column]));
        }
    }
}

static void SP_OF(strip)(const sp_gemm_any_constants *k, const SP_ELEMENT *a, const SP_ELEMENT *b,
                         int64_t width, SP_WRAPPING *sum)
{
    const int64_t depth = k->gemm.depth;
    for (int64_t i = 0; i < width; i++) sum[i] = 0;
    for (int64_t first = 0; first < depth; first += SP_GEMM_SEGMENT) {
        const int64_t end = first + SP_GEMM_SEGMENT < depth ? first + SP_GEMM_SEGMENT : depth;
        SP_WRAPPING chain[STRIP] = {0};
        SP_OF(segment)(k, a, b, first, end, width, chain);
        for (int64_t i = 0; i < width; i++) sum[i] += chain[i];
    }
}

sp_status SP_KERNEL(SP_OF(gemm_any))(const sp_tile *tile)
{
    const sp_gemm_any_constants *any = tile->constants;
    const sp_gemm_constants *k = &any->gemm;
    int64_t a_first, b_first;
    select_batch(k, tile->index[2], &a_first, &b_first);
    const SP_ELEMENT *a = (const SP_ELEMENT *)tile->bindings[0] + a_first;
    const SP_ELEMENT *b = (const SP_ELEMENT *)tile->bindings[1] + b_first;
    const SP_ELEMENT *c = k->has_c ? tile->bindings[2] : NULL;
    SP_ELEMENT *y =
        (SP_ELEMENT *)tile->bindings[k->has_c ? 3 : 2] + tile->index[2] * k->rows * k->columns;
    const int64_t first = sp_tile_first(tile, 0);
    const int64_t last = sp_tile_end(tile, 0, k->rows);
    for (int64_t row = first; row < last; row++) {
        for (int64_t column = 0; column < k->columns; column += STRIP) {
            const int64_t left = k->columns - column;
            const int64_t width = left < STRIP ? left : STRIP;
            SP_WRAPPING sum[STRIP];
            SP_OF(strip)(any, a + row * k->a_row, b + column * any->b_column, width, sum);
            for (int64_t i = 0; i < width; i++) {
                SP_WRAPPING out = SP_SCALE(sum[i], (SP_WRAPPING)k->alpha);
                if (c) {
                    const SP_ELEMENT add = c[row * k->c_row + (column + i) * k->c_column];
                    out += SP_SCALE((SP_WRAPPING)SP_LOAD(add), (SP_WRAPPING)k->beta);
                }
                y[row * k->columns + column + i] = SP_STORE(out);
            }
        }
    }
    return SP_OK;
}

#undef SP_SCALE
#undef SP_TYPE
