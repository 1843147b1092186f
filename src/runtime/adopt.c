/* SPDX-License-Identifier: Apache-2.0 */
/* Adopted memory. After the last release, the object waits for the points of its frontier, one
 * after the other, as a waiter of timelines; when all have passed, the host executor calls the
 * owner. */
#include <streampool/storage.h>

#include "base/clock.h"
#include "base/error.h"
#include "device/wait.h"
#include "runtime/event.h"
#include "runtime/failures.h"
#include "runtime/runtime_state.h"
#include "runtime/storage.h"
#include "runtime/submit.h"

static void call_owner(sp_host_job *job)
{
    sp_rt_storage *storage = SP_CONTAINER_OF(job, sp_rt_storage, retire_job);
    void *data = storage->adopted.address;
    const sp_storage_release_function release = storage->release;
    void *ctx = storage->release_ctx;
    sp__storage_recycle(storage);
    if (release != NULL) release(ctx, data);
}

static void find_pending(void *ctx, sp_point point)
{
    sp_point *pending = ctx;
    if (!sp__point_has_passed(point)) *pending = point;
}

/* The storage has no references left, so its lock is not needed. */
static sp_point next_pending(const sp_rt_storage *storage) SP_NO_LOCK_ANALYSIS
{
    sp_point pending = {0};
    find_pending(&pending, storage->ready); /* its producer still uses the memory */
    sp__frontier_each(&storage->block.frontier, find_pending, &pending);
    return pending;
}

static void wait_next_point(sp_waiter *waiter)
{
    sp_rt_storage *storage = SP_CONTAINER_OF(waiter, sp_rt_storage, block.waiter);
    for (;;) {
        const sp_point pending = next_pending(storage);
        if (pending.timeline == NULL || SP_PLANTED(owner_at_once)) break;
        sp__point_flush(pending);
        storage->block.waiter = (sp_waiter){.value = pending.value, .fire = wait_next_point};
        /* Once registered, the object belongs to the thread that fires it. */
        if (sp__timeline_register(pending.timeline, &storage->block.waiter)) return;
    }
    storage->retire_job = (sp_host_job){.run = call_owner};
    /* After sp_shutdown the owner is not called. */
    if (!sp__host_executor_post(&storage->retire_job)) sp__storage_recycle(storage);
}

void sp__adopted_retire(sp_rt_storage *storage)
{
    wait_next_point(&storage->block.waiter);
}

bool sp__adopted_is_ready_locked(sp_rt_storage *storage)
{
    const sp_point ready = storage->ready;
    if (!sp__point_has_passed(ready)) return false;
    if (ready.timeline == NULL) return true;
    sp__point_observed(ready);
    const sp_fault fault = sp__point_fault(ready);
    /* Ordered: a write of all bytes clears `ready`, so no such command has been submitted yet. */
    if (fault != SP_NO_FAULT && !SP_PLANTED(ready_is_forgotten)) {
        sp__poison_set(&storage->poison, storage->epoch, fault);
    }
    storage->ready = (sp_point){0};
    return true;
}

/* The point after which the memory may be used. */
static sp_status ready_point(const sp_adopt_options *options, sp_point *out)
{
    if (options->ready_after.bits == 0) {
        return options->ready.bits != 0 ? sp__event_point(options->ready, out) : SP_OK;
    }
    if (options->ready.bits != 0) {
        return sp__fail(SP_INVALID,
                        "sp_adopt_options: ready and ready_after are both set; set one, "
                        "or let the stream wait for the event");
    }
    sp_stream_ref ref;
    SP_TRY(sp__stream_find(options->ready_after, &ref));
    /* Any submission of the lease may have written the memory: this one follows them all and takes
     * over the lease's failures, as a command with untracked bindings does. */
    const sp_submission behind_all = {.is_untracked = true};
    return sp__submit_plain(&ref, &behind_all, out);
}

/* For a caller that goes on only if the memory is ready. */
static sp_status ready_wait(const sp_adopt_options *options, sp_point ready)
{
    SP_TRY(sp__point_wait_passed(ready, SP_NO_DEADLINE));
    const sp_fault fault = sp__point_fault(ready);
    if (SP_LIKELY(fault == SP_NO_FAULT)) return SP_OK;
    /* The submission behind all is the call's own; that of an event is not. */
    if (options->ready_after.bits != 0) sp__failures_returned(ready, ready.value - 1);
    return sp__fault_report(fault);
}

sp_status sp_storage_adopt(sp_device device, void *data, uint64_t bytes,
                           const sp_adopt_options *options, sp_storage *out)
{
    if (out == NULL) return sp__fail(SP_INVALID, "sp_storage_adopt: out is NULL");
    *out = (sp_storage){0};
    sp_rt_device *on;
    SP_TRY(sp__rt_device_find_working(device, &on));
    if ((data == NULL && bytes > 0) || bytes > UINTPTR_MAX - (uintptr_t)data) {
        return sp__fail(SP_INVALID, "sp_storage_adopt: data is %p, which cannot hold %llu bytes",
                        data, (unsigned long long)bytes);
    }
    sp_memory memory = sp__memory_at_host(on->dev, data, bytes);
    if (on->dev->vtable->memory_adopt != NULL) {
        SP_TRY(on->dev->vtable->memory_adopt(on->dev, data, bytes, &memory));
    }
    const bool is_frozen = options != NULL && options->is_frozen;
    sp_point ready = {0};
    if (options != NULL) SP_TRY(ready_point(options, &ready));
    /* Uses of frozen storages do not wait. */
    if (is_frozen) SP_TRY(ready_wait(options, ready));
    sp_rt_storage *storage;
    SP_TRY(sp__storage_object_create(&storage));
    storage->adopted = memory;
    storage->release = options != NULL ? options->release : NULL;
    storage->release_ctx = options != NULL ? options->ctx : NULL;
    sp_mutex_lock(&storage->lock);
    storage->device = on;
    storage->memory = &storage->adopted;
    storage->offset = 0;
    storage->bytes = bytes;
    storage->is_tracked = options == NULL || !options->is_untracked;
    storage->is_adopted = true;
    storage->is_frozen = is_frozen;
    if (is_frozen) sp_store_relaxed(&storage->is_touched, 1); /* destruction clears is_frozen */
    storage->block = (sp_block){0};
    storage->ready = is_frozen ? (sp_point){0} : ready;
    sp_mutex_unlock(&storage->lock);
    *out = sp__storage_publish(storage);
    return SP_OK;
}
