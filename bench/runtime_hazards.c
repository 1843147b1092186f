/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of tracking a storage, per command. */
#include <streampool/storage.h>

#include "base/clock.h"
#include "bench.h"
#include "device/wait.h"
#include "runtime_cases.h"

typedef struct tracked_use {
    sp_stream_ref ref;
    sp_storage storage;
    uint32_t uses;
} tracked_use;

/* An empty fill: the hazard step and the submission, no bytes. */
static void submit_use(void *ctx, uint64_t count)
{
    const tracked_use *use = ctx;
    const sp_use uses[1] = {{.storage = use->storage, .access = SP_WRITE}};
    const uint32_t pattern = 0;
    sp_command command = {
        .type = SP_COMMAND_FILL, .constants = &pattern, .constant_bytes = sizeof pattern};
    sp_point point = {0};
    bool is_right = true;
    for (uint64_t i = 0; i < count; i++) {
        is_right &= sp__submit_command(&use->ref, &command, uses, 1, NULL, &point) == SP_OK;
        if (i % 16 == 15) sp__point_wait(point, SP_NO_DEADLINE);
    }
    bench_check(is_right && sp__point_wait(point, SP_NO_DEADLINE) == SP_OK, "a tracked use");
}

/* The same command without a storage. */
static void submit_no_use(void *ctx, uint64_t count)
{
    const tracked_use *use = ctx;
    uint32_t word = 0;
    const sp_memory memory = sp__memory_at_host(NULL, &word, sizeof word);
    const sp_binding binding = {.memory = &memory, .access = SP_WRITE};
    const uint32_t pattern = 0;
    sp_command command = {.type = SP_COMMAND_FILL,
                          .bindings = &binding,
                          .binding_count = 1,
                          .constants = &pattern,
                          .constant_bytes = sizeof pattern};
    const sp_submission submission = {.commands = &command, .command_count = 1};
    sp_point point = {0};
    bool is_right = true;
    for (uint64_t i = 0; i < count; i++) {
        is_right &= sp__submit_plain(&use->ref, &submission, &point) == SP_OK;
        if (i % 16 == 15) sp__point_wait(point, SP_NO_DEADLINE);
    }
    bench_check(is_right && sp__point_wait(point, SP_NO_DEADLINE) == SP_OK, "a plain command");
}

void bench_hazards(double mutex_ns)
{
    tracked_use use = {.ref = bench_current_ref()};
    bench_check(sp_storage_create(bench_cpu, 64, NULL, &use.storage) == SP_OK, "sp_storage_create");
    const bench_pair pair = bench_pair_ns(submit_use, submit_no_use, &use);
    bench_print("tracked_use_on_own_stream", &pair.extra, "mutex lock + unlock", mutex_ns,
                2 * mutex_ns);
    sp_storage_release(use.storage);
}
