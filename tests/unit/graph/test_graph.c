/* SPDX-License-Identifier: Apache-2.0 */
/* Loading models: the contents of a graph; a malformed file gives an error and has no other
 * effect. */
#include "graph/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "onnx/onnx.h"
#include "support/model_data.h"
#include "support/onnx_writer.h"
#include "support/test.h"

/* ---- small models ---- */

static const int64_t dims_n4[] = {-1, 4};

static void add_floats(writer *graph, const char *name, const int64_t *dims, uint32_t rank,
                       const float *data, size_t count)
{
    writer tensor = make_tensor(name, 1, dims, rank, data, count * sizeof(float));
    write_message(graph, GRAPH_INITIALIZER_FIELD, &tensor);
}

static void add_longs(writer *graph, const char *name, const int64_t *data, int64_t count)
{
    writer tensor = make_tensor(name, 7, &count, 1, data, (size_t)count * sizeof(*data));
    write_message(graph, GRAPH_INITIALIZER_FIELD, &tensor);
}

/* Loads and frees; the model's bytes are in a block of exactly their size. */
static sp_status load_model(writer *graph, int64_t opset, const sp_graph **out)
{
    writer model = make_model(graph, opset);
    unsigned char *exact = malloc(model.len);
    memcpy(exact, model.bytes, model.len);
    const sp_graph *loaded = NULL;
    const sp_status status = sp__graph_load(exact, model.len, &loaded);
    free(exact);
    writer_free(&model);
    if (out != NULL) *out = loaded;
    else sp__graph_destroy(loaded);
    return status;
}

/* x[n,4] -> Relu -> y, with the nodes of `extra` before the output. */
static sp_status load_with(writer extra, const char *output)
{
    writer graph = {0};
    add_input(&graph, "x", 1, dims_n4, 2);
    add_node(&graph, make_node("Relu", "x", "r"));
    write_raw(&graph, extra.bytes, extra.len);
    writer_free(&extra);
    add_output(&graph, output);
    return load_model(&graph, 14, NULL);
}

TEST(ports_values_and_names_are_what_the_file_says)
{
    writer graph = {0};
    const sp_graph *loaded;
    add_input(&graph, "x", 1, dims_n4, 2);
    add_input(&graph, "free", 1, NULL, -1);
    add_node(&graph, make_node("Add", "x free", "sum"));
    add_node(&graph, make_node("Relu", "sum", "y"));
    add_node(&graph, make_node("Relu", "x", "dead"));
    add_output(&graph, "y");
    REQUIRE_OK(load_model(&graph, 14, &loaded));
    CHECK_EQ_INT(loaded->input_count, 2);
    CHECK_EQ_STR(loaded->inputs[0].name, "x");
    CHECK_EQ_INT(loaded->inputs[0].dims[0], -1);
    CHECK_EQ_STR(loaded->inputs[0].dim_names[0], "n");
    CHECK_EQ_INT(loaded->inputs[0].dims[1], 4);
    CHECK(!loaded->inputs[1].has_shape);
    CHECK_EQ_INT(loaded->opset, 14);
    CHECK_EQ_INT(loaded->node_count, 3);
    CHECK(loaded->nodes[0].is_live && loaded->nodes[1].is_live && !loaded->nodes[2].is_live);
    CHECK_EQ_STR(loaded->nodes[1].name, "y");
    CHECK_EQ_INT(sp__graph_name_find(loaded->input_names, 2, "free"), 1);
    CHECK(sp__graph_name_find(loaded->input_names, 2, "y") == SP_NO_VALUE);
    sp__graph_destroy(loaded);
}

TEST(ports_are_found_by_name_whatever_their_order)
{
    enum { PORTS = 100 };
    writer graph = {0};
    const sp_graph *loaded;
    char name[PORTS][16];
    for (uint32_t i = 0; i < PORTS; i++) {
        snprintf(name[i], sizeof name[i], "x%u", i * 37 % PORTS);
        add_input(&graph, name[i], 1, NULL, -1);
    }
    add_node(&graph, make_node("Neg", name[0], "y"));
    add_output(&graph, "y");
    add_output(&graph, "x5");
    add_output(&graph, "y");
    REQUIRE_OK(load_model(&graph, 14, &loaded));
    for (uint32_t i = 0; i < PORTS; i++) {
        CHECK_EQ_INT(sp__graph_name_find(loaded->input_names, PORTS, name[i]), i);
    }
    CHECK(sp__graph_name_find(loaded->input_names, PORTS, "x") == SP_NO_VALUE);
    CHECK(sp__graph_name_find(loaded->input_names, PORTS, "x100") == SP_NO_VALUE);
    CHECK(sp__graph_name_find(loaded->input_names, PORTS, "y") == SP_NO_VALUE);
    CHECK(sp__graph_name_find(loaded->default_names, 0, "x5") == SP_NO_VALUE);
    CHECK_EQ_INT(sp__graph_name_find(loaded->output_names, 3, "y"), 0); /* the first of two */
    CHECK_EQ_INT(sp__graph_name_find(loaded->output_names, 3, "x5"), 1);
    sp__graph_destroy(loaded);
}

TEST(constants_fold_and_weights_that_nobody_reads_go)
{
    writer graph = {0};
    const sp_graph *loaded;
    const float w[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    add_input(&graph, "x", 1, dims_n4, 2);
    add_floats(&graph, "w", (int64_t[]){12}, 1, w, 12);
    add_floats(&graph, "unused", (int64_t[]){12}, 1, w, 12);
    add_longs(&graph, "shape", (int64_t[]){4, 3}, 2);
    add_node(&graph, make_node("Reshape", "w shape", "matrix"));
    add_node(&graph, make_node("MatMul", "x matrix", "y"));
    add_output(&graph, "y");
    REQUIRE_OK(load_model(&graph, 14, &loaded));
    CHECK(loaded->nodes[0].is_folded);
    /* Only the matrix remains. */
    CHECK_EQ_INT(loaded->weight_count, 1);
    CHECK_EQ_U64(loaded->weight_bytes, 4 * 3 * sizeof(float));
    sp__graph_destroy(loaded);
}

TEST(weights_stay_as_the_file_has_them_and_say_who_reads_them)
{
    writer graph = {0};
    const sp_graph *loaded;
    const float w[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    add_input(&graph, "x", 1, dims_n4, 2);
    add_floats(&graph, "packed", (int64_t[]){4, 3}, 2, w, 12);
    add_floats(&graph, "both", (int64_t[]){3, 4}, 2, w, 12);
    add_floats(&graph, "plain", (int64_t[]){4}, 1, w, 4);
    add_node(&graph, make_node("MatMul", "x packed", "a"));
    add_node(&graph, make_node("MatMul", "a both", "b"));
    add_node(&graph, make_node("Relu", "b", "c"));
    add_node(&graph, make_node("Add", "c plain", "y"));
    add_output(&graph, "y");
    add_output(&graph, "both");
    REQUIRE_OK(load_model(&graph, 14, &loaded));
    const bool want[3] = {true, false, false};
    REQUIRE(loaded->weight_count == 3);
    for (uint32_t i = 0; i < 3; i++) {
        const sp_weight *weight = &loaded->weights[i];
        CHECK(weight->is_only_packed == want[i]);
        CHECK_EQ_MEM(weight->data, w, (size_t)weight->bytes);
    }
    sp__graph_destroy(loaded);
}

TEST(initializers_that_are_inputs_are_defaults)
{
    writer graph = {0};
    const sp_graph *loaded;
    const float b[4] = {1, 2, 3, 4};
    add_input(&graph, "x", 1, dims_n4, 2);
    add_input(&graph, "b", 1, (int64_t[]){4}, 1);
    add_floats(&graph, "b", (int64_t[]){4}, 1, b, 4);
    add_node(&graph, make_node("Add", "x b", "y"));
    add_output(&graph, "y");
    REQUIRE_OK(load_model(&graph, 14, &loaded));
    CHECK_EQ_INT(loaded->input_count, 1);
    CHECK_EQ_INT(loaded->default_count, 1);
    CHECK_EQ_STR(loaded->defaults[0].name, "b");
    sp__graph_destroy(loaded);
}

static writer one_node(const char *op, const char *inputs, const char *outputs)
{
    writer extra = {0};
    add_node(&extra, make_node(op, inputs, outputs));
    return extra;
}

TEST(graphs_that_mean_nothing_are_refused_with_node_and_value)
{
    CHECK_OK(load_with((writer){0}, "r"));
    CHECK_STATUS(load_with((writer){0}, "q"), SP_CORRUPT);
    CHECK_MESSAGE("nothing produces output 'q'");
    CHECK_STATUS(load_with(one_node("Foo", "r", "y"), "y"), SP_UNSUPPORTED);
    CHECK_MESSAGE("node 'y': not supported: op Foo");
    CHECK_STATUS(load_with(one_node("Relu", "later", "y"), "y"), SP_CORRUPT);
    CHECK_MESSAGE("node 'y' (Relu): uses 'later', which nothing before it produces");
    CHECK_STATUS(load_with(one_node("Relu", "y", "y"), "y"), SP_CORRUPT);
    CHECK_STATUS(load_with(one_node("Relu", "r", "x"), "x"), SP_CORRUPT);
    CHECK_MESSAGE("two values are named 'x'");
    CHECK_STATUS(load_with(one_node("Relu", "r", "r"), "r"), SP_CORRUPT);
    CHECK_STATUS(load_with(one_node("Relu", "r r", "y"), "y"), SP_CORRUPT);
    CHECK_MESSAGE("2 inputs are given; the op takes 1 to 1");
    CHECK_STATUS(load_with(one_node("Relu", "-", "y"), "y"), SP_CORRUPT);
    CHECK_MESSAGE("input 0 is left out");
    CHECK_STATUS(load_with(one_node("Relu", "r", ""), "r"), SP_CORRUPT);
    CHECK_STATUS(load_with(one_node("Relu", "r", "y another"), "y"), SP_UNSUPPORTED);
    writer cycle = {0};
    add_node(&cycle, make_node("Add", "r b", "a"));
    add_node(&cycle, make_node("Relu", "a", "b"));
    CHECK_STATUS(load_with(cycle, "b"), SP_CORRUPT);
    CHECK_MESSAGE("cycle");
    writer domain = {0}, node = make_node("Relu", "r", "y");
    write_text(&node, 7, "com.example");
    add_node(&domain, node);
    CHECK_STATUS(load_with(domain, "y"), SP_CORRUPT);
    CHECK_MESSAGE("no version of the opset 'com.example'");
}

TEST(attributes_are_checked_against_the_schema)
{
    writer unknown = make_node("Relu", "r", "y"), wrong = make_node("Flatten", "r", "y");
    writer extra = {0}, extra2 = {0}, extra3 = {0}, extra4 = {0};
    add_attribute_int(&unknown, "alpha", 1);
    add_node(&extra, unknown);
    CHECK_STATUS(load_with(extra, "y"), SP_UNSUPPORTED);
    CHECK_MESSAGE("attribute 'alpha' is not supported");
    add_attribute_text(&wrong, "axis", "one");
    add_node(&extra2, wrong);
    CHECK_STATUS(load_with(extra2, "y"), SP_CORRUPT);
    CHECK_MESSAGE("attribute 'axis' is of type string; expected int");
    add_node(&extra3, make_node("Concat", "r r", "y"));
    CHECK_STATUS(load_with(extra3, "y"), SP_CORRUPT);
    CHECK_MESSAGE("attribute 'axis' is missing");
    add_node(&extra4, make_node("Constant", "", "y"));
    CHECK_STATUS(load_with(extra4, "y"), SP_CORRUPT);
}

TEST(opset_versions_bound_every_op)
{
    for (int64_t opset = -1; opset < 40; opset++) {
        writer graph = {0};
        add_input(&graph, "x", 1, dims_n4, 2);
        add_node(&graph, make_node("Add", "x x", "y"));
        add_output(&graph, "y");
        const bool is_known = opset >= 6 && opset <= 27;
        CHECK_STATUS(load_model(&graph, opset, NULL), is_known ? SP_OK : SP_UNSUPPORTED);
    }
}

/* ---- hostile files ---- */

TEST(files_without_their_parts_are_refused)
{
    const sp_graph *graph;
    CHECK_STATUS(sp__graph_load("", 0, &graph), SP_CORRUPT);
    CHECK_MESSAGE("not an ONNX model: it holds no graph");
    CHECK_STATUS(sp__graph_load(NULL, 0, &graph), SP_CORRUPT);
    CHECK_STATUS(sp__graph_load(NULL, 5, &graph), SP_INVALID);
    CHECK_STATUS(sp__graph_load("this is no model at all", 23, &graph), SP_CORRUPT);
    CHECK_MESSAGE("not an ONNX model");
    CHECK_STATUS(sp__graph_load("some text or picture", 20, &graph), SP_CORRUPT);
    CHECK_MESSAGE("not an ONNX model");
    /* A version, and a truncated graph. */
    CHECK_STATUS(sp__graph_load("\x08\x08\x3a\x7fgraph", 9, &graph), SP_CORRUPT);
    CHECK_MESSAGE("malformed file: ModelProto field 7");
    writer no_opset = {0}, inner = {0};
    add_input(&inner, "x", 1, (int64_t[]){1}, 1);
    add_node(&inner, make_node("Relu", "x", "y"));
    add_output(&inner, "y");
    write_message(&no_opset, 7, &inner);
    CHECK_STATUS(sp__graph_load(no_opset.bytes, no_opset.len, &graph), SP_CORRUPT);
    CHECK_MESSAGE("no version of the opset 'ai.onnx'");
    write_bytes(&no_opset, 7, "", 0);
    CHECK_STATUS(sp__graph_load(no_opset.bytes, no_opset.len, &graph), SP_CORRUPT);
    CHECK_MESSAGE("more than one");
    writer_free(&no_opset);
    writer empty = {0};
    CHECK_STATUS(load_model(&empty, 14, NULL), SP_CORRUPT);
    CHECK_MESSAGE("no output");
}

/* graph -> node -> attribute -> graph, `depth` times. */
static writer nested_graph(int depth)
{
    writer graph = {0};
    for (int i = 0; i < depth; i++) {
        writer node = make_node("If", "c", "y");
        add_attribute_graph(&node, "then_branch", &graph);
        graph = (writer){0};
        add_node(&graph, node);
    }
    return graph;
}

TEST(nesting_is_bounded)
{
    const sp_onnx_model *model;
    for (int depth = 6; depth < 500; depth += depth < 10 ? 1 : 100) {
        writer graph = nested_graph(depth), file = make_model(&graph, 14);
        const sp_status want = depth < SP_ONNX_MAX_DEPTH ? SP_OK : SP_EXHAUSTED;
        const sp_status status = sp__onnx_read(file.bytes, file.len, &model);
        CHECK_STATUS(status, want);
        if (status == SP_OK) sp__onnx_destroy(model);
        writer_free(&file);
    }
}

TEST(operator_sets_are_bounded)
{
    const sp_onnx_model *model;
    for (uint32_t more = 1023; more <= 1024; more++) { /* beside the one of every model */
        writer graph = {0}, file = make_model(&graph, 14);
        for (uint32_t i = 0; i < more; i++) {
            writer import = {0};
            write_int(&import, 2, 1);
            write_message(&file, 8, &import);
        }
        const sp_status status = sp__onnx_read(file.bytes, file.len, &model);
        CHECK_STATUS(status, more == 1023 ? SP_OK : SP_EXHAUSTED);
        if (status == SP_OK) sp__onnx_destroy(model);
        writer_free(&file);
    }
    CHECK_MESSAGE("the file imports 1025 operator sets, the limit is 1024");
}

TEST(memory_is_bounded_by_the_size_of_the_file)
{
    /* Two bytes of file for each, but a table row of a hundred. */
    writer graph = {0};
    for (int i = 0; i < 1000000; i++) write_raw(&graph, "\x0a\x00", 2);
    CHECK_STATUS(load_model(&graph, 14, NULL), SP_EXHAUSTED);
    CHECK_MESSAGE("tables");
    writer node = make_node("Concat", "", "y"), graph2 = {0};
    for (int i = 0; i < 5000; i++) write_text(&node, 1, "x");
    add_attribute_int(&node, "axis", 0);
    add_input(&graph2, "x", 1, dims_n4, 2);
    add_node(&graph2, node);
    add_output(&graph2, "y");
    CHECK_STATUS(load_model(&graph2, 14, NULL), SP_EXHAUSTED);
}

TEST(a_weight_without_elements_is_packed_in_no_time_however_wide_it_is)
{
    writer graph = {0};
    writer weight = make_tensor("w", 1, (int64_t[]){0, INT64_C(1) << 38}, 2, NULL, 0);
    write_message(&graph, GRAPH_INITIALIZER_FIELD, &weight);
    add_input(&graph, "x", 1, (int64_t[]){0, 0}, 2);
    add_node(&graph, make_node("MatMul", "x w", "y"));
    add_output(&graph, "y");
    const sp_graph *loaded;
    REQUIRE_OK(load_model(&graph, 14, &loaded));
    sp__graph_destroy(loaded);
}

/* ---- blazeface, cut and flipped ---- */

static unsigned char *read_blazeface(size_t *len)
{
    char path[DATA_PATH_BYTES];
    if (!data_path(path, "models/blazeface_front_128/model.onnx")) return NULL;
    return data_read(path, len);
}

TEST(a_model_cut_at_any_length_is_refused)
{
    size_t len;
    unsigned char *bytes = read_blazeface(&len);
    if (bytes == NULL) SKIP("shared/data is not there (set STREAMPOOL_TEST_DATA)");
    uint64_t loaded = 0;
    for (size_t cut = 0; cut < len; cut++) {
        const sp_graph *graph = NULL;
        /* An exact block near the ends, where AddressSanitizer must detect every overrun. */
        const bool is_exact = cut < 4096 || cut + 256 > len;
        unsigned char *exact = is_exact ? malloc(cut + 1) : NULL;
        if (is_exact) memcpy(exact, bytes, cut);
        const sp_status status = sp__graph_load(is_exact ? exact : bytes, cut, &graph);
        loaded += status == SP_OK;
        if (status != SP_OK) CHECK(status == SP_CORRUPT && sp_last_error()[0] != '\0');
        sp__graph_destroy(graph);
        free(exact);
    }
    CHECK_EQ_U64(loaded, 0);
    free(bytes);
}

/* A model with a flipped bit may load (a weight, a pad); then it must compile or fail cleanly, and
 * keep its invariants. */
static void try_flipped(const unsigned char *bytes, size_t len, uint64_t *loaded)
{
    const sp_graph *graph = NULL;
    if (sp__graph_load(bytes, len, &graph) != SP_OK) {
        CHECK(sp_last_error()[0] != '\0');
        return;
    }
    ++*loaded;
    const sp_plan_input input = {.dtype = SP_F32, .shape = {.rank = 4, .dims = {1, 128, 128, 3}}};
    const sp_plan_request request = {.inputs = &input, .input_count = 1};
    const sp_graph_plan *plan = NULL;
    if (graph->input_count == 1 && sp__plan_compile(graph, &request, &plan) == SP_OK) {
        CHECK_OK(sp__plan_check(plan));
    }
    sp__plan_destroy(plan);
    sp__graph_destroy(graph);
}

TEST(a_model_with_flipped_bytes_loads_or_is_refused)
{
    size_t len;
    unsigned char *bytes = read_blazeface(&len);
    if (bytes == NULL) SKIP("shared/data is not there (set STREAMPOOL_TEST_DATA)");
    data_random random = {31};
    const uint64_t count = test_count(100000, 10000);
    uint64_t loaded = 0;
    for (uint64_t i = 0; i < count; i++) {
        size_t at[3];
        unsigned char old[3];
        const size_t flips = 1 + data_next(&random) % 3;
        for (size_t k = 0; k < flips; k++) {
            at[k] = data_next(&random) % len;
            /* Half of them in the structure, before the weights. */
            if (i % 2 == 0) at[k] %= 40000;
            old[k] = bytes[at[k]];
            bytes[at[k]] = (unsigned char)data_next(&random);
        }
        try_flipped(bytes, len, &loaded);
        for (size_t k = flips; k-- > 0;) bytes[at[k]] = old[k];
    }
    test_note("%llu of %llu flipped files loaded", (unsigned long long)loaded,
              (unsigned long long)count);
    free(bytes);
}

/* ---- failed allocations ---- */

TEST(every_failed_allocation_of_load_and_compile_is_reported)
{
    writer graph = {0};
    const float w[16] = {1, 2, 3};
    add_input(&graph, "x", 1, dims_n4, 2);
    add_floats(&graph, "w", (int64_t[]){4, 4}, 2, w, 16);
    add_floats(&graph, "v", (int64_t[]){16}, 1, w, 16);
    add_longs(&graph, "shape", (int64_t[]){4, 4}, 2);
    add_node(&graph, make_node("Reshape", "v shape", "m"));
    add_node(&graph, make_node("MatMul", "x w", "a"));
    add_node(&graph, make_node("MatMul", "a m", "b"));
    writer split = make_node("Split", "b", "s0 s1"), transpose = make_node("Transpose", "b", "t");
    add_attribute_int(&split, "axis", 1);
    add_node(&graph, split);
    add_node(&graph, transpose);
    add_node(&graph, make_node("MatMul", "t s0", "y"));
    add_output(&graph, "y");
    add_output(&graph, "s1");
    add_output(&graph, "m");
    writer model = make_model(&graph, 12);
    const sp_plan_input input = {.dtype = SP_F32, .shape = {.rank = 2, .dims = {3, 4}}};
    const sp_plan_request request = {.inputs = &input, .input_count = 1};
    uint64_t failed = 0;
    for (uint64_t skip = 0;; skip++) {
        const sp_graph *loaded = NULL;
        const sp_graph_plan *plan = NULL;
        sp_heap_fail_after(skip);
        sp_status status = sp__graph_load(model.bytes, model.len, &loaded);
        if (status == SP_OK) status = sp__plan_compile(loaded, &request, &plan);
        const int has_failed = sp_heap_has_failed();
        sp_heap_fail_after(UINT64_MAX);
        CHECK_STATUS(status, has_failed ? SP_OUT_OF_MEMORY : SP_OK);
        if (plan != NULL) CHECK_OK(sp__plan_check(plan));
        sp__plan_destroy(plan);
        sp__graph_destroy(loaded);
        if (!has_failed) break;
        failed++;
    }
    CHECK(failed > 20);
    test_note("%llu allocations, each failed once", (unsigned long long)failed);
    writer_free(&model);
}

TEST(a_list_attribute_with_an_empty_packed_field_has_no_values)
{
    writer attribute = {0};
    write_text(&attribute, 1, "perm");
    write_bytes(&attribute, 8, "", 0); /* ints, packed, none */
    write_int(&attribute, 20, 7);
    writer node = make_node("Transpose", "x", "y");
    write_message(&node, 5, &attribute);
    writer graph = {0};
    add_node(&graph, node);
    add_input(&graph, "x", 1, dims_n4, 2);
    writer output = make_value("y", 1, dims_n4, -1);
    write_message(&graph, GRAPH_OUTPUT_FIELD, &output);
    writer file = make_model(&graph, 13);
    const sp_graph *loaded = NULL;
    CHECK_OK(sp__graph_load(file.bytes, file.len, &loaded));
    sp__graph_destroy(loaded);
    writer_free(&file);
}

TEST_MAIN
