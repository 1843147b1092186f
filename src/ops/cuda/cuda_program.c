/* SPDX-License-Identifier: Apache-2.0 */
/* The program as data of the library: its source, and nvcc's binary if the build had nvcc.
 * CMakeLists.txt defines the files that have their bytes as numbers. */
#include "ops/cuda/cuda_kernels.h"

static const char source[] = {
#include SP_CUDA_SOURCE_BYTES
    0};

#if defined(SP_CUDA_BINARY_BYTES)
static const unsigned char binary[] = {
#include SP_CUDA_BINARY_BYTES
};
#define BINARY binary
#define BINARY_SIZE sizeof(binary)
#else
#define BINARY NULL
#define BINARY_SIZE 0
#endif

const sp_gpu_program sp__cuda_program = {
    .name = "streampool_ops", .source = source, .binary = BINARY, .binary_bytes = BINARY_SIZE};
