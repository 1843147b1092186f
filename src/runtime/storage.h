/* SPDX-License-Identifier: Apache-2.0 */
/* Storages inside the library. The object also contains its block: when a storage is destroyed its
 * object goes to the allocator with the block, and comes back as a new storage, so creating one
 * from a cache touches no list of handles.
 *
 * `lock` guards everything but the atomics. A user of a handle looks up the object, locks it, and
 * checks whether the handle is still current; the last release first makes handles stale and then
 * locks. So a thread that holds the lock of a current storage keeps it alive without a reference.
 *
 * Memory is in one of three states: host-complete (an empty frontier), stamped (a frontier), or
 * unknown (sp_storage_record_all_streams: code outside the library uses it, so all streams count as
 * users at its destruction). */
#ifndef SP_RUNTIME_STORAGE_H
#define SP_RUNTIME_STORAGE_H

#include <streampool/storage.h>

#include "base/handle.h"
#include "base/mutex.h"
#include "device/command.h"
#include "device/host_executor.h"
#include "runtime/allocator.h"
#include "runtime/frontier.h"
#include "runtime/stream_pool.h"

typedef struct sp_host_ticket sp_host_ticket;
typedef struct sp_mirror sp_mirror;

typedef struct sp_rt_storage {
    SP_CACHE_ALIGNED sp_object object;
    sp_mutex lock;
    /* 1 once any thread has locked the storage in this life, so that an unused storage is destroyed
     * without the lock. Set under the lock before the handle is checked; the destroyer makes
     * handles stale before it reads this: both sequentially consistent, so a user that found the
     * handle current is seen. */
    sp_atomic_u32 is_touched;
    /* Bits of streams whose uses are not in the frontier: of frozen and untracked storages, and
     * those recorded by hand. At destruction everything submitted to them counts as a use. Set by
     * submitters, read by the destroyer, which comes after them; relaxed. Uses that the destroyer
     * has no memory to add to the frontier stay here until they have been waited for. */
    sp_atomic_u64 used_streams;
    sp_poison poison;
    uint32_t epoch; /* life of the memory; changed by the destroyer */
    sp_rt_device *device SP_GUARDED_BY(lock);
    const sp_memory *memory SP_GUARDED_BY(lock); /* of the slab, or `adopted` */
    uint64_t offset SP_GUARDED_BY(lock);
    uint64_t bytes SP_GUARDED_BY(lock);
    bool is_tracked SP_GUARDED_BY(lock);
    bool is_frozen SP_GUARDED_BY(lock); /* raised once per life */
    bool is_adopted SP_GUARDED_BY(lock);
    /* Of adopted memory: the point after which its bytes are valid, until it is known to have
     * passed. Every use waits for it, tracked or not, and a reading one fails with its fault; then
     * the fault becomes poison. A write of all bytes clears it, since it overwrites what failed. A
     * host access that is to write all of it keeps the point in its ticket until it begins. */
    sp_point ready SP_GUARDED_BY(lock);
    sp_host_ticket *tickets SP_GUARDED_BY(lock); /* open host accesses */
    /* Of memory without host pointer (mirror.h): the one that is kept, or NULL; and those of ended
     * reads while others are open. */
    sp_mirror *mirror SP_GUARDED_BY(lock);
    sp_mirror *ended_mirrors SP_GUARDED_BY(lock);
    struct sp_check_history *history SP_GUARDED_BY(lock); /* the checker's, if it is on */
    sp_block block; /* its frontier: guarded by lock while the storage lives */

    /* Adopted memory. Constant from creation to the release callback. */
    sp_memory adopted;
    sp_storage_release_function release;
    void *release_ctx;
    sp_host_job retire_job;
} sp_rt_storage;

/* The table of all storage handles of the process. */
extern sp_handle_table sp__storages;

/* The object behind a handle, without lock or hold, and of another life if the handle is stale;
 * NULL, with the error, if there never was one. */
static inline sp_rt_storage *sp__storage_peek(sp_storage handle);

/* Locks the storage if it is not NULL and `handle` is still its handle; else false, with
 * SP_INVALID's message, and not locked. */
static inline bool sp__storage_lock(sp_rt_storage *storage, sp_storage handle)
    SP_TRY_ACQUIRE(true, &storage->lock);

/* A tracked storage that the host writes next. Its memory is such as no command uses any more,
 * unless the commands of the thread's stream use as much of that size as its cache has room for:
 * then a host access waits for the oldest of them. It waits for nothing if the thread is inside a
 * host function or callback, or has a host access open. Needs no stream. The device works. Errors:
 * SP_OUT_OF_MEMORY, SP_CLOSED. */
sp_status sp__storage_create_for_host(sp_rt_device *device, uint64_t bytes, sp_storage *out);

/* Creates and destroys objects for fresh blocks; for the allocator. */
sp_block *sp__storage_block_create(void);
void sp__storage_block_destroy(sp_block *block);

/* Adopted memory whose last reference was released: the callback follows its last use (adopt.c). */
void sp__adopted_retire(sp_rt_storage *storage);
/* Whether no use has to wait for the memory to be ready; if its producer failed, the storage is
 * poisoned. False while storage->ready has not passed. */
bool sp__adopted_is_ready_locked(sp_rt_storage *storage) SP_REQUIRES(&storage->lock);
/* After the callback: the object is free. */
void sp__storage_recycle(sp_rt_storage *storage);
/* A fresh object for adopted memory. */
sp_status sp__storage_object_create(sp_rt_storage **out);
sp_storage sp__storage_publish(sp_rt_storage *storage);

/* After the last release: takes the host accesses off the storage; later, without the lock, ends
 * those that had begun (host_ticket.c). */
sp_host_ticket *sp__host_tickets_detach_locked(sp_rt_storage *storage) SP_REQUIRES(&storage->lock);
void sp__host_tickets_close(sp_host_ticket *tickets);
/* Frees pooled tickets. For tests. */
void sp__host_tickets_deinit(void);

/* Frees the table of storages. For tests, when no handle is left. */
void sp__storages_deinit(void);

static inline sp_rt_storage *sp__storage_peek(sp_storage handle)
{
    sp_object *object = sp__handle_slot_object(&sp__storages, handle.bits);
    if (SP_LIKELY(object != NULL)) return SP_CONTAINER_OF(object, sp_rt_storage, object);
    sp__handle_refuse(SP_KIND_STORAGE, handle.bits, "storage");
    return NULL;
}

static inline bool sp__storage_lock(sp_rt_storage *storage, sp_storage handle) SP_NO_LOCK_ANALYSIS
{
    if (storage == NULL) return false;
    sp_mutex_lock(&storage->lock);
    if (sp_load_relaxed(&storage->is_touched) == 0) {
        if (SP_PLANTED(release_touch)) {
            sp_store_release(&storage->is_touched, 1);
        } else {
            sp_store_seq_cst(&storage->is_touched, 1);
        }
    }
    if (SP_LIKELY(sp__handle_is_current(&storage->object, handle.bits))) return true;
    sp_mutex_unlock(&storage->lock);
    sp__handle_refuse(SP_KIND_STORAGE, handle.bits, "storage");
    return false;
}

#endif
