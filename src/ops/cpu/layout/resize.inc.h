/* SPDX-License-Identifier: Apache-2.0 */
/* Resize of one type, linear and cubic. While the taps are added, y[0 .. inner) of a column holds
 * the partial sums. Parameter: SP_TYPE. */

#define SP_TAP_LIST SP_OF(taps)

typedef struct SP_TAP_LIST {
    int64_t count, index[TAPS];
    SP_ELEMENT weight[TAPS];
} SP_TAP_LIST;

/* The next taps whose weight is not 0, from neighbour *at on. */
static void SP_OF(next_taps)(const sp_resize_constants *k, const neighbours *n, int64_t *at,
                             SP_TAP_LIST *out)
{
    out->count = 0;
    for (; *at < n->count && out->count < TAPS; (*at)++) {
        const SP_ELEMENT weight = (SP_ELEMENT)(neighbour_weight(k, n, n->first + *at) / n->total);
        if (weight == 0) continue;
        out->index[out->count] = clamp_index(n->first + *at, k->in);
        out->weight[out->count++] = weight;
    }
}

static void SP_OF(add_taps)(const sp_resize_constants *k, const SP_TAP_LIST *t, const SP_ELEMENT *x,
                            SP_ELEMENT *y)
{
    for (int64_t i = 0; i < t->count; i++) {
        const SP_ELEMENT *from = x + t->index[i] * k->inner;
        const SP_ELEMENT weight = t->weight[i];
        SP_INDEPENDENT for (int64_t c = 0; c < k->inner; c++)
        {
            y[c] = SP_OF(sp_step)(y[c], weight, from[c]);
        }
    }
}

static void SP_OF(blend_column)(const sp_tile *tile, int64_t first, int64_t end, int64_t at)
{
    const sp_resize_constants *k = tile->constants;
    const SP_ELEMENT *x = tile->bindings[0];
    SP_ELEMENT *y = (SP_ELEMENT *)tile->bindings[1] + at * k->inner;
    const double place = clamp_coordinate(input_coordinate(k, at));
    const bool is_out = is_outside(k, place);
    SP_ELEMENT start = 0;
    if (is_out) memcpy(&start, &k->outside, sizeof(start));
    for (int64_t o = first; o < end; o++) {
        for (int64_t c = 0; c < k->inner; c++) y[o * k->out * k->inner + c] = start;
    }
    if (is_out) return;
    const neighbours n = find_neighbours(k, place);
    SP_TAP_LIST t;
    for (int64_t next = 0; next < n.count;) {
        SP_OF(next_taps)(k, &n, &next, &t);
        for (int64_t o = first; o < end; o++) {
            SP_OF(add_taps)(k, &t, x + o * k->in * k->inner, y + o * k->out * k->inner);
        }
    }
    for (int64_t o = first; o < end; o++) {
        SP_ELEMENT *row = y + o * k->out * k->inner;
        for (int64_t c = 0; c < k->inner; c++) row[c] = SP_STORE(row[c]);
    }
}

sp_status SP_KERNEL(SP_OF(resize))(const sp_tile *tile)
{
    const sp_resize_constants *k = tile->constants;
    const int64_t first = sp_tile_first(tile, 0);
    const int64_t end = sp_tile_end(tile, 0, k->outer);
    for (int64_t at = 0; at < k->out; at++) SP_OF(blend_column)(tile, first, end, at);
    return SP_OK;
}

#undef SP_TAP_LIST
#undef SP_TYPE
