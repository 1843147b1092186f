/* SPDX-License-Identifier: Apache-2.0 */
/* Workspaces: memory for the intermediate values of runs, shared by all plans of a device that has
 * ranges (limits.range_unit). A workspace is a range of addresses as large as the device's memory,
 * with memory from its start up to `mapped`: it grows without moving. A run has one for its
 * submission alone:
 *
 *     a submission over a workspace is on the queue of the one before it, or follows its point, or
 *     that point has passed
 *
 * so no thread waits for a workspace but while another one submits over it. Memory is taken away
 * where the last point has passed. A need says how much one of the workspaces has at least, from
 * its hold to its drop:
 *
 *     largest `mapped` >= largest need
 *
 * The others make runs quicker. They are grown from free memory alone, are reclaimed first, and a
 * hold that finds no memory waits for those that are in use. */
#ifndef SP_RUNTIME_WORKSPACE_H
#define SP_RUNTIME_WORKSPACE_H

#include "base/mutex.h"
#include "device/device.h"

#define SP_WORKSPACES_MOST 32

typedef struct sp_allocator sp_allocator;

typedef struct sp_workspace_part sp_workspace_part;

typedef struct sp_workspace {
    sp_memory range;          /* constant once it is made, by the first taker that needs memory */
    sp_workspace_part *parts; /* newest first; the taker's */
    /* Guarded by the lock of the workspaces. `mapped` is raised when there is more memory, and
     * lowered before there is less. */
    uint64_t mapped;
    bool is_taken; /* by a thread that submits over it, or grows or shrinks it */
    sp_point last; /* of the newest submission over it */
} sp_workspace;

/* Memory that something keeps a workspace for. */
typedef struct sp_workspace_need {
    uint64_t bytes;
    struct sp_workspace_need *next, **link;
} sp_workspace_need;

typedef struct sp_workspaces {
    sp_allocator *allocator; /* of the device's memory, constant */
    sp_mutex lock;
    uint32_t count SP_GUARDED_BY(lock);
    sp_workspace list[SP_WORKSPACES_MOST];
    sp_workspace_need *needs SP_GUARDED_BY(lock);
    uint32_t short_holds SP_GUARDED_BY(lock); /* that have found no memory: none is for others then,
                                               * but for those that could wait for ever */
} sp_workspaces;

/* How many of at least so many bytes submissions have at the same time: as many as take 96 MiB
 * together, but 4 at least. More are made only where each of these is behind work that has not been
 * issued: what that waits for may be the run that needs one. */
uint32_t sp__workspaces_most(uint64_t bytes);

void sp__workspaces_init(sp_workspaces *workspaces, sp_allocator *allocator);
/* No need is held, and nothing uses a workspace. */
void sp__workspaces_deinit(sp_workspaces *workspaces);

/* Some workspace has that many bytes until the drop. `is_spare`: takes free memory alone. Errors:
 * SP_OUT_OF_MEMORY; there is nothing to drop then. */
sp_status sp__workspaces_hold(sp_workspaces *workspaces, sp_workspace_need *need, uint64_t bytes,
                              bool is_spare);
/* The last drop returns the memory of workspaces that nothing uses. */
void sp__workspaces_drop(sp_workspaces *workspaces, sp_workspace_need *need);

/* A workspace for a submission of the need's holder to the queue, and what that has to follow: a
 * point, or none (NULL timeline). `former`: the one to be preferred, or NULL. Never fails. */
sp_workspace *sp__workspace_acquire(sp_workspaces *workspaces, const sp_workspace_need *need,
                                    const sp_queue *queue, sp_workspace *former, sp_point *after);
/* The submission has been accepted, and `last` is its point; without a timeline: it was not. */
void sp__workspace_release(sp_workspaces *workspaces, sp_workspace *workspace, sp_point last);

/* Returns memory that is not needed to the device, of all workspaces or of the first that has some
 * and that nothing uses; whether there was any. */
bool sp__workspaces_trim(sp_workspaces *workspaces);
bool sp__workspaces_trim_one(sp_workspaces *workspaces);

#endif
