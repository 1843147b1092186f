/* SPDX-License-Identifier: Apache-2.0 */
/* What issued commands write on other devices. The commands of a lost GPU have no result, and only
 * its own storages are out of use then: those of others have to be marked. */
#include "base/assert.h"
#include "base/error.h"
#include "base/heap.h"
#include "device/gpu/gpu.h"

static bool has_room_for_notes(sp_gpu_queue *queue)
{
    sp_mutex_lock(&queue->lock);
    const bool has_room = queue->writes != NULL;
    sp_mutex_unlock(&queue->lock);
    return has_room;
}

/* The claim's holder alone sets the pointer. */
static sp_status notes_create(sp_gpu_queue *queue)
{
    sp_gpu_write *writes = sp_malloc(SP_GPU_MAX_IN_FLIGHT * sizeof *writes);
    if (writes == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory to note writes of a GPU");
    sp_mutex_lock(&queue->lock);
    queue->writes = writes;
    sp_mutex_unlock(&queue->lock);
    return SP_OK;
}

sp_status sp__gpu_write_note(sp_gpu_queue *queue, const sp_binding *to)
{
    if (SP_LIKELY(to->memory->device == queue->common.base.device)) return SP_OK;
    if (to->poison == NULL) return SP_OK;
    if (!has_room_for_notes(queue)) SP_TRY(notes_create(queue));
    const sp_gpu_write write = {.value = sp_load_relaxed(&queue->common.drained) + 1,
                                .poison = to->poison,
                                .epoch = to->epoch};
    sp_mutex_lock(&queue->lock);
    /* See sp__gpu_has_room: what was issued so many submissions ago is done. */
    SP_ASSERT(queue->write_count < SP_GPU_MAX_IN_FLIGHT);
    queue->writes[(queue->first_write + queue->write_count++) % SP_GPU_MAX_IN_FLIGHT] = write;
    sp_mutex_unlock(&queue->lock);
    return SP_OK;
}

void sp__gpu_writes_pass_locked(sp_gpu_queue *queue, uint64_t value)
{
    while (queue->write_count > 0 && queue->writes[queue->first_write].value <= value) {
        queue->first_write = (queue->first_write + 1) % SP_GPU_MAX_IN_FLIGHT;
        queue->write_count--;
    }
}

void sp__gpu_writes_lose_locked(sp_gpu_queue *queue)
{
    const sp_fault lost = sp_load_acquire(&queue->common.base.device->lost);
    for (; queue->write_count > 0; queue->write_count--) {
        const sp_gpu_write *write = &queue->writes[queue->first_write];
        if (!SP_PLANTED(lost_write_unseen)) sp__poison_set(write->poison, write->epoch, lost);
        queue->first_write = (queue->first_write + 1) % SP_GPU_MAX_IN_FLIGHT;
    }
}

void sp__gpu_writes_free(sp_gpu_queue *queue)
{
    sp_mutex_lock(&queue->lock);
    sp_gpu_write *writes = queue->writes;
    queue->writes = NULL;
    sp_mutex_unlock(&queue->lock);
    sp_free(writes);
}
