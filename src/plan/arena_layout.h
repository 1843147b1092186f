/* SPDX-License-Identifier: Apache-2.0 */
/* Offsets in an arena for values with limited lifetimes: first fit among the gaps of dead values,
 * else at the end. Only arithmetic; owns no arena memory. */
#ifndef SP_PLAN_ARENA_LAYOUT_H
#define SP_PLAN_ARENA_LAYOUT_H

#include <stdint.h>

#include <streampool/status.h>

#define SP_ARENA_ALIGNMENT 64

typedef struct sp_arena_gap {
    uint64_t offset, bytes;
} sp_arena_gap;

/* Invariant: gaps are sorted by offset, not empty, do not touch each other, and end before `end`.
 */
typedef struct sp_arena_layout {
    sp_arena_gap *gaps; /* owned */
    uint32_t gap_count, gap_capacity;
    uint64_t end;   /* of what is in use */
    uint64_t bytes; /* the largest `end` so far: what the arena needs */
} sp_arena_layout;

void sp__arena_layout_deinit(sp_arena_layout *layout);

/* Errors: SP_EXHAUSTED above SP_MAX_TENSOR_BYTES in all. */
sp_status sp__arena_layout_acquire(sp_arena_layout *layout, uint64_t bytes, uint64_t *offset);

/* Releases an offset that was acquired for as many bytes. Errors: SP_OUT_OF_MEMORY. */
sp_status sp__arena_layout_release(sp_arena_layout *layout, uint64_t offset, uint64_t bytes);

#endif
