/* SPDX-License-Identifier: Apache-2.0 */
/* The allocator: a block is never allocated twice, nor before its points have passed; a slab is not
 * freed while one of its blocks is in use; and no memory is lost. */
#include "support.h"

#include <string.h>

#include "runtime/slab.h"
#include "runtime/storage.h"
#include "sched/subject.h"

#define BLOCK_BYTES ((uint64_t)512 << 10) /* two in a slab */

typedef struct world {
    sp_rt_device *device;
    sp_command_queue *queues[2];
    sp_block *block, *other;
} world;

/* The subject's device has one real byte for 4096: the blocks of a slab are apart in it. */
static uint64_t *words_of(const sp_block *block)
{
    return (uint64_t *)(void *)((char *)block->slab->memory.host + block->offset / 4096);
}

static sp_block *take(world *w, uint32_t stream)
{
    sp_block *block;
    SP_SCHED_ASSERT(sp__allocator_acquire(&w->device->allocator, BLOCK_BYTES,
                                          &w->queues[stream]->base, &block) == SP_OK);
    return block;
}

static void give(world *w, sp_block *block)
{
    sp__allocator_release(&w->device->allocator, block);
}

static void give_both(world *w)
{
    give(w, w->block);
    give(w, w->other);
}

static void begin(world *w)
{
    memset(w, 0, sizeof *w);
    w->device = sp__subject_bare_device();
    sp_dev *dev = w->device->dev;
    sp__allocator_init(&w->device->allocator, w->device, dev);
    for (uint32_t i = 0; i < 2; i++) {
        w->queues[i] = sp__subject_queue(sp__queue_device(dev), i, true);
    }
    w->block = take(w, 0);
    w->other = take(w, 0);
    SP_SCHED_ASSERT(w->block->slab == w->other->slab);
}

static void end(world *w)
{
    SP_SCHED_ASSERT(sp__allocator_check(&w->device->allocator));
    sp_memory_stats stats;
    sp__allocator_stats(&w->device->allocator, &stats);
    SP_SCHED_ASSERT(stats.in_use_bytes == 0);
    sp__allocator_deinit(&w->device->allocator);
    sp__subject_bare_device_free(w->device);
    sp__storages_deinit();
    sp__subject_end();
}

/* Plain accesses: a block that two have is a race, or another's pattern. */
static void use(world *w, uint32_t stream, uint64_t pattern)
{
    sp_block *block = take(w, stream);
    *words_of(block) = pattern;
    SP_SCHED_ASSERT(*words_of(block) == pattern);
    give(w, block);
}

static void use_on_0(void *arg)
{
    use(arg, 0, 1);
    use(arg, 0, 2);
}

static void use_on_1(void *arg)
{
    use(arg, 1, 3);
    use(arg, 1, 4);
}

static void use_once_on_0(void *arg)
{
    use(arg, 0, 5);
}

static void use_once_on_1(void *arg)
{
    use(arg, 1, 6);
}

static void subject_allocator_two(void *arg)
{
    (void)arg;
    world w;
    begin(&w);
    give_both(&w);
    sp__subject_run((const sp_thread_fn[]){use_on_0, use_on_1}, 2, &w);
    end(&w);
}

static void subject_allocator_shared(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    world w;
    begin(&w);
    give_both(&w);
    /* Stream 1 has no cache yet: one of two makes it. */
    sp__subject_run((const sp_thread_fn[]){use_on_1, use_once_on_1, use_once_on_0}, threads, &w);
    end(&w);
}

/* Two threads, two blocks, and no memory for more: each always gets one. */
static void subject_allocator_limit(void *arg)
{
    (void)arg;
    world w;
    begin(&w);
    sp__allocator_set_limit(&w.device->allocator, 2 * BLOCK_BYTES);
    give_both(&w);
    sp__subject_run((const sp_thread_fn[]){use_once_on_0, use_once_on_1}, 2, &w);
    end(&w);
}

/* ---- giving memory back ---- */

static void trim(void *arg)
{
    world *w = arg;
    sp__allocator_trim(&w->device->allocator, UINT64_MAX, false);
}

static void trim_deep(void *arg)
{
    world *w = arg;
    sp__allocator_trim(&w->device->allocator, UINT64_MAX, true);
}

/* Both blocks of the slab are in the pool: it is given back, or one of them is taken. */
static void subject_allocator_trim(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    world w;
    begin(&w);
    give_both(&w);
    sp__allocator_flush_caches(&w.device->allocator);
    sp__subject_run((const sp_thread_fn[]){use_on_1, trim, use_once_on_0}, threads, &w);
    end(&w);
}

/* The same without memory for another slab: blocks held by the trim count as free memory. */
static void subject_allocator_given(void *arg)
{
    (void)arg;
    world w;
    begin(&w);
    sp__allocator_set_limit(&w.device->allocator, 2 * BLOCK_BYTES);
    give_both(&w);
    sp__allocator_flush_caches(&w.device->allocator);
    sp__subject_run((const sp_thread_fn[]){trim, use_once_on_1}, 2, &w);
    end(&w);
}

/* No slab yet, and memory for one: it has a block for each. */
static void subject_allocator_made(void *arg)
{
    (void)arg;
    world w;
    begin(&w);
    sp__allocator_set_limit(&w.device->allocator, 2 * BLOCK_BYTES);
    give_both(&w);
    trim_deep(&w);
    sp__subject_run((const sp_thread_fn[]){use_once_on_0, use_once_on_1}, 2, &w);
    end(&w);
}

/* The same as allocator_trim, but they are in the cache of a stream. */
static void subject_allocator_flush(void *arg)
{
    (void)arg;
    world w;
    begin(&w);
    give_both(&w);
    sp__subject_run((const sp_thread_fn[]){use_on_0, trim_deep}, 2, &w);
    end(&w);
}

/* ---- a block whose last use is still to come ---- */

static void last_use(void *arg)
{
    world *w = arg;
    *words_of(w->block) = 9;
    sp__timeline_advance(&w->queues[0]->base.timeline, 1);
}

static void give_pending(void *arg)
{
    world *w = arg;
    give(w, w->other);
}

/* `other` is the same block under another name: the giver must not touch its memory. */
static void subject_allocator_pending(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    world w;
    begin(&w);
    sp_block *kept = w.other;
    w.other = w.block;
    w.block->frontier.write = (sp_point){&w.queues[0]->base.timeline, 1};
    if (threads == 2) give_pending(&w);
    sp__subject_run((const sp_thread_fn[]){last_use, use_once_on_1, give_pending}, threads, &w);
    give(&w, kept);
    end(&w);
}

/* The only block is pending, and there is no memory for more: the take waits for the block's last
 * use, whenever that passes between the steps of the search. */
static void subject_allocator_passing(void *arg)
{
    (void)arg;
    world w;
    begin(&w);
    sp_block *kept = w.other;
    sp__allocator_set_limit(&w.device->allocator, 2 * BLOCK_BYTES);
    w.block->frontier.write = (sp_point){&w.queues[0]->base.timeline, 1};
    give(&w, w.block);
    sp__allocator_flush_caches(&w.device->allocator);
    sp__subject_run((const sp_thread_fn[]){last_use, use_once_on_1}, 2, &w);
    give(&w, kept);
    end(&w);
}

/* ---- a block behind points of two queues ---- */

static void pass_first(void *arg)
{
    world *w = arg;
    words_of(w->block)[0] = 7;
    sp__timeline_advance(&w->queues[0]->base.timeline, 1);
}

static void pass_second(void *arg)
{
    world *w = arg;
    words_of(w->block)[1] = 8;
    sp__timeline_advance(&w->queues[1]->base.timeline, 1);
}

static void pass_both(void *arg)
{
    pass_first(arg);
    pass_second(arg);
}

/* For use anywhere at once, so both points must have passed. */
static void use_anywhere(void *arg)
{
    world *w = arg;
    sp_block *block;
    SP_SCHED_ASSERT(sp__allocator_acquire_any(&w->device->allocator, BLOCK_BYTES, false, &block) ==
                    SP_OK);
    words_of(block)[0] = words_of(block)[1] = 1;
    give(w, block);
}

static void subject_allocator_two_points(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    static const sp_thread_fn two[] = {use_anywhere, pass_both};
    static const sp_thread_fn three[] = {use_anywhere, pass_first, pass_second};
    world w;
    begin(&w);
    sp_block *kept = w.other;
    w.block->frontier.write = (sp_point){&w.queues[0]->base.timeline, 1};
    SP_SCHED_ASSERT(sp__frontier_reserve(&w.block->frontier) == SP_OK);
    sp__frontier_publish(&w.block->frontier, SP_READ, (sp_point){&w.queues[1]->base.timeline, 1});
    give(&w, w.block);
    sp__subject_run(threads == 2 ? two : three, threads, &w);
    give(&w, kept);
    end(&w);
}

/* ---- without memory, the first pending block that becomes ready is enough ---- */

static void pass_other(void *arg)
{
    world *w = arg;
    words_of(w->other)[0] = 7;
    sp__timeline_advance(&w->queues[1]->base.timeline, 1);
}

static void give_first(void *arg)
{
    world *w = arg;
    give(w, w->block);
}

/* The first block stays pending until the taker has come back. */
static void subject_allocator_first_of_two(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    world w;
    begin(&w);
    sp__allocator_set_limit(&w.device->allocator, 2 * BLOCK_BYTES);
    w.block->frontier.write = (sp_point){&w.queues[0]->base.timeline, 1};
    w.other->frontier.write = (sp_point){&w.queues[1]->base.timeline, 1};
    if (threads == 2) give_first(&w);
    give(&w, w.other);
    sp__subject_run((const sp_thread_fn[]){use_anywhere, pass_other, give_first}, threads, &w);
    sp__timeline_advance(&w.queues[0]->base.timeline, 1);
    end(&w);
}

/* ---- a closed allocator keeps nothing ---- */

static void close_allocator(void *arg)
{
    world *w = arg;
    sp__allocator_close(&w->device->allocator);
}

static void give_other(void *arg)
{
    world *w = arg;
    give(w, w->other);
}

/* One block is pending, one free for its stream's cache; the order of their ends and of the close
 * may be any. */
static void subject_allocator_close(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    world w;
    begin(&w);
    w.block->frontier.write = (sp_point){&w.queues[1]->base.timeline, 1};
    give(&w, w.block);
    if (threads == 2) pass_second(&w);
    sp__subject_run((const sp_thread_fn[]){close_allocator, give_other, pass_second}, threads, &w);
    sp_memory_stats stats;
    sp__allocator_stats(&w.device->allocator, &stats);
    SP_SCHED_ASSERT(stats.reserved_bytes == 0);
    end(&w);
}

/* A cache that is made while the allocator closes, or is closed before it is made. */
static void subject_allocator_close_made(void *arg)
{
    (void)arg;
    world w;
    begin(&w);
    give_both(&w);
    sp__subject_run((const sp_thread_fn[]){close_allocator, use_once_on_1}, 2, &w);
    sp_memory_stats stats;
    sp__allocator_stats(&w.device->allocator, &stats);
    SP_SCHED_ASSERT(stats.reserved_bytes == 0);
    end(&w);
}

/* ---- the table ---- */

const sp_subject sp__subjects_allocator[] = {
    {.name = "allocator_two",
     .test = subject_allocator_two,
     .thread_count = 2,
     .inexhaustible_weak = SP_ENDLESS_ALLOCATOR,
     .dpor_seconds = 4,
     .planted = "two_in_cache",
     .seconds = 0.4},
    {.name = "allocator_shared_2",
     .test = subject_allocator_shared,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .inexhaustible = SP_ENDLESS_ALLOCATOR,
     .planted = "two_in_cache",
     .seconds = 0.4},
    {.name = "allocator_shared_3",
     .test = subject_allocator_shared,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "two_in_cache",
     .seconds = 0.4},
    {.name = "allocator_limit",
     .test = subject_allocator_limit,
     .thread_count = 2,
     .inexhaustible = SP_ENDLESS_ALLOCATOR,
     .planted = "two_in_cache",
     .seconds = 0.4},
    {.name = "allocator_trim_2",
     .test = subject_allocator_trim,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .planted = "trim_in_use",
     .seconds = 0.4},
    {.name = "allocator_trim_3",
     .test = subject_allocator_trim,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "trim_in_use",
     .seconds = 0.4},
    {.name = "allocator_given",
     .test = subject_allocator_given,
     .thread_count = 2,
     .inexhaustible = SP_ENDLESS_ALLOCATOR,
     .planted = "relaxed_giver uncounted_giver",
     .seconds = 0.4},
    {.name = "allocator_made",
     .test = subject_allocator_made,
     .thread_count = 2,
     .inexhaustible = SP_ENDLESS_ALLOCATOR,
     .planted = "uncounted_giver",
     .seconds = 0.4},
    {.name = "allocator_flush",
     .test = subject_allocator_flush,
     .thread_count = 2,
     .inexhaustible = SP_ENDLESS_ALLOCATOR,
     .planted = "trim_in_use",
     .seconds = 0.4},
    {.name = "allocator_pending_2",
     .test = subject_allocator_pending,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .planted = "early_reuse",
     .seconds = 0.4},
    {.name = "allocator_pending_3",
     .test = subject_allocator_pending,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "early_reuse",
     .seconds = 0.4},
    {.name = "allocator_passing",
     .test = subject_allocator_passing,
     .thread_count = 2,
     .planted = "passed_is_nothing",
     .seconds = 0.4},
    {.name = "allocator_two_points_2",
     .test = subject_allocator_two_points,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .inexhaustible = SP_ENDLESS_ALLOCATOR,
     .planted = "first_point_only",
     .seconds = 0.4},
    {.name = "allocator_two_points_3",
     .test = subject_allocator_two_points,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "first_point_only",
     .seconds = 0.4},
    {.name = "allocator_first_of_two_2",
     .test = subject_allocator_first_of_two,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .inexhaustible = SP_ENDLESS_ALLOCATOR,
     .planted = "wait_for_first",
     .seconds = 0.4},
    {.name = "allocator_first_of_two_3",
     .test = subject_allocator_first_of_two,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "wait_for_first",
     .seconds = 0.4},
    {.name = "allocator_close_2",
     .test = subject_allocator_close,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .inexhaustible = SP_ENDLESS_ALLOCATOR,
     .planted = "cache_stays_open",
     .seconds = 0.4},
    {.name = "allocator_close_3",
     .test = subject_allocator_close,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "cache_stays_open",
     .seconds = 0.4},
    {.name = "allocator_close_made",
     .test = subject_allocator_close_made,
     .thread_count = 2,
     .inexhaustible = SP_ENDLESS_ALLOCATOR,
     .planted = "cache_stays_open",
     .seconds = 0.4},
    {0},
};
