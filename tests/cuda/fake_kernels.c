/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_kernels.h"

#include <stdio.h>

#include "device/cuda/cuda_command.h"
#include "fake_cuda.h"
#include "fake_nvrtc.h"
#include "fake_signal.h"
#include "ops/cuda/cuda_kernels.h"
#include "ops/lowering.h"
#include "support/test.h"

static const uint32_t constant_bytes[SP_KERNEL_COUNT] = {
#define ROW(kernel, constants, how) [SP_KERNEL_ID_##kernel] = sizeof(sp_##constants##_constants),
    SP_CUDA_KERNEL_LIST(ROW)
#undef ROW
};

/* The report that the GPU's kernel would make: the last binding, which a 0 follows. */
static void report(void *const *bindings)
{
    long long number = 0, limit = 0;
    const bool is_index =
        sscanf(sp_last_error(), "index %lld is out of range for a dimension of %lld", &number,
               &limit) == 2;
    const bool is_length =
        sscanf(sp_last_error(), "a sequence of length %lld; the longest has %lld", &number,
               &limit) == 2;
    CHECK(is_index || is_length);
    uint32_t count = 0;
    while (bindings[count] != NULL) count++;
    sp_gpu_report *place = bindings[count - 1];
    *place = (sp_gpu_report){.number = number, .most = limit + (is_length ? 2 : 1)};
}

static void run_kernel(sp_kernel_id id, void **params)
{
    if (id == SP_KERNEL_ID_signal_done) {
        fake_signal_run(params[0], params[1]);
        return;
    }
    const sp_kernel *kernel = &sp__cpu_kernels(sp__cpu_isa_selected())[id];
    const sp_status status = sp__kernel_run(kernel, params[0], params[1]);
    if (status == SP_INVALID && sp__cuda_kernels()[id].gpu->reports) report(params[0]);
    else CHECK_OK(status);
}

#define RUN(kernel, constants, how)                                                                \
    static void run_##kernel(const uint32_t launch[3], const uint32_t block[3], void **params)     \
    {                                                                                              \
        (void)launch, (void)block;                                                                 \
        run_kernel(SP_KERNEL_ID_##kernel, params);                                                 \
    }
SP_CUDA_KERNEL_LIST(RUN)
#undef RUN

static void add_to_image(char **end, const char *stop, sp_kernel_id id, const char *name,
                         fake_cuda_kernel run)
{
    char entry[64];
    snprintf(entry, sizeof entry, "sp_%s", name);
    fake_cuda_register(entry, run);
    *end += snprintf(*end, (size_t)(stop - *end), "%s %zu %u\n", entry, sizeof(sp_cuda_bindings),
                     constant_bytes[id]);
}

void fake_kernels_begin(void)
{
    static char image[32768];
    char *end = image;
    end += snprintf(end, sizeof image, "FAKE\n");
#define ADD(kernel, constants, how)                                                                \
    add_to_image(&end, image + sizeof image, SP_KERNEL_ID_##kernel, #kernel, run_##kernel);
    SP_CUDA_KERNEL_LIST(ADD)
#undef ADD
    /* Variants compute what their kernel does. */
#define ADD_VARIANT(kernel, variant)                                                               \
    add_to_image(&end, image + sizeof image, SP_KERNEL_ID_##kernel, variant, run_##kernel);
    ADD_VARIANT(gemm_f32, "gemm_rows_f32")
    ADD_VARIANT(lstm_f32, "lstm_team_f32")
    ADD_VARIANT(gru_f32, "gru_team_f32")
    ADD_VARIANT(rnn_f32, "rnn_team_f32")
    ADD_VARIANT(gemm_f32, "gemm_square_64_f32")
    ADD_VARIANT(gemm_f32, "gemm_square_128_f32")
    ADD_VARIANT(gemm_f32, "gemm_pair_f32")
    ADD_VARIANT(gemm_f32, "gemm_team_f32")
    ADD_VARIANT(conv_f32, "conv_team_f32")
    ADD_VARIANT(conv_f32, "conv_square_64_f32")
    ADD_VARIANT(conv_f32, "conv_square_128_f32")
    ADD_VARIANT(conv_f32, "conv_small_f32")
    ADD_VARIANT(conv_f32, "conv_direct_3_f32")
    ADD_VARIANT(conv_f32, "conv_direct_3_by_2_f32")
    ADD_VARIANT(conv_f32, "conv_direct_5_f32")
#define ADD_NARROW(type)                                                                           \
    ADD_VARIANT(gemm_narrow_##type, "gemm_narrow_deep_" #type)                                     \
    ADD_VARIANT(gemm_narrow_##type, "gemm_narrow_32_" #type)                                       \
    ADD_VARIANT(gemm_narrow_##type, "gemm_narrow_64_" #type)                                       \
    ADD_VARIANT(gemm_packed_##type, "gemm_packed_wide_" #type)                                     \
    ADD_VARIANT(gemm_packed_##type, "gemm_packed_128_" #type)                                      \
    ADD_VARIANT(gemm_packed_##type, "gemm_packed_192_" #type)                                      \
    ADD_VARIANT(conv_narrow_##type, "conv_narrow_deep_" #type)                                     \
    ADD_VARIANT(conv_narrow_##type, "conv_narrow_64_" #type)                                       \
    ADD_VARIANT(conv_narrow_##type, "conv_narrow_wide_" #type)                                     \
    ADD_VARIANT(row_norm_f32, "row_norm_packed_" #type)
#define ADD_HALVES(type)                                                                           \
    ADD_VARIANT(gemm_packed_##type, "gemm_halves_" #type)                                          \
    ADD_VARIANT(gemm_packed_##type, "gemm_halves_128_" #type)                                      \
    ADD_VARIANT(gemm_packed_##type, "gemm_halves_192_" #type)
    ADD_NARROW(tf32)
    ADD_NARROW(f16)
    ADD_NARROW(bf16)
    ADD_VARIANT(gemm_f32, "gemm_rounded_f16")
    ADD_VARIANT(gemm_f32, "gemm_rounded_bf16")
    ADD_VARIANT(attention_f32, "attention_rounded_f16")
    ADD_VARIANT(attention_f32, "attention_rounded_bf16")
    ADD_HALVES(f16)
    ADD_HALVES(bf16)
#undef ADD_HALVES
#undef ADD_NARROW
#undef ADD_VARIANT
    fake_cuda_set_image(image);
    fake_nvrtc_accept_all(true);
}
