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

/* A thread has an element of the slices, for all updates. */
template <class T>
SP_CUDA_FUNCTION void sp_scatter_slices(const sp_gpu_bindings &bindings,
                                        const sp_scatter_nd_constants &k)
{
    const T *updates = (const T *)bindings.at[1];
    T *y = (T *)bindings.at[2];
#pragma unroll 1
    for (int64_t i = sp_thread_index(); i < k.slice; i += sp_thread_stride()) {
#pragma unroll 1
        for (int64_t t = 0; t < k.count; t++) {
            const int64_t offset = sp_index_offset(bindings, bindings.at[0], t * k.depth,
                                                   k.index_bytes, k.depth, k.dims, k.strides);
            if (offset < 0) continue;
            T *place = y + offset + i;
            *place = sp_combine(k.reduction, *place, updates[t * k.slice + i]);
        }
    }
}

SP_CUDA_KERNEL(scatter_nd, sp_scatter_nd_constants)
{
    SP_BY_DTYPE(k, sp_scatter_slices, bindings, k);
}
