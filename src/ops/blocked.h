/* SPDX-License-Identifier: Apache-2.0 */
/* Constants and grids of the kernels of blocked_constants.h, from those of the kernels that they
 * take the place of. A call that a blocked kernel cannot make is refused by false. */
#ifndef SP_OPS_BLOCKED_H
#define SP_OPS_BLOCKED_H

#include "device/kernel.h"
#include "ops/kernel_id.h"

/* Images in blocks of channels. */
typedef struct sp_image_form {
    int64_t images, channels, pixels;
} sp_image_form;

static inline bool sp__image_form_equal(const sp_image_form *a, const sp_image_form *b)
{
    return a->images == b->images && a->channels == b->channels && a->pixels == b->pixels;
}

static inline int64_t sp__channel_blocks(int64_t channels)
{
    return (channels + SP_CHANNEL_BLOCK - 1) / SP_CHANNEL_BLOCK;
}

/* Elements in blocks; at most 16 times those of the plain images. */
static inline int64_t sp__image_form_count(const sp_image_form *form)
{
    return form->images * sp__channel_blocks(form->channels) * SP_CHANNEL_BLOCK * form->pixels;
}

/* Plain and blocked images are the same bytes. */
static inline bool sp__image_form_is_plain(const sp_image_form *form)
{
    return form->pixels == 1 && form->channels % SP_CHANNEL_BLOCK == 0;
}

typedef struct sp_blocked_call {
    sp_blocked_constants constants;
    uint32_t grid[3];
    sp_image_form x, y;
    sp_gemm_pack_constants pack; /* of the weights, for a convolution */
    uint64_t packed_bytes;
} sp_blocked_call;

/* A call of conv_f32, where x is blocked already or is not; of conv_depthwise_f32. */
bool sp__blocked_conv(const sp_conv_constants *conv, bool is_x_blocked, sp_blocked_call *out);
bool sp__blocked_depthwise(const sp_conv_constants *conv, sp_blocked_call *out);

/* A call of max_pool_f32 on images of that form. */
bool sp__blocked_max_pool(const sp_pool_constants *pool, const sp_image_form *x,
                          sp_blocked_call *out);

/* A call of batch_norm_f32 on images of that form. */
bool sp__blocked_norm(const sp_batch_norm_constants *norm, const sp_image_form *x,
                      sp_norm_blocked_constants *constants, uint32_t grid[3]);

/* A call of add_f32, sub_f32, mul_f32 or div_f32 (`kernel`) on such images and one number for each
 * channel of each image, which is the first operand if `is_reversed`. */
bool sp__blocked_channel_op(sp_kernel_id kernel, bool is_reversed, uint8_t activation,
                            const sp_image_form *x, sp_channel_op_constants *constants,
                            uint32_t grid[3]);

/* Has the table the kernels of a step in whose place plans for the CPU have this one? Other devices
 * need no copies between layouts. A kernel without blocks stands for itself. */
bool sp__blocked_is_there(const sp_kernel *kernels, sp_kernel_id kernel, const void *constants);

/* The copies between the two layouts. */
bool sp__blocked_copy(const sp_image_form *form, sp_channels_constants *constants,
                      uint32_t grid[3]);

#endif
