/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the nodes of a body that some wanted values need: a backward search from these to the
 * values that are available. Used by one thread. */
#ifndef SP_PLAN_SUBGRAPH_NEEDS_H
#define SP_PLAN_SUBGRAPH_NEEDS_H

#include "graph/graph.h"

typedef struct sp_subgraph_needs {
    const sp_graph_body *body;
    bool *nodes;   /* of the body: needed */
    bool *wanted;  /* of the body's own values: read by a needed node, or wanted from outside */
    bool *is_stop; /* of the body's own values: available */
    const void **known; /* of the body's own values: a bool that a plan may depend on, or NULL */
} sp_subgraph_needs;

/* Errors: SP_OUT_OF_MEMORY. */
sp_status sp__subgraph_needs_init(sp_subgraph_needs *needs, const sp_graph_body *body);
void sp__subgraph_needs_deinit(sp_subgraph_needs *needs);

/* Marks a value as available. Values from outside of the body always are, and may be passed. */
void sp__subgraph_needs_stop(sp_subgraph_needs *needs, uint32_t value);
/* As sp__subgraph_needs_stop, with type and shape; `data` is NULL unless a plan may depend on it.
 * Borrowed until sp__subgraph_needs_find. */
void sp__subgraph_needs_know(sp_subgraph_needs *needs, uint32_t value, sp_dtype dtype,
                             const sp_shape *shape, const void *data);
void sp__subgraph_needs_want(sp_subgraph_needs *needs, uint32_t value);

/* Marks the needed nodes. An If needs both branches unless its condition is known. */
void sp__subgraph_needs_find(sp_subgraph_needs *needs, const sp_graph *graph);

/* The marks of the nodes, from the body's first node on; the caller owns the memory. */
bool *sp__subgraph_needs_take_nodes(sp_subgraph_needs *needs);

#endif
