/* SPDX-License-Identifier: Apache-2.0 */
/* Every node becomes an entry; entries are sorted by operator and equal ones merged, so the time is
 * bounded by the number of nodes whatever their names are. */
#include "model/model_file_ops.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/heap.h"
#include "ops/registry.h"

typedef struct op_counter {
    const sp_onnx_model *model;
    uint32_t scope; /* what is being collected: 0 the main graph, k function k - 1 */
    sp_file_op *items;
    uint32_t count, capacity;
} op_counter;

/* ONNX's own domain has two spellings. */
static sp_text plain_domain(sp_text domain)
{
    return sp__op_is_onnx_domain(domain) ? (sp_text){0} : domain;
}

static int text_compare(sp_text a, sp_text b)
{
    const size_t len = a.len < b.len ? a.len : b.len;
    const int order = len > 0 ? memcmp(a.ptr, b.ptr, len) : 0;
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static int op_compare(const sp_file_op *a, const sp_file_op *b)
{
    const int order = text_compare(a->name, b->name);
    return order != 0 ? order : text_compare(a->domain, b->domain);
}

/* ---- collecting ---- */

static sp_status op_add(op_counter *counter, sp_text domain, sp_text name)
{
    if (counter->count == UINT32_MAX / 2)
        return sp__fail(SP_EXHAUSTED, "the file has too many nodes");
    sp_file_op *grown =
        sp_grow(counter->items, counter->count, &counter->capacity, sizeof *counter->items);
    if (grown == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a list of ops");
    counter->items = grown;
    counter->items[counter->count] = (sp_file_op){.domain = plain_domain(domain),
                                                  .name = name,
                                                  .count = 1,
                                                  .first = counter->count,
                                                  .scope = counter->scope};
    counter->count++;
    return SP_OK;
}

/* Depth is bounded by SP_ONNX_MAX_DEPTH. */
static sp_status nodes_add(op_counter *counter, const sp_onnx_node *nodes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const sp_onnx_node *node = &nodes[i];
        SP_TRY(op_add(counter, node->domain, node->op_type));
        for (uint32_t k = 0; k < node->attributes.count; k++) {
            const sp_attribute *attribute = &node->attributes.items[k];
            const bool has_graphs =
                attribute->type == SP_ATTRIBUTE_GRAPH || attribute->type == SP_ATTRIBUTE_GRAPHS;
            for (uint32_t g = 0; has_graphs && g < attribute->count; g++) {
                const sp_onnx_graph *inner = &attribute->as.graphs[g];
                SP_TRY(nodes_add(counter, inner->nodes, inner->node_count));
            }
        }
    }
    return SP_OK;
}

/* ---- merging ---- */

static int by_op(const void *left, const void *right)
{
    const sp_file_op *a = left;
    const sp_file_op *b = right;
    const int order = op_compare(a, b);
    return order != 0 ? order : (a->first > b->first) - (a->first < b->first);
}

static int by_count(const void *left, const void *right)
{
    const sp_file_op *a = left;
    const sp_file_op *b = right;
    if (a->count != b->count) return a->count < b->count ? 1 : -1;
    const int order = text_compare(a->name, b->name);
    return order != 0 ? order : (a->first > b->first) - (a->first < b->first);
}

/* Keeps one item for each operator, that of its first node. */
static void items_merge(op_counter *counter)
{
    uint32_t kept = 0;
    if (counter->count > 0) qsort(counter->items, counter->count, sizeof *counter->items, by_op);
    for (uint32_t i = 0; i < counter->count; i++) {
        const sp_file_op *item = &counter->items[i];
        if (kept > 0 && op_compare(&counter->items[kept - 1], item) == 0) {
            counter->items[kept - 1].count++;
        } else {
            counter->items[kept++] = *item;
        }
    }
    counter->count = kept;
}

/* ---- description ---- */

/* The version of the operator set where the operator is used first. */
static int64_t opset_version(const sp_onnx_model *model, const sp_file_op *item)
{
    const sp_onnx_function *function = item->scope > 0 ? &model->functions[item->scope - 1] : NULL;
    const sp_onnx_opset *opsets = function != NULL ? function->opsets : model->opsets;
    const uint32_t count = function != NULL ? function->opset_count : model->opset_count;
    for (uint32_t i = 0; i < count; i++) {
        if (sp__text_equal(plain_domain(opsets[i].domain), item->domain)) return opsets[i].version;
    }
    return 0;
}

/* Functions as operators, in the order of op_compare. */
static sp_status functions_sort(const sp_onnx_model *model, sp_file_op **out)
{
    *out = NULL;
    sp_file_op *functions = sp_calloc((size_t)model->function_count + 1, sizeof *functions);
    if (functions == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a list of functions");
    for (uint32_t i = 0; i < model->function_count; i++) {
        functions[i].domain = plain_domain(model->functions[i].domain);
        functions[i].name = model->functions[i].name;
    }
    qsort(functions, model->function_count, sizeof *functions, by_op);
    *out = functions;
    return SP_OK;
}

static bool is_among(const sp_file_op *functions, uint32_t count, const sp_file_op *item)
{
    uint32_t low = 0;
    for (uint32_t high = count; low < high;) {
        const uint32_t middle = low + (high - low) / 2;
        if (op_compare(&functions[middle], item) < 0) low = middle + 1;
        else high = middle;
    }
    return low < count && op_compare(&functions[low], item) == 0;
}

/* An unknown op is an answer here, and no failure of the call. */
static bool is_op(const sp_file_op *item)
{
    const sp_op *op;
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    const sp_status status = sp__op_find(item->domain, item->name, item->version, &op);
    sp__error_put_back(&scope);
    return status == SP_OK;
}

static sp_status items_describe(const op_counter *counter)
{
    const sp_onnx_model *model = counter->model;
    sp_file_op *functions;
    SP_TRY(functions_sort(model, &functions));
    for (uint32_t i = 0; i < counter->count; i++) {
        sp_file_op *item = &counter->items[i];
        item->version = opset_version(model, item);
        item->is_function = is_among(functions, model->function_count, item);
        item->is_supported = item->is_function || is_op(item);
    }
    sp_free(functions);
    return SP_OK;
}

/* The main graph's nodes, and those of each function, which may name other versions. */
static sp_status all_add(op_counter *counter)
{
    const sp_onnx_model *model = counter->model;
    SP_TRY(nodes_add(counter, model->graph.nodes, model->graph.node_count));
    for (uint32_t i = 0; i < model->function_count; i++) {
        counter->scope = i + 1;
        SP_TRY(nodes_add(counter, model->functions[i].nodes, model->functions[i].node_count));
    }
    return SP_OK;
}

sp_status sp__file_ops_count(const sp_onnx_model *model, sp_file_op **ops, uint32_t *count)
{
    op_counter counter = {.model = model};
    sp_status status = all_add(&counter);
    if (status == SP_OK) {
        items_merge(&counter);
        status = items_describe(&counter);
    }
    if (status != SP_OK) {
        sp_free(counter.items);
        return status;
    }
    if (counter.count > 0) qsort(counter.items, counter.count, sizeof *counter.items, by_count);
    *ops = counter.items;
    *count = counter.count;
    return SP_OK;
}
