/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks and process state: the signals of their thread, children that they fork. primitive: the
 * signal mask belongs to the system's threads. */
#include "runtime_fixture.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/child.h"

/* ---- every kind of callback on a host thread of the library ---- */

typedef struct callback {
    void (*body)(struct callback *self);
    int result;
    sp_atomic_u32 calls;
} callback;

static void run_body(callback *self)
{
    self->body(self);
    raise_by_one(&self->calls);
}

static void host_function(void *ctx, sp_status status)
{
    CHECK_OK(status);
    run_body(ctx);
}

static void release_memory(void *ctx, void *data)
{
    (void)data;
    run_body(ctx);
}

/* Nothing waits for the stream, so no waiting thread runs it. */
static void call_host_function(callback *self)
{
    const sp_stream stream = new_stream();
    CHECK_OK(sp_stream_host_function(stream, host_function, self));
    CHECK_OK(sp_stream_flush(stream));
    await_at_least(&self->calls, 1);
    CHECK_OK(sp_stream_release(stream));
}

static void call_event_callback(callback *self)
{
    sp_event event;
    const sp_stream stream = new_stream();
    CHECK_OK(sp_event_create(NULL, &event));
    CHECK_OK(sp_event_record(event, stream));
    CHECK_OK(sp_event_on_complete(event, host_function, self));
    await_at_least(&self->calls, 1);
    CHECK_OK(sp_event_release(event));
    CHECK_OK(sp_stream_release(stream));
}

static void call_release(callback *self)
{
    static unsigned char bytes[64];
    const sp_adopt_options options = {.release = release_memory, .ctx = self};
    sp_storage storage;
    CHECK_OK(sp_storage_adopt(CPU, bytes, sizeof bytes, &options, &storage));
    CHECK_OK(sp_storage_release(storage));
    await_at_least(&self->calls, 1);
}

/* Runs the body in each kind of callback; returns its `result`, which must be the same in all. */
static int result_of(void (*body)(callback *self))
{
    void (*const kinds[3])(callback *) = {call_host_function, call_event_callback, call_release};
    int result = 0;
    runtime_begin();
    for (int i = 0; i < 3; i++) {
        callback self = {.body = body};
        kinds[i](&self);
        if (i > 0) CHECK_EQ_INT(self.result, result);
        result = self.result;
    }
    CHECK_OK(sp_shutdown());
    runtime_end();
    return result;
}

/* On the test's own thread, which waits for the function. */
static int result_in_place(void (*body)(callback *self))
{
    callback self = {.body = body};
    busy_worker worker = {0};
    runtime_begin_with(&(runtime_setting){.workers = "1"});
    const sp_stream stream = new_stream();
    occupy_worker(&worker);
    CHECK_OK(sp_stream_host_function(stream, host_function, &self));
    CHECK_OK(sp_stream_synchronize(stream));
    CHECK_EQ_U64(info_of(stream).by_host, 0);
    free_worker(&worker);
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
    return self.result;
}

/* ---- signals ---- */

static bool is_blocked(int signal)
{
    sigset_t mask;
    CHECK(pthread_sigmask(SIG_BLOCK, NULL, &mask) == 0);
    return sigismember(&mask, signal) == 1;
}

static void look_at_signals(callback *self)
{
    self->result = (is_blocked(SIGTERM) ? 1 : 0) + (is_blocked(SIGUSR1) ? 2 : 0);
}

TEST(a_callback_on_a_thread_of_the_library_has_all_signals_blocked)
{
    CHECK_EQ_INT(result_of(look_at_signals), 3);
}

TEST(a_function_in_place_has_the_signals_of_its_thread)
{
    sigset_t one;
    sigset_t before;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    CHECK(pthread_sigmask(SIG_SETMASK, &one, &before) == 0);
    CHECK_EQ_INT(result_in_place(look_at_signals), 2);
    CHECK(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
}

/* As stream.h requires. */
static int unblock_and_terminate(void *arg)
{
    sigset_t none;
    (void)arg;
    signal(SIGTERM, SIG_DFL);
    if (!is_blocked(SIGTERM)) return 1;
    if (raise(SIGTERM) != 0) return 2; /* is pending now */
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
    return 3;
}

static void fork_to_terminate(callback *self)
{
    self->result = child_run(unblock_and_terminate, NULL);
}

TEST(a_child_of_a_callback_inherits_the_blocked_signals_and_may_unblock_them)
{
    CHECK_EQ_INT(result_of(fork_to_terminate), 1000 + SIGTERM);
}

/* ---- children that end their thread ---- */

static void leave_with_seven(void)
{
    _exit(7);
}

/* The child's only thread, so the child exits. */
static int end_thread(void *arg)
{
    (void)arg;
    if (atexit(leave_with_seven) != 0) return 1;
    sp_thread_exit();
}

static void fork_to_end_thread(callback *self)
{
    self->result = child_run(end_thread, NULL);
}

TEST(a_child_of_a_callback_exits_when_it_ends_its_thread)
{
    if (is_thread_sanitized()) SKIP("it crashes where a thread ends in a child that it forked");
    CHECK_EQ_INT(result_of(fork_to_end_thread), 7);
}

TEST(a_child_of_a_function_in_place_exits_when_it_ends_its_thread)
{
    CHECK_EQ_INT(result_in_place(fork_to_end_thread), 7);
}

TEST_MAIN
