/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a workspace: the parts that it grows by. */
#ifndef SP_RUNTIME_WORKSPACE_GROWTH_H
#define SP_RUNTIME_WORKSPACE_GROWTH_H

#include "runtime/allocator.h"
#include "runtime/workspace.h"

/* Memory in a range; the parts of a workspace are adjacent. */
struct sp_workspace_part {
    sp_workspace_part *next;
    const sp_memory *range;
    uint64_t offset, bytes;
};

/* How a workspace grows; `rounded` as blocks are, so that plans of rising sizes do not each need a
 * part, if there is free memory for that. */
typedef struct sp_workspace_growth {
    uint64_t from, least, rounded; /* bytes */
    sp_uncut_request request;      /* of the least */
    bool is_takers; /* the caller has taken the workspace; else that is done while memory is mapped
                     */
} sp_workspace_growth;

/* Sets the bytes. By the taker. Errors: SP_OUT_OF_MEMORY, those of the driver. */
sp_status sp__workspace_growth_plan(sp_workspaces *workspaces, sp_workspace *workspace,
                                    uint64_t bytes, sp_workspace_growth *out);
/* Errors: SP_OUT_OF_MEMORY, those of the driver; SP_BUSY: another thread has taken the workspace,
 * or it has grown or shrunk since the plan. */
sp_status sp__workspace_grow(sp_workspaces *workspaces, sp_workspace *workspace,
                             const sp_workspace_growth *growth);
void sp__workspace_put_back(sp_workspaces *workspaces, sp_workspace *workspace);

/* Of parts that no workspace has. */
void sp__workspace_parts_destroy(sp_workspaces *workspaces, sp_workspace_part *part);

#endif
