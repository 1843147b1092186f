/* SPDX-License-Identifier: Apache-2.0 */
/* Size arithmetic at its limits. */
#include "base/size.h"

#include "support/test.h"

#define UNTOUCHED UINT64_C(0x5a5a)

TEST(sums_are_exact_up_to_the_largest_number)
{
    uint64_t out = UNTOUCHED;
    CHECK(sp_size_add(0, 0, &out));
    CHECK_EQ_U64(out, 0);
    CHECK(sp_size_add(UINT64_MAX - 5, 5, &out));
    CHECK_EQ_U64(out, UINT64_MAX);
    CHECK(sp_size_add(UINT64_MAX, 0, &out));
    CHECK_EQ_U64(out, UINT64_MAX);
}

TEST(a_sum_that_wraps_is_refused_and_writes_nothing)
{
    uint64_t out = UNTOUCHED;
    CHECK(!sp_size_add(UINT64_MAX, 1, &out));
    CHECK(!sp_size_add(1, UINT64_MAX, &out));
    CHECK(!sp_size_add(UINT64_MAX, UINT64_MAX, &out));
    CHECK_EQ_U64(out, UNTOUCHED);
}

TEST(products_are_exact_up_to_the_largest_number)
{
    uint64_t out = UNTOUCHED;
    CHECK(sp_size_mul(UINT64_MAX, 0, &out));
    CHECK_EQ_U64(out, 0);
    CHECK(sp_size_mul(UINT64_MAX, 1, &out));
    CHECK_EQ_U64(out, UINT64_MAX);
    CHECK(sp_size_mul(UINT32_MAX, UINT64_C(0x100000001), &out));
    CHECK_EQ_U64(out, UINT64_MAX);
}

TEST(a_product_that_wraps_is_refused_and_writes_nothing)
{
    uint64_t out = UNTOUCHED;
    CHECK(!sp_size_mul(UINT64_C(1) << 32, UINT64_C(1) << 32, &out));
    CHECK(!sp_size_mul(UINT64_MAX, 2, &out));
    CHECK(!sp_size_mul(2, UINT64_MAX, &out));
    CHECK_EQ_U64(out, UNTOUCHED);
}

TEST(rounding_goes_up_to_the_next_multiple_only)
{
    static const struct {
        uint64_t size, alignment, rounded;
    } cases[] = {
        {0, 64, 0},
        {1, 64, 64},
        {63, 64, 64},
        {64, 64, 64},
        {65, 64, 128},
        {7, 1, 7},
        {UINT64_MAX, 1, UINT64_MAX},
        {UINT64_MAX - 63, 64, UINT64_MAX - 63},
        {1, UINT64_C(1) << 63, UINT64_C(1) << 63},
    };
    for (size_t i = 0; i < SP_COUNT_OF(cases); i++) {
        uint64_t out = UNTOUCHED;
        CHECK(sp_size_align(cases[i].size, cases[i].alignment, &out));
        CHECK_EQ_U64(out, cases[i].rounded);
    }
}

TEST(rounding_past_the_largest_number_is_refused_and_writes_nothing)
{
    uint64_t out = UNTOUCHED;
    CHECK(!sp_size_align(UINT64_MAX, 2, &out));
    CHECK(!sp_size_align(UINT64_MAX - 62, 64, &out));
    CHECK(!sp_size_align((UINT64_C(1) << 63) + 1, UINT64_C(1) << 63, &out));
    CHECK_EQ_U64(out, UNTOUCHED);
}

TEST(a_range_lies_inside_only_if_its_end_does)
{
    CHECK(sp_size_in_range(0, 0, 0));
    CHECK(sp_size_in_range(10, 0, 10)); /* an empty range at the very end */
    CHECK(sp_size_in_range(0, 10, 10));
    CHECK(sp_size_in_range(4, 6, 10));
    CHECK(sp_size_in_range(0, UINT64_MAX, UINT64_MAX));
    CHECK(!sp_size_in_range(4, 7, 10));
    CHECK(!sp_size_in_range(11, 0, 10));
    /* Sums that would wrap to a small value. */
    CHECK(!sp_size_in_range(8, UINT64_MAX, 10));
    CHECK(!sp_size_in_range(UINT64_MAX, 8, 10));
    CHECK(!sp_size_in_range(UINT64_MAX, UINT64_MAX, UINT64_MAX));
}

TEST_MAIN
