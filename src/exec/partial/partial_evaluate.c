/* SPDX-License-Identifier: Apache-2.0 */
/* A node between two partial plans, run on the calling thread with the kernels that a plan would
 * use: its shape-determining values are then not part of a plan's key, however often they
 * change. */
#include "base/error.h"
#include "base/fpenv.h"
#include "base/heap.h"
#include "exec/partial/partial_run_build.h"
#include "ops/evaluate.h"
#include "ops/registry.h"

/* Up to this many bytes and multiply-adds, a node is not worth its own plan. */
#define SMALL_WORK (UINT64_C(1) << 20)

typedef struct evaluation {
    sp_partial_run *run;
    const sp_graph_node *node;
    sp_op_value *inputs, *outputs;
    sp_array *arrays;
} evaluation;

static bool is_shape_input(const sp_graph_node *node, uint32_t input)
{
    return input < 32 && (node->op->traits->shape_inputs >> input & 1) != 0;
}

static sp_status read_inputs(const evaluation *e)
{
    for (uint32_t i = 0; i < e->node->input_count; i++) {
        if (e->node->inputs[i] == SP_NO_VALUE) continue;
        sp_run_value value;
        SP_TRY(sp__partial_run_value(e->run, e->node->inputs[i], &value));
        e->inputs[i] = (sp_op_value){.is_present = true,
                                     .dtype = value.dtype,
                                     .shape = value.shape,
                                     .bytes = value.bytes,
                                     .data = value.data};
    }
    return SP_OK;
}

/* Values above SP_SHAPE_INPUT_BYTES are never part of a key. */
static bool is_worth_a_plan(const evaluation *e, const sp_op_call *call)
{
    for (uint32_t i = 0; i < e->node->input_count; i++) {
        if (is_shape_input(e->node, i) && e->inputs[i].bytes > SP_SHAPE_INPUT_BYTES) return false;
    }
    return sp__op_work(call) > SMALL_WORK;
}

static void mark_inputs_known(const evaluation *e)
{
    for (uint32_t i = 0; i < e->node->input_count; i++) {
        const uint32_t value = e->node->inputs[i];
        if (!is_shape_input(e->node, i) || value == SP_NO_VALUE) continue;
        e->run->values.list[value].is_known = true;
    }
}

/* Checked before memory is acquired, since values may lead to any size. */
static sp_status check_output_room(const evaluation *e, const sp_op_call *call)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < call->output_count; i++) {
        bytes += call->outputs[i].bytes; /* no overflow: a sum within the limit plus one tensor */
        SP_TRY(sp__run_values_check_room(&e->run->values, bytes));
    }
    return SP_OK;
}

static sp_status set_outputs(const evaluation *e)
{
    sp_status status = SP_OK;
    for (uint32_t i = 0; i < e->node->output_count; i++) {
        if (status != SP_OK) {
            sp__array_deinit(&e->arrays[i]);
            continue;
        }
        sp_run_value value;
        status = sp__run_value_adopt(&e->run->values, &e->arrays[i], &value);
        if (status == SP_OK) sp__run_values_set(&e->run->values, e->node->outputs[i], &value);
    }
    return status;
}

static sp_status node_evaluate(const evaluation *e)
{
    SP_TRY(read_inputs(e));
    sp_op_call call = sp__graph_node_call(e->node, e->inputs, e->outputs);
    SP_TRY(sp__op_infer(&call));
    if (is_worth_a_plan(e, &call)) {
        mark_inputs_known(e);
        return SP_OK;
    }
    SP_TRY(check_output_room(e, &call));
    SP_TRY(sp__evaluate(&call, sp__cpu_kernels(sp__cpu_isa_selected()), e->arrays));
    return set_outputs(e);
}

sp_status sp__partial_evaluate(sp_partial_run *run, const sp_graph_node *node)
{
    const evaluation e = {.run = run,
                          .node = node,
                          .inputs = sp_calloc(node->input_count, sizeof(*e.inputs)),
                          .outputs = sp_calloc(node->output_count, sizeof(*e.outputs)),
                          .arrays = sp_calloc(node->output_count, sizeof(*e.arrays))};
    const bool is_made = e.inputs != NULL && e.outputs != NULL && e.arrays != NULL;
    const sp_fpenv before = sp_fpenv_enter(); /* for the shape rules, too */
    sp_status status =
        is_made ? node_evaluate(&e) : sp__fail(SP_OUT_OF_MEMORY, "no memory to compute a node");
    sp_fpenv_leave(before);
    sp_free(e.inputs);
    sp_free(e.outputs);
    sp_free(e.arrays);
    return status == SP_OK ? SP_OK : sp__graph_fail_node(status, node);
}
