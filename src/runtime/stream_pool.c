/* SPDX-License-Identifier: Apache-2.0 */
/* Leasing of streams: the list of free ones, sharing, waiting. */
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
static sp_atomic_u32 last_lease_number; /* process-wide: leases are told apart by it */

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

/* Nothing that a holder has set stays for the next. */
static void reset_options(sp_rt_stream *stream)
{
    sp_queue *queue = sp__stream_queue_if_made(stream);
    if (queue != NULL) queue->device->vtable->queue_set_batching(queue, true);
}

/* One holder less. Stream 0 always has one, the default lease. */
static void stream_put(sp_stream_pool *pool, sp_rt_stream *stream)
{
    /* Release: the work this holder submitted is queued before the next holder's. */
    if (sp_fetch_sub_acq_rel(&stream->holders, 1) != 1) return;
    reset_options(stream);
    sp_delay_point();
    const bool is_planted_miss =
        SP_PLANTED(look_before_return) && sp_load_seq_cst(&pool->waiter_count) == 0;
    sp_tagged_stack_push(&pool->free, link_of, pool, stream->index);
    /* An exchange of nothing, sequentially consistent after the push: see waiter_count. */
    if (is_planted_miss || sp_fetch_add_seq_cst(&pool->waiter_count, 0) == 0) return;
    sp_mutex_lock(&pool->lock);
    pool->return_count++;
    sp_mutex_unlock(&pool->lock);
    sp_cond_signal(&pool->returned);
}

/* False, and nothing written, if nobody has given one back. */
static bool stream_pop(sp_stream_pool *pool, sp_rt_stream **out)
{
    uint32_t slot;
    if (!sp_tagged_stack_pop(&pool->free, link_of, pool, &slot)) return false;
    sp_store_relaxed(&pool->streams[slot].holders, 1);
    *out = &pool->streams[slot];
    return true;
}

/* One more holder of a stream that has some, in turn; NULL if none has any just now. */
static sp_rt_stream *stream_share(sp_stream_pool *pool)
{
    const uint32_t workers = pool->count - 1;
    for (uint32_t tries = 0; tries < workers; tries++) {
        const uint32_t turn = sp_fetch_add_relaxed(&pool->share_turn, 1);
        sp_rt_stream *stream = &pool->streams[1 + turn % workers];
        uint32_t holders = sp_load_relaxed(&stream->holders);
        while (holders > 0 || SP_PLANTED(share_returned)) {
            if (sp_cas_acquire(&stream->holders, &holders, holders + 1)) return stream;
        }
    }
    return NULL;
}

static sp_status take_shared(sp_stream_pool *pool, sp_rt_stream **out)
{
    for (;;) {
        *out = stream_share(pool);
        if (*out != NULL || stream_pop(pool, out)) return SP_OK;
        sp_spin_hint(); /* every stream is on its way back to the list */
    }
}

static sp_status take_waiting(sp_stream_pool *pool, sp_rt_stream **out)
{
    const uint64_t deadline = sp_clock_deadline(pool->wait_ns);
    bool is_in_time = true;
    bool is_taken;
    sp_mutex_lock(&pool->lock);
    sp_fetch_add_seq_cst(&pool->waiter_count, 1);
    for (;;) {
        const uint32_t seen = pool->return_count;
        is_taken = stream_pop(pool, out); /* the second look: after we were counted */
        if (is_taken || !is_in_time) break;
        while (is_in_time && pool->return_count == seen) {
            is_in_time = sp_cond_wait_until(&pool->returned, &pool->lock, deadline);
        }
    }
    if (is_taken || !SP_PLANTED(waits_for_ever)) sp_fetch_sub_relaxed(&pool->waiter_count, 1);
    sp_mutex_unlock(&pool->lock);
    if (is_taken) return SP_OK;
    sp_cond_signal(&pool->returned); /* a return that we did not use is the next waiter's */
    return sp__fail(SP_TIMEOUT, "no stream came back within %lld ms: all %u are taken",
                    (long long)(pool->wait_ns / 1000000), pool->count - 1);
}

/* Inside a host function or a callback a thread never waits for a stream: the threads that have
 * them may be waiting for that function. It shares, under every policy. */
static bool must_share(void)
{
    const sp_thread_record *record = sp__thread_record();
    return record != NULL && sp__thread_is_inside_callback(record);
}

static sp_status take_stream(sp_stream_pool *pool, sp_rt_stream **out)
{
    if (stream_pop(pool, out)) return SP_OK;
    if (pool->count == 1) { /* a pool of the default stream alone: everybody shares it */
        *out = &pool->streams[0];
        sp_fetch_add_relaxed(&(*out)->holders, 1);
        return SP_OK;
    }
    if (must_share()) return take_shared(pool, out);
    switch (pool->policy) {
    case SP_OPTION_POLICY_SHARE:
        return take_shared(pool, out);
    case SP_OPTION_POLICY_WAIT:
        return take_waiting(pool, out);
    case SP_OPTION_POLICY_FAIL:
        break;
    }
    return sp__fail(SP_EXHAUSTED,
                    "all %u streams of the pool are taken: release some, raise "
                    "STREAMPOOL_STREAMS, or let threads share (STREAMPOOL_STREAM_POLICY=share)",
                    pool->count - 1);
}

/* ---- leases ---- */

static void lease_destroy(sp_object *object)
{
    sp_lease *lease = SP_CONTAINER_OF(object, sp_lease, object);
    sp_rt_stream *stream = sp_load_relaxed(&lease->stream);
    sp__handle_recycle(&leases, object);
    stream_put(sp__rt_device_pool(stream->device), stream);
}

static sp_status lease_new(sp_rt_stream *stream, sp_stream *out)
{
    sp_object *object;
    SP_TRY(sp_once_run(&stream->once, make_queue, stream));
    SP_TRY(sp__handle_take(&leases, &object));
    sp_lease *lease = SP_CONTAINER_OF(object, sp_lease, object);
    uint32_t number;
    do {
        number = sp_fetch_add_relaxed(&last_lease_number, 1) + 1;
    } while (number == 0);
    /* Release: a peek that reads these also sees that the former life has ended. */
    sp_store_release(&lease->number, number);
    sp_store_release(&lease->stream, stream);
    out->bits = sp__handle_publish(&leases, object);
    return SP_OK;
}

sp_status sp__stream_pool_take(sp_stream_pool *pool, sp_stream *out)
{
    sp_rt_stream *stream;
    SP_TRY(take_stream(pool, &stream));
    const sp_status status = lease_new(stream, out);
    if (status != SP_OK) stream_put(pool, stream);
    return status;
}

sp_status sp__stream_find(sp_stream stream, sp_stream_ref *out)
{
    sp_object *object = sp__handle_peek(&leases, stream.bits);
    if (SP_LIKELY(object != NULL)) {
        sp_lease *lease = SP_CONTAINER_OF(object, sp_lease, object);
        out->stream = sp_load_acquire(&lease->stream);
        out->lease = sp_load_acquire(&lease->number);
        if (SP_LIKELY(sp__handle_is_current(object, stream.bits) || SP_PLANTED(find_blindly))) {
            out->queue = sp__stream_queue_if_made(out->stream);
            return SP_OK;
        }
    }
    sp__handle_refuse(SP_KIND_STREAM, stream.bits, "stream");
    return SP_INVALID;
}

sp_status sp__stream_lease_release(sp_stream stream)
{
    if (stream.bits == 0) return SP_OK;
    sp_stream_ref ref;
    SP_TRY(sp__stream_find(stream, &ref));
    if (sp__rt_device_pool(ref.stream->device)->default_stream.bits == stream.bits) {
        return sp__fail(SP_INVALID, "the default stream was never taken and is not released");
    }
    return sp__handle_release(&leases, stream.bits, "stream");
}

/* ---- life ---- */

sp_status sp__stream_pool_init(sp_stream_pool *pool, sp_rt_device *device,
                               const sp_stream_pool_options *options)
{
    pool->count = options->count;
    pool->policy = options->policy;
    pool->wait_ns = options->wait_ns;
    sp_mutex_init(&pool->lock, SP_LOCK_STREAM_POOL);
    sp_cond_init(&pool->returned);
    for (uint32_t i = 0; i < pool->count; i++) {
        pool->streams[i].device = device;
        pool->streams[i].index = i;
    }
    for (uint32_t i = pool->count - 1; i > 0; i--) {
        sp_tagged_stack_push(&pool->free, link_of, pool, i);
    }
    sp_store_relaxed(&pool->streams[0].holders, 1);
    return lease_new(&pool->streams[0], &pool->default_stream);
}

void sp__stream_pool_deinit(sp_stream_pool *pool)
{
    sp_cond_deinit(&pool->returned);
    sp_mutex_deinit(&pool->lock);
}

void sp__stream_leases_free(void)
{
    sp__handle_table_reset(&leases);
}
