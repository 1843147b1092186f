/* SPDX-License-Identifier: Apache-2.0 */
/* Queues of submitted runs. */
#include "runtime/run_queue.h"

#include "runtime/runtime_state.h"
#include "runtime_fixture.h"

TEST(each_run_has_a_queue_of_its_own_while_there_are_enough)
{
    runtime_begin();
    sp_rt_device *device;
    REQUIRE_OK(sp__rt_device_find(CPU, &device));
    REQUIRE_OK(sp__run_queues_make(device));
    const uint32_t count = device->runs.count;
    bool is_taken[SP_RUN_QUEUES] = {false};
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t place = sp__run_queue_take(device);
        REQUIRE(place < count);
        CHECK(!is_taken[place]);
        is_taken[place] = true;
        CHECK(sp__run_queue_at(device, place) != NULL);
    }
    /* None is free: one that is shared. The one that comes back is the next. */
    CHECK(sp__run_queue_take(device) < count);
    for (int i = 0; i < 3; i++) {
        sp__run_queue_give(device, count / 2);
        CHECK_EQ_U64(sp__run_queue_take(device), count / 2);
    }
    for (uint32_t i = 0; i < count; i++) sp__run_queue_give(device, i);
    runtime_end();
}

TEST_MAIN
