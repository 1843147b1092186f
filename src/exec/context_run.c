/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a context: submits its lists to a stream and to the queues of the other targets. */
#include "base/backoff.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/heap.h"
#include "base/thread.h"
#include "device/wait.h"
#include "exec/context.h"
#include "exec/reports.h"
#include "runtime/current_stream.h"
#include "runtime/submit.h"

static void port_bind(sp_exec_context *context, uint32_t port, const void *data, uint64_t bytes,
                      sp_access access)
{
    sp_dev *dev = context->executable->targets[SP_SEGMENT_MODEL].device->dev;
    context->ports[port] = sp__memory_at_host(dev, data, bytes);
    context->slots[port] =
        (sp_binding){.memory = &context->ports[port], .bytes = bytes, .access = (uint8_t)access};
}

static void ports_bind(sp_exec_context *context, const void *const *inputs, void *const *outputs)
{
    const sp_graph_plan *plan = context->executable->plan;
    for (uint32_t i = 0; i < plan->input_count; i++) {
        port_bind(context, i, inputs[i], plan->inputs[i].bytes, SP_READ);
    }
    for (uint32_t i = 0; i < plan->output_count; i++) {
        port_bind(context, plan->input_count + i, outputs[i], plan->outputs[i].bytes, SP_WRITE);
    }
}

/* The list of a context without an arena, which is its only one. */
static sp_status workspace_submit(const sp_exec_context *context, const sp_stream_ref *stream,
                                  sp_command command, bool is_awaited)
{
    sp_workspaces *workspaces = &sp__executable_device(context->executable)->workspaces;
    sp_context_workspace *use = context->workspace;
    sp_point after;
    sp_workspace *workspace =
        sp__workspace_acquire(workspaces, &use->need, stream->queue, use->former, &after);
    const sp_binding arena = {
        .memory = &workspace->range, .bytes = use->need.bytes, .access = SP_READ_WRITE};
    command.bindings = &arena;
    const sp_submission submission = {.waits = &after,
                                      .wait_count = after.timeline != NULL ? 1 : 0,
                                      .commands = &command,
                                      .command_count = 1,
                                      .is_awaited = is_awaited};
    sp_point last = {0};
    const sp_status status = sp__submit_plain(stream, &submission, &last);
    sp__workspace_release(workspaces, workspace, status == SP_OK ? last : (sp_point){0});
    use->former = workspace;
    context->points[0] = last;
    return status;
}

/* Each list but the first waits for the one before it, which has been accepted: every wait is for
 * something older, so there is no wait cycle. */
static sp_status segment_submit(const sp_exec_context *context, const sp_stream_ref *stream,
                                sp_queue *const *queues, uint32_t g, bool is_awaited)
{
    const sp_executable *executable = context->executable;
    const sp_command command = {.type = SP_COMMAND_LIST,
                                .list = context->lists[g],
                                .cancel = context->cancel,
                                .bindings = context->slots,
                                .binding_count = sp__exec_context_slots(context)};
    const bool is_first = g == 0;
    const sp_submission submission = {.waits = is_first ? NULL : &context->points[g - 1],
                                      .wait_count = is_first ? 0 : 1,
                                      .commands = &command,
                                      .command_count = 1,
                                      .fault_count = is_first ? 0 : 1,
                                      .is_awaited = is_awaited};
    sp_stream_ref to = *stream;
    const uint32_t target = executable->segments.list[g].device;
    if (target != SP_SEGMENT_MODEL) {
        to.queue = queues[target];
        to.lease = 0; /* the lease is of the stream's own queue */
    }
    if (context->workspace != NULL) return workspace_submit(context, &to, command, is_awaited);
    return is_awaited && executable->segments.count == 1
               ? sp__submit_and_run(&to, &submission, &context->points[g])
               : sp__submit_plain(&to, &submission, &context->points[g]);
}

sp_status sp__exec_context_submit_segment(const sp_exec_context *context,
                                          const sp_stream_ref *stream, sp_queue *const *queues,
                                          uint32_t g)
{
    return segment_submit(context, stream, queues, g, false);
}

/* Waits for the first `count` lists in order, since a thread helps the queue that it waits for. */
static void segments_wait(const sp_exec_context *context, uint32_t count)
{
    for (uint32_t g = 0; g < count; g++) {
        const sp_point point = context->points[g];
        sp_backoff backoff = {0};
        /* Fails only without memory for this thread's record; other threads complete the work
         * then. */
        while (sp__point_wait_passed(point, SP_NO_DEADLINE) != SP_OK &&
               !sp__point_has_passed(point)) {
            sp_backoff_turn(&backoff);
        }
    }
}

void sp__exec_context_begin(sp_exec_context *context, const void *const *inputs,
                            void *const *outputs)
{
    if (context->staging == NULL) {
        ports_bind(context, inputs, outputs);
    } else {
        sp__staging_copy_in(context->staging, inputs);
    }
}

sp_status sp__exec_context_submit(const sp_exec_context *context, const sp_stream_ref *stream,
                                  sp_queue *const *queues, sp_point *last)
{
    sp_status status = SP_OK;
    uint32_t count = 0;
    while (status == SP_OK && count < context->executable->segments.count) {
        status = segment_submit(context, stream, queues, count, false);
        if (status == SP_OK) count++;
    }
    /* No thread waits and helps, so flush what was submitted. */
    for (uint32_t g = 0; g < count; g++) sp__point_flush(context->points[g]);
    *last = count > 0 ? context->points[count - 1] : (sp_point){0};
    return status;
}

void sp__exec_context_end(const sp_exec_context *context, void *const *outputs)
{
    if (context->staging != NULL) sp__staging_copy_out(context->staging, outputs);
}

/* The list `g` was refused, with the thread's last error. Accepted lists use the context's memory,
 * so they are waited for; if they have failed, that is the failure of the run. */
static SP_NOINLINE sp_status lists_refused(const sp_exec_context *context, uint32_t g,
                                           sp_status refused)
{
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    segments_wait(context, g);
    sp__error_put_back(&scope);
    const sp_fault fault = g > 0 ? sp__point_fault(context->points[g - 1]) : SP_NO_FAULT;
    const bool has_failed = fault != SP_NO_FAULT && !SP_PLANTED(refusal_hides);
    return has_failed ? sp__fault_report(fault) : refused;
}

/* For a thread that waits next: it runs a lone list itself; of several, those of other devices come
 * first. */
static sp_status lists_submit(const sp_exec_context *context, const sp_stream_ref *stream,
                              sp_queue *const *queues)
{
    const uint32_t last = context->executable->segments.count - 1;
    for (uint32_t g = 0; g <= last; g++) {
        const sp_status status = segment_submit(context, stream, queues, g, true);
        if (SP_UNLIKELY(status != SP_OK)) return lists_refused(context, g, status);
    }
    return SP_OK;
}

static sp_status lists_wait(const sp_exec_context *context)
{
    const uint32_t last = context->executable->segments.count - 1;
    segments_wait(context, last);
    SP_TRY(sp__point_wait(context->points[last], SP_NO_DEADLINE));
    return sp__reports_take(context);
}

sp_status sp__exec_context_run(sp_exec_context *context, const sp_stream_ref *stream,
                               const void *const *inputs, void *const *outputs)
{
    const sp_executable *executable = context->executable;
    sp_queue *queues[SP_MAX_TARGETS] = {stream->queue};
    for (uint32_t t = 1; t < executable->target_count; t++) {
        queues[t] = sp__fallback_queue(executable->targets[t].device, stream->stream);
    }
    sp__exec_context_begin(context, inputs, outputs);
    SP_TRY(lists_submit(context, stream, queues));
    SP_TRY(lists_wait(context));
    sp__exec_context_end(context, outputs);
    return SP_OK;
}

sp_status sp__exec_context_submit_bound(const sp_exec_context *context, sp_queue *const *queues,
                                        sp_point *last)
{
    const sp_stream_ref stream = {.queue = queues[SP_SEGMENT_MODEL]};
    const sp_status status = lists_submit(context, &stream, queues);
    *last = context->points[context->executable->segments.count - 1];
    return status;
}

sp_status sp__exec_context_wait_bound(const sp_exec_context *context)
{
    return lists_wait(context);
}

sp_status sp__exec_context_run_bound(const sp_exec_context *context, sp_queue *const *queues)
{
    sp_point last;
    SP_TRY(sp__exec_context_submit_bound(context, queues, &last));
    return lists_wait(context);
}

/* Memory of a run on the calling thread: the context's, or, of a device whose memory the host
 * cannot access, the heap's. */
typedef struct inline_memory {
    void *arena;
    void *heap; /* NULL, or what has to be freed */
    void *const *packed;
} inline_memory;

static sp_status arena_find(const sp_exec_context *context, inline_memory *memory)
{
    const sp_block *block = context->arenas[SP_SEGMENT_MODEL];
    if (block == NULL && context->workspace == NULL) return SP_OK;
    if (block != NULL) memory->arena = sp__memory_host_or_null(&block->slab->memory, block->offset);
    if (SP_LIKELY(memory->arena != NULL)) return SP_OK;
    const uint64_t bytes = context->executable->plan->arena_bytes;
    memory->heap = sp_aligned_malloc(SP_ARRAY_ALIGNMENT, (size_t)bytes + SP_ARRAY_ALIGNMENT);
    memory->arena = memory->heap;
    return memory->heap != NULL ? SP_OK : sp__fail(SP_OUT_OF_MEMORY, "no memory for a run");
}

static sp_status inline_memory_find(const sp_exec_context *context, inline_memory *out)
{
    *out = (inline_memory){0};
    SP_TRY(sp__executable_host_packed(context->executable, &out->packed));
    return arena_find(context, out);
}

/* The calling thread would sum in another order than the device. */
static sp_status check_inline(const sp_exec_context *context)
{
    if (!context->executable->plan->has_narrow) return SP_OK;
    return sp__fail(
        SP_UNSUPPORTED,
        "the model was loaded with a precision of products that %s computes; a run in a "
        "host function or callback is computed by the calling thread, which has other "
        "bits: run it elsewhere",
        sp__executable_device(context->executable)->dev->limits.name);
}

sp_status sp__exec_context_run_inline(sp_exec_context *context, const void *const *inputs,
                                      void *const *outputs)
{
    inline_memory memory;
    SP_TRY(check_inline(context));
    SP_TRY(inline_memory_find(context, &memory));
    const sp_status status = sp__plan_run_packed(context->executable->plan, inputs, outputs,
                                                 memory.arena, memory.packed, context->cancel);
    sp_free(memory.heap);
    return status;
}

sp_status sp__exec_context_run_timed(sp_exec_context *context, const void *const *inputs,
                                     void *const *outputs, uint64_t *step_ns)
{
    inline_memory memory;
    SP_TRY(inline_memory_find(context, &memory));
    const sp_status status = sp__plan_run_timed(context->executable->plan, inputs, outputs,
                                                memory.arena, memory.packed, step_ns);
    sp_free(memory.heap);
    return status;
}
