/* SPDX-License-Identifier: Apache-2.0 */
/* Creation and destruction of storages: created from a block, shared by handles, released with
 * their frontier. */
#include "runtime/storage.h"

#include "base/delay.h"
#include "base/error.h"
#include "device/thread_record.h"
#include "device/wait.h"
#include "runtime/checker.h"
#include "runtime/current_stream.h"
#include "runtime/host_access.h"
#include "runtime/mirror.h"
#include "runtime/runtime_state.h"

static void storage_make(sp_object *object);
static void storage_destroy(sp_object *object);

sp_handle_table sp__storages = {/* process-wide: the table of all storage handles */
                                .kind = SP_KIND_STORAGE,
                                .object_bytes = sizeof(sp_rt_storage),
                                .make = storage_make,
                                .destroy = storage_destroy,
                                .lock = SP_MUTEX_INIT(SP_LOCK_HANDLE_TABLE)};

static sp_rt_storage *storage_of(sp_object *object)
{
    return SP_CONTAINER_OF(object, sp_rt_storage, object);
}

static void storage_make(sp_object *object)
{
    sp_mutex *lock = &storage_of(object)->lock;
    sp_mutex_init(lock, SP_LOCK_STORAGE);
    sp_mutex_set_place(lock, (uint64_t)object->slot + 1); /* a step locks several, by slot */
}

/* ---- objects ---- */

sp_status sp__storage_object_create(sp_rt_storage **out)
{
    sp_object *object;
    SP_TRY(sp__handle_acquire(&sp__storages, &object));
    *out = storage_of(object);
    return SP_OK;
}

sp_block *sp__storage_block_create(void)
{
    sp_rt_storage *storage;
    if (sp__storage_object_create(&storage) != SP_OK) return NULL;
    storage->block = (sp_block){0};
    return &storage->block;
}

void sp__storage_block_destroy(sp_block *block)
{
    sp__storage_recycle(SP_CONTAINER_OF(block, sp_rt_storage, block));
}

void sp__storage_recycle(sp_rt_storage *storage) SP_NO_LOCK_ANALYSIS
{
    storage->ready = (sp_point){0};
    sp__frontier_clear(&storage->block.frontier);
    sp__handle_recycle(&sp__storages, &storage->object);
}

sp_storage sp__storage_publish(sp_rt_storage *storage)
{
    return (sp_storage){sp__handle_publish(&sp__storages, &storage->object)};
}

/* ---- create and destroy ---- */

/* Between two lives no thread reads these fields: a lookup by an old handle finds that it is stale.
 * The publish that follows publishes them, so the lock is not needed. */
static void storage_fill_unpublished(sp_rt_storage *storage, sp_rt_device *device, uint64_t bytes,
                                     bool is_tracked) SP_NO_LOCK_ANALYSIS
{
    storage->device = device;
    storage->memory = &storage->block.slab->memory;
    storage->offset = storage->block.offset;
    storage->bytes = bytes;
    storage->is_tracked = is_tracked;
    storage->is_adopted = false;
}

/* The object that contains the block has no lives left: the block moves to another one. */
static SP_NOINLINE sp_status object_replace_spent(sp_rt_storage **storage)
{
    sp_rt_storage *spent = *storage;
    SP_TRY(sp__storage_object_create(storage));
    (*storage)->block = spent->block;
    spent->block = (sp_block){0};
    sp__storage_recycle(spent);
    return SP_OK;
}

/* Over the block, which is given back if that fails. */
static sp_status storage_create(sp_rt_device *on, sp_block *block, uint64_t bytes, bool is_tracked,
                                sp_storage *out)
{
    sp_rt_storage *storage = SP_CONTAINER_OF(block, sp_rt_storage, block);
    if (SP_UNLIKELY(sp__handle_is_spent(&storage->object))) {
        const sp_status status = object_replace_spent(&storage);
        if (status != SP_OK) {
            sp__allocator_release(&on->allocator, block);
            return status;
        }
    }
    storage_fill_unpublished(storage, on, bytes, is_tracked);
    *out = sp__storage_publish(storage);
    return SP_OK;
}

sp_status sp_storage_create(sp_device device, uint64_t bytes, const sp_storage_options *options,
                            sp_storage *out)
{
    if (out == NULL) return sp__fail(SP_INVALID, "sp_storage_create: out is NULL");
    *out = (sp_storage){0};
    sp_rt_device *on;
    SP_TRY(sp__rt_device_find_working(device, &on));
    sp_stream_ref stream;
    SP_TRY(sp__current_stream(on, &stream));
    const bool is_tracked = options == NULL || !options->is_untracked;
    sp_block *block;
    SP_TRY(sp__allocator_acquire(&on->allocator, bytes, stream.queue, &block));
    return storage_create(on, block, bytes, is_tracked, out);
}

sp_status sp__storage_create_for_host(sp_rt_device *device, uint64_t bytes, sp_storage *out)
{
    const sp_thread_record *record = sp__thread_record();
    if (record == NULL) return SP_OUT_OF_MEMORY;
    /* A wait for the stream might be one for the thread itself. */
    const bool may_wait =
        !sp__thread_is_inside_callback(record) && sp_load_relaxed(&record->open_accesses) == 0;
    sp_stream_ref stream = {0};
    (void)sp__current_stream_peek(device, &stream);
    sp_block *block;
    SP_TRY(sp__allocator_acquire_unused(&device->allocator, bytes, stream.queue, may_wait, &block));
    return storage_create(device, block, bytes, true, out);
}

/* The storage has no references, and its frontier has all its uses. */
static void storage_retire(sp_rt_storage *storage) SP_NO_LOCK_ANALYSIS
{
    if (storage->is_adopted) {
        sp__adopted_retire(storage);
    } else {
        sp__allocator_release(&storage->device->allocator, &storage->block);
    }
}

/* Of the lowest stream in the mask. */
static sp_point last_point(const sp_rt_storage *storage, uint64_t streams) SP_NO_LOCK_ANALYSIS
{
    sp_stream_pool *pool = &storage->device->pool;
    sp_queue *queue = sp__stream_queue_if_made(&pool->streams[__builtin_ctzll(streams)]);
    if (queue == NULL) return (sp_point){0}; /* recorded with all others, and never used */
    return sp__queue_last_point(queue);
}

/* Adds everything submitted so far to the streams of the mask as uses; streams for which memory is
 * lacking stay in the mask: that does not fail the release. */
static void add_stream_uses(sp_rt_storage *storage)
{
    uint64_t streams = sp_load_relaxed(&storage->used_streams);
    uint64_t left = 0;
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    if (SP_PLANTED(first_use_only)) streams &= streams - 1;
    for (; streams != 0; streams &= streams - 1) {
        const sp_point point = last_point(storage, streams);
        if (sp__point_has_passed(point)) continue;
        if (sp__frontier_reserve(&storage->block.frontier) == SP_OK) {
            sp__frontier_publish(&storage->block.frontier, SP_READ, point);
        } else if (!SP_PLANTED(forget_without_memory)) {
            left |= streams & -streams;
        }
    }
    sp_store_relaxed(&storage->used_streams, left);
    sp__error_put_back(&scope);
}

/* Retires the storage when the streams of the mask have done what they have now, which is more than
 * they had at the release: one after the other, as a waiter, since a release never waits. */
static void storage_retire_behind_streams(sp_waiter *waiter)
{
    sp_rt_storage *storage = SP_CONTAINER_OF(waiter, sp_rt_storage, block.waiter);
    uint64_t streams = sp_load_relaxed(&storage->used_streams);
    for (; streams != 0; streams &= streams - 1) {
        const sp_point point = last_point(storage, streams);
        if (sp__point_has_passed(point)) continue;
        sp__point_flush(point);
        sp_store_relaxed(&storage->used_streams, streams & (streams - 1));
        storage->block.waiter =
            (sp_waiter){.value = point.value, .fire = storage_retire_behind_streams};
        /* Once registered, the object belongs to the thread that fires it. */
        if (sp__timeline_register(point.timeline, &storage->block.waiter)) return;
    }
    sp_store_relaxed(&storage->used_streams, 0);
    storage_retire(storage);
}

/* Ends a life in which the storage was used. */
static SP_NOINLINE void end_uses(sp_rt_storage *storage)
{
    /* A thread that locked while the handle was current has published its use before this lock. */
    sp_mutex_lock(&storage->lock);
    sp_host_ticket *tickets = sp__host_tickets_detach_locked(storage);
    sp_mirror *mirrors = sp__mirrors_forget_locked(storage);
    sp_check_history *history = storage->history;
    storage->history = NULL;
    storage->is_frozen = false;
    sp_mutex_unlock(&storage->lock);
    sp__host_tickets_close(tickets);
    sp__mirrors_release(mirrors);
    sp__check_forget(&history);
    sp_delay_point();
    add_stream_uses(storage);
    sp_store_relaxed(&storage->is_touched, 0);
}

/* The last reference is released and every handle is stale, so no thread locks it any more: what
 * the creator wrote is read without the lock from here on. */
static void storage_destroy(sp_object *object)
{
    sp_rt_storage *storage = storage_of(object);
    if (sp__runtime_is_forked()) return; /* the parent's device still uses the memory */
    if (sp_load_seq_cst(&storage->is_touched) != 0) end_uses(storage);
    storage->epoch++;
    if (SP_LIKELY(sp_load_relaxed(&storage->used_streams) == 0)) {
        storage_retire(storage);
    } else {
        storage_retire_behind_streams(&storage->block.waiter);
    }
}

sp_status sp_storage_retain(sp_storage storage)
{
    SP_TRY(sp__runtime_enter());
    return sp__handle_retain(&sp__storages, storage.bits, "storage");
}

sp_status sp_storage_release(sp_storage storage)
{
    if (sp__runtime_is_forked()) return SP_OK;
    return sp__handle_release(&sp__storages, storage.bits, "storage");
}

/* ---- information and changes ---- */

sp_status sp_storage_get_info(sp_storage handle, sp_storage_info *out)
{
    SP_TRY(sp__runtime_enter());
    if (out == NULL) return sp__fail(SP_INVALID, "sp_storage_get_info: out is NULL");
    sp_rt_storage *storage = sp__storage_peek(handle);
    if (!sp__storage_lock(storage, handle)) return SP_INVALID;
    *out = (sp_storage_info){.device = sp__rt_device_handle(storage->device),
                             .address = sp__memory_host_or_null(storage->memory, storage->offset),
                             .bytes = storage->bytes,
                             .is_tracked = storage->is_tracked,
                             .is_frozen = storage->is_frozen,
                             .is_adopted = storage->is_adopted};
    sp_mutex_unlock(&storage->lock);
    return SP_OK;
}

sp_status sp_storage_freeze(sp_storage handle)
{
    /* A read access waits for the last write and delays later ones until it ends. */
    SP_TRY(sp__runtime_enter());
    sp_own_access read;
    SP_TRY(sp__host_begin_bare(handle, SP_READ, SP_CALL_SITE, &read));
    sp_status status = SP_INVALID;
    sp_rt_storage *storage = sp__storage_peek(handle);
    if (sp__storage_lock(storage, handle)) {
        /* A write that waits for this access came in between: it can still be refused. */
        const bool is_written = !sp__point_has_passed(storage->block.frontier.write);
        if (is_written) {
            status = sp__fail(SP_BUSY, "the storage is being written; freeze it afterwards");
        } else {
            /* Reads tracked so far stay in the frontier; later ones are not added. */
            storage->is_frozen = true;
            if (SP_UNLIKELY(sp__check_is_on())) sp__check_met(&storage->history);
            status = SP_OK;
        }
        sp_mutex_unlock(&storage->lock);
    }
    const sp_status end = sp__host_end_own(&read);
    return status != SP_OK ? status : end;
}

sp_status sp_storage_record_all_streams(sp_storage handle)
{
    SP_TRY(sp__runtime_enter());
    sp_rt_storage *storage = sp__storage_peek(handle);
    if (!sp__storage_lock(storage, handle)) return SP_INVALID;
    const uint32_t count = storage->device->pool.count;
    sp_fetch_or_relaxed(&storage->used_streams, UINT64_MAX >> (SP_POOL_STREAMS - count));
    sp_mutex_unlock(&storage->lock);
    return SP_OK;
}

sp_status sp_storage_record_stream(sp_storage handle, sp_stream stream)
{
    sp_stream_ref ref;
    SP_TRY(sp__rt_stream_find(stream, &ref));
    sp_rt_storage *storage = sp__storage_peek(handle);
    if (!sp__storage_lock(storage, handle)) return SP_INVALID;
    sp_status status = SP_OK;
    if (storage->device == ref.stream->device) {
        sp_fetch_or_relaxed(&storage->used_streams, (uint64_t)1 << ref.stream->index);
    } else {
        status = sp__fail(SP_INVALID, "the stream is of another device than the storage");
    }
    sp_mutex_unlock(&storage->lock);
    return status;
}

void sp__storages_deinit(void)
{
    sp__handle_table_reset(&sp__storages);
}
