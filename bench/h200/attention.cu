// SPDX-License-Identifier: Apache-2.0
// Attention with rounded operands, by the layouts of models that PyTorch exports: microseconds for
// a kernel of a graph of equal ones, and a hash of the results, which is the same for every version
// of the kernel. Prints one JSON line per case.
//
// bench/h200/run builds it.
#ifndef SP_BENCH_PROGRAM
#define SP_BENCH_PROGRAM "cuda_tensor.cu"
#endif
#include "bench.cuh"

struct Case {
    const char *name;
    int64_t images, heads, keys, depth;
};

// Queries, keys and values of an image are neighbours, images of a position too.
static sp_attention_constants make_constants(const Case &c)
{
    const int64_t width = c.heads * c.depth;
    sp_attention_constants k = {};
    k.rows = k.keys = c.keys;
    k.depth = k.columns = c.depth;
    k.of_scores = {SP_SCALE_MULTIPLIES, 1 / std::sqrt((float)c.depth)};
    k.rounding = SP_ROUNDING_BF16;
    k.batch_rank = 2;
    k.batch_dims[0] = c.images;
    k.batch_dims[1] = c.heads;
    sp_attention_operand *const operands[] = {&k.query, &k.key, &k.value, &k.y};
    for (int i = 0; i < 4; i++) {
        const int64_t row = i < 3 ? 3 * width : width;
        operands[i]->first = i < 3 ? i * width : 0;
        operands[i]->row = c.images * row;
        operands[i]->column = 1;
        operands[i]->batch[0] = row;
        operands[i]->batch[1] = c.depth;
    }
    return k;
}

// As attention_tile.h says for keys in registers.
static size_t bytes_of(const Case &c, int64_t warps)
{
    const int64_t keys = (c.keys + 15) / 16 * 16, pitch = (c.depth + 15) / 16 * 32 + 16;
    return (size_t)((warps * SP_CUDA_ROUNDED_ROWS + 2 * keys) * pitch);
}

static uint64_t hash(const std::vector<float> &y)
{
    uint64_t at = 0xcbf29ce484222325;
    for (const float f : y) {
        uint32_t bits;
        std::memcpy(&bits, &f, 4);
        at = (at ^ bits) * 0x100000001b3;
    }
    return at;
}

static void run(const Case &c, cudaStream_t stream)
{
    const sp_attention_constants k = make_constants(c);
    const int64_t count = c.images * c.keys * c.heads * c.depth;
    std::vector<float> x((size_t)count * 3), y((size_t)count);
    uint32_t seed = 1;
    for (float &f : x) f = (float)((seed = seed * 1664525 + 1013904223) >> 8) / (1 << 22) - 2;
    float *const input = allocate(count * 3), *const output = allocate(count);
    CHECK(cudaMemcpy(input, x.data(), x.size() * 4, cudaMemcpyHostToDevice));

    sp_gpu_bindings bindings = {};
    for (int i = 0; i < 3; i++) bindings.at[i] = input;
    bindings.at[3] = output;
    std::printf("{\"attention\":\"%s\",\"images\":%lld", c.name, (long long)c.images);
    for (int warps = 4; warps <= 8; warps *= 2) {
        bindings.tile[0] = (uint32_t)warps;
        bindings.tile[1] = c.keys > 64 ? 128 : 64;
        const size_t bytes = bytes_of(c, warps);
        const unsigned blocks =
            (unsigned)(c.images * c.heads * ((c.keys + warps * 16 - 1) / (warps * 16)));
        const double us = time_kernel(stream, [&](cudaStream_t on) {
            launch_early(sp_attention_rounded_bf16, dim3(blocks), (unsigned)warps * 32, bytes, on,
                         bindings, k);
        });
        CHECK(cudaMemcpy(y.data(), output, y.size() * 4, cudaMemcpyDeviceToHost));
        std::printf(",\"warps_%d_us\":%.1f,\"bits_%d\":\"%016llx\"", warps, us, warps,
                    (unsigned long long)hash(y));
    }
    std::printf("}\n");
    std::fflush(stdout);
    CHECK(cudaFree(input));
    CHECK(cudaFree(output));
}

int main()
{
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    const Case cases[] = {{"torch_encoder6", 1, 12, 128, 32},
                          {"torch_encoder6", 64, 12, 128, 32},
                          {"torch_encoder6", 256, 12, 128, 32},
                          {"torch_mha", 256, 8, 64, 32},
                          {"keys 100", 256, 8, 100, 32}};
    for (const Case &c : cases) run(c, stream);
    return 0;
}
