/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of a file: calls become nodes, and every file, however its functions call each other,
 * costs bounded time and memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "graph/graph.h"
#include "support/model_data.h"
#include "support/onnx_writer.h"
#include "support/test.h"

static sp_status load(writer *functions, writer *graph, const sp_graph **out)
{
    writer file = make_model_with(functions, graph);
    *out = NULL;
    const sp_status status = sp__graph_load(file.bytes, file.len, out);
    writer_free(&file);
    return status;
}

static const int64_t dims_x[] = {2, 3};

/* x -> nodes -> y */
static writer graph_of(writer node)
{
    writer graph = {0};
    add_input(&graph, "x", 1, dims_x, 2);
    add_node(&graph, node);
    add_output(&graph, "y");
    return graph;
}

static void check_refused(writer functions, writer node, sp_status wanted, const char *message)
{
    const sp_graph *loaded = NULL;
    writer graph = graph_of(node);
    CHECK_STATUS(load(&functions, &graph, &loaded), wanted);
    CHECK_MESSAGE(message);
    sp__graph_destroy(loaded);
}

/* ---- running ---- */

/* y for x = -2, -1, 0, 1, 2, 3. */
static void run(const sp_graph *graph, float *y)
{
    sp_array x = {0}, out[1] = {0};
    REQUIRE_OK(sp__array_init(&x, SP_F32, &SHAPE(2, 3)));
    for (int i = 0; i < 6; i++) ((float *)x.data)[i] = (float)(i - 2);
    const sp_plan_input input = {.dtype = SP_F32, .shape = x.shape};
    const sp_plan_request request = {.inputs = &input, .input_count = 1};
    const sp_graph_plan *plan = NULL;
    REQUIRE_OK(sp__plan_compile(graph, &request, &plan));
    CHECK_OK(data_run_plan(plan, &x, out));
    REQUIRE_EQ_U64(out[0].bytes, 6 * sizeof *y);
    memcpy(y, out[0].data, out[0].bytes);
    sp__plan_destroy(plan);
    data_free(&x, 1);
    data_free(out, 1);
}

static void check_run(writer functions, writer node, const float *wanted)
{
    const sp_graph *loaded = NULL;
    float y[6] = {0};
    writer graph = graph_of(node);
    REQUIRE_OK(load(&functions, &graph, &loaded));
    CHECK_EQ_STR(loaded->outputs[0].name, "y");
    run(loaded, y);
    for (int i = 0; i < 6; i++) CHECK(data_is_same(y[i], wanted[i]));
    sp__graph_destroy(loaded);
}

/* ---- effects of calls ---- */

/* double(a) = a + a, twice(a) = double(double(a)) */
static writer doubling(void)
{
    writer functions = {0};
    writer f = make_function("double", "a", "sum");
    add_function_node(&f, make_node("Add", "a a", "sum"));
    add_function(&functions, f);
    f = make_function("twice", "a", "b");
    add_function_node(&f, make_call("double", "a", "sum"));
    add_function_node(&f, make_call("double", "sum", "b"));
    add_function(&functions, f);
    return functions;
}

TEST(a_call_runs_the_functions_nodes_and_calls_may_stand_in_functions)
{
    check_run(doubling(), make_call("double", "x", "y"), (float[]){-4, -2, 0, 2, 4, 6});
    check_run(doubling(), make_call("twice", "x", "y"), (float[]){-8, -4, 0, 4, 8, 12});
}

TEST(nodes_are_named_after_their_call)
{
    const sp_graph *loaded = NULL;
    writer functions = doubling();
    writer node = make_call("twice", "x", "y");
    write_text(&node, 3, "outer");
    writer graph = graph_of(node);
    REQUIRE_OK(load(&functions, &graph, &loaded));
    CHECK_EQ_INT(loaded->node_count, 2);
    CHECK_EQ_STR(loaded->nodes[0].name, "outer/sum/sum");
    CHECK_EQ_STR(loaded->nodes[1].name, "outer/b/sum");
    sp__graph_destroy(loaded);
}

/* leak(a; alpha = 0.5) = LeakyRelu(a, alpha), which outer(a; slope) calls with its own
 * attribute. */
static writer leaking(void)
{
    writer functions = {0}, value = {0};
    writer f = make_function("leak", "a", "b");
    writer node = make_node("LeakyRelu", "a", "b");
    add_reference(&node, "alpha", "slope", 1);
    add_function_node(&f, node);
    write_text(&f, 6, "slope");
    write_text(&value, 1, "slope");
    write_float(&value, 2, 0.5f);
    write_int(&value, 20, 1);
    write_message(&f, 11, &value);
    add_function(&functions, f);
    f = make_function("outer", "a", "b");
    node = make_call("leak", "a", "b");
    add_reference(&node, "slope", "angle", 0);
    add_function_node(&f, node);
    add_function(&functions, f);
    return functions;
}

static writer call_with(const char *function, const char *attribute, float number)
{
    writer node = make_call(function, "x", "y"), value = {0};
    write_text(&value, 1, attribute);
    write_float(&value, 2, number);
    write_int(&value, 20, 1);
    write_message(&node, 5, &value);
    return node;
}

TEST(attributes_come_from_the_call_or_the_default_through_all_calls)
{
    check_run(leaking(), call_with("leak", "slope", 2), (float[]){-4, -2, 0, 1, 2, 3});
    check_run(leaking(), make_call("leak", "x", "y"), (float[]){-1, -0.5f, 0, 1, 2, 3});
    check_run(leaking(), call_with("outer", "angle", 4), (float[]){-8, -4, 0, 1, 2, 3});
    check_run(leaking(), make_call("outer", "x", "y"), (float[]){-1, -0.5f, 0, 1, 2, 3});
    writer node = make_call("leak", "x", "y");
    add_attribute_int(&node, "slope", 1);
    check_refused(leaking(), node, SP_CORRUPT,
                  "attribute 'alpha' is of type float, but the call passes int");
    writer graph = {0};
    node = make_call("leak", "x", "y");
    add_attribute_graph(&node, "slope", &graph);
    check_refused(leaking(), node, SP_UNSUPPORTED,
                  "attribute 'alpha' is a graph passed to a function");
}

TEST(an_attribute_without_value_is_left_out)
{
    writer functions = {0};
    writer f = make_function("leak", "a", "b");
    writer node = make_node("LeakyRelu", "a", "b");
    add_reference(&node, "alpha", "slope", 1);
    add_function_node(&f, node);
    add_function(&functions, f);
    check_run(functions, make_call("leak", "x", "y"), /* the op's default */
              (float[]){-2 * 0.01f, -0.01f, 0, 1, 2, 3});
}

TEST(inputs_may_be_left_out_and_outputs_too)
{
    writer functions = {0};
    writer f = make_function("clip", "a low high", "b unused");
    add_function_node(&f, make_node("Clip", "a low high", "b"));
    add_function_node(&f, make_node("Relu", "a", "unused"));
    add_function(&functions, f);
    f = make_function("through", "a low", "b");
    add_function_node(&f, make_call("clip", "a low", "b"));
    add_function(&functions, f);
    writer copy = {0};
    write_raw(&copy, functions.bytes, functions.len);
    check_run(functions, make_call("clip", "x", "y"), (float[]){-2, -1, 0, 1, 2, 3});
    check_run(copy, make_call("through", "x -", "y"), (float[]){-2, -1, 0, 1, 2, 3});
}

TEST(an_output_may_be_an_input_and_have_several_names)
{
    const sp_graph *loaded = NULL;
    writer functions = {0}, graph = {0};
    writer f = make_function("same", "a", "a");
    add_function(&functions, f);
    add_input(&graph, "x", 1, dims_x, 2);
    add_node(&graph, make_node("Relu", "x", "r"));
    add_node(&graph, make_call("same", "r", "y"));
    add_node(&graph, make_call("same", "r", "z"));
    add_output(&graph, "y");
    add_output(&graph, "z");
    REQUIRE_OK(load(&functions, &graph, &loaded));
    CHECK_EQ_STR(loaded->outputs[0].name, "y");
    CHECK_EQ_STR(loaded->outputs[1].name, "z");
    CHECK_EQ_INT(loaded->outputs[0].value, loaded->outputs[1].value);
    sp__graph_destroy(loaded);
}

TEST(a_function_goes_before_an_op_of_its_name_and_has_opsets_of_its_own)
{
    writer functions = {0}, import = {0};
    writer f = {0}, node = make_node("Neg", "a", "b");
    write_text(&f, 1, "Relu");
    write_text(&f, 4, "a");
    write_text(&f, 5, "b");
    write_message(&f, 7, &node);
    write_text(&import, 1, "ai.onnx");
    write_int(&import, 2, 13);
    write_message(&f, 9, &import);
    add_function(&functions, f);
    check_run(functions, make_node("Relu", "x", "y"), (float[]){2, 1, -0.0f, -1, -2, -3});
}

TEST(branches_in_a_function_see_its_names_and_attributes)
{
    writer functions = {0}, f = make_function("choose", "a flag", "b"), branches[2] = {{0}};
    for (int i = 0; i < 2; i++) {
        writer inside = make_node(i == 0 ? "LeakyRelu" : "Neg", "a", "r");
        if (i == 0) add_reference(&inside, "alpha", "slope", 1);
        add_node(&branches[i], inside);
        add_output(&branches[i], "r");
    }
    writer node = make_node("If", "flag", "b");
    add_attribute_graph(&node, "then_branch", &branches[0]);
    add_attribute_graph(&node, "else_branch", &branches[1]);
    add_function_node(&f, node);
    add_function(&functions, f);
    writer graph = {0};
    const sp_graph *loaded = NULL;
    const unsigned char yes = 1;
    float y[6] = {0};
    add_input(&graph, "x", 1, dims_x, 2);
    writer flag = make_tensor("on", 9, (int64_t[]){1}, 1, &yes, 1);
    write_message(&graph, GRAPH_INITIALIZER_FIELD, &flag);
    node = make_call("choose", "x on", "y");
    writer value = {0};
    write_text(&value, 1, "slope");
    write_float(&value, 2, 3);
    write_int(&value, 20, 1);
    write_message(&node, 5, &value);
    add_node(&graph, node);
    add_output(&graph, "y");
    REQUIRE_OK(load(&functions, &graph, &loaded));
    run(loaded, y);
    const float wanted[6] = {-6, -3, 0, 1, 2, 3};
    for (int i = 0; i < 6; i++) CHECK(data_is_same(y[i], wanted[i]));
    sp__graph_destroy(loaded);
}

/* All nodes are calls, so the file need not import ai.onnx; the functions do. */
TEST(a_model_of_calls_alone_names_no_version_of_onnx)
{
    writer graph = graph_of(make_call("double", "x", "y")), file = {0}, import = {0};
    writer functions = doubling();
    write_int(&file, 1, 8);
    write_text(&import, 1, "own");
    write_int(&import, 2, 1);
    write_message(&file, 8, &import);
    write_message(&file, 7, &graph);
    write_raw(&file, functions.bytes, functions.len);
    writer_free(&functions);
    const sp_graph *loaded = NULL;
    float y[6] = {0};
    REQUIRE_OK(sp__graph_load(file.bytes, file.len, &loaded));
    writer_free(&file);
    CHECK_EQ_INT(loaded->opset, 0);
    run(loaded, y);
    for (int i = 0; i < 6; i++) CHECK(y[i] == (float)(2 * (i - 2)));
    sp__graph_destroy(loaded);
}

/* ---- refusals ---- */

TEST(wrong_calls_and_functions_are_refused_by_name)
{
    check_refused(doubling(), make_call("double", "x x", "y"), SP_CORRUPT,
                  "is called with 2 inputs and 1 outputs; the function has 1 and 1");
    check_refused(doubling(), make_call("double", "gone", "y"), SP_CORRUPT,
                  "in 'y' (double): uses 'gone'");
    check_refused(doubling(), make_call("triple", "x", "y"), SP_CORRUPT, "opset 'own'");
    check_refused(doubling(), make_call("double", "x", "x"), SP_CORRUPT,
                  "two values are named 'x'");
    writer node = make_node("LeakyRelu", "x", "y");
    add_reference(&node, "alpha", "slope", 1);
    check_refused((writer){0}, node, SP_CORRUPT, "outside of any function");

    writer functions = {0}, f = make_function("bad", "a", "b");
    add_function_node(&f, make_node("Relu", "x", "b")); /* the caller's name */
    add_function(&functions, f);
    check_refused(functions, make_call("bad", "x", "y"), SP_CORRUPT,
                  "in 'y' (bad): node 'y/b' (Relu): uses 'x'");
    functions = (writer){0};
    f = make_function("bad", "a", "b");
    add_function(&functions, f);
    check_refused(functions, make_call("bad", "x", "y"), SP_CORRUPT, "nothing produces output 'b'");
    functions = doubling();
    add_function(&functions, make_function("double", "a", "a"));
    check_refused(functions, make_call("double", "x", "y"), SP_CORRUPT,
                  "two functions are named 'double'");
    functions = (writer){0};
    add_function(&functions, make_function("bad", "a a", "a"));
    check_refused(functions, make_call("bad", "x x", "y"), SP_CORRUPT, "two inputs");
}

TEST(functions_that_call_themselves_are_refused)
{
    writer functions = {0}, f = make_function("self", "a", "b");
    add_function_node(&f, make_call("self", "a", "b"));
    add_function(&functions, f);
    check_refused(functions, make_call("self", "x", "y"), SP_CORRUPT, "'self': calls itself");
    functions = (writer){0};
    f = make_function("ping", "a", "b");
    add_function_node(&f, make_call("pong", "a", "b"));
    add_function(&functions, f);
    f = make_function("pong", "a", "b");
    add_function_node(&f, make_call("ping", "a", "b"));
    add_function(&functions, f);
    check_refused(functions, make_call("pong", "x", "y"), SP_CORRUPT, "calls itself");
}

/* f0 has a node, or none; each further function calls the previous one `calls` times. */
static writer tower(uint32_t height, uint32_t calls, bool has_node)
{
    writer functions = {0};
    char name[16], below[16];
    writer f = make_function("f0", "a", has_node ? "b" : "a");
    if (has_node) add_function_node(&f, make_node("Relu", "a", "b"));
    add_function(&functions, f);
    for (uint32_t i = 1; i < height; i++) {
        snprintf(name, sizeof name, "f%u", i);
        snprintf(below, sizeof below, "f%u", i - 1);
        f = make_function(name, "a", "b");
        for (uint32_t k = 0; k < calls; k++) {
            char output[16] = "b";
            if (k > 0) snprintf(output, sizeof output, "b%u", k);
            add_function_node(&f, make_call(below, "a", output));
        }
        add_function(&functions, f);
    }
    return functions;
}

TEST(calls_inside_calls_have_a_depth_and_a_number_and_a_small_file_cannot_exceed_them)
{
    char top[16];
    check_run(tower(32, 1, true), make_call("f31", "x", "y"), (float[]){0, 0, 0, 1, 2, 3});
    check_refused(tower(33, 1, true), make_call("f32", "x", "y"), SP_EXHAUSTED, "32 deep");
    const uint64_t start = sp_clock_now();
    check_refused(tower(5000, 1, true), make_call("f4999", "x", "y"), SP_EXHAUSTED, "32 deep");
    for (uint32_t height = 17; height <= 31; height += 7) {
        for (int has_node = 0; has_node < 2; has_node++) {
            snprintf(top, sizeof top, "f%u", height - 1);
            check_refused(tower(height, 2, has_node != 0), make_call(top, "x", "y"), SP_EXHAUSTED,
                          "more than 65536 nodes");
        }
    }
    check_refused(tower(12, 3, false), make_call("f11", "x", "y"), SP_EXHAUSTED, "more than");
    CHECK(sp_clock_now() - start < UINT64_C(10000000000));
    /* Many small calls are allowed. */
    check_run(tower(13, 2, true), make_call("f12", "x", "y"), (float[]){0, 0, 0, 1, 2, 3});
}

/* f0 adds a constant of 1 MiB to a; each further function calls the previous one twice. */
enum { MIB = 1 << 20 };

static writer mib_tensor(const char *name)
{
    static const float data[MIB / sizeof(float)];
    return make_tensor(name, 1, (int64_t[]){MIB / 4}, 1, data, MIB);
}

typedef enum big_form { BIG_CONSTANT, BIG_REFERENCE, BIG_INITIALIZER } big_form;

static void add_big(writer *f, big_form form)
{
    if (form == BIG_INITIALIZER) {
        writer branches[2] = {{0}, {0}};
        for (int i = 0; i < 2; i++) {
            writer tensor = mib_tensor("c");
            write_message(&branches[i], GRAPH_INITIALIZER_FIELD, &tensor);
            add_node(&branches[i], make_node("Add", "a c", "d"));
            add_output(&branches[i], "d");
        }
        writer node = make_node("If", "on", "b");
        add_attribute_graph(&node, "then_branch", &branches[0]);
        add_attribute_graph(&node, "else_branch", &branches[1]);
        add_function_node(f, node);
        return;
    }
    writer node = make_node("Constant", "", "c");
    if (form == BIG_REFERENCE) {
        add_reference(&node, "value", "big", 4);
    } else {
        writer tensor = mib_tensor("");
        add_attribute_tensor(&node, "value", &tensor);
    }
    add_function_node(f, node);
    add_function_node(f, make_node("Add", "a c", "b"));
}

static writer big_call(const char *function, const char *a, const char *b, big_form form)
{
    char inputs[16];
    snprintf(inputs, sizeof inputs, "%s on", a);
    writer call = make_call(function, inputs, b);
    if (form == BIG_REFERENCE) add_reference(&call, "big", "big", 4);
    return call;
}

static sp_status load_big_tower(uint32_t height, big_form form)
{
    const unsigned char yes = 1;
    writer functions = {0}, graph = {0}, f = make_function("f0", "a on", "b");
    char name[16], below[16] = "f0";
    add_big(&f, form);
    if (form == BIG_REFERENCE) write_text(&f, 6, "big");
    add_function(&functions, f);
    for (uint32_t i = 1; i < height; i++) {
        snprintf(name, sizeof name, "f%u", i);
        f = make_function(name, "a on", "b");
        if (form == BIG_REFERENCE) write_text(&f, 6, "big");
        add_function_node(&f, big_call(below, "a", "m", form));
        add_function_node(&f, big_call(below, "m", "b", form));
        add_function(&functions, f);
        memcpy(below, name, sizeof below);
    }
    writer call = make_call(below, "x on", "y"), on = make_tensor("on", 9, NULL, 0, &yes, 1);
    if (form == BIG_REFERENCE) {
        writer tensor = mib_tensor("");
        add_attribute_tensor(&call, "big", &tensor);
    }
    add_input(&graph, "x", 1, (int64_t[]){MIB / 4}, 1);
    write_message(&graph, GRAPH_INITIALIZER_FIELD, &on);
    add_node(&graph, call);
    add_output(&graph, "y");
    const sp_graph *loaded = NULL;
    const sp_status status = load(&functions, &graph, &loaded);
    sp__graph_destroy(loaded);
    return status;
}

TEST(a_small_file_cannot_ask_for_many_copies_of_a_tensor)
{
    const uint64_t start = sp_clock_now();
    for (big_form form = BIG_CONSTANT; form <= BIG_INITIALIZER; form++) {
        CHECK_OK(load_big_tower(4, form));
        CHECK_STATUS(load_big_tower(10, form), SP_EXHAUSTED);
        CHECK_MESSAGE("bytes of tensors and attributes");
    }
    CHECK_STATUS(load_big_tower(14, BIG_CONSTANT), SP_EXHAUSTED);
    CHECK(sp_clock_now() - start < UINT64_C(20000000000));
}

/* Every call searches all of its attributes. */
TEST(a_small_file_cannot_ask_for_many_looks_at_attributes)
{
    enum { ATTRIBUTES = 5000 };
    writer functions = tower(13, 2, true), graph = {0};
    writer f = make_function("many", "a", "b");
    char name[16];
    writer call = make_call("f12", "a", "b");
    for (int i = 0; i < ATTRIBUTES; i++) {
        snprintf(name, sizeof name, "a%d", i);
        add_attribute_int(&call, name, i);
    }
    add_function_node(&f, call);
    add_function(&functions, f);
    add_input(&graph, "x", 1, dims_x, 2);
    for (int i = 0; i < 5; i++) add_node(&graph, make_call("many", "x", i == 0 ? "y" : "-"));
    add_output(&graph, "y");
    const sp_graph *loaded = NULL;
    CHECK_OK(load(&functions, &graph, &loaded)); /* a few hundred thousand are cheap */
    sp__graph_destroy(loaded);

    functions = (writer){0};
    f = make_function("leak", "a", "b");
    write_text(&f, 6, "alpha");
    writer node = make_node("LeakyRelu", "a", "b");
    add_reference(&node, "alpha", "alpha", 1);
    add_function_node(&f, node);
    for (int i = 0; i < ATTRIBUTES; i++) {
        snprintf(name, sizeof name, "b%d", i);
        node = make_node("LeakyRelu", "a", name);
        add_reference(&node, "alpha", "alpha", 1);
        add_function_node(&f, node);
    }
    add_function(&functions, f);
    call = make_call("leak", "x", "y");
    for (int i = 0; i < ATTRIBUTES; i++) {
        snprintf(name, sizeof name, "a%d", i);
        add_attribute_int(&call, name, i);
    }
    check_refused(functions, call, SP_EXHAUSTED, "bytes of tensors and attributes");
}

TEST(two_attributes_of_one_name_are_refused)
{
    for (int count = 1; count < 40; count += 19) {
        writer node = make_node("LeakyRelu", "x", "y");
        char name[16];
        for (int i = 0; i < count; i++) {
            snprintf(name, sizeof name, "a%d", i);
            add_attribute_float(&node, name, 1);
        }
        add_attribute_float(&node, "a0", 1);
        check_refused((writer){0}, node, SP_CORRUPT, "two attributes of one node are named 'a0'");
    }
}

TEST(every_cut_and_every_flipped_byte_gives_an_error_or_a_graph)
{
    writer functions = leaking();
    writer graph = graph_of(call_with("outer", "angle", 4));
    writer file = make_model_with(&functions, &graph);
    for (size_t len = 0; len < file.len; len++) {
        unsigned char *cut = malloc(len + 1);
        memcpy(cut, file.bytes, len);
        const sp_graph *loaded = NULL;
        (void)sp__graph_load(cut, len, &loaded);
        sp__graph_destroy(loaded);
        free(cut);
    }
    uint32_t loads = 0;
    for (size_t at = 0; at < file.len; at++) {
        for (int bit = 0; bit < 8; bit++) {
            file.bytes[at] ^= (unsigned char)(1 << bit);
            const sp_graph *loaded = NULL;
            loads += sp__graph_load(file.bytes, file.len, &loaded) == SP_OK;
            sp__graph_destroy(loaded);
            file.bytes[at] ^= (unsigned char)(1 << bit);
        }
    }
    CHECK(loads > 0 && loads < file.len * 8);
    writer_free(&file);
}

TEST(each_allocation_that_fails_fails_the_load)
{
    writer functions = leaking();
    writer graph = graph_of(call_with("outer", "angle", 4));
    writer file = make_model_with(&functions, &graph);
    check_load_without_memory(&file);
    writer_free(&file);
}

TEST_MAIN
