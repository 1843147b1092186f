/* SPDX-License-Identifier: Apache-2.0 */
/* Products of two computed values on tensor cores, batched. Few models have one that is not a part of
 * attention, so the tile is simple: nothing is loaded beside the products. */

typedef sp_rounded_sums<SP_CUDA_ROUNDED_COLUMNS / 8> sp_rounded_tile_sums;

/* The sums of the tile at (row, column), of this warp. */
template <class E>
SP_CUDA_FUNCTION void sp_rounded_tile(const sp_gemm_matrix &m, const sp_gemm_constants &k,
                                      char *pool, int64_t row, int64_t column,
                                      sp_rounded_tile_sums &sum)
{
    constexpr int rows = SP_CUDA_ROUNDED_ROWS * SP_CUDA_ROUNDED_WARPS;
    constexpr int columns = SP_CUDA_ROUNDED_COLUMNS, pitch = SP_CUDA_NARROW_PITCH;
    constexpr int steps = SP_NARROW_BYTES / E::bytes, threads = SP_CUDA_ROUNDED_WARPS * 32;
    const int left_rows = (int)(k.rows - row < rows ? k.rows - row : rows);
    const int right_columns = (int)(k.columns - column < columns ? k.columns - column : columns);
    const char *left = pool + (int)threadIdx.x / 32 * SP_CUDA_ROUNDED_ROWS * pitch;
    char *right = pool + rows * pitch;
    sp_rounded_tile_sums chain;
    chain.clear();
    sum.clear();
#pragma unroll 1
    for (int64_t depth = 0; depth < k.depth; depth += steps) {
        const int64_t rest = k.depth - depth;
        const int there = (int)(rest < steps ? rest : steps);
        __syncthreads(); /* the chunk before has been computed */
        sp_load_rounded<E>({m.a + row * k.a_row + depth * k.a_depth, k.a_row, k.a_depth, left_rows,
                            there},
                           pool, pitch, rows, steps, threads, sp_rounded_as_is());
        sp_load_rounded<E>({m.b + column + depth * k.b_depth, k.b_depth, 1, there, right_columns},
                           right, pitch, steps, columns, threads, sp_rounded_as_is());
        __syncthreads();
#pragma unroll
        for (int s = 0; s < steps; s += E::step) {
            sp_left_fragment<E> a;
            sp_read_left(left + s * E::bytes, pitch, a);
            chain.multiply_rows(a, right + s * pitch, pitch, right_columns);
        }
        if ((depth + steps) % SP_GEMM_SEGMENT == 0 || rest <= steps) {
            sum.add(chain);
            chain.clear();
        }
    }
}

/* Blocks: x over the rows, y over the columns, z over the batch. */
template <class E>
SP_CUDA_FUNCTION void sp_rounded_product(const sp_gpu_bindings &bindings,
                                         const sp_gemm_constants &k, char *pool)
{
    constexpr int rows = SP_CUDA_ROUNDED_ROWS * SP_CUDA_ROUNDED_WARPS;
    constexpr int columns = SP_CUDA_ROUNDED_COLUMNS;
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    const int64_t matrices = sp_cuda_gemm_matrices(&k);
#pragma unroll 1
    for (int64_t batch = blockIdx.z; batch < matrices; batch += gridDim.z) {
        const sp_gemm_matrix m = sp_make_gemm_matrix(bindings, k, batch);
        const bool is_wide = ((uint64_t)m.y & 7) == 0 && (k.columns & 1) == 0;
#pragma unroll 1
        for (int64_t column = (int64_t)blockIdx.y * columns; column < k.columns;
             column += (int64_t)gridDim.y * columns) {
#pragma unroll 1
            for (int64_t row = (int64_t)blockIdx.x * rows; row < k.rows;
                 row += (int64_t)gridDim.x * rows) {
                sp_rounded_tile_sums sum;
                sp_rounded_tile<E>(m, k, pool, row, column, sum);
                const sp_narrow_output<E> output = {
                    k, m.c, m.y, row + warp * SP_CUDA_ROUNDED_ROWS + lane / 4,
                    column + lane % 4 * 2, is_wide, false};
                sp_narrow_finish_rows<false>(output, 0, sum.at);
                sp_narrow_activate<E, 2, columns / 8>(output);
            }
        }
    }
}

#define SP_ROUNDED_PRODUCT(type)                                                                   \
    SP_CUDA_KERNEL(gemm_rounded_##type, sp_gemm_constants)                                         \
    {                                                                                              \
        SP_CUDA_SHARED(pool);                                                                      \
        sp_rounded_product<sp_tensor_##type>(bindings, k, (char *)pool);                           \
    }

SP_ROUNDED_PRODUCT(f16)
SP_ROUNDED_PRODUCT(bf16)
