/* SPDX-License-Identifier: Apache-2.0 */
/* Operand and outputs of a matrix product by squares (gemm/square.cuh). */

/* Columns of b that are readable. */
SP_CUDA_FUNCTION int64_t sp_gemm_columns(const sp_gemm_constants &k)
{
    if (k.b_format == SP_PACK_NONE) return k.columns;
    return (k.columns + SP_GEMM_PANEL - 1) / SP_GEMM_PANEL * SP_GEMM_PANEL;
}

/* Strides of b in elements: to the next step, and to the next panel. */
SP_CUDA_FUNCTION int64_t sp_gemm_right_depth(const sp_gemm_constants &k)
{
    return k.b_format == SP_PACK_NONE ? k.b_depth : SP_GEMM_PANEL;
}
SP_CUDA_FUNCTION int64_t sp_gemm_right_panel(const sp_gemm_constants &k)
{
    return k.b_format == SP_PACK_NONE ? SP_GEMM_PANEL : SP_GEMM_PANEL * k.depth;
}

/* A matrix in panels. A thread loads four columns of some steps of a chunk. */
template <class S> struct sp_square_panels {
    static constexpr int words_of_step = S::width / 4;
    static constexpr int depth_step = S::threads / words_of_step;
    const float *at; /* this thread's first element in the next chunk */
    int64_t depth_stride;
    int columns; /* that are readable, from this thread's first on */
    bool is_wide;

    /* The next `count` steps to [depth][column]; zeros where the matrix has none. */
    __device__ __forceinline__ void load(int count, float *to)
    {
        const int first = (int)threadIdx.x / words_of_step;
        const float *from = at;
        to += first * S::width + (int)threadIdx.x % words_of_step * 4;
#pragma unroll
        for (int i = 0; i < S::right_words; i++) {
            const int inside = first + i * depth_step < count ? columns : 0;
            if (is_wide) sp_copy_vector_if(inside > 0, to, from);
            else load_some(inside, to, from);
            from += depth_step * depth_stride;
            to += depth_step * S::width;
        }
        at += count * depth_stride;
    }

    __device__ __forceinline__ void load_some(int inside, float *to, const float *from) const
    {
#pragma unroll
        for (int i = 0; i < 4; i++) sp_copy_float_if(i < inside, to + i, from + i);
    }

    /* The next segment, behind others of so many steps. */
    __device__ __forceinline__ void next_segment(int64_t skipped, int)
    {
        at += skipped * depth_stride;
    }
};

template <class S>
SP_CUDA_FUNCTION sp_square_panels<S> sp_make_square_panels(const sp_gemm_constants &k,
                                                              const float *b, int64_t column)
{
    constexpr int words_of_step = sp_square_panels<S>::words_of_step;
    const int64_t columns = sp_gemm_columns(k);
    const int64_t depth_stride = sp_gemm_right_depth(k), panel_stride = sp_gemm_right_panel(k);
    const bool is_wide =
        sp_is_wide(b, depth_stride) && sp_is_wide(b, panel_stride) && (columns & 3) == 0;
    const int64_t n = column + (int)threadIdx.x % words_of_step * 4;
    const int64_t left_over = columns - n;
    return {b + n / SP_GEMM_PANEL * panel_stride + n % SP_GEMM_PANEL +
                (int)threadIdx.x / words_of_step * depth_stride,
            depth_stride, left_over < 4 ? (int)left_over : 4, is_wide};
}

/* Four columns of the outputs. */
struct sp_square_columns {
    int64_t column; /* of the matrix */
    int count;      /* of them that it has; may be negative */
};

struct sp_gemm_square_output {
    const sp_gemm_constants &k;
    const float *c;      /* of the whole tensor, or nullptr */
    float *y;            /* of this matrix of the batch */
    int64_t row, column; /* the tile's first */
    bool is_wide;        /* four columns of y can be stored at once */

    __device__ __forceinline__ uint8_t activation() const
    {
        return k.activation;
    }

    __device__ __forceinline__ sp_square_columns columns(int first) const
    {
        const int64_t left_over = k.columns - column - first;
        return {column + first, left_over < 4 ? (int)left_over : 4};
    }

    __device__ __forceinline__ float4 addend(const sp_square_columns &at, int r) const
    {
        float4 v = {0, 0, 0, 0};
        if (c == nullptr) return v;
        const float *from = c + (row + r) * k.c_row + at.column * k.c_column;
        if (at.count > 0) v.x = from[0];
        if (at.count > 1) v.y = from[k.c_column];
        if (at.count > 2) v.z = from[2 * k.c_column];
        if (at.count > 3) v.w = from[3 * k.c_column];
        return v;
    }

    __device__ __forceinline__ float finish(float sum, float addend) const
    {
        return sp_gemm_finish(k, c != nullptr, sum, addend);
    }

    __device__ __forceinline__ void store(const sp_square_columns &at, int r,
                                          const float4 &out) const
    {
        float *to = y + (row + r) * k.columns + at.column;
        if (is_wide && at.count == 4) {
            *(float4 *)to = out;
            return;
        }
        if (at.count > 0) to[0] = out.x;
        if (at.count > 1) to[1] = out.y;
        if (at.count > 2) to[2] = out.z;
        if (at.count > 3) to[3] = out.w;
    }
};
