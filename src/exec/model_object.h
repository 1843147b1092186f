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
    /* Figures for sp_model_get_info; they order nothing. */
    SP_CACHE_ALIGNED sp_atomic_u64 runs;
    sp_atomic_u32 in_flight;
    sp_atomic_u32 most_in_flight;
    sp_atomic_u64 last_partial_plans; /* plans of the last run that needed several */
} sp_rt_model;

/* A model of the graph, which is taken over, also on an error. Errors: SP_UNSUPPORTED,
 * SP_OUT_OF_MEMORY. */
sp_status sp__model_create(const sp_graph *graph, sp_rt_device *device,
                           const sp_model_options *options, sp_model *out);
/* One use of the handle more, or less. */
sp_status sp__model_retain(sp_model handle);
sp_status sp__model_release(sp_model handle);

/* The model with a hold, or NULL with the error. */
sp_rt_model *sp__model_hold(sp_model handle);
void sp__model_drop(sp_rt_model *model);
/* The same, but the last hold, which ends the model, is kept: false. */
bool sp__model_drop_unless_last(sp_rt_model *model);

/* For walks over all models: false behind the last one. *out is a model with a hold, or NULL. */
bool sp__model_hold_slot(uint32_t slot, sp_rt_model **out);

/* Ends the plan of any of the device's models that was not used for longest, or, if all are in use,
 * a context that waits for a run in vain; false if there is neither. See sp_reclaim_fn. */
bool sp__models_reclaim(sp_rt_device *device);

/* One more run has begun. */
void sp__model_count_in(sp_rt_model *model);

/* Whether the calling thread is inside a host function or callback: it waits for nothing there that
 * other runs have. */
sp_status sp__is_inside_callback(bool *out);

/* Runs an executable of the model in a context and, on a stream, in a run slot. Without a stream:
 * here and now, for host functions. `inputs` and `outputs` are addresses in the plan's order; an
 * output of NULL gets one. */
sp_status sp__model_compute(sp_rt_model *model, sp_executable *executable,
                            const void *const *inputs, void **outputs, const sp_stream_ref *stream);

/* The slots of a device; the first question makes them. */
sp_run_slots *sp__device_run_slots(const sp_rt_device *device);

#endif
