/* SPDX-License-Identifier: Apache-2.0 */
/* The first half of compiling: infers each node's shapes, then folds its values if its inputs are
 * known, else records its dispatches as steps. */
#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "base/macros.h"
#include "ops/evaluate.h"
#include "ops/ops.h"
#include "ops/registry.h"
#include "plan/plan_build.h"

/* ---- growing lists ---- */

static sp_status fail_no_memory(void)
{
    return sp__fail(SP_OUT_OF_MEMORY, "no memory to compile a plan");
}

sp_status sp__plan_add_step(sp_plan_builder *builder, const sp_plan_step *step)
{
    sp_graph_plan *plan = builder->plan;
    sp_plan_step *steps =
        sp_grow(builder->steps, plan->step_count, &builder->step_capacity, sizeof(*steps));
    if (steps == NULL) return fail_no_memory();
    builder->steps = steps;
    void *constants;
    sp_plan_binding *bindings;
    SP_TRY(sp__bump_array(&plan->bump, step->constant_bytes, 1, &constants));
    SP_TRY(sp__bump_array(&plan->bump, step->binding_count, sizeof(*bindings), &bindings));
    if (step->constant_bytes > 0) memcpy(constants, step->constants, step->constant_bytes);
    memcpy(bindings, step->bindings, step->binding_count * sizeof(*bindings));
    sp_plan_step *added = &builder->steps[plan->step_count++];
    *added = *step;
    added->constants = constants;
    added->bindings = bindings;
    return SP_OK;
}

/* Takes ownership of `array`'s data, also on an error. */
static sp_status add_constant(sp_plan_builder *builder, const sp_array *array, uint32_t *index)
{
    sp_graph_plan *plan = builder->plan;
    sp_weight *constants = sp_grow(builder->constants, plan->constant_count,
                                   &builder->constant_capacity, sizeof(*constants));
    if (constants == NULL) {
        sp_free(array->data);
        return fail_no_memory();
    }
    builder->constants = constants;
    plan->constants = constants;
    *index = plan->constant_count++;
    builder->constants[*index] = (sp_weight){.data = array->data, .bytes = array->bytes};
    return SP_OK;
}

/* Adds a value that the graph does not have. */
static sp_status add_value(sp_plan_builder *builder, sp_plan_value value, uint32_t *index)
{
    sp_plan_value *values =
        sp_grow(builder->values, builder->value_count, &builder->value_capacity, sizeof(*values));
    if (values == NULL) return fail_no_memory();
    builder->values = values;
    *index = builder->value_count++;
    value.root = *index;
    value.output = SP_NO_OUTPUT;
    value.first_step = SP_NO_STEP;
    value.in_place = SP_NO_VALUE;
    value.home = SP_NO_VALUE;
    value.packing = SP_NO_PACKING;
    values[*index] = value;
    return SP_OK;
}

sp_status sp__plan_add_constant(sp_plan_builder *builder, void *data, uint64_t bytes,
                                uint32_t *index)
{
    const sp_array array = {.data = data, .bytes = bytes};
    sp_plan_value value = {.bytes = bytes, .data = data, .where = SP_PLACE_CONSTANT};
    SP_TRY(add_constant(builder, &array, &value.index));
    return add_value(builder, value, index);
}

sp_status sp__plan_add_value(sp_plan_builder *builder, uint64_t bytes, uint32_t *index)
{
    return add_value(builder, (sp_plan_value){.bytes = bytes, .is_computed = true}, index);
}

/* ---- values that are available before the first step ---- */

static sp_status value_set_input(sp_plan_builder *builder, uint32_t which,
                                 const sp_plan_input *input, uint32_t index)
{
    sp_plan_value *value = &builder->values[which];
    value->is_there = true;
    value->dtype = input->dtype;
    value->shape = input->shape;
    value->data = input->data;
    value->where = SP_PLACE_INPUT;
    value->index = index;
    return sp__shape_bytes(&value->shape, value->dtype, &value->bytes);
}

static sp_status values_init(sp_plan_builder *builder)
{
    const sp_graph *graph = builder->plan->graph;
    for (uint32_t i = 0; i < graph->value_count; i++) {
        const sp_graph_value *from = &graph->values[i];
        sp_plan_value *value = &builder->values[i];
        *value = (sp_plan_value){.root = i,
                                 .output = SP_NO_OUTPUT,
                                 .first_step = SP_NO_STEP,
                                 .in_place = SP_NO_VALUE,
                                 .home = SP_NO_VALUE,
                                 .packing = SP_NO_PACKING};
        if (!from->is_constant) continue;
        value->is_there = true;
        value->dtype = from->dtype;
        value->shape = from->shape;
        value->where = SP_PLACE_WEIGHT;
        value->index = from->weight;
        SP_TRY(sp__shape_bytes(&value->shape, value->dtype, &value->bytes));
        if (from->weight == SP_NO_WEIGHT) continue;
        const sp_weight *weight = &graph->weights[from->weight];
        if (!weight->is_parkable) value->data = weight->data;
    }
    return SP_OK;
}

static sp_status inputs_init(sp_plan_builder *builder)
{
    const sp_graph *graph = builder->plan->graph;
    const sp_plan_request *request = builder->request;
    for (uint32_t i = 0; i < request->input_count; i++) {
        const sp_plan_subgraph *subgraph = request->subgraph;
        const uint32_t value = subgraph != NULL ? subgraph->given[i] : graph->inputs[i].value;
        /* A constant is given only if its value differs from the graph's. */
        builder->values[value].is_tainted = graph->values[value].is_constant;
        SP_TRY(value_set_input(builder, value, &request->inputs[i], i));
    }
    for (uint32_t i = 0; i < request->override_count; i++) {
        const sp_graph_port *port = &graph->defaults[request->overrides[i].index];
        if (builder->values[port->value].is_tainted) {
            return sp__fail(SP_INVALID, "input '%s' is given twice", port->name);
        }
        builder->values[port->value].is_tainted = true;
        SP_TRY(value_set_input(builder, port->value, &request->overrides[i].input,
                               request->input_count + i));
    }
    return SP_OK;
}

/* ---- repeated operands ---- */

uint32_t sp__plan_input_value(const sp_plan_builder *builder, const sp_graph_node *node,
                              uint32_t input)
{
    const sp_plan_request *request = builder->request;
    for (uint32_t i = 0; i < request->repeat_count; i++) {
        const sp_plan_repeat *repeat = &request->repeats[i];
        if (repeat->value != node->inputs[input]) continue;
        if (&builder->plan->graph->nodes[repeat->node] == node) return builder->repeated[i];
    }
    return node->inputs[input];
}

static sp_status repeat_make(sp_plan_builder *builder, const sp_plan_repeat *repeat,
                             uint32_t *value)
{
    const sp_plan_value from = builder->values[repeat->value];
    if (from.data == NULL) {
        return sp__fail(SP_INTERNAL, "a value that is to be repeated for each row is not known");
    }
    sp_plan_value copy = {.is_there = true, .dtype = from.dtype, .where = SP_PLACE_CONSTANT};
    sp_array array;
    SP_TRY(sp__array_init(&array, from.dtype, &repeat->shape));
    const size_t bytes = (size_t)(repeat->inner * sp_dtype_bytes(from.dtype));
    const uint64_t rows = array.bytes / from.bytes;
    char *at = array.data;
    for (uint64_t i = 0; i < from.bytes / bytes; i++) {
        for (uint64_t row = 0; row < rows; row++, at += bytes) {
            memcpy(at, (const char *)from.data + i * bytes, bytes);
        }
    }
    copy.shape = array.shape;
    copy.bytes = array.bytes;
    copy.data = array.data;
    SP_TRY(add_constant(builder, &array, &copy.index));
    return add_value(builder, copy, value);
}

static sp_status repeats_make(sp_plan_builder *builder, const sp_graph_node *node)
{
    const sp_plan_request *request = builder->request;
    for (uint32_t i = 0; i < request->repeat_count; i++) {
        const sp_plan_repeat *repeat = &request->repeats[i];
        if (&builder->plan->graph->nodes[repeat->node] != node) continue;
        SP_TRY(repeat_make(builder, repeat, &builder->repeated[i]));
    }
    return SP_OK;
}

/* ---- one node ---- */

static bool is_node_tainted(const sp_plan_builder *builder, const sp_graph_node *node)
{
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->inputs[i] == SP_NO_VALUE) continue;
        if (builder->values[node->inputs[i]].is_tainted) return true;
    }
    return false;
}

static sp_op_call node_call(sp_plan_builder *builder, const sp_graph_node *node)
{
    sp_op_value *inputs = builder->operands, *outputs = inputs + builder->plan->graph->max_operands;
    for (uint32_t i = 0; i < node->input_count; i++) {
        inputs[i] = (sp_op_value){0};
        if (node->inputs[i] == SP_NO_VALUE) continue;
        const sp_plan_value *value = &builder->values[sp__plan_input_value(builder, node, i)];
        inputs[i].is_present = true;
        inputs[i].dtype = value->dtype;
        inputs[i].shape = value->shape;
        inputs[i].bytes = value->bytes;
        inputs[i].data = value->data;
    }
    sp_op_call call = sp__graph_node_call(node, inputs, outputs);
    call.precision = builder->request->precision;
    call.packs_left = builder->request->packs_left;
    return call;
}

/* Can the outputs be computed now, within the limits of folding? */
static bool can_fold(sp_plan_builder *builder, const sp_op_call *call)
{
    bool is_known = true; /* by the shape rule */
    for (uint32_t i = 0; i < call->output_count; i++) {
        is_known = is_known && call->outputs[i].data != NULL;
        if (call->outputs[i].bytes > SP_FOLD_VALUE_BYTES) return false;
    }
    if (is_known) return true;
    /* A larger plan may be too large to fold it, and must have the same bits. */
    if (sp__may_be_narrow(call) || sp__product_rounding(call) != SP_ROUNDING_NONE) return false;
    for (uint32_t i = 0; i < call->input_count; i++) {
        if (!call->inputs[i].is_present) continue;
        if (call->inputs[i].data == NULL || call->inputs[i].bytes > SP_FOLD_VALUE_BYTES) {
            return false;
        }
    }
    const uint64_t work = sp__op_work(call);
    if (work > SP_FOLD_TOTAL_WORK - builder->folded_work) return false;
    builder->folded_work += work;
    return true;
}

static sp_status node_fold(sp_plan_builder *builder, const sp_graph_node *node,
                           const sp_op_call *call)
{
    SP_TRY(sp__evaluate(call, builder->kernels, builder->arrays));
    sp_status status = SP_OK;
    for (uint32_t i = 0; i < node->output_count; i++) {
        sp_plan_value *value = &builder->values[node->outputs[i]];
        if (status != SP_OK) {
            sp__array_deinit(&builder->arrays[i]);
            continue;
        }
        value->where = SP_PLACE_CONSTANT;
        value->data = builder->arrays[i].data;
        status = add_constant(builder, &builder->arrays[i], &value->index);
    }
    return status;
}

/* The value, or the packing, behind an operand. */
static sp_plan_binding bind_operand(const sp_plan_builder *builder, const sp_graph_node *node,
                                    const sp_operand *operand, uint32_t first_scratch)
{
    sp_plan_binding binding = {
        .where = SP_PLACE_ARENA, .is_write = operand->is_write, .bytes = operand->bytes};
    switch (operand->kind) {
    case SP_OPERAND_INPUT:
        binding.index = builder->values[sp__plan_input_value(builder, node, operand->index)].root;
        break;
    case SP_OPERAND_OUTPUT:
        binding.index = builder->values[node->outputs[operand->index]].root;
        break;
    case SP_OPERAND_SCRATCH:
        binding.index = first_scratch + operand->index;
        break;
    case SP_OPERAND_PACKED:
        binding.where = SP_PLACE_PACKED;
        binding.index = builder->packed[operand->index - 1];
        break;
    }
    return binding;
}

static sp_status record_dispatches(sp_plan_builder *builder, const sp_graph_node *node)
{
    const sp_lowering *lowering = &builder->lowering;
    const uint32_t first_scratch = builder->value_count;
    for (uint32_t i = 0; i < lowering->scratch_count; i++) {
        uint32_t unused;
        SP_TRY(sp__plan_add_value(builder, lowering->scratch_bytes[i], &unused));
    }
    for (uint32_t i = 0; i < lowering->dispatch_count; i++) {
        const sp_dispatch *dispatch = &lowering->dispatches[i];
        sp_plan_binding bindings[SP_MAX_BINDINGS];
        for (uint32_t k = 0; k < dispatch->binding_count; k++) {
            bindings[k] = bind_operand(builder, node, &dispatch->bindings[k], first_scratch);
        }
        const sp_plan_step step = {.kernel = dispatch->kernel,
                                   .binding_count = dispatch->binding_count,
                                   .bindings = bindings,
                                   .constants = dispatch->constants,
                                   .constant_bytes = dispatch->constant_bytes,
                                   .multiply_adds = dispatch->multiply_adds,
                                   .node_name = node->name,
                                   .op_name = node->op->name};
        SP_TRY(sp__plan_add_step(builder, &step));
    }
    return SP_OK;
}

/* Views share the bytes and, if known, the values. */
static void alias_outputs(sp_plan_builder *builder, const sp_graph_node *node, uint32_t first)
{
    for (uint32_t i = 0; i < node->output_count; i++) {
        const sp_plan_value *from =
            &builder->values[sp__plan_input_value(builder, node, first + i)];
        sp_plan_value *view = &builder->values[node->outputs[i]];
        view->root = from->root;
        view->data = from->data;
    }
}

static sp_status node_lower(sp_plan_builder *builder, const sp_graph_node *node,
                            const sp_op_call *call)
{
    sp_lowering *lowering = &builder->lowering;
    SP_TRY(sp__plan_pack_inputs(builder, node, call, builder->operands));
    sp__lowering_reset(lowering);
    SP_TRY(sp__op_lower(call, lowering));
    if (lowering->alias_input != SP_NO_INPUT) {
        alias_outputs(builder, node, lowering->alias_input);
        return SP_OK;
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        builder->values[node->outputs[i]].is_computed = true;
    }
    if (lowering->in_place_input != SP_NO_INPUT) {
        sp_plan_value *first = &builder->values[node->outputs[0]];
        first->in_place =
            builder->values[sp__plan_input_value(builder, node, lowering->in_place_input)].root;
    }
    return record_dispatches(builder, node);
}

/* Shapes of the node's outputs: by its op's rule, or from the request. */
static sp_status node_infer(const sp_plan_builder *builder, const sp_graph_node *node,
                            sp_op_call *call)
{
    const sp_plan_request *request = builder->request;
    for (uint32_t i = 0; i < request->reshape_count; i++) {
        if (&builder->plan->graph->nodes[request->reshapes[i].node] != node) continue;
        const sp_op_value *x = &call->inputs[0];
        sp__op_set_output(call, 0, x->dtype, &request->reshapes[i].shape);
        call->outputs[0].bytes = x->bytes;
        return SP_OK;
    }
    return sp__op_infer(call);
}

static sp_status record_node(sp_plan_builder *builder, const sp_graph_node *node, bool is_tainted)
{
    SP_TRY(repeats_make(builder, node));
    sp_op_call call = node_call(builder, node);
    SP_TRY(node_infer(builder, node, &call));
    for (uint32_t i = 0; i < node->output_count; i++) {
        sp_plan_value *value = &builder->values[node->outputs[i]];
        value->dtype = call.outputs[i].dtype;
        value->shape = call.outputs[i].shape;
        value->bytes = call.outputs[i].bytes;
        value->data = NULL;
        value->is_tainted = is_tainted;
    }
    SP_TRY(can_fold(builder, &call) ? node_fold(builder, node, &call)
                                    : node_lower(builder, node, &call));
    for (uint32_t i = 0; i < node->output_count; i++) {
        builder->values[node->outputs[i]].is_there = true;
    }
    return SP_OK;
}

/* ---- selection of nodes ---- */

typedef enum branch_state { BRANCH_TAKEN, BRANCH_NOT_TAKEN, BRANCH_UNKNOWN } branch_state;

/* Is every branch around the node taken, by its condition? Outer branches first, since nodes of a
 * branch that is not taken have no values. Enclosing bodies count as taken. */
static sp_status find_branch_state(const sp_plan_builder *builder, uint32_t index,
                                   branch_state *out)
{
    *out = BRANCH_TAKEN;
    if (index == SP_NO_REGION) return SP_OK;
    const sp_graph_region *region = &builder->plan->graph->regions[index];
    if (!region->is_branch) return SP_OK;
    SP_TRY(find_branch_state(builder, region->parent, out));
    if (*out != BRANCH_TAKEN) return SP_OK;
    const sp_plan_value *condition = &builder->values[region->condition];
    if (!condition->is_there) {
        *out = BRANCH_UNKNOWN;
        return SP_OK;
    }
    if (condition->dtype != SP_BOOL || condition->bytes != 1) {
        return sp__fail(SP_MISMATCH,
                        "the condition '%s' of the If around it is %s of shape %s; expected one "
                        "element of type bool",
                        builder->plan->graph->values[region->condition].name,
                        sp_dtype_name(condition->dtype), sp__shape_print(&condition->shape).text);
    }
    const unsigned char *chosen = condition->data;
    if (chosen == NULL) *out = BRANCH_UNKNOWN;
    else if ((chosen[0] != 0) != region->is_then) *out = BRANCH_NOT_TAKEN;
    return SP_OK;
}

/* An If needs only its condition and the outputs of the taken branch. */
static bool node_has_inputs(const sp_plan_builder *builder, const sp_graph_node *node)
{
    uint32_t first = 0;
    uint32_t last = node->input_count;
    if (node->op->traits->is_if) {
        const sp_plan_value *condition = &builder->values[node->inputs[0]];
        if (!condition->is_there) return false;
        const unsigned char *chosen = condition->data;
        if (chosen == NULL) return condition->bytes != 1; /* the shape rule refuses others */
        if (condition->bytes == 0) return true;
        first = chosen[0] != 0 ? 1 : 1 + node->output_count;
        last = first + node->output_count;
    }
    for (uint32_t i = first; i < last; i++) {
        if (node->inputs[i] != SP_NO_VALUE && !builder->values[node->inputs[i]].is_there) {
            return false;
        }
    }
    return true;
}

/* Does the node have a shape-determining input that the run has yet to compute? */
static bool depends_on_run(const sp_plan_builder *builder, const sp_graph_node *node)
{
    const uint32_t shape_inputs = node->op->traits->shape_inputs;
    for (uint32_t i = 0; i < node->input_count && i < 32; i++) {
        const uint32_t value = node->inputs[i];
        if ((shape_inputs >> i & 1) == 0 || value == SP_NO_VALUE) continue;
        if (builder->values[value].data == NULL && builder->values[value].bytes > 0) return true;
    }
    return false;
}

/* A node that is refused because of an unknown value is delayed to a later plan. */
static sp_status record_or_delay(sp_plan_builder *builder, uint32_t index, bool is_tainted)
{
    const sp_graph_node *node = &builder->plan->graph->nodes[index];
    branch_state branch;
    SP_TRY(find_branch_state(builder, node->region, &branch));
    if (branch == BRANCH_NOT_TAKEN) return SP_OK;
    if (branch == BRANCH_UNKNOWN || !node_has_inputs(builder, node)) {
        return sp__plan_delay(builder, index, false);
    }
    if (node->body != NULL) return sp__plan_delay(builder, index, true);
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    const sp_status status = record_node(builder, node, is_tainted);
    const bool is_delayed = status == SP_UNSUPPORTED && depends_on_run(builder, node);
    (void)sp__error_settle(&scope, is_delayed ? SP_OK : status);
    return is_delayed ? sp__plan_delay(builder, index, true) : status;
}

sp_status sp__plan_record_begin(sp_plan_builder *builder)
{
    SP_TRY(values_init(builder));
    return inputs_init(builder);
}

sp_status sp__plan_record_node(sp_plan_builder *builder, uint32_t index)
{
    const sp_graph_node *node = &builder->plan->graph->nodes[index];
    if (!sp__plan_has_node(builder, index)) return SP_OK;
    const bool is_tainted = is_node_tainted(builder, node);
    if (node->is_folded && !is_tainted) return SP_OK;
    const sp_status status = record_or_delay(builder, index, is_tainted);
    return status == SP_OK ? SP_OK : sp__graph_fail_node(status, node);
}

sp_status sp__plan_record(sp_plan_builder *builder)
{
    SP_TRY(sp__plan_record_begin(builder));
    for (uint32_t i = builder->body->first_node; i < builder->body->end_node; i++) {
        SP_TRY(sp__plan_record_node(builder, i));
    }
    return SP_OK;
}
