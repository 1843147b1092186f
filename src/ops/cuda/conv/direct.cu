/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution of images by windows of 3 or 5 columns, where a product would load each element once for
 * each tap: a block has a part of one image in shared memory, with the rows and columns that windows
 * reach beyond it, and a thread SP_CUDA_DIRECT_FILTERS filters of SP_CUDA_DIRECT_COLUMNS neighbouring
 * pixels, whose windows share what it has read. A sum is one chain, in the order of any other
 * convolution: (channel, kernel row, kernel column). */

static_assert(SP_CUDA_DIRECT_THREADS / SP_CUDA_DIRECT_WORDS * SP_CUDA_DIRECT_FILTERS ==
                  SP_CUDA_DIRECT_HEIGHT,
              "threads have all filters of a block");

/* What a block computes. */
struct sp_direct_tile {
    const float *x;                 /* the group's first channel of the image */
    const float *w;                 /* the tile's first filter */
    int first_row, first_column;    /* of the input; may be in the padding */
    int in_rows, in_columns, pitch; /* of a channel in shared memory */
    int filters;                    /* that the group has from the first on */
    int taps, depth;                /* of a channel; of all */
};

/* The channels of a chunk to [channel][row][pitch]; zeros outside the image. Warps take turns with the
 * rows. */
SP_CUDA_FUNCTION void sp_direct_load_image(const sp_conv_constants &k, const sp_direct_tile &tile,
                                           int channel, float *to)
{
    constexpr int warps = SP_CUDA_DIRECT_THREADS / SP_CUDA_LANES;
    const int height = (int)k.in_h, width = (int)k.in_w, channels = (int)k.channels;
    const int left = channels - channel;
    const int count = left < SP_CUDA_DIRECT_CHANNELS ? left : SP_CUDA_DIRECT_CHANNELS;
    int c = 0;
#pragma unroll 1
    for (int row = (int)threadIdx.x / SP_CUDA_LANES;; row += warps) {
        for (; row >= tile.in_rows; row -= tile.in_rows) c++;
        if (c >= count) return;
        const int y = tile.first_row + row;
        const bool has_row = y >= 0 && y < height;
        const float *from = tile.x + ((channel + c) * height + y) * width + tile.first_column;
        float *place = to + (c * tile.in_rows + row) * tile.pitch;
#pragma unroll 1
        for (int i = sp_lane(); i < tile.in_columns; i += SP_CUDA_LANES) {
            const int column = tile.first_column + i;
            sp_copy_float_if(has_row && column >= 0 && column < width, place + i, from + i);
        }
    }
}

/* Their weights to [tap][filter]; zeros for filters that the group does not have. */
SP_CUDA_FUNCTION void sp_direct_load_weights(const sp_direct_tile &tile, int channel, float *to)
{
    constexpr int filters = SP_CUDA_DIRECT_HEIGHT;
    const int filter = (int)threadIdx.x % filters, first = channel * tile.taps;
    const int count = SP_CUDA_DIRECT_CHANNELS * tile.taps;
    const float *from = tile.w + filter * tile.depth + first;
#pragma unroll 4
    for (int i = (int)threadIdx.x / filters; i < count; i += SP_CUDA_DIRECT_THREADS / filters) {
        sp_copy_float_if(filter < tile.filters && first + i < tile.depth, to + i * filters + filter,
                         from + i);
    }
}

/* The chains of a thread. */
struct sp_direct_chains {
    float at[SP_CUDA_DIRECT_FILTERS * SP_CUDA_DIRECT_COLUMNS];

    /* One tap of all of them. */
    template <int step>
    __device__ __forceinline__ void add(const float *weights, const float *elements)
    {
#pragma unroll
        for (int f = 0; f < SP_CUDA_DIRECT_FILTERS; f += 4) {
            const float4 w = *(const float4 *)(weights + f);
#pragma unroll
            for (int p = 0; p < SP_CUDA_DIRECT_COLUMNS; p++) {
                float *chain = at + f * SP_CUDA_DIRECT_COLUMNS + p;
                constexpr int next = SP_CUDA_DIRECT_COLUMNS;
                chain[0] = __fmaf_rn(w.x, elements[p * step], chain[0]);
                chain[next] = __fmaf_rn(w.y, elements[p * step], chain[next]);
                chain[2 * next] = __fmaf_rn(w.z, elements[p * step], chain[2 * next]);
                chain[3 * next] = __fmaf_rn(w.w, elements[p * step], chain[3 * next]);
            }
        }
    }

    /* The windows of one channel, whose rows are pitch apart from `image` on. */
    template <int width, int step>
    __device__ __forceinline__ void add_channel(const float *image, int pitch, const float *weights,
                                                int height)
    {
        constexpr int reach = SP_CUDA_DIRECT_REACH(width, step);
#pragma unroll 1
        for (int row = 0; row < height; row++, image += pitch) {
            float elements[reach];
#pragma unroll
            for (int i = 0; i < reach; i += 4) {
                const float4 four = *(const float4 *)(image + i);
                elements[i] = four.x;
                elements[i + 1] = four.y;
                elements[i + 2] = four.z;
                elements[i + 3] = four.w;
            }
#pragma unroll
            for (int column = 0; column < width; column++, weights += SP_CUDA_DIRECT_HEIGHT) {
                add<step>(weights, elements + column);
            }
        }
    }
};

/* Sums, then biases and the activation. */
SP_CUDA_FUNCTION void sp_direct_finish(const sp_conv_constants &k, const float *bias, int filters,
                                       sp_direct_chains &chains)
{
    constexpr int count = SP_CUDA_DIRECT_FILTERS * SP_CUDA_DIRECT_COLUMNS;
#pragma unroll
    for (int i = 0; i < count; i++) {
        const int filter = i / SP_CUDA_DIRECT_COLUMNS;
        const float sum = __fadd_rn(0, chains.at[i]);
        const float addend = bias && filter < filters ? bias[filter] : 0;
        chains.at[i] = sp_canonical(bias ? __fadd_rn(sum, addend) : sum);
        if (k.activation == SP_ACTIVATION_RELU) {
            chains.at[i] = sp_activate(SP_ACTIVATION_RELU, chains.at[i]);
        }
    }
    if (k.activation != SP_ACTIVATION_NONE && k.activation != SP_ACTIVATION_RELU) {
        sp_activate_rows<count>(k.activation, chains.at);
    }
}

/* `columns` of the thread's pixels are in the image; y: the first of them in the first filter. */
SP_CUDA_FUNCTION void sp_direct_store(const sp_direct_chains &chains, float *y, int pixels,
                                      int filters, int columns, bool is_wide)
{
#pragma unroll
    for (int f = 0; f < SP_CUDA_DIRECT_FILTERS; f++) {
        if (f >= filters) continue;
        const float *out = chains.at + f * SP_CUDA_DIRECT_COLUMNS;
        float *to = y + f * pixels;
        if (is_wide && columns >= SP_CUDA_DIRECT_COLUMNS) {
            *(float4 *)to = {out[0], out[1], out[2], out[3]};
            continue;
        }
#pragma unroll
        for (int p = 0; p < SP_CUDA_DIRECT_COLUMNS; p++) {
            if (p < columns) to[p] = out[p];
        }
    }
}

/* Where a thread's pixels are in the block's part of the image, and its filters in the tile. */
struct sp_direct_place {
    int row, column, filter;
};

SP_CUDA_FUNCTION sp_direct_place sp_make_direct_place(int across)
{
    const int word = (int)threadIdx.x % SP_CUDA_DIRECT_WORDS;
    return {word / across, word % across * SP_CUDA_DIRECT_COLUMNS,
            (int)threadIdx.x / SP_CUDA_DIRECT_WORDS * SP_CUDA_DIRECT_FILTERS};
}

/* All chunks, of which one is computed while the next one is loaded. */
template <int width, int step>
SP_CUDA_FUNCTION void sp_direct_run(const sp_conv_constants &k, const sp_direct_tile &tile,
                                    const sp_direct_place &place, float *pool,
                                    sp_direct_chains &chains)
{
    constexpr int chunk = SP_CUDA_DIRECT_CHANNELS;
    const int channels = (int)k.channels, height = (int)k.kernel_h;
    const int plane = tile.in_rows * tile.pitch, image = chunk * plane;
    const int stage = image + chunk * tile.taps * SP_CUDA_DIRECT_HEIGHT;
    const int first = place.row * (int)k.stride_h * tile.pitch + place.column * step;
#pragma unroll
    for (float &chain : chains.at) chain = 0;
    sp_direct_load_image(k, tile, 0, pool);
    sp_direct_load_weights(tile, 0, pool + image);
    float *at = pool, *next = pool + stage;
#pragma unroll 1
    for (int channel = 0; channel < channels; channel += chunk) {
        sp_await_copies();
        /* The chunk is complete for all threads, and none uses the one before it any more. */
        __syncthreads();
        if (channel + chunk < channels) {
            sp_direct_load_image(k, tile, channel + chunk, next);
            sp_direct_load_weights(tile, channel + chunk, next + image);
        }
        const int count = channels - channel < chunk ? channels - channel : chunk;
        const float *weights = at + image + place.filter;
#pragma unroll 1
        for (int c = 0; c < count; c++) {
            chains.add_channel<width, step>(at + c * plane + first, tile.pitch, weights, height);
            weights += tile.taps * SP_CUDA_DIRECT_HEIGHT;
        }
        float *const other = at;
        at = next;
        next = other;
    }
}

/* Blocks: x over the parts of an image, y over the filters of a group, z over images and groups. */
template <int width, int step>
SP_CUDA_FUNCTION void sp_conv_direct(const sp_gpu_bindings &bindings, const sp_conv_constants &k,
                                     float *pool)
{
    const int across = (int)bindings.tile[1], rows = SP_CUDA_DIRECT_WORDS / across;
    const int columns = across * SP_CUDA_DIRECT_COLUMNS;
    const int out_w = (int)k.out_w, out_h = (int)k.out_h, pixels = out_w * out_h;
    const int parts = (out_w + columns - 1) / columns, part_row = (int)blockIdx.x / parts;
    const int out_row = part_row * rows, out_column = ((int)blockIdx.x - part_row * parts) * columns;
    const int groups = (int)k.groups, filters = (int)k.filters;
    const int group = (int)blockIdx.z % groups, first = (int)blockIdx.y * SP_CUDA_DIRECT_HEIGHT;
    sp_direct_tile tile;
    tile.taps = (int)(k.kernel_h * k.kernel_w);
    tile.depth = (int)k.channels * tile.taps;
    tile.x = (const float *)bindings.at[0] + (int)blockIdx.z * (int)(k.channels * k.in_h * k.in_w);
    tile.w = (const float *)bindings.at[1] + (group * filters + first) * tile.depth;
    tile.first_row = out_row * (int)k.stride_h - (int)k.pad_top;
    tile.first_column = out_column * step - (int)k.pad_left;
    tile.in_rows = (int)sp_cuda_direct_rows(&k, across);
    tile.pitch = (int)sp_cuda_direct_pitch(&k, across);
    tile.in_columns = (columns - 1) * step + width;
    tile.filters = filters - first;
    const sp_direct_place place = sp_make_direct_place(across);
    sp_direct_chains chains;
    sp_direct_run<width, step>(k, tile, place, pool, chains);
    const int row = out_row + place.row, column = out_column + place.column;
    const int of_thread = tile.filters - place.filter;
    if (row >= out_h || column >= out_w || of_thread <= 0) return;
    const int filter = first + place.filter;
    const float *bias =
        k.has_bias ? (const float *)bindings.at[2] + group * filters + filter : nullptr;
    sp_direct_finish(k, bias, of_thread, chains);
    float *y = (float *)bindings.at[k.has_bias ? 3 : 2];
    y += ((int)blockIdx.z * filters + filter) * pixels + row * out_w + column;
    sp_direct_store(chains, y, pixels, of_thread, out_w - column,
                    sp_is_wide(y, out_w) && (pixels & 3) == 0);
}

#define SP_CONV_DIRECT(name, width, step)                                                          \
    SP_CUDA_KERNEL_OF(name, sp_conv_constants, SP_CUDA_DIRECT_THREADS, 5)                          \
    {                                                                                              \
        SP_CUDA_SHARED(pool);                                                                      \
        sp_conv_direct<width, step>(bindings, k, (float *)pool);                                   \
    }
SP_CONV_DIRECT(conv_direct_3_f32, 3, 1)
SP_CONV_DIRECT(conv_direct_3_by_2_f32, 3, 2)
SP_CONV_DIRECT(conv_direct_5_f32, 5, 1)
#undef SP_CONV_DIRECT
