/* SPDX-License-Identifier: Apache-2.0 */
/* Resize along one axis (ops/cpu/layout/resize.c). A thread has an output; coordinates and weights
 * are computed in doubles. */

SP_CUDA_FUNCTION sp_f64 sp_floor_of(sp_f64 x)
{
    const sp_f64 whole = (double)(int64_t)x.v;
    return whole > x ? whole - 1 : whole;
}

/* Clamps to [-2^52, 2^52], where every integer is a double; NaN becomes the lower end. */
SP_CUDA_FUNCTION sp_f64 sp_clamp_coordinate(sp_f64 x)
{
    const sp_f64 limit = 4503599627370496.0;
    return x > limit ? limit : x >= -limit ? x : -limit;
}

/* The input coordinate of output x in a crop. */
SP_CUDA_FUNCTION sp_f64 sp_crop_coordinate(const sp_resize_constants &k, sp_f64 x)
{
    const sp_f64 last = (double)(k.in - 1);
    const sp_f64 reach = (sp_f64(k.crop_end) - k.crop_start) * last;
    const sp_f64 step = k.width == 1 ? reach / 2 : x * reach / (sp_f64(k.width) - 1);
    return step + sp_f64(k.crop_start) * last;
}

/* Numbers that depend on the roi only are rounded to float. */
SP_CUDA_FUNCTION sp_f64 sp_crop_coordinate_f32(const sp_resize_constants &k, sp_f64 x)
{
    const sp_f32 start = (float)k.crop_start, length = sp_f32((float)k.crop_end) - start;
    const sp_f32 last = (float)(k.in - 1);
    const sp_f64 first = (double)(start * last).v;
    if (k.width == 1) return first + (double)(length * last / 2).v;
    return x * (double)length.v * (double)(k.in - 1) / (sp_f64(k.width) - 1) + first;
}

/* Output length x in input elements; exact if the result is a double. */
SP_CUDA_FUNCTION sp_f64 sp_to_input(const sp_resize_constants &k, sp_f64 x)
{
    return x * k.numerator / k.denominator;
}

SP_CUDA_FUNCTION sp_f64 sp_input_coordinate(const sp_resize_constants &k, int64_t at)
{
    const sp_f64 x = (double)at, last = (double)(k.in - 1);
    switch (k.coordinate) {
    case SP_RESIZE_ALIGN_CORNERS:
        return k.width == 1 ? sp_f64(0) : x * last / (sp_f64(k.width) - 1);
    case SP_RESIZE_ASYMMETRIC:
        return sp_to_input(k, x);
    case SP_RESIZE_TF_HALF_PIXEL:
        return sp_to_input(k, x + 0.5);
    case SP_RESIZE_PYTORCH_HALF_PIXEL:
        return k.out == 1 ? sp_f64(0) : sp_to_input(k, x + 0.5) - 0.5;
    case SP_RESIZE_HALF_PIXEL_SYMMETRIC: {
        const sp_f64 part = sp_f64(1) - sp_f64((double)k.out) / k.width;
        return sp_f64((double)k.in) / 2 * part + sp_to_input(k, x + 0.5) - 0.5;
    }
    case SP_RESIZE_CROP:
        return sp_crop_coordinate(k, x);
    case SP_RESIZE_CROP_F32:
        return sp_crop_coordinate_f32(k, x);
    case SP_RESIZE_ASYMMETRIC_F32: {
        const sp_f64 place = sp_to_input(k, x);
        return place < 0x1p23 ? sp_f64((double)(float)place.v) : place;
    }
    default:
        return sp_to_input(k, x + 0.5) - 0.5;
    }
}

SP_CUDA_FUNCTION bool sp_is_outside(const sp_resize_constants &k, sp_f64 place)
{
    const bool is_crop = k.coordinate == SP_RESIZE_CROP || k.coordinate == SP_RESIZE_CROP_F32;
    return is_crop && !(place >= 0 && place <= (double)(k.in - 1));
}

SP_CUDA_FUNCTION int64_t sp_clamp_index(int64_t index, int64_t size)
{
    return index < 0 ? 0 : index < size ? index : size - 1;
}

/* The coordinates of output `i`: [outer, out, inner]. */
struct sp_resize_place {
    int64_t outer, at, inner;
};

SP_CUDA_FUNCTION sp_resize_place sp_place_resized(const sp_resize_constants &k, int64_t i)
{
    sp_resize_place place;
    place.inner = sp_take_coordinate(&i, k.inner);
    place.at = sp_take_coordinate(&i, k.out);
    place.outer = i;
    return place;
}

/* ---- nearest ---- */

SP_CUDA_FUNCTION int64_t sp_nearest_index(const sp_resize_constants &k, sp_f64 place)
{
    const sp_f64 low = sp_floor_of(place), part = place - low;
    bool is_up = part > 0;
    if (k.rounding == SP_RESIZE_PREFER_FLOOR) is_up = part > 0.5;
    if (k.rounding == SP_RESIZE_PREFER_CEIL) is_up = part >= 0.5;
    if (k.rounding == SP_RESIZE_FLOOR) is_up = false;
    return sp_clamp_index((int64_t)low.v + is_up, k.in);
}

template <class T>
SP_CUDA_FUNCTION void sp_resize_copy(const sp_gpu_bindings &bindings, const sp_resize_constants &k)
{
    const T *x = (const T *)bindings.at[0];
    T *y = (T *)bindings.at[1];
    const int64_t count = k.outer * k.out * k.inner;
#pragma unroll 1
    for (int64_t i = sp_thread_index(); i < count; i += sp_thread_stride()) {
        const sp_resize_place of = sp_place_resized(k, i);
        const sp_f64 place = sp_clamp_coordinate(sp_input_coordinate(k, of.at));
        T value = (T)k.outside;
        if (!sp_is_outside(k, place)) {
            value = x[(of.outer * k.in + sp_nearest_index(k, place)) * k.inner + of.inner];
        }
        y[i] = value;
    }
}

SP_CUDA_KERNEL(resize_nearest, sp_resize_constants)
{
    SP_BY_ELEMENT(k.element_bytes, sp_resize_copy, bindings, k);
}

/* ---- linear and cubic ---- */

/* The filter's value at a distance; cubic with coefficient a. */
SP_CUDA_FUNCTION sp_f64 sp_filter_value(const sp_resize_constants &k, sp_f64 distance)
{
    const sp_f64 x = distance < 0 ? -distance : distance;
    if (!k.is_cubic) return x < 1 ? sp_f64(1) - x : sp_f64(0);
    const sp_f64 a = (double)k.cubic;
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((x - 5) * x + 8) * x * a - sp_f64(4) * a : sp_f64(0);
}

/* The neighbours of one coordinate: `count` inputs from `first` on, which may be out of range. */
struct sp_neighbours {
    sp_f64 place, stretch; /* antialiasing: the filter is wider if the axis becomes shorter */
    sp_f64 total;          /* divisor of all weights */
    int64_t first, count;
};

SP_CUDA_FUNCTION sp_f64 sp_neighbour_weight(const sp_resize_constants &k, const sp_neighbours &n,
                                            int64_t index)
{
    if (k.excludes_outside && (index < 0 || index >= k.in)) return 0;
    return sp_filter_value(k, (sp_f64((double)index) - n.place) * n.stretch);
}

SP_CUDA_FUNCTION sp_neighbours sp_find_neighbours(const sp_resize_constants &k, sp_f64 place)
{
    sp_neighbours n = {place, 1, 1, 0, 0};
    if (k.is_antialiased && k.scale < 1) n.stretch = k.scale;
    const sp_f64 reach = sp_clamp_coordinate(sp_f64(k.is_cubic ? 2 : 1) / n.stretch);
    /* The left neighbour is strictly below the coordinate. */
    const int64_t left = -(int64_t)sp_floor_of(-place).v - 1;
    const int64_t start = (int64_t)sp_floor_of(-reach).v + 1;
    n.first = left + start;
    n.count = 2 - 2 * start;
    if (!k.is_antialiased && !k.excludes_outside) return n;
    n.total = 0;
#pragma unroll 1
    for (int64_t i = 0; i < n.count; i++) {
        n.total = n.total + sp_neighbour_weight(k, n, n.first + i);
    }
    return n;
}

/* Weights of f32 are rounded to float, and steps of a chain are fused. */
template <class T>
SP_CUDA_FUNCTION void sp_resize(const sp_gpu_bindings &bindings, const sp_resize_constants &k,
                                T outside)
{
    typedef typename T::element E;
    const E *x = (const E *)bindings.at[0];
    E *y = (E *)bindings.at[1];
    const int64_t count = k.outer * k.out * k.inner;
#pragma unroll 1
    for (int64_t i = sp_thread_index(); i < count; i += sp_thread_stride()) {
        const sp_resize_place of = sp_place_resized(k, i);
        const sp_f64 place = sp_clamp_coordinate(sp_input_coordinate(k, of.at));
        if (sp_is_outside(k, place)) {
            y[i] = outside.v;
            continue;
        }
        const sp_neighbours n = sp_find_neighbours(k, place);
        const E *from = x + of.outer * k.in * k.inner + of.inner;
        T sum = 0;
#pragma unroll 1
        for (int64_t at = 0; at < n.count; at++) {
            const T weight = (E)(sp_neighbour_weight(k, n, n.first + at) / n.total).v;
            if (weight == 0) continue;
            sum = sp_step(sum, weight, T(from[sp_clamp_index(n.first + at, k.in) * k.inner]));
        }
        y[i] = sp_store(sum);
    }
}

SP_CUDA_KERNEL(resize_f32, sp_resize_constants)
{
    sp_resize<sp_f32>(bindings, k, sp_float_from_bits((uint32_t)k.outside));
}

SP_CUDA_KERNEL(resize_f64, sp_resize_constants)
{
    sp_resize<sp_f64>(bindings, k, sp_double_from_bits((uint64_t)k.outside));
}
