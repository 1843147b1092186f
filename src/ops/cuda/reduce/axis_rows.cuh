/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of sp_axis_constants, as reductions by lanes. */

/* The index of a row's first element. */
SP_CUDA_FUNCTION int64_t sp_axis_row_at(const sp_axis_constants &k, int64_t row)
{
    const int64_t column = sp_take_coordinate(&row, k.inner);
    return row * k.extent * k.inner + column;
}

/* Calls body(place, row, is_there) for the rows of this block: by all its threads, as often by
 * each, for the row of its slot if there is one. */
template <class Body>
SP_CUDA_FUNCTION void sp_each_lane_row(int64_t rows, int64_t extent, bool is_columns, Body body)
{
    const sp_lane_place place = sp_make_lane_place(rows, extent, is_columns);
    const int64_t blocks = sp_cuda_reduction_blocks(rows, extent, is_columns);
#pragma unroll 1
    for (int64_t round = 0; round * gridDim.x + blockIdx.x < blocks; round++) {
        const int64_t row = sp_lane_output(place, round);
        body(place, row, row < rows);
    }
}

template <class Body> SP_CUDA_FUNCTION void sp_each_axis_row(const sp_axis_constants &k, Body body)
{
    sp_each_lane_row(k.rows, k.extent, k.inner > 1, body);
}
