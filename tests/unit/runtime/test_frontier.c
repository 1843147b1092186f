/* SPDX-License-Identifier: Apache-2.0 */
/* Frontiers: the points that the next use of a storage must follow. The test advances the
 * timelines. */
#include "runtime/frontier.h"

#include "base/heap.h"
#include "support/test.h"

#define TIMELINES 12

typedef struct lines {
    sp_timeline at[TIMELINES];
} lines;

static void lines_init(lines *self)
{
    for (int i = 0; i < TIMELINES; i++) sp__timeline_init(&self->at[i], NULL);
}

static void lines_deinit(lines *self)
{
    for (int i = 0; i < TIMELINES; i++) sp__timeline_deinit(&self->at[i]);
}

static sp_point point(lines *self, int timeline, uint64_t value)
{
    return (sp_point){&self->at[timeline], value};
}

static void publish(sp_frontier *frontier, sp_access access, sp_point at)
{
    CHECK_OK(sp__frontier_reserve(frontier));
    sp__frontier_publish(frontier, access, at);
}

/* The number of points that a use would wait for. */
static uint32_t waits_of(const sp_frontier *frontier, sp_access access, const sp_timeline *own)
{
    sp_point points[TIMELINES];
    sp_wait_set set = {.capacity = TIMELINES, .points = points};
    uint32_t next = 0;
    CHECK(sp__frontier_collect(frontier, access, own, &next, &set));
    return set.count;
}

TEST(a_fresh_frontier_asks_for_nothing)
{
    sp_frontier frontier = {0};
    CHECK(sp__frontier_is_empty(&frontier));
    CHECK_EQ_U64(waits_of(&frontier, SP_READ_WRITE, NULL), 0);
    CHECK(sp__frontier_only_timeline(&frontier) == NULL);
}

TEST(a_read_follows_the_write_and_a_write_follows_everything)
{
    lines all;
    lines_init(&all);
    sp_frontier frontier = {0};
    publish(&frontier, SP_WRITE, point(&all, 0, 1));
    publish(&frontier, SP_READ, point(&all, 1, 1));
    publish(&frontier, SP_READ, point(&all, 2, 1));
    CHECK_EQ_U64(waits_of(&frontier, SP_READ, NULL), 1);
    CHECK_EQ_U64(waits_of(&frontier, SP_WRITE, NULL), 3);
    CHECK_EQ_U64(waits_of(&frontier, SP_READ_WRITE, NULL), 3);
    /* A stream needs no waits for its own points. */
    CHECK_EQ_U64(waits_of(&frontier, SP_READ, &all.at[0]), 0);
    CHECK_EQ_U64(waits_of(&frontier, SP_WRITE, &all.at[1]), 2);
    sp__frontier_clear(&frontier);
    lines_deinit(&all);
}

/* Threads that publish reads on one timeline need not come in the order of their points. */
TEST(an_older_point_does_not_replace_a_newer_one)
{
    lines all;
    lines_init(&all);
    sp_frontier frontier = {0};
    publish(&frontier, SP_READ, point(&all, 0, 11));
    publish(&frontier, SP_READ, point(&all, 0, 10));
    sp__timeline_advance(&all.at[0], 10);
    CHECK_EQ_U64(waits_of(&frontier, SP_WRITE, NULL), 1);
    sp__timeline_advance(&all.at[0], 11);
    CHECK_EQ_U64(waits_of(&frontier, SP_WRITE, NULL), 0);
    sp__frontier_clear(&frontier);
    lines_deinit(&all);
}

TEST(all_readers_are_kept_and_the_newest_point_of_each)
{
    lines all;
    lines_init(&all);
    sp_frontier frontier = {0};
    for (uint64_t round = 1; round <= 3; round++) {
        for (int i = 0; i < TIMELINES; i++) publish(&frontier, SP_READ, point(&all, i, round));
    }
    sp_point points[TIMELINES];
    sp_wait_set set = {.capacity = TIMELINES, .points = points};
    uint32_t next = 0;
    CHECK(sp__frontier_collect(&frontier, SP_WRITE, NULL, &next, &set));
    CHECK_EQ_U64(set.count, TIMELINES);
    for (uint32_t i = 0; i < set.count; i++) CHECK_EQ_U64(points[i].value, 3);
    sp__frontier_clear(&frontier);
    CHECK(sp__frontier_is_empty(&frontier));
    lines_deinit(&all);
}

TEST(a_write_replaces_all_that_it_followed)
{
    lines all;
    lines_init(&all);
    sp_frontier frontier = {0};
    publish(&frontier, SP_WRITE, point(&all, 0, 1));
    for (int i = 1; i < 8; i++) publish(&frontier, SP_READ, point(&all, i, 1));
    publish(&frontier, SP_READ_WRITE, point(&all, 9, 1));
    CHECK_EQ_U64(waits_of(&frontier, SP_WRITE, NULL), 1);
    CHECK(sp__frontier_only_timeline(&frontier) == &all.at[9]);
    sp__frontier_clear(&frontier);
    lines_deinit(&all);
}

TEST(points_that_have_passed_are_dropped)
{
    lines all;
    lines_init(&all);
    sp_frontier frontier = {0};
    publish(&frontier, SP_WRITE, point(&all, 0, 1));
    publish(&frontier, SP_READ, point(&all, 1, 1));
    publish(&frontier, SP_READ, point(&all, 2, 2));
    sp__timeline_advance(&all.at[0], 1);
    sp__timeline_advance(&all.at[2], 1);
    CHECK_EQ_U64(waits_of(&frontier, SP_WRITE, NULL), 2);
    sp__frontier_prune(&frontier);
    CHECK_EQ_U64(frontier.count, 2);
    CHECK(frontier.write.timeline == NULL);
    sp__timeline_advance(&all.at[1], 1);
    sp__frontier_prune(&frontier);
    CHECK(sp__frontier_only_timeline(&frontier) == &all.at[2]);
    sp__timeline_advance(&all.at[2], 2);
    sp__frontier_prune(&frontier);
    CHECK(sp__frontier_is_empty(&frontier));
    sp__frontier_clear(&frontier);
    lines_deinit(&all);
}

TEST(a_frontier_that_cannot_grow_fails_before_anything_is_lost)
{
    lines all;
    lines_init(&all);
    sp_frontier frontier = {0};
    for (int i = 0; i < SP_FRONTIER_INLINE; i++) publish(&frontier, SP_READ, point(&all, i, 1));
    sp_heap_fail_after(0);
    CHECK_STATUS(sp__frontier_reserve(&frontier), SP_OUT_OF_MEMORY);
    sp_heap_fail_after(UINT64_MAX);
    CHECK_EQ_U64(waits_of(&frontier, SP_WRITE, NULL), SP_FRONTIER_INLINE);
    sp__timeline_advance(&all.at[0], 1); /* pruning makes room without memory */
    sp_heap_fail_after(0);
    CHECK_OK(sp__frontier_reserve(&frontier));
    sp_heap_fail_after(UINT64_MAX);
    sp__frontier_clear(&frontier);
    lines_deinit(&all);
}

TEST(a_full_wait_set_says_so_and_a_second_point_of_a_timeline_needs_no_room)
{
    lines all;
    lines_init(&all);
    sp_point points[2];
    sp_wait_set set = {.capacity = 2, .points = points};
    CHECK(sp__wait_set_add(&set, point(&all, 0, 5), NULL));
    CHECK(sp__wait_set_add(&set, point(&all, 1, 1), NULL));
    CHECK(!sp__wait_set_add(&set, point(&all, 2, 1), NULL));
    CHECK(sp__wait_set_add(&set, point(&all, 0, 4), NULL));
    CHECK_EQ_U64(points[0].value, 5);
    CHECK(sp__wait_set_add(&set, point(&all, 0, 6), NULL));
    CHECK_EQ_U64(points[0].value, 6);
    CHECK(sp__wait_set_add(&set, (sp_point){0}, NULL)); /* has always passed */
    CHECK_EQ_U64(set.count, 2);
    lines_deinit(&all);
}

TEST(what_one_timeline_left_becomes_the_origin_of_the_next_life)
{
    lines all;
    lines_init(&all);
    sp_frontier frontier = {0};
    publish(&frontier, SP_WRITE, point(&all, 3, 2));
    publish(&frontier, SP_READ, point(&all, 3, 7));
    CHECK(sp__frontier_only_timeline(&frontier) == &all.at[3]);
    sp__frontier_become_origin(&frontier);
    CHECK_EQ_U64(frontier.count, 0);
    CHECK_EQ_U64(frontier.write.value, 7);
    CHECK_EQ_U64(waits_of(&frontier, SP_READ, NULL), 1);
    sp__frontier_clear(&frontier);
    lines_deinit(&all);
}

TEST_MAIN
