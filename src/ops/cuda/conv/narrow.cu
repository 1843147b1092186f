/* SPDX-License-Identifier: Apache-2.0 */
/* Narrow convolutions (docs/decisions/0072): tiles of gemm/narrow.cuh whose rows are the pixels of all
 * images, and whose columns are the filters. The depth is (kernel row, kernel column, channel). */

/* Pixels on their way to [step][pixel]. A thread has some steps of one pixel; or, where the images are
 * rows of the depth, of four. */
template <class T> struct sp_narrow_pixels {
    static constexpr int pitch = T::pixel_pitch;
    static constexpr int step = T::group_threads / T::rows, count = T::chunk / step;
    static constexpr int wide_step = step * 4, wide_count = T::chunk / wide_step;
    static_assert(T::group_threads % T::rows == 0 && wide_count * wide_step == T::chunk,
                  "threads copy equal parts");
    const sp_conv_constants &k;
    const float *image; /* the thread's; with is_wide, its first pixel */
    int64_t plane;      /* between channels */
    int64_t depth;
    int64_t y, x; /* of the pixel's window */
    int first;    /* step of the thread */
    int place;    /* in a stage, in floats */
    bool is_there, is_wide;

    __device__ __forceinline__ void copy(int chunk, char *stage) const
    {
        float *to = (float *)stage + place;
        const int64_t d = (int64_t)chunk * T::chunk + first;
        if (is_wide) copy_planes(d, to);
        else if (k.channels % T::chunk == 0) copy_tap(d, to);
        else copy_steps(d, to);
    }

    __device__ __forceinline__ void copy_planes(int64_t d, float *to) const
    {
        const float *from = image + d * plane;
#pragma unroll
        for (int i = 0; i < wide_count; i++) {
            sp_copy_vector_if(is_there && d + i * wide_step < depth, to + i * wide_step * pitch,
                              from);
            from += wide_step * plane;
        }
    }

    /* Where a tap is in the first channel; false: in the padding. */
    __device__ __forceinline__ bool find(int64_t row, int64_t column, int64_t *at) const
    {
        const int64_t in_y = y + row * k.dilation_h, in_x = x + column * k.dilation_w;
        *at = in_y * k.in_w + in_x;
        return is_there && (uint64_t)in_y < (uint64_t)k.in_h && (uint64_t)in_x < (uint64_t)k.in_w;
    }

    /* Channels of one tap. */
    __device__ __forceinline__ void copy_tap(int64_t d, float *to) const
    {
        const int64_t tap = sp_quotient(d, k.channels), row = sp_quotient(tap, k.kernel_w);
        int64_t at;
        const bool is_inside = find(row, tap - row * k.kernel_w, &at);
        const float *from = image + (d - tap * k.channels) * plane + at;
#pragma unroll
        for (int i = 0; i < count; i++) {
            sp_copy_float_if(is_inside, to + i * step * pitch, from);
            from += step * plane;
        }
    }

    __device__ __forceinline__ void copy_steps(int64_t d, float *to) const
    {
        const int64_t tap = sp_quotient(d, k.channels);
        int64_t row = sp_quotient(tap, k.kernel_w), column = tap - row * k.kernel_w, at;
        int64_t channel = d - tap * k.channels;
        bool is_inside = find(row, column, &at);
#pragma unroll 1
        for (int i = 0; i < count; i++, d += step) {
            sp_copy_float_if(is_inside && d < depth, to + i * step * pitch,
                             image + channel * plane + at);
            channel += step;
            if (channel < k.channels) continue;
#pragma unroll 1
            do {
                channel -= k.channels;
                if (++column == k.kernel_w) {
                    column = 0;
                    row++;
                }
            } while (channel >= k.channels);
            is_inside = find(row, column, &at);
        }
    }
};

template <class T>
SP_CUDA_FUNCTION sp_narrow_pixels<T> sp_make_narrow_pixels(const sp_conv_constants &k, const float *x,
                                                           int64_t first, int64_t all, int thread)
{
    const int64_t plane = k.in_h * k.in_w, pixels = k.out_h * k.out_w;
    const int64_t depth = k.channels * k.kernel_h * k.kernel_w;
    /* Of a pointwise convolution the lowering makes one long row. */
    const bool is_wide = k.kernel_w == 1 && k.kernel_h == 1 && k.in_h == 1 && k.out_h == 1 &&
                         k.stride_w == 1 && k.pad_left == 0 && k.in_w == k.out_w &&
                         (pixels & 3) == 0 && ((uint64_t)x & 15) == 0;
    constexpr int quads = T::rows / 4;
    const int pixel = is_wide ? thread % quads * 4 : thread % T::rows;
    const int step = is_wide ? thread / quads : thread / T::rows;
    const int64_t index = first + pixel, image = sp_quotient(index, pixels);
    const int64_t at = index - image * pixels, row = sp_quotient(at, k.out_w);
    return {k,
            x + image * k.channels * plane + (is_wide ? at : 0),
            plane,
            depth,
            row * k.stride_h - k.pad_top,
            (at - row * k.out_w) * k.stride_w - k.pad_left,
            step,
            step * T::pixel_pitch + pixel,
            index < all,
            is_wide};
}

/* The outputs of a thread: pixels `row` and so on, filters `column` and so on. */
template <class T> struct sp_narrow_conv_output {
    typedef typename T::element E;
    const sp_conv_constants &k;
    const void *bias; /* or nullptr */
    void *y;
    int64_t row, column, all, pixels;

    /* Where pixel `i` is in the first filter's plane. */
    __device__ __forceinline__ int64_t place(int i) const
    {
        const int64_t image = sp_quotient(row + i, pixels);
        return image * k.filters * pixels + (row + i - image * pixels);
    }

    template <bool is_half>
    __device__ __forceinline__ void store(int64_t to, int64_t filter, float sum) const
    {
        if (filter >= k.filters) return;
        if (bias != nullptr) sum = __fadd_rn(sum, sp_narrow_load<E, is_half>(bias, filter));
        sum = sp_canonical(sum);
        if (k.activation == SP_ACTIVATION_RELU) sum = sp_store(sp_reluf(sum));
        sp_narrow_store<E, is_half>(y, to + filter * pixels, sum);
    }

    template <bool is_half>
    __device__ __forceinline__ void finish(const sp_narrow_sums<T> &sum) const
    {
#pragma unroll
        for (int i = 0; i < T::down * 2; i++) {
            if (row + i * 8 >= all) continue;
            const int64_t to = place(i * 8);
#pragma unroll
            for (int j = 0; j < T::across * 2; j++) {
                store<is_half>(to, column + j / 2 * 8 + j % 2,
                               sum.at[i / 2][j / 2][i % 2 * 2 + j % 2]);
            }
        }
    }

    /* Applies a long activation to this thread's outputs, which are floats. */
    __device__ __forceinline__ void activate() const
    {
#pragma unroll 1
        for (int i = 0; i < T::down * 2 && row + i * 8 < all; i++) {
            const int64_t at = place(i * 8);
#pragma unroll 1
            for (int j = 0; j < T::across * 2; j++) {
                const int64_t filter = column + j / 2 * 8 + j % 2;
                float *to = (float *)y + at + filter * pixels;
                if (filter < k.filters) *to = sp_activate(k.activation, *to);
            }
        }
    }
};

/* The tile at (row, column). */
template <class T>
SP_CUDA_FUNCTION void sp_narrow_conv_tile(const sp_gpu_bindings &bindings, const sp_conv_constants &k,
                                          const sp_narrow_place &place, char *pool, int64_t row,
                                          int64_t column, int64_t all)
{
    const auto left =
        sp_make_narrow_pixels<T>(k, (const float *)bindings.at[0], row, all, place.thread);
    const auto right = sp_make_narrow_lines<T::columns, T::group_threads, T::pitch>(bindings.at[1], k.filters,
                                                                          column, place.thread);
    sp_narrow_sums<T> sum;
    sp_narrow_run<T>(pool + place.group * T::group_bytes,
                     (float *)(pool + T::groups * T::group_bytes),
                     (int)sp_cuda_tiles(left.depth, T::chunk), place, left, right, sum);
    if (place.group == 0) {
        const int lane = place.thread % 32;
        const sp_narrow_conv_output<T> output = {k,
                                                 k.has_bias ? bindings.at[2] : nullptr,
                                                 bindings.at[k.has_bias ? 3 : 2],
                                                 row + place.row + lane / 4,
                                                 column + place.column + lane % 4 * 2,
                                                 all,
                                                 k.out_h * k.out_w};
        if (k.is_half) output.template finish<true>(sum);
        else output.template finish<false>(sum);
        if (k.activation > SP_ACTIVATION_RELU) output.activate();
    }
    __syncthreads(); /* the next tile may use the memory */
}

/* Blocks: x over the filters, so that those of the same pixels run together, y over the pixels. */
template <class T>
SP_CUDA_FUNCTION void sp_narrow_conv(const sp_gpu_bindings &bindings, const sp_conv_constants &k,
                                     char *pool)
{
    const sp_narrow_place place = sp_make_narrow_place<T>();
    const int64_t all = sp_cuda_conv_images(&k) * k.out_h * k.out_w;
#pragma unroll 1
    for (int64_t row = (int64_t)blockIdx.y * T::rows; row < all;
         row += (int64_t)gridDim.y * T::rows) {
#pragma unroll 1
        for (int64_t column = (int64_t)blockIdx.x * T::columns; column < k.filters;
             column += (int64_t)gridDim.x * T::columns) {
            sp_narrow_conv_tile<T>(bindings, k, place, pool, row, column, all);
        }
    }
}

SP_CUDA_CONV_TILE_LIST(SP_NARROW_TILE)

#define SP_NARROW_CONV_ENTRY(name, T, blocks)                                                      \
    SP_CUDA_KERNEL_ENTRY(name, sp_conv_constants, __launch_bounds__(T::threads, blocks), (void)0)  \
    {                                                                                              \
        SP_CUDA_SHARED(pool);                                                                      \
        sp_narrow_conv<T>(bindings, k, (char *)pool);                                              \
    }
#define SP_NARROW_CONVS(suffix)                                                                    \
    SP_NARROW_CONV_ENTRY(conv_narrow_##suffix, sp_narrow_few_pixels<sp_tensor_##suffix>, 2)        \
    SP_NARROW_CONV_ENTRY(conv_narrow_deep_##suffix, sp_narrow_deep_pixels<sp_tensor_##suffix>, 1)  \
    SP_NARROW_CONV_ENTRY(conv_narrow_64_##suffix, sp_narrow_64_pixels<sp_tensor_##suffix>, 2)      \
    SP_NARROW_CONV_ENTRY(conv_narrow_wide_##suffix, sp_narrow_wide_pixels<sp_tensor_##suffix>, 2)

SP_NARROW_CONVS(tf32)
SP_NARROW_CONVS(f16)
SP_NARROW_CONVS(bf16)
