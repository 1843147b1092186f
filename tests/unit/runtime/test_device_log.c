/* SPDX-License-Identifier: Apache-2.0 */
/* Log messages about devices: opened, lost, closed with unreported failures. */
#include "runtime_fixture.h"

#include <stdio.h>
#include <string.h>

#include <streampool/log.h>
#include <streampool/null_device.h>

typedef struct lines {
    sp_atomic_u32 count; /* of messages that contain `wanted` */
    const char *wanted;
    sp_log_level level;
    char last[1024];
} lines;

static void keep(void *ctx, sp_log_level level, const char *message)
{
    lines *self = ctx;
    if (strstr(message, self->wanted) == NULL) return;
    self->level = level;
    snprintf(self->last, sizeof self->last, "%s", message);
    raise_by_one(&self->count);
}

static void begin(lines *self, sp_log_level level)
{
    runtime_begin();
    sp_log_set_level(level);
    sp_log_set_callback(keep, self);
}

static void end(void)
{
    sp_log_set_callback(NULL, NULL);
    runtime_end();
}

TEST(a_lost_device_is_logged_once_with_the_cause)
{
    lines seen = {.wanted = "is lost"};
    begin(&seen, SP_LOG_ERROR);
    const sp_device null = open_null();
    const sp_stream stream = new_stream_on(null);
    const sp_storage storage = new_storage_on(null, 64, false);
    CHECK_OK(sp_null_lose(null));
    fill(stream, storage, 1);
    CHECK_STATUS(sp_stream_synchronize(stream), SP_DEVICE_LOST);
    await_at_least(&seen.count, 1);
    CHECK_EQ_INT(seen.level, SP_LOG_ERROR);
    CHECK(strstr(seen.last, "device null:1 is lost: ") != NULL);
    CHECK_OK(sp_storage_release(storage));
    CHECK_OK(sp_stream_release(stream));
    CHECK_OK(sp_device_close(null));
    CHECK_EQ_U64(sp_load_relaxed(&seen.count), 1);
    end();
}

/* Fails two submissions, the first reported if `is_reported`, then closes. */
static void fail_and_close(lines *seen, bool is_reported)
{
    begin(seen, SP_LOG_ERROR);
    const sp_device null = open_null();
    const sp_stream stream = new_stream_on(null);
    submit_failing(stream, (sp_storage){0});
    if (is_reported) CHECK_STATUS(sp_stream_synchronize(stream), SP_FAILED);
    submit_failing(stream, (sp_storage){0});
    if (is_reported) CHECK_STATUS(sp_stream_synchronize(stream), SP_FAILED);
    CHECK_OK(sp_stream_release(stream));
    CHECK_EQ_U64(sp_load_relaxed(&seen->count), 0);
    CHECK_OK(sp_device_close(null));
    CHECK_EQ_U64(sp_load_relaxed(&seen->count), is_reported ? 0 : 1);
    CHECK_OK(sp_shutdown());
    CHECK_EQ_U64(sp_load_relaxed(&seen->count), is_reported ? 0 : 1);
    end();
}

TEST(failures_that_no_call_has_reported_are_logged_when_the_device_closes)
{
    lines seen = {.wanted = "that no call has reported"};
    fail_and_close(&seen, false);
    CHECK(strstr(seen.last, "device null:1: 2 failed submissions") != NULL);
}

TEST(failures_that_a_call_has_reported_are_not_logged)
{
    lines seen = {.wanted = "that no call has reported"};
    fail_and_close(&seen, true);
}

TEST(a_shutdown_logs_the_failures_of_devices_that_are_open)
{
    lines seen = {.wanted = "that no call has reported"};
    begin(&seen, SP_LOG_ERROR);
    const sp_stream stream = new_stream();
    submit_failing(stream, (sp_storage){0});
    CHECK_OK(sp_shutdown());
    CHECK_EQ_U64(sp_load_relaxed(&seen.count), 1);
    CHECK(strstr(seen.last, "device cpu: 1 failed submissions") != NULL);
    end();
}

TEST(a_device_that_is_opened_is_an_info)
{
    lines seen = {.wanted = "is open"};
    begin(&seen, SP_LOG_INFO);
    CHECK_OK(sp_device_close(open_null()));
    CHECK_EQ_U64(sp_load_relaxed(&seen.count), 1);
    CHECK_EQ_INT(seen.level, SP_LOG_INFO);
    CHECK(strstr(seen.last, "device null:1 is open") != NULL);
    end();
}

TEST_MAIN
