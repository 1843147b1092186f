/* SPDX-License-Identifier: Apache-2.0 */
/* Sharing one dispatch. The executor of a queue runs its tiles alone if that takes little time.
 * Else it opens its tile job, idle workers and helpers join, all claim tiles by number until none
 * is left, then the executor closes the job and waits for joiners that are inside their last tile.
 * The bits of a tile do not depend on its thread. */
#include "device/queue/queue.h"

#include "base/clock.h"
#include "base/delay.h"
#include "base/fpenv.h"
#include "base/lock_check.h"
#include "base/tsan.h"

#define OPEN 0x80000000u
/* Each joining thread's last claim is past the end: the counter does not overflow. */
#define MOST_CLAIMED 65536u
/* Turns of polling before the executor sleeps until the last joiners have left their tiles. */
#define SPIN_TURNS 1024

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Runs the largest block of tiles from `number` on that ends before `end`: rows of one plane of the
 * grid, or a part of a row; one tile if the kernel joins none. Returns its number of tiles. */
static uint32_t block_run(sp_tile_job *tiles, uint32_t number, uint32_t end)
{
    const uint32_t *grid = tiles->tiling.grid, *size = tiles->tiling.size;
    const uint32_t row = number / grid[0], left = end - number;
    sp_tile tile = {
        .index = {number % grid[0], row % grid[1], row / grid[1]},
        .count = {1, 1, 1},
        .grid = {grid[0], grid[1], grid[2]},
        .size = {size[0], size[1], size[2]},
        .bindings = tiles->bindings,
        .constants = tiles->constants,
    };
    if (tiles->kernel->joins_tiles) {
        tile.count[0] = least(grid[0] - tile.index[0], left);
        if (tile.index[0] == 0 && left > grid[0]) {
            tile.count[1] = least(grid[1] - tile.index[1], left / grid[0]);
        }
    }
    sp_lock_check_none("a kernel");
    const sp_status status = tiles->kernel->run(&tile);
    if (SP_UNLIKELY(status != SP_OK)) {
        uint32_t none = SP_NO_FAULT;
        /* Relaxed: the executor reads it after all joiners have left. */
        sp_cas_relaxed(&tiles->failed, &none, sp__fault_create(status));
    }
    return tile.count[0] * tile.count[1];
}

static void tiles_run(sp_tile_job *tiles, uint32_t first, uint32_t end)
{
    while (first < end) first += block_run(tiles, first, end);
}

/* How many tiles a thread claims at a time, of `left`: one, or where the kernel runs a block faster
 * as many as leave two claims for each core that may share them. */
static uint32_t claim_size(const sp_command_queue *queue, uint32_t left)
{
    if (!queue->tiles.kernel->joins_tiles) return 1;
    const sp_dev *device = &sp__queue_device_of(queue)->base;
    const uint32_t sharers = 1 + least(sp__device_free_width(device), device->limits.width);
    const uint32_t size = least(left / (2 * sharers), MOST_CLAIMED);
    return size > 1 ? size : 1;
}

/* Claims tiles and runs them; returns how many, 0: all have been claimed. */
static uint32_t tiles_run_next(sp_command_queue *queue)
{
    sp_tile_job *tiles = &queue->tiles;
    const uint32_t total = sp_load_relaxed(&tiles->total);
    const uint32_t next = sp_load_relaxed(&tiles->next); /* a hint: others may claim meanwhile */
    const uint32_t wanted = next < total ? claim_size(queue, total - next) : 1;
    const uint32_t claimed = SP_PLANTED(claims_one_tile) ? 1 : wanted;
    const uint32_t first = sp_fetch_add_relaxed(&tiles->next, claimed);
    if (first >= total) return 0;
    const uint32_t count = least(wanted, total - first);
    tiles_run(tiles, first, first + count);
    return count;
}

static void tiles_wait_for_joiners(sp_tile_job *tiles)
{
    for (int turn = 0;; turn++) {
        /* Pairs with the release of the last joiner to leave: its tiles' bytes are visible. */
        const uint32_t state = sp_load_acquire(&tiles->state);
        if (state == 0) break;
        if (turn < SP_SPIN_TURNS(SPIN_TURNS)) {
            sp_spin_hint();
        } else {
            sp_word_wait(&tiles->state, state, SP_NO_DEADLINE);
        }
    }
    sp_tsan_acquire(&tiles->state);
}

/* How long each of `count` tiles took that began at `start_ns`: at least 1. */
static uint32_t tile_ns_since(uint64_t start_ns, uint32_t count)
{
    const uint64_t ns = (sp_clock_now() - start_ns) / count;
    return ns == 0 ? 1 : ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
}

/* Runs the tiles up to `end`; returns how long one took. */
static uint32_t tiles_run_alone(sp_tile_job *tiles, uint32_t end)
{
    const uint32_t first = sp_load_relaxed(&tiles->next);
    const uint64_t start_ns = sp_clock_now();
    tiles_run(tiles, first, end);
    sp_store_relaxed(&tiles->next, end);
    return tile_ns_since(start_ns, end - first);
}

/* Shares the `left` tiles with workers; returns when all are done, how long one took. */
static uint32_t tiles_run_shared(sp_command_queue *queue, uint32_t left)
{
    sp_tile_job *tiles = &queue->tiles;
    uint32_t count = 0, claimed;
    const uint32_t expected_ns = sp_load_relaxed(&tiles->tile_ns);
    const uint64_t start_ns = sp_clock_now();
    sp_tsan_release(&tiles->state);
    /* Publishes the job. Sequentially consistent: an idle worker reads it after it has set its bit,
     * and the wake below reads the bits. */
    sp_exchange_seq_cst(&tiles->state, OPEN);
    /* Not counted again: workers may have claimed all of them since. */
    sp__queue_wake_sharers(queue, left - 1);
    sp_delay_point();
    while ((claimed = tiles_run_next(queue)) > 0) count += claimed;
    const uint32_t ns = count > 0 ? tile_ns_since(start_ns, count) : expected_ns;
    sp_fetch_and_acq_rel(&tiles->state, ~OPEN);
    if (!SP_PLANTED(leave_before_joiners)) tiles_wait_for_joiners(tiles);
    if (!SP_PLANTED(forgets_helpers)) sp__thread_add_helped((uint64_t)(left - count) * ns);
    queue->history.has_sharer = count < left;
    if (count == left) sp__queue_miss(queue, (uint64_t)left * ns);
    const uint64_t share_ns = sp__queue_device_of(queue)->options.share_ns;
    if (count == left || share_ns == 0) return ns;
    const uint64_t alone_ns = (uint64_t)left * expected_ns;
    sp__queue_judge_sharing(queue, alone_ns, sp_clock_now() - start_ns);
    /* What a tile took is not what it takes alone, unless that was measured in cold caches. */
    return ns < expected_ns / 2 ? ns : expected_ns;
}

/* The same, of `left` tiles that took `ns` each the last time; a clock is read only where the time
 * is needed. */
static uint32_t tiles_run_left(sp_command_queue *queue, uint32_t left, uint32_t ns)
{
    sp_tile_job *tiles = &queue->tiles;
    const uint32_t total = sp_load_relaxed(&tiles->total);
    if (ns != 0 && !sp__queue_times_tiles(queue, (uint64_t)left * ns)) {
        tiles_run(tiles, total - left, total);
        sp_store_relaxed(&tiles->next, total);
        return ns;
    }
    const uint32_t taken_ns = tiles_run_alone(tiles, total);
    if (left > 1) sp__queue_miss(queue, (uint64_t)left * taken_ns);
    return taken_ns;
}

sp_status sp__queue_run_tiles(sp_command_queue *queue, sp_atomic_u32 *tile_ns)
{
    sp_tile_job *tiles = &queue->tiles;
    const uint32_t total = sp_load_relaxed(&tiles->total);
    uint32_t ns = sp_load_relaxed(tile_ns);
    sp_store_relaxed(&tiles->next, 0);
    sp_store_relaxed(&tiles->failed, SP_NO_FAULT);
    const uint64_t share_ns = sp__queue_device_of(queue)->options.share_ns;
    if (ns == 0 && share_ns > 0) ns = tiles_run_alone(tiles, 1);
    const uint32_t left = total - sp_load_relaxed(&tiles->next);
    const bool is_shared =
        sp__queue_shares(queue, (uint64_t)left * ns) || SP_PLANTED(shares_short_dispatches);
    if (left > 1 && is_shared) {
        sp_store_relaxed(&tiles->tile_ns, ns);
        ns = tiles_run_shared(queue, left);
    } else if (left > 0) {
        ns = tiles_run_left(queue, left, ns);
    }
    sp_store_relaxed(tile_ns, ns);
    return sp__fault_report(sp_load_relaxed(&tiles->failed));
}

uint32_t sp__queue_tiles_left(const sp_command_queue *queue)
{
    const sp_tile_job *tiles = &queue->tiles;
    /* Sequentially consistent: an idle worker reads it after it has set its bit. */
    if ((sp_load_seq_cst(&tiles->state) & OPEN) == 0) return 0;
    const uint32_t next = sp_load_relaxed(&tiles->next);
    const uint32_t total = sp_load_relaxed(&tiles->total);
    return next < total ? total - next : 0;
}

static bool tiles_join(sp_tile_job *tiles)
{
    uint32_t state = sp_load_relaxed(&tiles->state); /* a hint: an idle worker polls again */
    while ((state & OPEN) != 0) {
        /* Acquire: the job's fields, which do not change until this joiner leaves. */
        if (!sp_cas_acquire(&tiles->state, &state, state + 1)) continue;
        sp_tsan_acquire(&tiles->state);
        return true;
    }
    return false;
}

static void tiles_leave(sp_tile_job *tiles)
{
    sp_delay_point();
    sp_tsan_release(&tiles->state);
    /* Release: the bytes of the tiles run here. After the last joiner of a closed job its executor
     * may sleep; the word belongs to the queue and outlives the job. */
    if (sp_fetch_sub_acq_rel(&tiles->state, 1) == 1) sp_word_wake(&tiles->state, 1);
}

bool sp__queue_join_tiles(sp_command_queue *queue, sp_sharer_test *may_go_on)
{
    const sp_queue_device *device = sp__queue_device_of(queue);
    sp_tile_job *tiles = &queue->tiles;
    if (!tiles_join(tiles)) return false;
    uint32_t count = 0, claimed = 1;
    const sp_fpenv fpenv = sp_fpenv_enter();
    while (claimed > 0 && (may_go_on == NULL || may_go_on(device))) {
        claimed = tiles_run_next(queue);
        count += claimed;
    }
    sp_fpenv_leave(fpenv);
    if (count > 0) sp_fetch_add_relaxed(&queue->tiles_shared, (uint64_t)count);
    tiles_leave(tiles);
    return count > 0;
}
