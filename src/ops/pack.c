/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/pack.h"

#include "base/assert.h"

/* ---- formats ---- */

/* The numbers of a row of SP_PACK_FORMAT_LIST. */
typedef struct format_numbers {
    uint64_t element_bytes, width, padding, group;
} format_numbers;

static const format_numbers formats[SP_PACK_FORMAT_COUNT] = {
#define FORMAT_NUMBERS(name, bytes, width, padding, group)                                         \
    [SP_PACK_##name] = {bytes, width, padding, group},
    SP_PACK_FORMAT_LIST(FORMAT_NUMBERS)
#undef FORMAT_NUMBERS
};

static uint64_t whole(uint64_t count, uint64_t of)
{
    return (count + of - 1) / of * of;
}

/* At most 16 times a matrix, which is bounded, or 64 steps and 8 columns more than one, so this
 * cannot overflow. */
uint64_t sp__pack_bytes(sp_pack_format format, int64_t depth, int64_t columns)
{
    SP_ASSERT(format != SP_PACK_NONE && format < SP_PACK_FORMAT_COUNT);
    const format_numbers *f = &formats[format];
    const uint64_t all = whole((uint64_t)columns, f->padding);
    const uint64_t padded = f->width > 0 ? whole(all, f->width) : all;
    return padded * whole((uint64_t)depth, f->group) * f->element_bytes;
}

bool sp__pack_is_whole(sp_pack_format format, const sp_pack_constants *matrix)
{
    const format_numbers *f = &formats[format];
    const bool is_plain = matrix->is_half == 0 && matrix->block == 0 && matrix->depth_stride == 1 &&
                          matrix->column_stride == matrix->depth;
    return is_plain && (uint64_t)matrix->depth % f->group == 0 &&
           (uint64_t)matrix->columns % f->padding == 0;
}

/* ---- kernels ---- */

sp_kernel_id sp__pack_kernel(sp_pack_format format)
{
    static const sp_kernel_id kernels[SP_PACK_FORMAT_COUNT] = {
        [SP_PACK_NONE] = SP_NO_KERNEL,
        [SP_PACK_F32] = SP_KERNEL_ID_gemm_pack_f32,
        [SP_PACK_ROWS_F32] = SP_KERNEL_ID_look_up_pack_f32,
        [SP_PACK_TF32] = SP_KERNEL_ID_narrow_pack_tf32,
        [SP_PACK_F16] = SP_KERNEL_ID_narrow_pack_f16,
        [SP_PACK_BF16] = SP_KERNEL_ID_narrow_pack_bf16,
    };
    return kernels[format];
}

sp_pack_format sp__pack_format_of(sp_kernel_id kernel)
{
    switch (kernel) {
    case SP_KERNEL_ID_gemm_pack_f32:
    case SP_KERNEL_ID_channels_pack_f32:
    case SP_KERNEL_ID_gemm_f32:
    case SP_KERNEL_ID_gemm_strided_f32:
    case SP_KERNEL_ID_lstm_f32:
    case SP_KERNEL_ID_gru_f32:
    case SP_KERNEL_ID_rnn_f32:
    case SP_KERNEL_ID_conv_blocked_f32:
    case SP_KERNEL_ID_conv_pool_blocked_f32:
    case SP_KERNEL_ID_depthwise_blocked_f32:
    case SP_KERNEL_ID_norm_blocked_f32: /* lists, which are matrices of one step */
    case SP_KERNEL_ID_channel_chain_f32:
        return SP_PACK_F32;
    case SP_KERNEL_ID_look_up_pack_f32:
    case SP_KERNEL_ID_look_up_f32:
        return SP_PACK_ROWS_F32;
    case SP_KERNEL_ID_narrow_pack_tf32:
    case SP_KERNEL_ID_gemm_narrow_tf32:
    case SP_KERNEL_ID_gemm_packed_tf32:
    case SP_KERNEL_ID_conv_narrow_tf32:
        return SP_PACK_TF32;
    case SP_KERNEL_ID_narrow_pack_f16:
    case SP_KERNEL_ID_gemm_narrow_f16:
    case SP_KERNEL_ID_gemm_packed_f16:
    case SP_KERNEL_ID_conv_narrow_f16:
        return SP_PACK_F16;
    case SP_KERNEL_ID_narrow_pack_bf16:
    case SP_KERNEL_ID_gemm_narrow_bf16:
    case SP_KERNEL_ID_gemm_packed_bf16:
    case SP_KERNEL_ID_conv_narrow_bf16:
        return SP_PACK_BF16;
    default:
        return SP_PACK_NONE;
    }
}

/* ---- ops ---- */

sp_pack sp__op_pack(const sp_op_call *call, uint32_t input)
{
    sp_pack pack = {.format = SP_PACK_NONE};
    if (call->op->pack == NULL || input < 1 || input > SP_OP_PACKED_INPUTS) return pack;
    call->op->pack(call, input, &pack);
    return pack;
}
