/* SPDX-License-Identifier: Apache-2.0 */
/* Launch shapes of attention (attention/attention_tile.h). */
#include "ops/cuda/cuda_launch.h"

#include "ops/cuda/attention/attention_tile.h"
#include "ops/cuda/cuda_grid.h"

/* Blocks of many queries read keys and values less often; two of them run on a processor at a time
 * if both have their scores there. Warps without queries load keys and values for the others. */
static int64_t attention_warps(const sp_attention_constants *k, uint32_t shared_bytes)
{
    int64_t warps = SP_ATTENTION_WARPS;
    const bool is_half_enough = warps / 2 * SP_ATTENTION_ROWS >= k->rows;
    const int64_t pair = 2 * sp_cuda_attention_bytes(k, warps) + SP_CUDA_RESERVED_BYTES;
    if (is_half_enough || pair > shared_bytes) warps /= 2;
    while (warps > 1 && sp_cuda_attention_bytes(k, warps) > shared_bytes) warps /= 2;
    return warps;
}

/* Warps of a block, and the queries of each of them. */
typedef struct attention_shape {
    int64_t warps, rows;
} attention_shape;

/* Do two blocks find room on a processor? */
static bool has_room(const sp_attention_constants *k, attention_shape shape, uint32_t shared_bytes)
{
    const int64_t bytes = sp_cuda_attention_bytes_at_once(k, shape.warps, shape.rows);
    return 2 * bytes + SP_CUDA_RESERVED_BYTES <= shared_bytes;
}

/* Few queries are spread over many processors; blocks of many queries load keys and values less
 * often. No rows: not at once, for any number of heads. */
static attention_shape attention_at_once(const sp_attention_constants *k, uint32_t shared_bytes)
{
    static const attention_shape shapes[] = {{4, 2}, {4, 4}, {4, 8}, {8, 8}};
    const int64_t heads = sp_cuda_attention_heads(k), processors = 128;
    if (!sp_cuda_attention_fits_at_once(k)) return (attention_shape){0};
    size_t i = 0;
    if (heads * sp_cuda_tiles(k->rows, 8) > 2 * processors) i = 1;
    if (heads * sp_cuda_tiles(k->rows, 16) > 4 * processors) i = k->rows > 32 ? 3 : 2;
    while (i > 0 && !has_room(k, shapes[i], shared_bytes)) i--;
    return has_room(k, shapes[i], shared_bytes) ? shapes[i] : (attention_shape){0};
}

void sp__cuda_launch_rounded_attention(const sp_attention_constants *k, int64_t warps,
                                       bool is_at_once, sp_launch_shape *out)
{
    const int64_t tiles = sp_cuda_tiles(k->rows, warps * SP_CUDA_ROUNDED_ROWS);
    sp__cuda_set_grid(tiles * sp_cuda_attention_heads(k), 1, 1, out);
    out->block[0] = (uint32_t)(warps * SP_CUDA_LANES);
    out->tile[0] = (uint32_t)warps;
    out->tile[1] = is_at_once ? (uint32_t)sp_cuda_rounded_keys_at_once(k) : 0;
    out->shared_bytes = (uint32_t)(is_at_once ? sp_cuda_rounded_bytes_at_once(k, warps)
                                              : sp_cuda_rounded_bytes(k, warps));
    out->variant = k->rounding == SP_ROUNDING_F16 ? &sp__cuda_variant_attention_rounded_f16
                                                  : &sp__cuda_variant_attention_rounded_bf16;
}

static int64_t rounded_bytes(const sp_attention_constants *k, int64_t warps, bool is_at_once)
{
    return is_at_once ? sp_cuda_rounded_bytes_at_once(k, warps) : sp_cuda_rounded_bytes(k, warps);
}

/* Blocks of many queries, since the keys and values of a head are loaded by each; of fewer warps
 * where that gives too few for all processors. At once a block has four warps at least, which load,
 * and two such blocks find room on a processor if it has more. */
static void set_rounded(const sp_attention_constants *k, uint32_t shared_bytes,
                        sp_launch_shape *out)
{
    const int64_t heads = sp_cuda_attention_heads(k), processors = 128;
    const bool is_at_once =
        sp_cuda_rounded_keys_at_once(k) > 0 && sp_cuda_rounded_bytes_at_once(k, 4) <= shared_bytes;
    int64_t warps = is_at_once ? 8 : 4;
    while (warps > 1) {
        const int64_t rows = warps * SP_CUDA_ROUNDED_ROWS;
        const int64_t bytes = rounded_bytes(k, warps, is_at_once);
        const bool has_room =
            is_at_once ? 2 * bytes + SP_CUDA_RESERVED_BYTES <= shared_bytes : bytes <= shared_bytes;
        const bool is_enough = heads * sp_cuda_tiles(k->rows, rows) >= processors;
        const bool is_least = is_at_once && warps == 4;
        if (rows / 2 < k->rows && (is_least || (has_room && is_enough))) break;
        warps /= 2;
    }
    sp__cuda_launch_rounded_attention(k, warps, is_at_once, out);
}

void sp__cuda_tiled_attention(const void *constants, uint32_t shared_bytes, sp_launch_shape *out)
{
    const sp_attention_constants *k = constants;
    if (k->rounding != SP_ROUNDING_NONE) {
        set_rounded(k, shared_bytes, out);
        return;
    }
    const attention_shape at_once = attention_at_once(k, shared_bytes);
    const bool is_at_once = at_once.rows > 0;
    const int64_t warps = is_at_once ? at_once.warps : attention_warps(k, shared_bytes);
    const int64_t rows = is_at_once ? at_once.rows : SP_ATTENTION_ROWS;
    const int64_t blocks = sp_cuda_tiles(k->rows, warps * rows) * sp_cuda_attention_heads(k);
    sp__cuda_set_grid(blocks, 1, 1, out);
    out->block[0] = (uint32_t)(warps * SP_CUDA_LANES);
    out->tile[0] = (uint32_t)warps;
    out->tile[1] = (uint32_t)at_once.rows;
    out->shared_bytes = (uint32_t)(is_at_once ? sp_cuda_attention_bytes_at_once(k, warps, rows)
                                              : sp_cuda_attention_bytes(k, warps));
}
