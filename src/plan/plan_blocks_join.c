/* SPDX-License-Identifier: Apache-2.0 */
/* Concat of images in blocks of channels: the blocks of the parts one after the other; of an image
 * and zeros a copy of the image, whose lanes are moved. */
#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "plan/plan_blocks_maps.h"

/* Images that are joined along their channels. */
typedef struct join {
    const sp_concat_constants *k;
    sp_image_form parts[SP_CONCAT_MAX_PARTS], whole;
} join;

/* Many parts are joined by several steps, each of which writes some of the output. */
static bool is_all_of_join(const sp_concat_constants *k)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < k->parts; i++) bytes += k->part_bytes[i];
    return bytes == k->row_bytes;
}

static int64_t part_count(const sp_concat_constants *k, uint32_t part)
{
    return k->outer * k->part_bytes[part] / (int64_t)sizeof(float);
}

/* The pixels of the first part that is blocked; 0 if none is. */
static sp_status find_pixels(sp_block_pass *pass, const sp_plan_step *step, const join *j,
                             int64_t *pixels)
{
    *pixels = 0;
    for (uint32_t i = 0; i < j->k->parts && *pixels == 0; i++) {
        const sp_plan_binding *part = &step->bindings[i];
        if (sp__block_form(pass, part, part_count(j->k, i)) == NULL) continue;
        SP_TRY(sp__block_regroup(pass, part->index, j->k->outer));
        const sp_image_form *form = &pass->values[part->index].form;
        if (form->images == j->k->outer) *pixels = form->pixels;
    }
    return SP_OK;
}

/* The forms in which the parts are read; false if one has no channels of so many pixels. */
static sp_status find_parts(sp_block_pass *pass, const sp_plan_step *step, int64_t pixels, join *j,
                            bool *are_parts)
{
    const int64_t channel = pixels * (int64_t)sizeof(float);
    *are_parts = false;
    if (j->k->row_bytes / channel > SP_BLOCK_PLANES) return SP_OK;
    for (uint32_t i = 0; i < j->k->parts; i++) {
        const sp_plan_binding *part = &step->bindings[i];
        const int64_t count = part_count(j->k, i), channels = j->k->part_bytes[i] / channel;
        if (j->k->part_bytes[i] % channel != 0 || channels == 0) return SP_OK;
        if (!sp__block_is_whole(pass, part, count)) return SP_OK;
        j->parts[i] = (sp_image_form){j->k->outer, channels, pixels, NULL};
        const sp_image_form *form = sp__block_form(pass, part, count);
        if (form == NULL || form->pixels != pixels) continue;
        SP_TRY(sp__block_regroup(pass, part->index, j->k->outer));
        if (form->images == j->k->outer) j->parts[i] = sp__block_dense(form);
    }
    *are_parts = true;
    return SP_OK;
}

/* The form of the joined images: the blocks of the parts, one after the other. */
static sp_status find_whole(sp_block_pass *pass, join *j)
{
    sp_image_form *whole = &j->whole;
    int64_t blocks = 0, channels = 0;
    for (uint32_t i = 0; i < j->k->parts; i++) channels += j->parts[i].channels;
    uint32_t *lanes = sp__block_lanes_create(channels);
    if (lanes == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory to compile a plan");
    *whole = (sp_image_form){j->parts[0].images, channels, j->parts[0].pixels, NULL};
    channels = 0;
    for (uint32_t i = 0; i < j->k->parts; i++) {
        for (int64_t c = 0; c < j->parts[i].channels; c++) {
            const int64_t lane = sp__image_form_lane(&j->parts[i], c);
            lanes[channels++] = (uint32_t)(blocks * SP_CHANNEL_BLOCK + lane);
        }
        blocks += sp__image_form_blocks(&j->parts[i]);
    }
    const sp_status status = sp__block_map(pass, lanes, channels, blocks, &whole->map);
    sp_free(lanes);
    return status;
}

static sp_status add_join(sp_block_pass *pass, const sp_plan_step *step, const join *j)
{
    const int64_t block = j->whole.pixels * SP_CHANNEL_BLOCK * (int64_t)sizeof(float);
    sp_plan_binding bindings[SP_MAX_BINDINGS];
    sp_concat_constants k = *j->k;
    uint32_t value;
    k.row_bytes = 0;
    for (uint32_t i = 0; i < k.parts; i++) {
        SP_TRY(sp__block_read(pass, step, step->bindings[i].index, &j->parts[i], &value));
        bindings[i] = sp__block_binding(value, &j->parts[i], false);
        k.part_offset[i] = k.row_bytes;
        k.part_bytes[i] = sp__image_form_blocks(&j->parts[i]) * block;
        k.row_bytes += k.part_bytes[i];
    }
    SP_TRY(sp__block_write(pass, sp__block_output(step)->index, &j->whole, &value));
    bindings[k.parts] = sp__block_binding(value, &j->whole, true);
    sp_plan_step blocked = *step;
    blocked.bindings = bindings;
    blocked.constants = &k;
    return sp__plan_add_step(pass->builder, &blocked);
}

/* ---- zeros ---- */

/* A part of nothing but +0, which is known. */
static bool is_zeros(const sp_block_pass *pass, const sp_plan_binding *part, int64_t count)
{
    if (!sp__block_is_whole(pass, part, count)) return false;
    const sp_plan_value *value = &pass->builder->values[part->index];
    if (value->data == NULL || value->is_computed || count == 0) return false;
    const uint8_t *bytes = value->data;
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, (size_t)value->bytes - 1) == 0;
}

/* The only part that is not zeros, and the channels before it; false if there is none. */
static bool find_image(const sp_block_pass *pass, const sp_plan_step *step, const join *j,
                       uint32_t *image, int64_t *first)
{
    int64_t channels = 0;
    *first = 0;
    *image = j->k->parts;
    for (uint32_t i = 0; i < j->k->parts; channels += j->parts[i++].channels) {
        if (is_zeros(pass, &step->bindings[i], part_count(j->k, i))) continue;
        if (*image != j->k->parts) return false;
        *image = i;
        *first = channels;
    }
    return *image != j->k->parts;
}

/* Zeros are lanes of no channel: one copy of the other part, without gaps. */
static sp_status join_zeros(sp_block_pass *pass, const sp_plan_step *step, const join *j,
                            bool *is_done)
{
    uint32_t image, from, to;
    int64_t first;
    if (!find_image(pass, step, j, &image, &first)) return SP_OK;
    const sp_image_form *form = &j->parts[image];
    sp_image_form whole = {form->images, 0, form->pixels, NULL};
    for (uint32_t i = 0; i < j->k->parts; i++) whole.channels += j->parts[i].channels;
    *is_done = true;
    SP_TRY(sp__block_read(pass, step, step->bindings[image].index, form, &from));
    SP_TRY(sp__block_write(pass, sp__block_output(step)->index, &whole, &to));
    return sp__block_add_move(pass, step, &(sp_block_move){from, form, to, &whole, first});
}

/* ---- both ---- */

/* Along the channels: the blocks of the parts are copied. */
sp_status sp__block_join(sp_block_pass *pass, const sp_plan_step *step, bool *is_done)
{
    join j = {.k = step->constants};
    const int64_t all = j.k->outer * j.k->row_bytes / (int64_t)sizeof(float);
    int64_t pixels;
    bool are_parts;
    if (!is_all_of_join(j.k)) return SP_OK;
    if (!sp__block_is_whole(pass, sp__block_output(step), all)) return SP_OK;
    SP_TRY(find_pixels(pass, step, &j, &pixels));
    if (pixels == 0) return SP_OK;
    SP_TRY(find_parts(pass, step, pixels, &j, &are_parts));
    if (!are_parts) return SP_OK;
    SP_TRY(join_zeros(pass, step, &j, is_done));
    if (*is_done) return SP_OK;
    SP_TRY(find_whole(pass, &j));
    *is_done = sp__image_form_is_dense(&j.whole);
    return *is_done ? add_join(pass, step, &j) : SP_OK;
}
