/* SPDX-License-Identifier: Apache-2.0 */
/* Attention (ops/cpu/gemm/attention.c), of some queries of a head at a time (attention_tile.h).
 * Each value is rounded as by the kernels of the steps: a score is one chain over the depth, a
 * softmax has the lanes and the tree of reductions, a result the segments of a product. */

/* The operands of one head. */
struct sp_attention_head {
    const float *query, *key, *value, *mask; /* mask: nullptr without one */
    const uint8_t *condition;                /* or nullptr */
    float *y;
};

SP_CUDA_FUNCTION sp_attention_head sp_make_attention_head(const sp_gpu_bindings &bindings,
                                                          const sp_attention_constants &k,
                                                          int64_t head)
{
    sp_attention_head h;
    int next = 3;
    h.query = (const float *)bindings.at[0] + k.query.first;
    h.key = (const float *)bindings.at[1] + k.key.first;
    h.value = (const float *)bindings.at[2] + k.value.first;
    h.mask = k.has_mask ? (const float *)bindings.at[next++] + k.mask.first : nullptr;
    h.condition =
        k.has_condition ? (const uint8_t *)bindings.at[next++] + k.condition.first : nullptr;
    h.y = (float *)bindings.at[next];
#pragma unroll 1
    for (uint32_t i = k.batch_rank; i-- > 0;) {
        const int64_t at = sp_take_coordinate(&head, k.batch_dims[i]);
        h.query += at * k.query.batch[i];
        h.key += at * k.key.batch[i];
        h.value += at * k.value.batch[i];
        h.y += at * k.y.batch[i];
        if (h.mask) h.mask += at * k.mask.batch[i];
        if (h.condition) h.condition += at * k.condition.batch[i];
    }
    return h;
}

/* ---- scales ---- */

SP_CUDA_FUNCTION sp_f32 sp_attention_scaled(const sp_attention_scale &scale, sp_f32 x)
{
    if (scale.kind == SP_SCALE_MULTIPLIES) return x * scale.number;
    if (scale.kind == SP_SCALE_DIVIDES) return x / scale.number;
    return x;
}

SP_CUDA_FUNCTION float4 sp_attention_scaled(const sp_attention_scale &scale, float4 x)
{
    x.x = sp_attention_scaled(scale, sp_f32(x.x)).v;
    x.y = sp_attention_scaled(scale, sp_f32(x.y)).v;
    x.z = sp_attention_scaled(scale, sp_f32(x.z)).v;
    x.w = sp_attention_scaled(scale, sp_f32(x.w)).v;
    return x;
}

/* ---- loads to shared memory ---- */

/* A part of an operand, `row` and `column` elements apart, and the place where it goes to: there it
 * has all_rows rows, to_row floats apart, of all_columns columns, a multiple of 4. What the part
 * does not have is 0. */
struct sp_attention_part {
    const float *from;
    int64_t row, column;
    int rows, columns;
    float *to;
    int all_rows, all_columns, to_row;
};

SP_CUDA_FUNCTION float sp_attention_element(const sp_attention_part &p,
                                            const sp_attention_scale &scale, int r, int c)
{
    if (r >= p.rows || c >= p.columns) return 0;
    return sp_attention_scaled(scale, sp_f32(p.from[r * p.row + c * p.column])).v;
}

SP_CUDA_FUNCTION float4 sp_attention_vector(const sp_attention_part &p,
                                            const sp_attention_scale &scale, int r, int c)
{
    if (r < p.rows && c + 4 <= p.columns) {
        return sp_attention_scaled(scale, *(const float4 *)(p.from + r * p.row + c));
    }
    return {sp_attention_element(p, scale, r, c), sp_attention_element(p, scale, r, c + 1),
            sp_attention_element(p, scale, r, c + 2), sp_attention_element(p, scale, r, c + 3)};
}

/* By all threads of the block, neighbours of which load neighbouring elements. */
SP_CUDA_FUNCTION void sp_attention_load(const sp_attention_part &p, const sp_attention_scale &scale,
                                        int threads)
{
    const bool is_aligned = p.column == 1 && p.row % 4 == 0 && (uint64_t)p.from % 16 == 0;
    if (is_aligned) {
        const int vectors = p.all_columns / 4, count = p.all_rows * vectors;
#pragma unroll 4
        for (int i = threadIdx.x; i < count; i += threads) {
            const int r = i / vectors, c = i % vectors * 4;
            *(float4 *)(p.to + r * p.to_row + c) = sp_attention_vector(p, scale, r, c);
        }
        return;
    }
    const bool by_rows = p.column == 1;
    const int inner = by_rows ? p.all_columns : p.all_rows, count = p.all_rows * p.all_columns;
#pragma unroll 4
    for (int i = threadIdx.x; i < count; i += threads) {
        const int outer = i / inner, rest = i % inner;
        const int r = by_rows ? outer : rest, c = by_rows ? rest : outer;
        p.to[r * p.to_row + c] = sp_attention_element(p, scale, r, c);
    }
}

/* ---- a warp's part of a block ---- */

struct sp_attention_warp {
    const sp_attention_constants &k;
    const sp_attention_head &h;
    const float *queries; /* of the warp */
    float *scores;        /* of the warp */
    float *chunk;         /* of the block */
    int query_row, score_row, lane, threads;
    int64_t first; /* query of the warp */

    __device__ __forceinline__ bool is_there(int r) const
    {
        return first + r < k.rows;
    }

    __device__ __forceinline__ sp_f32 filled(sp_f32 score, int r, int key) const
    {
        const uint8_t given = h.condition[(first + r) * k.condition.row + key];
        return (given == 0) == k.fills_false ? sp_f32(k.fill) : score;
    }

    /* A score of its sum. */
    __device__ __forceinline__ sp_f32 finish(sp_f32 sum, int r, int key) const
    {
        sp_f32 score = sp_attention_scaled(k.of_scores, sum);
        if (!is_there(r)) return score;
        if (h.condition && !k.is_condition_last) score = filled(score, r, key);
        if (h.mask) score = score + h.mask[(first + r) * k.mask.row + key];
        if (h.condition && k.is_condition_last) score = filled(score, r, key);
        return score;
    }
};

/* Adds `width` steps, a multiple of 4, to the chains of the warp's queries and each lane's keys. */
SP_CUDA_FUNCTION void
sp_attention_add_products(const sp_attention_warp &w, int depth, int width,
                          sp_f32 (&chains)[SP_ATTENTION_ROWS][SP_ATTENTION_LANE_KEYS])
{
    const float *query = w.queries + depth, *keys = w.chunk + w.lane * SP_ATTENTION_CHUNK_ROW;
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

/* The scores of keys [first, first + SP_ATTENTION_CHUNK_KEYS) that exist; most[r] becomes the
 * maximum of it and those that this lane has for query r. */
SP_CUDA_FUNCTION void sp_attention_score_chunk(const sp_attention_warp &w, int first,
                                               sp_f32 (&most)[SP_ATTENTION_ROWS])
{
    const sp_attention_constants &k = w.k;
    const int depth = (int)k.depth, keys = (int)k.keys;
    sp_f32 chains[SP_ATTENTION_ROWS][SP_ATTENTION_LANE_KEYS];
#pragma unroll
    for (int r = 0; r < SP_ATTENTION_ROWS; r++) {
#pragma unroll
        for (int i = 0; i < SP_ATTENTION_LANE_KEYS; i++) chains[r][i] = 0.0f;
    }
#pragma unroll 1
    for (int d = 0; d < depth; d += SP_ATTENTION_CHUNK_DEPTH) {
        const int left = depth - d;
        const int width = left < SP_ATTENTION_CHUNK_DEPTH ? left : SP_ATTENTION_CHUNK_DEPTH;
        const int padded = (width + 3) / 4 * 4;
        __syncthreads();
        sp_attention_load({w.h.key + first * k.key.row + d * k.key.column, k.key.row, k.key.column,
                           keys - first, width, w.chunk, SP_ATTENTION_CHUNK_KEYS,
                           SP_ATTENTION_CHUNK_DEPTH, SP_ATTENTION_CHUNK_ROW},
                          k.of_key, w.threads);
        __syncthreads();
        if (w.is_there(0)) sp_attention_add_products(w, d, padded, chains);
    }
#pragma unroll
    for (int i = 0; i < SP_ATTENTION_LANE_KEYS; i++) {
        const int key = first + i * SP_CUDA_LANES + w.lane;
        if (key >= w.score_row) continue;
#pragma unroll
        for (int r = 0; r < SP_ATTENTION_ROWS; r++) {
            sp_f32 score = 0.0f;
            if (key < keys) {
                score = w.finish(sp_f32(0.0f) + chains[r][i], r, key);
                most[r] = sp_join_max(most[r], score);
            }
            w.scores[r * w.score_row + key] = score.v;
        }
    }
}

/* Scores become weights. Half a warp, the lanes of a reduction, has a row: rows r and r + 2 are 16
 * banks apart. */
SP_CUDA_FUNCTION void sp_attention_weigh(const sp_attention_warp &w,
                                         const sp_f32 (&most)[SP_ATTENTION_ROWS])
{
    const int keys = (int)w.k.keys, half = w.lane / 16, lane = w.lane % 16;
#pragma unroll 1
    for (int pair = 0; pair < SP_ATTENTION_ROWS / 2; pair++) {
        const int row = pair % 2 + pair / 2 * 4 + half * 2;
        float *scores = w.scores + row * w.score_row;
        sp_f32 largest = most[0], sum = 0.0f;
#pragma unroll
        for (int r = 1; r < SP_ATTENTION_ROWS; r++) largest = r == row ? most[r] : largest;
#pragma unroll 4
        for (int i = lane; i < keys; i += 16) {
            const sp_f32 e = sp_expf(sp_f32(scores[i]) - largest);
            scores[i] = e.v;
            sum = sum + e;
        }
        sum = sp_warp_tree(sum, 16, [](sp_f32 a, sp_f32 b) { return a + b; });
#pragma unroll 4
        for (int i = lane; i < keys; i += 16) scores[i] = (sp_f32(scores[i]) / sum).v;
    }
}

SP_CUDA_FUNCTION void sp_attention_weights(const sp_attention_warp &w)
{
    sp_f32 most[SP_ATTENTION_ROWS];
#pragma unroll
    for (int r = 0; r < SP_ATTENTION_ROWS; r++) most[r] = sp_limits<sp_f32>::least();
#pragma unroll 1
    for (int first = 0; first < w.k.keys; first += SP_ATTENTION_CHUNK_KEYS) {
        sp_attention_score_chunk(w, first, most);
    }
#pragma unroll
    for (int r = 0; r < SP_ATTENTION_ROWS; r++) {
        most[r] = sp_warp_tree(most[r], SP_CUDA_LANES,
                               [](sp_f32 a, sp_f32 b) { return sp_join_max(a, b); });
    }
    __syncwarp();
    sp_attention_weigh(w, most);
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

    /* `count` values of the chunk, a multiple of 4, from value `first` on. */
    __device__ __forceinline__ void add_values(const sp_attention_warp &w, int first, int count)
    {
        const float *weights = w.scores + w.lane % groups * w.score_row + first;
        const float *values = w.chunk + w.lane / groups * 4;
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

template <int groups> SP_CUDA_FUNCTION void sp_attention_results(const sp_attention_warp &w)
{
    const sp_attention_constants &k = w.k;
    const sp_attention_scale none = {SP_SCALE_NONE, 0};
    const int keys = (int)k.keys;
    typedef sp_attention_sums<groups> sums_type;
#pragma unroll 1
    for (int64_t column = 0; column < k.columns; column += sums_type::columns) {
        const int64_t columns = k.columns - column;
        sums_type sums;
        sums.start();
#pragma unroll 1
        for (int first = 0; first < keys; first += SP_ATTENTION_CHUNK_VALUES) {
            const int left = keys - first;
            const int count = left < SP_ATTENTION_CHUNK_VALUES ? left : SP_ATTENTION_CHUNK_VALUES;
            __syncthreads();
            sp_attention_load({w.h.value + first * k.value.row + column, k.value.row, 1, count,
                               (int)(columns < sums_type::columns ? columns : sums_type::columns),
                               w.chunk, SP_ATTENTION_CHUNK_VALUES, sums_type::columns,
                               sums_type::columns},
                              none, w.threads);
            __syncthreads();
            if (w.is_there(0)) sums.add_values(w, first, (count + 3) / 4 * 4);
            const int end = first + SP_ATTENTION_CHUNK_VALUES;
            if (end % SP_GEMM_SEGMENT == 0 || end >= keys) sums.end_segment();
        }
        sums.store(w, (int)column);
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
    float *chunk = queries + block_rows * query_row;
    const int64_t tiles = sp_cuda_tiles(k.rows, block_rows);
    const int64_t count = tiles * sp_cuda_attention_heads(&k);
#pragma unroll 1
    for (int64_t block = blockIdx.x; block < count; block += gridDim.x) {
        int64_t head = block;
        const int64_t first = sp_take_coordinate(&head, tiles) * block_rows;
        const sp_attention_head h = sp_make_attention_head(bindings, k, head);
        const int64_t left = k.rows - first;
        __syncthreads();
        sp_attention_load({h.query + first * k.query.row, k.query.row, 1,
                           left < block_rows ? (int)left : block_rows, (int)k.depth, queries,
                           block_rows, query_row, query_row},
                          k.of_query, threads);
        const int row = warp * SP_ATTENTION_ROWS;
        const sp_attention_warp w = {k,
                                     h,
                                     queries + row * query_row,
                                     scores + row * score_row,
                                     chunk,
                                     query_row,
                                     score_row,
                                     sp_warp_lane(),
                                     threads,
                                     first + row};
        sp_attention_weights(w);
        if (k.columns > SP_ATTENTION_CHUNK_COLUMNS / 2) sp_attention_results<2>(w);
        else sp_attention_results<4>(w);
    }
}
