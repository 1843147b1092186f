/* SPDX-License-Identifier: Apache-2.0 */
/* Synchronous runs of one executable: in a run slot of the device and a context. */
#include "base/error.h"
#include "base/heap.h"
#include "device/thread_record.h"
#include "exec/model_object.h"

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
    sp__run_slots_init(fresh, device->dev->limits.run_slots);
    if (sp_cas_acq_rel(&all_slots.by_device[device->index], &slots, fresh)) {
        sp_store_relaxed(&device->dev->run_slots, &fresh->word);
        return fresh;
    }
    sp__run_slots_deinit(fresh);
    sp_free(fresh);
    return slots;
}

/* ---- compute ---- */

void sp__model_count_in(sp_rt_model *model)
{
    const uint32_t now = sp_fetch_add_relaxed(&model->in_flight, 1) + 1;
    uint32_t most = sp_load_relaxed(&model->most_in_flight);
    while (most < now && !sp_cas_relaxed(&model->most_in_flight, &most, now)) {
    }
}

sp_status sp__model_compute_in_slot(sp_rt_model *model, sp_executable *executable,
                                    const void *const *inputs, void **outputs,
                                    const sp_stream_ref *stream)
{
    sp_exec_context *context;
    const uint32_t home = stream != NULL ? stream->stream->index : SP_NO_HOME;
    SP_TRY(sp__exec_context_acquire(executable, home, stream != NULL, &context));
    sp_status status = SP_OK;
    /* With staging, unrequested outputs are not copied and need no memory. */
    if (stream == NULL || context->staging == NULL) {
        status = sp__exec_context_cover_unrequested(context, false, outputs);
    }
    if (status == SP_OK) {
        sp__model_count_in(model);
        status = stream == NULL ? sp__exec_context_run_inline(context, inputs, outputs)
                                : sp__exec_context_run(context, stream, inputs, outputs);
        sp_fetch_sub_relaxed(&model->in_flight, 1);
    }
    sp__wait_entry_resume(sp__exec_context_release(context));
    return status;
}

sp_status sp__model_compute(sp_rt_model *model, sp_executable *executable,
                            const void *const *inputs, void **outputs, const sp_stream_ref *stream)
{
    if (stream == NULL) return sp__model_compute_in_slot(model, executable, inputs, outputs, NULL);
    sp_run_slots *slots = sp__device_run_slots(model->device);
    if (slots == NULL) return SP_OUT_OF_MEMORY;
    SP_TRY(sp__run_slots_acquire(slots));
    const sp_status status = sp__model_compute_in_slot(model, executable, inputs, outputs, stream);
    sp__wait_entry_resume(sp__run_slots_release(slots));
    return status;
}

sp_status sp__is_inside_callback(bool *out)
{
    const sp_thread_record *record = sp__thread_record();
    if (record == NULL) return SP_OUT_OF_MEMORY;
    *out = sp__thread_is_inside_callback(record);
    return SP_OK;
}
