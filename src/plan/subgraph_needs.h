/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes of a body some values need, and from which others these can be computed: backwards
 * from what is wanted to what is there already. Owned by one thread. */
#ifndef SP_PLAN_SUBGRAPH_NEEDS_H
#define SP_PLAN_SUBGRAPH_NEEDS_H

#include "graph/graph.h"

typedef struct sp_subgraph_needs {
    const sp_graph_body *body;
    bool *nodes;   /* of the body: needed */
    bool *wanted;  /* of the body's own values: read by a needed node, or wanted from outside */
    bool *is_stop; /* of the body's own values: there already */
    const void **known; /* of the body's own values: a bool that a plan may depend on, or NULL */
} sp_subgraph_needs;

/* Errors: SP_OUT_OF_MEMORY. */
sp_status sp__subgraph_needs_init(sp_subgraph_needs *needs, const sp_graph_body *body);
void sp__subgraph_needs_deinit(sp_subgraph_needs *needs);

/* A value that is there. Values from outside of the body always are, and may be named. */
void sp__subgraph_needs_stop(sp_subgraph_needs *needs, uint32_t value);
/* One that is there, of that type and shape; `data` is NULL unless a plan may depend on it.
 * Borrowed until the nodes are marked. */
void sp__subgraph_needs_know(sp_subgraph_needs *needs, uint32_t value, sp_dtype dtype,
                             const sp_shape *shape, const void *data);
void sp__subgraph_needs_want(sp_subgraph_needs *needs, uint32_t value);

/* Marks the nodes. An If needs both of its branches unless its condition is known. */
void sp__subgraph_needs_find(sp_subgraph_needs *needs, const sp_graph *graph);

/* The marks of the nodes, from the body's first on, for the caller to free. */
bool *sp__subgraph_needs_take_nodes(sp_subgraph_needs *needs);

#endif
