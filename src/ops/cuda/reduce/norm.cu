/* SPDX-License-Identifier: Apache-2.0 */
/* Normalisations (ops/cpu/reduce/norm.c, row_norm_f32.c, axis.c, ops/cpu/elementwise/row_affine.c).
 * Each step is rounded; a NaN stays a NaN in all of them. */

/* ---- by statistics that are given ---- */

SP_CUDA_KERNEL(batch_norm_f32, sp_batch_norm_constants)
{
    const float *x = (const float *)bindings.at[0], *scale = (const float *)bindings.at[1];
    const float *bias = (const float *)bindings.at[2], *mean = (const float *)bindings.at[3];
    const float *variance = (const float *)bindings.at[4];
    float *y = (float *)bindings.at[5];
    const int64_t count = k.planes * k.plane;
#pragma unroll 1
    for (int64_t i = sp_thread_index(); i < count; i += sp_thread_stride()) {
        int64_t plane = sp_quotient(i, k.plane);
        const int64_t c = sp_take_coordinate(&plane, k.channels);
        const sp_f32 factor = sp_f32(scale[c]) / sp_sqrt(sp_f32(variance[c]) + k.epsilon);
        const float out = sp_store((sp_f32(x[i]) - mean[c]) * factor + bias[c]);
        y[i] = sp_activate(k.activation, out);
    }
}

/* y = a * momentum + b * (1 - momentum) */
SP_CUDA_KERNEL(blend_f32, sp_blend_constants)
{
    const float *a = (const float *)bindings.at[0], *b = (const float *)bindings.at[1];
    float *y = (float *)bindings.at[2];
    const sp_f32 momentum = k.momentum, rest = sp_f32(1.0f) - momentum;
#pragma unroll 1
    for (int64_t i = sp_thread_index(); i < k.count; i += sp_thread_stride()) {
        y[i] = sp_store(sp_f32(a[i]) * momentum + sp_f32(b[i]) * rest);
    }
}

/* y = (x - mean) / (sqrt(variance) + 1e-9); mean and variance have b's strides. */
SP_CUDA_KERNEL(standardize_f32, sp_binary_constants)
{
    const float *x = (const float *)bindings.at[0], *mean = (const float *)bindings.at[1];
    const float *variance = (const float *)bindings.at[2];
    float *y = (float *)bindings.at[3];
#pragma unroll 1
    for (int64_t i = sp_thread_index(); i < k.count; i += sp_thread_stride()) {
        int64_t rest = i, b = 0;
#pragma unroll 1
        for (uint32_t d = k.rank; d-- > 1;) b += sp_take_coordinate(&rest, k.dims[d]) * k.b[d];
        if (k.rank > 0) b += rest * k.b[0];
        const sp_f32 deviation = sp_sqrt(sp_f32(variance[b])) + 1e-9f;
        y[i] = sp_store((sp_f32(x[i]) - mean[b]) / deviation);
    }
}

/* y = (x - mean) * (factor * scale) + bias; mean and factor are of rows. y may be the memory of x: a
 * thread reads elements before it overwrites them. */
SP_CUDA_KERNEL(row_affine_f32, sp_row_affine_constants)
{
    const float *x = (const float *)bindings.at[0], *mean = (const float *)bindings.at[1];
    const float *factor = (const float *)bindings.at[2], *scale = (const float *)bindings.at[3];
    const float *bias = (const float *)bindings.at[4];
    float *y = (float *)bindings.at[5];
    const int64_t count = k.rows * k.extent;
    const int64_t step = (int64_t)gridDim.x * (SP_CUDA_THREADS * SP_CUDA_ELEMENTS);
    int64_t first = (int64_t)blockIdx.x * (SP_CUDA_THREADS * SP_CUDA_ELEMENTS) + threadIdx.x;
#pragma unroll 1
    for (; first < count; first += step) {
        float out[SP_CUDA_ELEMENTS];
#pragma unroll
        for (int e = 0; e < SP_CUDA_ELEMENTS; e++) {
            const int64_t i = first + e * SP_CUDA_THREADS;
            if (i >= count) continue;
            int64_t row = i;
            const int64_t c = sp_take_coordinate(&row, k.extent);
            const sp_f32 factors = sp_f32(factor[row]) * scale[c];
            out[e] = sp_store((sp_f32(x[i]) - mean[row]) * factors + bias[c]);
        }
#pragma unroll
        for (int e = 0; e < SP_CUDA_ELEMENTS; e++) {
            const int64_t i = first + e * SP_CUDA_THREADS;
            if (i < count) y[i] = out[e];
        }
    }
}

/* ---- by the statistics of rows ---- */

/* A row that is kept, and one of a slot of lanes: what both have, for the kernels. */
struct sp_slot_row {
    const sp_lane_place &place;
    const float *x, *addend; /* the latter or nullptr */
    int64_t extent;
    bool is_there;
    sp_f32 *pool;

    __device__ __forceinline__ bool is_first() const
    {
        return sp_is_first_lane(place);
    }
    __device__ __forceinline__ void add(const float *to_all)
    {
        addend = to_all;
    }
    __device__ __forceinline__ sp_f32 value(int64_t i) const
    {
        return addend ? sp_f32(x[i]) + addend[i] : sp_f32(x[i]);
    }
    template <class Map> __device__ __forceinline__ sp_f32 mean_of(Map map)
    {
        const sp_f32 sum = sp_lane_reduce(
            place, extent, is_there, sp_f32(0.0f), pool,
            [&](sp_f32 lane, int64_t i) { return lane + map(value(i)); },
            [](sp_f32 a, sp_f32 b) { return a + b; });
        return sum / (float)extent;
    }
    __device__ __forceinline__ sp_f32 mean()
    {
        return mean_of([](sp_f32 value) { return value; });
    }
    __device__ __forceinline__ sp_f32 variance(sp_f32 shift)
    {
        return mean_of([&](sp_f32 value) {
            const sp_f32 distance = value - shift;
            return distance * distance;
        });
    }
    template <class Body> __device__ __forceinline__ void each(Body body) const
    {
        sp_lane_each(place, extent, [&](int64_t i) { body(i, value(i)); });
    }
    template <class Body> __device__ __forceinline__ void each_index(Body body) const
    {
        sp_lane_each(place, extent, body);
    }
};

/* body(row's statistics, row, is_there) for each row of this block. */
template <class Body>
SP_CUDA_FUNCTION void sp_each_norm_row(const float *x, int64_t rows, int64_t extent, sp_f32 *pool,
                                       const Body &body)
{
    if (sp_cuda_row_warps(extent) > 0) {
        sp_each_row(x, rows, extent, pool, sp_body_of_kept<Body>{body, extent});
        return;
    }
    sp_each_lane_row(rows, extent, false,
                     [&](const sp_lane_place &place, int64_t row, bool is_there) {
                         sp_slot_row of = {place,  x + (is_there ? row * extent : 0),
                                           nullptr, extent,
                                           is_there, pool};
                         body(of, row, is_there);
                     });
}

struct sp_norm_body {
    const sp_norm_constants &k;
    const float *scales, *biases;
    float *y, *means, *inverses;

    template <class Row>
    __device__ __forceinline__ void operator()(Row &of, int64_t row, bool is_there) const
    {
        const sp_f32 mean = of.mean(), variance = of.variance(mean);
        const sp_f32 inverse = sp_f32(1.0f) / sp_sqrt(variance + k.epsilon);
        if (!is_there) return;
        if (means && of.is_first()) means[row] = sp_store(mean);
        if (inverses && of.is_first()) inverses[row] = sp_store(inverse);
        int64_t rest = row;
        const int64_t first = sp_take_coordinate(&rest, k.scale_rows) * k.scale_row;
        float *to = y + row * k.extent;
        of.each([&](int64_t i, sp_f32 value) {
            const int64_t at = first + (k.span == 1 ? i : sp_quotient(i, k.span));
            const sp_f32 distance = (value - mean) * inverse * scales[at];
            to[i] = sp_store(biases ? distance + biases[at] : distance);
        });
    }
};

SP_CUDA_KERNEL(norm_f32, sp_norm_constants)
{
    __shared__ sp_f32 pool[SP_CUDA_ROW_POOL];
    int next = 2;
    const float *biases = k.has_bias ? (const float *)bindings.at[next++] : nullptr;
    float *y = (float *)bindings.at[next++];
    float *means = k.has_mean ? (float *)bindings.at[next++] : nullptr;
    float *inverses = k.has_inverse ? (float *)bindings.at[next++] : nullptr;
    const sp_norm_body body = {k, (const float *)bindings.at[1], biases, y, means, inverses};
    sp_each_norm_row((const float *)bindings.at[0], k.rows, k.extent, pool, body);
}

/* It waits for memory and for chains: with 80 registers instead of 128, half as many warps again are
 * there meanwhile. */
SP_CUDA_KERNEL_ENTRY(row_norm_f32, sp_row_norm_constants, __launch_bounds__(SP_CUDA_THREADS, 3),
                     sp_await_launch())
{
    __shared__ sp_f32 pool[SP_CUDA_ROW_POOL];
    int next;
    const auto body = sp_make_row_norm<sp_norm_in_rows>(bindings, k, &next);
    sp_each_norm_row((const float *)bindings.at[0], k.rows, k.extent, pool, body);
}

/* x / norm; 0 for rows with a norm of 0 */
SP_CUDA_KERNEL(lp_norm_f32, sp_axis_constants)
{
    __shared__ sp_f32 pool[SP_LANE_POOL];
    const float *x = (const float *)bindings.at[0];
    float *y = (float *)bindings.at[1];
    sp_each_axis_row(k, [&](const sp_lane_place &place, int64_t row, bool is_there) {
        const int64_t first = is_there ? sp_axis_row_at(k, row) : 0;
        const sp_f32 sum = sp_lane_reduce(
            place, k.extent, is_there, sp_f32(0.0f), pool,
            [&](sp_f32 lane, int64_t i) {
                const sp_f32 value = x[first + i * k.inner];
                return lane + (k.is_square ? value * value : value < 0 ? -value : value);
            },
            [](sp_f32 a, sp_f32 b) { return a + b; });
        const sp_f32 norm = k.is_square ? sp_sqrt(sum) : sum;
        const sp_f32 by = norm == 0 ? sp_f32(1.0f) : norm;
        if (!is_there) return;
        sp_lane_each(place, k.extent, [&](int64_t i) {
            const int64_t at = first + i * k.inner;
            y[at] = sp_store(sp_f32(x[at]) / by);
        });
    });
}

/* y = x / (bias + alpha / size * s)^beta, s the sum of the squares of the neighbouring channels
 * that exist; the power is Pow's. */
SP_CUDA_KERNEL(lrn_f32, sp_lrn_constants)
{
    const float *x = (const float *)bindings.at[0];
    float *y = (float *)bindings.at[1];
    const sp_f32 factor = sp_f32(k.alpha) / (float)k.size;
    const int64_t count = k.planes * k.plane, before = (k.size - 1) / 2;
#pragma unroll 1
    for (int64_t i = sp_thread_index(); i < count; i += sp_thread_stride()) {
        int64_t plane = sp_quotient(i, k.plane);
        const int64_t c = sp_take_coordinate(&plane, k.channels);
        const int64_t first = c < before ? -c : -before;
        int64_t last = k.size - 1 - before;
        if (c + last >= k.channels) last = k.channels - 1 - c;
        const float *from = x + i + first * k.plane;
        const sp_f32 sum =
            sp_lane_sum_of<sp_f32>(last - first + 1, [&](sp_f32 chain, int64_t channel) {
                const sp_f32 value = from[channel * k.plane];
                return chain + value * value;
            });
        y[i] = sp_store(sp_f32(x[i]) * sp_powf(sp_f32(k.bias) + factor * sum, -sp_f32(k.beta)));
    }
}
