/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of one type. Parameter: SP_TYPE. */

static SP_WIDE SP_OF(sum)(const sp_conv_3d_constants *d, const SP_ELEMENT *x, const SP_ELEMENT *w,
                          int64_t taps, int64_t pixel)
{
    SP_WIDE sum = 0, chain = 0;
    int64_t left = d->plane.segment; /* taps of the segment that are to come */
    for (int64_t tap = 0; tap < taps; tap++, left--) {
        if (left == 0) {
            sum += chain;
            chain = 0;
            left = d->plane.segment;
        }
        const int64_t index_in_x = input_index(d, pixel, tap);
        const SP_WIDE value = index_in_x < 0 ? 0 : (SP_WIDE)SP_LOAD(x[index_in_x]);
        chain = SP_WIDE_OF(sp_step)(chain, (SP_WIDE)SP_LOAD(w[tap]), value);
    }
    return sum + chain;
}

sp_status SP_KERNEL(SP_OF(conv_any))(const sp_tile *tile)
{
    const sp_conv_3d_constants *d = tile->constants;
    const sp_conv_constants *k = &d->plane;
    const conv_sizes sizes = get_conv_sizes(d);
    const int64_t group = tile->index[1];
    const int64_t index = tile->index[2] * k->groups + group;
    const SP_ELEMENT *x = (const SP_ELEMENT *)tile->bindings[0] + index * k->channels * sizes.in;
    const SP_ELEMENT *w = (const SP_ELEMENT *)tile->bindings[1] + group * k->filters * sizes.taps;
    const SP_ELEMENT *bias =
        k->has_bias ? (const SP_ELEMENT *)tile->bindings[2] + group * k->filters : NULL;
    SP_ELEMENT *y =
        (SP_ELEMENT *)tile->bindings[k->has_bias ? 3 : 2] + index * k->filters * sizes.out;
    const int64_t first = sp_tile_first(tile, 0);
    const int64_t last = sp_tile_end(tile, 0, sizes.out);
    for (int64_t f = 0; f < k->filters; f++) {
        for (int64_t pixel = first; pixel < last; pixel++) {
            SP_WIDE out = SP_OF(sum)(d, x, w + f * sizes.taps, sizes.taps, pixel);
            if (bias) out += (SP_WIDE)SP_LOAD(bias[f]);
            y[f * sizes.out + pixel] = SP_STORE(out);
        }
    }
    return SP_OK;
}

#undef SP_TYPE
