/* SPDX-License-Identifier: Apache-2.0 */
/* Sharing one dispatch. The executor of a queue opens its tile job, idle workers and helpers join,
 * everybody claims tiles by number until none is left, then the executor closes the job and waits
 * for those who are still inside their last tile. Which thread runs a tile changes no bit of it. */
#include "device/queue/queue.h"

#include "base/clock.h"
#include "base/delay.h"
#include "base/fpenv.h"
#include "base/lock_check.h"
#include "base/tsan.h"

#define OPEN 0x80000000u
/* Turns of looking before the executor sleeps for the last joiners: they are inside a tile. */
#define SPIN_TURNS 256

static void run_one(sp_tile_job *tiles, uint32_t number)
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
    /* Relaxed: the executor reads it after it has seen every joiner leave. */
    sp_cas_relaxed(&tiles->failed, &none, sp__fault_create(status));
}

/* Claims and runs tiles until none is left; how many. */
static uint32_t run_claimed(sp_tile_job *tiles)
{
    for (uint32_t count = 0;; count++) {
        const uint32_t number = sp_fetch_add_relaxed(&tiles->next, 1);
        if (number >= sp_load_relaxed(&tiles->total)) return count;
        run_one(tiles, number);
    }
}

static void wait_for_joiners(sp_tile_job *tiles)
{
    for (int turn = 0;; turn++) {
        /* Pairs with the release of the last one to leave: its tiles' bytes are visible. */
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

sp_status sp__queue_run_tiles(sp_command_queue *queue)
{
    sp_tile_job *tiles = &queue->tiles;
    sp_store_relaxed(&tiles->next, 0);
    sp_store_relaxed(&tiles->failed, SP_NO_FAULT);
    sp_tsan_release(&tiles->state);
    /* Publishes the job; sequentially consistent because an idle worker looks at it after it has
     * set its bit, and the ring below looks at the bits. */
    sp_exchange_seq_cst(&tiles->state, OPEN);
    sp__queue_wake(sp__queue_device_of(queue), sp_load_relaxed(&tiles->total) - 1);
    sp_delay_point();
    run_claimed(tiles);
    sp_fetch_and_acq_rel(&tiles->state, ~OPEN);
    if (!SP_PLANTED(leave_before_joiners)) wait_for_joiners(tiles);
    return sp__fault_report(sp_load_relaxed(&tiles->failed));
}

bool sp__queue_has_tiles(const sp_command_queue *queue)
{
    const sp_tile_job *tiles = &queue->tiles;
    /* Sequentially consistent: an idle worker looks here after it has set its bit. */
    return (sp_load_seq_cst(&tiles->state) & OPEN) != 0 &&
           sp_load_relaxed(&tiles->next) < sp_load_relaxed(&tiles->total);
}

static bool join(sp_tile_job *tiles)
{
    uint32_t state = sp_load_relaxed(&tiles->state); /* an idle worker looks once more */
    while ((state & OPEN) != 0) {
        /* Acquire: the job's fields. They stay as they are until we leave. */
        if (!sp_cas_acquire(&tiles->state, &state, state + 1)) continue;
        sp_tsan_acquire(&tiles->state);
        return true;
    }
    return false;
}

bool sp__queue_join_tiles(sp_command_queue *queue)
{
    sp_tile_job *tiles = &queue->tiles;
    if (!join(tiles)) return false;
    const sp_fpenv fpenv = sp_fpenv_enter();
    const uint32_t count = run_claimed(tiles);
    sp_fpenv_leave(fpenv);
    if (count > 0) sp_fetch_add_relaxed(&queue->tiles_shared, (uint64_t)count);
    sp_delay_point();
    sp_tsan_release(&tiles->state);
    /* Release: our tiles' bytes. If we were the last inside a closed job, its executor may sleep;
     * the word belongs to the queue and outlives the job. */
    if (sp_fetch_sub_acq_rel(&tiles->state, 1) == 1) sp_word_wake(&tiles->state, 1);
    return count > 0;
}
