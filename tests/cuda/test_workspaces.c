/* SPDX-License-Identifier: Apache-2.0 */
/* The workspaces of a cuda device, on the fake driver: they grow without moving, keep what is
 * needed whichever call of the driver fails, and submissions over one of them are ordered. */
#include <string.h>

#include "device/cuda/cuda_api.h"
#include "device/wait.h"
#include "fake_cuda.h"
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

static workspace_fixture begin(void)
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

static void end(const workspace_fixture *f)
{
    for (int i = 0; i < 2; i++) CHECK_OK(sp_stream_release(f->streams[i]));
    CHECK(sp__allocator_check(&f->rt->allocator));
    runtime_end();
    fake_cuda_drain();
    CHECK_EQ_U64(fake_cuda_live_all(), 0);
    fake_cuda_reset();
}

static uint64_t in_use(const workspace_fixture *f)
{
    sp_memory_stats stats = {0};
    CHECK_OK(sp_device_get_memory_stats(f->device, &stats));
    return stats.in_use_bytes;
}

/* All bytes of all workspaces. */
static uint64_t mapped(const workspace_fixture *f)
{
    uint64_t bytes = 0;
    sp_mutex_lock(&f->workspaces->lock);
    for (uint32_t i = 0; i < f->workspaces->count; i++) bytes += f->workspaces->list[i].mapped;
    sp_mutex_unlock(&f->workspaces->lock);
    return bytes;
}

static sp_workspace *acquire(const workspace_fixture *f, const sp_workspace_need *need, int stream,
                             sp_workspace *former, sp_point *after)
{
    return sp__workspace_acquire(f->workspaces, need, f->refs[stream].queue, former, after);
}

/* A fill of the first word of the workspace, over which it is the submission. */
static sp_point submit(const workspace_fixture *f, sp_workspace *workspace, int stream,
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

TEST(a_workspace_grows_without_moving)
{
    const workspace_fixture f = begin();
    sp_workspace_need small, large;
    sp_point after;
    CHECK_OK(sp__workspaces_hold(f.workspaces, &small, 3 * MIB, false));
    sp_workspace *workspace = acquire(&f, &small, 0, NULL, &after);
    void *const address = workspace->range.address;
    memset(address, 5, 3 * MIB);
    sp__workspace_release(f.workspaces, workspace, (sp_point){0});
    CHECK_OK(sp__workspaces_hold(f.workspaces, &large, 20 * MIB, false));
    sp_workspace *grown = acquire(&f, &large, 0, workspace, &after);
    CHECK(grown == workspace && grown->range.address == address);
    CHECK(after.timeline == NULL);
    const unsigned char *bytes = address;
    CHECK(bytes[0] == 5 && bytes[3 * MIB - 1] == 5);
    memset(address, 6, 20 * MIB);
    sp__workspace_release(f.workspaces, grown, (sp_point){0});
    CHECK_EQ_U64(mapped(&f), in_use(&f));
    sp__workspaces_drop(f.workspaces, &small);
    sp__workspaces_drop(f.workspaces, &large);
    end(&f);
}

TEST(the_last_drop_and_an_emptied_cache_return_what_is_not_needed)
{
    const workspace_fixture f = begin();
    sp_workspace_need small, large;
    CHECK_OK(sp__workspaces_hold(f.workspaces, &small, 3 * MIB, false));
    const uint64_t before = mapped(&f);
    CHECK_OK(sp__workspaces_hold(f.workspaces, &large, 64 * MIB, false));
    sp__workspaces_drop(f.workspaces, &large);
    CHECK(mapped(&f) >= 64 * MIB);
    CHECK_OK(sp_device_empty_cache(f.device));
    CHECK_EQ_U64(mapped(&f), before);
    CHECK_EQ_U64(in_use(&f), before);
    sp__workspaces_drop(f.workspaces, &small);
    CHECK_EQ_U64(mapped(&f), 0);
    CHECK_EQ_U64(in_use(&f), 0);
    CHECK_EQ_U64(fake_cuda_live(FAKE_RANGE_MEMORY), 0);
    end(&f);
}

TEST(each_call_of_the_driver_may_fail_and_nothing_is_kept)
{
    static const char *const calls[] = {"cuMemAddressReserve", "cuMemCreate", "cuMemMap",
                                        "cuMemSetAccess"};
    for (uint32_t i = 0; i < SP_COUNT_OF(calls); i++) {
        const workspace_fixture f = begin();
        sp_workspace_need small, large;
        fake_cuda_fail_call(calls[i], 1, 1000, CUDA_ERROR_OUT_OF_MEMORY);
        CHECK_STATUS(sp__workspaces_hold(f.workspaces, &small, 3 * MIB, false), SP_OUT_OF_MEMORY);
        CHECK_MESSAGE(calls[i]);
        CHECK_EQ_U64(mapped(&f), 0);
        CHECK_EQ_U64(in_use(&f), 0);
        CHECK_EQ_U64(fake_cuda_live(FAKE_RANGE_MEMORY), 0);
        fake_cuda_fail_call(calls[i], 1, 0, CUDA_SUCCESS);
        CHECK_OK(sp__workspaces_hold(f.workspaces, &small, 3 * MIB, false));
        const uint64_t before = mapped(&f);
        fake_cuda_fail_call(calls[i], 1, 1000, CUDA_ERROR_OUT_OF_MEMORY);
        const sp_status status = sp__workspaces_hold(f.workspaces, &large, 20 * MIB, false);
        fake_cuda_fail_call(calls[i], 1, 0, CUDA_SUCCESS);
        CHECK_STATUS(status, i == 0 ? SP_OK : SP_OUT_OF_MEMORY); /* the range exists by then */
        if (status == SP_OK) sp__workspaces_drop(f.workspaces, &large);
        else CHECK_EQ_U64(mapped(&f), before);
        sp__workspaces_drop(f.workspaces, &small);
        end(&f);
    }
}

TEST(without_memory_for_more_a_part_is_no_larger_than_needed)
{
    const workspace_fixture f = begin();
    sp_workspace_need need;
    CHECK_OK(sp_device_set_memory_limit(f.device, 18 * MIB));
    CHECK_OK(sp__workspaces_hold(f.workspaces, &need, 17 * MIB, false)); /* 20 when rounded */
    CHECK_EQ_U64(mapped(&f), 18 * MIB);
    sp__workspaces_drop(f.workspaces, &need);
    CHECK_STATUS(sp__workspaces_hold(f.workspaces, &need, 19 * MIB, false), SP_OUT_OF_MEMORY);
    CHECK_MESSAGE("limit");
    CHECK_OK(sp_device_set_memory_limit(f.device, 0));
    CHECK_STATUS(sp__workspaces_hold(f.workspaces, &need, UINT64_MAX, false), SP_OUT_OF_MEMORY);
    CHECK_STATUS(sp__workspaces_hold(f.workspaces, &need, 5000 * MIB, false), SP_OUT_OF_MEMORY);
    end(&f);
}

TEST(submissions_at_the_same_time_have_workspaces_of_their_own)
{
    const workspace_fixture f = begin();
    sp_workspace_need need;
    sp_point after;
    CHECK_OK(sp__workspaces_hold(f.workspaces, &need, 3 * MIB, false));
    fake_cuda_hold(true);
    sp_workspace *a = acquire(&f, &need, 0, NULL, &after);
    CHECK(after.timeline == NULL);
    const sp_point first = submit(&f, a, 0, after);
    sp_workspace *b = acquire(&f, &need, 1, a, &after);
    CHECK(b != a && after.timeline == NULL);
    const sp_point second = submit(&f, b, 1, after);
    /* On the queue of its last submission one needs no wait. */
    CHECK(acquire(&f, &need, 0, NULL, &after) == a && after.timeline == NULL);
    sp__workspace_release(f.workspaces, a, (sp_point){0});
    fake_cuda_hold(false);
    CHECK_OK(sp__point_wait(first, SP_NO_DEADLINE));
    CHECK_OK(sp__point_wait(second, SP_NO_DEADLINE));
    CHECK(acquire(&f, &need, 0, b, &after) == b && after.timeline == NULL);
    sp__workspace_release(f.workspaces, b, (sp_point){0});
    sp__workspaces_drop(f.workspaces, &need);
    CHECK_EQ_U64(mapped(&f), 0);
    end(&f);
}

TEST(without_memory_for_another_one_a_submission_follows_the_last_one)
{
    const workspace_fixture f = begin();
    sp_workspace_need need;
    sp_point after;
    CHECK_OK(sp__workspaces_hold(f.workspaces, &need, 3 * MIB, false));
    CHECK_OK(sp_device_set_memory_limit(f.device, mapped(&f)));
    fake_cuda_hold(true);
    sp_workspace *a = acquire(&f, &need, 0, NULL, &after);
    const sp_point first = submit(&f, a, 0, after);
    CHECK(acquire(&f, &need, 1, NULL, &after) == a);
    CHECK(after.timeline == first.timeline && after.value == first.value);
    const sp_point second = submit(&f, a, 1, after);
    CHECK(!sp__workspaces_trim(f.workspaces)); /* in use */
    fake_cuda_hold(false);
    CHECK_OK(sp__point_wait(second, SP_NO_DEADLINE));
    CHECK_OK(sp__point_wait(first, SP_NO_DEADLINE));
    sp__workspaces_drop(f.workspaces, &need);
    CHECK_EQ_U64(mapped(&f), 0);
    end(&f);
}

static sp_atomic_u32 is_open; /* process-wide: the test's host functions wait for it */

static sp_status wait_until_open(void *ctx, sp_fault fault)
{
    (void)ctx, (void)fault;
    while (sp_load_acquire(&is_open) == 0) sp_thread_yield();
    return SP_OK;
}

/* What a stream waits for in the host may be what the next submission leads to. */
TEST(none_follows_work_that_has_not_been_issued_while_there_is_memory)
{
    const workspace_fixture f = begin();
    enum { MOST = 4 };
    sp_workspace_need need;
    sp_point after, last = {0};
    CHECK_EQ_U64(sp__workspaces_most(30 * MIB), MOST);
    sp_store_release(&is_open, 0);
    const sp_command wait = {.type = SP_COMMAND_HOST, .host = wait_until_open};
    const sp_submission submission = {.commands = &wait, .command_count = 1};
    CHECK_OK(sp__submit_plain(&f.refs[0], &submission, &last));
    CHECK_OK(sp__workspaces_hold(f.workspaces, &need, 30 * MIB, false));
    sp_workspace *used[MOST + 1];
    for (int i = 0; i < MOST; i++) {
        /* Taken together, since the queue would have one for all. */
        used[i] = acquire(&f, &need, 0, NULL, &after);
        CHECK(after.timeline == NULL);
        for (int k = 0; k < i; k++) CHECK(used[k] != used[i]);
    }
    for (int i = 0; i < MOST; i++) last = submit(&f, used[i], 0, (sp_point){0});
    used[MOST] = acquire(&f, &need, 1, NULL, &after);
    CHECK(after.timeline == NULL);
    for (int i = 0; i < MOST; i++) CHECK(used[i] != used[MOST]);
    CHECK_OK(sp__point_wait(submit(&f, used[MOST], 1, after), SP_NO_DEADLINE));
    sp_store_release(&is_open, 1);
    CHECK_OK(sp__point_wait(last, SP_NO_DEADLINE));
    sp__workspaces_drop(f.workspaces, &need);
    CHECK_EQ_U64(mapped(&f), 0);
    end(&f);
}

TEST(there_are_more_of_a_small_size)
{
    CHECK_EQ_U64(sp__workspaces_most(1), SP_WORKSPACES_MOST);
    CHECK_EQ_U64(sp__workspaces_most(8 * MIB), 11);
    CHECK_EQ_U64(sp__workspaces_most(UINT64_MAX - 1), 4);
}

TEST(one_that_is_needed_outlives_the_reclaim_of_the_others)
{
    const workspace_fixture f = begin();
    sp_workspace_need need;
    sp_point after;
    CHECK_OK(sp__workspaces_hold(f.workspaces, &need, 3 * MIB, false));
    const uint64_t one = mapped(&f);
    sp_workspace *a = acquire(&f, &need, 0, NULL, &after);
    sp_workspace *b = acquire(&f, &need, 1, NULL, &after);
    CHECK(a != b);
    sp__workspace_release(f.workspaces, a, (sp_point){0});
    sp__workspace_release(f.workspaces, b, (sp_point){0});
    CHECK_EQ_U64(mapped(&f), 2 * one);
    CHECK(sp__workspaces_trim(f.workspaces));
    CHECK_EQ_U64(mapped(&f), one);
    CHECK(!sp__workspaces_trim(f.workspaces));
    sp__workspaces_drop(f.workspaces, &need);
    end(&f);
}

/* Holds 17 MiB; then there are two workspaces of 18 MiB, and behind them one of 20. */
static void make_equal_ones_and_a_larger_one(const workspace_fixture *f, sp_workspace_need *need)
{
    sp_workspace *used[3];
    sp_point after;
    CHECK_OK(sp_device_set_memory_limit(f->device, 18 * MIB));
    CHECK_OK(sp__workspaces_hold(f->workspaces, need, 17 * MIB, false)); /* 20 when rounded */
    used[0] = acquire(f, need, 0, NULL, &after);
    CHECK_OK(sp_device_set_memory_limit(f->device, 36 * MIB));
    used[1] = acquire(f, need, 0, NULL, &after);
    CHECK_OK(sp_device_set_memory_limit(f->device, 0));
    used[2] = acquire(f, need, 0, NULL, &after);
    for (uint32_t i = 0; i < SP_COUNT_OF(used); i++) {
        CHECK(used[i] == &f->workspaces->list[i]);
        sp__workspace_release(f->workspaces, used[i], (sp_point){0});
    }
    CHECK_EQ_U64(mapped(f), (18 + 18 + 20) * MIB);
}

TEST(of_equal_ones_none_is_kept_beside_a_larger_one)
{
    const workspace_fixture f = begin();
    sp_workspace_need need, large;
    make_equal_ones_and_a_larger_one(&f, &need);
    CHECK(sp__workspaces_trim(f.workspaces));
    CHECK_EQ_U64(mapped(&f), 20 * MIB);
    CHECK_EQ_U64(in_use(&f), 20 * MIB);
    sp__workspaces_drop(f.workspaces, &need);
    CHECK_EQ_U64(mapped(&f), 0);
    make_equal_ones_and_a_larger_one(&f, &need);
    CHECK_OK(sp_device_set_memory_limit(f.device, mapped(&f)));
    CHECK_OK(sp__workspaces_hold(f.workspaces, &large, mapped(&f), false));
    sp__workspaces_drop(f.workspaces, &large);
    sp__workspaces_drop(f.workspaces, &need);
    CHECK_OK(sp_device_set_memory_limit(f.device, 0));
    end(&f);
}

/* ---- many threads ---- */

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
    sp_workspace *it = acquire(f, &small, 1, NULL, &after);
    CHECK_OK(sp__point_wait(submit(f, it, 1, after), SP_NO_DEADLINE));
    sp__workspaces_drop(f->workspaces, &small);
    sp_store_release(&is_open, 1);
}

/* The memory is that of a storage that a stream uses, behind a submission to come. */
TEST(a_hold_that_waits_for_memory_leaves_the_workspace_to_submissions)
{
    const workspace_fixture f = begin();
    long_hold h = {.f = &f, .status = SP_OK};
    const uint32_t pattern = 7;
    sp_workspace_need need;
    sp_storage storage;
    sp_point last;
    CHECK_OK(sp__workspaces_hold(f.workspaces, &need, 3 * MIB, false));
    CHECK_OK(sp_storage_create(f.device, 16 * MIB, NULL, &storage));
    sp_memory_stats stats;
    CHECK_OK(sp_device_get_memory_stats(f.device, &stats));
    CHECK_OK(sp_device_set_memory_limit(f.device, stats.reserved_bytes + 4 * MIB));
    sp_store_release(&is_open, 0);
    const sp_command wait = {.type = SP_COMMAND_HOST, .host = wait_until_open};
    const sp_submission submission = {.commands = &wait, .command_count = 1};
    CHECK_OK(sp__submit_plain(&f.refs[0], &submission, &last));
    const sp_storage_range all = {.storage = storage, .bytes = 16 * MIB};
    CHECK_OK(sp_storage_fill_async(f.streams[0], all, &pattern, sizeof pattern));
    CHECK_OK(sp_storage_release(storage));
    test_threads(2, hold_and_drop, &h);
    CHECK_OK(h.status);
    CHECK_OK(sp__point_wait(last, SP_NO_DEADLINE));
    sp__workspaces_drop(f.workspaces, &need);
    CHECK_OK(sp_device_set_memory_limit(f.device, 0));
    end(&f);
}

typedef struct crowd {
    const workspace_fixture *f;
    uint32_t rounds;
    sp_atomic_u32 users[SP_WORKSPACES_MOST], wrong;
} crowd;

/* Each submission writes over the workspace in order, so two on the GPU at once are a data race of
 * the fake driver's threads; two threads that submit at once are counted. */
static void submit_in_turns(void *arg, uint32_t index)
{
    crowd *c = arg;
    const workspace_fixture *f = c->f;
    sp_workspace *former = NULL;
    for (uint32_t i = 0; i < c->rounds; i++) {
        sp_workspace_need need;
        const uint64_t bytes = (1 + (index + i) % 5) * 2 * MIB;
        if (sp__workspaces_hold(f->workspaces, &need, bytes, false) != SP_OK) {
            sp_fetch_add_relaxed(&c->wrong, 1);
            continue;
        }
        sp_point after;
        sp_workspace *it = acquire(f, &need, (int)(index % 2), former, &after);
        sp_atomic_u32 *users = &c->users[it - f->workspaces->list];
        if (sp_fetch_add_relaxed(users, 1) != 0 || it->mapped < bytes) {
            sp_fetch_add_relaxed(&c->wrong, 1);
        }
        sp_fetch_sub_relaxed(users, 1);
        const sp_point point = submit(f, it, (int)(index % 2), after);
        if (sp__point_wait(point, SP_NO_DEADLINE) != SP_OK) sp_fetch_add_relaxed(&c->wrong, 1);
        if (index == 0 && i % 4 == 0) (void)sp__workspaces_trim(f->workspaces);
        sp__workspaces_drop(f->workspaces, &need);
        former = it;
    }
}

typedef struct late_comer {
    const workspace_fixture *f;
    const sp_workspace_need *need;
    sp_workspace **used;
    sp_atomic_u32 has_one;
} late_comer;

static void acquire_or_put_back(void *arg, uint32_t index)
{
    late_comer *c = arg;
    sp_point after;
    if (index == 0) {
        sp_workspace *it = acquire(c->f, c->need, 0, NULL, &after);
        sp_store_release(&c->has_one, 1);
        sp__workspace_release(c->f->workspaces, it, (sp_point){0});
        return;
    }
    for (int i = 0; i < 1000 && sp_load_acquire(&c->has_one) == 0; i++) sp_thread_yield();
    for (int i = 0; i < 4; i++) {
        sp__workspace_release(c->f->workspaces, c->used[i], (sp_point){0});
    }
}

TEST(no_more_are_made_because_all_are_taken_for_a_moment)
{
    const workspace_fixture f = begin();
    sp_workspace_need need;
    sp_workspace *used[4];
    sp_point after;
    CHECK_EQ_U64(sp__workspaces_most(30 * MIB), SP_COUNT_OF(used));
    CHECK_OK(sp__workspaces_hold(f.workspaces, &need, 30 * MIB, false));
    for (int i = 0; i < 4; i++) used[i] = acquire(&f, &need, 0, NULL, &after);
    const uint64_t before = mapped(&f);
    late_comer c = {.f = &f, .need = &need, .used = used};
    test_threads(2, acquire_or_put_back, &c);
    CHECK_EQ_U64(mapped(&f), before);
    sp__workspaces_drop(f.workspaces, &need);
    end(&f);
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
    const workspace_fixture f = begin();
    long_hold h = {.f = &f, .status = SP_OK};
    sp_workspace_need need;
    sp_point after, last;
    sp_workspace *used[3];
    CHECK_OK(sp__workspaces_hold(f.workspaces, &need, 3 * MIB, false));
    for (int i = 0; i < 3; i++) used[i] = acquire(&f, &need, 0, NULL, &after);
    sp_store_release(&is_open, 0);
    fake_cuda_hold(true);
    const sp_command wait = {.type = SP_COMMAND_HOST, .host = wait_until_open};
    const sp_submission submission = {.commands = &wait, .command_count = 1};
    CHECK_OK(sp__submit_plain(&f.refs[0], &submission, &last));
    sp__workspace_release(f.workspaces, used[0], (sp_point){0});
    (void)submit(&f, used[1], 1, (sp_point){0});
    last = submit(&f, used[2], 0, (sp_point){0});
    CHECK_OK(sp_device_set_memory_limit(f.device, mapped(&f)));
    test_threads(2, hold_or_let_go, &h);
    CHECK_OK(h.status);
    CHECK_OK(sp__point_wait(last, SP_NO_DEADLINE));
    sp__workspaces_drop(f.workspaces, &need);
    CHECK_EQ_U64(mapped(&f), 0);
    end(&f);
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
    sp_workspace *it = acquire(f, h->need, 1, NULL, &after);
    h->is_own = after.timeline == NULL;
    const sp_point point = submit(f, it, 1, after);
    if (h->is_own) CHECK_OK(sp__point_wait(point, SP_NO_DEADLINE));
    sp_store_release(&is_open, 1);
    CHECK_OK(sp__point_wait(point, SP_NO_DEADLINE));
}

/* All workspaces are behind a host function that waits for another submission, a hold waits for one
 * of them, and there is free memory, although too little for the hold. */
TEST(a_hold_without_memory_leaves_what_is_free_to_submissions)
{
    const workspace_fixture f = begin();
    stuck_hold h = {.f = &f, .bytes = 10 * MIB};
    sp_workspace_need need;
    sp_workspace *used[2];
    sp_point after, last;
    CHECK_OK(sp__workspaces_hold(f.workspaces, &need, 3 * MIB, false));
    for (int i = 0; i < 2; i++) used[i] = acquire(&f, &need, 0, NULL, &after);
    CHECK_OK(sp_device_set_memory_limit(f.device, mapped(&f) + 4 * MIB));
    sp_store_release(&is_open, 0);
    const sp_command wait = {.type = SP_COMMAND_HOST, .host = wait_until_open};
    const sp_submission submission = {.commands = &wait, .command_count = 1};
    CHECK_OK(sp__submit_plain(&f.refs[0], &submission, &last));
    for (int i = 0; i < 2; i++) last = submit(&f, used[i], 0, (sp_point){0});
    h.need = &need;
    test_threads(2, hold_or_submit_to_open, &h);
    CHECK_OK(h.status);
    CHECK(h.is_own);
    CHECK_OK(sp__point_wait(last, SP_NO_DEADLINE));
    sp__workspaces_drop(f.workspaces, &need);
    CHECK_OK(sp_device_set_memory_limit(f.device, 0));
    end(&f);
}

/* The same; the hold waits for the memory of a storage. */
TEST(a_hold_that_waits_for_a_storage_leaves_what_is_free_to_submissions)
{
    const workspace_fixture f = begin();
    stuck_hold h = {.f = &f, .bytes = 20 * MIB};
    const uint32_t pattern = 7;
    sp_workspace_need need;
    sp_storage storage;
    sp_memory_stats stats;
    sp_point after, last;
    CHECK_OK(sp__workspaces_hold(f.workspaces, &need, 3 * MIB, false));
    CHECK_OK(sp_storage_create(f.device, 16 * MIB, NULL, &storage));
    CHECK_OK(sp_device_get_memory_stats(f.device, &stats));
    CHECK_OK(sp_device_set_memory_limit(f.device, stats.reserved_bytes + 4 * MIB));
    sp_workspace *used = acquire(&f, &need, 0, NULL, &after);
    sp_store_release(&is_open, 0);
    const sp_command wait = {.type = SP_COMMAND_HOST, .host = wait_until_open};
    const sp_submission submission = {.commands = &wait, .command_count = 1};
    CHECK_OK(sp__submit_plain(&f.refs[0], &submission, &last));
    last = submit(&f, used, 0, (sp_point){0});
    const sp_storage_range all = {.storage = storage, .bytes = 16 * MIB};
    CHECK_OK(sp_storage_fill_async(f.streams[0], all, &pattern, sizeof pattern));
    CHECK_OK(sp_storage_release(storage));
    h.need = &need;
    test_threads(2, hold_or_submit_to_open, &h);
    CHECK_OK(h.status);
    CHECK(h.is_own);
    CHECK_OK(sp__point_wait(last, SP_NO_DEADLINE));
    sp__workspaces_drop(f.workspaces, &need);
    CHECK_OK(sp_device_set_memory_limit(f.device, 0));
    end(&f);
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
    const workspace_fixture f = begin();
    gated_hold h = {.f = &f, .bytes = 6 * MIB};
    sp_workspace_need need;
    sp_workspace *used[3];
    sp_point after, last[2];
    CHECK_OK(sp__workspaces_hold(f.workspaces, &need, 3 * MIB, false));
    for (int i = 0; i < 3; i++) used[i] = acquire(&f, &need, 0, NULL, &after);
    sp__workspace_release(f.workspaces, used[0], (sp_point){0});
    for (int i = 0; i < 2; i++) {
        sp__timeline_init(&h.gates[i], NULL);
        last[i] = submit(&f, used[1 + i], i, (sp_point){&h.gates[i], 1});
    }
    CHECK_OK(sp_device_set_memory_limit(f.device, mapped(&f)));
    test_threads(2, hold_and_open_or_open_other, &h);
    CHECK_OK(h.status);
    CHECK(!h.is_late);
    for (int i = 0; i < 2; i++) CHECK_OK(sp__point_wait(last[i], SP_NO_DEADLINE));
    sp__workspaces_drop(f.workspaces, &need);
    CHECK_OK(sp_device_set_memory_limit(f.device, 0));
    end(&f);
    for (int i = 0; i < 2; i++) sp__timeline_deinit(&h.gates[i]);
}

TEST(a_hold_of_more_than_the_device_has_waits_for_nothing)
{
    const workspace_fixture f = begin();
    gated_hold h = {.f = &f, .bytes = 5000 * MIB};
    sp_workspace_need need;
    sp_workspace *used[2];
    sp_point after;
    CHECK_OK(sp__workspaces_hold(f.workspaces, &need, 3 * MIB, false));
    for (int i = 0; i < 2; i++) used[i] = acquire(&f, &need, 0, NULL, &after);
    for (int i = 0; i < 2; i++) sp__timeline_init(&h.gates[i], NULL);
    sp__workspace_release(f.workspaces, used[0], (sp_point){0});
    const uint64_t before = mapped(&f);
    const sp_point last = submit(&f, used[1], 0, (sp_point){&h.gates[0], 1});
    test_threads(2, hold_and_open_or_open_other, &h);
    CHECK_STATUS(h.status, SP_OUT_OF_MEMORY);
    CHECK(!h.is_late);
    CHECK_EQ_U64(mapped(&f), before); /* nor is a spare one taken away */
    CHECK_OK(sp__point_wait(last, SP_NO_DEADLINE));
    sp__workspaces_drop(f.workspaces, &need);
    end(&f);
    for (int i = 0; i < 2; i++) sp__timeline_deinit(&h.gates[i]);
}

TEST(threads_grow_use_and_trim_workspaces_at_the_same_time)
{
    const workspace_fixture f = begin();
    crowd c = {.f = &f, .rounds = (uint32_t)test_count(200, 30)};
    test_threads(8, submit_in_turns, &c);
    CHECK_EQ_U64(sp_load_relaxed(&c.wrong), 0);
    CHECK_EQ_U64(mapped(&f), 0);
    CHECK_EQ_U64(in_use(&f), 0);
    /* The same where there is memory for one of the largest size. */
    CHECK_OK(sp_device_set_memory_limit(f.device, 12 * MIB));
    test_threads(8, submit_in_turns, &c);
    CHECK_EQ_U64(sp_load_relaxed(&c.wrong), 0);
    CHECK_EQ_U64(mapped(&f), 0);
    end(&f);
}

TEST_MAIN
