/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/port_overlap.h"

#include <string.h>

#include "support/model_data.h"
#include "support/test.h"

enum { MOST = 12 };

static bool spans_clash(const sp_port_span *a, const sp_port_span *b)
{
    return (a->is_output || b->is_output) && a->begin < b->end && b->begin < a->end;
}

static bool any_pair_clashes(const sp_port_span *spans, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < i; k++) {
            if (spans_clash(&spans[i], &spans[k])) return true;
        }
    }
    return false;
}

TEST(every_overlap_with_an_output_is_found)
{
    data_random random = {7};
    uint64_t clashes = 0;
    const uint64_t rounds = test_count(1000000, 50000);
    for (uint64_t round = 0; round < rounds; round++) {
        sp_port_span spans[MOST] = {{0}}, sorted[MOST], found[2];
        const uint32_t count = (uint32_t)(data_next(&random) % (MOST + 1));
        for (uint32_t i = 0; i < count; i++) {
            const uintptr_t begin = (uintptr_t)(data_next(&random) % 100);
            spans[i] = (sp_port_span){.begin = begin,
                                      .end = begin + 1 + (uintptr_t)(data_next(&random) % 12),
                                      .index = i,
                                      .is_output = data_next(&random) % 3 == 0};
        }
        memcpy(sorted, spans, sizeof sorted);
        const bool is_found = sp__port_spans_overlap(sorted, count, found);
        CHECK(is_found == any_pair_clashes(spans, count));
        if (!is_found) continue;
        clashes++;
        CHECK(found[0].is_output && spans_clash(&found[0], &found[1]));
        CHECK(found[0].begin == spans[found[0].index].begin && found[0].index != found[1].index);
    }
    CHECK(clashes > rounds / 10 && clashes < rounds - rounds / 10);
}

TEST(neighbours_and_overlapping_inputs_are_accepted)
{
    sp_port_span found[2], spans[] = {{0, 8, 0, false}, {4, 12, 1, false}, {12, 20, 0, true}};
    CHECK(!sp__port_spans_overlap(spans, SP_COUNT_OF(spans), found));
    CHECK(!sp__port_spans_overlap(NULL, 0, found));
}

TEST_MAIN
