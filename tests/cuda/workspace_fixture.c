/* SPDX-License-Identifier: Apache-2.0 */
#include "workspace_fixture.h"

#include "fake_cuda.h"

workspace_fixture workspaces_begin(void)
{
    workspace_fixture f = {0};
    runtime_begin();
    CHECK_OK(sp_device_open("cuda:0", &f.device));
    CHECK_OK(sp__rt_device_find(f.device, &f.rt));
    f.workspaces = &f.rt->workspaces;
    for (int i = 0; i < 2; i++) {
        CHECK_OK(sp_stream_from_pool(f.device, &f.streams[i]));
        CHECK_OK(sp__stream_find(f.streams[i], &f.refs[i]));
    }
    return f;
}

void workspaces_end(const workspace_fixture *f)
{
    for (int i = 0; i < 2; i++) CHECK_OK(sp_stream_release(f->streams[i]));
    CHECK(sp__allocator_check(&f->rt->allocator));
    runtime_end();
    fake_cuda_drain();
    CHECK_EQ_U64(fake_cuda_live_all(), 0);
    fake_cuda_reset();
}

uint64_t workspaces_in_use(const workspace_fixture *f)
{
    sp_memory_stats stats = {0};
    CHECK_OK(sp_device_get_memory_stats(f->device, &stats));
    return stats.in_use_bytes;
}

uint64_t workspaces_mapped(const workspace_fixture *f)
{
    uint64_t bytes = 0;
    sp_mutex_lock(&f->workspaces->lock);
    for (uint32_t i = 0; i < f->workspaces->count; i++) bytes += f->workspaces->list[i].mapped;
    sp_mutex_unlock(&f->workspaces->lock);
    return bytes;
}

sp_workspace *workspace_acquire(const workspace_fixture *f, const sp_workspace_need *need,
                                int stream, sp_workspace *former, sp_point *after)
{
    return sp__workspace_acquire(f->workspaces, need, f->refs[stream].queue, former, after);
}

sp_point workspace_submit(const workspace_fixture *f, sp_workspace *workspace, int stream,
                          sp_point after)
{
    const uint32_t pattern = 7;
    const sp_binding first = {.memory = &workspace->range, .bytes = 4, .access = SP_WRITE};
    const sp_command fill = {.type = SP_COMMAND_FILL,
                             .bindings = &first,
                             .binding_count = 1,
                             .constants = &pattern,
                             .constant_bytes = 4};
    const sp_submission submission = {.waits = &after,
                                      .wait_count = after.timeline != NULL ? 1 : 0,
                                      .commands = &fill,
                                      .command_count = 1};
    sp_point point = {0};
    CHECK_OK(sp__submit_plain(&f->refs[stream], &submission, &point));
    sp__workspace_release(f->workspaces, workspace, point);
    return point;
}

sp_atomic_u32 is_open; /* process-wide: the tests' host functions wait for it */

static sp_status wait_until_open(void *ctx, sp_fault fault)
{
    (void)ctx, (void)fault;
    while (sp_load_acquire(&is_open) == 0) sp_thread_yield();
    return SP_OK;
}

sp_point stream_block(const workspace_fixture *f)
{
    const sp_command wait = {.type = SP_COMMAND_HOST, .host = wait_until_open};
    const sp_submission submission = {.commands = &wait, .command_count = 1};
    sp_point point = {0};
    sp_store_release(&is_open, 0);
    CHECK_OK(sp__submit_plain(&f->refs[0], &submission, &point));
    return point;
}
