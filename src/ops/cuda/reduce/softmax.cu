/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax (ops/cpu/reduce/softmax.inc.h). The exponentials are kept in y between the passes, unless
 * y is too narrow or still read as x. y may be the memory of x. */

template <class E> struct sp_softmax_row {
    typedef sp_wide<E> T;
    const sp_axis_constants &k;
    const E *x;
    E *y;

    __device__ __forceinline__ T most(const sp_lane_place &place, bool is_there, T *pool) const
    {
        return sp_lane_reduce(
            place, k.extent, is_there, sp_limits<T>::least(), pool,
            [&](T lane, int64_t i) { return sp_join_max(lane, sp_load(x[i * k.inner])); },
            [](T a, T b) { return sp_join_max(a, b); });
    }

    /* The sum of the exponentials, which go to y if it keeps them. */
    __device__ __forceinline__ T sum(const sp_lane_place &place, bool is_there, T most, bool keeps,
                                     T *pool) const
    {
        return sp_lane_reduce(
            place, k.extent, is_there, T(0), pool,
            [&](T lane, int64_t i) {
                T e = sp_exp(sp_load(x[i * k.inner]) - most);
                if (keeps) {
                    const E kept = sp_stored<E>::from(e);
                    y[i * k.inner] = kept;
                    e = sp_load(kept);
                }
                return lane + e;
            },
            [](T a, T b) { return a + b; });
    }

    __device__ __forceinline__ void finish(const sp_lane_place &place, T most, T sum,
                                           bool keeps) const
    {
        const T base = k.is_log ? sp_log(sum) : T(0);
        sp_lane_each(place, k.extent, [&](int64_t i) {
            const int64_t at = i * k.inner;
            T out;
            if (keeps) out = sp_load(y[at]) / sum;
            else if (k.is_log) out = (sp_load(x[at]) - most) - base;
            else out = sp_exp(sp_load(x[at]) - most) / sum;
            y[at] = sp_stored<E>::from(out);
        });
    }
};

template <class E>
SP_CUDA_FUNCTION void sp_softmax(const sp_gpu_bindings &bindings, const sp_axis_constants &k,
                                 sp_wide<E> *pool)
{
    typedef sp_wide<E> T;
    const bool keeps = sizeof(E) == sizeof(T) && !k.is_log;
    sp_each_axis_row(k, [&](const sp_lane_place &place, int64_t row, bool is_there) {
        const int64_t at = is_there ? sp_axis_row_at(k, row) : 0;
        const sp_softmax_row<E> of = {k, (const E *)bindings.at[0] + at, (E *)bindings.at[1] + at};
        const T most = of.most(place, is_there, pool);
        const T sum = of.sum(place, is_there, most, keeps, pool);
        if (is_there) of.finish(place, most, sum, keeps);
    });
}

#define SP_SOFTMAX_KERNEL(suffix, E)                                                               \
    SP_CUDA_KERNEL(softmax_##suffix, sp_axis_constants)                                            \
    {                                                                                              \
        __shared__ sp_wide<E> pool[SP_LANE_POOL];                                                  \
        sp_softmax<E>(bindings, k, pool);                                                             \
    }

SP_SOFTMAX_KERNEL(f64, double)
SP_SOFTMAX_KERNEL(f16, sp_f16)

/* Of rows that are kept in registers. */
struct sp_softmax_of_kept {
    const sp_axis_constants &k;
    float *y;

    template <class Kept>
    __device__ __forceinline__ void operator()(Kept &kept, int64_t row, bool is_there) const
    {
        const sp_f32 most = kept.most();
        const sp_f32 sum = kept.sum([&](sp_f32 &value) {
            const sp_f32 e = sp_expf(value - most);
            if (!k.is_log) value = e;
            return e;
        });
        if (!is_there) return;
        float *to = y + row * k.extent;
        const sp_f32 base = k.is_log ? sp_log(sum) : sp_f32(0.0f);
        kept.each([&](int i, sp_f32 value) {
            to[i] = sp_store(k.is_log ? value - most - base : value / sum);
        });
    }
};

SP_CUDA_KERNEL(softmax_f32, sp_axis_constants)
{
    __shared__ sp_f32 pool[SP_CUDA_ROW_POOL];
    if (k.inner == 1 && sp_cuda_row_warps(k.extent) > 0) {
        const sp_softmax_of_kept of = {k, (float *)bindings.at[1]};
        sp_each_row((const float *)bindings.at[0], k.rows, k.extent, pool, of);
    } else {
        sp_softmax<float>(bindings, k, pool);
    }
}
