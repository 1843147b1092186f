/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix product: y = activation(alpha * chain + beta * c), batched. */

/* The outputs of a tile. */
struct sp_gemm_output {
    const sp_gemm_constants &k;
    const float *c;      /* of the whole, or nullptr */
    float *y;            /* of this matrix of the batch */
    int64_t row, column; /* the tile's first */

    __device__ __forceinline__ uint8_t activation() const
    {
        return k.activation;
    }

    __device__ __forceinline__ float finish(int r, int lane, float chain) const
    {
        float out = __fmul_rn(chain, k.alpha);
        if (c) {
            const float addend = c[(row + r) * k.c_row + (column + lane) * k.c_column];
            out = __fadd_rn(out, __fmul_rn(addend, k.beta));
        }
        return sp_canonical(out);
    }

    __device__ __forceinline__ void store(int r, int lane, float out) const
    {
        y[(row + r) * k.columns + column + lane] = out;
    }
};

SP_CUDA_KERNEL(gemm_f32, sp_gemm_constants)
{
    __shared__ float4 pool[SP_PRODUCT_POOL];
    const float *c = k.has_c ? (const float *)bindings.at[2] : nullptr;
    const int64_t tile_rows = sp_cuda_gemm_rows(&k) * SP_CUDA_WARPS;
    const int64_t down = sp_cuda_tiles(k.rows, tile_rows);
    const int64_t across = sp_cuda_tiles(k.columns, SP_CUDA_LANES);
    const int64_t tiles = sp_cuda_gemm_tiles(&k);
#pragma unroll 1
    for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        int64_t batch = tile;
        const int64_t row = sp_take_coordinate(&batch, down) * tile_rows;
        const int64_t column = sp_take_coordinate(&batch, across) * SP_CUDA_LANES;
        const float *a = (const float *)bindings.at[0], *b = (const float *)bindings.at[1];
        float *y = (float *)bindings.at[k.has_c ? 3 : 2] + batch * k.rows * k.columns;
#pragma unroll 1
        for (uint32_t i = k.batch_rank; i-- > 0;) {
            const int64_t at = sp_take_coordinate(&batch, k.batch_dims[i]);
            a += at * k.a_batch[i];
            b += at * k.b_batch[i];
        }
        const int64_t rows = k.rows - row < tile_rows ? k.rows - row : tile_rows;
        const int64_t padded = (k.columns + SP_GEMM_PANEL - 1) / SP_GEMM_PANEL * SP_GEMM_PANEL;
        const sp_left_rows left =
            sp_make_left_rows(a + row * k.a_row, k.a_row, k.a_depth, rows, k.depth);
        sp_right_panels right = sp_make_right_panels(b, k.b_depth, k.b_panel, k.depth, column,
                                                     k.is_padded ? padded : k.columns);
        const sp_gemm_output output = {k, c, y, row, column};
        sp_run_tile((float *)pool, left, right, k.columns - column, output);
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
