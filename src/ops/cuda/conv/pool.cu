/* SPDX-License-Identifier: Apache-2.0 */
/* Pools over windows of up to three dimensions (ops/cpu/conv/pool.c, max_pool_any.inc.h). A thread
 * has an output. */

/* The window of one output. */
struct sp_window_place {
    int64_t plane, at[3], start[3]; /* coordinates of the output; of its window's first tap */
};

SP_CUDA_FUNCTION sp_window_place sp_place_window(const sp_window_constants &k, int64_t output)
{
    sp_window_place place;
#pragma unroll
    for (int axis = 2; axis >= 0; axis--) {
        place.at[axis] = sp_take_coordinate(&output, k.out[axis]);
        place.start[axis] = place.at[axis] * k.stride[axis] - k.pad[axis];
    }
    place.plane = output;
    return place;
}

SP_CUDA_FUNCTION int64_t sp_window_outputs(const sp_window_constants &k)
{
    return k.planes * k.out[0] * k.out[1] * k.out[2];
}

/* ---- average ---- */

/* The number of taps along one axis that an average counts. */
SP_CUDA_FUNCTION int64_t sp_count_taps(const sp_window_constants &k, int axis, int64_t start)
{
    const int64_t before = k.counts_padding ? k.pad[axis] : 0;
    const int64_t size = k.in[axis] + before + (k.counts_padding ? k.end[axis] : 0);
    const sp_tap_range range = sp_clip_taps(start + before, k.dilation[axis], k.kernel[axis], size);
    return range.last - range.first;
}

/* The input of a tap of the window; 0 in the padding, which leaves a sum as it is. */
SP_CUDA_FUNCTION sp_f32 sp_window_input(const sp_window_constants &k, const sp_window_place &place,
                                        const float *plane, int64_t tap)
{
    const int64_t x = place.start[2] + sp_take_coordinate(&tap, k.kernel[2]) * k.dilation[2];
    const int64_t y = place.start[1] + sp_take_coordinate(&tap, k.kernel[1]) * k.dilation[1];
    const int64_t z = place.start[0] + tap * k.dilation[0];
    const bool is_inside = x >= 0 && x < k.in[2] && y >= 0 && y < k.in[1] && z >= 0 && z < k.in[0];
    return is_inside ? plane[(z * k.in[1] + y) * k.in[2] + x] : 0.0f;
}

SP_CUDA_KERNEL(average_pool_f32, sp_window_constants)
{
    const float *x = (const float *)bindings.at[0];
    float *y = (float *)bindings.at[1];
    const int64_t count = sp_window_outputs(k), in = k.in[0] * k.in[1] * k.in[2];
    const int64_t taps = k.kernel[0] * k.kernel[1] * k.kernel[2];
#pragma unroll 1
    for (int64_t i = sp_thread_index(); i < count; i += sp_thread_stride()) {
        const sp_window_place place = sp_place_window(k, i);
        const float *plane = x + place.plane * in;
        const sp_f32 sum = sp_lane_sum_of<sp_f32>(taps, [&](sp_f32 chain, int64_t tap) {
            return chain + sp_window_input(k, place, plane, tap);
        });
        int64_t counted = 1;
#pragma unroll
        for (int axis = 0; axis < 3; axis++) counted *= sp_count_taps(k, axis, place.start[axis]);
        y[i] = sp_store(sum / (float)counted);
    }
}

/* ---- maximum: a NaN is the maximum, of equals the first ---- */

template <class E> SP_CUDA_FUNCTION bool sp_beats(E x, E best)
{
    return x > best || (x != x && best == best);
}

/* Index in all of x of the element at a place of a plane. */
SP_CUDA_FUNCTION int64_t sp_element_index(const sp_window_constants &k, int64_t plane,
                                          const int64_t at[3])
{
    const int64_t first = plane * k.in[0] * k.in[1] * k.in[2];
    if (k.is_column_major) return first + at[0] + k.in[0] * (at[1] + k.in[1] * at[2]);
    return first + (at[0] * k.in[1] + at[1]) * k.in[2] + at[2];
}

template <class E>
SP_CUDA_FUNCTION E sp_window_best(const sp_window_constants &k, const sp_window_place &place,
                                  const E *plane, int64_t best_at[3])
{
    sp_tap_range taps[3];
#pragma unroll
    for (int a = 0; a < 3; a++) {
        taps[a] = sp_clip_taps(place.start[a], k.dilation[a], k.kernel[a], k.in[a]);
    }
    E best = sp_wide_plain(sp_limits<sp_wide<E>>::least());
    best_at[0] = best_at[1] = best_at[2] = -1;
#pragma unroll 1
    for (int64_t i = taps[0].first; i < taps[0].last; i++) {
        const int64_t z = place.start[0] + i * k.dilation[0];
#pragma unroll 1
        for (int64_t j = taps[1].first; j < taps[1].last; j++) {
            const int64_t y = place.start[1] + j * k.dilation[1];
            const E *row = plane + (z * k.in[1] + y) * k.in[2];
#pragma unroll 1
            for (int64_t t = taps[2].first; t < taps[2].last; t++) {
                const int64_t x = place.start[2] + t * k.dilation[2];
                const E value = row[x];
                if (best_at[0] >= 0 && !sp_beats(value, best)) continue;
                best = value;
                best_at[0] = z, best_at[1] = y, best_at[2] = x;
            }
        }
    }
    return best;
}

template <class E>
SP_CUDA_FUNCTION void sp_max_pool(const sp_gpu_bindings &bindings, const sp_window_constants &k)
{
    const E *x = (const E *)bindings.at[0];
    E *y = (E *)bindings.at[1];
    int64_t *indices = k.has_indices ? (int64_t *)bindings.at[2] : nullptr;
    const int64_t count = sp_window_outputs(k), in = k.in[0] * k.in[1] * k.in[2];
#pragma unroll 1
    for (int64_t i = sp_thread_index(); i < count; i += sp_thread_stride()) {
        const sp_window_place place = sp_place_window(k, i);
        int64_t at[3];
        const E best = sp_window_best(k, place, x + place.plane * in, at);
        y[i] = sp_stored<E>::from(sp_load(best));
        if (indices) indices[i] = at[0] < 0 ? -1 : sp_element_index(k, place.plane, at);
    }
}

#define SP_MAX_POOL_KERNEL(suffix, E)                                                              \
    SP_CUDA_KERNEL(max_pool_any_##suffix, sp_window_constants)                                     \
    {                                                                                              \
        sp_max_pool<E>(bindings, k);                                                               \
    }

SP_MAX_POOL_KERNEL(f32, float)
SP_MAX_POOL_KERNEL(f64, double)
SP_MAX_POOL_KERNEL(u8, uint8_t)
SP_MAX_POOL_KERNEL(i8, int8_t)
