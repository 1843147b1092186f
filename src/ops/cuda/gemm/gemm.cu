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
        return sp_gemm_finish(k, c != nullptr, sum, addend);
    }

    __device__ __forceinline__ void store(int r, int lane, float out) const
    {
        y[(row + r) * k.columns + column + lane] = out;
    }
};

/* The tile at (row, column) of a matrix of the batch. */
SP_CUDA_FUNCTION void sp_gemm_tile(const sp_gemm_matrix &m, const sp_gemm_constants &k,
                                   const sp_place &place, float *pool, int64_t row, int64_t column)
{
    const int64_t rows = k.rows - row < place.rows() ? k.rows - row : place.rows();
    const sp_loader loader = sp_make_loader(place);
    const sp_left_rows<int64_t> left = sp_make_left_rows(m.a + row * k.a_row, k.a_row, k.a_depth,
                                                         rows, k.depth, SP_GEMM_SEGMENT);
    const int64_t columns = sp_gemm_columns(k);
    const int64_t depth_stride = sp_gemm_right_depth(k), panel_stride = sp_gemm_right_panel(k);
    const bool is_wide = sp_are_panels_wide(m.b, depth_stride, panel_stride, columns);
    const sp_right_panels<int64_t> right = sp_make_right_panels<int64_t>(
        m.b, depth_stride, panel_stride, column, columns, is_wide, loader);
    const sp_gemm_output output = {k, m.c, m.y, row, column};
    sp_load_first(pool, place, left, right);
    sp_run_tile(pool, place, left, right, loader, k.columns - column, output);
}

/* Tiles: x over the rows, y over the columns, z over the batch. */
SP_CUDA_KERNEL(gemm_f32, sp_gemm_constants)
{
    SP_CUDA_SHARED(pool);
    const sp_place place = sp_make_place({bindings.tile[0], bindings.tile[1], bindings.tile[2]});
    const int64_t matrices = sp_cuda_gemm_matrices(&k);
#pragma unroll 1
    for (int64_t batch = blockIdx.z; batch < matrices; batch += gridDim.z) {
        const sp_gemm_matrix m = sp_make_gemm_matrix(bindings, k, batch);
#pragma unroll 1
        for (int64_t column = (int64_t)blockIdx.y * SP_CUDA_LANES; column < k.columns;
             column += (int64_t)gridDim.y * SP_CUDA_LANES) {
#pragma unroll 1
            for (int64_t row = (int64_t)blockIdx.x * place.rows(); row < k.rows;
                 row += (int64_t)gridDim.x * place.rows()) {
                sp_gemm_tile(m, k, place, (float *)pool, row, column);
            }
        }
    }
}

/* The variant for one matrix of rows by packed panels, small enough for offsets of 32 bits. A block
 * for each tile, which loads weights before the rows are there. */
SP_CUDA_KERNEL_THAT_AWAITS(gemm_rows_f32, sp_gemm_constants)
{
    SP_CUDA_SHARED(pool);
    const sp_place place = sp_make_place({bindings.tile[0], bindings.tile[1], bindings.tile[2]});
    const sp_loader loader = sp_make_loader(place);
    const float *a = (const float *)bindings.at[0], *b = (const float *)bindings.at[1];
    const float *c = k.has_c ? (const float *)bindings.at[2] : nullptr;
    float *y = (float *)bindings.at[k.has_c ? 3 : 2];
    const int row = (int)blockIdx.x * place.rows(), column = (int)blockIdx.y * SP_CUDA_LANES;
    const int depth = (int)k.depth, columns = (int)k.columns, rows = (int)k.rows - row;
    const int padded = (columns + SP_GEMM_PANEL - 1) & -SP_GEMM_PANEL;
    const sp_left_rows<int> left = {a + row * depth,
                                    depth,
                                    1,
                                    rows < place.rows() ? rows : place.rows(),
                                    depth,
                                    SP_GEMM_SEGMENT,
                                    sp_is_wide(a, depth)};
    const sp_right_panels<int> right = sp_make_right_panels<int>(
        b, SP_GEMM_PANEL, SP_GEMM_PANEL * depth, column, padded, sp_is_wide(b, 0), loader);
    const sp_gemm_output output = {k, c, y, row, column};
    if (!k.is_b_constant) sp_await_launch();
    if (sp_is_whole(place, left)) {
        right.load(sp_whole_steps(place, left), sp_first_stage((float *)pool, place));
        sp_await_launch();
        sp_run_whole<SP_GEMM_SEGMENT>((float *)pool, place, left, loader, columns - column, output);
        return;
    }
    sp_load_first((float *)pool, place, left, right);
    sp_await_launch();
    sp_run_tile((float *)pool, place, left, right, loader, columns - column, output);
}

/* Squares: x over the rows, y over the columns, z over the batch. */
template <class S>
SP_CUDA_FUNCTION void sp_gemm_squares(const sp_gpu_bindings &bindings, const sp_gemm_constants &k,
                                      float *pool)
{
    const int64_t matrices = sp_cuda_gemm_matrices(&k);
#pragma unroll 1
    for (int64_t batch = blockIdx.z; batch < matrices; batch += gridDim.z) {
        const sp_gemm_matrix m = sp_make_gemm_matrix(bindings, k, batch);
        const bool is_wide = sp_is_wide(m.y, k.columns);
#pragma unroll 1
        for (int64_t column = (int64_t)blockIdx.y * S::width; column < k.columns;
             column += (int64_t)gridDim.y * S::width) {
#pragma unroll 1
            for (int64_t row = (int64_t)blockIdx.x * S::height; row < k.rows;
                 row += (int64_t)gridDim.x * S::height) {
                const auto left = sp_make_square_left<S>(m.a + row * k.a_row, k.a_row, k.a_depth,
                                                         k.rows - row);
                const auto right = sp_make_square_panels<S>(k, m.b, column);
                const sp_gemm_square_output output = {k, m.c, m.y, row, column, is_wide};
                sp_run_square<S>(pool, left, right, k.rows - row, k.depth, SP_GEMM_SEGMENT,
                                    output);
            }
        }
    }
}

/* The variants with squares: entries of their own, since their registers would leave the others'
 * addresses none. */
SP_CUDA_KERNEL_OF(gemm_square_128_f32, sp_gemm_constants, sp_square_128::threads, 2)
{
    SP_CUDA_SHARED(pool);
    sp_gemm_squares<sp_square_128>(bindings, k, (float *)pool);
}

SP_CUDA_KERNEL_OF(gemm_square_64_f32, sp_gemm_constants, sp_square_64::threads, 4)
{
    SP_CUDA_SHARED(pool);
    sp_gemm_squares<sp_square_64>(bindings, k, (float *)pool);
}

/* Tiles by several blocks each, along x: of the rows, of the columns, of the batch. */
template <class S>
SP_CUDA_FUNCTION void sp_gemm_teams(const sp_gpu_bindings &bindings, const sp_gemm_constants &k,
                                    int cluster, float *pool)
{
    const sp_square_team team = sp_make_square_team((int)bindings.tile[1], cluster);
    const int64_t down = sp_cuda_tiles(k.rows, S::height);
    const int64_t across = sp_cuda_tiles(k.columns, S::width);
    if (!team.has_part(down * across * sp_cuda_gemm_matrices(&k))) return;
    int64_t batch = team.tile;
    const int64_t row = sp_take_coordinate(&batch, down) * S::height, rows = k.rows - row;
    const int64_t column = sp_take_coordinate(&batch, across) * S::width;
    const sp_gemm_matrix m = sp_make_gemm_matrix(bindings, k, batch);
    const auto left = sp_make_square_left<S>(m.a + row * k.a_row, k.a_row, k.a_depth, rows);
    const auto right = sp_make_square_panels<S>(k, m.b, column);
    const sp_gemm_square_output output = {k, m.c, m.y, row, column, sp_is_wide(m.y, k.columns)};
    team.run<S>(pool, left, right, rows, k.depth, SP_GEMM_SEGMENT, output);
}

SP_CUDA_KERNEL_OF_CLUSTERS(gemm_pair_f32, sp_gemm_constants, SP_CUDA_TEAM_THREADS, 4, SP_CUDA_PAIR)
{
    SP_CUDA_SHARED(pool);
    sp_gemm_teams<sp_team_wide>(bindings, k, SP_CUDA_PAIR, (float *)pool);
}

SP_CUDA_KERNEL_OF_CLUSTERS(gemm_team_f32, sp_gemm_constants, SP_CUDA_TEAM_THREADS, 4, SP_CUDA_TEAM)
{
    SP_CUDA_SHARED(pool);
    sp_gemm_teams<sp_team_wide>(bindings, k, SP_CUDA_TEAM, (float *)pool);
}

SP_CUDA_KERNEL(gemm_pack_f32, sp_pack_constants)
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
