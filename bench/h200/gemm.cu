// SPDX-License-Identifier: Apache-2.0
// Our matrix product beside cuBLASLt's, in one process: microseconds for a kernel of a graph of equal
// ones, one after the other. cuBLASLt runs with the one algorithm that its heuristic gives for 64 rows,
// and with the one that it gives for the rows at hand. Prints one JSON line per case.
//
// bench/h200/run builds it.
#include "lt.cuh"

static const int64_t max_rows = 4096;

__global__ void empty() {}

struct Case {
    int64_t columns, depth;
    float *x, *w, *panels, *bias, *y;
};

// ---- ours ----

static sp_gemm_constants ours_constants(const Case &c, int64_t rows)
{
    sp_gemm_constants k = {};
    k.rows = rows;
    k.columns = c.columns;
    k.depth = k.a_row = c.depth;
    k.a_depth = k.c_column = 1;
    k.b_format = SP_PACK_F32;
    k.alpha = k.beta = 1.0f;
    k.has_c = k.is_b_constant = true;
    return k;
}

// A tile of several blocks: as set_gemm_team of cuda_launch.c.
static void launch_team(const Case &c, const sp_gemm_constants &k, unsigned blocks,
                        cudaStream_t stream)
{
    const sp_gpu_bindings bindings = {{c.x, c.panels, c.bias, c.y}, {0, blocks, 0}};
    const unsigned cluster = blocks == SP_CUDA_PAIR ? SP_CUDA_PAIR : SP_CUDA_TEAM;
    const int64_t tiles = (k.rows + SP_CUDA_TEAM_ROWS - 1) / SP_CUDA_TEAM_ROWS *
                          ((k.columns + SP_CUDA_TEAM_COLUMNS - 1) / SP_CUDA_TEAM_COLUMNS);
    const unsigned grid = ((unsigned)tiles * blocks + cluster - 1) / cluster * cluster;
    launch_early(blocks == SP_CUDA_PAIR ? sp_gemm_pair_f32 : sp_gemm_team_f32, dim3(grid),
                 SP_CUDA_TEAM_THREADS,
                 SP_CUDA_TEAM_BYTES(blocks, k.depth > SP_GEMM_SEGMENT * blocks), stream, bindings,
                 k);
}

// As cuda_launch.c.
static void launch_tile(const Case &c, const sp_gemm_constants &k, const host::sp_cuda_tile &tile,
                        cudaStream_t stream)
{
    if (tile.groups == 0 && tile.warps > 0) {
        launch_team(c, k, tile.warps, stream);
        return;
    }
    const sp_gpu_bindings bindings = {{c.x, c.panels, c.bias, c.y},
                                      {tile.groups, tile.warps, tile.rows}};
    const bool is_square = tile.groups == 0;
    const int64_t rows = is_square ? tile.rows : (int64_t)tile.warps * tile.rows;
    const int64_t across = is_square ? tile.rows : SP_CUDA_LANES;
    const dim3 grid((unsigned)((k.rows + rows - 1) / rows),
                    (unsigned)((c.columns + across - 1) / across));
    const bool has_sums = host::sp_cuda_square_has_sums(k.depth, SP_GEMM_SEGMENT, k.activation);
    const size_t bytes = is_square ? SP_CUDA_SQUARE_BYTES(rows, has_sums)
                                   : host::sp_cuda_product_bytes(tile.groups, rows);
    const auto kernel = !is_square   ? sp_gemm_rows_f32
                        : rows == 64 ? sp_gemm_square_64_f32
                                     : sp_gemm_square_128_f32;
    const unsigned threads = is_square ? SP_CUDA_SQUARE_THREADS(tile.rows) : SP_CUDA_THREADS;
    launch_early(kernel, grid, threads, bytes, stream, bindings, k);
}

static void launch_ours(const Case &c, const sp_gemm_constants &k, cudaStream_t stream)
{
    launch_tile(c, k, host::sp_cuda_gemm_tile(&k, shared_bytes), stream);
}

static void pack(const Case &c)
{
    sp_pack_constants k = {};
    k.depth = c.depth;
    k.columns = k.depth_stride = c.columns;
    k.column_stride = 1;
    sp_gpu_bindings bindings = {{c.w, c.panels}};
    sp_gemm_pack_f32<<<256, SP_CUDA_THREADS>>>(bindings, k);
    CHECK(cudaDeviceSynchronize());
}

// ---- cuBLASLt ----

static Lt make_lt(cublasLtHandle_t handle, void *workspace, const Case &c, int64_t rows)
{
    return make_lt(handle, workspace, rows, c.depth, c.columns, c.bias, CUDA_R_32F,
                   CUBLAS_COMPUTE_32F);
}

static cublasLtMatmulAlgo_t choose(const Lt &lt)
{
    cublasLtMatmulAlgo_t algo;
    CHECK(choose(lt, algo) ? 0 : 1);
    return algo;
}

static void launch_lt(const Case &c, const Lt &lt, const cublasLtMatmulAlgo_t &algo,
                      cudaStream_t stream)
{
    const float one = 1.0f, zero = 0.0f;
    CHECK(cublasLtMatmul(lt.handle, lt.product, &one, c.w, lt.w, c.x, lt.x, &zero, c.y, lt.y, c.y,
                         lt.y, &algo, lt.workspace, workspace_bytes, stream));
}

// An algorithm that is chosen for some rows need not run for others.
static bool is_possible(const Lt &lt, const cublasLtMatmulAlgo_t &algo)
{
    cublasLtMatmulHeuristicResult_t result;
    return cublasLtMatmulAlgoCheck(lt.handle, lt.product, lt.w, lt.x, lt.y, lt.y, &algo,
                                   &result) == CUBLAS_STATUS_SUCCESS &&
           result.workspaceSize <= workspace_bytes;
}

// Is the first row of y what it was for one row?
static bool is_same_row(const Case &c, std::vector<float> &first)
{
    std::vector<float> row(c.columns);
    CHECK(cudaMemcpy(row.data(), c.y, c.columns * sizeof(float), cudaMemcpyDeviceToHost));
    if (first.empty()) first = row;
    return memcmp(first.data(), row.data(), c.columns * sizeof(float)) == 0;
}

static bool is_chain(const Case &c, const std::vector<float> &x, const std::vector<float> &w,
                     const std::vector<float> &bias)
{
    std::vector<float> row(c.columns);
    CHECK(cudaMemcpy(row.data(), c.y, c.columns * sizeof(float), cudaMemcpyDeviceToHost));
    for (int64_t n = 0; n < c.columns; n++) {
        float sum = 0;
        for (int64_t first = 0; first < c.depth; first += SP_GEMM_SEGMENT) {
            float acc = 0;
            for (int64_t k = first; k < std::min(c.depth, first + SP_GEMM_SEGMENT); k++) {
                acc = fmaf(x[k], w[k * c.columns + n], acc);
            }
            sum += acc;
        }
        if (row[n] != sum + bias[n]) return false;
    }
    return true;
}

static void fill(std::vector<float> &values, float *to)
{
    static uint32_t state = 1;
    for (float &value : values) {
        state = state * 1664525u + 1013904223u;
        value = (float)(state >> 8) / 16777216.0f - 0.5f;
    }
    CHECK(cudaMemcpy(to, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice));
}

static void run_case(cublasLtHandle_t handle, void *workspace, cudaStream_t stream, int64_t depth,
                     int64_t columns)
{
    Case c = {columns, depth, allocate(max_rows * depth), allocate(depth * columns),
              allocate(depth * (columns + SP_GEMM_PANEL)), allocate(columns),
              allocate(max_rows * columns)};
    std::vector<float> x(max_rows * depth), w(depth * columns), bias(columns);
    fill(x, c.x);
    fill(w, c.w);
    fill(bias, c.bias);
    pack(c);
    const cublasLtMatmulAlgo_t fixed = choose(make_lt(handle, workspace, c, 64));
    std::vector<float> first_ours, first_fixed, first_chosen;
    for (int64_t rows : {1, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096}) {
        const sp_gemm_constants k = ours_constants(c, rows);
        const double ours =
            time_kernel(stream, [&](cudaStream_t s) { launch_ours(c, k, s); });
        const bool ours_same = is_same_row(c, first_ours);
        const bool ours_chain = is_chain(c, x, w, bias);
        const host::sp_cuda_tile others[] = {{0, 0, 64}, {0, 0, 128}, {0, 2, 0}, {0, 4, 0}, {0, 8, 0}};
        double by_other[5];
        for (int i = 0; i < 5; i++) {
            by_other[i] =
                time_kernel(stream, [&](cudaStream_t s) { launch_tile(c, k, others[i], s); });
        }
        const Lt lt = make_lt(handle, workspace, c, rows);
        double by_fixed = 0;
        bool fixed_same = false;
        if (is_possible(lt, fixed)) {
            by_fixed = time_kernel(stream, [&](cudaStream_t s) { launch_lt(c, lt, fixed, s); });
            fixed_same = is_same_row(c, first_fixed);
        }
        const cublasLtMatmulAlgo_t algo = choose(lt);
        const double by_chosen =
            time_kernel(stream, [&](cudaStream_t s) { launch_lt(c, lt, algo, s); });
        const bool chosen_same = is_same_row(c, first_chosen);
        // null: cuBLASLt does not run the fixed algorithm on so many rows.
        char fixed_text[32] = "null";
        if (by_fixed > 0) std::snprintf(fixed_text, sizeof(fixed_text), "%.2f", by_fixed);
        std::printf("{\"case\":\"gemm\",\"depth\":%lld,\"columns\":%lld,\"rows\":%lld,"
                    "\"ours_us\":%.2f,\"square_64_us\":%.2f,\"square_128_us\":%.2f,\"pair_us\":%.2f,"
                    "\"team_4_us\":%.2f,\"team_8_us\":%.2f,"
                    "\"ours_same_bits\":%s,\"ours_is_the_chain\":%s,"
                    "\"cublaslt_fixed_us\":%s,\"cublaslt_fixed_same_bits\":%s,"
                    "\"cublaslt_chosen_us\":%.2f,\"cublaslt_chosen_same_bits\":%s}\n",
                    (long long)depth, (long long)columns, (long long)rows, ours,
                    by_other[0], by_other[1], by_other[2], by_other[3], by_other[4],
                    ours_same ? "true" : "false", ours_chain ? "true" : "false", fixed_text,
                    fixed_same ? "true" : "false", by_chosen, chosen_same ? "true" : "false");
        std::fflush(stdout);
    }
    for (float *at : {c.x, c.w, c.panels, c.bias, c.y}) CHECK(cudaFree(at));
}

int main()
{
    cublasLtHandle_t handle;
    cudaStream_t stream;
    CHECK(cublasLtCreate(&handle));
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    void *workspace = allocate((int64_t)workspace_bytes / 4);
    for (const auto kernel : {sp_gemm_rows_f32, sp_gemm_square_64_f32, sp_gemm_square_128_f32,
                              sp_gemm_pair_f32, sp_gemm_team_f32}) {
        CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   (int)shared_bytes));
    }
    const double nothing =
        time_kernel(stream, [&](cudaStream_t s) { empty<<<16, 256, 0, s>>>(); });
    std::printf("{\"case\":\"empty\",\"us\":%.2f}\n", nothing);
    const int64_t shapes[][2] = {{256, 128}, {48, 512}, {512, 512}, {512, 128}, {1024, 1024},
                                 {4096, 4096}};
    for (const auto &shape : shapes) run_case(handle, workspace, stream, shape[0], shape[1]);
    return 0;
}
