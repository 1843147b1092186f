/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions that the program core does not have: of volumes, of other types, and transposed
 * (ops/cpu/conv/conv_any.inc.h, conv_f32.c, conv_transpose_f32.c). A thread has an output. */

/* ---- of volumes, and of f64, f16 and bf16 ---- */

/* An output of a convolution: the first coordinates of its window. */
struct sp_volume_place {
    int64_t z, y, x;
};

/* Index in x of the input of a tap of the group; -1 in the padding. */
SP_CUDA_FUNCTION int64_t sp_volume_index(const sp_conv_3d_constants &d,
                                         const sp_volume_place &place, int64_t tap)
{
    const sp_conv_constants &k = d.plane;
    const int64_t x = place.x + sp_take_coordinate(&tap, k.kernel_w) * k.dilation_w;
    const int64_t y = place.y + sp_take_coordinate(&tap, k.kernel_h) * k.dilation_h;
    const int64_t z = place.z + sp_take_coordinate(&tap, d.kernel_d) * d.dilation_d;
    if (x < 0 || y < 0 || z < 0 || x >= k.in_w || y >= k.in_h || z >= d.in_d) return -1;
    return ((tap * d.in_d + z) * k.in_h + y) * k.in_w + x;
}

template <class E>
SP_CUDA_FUNCTION sp_wide<E> sp_volume_sum(const sp_conv_3d_constants &d,
                                          const sp_volume_place &place, const E *x, const E *w,
                                          int64_t taps)
{
    typedef sp_wide<E> T;
    T sum = 0;
#pragma unroll 1
    for (int64_t first = 0; first < taps; first += d.plane.segment) {
        const int64_t left = taps - first;
        const int64_t end = left < d.plane.segment ? taps : first + d.plane.segment;
        T chain = 0;
#pragma unroll 4
        for (int64_t tap = first; tap < end; tap++) {
            const int64_t index = sp_volume_index(d, place, tap);
            const T value = index < 0 ? T(0) : sp_load(x[index]);
            chain = sp_step(chain, sp_load(w[tap]), value);
        }
        sum = sum + chain;
    }
    return sum;
}

/* Calls store(output, sum with the bias) for each output of this thread. */
template <class E, class Store>
SP_CUDA_FUNCTION void sp_convolve_volumes(const sp_gpu_bindings &bindings,
                                          const sp_conv_3d_constants &d, Store store)
{
    const sp_conv_constants &k = d.plane;
    const E *x = (const E *)bindings.at[0], *w = (const E *)bindings.at[1];
    const E *bias = k.has_bias ? (const E *)bindings.at[2] : nullptr;
    const int64_t in = d.in_d * k.in_h * k.in_w, out = d.out_d * k.out_h * k.out_w;
    const int64_t taps = k.channels * d.kernel_d * k.kernel_h * k.kernel_w;
    const int64_t count = k.planes * out;
#pragma unroll 1
    for (int64_t i = sp_thread_index(); i < count; i += sp_thread_stride()) {
        int64_t rest = i;
        sp_volume_place place;
        place.x = sp_take_coordinate(&rest, k.out_w) * k.stride_w - k.pad_left;
        place.y = sp_take_coordinate(&rest, k.out_h) * k.stride_h - k.pad_top;
        place.z = sp_take_coordinate(&rest, d.out_d) * d.stride_d - d.pad_front;
        const int64_t group = sp_quotient(rest, k.filters); /* of all images */
        const int64_t filter = sp_take_coordinate(&rest, k.groups * k.filters);
        sp_wide<E> sum =
            sp_volume_sum(d, place, x + group * k.channels * in, w + filter * taps, taps);
        if (bias) sum = sum + sp_load(bias[filter]);
        store(i, sum);
    }
}

SP_CUDA_KERNEL(conv_3d_f32, sp_conv_3d_constants)
{
    float *y = (float *)bindings.at[k.plane.has_bias ? 3 : 2];
    sp_convolve_volumes<float>(bindings, k, [&](int64_t i, sp_f32 sum) {
        y[i] = sp_activate(k.plane.activation, sp_store(sum));
    });
}

#define SP_CONV_ANY_KERNEL(suffix, E)                                                              \
    SP_CUDA_KERNEL(conv_any_##suffix, sp_conv_3d_constants)                                        \
    {                                                                                              \
        E *y = (E *)bindings.at[k.plane.has_bias ? 3 : 2];                                         \
        sp_convolve_volumes<E>(                                                                    \
            bindings, k, [&](int64_t i, sp_wide<E> sum) { y[i] = sp_stored<E>::from(sum); });      \
    }

SP_CONV_ANY_KERNEL(f64, double)
SP_CONV_ANY_KERNEL(f16, sp_f16)
SP_CONV_ANY_KERNEL(bf16, sp_bf16)

/* ---- transposed ---- */

/* The taps along one axis that have an input at a padded output coordinate: first, first + step ...
 * below `last`; their inputs are at begin, begin - back ... */
struct sp_tap_steps {
    int64_t first, step, last, begin, back;
};

/* The first tap whose distance from the coordinate is a multiple of the stride; `kernel` or more:
 * none. `step`: from one such tap to the next. */
SP_CUDA_FUNCTION int64_t sp_first_tap(int64_t place, int64_t stride, int64_t dilation,
                                      int64_t step, int64_t kernel)
{
    if (dilation == 1) return place - sp_quotient(place, stride) * stride;
    const int64_t most = step < kernel ? step : kernel;
    int64_t rest = place - sp_quotient(place, stride) * stride; /* of the distance */
    const int64_t less = dilation - sp_quotient(dilation, stride) * stride;
#pragma unroll 1
    for (int64_t tap = 0; tap < most; tap++) {
        if (rest == 0) return tap;
        rest -= less;
        if (rest < 0) rest += stride;
    }
    return kernel;
}

SP_CUDA_FUNCTION int64_t sp_common_divisor(int64_t a, int64_t b)
{
#pragma unroll 1
    while (b != 0) {
        const int64_t rest = a - sp_quotient(a, b) * b;
        a = b;
        b = rest;
    }
    return a;
}

SP_CUDA_FUNCTION sp_tap_steps sp_find_taps(const sp_window_constants &w, int axis, int64_t place)
{
    const int64_t stride = w.stride[axis], dilation = w.dilation[axis], kernel = w.kernel[axis];
    const int64_t divisor = dilation == 1 ? 1 : sp_common_divisor(stride, dilation);
    sp_tap_steps taps = {0, stride, kernel, 0, dilation};
    if (divisor > 1) {
        taps.step = sp_quotient(stride, divisor);
        taps.back = sp_quotient(dilation, divisor);
    }
    taps.first = sp_first_tap(place, stride, dilation, taps.step, kernel);
    const int64_t reach = dilation == 1 ? place + 1 : sp_quotient(place, dilation) + 1;
    if (reach < kernel) taps.last = reach; /* later taps are at a distance below 0 */
    if (taps.first >= taps.last) return taps;
    /* Inputs descend: without those beyond the end, and before the first. */
    taps.begin = sp_quotient(place - taps.first * dilation, stride);
    if (taps.begin >= w.in[axis]) {
        const int64_t over = taps.begin - w.in[axis];
        const int64_t skip = taps.back == 1 ? over + 1 : sp_quotient(over + taps.back, taps.back);
        taps.first += skip * taps.step;
        taps.begin -= skip * taps.back;
    }
    return taps;
}

/* The sum of one output of channel `filter` of a group. */
struct sp_transposed {
    const sp_conv_transpose_constants &k;
    const float *x, *w; /* of the image and group; of the first channel's filter */
    sp_tap_steps z, y, c;

    __device__ __forceinline__ sp_f32 sum() const
    {
        const sp_window_constants &window = k.window;
        const int64_t taps = window.kernel[0] * window.kernel[1] * window.kernel[2];
        const int64_t in = window.in[0] * window.in[1] * window.in[2];
        sp_f32 sum = 0.0f, chain = 0.0f;
        int64_t end = k.segment; /* the first tap after the segment */
#pragma unroll 1
        for (int64_t channel = 0; channel < k.channels; channel++) {
            const float *from = x + channel * in, *weights = w + channel * k.filters * taps;
            int64_t plane = z.begin;
#pragma unroll 1
            for (int64_t i = z.first; i < z.last; i += z.step, plane -= z.back) {
                int64_t row = y.begin;
#pragma unroll 1
                for (int64_t j = y.first; j < y.last; j += y.step, row -= y.back) {
                    const int64_t first = (i * window.kernel[1] + j) * window.kernel[2];
                    const float *inputs = from + (plane * window.in[1] + row) * window.in[2];
                    int64_t column = c.begin;
#pragma unroll 1
                    for (int64_t t = c.first; t < c.last; t += c.step, column -= c.back) {
                        const int64_t index = channel * taps + first + t;
                        if (index >= end) {
                            sum = sum + chain;
                            chain = 0.0f;
                            end = (index / k.segment + 1) * k.segment;
                        }
                        chain = sp_step(chain, sp_f32(weights[first + t]), sp_f32(inputs[column]));
                    }
                }
            }
        }
        return sum + chain;
    }
};

SP_CUDA_KERNEL(conv_transpose_f32, sp_conv_transpose_constants)
{
    const sp_window_constants &window = k.window;
    const float *x = (const float *)bindings.at[0], *w = (const float *)bindings.at[1];
    const float *bias = k.has_bias ? (const float *)bindings.at[2] : nullptr;
    float *y = (float *)bindings.at[k.has_bias ? 3 : 2];
    const int64_t in = window.in[0] * window.in[1] * window.in[2];
    const int64_t taps = window.kernel[0] * window.kernel[1] * window.kernel[2];
    const int64_t count = sp_window_outputs(window);
#pragma unroll 1
    for (int64_t i = sp_thread_index(); i < count; i += sp_thread_stride()) {
        const sp_window_place place = sp_place_window(window, i);
        const int64_t group = sp_quotient(place.plane, k.filters); /* of all images */
        int64_t image = place.plane;
        const int64_t filter = sp_take_coordinate(&image, k.groups * k.filters);
        int64_t of = filter; /* the filter's group, after the call */
        const int64_t in_group = sp_take_coordinate(&of, k.filters);
        const sp_transposed output = {k,
                                      x + group * k.channels * in,
                                      w + (of * k.channels * k.filters + in_group) * taps,
                                      sp_find_taps(window, 0, place.at[0] + window.pad[0]),
                                      sp_find_taps(window, 1, place.at[1] + window.pad[1]),
                                      sp_find_taps(window, 2, place.at[2] + window.pad[2])};
        const sp_f32 sum = output.sum();
        const float out = sp_store(bias ? sum + bias[filter] : sum);
        y[i] = sp_activate(k.activation, out);
    }
}
