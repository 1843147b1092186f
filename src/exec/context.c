/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a context: arenas, ports, and memory for unrequested outputs. */
#include "exec/context.h"

#include "base/error.h"
#include "base/heap.h"
#include "exec/reports.h"

static bool has_staging(const sp_rt_device *device)
{
    return device->dev->vtable->staging_create != NULL;
}

/* The host arena is pinned for the model's device, which copies between it and its own. */
static sp_allocator *arena_allocator(const sp_executable *executable, uint32_t target)
{
    return target == SP_SEGMENT_FALLBACK ? &sp__executable_device(executable)->staging
                                         : &executable->targets[target].device->allocator;
}

/* Is the target's arena that of the model's device? */
static bool shares_arena(const sp_executable *executable, uint32_t target)
{
    return target == SP_SEGMENT_FALLBACK && !has_staging(sp__executable_device(executable));
}

/* A smaller arena is a part of a slab, and its run too short to wait for another one's. */
#define LARGE_ARENA_BYTES ((uint64_t)1 << 20)

bool sp__executable_uses_workspaces(const sp_executable *executable)
{
    const sp_rt_device *device = sp__executable_device(executable);
    return executable->target_count == 1 && device->dev->limits.range_unit != 0 &&
           executable->plan->arena_bytes > LARGE_ARENA_BYTES;
}

static sp_status workspace_hold(sp_exec_context *context)
{
    const sp_executable *executable = context->executable;
    sp_context_workspace *workspace = sp_calloc(1, sizeof *workspace);
    if (workspace == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a context");
    const sp_status status =
        sp__workspaces_hold(&sp__executable_device(executable)->workspaces, &workspace->need,
                            executable->plan->arena_bytes, context->is_spare);
    if (status == SP_OK) context->workspace = workspace;
    else sp_free(workspace);
    return status;
}

static void workspace_drop(sp_exec_context *context)
{
    if (context->workspace == NULL) return;
    sp__workspaces_drop(&sp__executable_device(context->executable)->workspaces,
                        &context->workspace->need);
    sp_free(context->workspace);
}

static void arenas_release(sp_exec_context *context)
{
    const sp_executable *executable = context->executable;
    workspace_drop(context);
    for (uint32_t t = 0; t < executable->target_count; t++) {
        sp_block *arena = context->arenas[t];
        if (arena == NULL || shares_arena(executable, t)) continue;
        sp__allocator_release(arena_allocator(executable, t), arena);
    }
}

/* Of host memory: with staging, it is for runs on the calling thread only. */
static sp_allocator *unrequested_allocator(sp_rt_device *device)
{
    return has_staging(device) ? &device->staging : &device->allocator;
}

void sp__exec_context_destroy(sp_exec_context *context)
{
    sp_rt_device *device = sp__executable_device(context->executable);
    sp__exec_context_destroy_lists(context);
    arenas_release(context);
    if (context->unrequested != NULL)
        sp__allocator_release(unrequested_allocator(device), context->unrequested);
    sp__staging_destroy(context->staging);
    sp__reports_destroy(context);
    sp_free(context->ports);
    sp_free(context->slots);
    sp_free(context);
}

static uint64_t aligned_bytes(const sp_plan_tensor *output)
{
    return (output->bytes + 63) & ~(uint64_t)63;
}

static sp_status unrequested_acquire(sp_exec_context *context, bool is_spare)
{
    const sp_executable *executable = context->executable;
    const sp_graph_plan *plan = executable->plan;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < plan->output_count; i++) bytes += aligned_bytes(&plan->outputs[i]);
    return sp__allocator_acquire_any(unrequested_allocator(sp__executable_device(executable)),
                                     bytes, is_spare, &context->unrequested);
}

/* True also for an arena of 0 bytes: values without bytes are bound to it, too. */
static bool plan_has_arena(const sp_graph_plan *plan)
{
    for (uint32_t s = 0; s < plan->step_count; s++) {
        const sp_plan_step *step = &plan->steps[s];
        for (uint32_t i = 0; i < step->binding_count; i++) {
            if (step->bindings[i].where == SP_PLACE_ARENA) return true;
        }
    }
    return false;
}

/* Staging buffers, or bindings of the caller's memory that each run fills in. */
static sp_status ports_create(sp_exec_context *context)
{
    const sp_executable *executable = context->executable;
    const sp_graph_plan *plan = executable->plan;
    const bool is_staged = context->is_for_tensors ? executable->target_count > 1
                                                   : has_staging(sp__executable_device(executable));
    if (is_staged) {
        return sp__staging_create(executable->targets, executable->target_count, plan,
                                  &executable->rows, context->is_spare, &context->staging);
    }
    if (context->is_for_tensors) return SP_OK;
    const uint32_t port_count = plan->input_count + plan->output_count;
    context->ports = sp_calloc(port_count, sizeof *context->ports);
    context->slots = sp_calloc(port_count, sizeof *context->slots);
    if (context->ports == NULL || context->slots == NULL) {
        return sp__fail(SP_OUT_OF_MEMORY, "no memory for a context");
    }
    /* Omitting the only output is rare: such a run allocates. Subgraphs have no unrequested
     * outputs. */
    if (plan->output_count <= 1 || plan->is_subgraph) return SP_OK;
    return unrequested_acquire(context, context->is_spare);
}

static sp_status arenas_create(sp_exec_context *context)
{
    const sp_executable *executable = context->executable;
    const sp_graph_plan *plan = executable->plan;
    if (!plan_has_arena(plan)) return SP_OK;
    if (!context->is_for_tensors && sp__executable_uses_workspaces(executable)) {
        return workspace_hold(context);
    }
    for (uint32_t t = 0; t < executable->target_count; t++) {
        if (shares_arena(executable, t)) {
            context->arenas[t] = context->arenas[SP_SEGMENT_MODEL];
            continue;
        }
        /* Bound to no stream: runs on different streams use the context in turn. */
        SP_TRY(sp__allocator_acquire_any(arena_allocator(executable, t), plan->arena_bytes,
                                         context->is_spare, &context->arenas[t]));
    }
    return SP_OK;
}

static sp_status context_fill(sp_exec_context *context)
{
    SP_TRY(arenas_create(context));
    SP_TRY(ports_create(context));
    SP_TRY(sp__reports_create(context));
    return sp__exec_context_create_lists(context);
}

static sp_status context_create(sp_executable *executable, bool is_spare, bool is_for_tensors,
                                sp_exec_context **out)
{
    sp_exec_context *context = sp_calloc(1, sizeof *context);
    if (context == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a context");
    context->executable = executable;
    context->is_spare = is_spare;
    context->is_for_tensors = is_for_tensors;
    const sp_status status = context_fill(context);
    if (status != SP_OK) {
        sp__exec_context_destroy(context);
        return status;
    }
    *out = context;
    return SP_OK;
}

sp_status sp__exec_context_create(sp_executable *executable, bool is_spare, sp_exec_context **out)
{
    return context_create(executable, is_spare, false, out);
}

sp_status sp__exec_context_create_for_tensors(sp_executable *executable, sp_exec_context **out)
{
    return context_create(executable, false, true, out);
}

sp_status sp__exec_context_cover_unrequested(sp_exec_context *context, bool is_spare,
                                             void **outputs)
{
    const sp_graph_plan *plan = context->executable->plan;
    bool is_any = false;
    for (uint32_t i = 0; i < plan->output_count; i++) is_any = is_any || outputs[i] == NULL;
    if (SP_LIKELY(!is_any)) return SP_OK;
    if (context->unrequested == NULL) SP_TRY(unrequested_acquire(context, is_spare));
    void *room;
    SP_TRY(sp__block_host(context->unrequested, &room));
    char *next = room;
    for (uint32_t i = 0; i < plan->output_count; i++) {
        if (outputs[i] == NULL) outputs[i] = next;
        next += aligned_bytes(&plan->outputs[i]);
    }
    return SP_OK;
}
