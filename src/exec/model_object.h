/* SPDX-License-Identifier: Apache-2.0 */
/* A model inside the library: the graph, its weights on the device, its plans. Immutable after the
 * load but for the plan cache, the packed weights and the counters; internally synchronised. */
#ifndef SP_EXEC_MODEL_OBJECT_H
#define SP_EXEC_MODEL_OBJECT_H

#include <streampool/model.h>

#include "base/handle.h"
#include "exec/cancel_token.h"
#include "exec/plan_cache.h"
#include "exec/run_counters.h"

typedef struct sp_rt_model {
    SP_CACHE_ALIGNED sp_object object;
    const sp_graph *graph;
    sp_rt_device *device;
    sp_upload weights; /* as the file has them */
    sp_packed_weights packed;
    sp_plan_cache plans;
    sp_run_limits limits;
    char *cpu_ops;                    /* the model's own list, or NULL: see plans.cpu_ops */
    sp_run_flow flow;                 /* guarded by the lock of the device's run slots */
    sp_atomic_u64 last_partial_plans; /* plans of the last run that needed several; relaxed */
    /* Submitted runs in several plans that wait, and are not queued for a slot yet: they move there
     * under the lock of the slots. Relaxed. */
    sp_atomic_u32 partial_queued;
    sp_run_counters counters;
    sp_lane lanes[SP_LANES]; /* visits: see sp__handle_visit */
} sp_rt_model;

/* Takes ownership of the graph, also on an error. Errors: SP_UNSUPPORTED, SP_OUT_OF_MEMORY. */
sp_status sp__model_create(const sp_graph *graph, sp_rt_device *device,
                           const sp_model_options *options, sp_model *out);
/* Adds or removes one reference to the handle. */
sp_status sp__model_retain(sp_model handle);
sp_status sp__model_release(sp_model handle);

/* The model with a hold; NULL with the thread's error set if the handle is stale. */
sp_rt_model *sp__model_hold(sp_model handle);
void sp__model_drop(sp_rt_model *model);
/* The same for the time of a call, in a lane of the calling thread (below SP_LANES). */
sp_rt_model *sp__model_visit(sp_model handle, uint32_t lane);
void sp__model_leave(sp_rt_model *model, uint32_t lane);
/* The calling thread's lane. Errors: SP_OUT_OF_MEMORY. */
sp_status sp__thread_lane(uint32_t *out);
/* As sp__model_drop, but false, with the hold kept, if it is the last one, whose drop destroys the
 * model. */
bool sp__model_drop_unless_last(sp_rt_model *model);

/* Iteration over all models: false past the last slot. *out is a model with a hold, or NULL for a
 * free slot. */
bool sp__model_hold_slot(uint32_t slot, sp_rt_model **out);

/* Evicts the least recently used plan of all models of the device or, if all plans are in use,
 * destroys an idle context; false if there is neither. See sp_reclaim_fn. */
bool sp__models_reclaim(sp_rt_device *device);

/* Runs of the model that wait, for a thread or for slots of its device. */
uint32_t sp__model_waiting_locked(const sp_rt_model *model, const sp_run_slots *slots)
    SP_REQUIRES(&slots->lock);
uint32_t sp__model_waiting(sp_rt_model *model);

/* sp__run_slots_wait for a run of the model. */
sp_status sp__model_wait(sp_rt_model *model, sp_run_slots *slots, sp_run_request *request,
                         bool *is_done);

/* Whether the calling thread is inside a host function or callback, where it must not wait for
 * resources of other runs. */
sp_status sp__is_inside_callback(bool *out);

/* The terms of a run of the model. `options` may be NULL. Errors: SP_INVALID. */
sp_status sp__model_terms(sp_rt_model *model, const sp_run_options *options, sp_run_terms *out);

/* Runs an executable of the model in a context and, on a stream, in a run slot on these terms.
 * `stream` NULL: on the calling thread, for host functions. `inputs` and `outputs` are addresses in
 * the plan's order; a NULL output is replaced by memory of the context. */
sp_status sp__model_compute(sp_rt_model *model, sp_executable *executable,
                            const void *const *inputs, void **outputs, const sp_stream_ref *stream,
                            const sp_run_terms *terms);

/* The same for a caller that has a slot, or needs none. */
sp_status sp__model_compute_in_slot(sp_rt_model *model, sp_executable *executable,
                                    const void *const *inputs, void **outputs,
                                    const sp_stream_ref *stream, const sp_run_terms *terms);

/* The run slots of a device, initialised by the first call. */
sp_run_slots *sp__device_run_slots(const sp_rt_device *device);

#endif
