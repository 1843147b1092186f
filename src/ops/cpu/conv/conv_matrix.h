/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix of inputs of a convolution: the inputs of a block of outputs, a row for each tap. */
#ifndef SP_OPS_CPU_CONV_CONV_MATRIX_H
#define SP_OPS_CPU_CONV_CONV_MATRIX_H

#include "ops/cpu/conv/conv_gather.h"
#include "ops/cpu/conv/conv_pixels.h"

/* Outputs of a block that are in one row of their plane. */
typedef struct row_piece {
    int64_t y, x, z; /* of the input of the first one's first tap */
    int64_t count;
} row_piece;

/* Up to a vector of a row piece. */
typedef struct row_chunk {
    int64_t y, x; /* of the input of the first one's first tap */
    int64_t at;   /* its place in a row of the matrix */
    int64_t count;
} row_chunk;

/* Where a tap's inputs of a block are in a plane, and the outputs for which they are inside. */
typedef struct tap_source {
    int64_t offset; /* of the first output's */
    uint32_t pixels;
} tap_source;

/* Where a block's inputs are. */
typedef struct input_places {
    row_piece pieces[SP_CONV_PIXELS];
    int64_t piece_count;
    /* Of the taps of a channel; none if the outputs' inputs are not neighbours in memory. */
    tap_source sources[SP_CONV_MAX_SEGMENT];
    int64_t source_count;
    /* If there are no sources; none if the stride of columns is above 2. */
    row_chunk chunks[SP_CONV_PIXELS + SP_CONV_PIXELS / SP_VECTOR];
    sp_row_part parts[SP_CONV_MAX_SEGMENT]; /* [kernel_w][chunk_count] */
    int64_t chunk_count;
} input_places;

/* One block of outputs of one group of one image. */
typedef struct conv_block {
    const sp_conv_constants *k;
    const sp_conv_3d_constants *depth;     /* of a volume; contains k */
    const float *x, *w, *bias;             /* of the group; bias may be NULL */
    float *y;                              /* of the group, at the block's first output */
    int64_t pixel;                         /* the first output */
    int64_t width, most;                   /* outputs in the block, and in the matrix */
    int64_t all_taps, in_plane, out_plane; /* sizes of them */
    input_places *in;
} conv_block;

static void find_pieces(const conv_block *block)
{
    const sp_conv_constants *k = block->k;
    const sp_conv_3d_constants *d = block->depth;
    int64_t row = block->pixel / k->out_w, column = block->pixel % k->out_w;
    block->in->piece_count = 0;
    for (int64_t done = 0; done < block->width; row++, column = 0) {
        const int64_t left = block->width - done;
        row_piece *piece = &block->in->pieces[block->in->piece_count++];
        piece->count = k->out_w - column < left ? k->out_w - column : left;
        piece->x = column * k->stride_w - k->pad_left;
        piece->y = (d != NULL ? row % k->out_h : row) * k->stride_h - k->pad_top;
        piece->z = d != NULL ? row / k->out_h * d->stride_d - d->pad_front : 0;
        done += piece->count;
    }
}

/* The first `count` outputs of a block, one bit each. */
static uint32_t first_pixels(int64_t count)
{
    return count > 0 ? (uint32_t)((UINT64_C(1) << count) - 1) : 0;
}

/* The outputs of a block, one bit each, whose input row is inside, of taps that are tap_y below the
 * first one. */
static uint32_t pixels_of_row(const conv_block *block, int64_t tap_y)
{
    uint32_t pixels = 0;
    int64_t done = 0;
    for (int64_t i = 0; i < block->in->piece_count; i++) {
        const row_piece *piece = &block->in->pieces[i];
        const int64_t y = piece->y + tap_y;
        if (y >= 0 && y < block->k->in_h) {
            pixels |= first_pixels(piece->count) << done;
        }
        done += piece->count;
    }
    return pixels;
}

/* The same for input columns. */
static uint32_t pixels_of_column(const conv_block *block, int64_t tap_x)
{
    uint32_t pixels = 0;
    int64_t done = 0;
    for (int64_t i = 0; i < block->in->piece_count; i++) {
        const row_piece *piece = &block->in->pieces[i];
        const sp_tap_range range = sp_clip_taps(piece->x + tap_x, 1, piece->count, block->k->in_w);
        pixels |= (first_pixels(range.last) & ~first_pixels(range.first)) << done;
        done += piece->count;
    }
    return pixels;
}

/* Whether the inputs of one tap are neighbours in memory, those in the padding left out. */
static bool has_sources(const conv_block *block)
{
    const sp_conv_constants *k = block->k;
    const bool is_one_row = k->stride_h == 1 && k->in_w == k->out_w;
    return block->depth == NULL && k->stride_w == 1 &&
           (block->in->piece_count == 1 || is_one_row) &&
           k->kernel_h * k->kernel_w <= SP_CONV_MAX_SEGMENT;
}

static void find_sources(const conv_block *block)
{
    const sp_conv_constants *k = block->k;
    uint32_t columns[SP_CONV_MAX_SEGMENT];
    block->in->source_count = 0;
    if (!has_sources(block)) return;
    const int64_t first = block->in->pieces[0].y * k->in_w + block->in->pieces[0].x;
    for (int64_t x = 0; x < k->kernel_w; x++) {
        columns[x] = pixels_of_column(block, x * k->dilation_w);
    }
    for (int64_t y = 0; y < k->kernel_h; y++) {
        const uint32_t rows = pixels_of_row(block, y * k->dilation_h);
        /* Of rows outside of the image the product may overflow. */
        const int64_t row = rows != 0 ? first + y * k->dilation_h * k->in_w : first;
        for (int64_t x = 0; x < k->kernel_w; x++) {
            block->in->sources[block->in->source_count++] =
                (tap_source){row + x * k->dilation_w, rows & columns[x]};
        }
    }
}

static void cut_pieces(const conv_block *block)
{
    int64_t at = 0;
    for (int64_t i = 0; i < block->in->piece_count; i++) {
        const row_piece *piece = &block->in->pieces[i];
        for (int64_t c = 0; c < piece->count; c += SP_VECTOR) {
            const int64_t left = piece->count - c;
            block->in->chunks[block->in->chunk_count++] =
                (row_chunk){.y = piece->y,
                            .x = piece->x + c * block->k->stride_w,
                            .at = at + c,
                            .count = left < SP_VECTOR ? left : SP_VECTOR};
        }
        at += piece->count;
    }
}

static void find_chunks(const conv_block *block)
{
    const sp_conv_constants *k = block->k;
    block->in->chunk_count = 0;
    if (block->in->source_count > 0 || block->depth != NULL || k->stride_w > 2) return;
    cut_pieces(block);
    if (block->in->chunk_count * k->kernel_w > SP_CONV_MAX_SEGMENT) block->in->chunk_count = 0;
    sp_row_part *part = block->in->parts;
    for (int64_t x = 0; x < (block->in->chunk_count > 0 ? k->kernel_w : 0); x++) {
        for (int64_t i = 0; i < block->in->chunk_count; i++) {
            const row_chunk *chunk = &block->in->chunks[i];
            *part++ =
                sp_row_part_of(chunk->x + x * k->dilation_w, k->stride_w, chunk->count, k->in_w);
        }
    }
}

/* A tap as (channel, plane, row, column). */
typedef struct tap_place {
    int64_t channel, z, y, x;
} tap_place;

static tap_place find_tap(const conv_block *block, int64_t tap)
{
    const sp_conv_constants *k = block->k;
    const int64_t rows = tap / k->kernel_w, planes = rows / k->kernel_h;
    const int64_t kernel_d = block->depth != NULL ? block->depth->kernel_d : 1;
    return (tap_place){planes / kernel_d, planes % kernel_d, rows % k->kernel_h, tap % k->kernel_w};
}

static void next_tap(const conv_block *block, tap_place *tap)
{
    const int64_t kernel_d = block->depth != NULL ? block->depth->kernel_d : 1;
    if (++tap->x < block->k->kernel_w) return;
    tap->x = 0;
    if (++tap->y < block->k->kernel_h) return;
    tap->y = 0;
    if (++tap->z < kernel_d) return;
    tap->z = 0;
    tap->channel++;
}

static void find_places(const conv_block *block)
{
    find_pieces(block);
    find_sources(block);
    find_chunks(block);
}

/* ---- the matrix ---- */

/* One tap of all outputs of the block. */
static SP_ALWAYS_INLINE void gather_tap(const conv_block *block, const bool is_3d,
                                        const tap_place *tap, float *out)
{
    const sp_conv_constants *k = block->k;
    const float *plane = block->x + tap->channel * block->in_plane;
    for (int64_t i = 0; i < block->in->piece_count; i++) {
        const row_piece *piece = &block->in->pieces[i];
        const int64_t z = is_3d ? piece->z + tap->z * block->depth->dilation_d : 0;
        const int64_t y = piece->y + tap->y * k->dilation_h;
        const int64_t x = piece->x + tap->x * k->dilation_w;
        const bool is_inside =
            y >= 0 && y < k->in_h && (!is_3d || (z >= 0 && z < block->depth->in_d));
        sp_gather_row(is_inside ? plane + (z * k->in_h + y) * k->in_w : NULL, k->in_w, x,
                      k->stride_w, piece->count, out);
        out += piece->count;
    }
    for (int64_t i = block->width; i < block->most; i++) *out++ = 0;
}

/* The outputs of a block have neighbouring inputs, all of them inside. */
static bool is_plain(const conv_block *block)
{
    const sp_conv_constants *k = block->k;
    return block->all_taps == k->channels && k->stride_w == 1 && block->in->piece_count == 1 &&
           block->width == block->most && block->in->pieces[0].x >= 0 &&
           block->in->pieces[0].x + block->width <= k->in_w && block->in->pieces[0].y >= 0 &&
           block->in->pieces[0].y < k->in_h && block->depth == NULL;
}

/* Whole channels, by their sources. Channels are too far apart for the processor to fetch one
 * before it is read. */
static SP_ALWAYS_INLINE void gather_channels(const conv_block *block, const int64_t vectors,
                                             const float *plane, int64_t channels, float *taps)
{
    const sp_vector zeros = {0};
    const int64_t ahead = 4 * block->in_plane;
    for (int64_t i = 0; i < channels; i++, plane += block->in_plane) {
        for (int64_t t = 0; t < block->in->source_count; t++) {
            const tap_source *source = &block->in->sources[t];
            const float *from = plane + source->offset;
            __builtin_prefetch(from + ahead);
            __builtin_prefetch(from + ahead + SP_CONV_PIXELS / 2);
#pragma GCC unroll 4
            for (int64_t v = 0; v < vectors; v++, from += SP_VECTOR, taps += SP_VECTOR) {
                const sp_vector_part part = source->pixels >> (v * SP_VECTOR) & SP_VECTOR_ALL;
                sp_vector_store(taps, sp_vector_load_part(from, part, zeros));
            }
        }
    }
}

/* One tap of all outputs of the block, by chunks. A chunk's vector may end in the next one, which
 * is written later. */
static SP_ALWAYS_INLINE void gather_chunks(const conv_block *block, const int64_t stride,
                                           const tap_place *tap, float *out)
{
    const sp_conv_constants *k = block->k;
    const float *plane = block->x + tap->channel * block->in_plane + tap->x * k->dilation_w;
    const sp_row_part *parts = &block->in->parts[tap->x * block->in->chunk_count];
    const sp_vector zeros = {0};
    for (int64_t i = 0; i < block->in->chunk_count; i++) {
        const row_chunk *chunk = &block->in->chunks[i];
        const int64_t y = chunk->y + tap->y * k->dilation_h;
        sp_vector v = zeros;
        if (y >= 0 && y < k->in_h) {
            const float *from = plane + y * k->in_w + chunk->x;
            v = sp_row_part_load(from, stride, parts[i], 0);
        }
        sp_vector_store(out + chunk->at, v);
    }
    for (int64_t i = block->width; i < block->most; i++) out[i] = 0;
}

static SP_ALWAYS_INLINE void gather_segment(const conv_block *block, const bool is_3d,
                                            int64_t first_tap, int64_t depth, float *taps)
{
    if (is_plain(block)) {
        const float *x = block->x + first_tap * block->in_plane +
                         block->in->pieces[0].y * block->k->in_w + block->in->pieces[0].x;
        for (int64_t i = 0; i < depth; i++, x += block->in_plane, taps += block->most) {
            for (int64_t v = 0; v < block->most; v += SP_VECTOR) {
                sp_vector_store(taps + v, sp_vector_load(x + v));
            }
        }
        return;
    }
    if (!is_3d && block->in->source_count > 0) {
        enum { VECTORS = SP_CONV_PIXELS / SP_VECTOR };
        const int64_t channel = first_tap / block->in->source_count;
        const int64_t channels = depth / block->in->source_count;
        const float *plane = block->x + channel * block->in_plane;
        if (block->most == SP_CONV_PIXELS) {
            gather_channels(block, VECTORS, plane, channels, taps);
        } else {
            gather_channels(block, VECTORS / 2, plane, channels, taps);
        }
        return;
    }
    tap_place tap = find_tap(block, first_tap);
    for (int64_t i = 0; i < depth; i++, next_tap(block, &tap)) {
        float *out = taps + i * block->most;
        if (is_3d || block->in->chunk_count == 0) gather_tap(block, is_3d, &tap, out);
        else if (block->k->stride_w == 1) gather_chunks(block, 1, &tap, out);
        else gather_chunks(block, 2, &tap, out);
    }
}

#endif
