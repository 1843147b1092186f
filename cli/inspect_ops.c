/* SPDX-License-Identifier: Apache-2.0 */
/* The ops of a model, counted, as the file has them: also those that there are not. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/heap.h"
#include "inspect.h"
#include "ops/registry.h"

typedef struct op_count {
    sp_text domain, name;
    int64_t version; /* of its domain's opset; 0 if the file names none */
    uint32_t count;
    bool is_function; /* of the file's own */
} op_count;

typedef struct op_counts {
    const sp_onnx_model *model;
    /* Of the graph, or the function, that is being counted. */
    const sp_onnx_opset *opsets;
    uint32_t opset_count;
    op_count *items;
    uint32_t count, capacity;
} op_counts;

static bool is_same_domain(sp_text a, sp_text b)
{
    return sp__text_equal(a, b) || (sp__op_is_onnx_domain(a) && sp__op_is_onnx_domain(b));
}

static int64_t version_of(const op_counts *counts, sp_text domain)
{
    for (uint32_t i = 0; i < counts->opset_count; i++) {
        if (is_same_domain(counts->opsets[i].domain, domain)) return counts->opsets[i].version;
    }
    return 0;
}

static bool is_function(const sp_onnx_model *model, const sp_onnx_node *node)
{
    for (uint32_t i = 0; i < model->function_count; i++) {
        const sp_onnx_function *function = &model->functions[i];
        if (sp__text_equal(function->name, node->op_type) &&
            is_same_domain(function->domain, node->domain)) {
            return true;
        }
    }
    return false;
}

static sp_status count_node(op_counts *counts, const sp_onnx_node *node)
{
    for (uint32_t i = 0; i < counts->count; i++) {
        op_count *item = &counts->items[i];
        if (sp__text_equal(item->name, node->op_type) &&
            is_same_domain(item->domain, node->domain)) {
            item->count++;
            return SP_OK;
        }
    }
    op_count *grown =
        sp_grow(counts->items, counts->count, &counts->capacity, sizeof *counts->items);
    if (grown == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a list of ops");
    counts->items = grown;
    counts->items[counts->count++] = (op_count){.domain = node->domain,
                                                .name = node->op_type,
                                                .version = version_of(counts, node->domain),
                                                .count = 1,
                                                .is_function = is_function(counts->model, node)};
    return SP_OK;
}

/* Depth is bounded by SP_ONNX_MAX_DEPTH. */
static sp_status count_nodes(op_counts *counts, const sp_onnx_node *nodes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const sp_onnx_node *node = &nodes[i];
        SP_TRY(count_node(counts, node));
        for (uint32_t k = 0; k < node->attributes.count; k++) {
            const sp_attribute *attribute = &node->attributes.items[k];
            const bool has_graphs =
                attribute->type == SP_ATTRIBUTE_GRAPH || attribute->type == SP_ATTRIBUTE_GRAPHS;
            for (uint32_t g = 0; has_graphs && g < attribute->count; g++) {
                const sp_onnx_graph *inner = &attribute->as.graphs[g];
                SP_TRY(count_nodes(counts, inner->nodes, inner->node_count));
            }
        }
    }
    return SP_OK;
}

/* The graph's nodes, and those of each function, which may name other versions. */
static sp_status count_all(op_counts *counts)
{
    const sp_onnx_model *model = counts->model;
    counts->opsets = model->opsets;
    counts->opset_count = model->opset_count;
    SP_TRY(count_nodes(counts, model->graph.nodes, model->graph.node_count));
    for (uint32_t i = 0; i < model->function_count; i++) {
        const sp_onnx_function *function = &model->functions[i];
        counts->opsets = function->opsets;
        counts->opset_count = function->opset_count;
        SP_TRY(count_nodes(counts, function->nodes, function->node_count));
    }
    return SP_OK;
}

/* Most frequent first, then by name. */
static int compare(const void *left, const void *right)
{
    const op_count *a = left;
    const op_count *b = right;
    if (a->count != b->count) return a->count < b->count ? 1 : -1;
    const size_t len = a->name.len < b->name.len ? a->name.len : b->name.len;
    const int order = len > 0 ? memcmp(a->name.ptr, b->name.ptr, len) : 0;
    return order != 0 ? order : (a->name.len > b->name.len) - (a->name.len < b->name.len);
}

static bool print_count(const op_count *item)
{
    const sp_op *op;
    const bool is_there =
        item->is_function || sp__op_find(item->domain, item->name, item->version, &op) == SP_OK;
    printf("  %6" PRIu32 " %s", item->count, sp__text_print(item->name).text);
    if (!sp__op_is_onnx_domain(item->domain)) {
        printf(" of %s", sp__text_print(item->domain).text);
    }
    if (item->is_function) printf(": a function of the file");
    printf("%s\n", is_there ? "" : ": not supported");
    return is_there;
}

sp_status sp__inspect_ops(const sp_onnx_model *model, uint32_t *out)
{
    *out = 0;
    op_counts counts = {.model = model};
    const sp_status status = count_all(&counts);
    if (status == SP_OK) {
        if (counts.count > 0) qsort(counts.items, counts.count, sizeof *counts.items, compare);
        printf("ops\n");
        for (uint32_t i = 0; i < counts.count; i++) *out += !print_count(&counts.items[i]);
    }
    sp_free(counts.items);
    return status;
}
