/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix product: y = activation(alpha * sum + beta * c), batched. */

/* The outputs of a tile. */
struct sp_gemm_output {
    const sp_gemm_constants &k;
    const float *c;      /* of the whole tensor, or nullptr */
    float *y;            /* of this matrix of the batch */
    int64_t row, column; /* the tile's first */

    __device__ __forceinline__ uint8_t activation() const
    {
        return k.activation;
    }

    __device__ __forceinline__ float addend(int r, int lane) const
    {
        return c ? c[(row + r) * k.c_row + (column + lane) * k.c_column] : 0;
    }

    __device__ __forceinline__ float finish(float sum, float addend) const
    {
        float out = __fmul_rn(sum, k.alpha);
        if (c) out = __fadd_rn(out, __fmul_rn(addend, k.beta));
        return sp_canonical(out);
    }

    __device__ __forceinline__ void store(int r, int lane, float out) const
    {
        y[(row + r) * k.columns + column + lane] = out;
    }
};

/* The tile at (row, column) of matrix `batch` of the batch. */
SP_CUDA_FUNCTION void sp_gemm_tile(const sp_gpu_bindings &bindings, const sp_gemm_constants &k,
                                   float *pool, int64_t batch, int64_t row, int64_t column)
{
    const float *a = (const float *)bindings.at[0], *b = (const float *)bindings.at[1];
    const float *c = k.has_c ? (const float *)bindings.at[2] : nullptr;
    float *y = (float *)bindings.at[k.has_c ? 3 : 2] + batch * k.rows * k.columns;
#pragma unroll 1
    for (uint32_t i = k.batch_rank; i-- > 0;) {
        const int64_t at = sp_take_coordinate(&batch, k.batch_dims[i]);
        a += at * k.a_batch[i];
        b += at * k.b_batch[i];
    }
    const int64_t tile_rows = sp_cuda_gemm_rows(&k) * SP_CUDA_WARPS;
    const int64_t rows = k.rows - row < tile_rows ? k.rows - row : tile_rows;
    const int64_t padded = (k.columns + SP_GEMM_PANEL - 1) / SP_GEMM_PANEL * SP_GEMM_PANEL;
    const sp_loader loader = sp_make_loader(rows);
    const sp_left_rows left =
        sp_make_left_rows(a + row * k.a_row, k.a_row, k.a_depth, rows, k.depth,
                          SP_GEMM_SEGMENT);
    sp_right_panels right = sp_make_right_panels(b, k.b_depth, k.b_panel, k.depth, column,
                                                 k.is_padded ? padded : k.columns, loader);
    const sp_gemm_output output = {k, c, y, row, column};
    sp_run_tile(pool, left, right, loader, k.columns - column, output);
}

/* Tiles: x over the rows, y over the columns, z over the batch. */
SP_CUDA_KERNEL(gemm_f32, sp_gemm_constants)
{
    __shared__ float4 pool[SP_PRODUCT_POOL];
    const int64_t matrices = sp_cuda_gemm_matrices(&k);
    const int64_t tile_rows = sp_cuda_gemm_rows(&k) * SP_CUDA_WARPS;
#pragma unroll 1
    for (int64_t batch = blockIdx.z; batch < matrices; batch += gridDim.z) {
#pragma unroll 1
        for (int64_t column = (int64_t)blockIdx.y * SP_CUDA_LANES; column < k.columns;
             column += (int64_t)gridDim.y * SP_CUDA_LANES) {
#pragma unroll 1
            for (int64_t row = blockIdx.x * tile_rows; row < k.rows;
                 row += gridDim.x * tile_rows) {
                sp_gemm_tile(bindings, k, (float *)pool, batch, row, column);
            }
        }
    }
}

SP_CUDA_KERNEL(gemm_pack_f32, sp_gemm_pack_constants)
{
    const float *b = (const float *)bindings.at[0];
    float *to = (float *)bindings.at[1];
    const int64_t count = sp_cuda_tiles(k.columns, SP_GEMM_PANEL) * SP_GEMM_PANEL * k.depth;
#pragma unroll 1
    for (int64_t i = sp_thread_index(); i < count; i += sp_thread_stride()) {
        int64_t panel = i / SP_GEMM_PANEL;
        const int64_t depth = sp_take_coordinate(&panel, k.depth);
        const int64_t column = panel * SP_GEMM_PANEL + i % SP_GEMM_PANEL;
        const int64_t from = depth * k.depth_stride + column * k.column_stride;
        to[i] = column < k.columns ? b[from] : 0.0f;
    }
}
