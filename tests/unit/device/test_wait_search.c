/* SPDX-License-Identifier: Apache-2.0 */
/* The search of the wait-for graph, on timelines without queues. */
#include "device/wait_graph.h"

#include "base/heap.h"
#include "base/macros.h"
#include "support/test.h"

/* A timeline without a queue: its next point comes when the holder's wait has ended. */
typedef struct held_timeline {
    sp_timeline base;
    uint64_t holder; /* 0: no dependence */
} held_timeline;

static uint64_t holder_of(sp_timeline *timeline, uint64_t value, sp_point_visitor visit, void *ctx)
{
    (void)value, (void)visit, (void)ctx;
    return SP_CONTAINER_OF(timeline, held_timeline, base)->holder;
}

static const sp_timeline_source held_source = {.each_wait = holder_of};

static sp_point held_by(held_timeline *timeline, uint64_t holder)
{
    sp__timeline_init(&timeline->base, NULL);
    timeline->base.source = &held_source;
    timeline->holder = holder;
    return (sp_point){&timeline->base, 1};
}

TEST(each_of_the_waits_that_a_wait_for_any_depends_on_is_looked_at)
{
    enum { ENDS = 1001, STUCK, ENTERING };
    held_timeline timelines[4];
    const sp_point free_point = held_by(&timelines[0], 0);
    const sp_point of_entering = held_by(&timelines[1], ENTERING);
    const sp_point any[2] = {held_by(&timelines[2], ENDS), held_by(&timelines[3], STUCK)};
    sp_graph_wait ends = {.holder = ENDS, .points = &free_point, .count = 1};
    sp_graph_wait stuck = {.holder = STUCK, .points = &of_entering, .count = 1};
    sp_graph_wait entering = {.holder = ENTERING, .points = any, .count = 2, .is_any = true};
    CHECK_OK(sp__wait_graph_enter(&ends));
    CHECK_OK(sp__wait_graph_enter(&stuck));
    CHECK_OK(sp__wait_graph_enter(&entering));
    sp__wait_graph_leave(&entering);
    entering = (sp_graph_wait){.holder = ENTERING, .points = &any[1], .count = 1};
    CHECK_STATUS(sp__wait_graph_enter(&entering), SP_DEADLOCK);
    sp__wait_graph_leave(&stuck);
    sp__wait_graph_leave(&ends);
    for (int i = 0; i < 4; i++) sp__timeline_deinit(&timelines[i].base);
}

#define CHAIN 3000

/* Wait i, of holder i + 1, is for the point of holder i. */
typedef struct chain {
    held_timeline timelines[CHAIN];
    sp_point points[CHAIN];
    sp_graph_wait waits[CHAIN];
} chain;

static chain *chain_create(void)
{
    chain *self = sp_aligned_malloc(SP_CACHE_LINE, sizeof *self);
    if (self == NULL) return NULL;
    for (uint32_t i = 0; i < CHAIN; i++) {
        self->points[i] = held_by(&self->timelines[i], i == 0 ? CHAIN : i);
        self->waits[i] = (sp_graph_wait){.holder = 1 + i, .points = &self->points[i], .count = 1};
    }
    return self;
}

/* Repeated until no more ends are found, the search would take an hour. */
TEST(a_long_chain_of_waits_is_searched_once_and_its_end_closes_the_cycle)
{
    chain *self = chain_create();
    REQUIRE(self != NULL);
    /* From the middle outwards, so that neither the oldest nor the newest ends first. */
    for (uint32_t i = CHAIN / 2; i < CHAIN; i++) CHECK_OK(sp__wait_graph_enter(&self->waits[i]));
    for (uint32_t i = CHAIN / 2; i-- > 1;) CHECK_OK(sp__wait_graph_enter(&self->waits[i]));
    CHECK_STATUS(sp__wait_graph_enter(&self->waits[0]), SP_DEADLOCK);
    for (uint32_t i = 1; i < CHAIN; i++) sp__wait_graph_leave(&self->waits[i]);
    CHECK_OK(sp__wait_graph_enter(&self->waits[0]));
    sp__wait_graph_leave(&self->waits[0]);
    for (uint32_t i = 0; i < CHAIN; i++) sp__timeline_deinit(&self->timelines[i].base);
    sp_free(self);
}

TEST_MAIN
