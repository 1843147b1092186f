/* SPDX-License-Identifier: Apache-2.0 */
/* GridSample of images. */
#include "base/error.h"
#include "base/macros.h"
#include "ops/ops.h"

/* The number of the text among `names`, of which the last is NULL. */
static sp_status choose(const sp_op_call *call, const char *attribute, const char *const *names,
                        uint32_t *out)
{
    const sp_text text = sp__attribute_text(call->attributes, attribute, names[0]);
    for (uint32_t i = 0; names[i] != NULL; i++) {
        if (sp__text_is(text, names[i])) {
            *out = i;
            return SP_OK;
        }
    }
    return sp__fail(SP_UNSUPPORTED, "%s '%s' is not supported", attribute,
                    sp__text_print(text).text);
}

/* Mode and padding, by the numbers of the constants. */
static sp_status read_options(const sp_op_call *call, sp_grid_sample_constants *k)
{
    static const char *const former_modes[] = {"bilinear", "nearest", "bicubic", NULL};
    static const char *const modes[] = {"linear", "nearest", "cubic", NULL};
    static const char *const paddings[] = {"zeros", "border", "reflection", NULL};
    SP_TRY(choose(call, "mode", call->version < 20 ? former_modes : modes, &k->mode));
    return choose(call, "padding_mode", paddings, &k->padding);
}

sp_status sp__grid_sample_infer(sp_op_call *call)
{
    const sp_shape *x = &call->inputs[0].shape, *grid = &call->inputs[1].shape;
    sp_grid_sample_constants k;
    SP_TRY(read_options(call, &k));
    if (x->rank == 5 && grid->rank == 5) {
        return sp__fail(SP_UNSUPPORTED, "GridSample of volumes is not supported");
    }
    if (x->rank != 4 || grid->rank != 4 || grid->dims[3] != 2 || grid->dims[0] != x->dims[0]) {
        return sp__fail(SP_MISMATCH, "a grid of shape %s for images of shape %s",
                        sp__shape_print(grid).text, sp__shape_print(x).text);
    }
    if (x->dims[2] == 0 || x->dims[3] == 0) {
        return sp__fail(SP_MISMATCH, "images of shape %s have no pixels", sp__shape_print(x).text);
    }
    const sp_shape y = {.rank = 4, .dims = {x->dims[0], x->dims[1], grid->dims[1], grid->dims[2]}};
    sp__op_set_output(call, 0, SP_F32, &y);
    call->depth = k.mode == SP_GRID_CUBIC ? 16 : k.mode == SP_GRID_LINEAR ? 4 : 1;
    return SP_OK;
}

sp_status sp__grid_sample_lower(const sp_op_call *call, sp_lowering *lowering)
{
    if (call->outputs[0].bytes == 0) return SP_OK;
    const int64_t *x = call->inputs[0].shape.dims, *y = call->outputs[0].shape.dims;
    sp_grid_sample_constants k = {.channels = x[1],
                                  .in_h = x[2],
                                  .in_w = x[3],
                                  .pixels = y[2] * y[3],
                                  .count = x[0] * y[2] * y[3]};
    SP_TRY(read_options(call, &k));
    k.align_corners = sp__attribute_int(call->attributes, "align_corners", 0) != 0;
    sp_dispatch *dispatch;
    SP_TRY(sp__lower_dispatch(lowering, SP_KERNEL_ID_grid_sample_f32, &k, sizeof(k), &dispatch));
    sp__lower_bind_input(dispatch, call, 0);
    sp__lower_bind_input(dispatch, call, 1);
    sp__lower_bind_output(dispatch, call, 0);
    return SP_OK;
}

/* Images and their grids. */
const char *sp__grid_sample_rows(const sp_rows_call *call)
{
    sp_rows_axis rows, grids;
    const char *why = sp__rows_check_sizes(call, 0);
    if (why != NULL) return why;
    for (uint32_t i = 0; i < 2; i++) {
        if (call->inputs[i].kind != SP_ROWS_BATCHED) return "images or grids are not batched";
    }
    why = sp__rows_find_input(call, 0, &rows);
    if (why == NULL) why = sp__rows_find_input(call, 1, &grids);
    if (why != NULL) return why;
    if (rows.axis != 0 || grids.axis != 0) return "the batch axis is not the first";
    if (!sp__rows_match(&rows, &grids)) return "its inputs have their rows in different places";
    sp__rows_set_axis(call, 0, 0, &rows);
    return NULL;
}
