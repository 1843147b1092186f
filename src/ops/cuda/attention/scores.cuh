/* SPDX-License-Identifier: Apache-2.0 */
/* The product of a warp's queries with the keys: sums of chains over the depth, which is at most
 * one segment. */

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

/* The chains of a lane's keys, of which it has `keys`, SP_CUDA_LANES apart, with `rows` queries. */
template <int rows, int keys> struct sp_attention_chains {
    sp_f32 at[rows][keys];

    __device__ __forceinline__ void start()
    {
#pragma unroll
        for (int r = 0; r < rows; r++) {
#pragma unroll
            for (int i = 0; i < keys; i++) at[r][i] = 0.0f;
        }
    }

    /* Adds `width` steps from `depth` on; those up to a multiple of 4 are of zeros. `from` has the
     * first key of the lane, and row floats from one key to the next. */
    template <int unroll>
    __device__ __forceinline__ void add(const sp_attention_warp &w, const float *from, int row,
                                        int depth, int width)
    {
        const float *query = w.queries + depth;
#pragma unroll unroll
        for (int d = 0; d < width; d += 4) {
            float4 key[keys];
#pragma unroll
            for (int i = 0; i < keys; i++) {
                key[i] = *(const float4 *)(from + i * SP_CUDA_LANES * row + d);
            }
#pragma unroll
            for (int r = 0; r < rows; r++) {
                const float4 q = *(const float4 *)(query + r * w.query_row + d);
#pragma unroll
                for (int i = 0; i < keys; i++) {
                    sp_f32 chain = at[r][i];
                    chain = sp_step(chain, q.x, key[i].x);
                    chain = sp_step(chain, q.y, key[i].y);
                    chain = sp_step(chain, q.z, key[i].z);
                    at[r][i] = sp_step(chain, q.w, key[i].w);
                }
            }
        }
    }

    /* The sums of keys `first` ... that exist, and zeros behind the last one. */
    __device__ __forceinline__ void store(const sp_attention_warp &w, int first) const
    {
#pragma unroll
        for (int i = 0; i < keys; i++) {
            const int key = first + i * SP_CUDA_LANES + w.lane;
            if (key >= w.score_row) continue;
#pragma unroll
            for (int r = 0; r < rows; r++) {
                const sp_f32 sum = sp_f32(0.0f) + at[r][i];
                w.scores[r * w.score_row + key] = key < w.k.keys ? sum.v : 0.0f;
            }
        }
    }
};

/* Chunk 0 has been loaded. Loads the first chunk of what follows as load_next(chunk); returns the
 * number of that chunk. */
template <class Load>
SP_CUDA_FUNCTION int sp_attention_scores(const sp_attention_warp &w, Load load_next)
{
    const sp_attention_constants &k = w.k;
    const int depths = sp_attention_depth_chunks(k), keys = (int)k.keys;
    const int count = (keys + SP_ATTENTION_CHUNK_KEYS - 1) / SP_ATTENTION_CHUNK_KEYS * depths;
    sp_attention_chains<SP_ATTENTION_ROWS, SP_ATTENTION_LANE_KEYS> chains;
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
        if (depth == 0) chains.start();
        if (w.is_there(0)) {
            chains.template add<1>(w, part.to + w.lane * SP_ATTENTION_CHUNK_ROW,
                                   SP_ATTENTION_CHUNK_ROW, depth, part.columns);
        }
        if (is_last_depth) chains.store(w, key);
        key = next_key;
        depth = next_depth;
    }
    return count;
}

/* ---- all keys of a head at once ---- */

SP_CUDA_FUNCTION sp_attention_part sp_attention_all_keys(const sp_attention_warp &w, float *to)
{
    const sp_attention_operand &of = w.k.key;
    const int keys = (int)w.k.keys;
    return {w.h.key,
            of.row,
            of.column,
            keys,
            (int)w.k.depth,
            to,
            (int)sp_cuda_attention_all_keys(&w.k),
            w.query_row,
            (int)sp_cuda_attention_key_row(&w.k)};
}

SP_CUDA_FUNCTION sp_attention_part sp_attention_all_values(const sp_attention_warp &w, int row,
                                                           float *to)
{
    const int keys = (int)w.k.keys, all_keys = (keys + 3) / 4 * 4;
    return {w.h.value, w.k.value.row, 1, keys, (int)w.k.columns, to, all_keys, row, row};
}

/* With `keys` of each lane at a time. */
template <int rows, int keys>
SP_CUDA_FUNCTION void sp_attention_key_scores(const sp_attention_warp &w,
                                              const sp_attention_part &part)
{
    sp_attention_chains<rows, keys> chains;
#pragma unroll 1
    for (int first = 0; first < part.all_rows; first += keys * SP_CUDA_LANES) {
        chains.start();
        if (w.is_there(0)) {
            chains.template add<8 / rows>(w, part.to + (first + w.lane) * part.to_row, part.to_row,
                                          0, part.columns);
        }
        chains.store(w, first);
    }
}

template <int rows>
SP_CUDA_FUNCTION void sp_attention_all_scores(const sp_attention_warp &w,
                                              const sp_attention_part &part)
{
    if (part.all_rows % SP_ATTENTION_CHUNK_KEYS == 0) {
        sp_attention_key_scores<rows, SP_ATTENTION_LANE_KEYS>(w, part);
    } else {
        sp_attention_key_scores<rows, SP_ATTENTION_LANE_KEYS / 2>(w, part);
    }
}
