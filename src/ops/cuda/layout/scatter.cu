/* SPDX-License-Identifier: Apache-2.0 */
/* Updates of indexed elements (ops/cpu/layout/scatter.c). Several updates of one element are
 * applied in the order of the indices, by one thread. */

template <class T> SP_CUDA_FUNCTION T sp_combine(uint32_t reduction, T a, T b)
{
    switch (reduction) {
    case SP_SCATTER_NONE:
        return b;
    case SP_SCATTER_ADD:
        return (T)((uint64_t)a + (uint64_t)b);
    case SP_SCATTER_MUL:
        return (T)((uint64_t)a * (uint64_t)b);
    case SP_SCATTER_MAX:
        return a >= b ? a : b;
    default:
        return a <= b ? a : b;
    }
}

/* Of equals the first is taken; a NaN is the result. */
template <class T> SP_CUDA_FUNCTION T sp_combine_floats(uint32_t reduction, T a, T b)
{
    switch (reduction) {
    case SP_SCATTER_ADD:
        return a + b;
    case SP_SCATTER_MUL:
        return a * b;
    case SP_SCATTER_MAX:
        return a != a || a >= b ? a : b;
    default:
        return a != a || a <= b ? a : b;
    }
}
SP_CUDA_FUNCTION float sp_combine(uint32_t reduction, float a, float b)
{
    return reduction == SP_SCATTER_NONE ? b : sp_store(sp_combine_floats<sp_f32>(reduction, a, b));
}
SP_CUDA_FUNCTION double sp_combine(uint32_t reduction, double a, double b)
{
    return reduction == SP_SCATTER_NONE ? b : sp_store(sp_combine_floats<sp_f64>(reduction, a, b));
}

/* Calls function<T>(...) with the type of the elements; what is only replaced is bits. */
#define SP_BY_DTYPE(k, function, ...)                                                              \
    do {                                                                                           \
        const bool is_bits = (k).reduction == SP_SCATTER_NONE;                                     \
        const uint32_t to = (k).dtype;                                                             \
        if (is_bits) {                                                                             \
            SP_BY_ELEMENT(sp_dtype_bytes(to), function, __VA_ARGS__);                              \
        } else if (to == SP_CODE_F32) function<float>(__VA_ARGS__);                                \
        else if (to == SP_CODE_F64) function<double>(__VA_ARGS__);                                 \
        else if (to == SP_CODE_I8) function<int8_t>(__VA_ARGS__);                                  \
        else if (to == SP_CODE_I16) function<int16_t>(__VA_ARGS__);                                \
        else if (to == SP_CODE_I32) function<int32_t>(__VA_ARGS__);                                \
        else if (to == SP_CODE_I64) function<int64_t>(__VA_ARGS__);                                \
        else if (to == SP_CODE_U8) function<uint8_t>(__VA_ARGS__);                                 \
        else if (to == SP_CODE_U16) function<uint16_t>(__VA_ARGS__);                               \
        else if (to == SP_CODE_U32) function<uint32_t>(__VA_ARGS__);                               \
        else function<uint64_t>(__VA_ARGS__);                                                      \
    } while (0)

/* A thread has a line along the axis. */
template <class T>
SP_CUDA_FUNCTION void sp_scatter_lines(const sp_gpu_bindings &bindings,
                                       const sp_scatter_elements_constants &k)
{
    const T *updates = (const T *)bindings.at[1];
    T *y = (T *)bindings.at[2];
    int64_t step = 1; /* along the axis, in the updates */
    for (uint32_t i = k.axis + 1; i < k.rank; i++) step *= k.dims[i];
#pragma unroll 1
    for (int64_t i = sp_thread_index(); i < k.lines; i += sp_thread_stride()) {
        int64_t line = i, from = 0, to = 0, stride = 1;
#pragma unroll 1
        for (uint32_t d = k.rank; d-- > 0; stride *= k.dims[d]) {
            if (d == k.axis) continue;
            const int64_t at = sp_take_coordinate(&line, k.dims[d]);
            from += at * stride;
            to += at * k.y[d];
        }
#pragma unroll 1
        for (int64_t at = 0; at < k.dims[k.axis]; at++, from += step) {
            const int64_t index =
                sp_index_of(bindings, bindings.at[0], from, k.index_bytes, k.axis_size);
            if (index < 0) continue;
            T *place = y + to + index * k.y[k.axis];
            *place = sp_combine(k.reduction, *place, updates[from]);
        }
    }
}

SP_CUDA_KERNEL(scatter_elements, sp_scatter_elements_constants)
{
    SP_BY_DTYPE(k, sp_scatter_lines, bindings, k);
}

/* Offsets of updates of slices: two are the same, or their slices have no common element. */
struct sp_slice_offsets {
    const sp_gpu_bindings &bindings;
    const sp_scatter_nd_constants &k;
    int64_t *shared; /* one for each thread of the block, and one more */

    /* -1: out of range */
    __device__ __forceinline__ int64_t at(int64_t update) const
    {
        return sp_index_offset(bindings, bindings.at[0], update * k.depth, k.index_bytes, k.depth,
                               k.dims, k.strides);
    }

    /* Has one of the updates [first, last) that offset? For all threads of the block. */
    __device__ __forceinline__ bool has(int64_t first, int64_t last, int64_t offset) const
    {
        int64_t *is_found = shared + SP_CUDA_THREADS;
        __syncthreads(); /* of the call before */
        if (threadIdx.x == 0) *is_found = 0;
        __syncthreads();
#pragma unroll 1
        for (int64_t i = first + threadIdx.x; i < last; i += SP_CUDA_THREADS) {
            if (at(i) != offset) continue;
            *is_found = 1;
            break;
        }
        __syncthreads();
        return *is_found != 0;
    }
};

/* Element `i` of the slice, after the updates of its offset from `first` on, in order. All threads
 * of the block call it; those without an element have an `i` that is not below the slice. */
template <class T>
SP_CUDA_FUNCTION T sp_apply_updates(const sp_slice_offsets &of, const T *updates, int64_t first,
                                    int64_t offset, int64_t i, T value)
{
    int64_t *offsets = of.shared;
    const sp_scatter_nd_constants &k = of.k;
#pragma unroll 1
    for (int64_t begin = first; begin < k.count; begin += SP_CUDA_THREADS) {
        const int64_t own = begin + threadIdx.x;
        const int64_t left = k.count - begin;
        const int count = left < SP_CUDA_THREADS ? (int)left : SP_CUDA_THREADS;
        if (!of.has(begin, begin + count, offset)) continue;
        if (own < k.count) offsets[threadIdx.x] = of.at(own);
        __syncthreads();
#pragma unroll 1
        for (int u = 0; u < count && i < k.slice; u++) {
            if (offsets[u] != offset) continue;
            value = sp_combine(k.reduction, value, updates[(begin + u) * k.slice + i]);
        }
    }
    return value;
}

/* A block has an update, of some elements of the slice. Of several updates of one slice the first
 * one's block applies all, or, where the last one replaces the others, the last one's. */
template <class T>
SP_CUDA_FUNCTION void sp_scatter_slices(const sp_gpu_bindings &bindings,
                                        const sp_scatter_nd_constants &k, int64_t *shared)
{
    const T *updates = (const T *)bindings.at[1];
    T *y = (T *)bindings.at[2];
    const sp_slice_offsets of = {bindings, k, shared};
    const bool replaces = k.reduction == SP_SCATTER_NONE;
#pragma unroll 1
    for (int64_t t = blockIdx.x; t < k.count; t += gridDim.x) {
        const int64_t offset = of.at(t);
        if (offset < 0) continue;
        if (replaces ? of.has(t + 1, k.count, offset) : of.has(0, t, offset)) continue;
#pragma unroll 1
        for (int64_t first = (int64_t)blockIdx.y * SP_CUDA_THREADS; first < k.slice;
             first += (int64_t)gridDim.y * SP_CUDA_THREADS) {
            const int64_t i = first + threadIdx.x;
            T value = i >= k.slice ? T(0) : replaces ? updates[t * k.slice + i] : y[offset + i];
            if (!replaces) value = sp_apply_updates(of, updates, t, offset, i, value);
            if (i < k.slice) y[offset + i] = value;
        }
    }
}

SP_CUDA_KERNEL(scatter_nd, sp_scatter_nd_constants)
{
    __shared__ int64_t shared[SP_CUDA_THREADS + 1];
    SP_BY_DTYPE(k, sp_scatter_slices, bindings, k, shared);
}
