/* SPDX-License-Identifier: Apache-2.0 */
/* What one block of attention computes: for the host, which chooses it by the shape of a head, and
 * for the kernel. It affects no bit of the results. C and CUDA C++ compile this text, after
 * fused_constants.h and tiles.h.
 *
 * A warp has SP_ATTENTION_ROWS queries, and computes all of their scores, weights and results. The
 * warps of a block read the same keys and values, some at a time. In shared memory are, in floats,
 *
 *     the scores of the queries   [warps * SP_ATTENTION_ROWS][score row]
 *     the queries                 [warps * SP_ATTENTION_ROWS][query row]
 *     two chunks of keys or values, of SP_ATTENTION_CHUNK each
 */
#ifndef SP_OPS_CUDA_ATTENTION_ATTENTION_TILE_H
#define SP_OPS_CUDA_ATTENTION_ATTENTION_TILE_H

#include "ops/fused_constants.h"

#include "ops/cuda/arch/tiles.h"

#define SP_ATTENTION_ROWS 8
#define SP_ATTENTION_WARPS SP_CUDA_WARPS

/* Keys whose scores a warp computes at a time, several for each lane, and the elements of them that
 * a chunk has. Rows of the chunk are 20 banks apart, so that the vectors of 8 lanes do not
 * conflict. */
#define SP_ATTENTION_LANE_KEYS 4
#define SP_ATTENTION_CHUNK_KEYS (SP_ATTENTION_LANE_KEYS * SP_CUDA_LANES)
#define SP_ATTENTION_CHUNK_DEPTH 16
#define SP_ATTENTION_CHUNK_ROW (SP_ATTENTION_CHUNK_DEPTH + 4)
/* Values that a chunk has, a divisor of a segment, and columns of them. */
#define SP_ATTENTION_CHUNK_VALUES 32
#define SP_ATTENTION_CHUNK_COLUMNS 64

#define SP_ATTENTION_CHUNK (SP_ATTENTION_CHUNK_KEYS * SP_ATTENTION_CHUNK_ROW)

/* Floats from one query to the next. */
SP_CUDA_FUNCTION int64_t sp_cuda_attention_query_row(const sp_attention_constants *k)
{
    return sp_cuda_tiles(k->depth, 4) * 4;
}

/* Floats from the scores of one query to those of the next: at least the keys and the zeros up to a
 * multiple of 4; neighbouring queries are 8 banks apart. */
SP_CUDA_FUNCTION int64_t sp_cuda_attention_score_row(const sp_attention_constants *k)
{
    const int64_t keys = sp_cuda_tiles(k->keys, 4) * 4;
    return sp_cuda_tiles(keys > 8 ? keys - 8 : 0, 32) * 32 + 8;
}

SP_CUDA_FUNCTION int64_t sp_cuda_attention_bytes(const sp_attention_constants *k, int64_t warps)
{
    const int64_t row = sp_cuda_attention_query_row(k) + sp_cuda_attention_score_row(k);
    const int64_t chunk = (int64_t)SP_ATTENTION_CHUNK_KEYS * SP_ATTENTION_CHUNK_ROW;
    return (warps * SP_ATTENTION_ROWS * row + 2 * chunk) * 4;
}

/* ---- all keys and values of a head at once ----
 *
 * If they find room, a block loads all of them before it computes, and waits once. Its warps have
 * 2, 4 or 8 queries. In shared memory are the scores and queries, as above, all keys and all
 * values. */

/* Keys that a block has: those of all lanes, twice. The last ones are zeros. */
SP_CUDA_FUNCTION int64_t sp_cuda_attention_all_keys(const sp_attention_constants *k)
{
    const int64_t both = (int64_t)2 * SP_CUDA_LANES;
    return sp_cuda_tiles(k->keys, both) * both;
}

/* Floats from one key to the next: an odd multiple of 4, so that the vectors of 8 lanes do not
 * conflict. */
SP_CUDA_FUNCTION int64_t sp_cuda_attention_key_row(const sp_attention_constants *k)
{
    return sp_cuda_tiles(k->depth, 8) * 8 + 4;
}

/* Floats from one value to the next. */
SP_CUDA_FUNCTION int64_t sp_cuda_attention_value_row(const sp_attention_constants *k)
{
    const bool is_half = k->columns <= SP_ATTENTION_CHUNK_COLUMNS / 2;
    return is_half ? SP_ATTENTION_CHUNK_COLUMNS / 2 : SP_ATTENTION_CHUNK_COLUMNS;
}

SP_CUDA_FUNCTION int64_t sp_cuda_attention_bytes_at_once(const sp_attention_constants *k,
                                                         int64_t warps, int64_t rows)
{
    const int64_t row = sp_cuda_attention_query_row(k) + sp_cuda_attention_score_row(k);
    const int64_t keys = sp_cuda_attention_all_keys(k) * sp_cuda_attention_key_row(k);
    const int64_t values = sp_cuda_tiles(k->keys, 4) * 4 * sp_cuda_attention_value_row(k);
    return (warps * rows * row + keys + values) * 4;
}

/* Values are one segment, and columns those of one warp. */
SP_CUDA_FUNCTION bool sp_cuda_attention_fits_at_once(const sp_attention_constants *k)
{
    return k->keys > 0 && k->keys <= SP_GEMM_SEGMENT && k->columns <= SP_ATTENTION_CHUNK_COLUMNS;
}

/* ---- with rounded products (attention/rounded.cu), by elements of two bytes ---- */

/* Floats from the scores of one query to those of the next: the keys and the zeros up to whole
 * fragments; neighbouring queries are 8 banks apart. */
SP_CUDA_FUNCTION int64_t sp_cuda_rounded_score_row(const sp_attention_constants *k)
{
    const int64_t keys = sp_cuda_tiles(k->keys, 16) * 16;
    return sp_cuda_tiles(keys - 8, 32) * 32 + 8;
}

/* Bytes from one query or key to the next: an odd multiple of 16, so that fragments are read
 * without conflicts of banks. */
SP_CUDA_FUNCTION int64_t sp_cuda_rounded_pitch(const sp_attention_constants *k)
{
    return sp_cuda_tiles(k->depth, 16) * 32 + 16;
}

/* Keys that are in shared memory at a time: fewer of long ones, so that the most that a plan allows
 * find room on every processor with tensor cores (99 KB). */
SP_CUDA_FUNCTION int64_t sp_cuda_rounded_lines(const sp_attention_constants *k)
{
    return k->depth > 128 ? 32 : 64;
}

SP_CUDA_FUNCTION int64_t sp_cuda_rounded_bytes(const sp_attention_constants *k, int64_t warps)
{
    const int64_t row = sp_cuda_rounded_score_row(k) * 4 + sp_cuda_rounded_pitch(k);
    const int64_t keys = sp_cuda_rounded_lines(k) * sp_cuda_rounded_pitch(k);
    const int64_t values = (int64_t)SP_CUDA_ROUNDED_COLUMNS * SP_CUDA_NARROW_PITCH;
    return warps * SP_CUDA_ROUNDED_ROWS * row + (keys > values ? keys : values);
}

/* With all keys and values of a head at once: bytes from one value to the next, the keys that are
 * in registers, or 0, and the shared memory. */
SP_CUDA_FUNCTION int64_t sp_cuda_rounded_value_pitch(const sp_attention_constants *k)
{
    return sp_cuda_tiles(k->columns, 16) * 32 + 16;
}
SP_CUDA_FUNCTION int64_t sp_cuda_rounded_keys_at_once(const sp_attention_constants *k)
{
    if (k->columns > SP_CUDA_ROUNDED_COLUMNS || k->keys > 128) return 0;
    return k->keys > 64 ? 128 : 64;
}
SP_CUDA_FUNCTION int64_t sp_cuda_rounded_bytes_at_once(const sp_attention_constants *k,
                                                       int64_t warps)
{
    const int64_t keys = sp_cuda_tiles(k->keys, 16) * 16;
    return (warps * SP_CUDA_ROUNDED_ROWS + keys) * sp_cuda_rounded_pitch(k) +
           keys * sp_cuda_rounded_value_pitch(k);
}

/* Batch entries: heads of images. */
SP_CUDA_FUNCTION int64_t sp_cuda_attention_heads(const sp_attention_constants *k)
{
    int64_t count = 1;
    for (uint32_t i = 0; i < k->batch_rank; i++) count *= k->batch_dims[i];
    return count;
}

#endif
