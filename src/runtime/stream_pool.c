/* SPDX-License-Identifier: Apache-2.0 */
/* Leasing of streams: the list of free ones, sharing, the queue of waiters. */
#include "runtime/stream_pool.h"

#include "base/clock.h"
#include "base/delay.h"
#include "base/error.h"
#include "device/thread_record.h"

static void lease_destroy(sp_object *object);

static sp_handle_table leases = {/* process-wide: the table of all stream handles */
                                 .kind = SP_KIND_STREAM,
                                 .object_bytes = sizeof(sp_lease),
                                 .destroy = lease_destroy,
                                 .lock = SP_MUTEX_INIT(SP_LOCK_HANDLE_TABLE)};

/* ---- streams ---- */

static sp_atomic_u32 *link_of(void *ctx, uint32_t slot)
{
    return &((sp_stream_pool *)ctx)->streams[slot].next_free;
}

static sp_status make_queue(void *arg)
{
    sp_rt_stream *stream = arg;
    sp_dev *device = sp__rt_device_dev(stream->device);
    const sp_queue_options options = {.is_batching = true};
    sp_queue *queue;
    SP_TRY(device->vtable->queue_create(device, stream->index, &options, &queue));
    if (SP_PLANTED(relaxed_queue)) {
        sp_store_relaxed(&stream->queue, queue);
    } else {
        sp_store_release(&stream->queue, queue);
    }
    return SP_OK;
}

/* Restores the defaults of what a lessee can set. */
static void reset_options(sp_rt_stream *stream)
{
    sp_queue *queue = sp__stream_queue_if_made(stream);
    if (queue != NULL) queue->device->vtable->queue_set_batching(queue, true);
}

/* NULL if the list is empty. */
static sp_rt_stream *stream_pop(sp_stream_pool *pool)
{
    uint32_t slot;
    if (!sp_tagged_stack_pop(&pool->free, link_of, pool, &slot)) return NULL;
    /* Sequentially consistent: see stream_acquire_free. */
    sp_store_seq_cst(&pool->streams[slot].holders, 1);
    return &pool->streams[slot];
}

/* Adds a holder to a stream that has some, round robin; NULL if no stream has any now. */
static sp_rt_stream *stream_share(sp_stream_pool *pool)
{
    const uint32_t workers = pool->count - 1;
    for (uint32_t tries = 0; tries < workers; tries++) {
        const uint32_t turn = sp_fetch_add_relaxed(&pool->share_turn, 1);
        sp_rt_stream *stream = &pool->streams[1 + turn % workers];
        uint32_t holders = sp_load_seq_cst(&stream->holders);
        while (holders > 0 || SP_PLANTED(share_returned)) {
            /* Relaxed: what other holders have submitted is behind the queue's lock. */
            if (sp_cas_relaxed(&stream->holders, &holders, holders + 1)) return stream;
        }
    }
    return NULL;
}

/* ---- waiters ---- */

static void waiter_unlink_locked(sp_stream_pool *pool, sp_stream_waiter **place)
    SP_REQUIRES(&pool->lock)
{
    if ((*place)->may_share) pool->sharer_count--;
    *place = (*place)->next;
    if (*place == NULL) pool->end = place;
    sp_fetch_sub_relaxed(&pool->waiting, 1);
}

/* Removes the waiters for which there is a stream, oldest first. */
static sp_stream_waiter *waiters_serve_locked(sp_stream_pool *pool) SP_REQUIRES(&pool->lock)
{
    sp_stream_waiter *served = NULL;
    sp_stream_waiter **served_end = &served;
    sp_stream_waiter **place = &pool->first;
    bool is_any_free = true;
    while (*place != NULL && (is_any_free || pool->sharer_count > 0)) {
        sp_stream_waiter *waiter = *place;
        if (is_any_free) waiter->stream = stream_pop(pool);
        is_any_free = is_any_free && waiter->stream != NULL;
        if (waiter->stream == NULL && waiter->may_share) waiter->stream = stream_share(pool);
        if (waiter->stream == NULL) {
            place = &waiter->next;
            continue;
        }
        waiter_unlink_locked(pool, place);
        waiter->next = NULL;
        *served_end = waiter;
        served_end = &waiter->next;
    }
    return served;
}

/* Resumes removed waiters, without the lock. */
static void waiters_answer(sp_stream_waiter *waiter)
{
    while (waiter != NULL) {
        sp_stream_waiter *next = waiter->next;
        sp_parker *parker = waiter->parker; /* type-stable: outlives the node */
        sp_store_release(&waiter->is_answered, 1);
        sp_parker_unpark(parker);
        waiter = next;
    }
}

static SP_NOINLINE void waiters_serve(sp_stream_pool *pool)
{
    sp_mutex_lock(&pool->lock);
    sp_stream_waiter *served = waiters_serve_locked(pool);
    sp_mutex_unlock(&pool->lock);
    waiters_answer(served);
}

/* False if the pool is closed. Otherwise the waiter is queued, or has its answer already. */
static bool waiter_enqueue(sp_stream_pool *pool, sp_stream_waiter *waiter)
{
    sp_stream_waiter *served = NULL;
    sp_mutex_lock(&pool->lock);
    const bool is_open = (sp_load_relaxed(&pool->waiting) & SP_POOL_CLOSED) == 0;
    if (is_open) {
        *pool->end = waiter;
        pool->end = &waiter->next;
        if (waiter->may_share) pool->sharer_count++;
        sp_fetch_add_seq_cst(&pool->waiting, 1);
        served = waiters_serve_locked(pool); /* checked again: after it was counted */
    }
    sp_mutex_unlock(&pool->lock);
    waiters_answer(served);
    return is_open;
}

/* False if the waiter was removed: its answer follows. */
static bool waiter_remove(sp_stream_pool *pool, sp_stream_waiter *waiter)
{
    sp_mutex_lock(&pool->lock);
    sp_stream_waiter **place = &pool->first;
    while (*place != NULL && *place != waiter) place = &(*place)->next;
    const bool is_out = *place != NULL;
    if (is_out && !SP_PLANTED(waits_for_ever)) waiter_unlink_locked(pool, place);
    sp_mutex_unlock(&pool->lock);
    return is_out;
}

void sp__stream_pool_close(sp_stream_pool *pool)
{
    sp_mutex_lock(&pool->lock);
    sp_stream_waiter *waiters = pool->first;
    if (SP_PLANTED(close_leaves_takers)) waiters = NULL;
    pool->first = NULL;
    pool->end = &pool->first;
    pool->sharer_count = 0;
    sp_store_relaxed(&pool->waiting, SP_POOL_CLOSED);
    sp_mutex_unlock(&pool->lock);
    waiters_answer(waiters); /* without a stream */
}

/* ---- acquire and release ---- */

/* Drops one holder. Stream 0 always has one, the default lease. */
static void stream_release(sp_stream_pool *pool, sp_rt_stream *stream)
{
    /* Release: the work this holder submitted is queued before the next holder's. */
    if (sp_fetch_sub_acq_rel(&stream->holders, 1) != 1) return;
    reset_options(stream);
    sp_delay_point();
    const bool is_planted_miss =
        SP_PLANTED(look_before_return) && sp_load_seq_cst(&pool->waiting) == 0;
    sp_tagged_stack_push(&pool->free, link_of, pool, stream->index);
    /* A sequentially consistent read after the push (an addition of 0): see `waiting`. */
    if (is_planted_miss || sp_fetch_add_seq_cst(&pool->waiting, 0) == 0) return;
    waiters_serve(pool);
}

/* From the list, which is reserved for waiters if there are any. */
static sp_rt_stream *stream_acquire_free(sp_stream_pool *pool)
{
    if (sp_load_relaxed(&pool->waiting) != 0 && !SP_PLANTED(take_past_line)) return NULL;
    sp_rt_stream *stream = stream_pop(pool);
    if (stream == NULL) return NULL;
    /* A waiter that may share, and read the holders before they were written, is queued: it shares
     * this stream. */
    if (!SP_PLANTED(no_look_after_take) && sp_load_seq_cst(&pool->waiting) != 0)
        waiters_serve(pool);
    return stream;
}

static sp_status fail_closed(const sp_stream_pool *pool)
{
    const sp_dev *device = sp__rt_device_dev(pool->streams[0].device);
    return sp__fail(SP_CLOSED,
                    "%s was closed, or streampool was shut down: no stream can be leased",
                    device->limits.name);
}

static sp_status stream_wait(sp_stream_pool *pool, bool may_share, sp_rt_stream **out)
{
    sp_thread_record *record = sp__thread_record();
    if (record == NULL) return SP_OUT_OF_MEMORY;
    sp_stream_waiter self = {.parker = &record->parker, .may_share = may_share};
    /* For one that may share, the streams are being pushed to the list: the wait is bounded. */
    uint64_t deadline = may_share ? SP_NO_DEADLINE : sp_clock_deadline(pool->wait_ns);
    if (!waiter_enqueue(pool, &self)) return fail_closed(pool);
    sp_delay_point();
    while (sp_load_acquire(&self.is_answered) == 0) {
        if (sp_parker_park(&record->parker, deadline)) continue;
        if (waiter_remove(pool, &self)) {
            return sp__fail(SP_TIMEOUT, "no stream was released within %lld ms: all %u are leased",
                            (long long)(pool->wait_ns / 1000000), pool->count - 1);
        }
        deadline = SP_NO_DEADLINE; /* the answer follows at once */
    }
    *out = self.stream;
    return self.stream != NULL ? SP_OK : fail_closed(pool);
}

/* Inside a host function or a callback a thread never waits for a stream that others hold: they may
 * be waiting for that function. It shares, under every policy. */
static bool must_share(void)
{
    const sp_thread_record *record = sp__thread_record();
    return record != NULL && sp__thread_is_inside_callback(record);
}

static sp_status stream_acquire(sp_stream_pool *pool, sp_rt_stream **out)
{
    *out = stream_acquire_free(pool);
    if (*out != NULL) return SP_OK;
    if ((sp_load_relaxed(&pool->waiting) & SP_POOL_CLOSED) != 0) return fail_closed(pool);
    if (pool->count == 1) { /* only the default stream: all share it */
        *out = &pool->streams[0];
        sp_fetch_add_relaxed(&(*out)->holders, 1);
        return SP_OK;
    }
    const bool may_share = pool->policy == SP_OPTION_POLICY_SHARE || must_share();
    if (may_share) *out = stream_share(pool);
    if (*out != NULL) return SP_OK;
    if (may_share || pool->policy == SP_OPTION_POLICY_WAIT) {
        return stream_wait(pool, may_share, out);
    }
    return sp__fail(SP_EXHAUSTED,
                    "all %u streams of the pool are leased: release some, raise "
                    "STREAMPOOL_STREAMS, or let threads share (STREAMPOOL_STREAM_POLICY=share)",
                    pool->count - 1);
}

/* ---- leases ---- */

static void lease_destroy(sp_object *object)
{
    sp_lease *lease = SP_CONTAINER_OF(object, sp_lease, object);
    sp_rt_stream *stream = sp_load_relaxed(&lease->stream);
    sp__handle_recycle(&leases, object);
    stream_release(sp__rt_device_pool(stream->device), stream);
}

static bool is_lease_over(uint64_t lease)
{
    return sp__handle_peek(&leases, lease) == NULL;
}

/* Drops the failures of leases that have ended; a new lease never inherits one, since no two
 * handles have the same bits. */
static void forget_ended_leases(sp_queue *queue)
{
    /* Relaxed: failures noted before it are behind the lock of the lease faults. */
    const uint64_t done = sp_load_relaxed(&queue->timeline.done);
    const uint64_t last = queue->device->vtable->last_value(queue);
    sp__lease_faults_sweep(&queue->lease_faults, is_lease_over, last, done);
}

static sp_status lease_create(sp_rt_stream *stream, sp_stream *out)
{
    sp_object *object;
    SP_TRY(sp_once_run(&stream->once, make_queue, stream));
    SP_TRY(sp__handle_acquire(&leases, &object));
    sp_lease *lease = SP_CONTAINER_OF(object, sp_lease, object);
    forget_ended_leases(sp__stream_queue_if_made(stream));
    sp_store_relaxed(&lease->is_own, 0);
    /* Release: a lookup that reads this also sees that the former life has ended. */
    sp_store_release(&lease->stream, stream);
    out->bits = sp__handle_publish(&leases, object);
    return SP_OK;
}

sp_status sp__stream_pool_acquire(sp_stream_pool *pool, sp_stream *out)
{
    sp_rt_stream *stream;
    SP_TRY(stream_acquire(pool, &stream));
    const sp_status status = lease_create(stream, out);
    if (status != SP_OK) stream_release(pool, stream);
    return status;
}

sp_status sp__stream_find(sp_stream stream, sp_stream_ref *out)
{
    sp_object *object = sp__handle_peek(&leases, stream.bits);
    if (SP_LIKELY(object != NULL)) {
        sp_lease *lease = SP_CONTAINER_OF(object, sp_lease, object);
        out->stream = sp_load_acquire(&lease->stream);
        out->lease = stream.bits;
        out->is_own = sp_load_relaxed(&lease->is_own) != 0;
        if (SP_LIKELY(sp__handle_is_current(object, stream.bits) || SP_PLANTED(find_blindly))) {
            out->queue = sp__stream_queue_if_made(out->stream);
            return SP_OK;
        }
    }
    sp__handle_refuse(SP_KIND_STREAM, stream.bits, "stream");
    return SP_INVALID;
}

void sp__stream_lease_set_own(sp_stream stream, bool is_own)
{
    sp_object *object = sp__handle_peek(&leases, stream.bits);
    if (object == NULL) return;
    sp_store_relaxed(&SP_CONTAINER_OF(object, sp_lease, object)->is_own, is_own);
}

sp_status sp__stream_lease_release(sp_stream stream)
{
    if (stream.bits == 0) return SP_OK;
    sp_stream_ref ref;
    SP_TRY(sp__stream_find(stream, &ref));
    if (sp__rt_device_pool(ref.stream->device)->default_stream.bits == stream.bits) {
        return sp__fail(SP_INVALID, "the default stream is not leased and cannot be released");
    }
    return sp__handle_release(&leases, stream.bits, "stream");
}

/* ---- init and deinit ---- */

sp_status sp__stream_pool_init(sp_stream_pool *pool, sp_rt_device *device,
                               const sp_stream_pool_options *options)
{
    pool->count = options->count;
    pool->policy = options->policy;
    pool->wait_ns = options->wait_ns;
    sp_mutex_init(&pool->lock, SP_LOCK_STREAM_POOL);
    sp_mutex_lock(&pool->lock);
    pool->first = NULL;
    pool->end = &pool->first;
    sp_mutex_unlock(&pool->lock);
    for (uint32_t i = 0; i < pool->count; i++) {
        pool->streams[i].device = device;
        pool->streams[i].index = i;
    }
    for (uint32_t i = pool->count - 1; i > 0; i--) {
        sp_tagged_stack_push(&pool->free, link_of, pool, i);
    }
    sp_store_relaxed(&pool->streams[0].holders, 1);
    return lease_create(&pool->streams[0], &pool->default_stream);
}

void sp__stream_pool_deinit(sp_stream_pool *pool)
{
    sp_mutex_deinit(&pool->lock);
}

void sp__stream_leases_deinit(void)
{
    sp__handle_table_reset(&leases);
}
