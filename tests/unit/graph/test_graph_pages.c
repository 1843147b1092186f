/* SPDX-License-Identifier: Apache-2.0 */
/* A load gives the pages of a file's weights back to the system as it copies them, if the bytes are
 * its own. */
#include "graph/graph.h"

#include <string.h>
#include <unistd.h>

#include "base/pages.h"
#include "support/onnx_writer.h"
#include "support/test.h"

enum { SIDE = 256 };

static float weights[SIDE * SIDE];
static const int64_t dims[] = {SIDE, SIDE};

/* y = x w */
static writer product_file(void)
{
    for (uint32_t i = 0; i < SIDE * SIDE; i++) weights[i] = (float)i / 3 + 0.1f;
    writer tensor = make_tensor("w", 1, dims, 2, weights, sizeof weights);
    writer graph = {0};
    write_message(&graph, GRAPH_INITIALIZER_FIELD, &tensor);
    add_input(&graph, "x", 1, (int64_t[]){-1, SIDE}, 2);
    add_node(&graph, make_node("MatMul", "x w", "y"));
    add_output(&graph, "y");
    return make_model(&graph, 14);
}

static bool has_weights(const sp_graph *graph)
{
    if (graph->weight_count != 1 || graph->weights[0].bytes != sizeof weights) return false;
    const float *kept = graph->weights[0].data;
    uint32_t same = 0;
    for (uint32_t i = 0; i < SIDE * SIDE; i++) same += kept[i] == weights[i];
    return same == SIDE * SIDE;
}

/* Bytes of the copy that are not the file's any more: zeros. */
static uint64_t changed(const unsigned char *copy, const writer *file)
{
    uint64_t count = 0;
    for (size_t i = 0; i < file->len; i++) {
        count += copy[i] != file->bytes[i];
        if (copy[i] != file->bytes[i]) CHECK_EQ_INT(copy[i], 0);
    }
    return count;
}

static void check_load(writer file, const char *folder, bool is_discarded)
{
    unsigned char *copy = sp_pages_map(file.len);
    REQUIRE(copy != NULL);
    memcpy(copy, file.bytes, file.len);
    const sp_graph *graph = NULL;
    REQUIRE_OK(sp__graph_load_in(folder, copy, file.len, &graph));
    CHECK(has_weights(graph));
    /* All but the pages at both ends; some bytes are zeros anyway. */
    const uint64_t most = sizeof weights - 2 * (uint64_t)sysconf(_SC_PAGESIZE);
    if (is_discarded) CHECK(changed(copy, &file) >= most / 2);
    else CHECK_EQ_U64(changed(copy, &file), 0);
    sp__graph_destroy(graph);
    sp_pages_unmap(copy, file.len);
    writer_free(&file);
}

TEST(pages_of_weights_are_discarded_in_a_copy_of_a_file)
{
    check_load(product_file(), ".", true);
}

TEST(bytes_of_the_caller_are_only_read)
{
    check_load(product_file(), NULL, false);
}

TEST_MAIN
