/* SPDX-License-Identifier: Apache-2.0 */
/* The producer side of a queue: writes a whole submission into the tail chunks under the queue's
 * lock, then publishes it with one atomic step. A submission that does not fit is undone. */
#include "device/queue/queue.h"

#include <string.h>

#include "base/assert.h"
#include "base/delay.h"
#include "base/error.h"
#include "base/heap.h"
#include "base/tsan.h"
#include "device/queue/engine.h"

/* ---- chunks ---- */

/* Enough that a stream in steady state neither allocates nor frees chunks. */
#define MAX_SPARES 8

static sp_chunk *chunk_create(size_t capacity)
{
    sp_chunk *chunk = sp_aligned_malloc(16, sizeof *chunk + capacity);
    if (chunk != NULL) chunk->capacity = (uint32_t)capacity;
    return chunk;
}

/* Takes all spares at once, which avoids ABA (there is no pop), and keeps the surplus in the pool.
 * A record of more than SP_CHUNK_CAPACITY bytes gets a chunk of its own. */
static sp_chunk *chunk_take_locked(sp_command_queue *queue, size_t bytes) SP_REQUIRES(&queue->lock)
{
    const bool is_large = bytes > SP_CHUNK_CAPACITY;
    if (queue->pool == NULL && !is_large) {
        /* Pairs with the release in sp__queue_chunk_retire: the holder no longer uses the chunks.
         */
        queue->pool = sp_exchange_acquire(&queue->spares, NULL);
        sp_tsan_acquire(&queue->spares);
        sp_store_relaxed(&queue->spare_count, 0);
    }
    sp_chunk *chunk = is_large ? NULL : queue->pool;
    if (chunk != NULL) {
        queue->pool = chunk->next;
    } else {
        chunk = chunk_create(is_large ? bytes : SP_CHUNK_CAPACITY);
        if (chunk == NULL) return NULL;
    }
    chunk->next = NULL;
    sp_fetch_add_relaxed(&queue->chunk_count, 1);
    return chunk;
}

void sp__queue_chunk_retire(sp_command_queue *queue, sp_chunk *chunk)
{
    sp_fetch_sub_relaxed(&queue->chunk_count, 1);
    const bool is_large = chunk->capacity > SP_CHUNK_CAPACITY;
    if (is_large || sp_load_relaxed(&queue->spare_count) >= MAX_SPARES) {
        sp_free(chunk);
        return;
    }
    sp_fetch_add_relaxed(&queue->spare_count, 1);
    chunk->next = sp_load_relaxed(&queue->spares);
    sp_tsan_release(&queue->spares);
    while (!(SP_PLANTED(relaxed_retire) ? sp_cas_relaxed(&queue->spares, &chunk->next, chunk)
                                        : sp_cas_release(&queue->spares, &chunk->next, chunk))) {
    }
}

static sp_status tail_grow_locked(sp_command_queue *queue, uint32_t bytes) SP_REQUIRES(&queue->lock)
{
    const uint64_t limit = sp__queue_device_of(queue)->options.queue_bytes;
    if ((uint64_t)sp_load_relaxed(&queue->chunk_count) * SP_CHUNK_BYTES >= limit) {
        return sp__fail(SP_BUSY,
                        "stream %u of %s is full (%llu bytes of commands): wait for some "
                        "of its work",
                        queue->base.index, queue->base.device->limits.name,
                        (unsigned long long)limit);
    }
    sp_chunk *chunk = chunk_take_locked(queue, bytes);
    if (chunk == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for more commands");
    if (queue->tail_used < queue->tail->capacity) {
        sp__record_write_end(queue->tail->bytes + queue->tail_used);
    }
    queue->tail->next = chunk;
    queue->tail = chunk;
    queue->tail_used = 0;
    return SP_OK;
}

/* Reserves `bytes` at the tail, in a new chunk if needed. */
static sp_status tail_reserve_locked(sp_command_queue *queue, uint32_t bytes, void **place)
    SP_REQUIRES(&queue->lock)
{
    if (queue->tail_used + bytes > queue->tail->capacity) SP_TRY(tail_grow_locked(queue, bytes));
    *place = queue->tail->bytes + queue->tail_used;
    queue->tail_used += bytes;
    return SP_OK;
}

/* Restores the tail; chunks added since go to the pool. */
static void tail_restore_locked(sp_command_queue *queue, sp_chunk *tail, uint32_t used)
    SP_REQUIRES(&queue->lock)
{
    sp_chunk *chunk = tail->next;
    tail->next = NULL;
    queue->tail = tail;
    queue->tail_used = used;
    while (chunk != NULL) {
        sp_chunk *next = chunk->next;
        chunk->next = queue->pool;
        queue->pool = chunk;
        sp_fetch_sub_relaxed(&queue->chunk_count, 1);
        chunk = next;
    }
}

static sp_status records_write_locked(sp_command_queue *queue, const sp_submission *submission)
    SP_REQUIRES(&queue->lock)
{
    void *place;
    uint32_t bytes = sp__record_header_bytes(submission);
    SP_TRY(tail_reserve_locked(queue, bytes, &place));
    sp__record_write_header(place, bytes, submission);
    for (uint32_t i = 0; i < submission->command_count; i++) {
        bytes = sp__record_command_bytes(&submission->commands[i]);
        if (bytes > SP_CHUNK_CAPACITY && submission->commands[i].type != SP_COMMAND_LIST) {
            return sp__fail(SP_INVALID, "a command has %u bytes, at most %zu are allowed", bytes,
                            SP_CHUNK_CAPACITY);
        }
        SP_TRY(tail_reserve_locked(queue, bytes, &place));
        sp__record_write_command(place, bytes, &submission->commands[i]);
    }
    return SP_OK;
}

/* ---- unmet waits ---- */

/* Initial capacity, so that a stream needs no memory for waits while few of its submissions wait.
 */
#define FIRST_WAITS 64

static sp_pending_wait *wait_at_locked(sp_command_queue *queue, uint32_t rank)
    SP_REQUIRES(&queue->lock)
{
    return &queue->waits[(queue->wait_first + rank) & (queue->wait_capacity - 1)];
}

/* Makes room for `count` more. */
static sp_status waits_reserve_locked(sp_command_queue *queue, uint32_t count)
    SP_REQUIRES(&queue->lock)
{
    uint32_t capacity = queue->wait_capacity;
    while (capacity < queue->wait_count + count) capacity *= 2;
    if (capacity == queue->wait_capacity) return SP_OK;
    sp_pending_wait *grown = sp_malloc(capacity * sizeof *grown);
    if (grown == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for one more wait");
    for (uint32_t i = 0; i < queue->wait_count; i++) grown[i] = *wait_at_locked(queue, i);
    sp_free(queue->waits);
    queue->waits = grown;
    queue->wait_capacity = capacity;
    queue->wait_first = 0;
    return SP_OK;
}

static sp_status waits_note_locked(sp_command_queue *queue, const sp_submission *submission)
    SP_REQUIRES(&queue->lock)
{
    SP_TRY(waits_reserve_locked(queue, submission->wait_count));
    for (uint32_t i = 0; i < submission->wait_count; i++) {
        *wait_at_locked(queue, queue->wait_count++) =
            (sp_pending_wait){queue->last + 1, submission->waits[i]};
    }
    return SP_OK;
}

void sp__command_queue_forget_waits(sp_command_queue *queue, uint64_t value)
{
    sp_mutex_lock(&queue->lock);
    while (queue->wait_count > 0 && wait_at_locked(queue, 0)->value <= value) {
        queue->wait_first = (queue->wait_first + 1) & (queue->wait_capacity - 1);
        queue->wait_count--;
    }
    sp_mutex_unlock(&queue->lock);
}

/* Number of unmet waits of submissions up to `value`. */
static uint32_t wait_rank_locked(sp_command_queue *queue, uint64_t value) SP_REQUIRES(&queue->lock)
{
    uint32_t low = 0;
    uint32_t high = queue->wait_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (wait_at_locked(queue, middle)->value <= value) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

void sp__queue_each_wait(sp_queue *base, uint64_t after, uint64_t value, sp_point_visitor visit,
                         void *ctx)
{
    sp_command_queue *queue = sp__command_queue(base);
    sp_mutex_lock(&queue->lock);
    const uint32_t end = wait_rank_locked(queue, value);
    for (uint32_t i = wait_rank_locked(queue, after); i < end; i++) {
        visit(ctx, wait_at_locked(queue, i)->point);
    }
    sp_mutex_unlock(&queue->lock);
}

/* ---- submit and flush ---- */

/* Lists are retained until their submission has completed. */
static void lists_retain(const sp_submission *submission)
{
    for (uint32_t i = 0; i < submission->command_count; i++) {
        if (submission->commands[i].type == SP_COMMAND_LIST) {
            sp__queue_list_retain(submission->commands[i].list);
        }
    }
}

static sp_status submission_append_locked(sp_command_queue *queue, const sp_submission *submission)
    SP_REQUIRES(&queue->lock)
{
    if (queue->is_closed) {
        return sp__fail(SP_CLOSED, "%s is closed", queue->base.device->limits.name);
    }
    sp_chunk *tail = queue->tail;
    const uint32_t used = queue->tail_used;
    sp_status status = records_write_locked(queue, submission);
    if (status == SP_OK && submission->wait_count > 0) {
        status = waits_note_locked(queue, submission);
    }
    if (status != SP_OK) {
        tail_restore_locked(queue, tail, used);
        return status;
    }
    if (!SP_PLANTED(list_is_lent)) lists_retain(submission);
    queue->last++;
    if (!submission->is_awaited) {
        sp_store_relaxed(&queue->base.followed, queue->last);
    }
    return SP_OK;
}

/* Batched submissions are started by a flush, at this many, or when a worker's nap ends. */
#define BATCH_LIMIT 64

static bool is_batch_full(const sp_command_queue *queue, uint64_t value)
{
    return value - sp_load_relaxed(&queue->committed) >= BATCH_LIMIT;
}

void sp__queue_note_commit(sp_command_queue *queue)
{
    const uint64_t last = sp__queue_last_value(&queue->base);
    uint64_t seen = sp_load_relaxed(&queue->committed);
    if (seen < last && sp_cas_relaxed(&queue->committed, &seen, last)) {
        sp_fetch_add_relaxed(&queue->commits, (uint64_t)1);
    }
}

static sp_status device_enter(const sp_command_queue *queue)
{
    sp_queue_device *device = sp__queue_device_of(queue);
    SP_TRY(sp__device_check(&device->base));
    const uint32_t limit = device->options.max_in_flight;
    if (!sp__queue_is_limited(queue)) return SP_OK;
    if (sp_fetch_add_relaxed(&device->in_flight, (uint64_t)1) < limit) return SP_OK;
    sp_fetch_sub_relaxed(&device->in_flight, (uint64_t)1);
    return sp__fail(SP_BUSY,
                    "%u submissions are in flight on %s, the limit: wait for some of its work",
                    limit, device->base.limits.name);
}

/* A submission that was accepted. */
typedef struct accepted {
    uint64_t value;
    uint64_t before; /* the word */
    bool has_claim;  /* the caller claimed the queue, which was empty, with the publication */
    bool must_flush;
} accepted;

/* False if the queue is not empty. */
static bool publish_and_claim_locked(sp_command_queue *queue, uint64_t *before)
    SP_REQUIRES(&queue->lock)
{
    /* No other thread changes the word of an empty queue. */
    *before = sp_load_relaxed(&queue->word);
    const uint64_t empty = sp_load_relaxed(&queue->drained) * SP_ONE_SUBMISSION + SP_FREE;
    if (*before != empty && !SP_PLANTED(claims_blindly)) return false;
    /* Acquire: the last holder's writes to claim fields. The records are this thread's. */
    if (!sp_cas_acquire(&queue->word, before, *before + SP_ONE_SUBMISSION + SP_RUNNING)) {
        return false;
    }
    sp_tsan_acquire(&queue->word);
    return true;
}

static void publish_locked(sp_command_queue *queue, bool claims, accepted *out)
    SP_REQUIRES(&queue->lock)
{
    out->has_claim = claims && publish_and_claim_locked(queue, &out->before);
    if (out->has_claim) return;
    sp_tsan_release(&queue->word);
    /* Publishes the records to the next claim. Sequentially consistent: pairs with a worker that
     * sets its idle bit and then reads this word. */
    out->before = sp_fetch_add_seq_cst(&queue->word, SP_ONE_SUBMISSION);
}

static sp_status submission_accept(sp_command_queue *queue, const sp_submission *submission,
                                   bool claims, accepted *out)
{
    SP_TRY(device_enter(queue));
    *out = (accepted){.before = SP_RUNNING};
    sp_mutex_lock(&queue->lock);
    if (SP_PLANTED(publish_before_data)) publish_locked(queue, claims, out);
    const sp_status status = submission_append_locked(queue, submission);
    out->value = queue->last;
    out->must_flush = !queue->is_batching || is_batch_full(queue, out->value);
    if (status == SP_OK && !SP_PLANTED(publish_before_data)) publish_locked(queue, claims, out);
    sp_mutex_unlock(&queue->lock);
    if (status != SP_OK && sp__queue_is_limited(queue)) {
        sp_fetch_sub_relaxed(&sp__queue_device_of(queue)->in_flight, (uint64_t)1);
    }
    sp_delay_point();
    return status;
}

/* Has a worker find the submission, if the engine's submitters do not issue it themselves. */
static void submission_announce(sp_command_queue *queue, const accepted *submitted)
{
    sp_queue_device *device = sp__queue_device_of(queue);
    if (device->options.engine->is_drained_by_submitters) return; /* see kick */
    if ((submitted->before & SP_CLAIM_MASK) == SP_FREE && sp__queue_notify(device)) {
        sp_store_relaxed(&queue->woken_for, submitted->value);
    }
    if (submitted->must_flush) sp__queue_flush(&queue->base);
}

sp_status sp__queue_submit(sp_queue *base, const sp_submission *submission, sp_point *out)
{
    sp_command_queue *queue = sp__command_queue(base);
    accepted submitted;
    SP_TRY(submission_accept(queue, submission, false, &submitted));
    *out = (sp_point){&base->timeline, submitted.value};
    submission_announce(queue, &submitted);
    return SP_OK;
}

sp_status sp__queue_submit_and_run(sp_queue *base, const sp_submission *submission, sp_point *out)
{
    sp_command_queue *queue = sp__command_queue(base);
    sp_thread_record *record = sp__thread_record();
    if (record == NULL) return SP_OUT_OF_MEMORY;
    accepted submitted;
    SP_TRY(submission_accept(queue, submission, true, &submitted));
    *out = (sp_point){&base->timeline, submitted.value};
    if (submitted.has_claim) sp__queue_run_claimed(queue, submitted.value, record);
    else submission_announce(queue, &submitted);
    return SP_OK;
}

void sp__queue_flush(sp_queue *base)
{
    sp_command_queue *queue = sp__command_queue(base);
    sp__queue_note_commit(queue);
    const uint64_t last = sp__queue_last_value(base);
    if (sp_load_relaxed(&queue->woken_for) >= last || !sp__queue_has_work(queue)) return;
    if (sp__queue_wake(sp__queue_device_of(queue), 1)) sp_store_relaxed(&queue->woken_for, last);
}

uint64_t sp__queue_last_value(sp_queue *queue)
{
    /* The newest value is the number of published submissions. Relaxed: no record is read. */
    return sp_load_relaxed(&sp__command_queue(queue)->word) / SP_ONE_SUBMISSION;
}

/* ---- life ---- */

/* Makes the queue visible to workers and stop; false once the device is closed. */
static bool queue_publish(sp_queue_device *device, uint32_t index, sp_command_queue *queue)
{
    sp_mutex_lock(&device->lock);
    const bool is_open = SP_PLANTED(queue_after_close) || !device->is_closed;
    if (is_open) {
        /* Sequentially consistent: see queue_at in workers.c. */
        sp_store_seq_cst(&device->queues[index], queue);
        if (sp_load_relaxed(&device->queue_count) <= index) {
            sp_store_seq_cst(&device->queue_count, index + 1);
        }
    }
    sp_mutex_unlock(&device->lock);
    return is_open;
}

static void chunks_free(sp_chunk *chunk)
{
    while (chunk != NULL) {
        sp_chunk *next = chunk->next;
        sp_free(chunk);
        chunk = next;
    }
}

static void queue_free(sp_command_queue *queue)
{
    sp_mutex_lock(&queue->lock);
    sp_pending_wait *waits = queue->waits;
    sp_chunk *pool = queue->pool;
    sp_mutex_unlock(&queue->lock);
    sp_free(queue->cursor.chunk);
    chunks_free(pool);
    chunks_free(sp_exchange_acquire(&queue->spares, NULL));
    sp_free(waits);
    sp_mutex_deinit(&queue->lock);
    sp__lease_faults_deinit(&queue->base.lease_faults);
    sp__timeline_deinit(&queue->base.timeline);
    sp_free(queue);
}

sp_status sp__command_queue_create(sp_dev *base, uint32_t index, const sp_queue_options *options,
                                   sp_queue **out)
{
    sp_queue_device *device = sp__queue_device(base);
    if (index >= SP_DEVICE_QUEUES) {
        return sp__fail(SP_EXHAUSTED, "%s has at most %d streams", base->limits.name,
                        SP_DEVICE_QUEUES);
    }
    const sp_queue_engine *engine = device->options.engine;
    const size_t size = engine->queue_size;
    sp_command_queue *queue = sp_aligned_malloc(SP_CACHE_LINE, size);
    if (queue == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for stream %u", index);
    memset(queue, 0, size);
    queue->base = (sp_queue){.device = base, .index = index};
    sp__timeline_init(&queue->base.timeline, &queue->base);
    sp__lease_faults_init(&queue->base.lease_faults);
    sp_mutex_init(&queue->lock, SP_LOCK_QUEUE);
    sp_mutex_lock(&queue->lock);
    queue->is_batching = options->is_batching;
    queue->base.is_internal = options->is_internal;
    queue->base.is_unlimited = options->is_unlimited;
    queue->tail = chunk_take_locked(queue, 0);
    queue->cursor.chunk = queue->tail;
    /* Two chunks alternate while few submissions are in flight, so no more memory is needed. */
    sp_chunk *second = queue->tail != NULL ? chunk_take_locked(queue, 0) : NULL;
    if (second != NULL) {
        queue->pool = second;
        sp_fetch_sub_relaxed(&queue->chunk_count, 1);
    }
    queue->waits = second != NULL ? sp_calloc(FIRST_WAITS, sizeof *queue->waits) : NULL;
    const bool is_complete = queue->waits != NULL;
    queue->wait_capacity = is_complete ? FIRST_WAITS : 0;
    sp_mutex_unlock(&queue->lock);
    if (!is_complete) {
        queue_free(queue);
        return sp__fail(SP_OUT_OF_MEMORY, "no memory for stream %u", index);
    }
    const sp_status status = engine->queue_open(queue);
    if (status != SP_OK) {
        queue_free(queue);
        return status;
    }
    sp_delay_point();
    if (!queue_publish(device, index, queue)) {
        sp__command_queue_destroy(&queue->base);
        return sp__fail(SP_CLOSED, "%s is closed", base->limits.name);
    }
    *out = &queue->base;
    return SP_OK;
}

void sp__command_queue_destroy(sp_queue *base)
{
    sp_command_queue *queue = sp__command_queue(base);
    const sp_queue_engine *engine = sp__queue_device_of(queue)->options.engine;
    SP_ASSERT(!sp__queue_has_work(queue));
    engine->queue_close(queue);
    queue_free(queue);
}

uint64_t sp__command_queue_close(sp_command_queue *queue)
{
    sp_mutex_lock(&queue->lock);
    const uint64_t last = queue->last;
    if (SP_PLANTED(accept_while_closing)) {
        sp_mutex_unlock(&queue->lock);
        sp_mutex_lock(&queue->lock);
    }
    queue->is_closed = true;
    sp_mutex_unlock(&queue->lock);
    return last;
}

void sp__command_queue_set_batching(sp_queue *base, bool is_batching)
{
    sp_command_queue *queue = sp__command_queue(base);
    sp_mutex_lock(&queue->lock);
    queue->is_batching = is_batching;
    sp_mutex_unlock(&queue->lock);
    if (!is_batching) sp__queue_flush(base);
}

void sp__command_queue_stats(sp_queue *base, sp_queue_stats *out)
{
    sp_command_queue *queue = sp__command_queue(base);
    *out = (sp_queue_stats){
        .submissions = sp__queue_last_value(base),
        .commits = sp_load_relaxed(&queue->commits),
        .by_workers = sp_load_relaxed(&queue->by_workers),
        .by_helpers = sp_load_relaxed(&queue->by_helpers),
        .by_host = sp_load_relaxed(&queue->by_host),
        .tiles_shared = sp_load_relaxed(&queue->tiles_shared),
    };
}
