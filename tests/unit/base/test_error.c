/* SPDX-License-Identifier: Apache-2.0 */
/* The last error of a thread. */
#include "base/error.h"

#include <stdio.h>
#include <string.h>

#include "base/atomic.h"
#include "base/heap.h"
#include "base/thread.h"
#include "support/test.h"

static void on_new_thread(void (*fn)(void *arg, uint32_t index))
{
    test_threads(1, fn, NULL);
}

static void check_fresh(void *arg, uint32_t index)
{
    (void)arg, (void)index;
    CHECK_EQ_STR(sp_last_error(), "");
}

TEST(a_thread_starts_with_an_empty_message)
{
    sp__fail(SP_INVALID, "an error of another thread");
    on_new_thread(check_fresh);
}

TEST(fail_formats_the_message_and_returns_the_status)
{
    CHECK_STATUS(sp__fail(SP_NOT_FOUND, "no tensor '%s' among %d", "x", 3), SP_NOT_FOUND);
    CHECK_EQ_STR(sp_last_error(), "no tensor 'x' among 3");
    CHECK_STATUS(sp__fail(SP_BUSY, "second"), SP_BUSY);
    CHECK_EQ_STR(sp_last_error(), "second");
}

TEST(a_constant_text_is_the_message)
{
    CHECK_STATUS(sp__fail_text(SP_BUSY, "100% busy"), SP_BUSY);
    CHECK_EQ_STR(sp_last_error(), "100% busy");
}

TEST(a_long_message_is_cut)
{
    char text[2 * SP_ERROR_BYTES];
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    sp__fail(SP_IO, "%s", text);
    CHECK_EQ_U64(strlen(sp_last_error()), SP_ERROR_BYTES - 1);
    sp__fail_prefix(SP_IO, "%s", text);
    CHECK_EQ_U64(strlen(sp_last_error()), SP_ERROR_BYTES - 1);
}

TEST(a_message_has_a_file_until_the_next)
{
    int code = 7;
    sp__fail(SP_IO, "none");
    CHECK(sp_last_error_file(&code) == NULL);
    CHECK_EQ_INT(code, 7);
    char name[2 * SP_ERROR_BYTES];
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    sp__fail(SP_IO, "cannot open");
    CHECK_STATUS(sp__fail_add_file(SP_IO, NULL, name, 2), SP_IO);
    sp__fail_prefix(SP_IO, "tensor: ");
    CHECK_EQ_STR(sp_last_error_file(&code), name);
    CHECK_EQ_INT(code, 2);
    sp__fail(SP_IO, "cannot open");
    sp__fail_add_file(SP_IO, "folder", "file", 3);
    CHECK_EQ_STR(sp_last_error_file(NULL), "folder/file");
    sp__fail_text(SP_BUSY, "busy");
    CHECK(sp_last_error_file(&code) == NULL);
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    sp__fail(SP_IO, "cannot open");
    sp__fail_add_file(SP_IO, NULL, "file", 3);
    sp__error_put_back(&scope);
    CHECK(sp_last_error_file(&code) == NULL);
}

TEST(prefixes_stand_in_front)
{
    sp__fail(SP_MISMATCH, "shape [2, 3] is not [3, 2]");
    CHECK_STATUS(sp__fail_prefix(SP_MISMATCH, "node %d (%s): ", 3, "Conv"), SP_MISMATCH);
    sp__fail_prefix(SP_MISMATCH, "model 'm': ");
    CHECK_EQ_STR(sp_last_error(), "model 'm': node 3 (Conv): shape [2, 3] is not [3, 2]");
    sp__fail(SP_MISMATCH, "copied: %s", sp_last_error());
    CHECK_EQ_STR(sp_last_error(), "copied: model 'm': node 3 (Conv): shape [2, 3] is not [3, 2]");
}

static void prefix_nothing(void *arg, uint32_t index)
{
    (void)arg, (void)index;
    sp__fail_prefix(SP_TIMEOUT, "stream 4: ");
    CHECK_EQ_STR(sp_last_error(), "stream 4: timed out");
}

TEST(a_prefix_without_a_message_gets_the_text_of_the_status)
{
    on_new_thread(prefix_nothing);
}

static void fail_without_memory(void *arg, uint32_t index)
{
    (void)arg, (void)index;
    sp_heap_fail_after(0);
    CHECK_STATUS(sp__fail(SP_DEVICE_LOST, "details"), SP_DEVICE_LOST);
    CHECK(sp_heap_has_failed());
    CHECK_EQ_STR(sp_last_error(), sp_status_text(SP_DEVICE_LOST));
    sp_heap_fail_after(0);
    sp__fail((sp_status)1000, "details");
    CHECK_EQ_STR(sp_last_error(), sp_status_text(SP_INTERNAL));
    sp_heap_fail_after(UINT64_MAX);
    sp__fail(SP_DEVICE_LOST, "details");
    CHECK_EQ_STR(sp_last_error(), "details");
}

TEST(without_memory_the_text_of_the_status_serves)
{
    on_new_thread(fail_without_memory);
}

static void fail_often(void *arg, uint32_t index)
{
    (void)arg;
    const uint64_t rounds = test_count(20000, 2000);
    for (uint64_t i = 0; i < rounds; ++i) {
        char expected[64];
        snprintf(expected, sizeof expected, "thread %u round %llu", index, (unsigned long long)i);
        sp__fail(SP_FAILED, "thread %u round %llu", index, (unsigned long long)i);
        if ((i & 15) == 0) sp_thread_yield();
        CHECK_EQ_STR(sp_last_error(), expected);
    }
}

TEST(what_fails_in_a_scope_leaves_the_last_error_as_it_was)
{
    sp_error_scope outer;
    sp_error_scope inner;
    sp__fail(SP_INVALID, "mine");
    const char *text = sp_last_error();
    sp__error_set_aside(&outer);
    sp__fail(SP_FAILED, "another's");
    CHECK_EQ_STR(sp_last_error(), "another's");
    sp__error_set_aside(&inner);
    sp__fail(SP_FAILED, "a third one's");
    sp__fail_prefix(SP_FAILED, "again: ");
    CHECK_EQ_STR(sp_last_error(), "again: a third one's");
    sp__error_put_back(&inner);
    CHECK_EQ_STR(sp_last_error(), "another's");
    sp__error_put_back(&outer);
    CHECK_EQ_STR(text, "mine");
    sp__error_set_aside(&outer);
    sp__error_put_back(&outer);
    CHECK_EQ_STR(sp_last_error(), "mine");
}

TEST(a_scope_that_keeps_its_error_hands_the_former_one_to_the_scope_around_it)
{
    sp_error_scope outer;
    sp_error_scope inner;
    sp__fail(SP_INVALID, "mine");
    sp__error_set_aside(&outer);
    sp__error_set_aside(&inner);
    sp__fail(SP_OUT_OF_MEMORY, "the call's");
    sp__error_keep(&inner);
    CHECK_EQ_STR(sp_last_error(), "the call's");
    sp__error_put_back(&outer);
    CHECK_EQ_STR(sp_last_error(), "mine");
    sp__error_set_aside(&outer);
    sp__fail(SP_OUT_OF_MEMORY, "kept");
    sp__error_keep(&outer);
    CHECK_EQ_STR(sp_last_error(), "kept");
}

TEST(of_some_attempts_the_last_one_counts)
{
    sp_error_scope scope;
    sp__fail(SP_INVALID, "before");
    sp__error_set_aside(&scope);
    sp__fail(SP_FAILED, "first attempt");
    CHECK_STATUS(sp__error_settle(&scope, SP_OK), SP_OK);
    CHECK_EQ_STR(sp_last_error(), "before");
    sp__error_set_aside(&scope);
    CHECK_STATUS(sp__error_settle(&scope, sp__fail(SP_BUSY, "the only attempt")), SP_BUSY);
    CHECK_EQ_STR(sp_last_error(), "the only attempt");
}

static void fail_in_a_scope(void *arg, uint32_t index)
{
    sp_error_scope scope;
    const bool has_memory = *(const bool *)arg;
    (void)index;
    if (!has_memory) sp_heap_fail_after(0);
    sp__error_set_aside(&scope);
    sp__fail(SP_FAILED, "another's");
    CHECK_EQ_STR(sp_last_error(), has_memory ? "another's" : sp_status_text(SP_FAILED));
    sp__error_put_back(&scope);
    CHECK_EQ_STR(sp_last_error(), "");
    sp_heap_fail_after(UINT64_MAX);
    sp__fail(SP_BUSY, "mine");
    CHECK_EQ_STR(sp_last_error(), "mine");
}

TEST(a_thread_that_never_failed_has_an_empty_message_after_a_scope)
{
    for (int i = 0; i < 2; i++) {
        const bool has_memory = i == 1;
        test_threads(1, fail_in_a_scope, (void *)(uintptr_t)&has_memory);
    }
}

TEST(threads_keep_their_own_messages)
{
    test_threads(8, fail_often, NULL);
}

static void fail_in_destructor(void *value)
{
    (void)value;
    CHECK_STATUS(sp__fail(SP_CLOSED, "late"), SP_CLOSED);
    CHECK_EQ_STR(sp_last_error(), "late");
}

static void leave_destructor(void *arg, uint32_t index)
{
    sp__fail(SP_FAILED, "early");
    CHECK(sp_tls_set(SP_TLS_USER, arg, fail_in_destructor));
    (void)index;
}

TEST(a_destructor_of_the_thread_may_fail_too)
{
    int anything = 0;
    test_threads(4, leave_destructor, &anything);
}

TEST_MAIN
