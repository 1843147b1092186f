/* SPDX-License-Identifier: Apache-2.0 */
/* ArgMax and ArgMin, Hardmax and CumSum (ops/cpu/reduce/axis.c). */

/* ---- the index of the maximum or minimum; a NaN precedes all numbers ---- */

template <class E> struct sp_best {
    E value;
    int64_t index; /* -1: none */
};

/* The better of two, whatever their order. */
template <class E>
SP_CUDA_FUNCTION sp_best<E> sp_better(const sp_axis_constants &k, const sp_best<E> &a,
                                      const sp_best<E> &b)
{
    if (a.index < 0) return b;
    if (b.index < 0) return a;
    const bool a_is_nan = a.value != a.value, b_is_nan = b.value != b.value;
    const bool is_tie = a.value == b.value || (a_is_nan && b_is_nan);
    if (is_tie) return (b.index > a.index) == k.takes_last ? b : a;
    if (a_is_nan || b_is_nan) return a_is_nan ? a : b;
    return (b.value > a.value) != k.takes_least ? b : a;
}

/* The index that all threads of the slot get. */
template <class E>
SP_CUDA_FUNCTION int64_t sp_find_best(const sp_axis_constants &k, const sp_lane_place &place,
                                      const E *x, bool is_there, sp_best<E> *pool)
{
    const auto better = [&](const sp_best<E> &a, const sp_best<E> &b) {
        return sp_better(k, a, b);
    };
    const sp_best<E> none = {E(0), -1};
    return sp_lane_reduce(
               place, k.extent, is_there, none, pool,
               [&](const sp_best<E> &best, int64_t i) {
                   return better(best, sp_best<E>{x[i * k.inner], i});
               },
               better)
        .index;
}

template <class E>
SP_CUDA_FUNCTION void sp_arg(const sp_gpu_bindings &bindings, const sp_axis_constants &k)
{
    __shared__ sp_best<E> pool[SP_LANE_POOL];
    const E *x = (const E *)bindings.at[0];
    int64_t *y = (int64_t *)bindings.at[1];
    sp_each_axis_row(k, [&](const sp_lane_place &place, int64_t row, bool is_there) {
        const E *from = x + (is_there ? sp_axis_row_at(k, row) : 0);
        const int64_t index = sp_find_best(k, place, from, is_there, pool);
        if (is_there && sp_is_first_lane(place)) y[row] = index;
    });
}

#define SP_ARG_KERNEL(suffix, E)                                                                   \
    SP_CUDA_KERNEL(arg_##suffix, sp_axis_constants)                                                \
    {                                                                                              \
        sp_arg<E>(bindings, k);                                                                    \
    }

SP_ARG_KERNEL(f32, float)
SP_ARG_KERNEL(f64, double)
SP_ARG_KERNEL(i32, int32_t)
SP_ARG_KERNEL(i64, int64_t)
SP_ARG_KERNEL(i8, int8_t)
SP_ARG_KERNEL(u8, uint8_t)

/* 1 at the first maximum, 0 elsewhere. */
SP_CUDA_KERNEL(hardmax_f32, sp_axis_constants)
{
    __shared__ sp_best<float> pool[SP_LANE_POOL];
    const float *x = (const float *)bindings.at[0];
    float *y = (float *)bindings.at[1];
    sp_each_axis_row(k, [&](const sp_lane_place &place, int64_t row, bool is_there) {
        const int64_t at = is_there ? sp_axis_row_at(k, row) : 0;
        const int64_t index = sp_find_best(k, place, x + at, is_there, pool);
        if (!is_there) return;
        sp_lane_each(place, k.extent,
                     [&](int64_t i) { y[at + i * k.inner] = i == index ? 1.0f : 0.0f; });
    });
}

/* ---- running sums: rounded additions in order, from +0 ---- */

/* What element `at` of a chain becomes. */
template <class Sum> SP_CUDA_FUNCTION Sum sp_next_sum(const sp_axis_constants &k, Sum *sum, Sum x)
{
    const Sum before = *sum;
    *sum = before + x;
    return k.is_exclusive ? before : *sum;
}

/* Columns: neighbouring threads have neighbouring chains. */
template <class E, class Sum>
SP_CUDA_FUNCTION void sp_cumsum_columns(const sp_axis_constants &k, const E *x, E *y)
{
#pragma unroll 1
    for (int64_t row = sp_thread_index(); row < k.rows; row += sp_thread_stride()) {
        const int64_t first = sp_axis_row_at(k, row);
        Sum sum = 0;
#pragma unroll 8
        for (int64_t i = 0; i < k.extent; i++) {
            const int64_t at = first + (k.is_reverse ? k.extent - 1 - i : i) * k.inner;
            y[at] = sp_stored<E>::from(sp_wide<E>(sp_next_sum(k, &sum, Sum(x[at]))));
        }
    }
}

/* Rows: a block has SP_CUDA_CUMSUM_ROWS of them, some elements of each at a time, in shared memory.
 * One thread adds a row's; all load the next ones before that, and store what it has left. */
template <class E, class Sum> struct sp_cumsum_rows {
    static const int columns = 128, row_stride = columns + 1;
    static const int each = SP_CUDA_CUMSUM_ROWS * columns / SP_CUDA_THREADS;
    const sp_axis_constants &k;
    const E *x;
    E *y;
    Sum *tile;
    int64_t row; /* the block's first */

    /* The place of this thread's element `i` of those from `first` on in the order of the chain; -1:
     * none. */
    __device__ __forceinline__ int64_t place(int64_t first, int i) const
    {
        const int at = threadIdx.x + i * SP_CUDA_THREADS;
        const int64_t of_row = row + at / columns, step = first + at % columns;
        if (of_row >= k.rows || step >= k.extent) return -1;
        return of_row * k.extent + (k.is_reverse ? k.extent - 1 - step : step);
    }

    __device__ __forceinline__ Sum *cell(int i) const
    {
        const int at = threadIdx.x + i * SP_CUDA_THREADS;
        return tile + at / columns * row_stride + at % columns;
    }

    __device__ __forceinline__ void load(int64_t first, Sum (&values)[each]) const
    {
#pragma unroll
        for (int i = 0; i < each; i++) {
            const int64_t at = place(first, i);
            values[i] = at >= 0 ? Sum(x[at]) : Sum(0);
        }
    }

    __device__ __forceinline__ void add(Sum *sum) const
    {
        Sum *cells = tile + threadIdx.x * row_stride;
#pragma unroll 16
        for (int i = 0; i < columns; i++) cells[i] = sp_next_sum(k, sum, cells[i]);
    }

    __device__ __forceinline__ void run() const
    {
        Sum values[each], sum = 0;
        load(0, values);
#pragma unroll 1
        for (int64_t first = 0; first < k.extent; first += columns) {
#pragma unroll
            for (int i = 0; i < each; i++) *cell(i) = values[i];
            __syncthreads();
            load(first + columns, values);
            if (threadIdx.x < SP_CUDA_CUMSUM_ROWS) add(&sum);
            __syncthreads();
#pragma unroll
            for (int i = 0; i < each; i++) {
                const int64_t at = place(first, i);
                if (at >= 0) y[at] = sp_stored<E>::from(sp_wide<E>(*cell(i)));
            }
        }
    }
};

template <class E, class Sum>
SP_CUDA_FUNCTION void sp_cumsum(const sp_gpu_bindings &bindings, const sp_axis_constants &k)
{
    __shared__ Sum tile[SP_CUDA_CUMSUM_ROWS * sp_cumsum_rows<E, Sum>::row_stride];
    const E *x = (const E *)bindings.at[0];
    E *y = (E *)bindings.at[1];
    if (k.inner > 1) {
        sp_cumsum_columns<E, Sum>(k, x, y);
        return;
    }
#pragma unroll 1
    for (int64_t row = (int64_t)blockIdx.x * SP_CUDA_CUMSUM_ROWS; row < k.rows;
         row += (int64_t)gridDim.x * SP_CUDA_CUMSUM_ROWS) {
        const sp_cumsum_rows<E, Sum> of = {k, x, y, tile, row};
        of.run();
    }
}

SP_CUDA_KERNEL(cumsum_f32, sp_axis_constants)
{
    sp_cumsum<float, sp_f32>(bindings, k);
}
SP_CUDA_KERNEL(cumsum_f64, sp_axis_constants)
{
    sp_cumsum<double, sp_f64>(bindings, k);
}
SP_CUDA_KERNEL(cumsum_i32, sp_axis_constants)
{
    sp_cumsum<int32_t, uint32_t>(bindings, k);
}
SP_CUDA_KERNEL(cumsum_i64, sp_axis_constants)
{
    sp_cumsum<int64_t, uint64_t>(bindings, k);
}
