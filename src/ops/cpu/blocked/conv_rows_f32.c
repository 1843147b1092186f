/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution with few filters over plain images. Same sum as conv_f32: over (channel, kernel row,
 * kernel column) in order, in segments, padding taps included, then the bias, then the activation.
 *
 * The lanes of a vector are neighbouring outputs of a row, so a filter needs no 15 others, and an
 * input is loaded once for some filters. The input of some rows is copied with its padding, a
 * segment of channels at a time; between two segments the sums wait in y. */
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

/* What vectors may read beyond a row of the patch. */
enum { BEYOND = 8 * SP_VECTOR };

typedef struct rows {
    const sp_conv_constants *k;
    const float *x, *w, *bias; /* of the image and the group; bias may be NULL */
    float *y;
    sp_patch patch;
    int64_t channels, depth;              /* of a segment; taps of a filter */
    int64_t offsets[SP_CONV_MAX_SEGMENT]; /* of the taps of a segment */
} rows;

/* A segment of the taps, for some outputs of a row. */
typedef struct segment {
    int64_t first, count; /* taps */
    const int64_t *offsets;
    bool is_first, is_last;
    const float *x; /* of the first output in the patch */
    int64_t at;     /* the first output in a plane of y */
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
    for (int64_t t = 0; t < s->count; t++) {
        /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinary*): sp_patch_taps sets all taps */
        const float *in = x + s->offsets[t];
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
#pragma GCC unroll 24
    for (int64_t i = 0; i < filters * vectors; i++)
        sp_vector_store(chains + i * SP_VECTOR, sums[i]);
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
    if (!s->is_last) return;
    sp_activate(c->k->activation, c->y + s->at, filters, c->k->out_h * c->k->out_w, s->columns);
}

/* Outputs whose input fits the patch. */
static void run_block(const rows *c, int64_t row, int64_t count, int64_t column, int64_t columns,
                      float *patch)
{
    const sp_conv_constants *k = c->k;
    const int64_t taps = k->kernel_h * k->kernel_w;
    for (int64_t first = 0; first < k->channels; first += c->channels) {
        const int64_t channels = sp_size_least(c->channels, k->channels - first);
        segment s = {.first = first * taps,
                     .count = channels * taps,
                     .offsets = c->offsets,
                     .is_first = first == 0,
                     .is_last = first + channels == k->channels,
                     .columns = columns};
        sp_patch_copy(&c->patch, false, c->x + first * k->in_h * k->in_w, channels, row, count,
                      column, 0, patch);
        for (int64_t r = 0; r < count; r++) {
            s.x = patch + r * c->patch.out_row;
            s.at = (row + r) * k->out_w + column;
            run_row(c, &s);
        }
    }
}

static void rows_init(rows *c, const sp_tile *tile)
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
    sp_patch_choose(&c->patch, k, 1, c->channels, b->tile_rows, k->out_w);
    sp_patch_taps(&c->patch, c->offsets);
    for (int64_t channel = 1; channel < c->channels; channel++) {
        for (int64_t t = 0; t < taps; t++) {
            c->offsets[channel * taps + t] = channel * c->patch.plane + c->offsets[t];
        }
    }
}

sp_status SP_KERNEL(conv_rows_f32)(const sp_tile *tile)
{
    const sp_blocked_constants *b = tile->constants;
    const sp_conv_constants *k = &b->of;
    rows c;
    rows_init(&c, tile);
    float patch[SP_PATCH_ELEMENTS + BEYOND];
    memset(patch + SP_PATCH_ELEMENTS, 0, BEYOND * sizeof *patch);
    const int64_t first = tile->index[0] * b->tile_rows;
    const int64_t last = sp_size_least(first + b->tile_rows, k->out_h);
    for (int64_t row = first; row < last; row += c.patch.rows) {
        const int64_t count = sp_size_least(c.patch.rows, last - row);
        for (int64_t column = 0; column < k->out_w; column += c.patch.columns) {
            run_block(&c, row, count, column, sp_size_least(c.patch.columns, k->out_w - column),
                      patch);
        }
    }
    return SP_OK;
}
