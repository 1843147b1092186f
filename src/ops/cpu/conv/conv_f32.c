/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution in one to three spatial dimensions, any group, stride, dilation and padding. The sum
 * of one output runs over (channel, [kernel plane,] kernel row, kernel column) in order, in
 * segments as in gemm_block.h; taps in the padding are part of it, with an input of +0. Then the
 * bias is added, rounded, then the activation is applied.
 *
 * Outputs are computed up to SP_CONV_PIXELS at a time: their inputs are gathered, a segment of taps
 * at a time, into a matrix on the stack, which every filter of the group reads. Between two
 * segments the sums wait in y. */
#include "base/macros.h"
#include "ops/cpu/gemm/activate.h"
#include "ops/cpu/conv/conv_matrix.h"
#include "ops/cpu/gemm/gemm_block.h"

/* Filters that are computed together, and vectors of outputs of each. */
#if SP_VECTOR == 16
enum { FILTERS = 8, VECTORS = 2 };
#elif SP_VECTOR == 4
enum { FILTERS = 6, VECTORS = 4 };
#else
enum { FILTERS = 6, VECTORS = 2 };
#endif
enum { MATRIX = 288 * SP_CONV_PIXELS };

/* ---- a segment of all filters ---- */

/* Of a segment in the taps. */
typedef struct segment_place {
    bool is_first, is_last;
} segment_place;

/* Up to a vector. */
static SP_ALWAYS_INLINE void copy_floats(void *to, const void *from, int64_t count)
{
    if (SP_LIKELY(count >= SP_VECTOR)) memcpy(to, from, sizeof(sp_vector));
    else if (count > 0) memcpy(to, from, (size_t)count * sizeof(float));
}

/* Adds the chains of a segment, [filters][vectors], to the sums in y. Apart from the loop that
 * computes them, whose registers its constants would take. */
static SP_NOINLINE void add_chains(const conv_block *block, const float *chains, int64_t filters,
                                   int64_t vectors, int64_t filter, int64_t from,
                                   segment_place place)
{
    for (int64_t f = filter; f < filter + filters; f++) {
        const float bias = block->bias ? block->bias[f] : 0;
        for (int64_t v = 0; v < vectors; v++, chains += SP_VECTOR) {
            float *y = block->y + f * block->out_plane + from + v * SP_VECTOR;
            const int64_t left = block->width - from - v * SP_VECTOR;
            sp_vector sum = {0};
            if (!place.is_first) copy_floats(&sum, y, left);
            sum += sp_vector_load(chains);
            if (place.is_last && block->bias) sum += sp_vector_splat(bias);
            if (place.is_last) sum = sp_vector_canonical(sum);
            copy_floats(y, &sum, left);
        }
    }
}

/* Runs a segment of `depth` taps of `filters` filters over `vectors` vectors of the block's
 * outputs, from `from` on. */
static SP_ALWAYS_INLINE void run_filters(const int64_t filters, const int64_t vectors,
                                         const conv_block *block, const float *taps,
                                         int64_t first_tap, int64_t depth, int64_t filter,
                                         int64_t from)
{
    const int64_t all_taps = block->all_taps;
    const segment_place place = {first_tap == 0, first_tap + depth == all_taps};
    float chains[FILTERS * VECTORS * SP_VECTOR];
    sp_vector acc[FILTERS * VECTORS] = {0};
    sp_gemm_block(filters, vectors, block->w + filter * all_taps + first_tap, all_taps, 1,
                  taps + from, block->most, SP_GEMM_PANEL, depth, acc);
#pragma GCC unroll 24
    for (int64_t i = 0; i < filters * vectors; i++) {
        sp_vector_store(chains + i * SP_VECTOR, acc[i]);
    }
    add_chains(block, chains, filters, vectors, filter, from, place);
}

/* All filters of the group. */
static SP_ALWAYS_INLINE void run_vectors(const int64_t vectors, const conv_block *block,
                                         const float *taps, int64_t first_tap, int64_t depth,
                                         int64_t from)
{
    const int64_t filters = block->k->filters;
    int64_t f = 0;
    for (; f + FILTERS <= filters; f += FILTERS) {
        run_filters(FILTERS, vectors, block, taps, first_tap, depth, f, from);
    }
    for (; f + 4 <= filters; f += 4) {
        run_filters(4, vectors, block, taps, first_tap, depth, f, from);
    }
    for (; f + 2 <= filters; f += 2) {
        run_filters(2, vectors, block, taps, first_tap, depth, f, from);
    }
    for (; f < filters; f++) run_filters(1, vectors, block, taps, first_tap, depth, f, from);
}

static void run_segment(const conv_block *block, const float *taps, int64_t first_tap,
                        int64_t depth)
{
    for (int64_t from = 0; from < block->width; from += (int64_t)VECTORS * SP_VECTOR) {
        const int64_t left = block->width - from;
        if (left > (int64_t)VECTORS / 2 * SP_VECTOR)
            run_vectors(VECTORS, block, taps, first_tap, depth, from);
        else run_vectors(VECTORS / 2, block, taps, first_tap, depth, from);
    }
}

/* Outputs of which the matrix holds so many taps. */
static int64_t pixels_of(int64_t taps)
{
    return taps * SP_CONV_PIXELS <= MATRIX ? SP_CONV_PIXELS : SP_CONV_PIXELS / 2;
}

_Static_assert(SP_CONV_MAX_SEGMENT *(SP_CONV_PIXELS / 2) <= MATRIX, "a segment fits the matrix");
_Static_assert(SP_CONV_PIXELS / 2 % SP_VECTOR == 0, "vectors of outputs are in the matrix");

static SP_ALWAYS_INLINE void run_conv(const bool is_3d, const sp_tile *tile)
{
    const sp_conv_3d_constants *d = is_3d ? tile->constants : NULL;
    const sp_conv_constants *k = is_3d ? &d->plane : tile->constants;
    const int64_t group = tile->index[1];
    const int64_t index = tile->index[2] * k->groups + group;
    const int64_t all_taps = k->channels * (is_3d ? d->kernel_d : 1) * k->kernel_h * k->kernel_w;
    const int64_t plane = (is_3d ? d->out_d : 1) * k->out_h * k->out_w;
    const int64_t in_plane = (is_3d ? d->in_d : 1) * k->in_h * k->in_w;
    const float *bias = k->has_bias ? tile->bindings[2] : NULL;
    float *y = (float *)tile->bindings[k->has_bias ? 3 : 2] + index * k->filters * plane;
    input_places places;
    conv_block block = {.k = k,
                        .depth = d,
                        .x = (const float *)tile->bindings[0] + index * k->channels * in_plane,
                        .w = (const float *)tile->bindings[1] + group * k->filters * all_taps,
                        .bias = bias ? bias + group * k->filters : NULL,
                        .most = pixels_of(k->segment < all_taps ? k->segment : all_taps),
                        .all_taps = all_taps,
                        .in_plane = in_plane,
                        .out_plane = plane,
                        .in = &places};
    const int64_t first = sp_tile_first(tile, 0);
    const int64_t last = sp_tile_end(tile, 0, plane);
    float taps[MATRIX + SP_VECTOR]; /* a vector of a row may end in the next one */
    for (int64_t pixel = first; pixel < last; pixel += block.most) {
        block.pixel = pixel;
        block.width = last - pixel < block.most ? last - pixel : block.most;
        block.y = y + pixel;
        find_places(&block);
        /* Runs once for 0 taps, too: the outputs are then the bias. */
        for (int64_t tap = 0; tap == 0 || tap < all_taps; tap += k->segment) {
            const int64_t depth = all_taps - tap < k->segment ? all_taps - tap : k->segment;
            gather_segment(&block, is_3d, tap, depth, taps);
            run_segment(&block, taps, tap, depth);
        }
        sp_activate(k->activation, block.y, k->filters, plane, block.width);
    }
}

sp_status SP_KERNEL(conv_f32)(const sp_tile *tile)
{
    run_conv(false, tile);
    return SP_OK;
}

sp_status SP_KERNEL(conv_3d_f32)(const sp_tile *tile)
{
    run_conv(true, tile);
    return SP_OK;
}
