/* SPDX-License-Identifier: Apache-2.0 */
/* Depth-first search over all schedules with a bounded number of preemptions (M. Musuvathi and S.
 * Qadeer, Iterative Context Bounding, PLDI 2007). A preemption switches away from a thread that
 * could continue; switching from a thread that blocks or yields is free. */
#include "shadow.h"
#include "strategy.h"

#define NODES_MAX SP_SCHED_STEPS_MAX

typedef struct bounded_node {
    uint32_t mask;      /* candidates; for an outcome, their number */
    uint32_t remaining; /* not yet explored; unused for an outcome */
    uint32_t chosen;
    bool is_outcome;
} bounded_node;

static bounded_node *nodes;
static uint32_t node_count;
static uint32_t cursor;
static uint32_t preemptions;

static void bounded_begin(void)
{
    cursor = 0;
    preemptions = 0;
}

static bounded_node *next_node(uint32_t mask, bool is_outcome, bool *is_new)
{
    *is_new = cursor == node_count;
    if (cursor == NODES_MAX) sp__engine_fail(SP_SCHED_TOO_BIG, "more than %u choices", NODES_MAX);
    bounded_node *node = &nodes[cursor++];
    if (*is_new) {
        node_count++;
        node->mask = mask;
        node->is_outcome = is_outcome;
    } else if (node->mask != mask || node->is_outcome != is_outcome) {
        sp__engine_fail(SP_SCHED_NONDETERMINISM,
                        "choice %u: candidates %#x, in an earlier run with the same choices %#x",
                        cursor, mask, node->mask);
    }
    return node;
}

/* Running other threads before an unlock is equivalent to running them after it, unless one of them
 * tries the lock. */
static bool is_silent_unlock(const sp_sched_thread *self)
{
    if (self->op.kind != SP_OP_UNLOCK) return false;
    for (uint32_t i = 0; i < sp__engine.thread_count; i++) {
        const sp_op *op = &sp__engine.threads[i].op;
        if (op->kind == SP_OP_TRY_LOCK && op->key[0] == self->op.key[0]) return false;
    }
    return true;
}

/* The thread that has waited longest: a fair default if the switch is no preemption. */
static uint32_t longest_waiting(uint32_t mask)
{
    uint32_t best = (uint32_t)__builtin_ctz(mask);
    for (uint32_t left = mask; left != 0; left &= left - 1) {
        const uint32_t id = (uint32_t)__builtin_ctz(left);
        if (sp__engine.threads[id].last_step < sp__engine.threads[best].last_step) best = id;
    }
    return best;
}

static uint32_t bounded_pick(uint32_t mask)
{
    const sp_sched_thread *self = sp__engine.self;
    const bool can_continue =
        (mask & self->bit) != 0 && self->state == SP_THREAD_READY && self->op.kind != SP_OP_YIELD;
    if (can_continue &&
        (preemptions == sp__engine.options.preemption_bound || is_silent_unlock(self))) {
        return self->id;
    }
    bool is_new;
    bounded_node *node = next_node(mask, false, &is_new);
    if (is_new) {
        node->chosen = can_continue ? self->id : longest_waiting(mask);
        node->remaining = mask & ~(1u << node->chosen);
    }
    if (can_continue && node->chosen != self->id) preemptions++;
    return node->chosen;
}

static uint32_t bounded_choose(uint32_t count)
{
    bool is_new;
    bounded_node *node = next_node(count, true, &is_new);
    if (is_new) node->chosen = 0;
    return node->chosen;
}

static bool bounded_advance(void)
{
    for (; node_count > 0; node_count--) {
        bounded_node *node = &nodes[node_count - 1];
        if (node->is_outcome) {
            if (++node->chosen < node->mask) return true;
        } else if (node->remaining != 0) {
            node->chosen = (uint32_t)__builtin_ctz(node->remaining);
            node->remaining &= node->remaining - 1;
            return true;
        }
    }
    return false;
}

const sp_strategy *sp__bounded_start(void)
{
    static const sp_strategy strategy = {false, bounded_begin, bounded_pick, bounded_choose,
                                         bounded_advance};
    if (nodes == NULL) nodes = sp__reserve(NODES_MAX * sizeof *nodes);
    node_count = 0;
    return &strategy;
}
