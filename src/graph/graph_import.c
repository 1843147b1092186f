/* SPDX-License-Identifier: Apache-2.0 */
/* From the file's tables to values and nodes. Every name is defined once, by an input, an
 * initializer or a node, before any node uses it; that also rules out cycles. */
#include <inttypes.h>

#include "base/error.h"
#include "base/heap.h"
#include "base/macros.h"
#include "base/pages.h"
#include "graph/graph_build.h"
#include "ops/registry.h"

/* Table bytes of a file with functions; names are added to that. */
enum { CALL_BYTES_PER_NODE = 512, CALL_BYTES_PER_NAME = 256 };

/* ---- names ---- */

sp_status sp__graph_add_value(sp_graph_builder *builder, sp_text name, uint32_t *out)
{
    sp_graph *graph = builder->graph;
    const uint32_t index = graph->value_count;
    sp_graph_value *value = &builder->values[index];
    *value = (sp_graph_value){.weight = SP_NO_WEIGHT};
    SP_TRY(sp__bump_text(&graph->bump, name, &value->name));
    if (name.len > 0 && !sp__name_map_add(&builder->scope->names, name, index)) {
        return sp__fail(SP_CORRUPT, "two values are named '%s'", sp__text_print(name).text);
    }
    graph->value_count++;
    *out = index;
    return SP_OK;
}

/* ---- ports ---- */

static sp_status fill_port(sp_graph_builder *builder, const sp_onnx_value_info *info,
                           uint32_t value, sp_graph_port *port)
{
    /* The name of the output, not of the value: a result of a call may have several names. */
    SP_TRY(sp__bump_text(&builder->graph->bump, info->name, &port->name));
    port->value = value;
    port->dtype = info->dtype;
    port->has_shape = info->has_shape;
    port->rank = info->rank;
    for (uint32_t i = 0; i < info->rank; i++) {
        port->dims[i] = info->dims[i].value;
        SP_TRY(sp__bump_text(&builder->graph->bump, info->dims[i].param, &port->dim_names[i]));
    }
    return SP_OK;
}

/* After the initializers: an input with an initializer is a default, not an input. */
static sp_status import_inputs(sp_graph_builder *builder)
{
    const sp_onnx_graph *file = &builder->model->graph;
    sp_graph *graph = builder->graph;
    SP_TRY(
        sp__bump_array(&graph->bump, file->input_count, sizeof(sp_graph_port), &builder->inputs));
    SP_TRY(
        sp__bump_array(&graph->bump, file->input_count, sizeof(sp_graph_port), &builder->defaults));
    graph->inputs = builder->inputs;
    graph->defaults = builder->defaults;
    for (uint32_t i = 0; i < file->input_count; i++) {
        const sp_onnx_value_info *info = &file->inputs[i];
        if (info->name.len == 0) return sp__fail(SP_CORRUPT, "input %" PRIu32 " has no name", i);
        if (!info->is_tensor) {
            return sp__fail(SP_UNSUPPORTED, "input '%s' is not a tensor",
                            sp__text_print(info->name).text);
        }
        uint32_t value = sp__graph_scope_find(builder->scope, info->name);
        const bool has_default = value != SP_NO_VALUE && value < file->initializer_count;
        if (!has_default) SP_TRY(sp__graph_add_value(builder, info->name, &value));
        if (builder->values[value].is_default) {
            return sp__fail(SP_CORRUPT, "two inputs are named '%s'",
                            sp__text_print(info->name).text);
        }
        builder->values[value].is_default = has_default;
        sp_graph_port *port = has_default ? &builder->defaults[graph->default_count++]
                                          : &builder->inputs[graph->input_count++];
        SP_TRY(fill_port(builder, info, value, port));
    }
    return SP_OK;
}

static sp_status import_outputs(sp_graph_builder *builder)
{
    const sp_onnx_graph *file = &builder->model->graph;
    sp_graph *graph = builder->graph;
    sp_graph_port *ports;
    if (file->output_count == 0) return sp__fail(SP_CORRUPT, "the graph has no output");
    SP_TRY(sp__bump_array(&graph->bump, file->output_count, sizeof(*ports), &ports));
    graph->outputs = ports;
    graph->output_count = file->output_count;
    for (uint32_t i = 0; i < file->output_count; i++) {
        const sp_onnx_value_info *info = &file->outputs[i];
        const uint32_t value = sp__graph_scope_find(builder->scope, info->name);
        if (info->name.len == 0 || value == SP_NO_VALUE) {
            return sp__fail(SP_CORRUPT, "nothing produces output '%s'",
                            sp__text_print(info->name).text);
        }
        SP_TRY(fill_port(builder, info, value, &ports[i]));
    }
    return SP_OK;
}

/* ---- initializers: of the main graph values 0 to initializer_count - 1 ---- */

/* The values have been copied, and only those of functions are read again, by the next call. */
static void discard_values(const sp_graph_builder *builder, const sp_onnx_tensor *tensor)
{
    if (builder->folder == NULL || builder->scope != &builder->main) return;
    if (tensor->storage != SP_ONNX_RAW) return;
    sp_pages_discard((void *)(uintptr_t)tensor->content.ptr, tensor->content.len);
}

static sp_status import_initializer(sp_graph_builder *builder, const sp_onnx_tensor *tensor)
{
    uint32_t index = 0;
    if (tensor->name.len == 0) return sp__fail(SP_CORRUPT, "an initializer has no name");
    SP_TRY(sp__graph_add_value(builder, tensor->name, &index));
    SP_TRY(sp__graph_charge_call(builder, tensor->bytes));
    sp_array array;
    const bool is_external = tensor->storage == SP_ONNX_EXTERNAL;
    if (is_external) SP_TRY(sp__onnx_external_check(tensor, builder->folder));
    SP_TRY(sp__array_init(&array, tensor->dtype, &tensor->shape));
    const sp_status status = is_external
                                 ? sp__onnx_external_read(tensor, builder->folder, array.data)
                                 : sp__onnx_tensor_decode(tensor, array.data);
    if (status != SP_OK) {
        sp__array_deinit(&array);
        return status;
    }
    discard_values(builder, tensor);
    sp_graph_value *value = &builder->values[index];
    value->is_constant = true;
    value->dtype = tensor->dtype;
    value->shape = tensor->shape;
    return sp__graph_add_weight(builder, array.data, array.bytes, &value->weight);
}

/* ---- nodes ---- */

static sp_status resolve_inputs(sp_graph_builder *builder, const sp_onnx_node *file,
                                sp_graph_node *node)
{
    uint32_t *inputs;
    SP_TRY(sp__bump_array(&builder->graph->bump, file->input_count, sizeof(*inputs), &inputs));
    node->inputs = inputs;
    node->input_count = file->input_count;
    for (uint32_t i = 0; i < file->input_count; i++) {
        inputs[i] = SP_NO_VALUE;
        if (file->inputs[i].len == 0) continue;
        inputs[i] = sp__graph_scope_find(builder->scope, file->inputs[i]);
        if (inputs[i] == SP_ABSENT_VALUE) {
            inputs[i] = SP_NO_VALUE;
            continue;
        }
        if (inputs[i] != SP_NO_VALUE) continue;
        return sp__fail(SP_CORRUPT,
                        "uses '%s', which nothing before it produces (wrong order, a cycle, or a "
                        "missing value)",
                        sp__text_print(file->inputs[i]).text);
    }
    return SP_OK;
}

static sp_status make_outputs(sp_graph_builder *builder, const sp_onnx_node *file,
                              sp_graph_node *node)
{
    uint32_t *outputs;
    SP_TRY(sp__bump_array(&builder->graph->bump, file->output_count, sizeof(*outputs), &outputs));
    node->outputs = outputs;
    node->output_count = file->output_count;
    for (uint32_t i = 0; i < file->output_count; i++) {
        SP_TRY(sp__graph_add_value(builder, file->outputs[i], &outputs[i]));
    }
    return SP_OK;
}

static sp_status check_schema(const sp_graph_node *node)
{
    const sp_op_call call = {.op = node->op,
                             .version = node->version,
                             .attributes = node->attributes,
                             .input_count = node->input_count,
                             .output_count = node->output_count};
    SP_TRY(sp__op_check(&call));
    for (uint32_t i = 0; i < node->op->min_inputs; i++) {
        if (node->inputs[i] == SP_NO_VALUE) {
            return sp__fail(SP_CORRUPT, "input %" PRIu32 " is left out", i);
        }
    }
    return SP_OK;
}

/* Operands, and the contents of the branches of an If, or of the body of a Loop or Scan. */
static sp_status import_operands(sp_graph_builder *builder, const sp_onnx_node *file,
                                 sp_graph_node *node)
{
    if (file->input_count > SP_GRAPH_MAX_OPERANDS ||
        file->output_count > SP_GRAPH_MAX_OPERANDS / 2 - 1) {
        return sp__fail(SP_EXHAUSTED, "more than %d inputs, or more than half as many outputs",
                        SP_GRAPH_MAX_OPERANDS);
    }
    SP_TRY(resolve_inputs(builder, file, node));
    node->output_count = file->output_count;
    SP_TRY(check_schema(node));
    if (node->op->traits->is_if) {
        SP_TRY(sp__graph_import_branches(builder, file, node));
        node->attributes = (sp_attribute_list){0};
    }
    if (node->op->traits->has_body) {
        SP_TRY(sp__graph_import_loop(builder, node));
        node->attributes = (sp_attribute_list){0};
    }
    return make_outputs(builder, file, node);
}

/* After the nodes of its branches or body, if any. */
static void append_node(sp_graph_builder *builder, const sp_graph_node *node)
{
    sp_graph *graph = builder->graph;
    const uint32_t most =
        node->input_count > node->output_count ? node->input_count : node->output_count;
    if (most > graph->max_operands) graph->max_operands = most;
    builder->nodes[graph->node_count++] = *node;
}

sp_status sp__graph_import_node(sp_graph_builder *builder, const sp_onnx_node *file)
{
    const sp_graph_function *function = sp__graph_function_of(builder, file);
    if (function != NULL) return sp__graph_import_call(builder, file, function);
    int64_t version = 0;
    sp_graph_node made = {.region = builder->scope->region};
    sp_graph_node *node = &made;
    SP_TRY(sp__graph_node_name(builder, file, &node->name));
    sp_status status = sp__graph_opset_version(builder, file->domain, &version);
    if (status == SP_OK) status = sp__op_find(file->domain, file->op_type, version, &node->op);
    if (status != SP_OK) {
        return sp__fail_prefix(status, "node '%s': ", sp__text_print(sp__text(node->name)).text);
    }
    node->version = (uint32_t)version; /* bounded by sp__op_find */
    status = sp__graph_resolve_attributes(builder, file->attributes, &node->attributes);
    if (status == SP_OK) status = sp__graph_charge_attributes(builder, node->attributes);
    if (status == SP_OK) status = import_operands(builder, file, node);
    if (status != SP_OK) return sp__graph_fail_node(status, node);
    append_node(builder, node);
    return SP_OK;
}

sp_status sp__graph_import_body(sp_graph_builder *builder, const sp_onnx_graph *file)
{
    for (uint32_t i = 0; i < file->initializer_count; i++) {
        SP_TRY(import_initializer(builder, &file->initializers[i]));
    }
    if (builder->scope == &builder->main) SP_TRY(import_inputs(builder));
    for (uint32_t i = 0; i < file->node_count; i++) {
        SP_TRY(sp__graph_import_node(builder, &file->nodes[i]));
    }
    return SP_OK;
}

/* Calls expand a file beyond its bytes; the counts bound how far. */
static sp_status make_room_for_calls(sp_graph *graph, const sp_graph_totals *totals)
{
    if (totals->names > SP_GRAPH_MAX_CALL_NAMES || totals->regions > SP_GRAPH_MAX_NODES) {
        return sp__fail(SP_EXHAUSTED, "with its functions the graph has more than %d values",
                        SP_GRAPH_MAX_CALL_NAMES);
    }
    graph->bump.limit += totals->nodes * CALL_BYTES_PER_NODE + totals->names * CALL_BYTES_PER_NAME;
    return SP_OK;
}

static sp_status make_tables(sp_graph_builder *builder)
{
    sp_graph *graph = builder->graph;
    sp_graph_totals totals = {0};
    SP_TRY(sp__graph_functions_init(builder));
    SP_TRY(sp__graph_count(builder, &builder->model->graph, &totals));
    if (totals.nodes > SP_GRAPH_MAX_NODES) {
        return sp__fail(SP_EXHAUSTED, "the graph has %" PRIu64 " nodes; at most %d are supported",
                        totals.nodes, SP_GRAPH_MAX_NODES);
    }
    if (totals.names >= SP_ABSENT_VALUE) {
        return sp__fail(SP_EXHAUSTED, "the graph has more than 2^32 values");
    }
    if (builder->functions != NULL) SP_TRY(make_room_for_calls(graph, &totals));
    SP_TRY(sp__bump_array(&graph->bump, totals.names, sizeof(sp_graph_value), &builder->values));
    SP_TRY(sp__bump_array(&graph->bump, totals.nodes, sizeof(sp_graph_node), &builder->nodes));
    SP_TRY(
        sp__bump_array(&graph->bump, totals.regions, sizeof(sp_graph_region), &builder->regions));
    builder->is_captured = sp_calloc(totals.names, sizeof(bool));
    if (builder->is_captured == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a model");
    graph->values = builder->values;
    graph->nodes = builder->nodes;
    graph->regions = builder->regions;
    SP_TRY(sp__bump_text(&graph->bump, builder->model->producer, &graph->producer));
    graph->ir_version = builder->model->ir_version;
    return SP_OK;
}

sp_status sp__graph_import(sp_graph_builder *builder)
{
    const sp_onnx_graph *file = &builder->model->graph;
    int64_t opset = 0;
    SP_TRY(make_tables(builder));
    /* A model of calls only may name none: each node needs that of its own domain. */
    (void)sp__graph_find_opset(builder, (sp_text){0}, &opset);
    builder->graph->opset = opset > 0 && opset < INT32_MAX ? (uint32_t)opset : 0;
    SP_TRY(sp__graph_import_body(builder, file));
    SP_TRY(import_outputs(builder));
    return sp__graph_finish_main(builder);
}
