/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of the fake driver. */
#include "fake_cuda.h"

#include "fake_driver_fixture.h"
#include "support/test.h"

/* One thread of the function, with these parameters. */
static CUDA_KERNEL_NODE_PARAMS one_thread(CUfunction function, void **params)
{
    return (CUDA_KERNEL_NODE_PARAMS){.func = function,
                                     .gridDimX = 1,
                                     .gridDimY = 1,
                                     .gridDimZ = 1,
                                     .blockDimX = 1,
                                     .blockDimY = 1,
                                     .blockDimZ = 1,
                                     .kernelParams = params};
}

static CUresult add_kernel(CUgraph graph, CUfunction function, uint32_t *target, uint32_t number,
                           const CUgraphNode *behind, CUgraphNode *out)
{
    void *params[] = {&target, &number};
    const CUDA_KERNEL_NODE_PARAMS node = one_thread(function, params);
    return cuGraphAddKernelNode_v2(out, graph, behind, *behind != NULL ? 1 : 0, &node);
}

TEST(a_graph_runs_in_the_order_of_its_edges_only)
{
    fixture f;
    fixture_begin(&f);
    uint32_t chained = 1;
    uint32_t loose = 1;
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    CUgraphNode last = NULL;
    CUgraphNode none = NULL;
    CUgraphNode made = NULL;
    REQUIRE_CUDA(cuGraphCreate(&graph, 0));
    for (uint32_t i = 0; i < 4; i++) {
        CHECK_CUDA(add_kernel(graph, f.chain, &chained, i, &last, &last), CUDA_SUCCESS);
        CHECK_CUDA(add_kernel(graph, f.chain, &loose, i, &none, &made), CUDA_SUCCESS);
    }
    REQUIRE_CUDA(cuGraphInstantiateWithFlags(&exec, graph, 0));
    CHECK_CUDA(cuGraphDestroy(graph), CUDA_SUCCESS);
    CHECK_CUDA(cuGraphUpload(exec, f.a), CUDA_SUCCESS);
    CHECK_CUDA(cuGraphLaunch(exec, f.a), CUDA_SUCCESS);
    CHECK_CUDA(cuGraphExecDestroy(exec), CUDA_SUCCESS); /* in flight */
    fixture_unload(&f, CUDA_SUCCESS);
    CHECK_CUDA(cuStreamSynchronize(f.a), CUDA_SUCCESS);
    CHECK_EQ_U64(chained, 16 + 0 * 8 + 1 * 4 + 2 * 2 + 3);
    CHECK_EQ_U64(loose, 16 + 3 * 8 + 2 * 4 + 1 * 2 + 0);
    fixture_end(&f);
}

TEST(a_graph_copies_and_fills)
{
    fixture f;
    fixture_begin(&f);
    uint8_t bytes[32] = {0};
    uint8_t copy[32] = {0};
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    CUgraphNode fill = NULL;
    CUgraphNode node = NULL;
    REQUIRE_CUDA(cuGraphCreate(&graph, 0));
    CUDA_MEMSET_NODE_PARAMS fill_params = {(uintptr_t)bytes, 16, 0x0201, 2, 2, 2};
    CHECK_CUDA(cuGraphAddMemsetNode(&fill, graph, NULL, 0, &fill_params, f.context), CUDA_SUCCESS);
    CUDA_MEMCPY3D copy_params = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                                 .srcHost = bytes,
                                 .srcXInBytes = 16,
                                 .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                                 .dstDevice = (uintptr_t)copy,
                                 .WidthInBytes = 8,
                                 .Height = 1,
                                 .Depth = 1};
    CHECK_CUDA(cuGraphAddMemcpyNode(&node, graph, &fill, 1, &copy_params, f.context), CUDA_SUCCESS);
    copy_params.WidthInBytes = 0;
    CHECK_CUDA(cuGraphAddMemcpyNode(&node, graph, &fill, 1, &copy_params, f.context),
               CUDA_ERROR_INVALID_VALUE);
    fill_params.elementSize = 3;
    CHECK_CUDA(cuGraphAddMemsetNode(&fill, graph, NULL, 0, &fill_params, f.context),
               CUDA_ERROR_INVALID_VALUE);
    REQUIRE_CUDA(cuGraphInstantiateWithFlags(&exec, graph, 0));
    CHECK_CUDA(cuGraphLaunch(exec, f.a), CUDA_SUCCESS);
    CHECK_CUDA(cuStreamSynchronize(f.a), CUDA_SUCCESS);
    const uint8_t row[16] = {1, 2, 1, 2};
    CHECK_EQ_MEM(bytes, row, 16);
    CHECK_EQ_MEM(bytes + 16, row, 16);
    CHECK_EQ_MEM(copy, row, 16);
    CHECK_CUDA(cuGraphExecDestroy(exec), CUDA_SUCCESS);
    CHECK_CUDA(cuGraphDestroy(graph), CUDA_SUCCESS);
    fixture_end(&f);
}

/* One exec on two streams: its launches never overlap; ThreadSanitizer would report it. */
TEST(launches_of_one_exec_follow_each_other)
{
    fixture f;
    fixture_begin(&f);
    uint32_t word = 0;
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    CUgraphNode node = NULL;
    REQUIRE_CUDA(cuGraphCreate(&graph, 0));
    CHECK_CUDA(add_kernel(graph, f.add, &word, 1, &node, &node), CUDA_SUCCESS);
    REQUIRE_CUDA(cuGraphInstantiateWithFlags(&exec, graph, 0));
    for (int i = 0; i < 100; i++) {
        CHECK_CUDA(cuGraphLaunch(exec, i % 2 == 0 ? f.a : f.b), CUDA_SUCCESS);
    }
    CHECK_CUDA(cuStreamSynchronize(f.a), CUDA_SUCCESS);
    CHECK_CUDA(cuStreamSynchronize(f.b), CUDA_SUCCESS);
    CHECK_EQ_U64(word, 100);
    CHECK_CUDA(cuGraphExecDestroy(exec), CUDA_SUCCESS);
    CHECK_CUDA(cuGraphDestroy(graph), CUDA_SUCCESS);
    fixture_end(&f);
}

/* A launch has the parameters that its nodes had then. */
TEST(parameters_of_a_node_change_for_later_launches)
{
    fixture f;
    fixture_begin(&f);
    uint32_t words[2] = {0};
    uint32_t *word = &words[1];
    uint32_t more = 10;
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    CUgraphNode node = NULL, none = NULL;
    REQUIRE_CUDA(cuGraphCreate(&graph, 0));
    CHECK_CUDA(add_kernel(graph, f.add, &words[0], 1, &none, &node), CUDA_SUCCESS);
    REQUIRE_CUDA(cuGraphInstantiateWithFlags(&exec, graph, 0));
    void *values[] = {&word, &more};
    const CUDA_KERNEL_NODE_PARAMS params = one_thread(f.add, values);
    CHECK_CUDA(cuGraphLaunch(exec, f.a), CUDA_SUCCESS);
    CHECK_CUDA(cuGraphExecKernelNodeSetParams_v2(exec, node, &params), CUDA_SUCCESS);
    CHECK_CUDA(cuGraphExecKernelNodeSetParams_v2(exec, NULL, &params), CUDA_ERROR_INVALID_VALUE);
    CHECK_CUDA(cuGraphLaunch(exec, f.a), CUDA_SUCCESS);
    CHECK_CUDA(cuGraphLaunch(exec, f.a), CUDA_SUCCESS);
    CHECK_CUDA(cuStreamSynchronize(f.a), CUDA_SUCCESS);
    CHECK_EQ_U64(words[0], 1);
    CHECK_EQ_U64(words[1], 20);
    CHECK_CUDA(cuGraphExecDestroy(exec), CUDA_SUCCESS);
    CHECK_CUDA(cuGraphDestroy(graph), CUDA_SUCCESS);
    fixture_end(&f);
}

TEST_MAIN
