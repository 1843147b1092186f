// SPDX-License-Identifier: Apache-2.0
// Our convolution on the layers of a ResNet-50 and of torch_resnet: microseconds for a kernel of a graph of equal ones, one
// after the other, and the share of the multiply-adds that the GPU can do. Prints one JSON line per
// case; bench/h200/bench_conv.py prints PyTorch's for the same layers.
#include "layers.cuh"

// As cuda_launch.c.
static void launch(const sp_conv_constants &k, const sp_gpu_bindings &buffers, cudaStream_t stream)
{
    const host::sp_cuda_tile tile = host::sp_cuda_conv_tile(&k, shared_bytes);
    sp_gpu_bindings bindings = buffers;
    const int64_t pixels = k.out_h * k.out_w, images = k.planes / k.filters;
    if (tile.groups == 0 && tile.warps > 0 && tile.rows > 0) {
        const unsigned across = bindings.tile[1] = tile.warps;
        const dim3 grid((unsigned)host::sp_cuda_direct_parts(&k, across),
                        (unsigned)((k.filters + tile.rows - 1) / tile.rows), (unsigned)images);
        launch_early(k.stride_w == 2 ? sp_conv_direct_3_by_2_f32 : sp_conv_direct_3_f32, grid,
                     SP_CUDA_DIRECT_THREADS, host::sp_cuda_direct_bytes(&k, across), stream,
                     bindings, k);
        return;
    }
    if (tile.groups == 0 && tile.warps > 0) {
        const unsigned blocks = bindings.tile[1] = tile.warps;
        const int64_t tiles = (images * pixels + SP_CUDA_TEAM_ROWS - 1) / SP_CUDA_TEAM_ROWS *
                              ((k.filters + SP_CUDA_TEAM_COLUMNS - 1) / SP_CUDA_TEAM_COLUMNS);
        const unsigned grid =
            ((unsigned)tiles * blocks + SP_CUDA_TEAM - 1) / SP_CUDA_TEAM * SP_CUDA_TEAM;
        const bool has_sums = k.channels * k.kernel_h * k.kernel_w > k.segment * blocks;
        launch_early(sp_conv_team_f32, dim3(grid), SP_CUDA_TEAM_THREADS,
                     SP_CUDA_TEAM_BYTES(blocks, has_sums) + SP_CUDA_TAPS_BYTES, stream, bindings, k);
        return;
    }
    if (tile.groups == 0) {
        const int64_t side = tile.rows;
        const dim3 grid((unsigned)((images * pixels + side - 1) / side),
                        (unsigned)((k.filters + side - 1) / side));
        const bool has_sums = host::sp_cuda_square_has_sums(
            k.channels * k.kernel_h * k.kernel_w, k.segment, k.activation);
        launch_early(side == 64 ? sp_conv_square_64_f32 : sp_conv_square_128_f32, grid,
                     SP_CUDA_SQUARE_THREADS(side),
                     SP_CUDA_SQUARE_BYTES(side, has_sums) + SP_CUDA_TAPS_BYTES, stream, bindings, k);
        return;
    }
    bindings.tile[0] = tile.groups;
    bindings.tile[1] = tile.warps;
    bindings.tile[2] = tile.rows;
    const int64_t rows = (int64_t)tile.warps * tile.rows;
    const dim3 grid((unsigned)((pixels + SP_CUDA_LANES - 1) / SP_CUDA_LANES),
                    (unsigned)((k.filters + rows - 1) / rows), (unsigned)images);
    launch_early(sp_conv_small_f32, grid, SP_CUDA_THREADS,
                 host::sp_cuda_product_bytes(tile.groups, rows), stream, bindings, k);
}

int main()
{
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (const auto kernel : {sp_conv_small_f32, sp_conv_square_64_f32, sp_conv_square_128_f32,
                              sp_conv_direct_3_f32, sp_conv_direct_3_by_2_f32, sp_conv_team_f32}) {
        CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   (int)shared_bytes));
    }
    float *x = allocate(64 * 256 * 56 * 56), *w = allocate(2048 * 2048 * 9);
    float *bias = allocate(2048), *y = allocate(64 * 256 * 56 * 56);
    for (float *zeroed : {x, w, bias}) CHECK(cudaMemset(zeroed, 0, 2048 * 4));
    for (const Layer &layer : layers) {
        for (int64_t images : {1, 4, 16, 64}) {
            const sp_conv_constants k = constants_of(layer, images);
            const sp_gpu_bindings bindings = {{x, w, bias, y}, {}};
            const double us = time_kernel(stream, [&](cudaStream_t s) { launch(k, bindings, s); });
            const double adds = (double)k.planes * k.out_h * k.out_w * k.channels * k.kernel_h * k.kernel_w;
            std::printf("{\"case\":\"conv\",");
            print_layer(layer, images);
            std::printf(",\"ours_us\":%.2f,\"ours_tflops\":%.2f}\n", us, 2 * adds / us * 1e-6);
            std::fflush(stdout);
        }
    }
    return 0;
}
