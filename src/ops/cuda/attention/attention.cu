/* SPDX-License-Identifier: Apache-2.0 */
/* Attention (ops/cpu/gemm/attention.c), of some queries of a head at a time (attention_tile.h).
 * Each value is rounded as by the kernels of the steps: a score is one chain over the depth, a
 * softmax has the lanes and the tree of reductions, a result the segments of a product. */

/* ---- the product with the values ---- */

/* A thread has 4 neighbouring columns of `rows` queries, `groups` apart from each other: lane l has
 * query l % groups and columns from 4 (l / groups) on. The warp has warp_rows queries. */
template <int groups, int warp_rows> struct sp_attention_sums {
    static const int rows = warp_rows / groups;
    static const int columns = SP_CUDA_LANES / groups * 4;
    sp_f32 chains[rows][4], sums[rows][4];

    __device__ __forceinline__ void start()
    {
#pragma unroll
        for (int r = 0; r < rows; r++) {
#pragma unroll
            for (int c = 0; c < 4; c++) chains[r][c] = sums[r][c] = 0.0f;
        }
    }

    __device__ __forceinline__ void add(int r, sp_f32 weight, const float4 &value)
    {
        chains[r][0] = sp_step(chains[r][0], weight, value.x);
        chains[r][1] = sp_step(chains[r][1], weight, value.y);
        chains[r][2] = sp_step(chains[r][2], weight, value.z);
        chains[r][3] = sp_step(chains[r][3], weight, value.w);
    }

    /* `count` values, `row` floats apart, from value `first` on; those up to a multiple of 4 are 0.
     * Lanes whose columns a row does not have compute the first ones. */
    template <int unroll>
    __device__ __forceinline__ void add_values(const sp_attention_warp &w, const float *from,
                                               int row, int first, int count)
    {
        const float *weights = w.scores + w.lane % groups * w.score_row + first;
        const int column = w.lane / groups * 4;
        const float *values = from + (column < row ? column : 0);
#pragma unroll unroll
        for (int i = 0; i < count; i += 4) {
            float4 weight[rows];
#pragma unroll
            for (int r = 0; r < rows; r++) {
                weight[r] = *(const float4 *)(weights + r * groups * w.score_row + i);
            }
            const float *at = values + i * row;
            const float4 v[] = {*(const float4 *)at, *(const float4 *)(at + row),
                                *(const float4 *)(at + 2 * row), *(const float4 *)(at + 3 * row)};
#pragma unroll
            for (int r = 0; r < rows; r++) {
                add(r, weight[r].x, v[0]);
                add(r, weight[r].y, v[1]);
                add(r, weight[r].z, v[2]);
                add(r, weight[r].w, v[3]);
            }
        }
    }

    __device__ __forceinline__ void end_segment()
    {
#pragma unroll
        for (int r = 0; r < rows; r++) {
#pragma unroll
            for (int c = 0; c < 4; c++) {
                sums[r][c] = sums[r][c] + chains[r][c];
                chains[r][c] = 0.0f;
            }
        }
    }

    __device__ __forceinline__ void store(const sp_attention_warp &w, int first_column) const
    {
        const int64_t column = first_column + w.lane / groups * 4;
#pragma unroll
        for (int r = 0; r < rows; r++) {
            const int64_t row = w.lane % groups + r * groups;
            float *to = w.h.y + w.h.y_first + (w.first + row) * w.k.y.row + column;
            if (!w.is_there((int)row) || column >= w.k.columns) continue;
            const float4 out = {sp_store(sums[r][0]), sp_store(sums[r][1]), sp_store(sums[r][2]),
                                sp_store(sums[r][3])};
            const int64_t left = w.k.columns - column;
            if (left >= 4 && (uint64_t)to % 16 == 0) {
                *(float4 *)to = out;
                continue;
            }
            to[0] = out.x;
            if (left > 1) to[1] = out.y;
            if (left > 2) to[2] = out.z;
            if (left > 3) to[3] = out.w;
        }
    }
};

/* Columns `column` ... of values `value` ..., to a chunk. */
template <int columns>
SP_CUDA_FUNCTION sp_attention_part sp_attention_value_part(const sp_attention_warp &w, int value,
                                                           int column, float *chunk)
{
    const int values = (int)w.k.keys - value, left = (int)w.k.columns - column;
    return {w.h.value + value * w.k.value.row + column,
            w.k.value.row,
            1,
            values < SP_ATTENTION_CHUNK_VALUES ? values : SP_ATTENTION_CHUNK_VALUES,
            left < columns ? left : columns,
            chunk,
            SP_ATTENTION_CHUNK_VALUES,
            columns,
            columns};
}

/* All of a tile, keys and values by chunks. */
template <int groups> SP_CUDA_FUNCTION void sp_attention_tile(const sp_attention_warp &w)
{
    typedef sp_attention_sums<groups, SP_ATTENTION_ROWS> sums_type;
    const int keys = (int)w.k.keys, columns = (int)w.k.columns;
    const auto load = [&](int value, int column, float *chunk) {
        sp_attention_load(sp_attention_value_part<sums_type::columns>(w, value, column, chunk),
                          w.threads);
    };
    int n = sp_attention_scores(w, [&](float *chunk) { load(0, 0, chunk); });
    sp_attention_weights<SP_ATTENTION_ROWS>(w);
    sums_type sums;
    int value = 0, column = 0; /* of chunk n */
    sums.start();
#pragma unroll 1
    while (column < columns) {
        const bool is_last = value + SP_ATTENTION_CHUNK_VALUES >= keys;
        const int next_value = is_last ? 0 : value + SP_ATTENTION_CHUNK_VALUES;
        const int next_column = is_last ? column + sums_type::columns : column;
        const int left = keys - value;
        sp_attention_end_load();
        if (next_column < columns) load(next_value, next_column, w.chunk(n + 1));
        if (w.is_there(0)) {
            sums.template add_values<1>(
                w, w.chunk(n), sums_type::columns, value,
                left < SP_ATTENTION_CHUNK_VALUES ? left : SP_ATTENTION_CHUNK_VALUES);
        }
        if ((value + SP_ATTENTION_CHUNK_VALUES) % SP_GEMM_SEGMENT == 0 || is_last) {
            sums.end_segment();
        }
        if (is_last) {
            sums.store(w, column);
            sums.start();
        }
        value = next_value;
        column = next_column;
        n++;
    }
}

/* ---- the kernel ---- */

/* The tiles of `warps` warps of `rows` queries: calls body(head, first query, scores, queries).
 * Behind these, in shared memory, is what else the block has. */
template <class Body>
SP_CUDA_FUNCTION void sp_attention_tiles(const sp_gpu_bindings &bindings,
                                         const sp_attention_constants &k, int rows, Body body)
{
    SP_CUDA_SHARED(shared);
    const int block_rows = (int)bindings.tile[0] * rows;
    float *scores = (float *)shared;
    float *queries = scores + block_rows * (int)sp_cuda_attention_score_row(&k);
    sp_attention_each_tile(bindings, k, block_rows, [&](const sp_attention_head &h, int64_t first) {
        body(h, first, scores, queries);
    });
}

/* This thread's warp of a tile that begins with query `first`. */
SP_CUDA_FUNCTION sp_attention_warp sp_make_attention_warp(const sp_gpu_bindings &bindings,
                                                          const sp_attention_constants &k,
                                                          const sp_attention_head &h, int rows,
                                                          int64_t first, float *scores,
                                                          float *queries)
{
    const int row = (int)threadIdx.x / SP_CUDA_LANES * rows, warps = (int)bindings.tile[0];
    const int query_row = (int)sp_cuda_attention_query_row(&k);
    const int score_row = (int)sp_cuda_attention_score_row(&k);
    return {k,
            h,
            queries + row * query_row,
            scores + row * score_row,
            queries + warps * rows * query_row,
            query_row,
            score_row,
            sp_warp_lane(),
            warps * SP_CUDA_LANES,
            first + row};
}

/* The queries of a block. */
SP_CUDA_FUNCTION sp_attention_part sp_attention_query_part(const sp_attention_warp &w,
                                                           int64_t first, int block_rows,
                                                           float *queries)
{
    const int64_t left = w.k.rows - first;
    return {w.h.query + first * w.k.query.row,
            w.k.query.row,
            1,
            left < block_rows ? (int)left : block_rows,
            (int)w.k.depth,
            queries,
            block_rows,
            w.query_row,
            w.query_row};
}

/* Keys and values by chunks. */
SP_CUDA_FUNCTION void sp_attention_by_chunks(const sp_gpu_bindings &bindings,
                                             const sp_attention_constants &k)
{
    const int rows = SP_ATTENTION_ROWS, block_rows = (int)bindings.tile[0] * rows;
    sp_attention_tiles(
        bindings, k, rows,
        [&](const sp_attention_head &h, int64_t first, float *scores, float *queries) {
            const sp_attention_warp w =
                sp_make_attention_warp(bindings, k, h, rows, first, scores, queries);
            const sp_attention_part of = sp_attention_query_part(w, first, block_rows, queries);
            sp_attention_load(sp_attention_key_part(w, 0, 0, w.chunk(0)), w.threads);
            sp_attention_load(of, w.threads);
            if (k.of_query.kind != SP_SCALE_NONE) {
                sp_attention_end_load();
                sp_attention_scale_part(of, k.of_query, w.threads);
            }
            if (k.columns > SP_ATTENTION_CHUNK_COLUMNS / 2) sp_attention_tile<2>(w);
            else sp_attention_tile<4>(w);
        });
}

/* All keys and values of a head at a time. `groups`: of columns of a warp, as above. */
template <int rows, int groups>
SP_CUDA_FUNCTION void sp_attention_at_once(const sp_gpu_bindings &bindings,
                                           const sp_attention_constants &k)
{
    const int block_rows = (int)bindings.tile[0] * rows, unroll = 8 / rows;
    const int value_row = (int)sp_cuda_attention_value_row(&k);
    sp_attention_tiles(
        bindings, k, rows,
        [&](const sp_attention_head &h, int64_t first, float *scores, float *queries) {
            const sp_attention_warp w =
                sp_make_attention_warp(bindings, k, h, rows, first, scores, queries);
            const sp_attention_part of_queries =
                sp_attention_query_part(w, first, block_rows, queries);
            const sp_attention_part of_keys = sp_attention_all_keys(w, w.chunks);
            float *values = w.chunks + of_keys.all_rows * of_keys.to_row;
            sp_attention_load(of_keys, w.threads);
            sp_attention_load(of_queries, w.threads);
            sp_attention_load(sp_attention_all_values(w, value_row, values), w.threads);
            sp_attention_end_load();
            sp_attention_scale_part(of_queries, k.of_query, w.threads);
            sp_attention_scale_part(of_keys, k.of_key, w.threads);
            sp_attention_all_scores<rows>(w, of_keys);
            sp_attention_weights<rows>(w);
            sp_attention_sums<groups, rows> sums;
            sums.start();
            if (w.is_there(0)) {
                sums.template add_values<unroll>(w, values, value_row, 0, (int)k.keys);
            }
            sums.end_segment();
            sums.store(w, 0);
        });
}

SP_CUDA_KERNEL_THAT_AWAITS(attention_f32, sp_attention_constants)
{
    const bool is_narrow = k.columns <= SP_ATTENTION_CHUNK_COLUMNS / 2;
    switch (bindings.tile[1]) { /* queries of a warp */
    case 2:
        sp_attention_at_once<2, 2>(bindings, k);
        break;
    case 4:
        if (is_narrow) sp_attention_at_once<4, 4>(bindings, k);
        else sp_attention_at_once<4, 2>(bindings, k);
        break;
    case 8:
        if (is_narrow) sp_attention_at_once<8, 4>(bindings, k);
        else sp_attention_at_once<8, 2>(bindings, k);
        break;
    default:
        sp_attention_by_chunks(bindings, k);
    }
}
