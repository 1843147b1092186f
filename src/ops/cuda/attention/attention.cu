/* SPDX-License-Identifier: Apache-2.0 */
/* Attention (ops/cpu/gemm/attention.c), of some queries of a head at a time (attention_tile.h).
 * Each value is rounded as by the kernels of the steps: a score is one chain over the depth, a
 * softmax has the lanes and the tree of reductions, a result the segments of a product. */

/* ---- weights ---- */

/* The scores of a row by half a warp, the lanes of a reduction. */
struct sp_attention_row {
    const sp_attention_constants &k;
    const float *mask;        /* of the row's query, or nullptr */
    const uint8_t *condition; /* or nullptr */
    float *scores;
    int lane;

    __device__ __forceinline__ sp_f32 filled(sp_f32 score, uint8_t given) const
    {
        return (given == 0) == k.fills_false ? sp_f32(k.fill) : score;
    }

    /* A score of its sum. */
    __device__ __forceinline__ sp_f32 finished(sp_f32 score, float addend, uint8_t given) const
    {
        if (k.of_scores.kind != SP_SCALE_NONE) score = sp_attention_scaled(k.of_scores, score);
        if (condition && !k.is_condition_last) score = filled(score, given);
        if (mask) score = score + addend;
        if (condition && k.is_condition_last) score = filled(score, given);
        return score;
    }

    /* Finishes the scores; their maximum. Masks and conditions of several are loaded together. */
    __device__ __forceinline__ sp_f32 finish() const
    {
        const int together = 8, keys = (int)k.keys;
        sp_f32 most = sp_limits<sp_f32>::least();
#pragma unroll 1
        for (int first = lane; first < keys; first += together * 16) {
            float addends[together];
            uint8_t given[together];
#pragma unroll
            for (int i = 0; i < together; i++) {
                const int key = first + i * 16;
                addends[i] = mask && key < keys ? mask[key] : 0;
                given[i] = condition && key < keys ? condition[key] : 0;
            }
#pragma unroll
            for (int i = 0; i < together; i++) {
                const int key = first + i * 16;
                if (key >= keys) continue;
                const sp_f32 score = finished(scores[key], addends[i], given[i]);
                scores[key] = score.v;
                most = sp_join_max(most, score);
            }
        }
        return sp_warp_tree(most, 16, [](sp_f32 a, sp_f32 b) { return sp_join_max(a, b); });
    }

    __device__ __forceinline__ void weigh(sp_f32 most) const
    {
        sp_f32 sum = 0.0f;
#pragma unroll 4
        for (int i = lane; i < k.keys; i += 16) {
            const sp_f32 e = sp_expf(sp_f32(scores[i]) - most);
            scores[i] = e.v;
            sum = sum + e;
        }
        sum = sp_warp_tree(sum, 16, [](sp_f32 a, sp_f32 b) { return a + b; });
#pragma unroll 4
        for (int i = lane; i < k.keys; i += 16) scores[i] = (sp_f32(scores[i]) / sum).v;
    }
};

/* Sums become weights. Rows r and r + 2 are 16 banks apart. */
SP_CUDA_FUNCTION void sp_attention_weights(const sp_attention_warp &w)
{
    const int half = w.lane / 16;
    __syncwarp();
#pragma unroll 1
    for (int pair = 0; pair < SP_ATTENTION_ROWS / 2; pair++) {
        const int r = pair % 2 + pair / 2 * 4 + half * 2;
        const int64_t query = w.is_there(r) ? w.first + r : w.k.rows - 1;
        const sp_attention_row row = {
            w.k, w.h.mask ? w.h.mask + query * w.k.mask.row : nullptr,
            w.h.condition ? w.h.condition + query * w.k.condition.row : nullptr,
            w.scores + r * w.score_row, w.lane % 16};
        row.weigh(row.finish());
    }
    __syncwarp();
}

/* ---- the product with the values ---- */

/* A thread has 4 neighbouring columns of `rows` queries, `groups` apart from each other: lane l has
 * query l % groups and columns from 4 (l / groups) on. */
template <int groups> struct sp_attention_sums {
    static const int rows = SP_ATTENTION_ROWS / groups;
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

    /* `count` values of the chunk, from value `first` on; those up to a multiple of 4 are 0. */
    __device__ __forceinline__ void add_values(const sp_attention_warp &w, const float *chunk,
                                               int first, int count)
    {
        const float *weights = w.scores + w.lane % groups * w.score_row + first;
        const float *values = chunk + w.lane / groups * 4;
#pragma unroll 1
        for (int i = 0; i < count; i += 4) {
            float4 weight[rows];
#pragma unroll
            for (int r = 0; r < rows; r++) {
                weight[r] = *(const float4 *)(weights + r * groups * w.score_row + i);
            }
            const float *at = values + i * columns;
            const float4 v[] = {*(const float4 *)at, *(const float4 *)(at + columns),
                                *(const float4 *)(at + 2 * columns),
                                *(const float4 *)(at + 3 * columns)};
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
            float *to = w.h.y + (w.first + row) * w.k.y.row + column;
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

/* All of a tile. */
template <int groups> SP_CUDA_FUNCTION void sp_attention_tile(const sp_attention_warp &w)
{
    typedef sp_attention_sums<groups> sums_type;
    const int keys = (int)w.k.keys, columns = (int)w.k.columns;
    const auto load = [&](int value, int column, float *chunk) {
        sp_attention_load(sp_attention_value_part<sums_type::columns>(w, value, column, chunk),
                          w.threads);
    };
    int n = sp_attention_scores(w, [&](float *chunk) { load(0, 0, chunk); });
    sp_attention_weights(w);
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
            sums.add_values(w, w.chunk(n), value,
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

SP_CUDA_KERNEL(attention_f32, sp_attention_constants)
{
    SP_CUDA_SHARED(shared);
    const int warps = (int)bindings.tile[0], warp = threadIdx.x / SP_CUDA_LANES;
    const int query_row = (int)sp_cuda_attention_query_row(&k);
    const int score_row = (int)sp_cuda_attention_score_row(&k);
    const int block_rows = warps * SP_ATTENTION_ROWS, threads = warps * SP_CUDA_LANES;
    float *scores = (float *)shared, *queries = scores + block_rows * score_row;
    float *chunks = queries + block_rows * query_row;
    const int64_t tiles = sp_cuda_tiles(k.rows, block_rows);
    const int64_t count = tiles * sp_cuda_attention_heads(&k);
#pragma unroll 1
    for (int64_t block = blockIdx.x; block < count; block += gridDim.x) {
        int64_t head = block;
        const int64_t first = sp_take_coordinate(&head, tiles) * block_rows;
        const sp_attention_head h = sp_make_attention_head(bindings, k, head);
        const int64_t left = k.rows - first;
        const int row = warp * SP_ATTENTION_ROWS;
        const sp_attention_part queries_of = {h.query + first * k.query.row,
                                              k.query.row,
                                              1,
                                              left < block_rows ? (int)left : block_rows,
                                              (int)k.depth,
                                              queries,
                                              block_rows,
                                              query_row,
                                              query_row};
        const sp_attention_warp w = {k,
                                     h,
                                     queries + row * query_row,
                                     scores + row * score_row,
                                     chunks,
                                     query_row,
                                     score_row,
                                     sp_warp_lane(),
                                     threads,
                                     first + row};
        __syncthreads(); /* the tile before has been computed */
        sp_attention_load(sp_attention_key_part(w, 0, 0, w.chunk(0)), threads);
        sp_attention_load(queries_of, threads);
        if (k.of_query.kind != SP_SCALE_NONE) {
            sp_attention_end_load();
            sp_attention_scale_part(queries_of, k.of_query, threads);
        }
        if (k.columns > SP_ATTENTION_CHUNK_COLUMNS / 2) sp_attention_tile<2>(w);
        else sp_attention_tile<4>(w);
    }
}
