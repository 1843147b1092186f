/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/plan_rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/fpenv.h"
#include "base/heap.h"
#include "base/macros.h"
#include "plan/rows_single.h"

/* ---- the recording of one row ---- */

sp_status sp__rows_single_init(const sp_graph *graph, const sp_plan_request *request,
                               sp_rows_single *out)
{
    *out = (sp_rows_single){.end = graph->main->first_node, .delay = SP_NO_NODE};
    SP_TRY(sp__plan_builder_create(graph, request, &out->builder));
    const sp_status status = sp__plan_record_begin(&out->builder);
    if (status != SP_OK) sp__plan_builder_destroy(&out->builder);
    return status;
}

void sp__rows_single_deinit(sp_rows_single *single)
{
    sp__plan_builder_destroy(&single->builder);
}

static sp_status single_record(sp_rows_single *single, uint32_t index)
{
    for (; single->end <= index; single->end++) {
        SP_TRY(sp__plan_record_node(&single->builder, single->end));
        const bool is_delayed = single->builder.delays.node_count > 0;
        if (is_delayed && single->delay == SP_NO_NODE) single->delay = single->end;
    }
    return SP_OK;
}

/* ---- one comparison ---- */

/* Operands of a node: inputs, then outputs. */
typedef struct rows_pass {
    const sp_graph *graph;
    sp_rows_single *single;
    sp_plan_builder *many;
    sp_plan_request *request; /* of `many` */
    sp_rows_proof *proof;
    uint64_t rows;
    bool grows_all;
    sp_rows_value *values;                        /* by value of the graph */
    sp_op_value *single_operands, *many_operands; /* room for two times max_operands */
    sp_rows_value *operand_rows;                  /* the same */
} rows_pass;

static sp_status pass_init(rows_pass *pass)
{
    const size_t operands = 2 * (size_t)pass->graph->max_operands;
    pass->values = sp_calloc(pass->graph->value_count, sizeof *pass->values);
    pass->single_operands = sp_calloc(operands, sizeof *pass->single_operands);
    pass->many_operands = sp_calloc(operands, sizeof *pass->many_operands);
    pass->operand_rows = sp_calloc(operands, sizeof *pass->operand_rows);
    const bool has_all = pass->values != NULL && pass->single_operands != NULL &&
                         pass->many_operands != NULL && pass->operand_rows != NULL;
    return has_all ? SP_OK : sp__fail(SP_OUT_OF_MEMORY, "no memory to prove rows separable");
}

static void pass_deinit(rows_pass *pass)
{
    sp_free(pass->values);
    sp_free(pass->single_operands);
    sp_free(pass->many_operands);
    sp_free(pass->operand_rows);
}

/* ---- a node ---- */

static void operand_fill(const sp_plan_builder *builder, uint32_t value, sp_op_value *out)
{
    *out = (sp_op_value){0};
    if (value == SP_NO_VALUE) return;
    const sp_plan_value *from = &builder->values[value];
    out->is_present = true;
    out->dtype = from->dtype;
    out->shape = from->shape;
    out->bytes = from->bytes;
    out->data = from->data;
}

/* The call of a node whose outputs have been inferred. */
static sp_op_call node_call(const sp_plan_builder *builder, const sp_graph_node *node,
                            sp_op_value *operands)
{
    sp_op_value *outputs = operands + builder->plan->graph->max_operands;
    for (uint32_t i = 0; i < node->input_count; i++) {
        operand_fill(builder, sp__plan_input_value(builder, node, i), &operands[i]);
    }
    sp_op_call call = sp__graph_node_call(node, operands, outputs);
    for (uint32_t i = 0; i < node->output_count; i++) {
        operand_fill(builder, node->outputs[i], &outputs[i]);
    }
    return call;
}

/* How an input has the rows; a repeated constant is batched for its node. */
static sp_rows_value input_rows(const rows_pass *pass, const sp_graph_node *node, uint32_t input)
{
    const sp_plan_request *request = pass->request;
    const uint32_t value = node->inputs[input];
    if (value == SP_NO_VALUE) return (sp_rows_value){0};
    for (uint32_t i = 0; i < request->repeat_count; i++) {
        const sp_plan_repeat *repeat = &request->repeats[i];
        if (repeat->value != value || &pass->graph->nodes[repeat->node] != node) continue;
        return (sp_rows_value){.kind = SP_ROWS_BATCHED, .inner = repeat->inner};
    }
    return pass->values[value];
}

static const char *node_prove(rows_pass *pass, const sp_graph_node *node)
{
    const sp_op_call single = node_call(&pass->single->builder, node, pass->single_operands);
    const sp_op_call many = node_call(pass->many, node, pass->many_operands);
    sp_rows_value *inputs = pass->operand_rows;
    sp_rows_value *outputs = inputs + pass->graph->max_operands;
    for (uint32_t i = 0; i < node->input_count; i++) inputs[i] = input_rows(pass, node, i);
    for (uint32_t i = 0; i < node->output_count; i++) outputs[i] = (sp_rows_value){0};
    const sp_rows_call call = {
        .single = &single, .many = &many, .rows = pass->rows, .inputs = inputs, .outputs = outputs};
    const char *why = sp__rows_prove(&call);
    if (why != NULL) return why;
    for (uint32_t i = 0; i < node->output_count; i++) {
        pass->values[node->outputs[i]] = outputs[i];
    }
    return NULL;
}

/* Has the builder computed the node's outputs, in a branch that is taken? */
static bool is_recorded(const sp_plan_builder *builder, const sp_graph_node *node)
{
    return node->output_count == 0 || builder->values[node->outputs[0]].is_there;
}

/* ---- sizes that a file fixes at one row ---- */

/* The shape of one row with the rows along the outermost axis where their place is. */
static bool shape_grow(const sp_shape *single, uint64_t inner, uint64_t rows, sp_shape *out)
{
    *out = *single;
    for (uint32_t axis = 0; axis < out->rank && inner > 0; axis++) {
        const uint64_t after = sp__shape_range_count(out, axis + 1, out->rank);
        const uint64_t size = (uint64_t)out->dims[axis];
        if (after == 0 || inner % after != 0 || size % (inner / after) != 0) continue;
        out->dims[axis] = (int64_t)(size * rows);
        return size > 0;
    }
    return false;
}

static bool is_reshape(const rows_pass *pass, const sp_graph_node *node)
{
    return node->op->traits->rows == sp__reshape_rows &&
           pass->values[node->inputs[0]].kind == SP_ROWS_BATCHED;
}

static bool has_constant_sizes(const rows_pass *pass, const sp_graph_node *node)
{
    return node->input_count == 2 && node->inputs[1] != SP_NO_VALUE &&
           pass->values[node->inputs[1]].kind == SP_ROWS_SHARED;
}

static bool reshape_add(const rows_pass *pass, uint32_t index)
{
    sp_rows_proof *proof = pass->proof;
    const sp_graph_node *node = &pass->graph->nodes[index];
    const sp_plan_value *y = &pass->single->builder.values[node->outputs[0]];
    if (proof->reshape_count == SP_ROWS_RESHAPES) return false;
    sp_plan_reshape *added = &proof->reshapes[proof->reshape_count];
    const uint64_t inner = pass->values[node->inputs[0]].inner;
    if (!shape_grow(&y->shape, inner, pass->rows, &added->shape)) return false;
    added->node = index;
    pass->request->reshape_count = ++proof->reshape_count;
    return true;
}

/* The axis of the node's first batched input that has the rows. */
static bool find_batch_axis(const rows_pass *pass, const sp_graph_node *node, sp_shape *shape,
                            sp_rows_axis *out)
{
    for (uint32_t i = 0; i < node->input_count; i++) {
        const uint32_t value = node->inputs[i];
        if (value == SP_NO_VALUE || pass->values[value].kind != SP_ROWS_BATCHED) continue;
        *shape = pass->many->values[value].shape;
        return sp__rows_find_axis(shape, pass->rows, &pass->values[value], out);
    }
    return false;
}

/* Repeats one operand that is as long as one row along that axis. */
static bool repeat_add(const rows_pass *pass, uint32_t index, uint32_t value,
                       const sp_shape *batched, const sp_rows_axis *axis)
{
    sp_rows_proof *proof = pass->proof;
    if (value == SP_NO_VALUE || pass->values[value].kind != SP_ROWS_SHARED) return false;
    const sp_plan_value *from = &pass->many->values[value];
    if (from->data == NULL || from->bytes == 0 || from->shape.rank != batched->rank) return false;
    if (from->shape.dims[axis->axis] != (int64_t)(axis->outer * axis->inner)) return false;
    if (from->bytes > SP_FOLD_VALUE_BYTES / pass->rows) return false;
    if (proof->repeat_count == SP_PLAN_REPEATS) return false;
    for (uint32_t i = 0; i < proof->repeat_count; i++) {
        if (proof->repeats[i].node == index && proof->repeats[i].value == value) return false;
    }
    sp_plan_repeat *added = &proof->repeats[proof->repeat_count];
    *added = (sp_plan_repeat){.node = index, .value = value, .shape = from->shape};
    added->shape.dims[axis->axis] = batched->dims[axis->axis];
    /* Dimensions behind the axis may differ from those of the batched input. */
    added->inner =
        axis->inner * sp__shape_range_count(&from->shape, axis->axis + 1, from->shape.rank);
    pass->request->repeat_count = ++proof->repeat_count;
    return true;
}

/* Repeats the node's constant operands for one row, such as what a Concat joins to each row, or
 * the initial state of a recurrent layer. */
static bool repeats_add(const rows_pass *pass, uint32_t index)
{
    const sp_graph_node *node = &pass->graph->nodes[index];
    sp_shape batched;
    sp_rows_axis axis;
    bool has_added = false;
    if (!find_batch_axis(pass, node, &batched, &axis)) return false;
    for (uint32_t i = 0; i < node->input_count; i++) {
        has_added |= repeat_add(pass, index, node->inputs[i], &batched, &axis);
    }
    return has_added;
}

/* ---- the model ---- */

/* A node that does not fit many rows may have sizes or operands for one; it is recorded with
 * others. */
static sp_status many_record(const rows_pass *pass, uint32_t index)
{
    const sp_graph_node *node = &pass->graph->nodes[index];
    if (!is_recorded(&pass->single->builder, node)) {
        return sp__plan_record_node(pass->many, index);
    }
    const bool is_view = is_reshape(pass, node);
    if (is_view && has_constant_sizes(pass, node)) {
        pass->single->has_sizes = true;
        if (pass->grows_all) (void)reshape_add(pass, index);
    }
    const uint32_t before = pass->proof->reshape_count;
    sp_status status = sp__plan_record_node(pass->many, index);
    if (status != SP_MISMATCH) return status;
    const bool has_changed = is_view
                                 ? before == pass->proof->reshape_count && reshape_add(pass, index)
                                 : repeats_add(pass, index);
    return has_changed ? sp__plan_record_node(pass->many, index) : status;
}

/* Makes a refusal of the larger request the proof's reason. Errors: SP_OUT_OF_MEMORY. */
static sp_status refusal_settle(sp_error_scope *scope, sp_status status, sp_rows_proof *proof)
{
    if (status != SP_OK && status != SP_OUT_OF_MEMORY) {
        proof->reason = "a larger batch is refused";
        (void)snprintf(proof->message, sizeof proof->message, "%s", sp_last_error());
        status = SP_OK;
    }
    return sp__error_settle(scope, status);
}

static sp_status many_try(const rows_pass *pass, uint32_t index)
{
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    return refusal_settle(&scope, many_record(pass, index), pass->proof);
}

static const char *node_compare(rows_pass *pass, uint32_t index)
{
    const sp_graph_node *node = &pass->graph->nodes[index];
    const bool is_single = is_recorded(&pass->single->builder, node);
    const bool is_many = is_recorded(pass->many, node);
    if (index >= pass->single->delay || pass->many->delays.node_count > 0) {
        return node->op->traits->has_body ? "there is no proof for this op"
                                          : "its shape or branch depends on values of the run";
    }
    if (!node->is_live || (!is_single && !is_many)) return NULL;
    return is_single == is_many ? node_prove(pass, node) : "the batch size chooses another branch";
}

static sp_status nodes_prove(rows_pass *pass)
{
    const sp_graph_body *body = pass->graph->main;
    sp_rows_proof *proof = pass->proof;
    for (uint32_t i = body->first_node; i < body->end_node && proof->reason == NULL; i++) {
        proof->node = i;
        SP_TRY(single_record(pass->single, i));
        SP_TRY(many_try(pass, i));
        if (proof->reason == NULL) proof->reason = node_compare(pass, i);
    }
    return SP_OK;
}

static void outputs_prove(const rows_pass *pass, sp_rows_value *outputs)
{
    sp_rows_proof *proof = pass->proof;
    proof->node = SP_NO_NODE;
    for (uint32_t i = 0; i < pass->graph->output_count; i++) {
        outputs[i] = pass->values[pass->graph->outputs[i].value];
        if (outputs[i].kind == SP_ROWS_BATCHED) continue;
        proof->output = i;
        proof->reason = outputs[i].kind == SP_ROWS_SIZES ? "an output depends on the batch size"
                                                         : "an output is the same for all rows";
        return;
    }
    proof->is_separable = true;
}

static void inputs_set(rows_pass *pass, const sp_rows_request *request)
{
    const sp_graph *graph = pass->graph;
    const sp_plan_request *many = request->many;
    for (uint32_t i = 0; i < many->input_count; i++) {
        pass->values[graph->inputs[i].value] = request->inputs[i];
    }
    for (uint32_t i = 0; i < many->override_count; i++) {
        const sp_graph_port *port = &graph->defaults[many->overrides[i].index];
        pass->values[port->value] = request->inputs[many->input_count + i];
    }
}

static sp_status pass_prove(rows_pass *pass, const sp_rows_request *request, sp_rows_value *outputs)
{
    SP_TRY(pass_init(pass));
    inputs_set(pass, request);
    SP_TRY(sp__plan_record_begin(pass->many));
    SP_TRY(nodes_prove(pass));
    if (pass->proof->reason == NULL) outputs_prove(pass, outputs);
    return SP_OK;
}

sp_status sp__rows_single_prove(sp_rows_single *single, const sp_rows_request *request,
                                sp_rows_value *outputs, sp_rows_proof *proof)
{
    sp_plan_builder many;
    sp_plan_request many_request = *request->many;
    sp_error_scope scope;
    *proof = (sp_rows_proof){.node = SP_NO_NODE, .output = SP_NO_OUTPUT};
    many_request.reshapes = proof->reshapes;
    many_request.repeats = proof->repeats;
    many_request.reshape_count = many_request.repeat_count = 0;
    const sp_graph *graph = single->builder.plan->graph;
    rows_pass pass = {.graph = graph,
                      .single = single,
                      .many = &many,
                      .request = &many_request,
                      .proof = proof,
                      .rows = request->rows,
                      .grows_all = request->grows_all};
    sp__error_set_aside(&scope);
    sp_status status = sp__plan_builder_create(graph, &many_request, &many);
    const bool is_refused = status != SP_OK;
    status = refusal_settle(&scope, status, proof);
    if (is_refused) return status;
    status = pass_prove(&pass, request, outputs);
    pass_deinit(&pass);
    sp__plan_builder_destroy(&many);
    return status;
}

sp_status sp__rows_check(uint64_t rows)
{
    if (rows >= 2 && rows <= INT32_MAX) return SP_OK;
    return sp__fail(SP_INVALID, "a batch of %" PRIu64 " rows; expected at least 2", rows);
}

sp_status sp__plan_prove_rows(const sp_graph *graph, const sp_rows_request *request,
                              sp_rows_value *outputs, sp_rows_proof *proof)
{
    sp_rows_single single;
    SP_TRY(sp__rows_check(request->rows));
    SP_TRY(sp__rows_single_init(graph, request->single, &single));
    const sp_fpenv before = sp_fpenv_enter();
    const sp_status status = sp__rows_single_prove(&single, request, outputs, proof);
    sp_fpenv_leave(before);
    sp__rows_single_deinit(&single);
    return status;
}
