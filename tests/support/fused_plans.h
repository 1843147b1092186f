/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of one graph with fused steps and without. */
#ifndef SP_TESTS_SUPPORT_FUSED_PLANS_H
#define SP_TESTS_SUPPORT_FUSED_PLANS_H

#include "plan/plan.h"
#include "support/onnx_writer.h"

/* Loads a written graph, of opset 14, and frees it; NULL after a failed check. */
const sp_graph *fused_plans_load(writer *graph);

/* A plan for these inputs, at most 8; NULL after a failed check. */
const sp_graph_plan *fused_plans_compile(const sp_graph *graph, const sp_array *inputs,
                                         uint32_t count, sp_cpu_isa isa, bool is_unfused);

/* The fused plan for other devices than the CPU, with the CPU's kernels. */
const sp_graph_plan *fused_plans_compile_for_others(const sp_graph *graph, const sp_array *inputs,
                                                    uint32_t count);

/* The number of steps with that kernel. */
uint32_t fused_plans_steps(const sp_graph_plan *plan, sp_kernel_id kernel);

/* The number of steps that pack an operand of a narrow product. */
uint32_t fused_plans_packings(const sp_graph_plan *plan);

/* Runs the plan and checks that its outputs have the bits of `want`; `what` is noted otherwise. */
void fused_plans_check_outputs(const sp_graph_plan *plan, const sp_array *inputs,
                               const sp_array *want, const char *what);

/* Checks that fused plans have so many steps with that kernel, those for other devices than the CPU
 * too, and unfused ones none, and that outputs have the same bits on every instruction set. */
void fused_plans_check(const sp_graph *graph, const sp_array *inputs, uint32_t count,
                       sp_kernel_id kernel, uint32_t steps);

#endif
