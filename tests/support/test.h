/* SPDX-License-Identifier: Apache-2.0 */
/* The test harness. A program is a file of TEST(...) bodies and one TEST_MAIN; each test registers
 * itself in a linker section, and they run in the order of the source. Arguments name the tests to
 * run, or, after a '-', the tests to leave out; of these STREAMPOOL_TEST_ONLY leaves those whose
 * names begin so. Exit code: 0 all passed, 1 some failed, 77 all were skipped.
 *
 * A CHECK counts a failure and continues; a REQUIRE also returns from the calling function, which
 * must return void. Both may be used from any thread while the test's body is running. */
#ifndef SP_TESTS_SUPPORT_TEST_H
#define SP_TESTS_SUPPORT_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <streampool/status.h>

#include "base/macros.h"

typedef struct test_case {
    const char *name;
    const char *file;
    int line;
    void (*run)(void);
} test_case;

#define TEST(name)                                                                                 \
    static void test_body_##name(void);                                                            \
    static const test_case test_case_##name = {#name, __FILE__, __LINE__, test_body_##name};       \
    static const test_case *const test_entry_##name                                                \
        __attribute__((used, section("sp_test_cases"))) = &test_case_##name;                       \
    static void test_body_##name(void)

#define TEST_MAIN                                                                                  \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        return test_run_all(argc, argv);                                                           \
    }

int test_run_all(int argc, char **argv);

#define TEST_HERE_ __FILE__, __LINE__

#define CHECK(condition) ((void)test_check_true(TEST_HERE_, #condition, (condition)))
#define CHECK_EQ_INT(actual, expected)                                                             \
    ((void)test_check_int(TEST_HERE_, #actual, (actual), (expected)))
#define CHECK_EQ_U64(actual, expected)                                                             \
    ((void)test_check_u64(TEST_HERE_, #actual, (actual), (expected)))
#define CHECK_EQ_STR(actual, expected)                                                             \
    ((void)test_check_str(TEST_HERE_, #actual, (actual), (expected)))
#define CHECK_EQ_MEM(actual, expected, bytes)                                                      \
    ((void)test_check_mem(TEST_HERE_, #actual, (actual), (expected), (bytes)))
#define CHECK_STATUS(expr, expected)                                                               \
    ((void)test_check_status(TEST_HERE_, #expr, (expr), (expected)))
#define CHECK_OK(expr) CHECK_STATUS(expr, SP_OK)
/* The last error of this thread contains `part`. */
#define CHECK_MESSAGE(part) ((void)test_check_message(TEST_HERE_, (part)))

#define TEST_REQUIRE_(check)                                                                       \
    do {                                                                                           \
        if (!(check)) return;                                                                      \
    } while (0)

/* Branches on the condition itself, so that a static analyzer follows. */
#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        const bool test_is_true_ = (condition);                                                    \
        (void)test_check_true(TEST_HERE_, #condition, test_is_true_);                              \
        if (!test_is_true_) return;                                                                \
    } while (0)
#define REQUIRE_EQ_INT(actual, expected)                                                           \
    TEST_REQUIRE_(test_check_int(TEST_HERE_, #actual, (actual), (expected)))
#define REQUIRE_EQ_U64(actual, expected)                                                           \
    TEST_REQUIRE_(test_check_u64(TEST_HERE_, #actual, (actual), (expected)))
#define REQUIRE_EQ_STR(actual, expected)                                                           \
    TEST_REQUIRE_(test_check_str(TEST_HERE_, #actual, (actual), (expected)))
#define REQUIRE_EQ_MEM(actual, expected, bytes)                                                    \
    TEST_REQUIRE_(test_check_mem(TEST_HERE_, #actual, (actual), (expected), (bytes)))
#define REQUIRE_STATUS(expr, expected)                                                             \
    TEST_REQUIRE_(test_check_status(TEST_HERE_, #expr, (expr), (expected)))
#define REQUIRE_OK(expr) REQUIRE_STATUS(expr, SP_OK)

/* Ends the test (from its body only) and counts it as skipped, unless a check has failed. */
#define SKIP(why)                                                                                  \
    do {                                                                                           \
        test_skip(why);                                                                            \
        return;                                                                                    \
    } while (0)

/* Prints a line below the running test's name: figures for the log. */
void test_note(const char *format, ...) SP_PRINTF(1, 2);

/* STREAMPOOL_TEST_SCALE, 1 if unset. */
double test_scale(void);
/* A repetition count: `quick` times the scale, at least 1 and at most `full`. `make soak` sets a
 * scale at which this is `full` everywhere. */
uint64_t test_count(uint64_t full, uint64_t quick);

/* Runs fn(arg, 0) ... fn(arg, count - 1), each on its own thread, all released at once after the
 * last one has started; returns when all have ended. */
typedef void (*test_thread_fn)(void *arg, uint32_t index);
void test_threads(uint32_t count, test_thread_fn fn, void *arg);

/* Used by the macros: each returns whether the check held. */
bool test_check_true(const char *file, int line, const char *text, bool value);
bool test_check_int(const char *file, int line, const char *text, int64_t actual, int64_t expected);
bool test_check_u64(const char *file, int line, const char *text, uint64_t actual,
                    uint64_t expected);
bool test_check_str(const char *file, int line, const char *text, const char *actual,
                    const char *expected);
bool test_check_mem(const char *file, int line, const char *text, const void *actual,
                    const void *expected, size_t bytes);
bool test_check_status(const char *file, int line, const char *text, sp_status actual,
                       sp_status expected);
bool test_check_message(const char *file, int line, const char *part);
void test_skip(const char *why);

#endif
