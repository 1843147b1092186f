// SPDX-License-Identifier: Apache-2.0
// Products with a bias by cuBLASLt, as peers.
#pragma once

#include <cublasLt.h>

#include "bench.cuh"

static const size_t workspace_bytes = 32 << 20;

struct Lt {
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t w, x, y;
    void *workspace;
};

// Its matrices are stored by columns: y^T = w^T x^T.
static Lt make_lt(cublasLtHandle_t handle, void *workspace, int64_t rows, int64_t depth, int64_t columns,
                  const float *bias, cudaDataType_t type, cublasComputeType_t compute)
{
    Lt lt = {handle, nullptr, nullptr, nullptr, nullptr, workspace};
    const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    CHECK(cublasLtMatmulDescCreate(&lt.product, compute, CUDA_R_32F));
    CHECK(cublasLtMatmulDescSetAttribute(lt.product, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
                                         sizeof(epilogue)));
    CHECK(cublasLtMatmulDescSetAttribute(lt.product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias,
                                         sizeof(bias)));
    CHECK(cublasLtMatrixLayoutCreate(&lt.w, type, columns, depth, columns));
    CHECK(cublasLtMatrixLayoutCreate(&lt.x, type, depth, rows, depth));
    CHECK(cublasLtMatrixLayoutCreate(&lt.y, type, columns, rows, columns));
    return lt;
}

// Returns whether there is an algorithm.
static bool choose(const Lt &lt, cublasLtMatmulAlgo_t &algo)
{
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t result;
    int found = 0;
    CHECK(cublasLtMatmulPreferenceCreate(&preference));
    CHECK(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                               &workspace_bytes, sizeof(workspace_bytes)));
    const bool is_failed =
        cublasLtMatmulAlgoGetHeuristic(lt.handle, lt.product, lt.w, lt.x, lt.y, lt.y, preference,
                                         1, &result, &found) != CUBLAS_STATUS_SUCCESS;
    CHECK(cublasLtMatmulPreferenceDestroy(preference));
    algo = result.algo;
    return !is_failed && found == 1;
}
