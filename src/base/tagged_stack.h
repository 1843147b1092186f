/* SPDX-License-Identifier: Apache-2.0 */
/* A lock-free stack of slot numbers (R. K. Treiber, IBM RJ 5118, 1986) with a tag against ABA.
 *
 * The links are in the slots; `link(ctx, slot)` returns the link of a slot, which must stay valid
 * for ever (type-stable memory), since a slow pop may read the link of a slot popped long before.
 * Invariant: a slot is in the stack at most once, and belongs to one thread while it is out.
 * Any thread may push and pop at any time. */
#ifndef SP_BASE_TAGGED_STACK_H
#define SP_BASE_TAGGED_STACK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/macros.h"
#include "base/thread.h"
#include "base/tsan.h"

typedef struct sp_tagged_stack {
    /* tag << 32 | slot + 1; zero is the empty stack. The release in push publishes the slot's link
     * and contents to the acquires in pop; a pop's exchange continues that release sequence. */
    sp_atomic_u64 head;
} sp_tagged_stack;

/* The link of a slot: written by the pusher before it publishes, read by pops, also stale ones. */
typedef sp_atomic_u32 *(*sp_link_fn)(void *ctx, uint32_t slot);

static inline void sp_tagged_stack_push(sp_tagged_stack *stack, sp_link_fn link, void *ctx,
                                        uint32_t slot)
{
    uint64_t head = sp_load_relaxed(&stack->head);
    sp_tsan_release(&stack->head);
    for (;;) {
        sp_store_relaxed(link(ctx, slot), (uint32_t)head);
        const uint64_t next = (head & ~(uint64_t)UINT32_MAX) | ((uint64_t)slot + 1);
        const bool done = SP_PLANTED(relaxed_push) ? sp_cas_relaxed(&stack->head, &head, next)
                                                   : sp_cas_release(&stack->head, &head, next);
        if (done) return;
        sp_spin_hint();
    }
}

/* False if the stack is empty. */
static inline bool sp_tagged_stack_pop(sp_tagged_stack *stack, sp_link_fn link, void *ctx,
                                       uint32_t *slot)
{
    uint64_t head =
        SP_PLANTED(relaxed_pop) ? sp_load_relaxed(&stack->head) : sp_load_acquire(&stack->head);
    while ((uint32_t)head != 0) {
        const uint32_t top = (uint32_t)head - 1;
        const uint64_t tag = (head >> 32) + (SP_PLANTED(aba) ? 0 : 1);
        const uint64_t next = tag << 32 | sp_load_relaxed(link(ctx, top));
        const bool done = SP_PLANTED(relaxed_pop) ? sp_cas_relaxed(&stack->head, &head, next)
                                                  : sp_cas_acquire(&stack->head, &head, next);
        if (done) {
            sp_tsan_acquire(&stack->head);
            *slot = top;
            return true;
        }
        sp_spin_hint();
    }
    return false;
}

#endif
