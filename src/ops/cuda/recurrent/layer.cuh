/* SPDX-License-Identifier: Apache-2.0 */
/* One direction of a recurrent layer for a few rows of the batch (ops/cpu/recurrent/recurrent.c),
 * by one block of threads, or by a team of them (team.cuh). A thread has columns of a step's
 * product, and then cells; between the two are barriers. The state of a row is as on the CPU: h,
 * two vectors for the cell, then the gates. One block has it in the scratch of the dispatch. */

struct sp_layer {
    const sp_recurrent_constants &k;
    const float *x, *bias, *panels, *h, *c, *peepholes;
    const int32_t *lengths;
    float *scratch; /* of the first row */
    float *y, *last_h, *last_c;
    int bindings;             /* of the dispatch */
    int threads;              /* of the block */
    int unit, units;          /* of the block's cells: the first, and their count */
    int64_t direction, width; /* width: gates * hidden */
    int64_t panel, skip;      /* the first panel, and its columns of another direction */
    int64_t first;            /* row of the batch */
    int rows;                 /* at most SP_CUDA_CELL_ROWS */
    bool is_backwards;

    __device__ __forceinline__ float *row_h(int row) const
    {
        return scratch + row * k.scratch_row;
    }
    /* LSTM: the cell. GRU: the left-hand side of h's last product. */
    __device__ __forceinline__ float *row_c(int row) const
    {
        return row_h(row) + k.hidden;
    }
    __device__ __forceinline__ float *row_z(int row) const
    {
        return row_h(row) + 2 * k.hidden;
    }
    __device__ __forceinline__ float *row_gates(int row) const
    {
        return row_h(row) + 3 * k.hidden + skip;
    }

    /* The weights of a column from the first panel on, each SP_GEMM_PANEL from the one before. */
    __device__ __forceinline__ const float *column_at(int64_t column) const
    {
        return panels + (panel + column / SP_GEMM_PANEL) * SP_GEMM_PANEL * k.hidden +
               column % SP_GEMM_PANEL;
    }

    __device__ __forceinline__ int64_t state_at(int row) const
    {
        return direction * k.state_direction + (first + row) * k.state_row;
    }
    __device__ __forceinline__ bool has_length(int row) const
    {
        return !lengths || (lengths[first + row] >= 0 && lengths[first + row] <= k.steps);
    }
    /* Lengths are data: one that is out of range is 0. */
    __device__ __forceinline__ int64_t length(int row) const
    {
        return lengths && has_length(row) ? lengths[first + row] : lengths ? 0 : k.steps;
    }
    /* The row's products at step `step` in its direction. */
    __device__ __forceinline__ const float *input_at(int row, int64_t step) const
    {
        const int64_t at = is_backwards ? length(row) - 1 - step : step;
        return x + at * k.x_step + (first + row) * k.x_row;
    }
};

SP_CUDA_FUNCTION void *sp_next_binding(const sp_gpu_bindings &bindings, int *next, bool is_there)
{
    return is_there ? bindings.at[(*next)++] : nullptr;
}

/* Of rows from `first` on, in direction d, and all units. */
SP_CUDA_FUNCTION sp_layer sp_open_layer(const sp_gpu_bindings &bindings,
                                        const sp_recurrent_constants &k, int64_t d, int64_t first,
                                        int threads)
{
    int next = 0;
    const int64_t width = k.gates * k.hidden, left = k.rows - first;
    const float *x = (const float *)sp_next_binding(bindings, &next, true);
    const float *bias = (const float *)sp_next_binding(bindings, &next, k.has_bias);
    const float *panels = (const float *)sp_next_binding(bindings, &next, true);
    const int32_t *lengths = (const int32_t *)sp_next_binding(bindings, &next, k.has_lengths);
    const float *h = (const float *)sp_next_binding(bindings, &next, k.has_h);
    const float *c = (const float *)sp_next_binding(bindings, &next, k.has_c);
    const float *peepholes = (const float *)sp_next_binding(bindings, &next, k.has_peepholes);
    float *scratch = (float *)sp_next_binding(bindings, &next, true);
    float *y = (float *)sp_next_binding(bindings, &next, true);
    float *last_h = (float *)sp_next_binding(bindings, &next, k.has_last_h);
    float *last_c = (float *)sp_next_binding(bindings, &next, k.has_last_c);
    return {k,
            x + d * k.x_direction,
            bias ? bias + d * 2 * width : nullptr,
            panels,
            h,
            c,
            peepholes ? peepholes + d * 3 * k.hidden : nullptr,
            lengths,
            scratch + (d * k.rows + first) * k.scratch_row,
            y + d * k.y_direction,
            last_h,
            last_c,
            next,
            threads,
            0,
            (int)k.hidden,
            d,
            width,
            d * width / SP_GEMM_PANEL,
            d * width % SP_GEMM_PANEL,
            first,
            left < SP_CUDA_CELL_ROWS ? (int)left : SP_CUDA_CELL_ROWS,
            d == 1 || k.is_backwards};
}

/* Calls body(row, unit) for the cells of this thread. */
template <class Body> SP_CUDA_FUNCTION void sp_each_cell(const sp_layer &l, Body body)
{
#pragma unroll 1
    for (int64_t i = threadIdx.x; i < (int64_t)l.rows * l.units; i += l.threads) {
        const int64_t row = sp_quotient(i, l.units);
        body((int)row, l.unit + (i - row * l.units));
    }
}

/* Calls body(row, gate, unit) for gates of all cells: neighbouring threads have one gate. */
template <class Body> SP_CUDA_FUNCTION void sp_each_gate(const sp_layer &l, Body body)
{
    const int64_t cells = (int64_t)l.rows * l.units;
#pragma unroll 1
    for (int64_t i = threadIdx.x; i < l.k.gates * cells; i += l.threads) {
        const int64_t gate = sp_quotient(i, cells), cell = i - gate * cells;
        const int64_t row = sp_quotient(cell, l.units);
        body((int)row, (int)gate, l.unit + (cell - row * l.units));
    }
}

/* ---- the product of a step ---- */

/* The left-hand sides of a segment, [step][row]. */
struct __align__(16) sp_cell_tile {
    float at[SP_GEMM_SEGMENT * SP_CUDA_CELL_ROWS];
};

/* Loads steps [begin, begin + count) of h, or of row_c; rows that do not exist are zeros. */
SP_CUDA_FUNCTION void sp_load_cell_tile(const sp_layer &l, bool is_of_h, int64_t begin, int count,
                                        sp_cell_tile &tile)
{
#pragma unroll 1
    for (int i = threadIdx.x; i < SP_CUDA_CELL_ROWS * SP_GEMM_SEGMENT; i += l.threads) {
        const int row = i / SP_GEMM_SEGMENT, step = i % SP_GEMM_SEGMENT;
        if (step >= count) continue;
        const float *from = row < l.rows ? (is_of_h ? l.row_h(row) : l.row_c(row)) : nullptr;
        tile.at[step * SP_CUDA_CELL_ROWS + row] = from ? from[begin + step] : 0.0f;
    }
}

/* Products of gates [first, last): whole panels, so other gates in them change, too. All threads
 * call it; the left-hand sides and the gates must be complete, and are again behind it. */
SP_CUDA_FUNCTION void sp_multiply_gates(const sp_layer &l, bool is_of_h, int64_t first,
                                        int64_t last, sp_cell_tile &tile)
{
    const int64_t hidden = l.k.hidden;
    const int64_t begin = (l.skip + first) / SP_GEMM_PANEL * SP_GEMM_PANEL;
    const int64_t end = (l.skip + last + SP_GEMM_PANEL - 1) / SP_GEMM_PANEL * SP_GEMM_PANEL;
#pragma unroll 1
    for (int64_t block = begin; block < end; block += l.threads) {
        const int64_t column = block + threadIdx.x;
        const float *weights = l.column_at(column);
        float sum[SP_CUDA_CELL_ROWS] = {};
#pragma unroll 1
        for (int64_t from = 0; from < hidden; from += SP_GEMM_SEGMENT) {
            const int64_t left = hidden - from;
            const int count = left < SP_GEMM_SEGMENT ? (int)left : SP_GEMM_SEGMENT;
            sp_load_cell_tile(l, is_of_h, from, count, tile);
            __syncthreads();
            if (column < end) {
                float chain[SP_CUDA_CELL_ROWS] = {};
#pragma unroll 8
                for (int i = 0; i < count; i++) {
                    const float weight = __ldg(weights + (from + i) * SP_GEMM_PANEL);
#pragma unroll
                    for (int row = 0; row < SP_CUDA_CELL_ROWS; row++) {
                        chain[row] =
                            __fmaf_rn(tile.at[i * SP_CUDA_CELL_ROWS + row], weight, chain[row]);
                    }
                }
#pragma unroll
                for (int row = 0; row < SP_CUDA_CELL_ROWS; row++) {
                    sum[row] = __fadd_rn(sum[row], chain[row]);
                }
            }
            __syncthreads();
        }
#pragma unroll
        for (int row = 0; row < SP_CUDA_CELL_ROWS; row++) {
            if (row < l.rows && column < end) l.row_gates(row)[column - l.skip] = sum[row];
        }
    }
    __syncthreads();
}
