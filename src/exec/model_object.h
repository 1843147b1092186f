/* SPDX-License-Identifier: Apache-2.0 */
/* A model inside the library: the graph, its weights on the device, its plans. Immutable after the
 * load but for the plan cache, the packed weights and the counters; internally synchronised. */
#ifndef SP_EXEC_MODEL_OBJECT_H
#define SP_EXEC_MODEL_OBJECT_H

#include <streampool/model.h>

#include "base/handle.h"
#include "exec/plan_cache.h"
#include "exec/run_slots.h"

typedef struct sp_rt_model {
    SP_CACHE_ALIGNED sp_object object;
    const sp_graph *graph;
    sp_rt_device *device;
    sp_upload weights; /* as the file has them */
    sp_packed_weights packed;
    sp_plan_cache plans;
    sp_run_limits limits;
    char *cpu_ops; /* the model's own list, or NULL: see plans.cpu_ops */
    /* Counters for sp_model_get_info; relaxed, for information. */
    SP_CACHE_ALIGNED sp_atomic_u64 runs;
    sp_atomic_u32 in_flight;
    sp_atomic_u32 most_in_flight;
    sp_atomic_u64 batches;            /* of several runs */
    sp_atomic_u64 batched_runs;       /* runs in them */
    sp_atomic_u64 last_partial_plans; /* plans of the last run that needed several */
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
/* As sp__model_drop, but false, with the hold kept, if it is the last one, whose drop destroys the
 * model. */
bool sp__model_drop_unless_last(sp_rt_model *model);

/* Iteration over all models: false past the last slot. *out is a model with a hold, or NULL for a
 * free slot. */
bool sp__model_hold_slot(uint32_t slot, sp_rt_model **out);

/* Evicts the least recently used plan of all models of the device or, if all plans are in use,
 * destroys an idle context; false if there is neither. See sp_reclaim_fn. */
bool sp__models_reclaim(sp_rt_device *device);

/* Counts a run that begins. */
void sp__model_count_in(sp_rt_model *model);

/* Whether the calling thread is inside a host function or callback, where it must not wait for
 * resources of other runs. */
sp_status sp__is_inside_callback(bool *out);

/* Runs an executable of the model in a context and, on a stream, in a run slot. `stream` NULL: on
 * the calling thread, for host functions. `inputs` and `outputs` are addresses in the plan's order;
 * a NULL output is replaced by memory of the context. */
sp_status sp__model_compute(sp_rt_model *model, sp_executable *executable,
                            const void *const *inputs, void **outputs, const sp_stream_ref *stream);

/* The same for a caller that has a slot, or needs none. */
sp_status sp__model_compute_in_slot(sp_rt_model *model, sp_executable *executable,
                                    const void *const *inputs, void **outputs,
                                    const sp_stream_ref *stream);

/* The run slots of a device, initialised by the first call. */
sp_run_slots *sp__device_run_slots(const sp_rt_device *device);

#endif
