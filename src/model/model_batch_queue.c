/* SPDX-License-Identifier: Apache-2.0 */
/* The calls on batch queues. */
#include <streampool/batch.h>

#include "base/error.h"
#include "batch/batch_queue.h"
#include "runtime/runtime_state.h"

sp_status sp_batch_queue_create(sp_model handle, const sp_batch_queue_options *options,
                                sp_batch_queue *out)
{
    if (out == NULL) return sp__fail(SP_INVALID, "sp_batch_queue_create: out is NULL");
    *out = (sp_batch_queue){0};
    SP_TRY(sp__runtime_enter());
    sp_rt_model *model = sp__model_hold(handle);
    if (model == NULL) return SP_INVALID;
    const sp_status status = sp__batch_queue_create(model, options, out);
    sp__model_drop(model);
    return status;
}

sp_status sp_batch_queue_retain(sp_batch_queue queue)
{
    SP_TRY(sp__runtime_enter());
    return sp__batch_queue_retain(queue);
}

sp_status sp_batch_queue_release(sp_batch_queue queue)
{
    if (sp__runtime_is_forked()) return SP_OK;
    return sp__batch_queue_release(queue);
}

sp_status sp_batch_queue_flush(sp_batch_queue handle)
{
    sp_rt_batch_queue *queue;
    SP_TRY(sp__runtime_enter());
    SP_TRY(sp__batch_queue_hold(handle, &queue));
    sp__batch_queue_flush(queue, false);
    sp__batch_queue_drop(queue);
    return SP_OK;
}

sp_status sp_batch_queue_configure(sp_batch_queue handle, const sp_batch_queue_options *options)
{
    sp_rt_batch_queue *queue;
    SP_TRY(sp__runtime_enter());
    SP_TRY(sp__batch_queue_hold(handle, &queue));
    const sp_status status = sp__batch_queue_configure(queue, options);
    sp__batch_queue_drop(queue);
    return status;
}

sp_status sp_batch_queue_get_statistics(sp_batch_queue handle, sp_batch_queue_statistics *out)
{
    sp_rt_batch_queue *queue;
    if (out == NULL) return sp__fail(SP_INVALID, "sp_batch_queue_get_statistics: out is NULL");
    SP_TRY(sp__runtime_enter());
    SP_TRY(sp__batch_queue_hold(handle, &queue));
    sp__batch_queue_read(queue, out);
    sp__batch_queue_drop(queue);
    return SP_OK;
}
