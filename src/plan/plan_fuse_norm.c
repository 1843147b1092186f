/* SPDX-License-Identifier: Apache-2.0 */
/* Fusion of normalisations that are written in steps, as exporters do before opset 17 (LayerNorm)
 * and 23 (RMSNorm):
 *
 *     d = x, or mean = ReduceMean(x), d = Sub(x, mean)
 *     square = Pow(d, 2) or Mul(d, d), root = Sqrt(Add(ReduceMean(square), epsilon))
 *     y = Div(d, root) or Mul(d, Reciprocal(root)), then Mul(y, scale), then Add(y, bias)
 *
 * over the last dimensions of x, where the last two steps may be absent, and the reciprocal may be
 * Div(1, root). It is searched for from its Div or Mul of d. */
#include "base/macros.h"
#include "ops/ops.h"
#include "plan/plan_fuse.h"

/* The steps in order. NULL: mean and distance of a norm that is not centred, inverse of one that
 * divides by the root; scaled and shifted, if absent. */
typedef struct norm_steps {
    sp_plan_step *mean, *distance, *square, *variance, *sum, *root, *inverse, *quotient, *scaled,
        *shifted;
    const sp_plan_binding *x, *epsilon, *scale, *bias;
    uint32_t x_reads; /* by the steps */
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
static bool is_by_row(const norm_steps *n, const sp_binary_constants *k, const int64_t *a,
                      const int64_t *b)
{
    if (n->rows == 1) return k->rank == 1 && a[0] == 1 && b[0] == 0;
    const bool is_matrix = k->rank == 2 && k->dims[1] == n->extent;
    return is_matrix && a[0] == n->extent && a[1] == 1 && b[0] == 1 && b[1] == 0;
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

/* Is it 1 / x of each element of its last operand, x? */
static bool is_reciprocal(const sp_plan_builder *builder, const sp_plan_step *step)
{
    float dividend;
    if (step->kernel == SP_KERNEL_ID_reciprocal_f32) return true;
    if (step->kernel != SP_KERNEL_ID_div_f32) return false;
    return sp__fuse_number(builder, &step->bindings[0], &dividend) && dividend == 1;
}

/* ---- matching ---- */

/* The root, from the operand of the quotient that is it, or its reciprocal. */
static bool match_root(const sp_plan_builder *builder, norm_steps *n, uint32_t operand)
{
    const sp_plan_binding *read = &n->quotient->bindings[operand];
    if (n->quotient->kernel == SP_KERNEL_ID_mul_f32) {
        n->inverse = sp__fuse_writer(builder, read, 2);
        if (n->inverse == NULL || !is_reciprocal(builder, n->inverse)) return false;
        read = &n->inverse->bindings[n->inverse->binding_count - 2];
    }
    n->root = sp__fuse_writer(builder, read, 2);
    return n->root != NULL && n->root->kernel == SP_KERNEL_ID_sqrt_f32;
}

/* The steps up to the root, from there. */
static bool match_deviation(const sp_plan_builder *builder, norm_steps *n)
{
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

/* Does the step square all of `d`? It reads `d` *reads times. */
static bool is_square(const sp_plan_builder *builder, const norm_steps *n, const sp_plan_binding *d,
                      uint32_t *reads)
{
    const sp_plan_binding *a = &n->square->bindings[0], *b = &n->square->bindings[1];
    if (a->where != d->where || a->index != d->index || a->bytes != d->bytes) return false;
    const sp_binary_constants *k = whole_binary(n, n->square, SP_KERNEL_ID_mul_f32);
    *reads = 2;
    if (k != NULL) return a->index == b->index && k->rank == 1 && k->a[0] == 1 && k->b[0] == 1;
    float power = 0;
    k = whole_binary(n, n->square, SP_KERNEL_ID_pow_f32);
    *reads = 1;
    if (k == NULL || k->rank != 1 || k->a[0] != 1) return false;
    return sp__fuse_number(builder, b, &power) && power == 2;
}

/* The distances from the means, d, which are read `reads` times by the steps. */
static bool match_distance(const sp_plan_builder *builder, norm_steps *n, const sp_plan_binding *d,
                           uint32_t reads)
{
    int64_t rows, extent;
    n->distance = sp__fuse_writer(builder, d, 1 + reads);
    const sp_binary_constants *k = whole_binary(n, n->distance, SP_KERNEL_ID_sub_f32);
    if (k == NULL || !is_by_row(n, k, k->a, k->b)) return false;
    n->x = &n->distance->bindings[0];
    n->mean = sp__fuse_writer(builder, &n->distance->bindings[1], 2);
    if (!is_row_mean(n->mean, &rows, &extent) || rows != n->rows || extent != n->extent) {
        return false;
    }
    const sp_plan_binding *of = &n->mean->bindings[0];
    n->x_reads = 2;
    return of->index == n->x->index && of->bytes == n->x->bytes;
}

/* The steps up to the quotient, of which `operand` is the root or its reciprocal. */
static bool match_quotient(const sp_plan_builder *builder, norm_steps *n, uint32_t operand)
{
    const sp_plan_binding *d = &n->quotient->bindings[1 - operand];
    uint32_t reads;
    if (!match_root(builder, n, operand) || !match_deviation(builder, n)) return false;
    const sp_binary_constants *k = whole_binary(n, n->quotient, n->quotient->kernel);
    if (k == NULL || !is_by_row(n, k, operand == 1 ? k->a : k->b, operand == 1 ? k->b : k->a)) {
        return false;
    }
    if (!is_square(builder, n, d, &reads)) return false;
    if (match_distance(builder, n, d, reads + 1)) return true;
    n->mean = n->distance = NULL;
    n->x = d;
    n->x_reads = reads + 1;
    return true;
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
    const bool is_product = quotient->kernel == SP_KERNEL_ID_mul_f32;
    if (!match_quotient(builder, n, 1) && !(is_product && match_quotient(builder, n, 0))) {
        return false;
    }
    const sp_plan_step *last = quotient;
    n->scaled = match_next(builder, n, last, SP_KERNEL_ID_mul_f32, &n->scale);
    if (n->scaled != NULL) last = n->scaled;
    n->shifted = match_next(builder, n, last, SP_KERNEL_ID_add_f32, &n->bias);
    return true;
}

/* ---- fusing ---- */

enum { MOST_STEPS = 10 };

/* Those that are there, in order. */
static uint32_t list_steps(const norm_steps *n, sp_plan_step *list[MOST_STEPS])
{
    sp_plan_step *const steps[MOST_STEPS] = {n->mean,   n->distance, n->square,  n->variance,
                                             n->sum,    n->root,     n->inverse, n->quotient,
                                             n->scaled, n->shifted};
    uint32_t count = 0;
    for (uint32_t i = 0; i < MOST_STEPS; i++) {
        if (steps[i] != NULL) list[count++] = steps[i];
    }
    return count;
}

/* All operands are there before the last step, which the fused step takes the place of. */
static sp_status fuse_norm(sp_plan_builder *builder, const norm_steps *n)
{
    sp_plan_step *steps[MOST_STEPS];
    const uint32_t step_count = list_steps(n, steps);
    sp_plan_step *last = steps[step_count - 1];
    sp_row_norm_constants *k;
    sp_plan_binding *bindings;
    const char *name;
    SP_TRY(sp__fuse_into_last(builder, steps, step_count, &name));
    SP_TRY(sp__bump_array(&builder->plan->bump, 1, sizeof *k, &k));
    SP_TRY(sp__bump_array(&builder->plan->bump, 5, sizeof *bindings, &bindings));
    *k = (sp_row_norm_constants){.rows = n->rows,
                                 .extent = n->extent,
                                 .is_centred = n->mean != NULL,
                                 .by_reciprocal = n->inverse != NULL,
                                 .has_scale = n->scaled != NULL,
                                 .has_bias = n->shifted != NULL};
    uint32_t count = 0;
    bindings[count++] = *n->x;
    bindings[count++] = *n->epsilon;
    if (k->has_scale) bindings[count++] = *n->scale;
    if (k->has_bias) bindings[count++] = *n->bias;
    for (uint32_t i = 0; i < count; i++) sp__fuse_moves_read(builder, &bindings[i], last);
    bindings[count++] = *sp__fuse_output(last);
    /* Rows are read before they are written. */
    builder->values[sp__fuse_output(last)->index].in_place = n->x->index;
    for (uint32_t i = 1; i < n->x_reads; i++) sp__fuse_reads(builder, n->x->index, last);
    *last = (sp_plan_step){.kernel = SP_KERNEL_ID_row_norm_f32,
                           .binding_count = count,
                           .bindings = bindings,
                           .constants = k,
                           .constant_bytes = sizeof *k,
                           .node_name = steps[0]->node_name,
                           .op_name = name};
    return SP_OK;
}

sp_status sp__plan_fuse_norms(sp_plan_builder *builder)
{
    for (uint32_t s = 0; s < builder->plan->step_count; s++) {
        sp_plan_step *step = &builder->steps[s];
        norm_steps n;
        if (step->kernel != SP_KERNEL_ID_div_f32 && step->kernel != SP_KERNEL_ID_mul_f32) continue;
        if (match_norm(builder, step, &n)) SP_TRY(fuse_norm(builder, &n));
    }
    return SP_OK;
}
