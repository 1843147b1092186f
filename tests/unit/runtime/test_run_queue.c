/* SPDX-License-Identifier: Apache-2.0 */
/* Queues of submitted runs. */
#include "runtime/submit_queue.h"

#include "runtime/runtime_state.h"
#include "runtime_fixture.h"

TEST(each_run_has_a_queue_of_its_own_while_there_are_enough)
{
    runtime_begin();
    sp_rt_device *device;
    REQUIRE_OK(sp__rt_device_find(CPU, &device));
    REQUIRE_OK(sp__submit_queues_open(device));
    const uint32_t count = device->submit_queues.count;
    bool is_taken[SP_SUBMIT_QUEUES] = {false};
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t place = sp__submit_queue_acquire(device);
        REQUIRE(place < count);
        CHECK(!is_taken[place]);
        is_taken[place] = true;
        CHECK(sp__submit_queue_at(device, place) != NULL);
    }
    /* None is free: it shares one. The one that is released is the next. */
    CHECK(sp__submit_queue_acquire(device) < count);
    for (int i = 0; i < 3; i++) {
        sp__submit_queue_release(device, count / 2);
        CHECK_EQ_U64(sp__submit_queue_acquire(device), count / 2);
    }
    for (uint32_t i = 0; i < count; i++) sp__submit_queue_release(device, i);
    runtime_end();
}

TEST_MAIN
