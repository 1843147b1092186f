// SPDX-License-Identifier: Apache-2.0
// Products with operands in bf16, f16 and tf32 beside cuBLASLt's, in one process: microseconds for
// a kernel of a graph of equal ones, by tile. Ours read f32 and packed weights and write f32;
// cuBLASLt has operands and results of the type that it multiplies. Also checks that each row's
// bits are the same with all tiles and all numbers of rows, and near the product in doubles. Prints
// one JSON line per case.
//
// With the argument "large": products of many rows by the largest tiles alone.
//
// bench/h200/run builds it.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#ifndef SP_BENCH_PROGRAM
#define SP_BENCH_PROGRAM "cuda_tensor.cu"
#endif
#include "lt.cuh"

static int64_t max_rows = 4096;
static bool is_large;

struct Operands {
    int64_t columns, depth;
    float *x, *w, *bias, *y;
    void *packed_x, *packed, *narrow_x, *narrow_w,
        *narrow_y; // the last three in the type, for cuBLASLt
};

// ---- ours ----

struct Tile {
    const char *name;
    int rows, columns, threads, bytes;
    bool is_raw, is_group;
    void (*kernel)(sp_gpu_bindings, sp_gemm_constants);
    void (*with_halves)(sp_gpu_bindings, sp_gemm_constants);
};

template <class T, int blocks>
__global__ void __launch_bounds__(T::threads, blocks)
    product(const __grid_constant__ sp_gpu_bindings bindings,
            const __grid_constant__ sp_gemm_constants k)
{
    SP_CUDA_SHARED(pool);
    sp_narrow_product<T>(bindings, k, (char *)pool);
}

template <class T, int blocks> static Tile make_tile(const char *name)
{
    static_assert(T::bytes <= shared_bytes, "a block of the GPU has so much");
    const auto kernel = product<T, blocks>;
    CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, T::bytes));
    return {name,  T::rows, T::columns, T::threads, T::bytes, T::left != SP_NARROW_PACKED,
            false, kernel, nullptr};
}

typedef void (*Product)(sp_gpu_bindings, sp_gemm_constants);

// The entries that are by warpgroups where the device has them.
struct Groups {
    Product of_128, of_192, halves_of_128, halves_of_192; // the last two: of types of two bytes
};

static Tile make_group(const char *name, int columns, Product kernel, Product with_halves)
{
    const int bytes = SP_CUDA_GROUP_BYTES(columns);
    for (const Product of : {kernel, with_halves}) {
        if (of == nullptr) continue;
        CHECK(cudaFuncSetAttribute(of, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    }
    return {name, 128, columns, 256, bytes, false, true, kernel, with_halves};
}

// The left operand of those without "raw" is packed by a kernel before, which is timed for itself.
template <class E> static std::vector<Tile> make_tiles(const Groups &groups)
{
    const Tile large = make_group("128x128group", 128, groups.of_128, groups.halves_of_128);
    const Tile wide = make_group("128x192group", 192, groups.of_192, groups.halves_of_192);
    if (is_large) {
        return {
            make_tile<sp_narrow_tile<E, 128, 128, 64, 32, 1, 4, SP_NARROW_PACKED>, 1>("128x128s4"),
            large, wide};
    }
    return {make_tile<sp_narrow_tile<E, 16, 32, 16, 16, 4, 3, SP_NARROW_ROWS>, 1>("16x32g4raw"),
            make_tile<sp_narrow_tile<E, 16, 32, 16, 16, 4, 5, SP_NARROW_ROWS>, 1>("16x32g4s5raw"),
            make_tile<sp_narrow_tile<E, 16, 32, 16, 16, 2, 5, SP_NARROW_ROWS>, 2>("16x32g2s5raw"),
            make_tile<sp_narrow_tile<E, 16, 32, 16, 32, 4, 4, SP_NARROW_ROWS>, 1>("16x32g4w4raw"),
            make_tile<sp_narrow_tile<E, 16, 16, 16, 16, 8, 3, SP_NARROW_ROWS>, 1>("16x16g8raw"),
            make_tile<sp_narrow_tile<E, 32, 32, 16, 16, 2, 5, SP_NARROW_ROWS>, 1>("32x32g2s5raw"),
            make_tile<sp_narrow_tile<E, 32, 32, 16, 16, 4, 3, SP_NARROW_ROWS>, 1>("32x32g4raw"),
            make_tile<sp_narrow_tile<E, 32, 64, 16, 32, 2, 3, SP_NARROW_ROWS>, 1>("32x64g2raw"),
            make_tile<sp_narrow_tile<E, 64, 64, 32, 32, 2, 3, SP_NARROW_ROWS>, 1>("64x64g2raw"),
            make_tile<sp_narrow_tile<E, 64, 64, 32, 32, 1, 4, SP_NARROW_ROWS>, 2>("64x64raw"),
            make_tile<sp_narrow_tile<E, 32, 64, 16, 32, 2, 4, SP_NARROW_PACKED>, 1>("32x64g2"),
            make_tile<sp_narrow_tile<E, 64, 64, 32, 32, 1, 4, SP_NARROW_PACKED>, 2>("64x64"),
            make_tile<sp_narrow_tile<E, 64, 64, 32, 32, 2, 4, SP_NARROW_PACKED>, 1>("64x64g2"),
            make_tile<sp_narrow_tile<E, 64, 128, 32, 32, 1, 4, SP_NARROW_PACKED>, 1>("64x128"),
            make_tile<sp_narrow_tile<E, 128, 64, 32, 32, 1, 4, SP_NARROW_PACKED>, 1>("128x64"),
            make_tile<sp_narrow_tile<E, 128, 128, 64, 32, 1, 3, SP_NARROW_PACKED>, 1>("128x128s3"),
            make_tile<sp_narrow_tile<E, 128, 128, 64, 32, 1, 4, SP_NARROW_PACKED>, 1>("128x128s4"),
            make_tile<sp_narrow_tile<E, 128, 128, 64, 32, 1, 6, SP_NARROW_PACKED>, 1>("128x128s6"),
            make_tile<sp_narrow_tile<E, 128, 128, 32, 32, 1, 4, SP_NARROW_PACKED>, 1>("128x128w16"),
            make_tile<sp_narrow_tile<E, 128, 256, 64, 32, 1, 3, SP_NARROW_PACKED>, 1>("128x256w16"),
            large,
            wide};
}

// What becomes of a result: rows of f32, packed for a next product, or rows of the type, of which the
// first columns are divided.
enum Result { in_rows, packed, halves };

static sp_gemm_constants make_constants(const Operands &o, int64_t rows, Result result,
                                        sp_pack_format format)
{
    sp_gemm_constants k = {};
    k.y_format = result == packed ? (uint8_t)format : 0;
    k.is_y_half = result == halves;
    k.scaled[0] = k.scaled[1] = o.columns / 24 * 8;
    k.scales[0] = {SP_SCALE_DIVIDES, 5.656854f};
    k.rows = rows;
    k.columns = o.columns;
    k.depth = k.a_row = o.depth;
    k.a_depth = k.c_column = 1;
    k.alpha = k.beta = 1.0f;
    k.has_c = k.is_b_constant = true;
    return k;
}

static void launch_tile(const Operands &o, const Tile &tile, int64_t rows, Result result,
                        sp_pack_format format, cudaStream_t stream)
{
    const sp_gpu_bindings bindings = {{tile.is_raw ? o.x : o.packed_x, o.packed, o.bias, o.y}, {}};
    dim3 grid((unsigned)((rows + tile.rows - 1) / tile.rows),
              (unsigned)((o.columns + tile.columns - 1) / tile.columns));
    if (tile.is_group) {
        const unsigned clusters =
            (grid.x + SP_CUDA_GROUP_BLOCKS - 1) / SP_CUDA_GROUP_BLOCKS * grid.y;
        const unsigned most = SP_CUDA_ENOUGH_BLOCKS / SP_CUDA_GROUP_BLOCKS;
        grid = dim3((clusters < most ? clusters : most) * SP_CUDA_GROUP_BLOCKS);
    }
    launch_early(result == halves ? tile.with_halves : tile.kernel, grid, (unsigned)tile.threads,
                 (size_t)tile.bytes, stream, bindings, make_constants(o, rows, result, format));
}

// ---- cuBLASLt ----

// 0: it has no algorithm.
static double time_lt(const Operands &o, const Lt &lt, cudaStream_t stream)
{
    cublasLtMatmulAlgo_t algo;
    if (!choose(lt, algo)) return 0;
    const float one = 1.0f, zero = 0.0f;
    return time_kernel(stream, [&](cudaStream_t s) {
        CHECK(cublasLtMatmul(lt.handle, lt.product, &one, o.narrow_w, lt.w, o.narrow_x, lt.x, &zero,
                             o.narrow_y, lt.y, o.narrow_y, lt.y, &algo, lt.workspace,
                             workspace_bytes, s));
    });
}

// ---- operands and checks ----

static void fill(std::vector<float> &values, float *to)
{
    static uint32_t state = 1;
    for (float &value : values) {
        state = state * 1664525u + 1013904223u;
        value = (float)(state >> 8) / 16777216.0f - 0.5f;
    }
    CHECK(cudaMemcpy(to, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice));
}

template <class N> __global__ void narrow(const float *from, N *to, int64_t count)
{
    for (int64_t i = blockIdx.x * 256 + threadIdx.x; i < count; i += gridDim.x * 256) {
        to[i] = N(from[i]);
    }
}

// The farthest output from the product in doubles, in units of the sum of the sizes of its terms.
static double farthest(const Operands &o, const std::vector<float> &x, const std::vector<float> &w,
                       const std::vector<float> &bias, int64_t row)
{
    std::vector<float> y(o.columns);
    CHECK(cudaMemcpy(y.data(), o.y + row * o.columns, o.columns * sizeof(float),
                     cudaMemcpyDeviceToHost));
    double most = 0;
    for (int64_t n = 0; n < o.columns; n += 7) {
        double sum = bias[n], size = std::fabs(sum);
        for (int64_t k = 0; k < o.depth; k++) {
            const double term = (double)x[row * o.depth + k] * w[k * o.columns + n];
            sum += term;
            size += std::fabs(term);
        }
        most = std::max(most, std::fabs(sum - y[n]) / size);
    }
    return most;
}

// Are the first rows what they were with the first tile and most rows?
static bool is_same(const Operands &o, int64_t rows, std::vector<float> &first)
{
    std::vector<float> y(rows * o.columns);
    CHECK(cudaMemcpy(y.data(), o.y, y.size() * sizeof(float), cudaMemcpyDeviceToHost));
    if (first.empty()) first = y;
    return memcmp(first.data(), y.data(), y.size() * sizeof(float)) == 0;
}

template <class E, class N>
static void run_case(const char *type, cudaDataType_t lt_type, sp_pack_format format,
                     void (*pack)(sp_gpu_bindings, sp_pack_constants),
                     const Groups &groups, cublasLtHandle_t handle, void *workspace,
                     cudaStream_t stream, int64_t depth, int64_t columns)
{
    Operands o = {columns,
                  depth,
                  allocate(max_rows * depth),
                  allocate(depth * columns),
                  allocate(columns),
                  allocate(max_rows * columns),
                  allocate((depth + 64) * max_rows),
                  allocate((depth + 64) * (columns + 8)),
                  allocate(max_rows * depth),
                  allocate(depth * columns),
                  allocate(max_rows * columns)};
    std::vector<float> x(max_rows * depth), w(depth * columns), bias(columns), first;
    fill(x, o.x);
    fill(w, o.w);
    fill(bias, o.bias);
    narrow<N><<<1024, 256>>>(o.x, (N *)o.narrow_x, max_rows * depth);
    narrow<N><<<1024, 256>>>(o.w, (N *)o.narrow_w, depth * columns);
    sp_pack_constants packing = {depth, columns, columns, 1};
    pack<<<256, SP_CUDA_THREADS>>>({{o.w, o.packed}, {}}, packing);
    CHECK(cudaDeviceSynchronize());
    const std::vector<Tile> tiles = make_tiles<E>(groups);
    double error = 0;
    const std::vector<int64_t> counts =
        is_large ? std::vector<int64_t>{max_rows, 8192, 2048, 1024}
                 : std::vector<int64_t>{max_rows, 1024, 256, 128, 64, 32, 16, 8, 1, 37};
    for (int64_t rows : counts) {
        const Lt lt =
            make_lt(handle, workspace, rows, o.depth, o.columns, o.bias, lt_type,
                    lt_type == CUDA_R_32F ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F);
        std::printf("{\"case\":\"gemm_%s\",\"depth\":%lld,\"columns\":%lld,\"rows\":%lld,"
                    "\"cublaslt_us\":%.2f",
                    type, (long long)depth, (long long)columns, (long long)rows,
                    time_lt(o, lt, stream));
        const sp_pack_constants rounding = {depth, rows, 1, depth};
        const unsigned blocks_of_rounding = (unsigned)((depth + 63) / 64 * ((rows + 7) / 8) * 64 *
                                                           sizeof(typename E::type) / 16 / 32 +
                                                       1);
        const sp_gpu_bindings rounded = {{o.x, o.packed_x}, {}};
        std::printf(",\"pack_us\":%.2f", time_kernel(stream, [&](cudaStream_t s) {
                        launch_early(pack, dim3(blocks_of_rounding), SP_CUDA_THREADS, 0, s, rounded,
                                     rounding);
                    }));
        bool same = true;
        for (const Tile &tile : tiles) {
            const int64_t blocks =
                (rows + tile.rows - 1) / tile.rows * ((columns + tile.columns - 1) / tile.columns);
            CHECK(cudaMemset(o.y, 0xff, max_rows * columns * sizeof(float)));
            if (blocks > 2048 && !is_large && !first.empty()) continue; // far from the best
            const double us = time_kernel(
                stream, [&](cudaStream_t s) { launch_tile(o, tile, rows, in_rows, format, s); });
            CHECK(cudaDeviceSynchronize());
            same = is_same(o, rows, first) && same;
            if (rows == max_rows) error = std::max(error, farthest(o, x, w, bias, max_rows - 1));
            std::printf(",\"%s_us\":%.2f", tile.name, us);
            if (!tile.is_group || columns % 64 != 0 || rows % 8 != 0) continue;
            for (const Result result : {packed, halves}) {
                if (result == halves && tile.with_halves == nullptr) continue;
                const double with_us = time_kernel(stream, [&](cudaStream_t on) {
                    launch_tile(o, tile, rows, result, format, on);
                });
                std::printf(",\"%s_%s_us\":%.2f", tile.name,
                            result == packed ? "packed" : "halves", with_us);
            }
        }
        std::printf(",\"same_bits\":%s,\"error\":%.2e}\n", same ? "true" : "false", error);
        std::fflush(stdout);
    }
    for (void *at : {(void *)o.x, (void *)o.w, (void *)o.bias, (void *)o.y, o.packed_x, o.packed,
                     o.narrow_x, o.narrow_w, o.narrow_y}) {
        CHECK(cudaFree(at));
    }
}

int main(int argc, char **argv)
{
    is_large = argc > 1 && strcmp(argv[1], "large") == 0;
    if (is_large) max_rows = 32768;
    cublasLtHandle_t handle;
    cudaStream_t stream;
    CHECK(cublasLtCreate(&handle));
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    void *workspace = allocate((int64_t)workspace_bytes / 4);
    typedef std::vector<std::pair<int64_t, int64_t>> Shapes;
    const Shapes small = {{512, 512},   {1024, 1024}, {4096, 4096}, {4096, 1024},
                          {1024, 4096}, {256, 128},   {1000, 203}};
    const Shapes large = {{384, 1152}, {384, 384},   {384, 1536},
                          {1536, 384}, {2048, 2048}, {256, 768}};
    for (const auto &shape : is_large ? large : small) {
        const int64_t depth = shape.first, columns = shape.second;
        run_case<sp_tensor_bf16, __nv_bfloat16>("bf16", CUDA_R_16BF, SP_PACK_BF16,
                                                sp_narrow_pack_bf16, {sp_gemm_packed_128_bf16, sp_gemm_packed_192_bf16, sp_gemm_halves_128_bf16, sp_gemm_halves_192_bf16},
                                                handle, workspace, stream, depth, columns);
        if (depth != 1000 && depth != 1024) continue;
        run_case<sp_tensor_f16, __half>("f16", CUDA_R_16F, SP_PACK_F16, sp_narrow_pack_f16,
                                        {sp_gemm_packed_128_f16, sp_gemm_packed_192_f16, sp_gemm_halves_128_f16, sp_gemm_halves_192_f16}, handle, workspace, stream, depth,
                                        columns);
        run_case<sp_tensor_tf32, float>("tf32", CUDA_R_32F, SP_PACK_TF32, sp_narrow_pack_tf32,
                                        {sp_gemm_packed_128_tf32, sp_gemm_packed_192_tf32, nullptr, nullptr}, handle, workspace, stream, depth,
                                        columns);
    }
    return 0;
}
