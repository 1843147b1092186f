/* SPDX-License-Identifier: Apache-2.0 */
/* Slow opening of GPUs: other threads open, use and shut down at the same time. */
#include "fake_cuda.h"
#include "runtime_fixture.h"
#include "thread_list.h"

typedef struct opener {
    const char *kind;
    sp_thread thread;
    sp_device device;
    sp_status status;
    sp_atomic_u32 *returned;
} opener;

static void open_it(void *arg)
{
    opener *self = arg;
    self->status = sp_device_open(self->kind, &self->device);
    raise_by_one(self->returned);
}

static void start(opener *self, const char *kind, sp_atomic_u32 *returned)
{
    *self = (opener){.kind = kind, .returned = returned};
    CHECK_OK(sp_thread_create(&self->thread, "opener", open_it, self));
}

static void await_retaining(uint64_t count)
{
    const uint64_t deadline = sp_clock_deadline(30 * SECOND);
    while (fake_cuda_retaining() < count && sp_clock_now() < deadline) sp_clock_sleep(MILLISECOND);
    CHECK_EQ_U64(fake_cuda_retaining(), count);
}

static void begin_held(void)
{
    runtime_begin();
    CHECK_OK(sp_init());
    fake_cuda_hold_retain(true);
}

static void end(void)
{
    runtime_end();
    fake_cuda_drain();
    CHECK_EQ_U64(fake_cuda_live_all(), 0);
    fake_cuda_reset();
}

TEST(other_devices_are_opened_while_a_gpu_is)
{
    begin_held();
    opener slow;
    opener others[2];
    sp_atomic_u32 slow_returned = {0};
    sp_atomic_u32 returned = {0};
    start(&slow, "cuda:0", &slow_returned);
    await_retaining(1);
    start(&others[0], "null", &returned);
    await_at_least(&returned, 1);
    start(&others[1], "cuda:1", &returned);
    await_retaining(2);
    CHECK_EQ_U64(sp_device_count(), 2); /* cpu and null */
    fake_cuda_hold_retain(false);
    for (int i = 0; i < 2; i++) {
        sp_thread_join(&others[i].thread);
        CHECK_OK(others[i].status);
    }
    sp_thread_join(&slow.thread);
    CHECK_OK(slow.status);
    CHECK_EQ_U64(sp_device_count(), 4);
    end();
}

TEST(threads_that_open_one_gpu_at_the_same_time_get_one_device)
{
    enum { OPENERS = 4 };
    begin_held();
    opener openers[OPENERS];
    sp_atomic_u32 returned = {0};
    for (int i = 0; i < OPENERS; i++) start(&openers[i], "cuda:0", &returned);
    await_retaining(1);
    await_asleep("opener", OPENERS); /* in the driver, or until the first has opened it */
    fake_cuda_hold_retain(false);
    for (int i = 0; i < OPENERS; i++) {
        sp_thread_join(&openers[i].thread);
        CHECK_OK(openers[i].status);
        CHECK_EQ_U64(openers[i].device.bits, openers[0].device.bits);
    }
    CHECK_EQ_U64(fake_cuda_live(FAKE_RETAIN), 1);
    CHECK_EQ_U64(sp_device_count(), 2);
    end();
}

TEST(the_next_thread_opens_a_gpu_that_the_first_could_not)
{
    enum { OPENERS = 3 };
    begin_held();
    opener openers[OPENERS];
    sp_atomic_u32 returned = {0};
    fake_cuda_fail_call("cuDevicePrimaryCtxRetain", 1, 1, CUDA_ERROR_OUT_OF_MEMORY);
    for (int i = 0; i < OPENERS; i++) start(&openers[i], "cuda:0", &returned);
    fake_cuda_hold_retain(false);
    uint32_t failed = 0;
    for (int i = 0; i < OPENERS; i++) {
        sp_thread_join(&openers[i].thread);
        failed += openers[i].status != SP_OK;
    }
    CHECK_EQ_U64(failed, 1);
    CHECK_EQ_U64(sp_device_count(), 2);
    end();
}

/* ---- a concurrent shutdown ---- */

typedef struct ender {
    sp_thread thread;
    sp_status status;
    uint64_t live; /* live driver objects when it returned */
    sp_atomic_u32 returned;
} ender;

static void shut_down(void *arg)
{
    ender *self = arg;
    self->status = sp_shutdown();
    self->live = fake_cuda_live(FAKE_RETAIN) + fake_cuda_retaining();
    raise_by_one(&self->returned);
}

TEST(a_shutdown_waits_for_a_gpu_that_is_being_opened_and_nothing_is_left)
{
    begin_held();
    opener one;
    ender last = {.returned = {0}};
    sp_atomic_u32 returned = {0};
    start(&one, "cuda:0", &returned);
    await_retaining(1);
    CHECK_OK(sp_thread_create(&last.thread, "ender", shut_down, &last));
    const uint64_t deadline = sp_clock_deadline(30 * SECOND);
    while (sp_init() == SP_OK && sp_clock_now() < deadline) sp_thread_yield();
    CHECK_STATUS(sp_init(), SP_CLOSED);
    sp_clock_sleep(20 * MILLISECOND); /* time for a wrong early return; no check depends on it */
    CHECK_EQ_U64(sp_load_acquire(&last.returned), 0);
    fake_cuda_hold_retain(false);
    sp_thread_join(&last.thread);
    sp_thread_join(&one.thread);
    CHECK_OK(last.status);
    CHECK_EQ_U64(last.live, 0);
    CHECK_STATUS(one.status, SP_CLOSED);
    CHECK_EQ_U64(one.device.bits, 0);
    end();
}

TEST_MAIN
