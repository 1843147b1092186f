/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/mirror.h"

#include "base/error.h"
#include "base/heap.h"
#include "runtime/host_ticket.h"
#include "runtime/runtime_state.h"
#include "runtime/transfer.h"

static void mirror_free(sp_mirror *mirror)
{
    if (mirror->block != NULL) sp__allocator_release(&mirror->device->staging, mirror->block);
    sp_free(mirror);
}

/* The place's bytes in the mirror. */
static sp_binding mirrored(const sp_mirror *mirror, const sp_mirror_place *place)
{
    return (sp_binding){.memory = &mirror->block->slab->memory,
                        .offset = mirror->block->offset + (place->offset - mirror->offset),
                        .bytes = place->binding.bytes};
}

static sp_status mirror_read(const sp_mirror *mirror, const sp_mirror_place *place)
{
    sp_binding from = place->binding;
    from.poison = NULL; /* the access has looked */
    sp_point copied;
    SP_TRY(sp__transfer_submit(mirror->device, SP_TRANSFER_TO_HOST, mirrored(mirror, place), from,
                               &copied));
    return sp__transfer_wait(copied);
}

static sp_status mirror_fill(const sp_mirror_place *place, bool is_filled, sp_mirror *mirror)
{
    SP_TRY(sp__allocator_acquire(&mirror->device->staging, mirror->bytes, NULL, &mirror->block));
    SP_TRY(sp__block_host(mirror->block, &mirror->host));
    return is_filled ? mirror_read(mirror, place) : SP_OK;
}

static sp_status mirror_create(const sp_mirror_place *place, bool is_filled, sp_mirror **out)
{
    sp_mirror *mirror = sp_malloc(sizeof *mirror);
    if (mirror == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a host access");
    *mirror = (sp_mirror){
        .device = place->device, .offset = place->offset, .bytes = place->binding.bytes};
    sp_store_relaxed(&mirror->users, 1);
    const sp_status status = mirror_fill(place, is_filled, mirror);
    if (status == SP_OK) *out = mirror;
    else mirror_free(mirror);
    return status;
}

/* ---- what a storage keeps ---- */

/* Whether the library sees all writes. */
static bool sees_writes_locked(const sp_rt_storage *storage) SP_REQUIRES(&storage->lock)
{
    return storage->is_frozen || (storage->is_tracked && !storage->is_adopted &&
                                  sp_load_relaxed(&storage->used_streams) == 0);
}

/* Of the program. An access that waits has a mirror of its own, or a reference; one that writes is
 * alone. */
static bool has_open_read_locked(const sp_rt_storage *storage) SP_REQUIRES(&storage->lock)
{
    const sp_host_ticket *ticket = storage->tickets;
    for (; ticket != NULL; ticket = ticket->next) {
        if (ticket->is_open && !ticket->is_own && ticket->access == SP_READ) return true;
    }
    return false;
}

/* Others are kept only for the reads that begin while another one is open. */
static bool may_stay_locked(const sp_rt_storage *storage, const sp_mirror *mirror)
    SP_REQUIRES(&storage->lock)
{
    return mirror->is_counted || storage->is_frozen || has_open_read_locked(storage);
}

/* Counts a mirror that the storage keeps next, if it is small enough and there is room. */
static void mirror_count(sp_mirror *mirror)
{
    sp_atomic_u64 *kept = &mirror->device->kept_mirror_bytes;
    if (mirror->bytes > SP_MIRROR_KEPT_BYTES) return;
    mirror->is_counted =
        sp_fetch_add_relaxed(kept, mirror->bytes) + mirror->bytes <= SP_MIRRORS_KEPT_BYTES;
    if (!mirror->is_counted) sp_fetch_sub_relaxed(kept, mirror->bytes);
}

/* The mirror that the storage kept, or NULL, with its reference. */
static sp_mirror *kept_remove_locked(sp_rt_storage *storage) SP_REQUIRES(&storage->lock)
{
    sp_mirror *kept = storage->mirror;
    storage->mirror = NULL;
    if (kept != NULL && kept->is_counted) {
        sp_fetch_sub_relaxed(&kept->device->kept_mirror_bytes, kept->bytes);
        kept->is_counted = false;
    }
    return kept;
}

static void kept_drop_locked(sp_rt_storage *storage) SP_REQUIRES(&storage->lock)
{
    sp_mirror *kept = kept_remove_locked(storage);
    if (kept != NULL) sp__mirror_drop_locked(storage, kept);
}

static sp_mirror *mirror_retain(sp_mirror *mirror)
{
    sp_fetch_add_relaxed(&mirror->users, 1);
    return mirror;
}

sp_mirror *sp__mirror_keep_locked(sp_rt_storage *storage, sp_mirror *mirror, uint32_t version)
{
    sp_mirror *kept = storage->mirror;
    if (version != storage->block.frontier.writes || !sees_writes_locked(storage)) return kept;
    if (kept != NULL && kept->version == version &&
        sp__mirror_covers(kept, mirror->offset, mirror->bytes)) {
        return kept;
    }
    kept_drop_locked(storage);
    mirror_count(mirror);
    if (!may_stay_locked(storage, mirror)) return NULL;
    storage->mirror = mirror_retain(mirror);
    mirror->version = version;
    return mirror;
}

void sp__mirror_drop_locked(sp_rt_storage *storage, sp_mirror *mirror)
{
    if (SP_PLANTED(mirror_dies_early)) {
        sp__mirror_release(mirror);
        return;
    }
    if (sp_fetch_sub_acq_rel(&mirror->users, 1) != 1) return;
    sp_store_relaxed(&mirror->users, 1); /* the list's */
    mirror->next = storage->ended_mirrors;
    storage->ended_mirrors = mirror;
}

sp_mirror *sp__mirrors_detach_locked(sp_rt_storage *storage)
{
    const sp_mirror *kept = storage->mirror;
    if (kept != NULL && !may_stay_locked(storage, kept)) kept_drop_locked(storage);
    const bool are_shown_read = storage->is_frozen || has_open_read_locked(storage);
    sp_mirror *list = NULL;
    sp_mirror **place = &storage->ended_mirrors;
    while (*place != NULL) {
        sp_mirror *ended = *place;
        if (are_shown_read && ended->is_shown) {
            place = &ended->next;
            continue;
        }
        *place = ended->next;
        ended->next = list;
        list = ended;
    }
    return list;
}

sp_mirror *sp__mirrors_forget_locked(sp_rt_storage *storage)
{
    kept_drop_locked(storage);
    sp_mirror *list = storage->ended_mirrors;
    storage->ended_mirrors = NULL;
    return list;
}

void sp__mirrors_release(sp_mirror *list)
{
    while (list != NULL) {
        sp_mirror *next = list->next;
        sp__mirror_release(list);
        list = next;
    }
}

/* ---- accesses ---- */

/* A kept mirror that serves the request, with a reference: for a read a current one; for a write
 * one that nobody else has, which the storage keeps no longer. */
static sp_mirror *kept_take_locked(sp_rt_storage *storage, const sp_mirror_request *request,
                                   bool *is_current) SP_REQUIRES(&storage->lock)
{
    sp_mirror *kept = storage->mirror;
    *is_current = false;
    if (kept == NULL || !sp__handle_is_current(&storage->object, request->storage.bits))
        return NULL;
    const sp_mirror_place *place = &request->place;
    const bool is_exact = kept->offset == place->offset && kept->bytes == place->binding.bytes;
    const bool is_newest = kept->version == request->version || SP_PLANTED(stale_mirror);
    *is_current = is_newest && sees_writes_locked(storage) &&
                  sp__mirror_covers(kept, place->offset, place->binding.bytes);
    if (request->access == SP_READ) return *is_current ? mirror_retain(kept) : NULL;
    (void)kept_remove_locked(storage);
    if ((*is_current || is_exact) && sp_load_acquire(&kept->users) == 1) return kept;
    sp__mirror_drop_locked(storage, kept);
    return NULL;
}

sp_status sp__mirror_acquire(sp_rt_storage *storage, const sp_mirror_request *request,
                             sp_mirror **out)
{
    bool is_current;
    const bool is_read = (request->access & SP_READ) != 0;
    sp_mutex_lock(&storage->lock);
    sp_mirror *kept = kept_take_locked(storage, request, &is_current);
    sp_mutex_unlock(&storage->lock);
    if (kept == NULL) return mirror_create(&request->place, is_read, out);
    const sp_status status = is_current || !is_read ? SP_OK : mirror_read(kept, &request->place);
    if (status == SP_OK) *out = kept;
    else sp__mirror_release(kept);
    return status;
}

sp_status sp__mirror_write(const sp_mirror *mirror, const sp_mirror_place *place, sp_point *out)
{
    return sp__transfer_submit(mirror->device, SP_TRANSFER_TO_DEVICE, place->binding,
                               mirrored(mirror, place), out);
}

void sp__mirror_release(sp_mirror *mirror)
{
    if (mirror != NULL && sp_fetch_sub_acq_rel(&mirror->users, 1) == 1) mirror_free(mirror);
}
