/* SPDX-License-Identifier: Apache-2.0 */
/* The two random searches: PCT (S. Burckhardt et al., A Randomized Scheduler with Probabilistic
 * Guarantees of Finding Bugs, ASPLOS 2010) and the uniform walk. Run n of seed s is
 * deterministic. */
#include "strategy.h"

#define DEPTH_MAX 16

static uint64_t run_index;
static uint64_t random_state;
static uint32_t priorities[SP_SCHED_MAX_THREADS]; /* 0: not assigned yet */
static uint64_t change_at[DEPTH_MAX]; /* picks before which the running thread's priority drops */
static uint64_t pick_count;
static uint64_t longest_run; /* maximum of pick_count so far */

static uint64_t random_next(void)
{
    uint64_t z = (random_state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint32_t random_below(uint32_t bound)
{
    return (uint32_t)(((random_next() >> 32) * bound) >> 32);
}

static void walk_begin(void)
{
    random_state = sp__engine.options.seed * 0xd1342543de82ef95u + run_index;
    random_state = random_next(); /* decorrelates runs of neighbouring numbers */
}

static uint32_t pct_depth_used(void)
{
    const uint32_t wanted = sp__engine.options.pct_depth;
    return wanted < DEPTH_MAX ? wanted : DEPTH_MAX;
}

static void pct_begin(void)
{
    walk_begin();
    if (pick_count > longest_run) longest_run = pick_count;
    pick_count = 0;
    for (uint32_t i = 0; i < SP_SCHED_MAX_THREADS; i++) priorities[i] = 0;
    const uint32_t length = longest_run == 0 ? 1 : (uint32_t)longest_run;
    for (uint32_t i = 0; i + 1 < pct_depth_used(); i++) change_at[i] = 1 + random_below(length);
}

static uint32_t pct_highest(uint32_t mask)
{
    uint32_t best = (uint32_t)__builtin_ctz(mask);
    for (uint32_t left = mask; left != 0; left &= left - 1) {
        const uint32_t id = (uint32_t)__builtin_ctz(left);
        if (priorities[id] == 0) priorities[id] = DEPTH_MAX + (uint32_t)(random_next() >> 33);
        if (priorities[id] > priorities[best]) best = id;
    }
    return best;
}

static uint32_t pct_pick(uint32_t mask)
{
    pick_count++;
    for (uint32_t i = 0; i + 1 < pct_depth_used(); i++) {
        if (change_at[i] == pick_count) priorities[pct_highest(mask)] = i + 1;
    }
    return pct_highest(mask);
}

static uint32_t walk_pick(uint32_t mask)
{
    uint32_t skip = random_below((uint32_t)__builtin_popcount(mask));
    while (skip-- > 0) mask &= mask - 1;
    return (uint32_t)__builtin_ctz(mask);
}

/* Outcome 0 is the common one (the newest store): at least half of the time. */
static uint32_t random_choose(uint32_t count)
{
    const uint64_t bits = random_next();
    return (bits & 1u) != 0 ? 0 : random_below(count);
}

static bool random_advance(void)
{
    run_index++;
    return true;
}

const sp_strategy *sp__pct_start(void)
{
    static const sp_strategy strategy = {false, pct_begin, pct_pick, random_choose, random_advance};
    run_index = 0;
    pick_count = 0;
    longest_run = 0;
    return &strategy;
}

const sp_strategy *sp__walk_start(void)
{
    static const sp_strategy strategy = {false, walk_begin, walk_pick, random_choose,
                                         random_advance};
    run_index = 0;
    return &strategy;
}
