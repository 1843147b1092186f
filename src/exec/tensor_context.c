/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/tensor_context.h"

#include "base/error.h"

void sp__executable_note_contexts_locked(sp_executable *executable)
{
    sp_store_relaxed(&executable->context_count, executable->alive + executable->for_tensors_count);
}

static bool is_idle(const sp_exec_context *context)
{
    return context->last.timeline == NULL || sp__point_has_passed(context->last);
}

/* The link to the context whose runs a run on the queue follows by itself, else to an idle one;
 * `any`: else to any. NULL: there is none. */
static sp_exec_context **context_find_locked(sp_executable *executable, const sp_queue *queue,
                                             bool any) SP_REQUIRES(&executable->lock)
{
    sp_exec_context **found = NULL;
    for (sp_exec_context **link = &executable->for_tensors; *link != NULL; link = &(*link)->next) {
        if (queue != NULL && (*link)->last.timeline == &queue->timeline) return link;
        const bool is_usable = any || SP_PLANTED(tensor_context_early) || is_idle(*link);
        if (found == NULL && is_usable) found = link;
    }
    return found;
}

static sp_exec_context *context_take(sp_executable *executable, const sp_queue *queue, bool any)
{
    sp_exec_context *context = NULL;
    sp_mutex_lock(&executable->lock);
    sp_exec_context **link = context_find_locked(executable, queue, any);
    if (link != NULL) {
        context = *link;
        *link = context->next;
    }
    sp_mutex_unlock(&executable->lock);
    return context;
}

static void count_change(sp_executable *executable, int change)
{
    sp_mutex_lock(&executable->lock);
    executable->for_tensors_count += (uint32_t)change;
    sp__executable_note_contexts_locked(executable);
    sp_mutex_unlock(&executable->lock);
}

static SP_NOINLINE sp_status context_acquire_slow(sp_executable *executable, sp_exec_context **out)
{
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    sp_status status = sp__exec_context_create_for_tensors(executable, out);
    if (status == SP_OK) {
        count_change(executable, 1);
    } else if (status == SP_OUT_OF_MEMORY) {
        *out = context_take(executable, NULL, true);
        if (*out != NULL) status = SP_OK;
    }
    return sp__error_settle(&scope, status);
}

sp_status sp__tensor_context_acquire(sp_executable *executable, const sp_queue *queue,
                                     sp_exec_context **out, sp_point *after)
{
    *after = (sp_point){0};
    *out = context_take(executable, queue, false);
    if (SP_UNLIKELY(*out == NULL)) SP_TRY(context_acquire_slow(executable, out));
    const sp_point last = (*out)->last;
    const bool is_ordered = last.timeline == &queue->timeline || is_idle(*out);
    if (!is_ordered && !SP_PLANTED(tensor_context_early)) *after = last;
    return SP_OK;
}

void sp__tensor_context_release(sp_exec_context *context, sp_point last)
{
    sp_executable *executable = context->executable;
    sp_mutex_lock(&executable->lock);
    if (last.timeline != NULL) context->last = last;
    context->next = executable->for_tensors;
    executable->for_tensors = context;
    sp_mutex_unlock(&executable->lock);
}

bool sp__tensor_context_reclaim(sp_executable *executable)
{
    sp_exec_context *context = context_take(executable, NULL, false);
    if (context == NULL) return false;
    count_change(executable, -1);
    sp__exec_context_destroy(context);
    return true;
}
