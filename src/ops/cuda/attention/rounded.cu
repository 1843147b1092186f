/* SPDX-License-Identifier: Apache-2.0 */
/* Attention whose products are rounded to f16 or bf16 (docs/decisions/0089), of 16 queries a warp: the
 * bits of gemm_rounded and of the softmax. In shared memory are, rounded but for the scores,
 *
 *     the scores of the queries     [warps * 16][score row], f32
 *     the queries                   [warps * 16][pitch]
 *     a part of the keys            [keys][pitch], or of the values
 *
 * or, for few keys and columns, the queries, all keys and all values, while scores and weights stay in
 * registers, where the products leave them and take them. */

/* One block's tile. */
struct sp_rounded_attention {
    sp_attention_warp w; /* its queries and chunks are not used */
    char *queries, *part;
    int pitch; /* of queries and keys */
    int steps; /* of them, with zeros */
    int warp;

    __device__ __forceinline__ int lines() const
    {
        return (int)sp_cuda_rounded_lines(&w.k);
    }
};

/* Lines of an operand from element `first` of the head on, `line` apart, and their steps, `step` apart. */
struct sp_rounded_lines {
    const float *of;
    int64_t first, line, step;
    int lines, steps;
};

/* To shared memory; complete after sp_rounded_end_loads. */
template <class E, class Scale>
SP_CUDA_FUNCTION void sp_rounded_load(const sp_rounded_attention &a, const sp_rounded_lines &p, char *to,
                                      int pitch, int all_lines, int all_steps, const Scale &scale)
{
    if (a.w.k.is_half) {
        sp_copy_halves((const typename E::type *)p.of + p.first, p.line, p.lines, p.steps, to, pitch,
                       all_lines, all_steps, a.w.threads);
        return;
    }
    sp_load_rounded<E>({p.of + p.first, p.line, p.step, p.lines, p.steps}, to, pitch, all_lines,
                       all_steps, a.w.threads, scale);
}

SP_CUDA_FUNCTION void sp_rounded_end_loads()
{
    sp_await_copies();
    __syncthreads();
}

/* Multiplies or divides, each element as it is loaded. */
struct sp_rounded_scale {
    const sp_attention_scale &scale;

    __device__ __forceinline__ float operator()(float x) const
    {
        return scale.kind == SP_SCALE_NONE ? x : sp_attention_scaled(scale, sp_f32(x)).v;
    }
};

/* The block's queries. */
template <class E> SP_CUDA_FUNCTION void sp_rounded_queries(const sp_rounded_attention &a)
{
    const sp_attention_constants &k = a.w.k;
    const int64_t first = a.w.first - a.warp * SP_CUDA_ROUNDED_ROWS, left = k.rows - first;
    const int all = a.w.threads / SP_CUDA_LANES * SP_CUDA_ROUNDED_ROWS;
    sp_rounded_load<E>(a, {a.w.h.query, first * k.query.row, k.query.row, 1,
                           (int)(left < all ? left : all), (int)k.depth},
                       a.queries, a.pitch, all, a.steps, sp_rounded_scale{k.of_query});
}

/* Stores sums of keys `key` ..., and zeros behind the last one. */
SP_CUDA_FUNCTION void sp_rounded_store_scores(const sp_rounded_attention &a, int key, int columns,
                                              const sp_rounded_sums<8> &chain)
{
    const int keys = (int)a.w.k.keys;
    float *scores = a.w.scores + a.w.lane / 4 * a.w.score_row;
    key += a.w.lane % 4 * 2;
#pragma unroll
    for (int j = 0; j < 8; j++) {
        const int at = key + j * 8;
        if (j * 8 >= columns || at >= a.w.score_row) continue;
#pragma unroll
        for (int row = 0; row < 2; row++) {
            float2 sums = {__fadd_rn(0.0f, chain.at[j][row * 2]),
                           __fadd_rn(0.0f, chain.at[j][row * 2 + 1])};
            if (at >= keys) sums.x = 0;
            if (at + 1 >= keys) sums.y = 0;
            *(float2 *)(scores + row * 8 * a.w.score_row + at) = sums;
        }
    }
}

/* The sums of the queries with all keys; their depth is one segment. */
template <class E> SP_CUDA_FUNCTION void sp_rounded_scores(const sp_rounded_attention &a)
{
    const sp_attention_constants &k = a.w.k;
    const int keys = (int)k.keys, lines = a.lines();
    const char *left = a.queries + a.warp * SP_CUDA_ROUNDED_ROWS * a.pitch;
#pragma unroll 1
    for (int key = 0; key < keys; key += lines) {
        const int there = keys - key < lines ? keys - key : lines;
        if (key > 0) __syncthreads(); /* the part before has been computed */
        sp_rounded_load<E>(a, {a.w.h.key, key * k.key.row, k.key.row, k.key.column, there,
                               (int)k.depth},
                           a.part, a.pitch, lines, a.steps, sp_rounded_scale{k.of_key});
        sp_rounded_end_loads();
        if (!a.w.is_there(0)) continue;
        sp_rounded_sums<8> chain;
        chain.clear();
#pragma unroll 1
        for (int s = 0; s < a.steps; s += E::step) {
            sp_left_fragment<E> query;
            sp_read_left(left + s * E::bytes, a.pitch, query);
            chain.multiply(query, a.part + s * E::bytes, a.pitch, there);
        }
        sp_rounded_store_scores(a, key, lines, chain);
    }
}

/* The product of the weights with 64 columns of the values, from `column` on. */
template <class E>
SP_CUDA_FUNCTION void sp_rounded_columns(const sp_rounded_attention &a, int column,
                                         sp_rounded_sums<8> &sum)
{
    constexpr int steps = SP_NARROW_BYTES / E::bytes, pitch = SP_CUDA_NARROW_PITCH;
    const sp_attention_constants &k = a.w.k;
    const int keys = (int)k.keys, left = (int)k.columns - column;
    const int columns = left < SP_CUDA_ROUNDED_COLUMNS ? left : SP_CUDA_ROUNDED_COLUMNS;
    sp_rounded_sums<8> chain;
    chain.clear();
    sum.clear();
#pragma unroll 1
    for (int key = 0; key < keys; key += steps) {
        const int there = keys - key < steps ? keys - key : steps;
        __syncthreads(); /* the part before has been computed */
        sp_rounded_load<E>(a, {a.w.h.value, key * k.value.row + column, k.value.row, 1, there,
                               columns},
                           a.part, pitch, steps, (columns + 15) & -16, sp_rounded_as_is());
        sp_rounded_end_loads();
        if (!a.w.is_there(0)) continue;
#pragma unroll
        for (int s = 0; s < steps; s += E::step) {
            sp_left_fragment<E> weights;
            if (s >= there) break;
            sp_round_left(a.w.scores + key + s, a.w.score_row, 1, weights);
            chain.multiply_rows(weights, a.part + s * pitch, pitch, columns);
        }
        if ((key + steps) % SP_GEMM_SEGMENT == 0 || key + steps >= keys) {
            sum.add(chain);
            chain.clear();
        }
    }
}

SP_CUDA_FUNCTION void sp_rounded_store_columns(const sp_rounded_attention &a, int first,
                                               const sp_rounded_sums<8> &sum)
{
    const sp_attention_constants &k = a.w.k;
    const int64_t column = first + a.w.lane % 4 * 2;
#pragma unroll
    for (int j = 0; j < 8; j++) {
        const int64_t at = column + j * 8;
#pragma unroll
        for (int row = 0; row < 2; row++) {
            const int r = a.w.lane / 4 + row * 8;
            float *to = a.w.h.y + a.w.h.y_first + (a.w.first + r) * k.y.row + at;
            if (!a.w.is_there(r) || at >= k.columns) continue;
            const float2 out = {sp_store(sp_f32(sum.at[j][row * 2])),
                                sp_store(sp_f32(sum.at[j][row * 2 + 1]))};
            if (at + 1 < k.columns && ((uint64_t)to & 7) == 0) {
                *(float2 *)to = out;
                continue;
            }
            to[0] = out.x;
            if (at + 1 < k.columns) to[1] = out.y;
        }
    }
}

/* The same, rounded and packed for a product. */
template <class E>
SP_CUDA_FUNCTION void sp_rounded_pack_columns(const sp_rounded_attention &a, int first,
                                              const sp_rounded_sums<8> &sum)
{
    const sp_attention_constants &k = a.w.k;
#pragma unroll
    for (int row = 0; row < 2; row++) {
        const int r = a.w.lane / 4 + row * 8;
        int64_t line = a.w.h.y_first + (a.w.first + r) * k.y.row;
        const int64_t own = sp_take_coordinate(&line, k.y_width);
#pragma unroll
        for (int j = 0; j < 8; j += 4) {
            const int column = first + (j + a.w.lane % 4) * 8;
            float2 pairs[4];
            uint32_t words[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const float *pair = sum.at[j + i] + row * 2;
                pairs[i] = {sp_store(sp_f32(pair[0])), sp_store(sp_f32(pair[1]))};
            }
            sp_narrow_exchange<E>(pairs, words);
            if (!a.w.is_there(r) || column >= k.columns) continue;
            sp_narrow_store_part(a.w.h.y, k.y_lines, line, own + column, words);
        }
    }
}

template <class E>
SP_CUDA_FUNCTION void sp_rounded_end_columns(const sp_rounded_attention &a, int first,
                                             const sp_rounded_sums<8> &sum)
{
    if (a.w.k.y_format != SP_PACK_NONE) sp_rounded_pack_columns<E>(a, first, sum);
    else sp_rounded_store_columns(a, first, sum);
}

/* The tile of the block's warps that begins with query `first` of a head. */
template <class E>
SP_CUDA_FUNCTION sp_rounded_attention sp_make_rounded_attention(const sp_gpu_bindings &bindings,
                                                                const sp_attention_constants &k,
                                                                const sp_attention_head &h,
                                                                int64_t first, char *pool)
{
    const int warps = (int)bindings.tile[0], warp = (int)threadIdx.x / SP_CUDA_LANES;
    const int rows = warps * SP_CUDA_ROUNDED_ROWS, row = warp * SP_CUDA_ROUNDED_ROWS;
    /* Without scores where keys are in registers. */
    const int score_row = bindings.tile[1] > 0 ? 0 : (int)sp_cuda_rounded_score_row(&k);
    const int pitch = (int)sp_cuda_rounded_pitch(&k);
    float *scores = (float *)pool;
    char *queries = pool + rows * score_row * 4;
    return {{k, h, nullptr, scores + row * score_row, nullptr, 0, score_row, sp_warp_lane(),
             warps * SP_CUDA_LANES, first + row},
            queries, queries + rows * pitch, pitch, (pitch - 16) / E::bytes, warp};
}

/* ---- all keys and values at once ---- */

/* A thread's scores of one query: two neighbouring keys in each eight, which are four lanes of a
 * reduction (ops/cpu/reduce/lanes.h) in each sixteen. `is_full`: there are 8 * across keys. */
template <int across, bool is_full> struct sp_rounded_row {
    const sp_attention_row row;
    float (*const scores)[4]; /* of eight keys each; the query's are [first] and [first + 1] */
    const int first, keys, key;

    __device__ __forceinline__ bool is_there(int j, int i) const
    {
        return is_full || key + j * 8 + i < keys;
    }

    /* The scores of all keys that are there, and some of others. */
    template <class Change> __device__ __forceinline__ void each(const Change &change) const
    {
#pragma unroll
        for (int j = 0; j < across; j++) {
#pragma unroll
            for (int i = 0; i < 2; i++) {
                scores[j][first + i] = change(j, i, sp_f32(scores[j][first + i])).v;
            }
        }
    }

    /* Finishes the scores; the largest and the smallest of the thread's. */
    template <bool is_plain> __device__ __forceinline__ sp_score_range finish() const
    {
        sp_score_range range = {sp_limits<sp_f32>::least(), SP_INFINITY_F32};
        each([&](int j, int i, sp_f32 sum) {
            const int at = key + j * 8 + i;
            const bool has = !is_plain && is_there(j, i);
            const float addend = has && row.mask ? row.mask[at] : 0;
            const uint8_t given = has && row.condition ? row.condition[at] : 0;
            const sp_f32 score =
                row.template finished<is_plain>(sp_f32(0.0f) + sum, addend, given);
            range.most = is_there(j, i) ? sp_join_max(range.most, score) : range.most;
            range.least = is_there(j, i) ? sp_join_min(range.least, score) : range.least;
            return score;
        });
        return range;
    }

    /* The sum of the exponentials of all threads of the query. */
    __device__ __forceinline__ sp_f32 sum() const
    {
        sp_f32 lanes[2][2] = {{0.0f, 0.0f}, {0.0f, 0.0f}};
        each([&](int j, int i, sp_f32 e) {
            lanes[j % 2][i] = is_there(j, i) ? lanes[j % 2][i] + e : lanes[j % 2][i];
            return e;
        });
        const auto add = [](sp_f32 a, sp_f32 b) { return a + b; };
        const sp_f32 even = sp_warp_tree(lanes[0][0] + lanes[1][0], 4, add);
        return even + sp_warp_tree(lanes[0][1] + lanes[1][1], 4, add);
    }

    /* Scores become weights, 0 behind the last key. */
    __device__ __forceinline__ void weigh(sp_score_range range) const
    {
        const auto join = [](sp_f32 x, sp_f32 y) { return sp_join_max(x, y); };
        const sp_f32 most = sp_warp_tree(range.most, 4, join);
        const bool is_near = sp_is_near(range.least, most);
        if (is_near) each([&](int, int, sp_f32 x) { return sp_near_expf(x - most); });
        else each([&](int, int, sp_f32 x) { return sp_expf(x - most); });
        const sp_f32 all = sum();
        if (is_near) {
            const sp_f32 inverse = sp_f32(1.0f) / all;
            each([&](int, int, sp_f32 e) { return sp_near_quotient(e, all, inverse); });
        } else {
            each([&](int, int, sp_f32 e) { return e / all; });
        }
        each([&](int j, int i, sp_f32 weight) {
            return is_there(j, i) ? weight : sp_f32(0.0f);
        });
    }
};

/* Sums become weights, of the thread's two queries. */
template <int across, bool is_full>
SP_CUDA_FUNCTION void sp_rounded_weights(const sp_rounded_attention &a,
                                         sp_rounded_sums<across> &scores)
{
    const sp_attention_warp &w = a.w;
    const bool is_plain = !w.h.mask && !w.h.condition && w.k.of_scores.kind != SP_SCALE_DIVIDES;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int r = w.lane / 4 + half * 8;
        const int64_t query = w.is_there(r) ? w.first + r : w.k.rows - 1;
        const sp_rounded_row<across, is_full> row = {
            {w.k, w.h.mask ? w.h.mask + query * w.k.mask.row : nullptr,
             w.h.condition ? w.h.condition + query * w.k.condition.row : nullptr, nullptr, 0},
            scores.at, half * 2, (int)w.k.keys, w.lane % 4 * 2};
        row.weigh(is_plain ? row.template finish<true>() : row.template finish<false>());
    }
}

/* The tile of a head, of 8 * across keys at most. */
template <class E, int across>
SP_CUDA_FUNCTION void sp_rounded_at_once(const sp_rounded_attention &a)
{
    const sp_attention_constants &k = a.w.k;
    const int keys = (int)k.keys, columns = (int)k.columns, all_keys = (keys + 15) & -16;
    const int value_pitch = (int)sp_cuda_rounded_value_pitch(&k);
    char *values = a.part + all_keys * a.pitch;
    const char *queries = a.queries + a.warp * SP_CUDA_ROUNDED_ROWS * a.pitch;
    sp_rounded_queries<E>(a);
    sp_rounded_load<E>(a, {a.w.h.key, 0, k.key.row, k.key.column, keys, (int)k.depth}, a.part,
                       a.pitch, all_keys, a.steps, sp_rounded_scale{k.of_key});
    sp_rounded_load<E>(a, {a.w.h.value, 0, k.value.row, 1, keys, columns}, values, value_pitch,
                       all_keys, (columns + 15) & -16, sp_rounded_as_is());
    sp_rounded_end_loads();
    sp_rounded_sums<across> scores;
    scores.clear();
#pragma unroll 1
    for (int s = 0; s < a.steps; s += E::step) {
        sp_left_fragment<E> query;
        sp_read_left(queries + s * E::bytes, a.pitch, query);
        scores.multiply(query, a.part + s * E::bytes, a.pitch, keys);
    }
    if (keys == across * 8) sp_rounded_weights<across, true>(a, scores);
    else sp_rounded_weights<across, false>(a, scores);
    sp_rounded_sums<8> chain, sum;
    chain.clear();
    sum.clear();
#pragma unroll
    for (int j = 0; j < across; j += 2) {
        sp_left_fragment<E> weights;
        if (j * 8 >= keys) break;
        sp_round_sums(scores.at[j], scores.at[j + 1], weights);
        chain.multiply_rows(weights, values + j * 8 * value_pitch, value_pitch, columns);
    }
    sum.add(chain);
    sp_rounded_end_columns<E>(a, 0, sum);
}

/* ---- the kernel ---- */

/* Keys and values by parts, scores in shared memory. */
template <class E> SP_CUDA_FUNCTION void sp_rounded_by_parts(const sp_rounded_attention &a)
{
    sp_rounded_queries<E>(a);
    sp_rounded_scores<E>(a);
    sp_attention_weights<SP_CUDA_ROUNDED_ROWS>(a.w);
#pragma unroll 1
    for (int column = 0; column < (int)a.w.k.columns; column += SP_CUDA_ROUNDED_COLUMNS) {
        sp_rounded_sums<8> sum;
        sp_rounded_columns<E>(a, column, sum);
        sp_rounded_end_columns<E>(a, column, sum);
    }
}

/* Calls compute(tile) for the tiles of this block. */
template <class E, class Compute>
SP_CUDA_FUNCTION void sp_rounded_tiles(const sp_gpu_bindings &bindings,
                                       const sp_attention_constants &k, char *pool,
                                       Compute compute)
{
    sp_attention_each_tile(bindings, k, (int)bindings.tile[0] * SP_CUDA_ROUNDED_ROWS,
                           [&](const sp_attention_head &h, int64_t first) {
                               compute(sp_make_rounded_attention<E>(bindings, k, h, first, pool));
                           });
}

template <class E>
SP_CUDA_FUNCTION void sp_rounded_attention_body(const sp_gpu_bindings &bindings,
                                                const sp_attention_constants &k, char *pool)
{
    typedef const sp_rounded_attention &Tile;
    switch (bindings.tile[1]) { /* keys in registers */
    case 64:
        sp_rounded_tiles<E>(bindings, k, pool, [](Tile a) { sp_rounded_at_once<E, 8>(a); });
        break;
    case 128:
        sp_rounded_tiles<E>(bindings, k, pool, [](Tile a) { sp_rounded_at_once<E, 16>(a); });
        break;
    default:
        sp_rounded_tiles<E>(bindings, k, pool, [](Tile a) { sp_rounded_by_parts<E>(a); });
    }
}

#define SP_ROUNDED_ATTENTION(type)                                                                 \
    SP_CUDA_KERNEL_THAT_AWAITS(attention_rounded_##type, sp_attention_constants)                   \
    {                                                                                              \
        SP_CUDA_SHARED(pool);                                                                      \
        sp_rounded_attention_body<sp_tensor_##type>(bindings, k, (char *)pool);                    \
    }

SP_ROUNDED_ATTENTION(f16)
SP_ROUNDED_ATTENTION(bf16)
