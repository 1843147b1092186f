/* SPDX-License-Identifier: Apache-2.0 */
/* Fusion of functions x * gate(x) that are written in steps:
 *
 *     GELU:      Mul(Mul(x, Add(Erf(Div(x, number)), number)), number)
 *     HardSwish: Div(Mul(x, Clip(Add(x, number))), number)
 *     HardSwish: Mul(x, HardSigmoid(x))
 *     Mish:      Mul(x, Tanh(Softplus(x)))
 *     GELU:      Mul(x, Mul(number, Add(number, Tanh(Mul(number, Add(x, cube))))))
 *                with cube = Mul(x, Mul(x, Mul(number, x)))
 *
 * Each is searched for from its Erf, Clip, HardSigmoid or Tanh. */
#include "base/macros.h"
#include "plan/plan_fuse.h"

/* The steps in order. */
typedef struct gate_steps {
    sp_plan_step *steps[9];
    uint32_t count;
    const sp_plan_binding *x;
    uint32_t x_reads; /* by the steps */
    sp_kernel_id kernel;
    sp_gate_constants constants;
} gate_steps;

/* Elements of a step of two operands that are lists of them, or of one and a number. */
static bool is_list(const sp_plan_step *step, sp_kernel_id kernel, int64_t count)
{
    if (step->kernel != kernel) return false;
    const sp_binary_constants *k = step->constants;
    return k->count == count && k->rank == 1 && count > 1;
}

static bool is_whole(const sp_plan_step *step, uint32_t operand)
{
    const sp_binary_constants *k = step->constants;
    return (operand == 0 ? k->a : k->b)[0] == 1;
}

static bool is_x(const gate_steps *g, const sp_plan_binding *operand)
{
    return operand->where == g->x->where && operand->index == g->x->index &&
           operand->bytes == g->x->bytes;
}

/* The step that writes what is read, of x and a number; `operands` of it may be x. */
static bool match_first(const sp_plan_builder *builder, gate_steps *g, const sp_plan_binding *read,
                        sp_kernel_id kernel, uint32_t operands, float *number)
{
    sp_plan_step *first = sp__fuse_writer(builder, read, 2);
    if (first == NULL || !is_list(first, kernel, g->constants.count)) return false;
    for (uint32_t i = 0; i < operands; i++) {
        g->x = &first->bindings[i];
        if (!is_whole(first, i)) continue;
        if (!sp__fuse_number(builder, &first->bindings[1 - i], number)) continue;
        g->steps[g->count++] = first;
        return true;
    }
    return false;
}

/* The only step that reads the output of the last one so far, as one of its first `operands`. The
 * operand is the other one. */
static bool match_next(const sp_plan_builder *builder, gate_steps *g, sp_kernel_id kernel,
                       uint32_t operands, const sp_plan_binding **other)
{
    const sp_plan_step *before = g->steps[g->count - 1];
    const sp_plan_value *value = &builder->values[sp__fuse_output(before)->index];
    sp_plan_step *next = &builder->steps[value->reader];
    if (!is_list(next, kernel, g->constants.count)) return false;
    for (uint32_t i = 0; i < operands; i++) {
        *other = &next->bindings[1 - i];
        if (sp__fuse_writer(builder, &next->bindings[i], 2) != before || !is_whole(next, i)) {
            continue;
        }
        g->steps[g->count++] = next;
        return true;
    }
    return false;
}

static bool match_number(const sp_plan_builder *builder, gate_steps *g, sp_kernel_id kernel,
                         uint32_t operands, float *number)
{
    const sp_plan_binding *other;
    if (!match_next(builder, g, kernel, operands, &other)) return false;
    return sp__fuse_number(builder, other, number);
}

/* The product with x. */
static bool match_product(const sp_plan_builder *builder, gate_steps *g)
{
    const sp_plan_binding *other;
    if (!match_next(builder, g, SP_KERNEL_ID_mul_f32, 2, &other)) return false;
    const sp_plan_step *product = g->steps[g->count - 1];
    return is_x(g, other) && is_whole(product, 0) && is_whole(product, 1);
}

static bool match_gelu(const sp_plan_builder *builder, sp_plan_step *erf, gate_steps *g)
{
    const sp_flat_constants *k = erf->constants;
    sp_gate_constants *of = &g->constants;
    *of = (sp_gate_constants){.count = k->count};
    g->kernel = SP_KERNEL_ID_erf_gate_f32;
    g->x_reads = 2;
    if (!match_first(builder, g, &erf->bindings[0], SP_KERNEL_ID_div_f32, 1, &of->divisor))
        return false;
    g->steps[g->count++] = erf;
    return match_number(builder, g, SP_KERNEL_ID_add_f32, 2, &of->addend) &&
           match_product(builder, g) &&
           match_number(builder, g, SP_KERNEL_ID_mul_f32, 2, &of->factor);
}

static bool match_hard_swish(const sp_plan_builder *builder, sp_plan_step *clip, gate_steps *g)
{
    const sp_function_constants *k = clip->constants;
    sp_gate_constants *of = &g->constants;
    *of = (sp_gate_constants){.count = k->count, .low = (float)k->alpha, .high = (float)k->beta};
    g->kernel = SP_KERNEL_ID_clip_gate_f32;
    g->x_reads = 2;
    if (!match_first(builder, g, &clip->bindings[0], SP_KERNEL_ID_add_f32, 2, &of->addend))
        return false;
    g->steps[g->count++] = clip;
    return match_product(builder, g) &&
           match_number(builder, g, SP_KERNEL_ID_div_f32, 1, &of->divisor);
}

static bool match_hard_sigmoid(const sp_plan_builder *builder, sp_plan_step *gate, gate_steps *g)
{
    const sp_function_constants *k = gate->constants;
    g->constants =
        (sp_gate_constants){.count = k->count, .scale = (float)k->alpha, .addend = (float)k->beta};
    g->kernel = SP_KERNEL_ID_hard_sigmoid_gate_f32;
    g->x_reads = 2;
    g->x = &gate->bindings[0];
    g->steps[g->count++] = gate;
    return match_product(builder, g);
}

static bool match_mish(const sp_plan_builder *builder, sp_plan_step *tanh, gate_steps *g)
{
    const sp_flat_constants *k = tanh->constants;
    sp_plan_step *softplus = sp__fuse_writer(builder, &tanh->bindings[0], 2);
    if (softplus == NULL || softplus->kernel != SP_KERNEL_ID_softplus_f32) return false;
    g->constants = (sp_gate_constants){.count = k->count};
    g->kernel = SP_KERNEL_ID_softplus_gate_f32;
    g->x_reads = 2;
    g->x = &softplus->bindings[0];
    g->steps[g->count++] = softplus;
    g->steps[g->count++] = tanh;
    return match_product(builder, g);
}

/* The step of two lists that only `read` reads. */
static sp_plan_step *list_writer(const sp_plan_builder *builder, const gate_steps *g,
                                 const sp_plan_binding *read, sp_kernel_id kernel)
{
    sp_plan_step *step = sp__fuse_writer(builder, read, 2);
    if (step == NULL || !is_list(step, kernel, g->constants.count)) return NULL;
    return is_whole(step, 0) && is_whole(step, 1) ? step : NULL;
}

/* The product of x and what *read becomes. */
static sp_plan_step *match_power(const sp_plan_builder *builder, const gate_steps *g,
                                 const sp_plan_binding **read)
{
    sp_plan_step *step = list_writer(builder, g, *read, SP_KERNEL_ID_mul_f32);
    if (step == NULL) return NULL;
    for (uint32_t i = 0; i < 2; i++) {
        if (!is_x(g, &step->bindings[i]) || is_x(g, &step->bindings[1 - i])) continue;
        *read = &step->bindings[1 - i];
        return step;
    }
    return NULL;
}

/* x * (x * (number * x)), in the steps before `sum`. */
static bool match_cube(const sp_plan_builder *builder, gate_steps *g, const sp_plan_binding *cube)
{
    g->count = 0;
    sp_plan_step *third = match_power(builder, g, &cube);
    sp_plan_step *second = third != NULL ? match_power(builder, g, &cube) : NULL;
    gate_steps first = {.constants = g->constants};
    if (second == NULL ||
        !match_first(builder, &first, cube, SP_KERNEL_ID_mul_f32, 2, &g->constants.cube)) {
        return false;
    }
    g->steps[g->count++] = first.steps[0];
    g->steps[g->count++] = second;
    g->steps[g->count++] = third;
    return is_x(g, first.x);
}

/* The steps of scale * (x + cube). */
static bool match_scaled(const sp_plan_builder *builder, gate_steps *g, const sp_plan_step *tanh)
{
    gate_steps scaled = {.constants = g->constants};
    if (!match_first(builder, &scaled, &tanh->bindings[0], SP_KERNEL_ID_mul_f32, 2,
                     &g->constants.scale)) {
        return false;
    }
    sp_plan_step *sum = list_writer(builder, g, scaled.x, SP_KERNEL_ID_add_f32);
    for (uint32_t i = 0; sum != NULL && i < 2; i++) {
        g->x = &sum->bindings[i];
        if (!match_cube(builder, g, &sum->bindings[1 - i])) continue;
        g->steps[g->count++] = sum;
        g->steps[g->count++] = scaled.steps[0];
        return true;
    }
    return false;
}

static bool match_tanh_gelu(const sp_plan_builder *builder, sp_plan_step *tanh, gate_steps *g)
{
    const sp_flat_constants *k = tanh->constants;
    sp_gate_constants *of = &g->constants;
    *of = (sp_gate_constants){.count = k->count};
    g->kernel = SP_KERNEL_ID_tanh_gate_f32;
    g->x_reads = 5;
    if (!match_scaled(builder, g, tanh)) return false;
    g->steps[g->count++] = tanh;
    return match_number(builder, g, SP_KERNEL_ID_add_f32, 2, &of->addend) &&
           match_number(builder, g, SP_KERNEL_ID_mul_f32, 2, &of->factor) &&
           match_product(builder, g);
}

/* The last step becomes the fused one. */
static sp_status fuse_gate(sp_plan_builder *builder, const gate_steps *g)
{
    sp_plan_step *last = g->steps[g->count - 1];
    sp_gate_constants *k;
    sp_plan_binding *bindings;
    const char *const node_name = g->steps[0]->node_name, *op_name;
    SP_TRY(sp__fuse_into_last(builder, g->steps, g->count, &op_name));
    SP_TRY(sp__bump_array(&builder->plan->bump, 1, sizeof *k, &k));
    SP_TRY(sp__bump_array(&builder->plan->bump, 2, sizeof *bindings, &bindings));
    *k = g->constants;
    bindings[0] = *g->x;
    bindings[1] = *sp__fuse_output(last);
    builder->values[bindings[1].index].in_place = bindings[0].index;
    for (uint32_t i = 1; i < g->x_reads; i++) sp__fuse_reads(builder, bindings[0].index, last);
    *last = (sp_plan_step){.kernel = g->kernel,
                           .binding_count = 2,
                           .bindings = bindings,
                           .constants = k,
                           .constant_bytes = sizeof *k,
                           .node_name = node_name,
                           .op_name = op_name};
    return SP_OK;
}

static const struct {
    sp_kernel_id kernel;
    bool (*match)(const sp_plan_builder *builder, sp_plan_step *step, gate_steps *g);
} patterns[] = {{SP_KERNEL_ID_erf_f32, match_gelu},
                {SP_KERNEL_ID_clip_f32, match_hard_swish},
                {SP_KERNEL_ID_hard_sigmoid_f32, match_hard_sigmoid},
                {SP_KERNEL_ID_tanh_f32, match_mish},
                {SP_KERNEL_ID_tanh_f32, match_tanh_gelu}};

/* A step that has become one of a gate has another kernel, and matches no more patterns. */
static sp_status fuse_patterns(sp_plan_builder *builder, sp_plan_step *step)
{
    for (size_t i = 0; i < SP_COUNT_OF(patterns); i++) {
        gate_steps g = {0};
        if (step->kernel != patterns[i].kernel || !patterns[i].match(builder, step, &g)) continue;
        SP_TRY(fuse_gate(builder, &g));
    }
    return SP_OK;
}

sp_status sp__plan_fuse_gates(sp_plan_builder *builder)
{
    for (uint32_t s = 0; s < builder->plan->step_count; s++) {
        SP_TRY(fuse_patterns(builder, &builder->steps[s]));
    }
    return SP_OK;
}
