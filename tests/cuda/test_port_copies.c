/* SPDX-License-Identifier: Apache-2.0 */
/* How a run's tensors get to the GPU and back: small ones are read and written in pinned memory,
 * those of up to 256 KiB are copied by kernels, larger ones by the driver. */
#include <streampool/model.h>

#include "device/cuda/cuda_api.h"
#include "segment_fixture.h"
#include "support/onnx_writer.h"

enum { MOST = 65537, ONNX_FLOAT = 1 };

static float x[MOST], y[MOST];

static sp_model load(sp_device device, int64_t count)
{
    writer graph = {0};
    add_input(&graph, "x", ONNX_FLOAT, &count, 1);
    add_node(&graph, make_node("Neg", "x", "y"));
    add_output(&graph, "y");
    return graph_load(&graph, &(sp_model_options){.device = device});
}

static void run(sp_model model, int64_t count)
{
    const uint64_t bytes = (uint64_t)count * sizeof(float);
    const sp_host_tensor input = {
        .data = x, .bytes = bytes, .dtype = SP_F32, .rank = 1, .shape = {count}};
    sp_host_tensor output = {.data = y, .capacity = bytes};
    for (int64_t i = 0; i < count; i++) x[i] = (float)(i + 1);
    CHECK_OK(sp_model_run(model, &input, 1, &output, 1));
    uint64_t wrong = 0;
    for (int64_t i = 0; i < count; i++) wrong += y[i] != -(float)(i + 1);
    CHECK_EQ_U64(wrong, 0);
}

typedef struct node_count {
    uint64_t kernels, copies;
} node_count;

/* Of the work of each graph of a model whose input and output have `count` floats. */
static node_count count_nodes(int64_t count)
{
    const sp_device device = segment_begin();
    const sp_model model = load(device, count);
    const uint64_t kernels = sp__cuda_call_count(SP_CUDA_CALL_cuGraphAddKernelNode);
    const uint64_t copies = sp__cuda_call_count(SP_CUDA_CALL_cuGraphAddMemcpyNode);
    const uint64_t graphs = sp__cuda_call_count(SP_CUDA_CALL_cuGraphInstantiate);
    run(model, count);
    const uint64_t made = sp__cuda_call_count(SP_CUDA_CALL_cuGraphInstantiate) - graphs;
    node_count nodes = {.kernels = sp__cuda_call_count(SP_CUDA_CALL_cuGraphAddKernelNode) - kernels,
                        .copies = sp__cuda_call_count(SP_CUDA_CALL_cuGraphAddMemcpyNode) - copies};
    CHECK(made > 0 && nodes.kernels % made == 0 && nodes.copies % made == 0);
    nodes.kernels = nodes.kernels / made - 1; /* without the one that signals */
    nodes.copies /= made;
    CHECK_OK(sp_model_release(model));
    segment_end();
    return nodes;
}

TEST(small_tensors_are_not_copied)
{
    const node_count nodes = count_nodes(4096);
    CHECK_EQ_U64(nodes.kernels, 1);
    CHECK_EQ_U64(nodes.copies, 0);
}

TEST(tensors_of_up_to_256_kib_are_copied_by_kernels)
{
    static const int64_t counts[] = {4097, 65536};
    for (uint32_t i = 0; i < SP_COUNT_OF(counts); i++) {
        const node_count nodes = count_nodes(counts[i]);
        CHECK_EQ_U64(nodes.kernels, 3);
        CHECK_EQ_U64(nodes.copies, 0);
    }
}

TEST(larger_tensors_are_copied_by_the_driver)
{
    const node_count nodes = count_nodes(MOST);
    CHECK_EQ_U64(nodes.kernels, 1);
    CHECK_EQ_U64(nodes.copies, 2);
}

TEST_MAIN
