/* SPDX-License-Identifier: Apache-2.0 */
/* Quirks and the faults of null devices, through the public API. */
#include "runtime_fixture.h"

#include <stdlib.h>

#include <streampool/null_device.h>

TEST(an_allocation_a_command_and_the_device_fail_when_they_are_asked_to)
{
    runtime_begin();
    const sp_device device = open_null();
    const sp_stream stream = new_stream_on(device);
    sp_storage storage = {0};
    CHECK_OK(sp_null_fail_allocation(device, 0));
    CHECK_STATUS(sp_storage_create(device, 64, NULL, &storage), SP_OUT_OF_MEMORY);
    CHECK_MESSAGE("injected");
    storage = new_storage_on(device, 64, false);

    CHECK_OK(sp_null_fail_command(device, 1));
    fill(stream, storage, 1);
    fill(stream, storage, 2);
    fill(stream, storage, 3);
    CHECK_STATUS(sp_stream_synchronize(stream), SP_FAILED);
    CHECK_MESSAGE("injected");
    CHECK_EQ_INT(first_other(storage, 3), -1);

    CHECK_OK(sp_null_fail_randomly(device, 1000, 7));
    fill(stream, storage, 4);
    CHECK_STATUS(sp_stream_synchronize(stream), SP_FAILED);
    CHECK_OK(sp_null_fail_randomly(device, 0, 0));
    CHECK_OK(sp_null_fail_command(device, UINT64_MAX));
    fill(stream, storage, 5);
    CHECK_OK(sp_stream_synchronize(stream));

    CHECK_OK(sp_null_set_latency(device, 5 * MILLISECOND));
    const uint64_t start = sp_clock_now();
    fill(stream, storage, 6);
    CHECK_OK(sp_stream_synchronize(stream));
    CHECK(sp_clock_now() - start >= 5 * MILLISECOND);
    CHECK_OK(sp_null_set_latency(device, 0));

    CHECK_OK(sp_null_lose(device));
    fill(stream, storage, 7);
    CHECK_STATUS(sp_stream_synchronize(stream), SP_DEVICE_LOST);
    CHECK_OK(sp_storage_release(storage));
    CHECK_OK(sp_stream_release(stream));
    CHECK_OK(sp_device_close(device));
    runtime_end();
}

static void refuse_faults(sp_device device, sp_status why)
{
    CHECK_STATUS(sp_null_fail_allocation(device, 0), why);
    CHECK_STATUS(sp_null_fail_command(device, 0), why);
    CHECK_STATUS(sp_null_fail_randomly(device, 10, 0), why);
    CHECK_STATUS(sp_null_set_latency(device, 1), why);
    CHECK_STATUS(sp_null_lose(device), why);
}

TEST(only_open_null_devices_fail_on_request)
{
    runtime_begin();
    const sp_device device = open_null();
    CHECK_STATUS(sp_null_fail_randomly(device, 1001, 0), SP_INVALID);
    refuse_faults(CPU, SP_INVALID);
    CHECK_MESSAGE("not a null device");
    refuse_faults((sp_device){~UINT64_C(0)}, SP_INVALID);
    CHECK_OK(sp_device_close(device));
    refuse_faults(device, SP_CLOSED);
    runtime_end();
}

TEST(quirks_are_listed)
{
    runtime_begin();
    const sp_device device = open_null();
    sp_device_quirk quirk;
    CHECK_OK(sp_device_get_quirk(device, 0, &quirk));
    CHECK(quirk.name[0] != '\0' && quirk.since[0] != '\0' && quirk.measure[0] != '\0');
    CHECK_STATUS(sp_device_get_quirk(device, 1, &quirk), SP_NOT_FOUND);
    CHECK(quirk.name == NULL);
    CHECK_STATUS(sp_device_get_quirk(CPU, 0, &quirk), SP_NOT_FOUND);
    CHECK_STATUS(sp_device_get_quirk(CPU, 0, NULL), SP_INVALID);
    CHECK_OK(sp_device_close(device));
    runtime_end();
}

typedef struct running {
    sp_atomic_u32 now;
    sp_atomic_u32 most;
} running;

typedef struct running_constants {
    running *r;
} running_constants;

static sp_status note_running(const sp_tile *tile)
{
    running *r = ((const running_constants *)tile->constants)->r;
    const uint32_t now = sp_fetch_add_acq_rel(&r->now, 1) + 1;
    uint32_t most = sp_load_relaxed(&r->most);
    while (most < now && !sp_cas_relaxed(&r->most, &most, now)) {
    }
    sp_clock_sleep(MILLISECOND); /* long enough for others to enter, if they may */
    sp_fetch_sub_acq_rel(&r->now, 1);
    return SP_OK;
}

TEST(forced_safe_paths_let_one_command_with_a_quirk_run_at_a_time)
{
    static const sp_kernel kernel = {.name = "quirky", .run = note_running, .quirk = 1};
    CHECK(setenv("STREAMPOOL_FORCE_SAFE_PATHS", "1", 1) == 0);
    runtime_begin();
    const sp_device device = open_null();
    sp_device_quirk quirk;
    CHECK_OK(sp_device_get_quirk(device, 0, &quirk));
    CHECK_EQ_U64(quirk.limit, 1);
    running r = {0};
    const running_constants constants = {&r};
    const sp_command command = {.type = SP_COMMAND_DISPATCH,
                                .kernel = &kernel,
                                .grid = {1, 1, 1},
                                .constants = &constants,
                                .constant_bytes = sizeof constants};
    const sp_submission submission = {.commands = &command, .command_count = 1};
    sp_stream streams[4];
    for (int i = 0; i < 4; i++) streams[i] = new_stream_on(device);
    for (int i = 0; i < 16; i++) {
        sp_stream_ref ref;
        sp_point point;
        CHECK_OK(sp__stream_find(streams[i % 4], &ref));
        CHECK_OK(sp__submit_plain(&ref, &submission, &point));
    }
    CHECK_OK(sp_device_synchronize(device));
    CHECK_EQ_U64(sp_load_relaxed(&r.most), 1);
    for (int i = 0; i < 4; i++) CHECK_OK(sp_stream_release(streams[i]));
    CHECK_OK(sp_device_close(device));
    runtime_end();
    CHECK(unsetenv("STREAMPOOL_FORCE_SAFE_PATHS") == 0);
}

TEST_MAIN
