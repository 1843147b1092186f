/* SPDX-License-Identifier: Apache-2.0 */
/* Fork and exit, as seen by the child and by the parent. */
#include "runtime_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "runtime/checker.h"
#include "support/child.h"

/* ---- fork ---- */

static bool is_silent(call_context *context)
{
    return sp_stream_release(context->stream) == SP_OK &&
           sp_event_release(context->event) == SP_OK &&
           sp_event_release(context->timed[0]) == SP_OK &&
           sp_storage_release(context->a) == SP_OK && sp_storage_release(context->b) == SP_OK &&
           sp_tensor_release(context->tensor) == SP_OK &&
           sp_command_list_release(context->list) == SP_OK && sp_thread_release_stream() == SP_OK &&
           sp_host_free(context) == SP_OK && sp_device_close(CPU) == SP_OK &&
           sp_shutdown() == SP_OK;
}

/* Returns 0 if all calls behave as expected; otherwise identifies the call. */
static int live_in_child(void *arg)
{
    call_context *context = arg;
    const uint64_t start = sp_clock_now();
    for (uint32_t i = 0; i < public_call_count; i++) {
        if (public_calls[i].run(context) == SP_FORKED && sp_last_error()[0] != '\0') continue;
        printf("  %s in a forked child: %s\n", public_calls[i].name, sp_last_error());
        fflush(stdout);
        return 1 + (int)i;
    }
    if (!is_silent(context)) return 200;
    if (public_calls[0].run(context) != SP_FORKED) return 201; /* also after the silent shutdown */
    if (sp_device_count() != 0) return 202;
    return sp_clock_now() - start < 5 * SECOND ? 0 : 203;
}

TEST(a_forked_child_gets_an_error_at_once_and_its_releases_are_silent)
{
    runtime_begin();
    call_context context;
    call_context_init(&context);
    CHECK_EQ_INT(child_run(live_in_child, &context), 0);
    fill(context.stream, context.a, 9);
    CHECK_EQ_INT(first_other(context.a, 9), -1);
    call_context_deinit(&context);
    runtime_end();
}

typedef struct forking {
    call_context context;
    uint32_t forks;
    sp_atomic_u32 finished;
    sp_atomic_u32 working;
    uint64_t rounds[8];
} forking;

static void work_or_fork(void *arg, uint32_t index)
{
    forking *self = arg;
    if (index == 0) {
        await_at_least(&self->working, 7);
        for (uint32_t i = 0; i < self->forks; i++) {
            CHECK_EQ_INT(child_run(live_in_child, &self->context), 0);
        }
        raise_by_one(&self->finished);
        return;
    }
    const sp_storage from = new_storage(3000);
    const sp_storage to = new_storage(3000);
    raise_by_one(&self->working);
    while (sp_load_acquire(&self->finished) == 0) {
        const uint8_t value = (uint8_t)(self->rounds[index]++ + index);
        fill(current_stream(), from, value);
        copy(current_stream(), to, from);
        CHECK_EQ_INT(first_other(to, value), -1);
    }
    CHECK_OK(sp_storage_release(from));
    CHECK_OK(sp_storage_release(to));
}

TEST(a_fork_of_a_worker_with_work_in_flight_leaves_the_parent_right)
{
    runtime_begin();
    forking self = {.forks = (uint32_t)test_count(1000, 30)};
    call_context_init(&self.context);
    test_threads(8, work_or_fork, &self);
    for (int i = 1; i < 8; i++) CHECK(self.rounds[i] > 0);
    call_context_deinit(&self.context);
    runtime_end();
}

static int use_everything(void *arg)
{
    (void)arg;
    const sp_storage storage = new_storage(64);
    fill(current_stream(), storage, 7);
    const bool is_right = first_other(storage, 7) == -1;
    sp_storage_release(storage);
    return is_right && sp_shutdown() == SP_OK ? 0 : 1;
}

TEST(a_child_forked_before_first_use_works)
{
    runtime_begin();
    CHECK_EQ_INT(child_run(use_everything, NULL), 0);
    CHECK_OK(sp_init()); /* and the parent */
    runtime_end();
}

static int init_in_child(void *arg)
{
    (void)arg;
    const sp_status status = sp_init();
    return status == SP_OK ? 0 : status == SP_FORKED ? 1 : 2;
}

static void fork_in_callback(void *ctx, sp_log_level level, const char *message)
{
    (void)level, (void)message;
    *(int *)ctx = child_run(init_in_child, NULL);
}

/* The callback runs during initialisation, at some point. */
TEST(a_child_forked_while_the_runtime_comes_up_gets_an_error_and_does_not_hang)
{
    int child = -1;
    runtime_begin_with(&(runtime_setting){.streams = "x"});
    sp_log_set_level(SP_LOG_WARN);
    sp_log_set_callback(fork_in_callback, &child);
    CHECK_OK(sp_init());
    CHECK_EQ_INT(child, 1);
    sp__log_reset();
    runtime_end();
}

typedef struct coming_up {
    sp_atomic_u32 has_begun;
    int child;
} coming_up;

static void come_up_or_fork(void *arg, uint32_t index)
{
    coming_up *self = arg;
    if (index == 0) {
        sp_store_release(&self->has_begun, 1);
        CHECK_OK(sp_init());
        return;
    }
    while (sp_load_acquire(&self->has_begun) == 0) sp_thread_yield();
    self->child = child_run(init_in_child, NULL);
}

TEST(a_child_forked_beside_a_thread_that_comes_up_works_or_gets_an_error)
{
    if (is_thread_sanitized()) SKIP("a child that works starts threads");
    const uint64_t rounds = test_count(1000, 60);
    uint64_t worked = 0;
    for (uint64_t i = 0; i < rounds; i++) {
        runtime_begin();
        coming_up self = {.child = -1};
        test_threads(2, come_up_or_fork, &self);
        CHECK(self.child == 0 || self.child == 1);
        if (self.child == 0) worked++;
        runtime_end();
    }
    test_note("%llu of %llu children came up by themselves", (unsigned long long)worked,
              (unsigned long long)rounds);
}

typedef struct setting {
    sp_atomic_u32 is_over;
    sp_atomic_u32 is_setting;
} setting;

static int set_in_child(void *arg)
{
    (void)arg;
    sp_log_set_callback(NULL, NULL);
    sp_check_set_callback(NULL, NULL);
    return 0;
}

static void set_or_fork(void *arg, uint32_t index)
{
    setting *self = arg;
    if (index == 0) {
        await_at_least(&self->is_setting, 3);
        const uint64_t forks = test_count(1000, 60);
        int child = 0;
        for (uint64_t i = 0; i < forks && child == 0; i++) child = child_run(set_in_child, NULL);
        CHECK_EQ_INT(child, 0);
        sp_store_release(&self->is_over, 1);
        return;
    }
    raise_by_one(&self->is_setting);
    while (sp_load_acquire(&self->is_over) == 0) {
        if (index % 2 == 0) sp_log_set_callback(NULL, NULL);
        if (index % 2 == 1) sp_check_set_callback(NULL, NULL);
    }
}

TEST(a_child_forked_while_others_set_callbacks_may_set_them_too)
{
    runtime_begin();
    CHECK_OK(sp_init());
    setting self = {0};
    test_threads(4, set_or_fork, &self);
    runtime_end();
}

/* ---- exit ---- */

/* Checks in a child are not counted: its exit code reports failures. */
#define WRONG 9

static sp_atomic_u32 busy_threads;

/* Fill, record, wait, compare. SP_CLOSED once the runtime has been shut down. */
static sp_status work_once(sp_storage storage, sp_event event, uint8_t value)
{
    const sp_storage_range all = {storage, 0, 10000};
    sp_stream stream;
    void *data;
    SP_TRY(sp_stream_current(CPU, &stream));
    SP_TRY(sp_storage_fill_async(stream, all, &value, 1));
    SP_TRY(sp_event_record(event, stream));
    SP_TRY(sp_event_synchronize(event));
    SP_TRY(sp_storage_host_begin(storage, SP_READ, &data));
    for (int i = 0; i < 10000; i++) {
        if (((const uint8_t *)data)[i] != value) _exit(WRONG);
    }
    return sp_storage_host_end(storage, SP_READ);
}

static void work_for_ever(void *arg)
{
    (void)arg;
    sp_storage storage;
    sp_event event;
    sp_status status = sp_storage_create(CPU, 10000, NULL, &storage);
    if (status == SP_OK) status = sp_event_create(NULL, &event);
    if (status != SP_OK) _exit(WRONG);
    raise_by_one(&busy_threads);
    for (uint8_t i = 0; status == SP_OK; i++) status = work_once(storage, event, i);
    if (status != SP_CLOSED) _exit(WRONG);
    for (;;) sp_clock_sleep(SECOND); /* alive when the process ends: not joined */
}

/* The thread that ends the process, and the way. */
typedef struct ending {
    bool is_worker;
    bool is_quick; /* _exit */
    bool has_shutdown;
} ending;

static void end_process(void *arg)
{
    const ending *how = arg;
    await_at_least(&busy_threads, 31);
    if (how->has_shutdown && sp_shutdown() != SP_OK) _exit(WRONG);
    if (how->is_quick) _exit(0);
    exit(0);
}

static int exit_while_busy(void *arg)
{
    const ending *how = arg;
    sp_thread threads[32];
    for (int i = 0; i < 31; i++) {
        if (sp_thread_create(&threads[i], "busy", work_for_ever, NULL) != SP_OK) return 2;
    }
    if (!how->is_worker) end_process(arg);
    if (sp_thread_create(&threads[31], "ender", end_process, arg) != SP_OK) return 3;
    for (;;) sp_clock_sleep(SECOND);
}

TEST(exit_while_thirty_one_threads_are_busy_is_clean)
{
    static const ending ways[] = {{false, false, false},
                                  {true, false, false},
                                  {false, true, false},
                                  {false, false, true},
                                  {true, false, true}};
    runtime_begin();
    const uint64_t rounds = test_count(100, 3);
    for (uint64_t i = 0; i < rounds * SP_COUNT_OF(ways); i++) {
        ending how = ways[i % SP_COUNT_OF(ways)];
        CHECK_EQ_INT(child_run(exit_while_busy, &how), 0);
    }
    runtime_end();
}

static void exit_inside(void *ctx, sp_status status)
{
    (void)ctx;
    exit(status == SP_OK ? 0 : WRONG);
}

/* On the library's thread: no thread waits for the stream. */
static int exit_in_host_function(void *arg)
{
    const sp_storage storage = new_storage(64);
    (void)arg;
    fill(current_stream(), storage, 1);
    if (sp_stream_host_function(current_stream(), exit_inside, NULL) != SP_OK) return WRONG;
    if (sp_stream_flush(current_stream()) != SP_OK) return WRONG;
    for (;;) sp_clock_sleep(SECOND);
}

/* On this thread or the library's, inside the wait. */
static int exit_in_host_function_while_waiting(void *arg)
{
    (void)arg;
    if (sp_stream_host_function(current_stream(), exit_inside, NULL) != SP_OK) return WRONG;
    sp_stream_synchronize(current_stream());
    return WRONG;
}

static int exit_in_callback(void *arg)
{
    sp_event event;
    (void)arg;
    if (sp_event_create(NULL, &event) != SP_OK) return WRONG;
    if (sp_event_record(event, current_stream()) != SP_OK) return WRONG;
    if (sp_event_on_complete(event, exit_inside, NULL) != SP_OK) return WRONG;
    for (;;) sp_clock_sleep(SECOND);
}

static void exit_in_owner(void *ctx, void *data)
{
    (void)data;
    exit_inside(ctx, SP_OK);
}

static int exit_in_release_callback(void *arg)
{
    static unsigned char bytes[64];
    const sp_adopt_options options = {.release = exit_in_owner};
    sp_storage storage;
    (void)arg;
    if (sp_storage_adopt(CPU, bytes, 64, &options, &storage) != SP_OK) return WRONG;
    fill(current_stream(), storage, 1);
    if (sp_storage_release(storage) != SP_OK) return WRONG;
    for (;;) sp_clock_sleep(SECOND);
}

static void never_return(void *ctx, sp_status status)
{
    (void)ctx, (void)status;
    for (;;) sp_clock_sleep(SECOND);
}

static void shut_down(void *arg)
{
    (void)arg;
    sp_shutdown(); /* waits for the host function for ever */
    _exit(WRONG);
}

static int exit_during_shutdown(void *arg)
{
    sp_thread thread;
    (void)arg;
    if (sp_stream_host_function(current_stream(), never_return, NULL) != SP_OK) return WRONG;
    if (sp_thread_create(&thread, "down", shut_down, NULL) != SP_OK) return WRONG;
    while (sp_init() == SP_OK) sp_thread_yield();
    exit(0);
}

TEST(exit_in_the_middle_of_the_librarys_work_is_clean)
{
    static int (*const ways[])(void *arg) = {exit_in_host_function,
                                             exit_in_host_function_while_waiting, exit_in_callback,
                                             exit_in_release_callback, exit_during_shutdown};
    runtime_begin();
    const uint64_t rounds = test_count(100, 5);
    for (uint64_t i = 0; i < rounds * SP_COUNT_OF(ways); i++) {
        CHECK_EQ_INT(child_run(ways[i % SP_COUNT_OF(ways)], NULL), 0);
    }
    runtime_end();
}

/* ---- thread ends during a shutdown ---- */

static void use_and_end(void *arg, uint32_t index)
{
    sp_atomic_u32 *ready = arg;
    sp_stream stream;
    if (index == 0) {
        await_at_least(ready, 8);
        CHECK_OK(sp_shutdown());
        return;
    }
    CHECK_OK(sp_stream_current(CPU, &stream));
    raise_by_one(ready);
    await_at_least(ready, 8); /* its destructors run concurrently with the shutdown */
}

TEST(threads_that_end_during_a_shutdown_touch_nothing_that_is_gone)
{
    const uint64_t rounds = test_count(2000, 100);
    for (uint64_t i = 0; i < rounds; i++) {
        runtime_begin();
        sp_atomic_u32 ready = {0};
        test_threads(9, use_and_end, &ready);
        runtime_end();
    }
}

TEST_MAIN
