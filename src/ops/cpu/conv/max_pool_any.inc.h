/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of one type. Parameters: SP_TYPE; SP_BEATS(x, best). */

static SP_ELEMENT SP_OF(best)(const sp_window_constants *k, const SP_ELEMENT *x, int64_t plane,
                              const int64_t start[3], int64_t *index)
{
    SP_ELEMENT best = SP_OF(sp_least);
    int64_t best_at[3] = {-1, -1, -1}, at[3];
    sp_tap_range taps[3];
    for (int a = 0; a < 3; a++) {
        taps[a] = sp_clip_taps(start[a], k->dilation[a], k->kernel[a], k->in[a]);
    }
    for (int64_t i = taps[0].first; i < taps[0].last; i++) {
        at[0] = start[0] + i * k->dilation[0];
        for (int64_t j = taps[1].first; j < taps[1].last; j++) {
            at[1] = start[1] + j * k->dilation[1];
            const SP_ELEMENT *row = x + (at[0] * k->in[1] + at[1]) * k->in[2];
            for (int64_t t = taps[2].first; t < taps[2].last; t++) {
                at[2] = start[2] + t * k->dilation[2];
                const SP_ELEMENT value = row[at[2]];
                if (best_at[0] >= 0 && !(SP_BEATS(value, best))) continue;
                best = value;
                memcpy(best_at, at, sizeof(at));
            }
        }
    }
    *index = best_at[0] < 0 ? -1 : element_index(k, plane, best_at);
    return SP_STORE(best);
}

sp_status SP_KERNEL(SP_OF(max_pool_any))(const sp_tile *tile)
{
    const sp_window_constants *k = tile->constants;
    const int64_t rows = k->planes * k->out[0] * k->out[1];
    const int64_t first = sp_tile_first(tile, 0);
    const int64_t last = sp_tile_end(tile, 0, rows);
    for (int64_t row = first; row < last; row++) {
        const int64_t plane = row / (k->out[0] * k->out[1]);
        const SP_ELEMENT *x =
            (const SP_ELEMENT *)tile->bindings[0] + plane * k->in[0] * k->in[1] * k->in[2];
        SP_ELEMENT *y = (SP_ELEMENT *)tile->bindings[1] + row * k->out[2];
        const int64_t start[3] = {row / k->out[1] % k->out[0] * k->stride[0] - k->pad[0],
                                  row % k->out[1] * k->stride[1] - k->pad[1], 0};
        for (int64_t c = 0; c < k->out[2]; c++) {
            int64_t index;
            const int64_t here[3] = {start[0], start[1], c * k->stride[2] - k->pad[2]};
            y[c] = SP_OF(best)(k, x, plane, here, &index);
            if (k->has_indices) {
                ((int64_t *)tile->bindings[2])[row * k->out[2] + c] = index;
            }
        }
    }
    return SP_OK;
}

#undef SP_BEATS
#undef SP_TYPE
