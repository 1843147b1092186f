/* SPDX-License-Identifier: Apache-2.0 */
/* The bodies of Loop and Scan: their contents, their captures, and the axes of a Scan. */
#include <inttypes.h>

#include "base/error.h"
#include "base/heap.h"
#include "base/macros.h"
#include "graph/graph_build.h"

/* ---- inputs and outputs ---- */

static void fill_slot(const sp_onnx_value_info *info, uint32_t value, sp_graph_slot *slot)
{
    *slot = (sp_graph_slot){.value = value, .dtype = info->dtype};
    if (!info->has_shape) return;
    slot->shape.rank = info->rank;
    for (uint32_t i = 0; i < info->rank; i++) {
        if (info->dims[i].value > 0) slot->shape.dims[i] = info->dims[i].value;
    }
}

static sp_status import_body_inputs(sp_graph_builder *builder, const sp_onnx_graph *file,
                                    sp_graph_body *body)
{
    sp_graph_slot *slots;
    SP_TRY(sp__bump_array(&builder->graph->bump, file->input_count, sizeof(*slots), &slots));
    body->inputs = slots;
    body->input_count = file->input_count;
    for (uint32_t i = 0; i < file->input_count; i++) {
        const sp_onnx_value_info *info = &file->inputs[i];
        uint32_t value;
        if (info->name.len == 0) {
            return sp__fail(SP_CORRUPT, "input %" PRIu32 " of the body has no name", i);
        }
        if (info->has_type && !info->is_tensor) {
            return sp__fail(SP_UNSUPPORTED, "input '%s' of the body is not a tensor",
                            sp__text_print(info->name).text);
        }
        SP_TRY(sp__graph_add_value(builder, info->name, &value));
        fill_slot(info, value, &slots[i]);
    }
    return SP_OK;
}

static sp_status import_body_outputs(sp_graph_builder *builder, const sp_onnx_graph *file,
                                     sp_graph_body *body)
{
    sp_graph_slot *slots;
    uint32_t *results;
    SP_TRY(sp__bump_array(&builder->graph->bump, file->output_count, sizeof(*results), &results));
    SP_TRY(sp__bump_array(&builder->graph->bump, file->output_count, sizeof(*slots), &slots));
    SP_TRY(sp__graph_resolve_results(builder, file, results));
    body->outputs = slots;
    body->output_count = file->output_count;
    for (uint32_t i = 0; i < file->output_count; i++) {
        fill_slot(&file->outputs[i], results[i], &slots[i]);
    }
    return SP_OK;
}

/* ---- captures ---- */

typedef struct capture_list {
    uint32_t first_value; /* older values are outside the body */
    bool *is_listed;      /* of all values; the builder's, all false again afterwards */
    uint32_t *values;     /* grows */
    uint32_t count, capacity;
} capture_list;

static sp_status capture_add(capture_list *list, uint32_t value)
{
    if (value == SP_NO_VALUE || value >= list->first_value || list->is_listed[value]) return SP_OK;
    uint32_t *values = sp_grow(list->values, list->count, &list->capacity, sizeof(*values));
    if (values == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for what a body captures");
    list->values = values;
    list->is_listed[value] = true;
    values[list->count++] = value;
    return SP_OK;
}

/* A nested node with a body has the captures of that body among its inputs. */
static sp_status list_captures(const sp_graph *graph, const sp_graph_body *body, capture_list *list)
{
    for (uint32_t n = body->first_node; n < body->end_node; n++) {
        const sp_graph_node *node = &graph->nodes[n];
        for (uint32_t i = 0; i < node->input_count; i++) SP_TRY(capture_add(list, node->inputs[i]));
    }
    for (uint32_t i = 0; i < body->output_count; i++) {
        SP_TRY(capture_add(list, body->outputs[i].value));
    }
    return SP_OK;
}

/* Makes the captures inputs of the node, so that it comes after them and keeps them alive. */
static sp_status append_captures(sp_graph_builder *builder, const capture_list *list,
                                 sp_graph_body *body, sp_graph_node *node)
{
    const uint32_t own = node->input_count;
    uint32_t *inputs;
    if (list->count > SP_GRAPH_MAX_OPERANDS - own) {
        return sp__fail(SP_EXHAUSTED, "more than %d inputs and captured values",
                        SP_GRAPH_MAX_OPERANDS);
    }
    SP_TRY(sp__bump_array(&builder->graph->bump, own + list->count, sizeof(*inputs), &inputs));
    for (uint32_t i = 0; i < own; i++) inputs[i] = node->inputs[i];
    for (uint32_t i = 0; i < list->count; i++) inputs[own + i] = list->values[i];
    node->inputs = inputs;
    node->input_count = own + list->count;
    body->captures = list->count > 0 ? inputs + own : NULL;
    body->capture_count = list->count;
    return SP_OK;
}

static sp_status find_captures(sp_graph_builder *builder, sp_graph_body *body, sp_graph_node *node)
{
    capture_list list = {.first_value = body->first_value, .is_listed = builder->is_captured};
    sp_status status = list_captures(builder->graph, body, &list);
    if (status == SP_OK) status = append_captures(builder, &list, body, node);
    for (uint32_t i = 0; i < list.count; i++) list.is_listed[list.values[i]] = false;
    sp_free(list.values);
    return status;
}

/* ---- axes of a Scan ---- */

static sp_status read_scan_axes(sp_graph_builder *builder, const sp_graph_node *node,
                                const char *axes, const char *directions, uint32_t count,
                                const sp_scan_axis **out)
{
    sp_scan_axis *scan_axes;
    SP_TRY(sp__bump_array(&builder->graph->bump, count, sizeof(*scan_axes), &scan_axes));
    *out = scan_axes;
    const sp_attribute *axis = axes != NULL ? sp__attribute_find(node->attributes, axes) : NULL;
    const sp_attribute *direction = sp__attribute_find(node->attributes, directions);
    if ((axis != NULL && axis->count != count) ||
        (direction != NULL && direction->count != count)) {
        return sp__fail(SP_CORRUPT, "%s or %s: wanted %" PRIu32 " numbers",
                        axes != NULL ? axes : directions, directions, count);
    }
    for (uint32_t i = 0; i < count; i++) {
        const int64_t way = direction != NULL ? direction->as.ints[i] : 0;
        if (way != 0 && way != 1) {
            return sp__fail(SP_CORRUPT, "%s: %" PRId64 " is neither 0 nor 1", directions, way);
        }
        scan_axes[i] =
            (sp_scan_axis){.axis = axis != NULL ? axis->as.ints[i] : 0, .is_reversed = way == 1};
    }
    return SP_OK;
}

static sp_status check_scan(sp_graph_builder *builder, const sp_graph_node *node,
                            sp_graph_body *body)
{
    const sp_attribute *count = sp__attribute_find(node->attributes, "num_scan_inputs");
    const bool has_batch = node->version < 9; /* sequence lengths are the first input */
    const uint32_t inputs = has_batch ? node->input_count - 1 : node->input_count;
    const int64_t scans = count->as.ints[0]; /* the schema check requires the attribute */
    if (body->input_count != inputs || scans < 1 || scans > inputs) {
        return sp__fail(SP_CORRUPT,
                        "the body has %" PRIu32 " inputs, wanted %" PRIu32
                        ", with the last %" PRId64 " of them scanned",
                        body->input_count, inputs, scans);
    }
    const uint32_t states = inputs - (uint32_t)scans;
    if (body->output_count < states || node->output_count > body->output_count) {
        return sp__fail(SP_CORRUPT,
                        "the body has %" PRIu32 " outputs, for %" PRIu32 " states and %" PRIu32
                        " outputs of the node",
                        body->output_count, states, node->output_count);
    }
    body->scan_input_count = (uint32_t)scans;
    body->scan_output_count = body->output_count - states;
    SP_TRY(read_scan_axes(builder, node, has_batch ? NULL : "scan_input_axes",
                          has_batch ? "directions" : "scan_input_directions",
                          body->scan_input_count, &body->input_axes));
    return read_scan_axes(builder, node, has_batch ? NULL : "scan_output_axes",
                          "scan_output_directions", body->scan_output_count, &body->output_axes);
}

/* ---- the body ---- */

/* A Loop's inputs: trip count, condition, carried values; its body gives a condition, the carried
 * values, and an element of each scan output. */
static sp_status check_loop(const sp_graph_node *node, const sp_graph_body *body)
{
    const uint32_t inputs = node->input_count > 2 ? node->input_count : 2;
    if (body->input_count != inputs) {
        return sp__fail(SP_CORRUPT, "the body has %" PRIu32 " inputs, wanted %" PRIu32,
                        body->input_count, inputs);
    }
    if (body->output_count < inputs - 1 || node->output_count > body->output_count - 1) {
        return sp__fail(SP_CORRUPT,
                        "the body has %" PRIu32 " outputs: wanted a condition, %" PRIu32
                        " values that are carried, and one for each of the %" PRIu32
                        " outputs of the node",
                        body->output_count, inputs - 2, node->output_count);
    }
    return SP_OK;
}

/* `first` is the first input that may not be omitted. */
static sp_status check_inputs_given(const sp_graph_node *node, uint32_t first)
{
    for (uint32_t i = first; i < node->input_count; i++) {
        if (node->inputs[i] != SP_NO_VALUE) continue;
        return sp__fail(SP_CORRUPT, "input %" PRIu32 " is left out", i);
    }
    return SP_OK;
}

static sp_status import_graph(sp_graph_builder *builder, const sp_onnx_graph *file,
                              sp_graph_body *body)
{
    sp_graph *graph = builder->graph;
    sp_graph_scope scope = {.outer = builder->scope, .region = graph->region_count++, .home = body};
    builder->regions[scope.region] =
        (sp_graph_region){.parent = builder->scope->region, .home = body};
    SP_TRY(sp__name_map_init(&scope.names, sp__graph_count_names(file), builder->main.names.key));
    sp_graph_scope *outer = builder->scope;
    builder->scope = &scope;
    body->first_node = graph->node_count;
    body->first_value = graph->value_count;
    sp_status status = import_body_inputs(builder, file, body);
    if (status == SP_OK) status = sp__graph_import_body(builder, file);
    if (status == SP_OK) status = import_body_outputs(builder, file, body);
    body->end_node = graph->node_count;
    body->end_value = graph->value_count;
    builder->scope = outer;
    sp__name_map_deinit(&scope.names);
    return status;
}

sp_status sp__graph_import_loop(sp_graph_builder *builder, sp_graph_node *node)
{
    sp_graph_body *body;
    SP_TRY(sp__bump_array(&builder->graph->bump, 1, sizeof(*body), &body));
    /* The schema check requires the attribute. */
    const sp_attribute *graph = sp__attribute_find(node->attributes, "body");
    SP_TRY(import_graph(builder, &graph->as.graphs[0], body));
    const bool is_scan = sp__attribute_find(node->attributes, "num_scan_inputs") != NULL;
    SP_TRY(check_inputs_given(node, !is_scan ? 2 : node->version < 9 ? 1 : 0));
    SP_TRY(is_scan ? check_scan(builder, node, body) : check_loop(node, body));
    node->body = body;
    return find_captures(builder, body, node);
}

sp_status sp__graph_finish_main(sp_graph_builder *builder)
{
    const sp_graph *graph = builder->graph;
    sp_graph_slot *slots;
    SP_TRY(sp__bump_array(&builder->graph->bump, graph->output_count, sizeof(*slots), &slots));
    for (uint32_t i = 0; i < graph->output_count; i++) {
        slots[i] =
            (sp_graph_slot){.value = graph->outputs[i].value, .dtype = graph->outputs[i].dtype};
    }
    *builder->main_body = (sp_graph_body){.end_node = graph->node_count,
                                          .end_value = graph->value_count,
                                          .outputs = slots,
                                          .output_count = graph->output_count};
    return SP_OK;
}
