/* SPDX-License-Identifier: Apache-2.0 */
/* The consumer side of a queue: the claim's holder runs submissions in order until there are none,
 * until the executor's goal is reached, or until the queue must be parked. */
#include "device/queue/queue.h"

#include "base/assert.h"
#include "base/delay.h"
#include "base/error.h"
#include "base/fpenv.h"
#include "base/tsan.h"
#include "device/queue/engine.h"
#include "device/queue/record.h"
#include "device/wait.h"

/* ---- the claim ---- */

bool sp__queue_has_work(const sp_command_queue *queue)
{
    /* Sequentially consistent: a worker polls again after it has set its idle bit. */
    const uint64_t word =
        SP_PLANTED(relaxed_look) ? sp_load_relaxed(&queue->word) : sp_load_seq_cst(&queue->word);
    return (word & SP_CLAIM_MASK) == SP_FREE &&
           word / SP_ONE_SUBMISSION > sp_load_relaxed(&queue->drained);
}

bool sp__queue_is_claimed(const sp_command_queue *queue)
{
    /* Acquire: pairs with the release of the claim. */
    return (sp_load_acquire(&queue->word) & SP_CLAIM_MASK) == SP_RUNNING;
}

bool sp__queue_claim(sp_command_queue *queue)
{
    /* Sequentially consistent: a worker polls again after it has set its idle bit. */
    uint64_t word = sp_load_seq_cst(&queue->word);
    while ((word & SP_CLAIM_MASK) == SP_FREE &&
           word / SP_ONE_SUBMISSION > sp_load_relaxed(&queue->drained)) {
        if (SP_PLANTED(check_then_act)) {
            sp_store_seq_cst(&queue->word, word + SP_RUNNING);
            return true;
        }
        /* Acquire: the records of producers, and the last holder's writes to claim fields. */
        if (sp_cas_acquire(&queue->word, &word, word + SP_RUNNING)) {
            sp_tsan_acquire(&queue->word);
            return true;
        }
    }
    return false;
}

/* RUNNING -> FREE if nothing after `drained` was published. */
static bool claim_release_if_empty(sp_command_queue *queue, uint64_t drained)
{
    uint64_t word = drained * SP_ONE_SUBMISSION + SP_RUNNING;
    if (SP_PLANTED(no_second_look)) {
        sp_fetch_and_acq_rel(&queue->word, ~SP_CLAIM_MASK);
        return true;
    }
    sp_tsan_release(&queue->word);
    /* Release: publishes the claim fields to the next claim. */
    return sp_cas_release(&queue->word, &word, word - SP_RUNNING);
}

void sp__queue_give_up_with_work(sp_command_queue *queue)
{
    sp_queue_device *device = sp__queue_device_of(queue);
    sp_tsan_release(&queue->word);
    sp_fetch_sub_seq_cst(&queue->word, (uint64_t)SP_RUNNING);
    sp__queue_wake(device, 1);
}

void sp__queue_unpark(sp_command_queue *queue)
{
    sp_queue_device *device = sp__queue_device_of(queue);
    /* Keeps the device open until the wake-up is done, though the queue may drain before that. */
    sp_fetch_add_relaxed(&device->visitors, 1);
    sp_tsan_release(&queue->word);
    /* Release: publishes this thread's writes to the queue (a host function's result). */
    sp_fetch_sub_seq_cst(&queue->word, (uint64_t)SP_PARKED);
    sp_delay_point();
    if (!SP_PLANTED(quiet_unpark)) sp__queue_wake(device, 1);
    sp_fetch_sub_release(&device->visitors, 1);
}

/* Relaxed: the unparking thread finds the queue through a lock, or a flag, that is taken or set
 * afterwards. */
void sp__queue_become_parked(sp_command_queue *queue)
{
    sp_fetch_add_relaxed(&queue->word, (uint64_t)(SP_PARKED - SP_RUNNING));
}

static void park_fire(sp_waiter *waiter)
{
    sp__queue_unpark(SP_CONTAINER_OF(waiter, sp_command_queue, park));
}

bool sp__queue_park_on(sp_command_queue *queue, sp_point point)
{
    if (sp__point_has_passed(point)) return false;
    sp__point_flush(point);
    sp_store_relaxed(&queue->parked_on, point.timeline);
    sp_store_relaxed(&queue->parked_value, point.value);
    queue->park = (sp_waiter){.value = point.value, .fire = park_fire};
    sp__queue_become_parked(queue);
    sp_delay_point();
    if (sp__timeline_register(point.timeline, &queue->park) || SP_PLANTED(park_for_good))
        return true;
    /* Not registered, so no other thread unparks the queue. */
    sp_fetch_sub_relaxed(&queue->word, (uint64_t)(SP_PARKED - SP_RUNNING));
    return false;
}

/* ---- the cursor ---- */

static const sp_record *cursor_record(sp_command_queue *queue)
{
    sp_cursor *cursor = &queue->cursor;
    const sp_record *record =
        (const sp_record *)(const void *)(cursor->chunk->bytes + cursor->offset);
    if (cursor->offset < cursor->chunk->capacity && !sp__record_is_end(record)) return record;
    sp_chunk *empty = cursor->chunk;
    cursor->chunk = empty->next;
    cursor->offset = 0;
    sp__queue_chunk_retire(queue, empty);
    return (const sp_record *)(const void *)cursor->chunk->bytes;
}

/* Reads the header at the cursor. False if the submission must wait: the queue is parked. */
static bool submission_enter(sp_command_queue *queue, uint64_t value)
{
    sp_cursor *cursor = &queue->cursor;
    const sp_record *header = cursor_record(queue);
    SP_ASSERT(header->is_header);
    const sp_point *points = sp__record_points((sp_record *)(uintptr_t)header);
    const sp_queue_engine *engine = sp__queue_device_of(queue)->options.engine;
    if (!engine->has_room(queue, value)) return false;
    cursor->commands_left = header->header.commands;
    while (cursor->waits_met < header->count) {
        const sp_point point = points[cursor->waits_met];
        if (!engine->wait(queue, point) && sp__queue_park_on(queue, point)) return false;
        cursor->waits_met++;
    }
    sp_fault fault = sp_load_relaxed(&queue->base.device->lost);
    for (uint32_t i = 0; i < header->fault_count && fault == SP_NO_FAULT; i++) {
        fault = sp__point_fault(points[i]);
    }
    cursor->is_consumer = false;
    if (header->is_untracked && fault == SP_NO_FAULT) {
        fault = sp__lease_faults_consume(&queue->base.lease_faults, header->header.lease,
                                         header->header.thread, value);
        cursor->is_consumer = fault != SP_NO_FAULT;
    }
    if (header->count > 0) sp__command_queue_forget_waits(queue, value);
    cursor->waits_met = 0;
    cursor->is_inside = true;
    cursor->lease = header->header.lease;
    cursor->thread = header->header.thread;
    cursor->fault = fault;
    cursor->offset += header->bytes;
    return true;
}

/* Called before the value is done, since a report of the failure clears the entry. The failure of a
 * consumer was noted when the submission was entered. What was cancelled fails nothing else. */
static void lease_fault_note(sp_command_queue *queue, uint64_t value)
{
    const sp_cursor *cursor = &queue->cursor;
    if (cursor->is_consumer || cursor->fault == SP_FAULT_CANCELLED) return;
    sp__lease_faults_add(&queue->base.lease_faults, cursor->lease, cursor->thread, value,
                         cursor->fault);
}

static void submission_leave(sp_command_queue *queue, uint64_t value)
{
    sp_cursor *cursor = &queue->cursor;
    cursor->is_inside = false;
    if (SP_UNLIKELY(cursor->fault != SP_NO_FAULT)) {
        sp__timeline_fail(&queue->base.timeline, value, cursor->thread, cursor->fault);
        if (!SP_PLANTED(late_lease_fault)) lease_fault_note(queue, value);
    }
    sp_queue_device *device = sp__queue_device_of(queue);
    if (sp__queue_is_limited(queue)) {
        sp_fetch_sub_relaxed(&device->in_flight, (uint64_t)1);
    }
    device->options.engine->finish(queue, value);
    if (SP_PLANTED(late_lease_fault) && cursor->fault != SP_NO_FAULT) {
        lease_fault_note(queue, value);
    }
}

/* ---- commands ---- */

static void command_count(sp_command_queue *queue, const sp_executor *executor)
{
    sp_atomic_u64 *counter = executor->kind == SP_WORKER ? &queue->by_workers : &queue->by_helpers;
    sp_store_relaxed(counter, sp_load_relaxed(counter) + 1);
}

/* A host function runs in any case; it gets the poison of what it reads as an earlier failure. */
static bool host_run(sp_command_queue *queue, const sp_record *record, const sp_binding *slots,
                     const sp_executor *executor)
{
    sp_cursor *cursor = &queue->cursor;
    const sp_binding *bindings = sp__record_bindings(record);
    if (cursor->fault == SP_NO_FAULT && !cursor->is_host_done && !SP_PLANTED(host_reads_poison)) {
        cursor->fault = sp__queue_poison_of(bindings, record->count);
    }
    if (!sp__queue_host_is_done(queue, record, executor)) return false;
    cursor->is_host_done = false;
    if (cursor->fault == SP_NO_FAULT) cursor->fault = cursor->host_fault;
    if (SP_LIKELY(cursor->fault == SP_NO_FAULT)) {
        sp__queue_clear_poison(bindings, record->count);
    } else {
        sp__queue_skip(record, slots, cursor->fault);
    }
    return true;
}

/* Runs or skips one command; false if the queue was parked before it. */
static bool command_run(sp_command_queue *queue, const sp_record *record, const sp_binding *slots,
                        const sp_executor *executor)
{
    sp_cursor *cursor = &queue->cursor;
    if (record->type == SP_COMMAND_HOST) return host_run(queue, record, slots, executor);
    if (SP_UNLIKELY(cursor->fault != SP_NO_FAULT)) {
        sp__queue_skip(record, slots, cursor->fault);
        return true;
    }
    const uint32_t quirk = record->type == SP_COMMAND_DISPATCH ? record->command.kernel->quirk : 0;
    if (SP_UNLIKELY(quirk != 0) && !cursor->has_permit && !sp__queue_throttle_enter(queue, quirk)) {
        return false;
    }
    cursor->fault = sp__queue_execute(queue, record, slots);
    if (SP_UNLIKELY(quirk != 0)) {
        cursor->has_permit = false;
        sp__queue_throttle_leave(sp__queue_device_of(queue), quirk);
    }
    command_count(queue, executor);
    return true;
}

/* A dispatch that has a permit runs, and returns it. */
static void list_check_cancel(sp_cursor *cursor, const sp_record *record)
{
    const sp_atomic_u32 *cancel = record->command.cancel;
    if (SP_LIKELY(cancel == NULL) || sp_load_relaxed(cancel) == 0) return;
    if (cursor->has_permit && !SP_PLANTED(cancel_keeps_permit)) return;
    if (cursor->fault == SP_NO_FAULT) cursor->fault = SP_FAULT_CANCELLED;
}

/* Begins the list at the cursor; true if the engine has executed all of it. */
static bool list_enter(sp_command_queue *queue, const sp_record *record)
{
    sp_cursor *cursor = &queue->cursor;
    cursor->in_list = sp__queue_list_records(record->command.list);
    list_check_cancel(cursor, record);
    if (cursor->fault != SP_NO_FAULT) return false;
    cursor->fault = sp__queue_poison_of(sp__record_bindings(record), record->count);
    if (cursor->fault != SP_NO_FAULT) return false;
    return sp__queue_execute_list(queue, record, &cursor->fault);
}

static bool list_run(sp_command_queue *queue, const sp_record *record, const sp_executor *executor)
{
    sp_cursor *cursor = &queue->cursor;
    const sp_binding *slots = sp__record_bindings(record);
    const bool is_executed = cursor->in_list == NULL && list_enter(queue, record);
    if (is_executed) command_count(queue, executor);
    while (!is_executed && !sp__record_is_end(cursor->in_list)) {
        list_check_cancel(cursor, record);
        if (!command_run(queue, cursor->in_list, slots, executor)) return false;
        cursor->in_list = sp__record_next(cursor->in_list);
    }
    cursor->in_list = NULL;
    if (cursor->fault == SP_NO_FAULT) {
        sp__queue_clear_poison(slots, record->count);
    } else {
        sp__queue_skip(record, NULL, cursor->fault);
    }
    sp__queue_list_release(record->command.list);
    return true;
}

/* Runs the submission `value` from the cursor's position; false if the queue is parked. */
static bool submission_run(sp_command_queue *queue, uint64_t value, const sp_executor *executor)
{
    sp_cursor *cursor = &queue->cursor;
    if (!cursor->is_inside && !submission_enter(queue, value)) return false;
    while (cursor->commands_left > 0) {
        const sp_record *record = cursor_record(queue);
        const bool is_done = record->type == SP_COMMAND_LIST
                                 ? list_run(queue, record, executor)
                                 : command_run(queue, record, NULL, executor);
        if (!is_done) return false;
        cursor->offset += record->bytes;
        cursor->commands_left--;
    }
    submission_leave(queue, value);
    return true;
}

/* Whether the executor's goal is reached. A helper's own point can pass while it runs another
 * queue.
 */
static bool executor_is_done(const sp_executor *executor, uint64_t drained)
{
    if (drained >= executor->until) return true;
    return executor->kind == SP_HELPER &&
           (sp__point_has_passed(executor->awaited) || sp__helper_is_late(executor->record));
}

void sp__queue_drain(sp_command_queue *queue, const sp_executor *executor)
{
    const sp_queue_engine *engine = sp__queue_device_of(queue)->options.engine;
    const sp_fpenv fpenv = sp_fpenv_enter();
    queue->cursor.fpenv = fpenv;
    engine->enter(queue);
    for (uint32_t budget = executor->budget;; budget--) {
        const uint64_t drained = sp_load_relaxed(&queue->drained);
        /* Acquire: the published records. */
        const uint64_t published = sp_load_acquire(&queue->word) / SP_ONE_SUBMISSION;
        sp_tsan_acquire(&queue->word);
        if (drained == published && claim_release_if_empty(queue, drained)) break;
        if (drained == published) continue;
        if (budget == 0 || executor_is_done(executor, drained)) {
            sp__queue_give_up_with_work(queue);
            break;
        }
        if (!submission_run(queue, drained + 1, executor)) break;
    }
    engine->leave();
    sp_fpenv_leave(fpenv);
}
