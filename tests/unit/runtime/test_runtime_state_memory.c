/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of every public call fails once: the call reports it, nothing is lost, and the
 * next call works. Leaks are found by the sanitizer. */
#include "runtime_calls.h"

#include "base/heap.h"

typedef struct attempt {
    const public_call *call;
    call_context *context;
    uint64_t skip;
    bool has_failed; /* the armed failure happened */
} attempt;

static void make_attempt(void *arg)
{
    attempt *self = arg;
    sp_heap_fail_after(self->skip);
    const sp_status status = self->call->run(self->context);
    self->has_failed = sp_heap_has_failed();
    sp_heap_fail_after(UINT64_MAX);
    /* SP_OK: the call had an alternative, or another thread got the failure. */
    if (status != SP_OK) {
        CHECK_STATUS(status, SP_OUT_OF_MEMORY);
        CHECK(sp_last_error()[0] != '\0');
    }
    const sp_status next = self->call->run(self->context);
    if (next != SP_OK) test_note("%s after %llu", self->call->name, (unsigned long long)self->skip);
    CHECK_STATUS(next, SP_OK);
}

/* True while there are allocations left to fail. */
static bool fail_allocation(const public_call *call, uint64_t skip, bool is_on_new_thread)
{
    runtime_begin();
    set_delays(0);
    call_context context;
    call_context_init(&context);
    attempt self = {.call = call, .context = &context, .skip = skip};
    if (is_on_new_thread) {
        run_on_thread(make_attempt, &self);
    } else {
        make_attempt(&self);
    }
    call_context_deinit(&context);
    runtime_end();
    return self.has_failed;
}

static void fail_all(bool is_on_new_thread)
{
    uint64_t failed = 0;
    for (uint32_t i = 0; i < public_call_count; i++) {
        uint64_t skip = 0;
        while (skip < 1000 && fail_allocation(&public_calls[i], skip, is_on_new_thread)) skip++;
        CHECK(skip < 1000);
        failed += skip;
    }
    test_note("%llu allocations of %u calls failed", (unsigned long long)failed, public_call_count);
    CHECK(failed > 20);
}

TEST(each_allocation_of_each_call_fails_once)
{
    fail_all(false);
}

TEST(each_allocation_of_each_first_call_of_a_thread_fails_once)
{
    fail_all(true);
}

TEST(each_allocation_on_the_way_up_fails_once)
{
    uint64_t skip = 0;
    for (bool has_failed = true; has_failed; skip++) {
        runtime_begin();
        sp_heap_fail_after(skip);
        sp_stream stream;
        const sp_status status = sp_stream_current(CPU, &stream);
        has_failed = sp_heap_has_failed();
        sp_heap_fail_after(UINT64_MAX);
        if (status != SP_OK) CHECK_STATUS(status, SP_OUT_OF_MEMORY);
        CHECK_OK(sp_stream_current(CPU, &stream));
        CHECK_OK(sp_stream_synchronize(stream));
        runtime_end();
        REQUIRE(skip < 1000);
    }
    CHECK(skip > 5);
}

TEST(each_allocation_of_the_device_fails_once)
{
    runtime_begin();
    current_stream();
    for (uint64_t skip = 0; skip < 20; skip++) {
        /* Sizes with a slab of their own: each maps pages. */
        sp_storage storages[20] = {{0}};
        int failures = 0;
        sp_heap_fail_after(skip);
        for (uint64_t i = 0; i < 20; i++) {
            const sp_status status = sp_storage_create(CPU, (i + 1) << 20, NULL, &storages[i]);
            if (status == SP_OK) continue;
            failures++;
            CHECK_STATUS(status, SP_OUT_OF_MEMORY);
            CHECK_MESSAGE("no ");
        }
        sp_heap_fail_after(UINT64_MAX);
        CHECK(failures <= 1);
        for (int i = 0; i < 20; i++) CHECK_OK(sp_storage_release(storages[i]));
        CHECK_OK(sp_device_empty_cache(CPU));
    }
    runtime_end();
}

TEST_MAIN
