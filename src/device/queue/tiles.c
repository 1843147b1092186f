/* SPDX-License-Identifier: Apache-2.0 */
/* Sharing one dispatch. The executor of a queue opens its tile job, idle workers and helpers join,
 * all claim tiles by number until none is left, then the executor closes the job and waits for
 * joiners that are inside their last tile. The bits of a tile do not depend on its thread. */
#include "device/queue/queue.h"

#include "base/clock.h"
#include "base/delay.h"
#include "base/fpenv.h"
#include "base/lock_check.h"
#include "base/tsan.h"

#define OPEN 0x80000000u
/* Turns of polling before the executor sleeps until the last joiners have left their tiles. */
#define SPIN_TURNS 256

static void tile_run(sp_tile_job *tiles, uint32_t number)
{
    const sp_tile tile = {
        .index = {number % tiles->grid[0], number / tiles->grid[0] % tiles->grid[1],
                  number / tiles->grid[0] / tiles->grid[1]},
        .grid = {tiles->grid[0], tiles->grid[1], tiles->grid[2]},
        .bindings = tiles->bindings,
        .constants = tiles->constants,
    };
    sp_lock_check_none("a kernel");
    const sp_status status = tiles->kernel->run(&tile);
    if (SP_LIKELY(status == SP_OK)) return;
    uint32_t none = SP_NO_FAULT;
    /* Relaxed: the executor reads it after all joiners have left. */
    sp_cas_relaxed(&tiles->failed, &none, sp__fault_create(status));
}

/* Claims and runs tiles until none is left; returns their number. */
static uint32_t tiles_run_claimed(sp_tile_job *tiles)
{
    for (uint32_t count = 0;; count++) {
        const uint32_t number = sp_fetch_add_relaxed(&tiles->next, 1);
        if (number >= sp_load_relaxed(&tiles->total)) return count;
        tile_run(tiles, number);
    }
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

/* Workers to wake: one for each tile that the executor does not run itself, but no more than cores
 * that no other run needs. */
static uint32_t tiles_wanted(const sp_command_queue *queue)
{
    const uint32_t tiles = sp_load_relaxed(&queue->tiles.total) - 1;
    if (SP_PLANTED(wakes_for_tiles)) return tiles;
    const uint32_t free_width = sp__device_free_width(queue->base.device);
    return tiles < free_width ? tiles : free_width;
}

sp_status sp__queue_run_tiles(sp_command_queue *queue)
{
    sp_tile_job *tiles = &queue->tiles;
    sp_store_relaxed(&tiles->next, 0);
    sp_store_relaxed(&tiles->failed, SP_NO_FAULT);
    sp_tsan_release(&tiles->state);
    /* Publishes the job. Sequentially consistent: an idle worker reads it after it has set its bit,
     * and the wake below reads the bits. */
    sp_exchange_seq_cst(&tiles->state, OPEN);
    sp__queue_wake(sp__queue_device_of(queue), tiles_wanted(queue));
    sp_delay_point();
    tiles_run_claimed(tiles);
    sp_fetch_and_acq_rel(&tiles->state, ~OPEN);
    if (!SP_PLANTED(leave_before_joiners)) tiles_wait_for_joiners(tiles);
    return sp__fault_report(sp_load_relaxed(&tiles->failed));
}

bool sp__queue_has_tiles(const sp_command_queue *queue)
{
    const sp_tile_job *tiles = &queue->tiles;
    /* Sequentially consistent: an idle worker reads it after it has set its bit. */
    return (sp_load_seq_cst(&tiles->state) & OPEN) != 0 &&
           sp_load_relaxed(&tiles->next) < sp_load_relaxed(&tiles->total);
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

bool sp__queue_join_tiles(sp_command_queue *queue)
{
    sp_tile_job *tiles = &queue->tiles;
    if (!tiles_join(tiles)) return false;
    const sp_fpenv fpenv = sp_fpenv_enter();
    const uint32_t count = tiles_run_claimed(tiles);
    sp_fpenv_leave(fpenv);
    if (count > 0) sp_fetch_add_relaxed(&queue->tiles_shared, (uint64_t)count);
    sp_delay_point();
    sp_tsan_release(&tiles->state);
    /* Release: the bytes of the tiles run here. After the last joiner of a closed job its executor
     * may sleep; the word belongs to the queue and outlives the job. */
    if (sp_fetch_sub_acq_rel(&tiles->state, 1) == 1) sp_word_wake(&tiles->state, 1);
    return count > 0;
}
