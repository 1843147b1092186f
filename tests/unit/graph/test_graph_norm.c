/* SPDX-License-Identifier: Apache-2.0 */
/* Normalisations folded into convolutions: when, when not, and the error of the numbers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "support/model_data.h"
#include "support/onnx_writer.h"
#include "support/test.h"

enum { CHANNELS = 6, INPUTS = 4, SIDE = 5 };

/* A model of a Conv and a BatchNormalization; zero: the simplest form. */
typedef struct pair_form {
    bool has_bias;
    bool is_grouped;
    bool reads_conv;     /* the Conv's result is an output too */
    bool shares_weights; /* a second Conv reads them */
    bool default_scale;  /* a run may override it */
    bool default_shift;  /* the same for a value unrelated to the pair */
    bool computed_scale; /* by a node that folds */
    bool is_training;
    bool is_negative; /* a negative variance */
    bool is_short;    /* one element too few */
    bool is_free;     /* the mean is an input */
    float epsilon;
    int64_t opset; /* 0: 14 */
} pair_form;

static void add_floats(writer *graph, const char *name, const int64_t *dims, uint32_t rank,
                       const float *values, size_t count)
{
    writer tensor = make_tensor(name, 1, dims, rank, values, count * sizeof(float));
    write_message(graph, GRAPH_INITIALIZER_FIELD, &tensor);
}

static void add_list(writer *graph, const char *name, uint64_t seed, int64_t count, float least)
{
    float values[CHANNELS];
    data_random random = {seed};
    data_fill(&random, values, CHANNELS);
    for (int i = 0; i < CHANNELS; i++)
        values[i] = least != 0 ? fabsf(values[i]) + least : values[i];
    add_floats(graph, name, &count, 1, values, (size_t)count);
}

static void add_convs(writer *graph, const pair_form *form)
{
    const int64_t inputs = form->is_grouped ? INPUTS / 2 : INPUTS;
    float weights[CHANNELS * INPUTS * 9];
    data_random random = {5};
    data_fill(&random, weights, SP_COUNT_OF(weights));
    add_floats(graph, "w", (int64_t[]){CHANNELS, inputs, 3, 3}, 4, weights,
               (size_t)(CHANNELS * inputs * 9));
    if (form->has_bias) add_list(graph, "b", 6, CHANNELS, 0);
    writer conv = make_node("Conv", form->has_bias ? "x w b" : "x w", "c");
    if (form->is_grouped) add_attribute_int(&conv, "group", 2);
    add_node(graph, conv);
    if (!form->shares_weights) return;
    conv = make_node("Conv", "x w", "other");
    if (form->is_grouped) add_attribute_int(&conv, "group", 2);
    add_node(graph, conv);
    add_output(graph, "other");
}

static void add_norm(writer *graph, const pair_form *form)
{
    const int64_t count = CHANNELS - form->is_short;
    add_list(graph, form->computed_scale ? "raw" : "scale", 7, count, 0);
    if (form->computed_scale) add_node(graph, make_node("Neg", "raw", "scale"));
    add_list(graph, "shift", 8, count, 0);
    if (!form->is_free) add_list(graph, "mean", 9, count, 0);
    add_list(graph, "variance", 10, count, form->is_negative ? -3.0f : 0.25f);
    const char *outputs = form->is_training ? "y new_mean new_variance" : "y";
    writer norm = make_node("BatchNormalization", "c scale shift mean variance", outputs);
    if (form->is_training) add_attribute_int(&norm, "training_mode", 1);
    if (form->epsilon != 0) {
        writer attribute = {0};
        write_text(&attribute, 1, "epsilon");
        write_float(&attribute, 2, form->epsilon);
        write_int(&attribute, 20, 1);
        write_message(&norm, 5, &attribute);
    }
    add_node(graph, norm);
}

static writer file_of(const pair_form *form)
{
    writer graph = {0};
    add_input(&graph, "x", 1, (int64_t[]){-1, INPUTS, SIDE, SIDE}, 4);
    if (form->is_free) add_input(&graph, "mean", 1, (int64_t[]){CHANNELS}, 1);
    if (form->default_scale) add_input(&graph, "scale", 1, (int64_t[]){CHANNELS}, 1);
    if (form->default_shift) {
        add_input(&graph, "aside", 1, (int64_t[]){CHANNELS}, 1);
        add_list(&graph, "aside", 11, CHANNELS, 0);
    }
    add_convs(&graph, form);
    add_norm(&graph, form);
    add_output(&graph, "y");
    if (form->reads_conv) add_output(&graph, "c");
    return make_model(&graph, form->opset != 0 ? form->opset : 14);
}

static const sp_graph *load(const pair_form *form)
{
    writer file = file_of(form);
    const sp_graph *graph = NULL;
    CHECK_OK(sp__graph_load(file.bytes, file.len, &graph));
    writer_free(&file);
    return graph;
}

static bool has_norm(const sp_graph *graph)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const sp_graph_node *node = &graph->nodes[i];
        if (strcmp(node->op->name, "BatchNormalization") == 0) return node->is_live;
    }
    CHECK(false);
    return false;
}

/* Runs a batch of images; y is the first output. */
static void run(const sp_graph *graph, int64_t images, sp_array *outputs)
{
    data_random random = {12};
    sp_array inputs[2] = {data_floats(&random, &SHAPE(images, INPUTS, SIDE, SIDE))};
    const sp_plan_input input = {.dtype = SP_F32, .shape = inputs[0].shape};
    const sp_plan_request request = {.inputs = &input, .input_count = 1};
    const sp_graph_plan *plan = NULL;
    REQUIRE_OK(sp__plan_compile(graph, &request, &plan));
    CHECK_OK(sp__plan_check(plan));
    CHECK_OK(data_run_plan(plan, inputs, outputs));
    sp__plan_destroy(plan);
    data_free(inputs, 1);
}

/* The difference of y with the pair folded, and of y where the Conv's result is requested too,
 * which keeps the pair. */
static double difference(pair_form form)
{
    sp_array joined[3] = {0}, apart[3] = {0};
    double worst = 0;
    const sp_graph *graph = load(&form);
    CHECK(!has_norm(graph));
    CHECK_EQ_STR(graph->values[graph->outputs[0].value].name, "y");
    run(graph, 3, joined);
    sp__graph_destroy(graph);
    form.reads_conv = true;
    graph = load(&form);
    CHECK(has_norm(graph));
    run(graph, 3, apart);
    sp__graph_destroy(graph);
    const uint32_t y = form.shares_weights;
    CHECK(data_is_close(&joined[y], &apart[y], 2e-5, 1e-5, &worst));
    data_free(joined, 3);
    data_free(apart, 3);
    return worst;
}

TEST(a_joined_pair_gives_the_numbers_of_the_two_nodes)
{
    double worst = 0;
    for (uint32_t i = 0; i < 16; i++) {
        const double now = difference((pair_form){.has_bias = (i & 1) != 0,
                                                  .is_grouped = (i & 2) != 0,
                                                  .computed_scale = (i & 4) != 0,
                                                  .epsilon = (i & 8) != 0 ? 0.5f : 0});
        if (now > worst) worst = now;
    }
    test_note("largest difference %.2g", worst);
    CHECK(worst > 0); /* the numbers differ */
    for (int64_t opset = 9; opset <= 15; opset++) difference((pair_form){.opset = opset});
}

TEST(a_row_of_a_batch_has_the_bits_of_the_row_alone)
{
    sp_array one[1] = {0}, many[1] = {0};
    const sp_graph *graph = load(&(pair_form){.has_bias = true});
    run(graph, 1, one);
    run(graph, 7, many);
    CHECK_EQ_MEM(many[0].data, one[0].data, one[0].bytes);
    data_free(one, 1);
    data_free(many, 1);
    sp__graph_destroy(graph);
}

TEST(the_old_weights_go_and_no_others_come)
{
    const pair_form form = {.has_bias = true};
    const sp_graph *graph = load(&form);
    /* Packed weights and a bias for each channel. */
    CHECK_EQ_U64(graph->weight_count, 2);
    sp__graph_destroy(graph);
}

TEST(a_pair_stays_where_joining_would_change_more_than_roundings)
{
    const pair_form forms[] = {
        {.reads_conv = true},    {.shares_weights = true},
        {.default_scale = true}, {.default_shift = true, .computed_scale = true},
        {.is_training = true},   {.is_negative = true},
        {.is_short = true},      {.is_free = true}};
    for (size_t i = 0; i < SP_COUNT_OF(forms); i++) {
        const sp_graph *graph = load(&forms[i]);
        CHECK(has_norm(graph));
        sp__graph_destroy(graph);
    }
    const sp_graph *graph = load(&(pair_form){.default_shift = true});
    CHECK(!has_norm(graph)); /* a value that a run may override is not folded */
    sp__graph_destroy(graph);
}

TEST(each_allocation_that_fails_fails_the_load)
{
    const pair_form form = {.has_bias = true};
    writer file = file_of(&form);
    check_load_without_memory(&file);
    writer_free(&file);
}

TEST_MAIN
