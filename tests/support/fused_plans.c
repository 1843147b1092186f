/* SPDX-License-Identifier: Apache-2.0 */
#include "support/fused_plans.h"

#include <string.h>

#include "support/model_data.h"
#include "support/test.h"

enum { MOST_PORTS = 8 };

const sp_graph *fused_plans_load(writer *graph)
{
    writer model = make_model(graph, 14);
    const sp_graph *loaded = NULL;
    CHECK_OK(sp__graph_load(model.bytes, model.len, &loaded));
    writer_free(&model);
    return loaded;
}

static const sp_graph_plan *compile(const sp_graph *graph, sp_plan_request request,
                                    const sp_array *inputs, uint32_t count)
{
    sp_plan_input given[MOST_PORTS];
    for (uint32_t i = 0; i < count; i++) {
        given[i] = (sp_plan_input){.dtype = inputs[i].dtype, .shape = inputs[i].shape};
    }
    request.inputs = given;
    request.input_count = count;
    const sp_graph_plan *plan = NULL;
    CHECK_OK(sp__plan_compile(graph, &request, &plan));
    if (plan != NULL) CHECK_OK(sp__plan_check(plan));
    return plan;
}

const sp_graph_plan *fused_plans_compile(const sp_graph *graph, const sp_array *inputs,
                                         uint32_t count, sp_cpu_isa isa, bool is_unfused)
{
    const sp_plan_request request = {.kernels = sp__cpu_kernels(isa),
                                     .is_unfused = is_unfused,
                                     .is_blocked = !is_unfused,
                                     .is_strided = !is_unfused};
    return compile(graph, request, inputs, count);
}

const sp_graph_plan *fused_plans_compile_for_others(const sp_graph *graph, const sp_array *inputs,
                                                    uint32_t count)
{
    const sp_plan_request request = {.kernels = sp__cpu_kernels(SP_CPU_PORTABLE)};
    return compile(graph, request, inputs, count);
}

uint32_t fused_plans_steps(const sp_graph_plan *plan, sp_kernel_id kernel)
{
    uint32_t count = 0;
    for (uint32_t s = 0; s < plan->step_count; s++) count += plan->steps[s].kernel == kernel;
    return count;
}

uint32_t fused_plans_packings(const sp_graph_plan *plan)
{
    return fused_plans_steps(plan, SP_KERNEL_ID_narrow_pack_tf32) +
           fused_plans_steps(plan, SP_KERNEL_ID_narrow_pack_f16) +
           fused_plans_steps(plan, SP_KERNEL_ID_narrow_pack_bf16);
}

void fused_plans_check_outputs(const sp_graph_plan *plan, const sp_array *inputs,
                               const sp_array *want, const char *what)
{
    sp_array got[MOST_PORTS] = {0};
    REQUIRE_OK(data_run_plan(plan, inputs, got));
    for (uint32_t i = 0; i < plan->output_count; i++) {
        CHECK_EQ_U64(got[i].bytes, want[i].bytes);
        const bool is_same = memcmp(got[i].data, want[i].data, (size_t)want[i].bytes) == 0;
        CHECK(is_same);
        if (!is_same) test_note("%s: output %u", what, i);
        sp__array_deinit(&got[i]);
    }
}

static void check_fused(const sp_graph_plan *fused, const sp_array *inputs, const sp_array *want,
                        sp_kernel_id kernel, uint32_t steps, const char *what)
{
    REQUIRE(fused != NULL);
    CHECK_EQ_INT(fused_plans_steps(fused, kernel), steps);
    fused_plans_check_outputs(fused, inputs, want, what);
    sp__plan_destroy(fused);
}

void fused_plans_check(const sp_graph *graph, const sp_array *inputs, uint32_t count,
                       sp_kernel_id kernel, uint32_t steps)
{
    sp_array want[MOST_PORTS] = {0};
    const sp_graph_plan *apart = fused_plans_compile(graph, inputs, count, SP_CPU_PORTABLE, true);
    REQUIRE(apart != NULL);
    CHECK_EQ_INT(fused_plans_steps(apart, kernel), 0);
    REQUIRE_OK(data_run_plan(apart, inputs, want));
    for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
        if (sp__cpu_kernels((sp_cpu_isa)isa) == NULL) continue;
        check_fused(fused_plans_compile(graph, inputs, count, (sp_cpu_isa)isa, false), inputs, want,
                    kernel, steps, "fused");
    }
    check_fused(fused_plans_compile_for_others(graph, inputs, count), inputs, want, kernel, steps,
                "fused for others");
    data_free(want, apart->output_count);
    sp__plan_destroy(apart);
}
