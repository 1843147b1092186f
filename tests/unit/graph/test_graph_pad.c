/* SPDX-License-Identifier: Apache-2.0 */
/* Pads of zeros that become the padding of a convolution or a pool: when, when not, and the bits of
 * the two nodes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "support/model_data.h"
#include "support/onnx_writer.h"
#include "support/test.h"

enum { CHANNELS = 3, FILTERS = 20, SIDE = 9, KERNEL = 3 };

/* A model of a Pad and a Conv or AveragePool; zero: the simplest form. */
typedef struct pad_form {
    bool is_pool;
    int64_t pads[4];       /* of the Pad: top, left, bottom, right */
    int64_t own[4];        /* of the window */
    const char *auto_pad;  /* NULL: none */
    const char *mode;      /* NULL: none */
    const char *value;     /* NULL: none; of the Pad: "0", "-0", "1", "free", "default" */
    bool counts;           /* count_include_pad */
    bool rounds_up;        /* ceil_mode */
    bool pads_channels;    /* by a channel of zeros in front */
    bool has_axes;         /* an input that says that all are padded */
    bool is_read_twice;    /* by an output too */
    bool has_inf;          /* in a weight */
    int64_t stride, opset; /* 0: 1, 14 */
} pad_form;

static void add_pad(writer *graph, const pad_form *form)
{
    const int64_t opset = form->opset != 0 ? form->opset : 14;
    const int64_t *p = form->pads;
    const int64_t sizes[8] = {0, form->pads_channels, p[0], p[1], 0, 0, p[2], p[3]};
    const char *inputs = "x";
    if (opset >= 11) {
        inputs = form->has_axes ? "x pads - axes" : form->value != NULL ? "x pads value" : "x pads";
        writer tensor = make_tensor("pads", 7, (int64_t[]){8}, 1, sizes, sizeof sizes);
        write_message(graph, GRAPH_INITIALIZER_FIELD, &tensor);
    }
    writer pad = make_node("Pad", inputs, "padded");
    if (opset < 11) add_attribute_ints(&pad, "pads", sizes, 8);
    if (opset < 11 && form->value != NULL) {
        add_attribute_float(&pad, "value", strtof(form->value, NULL));
    }
    if (form->mode != NULL) add_attribute_text(&pad, "mode", form->mode);
    add_node(graph, pad);
    if (form->has_axes) {
        writer tensor = make_tensor("axes", 7, (int64_t[]){4}, 1, (int64_t[]){0, 1, 2, 3}, 32);
        write_message(graph, GRAPH_INITIALIZER_FIELD, &tensor);
    }
    if (form->value == NULL || opset < 11) return;
    const bool is_free = strcmp(form->value, "free") == 0;
    if (is_free || strcmp(form->value, "default") == 0) add_input(graph, "value", 1, NULL, 0);
    if (is_free) return;
    const float value = strtof(form->value, NULL);
    writer tensor = make_tensor("value", 1, NULL, 0, &value, sizeof value);
    write_message(graph, GRAPH_INITIALIZER_FIELD, &tensor);
}

static void add_weights(writer *graph, const pad_form *form)
{
    const int64_t channels = CHANNELS + form->pads_channels;
    float weights[FILTERS * (CHANNELS + 1) * KERNEL * KERNEL], bias[FILTERS];
    data_random random = {5};
    data_fill(&random, weights, SP_COUNT_OF(weights));
    data_fill(&random, bias, FILTERS);
    if (form->has_inf) weights[4] = INFINITY;
    writer tensor = make_tensor("w", 1, (int64_t[]){FILTERS, channels, KERNEL, KERNEL}, 4, weights,
                                (size_t)(FILTERS * channels * KERNEL * KERNEL) * sizeof(float));
    write_message(graph, GRAPH_INITIALIZER_FIELD, &tensor);
    tensor = make_tensor("b", 1, (int64_t[]){FILTERS}, 1, bias, sizeof bias);
    write_message(graph, GRAPH_INITIALIZER_FIELD, &tensor);
}

static void add_window(writer *graph, const pad_form *form)
{
    writer window = form->is_pool ? make_node("AveragePool", "padded", "y")
                                  : make_node("Conv", "padded w b", "y");
    const int64_t stride = form->stride != 0 ? form->stride : 1;
    add_attribute_ints(&window, "strides", (int64_t[]){stride, stride}, 2);
    if (form->auto_pad != NULL) add_attribute_text(&window, "auto_pad", form->auto_pad);
    if (form->auto_pad == NULL) add_attribute_ints(&window, "pads", form->own, 4);
    if (form->is_pool) {
        add_attribute_ints(&window, "kernel_shape", (int64_t[]){KERNEL, KERNEL}, 2);
        if (form->counts) add_attribute_int(&window, "count_include_pad", 1);
        if (form->rounds_up) add_attribute_int(&window, "ceil_mode", 1);
    }
    add_node(graph, window);
    if (!form->is_pool) add_weights(graph, form);
}

static writer file_of(const pad_form *form)
{
    writer graph = {0};
    add_input(&graph, "x", 1, (int64_t[]){-1, CHANNELS, SIDE, SIDE + 1}, 4);
    add_pad(&graph, form);
    add_window(&graph, form);
    add_output(&graph, "y");
    if (form->is_read_twice) add_output(&graph, "padded");
    return make_model(&graph, form->opset != 0 ? form->opset : 14);
}

static const sp_graph *load(const pad_form *form)
{
    writer file = file_of(form);
    const sp_graph *loaded = NULL;
    CHECK_OK(sp__graph_load(file.bytes, file.len, &loaded));
    writer_free(&file);
    return loaded;
}

static bool has_pad(const sp_graph *graph)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        if (strcmp(graph->nodes[i].op->name, "Pad") == 0) return graph->nodes[i].is_live;
    }
    return false;
}

/* y is the first output. */
static void run(const sp_graph *graph, const sp_array *x, sp_array *outputs)
{
    const sp_plan_input port = {.dtype = SP_F32, .shape = x->shape};
    const sp_plan_request request = {.inputs = &port, .input_count = 1};
    const sp_graph_plan *plan = NULL;
    REQUIRE_OK(sp__plan_compile(graph, &request, &plan));
    CHECK_OK(sp__plan_check(plan));
    CHECK_OK(data_run_plan(plan, x, outputs));
    sp__plan_destroy(plan);
}

/* The bits of a model whose Pad has another reader, and stays. */
static void check_joined(const pad_form *form, data_random *random)
{
    pad_form apart = *form;
    apart.is_read_twice = true;
    const sp_graph *joined = load(form), *kept = load(&apart);
    REQUIRE(joined != NULL && kept != NULL);
    CHECK(!has_pad(joined) && has_pad(kept));
    for (int64_t images = 1; images <= 3; images += 2) {
        sp_array x = data_floats(random, &SHAPE(images, CHANNELS, SIDE, SIDE + 1));
        sp_array got[1] = {{0}}, want[2] = {{0}};
        run(joined, &x, got);
        run(kept, &x, want);
        CHECK_EQ_U64(got[0].bytes, want[0].bytes);
        REQUIRE(got[0].data != NULL && want[0].data != NULL);
        CHECK(memcmp(got[0].data, want[0].data, got[0].bytes) == 0);
        data_free(&x, 1);
        data_free(got, 1);
        data_free(want, 2);
    }
    sp__graph_destroy(joined);
    sp__graph_destroy(kept);
}

TEST(a_pad_of_zeros_becomes_the_padding_of_a_window_with_the_same_bits)
{
    const pad_form forms[] = {
        {.pads = {1, 1, 1, 1}},
        {.pads = {0, 2, 1, 0}, .own = {1, 0, 0, 3}},
        {.pads = {7, 5, 4, 6}, .stride = 2}, /* more than the kernel */
        {.pads = {1, 0, 0, 1}, .auto_pad = "VALID"},
        {.pads = {1, 1, 1, 1}, .mode = "constant", .value = "0"},
        {.pads = {1, 1, 1, 1}, .has_inf = true},
        {.pads = {1, 1, 1, 1}, .opset = 10},
        {.pads = {1, 1, 1, 1}, .value = "0", .opset = 10},
        {.is_pool = true, .pads = {1, 1, 1, 1}},
        {.is_pool = true, .pads = {0, 1, 2, 0}, .stride = 2},
        {.is_pool = true, .pads = {1, 1, 0, 0}, .own = {0, 1, 1, 0}, .counts = true},
        {.is_pool = true, .pads = {1, 2, 1, 2}, .auto_pad = "VALID"},
    };
    for (size_t i = 0; i < SP_COUNT_OF(forms); i++) {
        data_random random = {i + 1};
        check_joined(&forms[i], &random);
    }
}

TEST(other_pads_stay)
{
    const pad_form forms[] = {
        {.pads = {1, 1, 1, 1}, .value = "1"},
        {.pads = {1, 1, 1, 1}, .value = "-0"},
        {.pads = {1, 1, 1, 1}, .value = "1", .opset = 10},
        {.pads = {1, 1, 1, 1}, .value = "free"},
        {.pads = {1, 1, 1, 1}, .value = "default"},
        {.pads = {1, 1, 1, 1}, .mode = "reflect"},
        {.pads = {1, 1, 1, 1}, .mode = "edge"},
        {.pads = {-1, 1, 1, 1}},
        {.pads = {1, 1, 1, 1}, .pads_channels = true},
        {.pads = {1, 1, 1, 1}, .has_axes = true, .opset = 18},
        {.pads = {1, 1, 1, 1}, .is_read_twice = true},
        {.pads = {1, 1, 1, 1}, .auto_pad = "SAME_UPPER"},
        {.is_pool = true, .pads = {1, 1, 1, 1}, .own = {0, 0, 1, 0}}, /* not counted */
        {.is_pool = true, .pads = {1, 1, 1, 1}, .rounds_up = true},
    };
    for (size_t i = 0; i < SP_COUNT_OF(forms); i++) {
        const sp_graph *graph = load(&forms[i]);
        REQUIRE(graph != NULL);
        CHECK(has_pad(graph));
        if (!has_pad(graph)) test_note("form %zu", i);
        sp__graph_destroy(graph);
    }
}

TEST(a_load_without_memory_is_refused)
{
    const pad_form form = {.is_pool = true, .pads = {1, 1, 1, 1}};
    writer file = file_of(&form);
    check_load_without_memory(&file);
    writer_free(&file);
}

TEST_MAIN
