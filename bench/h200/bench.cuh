// SPDX-License-Identifier: Apache-2.0
// What the measurements of kernels share: the kernels that the library embeds, launches as in a graph of
// a model, and time.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

// What the library embeds.
#ifndef SP_BENCH_PROGRAM
#define SP_BENCH_PROGRAM "cuda_core.cu"
#endif
#include SP_BENCH_PROGRAM

// The choice of tiles once more, for the host. Calls of the first names would also find the other ones.
#define sp_cuda_gemm_matrices sp_host_gemm_matrices
#define sp_cuda_conv_images sp_host_conv_images
#define sp_cuda_direct_rows sp_host_direct_rows
#define sp_cuda_direct_pitch sp_host_direct_pitch
#define sp_cuda_direct_bytes sp_host_direct_bytes
#undef SP_OPS_CUDA_ARCH_TILES_H
#undef SP_CUDA_FUNCTION
#define SP_CUDA_FUNCTION static inline
namespace host {
#include "ops/cuda/tile_choice.h"
}

#define CHECK(call)                                                                                \
    do {                                                                                           \
        const int status_ = (int)(call);                                                           \
        if (status_ != 0) {                                                                        \
            std::fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #call, status_);           \
            std::exit(1);                                                                          \
        }                                                                                          \
    } while (0)

// Launches of a graph that are timed.
#ifndef SP_BENCH_ROUNDS
#define SP_BENCH_ROUNDS 50
#endif

static const int64_t shared_bytes = 227 << 10;

// The launch of a kernel of a model's graph: the next one may be launched before it has ended.
template <class Constants>
static void launch_early(void (*kernel)(sp_gpu_bindings, Constants), dim3 grid, unsigned threads,
                         size_t bytes, cudaStream_t stream, const sp_gpu_bindings &bindings,
                         const Constants &k)
{
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = dim3(threads);
    config.dynamicSmemBytes = bytes;
    config.stream = stream;
    config.attrs = &early;
    config.numAttrs = 1;
    CHECK(cudaLaunchKernelEx(&config, kernel, bindings, k));
}

// Microseconds for one launch, from graphs of 33 and of 1.
template <class Launch> static double time_kernel(cudaStream_t stream, const Launch &launch)
{
    double medians[2];
    for (int which = 0; which < 2; which++) {
        cudaGraph_t graph;
        cudaGraphExec_t exec;
        cudaEvent_t begin, end;
        CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        for (int i = 0; i < (which == 0 ? 1 : 33); i++) launch(stream);
        CHECK(cudaStreamEndCapture(stream, &graph));
        CHECK(cudaGraphInstantiate(&exec, graph, 0));
        CHECK(cudaEventCreate(&begin));
        CHECK(cudaEventCreate(&end));
        std::vector<float> times;
        for (int round = 0; round < 10 + SP_BENCH_ROUNDS; round++) {
            float ms;
            CHECK(cudaEventRecord(begin, stream));
            CHECK(cudaGraphLaunch(exec, stream));
            CHECK(cudaEventRecord(end, stream));
            CHECK(cudaEventSynchronize(end));
            CHECK(cudaEventElapsedTime(&ms, begin, end));
            if (round >= 10) times.push_back(ms * 1000);
        }
        std::nth_element(times.begin(), times.begin() + SP_BENCH_ROUNDS / 2, times.end());
        medians[which] = times[SP_BENCH_ROUNDS / 2];
        CHECK(cudaGraphExecDestroy(exec));
        CHECK(cudaGraphDestroy(graph));
        CHECK(cudaEventDestroy(begin));
        CHECK(cudaEventDestroy(end));
    }
    return (medians[1] - medians[0]) / 32;
}

static float *allocate(int64_t count)
{
    void *at;
    CHECK(cudaMalloc(&at, (size_t)count * sizeof(float)));
    return (float *)at;
}
