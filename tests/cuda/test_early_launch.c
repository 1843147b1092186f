/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of a graph are launched before those in front of them have ended, on processors whose
 * code waits itself. */
#include <streampool/model.h>

#include "device/cuda/cuda_api.h"
#include "fake_cuda.h"
#include "segment_fixture.h"

typedef struct edge_count {
    bool is_there; /* the model */
    uint64_t graphs, kernels, edges;
} edge_count;

/* Of the graphs that one run of torch_mlp makes with code of this architecture. */
static edge_count count_edges(int architecture)
{
    const sp_device device = segment_begin();
    fake_cuda_set_ptx(architecture);
    const uint64_t graphs = sp__cuda_call_count(SP_CUDA_CALL_cuGraphInstantiate);
    const uint64_t kernels = sp__cuda_call_count(SP_CUDA_CALL_cuGraphAddKernelNode);
    const uint64_t edges = sp__cuda_call_count(SP_CUDA_CALL_cuGraphAddDependencies);
    model_case c;
    edge_count count = {.is_there = segment_open("torch_mlp", device, &c)};
    if (count.is_there) case_close(&c);
    count.graphs = sp__cuda_call_count(SP_CUDA_CALL_cuGraphInstantiate) - graphs;
    count.kernels = sp__cuda_call_count(SP_CUDA_CALL_cuGraphAddKernelNode) - kernels;
    count.edges = sp__cuda_call_count(SP_CUDA_CALL_cuGraphAddDependencies) - edges;
    segment_end();
    return count;
}

TEST(every_kernel_behind_another_is_launched_early)
{
    const edge_count count = count_edges(90);
    if (!count.is_there) SKIP("no shared data");
    CHECK(count.kernels >= 3);
    CHECK_EQ_U64(count.edges, count.kernels - count.graphs); /* all but the first of a graph */
}

TEST(no_kernel_is_launched_early_where_its_code_does_not_wait)
{
    const edge_count count = count_edges(89);
    if (!count.is_there) SKIP("no shared data");
    CHECK(count.kernels >= 3);
    CHECK_EQ_U64(count.edges, 0);
}

TEST_MAIN
