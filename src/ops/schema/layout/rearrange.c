/* SPDX-License-Identifier: Apache-2.0 */
/* Tile, DepthToSpace and SpaceToDepth: strided copies of the input viewed with more dimensions. */
#include <inttypes.h>

#include "base/error.h"
#include "base/macros.h"
#include "tensor/collapse.h"
#include "ops/ops.h"

/* ---- Tile ---- */

static sp_status read_repeats(const sp_op_call *call, int64_t repeats[SP_MAX_RANK])
{
    const sp_shape *x = &call->inputs[0].shape;
    uint32_t count;
    SP_TRY(sp__op_known_ints(call, 1, SP_MAX_RANK, repeats, &count));
    if (count != x->rank) {
        return sp__fail(SP_MISMATCH,
                        "%" PRIu32
                        " repeats are given for shape %s; expected one for each dimension",
                        count, sp__shape_print(x).text);
    }
    for (uint32_t i = 0; i < count; i++) {
        const int64_t most = (int64_t)SP_MAX_TENSOR_BYTES / (x->dims[i] > 0 ? x->dims[i] : 1);
        if (repeats[i] >= 0 && repeats[i] <= most) continue;
        return sp__fail(SP_MISMATCH, "cannot repeat a dimension of %" PRId64 " %" PRId64 " times",
                        x->dims[i], repeats[i]);
    }
    return SP_OK;
}

sp_status sp__tile_infer(sp_op_call *call)
{
    int64_t repeats[SP_MAX_RANK];
    SP_TRY(read_repeats(call, repeats));
    sp_shape y = call->inputs[0].shape;
    for (uint32_t i = 0; i < y.rank; i++) y.dims[i] *= repeats[i];
    sp__op_set_output(call, 0, call->inputs[0].dtype, &y);
    return SP_OK;
}

sp_status sp__tile_lower(const sp_op_call *call, sp_lowering *lowering)
{
    if (call->outputs[0].bytes == 0) return SP_OK;
    const sp_shape *shape = &call->inputs[0].shape;
    int64_t repeats[SP_MAX_RANK], x_strides[SP_MAX_RANK], y_strides[SP_MAX_RANK];
    int64_t dims[2 * SP_MAX_RANK], x[2 * SP_MAX_RANK], y[2 * SP_MAX_RANK];
    SP_TRY(read_repeats(call, repeats));
    sp__shape_strides(shape, x_strides);
    sp__shape_strides(&call->outputs[0].shape, y_strides);
    for (size_t i = 0; i < shape->rank; i++) {
        dims[2 * i] = repeats[i];
        x[2 * i] = 0;
        y[2 * i] = y_strides[i] * shape->dims[i];
        dims[2 * i + 1] = shape->dims[i];
        x[2 * i + 1] = x_strides[i];
        y[2 * i + 1] = y_strides[i];
    }
    const uint32_t rank = shape->rank > 0 ? sp__collapse(2 * shape->rank, dims, x, y) : 0;
    if (rank > SP_MAX_RANK) {
        return sp__fail(SP_UNSUPPORTED, "not supported: Tile along so many dimensions");
    }
    sp_copy_constants k = {.rank = rank};
    for (uint32_t i = 0; i < rank; i++) {
        k.dims[i] = dims[i];
        k.x[i] = x[i];
        k.y[i] = y[i];
    }
    return sp__lower_strided_copy(call, lowering, &k);
}

/* Rows that are tiled along their axis get outer factors. An input without rows is tiled more often
 * along one axis: all tiles are equal, so the rows are its outermost factor. */
const char *sp__tile_rows(const sp_rows_call *call)
{
    int64_t many[SP_MAX_RANK] = {0}, single[SP_MAX_RANK] = {0};
    sp_rows_axis rows;
    const char *why = sp__rows_check_sizes(call, 1u << 1);
    if (why != NULL) return why;
    if (call->inputs[1].kind == SP_ROWS_BATCHED) return "a parameter is batched";
    if (read_repeats(call->many, many) != SP_OK || read_repeats(call->single, single) != SP_OK) {
        return "its repeats are unknown";
    }
    if (call->inputs[0].kind == SP_ROWS_SHARED) {
        if (!sp__rows_find_growth(call, 0, &rows)) return "it repeats by the batch size";
    } else {
        why = sp__rows_find_input(call, 0, &rows);
        if (why != NULL) return why;
        for (uint32_t i = 0; i < call->many->inputs[0].shape.rank; i++) {
            if (many[i] != single[i]) return "it repeats by the batch size";
        }
    }
    sp__rows_set_axis(call, 0, rows.axis, &rows);
    return NULL;
}

/* ---- blocks of pixels ---- */

/* The input viewed with six dimensions, and their permutation in the output. */
typedef struct block_view {
    sp_shape shape;
    int64_t perm[6];
} block_view;

static sp_status read_block(const sp_op_call *call, int64_t *block)
{
    const sp_shape *x = &call->inputs[0].shape;
    *block = sp__attribute_int(call->attributes, "blocksize", 0);
    const bool is_bounded = *block > 0 && *block < INT64_C(1) << 20;
    if (x->rank == 4 && is_bounded) return SP_OK;
    return sp__fail(SP_MISMATCH, "a block size of %" PRId64 " does not fit shape %s", *block,
                    sp__shape_print(x).text);
}

static sp_status bad_block(const sp_op_call *call, int64_t block)
{
    return sp__fail(SP_MISMATCH, "shape %s is not divisible by a block size of %" PRId64,
                    sp__shape_print(&call->inputs[0].shape).text, block);
}

static sp_status lower_view(const sp_op_call *call, sp_lowering *lowering, const block_view *view)
{
    sp_layout layout;
    if (call->outputs[0].bytes == 0) return SP_OK;
    SP_TRY(sp__layout_init_contiguous(&layout, call->inputs[0].dtype, &view->shape));
    SP_TRY(sp__layout_permute(&layout, view->perm, view->shape.rank, &layout));
    return sp__lower_view(call, lowering, &layout);
}

/* Order in the channels: depth, column, row (DCR), or column, row, depth (CRD). */
static sp_status read_order(const sp_op_call *call, bool *is_crd)
{
    const sp_text mode = sp__attribute_text(call->attributes, "mode", "DCR");
    *is_crd = sp__text_is(mode, "CRD");
    if (*is_crd || sp__text_is(mode, "DCR")) return SP_OK;
    return sp__fail(SP_CORRUPT, "unknown mode '%s'", sp__text_print(mode).text);
}

sp_status sp__depth_to_space_infer(sp_op_call *call)
{
    int64_t b;
    bool is_crd;
    SP_TRY(read_order(call, &is_crd));
    SP_TRY(read_block(call, &b));
    const int64_t *x = call->inputs[0].shape.dims;
    if (x[1] % (b * b) != 0) return bad_block(call, b);
    const sp_shape y = {.rank = 4, .dims = {x[0], x[1] / (b * b), x[2] * b, x[3] * b}};
    sp__op_set_output(call, 0, call->inputs[0].dtype, &y);
    return SP_OK;
}

sp_status sp__depth_to_space_lower(const sp_op_call *call, sp_lowering *lowering)
{
    int64_t b;
    bool is_crd;
    SP_TRY(read_order(call, &is_crd));
    SP_TRY(read_block(call, &b));
    const int64_t *x = call->inputs[0].shape.dims;
    const int64_t channels = x[1] / (b * b);
    const block_view dcr = {{6, {x[0], b, b, channels, x[2], x[3]}}, {0, 3, 4, 1, 5, 2}};
    const block_view crd = {{6, {x[0], channels, b, b, x[2], x[3]}}, {0, 1, 4, 2, 5, 3}};
    return lower_view(call, lowering, is_crd ? &crd : &dcr);
}

sp_status sp__space_to_depth_infer(sp_op_call *call)
{
    int64_t b;
    SP_TRY(read_block(call, &b));
    const int64_t *x = call->inputs[0].shape.dims;
    if (x[2] % b != 0 || x[3] % b != 0) return bad_block(call, b);
    /* Only images without pixels can become larger: for all others the number of bytes is
     * unchanged. */
    if (x[1] > (int64_t)SP_MAX_TENSOR_BYTES / (b * b)) {
        return sp__fail(SP_EXHAUSTED,
                        "%" PRId64 " channels by a block size of %" PRId64 " exceed 2^40", x[1], b);
    }
    const sp_shape y = {.rank = 4, .dims = {x[0], x[1] * b * b, x[2] / b, x[3] / b}};
    sp__op_set_output(call, 0, call->inputs[0].dtype, &y);
    return SP_OK;
}

sp_status sp__space_to_depth_lower(const sp_op_call *call, sp_lowering *lowering)
{
    int64_t b;
    SP_TRY(read_block(call, &b));
    const int64_t *x = call->inputs[0].shape.dims;
    const block_view view = {{6, {x[0], x[1], x[2] / b, b, x[3] / b, b}}, {0, 3, 5, 1, 2, 4}};
    return lower_view(call, lowering, &view);
}
