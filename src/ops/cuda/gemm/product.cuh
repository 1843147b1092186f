/* SPDX-License-Identifier: Apache-2.0 */
/* The sums of matrix products and convolutions: for each segment of the depth a chain
 * acc = fma(left, right, acc) from +0, and the sum of the chains from +0, both in order.
 *
 * A block has a tile of outputs: lane l of warp w has column l of rows w, w + 8, ... (R of them).
 * Both operands pass through shared memory in chunks of the depth; the next chunks are loaded while
 * one is computed, so products with few rows run at memory bandwidth. Elements outside of the
 * matrices are not loaded; their products are computed and not used. */

#define SP_PRODUCT_STAGES 4
/* The limit of static shared memory on all GPUs: 48 KiB, aligned to 16 bytes. */
#define SP_PRODUCT_POOL 3072

template <int R> struct sp_chunk {
    static constexpr int rows = R * SP_CUDA_WARPS;
    static constexpr int depth = R <= 2 ? 64 : 32;
    static constexpr int right_floats = depth * SP_CUDA_LANES; /* [depth][lane] */
    static constexpr int floats = right_floats + rows * depth; /* then the left: [row][depth] */
    static_assert(floats * SP_PRODUCT_STAGES <= SP_PRODUCT_POOL * 4, "a pool holds all stages");
};

SP_CUDA_FUNCTION int sp_lane()
{
    return (int)(threadIdx.x % SP_CUDA_LANES);
}

SP_CUDA_FUNCTION int sp_warp()
{
    return (int)(threadIdx.x / SP_CUDA_LANES);
}

/* ---- loading threads ---- */

/* All threads, or those of the upper warps if the tile has no rows for them: the chains of a single
 * row then do not wait for address computations. */
struct sp_loader {
    int index; /* of this thread; negative: it does not load */
    int count;
};

SP_CUDA_FUNCTION sp_loader sp_make_loader(int64_t rows)
{
    const int first = rows <= SP_CUDA_WARPS / 2 ? SP_CUDA_THREADS / 2 : 0;
    return {(int)threadIdx.x - first, SP_CUDA_THREADS - first};
}

/* ---- copies to shared memory, complete after sp_wait_copies ---- */

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800

SP_CUDA_FUNCTION void sp_copy_1(float *to, const float *from)
{
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(at), "l"(from) : "memory");
}

SP_CUDA_FUNCTION void sp_copy_4(float *to, const float *from)
{
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
}

/* The copies since the last call become one group. */
SP_CUDA_FUNCTION void sp_group_copies()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Waits for this thread's groups except the last SP_PRODUCT_STAGES - 2. */
SP_CUDA_FUNCTION void sp_wait_copies()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(SP_PRODUCT_STAGES - 2) : "memory");
}

#else /* copies are synchronous */

SP_CUDA_FUNCTION void sp_copy_1(float *to, const float *from)
{
    *to = *from;
}

SP_CUDA_FUNCTION void sp_copy_4(float *to, const float *from)
{
    *(float4 *)to = *(const float4 *)from;
}

SP_CUDA_FUNCTION void sp_group_copies() {}
SP_CUDA_FUNCTION void sp_wait_copies() {}

#endif

SP_CUDA_FUNCTION bool sp_is_wide(const float *address, int64_t stride)
{
    return ((uint64_t)address & 15) == 0 && (stride & 3) == 0;
}

/* ---- the left operand: rows with two strides ---- */

struct sp_left_rows {
    const float *at; /* the tile's first row */
    int64_t row_stride, depth_stride;
    int64_t rows, depth; /* rows that the tile has */
    int64_t segment;     /* steps of a chain */
    bool is_wide;        /* four elements along the depth can be loaded at once */
};

SP_CUDA_FUNCTION sp_left_rows sp_make_left_rows(const float *at, int64_t row_stride,
                                                int64_t depth_stride, int64_t rows, int64_t depth,
                                                int64_t segment)
{
    const bool is_wide =
        depth_stride == 1 && sp_is_wide(at, depth) && (rows == 1 || sp_is_wide(at, row_stride));
    return {at, row_stride, depth_stride, rows, depth, segment, is_wide};
}

/* Loads the chunk from `first` on to [row][depth]. Neighbouring threads load neighbouring
 * elements. */
template <int R>
SP_CUDA_FUNCTION void sp_load_left(const sp_left_rows &left, const sp_loader &loader, int64_t first,
                                   float *to)
{
    constexpr int depth = sp_chunk<R>::depth, rows = sp_chunk<R>::rows;
    const int64_t left_over = left.depth - first;
    if (left.is_wide) {
#pragma unroll 1
        for (int i = loader.index * 4; i < rows * depth; i += loader.count * 4) {
            const int row = i / depth, at = i % depth;
            if (row < left.rows && at < left_over) {
                sp_copy_4(to + i, left.at + row * left.row_stride + first + at);
            }
        }
        return;
    }
#pragma unroll 1
    for (int i = loader.index; i < rows * depth; i += loader.count) {
        const bool is_along = left.depth_stride == 1;
        const int row = is_along ? i / depth : i % rows, at = is_along ? i % depth : i / rows;
        if (row < left.rows && at < left_over) {
            sp_copy_1(to + row * depth + at,
                      left.at + row * left.row_stride + (first + at) * left.depth_stride);
        }
    }
}

/* ---- the right operand as a matrix, in panels of SP_GEMM_PANEL columns ---- */

/* The addresses of a thread's part of a chunk are computed once, since a chunk's chains of a few
 * hundred cycles must not wait for them. */
struct sp_right_panels {
    const float *from;     /* this thread's first element in the first chunk */
    int64_t depth, stride; /* from one k to the next */
    int64_t step;          /* from one of this thread's elements to the next */
    int row, row_step;     /* its first k in a chunk; from one to the next */
    int lane;              /* its first column */
    bool is_inside;        /* the matrix has this thread's columns */
    bool is_wide;          /* four columns at once */

    template <int R, void copy(float *, const float *)>
    __device__ __forceinline__ void load_rows(int64_t first, float *to) const
    {
        const int64_t left_over = depth - first;
        const int rows = left_over < sp_chunk<R>::depth ? (int)left_over : sp_chunk<R>::depth;
        const float *at = from + first * stride;
        float *place = to + row * SP_CUDA_LANES + lane;
#pragma unroll 4
        for (int i = row; i < rows; i += row_step) {
            copy(place, at);
            place += row_step * SP_CUDA_LANES;
            at += step;
        }
    }

    /* Loads the chunk from `first` on to [depth][lane]. */
    template <int R> __device__ __forceinline__ void load(int64_t first, float *to) const
    {
        if (!is_inside) return;
        if (is_wide) load_rows<R, sp_copy_4>(first, to);
        else load_rows<R, sp_copy_1>(first, to);
    }
};

static_assert(SP_CUDA_LANES == 1 << 5, "lanes are counted in bits");

/* The operand from `column` on; `columns` columns of the matrix are readable. */
SP_CUDA_FUNCTION sp_right_panels sp_make_right_panels(const float *at, int64_t stride,
                                                      int64_t panel_stride, int64_t depth,
                                                      int64_t column, int64_t columns,
                                                      const sp_loader &loader)
{
    sp_right_panels right;
    right.is_wide =
        sp_is_wide(at, stride) && sp_is_wide(at, panel_stride) && sp_is_wide(at, columns);
    const int shift = right.is_wide ? 3 : 5; /* 8 or 32 threads for one k */
    const int index = loader.index < 0 ? 0 : loader.index;
    right.lane = (index & ((1 << shift) - 1)) << (5 - shift);
    right.row = index >> shift;
    right.row_step = loader.count >> shift;
    const int64_t n = column + right.lane;
    right.is_inside = n < columns;
    right.depth = depth;
    right.stride = stride;
    right.step = right.row_step * stride;
    right.from = at + n / SP_GEMM_PANEL * panel_stride + n % SP_GEMM_PANEL + right.row * stride;
    return right;
}

/* ---- the chains ---- */

/* One step of R chains. */
template <int R>
SP_CUDA_FUNCTION void sp_one_step(const float *left, const float *right, float (&acc)[R])
{
#pragma unroll
    for (int r = 0; r < R; r++) {
        acc[r] = __fmaf_rn(left[r * SP_CUDA_WARPS * sp_chunk<R>::depth], *right, acc[r]);
    }
}

/* Four steps of R chains. */
template <int R>
SP_CUDA_FUNCTION void sp_four_steps(const float *left, const float *right, float (&acc)[R])
{
    float b[4];
#pragma unroll
    for (int i = 0; i < 4; i++) b[i] = right[i * SP_CUDA_LANES];
#pragma unroll
    for (int r = 0; r < R; r++) {
        const float4 a = *(const float4 *)(left + r * SP_CUDA_WARPS * sp_chunk<R>::depth);
        acc[r] = __fmaf_rn(a.x, b[0], acc[r]);
        acc[r] = __fmaf_rn(a.y, b[1], acc[r]);
        acc[r] = __fmaf_rn(a.z, b[2], acc[r]);
        acc[r] = __fmaf_rn(a.w, b[3], acc[r]);
    }
}

/* A chain that is done, and the sum of those before it. */
template <int R> SP_CUDA_FUNCTION void sp_add_chains(float (&acc)[R], float (&sum)[R])
{
#pragma unroll
    for (int r = 0; r < R; r++) {
        sum[r] = __fadd_rn(sum[r], acc[r]);
        acc[r] = 0;
    }
}

/* Steps [k, end) of a chunk, which are not all of them. */
template <int R>
SP_CUDA_FUNCTION void sp_run_steps(const float *left, const float *right, int k, int end,
                                   float (&acc)[R])
{
    constexpr int depth = sp_chunk<R>::depth;
#pragma unroll 1
    for (; k < end && k % 4 != 0; k++) sp_one_step<R>(left + k, right + k * SP_CUDA_LANES, acc);
#pragma unroll 1
    for (; k + 4 <= end; k += 4) sp_four_steps<R>(left + k, right + k * SP_CUDA_LANES, acc);
#pragma unroll 1
    for (; k < end; k++) sp_one_step<R>(left + k, right + k * SP_CUDA_LANES, acc);
    static_assert(depth % 4 == 0, "four steps are in one chunk");
}

/* The steps of one chunk. `left_over`: steps that the segment still has, and will have. */
template <int R>
SP_CUDA_FUNCTION void sp_run_chunk(const float *stage, int64_t steps, int64_t segment,
                                   int64_t &left_over, float (&acc)[R], float (&sum)[R])
{
    constexpr int depth = sp_chunk<R>::depth;
    const float *right = stage + sp_lane();
    const float *left = stage + sp_chunk<R>::right_floats + sp_warp() * depth;
    if (steps >= depth && left_over >= depth) {
#pragma unroll
        for (int k = 0; k < depth; k += 4) {
            sp_four_steps<R>(left + k, right + k * SP_CUDA_LANES, acc);
        }
        left_over -= depth;
    } else {
        const int all = steps < depth ? (int)steps : depth;
        int k = 0;
#pragma unroll 1
        while (all - k >= left_over) {
            sp_run_steps<R>(left, right, k, k + (int)left_over, acc);
            sp_add_chains<R>(acc, sum);
            k += (int)left_over;
            left_over = segment;
        }
        sp_run_steps<R>(left, right, k, all, acc);
        left_over -= all - k;
    }
    if (left_over == 0) {
        sp_add_chains<R>(acc, sum);
        left_over = segment;
    }
}

template <int R, class Right>
SP_CUDA_FUNCTION void sp_load_chunk(const sp_left_rows &left, Right &right, const sp_loader &loader,
                                    int64_t chunk, float *pool)
{
    constexpr int depth = sp_chunk<R>::depth;
    float *stage = pool + chunk % SP_PRODUCT_STAGES * sp_chunk<R>::floats;
    if (chunk * depth < left.depth && loader.index >= 0) {
        right.template load<R>(chunk * depth, stage);
        sp_load_left<R>(left, loader, chunk * depth, stage + sp_chunk<R>::right_floats);
    }
    sp_group_copies();
}

/* The sums of this thread's R outputs. All threads of the block must call it; the shared memory
 * may be reused afterwards. */
template <int R, class Right>
SP_CUDA_FUNCTION void sp_run_sums(float *pool, const sp_left_rows &left, Right &right,
                                  const sp_loader &loader, float (&sum)[R])
{
    constexpr int depth = sp_chunk<R>::depth, ahead = SP_PRODUCT_STAGES - 1;
    float acc[R];
    int64_t left_over = left.segment;
#pragma unroll
    for (int r = 0; r < R; r++) acc[r] = sum[r] = 0;
    /* Before chunk 0 the pipeline is only filled. */
#pragma unroll 1
    for (int64_t chunk = -ahead; chunk * depth < left.depth; chunk++) {
        if (chunk >= 0) {
            sp_wait_copies();
            /* The chunk is complete for all threads, and no thread uses the previous one, whose
             * memory the next load overwrites. */
            __syncthreads();
        }
        sp_load_chunk<R>(left, right, loader, chunk + ahead, pool);
        if (chunk >= 0 && sp_warp() < left.rows) {
            sp_run_chunk<R>(pool + chunk % SP_PRODUCT_STAGES * sp_chunk<R>::floats,
                            left.depth - chunk * depth, left.segment, left_over, acc, sum);
        }
    }
    sp_add_chains<R>(acc, sum);
    __syncthreads();
}

/* Applies the activation to this thread's outputs. They are rotated through one variable, so the
 * functions are compiled once for each R and the outputs remain in registers. */
template <int R> SP_CUDA_FUNCTION void sp_activate_rows(uint8_t activation, float (&out)[R])
{
#pragma unroll 1
    for (int i = 0; i < R; i++) {
        const float next = sp_activate(activation, out[0]);
#pragma unroll
        for (int r = 0; r + 1 < R; r++) out[r] = out[r + 1];
        out[R - 1] = next;
    }
}

/* For each output of this thread that the tile has: output = finish(sum, addend(row, lane)), then
 * the activation, then store(row, lane, output). Addends are loaded while the chains run. */
template <int R, class Right, class Output>
SP_CUDA_FUNCTION void sp_run_rows(float *pool, const sp_left_rows &left, Right &right,
                                  const sp_loader &loader, int64_t lanes, const Output &output)
{
    float out[R], addend[R];
#pragma unroll
    for (int r = 0; r < R; r++) {
        const int row = sp_warp() + r * SP_CUDA_WARPS;
        addend[r] = row < left.rows && sp_lane() < lanes ? output.addend(row, sp_lane()) : 0;
    }
    sp_run_sums<R>(pool, left, right, loader, out);
#pragma unroll
    for (int r = 0; r < R; r++) out[r] = output.finish(out[r], addend[r]);
    if (output.activation() != SP_ACTIVATION_NONE) sp_activate_rows<R>(output.activation(), out);
#pragma unroll
    for (int r = 0; r < R; r++) {
        const int row = sp_warp() + r * SP_CUDA_WARPS;
        if (row < left.rows && sp_lane() < lanes) output.store(row, sp_lane(), out[r]);
    }
}

/* Runs the tile with the R that its rows need. Rows are relative to the tile's first. */
template <class Right, class Output>
SP_CUDA_FUNCTION void sp_run_tile(float *pool, const sp_left_rows &left, Right &right,
                                  const sp_loader &loader, int64_t lanes, const Output &output)
{
    constexpr int warps = SP_CUDA_WARPS;
    if (left.rows <= 1 * warps) sp_run_rows<1>(pool, left, right, loader, lanes, output);
    else if (left.rows <= 2 * warps) sp_run_rows<2>(pool, left, right, loader, lanes, output);
    else if (left.rows <= 4 * warps) sp_run_rows<4>(pool, left, right, loader, lanes, output);
    else sp_run_rows<8>(pool, left, right, loader, lanes, output);
}
