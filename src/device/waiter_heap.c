/* SPDX-License-Identifier: Apache-2.0 */
/* A pairing heap with the two-pass merge, without recursion. */
#include "device/waiter_heap.h"

#include <stddef.h>

static bool waiter_precedes(const sp_waiter *a, const sp_waiter *b)
{
    return a->value != b->value ? a->value < b->value : a->turn < b->turn;
}

/* Merges two heaps; `a` and `b` have no siblings. */
static sp_waiter *heap_link(sp_waiter *a, sp_waiter *b)
{
    sp_waiter *parent = waiter_precedes(a, b) ? a : b;
    sp_waiter *child = parent == a ? b : a;
    child->next = parent->child;
    if (child->next != NULL) child->next->previous = child;
    child->previous = parent;
    parent->child = child;
    return parent;
}

/* Merges a list of siblings into one heap: in pairs from the left, then all pairs from the right.
 * The `next` of a root is not read. */
static sp_waiter *heap_merge(sp_waiter *siblings)
{
    sp_waiter *pairs = NULL; /* by `next`, the newest first */
    while (siblings != NULL) {
        sp_waiter *pair = siblings;
        sp_waiter *other = pair->next;
        siblings = other != NULL ? other->next : NULL;
        if (other != NULL) pair = heap_link(pair, other);
        pair->next = pairs;
        pairs = pair;
    }
    sp_waiter *heap = NULL;
    while (pairs != NULL) {
        sp_waiter *pair = pairs;
        pairs = pair->next;
        heap = heap != NULL ? heap_link(heap, pair) : pair;
    }
    if (heap != NULL) heap->previous = NULL;
    return heap;
}

void sp__waiter_heap_add(sp_waiter_heap *heap, sp_waiter *waiter)
{
    waiter->turn = ++heap->last_turn;
    waiter->child = NULL;
    waiter->previous = NULL;
    heap->first = heap->first != NULL ? heap_link(heap->first, waiter) : waiter;
}

bool sp__waiter_heap_remove(sp_waiter_heap *heap, sp_waiter *waiter)
{
    if (waiter == heap->first) {
        heap->first = heap_merge(waiter->child);
        return true;
    }
    if (waiter->previous == NULL) return false;
    if (waiter->previous->child == waiter) {
        waiter->previous->child = waiter->next;
    } else {
        waiter->previous->next = waiter->next;
    }
    if (waiter->next != NULL) waiter->next->previous = waiter->previous;
    waiter->previous = NULL;
    sp_waiter *children = heap_merge(waiter->child);
    if (children != NULL) heap->first = heap_link(heap->first, children);
    return true;
}

sp_waiter *sp__waiter_heap_pop(sp_waiter_heap *heap, uint64_t value)
{
    sp_waiter *taken = NULL;
    sp_waiter **end = &taken;
    while (heap->first != NULL && heap->first->value <= value) {
        sp_waiter *waiter = heap->first;
        heap->first = heap_merge(waiter->child);
        *end = waiter;
        end = &waiter->next;
    }
    *end = NULL;
    return taken;
}
