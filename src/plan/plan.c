/* SPDX-License-Identifier: Apache-2.0 */
/* Entry of compilation: checks the request, creates the builder, and runs the passes. */
#include "plan/plan.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/fpenv.h"
#include "base/heap.h"
#include "base/macros.h"
#include "plan/plan_blocks.h"
#include "plan/plan_build.h"
#include "plan/plan_fuse.h"
#include "plan/plan_strides.h"

/* ---- the request ---- */

static sp_status check_port(const sp_graph_port *port, const sp_plan_input *input, bool is_any_size)
{
    const sp_text_print name = sp__text_print(sp__text(port->name));
    uint64_t bytes;
    if (sp_dtype_bytes(input->dtype) == 0 || input->shape.rank > SP_MAX_RANK) {
        return sp__fail(SP_INVALID, "input '%s' has no element type, or a rank above %d", name.text,
                        SP_MAX_RANK);
    }
    const sp_status status = sp__shape_bytes(&input->shape, input->dtype, &bytes);
    if (status != SP_OK) return sp__fail_prefix(status, "input '%s': ", name.text);
    if (port->dtype != SP_DTYPE_NONE && port->dtype != input->dtype) {
        return sp__fail(SP_MISMATCH, "input '%s' is of type %s; the model expects %s", name.text,
                        sp_dtype_name(input->dtype), sp_dtype_name(port->dtype));
    }
    if (!port->has_shape || is_any_size) return SP_OK;
    if (port->rank != input->shape.rank) {
        return sp__fail(SP_MISMATCH, "input '%s' has shape %s; the model expects rank %" PRIu32,
                        name.text, sp__shape_print(&input->shape).text, port->rank);
    }
    for (uint32_t i = 0; i < port->rank; i++) {
        if (port->dims[i] < 0 || port->dims[i] == input->shape.dims[i]) continue;
        return sp__fail(SP_MISMATCH,
                        "input '%s' has shape %s; the model expects %" PRId64
                        " in dimension %" PRIu32,
                        name.text, sp__shape_print(&input->shape).text, port->dims[i], i);
    }
    return SP_OK;
}

/* Free dimensions with the same name must have the same size, in the inputs 0 to `last`. */
static sp_status check_dim_names(const sp_graph *graph, const sp_plan_request *request,
                                 uint32_t last)
{
    const sp_graph_port *port = &graph->inputs[last];
    for (uint32_t i = 0; i < port->rank; i++) {
        if (port->dims[i] >= 0 || port->dim_names[i][0] == '\0') continue;
        for (uint32_t p = 0; p <= last; p++) {
            const sp_graph_port *other = &graph->inputs[p];
            for (uint32_t k = 0; k < other->rank; k++) {
                const int64_t here = request->inputs[last].shape.dims[i];
                const int64_t there = request->inputs[p].shape.dims[k];
                if (other->dims[k] >= 0 || here == there) continue;
                if (strcmp(other->dim_names[k], port->dim_names[i]) != 0) continue;
                return sp__fail(SP_MISMATCH,
                                "dimension '%s' is %" PRId64 " in input '%s' and %" PRId64
                                " in input '%s'",
                                port->dim_names[i], there, other->name, here, port->name);
            }
        }
    }
    return SP_OK;
}

static sp_status check_request(const sp_graph *graph, const sp_plan_request *request)
{
    if (request->subgraph != NULL) return SP_OK; /* the run has computed these values itself */
    if (request->input_count != graph->input_count) {
        return sp__fail(SP_MISMATCH, "%" PRIu32 " inputs are given; the model expects %" PRIu32,
                        request->input_count, graph->input_count);
    }
    for (uint32_t i = 0; i < graph->input_count; i++) {
        SP_TRY(check_port(&graph->inputs[i], &request->inputs[i], request->is_any_size));
        SP_TRY(check_dim_names(graph, request, i));
    }
    for (uint32_t i = 0; i < request->override_count; i++) {
        const sp_plan_override *override = &request->overrides[i];
        if (override->index >= graph->default_count) {
            return sp__fail(SP_INVALID, "the model has no default number %" PRIu32,
                            override->index);
        }
        SP_TRY(
            check_port(&graph->defaults[override->index], &override->input, request->is_any_size));
    }
    return SP_OK;
}

/* ---- the builder ---- */

static sp_status builder_init(sp_plan_builder *builder)
{
    const uint32_t count = builder->plan->graph->value_count;
    const size_t operands = builder->plan->graph->max_operands;
    sp__lowering_init(&builder->lowering);
    builder->values = sp_calloc(count, sizeof(*builder->values));
    builder->operands = sp_calloc(2 * operands, sizeof(*builder->operands));
    builder->arrays = sp_calloc(operands, sizeof(*builder->arrays));
    if (builder->values == NULL || builder->operands == NULL || builder->arrays == NULL) {
        return sp__fail(SP_OUT_OF_MEMORY, "no memory to compile a plan");
    }
    builder->value_count = builder->value_capacity = count;
    return SP_OK;
}

static void builder_deinit(sp_plan_builder *builder)
{
    sp__lowering_deinit(&builder->lowering);
    sp__plan_subgraph_deinit(builder);
    sp_free(builder->values);
    sp_free(builder->steps);
    sp_free(builder->packings);
    sp_free(builder->operands);
    sp_free(builder->arrays);
}

static sp_status builder_fill(const sp_graph *graph, sp_plan_builder *builder)
{
    builder->plan->graph = graph;
    /* No limit: the size of the graph is bounded already. */
    sp__bump_init(&builder->plan->bump, UINT64_MAX);
    builder->kernels = builder->request->kernels;
    if (builder->kernels == NULL) builder->kernels = sp__cpu_kernels(sp__cpu_isa_selected());
    builder->plan->kernels = builder->kernels;
    SP_TRY(builder_init(builder));
    return sp__plan_subgraph_begin(builder);
}

sp_status sp__plan_builder_create(const sp_graph *graph, const sp_plan_request *request,
                                  sp_plan_builder *out)
{
    SP_TRY(check_request(graph, request));
    *out = (sp_plan_builder){.plan = sp_calloc(1, sizeof(sp_graph_plan)), .request = request};
    if (out->plan == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a plan");
    const sp_status status = builder_fill(graph, out);
    if (status != SP_OK) sp__plan_builder_destroy(out);
    return status;
}

void sp__plan_builder_destroy(sp_plan_builder *builder)
{
    builder_deinit(builder);
    sp__plan_destroy(builder->plan);
}

bool sp__plan_step_is_narrow(const sp_plan_step *step)
{
    switch (step->kernel) {
    case SP_KERNEL_ID_gemm_f32:
    case SP_KERNEL_ID_gemm_strided_f32: /* its constants begin with those of gemm_f32 */
        return ((const sp_gemm_constants *)step->constants)->rounding != SP_ROUNDING_NONE;
    case SP_KERNEL_ID_attention_f32:
        return ((const sp_attention_constants *)step->constants)->rounding != SP_ROUNDING_NONE;
    default:
        return sp__kernel_is_narrow(step->kernel);
    }
}

static void find_narrow(sp_plan_builder *builder)
{
    for (uint32_t s = 0; s < builder->plan->step_count; s++) {
        const sp_plan_step *step = &builder->steps[s];
        if (step->kernel == SP_NO_KERNEL || !sp__plan_step_is_narrow(step)) continue;
        builder->plan->has_narrow = true;
    }
}

static sp_status plan_build(sp_plan_builder *builder)
{
    SP_TRY(sp__plan_record(builder));
    SP_TRY(sp__plan_subgraph_end(builder));
    if (!builder->request->is_unfused) SP_TRY(sp__plan_fuse(builder));
    if (builder->request->is_blocked) SP_TRY(sp__plan_block(builder));
    if (builder->request->is_strided) SP_TRY(sp__plan_stride(builder));
    if (!builder->request->is_unfused) {
        SP_TRY(sp__plan_fuse_attention(builder));
        SP_TRY(sp__plan_fuse_addends(builder));
        SP_TRY(sp__plan_fuse_packed(builder));
        SP_TRY(sp__plan_fuse_halves(builder));
    }
    find_narrow(builder);
    SP_TRY(sp__plan_finish_packings(builder));
    return sp__plan_place(builder);
}

sp_status sp__plan_compile(const sp_graph *graph, const sp_plan_request *request,
                           const sp_graph_plan **out)
{
    sp_plan_builder builder;
    *out = NULL;
    SP_TRY(sp__plan_builder_create(graph, request, &builder));
    /* Sizes and scales are computed in floating point, and must not depend on the caller's FP
     * state. */
    const sp_fpenv before = sp_fpenv_enter();
    const sp_status status = plan_build(&builder);
    sp_fpenv_leave(before);
    if (status != SP_OK) {
        sp__plan_builder_destroy(&builder);
        return status;
    }
    *out = builder.plan;
    builder_deinit(&builder);
    return SP_OK;
}

/* Each size is at most SP_MAX_TENSOR_BYTES and their number is small, so the sum does not
 * overflow. */
sp_status sp__plan_check_bytes(const sp_graph_plan *plan, uint64_t max_bytes)
{
    uint64_t outputs = 0;
    for (uint32_t i = 0; i < plan->output_count; i++) outputs += plan->outputs[i].bytes;
    if (max_bytes == 0 || plan->arena_bytes + outputs <= max_bytes) return SP_OK;
    return sp__fail(SP_EXHAUSTED,
                    "a run would take %" PRIu64 " bytes of memory (%" PRIu64
                    " between its steps, %" PRIu64 " of outputs); max_run_bytes allows %" PRIu64,
                    plan->arena_bytes + outputs, plan->arena_bytes, outputs, max_bytes);
}

void sp__plan_destroy(const sp_graph_plan *plan)
{
    if (plan == NULL) return;
    sp_graph_plan *owned = (sp_graph_plan *)(uintptr_t)plan; /* const for its users only */
    for (uint32_t i = 0; i < owned->constant_count; i++) sp_free(owned->constants[i].data);
    sp_free((void *)(uintptr_t)owned->constants);
    sp__bump_deinit(&owned->bump);
    sp_free(owned);
}
