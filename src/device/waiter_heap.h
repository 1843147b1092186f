/* SPDX-License-Identifier: Apache-2.0 */
/* Priority queue of waiters for values of one timeline: host waits, parked queues, pending blocks
 * of an allocator. Ordered by value, equal values by insertion. A pairing heap (Fredman, Sedgewick,
 * Sleator, Tarjan, Algorithmica 1, 1986): insertion takes constant, removal logarithmic time,
 * amortized. The links are in the waiters; no call allocates. Guarded by the lock of its owner.
 *
 *     heap->first comes before every other waiter;  a waiter comes before its children
 *     waiter->previous is the left sibling, for a first child the parent, for heap->first NULL */
#ifndef SP_DEVICE_WAITER_HEAP_H
#define SP_DEVICE_WAITER_HEAP_H

#include <stdbool.h>
#include <stdint.h>

typedef struct sp_waiter sp_waiter;

struct sp_waiter {
    uint64_t value;
    /* Called once, with no lock held, when the value is reached. The node then belongs to the
     * callee: the timeline does not access it again. */
    void (*fire)(sp_waiter *waiter);
    /* Of the heap, while registered. */
    uint64_t turn; /* order among equal values */
    sp_waiter *child;
    sp_waiter *next;
    sp_waiter *previous;
};

typedef struct sp_waiter_heap {
    sp_waiter *first;
    uint64_t last_turn;
} sp_waiter_heap;

void sp__waiter_heap_add(sp_waiter_heap *heap, sp_waiter *waiter);

/* False if the waiter is not in the heap. */
bool sp__waiter_heap_remove(sp_waiter_heap *heap, sp_waiter *waiter);

/* Removes all waiters up to `value`: a list by `next`, in order, or NULL. */
sp_waiter *sp__waiter_heap_pop(sp_waiter_heap *heap, uint64_t value);

#endif
