/* SPDX-License-Identifier: Apache-2.0 */
/* Executables, their contexts, and runs. The lists that a context replays are made in
 * context_lists.c. */
#include "exec/context.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/heap.h"
#include "exec/partition.h"

/* ---- executables ---- */

static sp_status make_labels(sp_executable *executable)
{
    const sp_graph_plan *plan = executable->plan;
    executable->labels = sp_calloc(plan->step_count, sizeof *executable->labels);
    if (executable->labels == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a plan");
    for (uint32_t i = 0; i < plan->step_count; i++) {
        const sp_plan_step *step = &plan->steps[i];
        char label[128];
        snprintf(label, sizeof label, "node '%.80s' (%.24s)", step->node_name, step->op_name);
        executable->labels[i] = sp_strdup(label);
        if (executable->labels[i] == NULL)
            return sp__fail(SP_OUT_OF_MEMORY, "no memory for a plan");
    }
    return SP_OK;
}

static sp_rt_device *model_device(const sp_executable *executable)
{
    return executable->targets[SP_SEGMENT_MODEL].device;
}

static sp_status upload_constants(const sp_executable *executable, sp_target *target)
{
    const sp_graph_plan *plan = executable->plan;
    return sp__upload(target->device, plan->constants, plan->constant_count, &target->constants);
}

static sp_status fallback_init(sp_executable *executable)
{
    const sp_graph *graph = executable->plan->graph;
    sp_target *target = &executable->targets[SP_SEGMENT_FALLBACK];
    SP_TRY(sp__rt_device_find((sp_device){0}, &target->device));
    executable->target_count = SP_SEGMENT_FALLBACK + 1;
    SP_TRY(sp__side_queues_make(target->device, model_device(executable)));
    SP_TRY(sp__upload(target->device, graph->weights, graph->weight_count, &target->own_weights));
    target->weights = target->own_weights.memories;
    return upload_constants(executable, target);
}

static sp_status plan_partition(sp_executable *executable)
{
    SP_TRY(sp__partition(executable->plan, model_device(executable), &executable->segments));
    const uint32_t count = executable->segments.fallback_step_count;
    if (count == 0) return SP_OK;
    const sp_status status = fallback_init(executable);
    if (status == SP_OK) return SP_OK;
    return sp__fail_prefix(status, "%u of %u steps run on the cpu: ", count,
                           executable->plan->step_count);
}

sp_status sp__executable_create(const sp_graph_plan *plan, sp_rt_device *device,
                                const sp_memory *weights, sp_executable **out)
{
    sp_executable *executable = sp_calloc(1, sizeof *executable);
    if (executable == NULL) {
        sp__plan_free(plan);
        return sp__fail(SP_OUT_OF_MEMORY, "no memory for a plan");
    }
    executable->plan = plan;
    executable->targets[SP_SEGMENT_MODEL] = (sp_target){.device = device, .weights = weights};
    executable->target_count = 1;
    sp_mutex_init(&executable->lock, SP_LOCK_EXECUTABLE);
    sp_mutex_lock(&executable->lock);
    sp__wait_queue_init(&executable->queue);
    sp_mutex_unlock(&executable->lock);
    sp_status status = make_labels(executable);
    if (status == SP_OK)
        status = upload_constants(executable, &executable->targets[SP_SEGMENT_MODEL]);
    if (status == SP_OK) status = plan_partition(executable);
    if (status != SP_OK) {
        sp__executable_release(executable);
        return status;
    }
    *out = executable;
    return SP_OK;
}

static bool has_staging(const sp_rt_device *device)
{
    return device->dev->vtable->staging_create != NULL;
}

/* The host arena is pinned for the model's device, which copies between it and its own. */
static sp_allocator *arena_allocator(const sp_executable *executable, uint32_t target)
{
    return target == SP_SEGMENT_FALLBACK ? &model_device(executable)->staging
                                         : &executable->targets[target].device->allocator;
}

/* Is the fallback's arena the model's device's? */
static bool shares_arena(const sp_executable *executable, uint32_t target)
{
    return target == SP_SEGMENT_FALLBACK && !has_staging(model_device(executable));
}

static void arenas_free(const sp_exec_context *context)
{
    const sp_executable *executable = context->executable;
    for (uint32_t t = 0; t < executable->target_count; t++) {
        sp_block *arena = context->arenas[t];
        if (arena == NULL || shares_arena(executable, t)) continue;
        sp__allocator_give(arena_allocator(executable, t), arena);
    }
}

static void context_free(sp_exec_context *context)
{
    sp_rt_device *device = model_device(context->executable);
    sp__exec_context_release_lists(context);
    arenas_free(context);
    if (context->unrequested != NULL) sp__allocator_give(&device->allocator, context->unrequested);
    sp__staging_destroy(context->staging);
    sp_free(context->ports);
    sp_free(context->slots);
    sp_free(context);
}

static sp_exec_context *take_idle(sp_executable *executable)
{
    sp_mutex_lock(&executable->lock);
    sp_exec_context *context = executable->idle;
    if (context != NULL) executable->idle = context->next;
    sp_mutex_unlock(&executable->lock);
    return context;
}

/* To the oldest waiter, which is returned, or to the idle ones. Afterwards the model may be
 * released, and this pool with it. */
static sp_wait_entry *hand_on(sp_exec_context *context)
{
    sp_executable *executable = context->executable;
    sp_mutex_lock(&executable->lock);
    sp_wait_entry *entry = sp__wait_queue_pop(&executable->queue);
    if (SP_LIKELY(entry == NULL)) {
        context->next = executable->idle;
        executable->idle = context;
    } else {
        entry->granted = context;
    }
    sp_mutex_unlock(&executable->lock);
    return entry;
}

void sp__executable_release(sp_executable *executable)
{
    for (sp_exec_context *context; (context = take_idle(executable)) != NULL;)
        context_free(context);
    for (uint32_t i = 0; executable->labels != NULL && i < executable->plan->step_count; i++) {
        sp_free(executable->labels[i]);
    }
    sp_free(executable->labels);
    for (uint32_t t = 0; t < executable->target_count; t++) {
        sp_target *target = &executable->targets[t];
        sp__upload_free(target->device, &target->own_weights);
        sp__upload_free(target->device, &target->constants);
    }
    sp__executable_unpack(executable);
    sp__segments_free(&executable->segments);
    sp__plan_free(executable->plan);
    sp_mutex_deinit(&executable->lock);
    sp_free(executable);
}

/* ---- making ---- */

static uint64_t room_of(const sp_plan_tensor *output)
{
    return (output->bytes + 63) & ~(uint64_t)63;
}

static sp_status acquire_unrequested(sp_exec_context *context, bool is_spare)
{
    const sp_executable *executable = context->executable;
    const sp_graph_plan *plan = executable->plan;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < plan->output_count; i++) bytes += room_of(&plan->outputs[i]);
    return sp__allocator_take_any(&model_device(executable)->allocator, bytes, is_spare,
                                  &context->unrequested);
}

/* True also for an arena of 0 bytes: values without bytes have their place in it too. */
static bool has_arena(const sp_graph_plan *plan)
{
    for (uint32_t s = 0; s < plan->step_count; s++) {
        const sp_plan_step *step = &plan->steps[s];
        for (uint32_t i = 0; i < step->binding_count; i++) {
            if (step->bindings[i].where == SP_PLACE_ARENA) return true;
        }
    }
    return false;
}

/* How the caller's tensors will get to the lists. */
static sp_status make_ports(sp_exec_context *context)
{
    const sp_executable *executable = context->executable;
    const sp_graph_plan *plan = executable->plan;
    if (has_staging(model_device(executable))) {
        return sp__staging_create(executable->targets, executable->target_count, plan,
                                  context->is_spare, &context->staging);
    }
    const uint32_t port_count = plan->input_count + plan->output_count;
    context->ports = sp_calloc(port_count, sizeof *context->ports);
    context->slots = sp_calloc(port_count, sizeof *context->slots);
    if (context->ports == NULL || context->slots == NULL) {
        return sp__fail(SP_OUT_OF_MEMORY, "no memory for a context");
    }
    /* Who leaves the only output out is rare: that run may allocate. Of parts, all are asked for.
     */
    if (plan->output_count <= 1 || plan->is_part) return SP_OK;
    return acquire_unrequested(context, context->is_spare);
}

static sp_status arenas_make(sp_exec_context *context)
{
    const sp_executable *executable = context->executable;
    const sp_graph_plan *plan = executable->plan;
    if (!has_arena(plan)) return SP_OK;
    for (uint32_t t = 0; t < executable->target_count; t++) {
        if (shares_arena(executable, t)) {
            context->arenas[t] = context->arenas[SP_SEGMENT_MODEL];
            continue;
        }
        /* No stream's: the context goes from stream to stream, and its maker may have none. */
        SP_TRY(sp__allocator_take_any(arena_allocator(executable, t), plan->arena_bytes,
                                      context->is_spare, &context->arenas[t]));
    }
    return SP_OK;
}

static sp_status context_fill(sp_exec_context *context)
{
    SP_TRY(arenas_make(context));
    SP_TRY(make_ports(context));
    return sp__exec_context_create_lists(context);
}

static sp_status context_make(sp_executable *executable, bool is_spare, sp_exec_context **out)
{
    sp_exec_context *context = sp_calloc(1, sizeof *context);
    if (context == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a context");
    context->executable = executable;
    context->is_spare = is_spare;
    const sp_status status = context_fill(context);
    if (status != SP_OK) {
        context_free(context);
        return status;
    }
    *out = context;
    return SP_OK;
}

static void count_locked(sp_executable *executable, int change) SP_REQUIRES(&executable->lock)
{
    executable->alive += (uint32_t)change;
    sp_store_relaxed(&executable->context_count, executable->alive);
}

/* Spare ones only as many as runs can be going on. */
static sp_status context_create(sp_executable *executable, bool is_spare, sp_exec_context **out)
{
    const uint32_t most = is_spare ? model_device(executable)->dev->limits.run_slots : UINT32_MAX;
    sp_mutex_lock(&executable->lock);
    const bool is_enough = executable->wanted >= most;
    if (!is_enough) executable->wanted++;
    sp_mutex_unlock(&executable->lock);
    if (is_enough) return sp__fail(SP_OUT_OF_MEMORY, "every run has its context");
    const sp_status status = context_make(executable, is_spare, out);
    sp_mutex_lock(&executable->lock);
    if (status == SP_OK) {
        count_locked(executable, 1);
    } else {
        executable->wanted--;
    }
    sp_mutex_unlock(&executable->lock);
    return status;
}

sp_status sp__executable_prepare(sp_executable *executable)
{
    sp_exec_context *context;
    SP_TRY(context_create(executable, false, &context));
    (void)hand_on(context); /* nobody waits yet */
    return SP_OK;
}

void sp__executable_preallocate(sp_executable *executable)
{
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    for (sp_exec_context *context; context_create(executable, true, &context) == SP_OK;) {
        sp__wait_entry_resume(hand_on(context));
    }
    sp__error_put_back(&scope);
}

bool sp__executable_reclaim_context(sp_executable *executable)
{
    sp_exec_context *context = NULL;
    sp_mutex_lock(&executable->lock);
    /* Whoever finds none idle waits for one in a run: so there is one. */
    const uint32_t count =
        SP_PLANTED(unmade_context_counts) ? executable->wanted : executable->alive;
    if (count > 1 || SP_PLANTED(last_context_reclaimed)) context = executable->idle;
    if (context != NULL) {
        executable->idle = context->next;
        executable->wanted--;
        count_locked(executable, -1);
    }
    sp_mutex_unlock(&executable->lock);
    if (context == NULL) return false;
    context_free(context);
    return true;
}

/* A context that has come back since, or NULL: the entry is queued. */
static sp_exec_context *take_or_queue(sp_executable *executable, sp_wait_entry *entry)
{
    sp_mutex_lock(&executable->lock);
    sp_exec_context *context = executable->idle;
    if (context != NULL) {
        executable->idle = context->next;
    } else {
        sp__wait_queue_push(&executable->queue, entry);
    }
    sp_mutex_unlock(&executable->lock);
    return context;
}

static sp_status context_wait(sp_executable *executable, sp_exec_context **out)
{
    sp_thread_waiter waiter;
    SP_TRY(sp__thread_waiter_init(&waiter));
    *out = take_or_queue(executable, &waiter.entry);
    if (*out != NULL) return SP_OK;
    sp__thread_waiter_wait(&waiter);
    *out = waiter.entry.granted;
    return SP_OK;
}

static SP_NOINLINE sp_status take_slow(sp_executable *executable, bool may_wait,
                                       sp_exec_context **out)
{
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    sp_status status = context_create(executable, may_wait, out);
    if (status == SP_OUT_OF_MEMORY && may_wait) {
        /* There is one at least, in a run that waits for nobody here. */
        status = context_wait(executable, out);
    }
    return sp__error_settle(&scope, status);
}

sp_status sp__exec_context_acquire_or_queue(sp_executable *executable, sp_wait_entry *entry,
                                            sp_exec_context **out)
{
    *out = take_idle(executable);
    if (SP_LIKELY(*out != NULL)) return SP_OK;
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    sp_status status = context_create(executable, true, out);
    if (status == SP_OUT_OF_MEMORY) {
        status = SP_OK;
        *out = take_or_queue(executable, entry);
    }
    return sp__error_settle(&scope, status);
}

void sp__exec_context_dequeue(sp_executable *executable, sp_wait_entry *entry)
{
    sp_mutex_lock(&executable->lock);
    sp__wait_queue_remove(&executable->queue, entry);
    sp_mutex_unlock(&executable->lock);
}

sp_status sp__exec_context_acquire(sp_executable *executable, bool may_wait, sp_exec_context **out)
{
    *out = take_idle(executable);
    if (SP_UNLIKELY(*out == NULL)) return take_slow(executable, may_wait, out);
    if (SP_PLANTED(shared_context)) { /* free to be taken by others too */
        sp__wait_entry_resume(hand_on(*out));
    }
    return SP_OK;
}

sp_wait_entry *sp__exec_context_release(sp_exec_context *context)
{
    return SP_PLANTED(shared_context) ? NULL : hand_on(context);
}

sp_status sp__exec_context_cover_unrequested(sp_exec_context *context, bool is_spare,
                                             void **outputs)
{
    const sp_graph_plan *plan = context->executable->plan;
    bool is_any = false;
    for (uint32_t i = 0; i < plan->output_count; i++) is_any = is_any || outputs[i] == NULL;
    if (SP_LIKELY(!is_any)) return SP_OK;
    if (context->unrequested == NULL) SP_TRY(acquire_unrequested(context, is_spare));
    void *room;
    SP_TRY(sp__block_host(context->unrequested, &room));
    char *next = room;
    for (uint32_t i = 0; i < plan->output_count; i++) {
        if (outputs[i] == NULL) outputs[i] = next;
        next += room_of(&plan->outputs[i]);
    }
    return SP_OK;
}
