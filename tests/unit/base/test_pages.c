/* SPDX-License-Identifier: Apache-2.0 */
/* Pages from the system. */
#include "base/pages.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/heap.h"
#include "support/test.h"

TEST(pages_are_zeroed_aligned_and_writable)
{
    const uint64_t bytes = 3 << 20;
    unsigned char *pages = sp_pages_map(bytes);
    REQUIRE(pages != NULL);
    CHECK_EQ_U64((uintptr_t)pages % (uintptr_t)sysconf(_SC_PAGESIZE), 0);
    for (uint64_t i = 0; i < bytes; i++) REQUIRE_EQ_U64(pages[i], 0);
    memset(pages, 0xa5, bytes);
    CHECK_EQ_U64(pages[bytes - 1], 0xa5);
    sp_pages_unmap(pages, bytes);
}

TEST(a_size_need_not_be_a_multiple_of_a_page)
{
    unsigned char *pages = sp_pages_map(5);
    REQUIRE(pages != NULL);
    pages[4] = 1;
    sp_pages_unmap(pages, 5);
}

TEST(many_pages_begin_with_a_huge_page_and_end_where_they_should)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const uint64_t bytes = 3 * SP_HUGE_PAGE_BYTES + page / 2;
    for (int i = 0; i < 20; i++) {
        unsigned char *pages = sp_pages_map(bytes);
        REQUIRE(pages != NULL);
        CHECK_EQ_U64((uintptr_t)pages % SP_HUGE_PAGE_BYTES, 0);
        pages[bytes - 1] = 1;
        sp_pages_unmap(pages, bytes);
        CHECK_EQ_INT(msync(pages, page, MS_ASYNC), -1);
        CHECK_EQ_INT(msync(pages + 3 * SP_HUGE_PAGE_BYTES, page, MS_ASYNC), -1);
    }
}

TEST(a_wish_for_huge_pages_changes_no_byte)
{
    const uint64_t bytes = 4 * SP_HUGE_PAGE_BYTES;
    unsigned char *pages = sp_pages_map(bytes);
    REQUIRE(pages != NULL);
    memset(pages, 0x5a, bytes);
    sp_pages_prefer_huge(pages + 1, bytes - 1);
    sp_pages_prefer_huge(pages + 1, 0);
    sp_pages_prefer_huge(pages + 5, SP_HUGE_PAGE_BYTES); /* no whole one fits */
    for (uint64_t i = 0; i < bytes; i++) REQUIRE_EQ_U64(pages[i], 0x5a);
    sp_pages_unmap(pages, bytes);
}

TEST(unmapped_pages_go_back_to_the_system)
{
    const uint64_t bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    void *pages = sp_pages_map(bytes);
    REQUIRE(pages != NULL);
    CHECK_EQ_INT(msync(pages, bytes, MS_ASYNC), 0);
    sp_pages_unmap(pages, bytes);
    CHECK_EQ_INT(msync(pages, bytes, MS_ASYNC), -1);
    CHECK_EQ_INT(errno, ENOMEM);
}

TEST(whole_pages_of_a_range_are_discarded)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    unsigned char *pages = sp_pages_map(4 * page);
    REQUIRE(pages != NULL);
    memset(pages, 7, 4 * page);
    sp_pages_discard(pages + 1, page); /* no whole page */
    sp_pages_discard(pages + 5, 0);
    for (uint64_t i = 0; i < 4 * page; i++) REQUIRE(pages[i] == 7);
    sp_pages_discard(pages + 1, 2 * page + 3); /* the second page */
    for (uint64_t i = 0; i < 4 * page; i++) {
        REQUIRE(pages[i] == (i >= page && i < 2 * page ? 0 : 7));
    }
    sp_pages_discard(pages + page, 3 * page);
    for (uint64_t i = page; i < 4 * page; i++) REQUIRE(pages[i] == 0);
    sp_pages_unmap(pages, 4 * page);
}

TEST(no_bytes_and_too_many_bytes_give_nothing)
{
    CHECK(sp_pages_map(0) == NULL);
    CHECK(sp_pages_map(UINT64_C(1) << 62) == NULL);
    CHECK(sp_pages_map(UINT64_MAX) == NULL);
}

TEST(a_mapping_counts_as_an_allocation)
{
    sp_heap_fail_after(1);
    void *first = sp_pages_map(4096);
    void *second = sp_pages_map(4096);
    CHECK(sp_heap_has_failed());
    void *third = sp_pages_map(4096);
    sp_heap_fail_after(UINT64_MAX);
    CHECK(first != NULL);
    CHECK(second == NULL);
    CHECK(third != NULL);
    sp_pages_unmap(first, 4096);
    sp_pages_unmap(third, 4096);
}

TEST(the_machine_has_memory)
{
    CHECK(sp_pages_total_bytes() >= UINT64_C(64) << 20);
    CHECK_EQ_U64(sp_pages_total_bytes() % (uint64_t)sysconf(_SC_PAGESIZE), 0);
}

TEST_MAIN
