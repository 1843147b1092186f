/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/tensor_overlap.h"

#include <string.h>

#include "support/model_data.h"
#include "support/test.h"

enum { MOST = 12 };

static bool extents_clash(const sp_tensor_extent *a, const sp_tensor_extent *b)
{
    return a->storage == b->storage && a->begin < b->end && b->begin < a->end;
}

static bool any_pair_clashes(const sp_tensor_extent *extents, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < i; k++) {
            if (extents_clash(&extents[i], &extents[k])) return true;
        }
    }
    return false;
}

TEST(every_overlap_is_found)
{
    data_random random = {5};
    uint64_t clashes = 0;
    const uint64_t rounds = test_count(1000000, 50000);
    for (uint64_t round = 0; round < rounds; round++) {
        sp_tensor_extent extents[MOST] = {{0}}, sorted[MOST];
        uint32_t found[2];
        const uint32_t count = (uint32_t)(data_next(&random) % (MOST + 1));
        for (uint32_t i = 0; i < count; i++) {
            const uint64_t begin = data_next(&random) % 60;
            extents[i] = (sp_tensor_extent){.storage = data_next(&random) % 3,
                                            .begin = begin,
                                            .end = begin + 1 + data_next(&random) % 9,
                                            .index = i};
        }
        memcpy(sorted, extents, sizeof sorted);
        const bool is_found = sp__tensor_extents_overlap(sorted, count, found);
        CHECK(is_found == any_pair_clashes(extents, count));
        if (!is_found) continue;
        clashes++;
        CHECK(found[0] < found[1] && extents_clash(&extents[found[0]], &extents[found[1]]));
    }
    CHECK(clashes > rounds / 10 && clashes < rounds - rounds / 10);
}

TEST(neighbours_are_accepted)
{
    uint32_t found[2];
    sp_tensor_extent extents[] = {{1, 8, 12, 0}, {1, 0, 8, 1}, {2, 4, 9, 2}, {1, 12, 13, 3}};
    CHECK(!sp__tensor_extents_overlap(extents, SP_COUNT_OF(extents), found));
    CHECK(!sp__tensor_extents_overlap(NULL, 0, found));
}

TEST_MAIN
