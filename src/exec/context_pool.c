/* SPDX-License-Identifier: Apache-2.0 */
/* The pool of an executable's contexts, and the runs that wait for one. */
#include "exec/context.h"

#include "base/assert.h"
#include "base/error.h"
#include "exec/reports.h"
#include "exec/tensor_context.h"

/* ---- homes ---- */

/* The idle context of a home, or NULL. */
static sp_exec_context *home_take(sp_executable *executable, uint32_t home)
{
    sp_context_home *place = &executable->homes[home];
    if (sp_load_relaxed(&place->context) == NULL) return NULL;
    return sp_exchange_seq_cst(&place->context, NULL);
}

static sp_exec_context *homes_take_any(sp_executable *executable)
{
    sp_exec_context *context = NULL;
    for (uint32_t i = 0; i < SP_CONTEXT_HOMES && context == NULL; i++) {
        sp_context_home *place = &executable->homes[i];
        if (sp_load_seq_cst(&place->context) == NULL) continue;
        context = sp_exchange_seq_cst(&place->context, NULL);
    }
    return context;
}

/* False: the context is still the caller's. */
static bool home_return(sp_exec_context *context)
{
    sp_executable *executable = context->executable;
    if (context->home == SP_NO_HOME) return false;
    sp_context_home *place = &executable->homes[context->home];
    sp_exec_context *none = NULL;
    return sp_load_relaxed(&place->context) == NULL &&
           sp_cas_seq_cst(&place->context, &none, context);
}

/* ---- the pool ---- */

static sp_exec_context *idle_pop(sp_executable *executable)
{
    sp_mutex_lock(&executable->lock);
    sp_exec_context *context = executable->idle;
    if (context != NULL) executable->idle = context->next;
    sp_mutex_unlock(&executable->lock);
    return context != NULL ? context : homes_take_any(executable);
}

/* Passes the context to the oldest waiter, which is returned, or to the idle list. */
static sp_wait_entry *context_pass_locked(sp_executable *executable, sp_exec_context *context)
    SP_REQUIRES(&executable->lock)
{
    sp_wait_entry *entry = sp__wait_queue_pop(&executable->queue);
    if (SP_LIKELY(entry == NULL)) {
        context->next = executable->idle;
        executable->idle = context;
    } else {
        sp_fetch_sub_relaxed(&executable->waiting, 1);
        entry->granted = context;
    }
    return entry;
}

static sp_wait_entry *context_pass(sp_exec_context *context)
{
    sp_executable *executable = context->executable;
    sp_mutex_lock(&executable->lock);
    sp_wait_entry *entry = context_pass_locked(executable, context);
    sp_mutex_unlock(&executable->lock);
    return entry;
}

/* To its home, unless that has another context or a run waits for one. */
static sp_wait_entry *context_release(sp_exec_context *context)
{
    sp_executable *executable = context->executable;
    const uint32_t home = context->home;
    if (SP_UNLIKELY(!home_return(context))) return context_pass(context);
    const bool is_seen = sp_load_seq_cst(&executable->waiting) != 0;
    if (SP_LIKELY(!is_seen) || SP_PLANTED(waiting_unseen)) return NULL;
    context = home_take(executable, home);
    return context != NULL ? context_pass(context) : NULL;
}

void sp__executable_destroy_contexts(sp_executable *executable)
{
    for (sp_exec_context *context; (context = idle_pop(executable)) != NULL;) {
        sp__exec_context_destroy(context);
    }
    while (sp__tensor_context_reclaim(executable)) continue;
}

static void alive_add_locked(sp_executable *executable, int change) SP_REQUIRES(&executable->lock)
{
    executable->alive += (uint32_t)change;
    sp__executable_note_contexts_locked(executable);
}

/* Recording a list for a GPU takes as long as many runs, and its staging memory is pinned. */
static bool has_costly_contexts(const sp_executable *executable)
{
    return sp__executable_device(executable)->dev->vtable->staging_create != NULL;
}

/* Inputs and outputs of the contexts of a plan for a GPU, in its memory and in pinned memory. */
#define PORTS_BYTES ((uint64_t)16 << 20)
#define LEAST_COUNT 4

static uint64_t ports_bytes(const sp_graph_plan *plan)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < plan->input_count; i++) bytes += plan->inputs[i].bytes;
    for (uint32_t i = 0; i < plan->output_count; i++) bytes += plan->outputs[i].bytes;
    return bytes;
}

/* One per run slot; where they are costly, as many as take PORTS_BYTES, but LEAST_COUNT at least:
 * runs of large inputs and outputs fill the bus. */
static uint32_t most_spare(const sp_executable *executable)
{
    const uint32_t slots = sp__executable_device(executable)->dev->limits.run_slots;
    if (!has_costly_contexts(executable)) return slots;
    uint64_t count = PORTS_BYTES / (ports_bytes(executable->plan) + 1);
    if (count < LEAST_COUNT) count = LEAST_COUNT;
    return count < slots ? (uint32_t)count : slots;
}

static sp_status context_add(sp_executable *executable, bool is_spare, sp_exec_context **out)
{
    const uint32_t most = is_spare ? most_spare(executable) : UINT32_MAX;
    sp_mutex_lock(&executable->lock);
    const bool is_enough = executable->wanted >= most;
    if (!is_enough) executable->wanted++;
    sp_mutex_unlock(&executable->lock);
    if (is_enough) return sp__fail(SP_OUT_OF_MEMORY, "as many contexts exist already as may run");
    const sp_status status = sp__exec_context_create(executable, is_spare, out);
    sp_mutex_lock(&executable->lock);
    if (status == SP_OK) {
        alive_add_locked(executable, 1);
    } else {
        executable->wanted--;
    }
    sp_mutex_unlock(&executable->lock);
    return status;
}

sp_status sp__executable_prepare(sp_executable *executable)
{
    sp_exec_context *context;
    SP_TRY(context_add(executable, false, &context));
    (void)context_pass(context); /* no entry waits yet */
    return SP_OK;
}

void sp__executable_preallocate(sp_executable *executable)
{
    sp_error_scope scope;
    if (has_costly_contexts(executable)) return;
    sp__error_set_aside(&scope);
    for (sp_exec_context *context; context_add(executable, true, &context) == SP_OK;) {
        sp__wait_entry_resume(context_pass(context));
    }
    sp__error_put_back(&scope);
}

bool sp__executable_reclaim_context(sp_executable *executable)
{
    sp_exec_context *context = NULL;
    if (sp__tensor_context_reclaim(executable)) return true;
    sp_mutex_lock(&executable->lock);
    /* A run that finds no idle context waits for one in use, so at least one must exist. */
    const uint32_t count =
        SP_PLANTED(unmade_context_counts) ? executable->wanted : executable->alive;
    if (count > 1 || SP_PLANTED(last_context_reclaimed)) {
        context = executable->idle;
        if (context != NULL) executable->idle = context->next;
        else context = homes_take_any(executable);
    }
    if (context != NULL) {
        executable->wanted--;
        alive_add_locked(executable, -1);
    }
    sp_mutex_unlock(&executable->lock);
    if (context == NULL) return false;
    sp__exec_context_destroy(context);
    return true;
}

/* A context is in a home although a run waits: its releaser and the waiter have missed each other.
 * It goes to the oldest waiter, which is returned; NULL: all are cancelled. */
static sp_wait_entry *home_pass_locked(sp_executable *executable) SP_REQUIRES(&executable->lock)
{
    sp_exec_context *context = SP_PLANTED(homes_unseen) ? NULL : homes_take_any(executable);
    return context != NULL ? context_pass_locked(executable, context) : NULL;
}

/* A context that has been released since, or NULL, and the entry is queued. *granted is an entry
 * that has got a context, to be resumed with no lock held: perhaps this one. */
static sp_exec_context *idle_pop_or_queue(sp_executable *executable, sp_wait_entry *entry,
                                          sp_wait_entry **granted)
{
    *granted = NULL;
    sp_mutex_lock(&executable->lock);
    sp_exec_context *context = executable->idle;
    if (context != NULL) {
        executable->idle = context->next;
    } else {
        sp__wait_queue_push(&executable->queue, entry);
        /* Before the homes are read: see sp_context_home. */
        sp_fetch_add_seq_cst(&executable->waiting, 1);
        *granted = home_pass_locked(executable);
    }
    sp_mutex_unlock(&executable->lock);
    return context;
}

static sp_status context_wait(sp_executable *executable, sp_exec_context **out)
{
    sp_thread_waiter waiter;
    SP_TRY(sp__thread_waiter_init(&waiter));
    sp_wait_entry *granted;
    *out = idle_pop_or_queue(executable, &waiter.entry, &granted);
    sp__wait_entry_resume(granted);
    if (*out != NULL) return SP_OK;
    sp__thread_waiter_wait(&waiter);
    *out = waiter.entry.granted;
    return SP_OK;
}

static SP_NOINLINE sp_status context_acquire_slow(sp_executable *executable, bool may_wait,
                                                  sp_exec_context **out)
{
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    sp_status status = context_add(executable, may_wait, out);
    if (status == SP_OUT_OF_MEMORY && may_wait) {
        /* At least one context exists; the run that uses it does not wait for a context. */
        status = context_wait(executable, out);
    }
    return sp__error_settle(&scope, status);
}

sp_exec_context *sp__exec_context_acquire_idle(sp_executable *executable)
{
    return idle_pop(executable);
}

sp_status sp__exec_context_acquire_or_queue(sp_executable *executable, sp_wait_entry *entry,
                                            sp_exec_context **out, sp_resume_list *ready)
{
    *out = idle_pop(executable);
    if (SP_LIKELY(*out != NULL)) return SP_OK;
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    sp_status status = context_add(executable, true, out);
    if (status == SP_OUT_OF_MEMORY) {
        sp_wait_entry *granted;
        status = SP_OK;
        *out = idle_pop_or_queue(executable, entry, &granted);
        sp__resume_list_add(ready, granted);
    }
    return sp__error_settle(&scope, status);
}

void sp__exec_context_dequeue(sp_executable *executable, sp_wait_entry *entry)
{
    sp_mutex_lock(&executable->lock);
    sp__wait_queue_remove(&executable->queue, entry);
    sp_fetch_sub_relaxed(&executable->waiting, 1);
    sp_mutex_unlock(&executable->lock);
}

sp_exec_context *sp__exec_context_try_acquire(sp_executable *executable, uint32_t home)
{
    const bool has_home = home != SP_NO_HOME;
    sp_exec_context *context = has_home ? home_take(executable, home % SP_CONTEXT_HOMES) : NULL;
    const bool is_moved = context == NULL;
    if (is_moved) context = idle_pop(executable);
    if (SP_UNLIKELY(context == NULL)) return NULL;
    context->is_moved = is_moved;
    context->home = has_home ? home % SP_CONTEXT_HOMES : SP_NO_HOME;
    return context;
}

sp_status sp__exec_context_acquire(sp_executable *executable, uint32_t home, bool may_wait,
                                   sp_exec_context **out)
{
    *out = sp__exec_context_try_acquire(executable, home);
    if (SP_UNLIKELY(*out == NULL)) {
        SP_TRY(context_acquire_slow(executable, may_wait, out));
        SP_ASSERT(*out != NULL);
        (*out)->is_moved = true;
        (*out)->home = home != SP_NO_HOME ? home % SP_CONTEXT_HOMES : SP_NO_HOME;
    }
    if (SP_PLANTED(shared_context)) { /* others can acquire it, too */
        sp__wait_entry_resume(context_pass(*out));
    }
    return SP_OK;
}

sp_wait_entry *sp__exec_context_release(sp_exec_context *context)
{
    sp__reports_clear(context);
    return SP_PLANTED(shared_context) ? NULL : context_release(context);
}
