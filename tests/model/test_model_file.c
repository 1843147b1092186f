/* SPDX-License-Identifier: Apache-2.0 */
/* Summaries of ONNX files through the public API: files built by the test, malformed ones, and
 * every kind of invalid call. */
#include <streampool/model_file.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/heap.h"
#include "base/macros.h"
#include "support/onnx_writer.h"
#include "support/test.h"

enum { ONNX_FLOAT = 1, ONNX_INT64 = 7 };

static const int64_t dims_n4[] = {-1, 4};

/* x [n, 4] -> Relu -> Rolu, an unknown op, -> Relu -> y, of any type. */
static writer example_file(void)
{
    writer graph = {0};
    add_input(&graph, "x", ONNX_FLOAT, dims_n4, 2);
    add_input(&graph, "any", ONNX_INT64, NULL, -1);
    add_node(&graph, make_node("Relu", "x", "a"));
    add_node(&graph, make_node("Rolu", "a", "b"));
    add_node(&graph, make_node("Relu", "b", "y"));
    add_output(&graph, "y");
    return make_model(&graph, 13);
}

/* Opens the file, which is freed. */
static sp_model_file open_file(writer bytes)
{
    sp_model_file file = {0};
    CHECK_OK(sp_model_file_open_memory(bytes.bytes, bytes.len, &file));
    writer_free(&bytes);
    return file;
}

static sp_model_file_info info_of(sp_model_file file)
{
    sp_model_file_info info = {0};
    CHECK_OK(sp_model_file_get_info(file, &info));
    return info;
}

TEST(a_file_that_cannot_be_loaded_tells_what_it_holds)
{
    CHECK_EQ_STR(sp_last_error(), "");
    const sp_model_file file = open_file(example_file());
    CHECK_EQ_STR(sp_last_error(), ""); /* an unknown operator is not a failure */
    const sp_model_file_info info = info_of(file);
    CHECK_EQ_U64(info.opset_count, 1);
    CHECK_EQ_U64(info.node_count, 3);
    CHECK_EQ_U64(info.initializer_count, 0);
    CHECK_EQ_U64(info.function_count, 0);
    CHECK_EQ_U64(info.input_count, 2);
    CHECK_EQ_U64(info.output_count, 1);
    CHECK_EQ_U64(info.op_count, 2);
    CHECK_EQ_U64(info.unsupported_op_count, 1);
    CHECK(info.producer != NULL);
    sp_model_file_opset opset;
    CHECK_OK(sp_model_file_get_opset(file, 0, &opset));
    CHECK_EQ_STR(opset.domain, "");
    CHECK_EQ_INT(opset.version, 13);
    CHECK_OK(sp_model_file_release(file));
}

TEST(operators_are_counted_and_the_most_frequent_is_first)
{
    const sp_model_file file = open_file(example_file());
    sp_model_file_op op;
    CHECK_OK(sp_model_file_get_op(file, 0, &op));
    CHECK_EQ_STR(op.name, "Relu");
    CHECK_EQ_STR(op.domain, "");
    CHECK_EQ_U64(op.count, 2);
    CHECK_EQ_INT(op.version, 13);
    CHECK(op.is_supported && !op.is_function);
    CHECK_OK(sp_model_file_get_op(file, 1, &op));
    CHECK_EQ_STR(op.name, "Rolu");
    CHECK_EQ_U64(op.count, 1);
    CHECK(!op.is_supported);
    CHECK_OK(sp_model_file_release(file));
}

TEST(equally_frequent_operators_are_in_the_order_of_their_names)
{
    writer graph = {0};
    add_input(&graph, "x", ONNX_FLOAT, dims_n4, 2);
    add_node(&graph, make_node("Tanh", "x", "a"));
    add_node(&graph, make_node("Abs", "a", "b"));
    add_node(&graph, make_node("Absurd", "b", "y"));
    add_output(&graph, "y");
    const sp_model_file file = open_file(make_model(&graph, 13));
    static const char *const names[] = {"Abs", "Absurd", "Tanh"};
    for (uint32_t i = 0; i < SP_COUNT_OF(names); i++) {
        sp_model_file_op op;
        CHECK_OK(sp_model_file_get_op(file, i, &op));
        CHECK_EQ_STR(op.name, names[i]);
    }
    CHECK_OK(sp_model_file_release(file));
}

TEST(nodes_of_branches_and_functions_count_too)
{
    writer functions = {0}, graph = {0}, then_branch = {0}, else_branch = {0};
    writer function = make_function("Twice", "a", "b");
    add_function_node(&function, make_node("Tanh", "a", "m"));
    add_function_node(&function, make_node("Tanh", "m", "b"));
    add_function(&functions, function);
    add_node(&then_branch, make_node("Tanh", "x", "r"));
    add_output(&then_branch, "r");
    add_node(&else_branch, make_node("Relu", "x", "r"));
    add_output(&else_branch, "r");
    add_input(&graph, "x", ONNX_FLOAT, dims_n4, 2);
    add_input(&graph, "c", 9, NULL, 0);
    writer node = make_node("If", "c", "z");
    add_attribute_graph(&node, "then_branch", &then_branch);
    add_attribute_graph(&node, "else_branch", &else_branch);
    add_node(&graph, node);
    add_node(&graph, make_call("Twice", "z", "y"));
    add_output(&graph, "y");
    const sp_model_file file = open_file(make_model_with(&functions, &graph));
    const sp_model_file_info info = info_of(file);
    CHECK_EQ_U64(info.node_count, 2);
    CHECK_EQ_U64(info.function_count, 1);
    CHECK_EQ_U64(info.op_count, 4);
    CHECK_EQ_U64(info.unsupported_op_count, 0);
    sp_model_file_op op;
    CHECK_OK(sp_model_file_get_op(file, 0, &op));
    CHECK_EQ_STR(op.name, "Tanh");
    CHECK_EQ_U64(op.count, 3);
    CHECK_OK(sp_model_file_get_op(file, 3, &op));
    CHECK_EQ_STR(op.name, "Twice");
    CHECK_EQ_STR(op.domain, "own");
    CHECK(op.is_function && op.is_supported);
    CHECK_OK(sp_model_file_release(file));
}

TEST(inputs_and_outputs_are_told_as_far_as_the_file_says)
{
    const sp_model_file file = open_file(example_file());
    sp_model_file_port port;
    CHECK_OK(sp_model_file_get_input(file, 0, &port));
    CHECK_EQ_STR(port.name, "x");
    CHECK(port.is_tensor && port.has_shape);
    CHECK_EQ_INT(port.dtype, SP_F32);
    CHECK_EQ_U64(port.rank, 2);
    CHECK_EQ_INT(port.shape[0], -1);
    CHECK_EQ_STR(port.dim_names[0], "n");
    CHECK_EQ_INT(port.shape[1], 4);
    CHECK_EQ_STR(port.dim_names[1], "");
    CHECK_OK(sp_model_file_get_input(file, 1, &port));
    CHECK(port.is_tensor && !port.has_shape);
    CHECK_EQ_INT(port.dtype, SP_I64);
    CHECK_EQ_U64(port.rank, 0);
    CHECK_OK(sp_model_file_get_output(file, 0, &port));
    CHECK_EQ_STR(port.name, "y");
    CHECK(port.is_tensor && !port.has_shape);
    CHECK_EQ_INT(port.dtype, SP_DTYPE_NONE);
    CHECK_OK(sp_model_file_release(file));
}

TEST(a_nul_in_a_name_becomes_a_question_mark)
{
    writer bytes = example_file();
    for (size_t i = 0; i + 4 <= bytes.len; i++) {
        if (memcmp(bytes.bytes + i, "Rolu", 4) == 0) bytes.bytes[i + 2] = '\0';
    }
    const sp_model_file file = open_file(bytes);
    sp_model_file_op op;
    CHECK_OK(sp_model_file_get_op(file, 1, &op));
    CHECK_EQ_STR(op.name, "Ro?u");
    CHECK_OK(sp_model_file_release(file));
}

/* ---- files ---- */

TEST(a_file_is_read_by_its_path_and_named_in_errors)
{
    char path[] = "/tmp/sp_model_file_XXXXXX";
    const int descriptor = mkstemp(path);
    REQUIRE(descriptor >= 0);
    writer bytes = example_file();
    CHECK_EQ_INT(write(descriptor, bytes.bytes, bytes.len), (int64_t)bytes.len);
    sp_model_file file;
    CHECK_OK(sp_model_file_open(path, &file));
    CHECK_EQ_U64(info_of(file).node_count, 3);
    CHECK_OK(sp_model_file_release(file));
    CHECK_EQ_INT(ftruncate(descriptor, (off_t)bytes.len - 5), 0);
    CHECK_STATUS(sp_model_file_open(path, &file), SP_CORRUPT);
    CHECK_MESSAGE(path);
    CHECK_EQ_U64(file.bits, 0);
    close(descriptor);
    unlink(path);
    CHECK_STATUS(sp_model_file_open(path, &file), SP_IO);
    CHECK_MESSAGE(path);
    CHECK_STATUS(sp_model_file_open("/tmp", &file), SP_IO);
    writer_free(&bytes);
}

TEST(every_cut_of_a_file_is_refused_or_read)
{
    writer bytes = example_file();
    for (size_t len = 1; len < bytes.len; len++) {
        sp_model_file file;
        const sp_status status = sp_model_file_open_memory(bytes.bytes, len, &file);
        CHECK(status == SP_OK || status == SP_CORRUPT);
        CHECK_OK(sp_model_file_release(file));
    }
    writer_free(&bytes);
}

/* ---- invalid calls ---- */

typedef sp_status (*file_question)(sp_model_file file, uint32_t index, bool has_place);

static sp_status ask_opset(sp_model_file file, uint32_t index, bool has_place)
{
    sp_model_file_opset out;
    return sp_model_file_get_opset(file, index, has_place ? &out : NULL);
}

static sp_status ask_input(sp_model_file file, uint32_t index, bool has_place)
{
    sp_model_file_port out;
    return sp_model_file_get_input(file, index, has_place ? &out : NULL);
}

static sp_status ask_output(sp_model_file file, uint32_t index, bool has_place)
{
    sp_model_file_port out;
    return sp_model_file_get_output(file, index, has_place ? &out : NULL);
}

static sp_status ask_op(sp_model_file file, uint32_t index, bool has_place)
{
    sp_model_file_op out;
    return sp_model_file_get_op(file, index, has_place ? &out : NULL);
}

static sp_status ask_info(sp_model_file file, uint32_t index, bool has_place)
{
    sp_model_file_info out;
    (void)index;
    return sp_model_file_get_info(file, has_place ? &out : NULL);
}

static const file_question questions[] = {ask_opset, ask_input, ask_output, ask_op, ask_info};
enum { INDEXED_QUESTIONS = SP_COUNT_OF(questions) - 1 };

static void expect_invalid(sp_model_file file, const char *message)
{
    for (size_t i = 0; i < SP_COUNT_OF(questions); i++) {
        CHECK_STATUS(questions[i](file, 0, true), SP_INVALID);
        CHECK_MESSAGE(message);
    }
    CHECK_STATUS(sp_model_file_retain(file), SP_INVALID);
    CHECK_MESSAGE(message);
    if (file.bits == 0) return; /* the release of the zero handle succeeds */
    CHECK_STATUS(sp_model_file_release(file), SP_INVALID);
    CHECK_MESSAGE(message);
}

TEST(wrong_handles_indexes_and_places_are_refused)
{
    const sp_model_file live = open_file(example_file());
    const sp_model_file stale = open_file(example_file());
    CHECK_OK(sp_model_file_release(stale));
    expect_invalid((sp_model_file){0}, "the zero handle");
    expect_invalid(stale, "stale");
    expect_invalid((sp_model_file){~(uint64_t)0}, "no model file handle");
    for (size_t i = 0; i < SP_COUNT_OF(questions); i++) {
        CHECK_STATUS(questions[i](live, 0, false), SP_INVALID);
    }
    for (size_t i = 0; i < INDEXED_QUESTIONS; i++) {
        CHECK_STATUS(questions[i](live, 1000, true), SP_NOT_FOUND);
        CHECK_MESSAGE("none with index 1000");
        CHECK_STATUS(questions[i](live, UINT32_MAX, true), SP_NOT_FOUND);
    }
    CHECK_OK(sp_model_file_retain(live));
    CHECK_OK(sp_model_file_release(live));
    CHECK_OK(ask_info(live, 0, true));
    CHECK_OK(sp_model_file_release(live));
    CHECK_OK(sp_model_file_release((sp_model_file){0}));
}

TEST(wrong_arguments_open_nothing)
{
    sp_model_file file = {1};
    CHECK_STATUS(sp_model_file_open(NULL, &file), SP_INVALID);
    CHECK_EQ_U64(file.bits, 0);
    CHECK_STATUS(sp_model_file_open("x", NULL), SP_INVALID);
    CHECK_STATUS(sp_model_file_open_memory(NULL, 8, &file), SP_INVALID);
    CHECK_STATUS(sp_model_file_open_memory("x", 1, NULL), SP_INVALID);
    CHECK_STATUS(sp_model_file_open_memory("x", SIZE_MAX, &file), SP_INVALID);
    CHECK_STATUS(sp_model_file_open_memory("nonsense", 8, &file), SP_CORRUPT);
    CHECK_EQ_U64(file.bits, 0);
}

TEST(without_memory_nothing_is_opened_and_nothing_stays_behind)
{
    writer bytes = example_file();
    CHECK_OK(sp_model_file_release(open_file(example_file()))); /* makes the handle slab */
    bool has_failed = true;
    for (uint64_t skip = 0; has_failed; skip++) {
        sp_model_file file;
        sp_heap_fail_after(skip);
        const sp_status status = sp_model_file_open_memory(bytes.bytes, bytes.len, &file);
        has_failed = sp_heap_has_failed();
        sp_heap_fail_after(UINT64_MAX);
        CHECK_STATUS(status, has_failed ? SP_OUT_OF_MEMORY : SP_OK);
        CHECK_OK(sp_model_file_release(file));
    }
    writer_free(&bytes);
}

static void open_and_read(void *arg, uint32_t index)
{
    const sp_model_file *shared = arg;
    (void)index;
    for (uint64_t i = 0; i < test_count(1000, 50); i++) {
        const sp_model_file mine = open_file(example_file());
        CHECK_OK(sp_model_file_retain(*shared));
        CHECK_EQ_U64(info_of(*shared).op_count, info_of(mine).op_count);
        CHECK_OK(ask_op(*shared, 1, true));
        CHECK_OK(sp_model_file_release(*shared));
        CHECK_OK(sp_model_file_release(mine));
    }
}

TEST(threads_open_and_read_files_at_the_same_time)
{
    sp_model_file shared = open_file(example_file());
    test_threads(8, open_and_read, &shared);
    CHECK_OK(sp_model_file_release(shared));
}

TEST_MAIN
