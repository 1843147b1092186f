/* SPDX-License-Identifier: Apache-2.0 */
/* Which of a model's weights are in memory in the file's layout (docs/decisions/0088). A parkable
 * weight (graph.h) of which a packed copy with all its elements has been offered is parked while
 * no thread holds it: its pages are the system's, and its address stays. The first hold restores
 * it from the copy, which needs no memory, so it cannot fail; others wait for that.
 *
 * Invariants, of each weight: is_parked or is_moving implies a source; is_parked implies holds = 0
 * or is_moving. While is_moving one thread writes or discards its bytes, without the lock; while
 * holds > 0 and not is_moving its bytes are those of the file. Nothing else accesses them. */
#ifndef SP_EXEC_WEIGHT_STORE_H
#define SP_EXEC_WEIGHT_STORE_H

#include "base/mutex.h"
#include "plan/plan.h"

/* What a weight can be restored from. Both outlive the offer. */
typedef struct sp_weight_source {
    const sp_packing *packing; /* NULL: there is none */
    const void *copy;          /* in host memory */
} sp_weight_source;

typedef struct sp_stored_weight {
    sp_weight_source source;
    uint32_t holds;
    bool is_parked;
    bool is_moving; /* being parked or restored */
} sp_stored_weight;

typedef struct sp_weight_store {
    const sp_graph *graph; /* NULL: not initialised */
    sp_mutex lock;
    sp_cond moved;                                 /* a weight has been parked or restored */
    sp_stored_weight *weights SP_GUARDED_BY(lock); /* by weight of the graph */
} sp_weight_store;

/* Borrows the graph, of whose weights the store has the elements from now on. Errors:
 * SP_OUT_OF_MEMORY. */
sp_status sp__weight_store_init(sp_weight_store *store, const sp_graph *graph);
/* The weights that are parked have no elements afterwards: the graph can only be destroyed.
 * Precondition: no holds. */
void sp__weight_store_deinit(sp_weight_store *store);

/* Between the two calls the weight's bytes are those of the file. Of weights that are not parkable
 * they always are. May wait for a thread that parks or restores this weight, which waits for
 * nothing. */
void sp__weight_hold(sp_weight_store *store, uint32_t weight);
void sp__weight_drop(sp_weight_store *store, uint32_t weight);

/* The weight of the packing may be parked, now or when it is no longer held, if the copy has all
 * its elements; the first such copy is the source until it is withdrawn. */
void sp__weight_offer(sp_weight_store *store, const sp_packing *packing, const void *copy);
/* The copy ends: a weight that it is the source of is restored, and stays. */
void sp__weight_withdraw(sp_weight_store *store, uint32_t weight, const void *copy);

#endif
