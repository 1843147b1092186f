/* SPDX-License-Identifier: Apache-2.0 */
/* Max pooling and convolution with one input channel per group: one thread per output. */

SP_CUDA_KERNEL(max_pool_f32, sp_pool_constants)
{
    const float *x = (const float *)bindings.at[0];
    float *y = (float *)bindings.at[1];
    const int64_t count = k.planes * k.out_h * k.out_w;
#pragma unroll 1
    for (int64_t i = sp_thread_index(); i < count; i += sp_thread_stride()) {
        int64_t plane = i;
        const int64_t x0 = sp_take_coordinate(&plane, k.out_w) * k.stride_w - k.pad_left;
        const int64_t y0 = sp_take_coordinate(&plane, k.out_h) * k.stride_h - k.pad_top;
        const sp_tap_range rows = sp_clip_taps(y0, k.dilation_h, k.kernel_h, k.in_h);
        const sp_tap_range columns = sp_clip_taps(x0, k.dilation_w, k.kernel_w, k.in_w);
        float best = __uint_as_float(0xff800000u); /* -inf */
        for (int64_t row = rows.first; row < rows.last; row++) {
            const float *from = x + (plane * k.in_h + y0 + row * k.dilation_h) * k.in_w + x0;
            for (int64_t column = columns.first; column < columns.last; column++) {
                const float value = from[column * k.dilation_w];
                best = value > best || value != value ? value : best;
            }
        }
        y[i] = sp_canonical(best);
    }
}

/* One output's sum. For common kernels the sizes are compile-time constants, so all taps load at
 * once; of these only the default has more than one segment. */
SP_CUDA_FUNCTION float sp_depthwise_sum(const sp_conv_constants &k, int64_t kernel_h,
                                          int64_t kernel_w, const float *plane, const float *w,
                                          int64_t y0, int64_t x0)
{
    const bool is_cut = kernel_h * kernel_w > SP_CONV_MAX_SEGMENT;
    int64_t left_over = k.segment;
    float acc = 0, sum = 0;
#pragma unroll
    for (int64_t i = 0; i < kernel_h; i++) {
        const int64_t y = y0 + i * k.dilation_h;
#pragma unroll
        for (int64_t j = 0; j < kernel_w; j++) {
            const int64_t x = x0 + j * k.dilation_w;
            const bool is_inside = y >= 0 && y < k.in_h && x >= 0 && x < k.in_w;
            const float value = is_inside ? __ldg(plane + y * k.in_w + x) : 0.0f;
            if (is_cut && left_over-- == 0) {
                sum = __fadd_rn(sum, acc);
                acc = 0;
                left_over = k.segment - 1;
            }
            acc = __fmaf_rn(__ldg(w + i * kernel_w + j), value, acc);
        }
    }
    return __fadd_rn(sum, acc);
}

SP_CUDA_KERNEL(conv_depthwise_f32, sp_conv_constants)
{
    const float *x = (const float *)bindings.at[0], *w = (const float *)bindings.at[1];
    const float *bias = k.has_bias ? (const float *)bindings.at[2] : nullptr;
    float *y = (float *)bindings.at[k.has_bias ? 3 : 2];
    const int64_t count = k.planes * k.out_h * k.out_w;
#pragma unroll 1
    for (int64_t i = sp_thread_index(); i < count; i += sp_thread_stride()) {
        int64_t plane = i;
        const int64_t x0 = sp_take_coordinate(&plane, k.out_w) * k.stride_w - k.pad_left;
        const int64_t y0 = sp_take_coordinate(&plane, k.out_h) * k.stride_h - k.pad_top;
        int64_t image = plane;
        const int64_t filter = sp_take_coordinate(&image, k.groups * k.filters);
        const float *from = x + sp_quotient(plane, k.filters) * k.in_h * k.in_w;
        const float *taps = w + filter * k.kernel_h * k.kernel_w;
        float out;
        if (k.kernel_h == 3 && k.kernel_w == 3) {
            out = sp_depthwise_sum(k, 3, 3, from, taps, y0, x0);
        } else if (k.kernel_h == 5 && k.kernel_w == 5) {
            out = sp_depthwise_sum(k, 5, 5, from, taps, y0, x0);
        } else {
            out = sp_depthwise_sum(k, k.kernel_h, k.kernel_w, from, taps, y0, x0);
        }
        if (bias) out = __fadd_rn(out, bias[filter]);
        y[i] = sp_activate(k.activation, sp_canonical(out));
    }
}
