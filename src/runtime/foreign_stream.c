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

sp_status sp__foreign_use_add(sp_rt_device *device, sp_storage handle, void *native)
{
    sp_queue *queue;
    sp_point point;
    SP_TRY(sp__transfer_queue(device, SP_TRANSFER_NONE, &queue));
    SP_TRY(device->dev->vtable->queue_follow(queue, native));
    const sp_stream_ref ref = {.queue = queue};
    const sp_submission nothing = {0};
    SP_TRY(sp__submit_plain(&ref, &nothing, &point));
    sp_rt_storage *storage = sp__storage_peek(handle);
    if (!sp__storage_lock(storage, handle)) return SP_INVALID;
    sp_status status = sp__frontier_reserve(&storage->block.frontier);
    if (status == SP_OK) sp__frontier_publish_read(&storage->block.frontier, point);
    sp_mutex_unlock(&storage->lock);
    /* No memory: the caller waits in its place. */
    return status == SP_OK ? SP_OK : sp__point_wait(point, SP_NO_DEADLINE);
}
