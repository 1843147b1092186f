/* SPDX-License-Identifier: Apache-2.0 */
/* The levels of `width` sums or products of more than one block, which are computed together.
 * Elements join the lanes of level 0; the result of block i of a level is element i of the next
 * level. Level k begins at lane k * SP_LANES. Included by other templates; parameter SP_TYPE, the
 * type of the lanes. */

typedef struct SP_LEVELS {
    SP_WIDE *lanes; /* of all levels */
    int64_t width;  /* 1 or SP_LANE_COLUMNS */
    bool is_product;
    int64_t block; /* of level 0: the one that elements join */
} SP_LEVELS;

static SP_ALWAYS_INLINE void SP_OF(sp_levels_clear)(const SP_LEVELS *s, SP_WIDE *lanes,
                                                    int64_t count)
{
    const SP_WIDE neutral = s->is_product ? 1 : 0;
    SP_INDEPENDENT for (int64_t l = 0; l < count * s->width; l++) lanes[l] = neutral;
}

static SP_ALWAYS_INLINE void SP_OF(sp_levels_combine)(const SP_LEVELS *s, SP_WIDE *to,
                                                      const SP_WIDE *from, int64_t count)
{
    if (s->is_product) {
        SP_INDEPENDENT for (int64_t c = 0; c < count; c++) to[c] = SP_OF(sp_mul)(to[c], from[c]);
    } else {
        SP_INDEPENDENT for (int64_t c = 0; c < count; c++) to[c] = SP_OF(sp_add)(to[c], from[c]);
    }
}

/* Lanes below a step take those from the step on, which come next in memory. Written out, so that
 * the counts are compile-time constants. */
static SP_ALWAYS_INLINE void SP_OF(sp_levels_some_tree)(const SP_LEVELS *s, SP_WIDE *lanes,
                                                        const int64_t width)
{
    SP_OF(sp_levels_combine)(s, lanes, lanes + 8 * width, 8 * width);
    SP_OF(sp_levels_combine)(s, lanes, lanes + 4 * width, 4 * width);
    SP_OF(sp_levels_combine)(s, lanes, lanes + 2 * width, 2 * width);
    SP_OF(sp_levels_combine)(s, lanes, lanes + width, width);
}

/* The tree of the level whose lanes begin at `lanes`. */
static SP_ALWAYS_INLINE void SP_OF(sp_levels_tree)(const SP_LEVELS *s, SP_WIDE *lanes)
{
    if (s->width == 1) SP_OF(sp_levels_some_tree)(s, lanes, 1);
    else SP_OF(sp_levels_some_tree)(s, lanes, SP_LANE_COLUMNS);
}

/* Ends block `block` of this level; returns the lanes of the next level, which its result joins. */
static SP_ALWAYS_INLINE SP_WIDE *SP_OF(sp_levels_end_block)(const SP_LEVELS *s, SP_WIDE *lanes,
                                                            int64_t block)
{
    SP_WIDE *next = lanes + SP_LANES * s->width;
    SP_WIDE *lane = next + block % SP_REDUCTION_BLOCK % SP_LANES * s->width;
    SP_OF(sp_levels_tree)(s, lanes);
    SP_OF(sp_levels_combine)(s, lane, lanes, s->width);
    return next;
}

/* The lanes, SP_LEVEL_LANES * width of them, are the caller's. */
static __attribute__((unused)) void SP_OF(sp_levels_begin)(SP_LEVELS *s, SP_WIDE *lanes,
                                                           int64_t width, bool is_product)
{
    *s = (SP_LEVELS){.lanes = lanes, .width = width, .is_product = is_product};
    SP_OF(sp_levels_clear)(s, lanes, SP_LEVEL_LANES);
}

/* From now on the elements are those of block `block`, in the same order as before. A block that is
 * passed over has no elements, so its result would be neutral. */
static __attribute__((unused)) void SP_OF(sp_levels_enter)(SP_LEVELS *s, int64_t block)
{
    SP_WIDE *lanes = s->lanes;
    int64_t from = s->block, to = block;
    s->block = block;
    while (from != to) {
        SP_WIDE *next = SP_OF(sp_levels_end_block)(s, lanes, from);
        SP_OF(sp_levels_clear)(s, lanes, SP_LANES);
        lanes = next;
        from /= SP_REDUCTION_BLOCK;
        to /= SP_REDUCTION_BLOCK;
    }
}

/* Ends all blocks; the result of reduction c is then at index c of what is returned. */
static __attribute__((unused)) const SP_WIDE *SP_OF(sp_levels_end)(const SP_LEVELS *s)
{
    SP_WIDE *lanes = s->lanes;
    for (int64_t block = s->block; block > 0; block /= SP_REDUCTION_BLOCK) {
        lanes = SP_OF(sp_levels_end_block)(s, lanes, block);
    }
    SP_OF(sp_levels_tree)(s, lanes);
    return lanes;
}
