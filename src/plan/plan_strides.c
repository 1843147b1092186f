/* SPDX-License-Identifier: Apache-2.0 */
/* The pass over the steps, and the steps other than products that read views. Steps are in order,
 * so a copy of a copy is one copy before its readers are reached. */
#include "plan/plan_strides.h"

#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "base/macros.h"
#include "tensor/collapse.h"

void *sp__stride_constants(const sp_plan_step *step)
{
    return (void *)(uintptr_t)step->constants;
}

sp_plan_binding *sp__stride_bindings(const sp_plan_step *step)
{
    return (sp_plan_binding *)(uintptr_t)step->bindings;
}

/* ---- uses of values ---- */

static void count_uses(sp_stride_pass *pass)
{
    const sp_plan_builder *builder = pass->builder;
    for (uint32_t i = 0; i < builder->value_count; i++) {
        pass->values[i] = (sp_stride_value){.writer = SP_NO_STEP, .reader = SP_NO_STEP};
    }
    for (uint32_t s = 0; s < builder->plan->step_count; s++) {
        const sp_plan_step *step = &builder->steps[s];
        for (uint32_t i = 0; i < step->binding_count; i++) {
            if (step->bindings[i].where != SP_PLACE_ARENA) continue;
            sp_stride_value *value = &pass->values[step->bindings[i].index];
            if (step->bindings[i].is_write) {
                value->writes++;
                value->writer = s;
            } else {
                value->reads++;
                value->reader = s;
            }
        }
    }
    for (uint32_t i = 0; i < builder->output_count; i++) {
        pass->values[builder->values[builder->outputs[i]].root].reads++;
    }
}

void sp__stride_drop_read(sp_stride_pass *pass, uint32_t root)
{
    for (;;) {
        sp_stride_value *value = &pass->values[root];
        if (--value->reads > 0 || value->writer == SP_NO_STEP) return;
        sp_plan_step *copy = &pass->builder->steps[value->writer];
        if (copy->kernel != SP_KERNEL_ID_copy_strided && copy->kernel != SP_KERNEL_ID_split) return;
        for (uint32_t i = 1; i < copy->binding_count; i++) {
            const bool is_read = pass->values[copy->bindings[i].index].reads > 0;
            if (is_read && !SP_PLANTED(drop_read_parts)) return;
        }
        copy->kernel = SP_NO_KERNEL;
        root = copy->bindings[0].index;
    }
}

void sp__stride_read(sp_stride_pass *pass, uint32_t s, uint32_t operand,
                     const sp_stride_source *source)
{
    sp_plan_builder *builder = pass->builder;
    const sp_plan_step *step = &builder->steps[s];
    sp_plan_binding *binding = &sp__stride_bindings(step)[operand];
    const uint32_t copy = binding->index;
    *binding = source->binding;
    pass->values[binding->index].reads++;
    pass->values[binding->index].reader = s;
    sp__stride_drop_read(pass, copy);
    /* Over an operand, a result may be only where each element is read before it is written. */
    const uint32_t result = step->bindings[step->binding_count - 1].index;
    builder->values[result].in_place = SP_NO_VALUE;
}

/* ---- copies ---- */

/* Part `part` of the rows of a split. */
static bool split_view(const sp_concat_constants *k, uint32_t part, int64_t element_bytes,
                       sp_view *out)
{
    const int64_t bytes[] = {k->part_bytes[part], k->part_offset[part], k->row_bytes};
    for (size_t i = 0; i < SP_COUNT_OF(bytes); i++) {
        if (bytes[i] % element_bytes != 0) return false;
    }
    *out = (sp_view){.rank = 2,
                     .first = k->part_offset[part] / element_bytes,
                     .dims = {k->outer, k->part_bytes[part] / element_bytes},
                     .strides = {k->row_bytes / element_bytes, 1}};
    return true;
}

/* What a step copies to the value. */
static bool copy_view(const sp_plan_step *copy, uint32_t root, uint32_t element_bytes, sp_view *out)
{
    if (copy->kernel == SP_KERNEL_ID_copy_strided) {
        const sp_copy_constants *k = copy->constants;
        const sp_view to = sp__view_of_copy(k, true);
        *out = sp__view_of_copy(k, false);
        return k->element_bytes == element_bytes && sp__view_is_plain(&to);
    }
    if (copy->kernel != SP_KERNEL_ID_split) return false;
    for (uint32_t i = 1; i < copy->binding_count; i++) {
        if (copy->bindings[i].index != root) continue;
        return split_view(copy->constants, i - 1, element_bytes, out);
    }
    return false;
}

bool sp__stride_find(const sp_stride_pass *pass, const sp_plan_binding *read,
                     uint32_t element_bytes, sp_stride_source *out)
{
    const sp_plan_builder *builder = pass->builder;
    if (read->where != SP_PLACE_ARENA) return false;
    const sp_stride_value *value = &pass->values[read->index];
    if (value->writes != 1) return false;
    const sp_plan_step *copy = &builder->steps[value->writer];
    if (!copy_view(copy, read->index, element_bytes, &out->view)) return false;
    const uint64_t bytes = (uint64_t)sp__view_count(&out->view) * element_bytes;
    out->binding = copy->bindings[0];
    out->is_only = value->reads == 1;
    /* The source is the same until the step: it is written at once, before the copy. */
    return bytes == builder->values[read->index].bytes && bytes > 0 &&
           out->binding.where == SP_PLACE_ARENA && pass->values[out->binding.index].writes <= 1;
}

/* A copy of a copy that nothing else reads. */
static void stride_copy(sp_stride_pass *pass, uint32_t s)
{
    sp_plan_step *step = &pass->builder->steps[s];
    sp_copy_constants *k = sp__stride_constants(step);
    sp_view from = sp__view_of_copy(k, false), to = sp__view_of_copy(k, true);
    sp_view *const views[] = {&from, &to};
    sp_stride_source source;
    if (!sp__stride_find(pass, &step->bindings[0], k->element_bytes, &source)) return;
    if (!source.is_only || !sp__view_compose_split(&source.view, views, 2, 0)) return;
    memcpy(k->dims, from.dims, sizeof k->dims);
    memcpy(k->x, from.strides, sizeof k->x);
    memcpy(k->y, to.strides, sizeof k->y);
    k->x_first = from.first;
    k->rank = sp__collapse(from.rank, k->dims, k->x, k->y);
    sp__stride_read(pass, s, 0, &source);
}

/* ---- functions of two operands ---- */

/* Operand `which` is a copy from the first element of a value on, in rows. */
static void stride_binary(sp_stride_pass *pass, uint32_t s, uint32_t which)
{
    sp_plan_step *step = &pass->builder->steps[s];
    sp_binary_constants *k = sp__stride_constants(step);
    sp_view operands[2] = {{.rank = k->rank}, {.rank = k->rank}};
    sp_view *const views[] = {&operands[0], &operands[1]};
    for (uint32_t i = 0; i < 2; i++) {
        memcpy(operands[i].dims, k->dims, sizeof k->dims);
        memcpy(operands[i].strides, i == 0 ? k->a : k->b, sizeof k->a);
    }
    sp_stride_source source;
    if (!sp__stride_find(pass, &step->bindings[which], sizeof(float), &source)) return;
    if (!source.is_only || !sp__view_compose_split(&source.view, views, 2, which)) return;
    const sp_view *view = &operands[which];
    const int64_t last = view->strides[view->rank - 1];
    /* The kernels have no offsets, and their rows are consecutive elements or one element. */
    if (view->first != 0 || last < 0 || last > 1) return;
    k->rank = view->rank;
    memcpy(k->dims, view->dims, sizeof k->dims);
    memcpy(k->a, operands[0].strides, sizeof k->a);
    memcpy(k->b, operands[1].strides, sizeof k->b);
    sp__stride_read(pass, s, which, &source);
}

/* ---- the pass ---- */

static sp_status stride_step(sp_stride_pass *pass, uint32_t s)
{
    switch (pass->builder->steps[s].kernel) {
    case SP_KERNEL_ID_copy_strided:
        stride_copy(pass, s);
        return SP_OK;
    case SP_KERNEL_ID_add_f32:
    case SP_KERNEL_ID_sub_f32:
    case SP_KERNEL_ID_mul_f32:
    case SP_KERNEL_ID_div_f32:
        for (uint32_t i = 0; i < 2; i++) stride_binary(pass, s, i);
        return SP_OK;
    case SP_KERNEL_ID_gemm_f32:
        return sp__stride_product(pass, s);
    default:
        return SP_OK;
    }
}

static sp_status pass_begin(sp_plan_builder *builder, sp_stride_pass *pass)
{
    *pass = (sp_stride_pass){.builder = builder,
                             .values = sp_calloc(builder->value_count, sizeof *pass->values)};
    if (pass->values == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory to compile a plan");
    count_uses(pass);
    return SP_OK;
}

static void pass_end(sp_stride_pass *pass)
{
    sp_plan_builder *builder = pass->builder;
    uint32_t kept = 0;
    for (uint32_t s = 0; s < builder->plan->step_count; s++) {
        if (builder->steps[s].kernel != SP_NO_KERNEL) builder->steps[kept++] = builder->steps[s];
    }
    builder->plan->step_count = kept;
    sp_free(pass->values);
}

sp_status sp__stride_each(sp_plan_builder *builder,
                          sp_status (*visit)(sp_stride_pass *pass, uint32_t step))
{
    sp_stride_pass pass;
    SP_TRY(pass_begin(builder, &pass));
    sp_status status = SP_OK;
    for (uint32_t s = 0; s < builder->plan->step_count && status == SP_OK; s++) {
        status = visit(&pass, s);
    }
    pass_end(&pass);
    return status;
}

sp_status sp__plan_stride(sp_plan_builder *builder)
{
    return sp__stride_each(builder, stride_step);
}
