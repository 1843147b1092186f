/* SPDX-License-Identifier: Apache-2.0 */
/* Submitted runs that a host function waits for while all slots are taken: they run inline, in the
 * caller's memory, with the bits of every other run. */
#include <string.h>

#include "exec/model_object.h"
#include "segment_fixture.h"

static void wait_for_future(void *ctx, sp_status status)
{
    const sp_future *future = ctx;
    CHECK_OK(status);
    CHECK_OK(sp_future_wait(*future));
}

static sp_run_slots *take_all_slots(sp_model handle, uint32_t count)
{
    sp_rt_model *model = sp__model_hold(handle);
    sp_run_slots *slots = sp__device_run_slots(model->device);
    for (uint32_t i = 0; i < count; i++) CHECK_OK(sp__run_slots_acquire(slots, NULL));
    sp__model_drop(model);
    return slots;
}

TEST(a_run_that_a_host_function_computes_leaves_its_results)
{
    const sp_device device = segment_begin();
    const sp_model model = small_model(&(sp_model_options){.device = device});
    const small_row wanted = small_run(model);
    sp_device_info info = {0};
    CHECK_OK(sp_device_get_info(device, &info));
    /* Another result in the context's memory, which must not overwrite that of the run. */
    float other[3], values[4] = {9, 8, 7, 6};
    sp_host_tensor x = input_x(1);
    x.data = values;
    sp_host_tensor y = output_y(other, 3);
    CHECK_OK(sp_model_run(model, &x, 1, &y, 1));

    sp_run_slots *slots = take_all_slots(model, info.run_slots);
    small_row out;
    memset(&out, 0xff, sizeof out);
    sp_future future;
    sp_stream stream;
    CHECK_OK(small_submit(model, &out, &future));
    CHECK_OK(sp_stream_from_pool((sp_device){0}, &stream));
    CHECK_OK(sp_stream_host_function(stream, wait_for_future, &future));
    CHECK_OK(sp_stream_synchronize(stream));
    CHECK_OK(sp_future_query(future));
    CHECK(small_is_same(&out, &wanted));
    for (uint32_t i = 0; i < info.run_slots; i++) CHECK(sp__run_slots_release(slots, NULL) == NULL);
    CHECK_OK(sp_future_release(future));
    CHECK_OK(sp_stream_release(stream));
    CHECK_OK(sp_model_release(model));
    segment_end();
}

TEST_MAIN
