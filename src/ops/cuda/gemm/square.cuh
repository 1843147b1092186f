/* SPDX-License-Identifier: Apache-2.0 */
/* Products with many rows and columns: a block computes a square of outputs, each thread a square of
 * it in registers, so that a value from shared memory is used several times. Segments follow one
 * another; the sums of those that are done wait in shared memory, since registers for them would
 * halve the number of blocks that run at a time. */

/* Columns of b that are readable. */
SP_CUDA_FUNCTION int64_t sp_gemm_columns(const sp_gemm_constants &k)
{
    if (!k.is_padded) return k.columns;
    return (k.columns + SP_GEMM_PANEL - 1) / SP_GEMM_PANEL * SP_GEMM_PANEL;
}

/* Of a block of Side x Side outputs. Thread (x, y) of a grid of 16 x 16 has columns 4 * x + i and, for
 * a side of 128, 64 + 4 * x + i, and rows likewise. */
template <int Side> struct sp_square {
    static constexpr int grid = 16;
    static constexpr int each = Side / grid;
    static constexpr int depth = SP_CUDA_SQUARE_CHUNK / Side;
    static constexpr int left_row = Side + 4; /* so that the stores of a warp meet few banks twice */
    static constexpr int left = depth * left_row, right = depth * Side; /* floats of a stage */
    static constexpr int words = depth * Side / 4 / SP_CUDA_THREADS; /* float4 of a thread */
    static_assert(grid * grid == SP_CUDA_THREADS, "a thread has one square");
    static_assert(words * 4 * SP_CUDA_THREADS == depth * Side, "threads load equal parts");
    static_assert(SP_GEMM_SEGMENT % depth == 0, "a chunk is of one segment");
    static_assert((2 * (left + right) + Side * Side) * 4 == SP_CUDA_SQUARE_BYTES(Side),
                  "as the host counts them");
};

struct sp_square_operands {
    const float *a, *b; /* a from the tile's first row on, b from the first column of all */
    int64_t a_row, a_depth, b_depth, b_panel;
    int64_t rows, depth, column, columns; /* rows from the tile's first; columns that are readable */
    bool is_a_wide, is_b_wide;
};

SP_CUDA_FUNCTION sp_square_operands sp_make_square_operands(const sp_gemm_constants &k,
                                                            const float *a, const float *b,
                                                            int64_t row, int64_t column)
{
    const int64_t columns = sp_gemm_columns(k);
    const bool is_a_wide = k.a_depth == 1 && sp_is_wide(a, k.a_row) && (k.depth & 3) == 0;
    const bool is_b_wide = sp_is_wide(b, k.b_depth) && sp_is_wide(b, k.b_panel) && (columns & 3) == 0;
    return {a + row * k.a_row, b, k.a_row, k.a_depth, k.b_depth, k.b_panel,
            k.rows - row, k.depth, column, columns, is_a_wide, is_b_wide};
}

/* Four elements of a row of the left operand; zeros outside of it. */
SP_CUDA_FUNCTION float4 sp_square_left(const sp_square_operands &o, int64_t row, int64_t depth)
{
    float4 v = {0, 0, 0, 0};
    if (row >= o.rows) return v;
    const float *at = o.a + row * o.a_row + depth * o.a_depth;
    if (o.is_a_wide) {
        if (depth < o.depth) v = *(const float4 *)at;
        return v;
    }
    if (depth + 0 < o.depth) v.x = at[0];
    if (depth + 1 < o.depth) v.y = at[o.a_depth];
    if (depth + 2 < o.depth) v.z = at[2 * o.a_depth];
    if (depth + 3 < o.depth) v.w = at[3 * o.a_depth];
    return v;
}

/* Four elements of a row of the right operand to shared memory; zeros outside of it. */
SP_CUDA_FUNCTION void sp_square_right(const sp_square_operands &o, int64_t depth, int64_t column,
                                      float *to)
{
    const int64_t left_over = depth < o.depth ? o.columns - column : 0;
    const float *at = o.b + column / SP_GEMM_PANEL * o.b_panel + depth * o.b_depth +
                      column % SP_GEMM_PANEL;
    if (o.is_b_wide && left_over > 0) {
        sp_copy_4(to, at);
        return;
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if (i < left_over) sp_copy_1(to + i, at + i);
        else to[i] = 0;
    }
}

/* The chunk of the left operand from `first` on, in registers until its stage is free. */
template <int Side>
SP_CUDA_FUNCTION void sp_square_load(const sp_square_operands &o, int64_t first, float *right,
                                     float4 (&left)[sp_square<Side>::words])
{
    constexpr int depth = sp_square<Side>::depth;
#pragma unroll
    for (int i = 0; i < sp_square<Side>::words; i++) {
        const int word = (int)threadIdx.x + i * SP_CUDA_THREADS;
        left[i] = sp_square_left(o, word / (depth / 4), first + word % (depth / 4) * 4);
        const int k = word / (Side / 4), column = word % (Side / 4) * 4;
        sp_square_right(o, first + k, o.column + column, right + k * Side + column);
    }
}

/* To [depth][row]. */
template <int Side>
SP_CUDA_FUNCTION void sp_square_turn(const float4 (&left)[sp_square<Side>::words], float *to)
{
    constexpr int depth = sp_square<Side>::depth, row = sp_square<Side>::left_row;
#pragma unroll
    for (int i = 0; i < sp_square<Side>::words; i++) {
        const int word = (int)threadIdx.x + i * SP_CUDA_THREADS;
        float *at = to + word % (depth / 4) * 4 * row + word / (depth / 4);
        at[0 * row] = left[i].x;
        at[1 * row] = left[i].y;
        at[2 * row] = left[i].z;
        at[3 * row] = left[i].w;
    }
}

/* A warp has 8 x 4 of the threads, so that it reads few words of shared memory more than once. */
SP_CUDA_FUNCTION int sp_square_x()
{
    return (int)(threadIdx.x / SP_CUDA_LANES % 2 * 8 + threadIdx.x % 8);
}

SP_CUDA_FUNCTION int sp_square_y()
{
    return (int)(threadIdx.x / SP_CUDA_LANES / 2 * 4 + threadIdx.x % SP_CUDA_LANES / 8);
}

/* The row (or column) of element i of a thread. */
SP_CUDA_FUNCTION int sp_square_at(int thread, int i)
{
    return i / 4 * 64 + thread * 4 + i % 4;
}

template <int N> SP_CUDA_FUNCTION void sp_square_read(const float *from, int thread, float (&to)[N])
{
#pragma unroll
    for (int i = 0; i < N; i += 4) {
        const float4 v = *(const float4 *)(from + sp_square_at(thread, i));
        to[i] = v.x;
        to[i + 1] = v.y;
        to[i + 2] = v.z;
        to[i + 3] = v.w;
    }
}

template <int N>
SP_CUDA_FUNCTION void sp_square_step(const float *left, const float *right, float (&acc)[N][N])
{
    float a[N], b[N];
    sp_square_read<N>(left, sp_square_y(), a);
    sp_square_read<N>(right, sp_square_x(), b);
#pragma unroll
    for (int i = 0; i < N; i++) {
#pragma unroll
        for (int j = 0; j < N; j++) acc[i][j] = __fmaf_rn(a[i], b[j], acc[i][j]);
    }
}

/* Adds a segment's chains to this thread's sums, which start from +0. */
template <int N> SP_CUDA_FUNCTION void sp_square_add(float *sums, bool is_first, float (&acc)[N][N])
{
    float4 *sum = (float4 *)sums + threadIdx.x;
#pragma unroll
    for (int i = 0; i < N; i++) {
#pragma unroll
        for (int j = 0; j < N; j += 4) {
            float4 v = {0, 0, 0, 0};
            if (!is_first) v = *sum;
            v.x = __fadd_rn(v.x, acc[i][j]);
            v.y = __fadd_rn(v.y, acc[i][j + 1]);
            v.z = __fadd_rn(v.z, acc[i][j + 2]);
            v.w = __fadd_rn(v.w, acc[i][j + 3]);
            *sum = v;
            sum += SP_CUDA_THREADS;
            acc[i][j] = acc[i][j + 1] = acc[i][j + 2] = acc[i][j + 3] = 0;
        }
    }
}

template <int Side>
SP_CUDA_FUNCTION void sp_square_sums(float *pool, const sp_square_operands &o, float *sums)
{
    typedef sp_square<Side> square;
    constexpr int n = square::each, floats = square::left + square::right;
    float acc[n][n];
    float4 left[square::words];
#pragma unroll
    for (int i = 0; i < n; i++) {
#pragma unroll
        for (int j = 0; j < n; j++) acc[i][j] = 0;
    }
    sp_square_load<Side>(o, 0, pool + square::left, left);
    sp_square_turn<Side>(left, pool);
    int64_t first = 0;
#pragma unroll 1
    for (int stage = 0; first < o.depth; stage ^= 1) {
        float *at = pool + stage * floats, *other = pool + (stage ^ 1) * floats;
        sp_wait_copies();
        __syncthreads();
        sp_square_load<Side>(o, first + square::depth, other + square::left, left);
#pragma unroll
        for (int k = 0; k < square::depth; k++) {
            sp_square_step<n>(at + k * square::left_row, at + square::left + k * Side, acc);
        }
        first += square::depth;
        if (first % SP_GEMM_SEGMENT == 0 || first >= o.depth) {
            sp_square_add<n>(sums, first <= SP_GEMM_SEGMENT, acc);
        }
        sp_square_turn<Side>(left, other);
    }
    if (o.depth == 0) sp_square_add<n>(sums, true, acc);
    sp_wait_copies();
}

/* One output after the other, since the functions of an activation are long. */
template <int Side, class Output>
SP_CUDA_FUNCTION void sp_run_square(float *pool, const sp_square_operands &o, const Output &output)
{
    typedef sp_square<Side> square;
    constexpr int n = square::each;
    float *sums = pool + 2 * (square::left + square::right);
    sp_square_sums<Side>(pool, o, sums);
    const int64_t columns = output.k.columns - o.column;
#pragma unroll 1
    for (int i = 0; i < n * n; i++) {
        const int row = sp_square_at(sp_square_y(), i / n), column = sp_square_at(sp_square_x(), i % n);
        if (row >= o.rows || column >= columns) continue;
        const float sum = sums[(i / 4 * SP_CUDA_THREADS + (int)threadIdx.x) * 4 + i % 4];
        const float out = output.finish(sum, output.addend(row, column));
        output.store(row, column, sp_activate(output.activation(), out));
    }
    __syncthreads();
}
