/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels and constants, as in kernel_constants.h, of images in blocks of channels, which plans for
 * the CPU use between convolutions (docs/decisions/0051-channel-blocks.md). An image
 * [channels][pixels] is [ceil(channels / 16)][pixels][16] then; elements of the last block beyond
 * the channels have no defined value and reach no other element. */
#ifndef SP_OPS_BLOCKED_CONSTANTS_H
#define SP_OPS_BLOCKED_CONSTANTS_H

#include "ops/kernel_constants.h"

/* Channels of a block: those of a panel of packed weights. */
#define SP_CHANNEL_BLOCK SP_GEMM_PANEL

/* The comments list the bindings in order; the last one is written. Tensors are blocked unless said
 * otherwise. Weights are packed by gemm_pack_f32, filters as columns, or by channels_pack_f32. */
#define SP_BLOCKED_KERNEL_LIST(X)                                                                  \
    X(conv_blocked_f32)         /* x, blocked unless is_plain, w, offsets if has_offsets, bias */  \
                                /* if has_bias, the four lists of batch_norm_f32 if has_norm, */   \
                                /* an image if has_other, y */                                     \
    X(conv_pool_blocked_f32)    /* the same, without offsets and image */                          \
    X(depthwise_blocked_f32)    /* the same as conv_blocked_f32, without offsets */                \
    X(conv_rows_f32)            /* x, w, bias if has_bias, y, all of them plain: few filters */    \
    X(max_pool_blocked_f32)     /* x, y */                                                         \
    X(average_pool_blocked_f32) /* x, y */                                                         \
    X(mean_blocked_f32)         /* x, y, images of one pixel */                                    \
    X(norm_blocked_f32)         /* x, scale, bias, mean, variance, y: as batch_norm_f32 */         \
    X(channel_op_f32)           /* x, one number a channel, y */                                   \
    X(channel_chain_f32)        /* x, what its operations read, y */                               \
    X(channels_block)           /* x, plain, y */                                                  \
    X(channels_unblock)         /* x, y, plain */                                                  \
    X(channels_move)            /* x, offsets, y */                                                \
    X(channels_pack_f32)        /* a list of rows, panels */

/* Input that a kernel has on its stack at a time, in elements. */
#define SP_PATCH_ELEMENTS 9216
/* Of conv_pool_blocked_f32, which has results of the convolution there beside it, and its taps. */
#define SP_POOLED_PATCH_ELEMENTS 7168
#define SP_POOLED_ELEMENTS 10880
#define SP_POOLED_TAPS 64

/* Of depthwise_blocked_f32 and pools a group is a channel. */
typedef struct sp_blocked_constants {
    sp_conv_constants of; /* without planes; for a pool the sizes only */
    int64_t images;
    int64_t x_blocks;   /* of an image of x, if has_offsets */
    bool is_plain;      /* x of conv_blocked_f32 */
    bool has_offsets;   /* an int64 for each channel of all groups: where pixel 0 of it
                           is in the image. Of a pointwise convolution of stride 1 */
    bool has_norm;      /* batch_norm_f32 before the activation */
    bool has_other;     /* then another image is added */
    bool skips_padding; /* of a convolution: its weights are finite, so taps in the
                           padding change no sum */
    float epsilon;      /* of has_norm */
} sp_blocked_constants;

/* conv_pool_blocked_f32: a convolution, of one group, of which only the maxima over windows are
 * stored. */
typedef struct sp_conv_pool_constants {
    sp_blocked_constants conv;
    sp_conv_constants pool; /* the sizes only: in_h and in_w are the convolution's out_h, out_w */
} sp_conv_pool_constants;

/* Is the input of each output one pixel, the one of its number? */
static inline bool sp_blocked_is_direct(const sp_conv_constants *k)
{
    return k->kernel_h == 1 && k->kernel_w == 1 && k->stride_h == 1 && k->stride_w == 1 &&
           k->in_h == k->out_h && k->in_w == k->out_w && k->pad_top == 0 && k->pad_left == 0;
}

typedef struct sp_average_blocked_constants {
    sp_blocked_constants window;   /* the sizes, as for a maximum */
    int64_t pad_bottom, pad_right; /* if counts_padding */
    bool counts_padding;           /* as in sp_window_constants */
} sp_average_blocked_constants;

/* mean_blocked_f32 sums at most so many blocks of a reduction (docs/decisions/0022). */
#define SP_MEAN_BLOCKS 16

typedef struct sp_channels_constants {
    int64_t images, channels, pixels;
} sp_channels_constants;

/* Moves channels to other lanes: an int64 for each lane of an image of y says where pixel 0 of it
 * is in the image of x; below 0: nowhere, it becomes +0. */
typedef struct sp_channels_move_constants {
    int64_t images, x_blocks, y_blocks, pixels; /* blocks of an image */
} sp_channels_move_constants;

/* Row r of a list, `depth` floats, becomes lane l of panel p, [p][depth][16], where rows[16 p + l]
 * is r; lanes of no row (below 0) become +0. The constants have `panels` times 16 rows. Element d
 * of row r is number r * row_stride + d * depth_stride of the list. */
typedef struct sp_channels_pack_constants {
    int64_t depth, panels, row_stride, depth_stride;
    int32_t rows[];
} sp_channels_pack_constants;

typedef struct sp_norm_blocked_constants {
    int64_t images, channels, pixels;
    float epsilon;
    uint8_t activation; /* sp_activation */
} sp_norm_blocked_constants;

/* As add_f32 and others. */
typedef struct sp_channel_op_constants {
    int64_t images, channels, pixels;
    uint8_t op;         /* sp_element_op: up to SP_ELEMENT_DIV_INTO */
    uint8_t activation; /* sp_activation */
    bool is_shared;     /* the numbers are the same for all images */
} sp_channel_op_constants;

/* Bindings of an operation. */
static inline uint32_t sp_element_bindings(const sp_element_step *step)
{
    if (step->operand == SP_ELEMENT_READS_NORM) return 4;
    return step->operand == SP_ELEMENT_READS_NOTHING ? 0 : 1;
}

/* Steps that compute each element by itself, one after the other. */
typedef struct sp_channel_chain_constants {
    int64_t images, channels, pixels;
    uint32_t count;
    uint8_t activation; /* sp_activation, of the result; a Relu is the last operation's */
    sp_element_step ops[SP_ELEMENT_STEPS];
} sp_channel_chain_constants;

#define SP_BLOCKED_CONSTANTS_LIST(X)                                                               \
    X(sp_blocked_constants, 176)                                                                   \
    X(sp_conv_pool_constants, 320)                                                                 \
    X(sp_average_blocked_constants, 200)                                                           \
    X(sp_channels_constants, 24)                                                                   \
    X(sp_channels_move_constants, 32)                                                              \
    X(sp_channels_pack_constants, 32)                                                              \
    X(sp_norm_blocked_constants, 32)                                                               \
    X(sp_channel_op_constants, 32)                                                                 \
    X(sp_channel_chain_constants, 192)

#endif
