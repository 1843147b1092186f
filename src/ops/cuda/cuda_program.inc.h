/* SPDX-License-Identifier: Apache-2.0 */
/* One program as data of the library: its source, and nvcc's binary if the build had nvcc. Included
 * by a file for each program that program.cmake writes; parameters SP_NAME, SP_KERNELS, its list,
 * and SP_SOURCE_BYTES and SP_BINARY_BYTES, files that have the bytes as numbers, the latter perhaps
 * not defined. The source is deflated, and its file defines SP_TEXT_BYTES. */
#include "ops/cuda/cuda_kernels.h"

static const unsigned char deflated[] = {
#include SP_SOURCE_BYTES
};
static const sp_gpu_text source = {deflated, sizeof(deflated), SP_TEXT_BYTES};

#if defined(SP_BINARY_BYTES)
static const unsigned char binary[] = {
#include SP_BINARY_BYTES
};
#define BINARY binary
#define BINARY_SIZE sizeof(binary)
#else
#define BINARY NULL
#define BINARY_SIZE 0
#endif

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define TEXT_(name) #name
#define TEXT(name) TEXT_(name)

/* Each variant is in one program only; room for all in each is a few words. */
#define ONE(...) +1
enum {
    KERNELS = 0 SP_KERNELS(ONE) SP_CUDA_VARIANT_LIST(ONE) SP_CUDA_CELL_VARIANT_LIST(ONE)
        SP_CUDA_TENSOR_VARIANT_LIST(ONE)
};

const sp_gpu_program PASTE(sp__cuda_program_, SP_NAME) = {.name = "streampool_" TEXT(SP_NAME),
                                                          .parts = {&sp__cuda_prologue, &source},
                                                          .binary = BINARY,
                                                          .binary_bytes = BINARY_SIZE,
                                                          .kernel_count = KERNELS,
                                                          .waits = true};
