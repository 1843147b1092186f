/* SPDX-License-Identifier: Apache-2.0 */
/* Which lanes the channels of blocked images are in (docs/decisions/0056-channel-maps.md), and the
 * constants that steps read by them. */
#include "plan/plan_blocks_maps.h"

#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "base/macros.h"

static sp_status fail_no_memory(void)
{
    return sp__fail(SP_OUT_OF_MEMORY, "no memory to compile a plan");
}

/* ---- maps ---- */

static bool is_identity(const uint32_t *lanes, int64_t channels, int64_t blocks)
{
    if (blocks != sp__channel_blocks(channels)) return false;
    for (int64_t c = 0; c < channels; c++) {
        if (lanes[c] != c) return false;
    }
    return true;
}

static sp_status add_map(sp_block_pass *pass, const uint32_t *lanes, int64_t channels,
                         int64_t blocks, const sp_channel_map **out)
{
    const sp_channel_map **maps =
        sp_grow(pass->maps, pass->map_count, &pass->map_capacity, sizeof *maps);
    if (maps == NULL) return fail_no_memory();
    pass->maps = maps;
    sp_channel_map *map = sp_calloc(1, sizeof *map);
    uint32_t *copy = sp_calloc((size_t)channels, sizeof *copy);
    if (map == NULL || copy == NULL) {
        sp_free(map);
        sp_free(copy);
        return fail_no_memory();
    }
    memcpy(copy, lanes, (size_t)channels * sizeof *copy);
    *map = (sp_channel_map){.channels = channels, .blocks = blocks, .lanes = copy};
    maps[pass->map_count++] = *out = map;
    return SP_OK;
}

sp_status sp__block_map(sp_block_pass *pass, const uint32_t *lanes, int64_t channels,
                        int64_t blocks, const sp_channel_map **out)
{
    *out = NULL;
    if (is_identity(lanes, channels, blocks)) return SP_OK;
    for (uint32_t i = 0; i < pass->map_count; i++) {
        const sp_channel_map *map = pass->maps[i];
        if (map->channels != channels || map->blocks != blocks) continue;
        if (memcmp(map->lanes, lanes, (size_t)channels * sizeof *lanes) != 0) continue;
        *out = map;
        return SP_OK;
    }
    return add_map(pass, lanes, channels, blocks, out);
}

void sp__block_maps_deinit(sp_block_pass *pass)
{
    for (uint32_t i = 0; i < pass->map_count; i++) {
        sp_channel_map *map = (sp_channel_map *)(uintptr_t)pass->maps[i];
        sp_free((void *)(uintptr_t)map->lanes);
        sp_free(map);
    }
    sp_free(pass->maps);
    sp_free(pass->offsets);
}

uint32_t *sp__block_lanes_create(int64_t channels)
{
    return sp_calloc((size_t)channels, sizeof(uint32_t));
}

sp_status sp__block_group_map(sp_block_pass *pass, int64_t groups, int64_t channels,
                              const sp_channel_map **out)
{
    const int64_t blocks = sp__channel_blocks(channels);
    uint32_t *lanes = sp__block_lanes_create(groups * channels);
    if (lanes == NULL) return fail_no_memory();
    for (int64_t c = 0; c < groups * channels; c++) {
        lanes[c] = (uint32_t)(c / channels * blocks * SP_CHANNEL_BLOCK + c % channels);
    }
    const sp_status status = sp__block_map(pass, lanes, groups * channels, groups * blocks, out);
    sp_free(lanes);
    return status;
}

/* ---- other numbers of images ---- */

int64_t sp__block_plane_lane(const sp_image_form *form, int64_t plane)
{
    const int64_t image = plane / form->channels;
    return image * sp__image_form_blocks(form) * SP_CHANNEL_BLOCK +
           sp__image_form_lane(form, plane % form->channels);
}

sp_status sp__block_regroup(sp_block_pass *pass, uint32_t root, int64_t images)
{
    sp_block_value *value = &pass->values[root];
    const sp_image_form from = value->form;
    if (value->blocked == SP_NO_VALUE || from.images == images) return SP_OK;
    const int64_t planes = from.images * from.channels, channels = planes / images;
    const int64_t blocks = from.images * sp__image_form_blocks(&from);
    if (planes % images != 0 || blocks % images != 0 || channels == 0) return SP_OK;
    if (planes > SP_BLOCK_PLANES) return SP_OK;
    const int64_t image = blocks / images * SP_CHANNEL_BLOCK;
    uint32_t *lanes = sp__block_lanes_create(channels);
    if (lanes == NULL) return fail_no_memory();
    bool is_even = true;
    for (int64_t p = 0; p < planes && is_even; p++) {
        const int64_t lane = sp__block_plane_lane(&from, p) - p / channels * image;
        if (p < channels) lanes[p] = (uint32_t)lane;
        is_even = lane >= 0 && lane < image && lanes[p % channels] == lane;
    }
    sp_image_form to = {images, channels, from.pixels, NULL};
    const sp_status status =
        is_even ? sp__block_map(pass, lanes, channels, blocks / images, &to.map) : SP_OK;
    sp_free(lanes);
    if (is_even && status == SP_OK) value->form = to;
    return status;
}

/* ---- offsets ---- */

/* Takes ownership of the offsets. */
static sp_status add_offsets(sp_block_pass *pass, int64_t *offsets, int64_t count, uint32_t *value)
{
    sp_plan_builder *builder = pass->builder;
    const uint64_t bytes = (uint64_t)count * sizeof *offsets;
    for (uint32_t i = 0; i < pass->offset_count; i++) {
        const sp_plan_value *old = &builder->values[pass->offsets[i]];
        if (old->bytes != bytes || memcmp(old->data, offsets, (size_t)bytes) != 0) continue;
        sp_free(offsets);
        *value = pass->offsets[i];
        return SP_OK;
    }
    uint32_t *all = sp_grow(pass->offsets, pass->offset_count, &pass->offset_capacity, sizeof *all);
    if (all == NULL) {
        sp_free(offsets);
        return fail_no_memory();
    }
    pass->offsets = all;
    SP_TRY(sp__plan_add_constant(builder, offsets, bytes, value));
    all[pass->offset_count++] = *value;
    return SP_OK;
}

static int64_t offset_of(int64_t lane, int64_t pixels)
{
    return lane / SP_CHANNEL_BLOCK * pixels * SP_CHANNEL_BLOCK + lane % SP_CHANNEL_BLOCK;
}

sp_status sp__block_offsets(sp_block_pass *pass, const sp_image_form *form, uint32_t *value)
{
    int64_t *offsets = sp_calloc((size_t)form->channels, sizeof *offsets);
    if (offsets == NULL) return fail_no_memory();
    for (int64_t c = 0; c < form->channels; c++) {
        offsets[c] = offset_of(sp__image_form_lane(form, c), form->pixels);
    }
    return add_offsets(pass, offsets, form->channels, value);
}

sp_status sp__block_move_offsets(sp_block_pass *pass, const sp_image_form *from, int64_t first,
                                 const sp_image_form *to, uint32_t *value)
{
    const int64_t lanes = sp__image_form_blocks(to) * SP_CHANNEL_BLOCK;
    int64_t *offsets = sp_calloc((size_t)lanes, sizeof *offsets);
    if (offsets == NULL) return fail_no_memory();
    for (int64_t i = 0; i < lanes; i++) offsets[i] = -1;
    for (int64_t c = 0; c < from->channels; c++) {
        const int64_t lane = SP_PLANTED(map_ignored) ? c : sp__image_form_lane(from, c);
        const int64_t moved = SP_PLANTED(zeros_behind) ? c : first + c;
        offsets[sp__image_form_lane(to, moved)] = offset_of(lane, from->pixels);
    }
    return add_offsets(pass, offsets, lanes, value);
}

/* ---- constants of steps ---- */

bool sp__block_is_packable(const sp_block_pass *pass, const sp_plan_binding *constant)
{
    const sp_graph *graph = pass->builder->plan->graph;
    if (constant->where != SP_PLACE_ARENA || constant->index >= graph->value_count) return false;
    const sp_plan_value *value = &pass->builder->values[constant->index];
    return value->where == SP_PLACE_WEIGHT && graph->values[constant->index].is_constant &&
           !value->is_tainted && !value->is_computed;
}

sp_status sp__block_pack_rows(sp_block_pass *pass, const sp_plan_binding *constant,
                              const sp_block_rows *from, sp_plan_binding *out)
{
    const int64_t lanes = from->panels * SP_CHANNEL_BLOCK;
    const size_t bytes = sizeof(sp_channels_pack_constants) + (size_t)lanes * sizeof(int32_t);
    if (bytes > UINT32_MAX) {
        return sp__fail(SP_EXHAUSTED, "a weight of %lld channels is too large to be packed",
                        (long long)lanes);
    }
    sp_channels_pack_constants *k = sp_calloc(1, bytes);
    if (k == NULL) return fail_no_memory();
    k->depth = from->depth;
    k->panels = from->panels;
    k->row_stride = from->row_stride;
    k->depth_stride = from->depth_stride;
    memcpy(k->rows, from->rows, (size_t)lanes * sizeof *k->rows);
    const sp_kernel_id kernel = SP_KERNEL_ID_channels_pack_f32;
    const sp_packing what = {.kernel = kernel,
                             .constant_bytes = (uint32_t)bytes,
                             .constants = k,
                             .bytes =
                                 sp__pack_bytes(sp__pack_format_of(kernel), from->depth, lanes)};
    const sp_status status = sp__plan_pack(pass->builder, constant->index, &what, out);
    sp_free(k);
    return status;
}

sp_status sp__block_pack(sp_block_pass *pass, const sp_plan_binding *constant, int64_t depth,
                         const sp_channel_map *map, sp_plan_binding *out)
{
    const int64_t lanes = map->blocks * SP_CHANNEL_BLOCK;
    int32_t *rows = sp_calloc((size_t)lanes, sizeof *rows);
    if (rows == NULL) return fail_no_memory();
    for (int64_t i = 0; i < lanes; i++) rows[i] = -1;
    for (int64_t c = 0; c < map->channels; c++) rows[map->lanes[c]] = (int32_t)c;
    const sp_block_rows from = {.depth = depth,
                                .row_stride = depth,
                                .depth_stride = 1,
                                .panels = map->blocks,
                                .rows = rows};
    const sp_status status = sp__block_pack_rows(pass, constant, &from, out);
    sp_free(rows);
    return status;
}
