/* SPDX-License-Identifier: Apache-2.0 */
/* Queues of runs that leave a shared stream. */
#include "runtime/run_queue.h"

#include "runtime/runtime_state.h"
#include "runtime_fixture.h"

static sp_rt_device *device_open(void)
{
    sp_rt_device *device;
    CHECK_OK(sp__rt_device_find(CPU, &device));
    return device;
}

TEST(there_is_none_before_they_are_created)
{
    runtime_begin();
    CHECK_EQ_U64(sp__run_queue_acquire(device_open(), 0), SP_NO_RUN_QUEUE);
    runtime_end();
}

TEST(each_run_has_a_queue_of_its_own_or_none)
{
    runtime_begin();
    sp_rt_device *device = device_open();
    sp__run_queues_open(device);
    sp__run_queues_open(device); /* creates no more */
    const uint32_t count = device->dev->limits.run_slots;
    for (uint32_t i = 0; i < count; i++) {
        CHECK_EQ_U64(sp__run_queue_acquire(device, count / 2), (count / 2 + i) % count);
        CHECK(sp__run_queue_at(device, i) != NULL);
        for (uint32_t k = 0; k < i; k++) {
            CHECK(sp__run_queue_at(device, i) != sp__run_queue_at(device, k));
        }
    }
    CHECK_EQ_U64(sp__run_queue_acquire(device, 0), SP_NO_RUN_QUEUE);
    sp__run_queue_release(device, count - 1, false);
    CHECK_EQ_U64(sp__run_queue_acquire(device, count + 3), count - 1);
    for (uint32_t i = 0; i < count; i++) sp__run_queue_release(device, i, false);
    runtime_end();
}

TEST(they_are_not_the_submit_queues)
{
    runtime_begin();
    sp_rt_device *device = device_open();
    sp__run_queues_open(device);
    CHECK_OK(sp__submit_queues_open(device, SP_SUBMIT_QUEUES));
    for (uint32_t i = 0; i < device->dev->limits.run_slots; i++) {
        for (uint32_t k = 0; k < sp__submit_queues_count(device); k++) {
            CHECK(sp__run_queue_at(device, i) != sp__submit_queue_at(device, k));
        }
    }
    runtime_end();
}

enum { USERS = 8 };

typedef struct queue_users {
    sp_rt_device *device;
    sp_atomic_u32 users[SP_RUN_QUEUES];
} queue_users;

static void queue_use(void *arg, uint32_t index)
{
    queue_users *all = arg;
    sp__run_queues_open(all->device);
    for (uint64_t i = 0; i < test_count(200000, 2000); i++) {
        const uint32_t taken = sp__run_queue_acquire(all->device, index);
        if (taken == SP_NO_RUN_QUEUE) continue;
        CHECK_EQ_U64(sp_fetch_add_relaxed(&all->users[taken], 1), 0);
        sp_fetch_sub_relaxed(&all->users[taken], 1);
        sp__run_queue_release(all->device, taken, false);
    }
}

TEST(no_two_threads_have_a_queue_at_the_same_time)
{
    for (uint64_t round = 0; round < test_count(20, 2); round++) {
        runtime_begin();
        queue_users all = {.device = device_open()};
        test_threads(USERS, queue_use, &all);
        runtime_end();
    }
}

TEST_MAIN
