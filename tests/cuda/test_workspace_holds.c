/* SPDX-License-Identifier: Apache-2.0 */
/* Holds of workspaces that find no memory, beside submissions: what they wait for, and what they
 * leave to others. */
#include "device/wait.h"
#include "fake_cuda.h"
#include "workspace_fixture.h"

typedef struct long_hold {
    const workspace_fixture *f;
    sp_status status;
} long_hold;

static void hold_and_drop(void *arg, uint32_t index)
{
    long_hold *h = arg;
    const workspace_fixture *f = h->f;
    sp_workspace_need small, large;
    sp_point after;
    if (index == 0) {
        h->status = sp__workspaces_hold(f->workspaces, &large, 20 * MIB, false);
        if (h->status == SP_OK) sp__workspaces_drop(f->workspaces, &large);
        return;
    }
    while (sp_load_acquire(&f->rt->allocator.waits) == 0) sp_thread_yield();
    CHECK_OK(sp__workspaces_hold(f->workspaces, &small, 3 * MIB, false));
    sp_workspace *it = workspace_acquire(f, &small, 1, NULL, &after);
    CHECK_OK(sp__point_wait(workspace_submit(f, it, 1, after), SP_NO_DEADLINE));
    sp__workspaces_drop(f->workspaces, &small);
    sp_store_release(&is_open, 1);
}

/* Free memory is 4 MiB, a workspace has 3 MiB, and a storage of 16 MiB is released while stream 0
 * uses it, which is blocked until `is_open`. */
typedef struct blocked_storage {
    workspace_fixture f;
    sp_workspace_need need;
    sp_point last; /* of what blocks the stream, or of the workspace behind it */
} blocked_storage;

/* has_work: the blocked stream uses the workspace, too. */
static void blocked_storage_begin(blocked_storage *b, bool has_work)
{
    const uint32_t pattern = 7;
    const workspace_fixture *f = &b->f;
    sp_storage storage;
    sp_memory_stats stats;
    sp_point after;
    b->f = workspaces_begin();
    CHECK_OK(sp__workspaces_hold(f->workspaces, &b->need, 3 * MIB, false));
    CHECK_OK(sp_storage_create(f->device, 16 * MIB, NULL, &storage));
    CHECK_OK(sp_device_get_memory_stats(f->device, &stats));
    CHECK_OK(sp_device_set_memory_limit(f->device, stats.reserved_bytes + 4 * MIB));
    b->last = stream_block(f);
    if (has_work) {
        sp_workspace *used = workspace_acquire(f, &b->need, 0, NULL, &after);
        b->last = workspace_submit(f, used, 0, (sp_point){0});
    }
    const sp_storage_range all = {.storage = storage, .bytes = 16 * MIB};
    CHECK_OK(sp_storage_fill_async(f->streams[0], all, &pattern, sizeof pattern));
    CHECK_OK(sp_storage_release(storage));
}

static void blocked_storage_end(blocked_storage *b)
{
    CHECK_OK(sp__point_wait(b->last, SP_NO_DEADLINE));
    sp__workspaces_drop(b->f.workspaces, &b->need);
    CHECK_OK(sp_device_set_memory_limit(b->f.device, 0));
    workspaces_end(&b->f);
}

TEST(a_hold_that_waits_for_memory_leaves_the_workspace_to_submissions)
{
    blocked_storage b;
    blocked_storage_begin(&b, false);
    long_hold h = {.f = &b.f, .status = SP_OK};
    test_threads(2, hold_and_drop, &h);
    CHECK_OK(h.status);
    blocked_storage_end(&b);
}

static void hold_or_let_go(void *arg, uint32_t index)
{
    long_hold *h = arg;
    const workspace_fixture *f = h->f;
    sp_workspace_need large;
    if (index == 0) {
        h->status = sp__workspaces_hold(f->workspaces, &large, 6 * MIB, false);
        sp_store_release(&is_open, 1);
        if (h->status == SP_OK) sp__workspaces_drop(f->workspaces, &large);
        return;
    }
    for (bool is_short = false; !is_short; sp_thread_yield()) {
        sp_mutex_lock(&f->workspaces->lock);
        is_short = f->workspaces->short_holds > 0;
        sp_mutex_unlock(&f->workspaces->lock);
    }
    fake_cuda_hold(false);
}

TEST(a_hold_without_memory_waits_for_issued_work_first)
{
    const workspace_fixture f = workspaces_begin();
    long_hold h = {.f = &f, .status = SP_OK};
    sp_workspace_need need;
    sp_point after, last;
    sp_workspace *used[3];
    CHECK_OK(sp__workspaces_hold(f.workspaces, &need, 3 * MIB, false));
    for (int i = 0; i < 3; i++) used[i] = workspace_acquire(&f, &need, 0, NULL, &after);
    fake_cuda_hold(true);
    (void)stream_block(&f);
    sp__workspace_release(f.workspaces, used[0], (sp_point){0});
    (void)workspace_submit(&f, used[1], 1, (sp_point){0});
    last = workspace_submit(&f, used[2], 0, (sp_point){0});
    CHECK_OK(sp_device_set_memory_limit(f.device, workspaces_mapped(&f)));
    test_threads(2, hold_or_let_go, &h);
    CHECK_OK(h.status);
    CHECK_OK(sp__point_wait(last, SP_NO_DEADLINE));
    sp__workspaces_drop(f.workspaces, &need);
    CHECK_EQ_U64(workspaces_mapped(&f), 0);
    workspaces_end(&f);
}

typedef struct stuck_hold {
    const workspace_fixture *f;
    const sp_workspace_need *need;
    uint64_t bytes;
    sp_status status;
    bool is_own; /* the submission has a workspace that nothing uses */
} stuck_hold;

static bool waits_for_memory(const workspace_fixture *f)
{
    sp_mutex_lock(&f->workspaces->lock);
    const bool is_short = f->workspaces->short_holds > 0;
    sp_mutex_unlock(&f->workspaces->lock);
    return is_short || sp_load_acquire(&f->rt->allocator.waits) > 0;
}

static void hold_or_submit_to_open(void *arg, uint32_t index)
{
    stuck_hold *h = arg;
    const workspace_fixture *f = h->f;
    sp_point after;
    if (index == 0) {
        sp_workspace_need large;
        h->status = sp__workspaces_hold(f->workspaces, &large, h->bytes, false);
        if (h->status == SP_OK) sp__workspaces_drop(f->workspaces, &large);
        return;
    }
    while (!waits_for_memory(f)) sp_thread_yield();
    sp_workspace *it = workspace_acquire(f, h->need, 1, NULL, &after);
    h->is_own = after.timeline == NULL;
    const sp_point point = workspace_submit(f, it, 1, after);
    if (h->is_own) CHECK_OK(sp__point_wait(point, SP_NO_DEADLINE));
    sp_store_release(&is_open, 1);
    CHECK_OK(sp__point_wait(point, SP_NO_DEADLINE));
}

/* All workspaces are behind a host function that waits for another submission, a hold waits for one
 * of them, and there is free memory, although too little for the hold. */
TEST(a_hold_without_memory_leaves_what_is_free_to_submissions)
{
    const workspace_fixture f = workspaces_begin();
    stuck_hold h = {.f = &f, .bytes = 10 * MIB};
    sp_workspace_need need;
    sp_workspace *used[2];
    sp_point after, last;
    CHECK_OK(sp__workspaces_hold(f.workspaces, &need, 3 * MIB, false));
    for (int i = 0; i < 2; i++) used[i] = workspace_acquire(&f, &need, 0, NULL, &after);
    CHECK_OK(sp_device_set_memory_limit(f.device, workspaces_mapped(&f) + 4 * MIB));
    (void)stream_block(&f);
    for (int i = 0; i < 2; i++) last = workspace_submit(&f, used[i], 0, (sp_point){0});
    h.need = &need;
    test_threads(2, hold_or_submit_to_open, &h);
    CHECK_OK(h.status);
    CHECK(h.is_own);
    CHECK_OK(sp__point_wait(last, SP_NO_DEADLINE));
    sp__workspaces_drop(f.workspaces, &need);
    CHECK_OK(sp_device_set_memory_limit(f.device, 0));
    workspaces_end(&f);
}

/* The same; the hold waits for the memory of a storage. */
TEST(a_hold_that_waits_for_a_storage_leaves_what_is_free_to_submissions)
{
    blocked_storage b;
    blocked_storage_begin(&b, true);
    stuck_hold h = {.f = &b.f, .need = &b.need, .bytes = 20 * MIB};
    test_threads(2, hold_or_submit_to_open, &h);
    CHECK_OK(h.status);
    CHECK(h.is_own);
    blocked_storage_end(&b);
}

typedef struct gated_hold {
    const workspace_fixture *f;
    sp_timeline gates[2]; /* of the host */
    uint64_t bytes;
    sp_status status;
    sp_atomic_u32 has_ended;
    bool is_late;
} gated_hold;

static void hold_and_open_or_open_other(void *arg, uint32_t index)
{
    gated_hold *h = arg;
    const workspace_fixture *f = h->f;
    if (index == 0) {
        sp_workspace_need large;
        h->status = sp__workspaces_hold(f->workspaces, &large, h->bytes, false);
        sp_store_release(&h->has_ended, 1);
        if (h->status == SP_OK) sp__workspaces_drop(f->workspaces, &large);
        return;
    }
    while (!waits_for_memory(f) && sp_load_acquire(&h->has_ended) == 0) sp_thread_yield();
    sp__timeline_advance(&h->gates[1], 1);
    for (int i = 0; i < 5000 && sp_load_acquire(&h->has_ended) == 0; i++) sp_clock_sleep(1000000);
    h->is_late = sp_load_acquire(&h->has_ended) == 0;
    sp__timeline_advance(&h->gates[0], 1); /* as the thread that holds could do */
}

/* The first spare workspace is behind what follows the hold, the second behind what does not. */
TEST(a_hold_without_memory_waits_for_whichever_spare_workspace_is_first)
{
    const workspace_fixture f = workspaces_begin();
    gated_hold h = {.f = &f, .bytes = 6 * MIB};
    sp_workspace_need need;
    sp_workspace *used[3];
    sp_point after, last[2];
    CHECK_OK(sp__workspaces_hold(f.workspaces, &need, 3 * MIB, false));
    for (int i = 0; i < 3; i++) used[i] = workspace_acquire(&f, &need, 0, NULL, &after);
    sp__workspace_release(f.workspaces, used[0], (sp_point){0});
    for (int i = 0; i < 2; i++) {
        sp__timeline_init(&h.gates[i], NULL);
        last[i] = workspace_submit(&f, used[1 + i], i, (sp_point){&h.gates[i], 1});
    }
    CHECK_OK(sp_device_set_memory_limit(f.device, workspaces_mapped(&f)));
    test_threads(2, hold_and_open_or_open_other, &h);
    CHECK_OK(h.status);
    CHECK(!h.is_late);
    for (int i = 0; i < 2; i++) CHECK_OK(sp__point_wait(last[i], SP_NO_DEADLINE));
    sp__workspaces_drop(f.workspaces, &need);
    CHECK_OK(sp_device_set_memory_limit(f.device, 0));
    workspaces_end(&f);
    for (int i = 0; i < 2; i++) sp__timeline_deinit(&h.gates[i]);
}

TEST(a_hold_of_more_than_the_device_has_waits_for_nothing)
{
    const workspace_fixture f = workspaces_begin();
    gated_hold h = {.f = &f, .bytes = 5000 * MIB};
    sp_workspace_need need;
    sp_workspace *used[2];
    sp_point after;
    CHECK_OK(sp__workspaces_hold(f.workspaces, &need, 3 * MIB, false));
    for (int i = 0; i < 2; i++) used[i] = workspace_acquire(&f, &need, 0, NULL, &after);
    for (int i = 0; i < 2; i++) sp__timeline_init(&h.gates[i], NULL);
    sp__workspace_release(f.workspaces, used[0], (sp_point){0});
    const uint64_t before = workspaces_mapped(&f);
    const sp_point last = workspace_submit(&f, used[1], 0, (sp_point){&h.gates[0], 1});
    test_threads(2, hold_and_open_or_open_other, &h);
    CHECK_STATUS(h.status, SP_OUT_OF_MEMORY);
    CHECK(!h.is_late);
    CHECK_EQ_U64(workspaces_mapped(&f), before); /* nor is a spare one taken away */
    CHECK_OK(sp__point_wait(last, SP_NO_DEADLINE));
    sp__workspaces_drop(f.workspaces, &need);
    workspaces_end(&f);
    for (int i = 0; i < 2; i++) sp__timeline_deinit(&h.gates[i]);
}

/* ---- other memory beside spare workspaces ---- */

typedef struct short_storage {
    const workspace_fixture *f;
    sp_storage storage;
    sp_status status;
    sp_atomic_u32 has_ended;
} short_storage;

static void create_or_open(void *arg, uint32_t index)
{
    short_storage *s = arg;
    if (index == 0) {
        s->status = sp_storage_create(s->f->device, 3 * MIB, NULL, &s->storage);
        sp_store_release(&s->has_ended, 1);
        return;
    }
    while (sp_load_acquire(&s->has_ended) == 0 &&
           sp_load_acquire(&s->f->rt->allocator.waits) == 0) {
        sp_thread_yield();
    }
    sp_store_release(&is_open, 1);
}

/* What blocks the stream may take any time. Of the spare ones as many are returned as suffice. */
TEST(memory_of_spare_workspaces_is_used_before_any_pending_one_is_waited_for)
{
    blocked_storage b;
    sp_workspace *used[3];
    sp_point after;
    sp_memory_stats stats;
    blocked_storage_begin(&b, false);
    const workspace_fixture *f = &b.f;
    CHECK_OK(sp_device_set_memory_limit(f->device, 0));
    for (int i = 0; i < 3; i++) used[i] = workspace_acquire(f, &b.need, 1, NULL, &after);
    for (int i = 0; i < 3; i++) sp__workspace_release(f->workspaces, used[i], (sp_point){0});
    const uint64_t mapped = workspaces_mapped(f);
    CHECK_OK(sp_device_get_memory_stats(f->device, &stats));
    CHECK_OK(sp_device_set_memory_limit(f->device, stats.reserved_bytes));
    short_storage s = {.f = f};
    test_threads(2, create_or_open, &s);
    CHECK_OK(s.status);
    CHECK_EQ_U64(sp_load_acquire(&f->rt->allocator.waits), 0);
    CHECK_EQ_U64(workspaces_mapped(f), mapped / 3 * 2);
    CHECK_OK(sp_storage_release(s.storage));
    blocked_storage_end(&b);
}

TEST_MAIN
