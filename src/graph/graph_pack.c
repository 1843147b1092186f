/* SPDX-License-Identifier: Apache-2.0 */
/* The table of weights in its final form: packed weights come in, plain ones that nobody reads go,
 * and attributes move out of the file's tables. */
#include <string.h>

#include "base/error.h"
#include "base/fpenv.h"
#include "base/heap.h"
#include "base/macros.h"
#include "graph/graph_build.h"
#include "ops/cpu/arch/kernels.h"
#include "ops/evaluate.h"

/* ---- packing ---- */

/* One packing that has been made: of which value, by which constants, where. */
typedef struct packing {
    uint32_t value, weight;
    sp_kernel_id kernel;
    uint32_t constant_bytes;
    unsigned char constants[SP_MAX_CONSTANT_BYTES];
} packing;

typedef struct packer {
    sp_graph_builder *builder;
    const sp_kernel *kernels;
    sp_lowering lowering;
    packing last; /* nodes that share a weight mostly stand side by side */
} packer;

static bool is_same_packing(const packing *made, uint32_t value, const sp_dispatch *dispatch)
{
    return made->kernel == dispatch->kernel && made->value == value &&
           made->constant_bytes == dispatch->constant_bytes &&
           memcmp(made->constants, dispatch->constants, made->constant_bytes) == 0;
}

static sp_status make_packing(packer *p, const sp_op_call *call, uint32_t value, uint64_t bytes)
{
    const sp_dispatch *dispatch = &p->lowering.dispatches[0];
    void *data = sp_aligned_malloc(SP_ARRAY_ALIGNMENT, (size_t)(bytes > 0 ? bytes : 1));
    if (data == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory to pack a weight");
    const sp_status status = sp__evaluate_pack(call, &p->lowering, p->kernels, data);
    if (status != SP_OK) {
        sp_free(data);
        return status;
    }
    p->last = (packing){
        .value = value, .kernel = dispatch->kernel, .constant_bytes = dispatch->constant_bytes};
    memcpy(p->last.constants, dispatch->constants, dispatch->constant_bytes);
    return sp__graph_add_weight(p->builder, data, bytes, &p->last.weight);
}

static sp_status pack_input(packer *p, sp_graph_node *node, uint32_t input)
{
    const sp_graph *graph = p->builder->graph;
    const uint32_t value = node->inputs[input];
    if (value == SP_NO_VALUE || !graph->values[value].is_constant) return SP_OK;
    sp_op_value inputs[8], outputs[3];
    SP_TRY(node->input_count <= 8 && node->output_count <= 3
               ? SP_OK
               : sp__fail(SP_INTERNAL, "an op that packs has more operands than foreseen"));
    const sp_op_call call = sp__graph_call(graph, node, inputs, outputs);
    uint64_t bytes;
    SP_TRY(sp__evaluate_pack_plan(&call, input, &p->lowering, &bytes));
    if (p->lowering.dispatch_count == 0) return SP_OK;
    if (!is_same_packing(&p->last, value, &p->lowering.dispatches[0])) {
        SP_TRY(make_packing(p, &call, value, bytes));
    }
    node->packed_weights[input - 1] = p->last.weight;
    return SP_OK;
}

static sp_status pack_node(packer *p, sp_graph_node *node)
{
    if (!node->is_live || node->is_folded || node->op->pack == NULL) return SP_OK;
    for (uint32_t i = 1; i <= SP_OP_PACKED_INPUTS && i < node->input_count; i++) {
        SP_TRY(pack_input(p, node, i));
    }
    return SP_OK;
}

static sp_status pack_all(sp_graph_builder *builder)
{
    packer p = {.builder = builder, .kernels = sp__cpu_kernels(sp__cpu_isa_selected())};
    sp__lowering_init(&p.lowering);
    sp_status status = SP_OK;
    const sp_fpenv before = sp_fpenv_enter();
    for (uint32_t i = 0; i < builder->graph->node_count && status == SP_OK; i++) {
        status = pack_node(&p, &builder->nodes[i]);
        if (status != SP_OK) (void)sp__graph_fail_node(status, &builder->nodes[i]);
    }
    sp_fpenv_leave(before);
    sp__lowering_deinit(&p.lowering);
    return status;
}

/* ---- plain weights that nobody reads ---- */

static void need_value(const sp_graph *graph, uint32_t value, bool *is_needed)
{
    if (value == SP_NO_VALUE || graph->values[value].weight == SP_NO_WEIGHT) return;
    is_needed[graph->values[value].weight] = true;
}

static void mark_needed(const sp_graph *graph, bool *is_needed)
{
    for (uint32_t n = 0; n < graph->node_count; n++) {
        const sp_graph_node *node = &graph->nodes[n];
        /* A folded node runs again if a default that it depends on is overridden. */
        if (!node->is_live || (node->is_folded && graph->default_count == 0)) continue;
        const sp_graph_body *body = node->body;
        for (uint32_t i = 0; body != NULL && i < body->output_count; i++) {
            need_value(graph, body->outputs[i].value, is_needed);
        }
        /* What a body captures, its nodes need; or they have it packed. */
        const uint32_t captures = body != NULL ? body->capture_count : 0;
        for (uint32_t i = 0; i < node->input_count - captures; i++) {
            const uint32_t packed = sp__graph_packed(node, i);
            if (packed != SP_NO_WEIGHT) is_needed[packed] = true;
            else need_value(graph, node->inputs[i], is_needed);
        }
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        need_value(graph, graph->outputs[i].value, is_needed);
    }
}

/* Closes the gaps; `new_index` is where each weight is now. */
static void drop_unneeded(sp_graph_builder *builder, const bool *is_needed, uint32_t *new_index)
{
    sp_graph *graph = builder->graph;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < graph->weight_count; i++) {
        new_index[i] = is_needed[i] ? kept : SP_NO_WEIGHT;
        if (is_needed[i]) builder->weights[kept++] = builder->weights[i];
        else sp_free(builder->weights[i].data);
    }
    graph->weight_count = kept;
    for (uint32_t i = 0; i < graph->value_count; i++) {
        uint32_t *weight = &builder->values[i].weight;
        if (*weight != SP_NO_WEIGHT) *weight = new_index[*weight];
    }
    for (uint32_t i = 0; i < graph->node_count; i++) {
        for (uint32_t k = 0; k < SP_OP_PACKED_INPUTS; k++) {
            uint32_t *weight = &builder->nodes[i].packed_weights[k];
            if (*weight != SP_NO_WEIGHT) *weight = new_index[*weight];
        }
    }
}

sp_status sp__graph_pack(sp_graph_builder *builder)
{
    SP_TRY(pack_all(builder));
    const uint32_t count = builder->graph->weight_count;
    bool *is_needed = sp_calloc(count, sizeof(*is_needed));
    uint32_t *new_index = sp_calloc(count, sizeof(*new_index));
    sp_status status = SP_OK;
    if (is_needed != NULL && new_index != NULL) {
        mark_needed(builder->graph, is_needed);
        drop_unneeded(builder, is_needed, new_index);
    } else {
        status = sp__fail(SP_OUT_OF_MEMORY, "no memory for the table of weights");
    }
    sp_free(is_needed);
    sp_free(new_index);
    return status;
}

/* ---- attributes ---- */

static sp_status keep_bytes(sp_bump *bump, const void *from, uint64_t bytes, const void **out)
{
    void *copy;
    SP_TRY(sp__bump_array(bump, bytes, 1, &copy));
    if (bytes > 0) memcpy(copy, from, (size_t)bytes);
    *out = copy;
    return SP_OK;
}

static sp_status keep_text(sp_bump *bump, sp_text *text)
{
    const void *copy;
    SP_TRY(keep_bytes(bump, text->ptr, text->len, &copy));
    text->ptr = copy;
    return SP_OK;
}

static sp_status keep_strings(sp_bump *bump, sp_attribute *attribute)
{
    sp_text *copy;
    SP_TRY(sp__bump_array(bump, attribute->count, sizeof(*copy), &copy));
    for (uint32_t i = 0; i < attribute->count; i++) {
        copy[i] = attribute->as.strings[i];
        SP_TRY(keep_text(bump, &copy[i]));
    }
    attribute->as.strings = copy;
    return SP_OK;
}

static sp_status keep_tensors(sp_bump *bump, sp_attribute *attribute)
{
    sp_array_view *copy;
    SP_TRY(sp__bump_array(bump, attribute->count, sizeof(*copy), &copy));
    for (uint32_t i = 0; i < attribute->count; i++) {
        copy[i] = attribute->as.tensors[i];
        uint64_t bytes;
        SP_TRY(sp__shape_bytes(&copy[i].shape, copy[i].dtype, &bytes));
        SP_TRY(keep_bytes(bump, copy[i].data, bytes, &copy[i].data));
    }
    attribute->as.tensors = copy;
    return SP_OK;
}

static sp_status keep_attribute(sp_bump *bump, sp_attribute *attribute)
{
    const void *copy;
    SP_TRY(keep_text(bump, &attribute->name));
    switch (attribute->type) {
    case SP_ATTRIBUTE_FLOAT:
    case SP_ATTRIBUTE_FLOATS:
        SP_TRY(keep_bytes(bump, attribute->as.floats, attribute->count * sizeof(float), &copy));
        attribute->as.floats = copy;
        return SP_OK;
    case SP_ATTRIBUTE_INT:
    case SP_ATTRIBUTE_INTS:
        SP_TRY(keep_bytes(bump, attribute->as.ints, attribute->count * sizeof(int64_t), &copy));
        attribute->as.ints = copy;
        return SP_OK;
    case SP_ATTRIBUTE_STRING:
    case SP_ATTRIBUTE_STRINGS:
        return keep_strings(bump, attribute);
    case SP_ATTRIBUTE_TENSOR:
    case SP_ATTRIBUTE_TENSORS:
        return keep_tensors(bump, attribute);
    default:
        break;
    }
    return sp__fail(SP_UNSUPPORTED, "an attribute of type %s",
                    sp__attribute_type_name(attribute->type));
}

sp_status sp__graph_keep_attributes(sp_graph_builder *builder)
{
    sp_graph *graph = builder->graph;
    for (uint32_t n = 0; n < graph->node_count; n++) {
        sp_graph_node *node = &builder->nodes[n];
        const sp_attribute_list from = node->attributes;
        node->attributes = (sp_attribute_list){0};
        const bool runs_again = graph->default_count > 0 && node->input_count > 0;
        if (!node->is_live || (node->is_folded && !runs_again)) continue;
        sp_attribute *items;
        SP_TRY(sp__bump_array(&graph->bump, from.count, sizeof(*items), &items));
        for (uint32_t i = 0; i < from.count; i++) {
            items[i] = from.items[i];
            SP_TRY(keep_attribute(&graph->bump, &items[i]));
        }
        node->attributes = (sp_attribute_list){.items = items, .count = from.count};
    }
    return SP_OK;
}
