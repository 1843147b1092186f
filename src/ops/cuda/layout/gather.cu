/* SPDX-License-Identifier: Apache-2.0 */
/* Elements selected by indices from data, and generated ones (ops/cpu/layout/gather.c, diagonal.c,
 * non_zero.c). Bits are kept. */

/* ---- rows ---- */

/* Calls function<T>(...) with the largest unit T that divides the addresses and sizes in `bits`. */
#define SP_BY_ROW_UNIT(bits, function, ...)                                                        \
    do {                                                                                           \
        if ((bits) % 16 == 0) function<sp_word16>(__VA_ARGS__);                                    \
        else if ((bits) % 8 == 0) function<uint64_t>(__VA_ARGS__);                                 \
        else if ((bits) % 4 == 0) function<uint32_t>(__VA_ARGS__);                                 \
        else function<uint8_t>(__VA_ARGS__);                                                       \
    } while (0)

template <class T>
SP_CUDA_FUNCTION void sp_gather_rows(const sp_gpu_bindings &bindings, const sp_gather_constants &k)
{
    const T *x = (const T *)bindings.at[0];
    T *y = (T *)bindings.at[2];
    const int64_t width = k.inner_bytes / (int64_t)sizeof(T);
    const int64_t count = k.outer * k.count * width;
#pragma unroll 1
    for (int64_t i = sp_thread_index(); i < count; i += sp_thread_stride()) {
        int64_t outer = i;
        const int64_t column = sp_take_coordinate(&outer, width);
        const int64_t at = sp_take_coordinate(&outer, k.count);
        const int64_t index = sp_index_of(bindings, bindings.at[1], at, k.index_bytes, k.axis);
        if (index >= 0) y[i] = x[(outer * k.axis + index) * width + column];
    }
}

SP_CUDA_KERNEL(gather, sp_gather_constants)
{
    const uint64_t bits =
        (uint64_t)bindings.at[0] | (uint64_t)bindings.at[2] | (uint64_t)k.inner_bytes;
    SP_BY_ROW_UNIT(bits, sp_gather_rows, bindings, k);
}

template <class T>
SP_CUDA_FUNCTION void sp_gather_slices(const sp_gpu_bindings &bindings,
                                       const sp_gather_nd_constants &k)
{
    T *y = (T *)bindings.at[2];
    const int64_t width = k.slice_bytes / (int64_t)sizeof(T), count = k.rows * width;
#pragma unroll 1
    for (int64_t i = sp_thread_index(); i < count; i += sp_thread_stride()) {
        int64_t row = i;
        const int64_t column = sp_take_coordinate(&row, width);
        const int64_t offset = sp_index_offset(bindings, bindings.at[1], row * k.depth,
                                               k.index_bytes, k.depth, k.dims, k.strides);
        if (offset < 0) continue;
        const int64_t batch = sp_quotient(row, k.batch_rows) * k.batch_bytes;
        y[i] = ((const T *)((const uint8_t *)bindings.at[0] + batch + offset))[column];
    }
}

/* Slices begin at multiples of their size. */
SP_CUDA_KERNEL(gather_nd, sp_gather_nd_constants)
{
    const uint64_t bits = (uint64_t)bindings.at[0] | (uint64_t)bindings.at[2] |
                          (uint64_t)k.slice_bytes | (uint64_t)k.batch_bytes;
    SP_BY_ROW_UNIT(bits, sp_gather_slices, bindings, k);
}

/* ---- elements ---- */

template <class T>
SP_CUDA_FUNCTION void sp_gather_each(const sp_gpu_bindings &bindings,
                                     const sp_gather_elements_constants &k)
{
    const T *x = (const T *)bindings.at[0];
    T *y = (T *)bindings.at[2];
#pragma unroll 1
    for (int64_t i = sp_thread_index(); i < k.count; i += sp_thread_stride()) {
        int64_t rest = i, from = 0;
#pragma unroll 1
        for (uint32_t d = k.rank - 1; d > 0; d--) {
            from += sp_take_coordinate(&rest, k.dims[d]) * k.x[d];
        }
        from += rest * k.x[0];
        const int64_t index = sp_index_of(bindings, bindings.at[1], i, k.index_bytes, k.axis_size);
        if (index >= 0) y[i] = x[from + index * k.axis_stride];
    }
}

SP_CUDA_KERNEL(gather_elements, sp_gather_elements_constants)
{
    SP_BY_ELEMENT(k.element_bytes, sp_gather_each, bindings, k);
}

/* The index as an integer; a float outside of its range gives one that is always out of range. */
SP_CUDA_FUNCTION int64_t sp_load_number(const void *indices, int64_t at, uint32_t dtype)
{
    if (dtype == SP_CODE_I32) return ((const int32_t *)indices)[at];
    if (dtype == SP_CODE_I64) return ((const int64_t *)indices)[at];
    const float number = ((const float *)indices)[at];
    const int64_t least = (int64_t)((uint64_t)1 << 63);
    return number > -1e18f && number < 1e18f ? (int64_t)number : least;
}

template <class T>
SP_CUDA_FUNCTION void sp_one_hot_each(const sp_gpu_bindings &bindings,
                                      const sp_one_hot_constants &k)
{
    const T *values = (const T *)bindings.at[1];
    T *y = (T *)bindings.at[2];
    const int64_t count = k.outer * k.depth * k.inner;
#pragma unroll 1
    for (int64_t i = sp_thread_index(); i < count; i += sp_thread_stride()) {
        int64_t outer = i;
        const int64_t inner = sp_take_coordinate(&outer, k.inner);
        const int64_t at = sp_take_coordinate(&outer, k.depth);
        const int64_t given = sp_load_number(bindings.at[0], outer * k.inner + inner, k.index_type);
        y[i] = values[sp_index_wrap(given, k.depth) == at ? 1 : 0];
    }
}

SP_CUDA_KERNEL(one_hot, sp_one_hot_constants)
{
    SP_BY_ELEMENT(k.element_bytes, sp_one_hot_each, bindings, k);
}

/* ---- generators ---- */

template <class T>
SP_CUDA_FUNCTION void sp_range_ints(const sp_gpu_bindings &bindings, const sp_range_constants &k)
{
    T *y = (T *)bindings.at[0];
#pragma unroll 1
    for (int64_t i = sp_thread_index(); i < k.count; i += sp_thread_stride()) {
        y[i] = (T)((uint64_t)k.start_int + (uint64_t)i * (uint64_t)k.step_int);
    }
}

template <class T>
SP_CUDA_FUNCTION void sp_range_floats(const sp_gpu_bindings &bindings, const sp_range_constants &k)
{
    typedef typename T::element E;
    E *y = (E *)bindings.at[0];
#pragma unroll 1
    for (int64_t i = sp_thread_index(); i < k.count; i += sp_thread_stride()) {
        y[i] = (T((E)k.start) + T((E)i) * T((E)k.step)).v;
    }
}

SP_CUDA_KERNEL(range, sp_range_constants)
{
    if (k.dtype == SP_CODE_F32) sp_range_floats<sp_f32>(bindings, k);
    else if (k.dtype == SP_CODE_F64) sp_range_floats<sp_f64>(bindings, k);
    else if (k.dtype == SP_CODE_I16) sp_range_ints<int16_t>(bindings, k);
    else if (k.dtype == SP_CODE_I32) sp_range_ints<int32_t>(bindings, k);
    else sp_range_ints<int64_t>(bindings, k);
}

template <class T>
SP_CUDA_FUNCTION void sp_trilu_each(const sp_gpu_bindings &bindings, const sp_diagonal_constants &k)
{
    const T *x = (const T *)bindings.at[0];
    T *y = (T *)bindings.at[1];
    const int64_t count = k.rows * k.columns;
#pragma unroll 1
    for (int64_t i = sp_thread_index(); i < count; i += sp_thread_stride()) {
        int64_t row = i;
        const int64_t column = sp_take_coordinate(&row, k.columns);
        const int64_t edge = row % k.matrix_rows + k.diagonal;
        y[i] = (k.is_upper ? column >= edge : column <= edge) ? x[i] : (T)0;
    }
}

SP_CUDA_KERNEL(trilu, sp_diagonal_constants)
{
    SP_BY_ELEMENT(k.element_bytes, sp_trilu_each, bindings, k);
}

template <class T>
SP_CUDA_FUNCTION void sp_eye_each(const sp_gpu_bindings &bindings, const sp_diagonal_constants &k)
{
    T *y = (T *)bindings.at[0];
    const int64_t count = k.rows * k.columns;
#pragma unroll 1
    for (int64_t i = sp_thread_index(); i < count; i += sp_thread_stride()) {
        int64_t row = i;
        const int64_t column = sp_take_coordinate(&row, k.columns);
        y[i] = column == row % k.matrix_rows + k.diagonal ? (T)k.one : (T)0;
    }
}

SP_CUDA_KERNEL(eye, sp_diagonal_constants)
{
    SP_BY_ELEMENT(k.element_bytes, sp_eye_each, bindings, k);
}

/* ---- coordinates of the nonzero elements; one block of threads goes through x in order ---- */

SP_CUDA_FUNCTION bool sp_is_non_zero(const sp_non_zero_constants &k, const void *x, int64_t at)
{
    uint64_t element;
    if (k.element_bytes == 4) element = ((const uint32_t *)x)[at];
    else if (k.element_bytes == 8) element = ((const uint64_t *)x)[at];
    else if (k.element_bytes == 2) element = ((const uint16_t *)x)[at];
    else element = ((const uint8_t *)x)[at];
    return (element & k.mask) != 0;
}

SP_CUDA_KERNEL(non_zero, sp_non_zero_constants)
{
    __shared__ uint32_t counts[SP_CUDA_THREADS];
    int64_t *y = (int64_t *)bindings.at[1];
    int64_t before = 0; /* nonzero elements of the parts before */
#pragma unroll 1
    for (int64_t first = 0; first < k.count; first += SP_CUDA_THREADS) {
        const int64_t at = first + threadIdx.x;
        const bool is_found = at < k.count && sp_is_non_zero(k, bindings.at[0], at);
        counts[threadIdx.x] = is_found;
        __syncthreads();
        uint32_t rank = 0, all = 0;
#pragma unroll 8
        for (int i = 0; i < SP_CUDA_THREADS; i++) {
            if (i < (int)threadIdx.x) rank += counts[i];
            all += counts[i];
        }
        const int64_t column = before + rank;
        if (is_found && column < k.found) {
            int64_t rest = at;
#pragma unroll 1
            for (uint32_t d = k.rank; d-- > 0;) {
                y[d * k.found + column] = sp_take_coordinate(&rest, k.dims[d]);
            }
        }
        before += all;
        __syncthreads();
    }
}
