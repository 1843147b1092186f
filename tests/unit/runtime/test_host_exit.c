/* SPDX-License-Identifier: Apache-2.0 */
/* Host functions and callbacks that end their thread instead of returning.
 * primitive: cancels a thread, which the library itself never does. */
#include "runtime_fixture.h"

#include <pthread.h>

#include "base/heap.h"

/* ---- on the host executor ---- */

static void end_thread(void *ctx, sp_status status)
{
    (void)status;
    if (ctx != NULL) raise_by_one(ctx);
    sp_thread_exit();
}

static void cancel_thread(void *ctx, sp_status status)
{
    (void)ctx, (void)status;
    pthread_cancel(pthread_self());
    for (;;) pthread_testcancel();
}

static void cancel_and_return(void *ctx, sp_status status)
{
    (void)ctx, (void)status;
    pthread_cancel(pthread_self());
}

static void cancel_and_refuse(void *ctx, sp_status status)
{
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    cancel_and_return(ctx, status);
}

static void count_call(void *ctx, sp_status status)
{
    CHECK_OK(status);
    raise_by_one(ctx);
}

/* No thread helps: the executor runs it. */
static void await_function(sp_stream stream, sp_host_function fn)
{
    sp_event event;
    CHECK_OK(sp_event_create(NULL, &event));
    CHECK_OK(sp_stream_host_function(stream, fn, NULL));
    CHECK_OK(sp_event_record(event, stream));
    CHECK_STATUS(sp_event_synchronize_for(event, 30 * SECOND), SP_FAILED);
    CHECK_MESSAGE("ended its thread");
    CHECK_OK(sp_event_release(event));
}

static void check_fails_alone(sp_host_function fn)
{
    runtime_begin();
    const sp_stream stream = new_stream();
    const sp_stream other = new_stream();
    const sp_storage storage = new_storage(64);
    sp_atomic_u32 calls = {0};
    for (int i = 0; i < 3; i++) {
        await_function(stream, fn);
        CHECK_STATUS(sp_stream_synchronize(stream), SP_FAILED);
        CHECK_MESSAGE("ended its thread");
        /* The stream and others continue, and functions run. */
        fill(stream, storage, 4);
        CHECK_EQ_INT(first_other(storage, 4), -1);
        CHECK_OK(sp_stream_host_function(other, count_call, &calls));
        CHECK_OK(sp_stream_synchronize_for(other, 30 * SECOND));
        CHECK_OK(sp_stream_synchronize(stream));
    }
    CHECK_EQ_U64(sp_load_acquire(&calls), 3);
    CHECK_OK(sp_storage_release(storage));
    CHECK_OK(sp_stream_release(stream));
    CHECK_OK(sp_stream_release(other));
    CHECK_OK(sp_shutdown());
    runtime_end();
}

TEST(a_host_function_that_ends_its_thread_has_failed_and_all_else_goes_on)
{
    check_fails_alone(end_thread);
}

TEST(a_host_function_whose_thread_is_cancelled_has_failed_and_all_else_goes_on)
{
    check_fails_alone(cancel_thread);
}

TEST(a_host_function_that_returns_with_a_cancellation_pending_has_failed_and_no_other)
{
    check_fails_alone(cancel_and_return);
    check_fails_alone(cancel_and_refuse);
}

static void end_in_release(void *ctx, void *data)
{
    (void)data;
    raise_by_one(ctx);
    sp_thread_exit();
}

TEST(callbacks_that_end_their_thread_do_not_stop_the_next_ones)
{
    enum { ROUNDS = 20 };
    runtime_begin();
    unsigned char bytes[64];
    sp_atomic_u32 calls = {0};
    const sp_stream stream = new_stream();
    sp_event event;
    CHECK_OK(sp_event_create(NULL, &event));
    CHECK_OK(sp_event_record(event, stream));
    const sp_adopt_options options = {.release = end_in_release, .ctx = &calls};
    for (int i = 0; i < ROUNDS; i++) {
        sp_storage storage;
        CHECK_OK(sp_event_on_complete(event, end_thread, &calls));
        CHECK_OK(sp_storage_adopt(CPU, bytes, sizeof bytes, &options, &storage));
        CHECK_OK(sp_storage_release(storage));
        CHECK_OK(sp_event_on_complete(event, count_call, &calls));
    }
    await_at_least(&calls, 3 * ROUNDS);
    CHECK_OK(sp_event_release(event));
    CHECK_OK(sp_stream_release(stream));
    CHECK_OK(sp_shutdown());
    runtime_end();
    CHECK_EQ_U64(sp_load_acquire(&calls), 3 * ROUNDS);
}

typedef struct inherited {
    uint64_t first;
    uint64_t second;
    sp_atomic_u32 calls;
} inherited;

static void end_without_memory(void *ctx, sp_status status)
{
    inherited *self = ctx;
    (void)status;
    self->first = sp_thread_number();
    sp_heap_fail_after(0);
    raise_by_one(&self->calls);
    sp_thread_exit();
}

static void note_second(void *ctx, sp_status status)
{
    inherited *self = ctx;
    (void)status;
    self->second = sp_thread_number();
    raise_by_one(&self->calls);
}

TEST(a_thread_without_a_successor_serves_on)
{
    runtime_begin();
    gate blocker = gate_closed(CPU);
    inherited self = {.calls = {0}};
    const sp_stream stream = new_stream();
    sp_event event;
    CHECK_OK(sp_event_create(NULL, &event));
    gate_hold(&blocker, stream);
    CHECK_OK(sp_event_record(event, stream));
    CHECK_OK(sp_event_on_complete(event, end_without_memory, &self));
    CHECK_OK(sp_event_on_complete(event, note_second, &self));
    gate_open(&blocker);
    await_at_least(&self.calls, 2);
    CHECK_EQ_U64(self.second, self.first);
    CHECK_OK(sp_event_release(event));
    gate_destroy(&blocker);
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
}

TEST(a_thread_without_a_successor_survives_any_number_of_ends)
{
    enum { ENDS = 1000 };
    runtime_begin();
    gate blocker = gate_closed(CPU);
    inherited self = {.calls = {0}};
    const sp_stream stream = new_stream();
    gate_hold(&blocker, stream);
    CHECK_OK(sp_stream_host_function(stream, end_without_memory, &self));
    for (int i = 1; i < ENDS; i++) {
        CHECK_OK(sp_stream_host_function(stream, end_thread, &self.calls));
    }
    gate_open(&blocker);
    await_at_least(&self.calls, ENDS);
    sp_heap_fail_after(UINT64_MAX);
    CHECK_STATUS(sp_stream_synchronize(stream), SP_FAILED);
    gate_destroy(&blocker);
    CHECK_OK(sp_stream_release(stream));
    CHECK_OK(sp_shutdown());
    runtime_end();
}

/* ---- on the thread that waits ---- */

typedef struct in_place {
    sp_stream stream;
    sp_storage storage;
    busy_worker worker;
    sp_host_function function;
    uint64_t ran_on;
    uint64_t submitter;
    bool has_returned;
} in_place;

static void note_and_end(void *ctx, sp_status status)
{
    in_place *self = ctx;
    (void)status;
    self->ran_on = sp_thread_number();
    let_worker_go(&self->worker); /* now that the function runs here */
    sp_thread_exit();
}

static void note_and_cancel(void *ctx, sp_status status)
{
    in_place *self = ctx;
    (void)status;
    self->ran_on = sp_thread_number();
    let_worker_go(&self->worker);
    pthread_cancel(pthread_self());
}

static void submit_and_synchronize(void *arg)
{
    in_place *self = arg;
    self->submitter = sp_thread_number();
    CHECK_OK(sp_stream_host_function(self->stream, self->function, self));
    fill(self->stream, self->storage, 6);
    (void)sp_stream_synchronize(self->stream);
    self->has_returned = true;
}

static void *synchronize_here(void *arg)
{
    submit_and_synchronize(arg);
    return NULL;
}

/* On a thread outside of the library, which can be cancelled by the system's default. */
static void check_leaves_stream(sp_host_function function)
{
    runtime_begin_with(&(runtime_setting){.workers = "1"});
    in_place self = {.stream = new_stream(), .storage = new_storage(64), .function = function};
    pthread_t thread;
    occupy_worker(&self.worker);
    REQUIRE(pthread_create(&thread, NULL, synchronize_here, &self) == 0);
    pthread_join(thread, NULL);
    CHECK(!self.has_returned);
    CHECK_EQ_U64(self.ran_on, self.submitter);
    CHECK_EQ_INT(first_other(self.storage, 6), -1);
    CHECK_OK(sp_stream_synchronize(self.stream)); /* only the submitter gets the failure */
    CHECK_EQ_U64(info_of(self.stream).failed, 1);
    free_worker(&self.worker);
    CHECK_OK(sp_storage_release(self.storage));
    CHECK_OK(sp_stream_release(self.stream));
    CHECK_OK(sp_shutdown());
    runtime_end();
}

TEST(a_thread_that_ends_in_its_own_function_leaves_the_stream_to_others)
{
    check_leaves_stream(note_and_end);
}

TEST(a_thread_that_is_cancelled_in_its_own_function_leaves_the_stream_to_others)
{
    check_leaves_stream(note_and_cancel);
}

static void submit_and_begin_access(void *arg)
{
    in_place *self = arg;
    void *data;
    self->submitter = sp_thread_number();
    CHECK_OK(sp_stream_host_function(self->stream, note_and_end, self));
    fill(self->stream, self->storage, 6);
    CHECK_OK(sp_storage_host_begin(self->storage, SP_WRITE, &data));
    CHECK_OK(sp_storage_host_end(self->storage, SP_WRITE));
    self->has_returned = true;
}

TEST(a_wait_that_holds_something_runs_no_functions_in_place)
{
    runtime_begin_with(&(runtime_setting){.workers = "1"});
    in_place self = {.stream = new_stream(), .storage = new_storage(64)};
    occupy_worker(&self.worker);
    run_on_thread(submit_and_begin_access, &self);
    CHECK(self.has_returned);
    CHECK(self.ran_on != self.submitter);
    CHECK_EQ_INT(first_other(self.storage, 6), -1); /* the access has been ended */
    free_worker(&self.worker);
    CHECK_OK(sp_storage_release(self.storage));
    CHECK_OK(sp_stream_release(self.stream));
    runtime_end();
}

TEST_MAIN
