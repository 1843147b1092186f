/* SPDX-License-Identifier: Apache-2.0 */
/* Which lanes the channels of blocked images are in (docs/decisions/0056-channel-maps.md). Maps are
 * the pass's; equal ones are one, and NULL is the one without gaps. Errors of all:
 * SP_OUT_OF_MEMORY.
 */
#ifndef SP_PLAN_PLAN_BLOCKS_MAPS_H
#define SP_PLAN_PLAN_BLOCKS_MAPS_H

#include "plan/plan_blocks.h"

/* Planes of all images, at most, whose lanes are looked at one by one: their number follows from
 * shapes, which may be far larger than what a run may have. */
enum { SP_BLOCK_PLANES = 1 << 20 };

/* The map with these lanes, which are copied. */
sp_status sp__block_map(sp_block_pass *pass, const uint32_t *lanes, int64_t channels,
                        int64_t blocks, const sp_channel_map **out);

/* The map of groups of channels, each of which begins with a block. */
sp_status sp__block_group_map(sp_block_pass *pass, int64_t groups, int64_t channels,
                              const sp_channel_map **out);

/* Room for the lanes of a map; NULL: no memory. The caller frees it by sp_free. */
uint32_t *sp__block_lanes_create(int64_t channels);

/* Where plane `plane` of all images is, as if they were one image. */
int64_t sp__block_plane_lane(const sp_image_form *form, int64_t plane);

/* Sees a blocked value as that many images, if each of them has its channels in the same lanes of
 * blocks of its own; otherwise its form is as before. */
sp_status sp__block_regroup(sp_block_pass *pass, uint32_t root, int64_t images);

/* The constant with the offsets of a form's channels, for conv_blocked_f32; with those of a copy
 * (sp_block_move), for channels_move. */
sp_status sp__block_offsets(sp_block_pass *pass, const sp_image_form *form, uint32_t *value);
sp_status sp__block_move_offsets(sp_block_pass *pass, const sp_image_form *from, int64_t first,
                                 const sp_image_form *to, uint32_t *value);

/* Is the operand a constant of the graph? Then it can be packed: `depth` floats for each channel,
 * to the lanes of the channels. */
bool sp__block_is_packable(const sp_block_pass *pass, const sp_plan_binding *constant);
sp_status sp__block_pack(sp_block_pass *pass, const sp_plan_binding *constant, int64_t depth,
                         const sp_channel_map *map, sp_plan_binding *out);

/* The same with any rows of the constant, of `depth` floats `depth_stride` apart, in any lanes:
 * rows[l] is that of lane l, or below 0. */
typedef struct sp_block_rows {
    int64_t depth, row_stride, depth_stride, panels;
    const int32_t *rows;
} sp_block_rows;
sp_status sp__block_pack_rows(sp_block_pass *pass, const sp_plan_binding *constant,
                              const sp_block_rows *from, sp_plan_binding *out);

void sp__block_maps_deinit(sp_block_pass *pass);

#endif
