/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles: each tile of a dispatch runs exactly once, whichever threads join; at the end of the
 * dispatch no thread is inside, and its bytes are visible. */
#include "support.h"

#include <string.h>

#include "base/clock.h"
#include "device/wait.h"
#include "sched/subject.h"

#define TILES 2u
#define MANY_TILES 6u

typedef struct world {
    sp_queue_device *device;
    sp_command_queue *queue;
    uint32_t tiles[2][MANY_TILES]; /* plain, one writer each; read when the dispatch is over */
    const sp_kernel *kernel;
    uint32_t tile_count;
    uint32_t rows; /* of the grid */
    uint32_t dispatch_count;
    sp_free_slots free_slots; /* of subject_tiles_core_taken and subject_tiles_blocks */
    sp_point last;
} world;

static sp_status mark(const sp_tile *tile)
{
    uint32_t *tiles = tile->bindings[0];
    tiles[tile->index[0]]++;
    return SP_OK;
}

static sp_status mark_block(const sp_tile *tile)
{
    uint32_t *tiles = tile->bindings[0];
    for (uint32_t j = 0; j < tile->count[1]; j++) {
        uint32_t *row = tiles + (tile->index[1] + j) * tile->grid[0];
        for (uint32_t i = 0; i < tile->count[0]; i++) row[tile->index[0] + i]++;
    }
    return SP_OK;
}

static const sp_kernel marks = {.name = "mark", .run = mark};
static const sp_kernel marks_blocks = {
    .name = "mark blocks", .run = mark_block, .joins_tiles = true};
static sp_memory memory[2];

/* The second dispatch uses the tile job of the first again. */
static void begin(world *w, uint32_t worker_count, uint32_t dispatch_count)
{
    memset(w, 0, sizeof *w);
    w->device = sp__subject_device(worker_count);
    w->queue = sp__subject_queue(w->device, 0, true);
    w->kernel = &marks;
    w->tile_count = TILES;
    w->rows = 1;
    w->dispatch_count = dispatch_count;
}

static void submit(world *w)
{
    for (uint32_t i = 0; i < w->dispatch_count; i++) {
        sp_binding binding;
        sp_command command = sp__subject_dispatch(w->kernel, &binding, &memory[i], w->tiles[i],
                                                  sizeof w->tiles[i], NULL);
        command.grid[0] = w->tile_count / w->rows;
        command.grid[1] = w->rows;
        SP_SCHED_ASSERT(sp__subject_submit(w->queue, &command, NULL, 0, &w->last) == SP_OK);
    }
}

static void check(const world *w)
{
    for (uint32_t i = 0; i < w->dispatch_count; i++) {
        for (uint32_t k = 0; k < w->tile_count; k++) SP_SCHED_ASSERT(w->tiles[i][k] == 1);
    }
}

static void execute(void *arg)
{
    world *w = arg;
    sp__subject_poll(w->device, 1, w->last);
    check(w);
}

/* The executor's record tells of the tiles that others have run, if it has seen how long one takes.
 */
static void execute_helped(void *arg)
{
    const world *w = arg;
    SP_SCHED_ASSERT(sp__thread_record() != NULL);
    execute(arg);
    const uint64_t shared = sp_load_relaxed(&w->queue->tiles_shared);
    const bool is_timed = shared < w->tile_count;
    SP_SCHED_ASSERT((sp__thread_helped_ns() > 0) == (shared > 0 && is_timed));
}

static void join(void *arg)
{
    world *w = arg;
    sp__queue_join_tiles(w->queue, NULL);
}

static void join_twice(void *arg)
{
    join(arg);
    join(arg);
}

static void end(world *w)
{
    check(w);
    sp__subject_device_free(w->device);
    sp__subject_end();
}

static void subject_tiles_join(void *arg)
{
    const uint32_t joiners = *(const uint32_t *)arg - 1;
    world w;
    begin(&w, 0, 1);
    submit(&w);
    sp__subject_run((const sp_thread_fn[]){execute_helped, join, join}, 1 + joiners, &w);
    end(&w);
}

/* No core is free, so half of what is left is claimed at a time: two rows of three tiles as a row,
 * then tiles. */
static void subject_tiles_blocks(void *arg)
{
    const uint32_t joiners = *(const uint32_t *)arg - 1;
    world w;
    begin(&w, 0, 1);
    w.kernel = &marks_blocks;
    w.tile_count = MANY_TILES;
    w.rows = 2;
    sp_store_relaxed(&w.device->base.run_slots, &w.free_slots);
    submit(&w);
    sp__subject_run((const sp_thread_fn[]){execute, join, join}, 1 + joiners, &w);
    end(&w);
}

static void subject_tiles_again(void *arg)
{
    (void)arg;
    world w;
    begin(&w, 0, 2);
    submit(&w);
    sp__subject_run((const sp_thread_fn[]){execute, join_twice}, 2, &w);
    end(&w);
}

static void submit_and_wait(void *arg)
{
    world *w = arg;
    submit(w);
    SP_SCHED_ASSERT(sp__point_wait(w->last, UINT64_MAX) == SP_OK);
    check(w);
}

/* A worker that is woken_for while the submitter helps, or the other way round. After a tile of the
 * first dispatch it spins for the second. */
static void subject_tiles_worker(void *arg)
{
    world w;
    begin(&w, 1, *(const uint32_t *)arg);
    sp__subject_run((const sp_thread_fn[]){submit_and_wait}, 1, &w);
    end(&w);
}

/* No run slot is free, so the worker whose bit is set is not woken. Its thread has ended: no other
 * thread clears the bit. */
static void execute_alone(void *arg)
{
    world *w = arg;
    sp__queue_workers_stop(w->device);
    submit(w);
    sp_store_relaxed(&w->device->sleeping, 1);
    execute(w);
    SP_SCHED_ASSERT(sp_load_relaxed(&w->device->sleeping) == 1);
}

static void subject_tiles_no_slot(void *arg)
{
    (void)arg;
    const sp_free_slots no_slots = {0};
    world w;
    begin(&w, 1, 1);
    w.tile_count = MANY_TILES;
    sp_store_relaxed(&w.device->base.run_slots, &no_slots);
    sp__subject_run((const sp_thread_fn[]){execute_alone}, 1, &w);
    end(&w);
}

static world *in_kernel; /* of the kernels below */

/* The first tile lets a worker share the rest. Its second one, in the worker's hands, takes the
 * last core: the worker runs no third. */
static sp_status take_core(const sp_tile *tile)
{
    uint32_t *tiles = tile->bindings[0];
    tiles[tile->index[0]]++;
    if (tile->index[0] == 1) sp_store_relaxed(&in_kernel->free_slots.word, 0);
    if (tile->index[0] != 0) return SP_OK;
    SP_SCHED_ASSERT(sp__queue_share_tiles(in_kernel->queue));
    SP_SCHED_ASSERT(tiles[1] == 1 && tiles[2] == 0);
    return SP_OK;
}

static void execute_kernel(world *w, const sp_kernel *run)
{
    sp_binding binding;
    sp_command command =
        sp__subject_dispatch(run, &binding, &memory[0], w->tiles[0], sizeof w->tiles[0], NULL);
    command.grid[0] = MANY_TILES;
    SP_SCHED_ASSERT(sp__subject_submit(w->queue, &command, NULL, 0, &w->last) == SP_OK);
    execute(w);
}

static void execute_taken(void *arg)
{
    static const sp_kernel takes_core = {.name = "take core", .run = take_core};
    execute_kernel(arg, &takes_core);
}

static void subject_tiles_core_taken(void *arg)
{
    (void)arg;
    world w;
    begin(&w, 0, 1);
    w.tile_count = MANY_TILES;
    sp_store_relaxed(&w.free_slots.word, 1);
    sp_store_relaxed(&w.device->base.run_slots, &w.free_slots);
    in_kernel = &w;
    sp__subject_run((const sp_thread_fn[]){execute_taken}, 1, &w);
    end(&w);
}

/* Nobody could join. */
static sp_status mark_alone(const sp_tile *tile)
{
    SP_SCHED_ASSERT(sp__queue_tiles_left(in_kernel->queue) == 0);
    return mark(tile);
}

static void execute_short(void *arg)
{
    static const sp_kernel marks_alone = {.name = "mark alone", .run = mark_alone};
    execute_kernel(arg, &marks_alone);
}

static void subject_tiles_short(void *arg)
{
    (void)arg;
    world w;
    begin(&w, 0, 1);
    w.tile_count = MANY_TILES;
    w.device->options.share_ns = UINT64_C(1000000000);
    in_kernel = &w;
    sp__subject_run((const sp_thread_fn[]){execute_short}, 1, &w);
    end(&w);
}

/* With an eighth of the cores free, and with more. */
static void subject_tiles_crowded(void *arg)
{
    (void)arg;
    world w;
    begin(&w, 0, 1);
    submit(&w);
    execute(&w);
    const uint64_t shortest = 1000;
    w.device->options.share_ns = shortest;
    w.device->base.limits.width = w.device->base.limits.run_slots = 16;
    sp_store_relaxed(&w.device->base.run_slots, &w.free_slots);
    sp_store_relaxed(&w.free_slots.word, 2);
    SP_SCHED_ASSERT(!sp__queue_shares(w.queue, shortest - 1));
    SP_SCHED_ASSERT(!sp__queue_shares(w.queue, shortest));
    SP_SCHED_ASSERT(sp__queue_shares(w.queue, 3 * shortest));
    sp_store_relaxed(&w.free_slots.word, 3);
    SP_SCHED_ASSERT(!sp__queue_shares(w.queue, shortest - 1));
    SP_SCHED_ASSERT(sp__queue_shares(w.queue, shortest));
    /* The third core has a worker that spins for a dispatch, or that shares another one. */
    sp_store_relaxed(&w.device->sharing, 1);
    sp_store_relaxed(&w.device->spinning, 1);
    SP_SCHED_ASSERT(sp__queue_shares(w.queue, shortest));
    sp_store_relaxed(&w.device->spinning, 0);
    SP_SCHED_ASSERT(!sp__queue_shares(w.queue, shortest));
    sp_store_relaxed(&w.device->sharing, 0);
    end(&w);
}

/* Of half of the cores one has a worker that spins. */
static void check_very_short(world *w, uint64_t shortest)
{
    sp_queue_device *device = w->device;
    sp_store_relaxed(&w->free_slots.word, 2);
    SP_SCHED_ASSERT(!sp__queue_shares(w->queue, shortest));
    sp_store_relaxed(&device->sharing, 1);
    SP_SCHED_ASSERT(!sp__queue_shares(w->queue, shortest));
    sp_store_relaxed(&device->spinning, 1);
    SP_SCHED_ASSERT(sp__queue_shares(w->queue, shortest));
    SP_SCHED_ASSERT(!sp__queue_shares(w->queue, shortest - 1));
    sp_store_relaxed(&w->free_slots.word, 1);
    SP_SCHED_ASSERT(!sp__queue_shares(w->queue, shortest));
    /* It has left the last dispatch, and does not spin yet. */
    sp_store_relaxed(&device->spinning, 0);
    sp_store_relaxed(&device->sharing, 0);
    sp_store_relaxed(&w->free_slots.word, 2);
    w->queue->history.has_sharer = true;
    SP_SCHED_ASSERT(sp__queue_shares(w->queue, shortest));
    w->queue->history.has_sharer = false;
}

#define MILLISECOND 1000000u

/* Dispatches of which sharing has saved so much each, for so many judgements of their class. Each
 * begins so long after the last one. */
static void share_and_save(world *w, uint64_t ns, uint64_t saved_ns, uint64_t idle_ns,
                           uint32_t judgements)
{
    const bool is_very_short = ns < w->device->options.share_ns;
    const sp_share_trial *trial = &w->queue->history.trials[is_very_short ? 0 : 1];
    const uint32_t end = trial->judgements + judgements;
    while (trial->judgements < end) {
        sp_clock_sleep(ns + idle_ns);
        sp__queue_judge_sharing(w->queue, ns, ns - saved_ns);
    }
}

static bool shares_after(world *w, uint64_t ns, uint64_t wait_ns)
{
    sp_clock_sleep(wait_ns);
    w->queue->history.has_sharer = true;
    return sp__queue_shares(w->queue, ns);
}

/* Whether such dispatches are shared after some judgements, and the pause in which they are timed.
 */
static bool pays(world *w, uint64_t ns, uint64_t saved_ns, uint64_t idle_ns)
{
    w->queue->history = (sp_share_history){0};
    share_and_save(w, ns, saved_ns, idle_ns, 4);
    return shares_after(w, ns, 3 * MILLISECOND);
}

static void check_saving(world *w, uint64_t ns)
{
    sp_store_relaxed(&w->free_slots.word, 2);
    SP_SCHED_ASSERT(pays(w, ns, ns / 4, 0));
    SP_SCHED_ASSERT(!pays(w, ns, ns / 32, 0));
    /* A core has been kept awake for a part of each pause only. */
    SP_SCHED_ASSERT(pays(w, ns, ns / 4, 100 * ns));
    SP_SCHED_ASSERT(!pays(w, ns, ns / 16, 100 * ns));
}

static void check_pauses(world *w, uint64_t ns)
{
    w->queue->history = (sp_share_history){0};
    share_and_save(w, ns, ns / 4, 0, 1);
    SP_SCHED_ASSERT(!shares_after(w, ns, 0));
    share_and_save(w, ns, ns / 4, 0, 1);
    SP_SCHED_ASSERT(!shares_after(w, ns, 0));
    SP_SCHED_ASSERT(shares_after(w, ns, 3 * MILLISECOND));
    share_and_save(w, ns, 0, 0, 1);
    SP_SCHED_ASSERT(shares_after(w, ns, 0));
    share_and_save(w, ns, 0, 0, 1);
    SP_SCHED_ASSERT(!shares_after(w, ns, 4 * MILLISECOND));
    SP_SCHED_ASSERT(shares_after(w, ns, 2 * MILLISECOND));
    share_and_save(w, ns, 0, 0, 3);
    SP_SCHED_ASSERT(!shares_after(w, ns, 30 * MILLISECOND));
    SP_SCHED_ASSERT(shares_after(w, ns, 20 * MILLISECOND));
    share_and_save(w, ns, ns / 4, 0, 1);
    share_and_save(w, ns, 0, 0, 2);
    SP_SCHED_ASSERT(shares_after(w, ns, 6 * MILLISECOND));
}

/* Whether misses of 0.8 ms and more, one after the other, wake the sleeping worker. */
static bool misses_wake(world *w, uint64_t ns)
{
    sp_store_relaxed(&w->device->sleeping, 1);
    for (uint64_t i = 0; i < 800000 / ns + 1; i++) sp__queue_miss(w->queue, ns);
    const bool is_woken = sp_load_relaxed(&w->device->sleeping) == 0;
    sp_store_relaxed(&w->device->sleeping, 0);
    return is_woken;
}

static void check_misses(world *w, uint64_t shortest)
{
    sp_store_relaxed(&w->free_slots.word, 2);
    SP_SCHED_ASSERT(misses_wake(w, shortest));
    SP_SCHED_ASSERT(!misses_wake(w, shortest / 2));
    sp_store_relaxed(&w->free_slots.word, 1);
    SP_SCHED_ASSERT(!misses_wake(w, shortest));
}

static uint64_t rest_ns;

static sp_status rest(const sp_tile *tile)
{
    (void)tile;
    sp_clock_sleep(rest_ns);
    return SP_OK;
}

/* Whether such dispatches wake the sleeping worker, four of them, one after the other. Those that
 * are shared have no worker that joins. */
static bool dispatches_wake(world *w, uint64_t ns)
{
    static const sp_kernel rests = {.name = "rest", .run = rest};
    sp_atomic_u32 tile_ns;
    rest_ns = ns / TILES;
    sp_store_relaxed(&tile_ns, (uint32_t)rest_ns);
    w->queue->tiles.kernel = &rests;
    sp_store_relaxed(&w->device->sleeping, 1);
    for (uint32_t i = 0; i < 4; i++) {
        SP_SCHED_ASSERT(sp__queue_run_tiles(w->queue, &tile_ns) == SP_OK);
    }
    const bool is_woken = sp_load_relaxed(&w->device->sleeping) == 0;
    sp_store_relaxed(&w->device->sleeping, 0);
    return is_woken;
}

/* After a pause no worker is awake for dispatches that are shared again. */
static void check_end_of_pause(world *w, uint64_t ns)
{
    sp_store_relaxed(&w->free_slots.word, 2);
    w->queue->history = (sp_share_history){0};
    SP_SCHED_ASSERT(dispatches_wake(w, ns));
    share_and_save(w, ns, 0, 0, 2);
    SP_SCHED_ASSERT(!dispatches_wake(w, ns));
    sp_clock_sleep(5 * MILLISECOND);
    SP_SCHED_ASSERT(dispatches_wake(w, ns));
}

/* The worker has ended; its bits are set by hand. */
static void execute_very_short(void *arg)
{
    world *w = arg;
    sp__queue_workers_stop(w->device);
    submit(w);
    execute(w);
    w->device->options.share_ns = 300000;
    w->device->options.ready_ns = 100000;
    w->device->base.limits.width = w->device->base.limits.run_slots = 4;
    sp_store_relaxed(&w->device->base.run_slots, &w->free_slots);
    check_very_short(w, w->device->options.ready_ns);
    check_saving(w, w->device->options.ready_ns);
    check_saving(w, w->device->options.share_ns);
    check_pauses(w, w->device->options.ready_ns);
    check_pauses(w, w->device->options.share_ns);
    check_misses(w, w->device->options.ready_ns);
    check_end_of_pause(w, w->device->options.ready_ns * 2);
    check_end_of_pause(w, w->device->options.share_ns);
}

static void subject_tiles_very_short(void *arg)
{
    (void)arg;
    world w;
    begin(&w, 1, 1);
    sp__subject_run((const sp_thread_fn[]){execute_very_short}, 1, &w);
    end(&w);
}

/* ---- the table ---- */

const sp_subject sp__subjects_tiles[] = {
    {.name = "tiles_join_2",
     .test = subject_tiles_join,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .planted = "leave_before_joiners forgets_helpers",
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {.name = "tiles_join_3",
     .test = subject_tiles_join,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "leave_before_joiners",
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {.name = "tiles_blocks_2",
     .test = subject_tiles_blocks,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .planted = "claims_one_tile",
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {.name = "tiles_blocks_3",
     .test = subject_tiles_blocks,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "claims_one_tile",
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {.name = "tiles_again",
     .test = subject_tiles_again,
     .thread_count = 2,
     .dpor_seconds = 15,
     .planted = "leave_before_joiners",
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {.name = "tiles_worker",
     .test = subject_tiles_worker,
     .arg = SP_SUBJECT_ARG(1),
     .thread_count = 2,
     .inexhaustible = SP_ENDLESS_NAPS,
     .planted = "leave_before_joiners",
     .options = SP_SLEEPERS,
     .seconds = 0.5},
    {.name = "tiles_worker_again",
     .test = subject_tiles_worker,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .inexhaustible = SP_ENDLESS_NAPS,
     .planted = "leave_before_joiners",
     .options = SP_SLEEPERS,
     .seconds = 0.5},
    {.name = "tiles_no_slot",
     .test = subject_tiles_no_slot,
     .thread_count = 2,
     .planted = "wakes_for_tiles",
     .options = SP_SLEEPERS,
     .seconds = 0.5},
    {.name = "tiles_short",
     .test = subject_tiles_short,
     .thread_count = 1,
     .planted = "shares_short_dispatches",
     .options = SP_SLEEPERS,
     .seconds = 0.5},
    {.name = "tiles_crowded",
     .test = subject_tiles_crowded,
     .thread_count = 1,
     .planted = "shares_when_crowded spinner_not_ready"},
    {.name = "tiles_very_short",
     .test = subject_tiles_very_short,
     .thread_count = 2,
     .planted = "shares_with_nobody wakes_when_crowded misses_for_ever "
                "only_very_short_miss never_pauses "
                "counts_sleep equal_pauses believes_one_judgement never_timed_alone",
     .options = SP_SLEEPERS,
     .seconds = 0.5},
    {.name = "tiles_core_taken",
     .test = subject_tiles_core_taken,
     .thread_count = 1,
     .planted = "shares_on_taken_cores",
     .options = SP_SLEEPERS,
     .seconds = 0.5},
    {0},
};
