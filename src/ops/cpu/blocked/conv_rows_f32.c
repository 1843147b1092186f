/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution with few filters over plain images. Same sum as conv_f32: over (channel, kernel row,
 * kernel column) in order, in segments, padding taps included, then the bias, then the activation.
 *
 * The lanes of a vector are neighbouring outputs of a row, so a filter needs no 15 others, and an
 * input is loaded once for some filters. The input of some rows is copied with its padding, some
 * channels at a time; between two segments the sums wait in y. With very few filters the copy takes
 * longer than the sums, so it is made of fewer channels and more rows, whose windows overlap: the
 * chains of a segment wait too then. */
#include "ops/cpu/blocked/patch.h"
#include "ops/cpu/gemm/activate.h"

/* Vectors of outputs that are computed together: of 8, 4, 2 filters and of one. Sums, inputs and a
 * weight fit the registers. */
#if SP_VECTOR == 16 || SP_VECTOR == 4
enum { OF_8 = 3, OF_4 = 6, OF_2 = 8, OF_1 = 8 };
#elif SP_HAS_HARDWARE_FMA
enum { OF_8 = 1, OF_4 = 3, OF_2 = 5, OF_1 = 8 };
#else
enum { OF_8 = 1, OF_4 = 1, OF_2 = 1, OF_1 = 1 };
#endif

/* What vectors may read beyond a row of the patch, and write beyond a row of chains. */
enum { BEYOND = 8 * SP_VECTOR };

/* Chains that wait, and the most filters that have some. */
enum { CHAINS = 4096, PARTED_FILTERS = 4 };

typedef struct rows {
    const sp_conv_constants *k;
    const float *x, *w, *bias; /* of the image and the group; bias may be NULL */
    float *y;
    sp_patch patch;
    int64_t channels, part;                   /* of a segment, of a patch */
    int64_t depth;                            /* taps of a filter */
    int64_t offsets[SP_CONV_MAX_SEGMENT + 1]; /* of the taps of a patch, and one more */
} rows;

/* The taps of a segment that are in the patch, for some outputs of a row. */
typedef struct segment {
    int64_t first, count; /* taps */
    const int64_t *offsets;
    bool is_first, is_last;   /* of the segments */
    bool is_begun, is_closed; /* other taps of the segment were before; none is left */
    float *chains;            /* that wait: of the row, and of the first filter */
    int64_t chain_plane;      /* to the next filter */
    const float *x;           /* of the first output in the patch */
    int64_t at;               /* the first output in a plane of y */
    int64_t columns;
} segment;

/* Most sums of a block, in vectors. */
enum { SUMS = 24 };

/* Stores the chains [filters][vectors] of filters from f on, and of outputs from `column` on, which
 * may be beyond the row. Apart from the loop that computes them, whose registers it would take. */
static SP_NOINLINE SP_NOCLONE void finish(const rows *c, const segment *s, int64_t f,
                                          int64_t column, int64_t filters, int64_t vectors,
                                          const float *chains)
{
    const int64_t plane = c->k->out_h * c->k->out_w;
    for (int64_t i = 0; i < filters; i++) {
        float *y = c->y + (f + i) * plane + s->at;
        const sp_vector bias = sp_vector_splat(c->bias != NULL ? c->bias[f + i] : 0);
        for (int64_t v = 0; v < vectors; v++, chains += SP_VECTOR) {
            const int64_t at = column + v * SP_VECTOR, count = s->columns - at;
            sp_vector sum = sp_vector_splat(0);
            if (count <= 0) continue;
            if (!s->is_first) sum = sp_vector_load_part(y + at, sp_vector_range(0, count), sum);
            sum += sp_vector_load(chains);
            /* Without a bias +0, which changes no sum: none is -0. */
            if (s->is_last) sum = sp_vector_canonical(sum + bias);
            sp_vector_store_first(y + at, count, sum);
        }
    }
}

/* Outputs from `column` on, of `filters` filters from f on; both numbers are constants. */
static SP_ALWAYS_INLINE void run_vectors(const int64_t filters, const int64_t vectors,
                                         const rows *c, const segment *s, int64_t f, int64_t column)
{
    const float *w = c->w + f * c->depth + s->first, *x = s->x + column;
    const int64_t depth = c->depth;
    float chains[SUMS * SP_VECTOR];
    sp_vector sums[SUMS] = {0};
    const bool may_wait = filters <= PARTED_FILTERS; /* of more, patches have whole segments */
    if (may_wait && s->is_begun) {
        const float *from = s->chains + f * s->chain_plane + column;
#pragma GCC unroll 24
        for (int64_t i = 0; i < filters * vectors; i++) {
            sums[i] = sp_vector_load(from + i / vectors * s->chain_plane + i % vectors * SP_VECTOR);
        }
    }
    const float *next = x + s->offsets[0];
    for (int64_t t = 0; t < s->count; t++) {
        const float *in = next; /* found a step ahead, as in blocked_block.h */
        /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinary*): sp_patch_taps sets all taps */
        next = x + s->offsets[t + 1];
        sp_vector inputs[8];
#pragma GCC unroll 8
        for (int64_t v = 0; v < vectors; v++) inputs[v] = sp_vector_load(in + v * SP_VECTOR);
#pragma GCC unroll 8
        for (int64_t i = 0; i < filters; i++) {
            const sp_vector weight = sp_vector_splat(w[i * depth + t]);
#pragma GCC unroll 8
            for (int64_t v = 0; v < vectors; v++) {
                sp_vector *sum = &sums[i * vectors + v];
                *sum = sp_vector_fma(inputs[v], weight, *sum);
            }
        }
    }
    if (may_wait && !s->is_closed) {
        float *to = s->chains + f * s->chain_plane + column;
#pragma GCC unroll 24
        for (int64_t i = 0; i < filters * vectors; i++) {
            sp_vector_store(to + i / vectors * s->chain_plane + i % vectors * SP_VECTOR, sums[i]);
        }
        return;
    }
#pragma GCC unroll 24
    for (int64_t i = 0; i < filters * vectors; i++) {
        sp_vector_store(chains + i * SP_VECTOR, sums[i]);
    }
    finish(c, s, f, column, filters, vectors, chains);
}

/* All outputs of the row. The last vectors may be half of the others, and may be beyond the row. */
static SP_ALWAYS_INLINE void run_filters(const int64_t filters, const int64_t vectors,
                                         const rows *c, const segment *s, int64_t f)
{
    const int64_t half = vectors > 1 ? vectors / 2 : 1;
    for (int64_t column = 0; column < s->columns;) {
        if (s->columns - column > half * SP_VECTOR) {
            run_vectors(filters, vectors, c, s, f, column);
            column += vectors * SP_VECTOR;
        } else {
            run_vectors(filters, half, c, s, f, column);
            column += half * SP_VECTOR;
        }
    }
}

static SP_NOINLINE void run_8(const rows *c, const segment *s, int64_t f)
{
    run_filters(8, OF_8, c, s, f);
}

static SP_NOINLINE void run_4(const rows *c, const segment *s, int64_t f)
{
    run_filters(4, OF_4, c, s, f);
}

static SP_NOINLINE void run_2(const rows *c, const segment *s, int64_t f)
{
    run_filters(2, OF_2, c, s, f);
}

static SP_NOINLINE void run_1(const rows *c, const segment *s, int64_t f)
{
    run_filters(1, OF_1, c, s, f);
}

static void run_row(const rows *c, const segment *s)
{
    const int64_t filters = c->k->filters;
    for (int64_t f = 0, left = filters; left > 0; left = filters - f) {
        if (left >= 8) {
            run_8(c, s, f);
            f += 8;
        } else if (left >= 4) {
            run_4(c, s, f);
            f += 4;
        } else if (left >= 2) {
            run_2(c, s, f);
            f += 2;
        } else {
            run_1(c, s, f);
            f += 1;
        }
    }
    if (!s->is_last || !s->is_closed) return;
    sp_activate(c->k->activation, c->y + s->at, filters, c->k->out_h * c->k->out_w, s->columns);
}

/* Memory of a tile. */
typedef struct room {
    float patch[SP_PATCH_ELEMENTS + BEYOND], chains[CHAINS];
} room;

/* Outputs whose input fits the patch. */
typedef struct block {
    int64_t row, rows, column, columns;
} block;

/* The channels [first, first + count) of a segment that begins with channel `begin`. */
static void run_part(const rows *c, const block *o, int64_t begin, int64_t first, int64_t count,
                     room *r)
{
    const sp_conv_constants *k = c->k;
    const int64_t taps = k->kernel_h * k->kernel_w;
    const int64_t end = sp_size_least(begin + c->channels, k->channels);
    const int64_t width = o->columns + BEYOND;
    segment s = {.first = first * taps,
                 .count = count * taps,
                 .offsets = c->offsets,
                 .is_first = begin == 0,
                 .is_last = end == k->channels,
                 .is_begun = first != begin,
                 .is_closed = first + count == end,
                 .chain_plane = o->rows * width,
                 .columns = o->columns};
    sp_patch_copy(&c->patch, false, c->x + first * k->in_h * k->in_w, count, o->row, o->rows,
                  o->column, 0, r->patch);
    for (int64_t i = 0; i < o->rows; i++) {
        s.x = r->patch + i * c->patch.out_row;
        s.at = (o->row + i) * k->out_w + o->column;
        s.chains = r->chains + i * width;
        run_row(c, &s);
    }
}

static void run_block(const rows *c, const block *o, room *r)
{
    for (int64_t begin = 0; begin < c->k->channels; begin += c->channels) {
        const int64_t end = sp_size_least(begin + c->channels, c->k->channels);
        for (int64_t first = begin; first < end; first += c->part) {
            run_part(c, o, begin, first, sp_size_least(c->part, end - first), r);
        }
    }
}

/* The channels and outputs of a patch: whole segments, or fewer channels until there are some rows,
 * as many as chains can wait of. */
static void choose_patch(rows *c, int64_t tile_rows)
{
    enum { ENOUGH = 8 };
    const sp_conv_constants *k = c->k;
    const int64_t enough = sp_size_least(ENOUGH, tile_rows);
    const int64_t most = CHAINS / (k->filters * (k->out_w + BEYOND));
    c->part = c->channels;
    c->patch.most = SP_PATCH_ELEMENTS;
    sp_patch_choose(&c->patch, k, 1, c->part, tile_rows, k->out_w);
    if (k->filters > PARTED_FILTERS || most < enough) return;
    while (c->patch.rows < enough && c->part > 1) {
        c->part = (c->part + 1) / 2;
        sp_patch_choose(&c->patch, k, 1, c->part, sp_size_least(tile_rows, most), k->out_w);
    }
}

/* `out_rows`: of the tile. Not more: rows of the patch that no block fills would be denormal
 * numbers by chance, which vectors beyond the row read, and with which some processors compute
 * slowly. */
static void rows_init(rows *c, const sp_tile *tile, int64_t out_rows)
{
    const sp_blocked_constants *b = tile->constants;
    const sp_conv_constants *k = c->k = &b->of;
    const int64_t taps = k->kernel_h * k->kernel_w;
    const int64_t group = tile->index[1], index = tile->index[2] * k->groups + group;
    c->depth = k->channels * taps;
    c->x = (const float *)tile->bindings[0] + index * k->channels * k->in_h * k->in_w;
    c->w = (const float *)tile->bindings[1] + group * k->filters * c->depth;
    c->bias = k->has_bias ? (const float *)tile->bindings[2] + group * k->filters : NULL;
    c->y = (float *)tile->bindings[k->has_bias ? 3 : 2] + index * k->filters * k->out_h * k->out_w;
    c->channels = sp_size_least(k->segment / taps, k->channels);
    choose_patch(c, out_rows);
    sp_patch_taps(&c->patch, c->offsets);
    for (int64_t channel = 1; channel < c->part; channel++) {
        for (int64_t t = 0; t < taps; t++) {
            c->offsets[channel * taps + t] = channel * c->patch.plane + c->offsets[t];
        }
    }
    c->offsets[c->part * taps] = 0;
}

sp_status SP_KERNEL(conv_rows_f32)(const sp_tile *tile)
{
    const sp_blocked_constants *b = tile->constants;
    const sp_conv_constants *k = &b->of;
    const int64_t first = sp_tile_first(tile, 0);
    const int64_t last = sp_tile_end(tile, 0, k->out_h);
    rows c;
    room r;
    rows_init(&c, tile, last - first);
    memset(r.patch + c.part * c.patch.plane, 0, BEYOND * sizeof *r.patch);
    block o;
    for (o.row = first; o.row < last; o.row += c.patch.rows) {
        o.rows = sp_size_least(c.patch.rows, last - o.row);
        for (o.column = 0; o.column < k->out_w; o.column += c.patch.columns) {
            o.columns = sp_size_least(c.patch.columns, k->out_w - o.column);
            run_block(&c, &o, &r);
        }
    }
    return SP_OK;
}
