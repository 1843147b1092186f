/* SPDX-License-Identifier: Apache-2.0 */
/* Constants of the kernels of blocked_constants.h, from those of the kernels that they
 * take the place of. A call that a blocked kernel cannot make is refused by false. */
#ifndef SP_OPS_BLOCKED_H
#define SP_OPS_BLOCKED_H

#include "device/kernel.h"
#include "ops/pack.h"

/* Where the channels of an image are: channel c is lane lanes[c] % 16 of block lanes[c] / 16. No
 * two are in the same lane. */
typedef struct sp_channel_map {
    int64_t channels, blocks;
    const uint32_t *lanes;
} sp_channel_map;

/* Images in blocks of channels. */
typedef struct sp_image_form {
    int64_t images, channels, pixels;
    const sp_channel_map *map; /* NULL: channel c is lane c % 16 of block c / 16 */
} sp_image_form;

/* Equal maps are one (plan_blocks_maps.c). */
static inline bool sp__image_form_equal(const sp_image_form *a, const sp_image_form *b)
{
    return a->images == b->images && a->channels == b->channels && a->pixels == b->pixels &&
           a->map == b->map;
}

static inline int64_t sp__channel_blocks(int64_t channels)
{
    return (channels + SP_CHANNEL_BLOCK - 1) / SP_CHANNEL_BLOCK;
}

/* Of one image. */
static inline int64_t sp__image_form_blocks(const sp_image_form *form)
{
    return form->map != NULL ? form->map->blocks : sp__channel_blocks(form->channels);
}

static inline int64_t sp__image_form_lane(const sp_image_form *form, int64_t channel)
{
    return form->map != NULL ? form->map->lanes[channel] : channel;
}

/* Elements in blocks; without a map at most 16 times those of the plain images. */
static inline int64_t sp__image_form_count(const sp_image_form *form)
{
    return form->images * sp__image_form_blocks(form) * SP_CHANNEL_BLOCK * form->pixels;
}

/* Plain and blocked images are the same bytes. */
static inline bool sp__image_form_is_plain(const sp_image_form *form)
{
    return form->pixels == 1 && form->channels % SP_CHANNEL_BLOCK == 0 && form->map == NULL;
}

/* At most a third of the lanes have no channel: steps compute those too. */
static inline bool sp__image_form_is_dense(const sp_image_form *form)
{
    return form->map == NULL || form->map->blocks * SP_CHANNEL_BLOCK * 2 <= form->map->channels * 3;
}

typedef struct sp_blocked_call {
    sp_blocked_constants constants;
    sp_image_form x, y; /* the caller sets their maps */
    sp_pack weights;    /* of a convolution: filters are columns */
} sp_blocked_call;

/* A call of conv_f32, where x is blocked already or is not. The blocks of each group of x, unless
 * the call may have offsets, and of y begin with the group's first channel. */
bool sp__blocked_conv(const sp_conv_constants *conv, bool is_x_blocked, sp_blocked_call *out);

/* A pointwise convolution with a stride reads some pixels of x, `form`: the convolution without a
 * stride of a copy of those, and the call of copy_strided that makes it, in the form's lanes. */
bool sp__blocked_thin(const sp_conv_constants *conv, const sp_image_form *form,
                      sp_conv_constants *thin, sp_copy_constants *copy);

/* Is an input of an output padding? */
bool sp__blocked_has_padding(const sp_conv_constants *conv);

/* May it have offsets? */
bool sp__blocked_has_offsets(const sp_blocked_call *call);

/* A call of conv_f32 that conv_rows_f32 makes: few filters, rows of outputs that fill vectors. */
bool sp__blocked_rows(const sp_conv_constants *conv, sp_blocked_call *out);

/* A call of conv_depthwise_f32. */
bool sp__blocked_depthwise(const sp_conv_constants *conv, sp_blocked_call *out);

/* A step that computes each lane by itself computes those of this form. */
void sp__blocked_set_lanes(sp_blocked_call *call, const sp_image_form *form);

/* A call of max_pool_f32 on images of that form. */
bool sp__blocked_max_pool(const sp_pool_constants *pool, const sp_image_form *x,
                          sp_blocked_call *out);

/* A convolution and the maxima over windows of its results as one call, which stores the maxima
 * alone. */
bool sp__blocked_conv_pool(const sp_blocked_constants *conv, const sp_blocked_call *pool,
                           sp_conv_pool_constants *out);
/* Does that pay: do the results of one image leave the caches before they are read again? */
bool sp__blocked_conv_pool_pays(const sp_blocked_constants *conv);

/* A call of average_pool_f32 on images of that form; *out is but for the constants. */
bool sp__blocked_average_pool(const sp_window_constants *pool, const sp_image_form *x,
                              sp_average_blocked_constants *constants, sp_blocked_call *out);

/* A call of batch_norm_f32 on images of that form. */
bool sp__blocked_norm(const sp_batch_norm_constants *norm, const sp_image_form *x,
                      sp_norm_blocked_constants *constants);

/* A call of reduce_f32, the means of all pixels of each channel of such images. */
bool sp__blocked_mean(const sp_reduce_constants *reduce, const sp_image_form *x,
                      sp_channels_constants *constants);

/* A call of add_f32, sub_f32, mul_f32 or div_f32 (`kernel`) on such images and one number for each
 * channel of each image, which is the first operand if `is_reversed`. */
bool sp__blocked_channel_op(sp_kernel_id kernel, bool is_reversed, uint8_t activation,
                            const sp_image_form *x, sp_channel_op_constants *constants);

/* The constants of a chain on such images, but for the operations. */
bool sp__blocked_chain(const sp_image_form *x, sp_channel_chain_constants *constants);

/* Has the table the kernels of a step in whose place plans for the CPU have this one? Other devices
 * need no copies between layouts. A kernel without blocks stands for itself. */
bool sp__blocked_is_there(const sp_kernel *kernels, sp_kernel_id kernel, const void *constants);

/* The copies between the two layouts, without a map. */
bool sp__blocked_copy(const sp_image_form *form, sp_channels_constants *constants);

/* A copy from one form of the same images to another. */
bool sp__blocked_move(const sp_image_form *from, const sp_image_form *to,
                      sp_channels_move_constants *constants);

#endif
