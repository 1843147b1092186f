/* SPDX-License-Identifier: Apache-2.0 */
/* Attention whose products are rounded to f16 or bf16 (docs/decisions/0089), of 16 queries a warp: the
 * bits of gemm_rounded and of the softmax. In shared memory are
 *
 *     the scores of the queries     [warps * 16][score row], f32
 *     the queries                   [warps * 16][query pitch], rounded
 *     a part of the keys, a line each, or of the values, a line for each column
 */

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
    sp_load_rounded<E>({a.w.h.query + first * k.query.row, k.query.row, 1,
                        (int)(left < all ? left : all), (int)k.depth},
                       a.queries, a.pitch, all, a.steps, a.w.threads,
                       sp_rounded_scale{k.of_query});
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
        sp_load_rounded<E>({a.w.h.key + key * k.key.row, k.key.row, k.key.column, there,
                            (int)k.depth},
                           a.part, a.pitch, lines, a.steps, a.w.threads,
                           sp_rounded_scale{k.of_key});
        __syncthreads();
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
        sp_load_rounded<E>({a.w.h.value + key * k.value.row + column, 1, k.value.row, columns,
                            there},
                           a.part, pitch, (columns + 15) & -16, steps, a.w.threads,
                           sp_rounded_as_is());
        __syncthreads();
        if (!a.w.is_there(0)) continue;
#pragma unroll
        for (int s = 0; s < steps; s += E::step) {
            sp_left_fragment<E> weights;
            if (s >= there) break;
            sp_round_left(a.w.scores + key + s, a.w.score_row, 1, weights);
            chain.multiply(weights, a.part + s * E::bytes, pitch, columns);
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
            float *to = a.w.h.y + (a.w.first + r) * k.y.row + at;
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

/* The tile of the block's warps that begins with query `first` of a head. */
template <class E>
SP_CUDA_FUNCTION sp_rounded_attention sp_make_rounded_attention(const sp_gpu_bindings &bindings,
                                                                const sp_attention_constants &k,
                                                                const sp_attention_head &h,
                                                                int64_t first, char *pool)
{
    const int warps = (int)bindings.tile[0], warp = (int)threadIdx.x / SP_CUDA_LANES;
    const int rows = warps * SP_CUDA_ROUNDED_ROWS, row = warp * SP_CUDA_ROUNDED_ROWS;
    const int score_row = (int)sp_cuda_rounded_score_row(&k);
    const int pitch = (int)sp_cuda_rounded_pitch(&k);
    float *scores = (float *)pool;
    char *queries = pool + rows * score_row * 4;
    return {{k, h, nullptr, scores + row * score_row, nullptr, 0, score_row, sp_warp_lane(),
             warps * SP_CUDA_LANES, first + row},
            queries, queries + rows * pitch, pitch, (pitch - 16) / E::bytes, warp};
}

template <class E>
SP_CUDA_FUNCTION void sp_rounded_attention_body(const sp_gpu_bindings &bindings,
                                                const sp_attention_constants &k, char *pool)
{
    const int block_rows = (int)bindings.tile[0] * SP_CUDA_ROUNDED_ROWS;
    const int64_t tiles = sp_cuda_tiles(k.rows, block_rows);
    const int64_t count = tiles * sp_cuda_attention_heads(&k);
    bool is_first = true;
#pragma unroll 1
    for (int64_t block = blockIdx.x; block < count; block += gridDim.x) {
        int64_t number = block;
        const int64_t first = sp_take_coordinate(&number, tiles) * block_rows;
        const sp_attention_head head = sp_make_attention_head(bindings, k, number);
        const sp_rounded_attention a =
            sp_make_rounded_attention<E>(bindings, k, head, first, pool);
        if (is_first) sp_await_launch(); /* the constants have been read beside the kernel before */
        else __syncthreads();            /* the tile before has been computed */
        is_first = false;
        sp_rounded_queries<E>(a);
        sp_rounded_scores<E>(a);
        sp_attention_weights<SP_CUDA_ROUNDED_ROWS>(a.w);
#pragma unroll 1
        for (int column = 0; column < (int)k.columns; column += SP_CUDA_ROUNDED_COLUMNS) {
            sp_rounded_sums<8> sum;
            sp_rounded_columns<E>(a, column, sum);
            sp_rounded_store_columns(a, column, sum);
        }
    }
    if (is_first) sp_await_launch();
}

#define SP_ROUNDED_ATTENTION(type)                                                                 \
    SP_CUDA_KERNEL_THAT_AWAITS(attention_rounded_##type, sp_attention_constants)                   \
    {                                                                                              \
        SP_CUDA_SHARED(pool);                                                                      \
        sp_rounded_attention_body<sp_tensor_##type>(bindings, k, (char *)pool);                    \
    }

SP_ROUNDED_ATTENTION(f16)
SP_ROUNDED_ATTENTION(bf16)
