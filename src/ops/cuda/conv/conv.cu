/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution as a product: rows are the filters of a group, columns the pixels of an output plane,
 * the depth runs over (channel, kernel row, kernel column). Taps in the padding are zeros. */

/* A tap as (channel, row, column). Kernel sizes have 31 bits, so the sum of two fits. */
template <class Int> struct sp_tap {
    Int channel;
    uint32_t row, column;
};

template <class Int> SP_CUDA_FUNCTION sp_tap<Int> sp_make_tap(const sp_conv_constants &k, int64_t index)
{
    sp_tap<Int> tap;
    tap.column = (uint32_t)sp_take_coordinate(&index, k.kernel_w);
    tap.row = (uint32_t)sp_take_coordinate(&index, k.kernel_h);
    tap.channel = (Int)index;
    return tap;
}

/* The right operand of a tile: the taps of one pixel per lane. */
template <class Int> struct sp_right_taps {
    const sp_conv_constants &k;
    const float *x;    /* of the group of the image */
    int row, row_step; /* this warp's first tap in a chunk; step to its next */
    bool has_pixel;
    Int y0, x0;       /* first coordinates of the pixel's window */
    sp_tap<Int> step; /* distance of this warp's taps */

    /* Loads a chunk to [tap][lane]. */
    __device__ __forceinline__ void load(const sp_steps<Int> &steps, float *to) const
    {
        if (!has_pixel || row >= steps.count) return;
        const Int height = (Int)k.in_h, width = (Int)k.in_w;
        sp_tap<Int> tap = sp_make_tap<Int>(k, steps.first + row);
#pragma unroll 1
        for (int i = row; i < steps.count; i += row_step) {
            const Int y = y0 + (Int)tap.row * (Int)k.dilation_h;
            const Int column = x0 + (Int)tap.column * (Int)k.dilation_w;
            float *place = to + i * SP_CUDA_LANES + sp_lane();
            if (y >= 0 && y < height && column >= 0 && column < width) {
                sp_copy_float(place, x + (tap.channel * height + y) * width + column);
            } else {
                *place = 0;
            }
            advance(tap);
        }
    }

    __device__ __forceinline__ void advance(sp_tap<Int> &tap) const
    {
        tap.column += step.column;
        tap.row += step.row;
        tap.channel += step.channel;
        if (tap.column >= (uint32_t)k.kernel_w) {
            tap.column -= (uint32_t)k.kernel_w;
            tap.row++;
        }
        if (tap.row >= (uint32_t)k.kernel_h) {
            tap.row -= (uint32_t)k.kernel_h;
            tap.channel++;
        }
    }
};

template <class Int>
SP_CUDA_FUNCTION sp_right_taps<Int> sp_make_right_taps(const sp_conv_constants &k, const float *x,
                                                       Int first_pixel, const sp_loader &loader)
{
    const Int pixel = first_pixel + sp_lane();
    int64_t row = pixel;
    const Int column = (Int)sp_take_coordinate(&row, k.out_w);
    const int step = loader.count / SP_CUDA_LANES;
    return {k,
            x,
            loader.index / SP_CUDA_LANES,
            step,
            pixel < (Int)(k.out_h * k.out_w),
            (Int)row * (Int)k.stride_h - (Int)k.pad_top,
            column * (Int)k.stride_w - (Int)k.pad_left,
            sp_make_tap<Int>(k, step)};
}

/* Is a channel one contiguous row of the right operand? */
SP_CUDA_FUNCTION bool sp_is_pointwise(const sp_conv_constants &k)
{
    return k.kernel_h == 1 && k.kernel_w == 1 && k.stride_h == 1 && k.stride_w == 1 &&
           k.pad_top == 0 && k.pad_left == 0 && k.in_h == k.out_h && k.in_w == k.out_w;
}

/* The outputs of a tile. */
template <class Int> struct sp_conv_output {
    const sp_conv_constants &k;
    const float *bias; /* of the tile's first filter, or nullptr */
    float *y;          /* the tile's first output */
    Int plane;

    __device__ __forceinline__ uint8_t activation() const
    {
        return k.activation;
    }

    __device__ __forceinline__ float addend(int r, int) const
    {
        return bias ? bias[r] : 0;
    }

    __device__ __forceinline__ float finish(float sum, float addend) const
    {
        return sp_canonical(bias ? __fadd_rn(sum, addend) : sum);
    }

    __device__ __forceinline__ void store(int r, int lane, float out) const
    {
        y[r * plane + lane] = out;
    }
};

/* The tile at (filter `first` of its group, `pixel`) of a plane: one group of one image. */
template <class Int>
SP_CUDA_FUNCTION void sp_conv_tile(const sp_gpu_bindings &bindings, const sp_conv_constants &k,
                                   const sp_place &place, float *pool, Int plane, Int first,
                                   Int pixel)
{
    const Int taps = (Int)(k.channels * k.kernel_h * k.kernel_w);
    const Int pixels = (Int)(k.out_h * k.out_w), filters = (Int)k.filters;
    const int rows = filters - first < place.rows() ? (int)(filters - first) : place.rows();
    int64_t image = plane;
    const Int filter = (Int)sp_take_coordinate(&image, k.groups) * filters + first; /* of all */
    const float *x = (const float *)bindings.at[0] + plane * (Int)(k.channels * k.in_h * k.in_w);
    const float *w = (const float *)bindings.at[1] + filter * taps;
    const float *bias = k.has_bias ? (const float *)bindings.at[2] + filter : nullptr;
    float *y = (float *)bindings.at[k.has_bias ? 3 : 2] + (plane * filters + first) * pixels;
    const sp_loader loader = sp_make_loader(place);
    const bool is_left_wide = sp_is_wide(w, taps) && (k.segment & 3) == 0;
    const sp_left_rows<Int> left = {w, taps, 1, rows, taps, (Int)k.segment, is_left_wide};
    const sp_conv_output<Int> output = {k, bias, y + pixel, pixels};
    if (sp_is_pointwise(k)) {
        const bool is_wide = sp_are_panels_wide(x, pixels, SP_GEMM_PANEL, pixels);
        const sp_right_panels<Int> right = sp_make_right_panels<Int>(
            x, pixels, SP_GEMM_PANEL, pixel, pixels, is_wide, loader);
        sp_load_first(pool, place, left, right);
        sp_run_tile(pool, place, left, right, loader, pixels - pixel, output);
    } else {
        const sp_right_taps<Int> right = sp_make_right_taps<Int>(k, x, pixel, loader);
        sp_load_first(pool, place, left, right);
        sp_run_tile(pool, place, left, right, loader, pixels - pixel, output);
    }
}

/* Tiles: x over the pixels, y over the filters of a group, z over the planes. */
template <class Int>
SP_CUDA_FUNCTION void sp_conv_tiles(const sp_gpu_bindings &bindings, const sp_conv_constants &k,
                                    float *pool)
{
    const sp_place place = sp_make_place({bindings.tile[0], bindings.tile[1], bindings.tile[2]});
    const Int pixels = (Int)(k.out_h * k.out_w), filters = (Int)k.filters, planes = (Int)k.planes;
#pragma unroll 1
    for (Int plane = blockIdx.z; plane * filters < planes; plane += gridDim.z) {
#pragma unroll 1
        for (Int first = (Int)blockIdx.y * place.rows(); first < filters;
             first += (Int)gridDim.y * place.rows()) {
#pragma unroll 1
            for (Int pixel = (Int)blockIdx.x * SP_CUDA_LANES; pixel < pixels;
                 pixel += (Int)gridDim.x * SP_CUDA_LANES) {
                sp_conv_tile<Int>(bindings, k, place, pool, plane, first, pixel);
            }
        }
    }
}

SP_CUDA_KERNEL(conv_f32, sp_conv_constants)
{
    SP_CUDA_SHARED(pool);
    sp_conv_tiles<int64_t>(bindings, k, (float *)pool);
}

/* The variant for offsets of 32 bits. */
SP_CUDA_KERNEL(conv_small_f32, sp_conv_constants)
{
    SP_CUDA_SHARED(pool);
    sp_conv_tiles<int>(bindings, k, (float *)pool);
}
