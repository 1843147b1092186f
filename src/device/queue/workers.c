/* SPDX-License-Identifier: Apache-2.0 */
/* Workers: threads that poll the queues for work, spin a little where there was some, nap, and then
 * sleep until a submit wakes them. Helpers: waiting threads that run work themselves. */
#include "device/queue/queue.h"

#include "base/clock.h"
#include "base/delay.h"
#include "base/error.h"
#include "base/heap.h"

/* Submissions that a worker runs of one queue before it polls the others: fairness. */
#define WORKER_BUDGET 64
/* Longest chain of parked queues that a helper follows. */
#define MAX_CHAIN 8

/* ---- waking ---- */

/* Wakes one worker of the mask. The thread that clears the bit wakes the worker: one wake-up each.
 */
static bool worker_wake_one(sp_queue_device *device, sp_atomic_u64 *mask)
{
    uint64_t seen = sp_load_seq_cst(mask);
    while (seen != 0) {
        const uint64_t bit = seen & (~seen + 1);
        seen = sp_fetch_and_acq_rel(mask, ~bit);
        if ((seen & bit) != 0) {
            sp_parker_unpark(&device->workers[__builtin_ctzll(bit)].parker);
            return true;
        }
    }
    return false;
}

uint32_t sp__queue_wake_spinning(sp_queue_device *device, uint32_t count)
{
    uint32_t woken = 0;
    while (woken < count && worker_wake_one(device, &device->spinning)) woken++;
    return woken;
}

bool sp__queue_wake(sp_queue_device *device, uint32_t count)
{
    const uint32_t spinning = sp__queue_wake_spinning(device, count);
    bool is_any = spinning > 0;
    count -= spinning;
    while (count > 0 && (worker_wake_one(device, &device->napping) ||
                         worker_wake_one(device, &device->sleeping))) {
        is_any = true;
        count--;
    }
    return is_any;
}

bool sp__queue_notify(sp_queue_device *device)
{
    /* Sequentially consistent: after the publish, see queue.h. A napping worker polls by itself; a
     * thread that has seen a worker's bit in `sleeping` no longer sees it in `napping`. */
    return sp_load_seq_cst(&device->sleeping) != 0 && sp_load_relaxed(&device->napping) == 0 &&
           worker_wake_one(device, &device->sleeping);
}

/* ---- working ---- */

/* Sequentially consistent, like everything an idle worker polls after it has set its bit: a
 * submitter of a queue that it misses here sees the bit. */
static sp_command_queue *queue_at(sp_queue_device *device, uint32_t index)
{
    return SP_PLANTED(relaxed_queue_at) ? sp_load_relaxed(&device->queues[index])
                                        : sp_load_seq_cst(&device->queues[index]);
}

static uint32_t queue_count(sp_queue_device *device)
{
    return sp_load_seq_cst(&device->queue_count);
}

/* Whether there is work for another idle worker. */
static bool device_has_more_work(sp_queue_device *device, const sp_command_queue *besides)
{
    const uint32_t count = queue_count(device);
    for (uint32_t i = 0; i < count; i++) {
        const sp_command_queue *queue = queue_at(device, i);
        if (queue != NULL && queue != besides && sp__queue_has_work(queue)) return true;
    }
    return false;
}

static bool queue_drain_if_free(sp_command_queue *queue)
{
    if (!sp__queue_claim(queue)) return false;
    sp_queue_device *device = sp__queue_device_of(queue);
    if (!SP_PLANTED(keeps_work) && device_has_more_work(device, queue)) sp__queue_wake(device, 1);
    const sp_executor executor = {.kind = SP_WORKER, .until = UINT64_MAX, .budget = WORKER_BUDGET};
    sp_delay_point();
    sp__queue_drain(queue, &executor);
    return true;
}

/* One round over the queues, from a different start for each worker. True if there was work. Free
 * queues come first: the worker may have been woken for one, and tiles may take long. */
static bool worker_poll(sp_queue_worker *worker)
{
    sp_queue_device *device = worker->device;
    const uint32_t count = queue_count(device);
    bool is_any = false;
    for (uint32_t i = 0; i < count; i++) {
        sp_command_queue *queue = queue_at(device, (i + worker->index) % count);
        if (queue != NULL && queue_drain_if_free(queue)) is_any = true;
    }
    for (uint32_t i = 0; i < count; i++) {
        sp_command_queue *queue = queue_at(device, (i + worker->index) % count);
        if (queue == NULL || !sp__queue_share_tiles(queue)) continue;
        worker->shared_ns = sp_clock_now();
        is_any = true;
    }
    return is_any;
}

bool sp__queue_device_has_work(sp_queue_device *device)
{
    const uint32_t count = queue_count(device);
    for (uint32_t i = 0; i < count; i++) {
        const sp_command_queue *queue = queue_at(device, i);
        if (queue == NULL) continue;
        if (sp__queue_has_work(queue) || sp__queue_has_tiles_to_share(queue)) return true;
    }
    return false;
}

/* Sets the worker's bit, polls once more, and parks until woken or until the deadline. It runs
 * nothing while the bit is set: a submitter that clears the bit relies on this worker, and its
 * submission would wait for the end of that work though other workers are idle. */
static bool worker_idle(sp_queue_worker *worker, sp_atomic_u64 *mask, uint64_t deadline_ns)
{
    const uint64_t bit = (uint64_t)1 << worker->index;
    sp_fetch_or_seq_cst(mask, bit);
    sp_delay_point();
    const bool is_woken =
        sp__queue_device_has_work(worker->device) || sp_parker_park(&worker->parker, deadline_ns);
    /* A submitter may have seen the bit after the poll above; the worker polls again before it
     * sleeps. */
    sp_fetch_and_acq_rel(mask, ~bit);
    return is_woken;
}

static void worker_main(void *arg)
{
    sp_queue_worker *worker = arg;
    sp_queue_device *device = worker->device;
    bool is_woken = false;
    for (;;) {
        bool is_any = false;
        while (worker_poll(worker)) is_any = true;
        if (sp_load_relaxed(&device->is_stopping)) return;
        /* It was too late for a dispatch: it spins for the next one of that run. */
        if (is_woken && !is_any) worker->shared_ns = sp_clock_now();
        is_woken = false;
        if (sp__queue_spin(worker)) continue;
        is_woken = worker_idle(worker, &device->napping,
                               sp_clock_deadline((int64_t)device->options.nap_ns));
        if (is_woken || worker_poll(worker)) continue;
        is_woken = worker_idle(worker, &device->sleeping, SP_NO_DEADLINE);
    }
}

sp_status sp__queue_workers_start(sp_queue_device *device)
{
    const uint32_t count = device->options.worker_count;
    device->workers = sp_aligned_malloc(SP_CACHE_LINE, count * sizeof *device->workers);
    if (device->workers == NULL)
        return sp__fail(SP_OUT_OF_MEMORY, "no memory for %u workers", count);
    for (uint32_t i = 0; i < count; i++) {
        device->workers[i] = (sp_queue_worker){.device = device, .index = i};
    }
    while (device->worker_count < count) {
        sp_queue_worker *worker = &device->workers[device->worker_count];
        const sp_status status =
            sp_thread_create(&worker->thread, "sp-worker", worker_main, worker);
        if (status != SP_OK) {
            sp__queue_workers_stop(device);
            sp_free(device->workers);
            return status;
        }
        device->worker_count++;
    }
    return SP_OK;
}

void sp__queue_workers_stop(sp_queue_device *device)
{
    sp_store_relaxed(&device->is_stopping, 1);
    for (uint32_t i = 0; i < device->worker_count; i++) {
        sp_parker_unpark(&device->workers[i].parker);
        sp_thread_join(&device->workers[i].thread);
    }
    device->worker_count = 0;
}

/* ---- helping ---- */

static bool queue_can_help(const sp_queue *queue)
{
    return queue->device->vtable->help == sp__queue_help &&
           sp__queue_device(queue->device)->options.can_help;
}

/* Runs claimable work up to the executor's point, on its queue and on the queues that this one is
 * parked behind; on these only up to the point that the queue in front is parked on. */
static void queue_help_chain(sp_command_queue *queue, sp_executor executor)
{
    for (int depth = 0; depth < MAX_CHAIN; depth++) {
        sp__queue_note_commit(queue);
        /* Relaxed: the waiting thread acquires `done` when it checks its point. */
        while (sp_load_relaxed(&queue->base.timeline.done) < executor.until) {
            if (sp__helper_is_late(executor.record)) return;
            if (sp__queue_claim(queue)) {
                sp__queue_drain(queue, &executor);
                if (sp__point_has_passed(executor.awaited)) return;
            } else if (!sp__queue_join_tiles(queue, NULL)) {
                break;
            }
        }
        /* A hint, like parked_on: a stale one leads to a queue that needs no help. */
        const uint64_t word = sp_load_relaxed(&queue->word);
        if ((word & SP_CLAIM_MASK) != SP_PARKED) return;
        sp_timeline *behind = sp_load_relaxed(&queue->parked_on);
        if (behind == NULL || behind->owner == NULL || !queue_can_help(behind->owner)) return;
        executor.until = sp_load_relaxed(&queue->parked_value);
        queue = sp__command_queue(behind->owner);
    }
}

static void queue_drain_aside(sp_command_queue *queue, const sp_executor *executor)
{
    /* Failures of commands are reported by waits for them; this thread's last error is kept. */
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    sp__queue_drain(queue, executor);
    sp__error_put_back(&scope);
}

void sp__queue_run_claimed(sp_command_queue *queue, uint64_t value, sp_thread_record *record)
{
    const sp_executor executor = {.kind = SP_HELPER,
                                  .record = record,
                                  .until = value,
                                  .budget = UINT32_MAX,
                                  .awaited = {&queue->base.timeline, value}};
    sp__queue_note_commit(queue);
    queue_drain_aside(queue, &executor);
}

void sp__queue_issue(sp_command_queue *queue, sp_thread_record *record)
{
    const sp_executor executor = {.kind = record != NULL ? SP_HELPER : SP_ISSUER,
                                  .record = record,
                                  .until = UINT64_MAX,
                                  .budget = UINT32_MAX,
                                  .awaited = {&queue->base.timeline, UINT64_MAX}};
    if (sp__queue_claim(queue)) queue_drain_aside(queue, &executor);
}

void sp__queue_help(sp_queue *base, uint64_t value)
{
    sp_thread_record *record = queue_can_help(base) ? sp__thread_record() : NULL;
    if (record == NULL) {
        sp__queue_flush(base);
        return;
    }
    sp_command_queue *queue = sp__command_queue(base);
    const sp_executor executor = {.kind = SP_HELPER,
                                  .record = record,
                                  .until = value,
                                  .budget = UINT32_MAX,
                                  .awaited = {&base->timeline, value}};
    /* Failures of commands are reported by waits for them; this thread's last error is kept. */
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    /* After a chain the queue itself may be free again, and later parked on the next point. */
    do {
        queue_help_chain(queue, executor);
    } while (!sp__point_has_passed(executor.awaited) && sp__queue_has_work(queue) &&
             !sp__helper_is_late(record));
    sp__error_put_back(&scope);
}
