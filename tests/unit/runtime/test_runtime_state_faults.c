/* SPDX-License-Identifier: Apache-2.0 */
/* Every command of every public call fails once: the failure is reported, nothing is leaked, and
 * later calls work. */
#include "runtime_calls.h"

#include "device/null/null.h"

typedef struct attempt {
    const public_call *call;
    call_context context;
    sp_dev *dev;
} attempt;

/* Checks all statuses that may report a failure, first the call's own. */
static bool is_told(attempt *self)
{
    bool is_told = false;
    sp_status statuses[4] = {SP_OK};
    sp_stream other;
    void *data;
    CHECK_OK(sp_stream_default(self->context.device, &other));
    statuses[0] = self->call->run(&self->context);
    statuses[1] = sp_stream_synchronize(self->context.stream);
    statuses[2] = sp_stream_synchronize(other);
    statuses[3] = sp_storage_host_begin(self->context.a, SP_READ, &data);
    if (statuses[3] == SP_OK) CHECK_OK(sp_storage_host_end(self->context.a, SP_READ));
    for (size_t i = 0; i < SP_COUNT_OF(statuses); i++) {
        if (statuses[i] == SP_OK) continue;
        CHECK_STATUS(statuses[i], SP_FAILED);
        is_told = true;
    }
    if (is_told) CHECK_MESSAGE("injected fault");
    return is_told;
}

/* Overwriting clears the poison of the failed command; then all calls work. */
static void expect_recovery(attempt *self)
{
    fill(self->context.stream, self->context.a, 5);
    CHECK_EQ_INT(first_other(self->context.a, 5), -1);
    const sp_status again = self->call->run(&self->context);
    if (again != SP_OK) test_note("%s", self->call->name);
    CHECK_STATUS(again, SP_OK);
    for (uint32_t i = 0; i < public_call_count; i++) {
        const sp_status status = public_calls[i].run(&self->context);
        if (status != SP_OK) test_note("%s after %s", public_calls[i].name, self->call->name);
        CHECK_STATUS(status, SP_OK);
    }
    CHECK_OK(sp_device_synchronize(self->context.device));
    CHECK_EQ_INT(first_other(self->context.b, 1), -1);
    copy(self->context.stream, self->context.a, self->context.b);
    CHECK_EQ_INT(first_other(self->context.a, 1), -1);
}

/* True while there are commands left to fail. */
static bool fail_command(const public_call *call, uint64_t skip)
{
    runtime_begin();
    set_delays(0);
    attempt self = {.call = call};
    const sp_device device = open_null();
    self.dev = rt_device(device)->dev;
    call_context_init_on(&self.context, device);
    CHECK_OK(sp_device_synchronize(device));
    sp__null_fail_command(self.dev, skip);
    const bool was_told = is_told(&self);
    const bool has_failed = sp__null_has_failed_command(self.dev);
    sp__null_fail_command(self.dev, UINT64_MAX);
    if (was_told != has_failed) test_note("%s after %llu", call->name, (unsigned long long)skip);
    CHECK(was_told == has_failed);
    expect_recovery(&self);
    call_context_deinit(&self.context);
    CHECK_OK(sp_device_close(device));
    runtime_end();
    return has_failed;
}

TEST(each_command_of_each_call_fails_once)
{
    uint64_t failed = 0;
    for (uint32_t i = 0; i < public_call_count; i++) {
        uint64_t skip = 0;
        while (skip < 100 && fail_command(&public_calls[i], skip)) skip++;
        CHECK(skip < 100);
        failed += skip;
    }
    test_note("%llu commands of %u calls failed", (unsigned long long)failed, public_call_count);
    CHECK(failed >= 5); /* copy, fill, timed record, and two of the list */
}

/* The failure precedes the call: waits report it, everything else is unaffected. */
TEST(a_command_that_failed_before_a_call_leaves_the_call_right)
{
    for (uint32_t i = 0; i < public_call_count; i++) {
        runtime_begin();
        attempt self = {.call = &public_calls[i]};
        const sp_device device = open_null();
        self.dev = rt_device(device)->dev;
        call_context_init_on(&self.context, device);
        CHECK_OK(sp_device_synchronize(device));
        sp__null_fail_command(self.dev, 0);
        fill(self.context.stream, self.context.a, 9);
        CHECK_OK(sp_event_record(self.context.event, self.context.stream));
        CHECK_OK(sp_event_record(self.context.timed[1], self.context.stream));
        CHECK(is_told(&self));
        CHECK_OK(sp_event_record(self.context.event, self.context.stream));
        CHECK_OK(sp_event_record(self.context.timed[1], self.context.stream));
        expect_recovery(&self);
        call_context_deinit(&self.context);
        CHECK_OK(sp_device_close(device));
        runtime_end();
    }
}

TEST_MAIN
