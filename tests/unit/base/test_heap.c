/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation, and allocation that fails on request. */
#include "base/heap.h"

#include <string.h>

#include "base/atomic.h"
#include "support/test.h"

TEST(no_bytes_give_a_pointer_that_may_be_freed)
{
    void *a = sp_malloc(0);
    void *b = sp_calloc(0, 8);
    void *c = sp_aligned_malloc(64, 0);
    void *d = sp_realloc(sp_malloc(8), 0);
    CHECK(a != NULL && b != NULL && c != NULL && d != NULL);
    sp_free(a);
    sp_free(b);
    sp_free(c);
    sp_free(d);
    sp_free(NULL);
}

TEST(calloc_is_zeroed_and_checks_the_product)
{
    for (size_t count = 1; count < 2000; count *= 3) {
        unsigned char *bytes = sp_malloc(count * 7);
        REQUIRE(bytes != NULL);
        memset(bytes, 0xff, count * 7);
        sp_free(bytes);
        bytes = sp_calloc(count, 7);
        REQUIRE(bytes != NULL);
        for (size_t i = 0; i < count * 7; i++) REQUIRE_EQ_U64(bytes[i], 0);
        sp_free(bytes);
    }
    volatile size_t half = SIZE_MAX / 2; /* volatile: compilers reject visibly absurd sizes */
    CHECK(sp_calloc(half, 3) == NULL);
    CHECK(sp_calloc(3, half) == NULL);
}

TEST(realloc_keeps_the_contents)
{
    char *text = sp_strdup("0123456789");
    REQUIRE(text != NULL);
    text = sp_realloc(text, 1 << 20);
    REQUIRE(text != NULL);
    CHECK_EQ_STR(text, "0123456789");
    sp_free(text);
    void *fresh = sp_realloc(NULL, 16);
    CHECK(fresh != NULL);
    sp_free(fresh);
}

TEST(aligned_blocks_are_aligned)
{
    for (size_t alignment = 8; alignment <= 65536; alignment *= 2) {
        void *block = sp_aligned_malloc(alignment, 24);
        REQUIRE(block != NULL);
        CHECK_EQ_U64((uintptr_t)block % alignment, 0);
        sp_free(block);
    }
}

TEST(a_copy_of_a_text_is_its_own)
{
    char text[] = "streams";
    char *copy = sp_strdup(text);
    REQUIRE(copy != NULL);
    text[0] = 'X';
    CHECK_EQ_STR(copy, "streams");
    sp_free(copy);
}

typedef void *(*allocate_fn)(void);

static void *by_malloc(void)
{
    return sp_malloc(8);
}

static void *by_calloc(void)
{
    return sp_calloc(2, 8);
}

static void *by_realloc(void)
{
    return sp_realloc(NULL, 8);
}

static void *by_aligned_malloc(void)
{
    return sp_aligned_malloc(64, 8);
}

static void *by_strdup(void)
{
    return sp_strdup("text");
}

TEST(each_way_to_allocate_fails_once_where_asked)
{
    static const allocate_fn ways[] = {by_malloc, by_calloc, by_realloc, by_aligned_malloc,
                                       by_strdup};
    for (size_t way = 0; way < SP_COUNT_OF(ways); way++) {
        for (uint64_t skip = 0; skip < 5; skip++) {
            sp_heap_fail_after(skip);
            CHECK(!sp_heap_has_failed());
            for (uint64_t i = 0; i < 10; i++) {
                void *block = ways[way]();
                CHECK((block == NULL) == (i == skip));
                CHECK_EQ_INT(sp_heap_has_failed(), i >= skip);
                sp_free(block);
            }
        }
    }
    sp_heap_fail_after(UINT64_MAX);
}

TEST(a_failed_realloc_leaves_the_block)
{
    char *text = sp_strdup("still here");
    REQUIRE(text != NULL);
    sp_heap_fail_after(0);
    CHECK(sp_realloc(text, 1 << 16) == NULL);
    sp_heap_fail_after(UINT64_MAX);
    CHECK_EQ_STR(text, "still here");
    sp_free(text);
}

TEST(an_array_grows_and_keeps_its_elements)
{
    uint32_t *numbers = NULL;
    uint32_t capacity = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        uint32_t *grown = sp_grow(numbers, i, &capacity, sizeof *grown);
        REQUIRE(grown != NULL && capacity > i);
        numbers = grown;
        numbers[i] = i;
    }
    for (uint32_t i = 0; i < 1000; i++) CHECK_EQ_U64(numbers[i], i);
    sp_free(numbers);
}

TEST(an_array_that_cannot_grow_stays)
{
    uint32_t capacity = 0;
    uint32_t *numbers = sp_grow(NULL, 0, &capacity, sizeof *numbers);
    REQUIRE(numbers != NULL);
    numbers[0] = 7;
    const uint32_t before = capacity;
    sp_heap_fail_after(0);
    CHECK(sp_grow(numbers, 1, &capacity, sizeof *numbers) == numbers); /* allocates nothing */
    CHECK(sp_grow(numbers, before, &capacity, sizeof *numbers) == NULL);
    sp_heap_fail_after(UINT64_MAX);
    CHECK_EQ_U64(capacity, before);
    CHECK_EQ_U64(numbers[0], 7);
    capacity = (uint32_t)1 << 31; /* as if it were that large: it cannot double */
    CHECK(sp_grow(numbers, capacity, &capacity, sizeof *numbers) == NULL);
    CHECK_EQ_U64(capacity, (uint32_t)1 << 31);
    sp_free(numbers);
}

TEST(off_is_off_and_has_not_failed)
{
    sp_heap_fail_after(0);
    sp_heap_fail_after(UINT64_MAX);
    CHECK(!sp_heap_has_failed());
    for (int i = 0; i < 100; i++) {
        void *block = sp_malloc(8);
        CHECK(block != NULL);
        sp_free(block);
    }
    CHECK(!sp_heap_has_failed());
}

#define THREADS 8

static void allocate_some(void *arg, uint32_t index)
{
    (void)index;
    sp_atomic_u64 *failures = arg;
    for (int i = 0; i < 1000; i++) {
        void *block = sp_malloc(16);
        if (block == NULL) sp_fetch_add_relaxed(failures, (uint64_t)1);
        sp_free(block);
    }
}

TEST(of_all_threads_exactly_one_meets_the_failure)
{
    const uint64_t rounds = test_count(1000, 20);
    for (uint64_t round = 0; round < rounds; round++) {
        sp_atomic_u64 failures = {0};
        /* The harness's own threads make the first few allocations. */
        sp_heap_fail_after(THREADS + round % 1000);
        test_threads(THREADS, allocate_some, &failures);
        CHECK(sp_heap_has_failed());
        sp_heap_fail_after(UINT64_MAX);
        CHECK_EQ_U64(sp_load_relaxed(&failures), 1);
    }
}

TEST_MAIN
