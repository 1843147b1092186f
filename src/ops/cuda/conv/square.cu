/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution by squares (gemm/square.cuh): rows are the filters of a group, columns the pixels of
 * all images, so that few pixels of many images fill squares, too. */

/* A step of a segment: where its element is, from the first of the window on, and its row and column
 * in the window. All segments have the same. */
struct sp_square_tap {
    int offset;
    uint32_t row, column;
};

static_assert(sizeof(sp_square_tap) * SP_CONV_MAX_SEGMENT == SP_CUDA_TAPS_BYTES,
              "as the host counts it");

/* Where a column is. */
struct sp_square_pixel {
    int image, row, column;
};

SP_CUDA_FUNCTION sp_square_pixel sp_make_square_pixel(const sp_conv_constants &k, int index)
{
    sp_square_pixel pixel;
    pixel.row = index / (int)k.out_w;
    pixel.column = index - pixel.row * (int)k.out_w;
    pixel.image = pixel.row / (int)k.out_h;
    pixel.row -= pixel.image * (int)k.out_h;
    return pixel;
}

/* Bit i: is element i of the window inside? */
SP_CUDA_FUNCTION uint32_t sp_square_inside(int first, int step, int taps, int size)
{
    uint32_t inside = 0;
#pragma unroll 1
    for (int i = 0; i < taps; i++, first += step) {
        if (first >= 0 && first < size) inside |= 1u << i;
    }
    return inside;
}

/* The windows: a thread loads some steps of one pixel's. */
template <class S> struct sp_square_taps {
    static constexpr int depth_step = S::threads / S::width;
    const float *window; /* the pixel's, in the first channel of the segment */
    const sp_square_tap *taps;
    uint32_t rows, columns; /* that are inside */
    int step;               /* of the segment */
    int segment_floats;     /* between the channels of segments */

    /* The next `count` steps to [depth][pixel]; zeros outside. */
    __device__ __forceinline__ void load(int count, float *to)
    {
        const int first = (int)threadIdx.x / S::width;
        to += first * S::width + (int)threadIdx.x % S::width;
#pragma unroll
        for (int i = 0; i < S::right_words * 4; i++) {
            const int k = first + i * depth_step;
            sp_square_tap tap = {0, 0, 0};
            if (k < count) tap = taps[step + k];
            const bool is_inside = k < count && (rows >> tap.row & columns >> tap.column & 1) != 0;
            sp_copy_float_if(is_inside, to + i * depth_step * S::width, window + tap.offset);
        }
        step += count;
    }

    /* To a segment `count` segments on. */
    __device__ __forceinline__ void next_segment(int64_t, int count)
    {
        step = 0;
        window += count * segment_floats;
    }
};

template <class S>
SP_CUDA_FUNCTION sp_square_taps<S> sp_make_square_taps(const sp_conv_constants &k, const float *x,
                                                          const sp_square_tap *taps, int first,
                                                          int columns)
{
    const int index = first + (int)threadIdx.x % S::width;
    const int height = (int)k.in_h, width = (int)k.in_w, plane = height * width;
    sp_square_taps<S> right = {x, taps, 0, 0, 0, 0};
    right.segment_floats = (int)(k.segment / (k.kernel_h * k.kernel_w)) * plane;
    if (index >= columns) return right;
    const sp_square_pixel pixel = sp_make_square_pixel(k, index);
    const int y0 = pixel.row * (int)k.stride_h - (int)k.pad_top;
    const int x0 = pixel.column * (int)k.stride_w - (int)k.pad_left;
    right.window += pixel.image * (int)(k.groups * k.channels) * plane + y0 * width + x0;
    right.rows = sp_square_inside(y0, (int)k.dilation_h, (int)k.kernel_h, height);
    right.columns = sp_square_inside(x0, (int)k.dilation_w, (int)k.kernel_w, width);
    return right;
}

/* The table of a segment. Longer kernels than a segment do not come here. */
SP_CUDA_FUNCTION void sp_fill_square_taps(const sp_conv_constants &k, int threads, sp_square_tap *taps)
{
    const int width = (int)k.kernel_w, height = (int)k.kernel_h;
#pragma unroll 1
    for (int i = (int)threadIdx.x; i < (int)k.segment; i += threads) {
        const int channel = i / (width * height), row = i / width % height, column = i % width;
        const int y = channel * (int)k.in_h + row * (int)k.dilation_h;
        taps[i] = {y * (int)k.in_w + column * (int)k.dilation_w, (uint32_t)row, (uint32_t)column};
    }
    __syncthreads();
}

/* Of a pointwise convolution whose planes have a multiple of four pixels: a thread's four columns are
 * one word of each channel. */
template <class S>
SP_CUDA_FUNCTION sp_square_panels<S> sp_make_square_planes(const sp_conv_constants &k,
                                                              const float *x, int first, int columns)
{
    constexpr int words_of_step = sp_square_panels<S>::words_of_step;
    const int pixels = (int)(k.out_h * k.out_w);
    const int index = first + (int)threadIdx.x % words_of_step * 4;
    const int image = index / pixels;
    const float *at = x + image * (int)(k.groups * k.channels) * pixels + (index - image * pixels) +
                      (int)threadIdx.x / words_of_step * pixels;
    return {at, pixels, index < columns ? 4 : 0, true};
}

/* ---- the outputs ---- */

/* Four columns: their places in the first filter's planes. */
struct sp_square_pixels {
    int at[4];
    int count;
};

struct sp_conv_square_output {
    const sp_conv_constants &k;
    const float *bias;         /* of the tile's first filter, or nullptr */
    float *y;                  /* the plane of the tile's first filter in the first image */
    int column, column_count;  /* the tile's first; of all */
    int pixels;
    bool is_wide; /* four columns can be stored at once */

    __device__ __forceinline__ uint8_t activation() const
    {
        return k.activation;
    }

    __device__ __forceinline__ sp_square_pixels columns(int first) const
    {
        const int index = column + first, left_over = column_count - index;
        const int image_floats = (int)(k.groups * k.filters) * pixels;
        int image = index / pixels, pixel = index - image * pixels;
        sp_square_pixels to;
        to.count = left_over < 4 ? left_over : 4;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            to.at[i] = image * image_floats + pixel;
            if (++pixel < pixels) continue;
            pixel = 0;
            image++;
        }
        return to;
    }

    __device__ __forceinline__ float4 addend(const sp_square_pixels &, int r) const
    {
        const float value = bias ? bias[r] : 0;
        return {value, value, value, value};
    }

    __device__ __forceinline__ float finish(float sum, float addend) const
    {
        return sp_canonical(bias ? __fadd_rn(sum, addend) : sum);
    }

    __device__ __forceinline__ void store(const sp_square_pixels &to, int r, const float4 &out) const
    {
        float *plane = y + r * pixels;
        if (is_wide && to.count == 4) {
            *(float4 *)(plane + to.at[0]) = out;
            return;
        }
        if (to.count > 0) plane[to.at[0]] = out.x;
        if (to.count > 1) plane[to.at[1]] = out.y;
        if (to.count > 2) plane[to.at[2]] = out.z;
        if (to.count > 3) plane[to.at[3]] = out.w;
    }
};

/* ---- the kernels ---- */

SP_CUDA_FUNCTION int sp_conv_columns(const sp_conv_constants &k)
{
    return (int)(sp_cuda_conv_images(&k) * k.out_h * k.out_w);
}

/* The tile of a group at filter `first` and a column. */
template <class S, class Blocks>
SP_CUDA_FUNCTION void sp_conv_square(const sp_gpu_bindings &bindings, const sp_conv_constants &k,
                                     const Blocks &blocks, int first, int column, float *pool)
{
    sp_square_tap *taps = (sp_square_tap *)pool;
    pool += SP_CUDA_TAPS_BYTES / 4;
    const int depth = (int)(k.channels * k.kernel_h * k.kernel_w), filters = (int)k.filters;
    const int pixels = (int)(k.out_h * k.out_w), columns = sp_conv_columns(k);
    const int group = (int)blockIdx.z;
    const float *x = (const float *)bindings.at[0] + group * (int)(k.channels * k.in_h * k.in_w);
    const float *w = (const float *)bindings.at[1] + (group * filters + first) * depth;
    const float *bias = k.has_bias ? (const float *)bindings.at[2] + group * filters + first : nullptr;
    float *y = (float *)bindings.at[k.has_bias ? 3 : 2];
    const bool is_wide = (pixels & 3) == 0 && sp_is_wide(y, 0);
    const int rows = filters - first, segment = (int)k.segment;
    const sp_conv_square_output output = {k, bias, y + (group * filters + first) * pixels,
                                          column, columns, pixels, is_wide};
    const auto left = sp_make_square_left<S>(w, depth, 1, rows);
    if (sp_is_pointwise(k) && (pixels & 3) == 0 && sp_is_wide((const float *)bindings.at[0], 0)) {
        const auto right = sp_make_square_planes<S>(k, x, column, columns);
        blocks.template run<S>(pool, left, right, rows, depth, segment, output);
    } else {
        sp_fill_square_taps(k, S::threads, taps);
        const auto right = sp_make_square_taps<S>(k, x, taps, column, columns);
        blocks.template run<S>(pool, left, right, rows, depth, segment, output);
    }
}

/* Squares: x over the pixels of all images, y over the filters of a group, z over the groups. */
template <class S>
SP_CUDA_FUNCTION void sp_conv_squares(const sp_gpu_bindings &bindings, const sp_conv_constants &k,
                                      float *pool)
{
    sp_conv_square<S>(bindings, k, sp_square_alone(), (int)blockIdx.y * S::height,
                      (int)blockIdx.x * S::width, pool);
}

/* Tiles by several blocks each, along x: of the pixels, of the filters. z over the groups. */
template <class S>
SP_CUDA_FUNCTION void sp_conv_teams(const sp_gpu_bindings &bindings, const sp_conv_constants &k,
                                    float *pool)
{
    const sp_square_team team = sp_make_square_team((int)bindings.tile[1], SP_CUDA_TEAM);
    const int across = (int)sp_cuda_tiles(sp_conv_columns(k), S::width);
    if (!team.has_part(across * sp_cuda_tiles(k.filters, S::height))) return;
    const int tile = (int)team.tile, first = tile / across;
    sp_conv_square<S>(bindings, k, team, first * S::height, (tile - first * across) * S::width,
                      pool);
}

SP_CUDA_KERNEL_OF(conv_square_128_f32, sp_conv_constants, sp_square_128::threads, 2)
{
    SP_CUDA_SHARED(pool);
    sp_conv_squares<sp_square_128>(bindings, k, (float *)pool);
}

SP_CUDA_KERNEL_OF(conv_square_64_f32, sp_conv_constants, sp_square_64::threads, 4)
{
    SP_CUDA_SHARED(pool);
    sp_conv_squares<sp_square_64>(bindings, k, (float *)pool);
}

SP_CUDA_KERNEL_OF_CLUSTERS(conv_team_f32, sp_conv_constants, SP_CUDA_TEAM_THREADS, 4, SP_CUDA_TEAM)
{
    SP_CUDA_SHARED(pool);
    sp_conv_teams<sp_team_high>(bindings, k, (float *)pool);
}
