/* SPDX-License-Identifier: Apache-2.0 */
/* The free run slots of a device (exec/run_slots.h). The word is one cache line for all threads,
 * and would have to go from processor to processor twice for each run. So a thread whose run has
 * ended keeps its slot on the line of its lane: free for its next run, and for others. */
#ifndef SP_DEVICE_FREE_SLOTS_H
#define SP_DEVICE_FREE_SLOTS_H

#include "base/atomic.h"
#include "base/lanes.h"
#include "base/macros.h"
#include "base/thread.h"

/* A power of two; few under the controlled scheduler. */
#define SP_KEPT_SLOTS SP_SPIN_TURNS(SP_LANES)

enum {
    SP_KEPT_NONE,
    SP_KEPT_FREE,
    SP_KEPT_LEFT,    /* while threads wait, for a quantum */
    SP_KEPT_KIND = 3 /* the bits above: when it was left (exec/run_tenure.h) */
};

typedef struct sp_kept_slot {
    SP_CACHE_ALIGNED sp_atomic_u32 state; /* of the slot that the lane keeps */
} sp_kept_slot;

typedef struct sp_free_slots {
    /* The low 16 bits: slots that are free for any thread; the others: runs that wait. */
    SP_CACHE_ALIGNED sp_atomic_u64 word;
    sp_kept_slot kept[SP_KEPT_SLOTS];
} sp_free_slots;

/* Slots that are free and kept, but not more than `most`. Relaxed, and a hint: as all below. */
static inline uint32_t sp__kept_slots_free(const sp_free_slots *slots, uint32_t most)
{
    uint32_t free = 0;
    for (uint32_t i = 0; i < SP_KEPT_SLOTS && free < most; i++) {
        free += sp_load_relaxed(&slots->kept[i].state) != SP_KEPT_NONE;
    }
    return free;
}

/* The number of slots, if none is taken and nothing waits. */
static inline uint64_t sp__free_slots_word(const sp_free_slots *slots)
{
    return sp_load_relaxed(&slots->word) + sp__kept_slots_free(slots, UINT32_MAX);
}

/* Free slots; 0 if runs wait. */
static inline uint32_t sp__free_slots_count(const sp_free_slots *slots)
{
    const uint64_t word = sp_load_relaxed(&slots->word);
    return word >> 16 == 0 ? (uint32_t)word + sp__kept_slots_free(slots, UINT32_MAX) : 0;
}

#endif
