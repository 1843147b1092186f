/* SPDX-License-Identifier: Apache-2.0 */
/* Handles: the public names of objects. A handle names a slot and a generation of it; objects are
 * in slabs that are never unmapped, so a zero, stale, forged or foreign handle is detected without
 * access to freed memory, and without a lock.
 *
 *     handle = kind:8 | generation:28 | slot:28          never 0
 *     object->word = generation:28 | users:16 | holds:20
 *
 * users counts the caller's references (create, retain, release); holds counts the library's own,
 * and all users together are one hold. Invariants:
 *
 *     users > 0   =>   holds > 0
 *     holds == 0  =>   one owner: the free list, the creator before publish, or the destroyer
 *     a handle is valid  <=>  its generation is the word's, and users > 0
 *
 * Dropping the last hold starts a new generation in the same step, so every older handle is stale
 * before the object is destroyed. A slot has 2^28 - 1 generations; then it is spent and never used
 * again, so no generation repeats.
 *
 * A table may have lanes (lanes.h): a visit keeps the object alive as a hold does, without writing
 * the word, which all threads would share. If there are visitors when the last hold is dropped, the
 * object is *retired*: users == 0, holds == all ones, in the new generation; and the last visitor
 * destroys it. */
#ifndef SP_BASE_HANDLE_H
#define SP_BASE_HANDLE_H

#include <stdbool.h>
#include <stdint.h>

#include <streampool/status.h>

#include "base/atomic.h"
#include "base/lanes.h"
#include "base/mutex.h"
#include "base/tagged_stack.h"

typedef enum sp_handle_kind {
    SP_KIND_NONE,
    SP_KIND_DEVICE,
    SP_KIND_STREAM, /* a lease of a stream */
    SP_KIND_EVENT,
    SP_KIND_STORAGE,
    SP_KIND_KERNEL,
    SP_KIND_LIST,
    SP_KIND_MODEL,
    SP_KIND_TENSOR,
    SP_KIND_FUTURE,
    SP_KIND_PLAN,
    SP_KIND_MODEL_FILE,
    SP_KIND_BATCH_QUEUE,
    SP_KIND_CANCEL_TOKEN,
    SP_KIND_COUNT
} sp_handle_kind;

/* First member of every object that has handles. */
typedef struct sp_object {
    sp_atomic_u64 word;      /* as above; the release of a hold publishes to the destroyer */
    sp_atomic_u32 next_free; /* link of the free list */
    uint32_t slot;           /* constant once the slot exists */
} sp_object;

#define SP_HOLD_BITS 20
#define SP_USER_BITS 16
#define SP_GENERATION_BITS 28
#define SP_SLOT_BITS 28
#define SP_HANDLE_CHUNKS 22
#define SP_HANDLE_FIRST_BITS 6 /* of the slots in the first chunk */

typedef struct sp_handle_table {
    sp_handle_kind kind;
    uint32_t object_bytes; /* a multiple of SP_CACHE_LINE; the object starts with sp_object */
    uint32_t lanes_at;     /* offset of SP_LANES lanes in the object; 0: it has none */
    /* May be NULL. Called once for each new slot, with all other fields zero: initialises members
     * that outlive the slot's objects, such as locks. */
    void (*make)(sp_object *object);
    /* Called without locks when the last hold is dropped. It owns the object: it ends with
     * sp__handle_recycle, or keeps the object and, unless it is spent, publishes it again later. */
    void (*destroy)(sp_object *object);
    sp_tagged_stack free_slots;
    /* Chunk k holds 64 << k objects. Written under `lock`, published by release, read by look-up.
     */
    SP_ATOMIC(char *) chunks[SP_HANDLE_CHUNKS];
    sp_mutex lock;                           /* initialised with SP_LOCK_HANDLE_TABLE */
    uint32_t slot_count SP_GUARDED_BY(lock); /* slots created */
} sp_handle_table;

/* An object without users: zeroed if its slot is new, else as its destroyer left it. */
sp_status sp__handle_acquire(sp_handle_table *table, sp_object **out);

/* Whether the slot has used all its generations: the object, unpublished or destroyed, must not be
 * published then. */
static inline bool sp__handle_is_spent(const sp_object *object)
{
    return sp_load_relaxed(&object->word) == 0;
}

/* Returns the slot of an unpublished or destroyed object to the free list, unless it is spent. */
void sp__handle_recycle(sp_handle_table *table, sp_object *object);

/* Makes the object's handle valid, with one user, and returns it. Earlier writes to the object are
 * visible to every look-up of the handle. */
uint64_t sp__handle_publish(const sp_handle_table *table, sp_object *object);

/* The same with a hold for the caller, which a release of a guessed handle cannot drop. */
uint64_t sp__handle_publish_held(const sp_handle_table *table, sp_object *object);

/* The handle of a published object on which the caller has a hold. */
uint64_t sp__handle_of(const sp_handle_table *table, const sp_object *object);

/* The object with one more hold, or NULL with the reason as last error; `noun` names it there. */
sp_object *sp__handle_hold(sp_handle_table *table, uint64_t handle, const char *noun);

/* The same without a hold: the object is not destroyed before the visitor leaves, in the same lane
 * (below SP_LANES). For tables with lanes. */
sp_object *sp__handle_visit(sp_handle_table *table, uint64_t handle, const char *noun,
                            uint32_t lane);
void sp__handle_leave(sp_handle_table *table, sp_object *object, uint32_t lane);

/* For iteration over all objects: false past the last slot. *out is the slot's object with one more
 * hold, or NULL, without an error, if it has no hold. Includes objects without users. */
bool sp__handle_hold_slot(sp_handle_table *table, uint32_t slot, sp_object **out);

/* The object without a hold, or NULL without an error. The caller reads only atomic fields of it,
 * with acquire, and then checks with sp__handle_is_current that they were of this generation; a
 * destroyer writes them with release after the generation has ended. */
static inline sp_object *sp__handle_peek(sp_handle_table *table, uint64_t handle);
static inline bool sp__handle_is_current(const sp_object *object, uint64_t handle);

/* The object of the slot that the handle names, of any generation, or unpublished; NULL, without an
 * error, if there is no such slot. For a caller that locks it and then checks
 * sp__handle_is_current. */
static inline sp_object *sp__handle_slot_object(sp_handle_table *table, uint64_t handle);

/* SP_INVALID, with the reason why `handle` is no valid handle of the kind: zero, of another kind,
 * or stale. */
sp_status sp__handle_refuse(sp_handle_kind kind, uint64_t handle, const char *noun);

/* One more hold, for a caller that has one. */
void sp__object_hold(sp_object *object);
/* The same for a visitor; false: the last hold has been dropped. */
bool sp__object_hold_visited(sp_object *object);
/* Drops a hold; the last one destroys. */
void sp__object_drop(sp_handle_table *table, sp_object *object);
/* The same, but does not drop the last hold: it then returns false, and the caller drops that hold
 * where it may destroy. */
bool sp__object_drop_unless_last(sp_object *object);

/* The caller's references. Retain: SP_INVALID for an invalid handle, SP_EXHAUSTED past 65,535.
 * Release: the zero handle is fine, a stale one is SP_INVALID. */
sp_status sp__handle_retain(sp_handle_table *table, uint64_t handle, const char *noun);
sp_status sp__handle_release(sp_handle_table *table, uint64_t handle, const char *noun);

/* Frees the slabs, which resets the table; no look-up may run (tests and the controlled scheduler).
 */
void sp__handle_table_reset(sp_handle_table *table);

static inline sp_handle_kind sp__handle_kind(uint64_t handle)
{
    return (sp_handle_kind)(handle >> 56);
}

static inline uint32_t sp__handle_slot(uint64_t handle)
{
    return (uint32_t)(handle & (((uint64_t)1 << SP_SLOT_BITS) - 1));
}

/* Whether `word` is of the generation that `handle` names and has users. */
static inline bool sp__handle_is_life(uint64_t word, uint64_t handle)
{
    const uint64_t mask = ((uint64_t)1 << SP_GENERATION_BITS) - 1;
    const uint64_t users = (word >> SP_HOLD_BITS) & (((uint64_t)1 << SP_USER_BITS) - 1);
    return word >> (SP_HOLD_BITS + SP_USER_BITS) == ((handle >> SP_SLOT_BITS) & mask) && users > 0;
}

/* Sequentially consistent, like the step that makes handles stale. */
static inline bool sp__handle_is_current(const sp_object *object, uint64_t handle)
{
    return sp__handle_is_life(sp_load_seq_cst(&object->word), handle);
}

/* The object of a slot, or NULL if the slot does not exist. */
static inline sp_object *sp__handle_object_at(sp_handle_table *table, uint32_t slot)
{
    const uint64_t place = (uint64_t)slot + (1u << SP_HANDLE_FIRST_BITS);
    const uint32_t log2 = 63u - (uint32_t)__builtin_clzll(place);
    const uint32_t chunk = log2 - SP_HANDLE_FIRST_BITS;
    if (chunk >= SP_HANDLE_CHUNKS) return NULL;
    /* Pairs with the release in slot_new: the chunk's zeroes and slot numbers are visible. */
    char *base = sp_load_acquire(&table->chunks[chunk]);
    if (base == NULL) return NULL;
    return (sp_object *)(void *)(base + (place - ((uint64_t)1 << log2)) * table->object_bytes);
}

static inline sp_object *sp__handle_slot_object(sp_handle_table *table, uint64_t handle)
{
    if (sp__handle_kind(handle) != table->kind) return NULL;
    return sp__handle_object_at(table, sp__handle_slot(handle));
}

static inline sp_object *sp__handle_peek(sp_handle_table *table, uint64_t handle)
{
    if (sp__handle_kind(handle) != table->kind) return NULL;
    sp_object *object = sp__handle_object_at(table, sp__handle_slot(handle));
    return object != NULL && sp__handle_is_current(object, handle) ? object : NULL;
}

#endif
