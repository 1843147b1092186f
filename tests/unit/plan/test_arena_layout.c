/* SPDX-License-Identifier: Apache-2.0 */
/* First fit: nothing overlaps, gaps are reused, equal sizes need equal bytes. */
#include "plan/arena_layout.h"

#include <string.h>

#include "base/heap.h"
#include "support/model_data.h"
#include "support/test.h"

TEST(equal_sizes_reuse_one_region)
{
    sp_arena_layout layout = {0};
    uint64_t offset;
    for (int i = 0; i < 34; i++) {
        REQUIRE_OK(sp__arena_layout_acquire(&layout, 1000, &offset));
        CHECK_EQ_U64(offset, 0);
        REQUIRE_OK(sp__arena_layout_release(&layout, offset, 1000));
    }
    CHECK_EQ_U64(layout.bytes, 1024);
    CHECK_EQ_U64(layout.end, 0);
    sp__arena_layout_deinit(&layout);
}

TEST(gaps_join_their_neighbours)
{
    sp_arena_layout layout = {0};
    uint64_t at[4], offset;
    for (int i = 0; i < 4; i++) REQUIRE_OK(sp__arena_layout_acquire(&layout, 64, &at[i]));
    REQUIRE_OK(sp__arena_layout_release(&layout, at[0], 64));
    REQUIRE_OK(sp__arena_layout_release(&layout, at[2], 64));
    CHECK_EQ_INT(layout.gap_count, 2);
    REQUIRE_OK(sp__arena_layout_release(&layout, at[1], 64));
    CHECK_EQ_INT(layout.gap_count, 1);
    REQUIRE_OK(sp__arena_layout_acquire(&layout, 192, &offset));
    CHECK_EQ_U64(offset, 0);
    sp__arena_layout_deinit(&layout);
}

TEST(limits_are_refused)
{
    sp_arena_layout layout = {0};
    uint64_t offset;
    CHECK_STATUS(sp__arena_layout_acquire(&layout, UINT64_MAX, &offset), SP_EXHAUSTED);
    CHECK_STATUS(sp__arena_layout_acquire(&layout, SP_MAX_TENSOR_BYTES + 1, &offset), SP_EXHAUSTED);
    CHECK_OK(sp__arena_layout_acquire(&layout, SP_MAX_TENSOR_BYTES, &offset));
    CHECK_STATUS(sp__arena_layout_acquire(&layout, 1, &offset), SP_EXHAUSTED);
    CHECK_OK(sp__arena_layout_acquire(&layout, 0, &offset));
    sp__arena_layout_deinit(&layout);
}

typedef struct block {
    uint64_t offset, bytes;
} block;

TEST(living_blocks_never_overlap)
{
    enum { MAX = 50 };
    data_random random = {51};
    sp_arena_layout layout = {0};
    block blocks[MAX];
    int count = 0;
    for (uint64_t i = 0; i < test_count(1000000, 20000); i++) {
        const bool takes = count == 0 || (count < MAX && data_next(&random) % 2 == 0);
        if (!takes) {
            const int at = (int)(data_next(&random) % (uint64_t)count);
            REQUIRE_OK(sp__arena_layout_release(&layout, blocks[at].offset, blocks[at].bytes));
            blocks[at] = blocks[--count];
            continue;
        }
        block taken = {.bytes = data_next(&random) % 5000 + 1};
        REQUIRE_OK(sp__arena_layout_acquire(&layout, taken.bytes, &taken.offset));
        REQUIRE(taken.offset % 64 == 0 && taken.offset + taken.bytes <= layout.bytes);
        for (int k = 0; k < count; k++) {
            REQUIRE(taken.offset >= blocks[k].offset + blocks[k].bytes ||
                    blocks[k].offset >= taken.offset + taken.bytes);
        }
        blocks[count++] = taken;
    }
    while (count > 0) {
        count--;
        REQUIRE_OK(sp__arena_layout_release(&layout, blocks[count].offset, blocks[count].bytes));
    }
    CHECK_EQ_U64(layout.end, 0);
    CHECK_EQ_INT(layout.gap_count, 0);
    sp__arena_layout_deinit(&layout);
}

TEST_MAIN
