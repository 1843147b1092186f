/* SPDX-License-Identifier: Apache-2.0 */
/* A cuda device on the fake driver, two streams of it, and its workspaces. */
#ifndef SP_TESTS_CUDA_WORKSPACE_FIXTURE_H
#define SP_TESTS_CUDA_WORKSPACE_FIXTURE_H

#include "runtime/submit.h"
#include "runtime_fixture.h"

#define MIB ((uint64_t)1 << 20)

typedef struct workspace_fixture {
    sp_device device;
    sp_rt_device *rt;
    sp_workspaces *workspaces;
    sp_stream streams[2];
    sp_stream_ref refs[2];
} workspace_fixture;

workspace_fixture workspaces_begin(void);
void workspaces_end(const workspace_fixture *f);

uint64_t workspaces_in_use(const workspace_fixture *f);
/* All bytes of all workspaces. */
uint64_t workspaces_mapped(const workspace_fixture *f);

sp_workspace *workspace_acquire(const workspace_fixture *f, const sp_workspace_need *need,
                                int stream, sp_workspace *former, sp_point *after);
/* A fill of the first word of the workspace, over which it is the submission. */
sp_point workspace_submit(const workspace_fixture *f, sp_workspace *workspace, int stream,
                          sp_point after);

/* Submits a host function to stream 0 that waits until `is_open`, now 0, is not 0. */
extern sp_atomic_u32 is_open;
sp_point stream_block(const workspace_fixture *f);

#endif
