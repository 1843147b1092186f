/* SPDX-License-Identifier: Apache-2.0 */
/* Synchronous runs of one executable: in a run slot of the device and a context. */
#include "base/clock.h"
#include "base/error.h"
#include "base/heap.h"
#include "device/thread_record.h"
#include "exec/model_object.h"
#include "runtime/run_queue.h"

/* ---- run slots of devices ---- */

static struct {
    /* By device index; published by release, never freed. */
    SP_ATOMIC(sp_run_slots *) by_device[SP_MAX_DEVICES];
} all_slots; /* process-wide: runs of all models share a device's slots */

sp_run_slots *sp__device_run_slots(const sp_rt_device *device)
{
    /* Pairs with the release below: the slots are initialised. */
    sp_run_slots *slots = sp_load_acquire(&all_slots.by_device[device->index]);
    if (SP_LIKELY(slots != NULL)) return slots;
    sp_run_slots *fresh = sp_aligned_malloc(SP_CACHE_LINE, sizeof *fresh);
    if (fresh == NULL) {
        sp__fail(SP_OUT_OF_MEMORY, "no memory for the run slots of %s", device->dev->limits.name);
        return NULL;
    }
    const sp_device_limits *limits = &device->dev->limits;
    sp__run_slots_init(fresh, limits->run_slots, limits->width);
    if (sp_cas_acq_rel(&all_slots.by_device[device->index], &slots, fresh)) {
        sp_store_release(&device->dev->run_slots, &fresh->free);
        return fresh;
    }
    sp__run_slots_deinit(fresh);
    sp_free(fresh);
    return slots;
}

/* ---- terms ---- */

sp_status sp__model_terms(sp_rt_model *model, const sp_run_options *options, sp_run_terms *out)
{
    *out = (sp_run_terms){.flow = &model->flow,
                          .is_counted = model->flow.limit != 0,
                          .is_bounded = model->flow.most_queued != 0};
    SP_TRY(sp__thread_lane(&out->lane));
    if (SP_LIKELY(options == NULL)) return SP_OK;
    if (options->priority != SP_PRIORITY_NORMAL && options->priority != SP_PRIORITY_HIGH) {
        return sp__fail(SP_INVALID,
                        "the priority of a run is %d; it can be SP_PRIORITY_NORMAL or "
                        "SP_PRIORITY_HIGH",
                        (int)options->priority);
    }
    if (options->timeout_ns < 0) {
        return sp__fail(SP_INVALID, "the time-out of a run is %lld ns; 0 is none",
                        (long long)options->timeout_ns);
    }
    out->priority = (uint32_t)options->priority;
    out->is_counted |= options->priority == SP_PRIORITY_HIGH;
    out->is_refused = options->no_wait;
    if (options->timeout_ns > 0) out->deadline_ns = sp_clock_deadline(options->timeout_ns);
    return SP_OK;
}

/* ---- compute ---- */

uint32_t sp__model_waiting_locked(const sp_rt_model *model, const sp_run_slots *slots)
{
    (void)slots; /* for the analysis */
    return model->flow.queued + model->flow.reserved + sp_load_relaxed(&model->partial_queued);
}

uint32_t sp__model_waiting(sp_rt_model *model)
{
    sp_run_slots *slots = sp__device_run_slots(model->device);
    if (slots == NULL) return 0;
    sp_mutex_lock(&slots->lock);
    const uint32_t waiting = sp__model_waiting_locked(model, slots);
    sp_mutex_unlock(&slots->lock);
    return waiting;
}

/* A cancel of the token wakes the thread, which leaves the queues then. */
static SP_NOINLINE sp_status wait_with_token(sp_run_slots *slots, sp_run_request *request,
                                             bool *is_done)
{
    sp_rt_cancel_token *token = request->terms.token;
    sp_thread_record *record = sp__thread_record();
    *is_done = false;
    if (record == NULL) return SP_OUT_OF_MEMORY;
    sp_cancel_listener listener = {.parker = &record->parker};
    if (!sp__cancel_token_add(token, &listener)) return sp__fail_cancelled();
    const sp_status status = sp__run_slots_wait(slots, request, is_done);
    sp__cancel_token_remove(token, &listener);
    return status;
}

sp_status sp__model_wait(sp_rt_model *model, sp_run_slots *slots, sp_run_request *request,
                         bool *is_done)
{
    const bool has_token = request->terms.token != NULL;
    const sp_status status = SP_UNLIKELY(has_token) ? wait_with_token(slots, request, is_done)
                                                    : sp__run_slots_wait(slots, request, is_done);
    sp__run_counters_wait(&model->counters, request);
    return status;
}

/* `home`: see sp__exec_context_acquire. */
static sp_status compute_on(sp_rt_model *model, sp_executable *executable, uint32_t home,
                            const void *const *inputs, void **outputs, const sp_stream_ref *stream,
                            const sp_run_terms *terms)
{
    sp_exec_context *context;
    SP_TRY(sp__exec_context_acquire(executable, home, stream != NULL, &context));
    context->cancel = terms->cancel;
    sp_status status = SP_OK;
    /* With staging, unrequested outputs are not copied and need no memory. */
    if (stream == NULL || context->staging == NULL) {
        status = sp__exec_context_cover_unrequested(context, false, outputs);
    }
    if (status == SP_OK) {
        sp__run_counters_enter(&model->counters, terms->lane, context->is_moved);
        status = stream == NULL ? sp__exec_context_run_inline(context, inputs, outputs)
                                : sp__exec_context_run(context, stream, inputs, outputs);
        sp__run_counters_leave(&model->counters, terms->lane);
    }
    sp__wait_entry_resume(sp__exec_context_release(context));
    return status;
}

/* The policy of the pool gives one stream to several threads, which would order their runs: one
 * that has nothing to follow leaves it. Not a stream that the program has given to several threads.
 */
static bool must_leave_stream(const sp_executable *executable, const sp_stream_ref *stream)
{
    return (stream->is_own || SP_PLANTED(leaves_any)) && sp__stream_is_shared(stream->stream) &&
           executable->target_count == 1 &&
           (sp__point_has_passed(sp__queue_followed_point(stream->queue)) ||
            SP_PLANTED(follows_nothing));
}

static SP_NOINLINE sp_status compute_apart(sp_rt_model *model, sp_executable *executable,
                                           const void *const *inputs, void **outputs,
                                           const sp_stream_ref *stream, const sp_run_terms *terms)
{
    sp_rt_device *device = model->device;
    sp_thread_record *record = sp__thread_record();
    if (record == NULL) return SP_OUT_OF_MEMORY;
    const uint32_t index = sp__run_queue_acquire(device, record->run_queue);
    if (index == SP_NO_RUN_QUEUE) {
        return compute_on(model, executable, sp__stream_home(stream->stream), inputs, outputs,
                          stream, terms);
    }
    record->run_queue = index;
    const sp_stream_ref apart = {.stream = stream->stream,
                                 .queue = sp__run_queue_at(device, index)};
    const sp_status status =
        compute_on(model, executable, sp__run_queue_home(index), inputs, outputs, &apart, terms);
    sp__run_queue_release(device, index, status != SP_OK);
    return status;
}

sp_status sp__model_compute_in_slot(sp_rt_model *model, sp_executable *executable,
                                    const void *const *inputs, void **outputs,
                                    const sp_stream_ref *stream, const sp_run_terms *terms)
{
    if (stream == NULL) {
        return compute_on(model, executable, SP_NO_HOME, inputs, outputs, NULL, terms);
    }
    if (SP_UNLIKELY(must_leave_stream(executable, stream))) {
        return compute_apart(model, executable, inputs, outputs, stream, terms);
    }
    return compute_on(model, executable, sp__stream_home(stream->stream), inputs, outputs, stream,
                      terms);
}

sp_status sp__model_compute(sp_rt_model *model, sp_executable *executable,
                            const void *const *inputs, void **outputs, const sp_stream_ref *stream,
                            const sp_run_terms *terms)
{
    if (stream == NULL) {
        return sp__model_compute_in_slot(model, executable, inputs, outputs, NULL, terms);
    }
    sp_run_slots *slots = sp__device_run_slots(model->device);
    if (slots == NULL) return SP_OUT_OF_MEMORY;
    if (SP_UNLIKELY(!sp__run_slots_try_acquire(slots, terms))) {
        bool is_done; /* false: no group */
        sp_run_request request = {.terms = *terms};
        SP_TRY(sp__model_wait(model, slots, &request, &is_done));
    }
    const sp_status status =
        sp__model_compute_in_slot(model, executable, inputs, outputs, stream, terms);
    sp__wait_entry_resume(sp__run_slots_release(slots, terms));
    return status;
}

sp_status sp__is_inside_callback(bool *out)
{
    const sp_thread_record *record = sp__thread_record();
    if (record == NULL) return SP_OUT_OF_MEMORY;
    *out = sp__thread_is_inside_callback(record);
    return SP_OK;
}
