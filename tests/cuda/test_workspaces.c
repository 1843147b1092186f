/* SPDX-License-Identifier: Apache-2.0 */
/* The workspaces of a cuda device, on the fake driver: they grow without moving, keep what is
 * needed whichever call of the driver fails, and submissions over one of them are ordered. */
#include <string.h>

#include "device/cuda/cuda_api.h"
#include "device/wait.h"
#include "fake_cuda.h"
#include "workspace_fixture.h"

TEST(a_workspace_grows_without_moving)
{
    const workspace_fixture f = workspaces_begin();
    sp_workspace_need small, large;
    sp_point after;
    CHECK_OK(sp__workspaces_hold(f.workspaces, &small, 3 * MIB, false));
    sp_workspace *workspace = workspace_acquire(&f, &small, 0, NULL, &after);
    void *const address = workspace->range.address;
    memset(address, 5, 3 * MIB);
    sp__workspace_release(f.workspaces, workspace, (sp_point){0});
    CHECK_OK(sp__workspaces_hold(f.workspaces, &large, 20 * MIB, false));
    sp_workspace *grown = workspace_acquire(&f, &large, 0, workspace, &after);
    CHECK(grown == workspace && grown->range.address == address);
    CHECK(after.timeline == NULL);
    const unsigned char *bytes = address;
    CHECK(bytes[0] == 5 && bytes[3 * MIB - 1] == 5);
    memset(address, 6, 20 * MIB);
    sp__workspace_release(f.workspaces, grown, (sp_point){0});
    CHECK_EQ_U64(workspaces_mapped(&f), workspaces_in_use(&f));
    sp__workspaces_drop(f.workspaces, &small);
    sp__workspaces_drop(f.workspaces, &large);
    workspaces_end(&f);
}

TEST(the_last_drop_and_an_emptied_cache_return_what_is_not_needed)
{
    const workspace_fixture f = workspaces_begin();
    sp_workspace_need small, large;
    CHECK_OK(sp__workspaces_hold(f.workspaces, &small, 3 * MIB, false));
    const uint64_t before = workspaces_mapped(&f);
    CHECK_OK(sp__workspaces_hold(f.workspaces, &large, 64 * MIB, false));
    sp__workspaces_drop(f.workspaces, &large);
    CHECK(workspaces_mapped(&f) >= 64 * MIB);
    CHECK_OK(sp_device_empty_cache(f.device));
    CHECK_EQ_U64(workspaces_mapped(&f), before);
    CHECK_EQ_U64(workspaces_in_use(&f), before);
    sp__workspaces_drop(f.workspaces, &small);
    CHECK_EQ_U64(workspaces_mapped(&f), 0);
    CHECK_EQ_U64(workspaces_in_use(&f), 0);
    CHECK_EQ_U64(fake_cuda_live(FAKE_RANGE_MEMORY), 0);
    workspaces_end(&f);
}

TEST(each_call_of_the_driver_may_fail_and_nothing_is_kept)
{
    static const char *const calls[] = {"cuMemAddressReserve", "cuMemCreate", "cuMemMap",
                                        "cuMemSetAccess"};
    for (uint32_t i = 0; i < SP_COUNT_OF(calls); i++) {
        const workspace_fixture f = workspaces_begin();
        sp_workspace_need small, large;
        fake_cuda_fail_call(calls[i], 1, 1000, CUDA_ERROR_OUT_OF_MEMORY);
        CHECK_STATUS(sp__workspaces_hold(f.workspaces, &small, 3 * MIB, false), SP_OUT_OF_MEMORY);
        CHECK_MESSAGE(calls[i]);
        CHECK_EQ_U64(workspaces_mapped(&f), 0);
        CHECK_EQ_U64(workspaces_in_use(&f), 0);
        CHECK_EQ_U64(fake_cuda_live(FAKE_RANGE_MEMORY), 0);
        fake_cuda_fail_call(calls[i], 1, 0, CUDA_SUCCESS);
        CHECK_OK(sp__workspaces_hold(f.workspaces, &small, 3 * MIB, false));
        const uint64_t before = workspaces_mapped(&f);
        fake_cuda_fail_call(calls[i], 1, 1000, CUDA_ERROR_OUT_OF_MEMORY);
        const sp_status status = sp__workspaces_hold(f.workspaces, &large, 20 * MIB, false);
        fake_cuda_fail_call(calls[i], 1, 0, CUDA_SUCCESS);
        CHECK_STATUS(status, i == 0 ? SP_OK : SP_OUT_OF_MEMORY); /* the range exists by then */
        if (status == SP_OK) sp__workspaces_drop(f.workspaces, &large);
        else CHECK_EQ_U64(workspaces_mapped(&f), before);
        sp__workspaces_drop(f.workspaces, &small);
        workspaces_end(&f);
    }
}

TEST(without_memory_for_more_a_part_is_no_larger_than_needed)
{
    const workspace_fixture f = workspaces_begin();
    sp_workspace_need need;
    CHECK_OK(sp_device_set_memory_limit(f.device, 18 * MIB));
    CHECK_OK(sp__workspaces_hold(f.workspaces, &need, 17 * MIB, false)); /* 20 when rounded */
    CHECK_EQ_U64(workspaces_mapped(&f), 18 * MIB);
    sp__workspaces_drop(f.workspaces, &need);
    CHECK_STATUS(sp__workspaces_hold(f.workspaces, &need, 19 * MIB, false), SP_OUT_OF_MEMORY);
    CHECK_MESSAGE("limit");
    CHECK_OK(sp_device_set_memory_limit(f.device, 0));
    CHECK_STATUS(sp__workspaces_hold(f.workspaces, &need, UINT64_MAX, false), SP_OUT_OF_MEMORY);
    CHECK_STATUS(sp__workspaces_hold(f.workspaces, &need, 5000 * MIB, false), SP_OUT_OF_MEMORY);
    workspaces_end(&f);
}

TEST(submissions_at_the_same_time_have_workspaces_of_their_own)
{
    const workspace_fixture f = workspaces_begin();
    sp_workspace_need need;
    sp_point after;
    CHECK_OK(sp__workspaces_hold(f.workspaces, &need, 3 * MIB, false));
    fake_cuda_hold(true);
    sp_workspace *a = workspace_acquire(&f, &need, 0, NULL, &after);
    CHECK(after.timeline == NULL);
    const sp_point first = workspace_submit(&f, a, 0, after);
    sp_workspace *b = workspace_acquire(&f, &need, 1, a, &after);
    CHECK(b != a && after.timeline == NULL);
    const sp_point second = workspace_submit(&f, b, 1, after);
    /* On the queue of its last submission one needs no wait. */
    CHECK(workspace_acquire(&f, &need, 0, NULL, &after) == a && after.timeline == NULL);
    sp__workspace_release(f.workspaces, a, (sp_point){0});
    fake_cuda_hold(false);
    CHECK_OK(sp__point_wait(first, SP_NO_DEADLINE));
    CHECK_OK(sp__point_wait(second, SP_NO_DEADLINE));
    CHECK(workspace_acquire(&f, &need, 0, b, &after) == b && after.timeline == NULL);
    sp__workspace_release(f.workspaces, b, (sp_point){0});
    sp__workspaces_drop(f.workspaces, &need);
    CHECK_EQ_U64(workspaces_mapped(&f), 0);
    workspaces_end(&f);
}

TEST(without_memory_for_another_one_a_submission_follows_the_last_one)
{
    const workspace_fixture f = workspaces_begin();
    sp_workspace_need need;
    sp_point after;
    CHECK_OK(sp__workspaces_hold(f.workspaces, &need, 3 * MIB, false));
    CHECK_OK(sp_device_set_memory_limit(f.device, workspaces_mapped(&f)));
    fake_cuda_hold(true);
    sp_workspace *a = workspace_acquire(&f, &need, 0, NULL, &after);
    const sp_point first = workspace_submit(&f, a, 0, after);
    CHECK(workspace_acquire(&f, &need, 1, NULL, &after) == a);
    CHECK(after.timeline == first.timeline && after.value == first.value);
    const sp_point second = workspace_submit(&f, a, 1, after);
    CHECK(!sp__workspaces_trim(f.workspaces)); /* in use */
    fake_cuda_hold(false);
    CHECK_OK(sp__point_wait(second, SP_NO_DEADLINE));
    CHECK_OK(sp__point_wait(first, SP_NO_DEADLINE));
    sp__workspaces_drop(f.workspaces, &need);
    CHECK_EQ_U64(workspaces_mapped(&f), 0);
    workspaces_end(&f);
}

/* What a stream waits for in the host may be what the next submission leads to. */
TEST(none_follows_work_that_has_not_been_issued_while_there_is_memory)
{
    const workspace_fixture f = workspaces_begin();
    enum { MOST = 4 };
    sp_workspace_need need;
    sp_point after, last = {0};
    CHECK_EQ_U64(sp__workspaces_most(30 * MIB), MOST);
    (void)stream_block(&f);
    CHECK_OK(sp__workspaces_hold(f.workspaces, &need, 30 * MIB, false));
    sp_workspace *used[MOST + 1];
    for (int i = 0; i < MOST; i++) {
        /* Taken together, since the queue would have one for all. */
        used[i] = workspace_acquire(&f, &need, 0, NULL, &after);
        CHECK(after.timeline == NULL);
        for (int k = 0; k < i; k++) CHECK(used[k] != used[i]);
    }
    for (int i = 0; i < MOST; i++) last = workspace_submit(&f, used[i], 0, (sp_point){0});
    used[MOST] = workspace_acquire(&f, &need, 1, NULL, &after);
    CHECK(after.timeline == NULL);
    for (int i = 0; i < MOST; i++) CHECK(used[i] != used[MOST]);
    CHECK_OK(sp__point_wait(workspace_submit(&f, used[MOST], 1, after), SP_NO_DEADLINE));
    sp_store_release(&is_open, 1);
    CHECK_OK(sp__point_wait(last, SP_NO_DEADLINE));
    sp__workspaces_drop(f.workspaces, &need);
    CHECK_EQ_U64(workspaces_mapped(&f), 0);
    workspaces_end(&f);
}

TEST(there_are_more_of_a_small_size)
{
    CHECK_EQ_U64(sp__workspaces_most(1), SP_WORKSPACES_MOST);
    CHECK_EQ_U64(sp__workspaces_most(8 * MIB), 11);
    CHECK_EQ_U64(sp__workspaces_most(UINT64_MAX - 1), 4);
}

TEST(one_that_is_needed_outlives_the_reclaim_of_the_others)
{
    const workspace_fixture f = workspaces_begin();
    sp_workspace_need need;
    sp_point after;
    CHECK_OK(sp__workspaces_hold(f.workspaces, &need, 3 * MIB, false));
    const uint64_t one = workspaces_mapped(&f);
    sp_workspace *a = workspace_acquire(&f, &need, 0, NULL, &after);
    sp_workspace *b = workspace_acquire(&f, &need, 1, NULL, &after);
    CHECK(a != b);
    sp__workspace_release(f.workspaces, a, (sp_point){0});
    sp__workspace_release(f.workspaces, b, (sp_point){0});
    CHECK_EQ_U64(workspaces_mapped(&f), 2 * one);
    CHECK(sp__workspaces_trim(f.workspaces));
    CHECK_EQ_U64(workspaces_mapped(&f), one);
    CHECK(!sp__workspaces_trim(f.workspaces));
    sp__workspaces_drop(f.workspaces, &need);
    workspaces_end(&f);
}

/* Holds 17 MiB; then there are two workspaces of 18 MiB, and behind them one of 20. */
static void make_equal_ones_and_a_larger_one(const workspace_fixture *f, sp_workspace_need *need)
{
    sp_workspace *used[3];
    sp_point after;
    CHECK_OK(sp_device_set_memory_limit(f->device, 18 * MIB));
    CHECK_OK(sp__workspaces_hold(f->workspaces, need, 17 * MIB, false)); /* 20 when rounded */
    used[0] = workspace_acquire(f, need, 0, NULL, &after);
    CHECK_OK(sp_device_set_memory_limit(f->device, 36 * MIB));
    used[1] = workspace_acquire(f, need, 0, NULL, &after);
    CHECK_OK(sp_device_set_memory_limit(f->device, 0));
    used[2] = workspace_acquire(f, need, 0, NULL, &after);
    for (uint32_t i = 0; i < SP_COUNT_OF(used); i++) {
        CHECK(used[i] == &f->workspaces->list[i]);
        sp__workspace_release(f->workspaces, used[i], (sp_point){0});
    }
    CHECK_EQ_U64(workspaces_mapped(f), (18 + 18 + 20) * MIB);
}

TEST(of_equal_ones_none_is_kept_beside_a_larger_one)
{
    const workspace_fixture f = workspaces_begin();
    sp_workspace_need need, large;
    make_equal_ones_and_a_larger_one(&f, &need);
    CHECK(sp__workspaces_trim(f.workspaces));
    CHECK_EQ_U64(workspaces_mapped(&f), 20 * MIB);
    CHECK_EQ_U64(workspaces_in_use(&f), 20 * MIB);
    sp__workspaces_drop(f.workspaces, &need);
    CHECK_EQ_U64(workspaces_mapped(&f), 0);
    make_equal_ones_and_a_larger_one(&f, &need);
    CHECK_OK(sp_device_set_memory_limit(f.device, workspaces_mapped(&f)));
    CHECK_OK(sp__workspaces_hold(f.workspaces, &large, workspaces_mapped(&f), false));
    sp__workspaces_drop(f.workspaces, &large);
    sp__workspaces_drop(f.workspaces, &need);
    CHECK_OK(sp_device_set_memory_limit(f.device, 0));
    workspaces_end(&f);
}

/* ---- many threads ---- */

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
        sp_workspace *it = workspace_acquire(f, &need, (int)(index % 2), former, &after);
        sp_atomic_u32 *users = &c->users[it - f->workspaces->list];
        if (sp_fetch_add_relaxed(users, 1) != 0 || it->mapped < bytes) {
            sp_fetch_add_relaxed(&c->wrong, 1);
        }
        sp_fetch_sub_relaxed(users, 1);
        const sp_point point = workspace_submit(f, it, (int)(index % 2), after);
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
        sp_workspace *it = workspace_acquire(c->f, c->need, 0, NULL, &after);
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
    const workspace_fixture f = workspaces_begin();
    sp_workspace_need need;
    sp_workspace *used[4];
    sp_point after;
    CHECK_EQ_U64(sp__workspaces_most(30 * MIB), SP_COUNT_OF(used));
    CHECK_OK(sp__workspaces_hold(f.workspaces, &need, 30 * MIB, false));
    for (int i = 0; i < 4; i++) used[i] = workspace_acquire(&f, &need, 0, NULL, &after);
    const uint64_t before = workspaces_mapped(&f);
    late_comer c = {.f = &f, .need = &need, .used = used};
    test_threads(2, acquire_or_put_back, &c);
    CHECK_EQ_U64(workspaces_mapped(&f), before);
    sp__workspaces_drop(f.workspaces, &need);
    workspaces_end(&f);
}

TEST(threads_grow_use_and_trim_workspaces_at_the_same_time)
{
    const workspace_fixture f = workspaces_begin();
    crowd c = {.f = &f, .rounds = (uint32_t)test_count(200, 30)};
    test_threads(8, submit_in_turns, &c);
    CHECK_EQ_U64(sp_load_relaxed(&c.wrong), 0);
    CHECK_EQ_U64(workspaces_mapped(&f), 0);
    CHECK_EQ_U64(workspaces_in_use(&f), 0);
    /* The same where there is memory for one of the largest size. */
    CHECK_OK(sp_device_set_memory_limit(f.device, 12 * MIB));
    test_threads(8, submit_in_turns, &c);
    CHECK_EQ_U64(sp_load_relaxed(&c.wrong), 0);
    CHECK_EQ_U64(workspaces_mapped(&f), 0);
    workspaces_end(&f);
}

TEST_MAIN
