/* SPDX-License-Identifier: Apache-2.0 */
/* Dynamic partial order reduction with source sets and sleep sets (P. Abdulla, S. Aronis, B.
 * Jonsson and K. Sagonas, POPL 2014). Every step is a node. A race found by deps.c adds, at the
 * node before the earlier step, a thread that can begin a run in which the later step comes first.
 * Outcomes of a step (stale loads, the choice of the woken thread) are nodes whose every value is
 * explored. */
#include <string.h>

#include "deps.h"
#include "shadow.h"
#include "strategy.h"

#define NODES_MAX (2 * SP_SCHED_STEPS_MAX)

/* Thread sets. backtrack: to be explored from here. done: explored; disjoint from chosen. sleep:
 * exploring them from here would repeat an earlier run. */
typedef struct dpor_node {
    uint32_t enabled; /* for an outcome, their number */
    uint32_t backtrack;
    uint32_t done;
    uint32_t sleep;
    uint32_t chosen;
    bool is_outcome;
} dpor_node;

static dpor_node *nodes;
static uint32_t node_count;
static uint32_t cursor;
static uint32_t *node_of_step;
static uint32_t analyze_from; /* races of steps at earlier nodes are already known */
static uint32_t last_step_node;

static void dpor_begin(void)
{
    cursor = 0;
    last_step_node = UINT32_MAX;
}

static _Noreturn void fail_nondeterminism(uint32_t now, uint32_t before)
{
    sp__engine_fail(SP_SCHED_NONDETERMINISM,
                    "choice %u: candidates %#x, in an earlier run with the same choices %#x",
                    cursor, now, before);
}

static uint32_t sleep_of_next(void)
{
    if (last_step_node == UINT32_MAX) return 0;
    const dpor_node *parent = &nodes[last_step_node];
    const sp_op *executed = &sp__deps_steps()[sp__deps_step_count()].op;
    uint32_t sleep = 0;
    for (uint32_t left = (parent->sleep | parent->done) & ~(1u << parent->chosen); left != 0;
         left &= left - 1) {
        const sp_sched_thread *thread = &sp__engine.threads[__builtin_ctz(left)];
        if (!sp__deps_are_dependent(&thread->op, executed)) sleep |= thread->bit;
    }
    return sleep;
}

static dpor_node *node_push(void)
{
    if (node_count == NODES_MAX) sp__engine_fail(SP_SCHED_TOO_BIG, "too many steps");
    dpor_node *node = &nodes[node_count++];
    cursor++;
    memset(node, 0, sizeof *node);
    return node;
}

static uint32_t dpor_pick(uint32_t mask)
{
    const uint32_t index = cursor;
    uint32_t chosen;
    if (index < node_count) {
        const dpor_node *node = &nodes[cursor++];
        if (node->is_outcome || node->enabled != mask) fail_nondeterminism(mask, node->enabled);
        chosen = node->chosen;
    } else {
        const uint32_t sleep = sleep_of_next();
        const uint32_t awake = mask & ~sleep;
        if (awake == 0) sp__engine_prune();
        const sp_sched_thread *self = sp__engine.self;
        chosen = (awake & self->bit) && self->op.kind != SP_OP_YIELD
                     ? self->id
                     : (uint32_t)__builtin_ctz(awake);
        dpor_node *node = node_push();
        node->enabled = mask;
        node->sleep = sleep;
        node->chosen = chosen;
        node->backtrack = 1u << chosen;
    }
    last_step_node = index;
    node_of_step[sp__deps_step_count() + 1] = index;
    return chosen;
}

static uint32_t dpor_choose(uint32_t count)
{
    if (cursor < node_count) {
        const dpor_node *node = &nodes[cursor++];
        if (!node->is_outcome || node->enabled != count) fail_nondeterminism(count, node->enabled);
        return node->chosen;
    }
    dpor_node *node = node_push();
    node->is_outcome = true;
    node->enabled = count;
    return 0;
}

/* Threads that can take the first step of "all steps after `from` that do not depend on it, then
 * `to`": starting with any of them covers the reversed race. */
static uint32_t race_initials(uint32_t from, uint32_t to)
{
    const sp_step *steps = sp__deps_steps();
    uint32_t first[SP_SCHED_MAX_THREADS] = {0};
    uint32_t present = 0;
    uint32_t found = 0;
    for (uint32_t i = from + 1; i <= to; i++) {
        const sp_step *step = &steps[i];
        const bool follows = step->clock.at[steps[from].id] >= (int32_t)from;
        if ((follows && i != to) || (present >> step->id & 1u)) continue;
        bool is_first = true;
        for (uint32_t left = present; left != 0; left &= left - 1) {
            const uint32_t other = (uint32_t)__builtin_ctz(left);
            if (step->clock.at[other] >= (int32_t)first[other]) is_first = false;
        }
        first[step->id] = i;
        present |= 1u << step->id;
        if (is_first) found |= 1u << step->id;
    }
    return found;
}

void sp__dpor_races(uint32_t step, const uint32_t *racing, uint32_t count)
{
    if (node_of_step[step] < analyze_from) return;
    const uint32_t bit = 1u << sp__deps_steps()[step].id;
    for (uint32_t i = 0; i < count; i++) {
        dpor_node *node = &nodes[node_of_step[racing[i]]];
        const uint32_t first = race_initials(racing[i], step);
        if (((node->backtrack | node->sleep) & first) != 0) continue;
        const uint32_t able = first & node->enabled;
        if (able & bit) {
            node->backtrack |= bit;
        } else if (able != 0) {
            node->backtrack |= able & (~able + 1);
        } else {
            node->backtrack |= node->enabled;
        }
    }
}

/* The step of the last outcome is executed again, possibly as another kind of step. */
static void analyze_from_last_step(void)
{
    analyze_from = node_count - 1;
    while (analyze_from > 0 && nodes[analyze_from].is_outcome) analyze_from--;
}

static bool dpor_advance(void)
{
    for (; node_count > 0; node_count--) {
        dpor_node *node = &nodes[node_count - 1];
        if (node->is_outcome) {
            if (++node->chosen == node->enabled) continue;
        } else {
            node->done |= 1u << node->chosen;
            const uint32_t left = node->backtrack & ~node->done & ~node->sleep;
            if (left == 0) continue;
            node->chosen = (uint32_t)__builtin_ctz(left);
        }
        analyze_from_last_step();
        return true;
    }
    return false;
}

const sp_strategy *sp__dpor_start(void)
{
    static const sp_strategy strategy = {true, dpor_begin, dpor_pick, dpor_choose, dpor_advance};
    if (nodes == NULL) {
        nodes = sp__reserve(NODES_MAX * sizeof *nodes);
        node_of_step = sp__reserve((SP_SCHED_STEPS_MAX + 2) * sizeof *node_of_step);
    }
    node_count = 0;
    analyze_from = 0;
    return &strategy;
}
