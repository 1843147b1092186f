/* SPDX-License-Identifier: Apache-2.0 */
/* A run of a small model compared with its bare kernels. */
#include <streampool/model.h>

#include <stdio.h>

#include "base/file.h"
#include "base/heap.h"
#include "bench.h"
#include "plan/plan.h"
#include "runtime_cases.h"

#define ACTION_INPUTS 48
#define ACTION_OUTPUTS 12
#define MOST_PACKINGS 8

typedef struct model_run {
    sp_model model;
    const sp_graph_plan *plan;
    void *arena;
    void *packed[MOST_PACKINGS];
    float input[ACTION_INPUTS];
    float output[ACTION_OUTPUTS];
} model_run;

static void run_model(void *ctx, uint64_t count)
{
    model_run *run = ctx;
    const sp_host_tensor in = {.data = run->input,
                               .bytes = sizeof run->input,
                               .dtype = SP_F32,
                               .rank = 2,
                               .shape = {1, ACTION_INPUTS}};
    for (uint64_t i = 0; i < count; i++) {
        sp_host_tensor out = {.data = run->output, .capacity = sizeof run->output};
        bench_check(sp_model_run(run->model, &in, 1, &out, 1) == SP_OK, "sp_model_run");
    }
}

/* The kernels of the plan, called in sequence. */
static void run_kernels(void *ctx, uint64_t count)
{
    model_run *run = ctx;
    const void *inputs[1] = {run->input};
    void *outputs[1] = {run->output};
    bool is_right = true;
    for (uint64_t i = 0; i < count; i++) {
        is_right &=
            sp__plan_run_packed(run->plan, inputs, outputs, run->arena, run->packed, NULL) == SP_OK;
    }
    bench_check(is_right, "the kernels");
}

static void pack_weights(model_run *run)
{
    const sp_graph_plan *plan = run->plan;
    bench_check(plan->packing_count <= MOST_PACKINGS, "few packings");
    for (uint32_t i = 0; i < plan->packing_count; i++) {
        const sp_packing *packing = &plan->packings[i];
        run->packed[i] = sp_aligned_malloc(64, packing->bytes);
        bench_check(sp__packing_run(plan->graph, packing, plan->kernels, run->packed[i]) == SP_OK,
                    "sp__packing_run");
    }
}

void bench_model(void)
{
    const char *path = SP_BENCH_DATA "/models/policy_go1/model.onnx";
    void *bytes;
    size_t len;
    if (sp_file_read(path, &bytes, &len) != SP_OK) {
        fprintf(stderr, "model_run_policy_go1: skipped, %s does not exist\n", path);
        return;
    }
    model_run run = {.input = {0.5f}};
    const sp_graph *graph;
    bench_check(sp_model_load_from_memory(bytes, len, NULL, &run.model) == SP_OK, "load");
    bench_check(sp__graph_load(bytes, len, &graph) == SP_OK, "sp__graph_load");
    const sp_plan_input input = {.dtype = SP_F32, .shape = {2, {1, ACTION_INPUTS}}};
    const sp_plan_request request = {.inputs = &input, .input_count = 1};
    bench_check(sp__plan_compile(graph, &request, &run.plan) == SP_OK, "sp__plan_compile");
    run.arena = sp_aligned_malloc(64, run.plan->arena_bytes);
    pack_weights(&run);
    const bench_pair pair = bench_pair_ns(run_model, run_kernels, &run);
    /* The extra cost of a round over the neighbouring round of bare kernels, plus the kernels'
     * median. */
    const bench_figure figure = bench_shifted(pair.extra, pair.peer.median);
    bench_print("model_run_policy_go1", &figure, "its kernels", pair.peer.median,
                pair.peer.median + 1000);
    for (uint32_t i = 0; i < MOST_PACKINGS; i++) sp_free(run.packed[i]);
    sp_free(run.arena);
    sp__plan_destroy(run.plan);
    sp__graph_destroy(graph);
    sp_free(bytes);
    sp_model_release(run.model);
}
