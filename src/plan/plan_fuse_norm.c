/* SPDX-License-Identifier: Apache-2.0 */
/* Fusion of a normalisation that is written in steps, as exporters do before opset 17:
 *
 *     mean = ReduceMean(x), d = Sub(x, mean), square = Pow(d, 2) or Mul(d, d),
 *     y = Div(d, Sqrt(Add(ReduceMean(square), epsilon))), then Mul(y, scale), then Add(y, bias)
 *
 * over the last dimensions of x, where the last two steps may be absent. It is searched for from
 * its Div. No device but the CPU has kernels of the means and the root, so none loses steps. */
#include "base/macros.h"
#include "ops/ops.h"
#include "plan/plan_fuse.h"

/* The steps in order; scaled and shifted may be NULL. */
typedef struct norm_steps {
    sp_plan_step *mean, *distance, *square, *variance, *sum, *root, *quotient, *scaled, *shifted;
    const sp_plan_binding *x, *epsilon, *scale, *bias;
    int64_t rows, extent;
} norm_steps;

/* ---- forms of steps ---- */

/* Is it the mean of each of `rows` contiguous rows of `extent` elements? */
static bool is_row_mean(const sp_plan_step *step, int64_t *rows, int64_t *extent)
{
    if (step == NULL || step->kernel != SP_KERNEL_ID_reduce_f32) return false;
    const sp_reduce_constants *k = step->constants;
    *rows = k->count;
    *extent = k->extent;
    const bool is_mean = k->reduction == SP_REDUCE_MEAN && !k->is_columns && !k->has_shift;
    const bool is_row = k->reduced_rank == 1 && k->strides[0] == 1 && k->extent > 1;
    const bool are_rows = k->count == 1 || (k->kept_rank == 1 && k->kept_strides[0] == k->extent);
    return is_mean && is_row && are_rows;
}

/* A step of two operands that makes rows * extent elements. */
static const sp_binary_constants *whole_binary(const norm_steps *n, const sp_plan_step *step,
                                               sp_kernel_id kernel)
{
    if (step == NULL || step->kernel != kernel) return NULL;
    const sp_binary_constants *k = step->constants;
    return k->count == n->rows * n->extent ? k : NULL;
}

/* Has the step one element of operand `a` and, of operand `b`, one for each row? */
static bool is_by_row(const norm_steps *n, const sp_binary_constants *k)
{
    if (n->rows == 1) return k->rank == 1 && k->a[0] == 1 && k->b[0] == 0;
    const bool is_matrix = k->rank == 2 && k->dims[1] == n->extent;
    const bool is_a = k->a[0] == n->extent && k->a[1] == 1;
    return is_matrix && is_a && k->b[0] == 1 && k->b[1] == 0;
}

/* Has the step one element of operand `a` and, of operand `b`, one for each element of a row? */
static bool is_by_element(const norm_steps *n, const sp_binary_constants *k, const int64_t *a,
                          const int64_t *b)
{
    if (n->rows == 1) return k->rank == 1 && a[0] == 1 && b[0] == 1;
    const bool is_matrix = k->rank == 2 && k->dims[1] == n->extent;
    return is_matrix && a[0] == n->extent && a[1] == 1 && b[0] == 0 && b[1] == 1;
}

static bool is_number(const sp_plan_binding *binding)
{
    return binding->bytes == sizeof(float);
}

/* ---- matching ---- */

/* The squares, and so the uses of the distance: those of the square, its write and the quotient. */
static bool match_square(const sp_plan_builder *builder, norm_steps *n, uint32_t *uses)
{
    const sp_plan_binding *a = &n->square->bindings[0], *b = &n->square->bindings[1];
    const sp_binary_constants *k = whole_binary(n, n->square, SP_KERNEL_ID_mul_f32);
    if (k != NULL) {
        *uses = 4;
        return a->index == b->index && k->rank == 1 && k->a[0] == 1 && k->b[0] == 1;
    }
    float power = 0;
    k = whole_binary(n, n->square, SP_KERNEL_ID_pow_f32);
    *uses = 3;
    if (k == NULL || k->rank != 1 || k->a[0] != 1) return false;
    return sp__fuse_number(builder, b, &power) && power == 2;
}

/* The steps up to the root, from the divisor. */
static bool match_deviation(const sp_plan_builder *builder, norm_steps *n)
{
    n->root = sp__fuse_writer(builder, &n->quotient->bindings[1], 2);
    if (n->root == NULL || n->root->kernel != SP_KERNEL_ID_sqrt_f32) return false;
    n->sum = sp__fuse_writer(builder, &n->root->bindings[0], 2);
    if (n->sum == NULL || n->sum->kernel != SP_KERNEL_ID_add_f32) return false;
    for (uint32_t i = 0; i < 2; i++) {
        n->epsilon = &n->sum->bindings[1 - i];
        n->variance = sp__fuse_writer(builder, &n->sum->bindings[i], 2);
        if (!is_number(n->epsilon)) continue;
        if (is_row_mean(n->variance, &n->rows, &n->extent)) break;
        n->variance = NULL;
    }
    if (n->variance == NULL || !is_number(n->epsilon)) return false;
    const sp_binary_constants *k = n->sum->constants;
    if (k->count != n->rows) return false;
    n->square = sp__fuse_writer(builder, &n->variance->bindings[0], 2);
    return n->square != NULL;
}

/* The distance, which the quotient and the square read, and the mean. */
static bool match_distance(const sp_plan_builder *builder, norm_steps *n)
{
    uint32_t uses = 0;
    int64_t rows, extent;
    if (!match_square(builder, n, &uses)) return false;
    const sp_plan_binding *read = &n->quotient->bindings[0];
    const sp_plan_binding *squared = &n->square->bindings[0];
    n->distance = sp__fuse_writer(builder, read, uses);
    if (n->distance == NULL || squared->index != read->index) return false;
    const sp_binary_constants *k = whole_binary(n, n->distance, SP_KERNEL_ID_sub_f32);
    if (k == NULL || !is_by_row(n, k)) return false;
    n->x = &n->distance->bindings[0];
    n->mean = sp__fuse_writer(builder, &n->distance->bindings[1], 2);
    if (!is_row_mean(n->mean, &rows, &extent) || rows != n->rows || extent != n->extent) {
        return false;
    }
    const sp_plan_binding *of = &n->mean->bindings[0];
    return of->index == n->x->index && of->bytes == n->x->bytes;
}

/* The only step that reads the output of `step`, if it is of that kernel and its other operand has
 * one element for each element of a row. */
static sp_plan_step *match_next(const sp_plan_builder *builder, const norm_steps *n,
                                const sp_plan_step *step, sp_kernel_id kernel,
                                const sp_plan_binding **other)
{
    const sp_plan_binding *output = sp__fuse_output(step);
    const sp_plan_value *value = &builder->values[output->index];
    if (value->use_count != 2) return NULL;
    sp_plan_step *next = &builder->steps[value->reader];
    const sp_binary_constants *k = whole_binary(n, next, kernel);
    if (k == NULL) return NULL;
    for (uint32_t i = 0; i < 2; i++) {
        *other = &next->bindings[1 - i];
        const int64_t *a = i == 0 ? k->a : k->b, *b = i == 0 ? k->b : k->a;
        if (sp__fuse_writer(builder, &next->bindings[i], 2) != step) continue;
        if (is_by_element(n, k, a, b)) return next;
    }
    return NULL;
}

static bool match_norm(const sp_plan_builder *builder, sp_plan_step *quotient, norm_steps *n)
{
    *n = (norm_steps){.quotient = quotient};
    if (!match_deviation(builder, n) || !match_distance(builder, n)) return false;
    const sp_binary_constants *k = whole_binary(n, quotient, SP_KERNEL_ID_div_f32);
    if (k == NULL || !is_by_row(n, k)) return false;
    const sp_plan_step *last = quotient;
    n->scaled = match_next(builder, n, last, SP_KERNEL_ID_mul_f32, &n->scale);
    if (n->scaled != NULL) last = n->scaled;
    n->shifted = match_next(builder, n, last, SP_KERNEL_ID_add_f32, &n->bias);
    return true;
}

/* ---- fusing ---- */

static sp_status fuse_names(sp_plan_builder *builder, const norm_steps *n, const char **name)
{
    const sp_plan_step *const steps[] = {n->distance, n->square,   n->variance, n->sum,
                                         n->root,     n->quotient, n->scaled,   n->shifted};
    *name = n->mean->op_name;
    for (uint32_t i = 0; i < SP_COUNT_OF(steps); i++) {
        if (steps[i] == NULL) continue;
        SP_TRY(sp__plan_append_name(builder, name, steps[i]->op_name));
    }
    return SP_OK;
}

static void remove_steps(const norm_steps *n, const sp_plan_step *last)
{
    sp_plan_step *const steps[] = {n->mean, n->distance, n->square,   n->variance,
                                   n->sum,  n->root,     n->quotient, n->scaled};
    for (uint32_t i = 0; i < SP_COUNT_OF(steps); i++) {
        if (steps[i] != NULL && steps[i] != last) steps[i]->kernel = SP_NO_KERNEL;
    }
}

/* Fits: a tile has at least half as many elements as those of the steps that it replaces. */
static uint32_t norm_tiles(const sp_row_norm_constants *k)
{
    return (uint32_t)sp__lower_tiles((uint64_t)k->rows, (uint64_t)k->tile_rows);
}

/* All operands are there before the last step, which the fused step takes the place of. */
static sp_status fuse_norm(sp_plan_builder *builder, const norm_steps *n)
{
    sp_plan_step *last = n->shifted != NULL ? n->shifted : n->scaled;
    if (last == NULL) last = n->quotient;
    sp_row_norm_constants *k;
    sp_plan_binding *bindings;
    const char *name;
    SP_TRY(fuse_names(builder, n, &name));
    SP_TRY(sp__bump_array(&builder->plan->bump, 1, sizeof *k, &k));
    SP_TRY(sp__bump_array(&builder->plan->bump, 5, sizeof *bindings, &bindings));
    *k = (sp_row_norm_constants){.rows = n->rows,
                                 .extent = n->extent,
                                 .tile_rows = SP_TILE_ELEMENTS / 2 / n->extent + 1,
                                 .has_scale = n->scaled != NULL,
                                 .has_bias = n->shifted != NULL};
    uint32_t count = 0;
    bindings[count++] = *n->x;
    bindings[count++] = *n->epsilon;
    if (k->has_scale) bindings[count++] = *n->scale;
    if (k->has_bias) bindings[count++] = *n->bias;
    bindings[count++] = *sp__fuse_output(last);
    /* Rows are read before they are written. */
    builder->values[sp__fuse_output(last)->index].in_place = n->x->index;
    sp__fuse_reads(builder, n->x->index, last);
    remove_steps(n, last);
    *last = (sp_plan_step){.kernel = SP_KERNEL_ID_row_norm_f32,
                           .grid = {norm_tiles(k), 1, 1},
                           .binding_count = count,
                           .bindings = bindings,
                           .constants = k,
                           .constant_bytes = sizeof *k,
                           .node_name = n->mean->node_name,
                           .op_name = name};
    return SP_OK;
}

sp_status sp__plan_fuse_norms(sp_plan_builder *builder)
{
    for (uint32_t s = 0; s < builder->plan->step_count; s++) {
        sp_plan_step *step = &builder->steps[s];
        norm_steps n;
        if (step->kernel != SP_KERNEL_ID_div_f32) continue;
        if (match_norm(builder, step, &n)) SP_TRY(fuse_norm(builder, &n));
    }
    return SP_OK;
}
