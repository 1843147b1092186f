/* SPDX-License-Identifier: Apache-2.0 */
/* Handle tables: slots in chunks that double in size and never move; a tagged stack of free slots;
 * one 64-bit word per object, so that every life-cycle step is one compare-and-swap. */
#include "base/handle.h"

#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/heap.h"
#include "base/tsan.h"

#define ONE_HOLD ((uint64_t)1)
#define ONE_USER ((uint64_t)1 << SP_HOLD_BITS)
#define ONE_GENERATION ((uint64_t)1 << (SP_HOLD_BITS + SP_USER_BITS))
#define HOLD_MAX (((uint64_t)1 << SP_HOLD_BITS) - 1)
#define USER_MAX (((uint64_t)1 << SP_USER_BITS) - 1)

static uint64_t holds_of(uint64_t word)
{
    return word & HOLD_MAX;
}

static uint64_t users_of(uint64_t word)
{
    return (word >> SP_HOLD_BITS) & USER_MAX;
}

static uint64_t generation_of(uint64_t word)
{
    return word >> (SP_HOLD_BITS + SP_USER_BITS);
}

/* The word of a slot without users and holds, of the generation after `word`'s. Generation 0 is not
 * used, so that no handle is 0: after the last generation the slot is spent. */
static uint64_t next_generation(uint64_t word)
{
    const uint64_t generation = generation_of(word) + (SP_PLANTED(generation_stays) ? 0 : 1);
    return (generation & (((uint64_t)1 << SP_GENERATION_BITS) - 1)) * ONE_GENERATION;
}

static sp_atomic_u32 *link_of(void *ctx, uint32_t slot)
{
    return &sp__handle_object_at(ctx, slot)->next_free;
}

static sp_status chunk_new_locked(sp_handle_table *table, uint32_t chunk) SP_REQUIRES(&table->lock)
{
    const size_t count = (size_t)1 << (chunk + SP_HANDLE_FIRST_BITS);
    const size_t bytes = count * table->object_bytes;
    char *base = sp_aligned_malloc(SP_CACHE_LINE, bytes);
    if (base == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for %zu more handles", count);
    memset(base, 0, bytes);
    const uint32_t first = (uint32_t)(count - ((size_t)1 << SP_HANDLE_FIRST_BITS));
    for (uint32_t i = 0; i < count; i++) {
        sp_object *object = (sp_object *)(void *)(base + (size_t)i * table->object_bytes);
        object->slot = first + i;
        sp_store_relaxed(&object->word, ONE_GENERATION);
        if (table->make != NULL) table->make(object);
    }
    sp_store_release(&table->chunks[chunk], base);
    return SP_OK;
}

static sp_status slot_new(sp_handle_table *table, sp_object **out)
{
    sp_mutex_lock(&table->lock);
    const uint32_t slot = table->slot_count;
    const uint64_t place = (uint64_t)slot + (1u << SP_HANDLE_FIRST_BITS);
    sp_status status = SP_OK;
    if (place >> SP_SLOT_BITS != 0) {
        status =
            sp__fail(SP_EXHAUSTED, "more than %u objects of one kind are alive", (unsigned)slot);
    } else if ((place & (place - 1)) == 0) {
        const uint32_t log2 = 63u - (uint32_t)__builtin_clzll(place);
        status = chunk_new_locked(table, log2 - SP_HANDLE_FIRST_BITS);
    }
    if (status == SP_OK) table->slot_count = slot + 1;
    sp_mutex_unlock(&table->lock);
    if (status == SP_OK) *out = sp__handle_object_at(table, slot);
    return status;
}

sp_status sp__handle_acquire(sp_handle_table *table, sp_object **out)
{
    uint32_t slot;
    if (!sp_tagged_stack_pop(&table->free_slots, link_of, table, &slot)) {
        return slot_new(table, out);
    }
    *out = sp__handle_object_at(table, slot);
    return SP_OK;
}

void sp__handle_recycle(sp_handle_table *table, sp_object *object)
{
    SP_ASSERT(holds_of(sp_load_relaxed(&object->word)) == 0);
    if (SP_UNLIKELY(sp__handle_is_spent(object))) return;
    sp_tagged_stack_push(&table->free_slots, link_of, table, object->slot);
}

uint64_t sp__handle_of(const sp_handle_table *table, const sp_object *object)
{
    return (uint64_t)table->kind << 56 |
           generation_of(sp_load_relaxed(&object->word)) << SP_SLOT_BITS | object->slot;
}

static inline uint64_t object_publish(const sp_handle_table *table, sp_object *object,
                                      uint64_t holds)
{
    const uint64_t word = sp_load_relaxed(&object->word);
    SP_ASSERT(holds_of(word) == 0 && users_of(word) == 0 && generation_of(word) != 0);
    sp_tsan_release(&object->word);
    /* Pairs with the acquire in object_look_up: publishes the object's contents. */
    if (SP_PLANTED(handle_early_publish)) {
        sp_store_relaxed(&object->word, word + ONE_USER + holds);
    } else {
        sp_store_release(&object->word, word + ONE_USER + holds);
    }
    return sp__handle_of(table, object);
}

uint64_t sp__handle_publish(const sp_handle_table *table, sp_object *object)
{
    return object_publish(table, object, ONE_HOLD);
}

uint64_t sp__handle_publish_held(const sp_handle_table *table, sp_object *object)
{
    return object_publish(table, object, 2 * ONE_HOLD);
}

sp_status sp__handle_refuse(sp_handle_kind kind, uint64_t handle, const char *noun)
{
    const unsigned long long bits = handle;
    if (handle == 0) {
        return sp__fail(SP_INVALID, "the %s handle is the zero handle", noun);
    }
    if (sp__handle_kind(handle) != kind) {
        return sp__fail(SP_INVALID, "handle %#llx is no %s handle", bits, noun);
    }
    return sp__fail(SP_INVALID, "%s handle %#llx is stale: already released, or never created",
                    noun, bits);
}

static sp_lane *lanes_of(const sp_handle_table *table, sp_object *object)
{
    return (sp_lane *)(void *)((char *)object + table->lanes_at);
}

/* The object of a valid `handle`, with its word, or NULL with the reason as last error. */
static inline sp_object *object_look_up(sp_handle_table *table, uint64_t handle, const char *noun,
                                        uint64_t *word)
{
    sp_object *object = sp__handle_kind(handle) == table->kind
                            ? sp__handle_object_at(table, sp__handle_slot(handle))
                            : NULL;
    if (object != NULL) {
        *word = sp_load_acquire(&object->word);
        if (sp__handle_is_life(*word, handle)) return object;
    }
    sp__handle_refuse(table->kind, handle, noun);
    return NULL;
}

sp_object *sp__handle_hold(sp_handle_table *table, uint64_t handle, const char *noun)
{
    uint64_t word;
    sp_object *object;
    while ((object = object_look_up(table, handle, noun, &word)) != NULL) {
        if (holds_of(word) == HOLD_MAX - 1) { /* all ones: retired */
            sp__fail(SP_EXHAUSTED, "%s handle %#llx is in use %llu times at once", noun,
                     (unsigned long long)handle, (unsigned long long)HOLD_MAX - 1);
            return NULL;
        }
        /* Acquire pairs with the release in object_publish. */
        if (sp_cas_acquire(&object->word, &word, word + ONE_HOLD)) return object;
    }
    return NULL;
}

bool sp__handle_hold_slot(sp_handle_table *table, uint32_t slot, sp_object **out)
{
    sp_object *object = sp__handle_object_at(table, slot);
    *out = NULL;
    if (object == NULL) return false;
    uint64_t word = sp_load_relaxed(&object->word);
    while (holds_of(word) > 0 && holds_of(word) < HOLD_MAX - 1) {
        /* Acquire pairs with the release in object_publish. */
        if (!sp_cas_acquire(&object->word, &word, word + ONE_HOLD)) continue;
        sp_tsan_acquire(&object->word);
        *out = object;
        break;
    }
    return true;
}

void sp__object_hold(sp_object *object)
{
    const uint64_t before = sp_fetch_add_relaxed(&object->word, ONE_HOLD);
    SP_ASSERT(holds_of(before) > 0 && holds_of(before) < HOLD_MAX - 1);
    (void)before;
}

bool sp__object_hold_visited(sp_object *object)
{
    uint64_t word = sp_load_relaxed(&object->word);
    while (holds_of(word) > 0 && holds_of(word) < HOLD_MAX - 1) {
        if (sp_cas_relaxed(&object->word, &word, word + ONE_HOLD)) return true;
    }
    return false;
}

/* After the last hold was dropped: the destruction happens after all work of earlier holders. */
static void object_destroy(sp_handle_table *table, sp_object *object)
{
    sp_tsan_acquire(&object->word);
    table->destroy(object);
}

/* ---- visits ---- */

static bool is_retired(uint64_t word)
{
    return users_of(word) == 0 && holds_of(word) == HOLD_MAX;
}

/* Destroys the retired object if it has no visitors. Of the threads that find that, one does. */
static void retired_finish(sp_handle_table *table, sp_object *object, uint64_t retired)
{
    if (!SP_PLANTED(visitors_unseen) && !sp_lanes_are_empty(lanes_of(table, object))) return;
    uint64_t word = retired;
    if (SP_PLANTED(retired_twice)) {
        sp_store_relaxed(&object->word, retired - HOLD_MAX);
    } else if (!sp_cas_seq_cst(&object->word, &word, retired - HOLD_MAX)) {
        return;
    }
    object_destroy(table, object);
}

sp_object *sp__handle_visit(sp_handle_table *table, uint64_t handle, const char *noun,
                            uint32_t lane)
{
    sp_object *object = sp__handle_slot_object(table, handle);
    if (object != NULL) {
        sp_lane_enter(&lanes_of(table, object)[lane]);
        if (SP_LIKELY(sp__handle_is_current(object, handle))) return object;
        sp__handle_leave(table, object, lane);
    }
    sp__handle_refuse(table->kind, handle, noun);
    return NULL;
}

void sp__handle_leave(sp_handle_table *table, sp_object *object, uint32_t lane)
{
    sp_tsan_release(&object->word);
    sp_lane_leave(&lanes_of(table, object)[lane]);
    /* Pairs with the exchange that retires the object: see lanes.h. */
    const uint64_t word = sp_load_seq_cst(&object->word);
    if (SP_UNLIKELY(is_retired(word)) && !SP_PLANTED(last_visitor_leaves)) {
        retired_finish(table, object, word);
    }
}

/* ---- drops ---- */

/* The word after the last hold. */
static uint64_t ended_word(const sp_handle_table *table, uint64_t word)
{
    return next_generation(word) + (table->lanes_at != 0 ? HOLD_MAX : 0);
}

static void object_end(sp_handle_table *table, sp_object *object, uint64_t word)
{
    if (table->lanes_at != 0) retired_finish(table, object, word);
    else object_destroy(table, object);
}

/* Subtracts `amount` from the word; dropping the last hold starts the next generation and destroys
 * the object. */
static void object_drop(sp_handle_table *table, sp_object *object, uint64_t word, uint64_t amount)
{
    sp_tsan_release(&object->word);
    for (;;) {
        uint64_t next = word - amount;
        const bool is_last = holds_of(next) == 0;
        if (is_last) next = ended_word(table, word);
        /* Release: this holder's work happens before the destruction; acquire: the destroyer sees
         * the work of all holders; sequentially consistent: see sp__handle_release. */
        const bool is_done = SP_PLANTED(relaxed_drop) ? sp_cas_relaxed(&object->word, &word, next)
                                                      : sp_cas_seq_cst(&object->word, &word, next);
        if (!is_done) continue;
        if (is_last) object_end(table, object, next);
        return;
    }
}

void sp__object_drop(sp_handle_table *table, sp_object *object)
{
    object_drop(table, object, sp_load_relaxed(&object->word), ONE_HOLD);
}

bool sp__object_drop_unless_last(sp_object *object)
{
    uint64_t word = sp_load_relaxed(&object->word);
    sp_tsan_release(&object->word);
    while (holds_of(word) > 1) {
        const uint64_t less = word - ONE_HOLD;
        if (SP_PLANTED(relaxed_leave)) {
            if (sp_cas_relaxed(&object->word, &word, less)) return true;
            continue;
        }
        /* Release: as in object_drop(). */
        if (sp_cas_release(&object->word, &word, less)) return true;
    }
    return false;
}

sp_status sp__handle_retain(sp_handle_table *table, uint64_t handle, const char *noun)
{
    uint64_t word;
    sp_object *object;
    while ((object = object_look_up(table, handle, noun, &word)) != NULL) {
        if (users_of(word) == USER_MAX) {
            return sp__fail(SP_EXHAUSTED, "%s handle %#llx was retained %llu times", noun,
                            (unsigned long long)handle, (unsigned long long)USER_MAX);
        }
        if (sp_cas_relaxed(&object->word, &word, word + ONE_USER)) return SP_OK;
    }
    return SP_INVALID;
}

sp_status sp__handle_release(sp_handle_table *table, uint64_t handle, const char *noun)
{
    if (handle == 0) return SP_OK;
    uint64_t word;
    sp_object *object;
    while ((object = object_look_up(table, handle, noun, &word)) != NULL) {
        uint64_t next = word - ONE_USER;
        if (users_of(next) == 0) next -= ONE_HOLD;
        const bool is_last = holds_of(next) == 0;
        if (is_last) next = ended_word(table, word);
        /* Orders as in object_drop(); sequentially consistent for threads that write a mark for the
         * destroyer and then check whether a handle is still current. */
        sp_tsan_release(&object->word);
        if (!sp_cas_seq_cst(&object->word, &word, next)) continue;
        if (is_last) object_end(table, object, next);
        return SP_OK;
    }
    return SP_INVALID;
}

void sp__handle_table_reset(sp_handle_table *table)
{
    sp_mutex_lock(&table->lock);
    table->slot_count = 0;
    sp_mutex_unlock(&table->lock);
    table->free_slots = (sp_tagged_stack){0};
    for (uint32_t i = 0; i < SP_HANDLE_CHUNKS; i++) {
        sp_free(sp_load_relaxed(&table->chunks[i]));
        sp_store_relaxed(&table->chunks[i], NULL);
    }
}
