/* SPDX-License-Identifier: Apache-2.0 */
/* Mirrors: pinned host memory with bytes of a storage, for host accesses to memory that has no host
 * pointer. A read copies from the device before it begins, a write to the device when it ends.
 *
 * A storage keeps the last mirror, up to SP_MIRROR_KEPT_BYTES and, of all storages of the device,
 * up to SP_MIRRORS_KEPT_BYTES, and any while a read is open: while
 * nothing has been written since, it is current, and a read needs no copy. A write takes it away.
 * That is known only of storages that the library orders itself: not of untracked or adopted ones,
 * nor of those that code outside the library uses. A frozen storage that the program reads
 * keeps one of all bytes, of any size.
 *
 *     mirror->users == tickets that have it + 1 if the storage keeps it
 *     mirror->is_counted  =>  its storage keeps it
 *     storage->mirror is current  <=>  its version is that of the storage's frontier
 *
 * Mirrors of the program's reads stay until all of these have ended: an end does not say which of
 * its thread's reads it ends. Those of the library's own (sp_own_access) do not. */
#ifndef SP_RUNTIME_MIRROR_H
#define SP_RUNTIME_MIRROR_H

#include <stdbool.h>
#include <stdint.h>

#include <streampool/storage.h>

#include "base/atomic.h"
#include "device/command.h"
#include "runtime/storage.h"

#define SP_MIRROR_KEPT_BYTES ((uint64_t)1 << 20)
#define SP_MIRRORS_KEPT_BYTES ((uint64_t)64 << 20) /* of a device's storages together */

struct sp_mirror {
    sp_rt_device *device;
    sp_block *block;
    void *host;
    uint64_t offset, bytes; /* of the storage */
    uint32_t version;       /* of the storage's frontier; guarded by the storage's lock */
    bool is_shown;          /* an access of the program has had it; guarded likewise */
    bool is_counted;        /* in the device's kept_mirror_bytes; likewise */
    /* References. Raised under the storage's lock by one who has seen it there; released by any
     * thread, and the last one frees: acquire and release, so that it sees all uses. */
    sp_atomic_u32 users;
    sp_mirror *next; /* in storage->ended_mirrors, which has the reference */
};

/* Part of a storage, for a copy. Its memory is kept by the ticket in its frontier, or by a
 * reference of the caller. */
typedef struct sp_mirror_place {
    sp_rt_device *device;
    sp_binding binding; /* of all of the part */
    uint64_t offset;    /* in the storage */
} sp_mirror_place;

/* Whether `data` of an access is the memory itself. */
static inline bool sp__memory_needs_mirror(const sp_memory *memory)
{
    return memory->host == NULL && memory->bytes > 0;
}

/* What an access asks for. */
typedef struct sp_mirror_request {
    sp_storage storage;
    sp_mirror_place place;
    sp_access access;
    uint32_t version; /* of the storage's frontier before the access */
} sp_mirror_request;

/* For an access that may begin: *out is a reference to a mirror of the place, with its bytes unless
 * they will be overwritten. Waits for the copy; no lock may be held. Errors: no memory; the host
 * cannot reach pinned memory either; the copy failed. */
sp_status sp__mirror_acquire(sp_rt_storage *storage, const sp_mirror_request *request,
                             sp_mirror **out);
/* Submits the copy of the place's bytes to the device. It poisons the storage if it fails. */
sp_status sp__mirror_write(const sp_mirror *mirror, const sp_mirror_place *place, sp_point *out);
/* NULL is allowed. */
void sp__mirror_release(sp_mirror *mirror);

/* Keeps a mirror with the bytes of `version`, by a reference of its own, if these are the newest
 * and the storage may keep it. Returns the mirror that the storage has then, perhaps that of
 * another access, or NULL. */
sp_mirror *sp__mirror_keep_locked(sp_rt_storage *storage, sp_mirror *mirror, uint32_t version)
    SP_REQUIRES(&storage->lock);
/* Gives a reference back. The last one goes to storage->ended_mirrors. */
void sp__mirror_drop_locked(sp_rt_storage *storage, sp_mirror *mirror) SP_REQUIRES(&storage->lock);
/* The ended mirrors that no read of the program may have, and the kept one if it is too large to
 * stay, as a list; for sp__mirrors_release, without the lock. The program's reads have all while
 * one is open, and of a frozen storage, whose reads have no tickets: the end of one may be taken
 * for that of a read from before, which then has none either. */
sp_mirror *sp__mirrors_detach_locked(sp_rt_storage *storage) SP_REQUIRES(&storage->lock);
/* The same of a storage without handles, with the mirror that it keeps. */
sp_mirror *sp__mirrors_forget_locked(sp_rt_storage *storage) SP_REQUIRES(&storage->lock);
void sp__mirrors_release(sp_mirror *list);

static inline bool sp__mirror_covers(const sp_mirror *mirror, uint64_t offset, uint64_t bytes)
{
    return offset >= mirror->offset && offset - mirror->offset <= mirror->bytes &&
           bytes <= mirror->bytes - (offset - mirror->offset);
}

static inline void *sp__mirror_at(const sp_mirror *mirror, uint64_t offset)
{
    return (char *)mirror->host + (offset - mirror->offset);
}

#endif
