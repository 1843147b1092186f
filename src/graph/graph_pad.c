/* SPDX-License-Identifier: Apache-2.0 */
/* Gives a Conv or an AveragePool the zeros that a Pad puts around its input: they become its own
 * padding, and the Pad is removed. No bit changes: padding taps of a convolution are zeros, and a
 * pool that counts its padding adds zeros. The file alone decides it. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/macros.h"
#include "graph/graph_build.h"

/* Dimensions: images, channels, and up to three more. */
enum { MAX_SPATIAL = 3, FIRST_SPATIAL = 2 };

typedef struct padded {
    const sp_graph_uses *uses;
    const sp_graph_node *pad;
    sp_graph_node *window;
    bool is_pool;
    uint32_t spatial;              /* dimensions */
    int64_t ends[2 * MAX_SPATIAL]; /* pads of the window: begins, ends */
} padded;

/* ---- the Pad ---- */

static uint32_t input_of(const sp_graph_node *node, uint32_t input)
{
    return input < node->input_count ? node->inputs[input] : SP_NO_VALUE;
}

/* +0, which an absent one is. */
static bool pads_with_zero(const sp_graph *graph, const padded *p)
{
    float value = 0;
    const uint32_t input = p->pad->version < 11 ? SP_NO_VALUE : input_of(p->pad, 2);
    if (p->pad->version < 11) value = sp__attribute_float(p->pad->attributes, "value", 0);
    if (input != SP_NO_VALUE) {
        const float *fixed = sp__graph_fixed(graph, p->uses, input, SP_F32);
        if (fixed == NULL || sp__shape_count(&graph->values[input].shape) != 1) return false;
        value = *fixed;
    }
    return value == 0 && !signbit(value);
}

/* Begins and ends of all dimensions of an input of the window, or NULL. */
static const int64_t *find_pads(const sp_graph *graph, const padded *p)
{
    const uint32_t count = 2 * (FIRST_SPATIAL + p->spatial);
    if (p->pad->version < 11) {
        const sp_attribute *pads = sp__attribute_find(p->pad->attributes, "pads");
        return pads != NULL && pads->count == count ? pads->as.ints : NULL;
    }
    const uint32_t input = input_of(p->pad, 1);
    const int64_t *pads = sp__graph_fixed(graph, p->uses, input, SP_I64);
    return pads != NULL && sp__shape_count(&graph->values[input].shape) == count ? pads : NULL;
}

/* Adds the Pad's to p->ends. False if it pads images or channels, or cuts. */
static bool add_pads(padded *p, const int64_t *pads)
{
    const uint32_t rank = FIRST_SPATIAL + p->spatial;
    for (uint32_t i = 0; i < 2 * rank; i++) {
        const uint32_t axis = i % rank;
        if (axis < FIRST_SPATIAL ? pads[i] != 0 : pads[i] < 0 || pads[i] > INT32_MAX) return false;
        if (axis < FIRST_SPATIAL) continue;
        int64_t *end = &p->ends[i / rank * p->spatial + axis - FIRST_SPATIAL];
        *end = pads[i] + (SP_PLANTED(pad_replaces) ? 0 : *end);
    }
    return true;
}

static bool is_zero_pad(const sp_graph *graph, const padded *p)
{
    const sp_graph_node *pad = p->pad;
    const bool is_constant =
        sp__text_is(sp__attribute_text(pad->attributes, "mode", "constant"), "constant");
    return pad->version >= 2 && is_constant && input_of(pad, 3) == SP_NO_VALUE &&
           pads_with_zero(graph, p);
}

/* ---- the window ---- */

/* From the shape of a constant kernel, or from an attribute; 0 if neither says it. */
static uint32_t spatial_of(const sp_graph *graph, const padded *p)
{
    const sp_attribute *kernel = sp__attribute_find(p->window->attributes, "kernel_shape");
    if (kernel != NULL) return kernel->count;
    if (p->is_pool) return 0;
    const uint32_t weights = input_of(p->window, 1);
    if (weights == SP_NO_VALUE) return 0;
    if (sp__graph_fixed(graph, p->uses, weights, graph->values[weights].dtype) == NULL) return 0;
    const uint32_t rank = graph->values[weights].shape.rank;
    return rank > FIRST_SPATIAL ? rank - FIRST_SPATIAL : 0;
}

/* The window's own padding. False if it depends on the input, or is not counted by a pool. */
static bool read_ends(padded *p)
{
    const sp_attribute_list list = p->window->attributes;
    const sp_text mode = sp__attribute_text(list, "auto_pad", "NOTSET");
    const sp_attribute *pads = sp__attribute_find(list, "pads");
    const bool is_explicit = sp__text_is(mode, "NOTSET");
    if (!is_explicit && !sp__text_is(mode, "VALID")) return false;
    if (pads == NULL || !is_explicit) return true;
    if (pads->count != 2 * p->spatial) return false;
    const bool is_counted = !p->is_pool || sp__attribute_int(list, "count_include_pad", 0) == 1;
    for (uint32_t i = 0; i < pads->count; i++) {
        p->ends[i] = pads->as.ints[i];
        if (p->ends[i] < 0 || p->ends[i] > INT32_MAX || (p->ends[i] > 0 && !is_counted)) {
            return false;
        }
    }
    return true;
}

static bool is_window(padded *p)
{
    p->is_pool = sp__graph_is_live_op(p->window, "AveragePool");
    if (!p->is_pool) return sp__graph_is_live_op(p->window, "Conv");
    /* Before version 7 no padding is counted. If sizes are rounded up, a window may begin behind
     * the input. */
    return p->window->version >= 7 && sp__attribute_int(p->window->attributes, "ceil_mode", 0) == 0;
}

static bool find(sp_graph_builder *builder, padded *p)
{
    if (!is_window(p)) return false;
    p->pad = sp__graph_maker_of(builder, p->uses, p->window, "Pad");
    if (p->pad == NULL || !is_zero_pad(builder->graph, p)) return false;
    p->spatial = spatial_of(builder->graph, p);
    if (p->spatial == 0 || p->spatial > MAX_SPATIAL || !read_ends(p)) return false;
    const int64_t *pads = find_pads(builder->graph, p);
    return pads != NULL && add_pads(p, pads);
}

/* ---- joined ---- */

static bool is_replaced(const padded *p, const sp_attribute *attribute)
{
    return sp__text_is(attribute->name, "pads") || sp__text_is(attribute->name, "auto_pad") ||
           (p->is_pool && sp__text_is(attribute->name, "count_include_pad"));
}

static sp_status set_attributes(sp_graph_builder *builder, const padded *p)
{
    const sp_attribute_list before = p->window->attributes;
    const uint32_t count = 2 * p->spatial;
    sp_attribute *items;
    int64_t *ints;
    SP_TRY(sp__bump_array(&builder->graph->bump, before.count + 2, sizeof *items, &items));
    SP_TRY(sp__bump_array(&builder->graph->bump, count + 1, sizeof *ints, &ints));
    uint32_t used = 0;
    for (uint32_t i = 0; i < before.count; i++) {
        if (!is_replaced(p, &before.items[i])) items[used++] = before.items[i];
    }
    for (uint32_t i = 0; i < count; i++) ints[i] = p->ends[i];
    ints[count] = 1;
    items[used++] = (sp_attribute){
        .name = sp__text("pads"), .type = SP_ATTRIBUTE_INTS, .count = count, .as.ints = ints};
    if (p->is_pool) {
        items[used++] = (sp_attribute){.name = sp__text("count_include_pad"),
                                       .type = SP_ATTRIBUTE_INT,
                                       .count = 1,
                                       .as.ints = ints + count};
    }
    p->window->attributes = (sp_attribute_list){items, used};
    return SP_OK;
}

static sp_status join(sp_graph_builder *builder, const padded *p)
{
    sp_graph_node *pad = &builder->nodes[p->pad - builder->nodes];
    uint32_t *inputs;
    SP_TRY(sp__bump_array(&builder->graph->bump, p->window->input_count, sizeof *inputs, &inputs));
    memcpy(inputs, p->window->inputs, p->window->input_count * sizeof *inputs);
    inputs[0] = pad->inputs[0];
    SP_TRY(set_attributes(builder, p));
    p->window->inputs = inputs;
    pad->is_live = false;
    return SP_OK;
}

sp_status sp__graph_fold_pads(sp_graph_builder *builder)
{
    sp_graph_uses uses;
    sp_status status = sp__graph_uses_init(builder->graph, &uses);
    for (uint32_t n = 0; n < builder->graph->node_count && status == SP_OK; n++) {
        padded p = {.uses = &uses, .window = &builder->nodes[n]};
        if (find(builder, &p)) status = join(builder, &p);
    }
    sp__graph_uses_deinit(&uses);
    return status;
}
