/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA kernels give the CPU's bits on a GPU, for random calls of every op; and how long kernels
 * of the usual sizes take, as notes. Skipped where there is no GPU. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "cuda/cuda_driver.h"
#include "cuda/kernel_compare.h"
#include "ops/cuda/cuda_kernels.h"
#include "support/test.h"

#define ARENA_BYTES (UINT64_C(1) << 28)

static uint64_t arena;

/* Once for all tests of the program. */
static bool open_gpu(const char **why)
{
    static bool is_open;
    static const char *reason;
    if (arena == 0 && reason == NULL) {
        is_open = cuda_driver_open(&reason);
        if (is_open) arena = cuda_driver_memory(ARENA_BYTES);
    }
    *why = reason;
    return is_open && arena != 0;
}

/* Every binding gets a copy on the GPU, as well aligned as here; what it may write comes back. */
static sp_status run_on_gpu(const sp_dispatch *dispatch, void *const *bindings, void *context)
{
    (void)context;
    uint64_t addresses[SP_MAX_BINDINGS], end = arena;
    bool is_fine = true;
    for (uint32_t i = 0; i < dispatch->binding_count; i++) {
        const uint64_t bytes = dispatch->bindings[i].bytes;
        addresses[i] = end + (uint64_t)(uintptr_t)bindings[i] % 256;
        /* One memory under two names, as the ops that work in place have it. */
        for (uint32_t k = 0; k < i; k++) {
            if (bindings[k] == bindings[i]) addresses[i] = addresses[k];
        }
        is_fine = is_fine && cuda_driver_to_gpu(addresses[i], bindings[i], bytes);
        end += (bytes / 256 + 2) * 256;
    }
    is_fine = is_fine && cuda_driver_launch(dispatch, addresses) && cuda_driver_synchronize();
    for (uint32_t i = 0; i < dispatch->binding_count; i++) {
        if (!dispatch->bindings[i].is_write) continue;
        is_fine =
            is_fine && cuda_driver_from_gpu(bindings[i], addresses[i], dispatch->bindings[i].bytes);
    }
    if (is_fine) return SP_OK;
    return sp__fail(SP_INTERNAL, "the driver reports an error after %s", dispatch->kernel->name);
}

TEST(kernels_have_the_bits_of_the_cpu_on_a_gpu)
{
    const char *why;
    if (!open_gpu(&why)) SKIP(why);
    kernel_compare compare = {.kernels = sp__cuda_kernels(), .run = run_on_gpu};
    for (uint32_t kind = 0; kind < kernel_case_kinds(); kind++) {
        kernel_compare_calls(&compare, kind, 5000, test_count(20000, 1000));
    }
    for (int i = 0; i < SP_KERNEL_COUNT; i++) CHECK(compare.runs[i] > 0);
}

/* ---- times ---- */

/* The GPU's time for each of many launches, one after the other. */
static void note_time(const char *what, const sp_dispatch *dispatch, double products)
{
    enum { LAUNCHES = 200 };
    uint64_t addresses[SP_MAX_BINDINGS];
    for (uint32_t i = 0; i < dispatch->binding_count; i++) {
        addresses[i] = arena + i * (ARENA_BYTES / SP_MAX_BINDINGS);
    }
    for (int i = 0; i < 20; i++) CHECK(cuda_driver_launch(dispatch, addresses));
    cuda_driver_lap_us();
    for (int i = 0; i < LAUNCHES; i++) CHECK(cuda_driver_launch(dispatch, addresses));
    const double us = cuda_driver_lap_us() / LAUNCHES;
    test_note("%-40s %8.2f us %8.3f TFLOP/s", what, us, products * 2e-6 / us);
}

static void set_dispatch(sp_dispatch *out, sp_kernel_id kernel, uint32_t bindings,
                         const void *constants, uint32_t bytes)
{
    memset(out, 0, sizeof(*out));
    out->kernel = &sp__cuda_kernels()[kernel];
    out->binding_count = bindings;
    out->constant_bytes = bytes;
    memcpy(out->constants, constants, bytes);
}

static void note_gemm(int64_t m, int64_t n, int64_t depth)
{
    const sp_gemm_constants k = {.rows = m,
                                 .columns = n,
                                 .depth = depth,
                                 .a_row = depth,
                                 .a_depth = 1,
                                 .b_depth = SP_GEMM_PANEL,
                                 .b_panel = SP_GEMM_PANEL * depth,
                                 .c_column = 1,
                                 .alpha = 1,
                                 .beta = 1,
                                 .has_c = true,
                                 .is_padded = true};
    char what[64];
    sp_dispatch dispatch;
    set_dispatch(&dispatch, SP_KERNEL_ID_gemm_f32, 4, &k, sizeof(k));
    snprintf(what, sizeof(what), "gemm %lld x %lld x %lld", (long long)m, (long long)n,
             (long long)depth);
    note_time(what, &dispatch, (double)m * (double)n * (double)depth);
}

/* Square images, same padding. */
static void note_conv(int64_t channels, int64_t filters, int64_t in, int64_t kernel, int64_t stride,
                      bool is_depthwise)
{
    sp_conv_constants k = {.groups = is_depthwise ? channels : 1,
                           .channels = is_depthwise ? 1 : channels,
                           .filters = is_depthwise ? 1 : filters,
                           .in_h = in,
                           .in_w = in,
                           .out_h = in / stride,
                           .out_w = in / stride,
                           .kernel_h = kernel,
                           .kernel_w = kernel,
                           .stride_h = stride,
                           .stride_w = stride,
                           .dilation_h = 1,
                           .dilation_w = 1,
                           .pad_top = kernel / 2,
                           .pad_left = kernel / 2,
                           .planes = filters,
                           .has_bias = true};
    if (kernel == 1) {
        k.in_w = k.out_w = in * in;
        k.in_h = k.out_h = 1;
    }
    char what[64];
    sp_dispatch dispatch;
    set_dispatch(&dispatch, is_depthwise ? SP_KERNEL_ID_conv_depthwise_f32 : SP_KERNEL_ID_conv_f32,
                 4, &k, sizeof(k));
    snprintf(what, sizeof(what), "%s %lld -> %lld, %lld^2, kernel %lld / %lld",
             is_depthwise ? "depthwise" : "conv", (long long)channels, (long long)filters,
             (long long)in, (long long)kernel, (long long)stride);
    note_time(what, &dispatch,
              (double)(filters * k.out_h * k.out_w * k.channels * kernel * kernel));
}

TEST(usual_sizes_take_microseconds)
{
    static const int64_t rows[] = {1, 8, 16, 64, 256, 4096};
    const char *why;
    if (!open_gpu(&why)) SKIP(why);
    for (size_t i = 0; i < SP_COUNT_OF(rows); i++) note_gemm(rows[i], 512, 512);
    note_gemm(1, 2048, 2048);
    note_gemm(1, 10, 512);
    note_gemm(2048, 2048, 2048);
    note_conv(3, 24, 128, 5, 2, false);
    note_conv(24, 28, 64, 1, 1, false);
    note_conv(96, 96, 8, 1, 1, false);
    note_conv(64, 64, 56, 3, 1, false);
    note_conv(24, 24, 64, 3, 1, true);
    note_conv(96, 96, 8, 5, 1, true);
    for (int64_t n = 1000; n <= 1000000; n *= 1000) {
        const sp_flat_constants flat = {.count = n};
        const sp_binary_constants add = {.rank = 1, .count = n, .dims = {n}, .a = {1}, .b = {1}};
        sp_dispatch dispatch;
        set_dispatch(&dispatch, SP_KERNEL_ID_relu_f32, 2, &flat, sizeof(flat));
        note_time(n == 1000 ? "relu of 1000" : "relu of 1000000", &dispatch, 0);
        set_dispatch(&dispatch, SP_KERNEL_ID_add_f32, 3, &add, sizeof(add));
        note_time(n == 1000 ? "add of 1000" : "add of 1000000", &dispatch, 0);
    }
}

TEST_MAIN
