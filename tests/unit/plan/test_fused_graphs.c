/* SPDX-License-Identifier: Apache-2.0 */
/* Random graphs of what plans fuse or read by strides: the bits of the steps, on every instruction
 * set, in plans for the CPU and in those for other devices. */
#include <string.h>

#include "base/macros.h"
#include "support/fused_graph.h"
#include "support/fused_plans.h"
#include "support/test.h"

static uint64_t used[SP_KERNEL_COUNT]; /* steps of all fused plans */

static const sp_graph_plan *compile(const sp_graph *graph, const sp_array *x, sp_cpu_isa isa,
                                    bool is_for_cpu)
{
    const sp_plan_input input = {.dtype = x->dtype, .shape = x->shape};
    const sp_plan_request request = {.kernels = sp__cpu_kernels(isa),
                                     .inputs = &input,
                                     .input_count = 1,
                                     .is_blocked = is_for_cpu,
                                     .is_strided = is_for_cpu};
    const sp_graph_plan *plan = NULL;
    CHECK_OK(sp__plan_compile(graph, &request, &plan));
    if (plan != NULL) CHECK_OK(sp__plan_check(plan));
    return plan;
}

/* False, after a failed check: the bits differ. */
static bool check_plan(const sp_graph_plan *plan, const sp_array *x, const sp_array *want)
{
    sp_array got[FUSED_GRAPH_OUTPUTS] = {0};
    const sp_status status = data_run_plan(plan, x, got);
    CHECK_OK(status);
    bool is_same = status == SP_OK;
    for (uint32_t i = 0; i < plan->output_count && is_same; i++) {
        is_same = memcmp(got[i].data, want[i].data, (size_t)want[i].bytes) == 0;
    }
    CHECK(is_same);
    data_free(got, FUSED_GRAPH_OUTPUTS);
    for (uint32_t s = 0; s < plan->step_count; s++) used[plan->steps[s].kernel]++;
    return is_same;
}

static bool check_plans(const sp_graph *graph, const sp_array *x, const sp_array *want)
{
    bool is_same = true;
    for (int i = 0; i < 2 * SP_CPU_ISA_COUNT && is_same; i++) {
        const sp_cpu_isa isa = (sp_cpu_isa)(i / 2);
        if (sp__cpu_kernels(isa) == NULL) continue;
        const sp_graph_plan *plan = compile(graph, x, isa, i % 2 == 0);
        is_same = plan != NULL && check_plan(plan, x, want);
        sp__plan_destroy(plan);
    }
    return is_same;
}

static bool check_seed(uint64_t seed)
{
    sp_shape shape;
    sp_array want[FUSED_GRAPH_OUTPUTS] = {0};
    const sp_graph *graph = fused_graph_make(seed, &shape);
    if (graph == NULL) return false;
    sp_array x = fused_graph_input(seed, &shape);
    const sp_graph_plan *apart = fused_plans_compile(graph, &x, 1, SP_CPU_PORTABLE, true);
    bool is_same = apart != NULL && data_run_plan(apart, &x, want) == SP_OK;
    CHECK(is_same);
    is_same = is_same && check_plans(graph, &x, want);
    if (!is_same) test_note("seed %llu", (unsigned long long)seed);
    data_free(want, FUSED_GRAPH_OUTPUTS);
    sp__array_deinit(&x);
    sp__plan_destroy(apart);
    sp__graph_destroy(graph);
    return is_same;
}

TEST(random_graphs_have_the_bits_of_their_steps)
{
    const uint64_t count = test_count(100000, 3000);
    for (uint64_t seed = 1; seed <= count; seed++) REQUIRE(check_seed(seed));
    static const sp_kernel_id fused[] = {SP_KERNEL_ID_row_norm_f32,
                                         SP_KERNEL_ID_row_affine_f32,
                                         SP_KERNEL_ID_erf_gate_f32,
                                         SP_KERNEL_ID_clip_gate_f32,
                                         SP_KERNEL_ID_hard_sigmoid_gate_f32,
                                         SP_KERNEL_ID_softplus_gate_f32,
                                         SP_KERNEL_ID_tanh_gate_f32,
                                         SP_KERNEL_ID_attention_f32,
                                         SP_KERNEL_ID_gemm_strided_f32,
                                         SP_KERNEL_ID_copy_strided,
                                         SP_KERNEL_ID_scatter_nd};
    for (size_t i = 0; i < SP_COUNT_OF(fused) && test_scale() >= 1; i++) {
        CHECK(used[fused[i]] >= 10);
        if (used[fused[i]] < 10) test_note("kernel %d: %d", fused[i], (int)used[fused[i]]);
    }
}

TEST_MAIN
