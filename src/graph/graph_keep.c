/* SPDX-License-Identifier: Apache-2.0 */
/* What a graph keeps of a file: the weights that are read, in the file's layout, and attributes,
 * copied from the file's tables. */
#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "base/macros.h"
#include "base/option.h"
#include "graph/graph_build.h"
#include "ops/pack.h"

/* ---- weights ---- */

typedef struct weight_use {
    bool is_read;     /* in any layout */
    bool is_plain;    /* in the file's layout */
    bool is_needed;   /* its elements, by something that no packed copy suffices for */
    bool has_windows; /* a convolution with several taps has it as its weights */
} weight_use;

typedef struct keeper {
    sp_graph_builder *builder;
    sp_op_value *inputs, *outputs; /* room for a call of any node */
    weight_use *uses;              /* by weight */
    uint32_t *new_index;
} keeper;

/* NULL: the value has none. */
static weight_use *use_of(const keeper *k, uint32_t value)
{
    const sp_graph *graph = k->builder->graph;
    if (value == SP_NO_VALUE || graph->values[value].weight == SP_NO_WEIGHT) return NULL;
    return &k->uses[graph->values[value].weight];
}

static void use_whole(const keeper *k, uint32_t value)
{
    weight_use *use = use_of(k, value);
    if (use == NULL) return;
    use->is_read = use->is_plain = use->is_needed = true;
}

/* Kernels in blocks of channels read the weights packed, others as the file has them. */
static bool is_convolution(const sp_graph_node *node)
{
    return sp__graph_is_live_op(node, "Conv") || sp__graph_is_live_op(node, "ConvTranspose");
}

/* Plans compute such a node when they are compiled, if it is small enough, from the elements. */
static bool has_only_constants(const sp_graph *graph, const sp_graph_node *node)
{
    for (uint32_t i = 0; i < node->input_count; i++) {
        const uint32_t value = node->inputs[i];
        if (value != SP_NO_VALUE && !graph->values[value].is_constant) return false;
    }
    return true;
}

static void use_input(const keeper *k, const sp_op_call *call, const sp_graph_node *node,
                      uint32_t input)
{
    const sp_graph *graph = k->builder->graph;
    const sp_graph_value *value = &graph->values[node->inputs[input]];
    weight_use *use = use_of(k, node->inputs[input]);
    if (use == NULL) return;
    const bool is_packed = sp__op_pack(call, input).format != SP_PACK_NONE;
    const bool is_window = is_convolution(node) && input == 1;
    const sp_shape *shape = &value->shape;
    use->is_read = true;
    use->is_plain = use->is_plain || !is_packed;
    use->is_needed = use->is_needed || !(is_packed || is_window) || value->dtype != SP_F32 ||
                     has_only_constants(graph, node);
    use->has_windows =
        use->has_windows || (is_window && value->dtype == SP_F32 && shape->rank > 2 &&
                             sp__shape_range_count(shape, 2, shape->rank) > 1);
}

/* Without the captures of a body: its own nodes read those. */
static void use_inputs(keeper *k, const sp_graph_node *node)
{
    const sp_graph *graph = k->builder->graph;
    const sp_op_call call = sp__graph_call(graph, node, k->inputs, k->outputs);
    const uint32_t captures = node->body != NULL ? node->body->capture_count : 0;
    for (uint32_t i = 0; i < node->input_count - captures; i++) {
        const uint32_t value = node->inputs[i];
        if (value == SP_NO_VALUE || !graph->values[value].is_constant) continue;
        use_input(k, &call, node, i);
    }
}

static void use_all_nodes(keeper *k)
{
    const sp_graph *graph = k->builder->graph;
    for (uint32_t n = 0; n < graph->node_count; n++) {
        const sp_graph_node *node = &graph->nodes[n];
        /* A folded node runs again if a default that it depends on is overridden. */
        if (!node->is_live || (node->is_folded && graph->default_count == 0)) continue;
        const sp_graph_body *body = node->body;
        for (uint32_t i = 0; body != NULL && i < body->output_count; i++) {
            use_whole(k, body->outputs[i].value);
        }
        use_inputs(k, node);
    }
    for (uint32_t i = 0; i < graph->output_count; i++) use_whole(k, graph->outputs[i].value);
    /* A run may override it, with which nodes are computed that its plan would fold. */
    for (uint32_t i = 0; i < graph->default_count; i++) {
        weight_use *use = use_of(k, graph->defaults[i].value);
        if (use != NULL) use->is_needed = true;
    }
}

/* ---- what plans know of elements ---- */

/* Elements that are looked at without a branch. */
#define FINITE_ELEMENTS 1024

/* Inlined with a constant, which a compiler needs for vectors. */
static inline bool has_special(const float *elements, uint64_t count)
{
    const uint32_t exponent = 0x7f800000u; /* all of it: of infinities and NaNs */
    uint32_t found = 0;
    for (uint64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &elements[i], sizeof bits);
        found |= (uint32_t)((bits & exponent) == exponent);
    }
    return found != 0;
}

static bool is_finite(const sp_weight *weight)
{
    const float *elements = weight->data;
    const uint64_t count = weight->bytes / sizeof *elements;
    uint64_t i = 0;
    for (; count - i >= FINITE_ELEMENTS; i += FINITE_ELEMENTS) {
        if (has_special(elements + i, FINITE_ELEMENTS)) return false;
    }
    return !has_special(elements + i, count - i);
}

/* Removes the weights that are not read; `new_index` maps each weight to its new index. */
static void weights_drop_unread(keeper *k)
{
    sp_graph_builder *builder = k->builder;
    sp_graph *graph = builder->graph;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < graph->weight_count; i++) {
        const weight_use *use = &k->uses[i];
        k->new_index[i] = use->is_read ? kept : SP_NO_WEIGHT;
        sp_weight *weight = &builder->weights[i];
        weight->is_only_packed = !use->is_plain;
        weight->is_parkable = use->is_read && !use->is_needed &&
                              weight->bytes >= sp_option_bytes(SP_OPTION_PARK_BYTES);
        weight->is_finite = use->has_windows && is_finite(weight);
        if (use->is_read) builder->weights[kept++] = builder->weights[i];
        else sp_free(builder->weights[i].data);
    }
    graph->weight_count = kept;
    for (uint32_t i = 0; i < graph->value_count; i++) {
        uint32_t *weight = &builder->values[i].weight;
        if (*weight != SP_NO_WEIGHT) *weight = k->new_index[*weight];
    }
}

sp_status sp__graph_keep_weights(sp_graph_builder *builder)
{
    const uint32_t count = builder->graph->weight_count;
    const size_t operands = builder->graph->max_operands;
    keeper k = {.builder = builder,
                .inputs = sp_calloc(operands, sizeof(*k.inputs)),
                .outputs = sp_calloc(operands, sizeof(*k.outputs)),
                .uses = sp_calloc(count, sizeof(*k.uses)),
                .new_index = sp_calloc(count, sizeof(*k.new_index))};
    const bool is_there =
        k.inputs != NULL && k.outputs != NULL && k.uses != NULL && k.new_index != NULL;
    if (is_there) {
        use_all_nodes(&k);
        weights_drop_unread(&k);
    }
    sp_free(k.inputs);
    sp_free(k.outputs);
    sp_free(k.uses);
    sp_free(k.new_index);
    return is_there ? SP_OK : sp__fail(SP_OUT_OF_MEMORY, "no memory for the table of weights");
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
    return sp__fail(SP_UNSUPPORTED, "an attribute of type %s is not supported",
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
