/* SPDX-License-Identifier: Apache-2.0 */
/* Plans for a GPU, of random graphs: step by step in the emulator they have the CPU's bits. Calls
 * of single ops are in test_cuda_bits; here are fused steps, views, weights that are packed, and
 * memory that results take over from operands. */
#include <stdlib.h>
#include <string.h>

#include "base/fpenv.h"
#include "cuda/cuda_emulator.h"
#include "ops/cuda/cuda_kernels.h"
#include "ops/lowering.h"
#include "support/fused_graph.h"
#include "support/image_graph.h"
#include "support/test.h"

enum { OUTPUTS = 8, PACKINGS = 64, SHARED_BYTES = 227 * 1024 };

static uint64_t used[SP_KERNEL_COUNT]; /* steps that were emulated */

/* The memory of one run. */
typedef struct places {
    const sp_graph_plan *plan;
    const sp_array *x;
    sp_array *outputs;
    void *packed[PACKINGS];
    char *arena;
} places;

static void *address_of(const places *run, const sp_plan_binding *binding)
{
    switch (binding->where) {
    case SP_PLACE_INPUT:
        return run->x->data;
    case SP_PLACE_OUTPUT:
        return run->outputs[binding->index].data;
    case SP_PLACE_WEIGHT:
        return run->plan->graph->weights[binding->index].data;
    case SP_PLACE_PACKED:
        return run->packed[binding->index];
    case SP_PLACE_CONSTANT:
        return run->plan->constants[binding->index].data;
    default:
        return run->arena + binding->offset;
    }
}

/* Memory of NaNs. */
static void *memory_of(uint64_t bytes)
{
    void *memory = aligned_alloc(64, (size_t)(bytes + 127) / 64 * 64);
    if (memory == NULL) abort();
    memset(memory, 0xff, (size_t)bytes);
    return memory;
}

/* `largest`: blocks of a grid along its first dimension, at most; the kernels then loop. */
static void run_step(const places *run, const sp_plan_step *step, uint32_t largest)
{
    const sp_gpu_kernel *gpu = sp__cuda_kernels()[step->kernel].gpu;
    void *bindings[SP_MAX_BINDINGS + 1];
    uint32_t count = 0;
    REQUIRE(gpu != NULL);
    while (count < step->binding_count) {
        bindings[count] = address_of(run, &step->bindings[count]);
        count++;
    }
    sp_gpu_report report = {0};
    if (gpu->reports) bindings[count++] = &report;
    sp_launch_shape shape = {0};
    if (gpu->tiled != NULL) gpu->tiled(step->constants, SHARED_BYTES, &shape);
    else gpu->shape(step->constants, &shape);
    if (shape.grid[0] == 0 || shape.grid[1] == 0 || shape.grid[2] == 0) return;
    if (shape.grid[0] > largest && gpu->tiled == NULL) shape.grid[0] = largest;
    if (shape.variant != NULL) gpu = shape.variant;
    CHECK(cuda_emulator_launch(gpu->entry, &shape, bindings, count, step->constants));
    CHECK_EQ_U64((uint64_t)report.most, 0);
    used[step->kernel]++;
}

static void run_plan(const sp_graph_plan *plan, const sp_array *x, uint32_t largest,
                     sp_array *outputs)
{
    places run = {.plan = plan, .x = x, .outputs = outputs, .arena = memory_of(plan->arena_bytes)};
    REQUIRE(plan->packing_count <= PACKINGS);
    for (uint32_t i = 0; i < plan->packing_count; i++) {
        run.packed[i] = memory_of(plan->packings[i].bytes);
        CHECK_OK(sp__packing_run(plan->graph, &plan->packings[i], plan->kernels, run.packed[i]));
    }
    for (uint32_t i = 0; i < plan->output_count; i++) {
        CHECK_OK(sp__array_init(&outputs[i], plan->outputs[i].dtype, &plan->outputs[i].shape));
        memset(outputs[i].data, 0xff, (size_t)outputs[i].bytes);
    }
    for (uint32_t s = 0; s < plan->step_count; s++) run_step(&run, &plan->steps[s], largest);
    for (uint32_t i = 0; i < plan->packing_count; i++) free(run.packed[i]);
    free(run.arena);
}

static const sp_graph_plan *compile(const sp_graph *graph, const sp_array *x, bool is_unfused)
{
    const sp_plan_input input = {.dtype = x->dtype, .shape = x->shape};
    const sp_plan_request request = {.kernels = sp__cpu_kernels(SP_CPU_PORTABLE),
                                     .inputs = &input,
                                     .input_count = 1,
                                     .is_unfused = is_unfused};
    const sp_graph_plan *plan = NULL;
    CHECK_OK(sp__plan_compile(graph, &request, &plan));
    return plan;
}

static bool plans_agree(const sp_graph_plan *apart, const sp_graph_plan *fused, const sp_array *x,
                        uint32_t largest)
{
    sp_array want[OUTPUTS] = {0}, got[OUTPUTS] = {0};
    bool is_same = data_run_plan(apart, x, want) == SP_OK;
    const sp_fpenv before = sp_fpenv_enter();
    run_plan(fused, x, largest, got);
    sp_fpenv_leave(before);
    for (uint32_t i = 0; i < apart->output_count && is_same; i++) {
        is_same = got[i].bytes == want[i].bytes &&
                  memcmp(got[i].data, want[i].data, (size_t)want[i].bytes) == 0;
    }
    data_free(want, OUTPUTS);
    data_free(got, OUTPUTS);
    return is_same;
}

/* Destroys the graph, and frees x. */
static bool check_graph(const sp_graph *graph, sp_array *x, uint64_t seed)
{
    if (graph == NULL) return false;
    const sp_graph_plan *apart = compile(graph, x, true), *fused = compile(graph, x, false);
    const bool is_same = apart != NULL && fused != NULL &&
                         plans_agree(apart, fused, x, seed % 2 == 0 ? 2 : UINT32_MAX);
    CHECK(is_same);
    if (!is_same) test_note("seed %llu", (unsigned long long)seed);
    sp__plan_destroy(apart);
    sp__plan_destroy(fused);
    sp__graph_destroy(graph);
    sp__array_deinit(x);
    return is_same;
}

TEST(fused_graphs_have_the_bits_of_the_cpu)
{
    for (uint64_t seed = 1; seed <= test_count(20000, 500); seed++) {
        sp_shape shape;
        const sp_graph *graph = fused_graph_make(seed, &shape);
        sp_array x = fused_graph_input(seed, &shape);
        REQUIRE(check_graph(graph, &x, seed));
    }
    CHECK(test_scale() < 1 || used[SP_KERNEL_ID_row_norm_f32] > 10);
}

TEST(graphs_of_images_have_the_bits_of_the_cpu)
{
    for (uint64_t seed = 1; seed <= test_count(4000, 60); seed++) {
        image_graph maker;
        sp_shape shape;
        const sp_graph *graph = image_graph_make(&maker, seed, &shape);
        sp_array x = data_floats(&maker.random, &shape);
        image_graph_add_specials(&maker, x.data, (size_t)(x.bytes / sizeof(float)));
        REQUIRE(check_graph(graph, &x, seed));
    }
    CHECK(test_scale() < 1 || used[SP_KERNEL_ID_conv_f32] > 10);
}

TEST_MAIN
