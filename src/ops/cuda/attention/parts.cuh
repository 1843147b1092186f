/* SPDX-License-Identifier: Apache-2.0 */
/* The operands of attention: those of a head, parts of them in shared memory, and what a warp has.
 */

/* The operands of one head. */
struct sp_attention_head {
    /* The first three have elements of two bytes if the constants say so; mask: nullptr without one. */
    const float *query, *key, *value, *mask;
    const uint8_t *condition;                /* or nullptr */
    float *y;
    int64_t y_first; /* of the head, an element of y */
};

SP_CUDA_FUNCTION sp_attention_head sp_make_attention_head(const sp_gpu_bindings &bindings,
                                                          const sp_attention_constants &k,
                                                          int64_t head)
{
    sp_attention_head h;
    int next = 3;
    int64_t query = k.query.first, key = k.key.first, value = k.value.first;
    h.mask = k.has_mask ? (const float *)bindings.at[next++] + k.mask.first : nullptr;
    h.condition =
        k.has_condition ? (const uint8_t *)bindings.at[next++] + k.condition.first : nullptr;
    h.y = (float *)bindings.at[next];
    h.y_first = 0;
#pragma unroll 1
    for (uint32_t i = k.batch_rank; i-- > 0;) {
        const int64_t at = sp_take_coordinate(&head, k.batch_dims[i]);
        query += at * k.query.batch[i];
        key += at * k.key.batch[i];
        value += at * k.value.batch[i];
        h.y_first += at * k.y.batch[i];
        if (h.mask) h.mask += at * k.mask.batch[i];
        if (h.condition) h.condition += at * k.condition.batch[i];
    }
    const int bytes = k.is_half ? 2 : 4;
    h.query = (const float *)((const char *)bindings.at[0] + query * bytes);
    h.key = (const float *)((const char *)bindings.at[1] + key * bytes);
    h.value = (const float *)((const char *)bindings.at[2] + value * bytes);
    return h;
}

/* The tiles of block_rows queries that this block computes: calls body(head, first query). */
template <class Body>
SP_CUDA_FUNCTION void sp_attention_each_tile(const sp_gpu_bindings &bindings,
                                             const sp_attention_constants &k, int block_rows,
                                             Body body)
{
    const int64_t tiles = sp_cuda_tiles(k.rows, block_rows);
    const int64_t count = tiles * sp_cuda_attention_heads(&k);
    bool is_first = true;
#pragma unroll 1
    for (int64_t block = blockIdx.x; block < count; block += gridDim.x) {
        int64_t number = block;
        const int64_t first = sp_take_coordinate(&number, tiles) * block_rows;
        const sp_attention_head head = sp_make_attention_head(bindings, k, number);
        if (is_first) sp_await_launch(); /* the constants have been read beside the kernel before */
        else __syncthreads();            /* the tile before has been computed */
        is_first = false;
        body(head, first);
    }
    if (is_first) sp_await_launch();
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

SP_CUDA_FUNCTION void sp_attention_load_float(const sp_attention_part &p, int r, int c)
{
    float *to = p.to + r * p.to_row + c;
    if (r < p.rows && c < p.columns) sp_copy_float(to, p.from + r * p.row + c * p.column);
    else *to = 0;
}

SP_CUDA_FUNCTION void sp_attention_load_vector(const sp_attention_part &p, int r, int c)
{
    float *to = p.to + r * p.to_row + c;
    if (r < p.rows && c + 4 <= p.columns) {
        sp_copy_vector(to, p.from + r * p.row + c);
        return;
    }
    if (r < p.rows && c < p.columns) {
#pragma unroll 1
        for (int i = 0; i < 4; i++) sp_attention_load_float(p, r, c + i);
        return;
    }
    *(float4 *)to = {0, 0, 0, 0};
}

/* Rows of all_columns elements that can be copied by vectors. Neighbouring threads load
 * neighbouring vectors; a thread goes on by a fixed number of rows and vectors, without divisions.
 */
SP_CUDA_FUNCTION void sp_attention_load_vectors(const sp_attention_part &p, int threads)
{
    const unsigned vectors = (unsigned)p.all_columns / 4, thread = threadIdx.x;
    const int rows = (int)((unsigned)threads / vectors),
              columns = (int)((unsigned)threads % vectors);
    int r = (int)(thread / vectors), c = (int)(thread % vectors);
#pragma unroll 2
    for (; r < p.all_rows; r += rows) {
        sp_attention_load_vector(p, r, c * 4);
        c += columns;
        if (c >= (int)vectors) {
            c -= (int)vectors;
            r++;
        }
    }
}

/* By all threads of the block. Complete after sp_attention_end_load. */
SP_CUDA_FUNCTION void sp_attention_load(const sp_attention_part &p, int threads)
{
    if (p.column == 1 && p.row % 4 == 0 && (uint64_t)p.from % 16 == 0) {
        sp_attention_load_vectors(p, threads);
        return;
    }
    const bool by_rows = p.column == 1;
    const int inner = by_rows ? p.all_columns : p.all_rows, count = p.all_rows * p.all_columns;
#pragma unroll 2
    for (int i = threadIdx.x; i < count; i += threads) {
        const int outer = i / inner, rest = i % inner;
        sp_attention_load_float(p, by_rows ? outer : rest, by_rows ? rest : outer);
    }
}

SP_CUDA_FUNCTION void sp_attention_end_load()
{
    sp_await_copies();
    __syncthreads();
}

SP_CUDA_FUNCTION sp_f32 sp_attention_scaled(const sp_attention_scale &scale, sp_f32 x)
{
    return scale.kind == SP_SCALE_DIVIDES ? x / scale.number : x * scale.number;
}

/* Scales the elements of a part that is loaded. */
SP_CUDA_FUNCTION void sp_attention_scale_part(const sp_attention_part &p,
                                              const sp_attention_scale &scale, int threads)
{
    if (scale.kind == SP_SCALE_NONE) return;
    const int count = p.rows * p.columns;
#pragma unroll 1
    for (int i = threadIdx.x; i < count; i += threads) {
        const int r = i / p.columns, c = i % p.columns;
        float *at = p.to + r * p.to_row + c;
        *at = sp_attention_scaled(scale, sp_f32(*at)).v;
    }
    __syncthreads();
}

/* ---- a warp's part of a block ---- */

struct sp_attention_warp {
    const sp_attention_constants &k;
    const sp_attention_head &h;
    const float *queries; /* of the warp */
    float *scores;        /* of the warp */
    float *chunks;        /* of the block */
    int query_row, score_row, lane, threads;
    int64_t first; /* query of the warp */

    __device__ __forceinline__ bool is_there(int r) const
    {
        return first + r < k.rows;
    }

    /* One chunk is computed while the next one is loaded. */
    __device__ __forceinline__ float *chunk(int number) const
    {
        return chunks + number % 2 * SP_ATTENTION_CHUNK;
    }
};
