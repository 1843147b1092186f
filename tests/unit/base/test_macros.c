/* SPDX-License-Identifier: Apache-2.0 */
/* The macros, above all planted bugs. */
#include "base/macros.h"

#include "base/error.h"
#include "support/test.h"

TEST(no_bug_is_enabled_that_was_not_named)
{
    CHECK_EQ_INT(SP_PLANTED(planted_elsewhere), 0);
    bool is_taken = false;
    if (SP_PLANTED(planted_elsewhere)) is_taken = true;
    CHECK(!is_taken);
}

#ifndef SP_PLANTS
_Static_assert(SP_PLANTED(planted_elsewhere) == 0, "a constant, which leaves no code");
#endif

typedef struct inner {
    int value;
} inner;

typedef struct outer {
    char before[24];
    inner member;
} outer;

TEST(the_container_of_a_member_is_its_object)
{
    outer object = {.member.value = 5};
    inner *member = &object.member;
    CHECK(SP_CONTAINER_OF(member, outer, member) == &object);
}

static int calls;

static sp_status count_and_return(sp_status status)
{
    calls++;
    return status;
}

static sp_status try_twice(sp_status first)
{
    SP_TRY(count_and_return(first));
    SP_TRY(count_and_return(SP_OK));
    return SP_BUSY;
}

TEST(try_returns_the_first_failure_and_evaluates_once)
{
    calls = 0;
    CHECK_STATUS(try_twice(SP_OK), SP_BUSY);
    CHECK_EQ_INT(calls, 2);
    CHECK_STATUS(try_twice(SP_IO), SP_IO);
    CHECK_EQ_INT(calls, 3);
}

TEST(likely_and_unlikely_keep_the_truth)
{
    for (int i = -2; i <= 2; i++) {
        CHECK_EQ_INT(SP_LIKELY(i), i != 0);
        CHECK_EQ_INT(SP_UNLIKELY(i), i != 0);
    }
}

TEST(counts_are_of_elements)
{
    const uint32_t array[7] = {0};
    CHECK_EQ_U64(SP_COUNT_OF(array), 7);
}

typedef struct lines {
    char first;
    SP_CACHE_ALIGNED char second;
} lines;

TEST(aligned_members_start_a_cache_line)
{
    CHECK_EQ_U64(offsetof(lines, second), SP_CACHE_LINE);
    CHECK_EQ_U64(_Alignof(lines), SP_CACHE_LINE);
    CHECK_EQ_U64(sizeof(lines), 2 * SP_CACHE_LINE);
}

TEST_MAIN
