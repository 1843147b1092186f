/* SPDX-License-Identifier: Apache-2.0 */
/* Fusion of MatMul(Cast(Equal(x, 0 ... depth-1)), weights), which is how exporters write a look-up
 * in a table: the product's row is a row of the weights. With what the product adds and applies. */
#include "plan/plan_fuse.h"

#include <string.h>

#include "base/macros.h"
#include "ops/ops.h"

/* The steps, and the operands of the one that takes their place. */
typedef struct look_up_steps {
    sp_plan_step *equal, *cast, *product;
    const sp_plan_binding *index;
    const sp_plan_packing *weights;
    sp_look_up_constants constants;
} look_up_steps;

/* Constants of a file have any alignment. */
static int64_t element_at(const void *data, bool is_wide, int64_t index)
{
    int64_t wide = 0;
    int32_t narrow = 0;
    if (is_wide) memcpy(&wide, (const char *)data + index * 8, sizeof wide);
    else memcpy(&narrow, (const char *)data + index * 4, sizeof narrow);
    return is_wide ? wide : narrow;
}

/* Is the operand the integers 0 ... count-1? */
static bool is_range(const sp_plan_builder *builder, const sp_plan_binding *read, int64_t count,
                     bool is_wide)
{
    const uint64_t bytes = (uint64_t)count * (is_wide ? sizeof(int64_t) : sizeof(int32_t));
    if (read->where != SP_PLACE_ARENA || read->bytes != bytes) return false;
    const sp_plan_value *value = &builder->values[read->index];
    if (value->data == NULL || value->is_computed || value->bytes != bytes) return false;
    for (int64_t i = 0; i < count; i++) {
        if (element_at(value->data, is_wide, i) != i) return false;
    }
    return true;
}

/* A row for each index: [rows, 1] is compared with [depth]. */
static bool match_equal(const sp_plan_builder *builder, look_up_steps *s)
{
    sp_look_up_constants *of = &s->constants;
    const sp_kernel_id kernel = s->equal->kernel;
    if (kernel != SP_KERNEL_ID_equal_i32 && kernel != SP_KERNEL_ID_equal_i64) return false;
    of->is_wide = kernel == SP_KERNEL_ID_equal_i64;
    const sp_binary_constants *k = s->equal->constants;
    if (k->rank != 2 || k->dims[0] != of->rows || k->dims[1] != of->depth) return false;
    for (uint32_t i = 0; i < 2; i++) {
        const int64_t *index = i == 0 ? k->a : k->b, *range = i == 0 ? k->b : k->a;
        if (index[0] != 1 || index[1] != 0 || range[0] != 0 || range[1] != 1) continue;
        s->index = &s->equal->bindings[i];
        return is_range(builder, &s->equal->bindings[1 - i], of->depth, of->is_wide);
    }
    return false;
}

/* A product of one matrix with packed weights, whose left-hand side is as it was cast. */
static bool match_product(const sp_plan_builder *builder, look_up_steps *s)
{
    const sp_gemm_constants *k = s->product->constants;
    const sp_plan_binding *b = &s->product->bindings[1];
    if (sp__gemm_batch(k) != 1 || b->where != SP_PLACE_PACKED) return false;
    if (k->a_row != k->depth || k->a_depth != 1 || k->alpha != 1) return false;
    if (k->has_c && (k->beta != 1 || k->c_column != 1)) return false;
    s->weights = &builder->packings[b->index];
    if (s->weights->what.kernel != SP_KERNEL_ID_gemm_pack_f32) return false;
    s->constants = (sp_look_up_constants){
        .rows = k->rows,
        .columns = k->columns,
        .depth = k->depth,
        .c_row = k->c_row,
        .has_c = k->has_c,
        .activation = k->activation,
    };
    return k->rows > 1 && k->depth > 1;
}

static bool match_look_up(const sp_plan_builder *builder, sp_plan_step *product, look_up_steps *s)
{
    *s = (look_up_steps){.product = product};
    if (!match_product(builder, s)) return false;
    s->cast = sp__fuse_writer(builder, &product->bindings[0], 2);
    if (s->cast == NULL || s->cast->kernel != SP_KERNEL_ID_cast_bool) return false;
    const sp_cast_constants *cast = s->cast->constants;
    if (cast->to != SP_F32 || cast->count != s->constants.rows * s->constants.depth) return false;
    s->equal = sp__fuse_writer(builder, &s->cast->bindings[0], 2);
    return s->equal != NULL && match_equal(builder, s);
}

/* The value of the graph that has the weights. */
static uint32_t find_weights(const sp_plan_builder *builder, const sp_plan_packing *packing)
{
    for (uint32_t i = 0; i < builder->value_count; i++) {
        const sp_plan_value *value = &builder->values[i];
        if (value->where == SP_PLACE_WEIGHT && value->index == packing->what.weight) return i;
    }
    return SP_NO_VALUE;
}

static sp_status pack_table(sp_plan_builder *builder, const look_up_steps *s, sp_plan_binding *out)
{
    const sp_look_up_constants *k = &s->constants;
    const sp_packing what = {
        .kernel = SP_KERNEL_ID_look_up_pack_f32,
        .constant_bytes = s->weights->what.constant_bytes,
        .constants = s->weights->what.constants,
        .bytes = sp__pack_bytes(SP_PACK_ROWS_F32, k->depth + 1, k->columns),
    };
    return sp__plan_pack(builder, find_weights(builder, s->weights), &what, out);
}

/* In the place of the product, where all operands are there. */
static sp_status fuse_look_up(sp_plan_builder *builder, look_up_steps *s)
{
    sp_plan_step *product = s->product;
    const uint32_t operands = product->binding_count - 1;
    sp_look_up_constants *k;
    sp_plan_binding *bindings;
    const char *name = s->equal->op_name;
    SP_TRY(sp__plan_append_name(builder, &name, s->cast->op_name));
    SP_TRY(sp__plan_append_name(builder, &name, product->op_name));
    SP_TRY(sp__bump_array(&builder->plan->bump, 1, sizeof *k, &k));
    SP_TRY(sp__bump_array(&builder->plan->bump, 4, sizeof *bindings, &bindings));
    *k = s->constants;
    bindings[0] = *s->index;
    SP_TRY(pack_table(builder, s, &bindings[1]));
    for (uint32_t i = 2; i <= operands; i++) bindings[i] = product->bindings[i];
    sp__fuse_moves_read(builder, s->index, product);
    *product = (sp_plan_step){.kernel = SP_KERNEL_ID_look_up_f32,
                              .binding_count = operands + 1,
                              .bindings = bindings,
                              .constants = k,
                              .constant_bytes = sizeof *k,
                              .node_name = s->equal->node_name,
                              .op_name = name};
    s->equal->kernel = SP_NO_KERNEL;
    s->cast->kernel = SP_NO_KERNEL;
    return SP_OK;
}

sp_status sp__plan_fuse_look_up(sp_plan_builder *builder)
{
    for (uint32_t s = 0; s < builder->plan->step_count; s++) {
        sp_plan_step *step = &builder->steps[s];
        look_up_steps steps;
        if (step->kernel != SP_KERNEL_ID_gemm_f32) continue;
        if (match_look_up(builder, step, &steps)) SP_TRY(fuse_look_up(builder, &steps));
    }
    return SP_OK;
}
