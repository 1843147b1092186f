// SPDX-License-Identifier: Apache-2.0
// Our narrow convolutions on the layers of a ResNet-50, by type and tile: microseconds for a kernel of a
// graph of equal ones. Prints one JSON line per case;
// bench/h200/bench_conv.py prints PyTorch's for the same layers.
//
// bench/h200/run builds it.
#define SP_BENCH_PROGRAM "cuda_tensor.cu"
#include "layers.cuh"

struct Tile {
    const char *name;
    int rows, columns, threads, bytes;
    void (*kernel)(sp_gpu_bindings, sp_conv_constants);
};

template <class T>
static Tile make_tile(const char *name, void (*kernel)(sp_gpu_bindings, sp_conv_constants))
{
    CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, T::bytes));
    return {name, T::rows, T::columns, T::threads, T::bytes, kernel};
}

#define TILES(type)                                                                                \
    {make_tile<sp_narrow_few_pixels<sp_tensor_##type>>("few", sp_conv_narrow_##type),              \
     make_tile<sp_narrow_deep_pixels<sp_tensor_##type>>("deep", sp_conv_narrow_deep_##type),       \
     make_tile<sp_narrow_64_pixels<sp_tensor_##type>>("64", sp_conv_narrow_64_##type),             \
     make_tile<sp_narrow_wide_pixels<sp_tensor_##type>>("wide", sp_conv_narrow_wide_##type)}

static unsigned count_tiles(int64_t count, int64_t size)
{
    return (unsigned)((count + size - 1) / size);
}

static void print_case(const char *type, const Layer &layer, int64_t images,
                       const std::vector<Tile> &tiles, const sp_gpu_bindings &bindings,
                       cudaStream_t stream)
{
    sp_conv_constants k = constants_of(layer, images);
    if (layer.kernel == 1) { // as the library has it: a row of pixels
        k.in_w = k.out_w *= k.out_h;
        k.in_h = k.out_h = 1;
    }
    const int64_t pixels = images * k.out_h * k.out_w;
    const double adds = (double)pixels * k.filters * k.channels * k.kernel_h * k.kernel_w;
    double best = 0;
    std::printf("{\"case\":\"narrow_conv\",\"type\":\"%s\",", type);
    print_layer(layer, images);
    for (const Tile &tile : tiles) {
        const dim3 grid(count_tiles(k.filters, tile.columns), count_tiles(pixels, tile.rows));
        const double us = time_kernel(stream, [&](cudaStream_t s) {
            launch_early(tile.kernel, grid, (unsigned)tile.threads, (size_t)tile.bytes, s, bindings, k);
        });
        std::printf(",\"%s_us\":%.2f", tile.name, us);
        if (best == 0 || us < best) best = us;
    }
    std::printf(",\"best_us\":%.2f,\"best_tflops\":%.2f}\n", best, 2 * adds / best * 1e-6);
    std::fflush(stdout);
}

int main()
{
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    float *x = allocate(64 * 256 * 56 * 56), *w = allocate(2048 * 2048 * 9);
    float *bias = allocate(2048), *y = allocate(64 * 256 * 56 * 56);
    CHECK(cudaMemset(x, 0, (size_t)64 * 256 * 56 * 56 * 4));
    CHECK(cudaMemset(w, 0, (size_t)2048 * 2048 * 9 * 4));
    CHECK(cudaMemset(bias, 0, 2048 * 4));
    const sp_gpu_bindings bindings = {{x, w, bias, y}, {}};
    const std::vector<Tile> bf16 = TILES(bf16), f16 = TILES(f16), tf32 = TILES(tf32);
    for (const Layer &layer : layers) {
        for (int64_t images : {1, 4, 16, 64}) {
            print_case("bf16", layer, images, bf16, bindings, stream);
            if (images == 64) print_case("f16", layer, images, f16, bindings, stream);
            if (images == 64) print_case("tf32", layer, images, tf32, bindings, stream);
        }
    }
    return 0;
}
