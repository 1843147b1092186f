/* SPDX-License-Identifier: Apache-2.0 */
/* Folds a BatchNormalization with constant parameters into the Conv before it: each channel's
 * factor is multiplied into the channel's weights and bias, and the node is removed. The file alone
 * decides that, so a model's bits are the same in every run; they differ from those of the two
 * nodes by rounding, since factors are multiplied before the sum instead of after it. The new
 * weights are computed in doubles and rounded once. */
#include <math.h>

#include "base/error.h"
#include "base/fpenv.h"
#include "base/macros.h"
#include "graph/graph_build.h"
#include "tensor/array.h"

static bool is_list_of(const sp_graph *graph, uint32_t value, int64_t count)
{
    const sp_shape *shape = &graph->values[value].shape;
    return shape->rank == 1 && shape->dims[0] == count;
}

/* A pair that can become one node. */
typedef struct pair {
    sp_graph_node *conv, *norm;
    const float *weights, *bias; /* of the Conv; bias may be NULL */
    const float *lists[4];       /* scale, bias, mean, variance */
    double epsilon;
    int64_t channels;
    uint64_t per_channel; /* weights */
} pair;

/* Forms that compute statistics, and those that are refused, are not folded. */
static bool is_plain_norm(const sp_graph_node *norm)
{
    const sp_attribute_list *list = &norm->attributes;
    const bool was_training = norm->version < 7 && sp__attribute_int(*list, "is_test", 0) == 0;
    return sp__graph_is_live_op(norm, "BatchNormalization") && norm->output_count == 1 &&
           !was_training && sp__attribute_int(*list, "training_mode", 0) == 0 &&
           sp__attribute_int(*list, "spatial", 1) != 0;
}

/* Only `norm`'s Conv may read the weights: else a small file could request many copies of them. */
static bool pair_read_conv(const sp_graph *graph, const sp_graph_uses *u, pair *p)
{
    const uint32_t weights = p->conv->inputs[1];
    const uint32_t bias = p->conv->input_count > 2 ? p->conv->inputs[2] : SP_NO_VALUE;
    p->weights = sp__graph_fixed(graph, u, weights, SP_F32);
    if (p->weights == NULL || u->reads[weights] != 1) return false;
    const sp_shape *shape = &graph->values[weights].shape;
    if (shape->rank < 3 || sp__shape_count(shape) == 0) return false;
    p->channels = shape->dims[0];
    p->per_channel = sp__shape_count(shape) / (uint64_t)p->channels;
    if (bias == SP_NO_VALUE) return true;
    p->bias = sp__graph_fixed(graph, u, bias, SP_F32);
    return p->bias != NULL && is_list_of(graph, bias, p->channels);
}

static bool pair_find(sp_graph_builder *builder, const sp_graph_uses *u, sp_graph_node *norm,
                      pair *p)
{
    const sp_graph *graph = builder->graph;
    if (!is_plain_norm(norm)) return false;
    *p = (pair){.norm = norm, .conv = sp__graph_maker_of(builder, u, norm, "Conv")};
    if (p->conv == NULL || !pair_read_conv(graph, u, p)) return false;
    for (uint32_t i = 0; i < 4; i++) {
        p->lists[i] = sp__graph_fixed(graph, u, norm->inputs[1 + i], SP_F32);
        if (p->lists[i] == NULL || !is_list_of(graph, norm->inputs[1 + i], p->channels)) {
            return false;
        }
    }
    p->epsilon = (double)sp__attribute_float(norm->attributes, "epsilon", 1e-5f);
    return true;
}

/* ---- the new weights ---- */

/* False if a number is not finite: then the two nodes are kept, and compute the result. */
static bool fold_channel(const pair *p, int64_t c, float *weights, float *bias)
{
    const double factor =
        (double)p->lists[0][c] / __builtin_sqrt((double)p->lists[3][c] + p->epsilon);
    const double old_bias = p->bias != NULL ? (double)p->bias[c] : 0;
    bool is_finite = true;
    for (uint64_t i = 0; i < p->per_channel; i++) {
        const uint64_t at = (uint64_t)c * p->per_channel + i;
        weights[at] = (float)((double)p->weights[at] * factor);
        is_finite = is_finite && isfinite(weights[at]);
    }
    bias[c] = (float)((old_bias - (double)p->lists[2][c]) * factor + (double)p->lists[1][c]);
    return is_finite && isfinite(bias[c]);
}

static bool fold_channels(const pair *p, float *weights, float *bias)
{
    bool is_finite = true;
    for (int64_t c = 0; c < p->channels && is_finite; c++) {
        is_finite = fold_channel(p, c, weights, bias);
    }
    return is_finite;
}

/* Takes over the array's data. The import has reserved room for the value. */
static sp_status add_constant(sp_graph_builder *builder, const char *name, sp_array *array,
                              uint32_t *out)
{
    sp_graph *graph = builder->graph;
    sp_graph_value *value = &builder->values[graph->value_count];
    *value =
        (sp_graph_value){.name = name, .is_constant = true, .dtype = SP_F32, .shape = array->shape};
    const sp_array taken = *array;
    *array = (sp_array){0};
    SP_TRY(sp__graph_add_weight(builder, taken.data, taken.bytes, &value->weight));
    *out = graph->value_count++;
    return SP_OK;
}

/* Gives the Conv the new weights and the outputs of the normalisation. */
static sp_status pair_join(sp_graph_builder *builder, const pair *p, sp_array *weights,
                           sp_array *bias)
{
    const char *const names[2] = {builder->values[p->conv->inputs[1]].name,
                                  builder->values[p->norm->inputs[2]].name};
    uint32_t *inputs;
    SP_TRY(sp__bump_array(&builder->graph->bump, 3, sizeof(*inputs), &inputs));
    inputs[0] = p->conv->inputs[0];
    SP_TRY(add_constant(builder, names[0], weights, &inputs[1]));
    SP_TRY(add_constant(builder, names[1], bias, &inputs[2]));
    p->conv->inputs = inputs;
    p->conv->input_count = 3;
    p->conv->outputs = p->norm->outputs;
    p->norm->is_live = false;
    return SP_OK;
}

static sp_status fold_pair(sp_graph_builder *builder, const pair *p)
{
    sp_array weights = {0}, bias = {0};
    const sp_shape list = {.rank = 1, .dims = {p->channels}};
    sp_status status = sp__array_init(&weights, SP_F32, &builder->values[p->conv->inputs[1]].shape);
    if (status == SP_OK) status = sp__array_init(&bias, SP_F32, &list);
    if (status == SP_OK && fold_channels(p, weights.data, bias.data)) {
        status = pair_join(builder, p, &weights, &bias);
    }
    sp__array_deinit(&weights);
    sp__array_deinit(&bias);
    return status;
}

sp_status sp__graph_fold_norms(sp_graph_builder *builder)
{
    sp_graph_uses uses;
    sp_status status = sp__graph_uses_init(builder->graph, &uses);
    const sp_fpenv before = sp_fpenv_enter(); /* ignores the floating-point mode of the caller */
    for (uint32_t n = 0; n < builder->graph->node_count && status == SP_OK; n++) {
        pair p;
        if (pair_find(builder, &uses, &builder->nodes[n], &p)) status = fold_pair(builder, &p);
    }
    sp_fpenv_leave(before);
    sp__graph_uses_deinit(&uses);
    return status;
}
