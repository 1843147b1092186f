/* SPDX-License-Identifier: Apache-2.0 */
/* The harness: finds the tests between the linker's __start_ and __stop_ symbols, runs them in
 * sequence in this process, and counts. */
#include "support/test.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/thread.h"

#define TEST_EXIT_SKIPPED 77
/* Limits the output of a failing check in a hot loop. */
#define MAX_PRINTED_FAILURES 20

/* The linker names these. NOLINTBEGIN(readability-identifier-naming) */
extern const test_case *const __start_sp_test_cases[];
extern const test_case *const __stop_sp_test_cases[];
/* NOLINTEND(readability-identifier-naming) */

/* Failed checks of the running test; written by any thread, read by the main thread after joining
 * them. */
static sp_atomic_u64 failure_count;
static bool is_skipped;

static void report_failure(const char *file, int line, const char *format, ...) SP_PRINTF(3, 4);

static void report_failure(const char *file, int line, const char *format, ...)
{
    const uint64_t before = sp_fetch_add_relaxed(&failure_count, 1);
    if (before > MAX_PRINTED_FAILURES) return;
    char message[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    const bool is_last = before == MAX_PRINTED_FAILURES;
    printf("  %s:%d: %s\n", file, line, is_last ? "further failures are not printed" : message);
}

bool test_check_true(const char *file, int line, const char *text, bool value)
{
    if (!value) report_failure(file, line, "%s is false", text);
    return value;
}

bool test_check_int(const char *file, int line, const char *text, int64_t actual, int64_t expected)
{
    if (actual == expected) return true;
    report_failure(file, line, "%s is %" PRId64 ", expected %" PRId64, text, actual, expected);
    return false;
}

bool test_check_u64(const char *file, int line, const char *text, uint64_t actual,
                    uint64_t expected)
{
    if (actual == expected) return true;
    report_failure(file, line,
                   "%s is %" PRIu64 " (0x%" PRIx64 "), expected %" PRIu64 " (0x%" PRIx64 ")", text,
                   actual, actual, expected, expected);
    return false;
}

bool test_check_str(const char *file, int line, const char *text, const char *actual,
                    const char *expected)
{
    const bool both = actual != NULL && expected != NULL;
    if (both ? strcmp(actual, expected) == 0 : actual == expected) return true;
    report_failure(file, line, "%s is \"%s\", expected \"%s\"", text,
                   actual != NULL ? actual : "(null)", expected != NULL ? expected : "(null)");
    return false;
}

bool test_check_mem(const char *file, int line, const char *text, const void *actual,
                    const void *expected, size_t bytes)
{
    const unsigned char *a = actual;
    const unsigned char *e = expected;
    /* Not byte by byte before there is a difference, which instrumented code takes long for. */
    if (bytes == 0 || memcmp(a, e, bytes) == 0) return true;
    size_t at = 0;
    while (a[at] == e[at]) ++at;
    report_failure(file, line, "%s: byte %zu of %zu is 0x%02x, expected 0x%02x", text, at, bytes,
                   a[at], e[at]);
    return false;
}

bool test_check_status(const char *file, int line, const char *text, sp_status actual,
                       sp_status expected)
{
    if (actual == expected) return true;
    report_failure(file, line, "%s gives %s, expected %s; last error: %s", text,
                   sp_status_name(actual), sp_status_name(expected), sp_last_error());
    return false;
}

bool test_check_message(const char *file, int line, const char *part)
{
    const char *message = sp_last_error();
    if (strstr(message, part) != NULL) return true;
    report_failure(file, line, "last error is \"%s\", expected it to contain \"%s\"", message,
                   part);
    return false;
}

void test_skip(const char *why)
{
    is_skipped = true;
    printf("  skipped: %s\n", why);
}

void test_note(const char *format, ...)
{
    char message[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    printf("  %s\n", message);
}

double test_scale(void)
{
    const char *text = getenv("STREAMPOOL_TEST_SCALE");
    if (text == NULL || text[0] == '\0') return 1.0;
    char *end = NULL;
    const double scale = strtod(text, &end);
    if (*end == '\0' && scale >= 0.0) return scale;
    fprintf(stderr, "STREAMPOOL_TEST_SCALE=%s is not a number >= 0\n", text);
    exit(EXIT_FAILURE);
}

uint64_t test_count(uint64_t full, uint64_t quick)
{
    const double count = (double)quick * test_scale();
    if (count >= (double)full) return full;
    return count < 1.0 ? 1 : (uint64_t)count;
}

/* ---- threads ---- */

typedef struct start_barrier {
    sp_mutex lock;
    sp_cond opened;
    uint32_t missing SP_GUARDED_BY(lock); /* threads that have not arrived yet */
    test_thread_fn fn;
    void *arg;
} start_barrier;

typedef struct barrier_thread {
    sp_thread thread;
    start_barrier *barrier;
    uint32_t index;
} barrier_thread;

static void run_behind_barrier(void *opaque)
{
    barrier_thread *self = opaque;
    start_barrier *barrier = self->barrier;
    sp_mutex_lock(&barrier->lock);
    if (--barrier->missing == 0) sp_cond_broadcast(&barrier->opened);
    while (barrier->missing > 0) sp_cond_wait(&barrier->opened, &barrier->lock);
    sp_mutex_unlock(&barrier->lock);
    barrier->fn(barrier->arg, self->index);
}

void test_threads(uint32_t count, test_thread_fn fn, void *arg)
{
    start_barrier barrier = {.missing = count, .fn = fn, .arg = arg};
    sp_mutex_init(&barrier.lock, SP_LOCK_FOREIGN);
    sp_cond_init(&barrier.opened);
    barrier_thread *threads = calloc(count > 0 ? count : 1, sizeof *threads);
    if (threads == NULL) abort();
    for (uint32_t i = 0; i < count; ++i) {
        threads[i].barrier = &barrier;
        threads[i].index = i;
        if (sp_thread_create(&threads[i].thread, "test", run_behind_barrier, &threads[i]) == SP_OK)
            continue;
        /* Ends the process: the started threads would wait for this one for ever. */
        fprintf(stderr, "cannot start thread %" PRIu32 ": %s\n", i, sp_last_error());
        abort();
    }
    for (uint32_t i = 0; i < count; ++i) sp_thread_join(&threads[i].thread);
    free(threads);
    sp_cond_deinit(&barrier.opened);
    sp_mutex_deinit(&barrier.lock);
}

/* ---- running ---- */

typedef struct totals {
    uint64_t passed, failed, skipped;
} totals;

static bool is_chosen(const char *name, int argc, char **argv)
{
    const char *first = getenv("STREAMPOOL_TEST_ONLY");
    if (first != NULL && strncmp(name, first, strlen(first)) != 0) return false;
    bool has_names = false; /* of tests to run */
    for (int i = 1; i < argc; ++i) {
        const bool is_left_out = argv[i][0] == '-';
        if (strcmp(argv[i] + is_left_out, name) == 0) return !is_left_out;
        has_names |= !is_left_out;
    }
    return !has_names;
}

/* The compiler may emit the entries in any order. */
static int compare_by_line(const void *left, const void *right)
{
    const test_case *a = *(const test_case *const *)left;
    const test_case *b = *(const test_case *const *)right;
    const int by_file = strcmp(a->file, b->file);
    return by_file != 0 ? by_file : (a->line > b->line) - (a->line < b->line);
}

static void run_test(const test_case *test, totals *sums)
{
    sp_store_relaxed(&failure_count, 0);
    is_skipped = false;
    const uint64_t start = sp_clock_now();
    test->run();
    const double seconds = (double)(sp_clock_now() - start) / 1e9;
    const char *verdict = "passed";
    if (sp_load_relaxed(&failure_count) > 0) {
        verdict = "FAILED";
        ++sums->failed;
    } else if (is_skipped) {
        verdict = "skipped";
        ++sums->skipped;
    } else {
        ++sums->passed;
    }
    printf("%-7s %s (%.3f s)\n", verdict, test->name, seconds);
}

int test_run_all(int argc, char **argv)
{
    /* Line-buffered, so that a crash or a time-out does not lose earlier lines. */
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    const size_t count = (size_t)(__stop_sp_test_cases - __start_sp_test_cases);
    const test_case **tests = calloc(count > 0 ? count : 1, sizeof(const test_case *));
    if (tests == NULL) return EXIT_FAILURE;
    memcpy(tests, __start_sp_test_cases, count * sizeof(const test_case *));
    qsort(tests, count, sizeof(const test_case *), compare_by_line);
    totals sums = {0};
    uint64_t run_count = 0;
    for (size_t i = 0; i < count; ++i) {
        if (!is_chosen(tests[i]->name, argc, argv)) continue;
        ++run_count;
        run_test(tests[i], &sums);
    }
    free(tests);
    printf("%" PRIu64 " passed, %" PRIu64 " failed, %" PRIu64 " skipped\n", sums.passed,
           sums.failed, sums.skipped);
    if (run_count == 0) {
        fprintf(stderr, "no test of that name\n");
        return EXIT_FAILURE;
    }
    if (sums.failed > 0) return EXIT_FAILURE;
    return sums.passed == 0 ? TEST_EXIT_SKIPPED : EXIT_SUCCESS;
}
