/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that move whole channels of blocked images (a shuffle, a Split, a Slice, a Gather) move
 * nothing: their result is the same blocks with other lanes. */
#include "base/error.h"
#include "base/heap.h"
#include "plan/plan_blocks_maps.h"
#include "plan/plan_view.h"

/* More planes than that are copied: a view has an entry for each. */
enum { MAX_PLANES = 1 << 14 };

/* The planes of a step that moves them: x's and y's number, and where each of y is from. */
typedef struct planes {
    int64_t pixels, x_count, y_count;
    uint32_t *from; /* of y; planes of x */
} planes;

/* ---- by strides ---- */

/* A view of elements as one of planes; false if it takes planes apart. */
static bool divide_view(sp_view *view, uint32_t dim, int64_t pixels)
{
    if (pixels == 1) return true;
    sp__view_split(view, dim, pixels);
    for (uint32_t i = 0; i < view->rank; i++) {
        if (i == dim + 1) continue;
        if (view->dims[i] > 1 && view->strides[i] % pixels != 0) return false;
        view->strides[i] /= pixels;
    }
    view->dims[dim + 1] = 1;
    view->strides[dim + 1] = 0;
    if (view->first % pixels != 0) return false;
    view->first /= pixels;
    return true;
}

/* The dimension in which both are contiguous, with whole planes. */
static bool find_run(const sp_view *x, const sp_view *y, int64_t pixels, uint32_t *dim)
{
    for (uint32_t i = 0; i < x->rank; i++) {
        if (x->strides[i] != 1 || y->strides[i] != 1 || x->dims[i] % pixels != 0) continue;
        *dim = i;
        return true;
    }
    *dim = 0;
    return pixels == 1;
}

static int64_t view_element(const sp_view *view, int64_t number)
{
    int64_t at = view->first;
    for (uint32_t i = view->rank; i-- > 0; number /= view->dims[i]) {
        at += number % view->dims[i] * view->strides[i];
    }
    return at;
}

static bool find_copied(const sp_copy_constants *k, planes *p)
{
    sp_view x = sp__view_of_copy(k, false), y = sp__view_of_copy(k, true);
    uint32_t dim;
    if (k->element_bytes != sizeof(float) || x.rank >= SP_VIEW_RANK) return false;
    if (!find_run(&x, &y, p->pixels, &dim)) return false;
    if (!divide_view(&x, dim, p->pixels) || !divide_view(&y, dim, p->pixels)) return false;
    if (sp__view_count(&y) != p->y_count) return false;
    for (int64_t i = 0; i < p->y_count; i++) {
        const int64_t from = view_element(&x, i), to = view_element(&y, i);
        if (from < 0 || from >= p->x_count || to < 0 || to >= p->y_count) return false;
        p->from[to] = (uint32_t)from;
    }
    return true;
}

/* ---- by indices ---- */

static int64_t read_index(const void *indices, uint32_t bytes, int64_t i)
{
    return bytes == sizeof(int32_t) ? ((const int32_t *)indices)[i] : ((const int64_t *)indices)[i];
}

static bool find_gathered(const sp_block_pass *pass, const sp_plan_step *step, planes *p)
{
    const sp_gather_constants *k = step->constants;
    const sp_plan_binding *list = &step->bindings[1];
    const int64_t plane = p->pixels * (int64_t)sizeof(float), inner = k->inner_bytes / plane;
    if (list->where != SP_PLACE_ARENA || k->inner_bytes % plane != 0) return false;
    const sp_plan_value *indices = &pass->builder->values[list->index];
    if (indices->data == NULL || indices->is_computed) return false;
    if (k->outer * k->axis * inner != p->x_count) return false;
    if (k->outer * k->count * inner != p->y_count) return false;
    for (int64_t i = 0; i < p->y_count; i++) {
        int64_t index = read_index(indices->data, k->index_bytes, i / inner % k->count);
        if (index < 0) index += k->axis;
        if (index < 0 || index >= k->axis) return false; /* an error of the run */
        p->from[i] = (uint32_t)((i / inner / k->count * k->axis + index) * inner + i % inner);
    }
    return true;
}

/* ---- the view ---- */

/* y is x's blocks. A plane may be there twice: such a list of lanes is no map. */
static bool is_map(const planes *p, bool *is_there)
{
    for (int64_t i = 0; i < p->y_count; i++) {
        if (is_there[p->from[i]]) return false;
        is_there[p->from[i]] = true;
    }
    return true;
}

static sp_status set_view(sp_block_pass *pass, uint32_t x, uint32_t y, const planes *p)
{
    const sp_image_form from = pass->values[x].form;
    sp_image_form form = {1, p->y_count, from.pixels, NULL};
    for (int64_t i = 0; i < p->y_count; i++) {
        p->from[i] = (uint32_t)sp__block_plane_lane(&from, p->from[i]);
    }
    SP_TRY(sp__block_map(pass, p->from, p->y_count, from.images * sp__image_form_blocks(&from),
                         &form.map));
    pass->values[y] =
        (sp_block_value){.blocked = pass->values[x].blocked, .form = form, .writer = SP_NO_STEP};
    return SP_OK;
}

static sp_status view_planes(sp_block_pass *pass, const sp_plan_step *step, planes *p,
                             bool *is_done)
{
    const uint32_t x = step->bindings[0].index, y = sp__block_output(step)->index;
    const bool is_found = step->kernel == SP_KERNEL_ID_gather ? find_gathered(pass, step, p)
                                                              : find_copied(step->constants, p);
    if (!is_found) return SP_OK;
    bool *is_there = sp_calloc((size_t)p->x_count, sizeof *is_there);
    if (is_there == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory to compile a plan");
    *is_done = is_map(p, is_there);
    sp_free(is_there);
    return *is_done ? set_view(pass, x, y, p) : SP_OK;
}

sp_status sp__block_view(sp_block_pass *pass, const sp_plan_step *step, bool *is_done)
{
    const sp_plan_binding *x = &step->bindings[0], *y = sp__block_output(step);
    if (x->where != SP_PLACE_ARENA || pass->values[x->index].is_plain) return SP_OK;
    const int64_t x_count = (int64_t)(x->bytes / sizeof(float));
    const int64_t y_count = (int64_t)(y->bytes / sizeof(float));
    const sp_image_form *form = sp__block_form(pass, x, x_count);
    if (form == NULL || x_count == 0 || y_count == 0) return SP_OK;
    if (y_count % form->pixels != 0 || !sp__block_is_whole(pass, y, y_count)) return SP_OK;
    planes p = {.pixels = form->pixels,
                .x_count = x_count / form->pixels,
                .y_count = y_count / form->pixels};
    if (p.x_count > MAX_PLANES || p.y_count > MAX_PLANES) return SP_OK;
    p.from = sp__block_lanes_create(p.y_count);
    if (p.from == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory to compile a plan");
    const sp_status status = view_planes(pass, step, &p, is_done);
    sp_free(p.from);
    return status;
}

/* ---- Split ---- */

/* The planes of a part; false if it has pieces of planes. */
static bool find_part(const sp_concat_constants *k, uint32_t part, planes *p)
{
    const int64_t plane = p->pixels * (int64_t)sizeof(float);
    const int64_t bytes = k->part_bytes[part], offset = k->part_offset[part];
    if (bytes == 0 || bytes % plane != 0 || offset % plane != 0) return false;
    const int64_t count = bytes / plane, row = k->row_bytes / plane;
    p->y_count = k->outer * count;
    for (int64_t i = 0; i < p->y_count; i++) {
        p->from[i] = (uint32_t)(i / count * row + offset / plane + i % count);
    }
    return true;
}

/* Without `is_set` only finds out whether all parts can be views. */
static sp_status view_parts(sp_block_pass *pass, const sp_plan_step *step, planes *p, bool is_set,
                            bool *are_views)
{
    const sp_concat_constants *k = step->constants;
    *are_views = true;
    for (uint32_t i = 0; i < k->parts && *are_views; i++) {
        const sp_plan_binding *y = &step->bindings[1 + i];
        *are_views = find_part(k, i, p) && sp__block_is_whole(pass, y, p->y_count * p->pixels);
        if (is_set) SP_TRY(set_view(pass, step->bindings[0].index, y->index, p));
    }
    return SP_OK;
}

sp_status sp__block_view_parts(sp_block_pass *pass, const sp_plan_step *step, bool *is_done)
{
    const sp_concat_constants *k = step->constants;
    const sp_plan_binding *x = &step->bindings[0];
    if (x->where != SP_PLACE_ARENA || pass->values[x->index].is_plain) return SP_OK;
    const int64_t count = k->outer * k->row_bytes / (int64_t)sizeof(float);
    const sp_image_form *form = sp__block_form(pass, x, count);
    if (form == NULL || count == 0) return SP_OK;
    planes p = {.pixels = form->pixels, .x_count = count / form->pixels};
    if (p.x_count > MAX_PLANES || k->row_bytes % (p.pixels * (int64_t)sizeof(float)) != 0) {
        return SP_OK;
    }
    p.from = sp__block_lanes_create(p.x_count);
    if (p.from == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory to compile a plan");
    sp_status status = view_parts(pass, step, &p, false, is_done);
    if (status == SP_OK && *is_done) status = view_parts(pass, step, &p, true, is_done);
    sp_free(p.from);
    return status;
}
