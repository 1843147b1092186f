/* SPDX-License-Identifier: Apache-2.0 */
/* Nested graphs: the names in their scope, their counts, and the branches of an If. Bodies are in
 * graph_body.c. */
#include <inttypes.h>

#include "base/error.h"
#include "base/macros.h"
#include "graph/graph_build.h"

/* ---- names ---- */

uint64_t sp__graph_count_names(const sp_onnx_graph *file)
{
    uint64_t names = (uint64_t)file->input_count + file->initializer_count;
    for (uint32_t i = 0; i < file->node_count; i++) names += file->nodes[i].output_count;
    return names;
}

uint32_t sp__graph_scope_find(const sp_graph_scope *scope, sp_text name)
{
    for (; scope != NULL; scope = scope->outer) {
        const uint32_t value = sp__name_map_find(&scope->names, name);
        if (value != SP_NO_VALUE) return value;
    }
    return SP_NO_VALUE;
}

/* ---- counts ---- */

static sp_status count_branches(sp_graph_builder *builder, const sp_onnx_node *node,
                                sp_graph_totals *totals)
{
    for (uint32_t i = 0; i < node->attributes.count; i++) {
        const sp_attribute *attribute = &node->attributes.items[i];
        if (attribute->type != SP_ATTRIBUTE_GRAPH && attribute->type != SP_ATTRIBUTE_GRAPHS) {
            continue;
        }
        totals->regions += attribute->count;
        for (uint32_t k = 0; k < attribute->count; k++) {
            SP_TRY(sp__graph_count(builder, &attribute->as.graphs[k], totals));
        }
    }
    return SP_OK;
}

static sp_status count_node(sp_graph_builder *builder, const sp_onnx_node *node,
                            sp_graph_totals *totals)
{
    totals->nodes++;
    totals->names += node->output_count;
    /* Folding it into a Conv adds weights and a bias. */
    if (sp__text_equal(node->op_type, sp__text("BatchNormalization"))) totals->names += 2;
    sp_graph_function *function = sp__graph_function_of(builder, node);
    if (function != NULL) return sp__graph_count_call(builder, function, totals);
    return count_branches(builder, node, totals);
}

sp_status sp__graph_count_nodes(sp_graph_builder *builder, const sp_onnx_node *nodes,
                                uint32_t count, sp_graph_totals *totals)
{
    for (uint32_t i = 0; i < count; i++) SP_TRY(count_node(builder, &nodes[i], totals));
    return SP_OK;
}

/* The reader has bounded the nesting depth of graphs, and their number by the file's size. */
sp_status sp__graph_count(sp_graph_builder *builder, const sp_onnx_graph *file,
                          sp_graph_totals *totals)
{
    totals->names += (uint64_t)file->input_count + file->initializer_count;
    return sp__graph_count_nodes(builder, file->nodes, file->node_count, totals);
}

/* ---- branches ---- */

sp_status sp__graph_resolve_results(const sp_graph_builder *builder, const sp_onnx_graph *file,
                                    uint32_t *results)
{
    const bool is_branch = builder->regions[builder->scope->region].is_branch;
    for (uint32_t i = 0; i < file->output_count; i++) {
        const sp_text name = file->outputs[i].name;
        results[i] = sp__graph_scope_find(builder->scope, name);
        if (name.len > 0 && results[i] < SP_ABSENT_VALUE) continue;
        return sp__fail(SP_CORRUPT, "nothing produces output '%s' of a %s",
                        sp__text_print(name).text, is_branch ? "branch" : "body");
    }
    return SP_OK;
}

static sp_status import_branch(sp_graph_builder *builder, const sp_onnx_graph *file,
                               uint32_t condition, bool is_then, uint32_t *results)
{
    sp_graph *graph = builder->graph;
    const sp_graph_body *home = builder->scope->home;
    sp_graph_scope scope = {.outer = builder->scope, .region = graph->region_count++, .home = home};
    builder->regions[scope.region] = (sp_graph_region){.parent = builder->scope->region,
                                                       .home = home,
                                                       .is_branch = true,
                                                       .condition = condition,
                                                       .is_then = is_then};
    SP_TRY(sp__name_map_init(&scope.names, sp__graph_count_names(file), builder->main.names.key));
    sp_graph_scope *outer = builder->scope;
    builder->scope = &scope;
    sp_status status = sp__graph_import_body(builder, file);
    if (status == SP_OK) status = sp__graph_resolve_results(builder, file, results);
    builder->scope = outer;
    sp__name_map_deinit(&scope.names);
    return status;
}

sp_status sp__graph_import_branches(sp_graph_builder *builder, const sp_onnx_node *file,
                                    sp_graph_node *node)
{
    static const char *const names[2] = {"then_branch", "else_branch"};
    const uint32_t condition = node->inputs[0];
    uint32_t *inputs;
    node->input_count = 1 + 2 * file->output_count;
    SP_TRY(sp__bump_array(&builder->graph->bump, node->input_count, sizeof(*inputs), &inputs));
    node->inputs = inputs;
    inputs[0] = condition;
    for (uint32_t i = 0; i < 2; i++) {
        /* The schema check requires both attributes. */
        const sp_attribute *branch = sp__attribute_find(node->attributes, names[i]);
        const sp_onnx_graph *graph = &branch->as.graphs[0];
        if (graph->input_count > 0 || graph->output_count != file->output_count) {
            return sp__fail(SP_CORRUPT,
                            "%s has %" PRIu32 " inputs and %" PRIu32
                            " outputs, wanted 0 and %" PRIu32,
                            names[i], graph->input_count, graph->output_count, file->output_count);
        }
        SP_TRY(import_branch(builder, graph, condition, i == 0,
                             inputs + 1 + (size_t)i * file->output_count));
    }
    return SP_OK;
}
