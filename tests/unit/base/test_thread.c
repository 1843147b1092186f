/* SPDX-License-Identifier: Apache-2.0 */
/* Threads and their slots. primitive: reads the system's view of a thread, and makes the system
 * refuse one. */
#include "base/thread.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/heap.h"
#include "support/test.h"

static sp_status run_thread(sp_thread_fn fn, void *arg)
{
    sp_thread thread;
    const sp_status status = sp_thread_create(&thread, "sp-test", fn, arg);
    if (status == SP_OK) sp_thread_join(&thread);
    return status;
}

/* ---- the main thread ---- */

static void ask_is_main(void *arg)
{
    *(bool *)arg = sp_thread_is_main();
}

/* First in the file: no earlier call may have fixed the answer. */
TEST(a_thread_that_asks_first_is_not_main)
{
    bool is_main = true;
    CHECK_OK(run_thread(ask_is_main, &is_main));
    CHECK(!is_main);
    CHECK(sp_thread_is_main());
    CHECK_OK(run_thread(ask_is_main, &is_main));
    CHECK(!is_main);
}

/* ---- create and join ---- */

static void double_it(void *arg)
{
    *(uint64_t *)arg *= 2;
}

TEST(a_joined_threads_writes_are_visible)
{
    uint64_t value = 1;
    for (int i = 0; i < 10; i++) CHECK_OK(run_thread(double_it, &value));
    CHECK_EQ_U64(value, 1024);
}

/* ---- threads that end during a call ---- */

typedef struct way_out {
    void (*end)(void);
    char steps[8]; /* in the order in which they were made */
    bool has_returned;
} way_out;

static void note_step(way_out *self, char step)
{
    self->steps[strlen(self->steps)] = step;
}

static bool inner_ended(void *arg)
{
    note_step(arg, 'i');
    return false;
}

static bool outer_ended(void *arg)
{
    note_step(arg, 'o');
    return false;
}

static void slot_ended(void *arg)
{
    note_step(arg, 's');
}

static void end_here(void *arg)
{
    way_out *self = arg;
    note_step(self, 'e');
    if (self->end != NULL) self->end();
}

static void guard_inner(void *arg)
{
    sp_thread_guard(end_here, inner_ended, arg);
}

static void guard_twice(void *arg)
{
    way_out *self = arg;
    CHECK(sp_tls_set(SP_TLS_USER, self, slot_ended));
    sp_thread_guard(guard_inner, outer_ended, self);
    self->has_returned = true;
}

static void cancel_self(void)
{
    pthread_cancel(pthread_self());
    for (;;) pthread_testcancel();
}

static void exit_by_pthread(void)
{
    pthread_exit(NULL);
}

TEST(guards_are_told_that_their_thread_ends_the_innermost_first)
{
    void (*const ends[])(void) = {sp_thread_exit, exit_by_pthread, cancel_self};
    for (size_t i = 0; i < SP_COUNT_OF(ends); i++) {
        way_out self = {.end = ends[i]};
        CHECK_OK(run_thread(guard_twice, &self));
        CHECK_EQ_STR(self.steps, "eios"); /* before the slots' destructors */
        CHECK(!self.has_returned);
    }
    way_out self = {.end = NULL};
    CHECK_OK(run_thread(guard_twice, &self));
    CHECK_EQ_STR(self.steps, "es");
    CHECK(self.has_returned);
}

static void cancel_and_return(void)
{
    pthread_cancel(pthread_self());
}

static void cancel_and_refuse(void)
{
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_cancel(pthread_self());
}

TEST(a_cancellation_that_is_pending_when_a_guarded_call_returns_acts_inside_the_guard)
{
    void (*const ends[])(void) = {cancel_and_return, cancel_and_refuse};
    for (size_t i = 0; i < SP_COUNT_OF(ends); i++) {
        way_out self = {.end = ends[i]};
        CHECK_OK(run_thread(guard_twice, &self));
        CHECK_EQ_STR(self.steps, "eios");
        CHECK(!self.has_returned);
    }
}

static bool outer_stays(void *arg)
{
    note_step(arg, 'o');
    return true;
}

static void guard_and_stay(void *arg)
{
    way_out *self = arg;
    CHECK(sp_tls_set(SP_TLS_USER, self, slot_ended));
    for (int i = 0; i < 2; i++) sp_thread_guard(guard_inner, outer_stays, self);
    self->has_returned = true;
}

TEST(a_thread_that_its_outermost_guard_keeps_goes_on_and_may_end_again)
{
    void (*const ends[])(void) = {sp_thread_exit, exit_by_pthread};
    for (size_t i = 0; i < SP_COUNT_OF(ends); i++) {
        way_out self = {.end = ends[i]};
        CHECK_OK(run_thread(guard_and_stay, &self));
        CHECK_EQ_STR(self.steps, "eioeios");
        CHECK(self.has_returned);
    }
}

static void end_often(void *arg)
{
    (void)arg;
    way_out self = {.end = exit_by_pthread};
    for (uint64_t i = 0; i < test_count(100000, 10000); i++) {
        memset(self.steps, 0, sizeof self.steps);
        sp_thread_guard(guard_inner, outer_stays, &self);
    }
}

TEST(ends_that_a_guard_stops_leave_nothing_on_the_stack)
{
    CHECK_OK(run_thread(end_often, NULL));
}

static void do_nothing(void *unused)
{
    (void)unused;
}

static void cancel_outside(void *arg)
{
    way_out *self = arg;
    pthread_cancel(pthread_self());
    pthread_testcancel();
    note_step(self, 'x');
    sp_thread_guard(end_here, inner_ended, self);
    self->has_returned = true;
}

TEST(a_thread_of_the_library_is_cancelled_inside_a_guard_only)
{
    way_out self = {.end = NULL};
    CHECK_OK(run_thread(cancel_outside, &self));
    CHECK_EQ_STR(self.steps, "xei");
    CHECK(!self.has_returned);
}

static void allow_here(void *arg)
{
    (void)arg;
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
}

static void *refuse_cancellation(void *arg)
{
    way_out *self = arg;
    int state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_cancel(pthread_self());
    sp_thread_guard(allow_here, inner_ended, self);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    self->has_returned = state == PTHREAD_CANCEL_DISABLE;
    return NULL;
}

TEST(a_guard_leaves_the_cancellation_state_of_a_foreign_thread_as_it_was)
{
    way_out self = {.end = NULL};
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, refuse_cancellation, &self) == 0);
    pthread_join(thread, NULL);
    CHECK_EQ_STR(self.steps, "");
    CHECK(self.has_returned);
}

static void *wait_while_cancelled(void *arg)
{
    way_out *self = arg;
    sp_thread other;
    void *bytes;
    size_t len;
    CHECK_OK(sp_thread_create(&other, "sp-test", do_nothing, NULL));
    pthread_cancel(pthread_self());
    sp_clock_sleep(1);
    note_step(self, 'c');
    sp_thread_join(&other);
    note_step(self, 'j');
    CHECK_STATUS(sp_file_read("/nonexistent", &bytes, &len), SP_IO);
    note_step(self, 'f');
    pthread_testcancel();
    self->has_returned = true;
    return NULL;
}

TEST(the_systems_calls_of_base_are_no_cancellation_points)
{
    way_out self = {.end = NULL};
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, wait_while_cancelled, &self) == 0);
    pthread_join(thread, NULL);
    CHECK_EQ_STR(self.steps, "cjf");
    CHECK(!self.has_returned);
}

static void end_slot_early(void *arg)
{
    way_out *self = arg;
    CHECK(sp_tls_set(SP_TLS_USER, self, slot_ended));
    sp_tls_end(SP_TLS_USER);
    CHECK(sp_tls_get(SP_TLS_USER) == NULL);
    note_step(self, 'x');
    sp_tls_end(SP_TLS_USER);
}

TEST(a_slot_that_is_ended_early_is_ended_once)
{
    way_out self = {.end = NULL};
    CHECK_OK(run_thread(end_slot_early, &self));
    CHECK_EQ_STR(self.steps, "sx");
}

static bool read_line(const char *path, const char *start, char *out, size_t bytes)
{
    FILE *file = fopen(path, "r");
    if (file == NULL) return false;
    bool is_found = false;
    while (!is_found && fgets(out, (int)bytes, file) != NULL) {
        is_found = strncmp(out, start, strlen(start)) == 0;
    }
    fclose(file);
    out[strcspn(out, "\n")] = '\0';
    return is_found;
}

typedef struct view {
    char name[64];
    char blocked[64];
    uint64_t number;
    uint64_t system_number;
} view;

static void look_at_self(void *arg)
{
    view *v = arg;
    v->number = sp_thread_number();
    v->system_number = (uint64_t)gettid();
    CHECK(read_line("/proc/thread-self/comm", "", v->name, sizeof v->name));
    CHECK(read_line("/proc/thread-self/status", "SigBlk:", v->blocked, sizeof v->blocked));
}

TEST(a_thread_has_its_name_its_number_and_no_signals)
{
    view v;
    sp_thread thread;
    REQUIRE_OK(sp_thread_create(&thread, "a-name-that-is-too-long", look_at_self, &v));
    sp_thread_join(&thread);
    CHECK_EQ_STR(v.name, "a-name-that-is-");
    CHECK_EQ_U64(v.number, v.system_number);
    CHECK(v.number != sp_thread_number());
    /* All that can be blocked: all except SIGKILL, SIGSTOP, and two that the C library uses. */
    CHECK_EQ_STR(strchr(v.blocked, 'f'), "fffffffe7ffbfeff");
    char here[64];
    CHECK(read_line("/proc/thread-self/status", "SigBlk:", here, sizeof here));
    CHECK(strcmp(here, v.blocked) != 0); /* the creator's mask is unchanged */
}

static sp_atomic_u64 numbers[16];

static void note_number(void *arg, uint32_t index)
{
    (void)arg;
    sp_store_relaxed(&numbers[index], sp_thread_number());
}

/* All exist when the first one compares: test_threads waits until the last one has started. */
TEST(running_threads_have_different_numbers)
{
    test_threads(16, note_number, NULL);
    for (int i = 0; i < 16; i++) {
        CHECK(sp_load_relaxed(&numbers[i]) != sp_thread_number());
        for (int k = 0; k < i; k++) {
            CHECK(sp_load_relaxed(&numbers[i]) != sp_load_relaxed(&numbers[k]));
        }
    }
}

TEST(the_core_count_is_what_the_process_may_use)
{
    cpu_set_t all;
    REQUIRE(sched_getaffinity(0, sizeof all, &all) == 0);
    CHECK_EQ_U64(sp_thread_core_count(), (uint64_t)CPU_COUNT(&all));
    cpu_set_t one;
    CPU_ZERO(&one);
    for (size_t i = 0; i < CPU_SETSIZE; i++) {
        if (!CPU_ISSET(i, &all)) continue;
        CPU_SET(i, &one);
        break;
    }
    REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
    CHECK_EQ_U64(sp_thread_core_count(), 1);
    CHECK(sched_setaffinity(0, sizeof all, &all) == 0);
}

TEST(a_thread_without_memory_is_an_error)
{
    uint64_t value = 1;
    sp_heap_fail_after(0);
    const sp_status status = run_thread(double_it, &value);
    sp_heap_fail_after(UINT64_MAX);
    CHECK_STATUS(status, SP_OUT_OF_MEMORY);
    CHECK_EQ_U64(value, 1);
}

TEST(a_thread_that_the_system_refuses_is_an_error)
{
    pthread_attr_t usual;
    pthread_attr_t absurd;
    REQUIRE(pthread_getattr_default_np(&usual) == 0);
    REQUIRE(pthread_getattr_default_np(&absurd) == 0);
    /* No address space can hold this stack. */
    REQUIRE(pthread_attr_setstacksize(&absurd, (size_t)1 << 48) == 0);
    REQUIRE(pthread_setattr_default_np(&absurd) == 0);
    uint64_t value = 1;
    CHECK_STATUS(run_thread(double_it, &value), SP_EXHAUSTED);
    CHECK_MESSAGE("sp-test");
    CHECK(pthread_setattr_default_np(&usual) == 0);
    CHECK_OK(run_thread(double_it, &value));
    CHECK_EQ_U64(value, 2);
    pthread_attr_destroy(&absurd);
    pthread_attr_destroy(&usual);
}

/* ---- slots ---- */

static struct {
    uint32_t order[16]; /* slots whose destructors ran */
    uint32_t count;
    uint32_t again; /* how often the user slot is still set again */
} ended;            /* written by one thread at a time, which is joined */

static void note_end(void *value)
{
    ended.order[ended.count++] = *(const uint32_t *)value;
}

static const uint32_t slot_numbers[SP_TLS_COUNT] = {0, 1, 2, 3, 4, 5, 6};

static void set_slot(uint32_t slot, void (*destructor)(void *))
{
    CHECK(sp_tls_set((sp_tls_slot)slot, (void *)(uintptr_t)&slot_numbers[slot], destructor));
}

static void set_some_slots(void *unused)
{
    (void)unused;
    set_slot(SP_TLS_WAITER, note_end);
    set_slot(SP_TLS_USER, note_end);
    set_slot(SP_TLS_ERROR_SCOPE, NULL);
    set_slot(SP_TLS_STREAM, note_end);
}

TEST(destructors_run_when_the_thread_ends_highest_slot_first)
{
    memset(&ended, 0, sizeof ended);
    CHECK_OK(run_thread(set_some_slots, NULL));
    REQUIRE_EQ_U64(ended.count, 3);
    CHECK_EQ_U64(ended.order[0], SP_TLS_USER);
    CHECK_EQ_U64(ended.order[1], SP_TLS_STREAM);
    CHECK_EQ_U64(ended.order[2], SP_TLS_WAITER);
}

static void replace_and_clear(void *unused)
{
    (void)unused;
    set_slot(SP_TLS_USER, note_end);
    set_slot(SP_TLS_STREAM, note_end);
    CHECK(sp_tls_set(SP_TLS_USER, NULL, NULL));
    CHECK(sp_tls_set(SP_TLS_STREAM, (void *)(uintptr_t)&slot_numbers[0], note_end));
    CHECK(sp_tls_get(SP_TLS_USER) == NULL);
    CHECK(sp_tls_get(SP_TLS_STREAM) == &slot_numbers[0]);
}

TEST(a_value_that_was_replaced_or_taken_out_is_not_destroyed)
{
    memset(&ended, 0, sizeof ended);
    CHECK_OK(run_thread(replace_and_clear, NULL));
    REQUIRE_EQ_U64(ended.count, 1);
    CHECK_EQ_U64(ended.order[0], 0);
}

static void set_again(void *value)
{
    CHECK(sp_tls_get(SP_TLS_USER) == NULL); /* empty while its destructor runs */
    note_end(value);
    if (ended.again == 0) return;
    ended.again--;
    set_slot(SP_TLS_USER, set_again);
    set_slot(SP_TLS_WAITER, note_end); /* a lower slot, which this round still reaches */
}

static void set_user_slot(void *unused)
{
    (void)unused;
    set_slot(SP_TLS_USER, set_again);
}

TEST(a_slot_that_a_destructor_sets_again_is_destroyed_again)
{
    memset(&ended, 0, sizeof ended);
    ended.again = 2;
    CHECK_OK(run_thread(set_user_slot, NULL));
    REQUIRE_EQ_U64(ended.count, 5);
    static const uint32_t expected[] = {SP_TLS_USER, SP_TLS_WAITER, SP_TLS_USER, SP_TLS_WAITER,
                                        SP_TLS_USER};
    CHECK_EQ_MEM(ended.order, expected, sizeof expected);
}

static sp_atomic_u64 destroyed_count;

static void count_destroyed(void *value)
{
    sp_fetch_add_relaxed(&destroyed_count, *(const uint64_t *)value);
}

static void use_slots(void *arg, uint32_t index)
{
    static const uint64_t one = 1;
    (void)arg;
    (void)index;
    /* A thread that reuses another's number or stack inherits none of its values. */
    for (int slot = 0; slot < SP_TLS_COUNT; slot++) {
        REQUIRE(sp_tls_get((sp_tls_slot)slot) == NULL);
    }
    CHECK(sp_tls_set(SP_TLS_USER, (void *)(uintptr_t)&one, count_destroyed));
    CHECK(sp_tls_get(SP_TLS_USER) == &one);
}

TEST(short_threads_start_with_empty_slots_and_leave_none_behind)
{
    const uint64_t rounds = test_count(100000 / 8, 250);
    sp_store_relaxed(&destroyed_count, 0);
    for (uint64_t i = 0; i < rounds; i++) test_threads(8, use_slots, NULL);
    CHECK_EQ_U64(sp_load_relaxed(&destroyed_count), 8 * rounds);
    CHECK(sp_tls_get(SP_TLS_USER) == NULL);
}

TEST_MAIN
