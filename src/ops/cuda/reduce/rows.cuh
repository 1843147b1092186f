/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of at most SP_CUDA_REDUCTION neighbouring floats, which are read once and kept in registers.
 * Their sums have the order of reductions (lanes.cuh): element i joins lane i % 16, then the tree.
 * A row has one warp, or a block of eight if it is long: sp_cuda_row_warps. */

/* The part of a thread: elements `thread`, `thread` + threads, ... of a row. A thread without a row
 * has an extent of 0. All threads of a block call each member, as often. */
template <int warps, int count> struct sp_kept_row {
    static const int threads = warps * SP_CUDA_LANES;
    int thread, extent;
    sp_f32 *pool;
    sp_f32 values[count];

    __device__ __forceinline__ bool has(int i) const
    {
        return thread + i * threads < extent;
    }

    __device__ __forceinline__ void load(const float *x)
    {
#pragma unroll
        for (int i = 0; i < count; i++) values[i] = has(i) ? x[thread + i * threads] : 0.0f;
    }

    __device__ __forceinline__ void add(const float *x)
    {
#pragma unroll
        for (int i = 0; i < count; i++) {
            if (has(i)) values[i] = values[i] + x[thread + i * threads];
        }
    }

    /* body(index, value) for each element. */
    template <class Body> __device__ __forceinline__ void each(Body body) const
    {
#pragma unroll
        for (int i = 0; i < count; i++) {
            if (has(i)) body(thread + i * threads, values[i]);
        }
    }

    /* body(index) for each element, without many copies of it. */
    template <class Body> __device__ __forceinline__ void each_index(Body body) const
    {
#pragma unroll 1
        for (int i = thread; i < extent; i += threads) body(i);
    }

    __device__ __forceinline__ sp_f32 most() const
    {
        const auto join = [](sp_f32 a, sp_f32 b) { return sp_join_max(a, b); };
        sp_f32 result = sp_limits<sp_f32>::least();
#pragma unroll
        for (int i = 0; i < count; i++) {
            if (has(i)) result = join(result, values[i]);
        }
        result = sp_warp_tree(result, SP_CUDA_LANES, join);
        if (warps == 1) return result;
        sp_f32 *maxima = pool + SP_CUDA_REDUCTION;
        if (thread % SP_CUDA_LANES == 0) maxima[thread / SP_CUDA_LANES] = result;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < warps; i++) result = join(result, maxima[i]);
        return result;
    }

    /* The sum of what map(value) gives for each element, which it may change. Chains begin with +0,
     * so that a +0 for each element that is not there changes no bit. */
    template <class Map> __device__ __forceinline__ sp_f32 sum(Map map)
    {
        return warps == 1 ? sum_of_warp(map) : sum_of_block(map);
    }

private:
    /* Lanes l and l + 16 of the warp have the elements of lane l of the reduction, in turn. */
    template <class Map> __device__ __forceinline__ sp_f32 sum_of_warp(Map map)
    {
        sp_f32 chain = 0.0f;
#pragma unroll
        for (int i = 0; i < count; i++) {
            sp_f32 own = 0.0f;
            if (has(i)) own = map(values[i]);
            const sp_f32 other = sp_warp_exchange(own, SP_LANES);
            chain = chain + own;
            chain = chain + other;
        }
        chain = sp_warp_take(chain, thread % SP_LANES); /* the others had them in another order */
        return tree(chain);
    }

    /* The chains are of one warp. */
    template <class Map> __device__ __forceinline__ sp_f32 sum_of_block(Map map)
    {
        sp_f32 *result = pool + SP_CUDA_REDUCTION + SP_CUDA_WARPS;
#pragma unroll
        for (int i = 0; i < count; i++) {
            if (has(i)) pool[thread + i * threads] = map(values[i]);
        }
        __syncthreads();
        sp_f32 chain = 0.0f;
        if (thread < SP_CUDA_LANES) {
#pragma unroll 16
            for (int i = thread % SP_LANES; i < extent; i += SP_LANES) chain = chain + pool[i];
        }
        chain = tree(chain);
        if (thread == 0) *result = chain;
        __syncthreads();
        return *result;
    }

    __device__ __forceinline__ static sp_f32 tree(sp_f32 lane)
    {
        return sp_warp_tree(lane, SP_LANES, [](sp_f32 a, sp_f32 b) { return a + b; });
    }
};

/* body(kept, row, is_there) for the rows of this block, of which x is the first one. */
template <int warps, int count, class Body>
SP_CUDA_FUNCTION void sp_each_kept_row(const float *x, int64_t rows, int64_t extent, sp_f32 *pool,
                                       Body body)
{
    const int per_block = warps == 1 ? SP_CUDA_ROW_BLOCK : 1;
    const int slot = warps == 1 ? threadIdx.x / SP_CUDA_LANES : 0;
#pragma unroll 1
    for (int64_t first = (int64_t)blockIdx.x * per_block; first < rows;
         first += (int64_t)gridDim.x * per_block) {
        const int64_t row = first + slot;
        const bool is_there = row < rows;
        sp_kept_row<warps, count> kept;
        kept.thread = warps == 1 ? threadIdx.x % SP_CUDA_LANES : threadIdx.x;
        kept.extent = is_there ? (int)extent : 0;
        kept.pool = pool;
        kept.load(x + (is_there ? row : 0) * extent);
        body(kept, row, is_there);
    }
}

/* The same with as many registers as the extent needs, which has sp_cuda_row_warps. */
template <class Body>
SP_CUDA_FUNCTION void sp_each_row(const float *x, int64_t rows, int64_t extent, sp_f32 *pool,
                                  Body body)
{
    const int lanes = SP_CUDA_LANES;
    if (extent > 32 * lanes) sp_each_kept_row<8, 16>(x, rows, extent, pool, body);
    else if (extent > 24 * lanes) sp_each_kept_row<1, 32>(x, rows, extent, pool, body);
    else if (extent > 16 * lanes) sp_each_kept_row<1, 24>(x, rows, extent, pool, body);
    else if (extent > 8 * lanes) sp_each_kept_row<1, 16>(x, rows, extent, pool, body);
    else if (extent > 4 * lanes) sp_each_kept_row<1, 8>(x, rows, extent, pool, body);
    else sp_each_kept_row<1, 4>(x, rows, extent, pool, body);
}
