/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes: a count of visitors that is spread over cache lines, for objects that many threads use at
 * the same time and that seldom end. A visitor counts in one lane, whose line few others write:
 *
 *     visitor                               the thread that ends the object
 *     enters its lane                       marks the object as ended
 *     looks whether it has ended            looks whether all lanes are empty
 *
 * All four are sequentially consistent, so one of the two sees the other. A visitor that sees the
 * mark leaves at once; a visitor that leaves looks for the mark, since it may be the last one. */
#ifndef SP_BASE_LANES_H
#define SP_BASE_LANES_H

#include <stdbool.h>

#include "base/atomic.h"
#include "base/macros.h"

#define SP_LANES 32u

typedef struct sp_lane {
    SP_CACHE_ALIGNED sp_atomic_u64 visits; /* sequentially consistent, as above */
    /* Counters of the object's owner, on the same line; relaxed, for information. */
    sp_atomic_u64 counts[4];
} sp_lane;

static inline void sp_lane_enter(sp_lane *lane)
{
    sp_fetch_add_seq_cst(&lane->visits, (uint64_t)1);
}

static inline void sp_lane_leave(sp_lane *lane)
{
    sp_fetch_sub_seq_cst(&lane->visits, (uint64_t)1);
}

/* By the thread that has marked the end. */
static inline bool sp_lanes_are_empty(const sp_lane *lanes)
{
    for (uint32_t i = 0; i < SP_LANES; i++) {
        if (sp_load_seq_cst(&lanes[i].visits) != 0) return false;
    }
    return true;
}

#endif
