/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/foreign_stream.h"

#include "base/clock.h"
#include "device/wait.h"
#include "runtime/runtime_state.h"
#include "runtime/storage.h"
#include "runtime/submit.h"
#include "runtime/transfer.h"

sp_status sp__foreign_follow(sp_queue *queue, void *native)
{
    const sp_device_vtable *vtable = queue->device->vtable;
    const sp_point last = sp__queue_last_point(queue);
    const sp_status status = vtable->native_follow(queue, last.value, native);
    if (status != SP_BUSY) return status;
    /* Behind a host function or access the driver has no command yet that the stream could follow.
     */
    SP_TRY(sp__point_wait_passed(last, SP_NO_DEADLINE));
    return vtable->native_follow(queue, last.value, native);
}

/* A point behind everything that the stream has now. */
static sp_status foreign_point(sp_rt_device *device, void *native, sp_point *out)
{
    sp_stream_ref ref = {0};
    const sp_submission nothing = {0};
    SP_TRY(sp__transfer_queue(device, SP_TRANSFER_NONE, &ref.queue));
    SP_TRY(device->dev->vtable->queue_follow(ref.queue, native));
    return sp__submit_plain(&ref, &nothing, out);
}

static sp_status use_publish(sp_storage handle, sp_point point)
{
    sp_rt_storage *storage = sp__storage_peek(handle);
    if (!sp__storage_lock(storage, handle)) return SP_INVALID;
    const sp_status status = sp__frontier_reserve(&storage->block.frontier);
    if (status == SP_OK) sp__frontier_publish_read(&storage->block.frontier, point);
    sp_mutex_unlock(&storage->lock);
    return status;
}

sp_status sp__foreign_use_add(sp_rt_device *device, sp_storage storage, void *native)
{
    sp_point point;
    sp_status status = foreign_point(device, native, &point);
    if (status == SP_OK) status = use_publish(storage, point);
    const bool is_over = status == SP_OK || status == SP_CLOSED || status == SP_DEVICE_LOST;
    return is_over ? status : device->dev->vtable->native_wait(device->dev, native);
}
