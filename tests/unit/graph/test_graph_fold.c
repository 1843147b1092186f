/* SPDX-License-Identifier: Apache-2.0 */
/* Folding at load: it is bounded, whatever a small file requests, and reports errors in what it
 * computes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "support/model_data.h"
#include "support/onnx_writer.h"
#include "support/test.h"

static void add_longs(writer *graph, const char *name, const int64_t *data, int64_t count)
{
    writer tensor = make_tensor(name, 7, &count, 1, data, (size_t)count * sizeof(*data));
    write_message(graph, GRAPH_INITIALIZER_FIELD, &tensor);
}

static sp_status load_model(writer *graph, int64_t opset, const sp_graph **out)
{
    writer model = make_model(graph, opset);
    const sp_status status = sp__graph_load(model.bytes, model.len, out);
    writer_free(&model);
    return status;
}

/* A chain of ConstantOfShape and Adds that would fill any memory if it were folded. */
TEST(folding_is_bounded)
{
    writer graph = {0};
    const sp_graph *loaded;
    add_longs(&graph, "shape", (int64_t[]){1 << 20, 1 << 15}, 2);
    add_node(&graph, make_node("ConstantOfShape", "shape", "c0"));
    add_node(&graph, make_node("Add", "c0 c0", "y"));
    add_output(&graph, "y");
    REQUIRE_OK(load_model(&graph, 14, &loaded));
    CHECK(!loaded->nodes[0].is_folded && !loaded->nodes[1].is_folded);
    CHECK(loaded->weight_bytes < 100);
    sp__graph_destroy(loaded);
    writer chain = {0};
    add_longs(&chain, "shape", (int64_t[]){1 << 20}, 1);
    char from[8] = "c0", to[8];
    add_node(&chain, make_node("ConstantOfShape", "shape", from));
    for (int i = 1; i < 200; i++) {
        (void)snprintf(to, sizeof(to), "c%d", i);
        add_node(&chain, make_node("Relu", from, to));
        memcpy(from, to, sizeof(from));
    }
    add_output(&chain, to);
    REQUIRE_OK(load_model(&chain, 14, &loaded));
    CHECK(!loaded->nodes[199].is_folded);
    sp__graph_destroy(loaded);
}

/* A small file that would cost hours if it were folded. */
TEST(folding_is_bounded_by_its_work)
{
    const int64_t pads[4] = {1023, 1023, 1024, 1024};
    const int64_t window[2] = {2048, 2048};
    writer graph = {0};
    add_longs(&graph, "shape", (int64_t[]){1, 1, 2048, 2048}, 4);
    add_node(&graph, make_node("ConstantOfShape", "shape", "image"));
    writer conv = make_node("Conv", "image image", "c");
    add_attribute_ints(&conv, "pads", pads, 4);
    add_node(&graph, conv);
    writer pool = make_node("MaxPool", "image", "p");
    add_attribute_ints(&pool, "pads", pads, 4);
    add_attribute_ints(&pool, "kernel_shape", window, 2);
    add_node(&graph, pool);
    add_node(&graph, make_node("MatMul", "image image", "m"));
    for (const char *name = "c\0p\0m\0"; *name != 0; name += 2) add_output(&graph, name);
    const sp_graph *loaded;
    REQUIRE_OK(load_model(&graph, 14, &loaded));
    CHECK_EQ_U64(loaded->node_count, 4);
    CHECK(loaded->nodes[0].is_folded);
    for (int i = 1; i < 4; i++) CHECK(!loaded->nodes[i].is_folded);
    sp__graph_destroy(loaded);
}

/* The cost of an output element is not that of its inputs and itself: a sum over all channels, an
 * axis that becomes long before another becomes short. */
TEST(folding_is_bounded_by_work_that_no_tensor_shows)
{
    const uint8_t byte = 1;
    const sp_graph *loaded;
    writer graph = {0};
    add_longs(&graph, "channels", (int64_t[]){1, 1 << 22, 1}, 3);
    add_node(&graph, make_node("ConstantOfShape", "channels", "x"));
    writer lrn = make_node("LRN", "x", "l");
    add_attribute_int(&lrn, "size", INT32_MAX);
    add_node(&graph, lrn);
    add_longs(&graph, "column", (int64_t[]){100000, 1}, 2);
    add_longs(&graph, "row", (int64_t[]){1, 100000}, 2);
    writer value = make_tensor("", 2, (int64_t[]){1}, 1, &byte, 1);
    writer column = make_node("ConstantOfShape", "column", "c");
    add_attribute_tensor(&column, "value", &value);
    add_node(&graph, column);
    add_node(&graph, make_node("Resize", "c - - row", "r"));
    add_node(&graph, make_node("Resize", "c - - column", "same"));
    add_output(&graph, "l");
    add_output(&graph, "r");
    add_output(&graph, "same");
    REQUIRE_OK(load_model(&graph, 13, &loaded));
    CHECK_EQ_U64(loaded->node_count, 5);
    CHECK(loaded->nodes[0].is_folded && !loaded->nodes[1].is_folded);
    CHECK(loaded->nodes[2].is_folded && !loaded->nodes[3].is_folded);
    CHECK(loaded->nodes[4].is_folded);
    sp__graph_destroy(loaded);
}

/* The window of an LRN is limited to the number of channels. */
TEST(a_small_sum_over_channels_folds_however_wide_its_window_is)
{
    const sp_graph *loaded;
    writer graph = {0};
    add_longs(&graph, "channels", (int64_t[]){1, 8, 16}, 3);
    add_node(&graph, make_node("ConstantOfShape", "channels", "x"));
    writer lrn = make_node("LRN", "x", "l");
    add_attribute_int(&lrn, "size", INT32_MAX);
    add_node(&graph, lrn);
    add_output(&graph, "l");
    REQUIRE_OK(load_model(&graph, 13, &loaded));
    CHECK(loaded->nodes[1].is_folded);
    sp__graph_destroy(loaded);
}

TEST(a_constant_under_a_window_of_too_many_taps_is_refused)
{
    const int64_t pads[6] = {1, INT32_MAX - 1, INT32_MAX - 1, 1, 0, 0};
    const int64_t window[3] = {3, INT32_MAX, INT32_MAX};
    writer graph = {0};
    add_longs(&graph, "shape", (int64_t[]){1, 1, 1, 1, 1}, 5);
    add_node(&graph, make_node("ConstantOfShape", "shape", "x"));
    writer pool = make_node("AveragePool", "x", "y");
    add_attribute_ints(&pool, "pads", pads, 6);
    add_attribute_ints(&pool, "kernel_shape", window, 3);
    add_node(&graph, pool);
    add_output(&graph, "y");
    const sp_graph *loaded = NULL;
    CHECK_STATUS(load_model(&graph, 11, &loaded), SP_UNSUPPORTED);
    CHECK_MESSAGE("node 'y' (AveragePool)");
    CHECK_MESSAGE("a window of 3 x 2147483647 x 2147483647");
    sp__graph_destroy(loaded);
}

TEST_MAIN
