/* SPDX-License-Identifier: Apache-2.0 */
/* Queues of submitted runs. */
#include "runtime/submit_queue.h"

#include "runtime/runtime_state.h"
#include "runtime_fixture.h"

static sp_rt_device *device_open(void)
{
    sp_rt_device *device;
    CHECK_OK(sp__rt_device_find(CPU, &device));
    CHECK_OK(sp__submit_queues_open(device, 1));
    return device;
}

TEST(queues_are_created_when_none_is_free)
{
    runtime_begin();
    sp_rt_device *device = device_open();
    const uint32_t most = device->dev->limits.run_slots;
    uint32_t taken = 0;
    for (; taken < most; taken++) {
        REQUIRE_OK(sp__submit_queues_open(device, 1));
        REQUIRE_OK(sp__submit_queues_open(device, taken));
        CHECK_EQ_U64(sp__submit_queues_count(device), taken + 1);
        CHECK_EQ_U64(sp__submit_queue_acquire(device), taken);
    }
    REQUIRE_OK(sp__submit_queues_open(device, most + 1)); /* no more than there are slots */
    CHECK_EQ_U64(sp__submit_queues_count(device), most);
    while (taken-- > 0) sp__submit_queue_release(device, taken);
    runtime_end();
}

enum { USERS = 8 };

static void queue_use(void *arg, uint32_t index)
{
    sp_rt_device *device = arg;
    (void)index;
    for (uint64_t i = 0; i < test_count(20000, 1000); i++) {
        CHECK_OK(sp__submit_queues_open(device, 1));
        const uint32_t place = sp__submit_queue_acquire(device);
        const sp_queue *queue = sp__submit_queue_at(device, place);
        CHECK(queue != NULL && queue->device == device->dev);
        sp__submit_queue_release(device, place);
    }
}

TEST(threads_that_need_queues_at_once_get_them)
{
    for (uint64_t round = 0; round < test_count(50, 5); round++) {
        runtime_begin();
        sp_rt_device *device = device_open();
        test_threads(USERS, queue_use, device);
        CHECK(sp__submit_queues_count(device) <= device->dev->limits.run_slots);
        runtime_end();
    }
}

TEST(each_run_has_a_queue_of_its_own_while_there_are_enough)
{
    runtime_begin();
    sp_rt_device *device = device_open();
    REQUIRE_OK(sp__submit_queues_open(device, SP_SUBMIT_QUEUES));
    const uint32_t count = sp__submit_queues_count(device);
    bool is_taken[SP_SUBMIT_QUEUES] = {false};
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t place = sp__submit_queue_acquire(device);
        REQUIRE(place < count);
        CHECK(!is_taken[place]);
        is_taken[place] = true;
        CHECK(sp__submit_queue_at(device, place) != NULL);
    }
    /* None is free: it shares one. The one that is released is the next. */
    const uint32_t shared = sp__submit_queue_acquire(device);
    CHECK(sp__submit_queue_at(device, shared) != NULL);
    sp__submit_queue_release(device, shared);
    for (int i = 0; i < 3; i++) {
        sp__submit_queue_release(device, count / 2);
        CHECK_EQ_U64(sp__submit_queue_acquire(device), count / 2);
    }
    for (uint32_t i = 0; i < count; i++) sp__submit_queue_release(device, i);
    runtime_end();
}

TEST_MAIN
