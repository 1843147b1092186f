/* SPDX-License-Identifier: Apache-2.0 */
/* The log: levels, callbacks, and replacing a callback that is running. */
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/option.h"
#include "base/thread.h"
#include "support/test.h"

typedef struct recorder {
    sp_atomic_u64 count;
    sp_log_level level; /* of the last message; read only when one thread logs */
    char message[SP_LOG_MESSAGE_BYTES];
} recorder;

static void record(void *ctx, sp_log_level level, const char *message)
{
    recorder *self = ctx;
    sp_fetch_add_relaxed(&self->count, 1);
    self->level = level;
    snprintf(self->message, sizeof self->message, "%s", message);
}

/* A known state: no callback, STREAMPOOL_LOG as given, nothing read yet. */
static void reset(const char *variable)
{
    if (variable != NULL) {
        setenv("STREAMPOOL_LOG", variable, 1);
    } else {
        unsetenv("STREAMPOOL_LOG");
    }
    sp__option_reset();
    sp__log_reset();
}

static void begin(const char *variable, sp_log_fn fn, void *ctx)
{
    reset(variable);
    sp_log_set_callback(fn, ctx);
}

static int evaluations;

static int evaluate(void)
{
    return ++evaluations;
}

TEST(warnings_are_logged_by_default)
{
    recorder seen = {0};
    begin(NULL, record, &seen);
    SP_LOG(SP_LOG_INFO, "the first message reads the option");
    CHECK_EQ_U64(sp_load_relaxed(&seen.count), 0);
    SP_LOG(SP_LOG_WARN, "seen");
    CHECK_EQ_STR(seen.message, "seen");
    reset(NULL);
}

TEST(what_is_not_logged_is_not_evaluated)
{
    recorder seen = {0};
    begin("off", record, &seen);
    SP_LOG(SP_LOG_ERROR, "the first message reads the option");
    evaluations = 0;
    SP_LOG(SP_LOG_ERROR, "%d", evaluate());
    CHECK_EQ_INT(evaluations, 0);
    CHECK_EQ_U64(sp_load_relaxed(&seen.count), 0);
    reset(NULL);
}

TEST(the_variable_sets_the_level)
{
    recorder seen = {0};
    begin("warn", record, &seen);
    SP_LOG(SP_LOG_WARN, "device %s has %d streams", "cpu", 32);
    CHECK_EQ_STR(seen.message, "device cpu has 32 streams");
    CHECK_EQ_INT(seen.level, SP_LOG_WARN);
    SP_LOG(SP_LOG_INFO, "too much");
    SP_LOG(SP_LOG_ERROR, "error");
    CHECK_EQ_STR(seen.message, "error");
    CHECK_EQ_U64(sp_load_relaxed(&seen.count), 2);
    reset(NULL);
}

TEST(set_level_beats_the_variable)
{
    recorder seen = {0};
    begin("debug", record, &seen);
    sp_log_set_level(SP_LOG_ERROR);
    SP_LOG(SP_LOG_WARN, "hidden");
    SP_LOG(SP_LOG_ERROR, "shown");
    CHECK_EQ_U64(sp_load_relaxed(&seen.count), 1);
    sp_log_set_level((sp_log_level)77);
    SP_LOG(SP_LOG_ERROR, "hidden");
    CHECK_EQ_U64(sp_load_relaxed(&seen.count), 1);
    reset(NULL);
}

TEST(a_long_message_is_cut)
{
    recorder seen = {0};
    begin("error", record, &seen);
    char text[2 * SP_LOG_MESSAGE_BYTES];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    SP_LOG(SP_LOG_ERROR, "%s", text);
    CHECK_EQ_U64(strlen(seen.message), SP_LOG_MESSAGE_BYTES - 1);
    reset(NULL);
}

static void log_again(void *ctx, sp_log_level level, const char *message)
{
    SP_LOG(SP_LOG_ERROR, "from inside");
    record(ctx, level, message);
}

TEST(what_a_callback_would_log_is_dropped)
{
    recorder seen = {0};
    begin("error", log_again, &seen);
    SP_LOG(SP_LOG_ERROR, "outer");
    CHECK_EQ_U64(sp_load_relaxed(&seen.count), 1);
    CHECK_EQ_STR(seen.message, "outer");
    reset(NULL);
}

static void replace_itself(void *ctx, sp_log_level level, const char *message)
{
    (void)level, (void)message;
    sp_log_set_callback(record, ctx);
}

TEST(a_callback_may_replace_itself)
{
    recorder seen = {0};
    begin("error", replace_itself, &seen);
    SP_LOG(SP_LOG_ERROR, "first");
    CHECK_EQ_U64(sp_load_relaxed(&seen.count), 0);
    SP_LOG(SP_LOG_ERROR, "second");
    CHECK_EQ_STR(seen.message, "second");
    reset(NULL);
}

/* A callback that takes long enough for the replacement to begin its wait; otherwise the test
 * proves less. */
typedef struct slow_callback {
    sp_atomic_u32 is_inside;
    sp_atomic_u32 has_left;
} slow_callback;

static void stay_a_while(void *ctx, sp_log_level level, const char *message)
{
    (void)level, (void)message;
    slow_callback *self = ctx;
    sp_store_release(&self->is_inside, 1);
    sp_clock_sleep(20000000);
    sp_store_release(&self->has_left, 1);
}

static void log_or_replace(void *arg, uint32_t index)
{
    slow_callback *slow = arg;
    if (index == 0) {
        SP_LOG(SP_LOG_ERROR, "slow");
        return;
    }
    while (sp_load_acquire(&slow->is_inside) == 0) sp_thread_yield();
    sp_log_set_callback(NULL, NULL);
    CHECK_EQ_U64(sp_load_acquire(&slow->has_left), 1);
}

TEST(set_callback_waits_for_the_former_one)
{
    slow_callback slow = {0};
    begin("error", stay_a_while, &slow);
    test_threads(2, log_or_replace, &slow);
    CHECK_EQ_U64(sp_load_relaxed(&slow.has_left), 1);
    reset(NULL);
}

static void end_thread(void *ctx, sp_log_level level, const char *message)
{
    record(ctx, level, message);
    sp_thread_exit();
}

static void log_once(void *unused)
{
    (void)unused;
    SP_LOG(SP_LOG_ERROR, "the last words");
}

TEST(set_callback_does_not_wait_for_one_that_ended_its_thread)
{
    recorder seen = {0};
    sp_thread thread;
    begin("error", end_thread, &seen);
    for (int i = 0; i < 3; i++) {
        REQUIRE_OK(sp_thread_create(&thread, "sp-test", log_once, NULL));
        sp_thread_join(&thread);
    }
    CHECK_EQ_U64(sp_load_relaxed(&seen.count), 3);
    sp_log_set_callback(record, &seen);
    SP_LOG(SP_LOG_ERROR, "goes on");
    CHECK_EQ_STR(seen.message, "goes on");
    reset(NULL);
}

static void count_only(void *ctx, sp_log_level level, const char *message)
{
    (void)level, (void)message;
    sp_fetch_add_relaxed((sp_atomic_u64 *)ctx, 1);
}

typedef struct swap_test {
    sp_atomic_u64 total;
    sp_atomic_u32 is_done;
} swap_test;

/* Thread 0 swaps, the others log. A context is invalid once it has been replaced, so the sanitizers
 * report a late call; thread 0 waits for a call of each, so that swaps and messages overlap. */
static void log_and_swap(void *arg, uint32_t index)
{
    swap_test *test = arg;
    while (index > 0 && sp_load_acquire(&test->is_done) == 0) SP_LOG(SP_LOG_ERROR, "message");
    if (index > 0) return;
    const uint64_t rounds = test_count(20000, 100);
    for (uint64_t i = 0; i < rounds; ++i) {
        sp_atomic_u64 *counter = calloc(1, sizeof *counter);
        sp_log_set_callback(count_only, counter);
        while (sp_load_relaxed(counter) == 0) sp_thread_yield();
        sp_log_set_callback(count_only, &test->total);
        free(counter);
    }
    sp_store_release(&test->is_done, 1);
}

TEST(callbacks_can_be_swapped_while_threads_log)
{
    swap_test test = {0};
    begin("error", count_only, &test.total);
    test_threads(4, log_and_swap, &test);
    reset(NULL);
}

TEST(without_a_callback_messages_go_to_stderr)
{
    reset("info");
    FILE *const file = tmpfile();
    REQUIRE(file != NULL);
    fflush(stderr);
    const int saved = dup(STDERR_FILENO);
    dup2(fileno(file), STDERR_FILENO);
    SP_LOG(SP_LOG_INFO, "hello");
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
    char line[64] = "";
    rewind(file);
    CHECK(fgets(line, sizeof line, file) != NULL);
    fclose(file);
    CHECK_EQ_STR(line, "streampool: info: hello\n");
    reset(NULL);
}

TEST_MAIN
