/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution as a product: rows are the filters of a group, columns the pixels of an output plane,
 * the depth runs over (channel, kernel row, kernel column). Taps in the padding are zeros. */

/* A tap as (channel, row, column). Kernel sizes have 31 bits, so the sum of two fits. */
struct sp_tap {
    int64_t channel;
    uint32_t row, column;
};

SP_CUDA_FUNCTION sp_tap sp_make_tap(const sp_conv_constants &k, int64_t index)
{
    sp_tap tap;
    tap.column = (uint32_t)sp_take_coordinate(&index, k.kernel_w);
    tap.row = (uint32_t)sp_take_coordinate(&index, k.kernel_h);
    tap.channel = index;
    return tap;
}

/* The right operand of a tile: the taps of one pixel per lane. Its chunks are loaded in order. */
struct sp_right_taps {
    const sp_conv_constants &k;
    const float *x; /* of the group of the image */
    int64_t depth;
    int row, row_step; /* this warp's first tap in a chunk; step to its next */
    bool has_pixel;
    int64_t y0, x0; /* first coordinates of the pixel's window */
    sp_tap next;    /* this warp's next tap */
    sp_tap step;    /* distance to the next */

    /* Loads the chunk from `first` on to [tap][lane]. */
    template <int R> __device__ __forceinline__ void load(int64_t first, float *to)
    {
        const int64_t left_over = has_pixel ? depth - first : 0;
#pragma unroll 1
        for (int i = row; i < sp_chunk<R>::depth && i < left_over; i += row_step) {
            const int64_t y = y0 + next.row * k.dilation_h,
                          column = x0 + next.column * k.dilation_w;
            float *place = to + i * SP_CUDA_LANES + sp_lane();
            if (y >= 0 && y < k.in_h && column >= 0 && column < k.in_w) {
                sp_copy_1(place, x + (next.channel * k.in_h + y) * k.in_w + column);
            } else {
                *place = 0;
            }
            advance();
        }
    }

    __device__ __forceinline__ void advance()
    {
        next.column += step.column;
        next.row += step.row;
        next.channel += step.channel;
        if (next.column >= (uint32_t)k.kernel_w) {
            next.column -= (uint32_t)k.kernel_w;
            next.row++;
        }
        if (next.row >= (uint32_t)k.kernel_h) {
            next.row -= (uint32_t)k.kernel_h;
            next.channel++;
        }
    }
};

SP_CUDA_FUNCTION sp_right_taps sp_make_right_taps(const sp_conv_constants &k, const float *x,
                                                  int64_t first_pixel, const sp_loader &loader)
{
    const int64_t pixel = first_pixel + sp_lane();
    int64_t row = pixel;
    const int64_t column = sp_take_coordinate(&row, k.out_w);
    const int first_tap = loader.index < 0 ? 0 : loader.index / SP_CUDA_LANES;
    const int step = loader.count / SP_CUDA_LANES;
    return {k,
            x,
            k.channels * k.kernel_h * k.kernel_w,
            first_tap,
            step,
            pixel < k.out_h * k.out_w,
            row * k.stride_h - k.pad_top,
            column * k.stride_w - k.pad_left,
            sp_make_tap(k, first_tap),
            sp_make_tap(k, step)};
}

/* Is a channel one contiguous row of the right operand? */
SP_CUDA_FUNCTION bool sp_is_pointwise(const sp_conv_constants &k)
{
    return k.kernel_h == 1 && k.kernel_w == 1 && k.stride_h == 1 && k.stride_w == 1 &&
           k.pad_top == 0 && k.pad_left == 0 && k.in_h == k.out_h && k.in_w == k.out_w;
}

/* The outputs of a tile. */
struct sp_conv_output {
    const sp_conv_constants &k;
    const float *bias; /* of the tile's first filter, or nullptr */
    float *y;          /* the tile's first output */
    int64_t plane;

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
SP_CUDA_FUNCTION void sp_conv_tile(const sp_gpu_bindings &bindings, const sp_conv_constants &k,
                                   float *pool, int64_t plane, int64_t first, int64_t pixel)
{
    const int64_t taps = k.channels * k.kernel_h * k.kernel_w;
    const int64_t pixels = k.out_h * k.out_w;
    const int64_t tile_rows = sp_cuda_conv_rows(&k) * SP_CUDA_WARPS;
    const int64_t rows = k.filters - first < tile_rows ? k.filters - first : tile_rows;
    int64_t image = plane;
    const int64_t filter = sp_take_coordinate(&image, k.groups) * k.filters + first; /* of all */
    const float *x = (const float *)bindings.at[0] + plane * k.channels * k.in_h * k.in_w;
    const float *w = (const float *)bindings.at[1] + filter * taps;
    const float *bias = k.has_bias ? (const float *)bindings.at[2] + filter : nullptr;
    float *y = (float *)bindings.at[k.has_bias ? 3 : 2] + (plane * k.filters + first) * pixels;
    const sp_loader loader = sp_make_loader(rows);
    const sp_left_rows left = sp_make_left_rows(w, taps, 1, rows, taps, k.segment);
    const sp_conv_output output = {k, bias, y + pixel, pixels};
    if (sp_is_pointwise(k)) {
        sp_right_panels right =
            sp_make_right_panels(x, pixels, SP_GEMM_PANEL, taps, pixel, pixels, loader);
        sp_run_tile(pool, left, right, loader, pixels - pixel, output);
    } else {
        sp_right_taps right = sp_make_right_taps(k, x, pixel, loader);
        sp_run_tile(pool, left, right, loader, pixels - pixel, output);
    }
}

/* Tiles: x over the pixels, y over the filters of a group, z over the planes. */
SP_CUDA_KERNEL(conv_f32, sp_conv_constants)
{
    __shared__ float4 pool[SP_PRODUCT_POOL];
    const int64_t tile_rows = sp_cuda_conv_rows(&k) * SP_CUDA_WARPS;
    const int64_t pixels = k.out_h * k.out_w;
#pragma unroll 1
    for (int64_t plane = blockIdx.z; plane * k.filters < k.planes; plane += gridDim.z) {
#pragma unroll 1
        for (int64_t first = blockIdx.y * tile_rows; first < k.filters;
             first += gridDim.y * tile_rows) {
#pragma unroll 1
            for (int64_t pixel = (int64_t)blockIdx.x * SP_CUDA_LANES; pixel < pixels;
                 pixel += (int64_t)gridDim.x * SP_CUDA_LANES) {
                sp_conv_tile(bindings, k, (float *)pool, plane, first, pixel);
            }
        }
    }
}
