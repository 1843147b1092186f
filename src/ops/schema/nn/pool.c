/* SPDX-License-Identifier: Apache-2.0 */
/* MaxPool, AveragePool and their global forms, which are reductions of whole planes. */
#include <inttypes.h>

#include "base/error.h"
#include "base/macros.h"
#include "base/size.h"
#include "ops/schema/reduce/reduce.h"
#include "ops/ops.h"
#include "ops/schema/nn/window.h"

static sp_status pool_window(const sp_op_call *call, sp_window *out)
{
    const sp_shape *x = &call->inputs[0].shape;
    const sp_attribute *kernel = sp__attribute_find(call->attributes, "kernel_shape");
    if (x->rank < 3 || kernel->count != x->rank - 2) {
        return sp__fail(SP_MISMATCH, "a window of %" PRIu32 " dimensions does not fit shape %s",
                        kernel->count, sp__shape_print(x).text);
    }
    const bool rounds_up = sp__attribute_int(call->attributes, "ceil_mode", 0) != 0;
    return sp__window_make(call, kernel->as.ints, rounds_up, out);
}

sp_status sp__pool_infer(sp_op_call *call)
{
    sp_window w = {0};
    SP_TRY(pool_window(call, &w));
    /* Bounded, so the kernels' int64 arithmetic on tap counts cannot overflow. */
    if (!sp_size_mul((uint64_t)w.kernel[0], (uint64_t)w.kernel[1], &call->depth) ||
        !sp_size_mul(call->depth, (uint64_t)w.kernel[2], &call->depth) ||
        call->depth > SP_MAX_TENSOR_BYTES) {
        return sp__fail(SP_UNSUPPORTED,
                        "not supported: a window of %" PRId64 " x %" PRId64 " x %" PRId64,
                        w.kernel[0], w.kernel[1], w.kernel[2]);
    }
    const sp_shape y = sp__window_shape(call, &w, call->inputs[0].shape.dims[1]);
    sp__op_set_output(call, 0, call->inputs[0].dtype, &y);
    if (call->output_count > 1) sp__op_set_output(call, 1, SP_I64, &y);
    return SP_OK;
}

static sp_window_constants pool_constants(const sp_op_call *call, const sp_window *w)
{
    const sp_shape *x = &call->inputs[0].shape;
    sp_window_constants k = sp__window_constants(w);
    k.planes = x->dims[0] * x->dims[1];
    return k;
}

static sp_status emit_pool(const sp_op_call *call, sp_lowering *lowering, sp_kernel_id kernel,
                           const sp_window_constants *k)
{
    sp_dispatch *dispatch;
    SP_TRY(sp__lower_dispatch(lowering, kernel, k, sizeof(*k), &dispatch));
    sp__lower_bind_input(dispatch, call, 0);
    for (uint32_t i = 0; i < call->output_count; i++) sp__lower_bind_output(dispatch, call, i);
    return SP_OK;
}

/* f32 over images, without indices: the kernel that GPUs also have. */
static sp_status lower_images(const sp_op_call *call, sp_lowering *lowering, const sp_window *w)
{
    sp_pool_constants k = {
        .planes = call->inputs[0].shape.dims[0] * call->inputs[0].shape.dims[1],
        SP_WINDOW_OVER_IMAGES(w),
    };
    sp_dispatch *dispatch;
    SP_TRY(sp__lower_dispatch(lowering, SP_KERNEL_ID_max_pool_f32, &k, sizeof(k), &dispatch));
    sp__lower_bind_input(dispatch, call, 0);
    sp__lower_bind_output(dispatch, call, 0);
    return SP_OK;
}

sp_status sp__max_pool_lower(const sp_op_call *call, sp_lowering *lowering)
{
    if (call->outputs[0].bytes == 0) return SP_OK;
    sp_window w = {0};
    SP_TRY(pool_window(call, &w));
    const sp_dtype dtype = call->inputs[0].dtype;
    const bool is_flat = call->inputs[0].shape.rank < 5;
    if (dtype == SP_F32 && is_flat && call->output_count == 1) {
        return lower_images(call, lowering, &w);
    }
    sp_window_constants k = pool_constants(call, &w);
    k.has_indices = call->output_count > 1;
    k.is_column_major = sp__attribute_int(call->attributes, "storage_order", 0) != 0;
    const sp_kernel_id kernel = dtype == SP_U8    ? SP_KERNEL_ID_max_pool_any_u8
                                : dtype == SP_I8  ? SP_KERNEL_ID_max_pool_any_i8
                                : dtype == SP_F64 ? SP_KERNEL_ID_max_pool_any_f64
                                                  : SP_KERNEL_ID_max_pool_any_f32;
    return emit_pool(call, lowering, kernel, &k);
}

/* Indices count the elements of all rows. */
const char *sp__max_pool_rows(const sp_rows_call *call)
{
    if (call->many->output_count > 1) return "its indices count the batch axis";
    return sp__image_rows(call);
}

sp_status sp__average_pool_lower(const sp_op_call *call, sp_lowering *lowering)
{
    if (call->outputs[0].bytes == 0) return SP_OK;
    sp_window w = {0};
    SP_TRY(pool_window(call, &w));
    sp_window_constants k = pool_constants(call, &w);
    k.counts_padding = sp__attribute_int(call->attributes, "count_include_pad", 0) != 0;
    return emit_pool(call, lowering, SP_KERNEL_ID_average_pool_f32, &k);
}

/* ---- whole planes ---- */

sp_status sp__global_pool_infer(sp_op_call *call)
{
    sp_shape y = call->inputs[0].shape;
    if (y.rank < 2) {
        return sp__fail(SP_MISMATCH, "the input has shape %s; expected [batch, channels, ...]",
                        sp__shape_print(&y).text);
    }
    for (uint32_t i = 2; i < y.rank; i++) y.dims[i] = 1;
    sp__op_set_output(call, 0, call->inputs[0].dtype, &y);
    return SP_OK;
}

static sp_status lower_global(const sp_op_call *call, sp_lowering *lowering, sp_reduction reduction)
{
    if (call->outputs[0].bytes == 0) return SP_OK;
    const sp_op_value *x = &call->inputs[0];
    const uint32_t axes = ((1u << x->shape.rank) - 1) & ~3u;
    const sp_reduce_constants k = sp__reduce_constants(&x->shape, axes, reduction);
    sp_dispatch *dispatch;
    SP_TRY(sp__reduce_dispatch(lowering, &k, x->dtype, &dispatch));
    sp__lower_bind_input(dispatch, call, 0);
    sp__lower_bind_output(dispatch, call, 0);
    return SP_OK;
}

sp_status sp__global_average_pool_lower(const sp_op_call *call, sp_lowering *lowering)
{
    return lower_global(call, lowering, SP_REDUCE_MEAN);
}

sp_status sp__global_max_pool_lower(const sp_op_call *call, sp_lowering *lowering)
{
    return lower_global(call, lowering, SP_REDUCE_MAX);
}
