/* SPDX-License-Identifier: Apache-2.0 */
/* The product of a warp's queries with the keys: sums of chains over the depth, which is at most one
 * segment. */

SP_CUDA_FUNCTION int sp_attention_depth_chunks(const sp_attention_constants &k)
{
    return ((int)k.depth + SP_ATTENTION_CHUNK_DEPTH - 1) / SP_ATTENTION_CHUNK_DEPTH;
}

/* Elements `depth` ... of keys `key` ..., to a chunk. */
SP_CUDA_FUNCTION sp_attention_part sp_attention_key_part(const sp_attention_warp &w, int key,
                                                         int depth, float *chunk)
{
    const sp_attention_operand &of = w.k.key;
    const int keys = (int)w.k.keys - key, left = (int)w.k.depth - depth;
    return {w.h.key + key * of.row + depth * of.column,
            of.row,
            of.column,
            keys < SP_ATTENTION_CHUNK_KEYS ? keys : SP_ATTENTION_CHUNK_KEYS,
            left < SP_ATTENTION_CHUNK_DEPTH ? left : SP_ATTENTION_CHUNK_DEPTH,
            chunk,
            SP_ATTENTION_CHUNK_KEYS,
            SP_ATTENTION_CHUNK_DEPTH,
            SP_ATTENTION_CHUNK_ROW};
}

/* The chains of a lane's keys. */
typedef sp_f32 sp_attention_chains[SP_ATTENTION_ROWS][SP_ATTENTION_LANE_KEYS];

SP_CUDA_FUNCTION void sp_attention_start(sp_attention_chains &chains)
{
#pragma unroll
    for (int r = 0; r < SP_ATTENTION_ROWS; r++) {
#pragma unroll
        for (int i = 0; i < SP_ATTENTION_LANE_KEYS; i++) chains[r][i] = 0.0f;
    }
}

/* Adds `width` steps to the chains; those up to a multiple of 4 are of zeros. */
SP_CUDA_FUNCTION void sp_attention_add_products(const sp_attention_warp &w, const float *chunk,
                                                int depth, int width, sp_attention_chains &chains)
{
    const float *query = w.queries + depth, *keys = chunk + w.lane * SP_ATTENTION_CHUNK_ROW;
#pragma unroll 1
    for (int d = 0; d < width; d += 4) {
        float4 key[SP_ATTENTION_LANE_KEYS];
#pragma unroll
        for (int i = 0; i < SP_ATTENTION_LANE_KEYS; i++) {
            key[i] = *(const float4 *)(keys + i * SP_CUDA_LANES * SP_ATTENTION_CHUNK_ROW + d);
        }
#pragma unroll
        for (int r = 0; r < SP_ATTENTION_ROWS; r++) {
            const float4 q = *(const float4 *)(query + r * w.query_row + d);
#pragma unroll
            for (int i = 0; i < SP_ATTENTION_LANE_KEYS; i++) {
                sp_f32 chain = chains[r][i];
                chain = sp_step(chain, q.x, key[i].x);
                chain = sp_step(chain, q.y, key[i].y);
                chain = sp_step(chain, q.z, key[i].z);
                chains[r][i] = sp_step(chain, q.w, key[i].w);
            }
        }
    }
}

/* The sums of keys `first` ... that exist, and zeros behind the last one. */
SP_CUDA_FUNCTION void sp_attention_store_sums(const sp_attention_warp &w, int first,
                                              const sp_attention_chains &chains)
{
#pragma unroll
    for (int i = 0; i < SP_ATTENTION_LANE_KEYS; i++) {
        const int key = first + i * SP_CUDA_LANES + w.lane;
        if (key >= w.score_row) continue;
#pragma unroll
        for (int r = 0; r < SP_ATTENTION_ROWS; r++) {
            const sp_f32 sum = sp_f32(0.0f) + chains[r][i];
            w.scores[r * w.score_row + key] = key < w.k.keys ? sum.v : 0.0f;
        }
    }
}

/* Chunk 0 has been loaded. Loads the first chunk of what follows as load_next(chunk); returns the
 * number of that chunk. */
template <class Load>
SP_CUDA_FUNCTION int sp_attention_scores(const sp_attention_warp &w, Load load_next)
{
    const sp_attention_constants &k = w.k;
    const int depths = sp_attention_depth_chunks(k), keys = (int)k.keys;
    const int count = (keys + SP_ATTENTION_CHUNK_KEYS - 1) / SP_ATTENTION_CHUNK_KEYS * depths;
    sp_attention_chains chains;
    int key = 0, depth = 0; /* of the chunk */
#pragma unroll 1
    for (int n = 0; n < count; n++) {
        const bool is_last_depth = depth + SP_ATTENTION_CHUNK_DEPTH >= k.depth;
        const int next_depth = is_last_depth ? 0 : depth + SP_ATTENTION_CHUNK_DEPTH;
        const int next_key = is_last_depth ? key + SP_ATTENTION_CHUNK_KEYS : key;
        const sp_attention_part part = sp_attention_key_part(w, key, depth, w.chunk(n));
        sp_attention_end_load();
        if (n + 1 == count) load_next(w.chunk(n + 1));
        else {
            sp_attention_load(sp_attention_key_part(w, next_key, next_depth, w.chunk(n + 1)),
                              w.threads);
        }
        sp_attention_scale_part(part, k.of_key, w.threads);
        if (depth == 0) sp_attention_start(chains);
        if (w.is_there(0)) sp_attention_add_products(w, part.to, depth, part.columns, chains);
        if (is_last_depth) sp_attention_store_sums(w, key, chains);
        key = next_key;
        depth = next_depth;
    }
    return count;
}
