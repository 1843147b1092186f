/* SPDX-License-Identifier: Apache-2.0 */
/* The stream pool: under `wait` a stream has one holder, no taker sleeps while one is free, and
 * takers are served in order; under `share` the last holder, and no other, puts it back; a close
 * ends every wait; a handle finds its own lease or nothing, whatever became of the slot. */
#include "support.h"

#include <string.h>

#include "base/error.h"
#include "sched/subject.h"

typedef struct world {
    sp_rt_device *device;
    uint32_t uses[3]; /* plain, by stream: under `wait` its holder's alone */
    sp_stream lease;
    sp_stream_ref expected; /* plain, constant while threads run */
    sp_stream kept[2];
    uint32_t served; /* plain: of the one stream's holder */
    sp_atomic_u32 is_first_in_line;
} world;

static void begin(world *w, uint32_t streams, sp_option_policy policy, int64_t wait_ns)
{
    memset(w, 0, sizeof *w);
    w->device = sp__subject_bare_device();
    const sp_stream_pool_options options = {
        .count = 1 + streams, .policy = policy, .wait_ns = wait_ns};
    SP_SCHED_ASSERT(sp__stream_pool_init(&w->device->pool, w->device, &options) == SP_OK);
}

static void release(sp_stream stream)
{
    SP_SCHED_ASSERT(sp__stream_lease_release(stream) == SP_OK);
}

/* Each stream can be taken, once. */
static void end(world *w, uint32_t streams)
{
    sp_stream taken[3];
    w->device->pool.policy = SP_OPTION_POLICY_FAIL;
    SP_SCHED_ASSERT(sp_load_relaxed(&w->device->pool.waiting) == 0);
    for (uint32_t i = 0; i < streams; i++) {
        SP_SCHED_ASSERT(sp__stream_pool_acquire(&w->device->pool, &taken[i]) == SP_OK);
    }
    SP_SCHED_ASSERT(sp__stream_pool_acquire(&w->device->pool, &taken[2]) == SP_EXHAUSTED);
    for (uint32_t i = 0; i < streams; i++) release(taken[i]);
    for (uint32_t i = 1; i <= streams; i++) {
        SP_SCHED_ASSERT(sp_load_relaxed(&w->device->pool.streams[i].holders) == 0);
    }
    sp__stream_pool_deinit(&w->device->pool);
    sp__stream_leases_deinit();
    sp__subject_bare_device_free(w->device);
    sp__subject_end();
}

static void use_once(void *arg)
{
    world *w = arg;
    sp_stream stream;
    sp_stream_ref ref;
    SP_SCHED_ASSERT(sp__stream_pool_acquire(&w->device->pool, &stream) == SP_OK);
    SP_SCHED_ASSERT(sp__stream_find(stream, &ref) == SP_OK);
    SP_SCHED_ASSERT(ref.stream->index > 0 && ref.queue != NULL);
    w->uses[ref.stream->index]++;
    release(stream);
}

static void use_twice(void *arg)
{
    use_once(arg);
    use_once(arg);
}

static void subject_pool_wait(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    world w;
    begin(&w, 1, SP_OPTION_POLICY_WAIT, -1);
    sp__subject_run((const sp_thread_fn[]){use_twice, use_once, use_once}, threads, &w);
    SP_SCHED_ASSERT(w.uses[1] == threads + 1);
    end(&w, 1);
}

static void subject_pool_wait_two(void *arg)
{
    (void)arg;
    world w;
    begin(&w, 2, SP_OPTION_POLICY_WAIT, -1);
    sp__subject_run((const sp_thread_fn[]){use_once, use_once, use_once}, 3, &w);
    SP_SCHED_ASSERT(w.uses[1] + w.uses[2] == 3);
    end(&w, 2);
}

static void use_in_time(void *arg)
{
    world *w = arg;
    sp_stream stream;
    const sp_status status = sp__stream_pool_acquire(&w->device->pool, &stream);
    SP_SCHED_ASSERT(status == SP_OK || status == SP_TIMEOUT);
    if (status != SP_OK) return;
    w->uses[1]++;
    release(stream);
}

static void subject_pool_timeout(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    world w;
    begin(&w, 1, SP_OPTION_POLICY_WAIT, 1000000);
    sp__subject_run((const sp_thread_fn[]){use_in_time, use_in_time, use_in_time}, threads, &w);
    SP_SCHED_ASSERT(w.uses[1] >= 1);
    end(&w, 1);
}

static void share_once(void *arg)
{
    world *w = arg;
    sp_stream stream;
    sp_stream_ref ref;
    SP_SCHED_ASSERT(sp__stream_pool_acquire(&w->device->pool, &stream) == SP_OK);
    SP_SCHED_ASSERT(sp__stream_find(stream, &ref) == SP_OK);
    SP_SCHED_ASSERT(sp_load_relaxed(&ref.stream->holders) > 0);
    release(stream);
    SP_SCHED_ASSERT(sp__stream_lease_release(stream) == SP_INVALID);
}

static void subject_pool_share(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    world w;
    begin(&w, 1, SP_OPTION_POLICY_SHARE, -1);
    sp__subject_run((const sp_thread_fn[]){share_once, share_once, share_once}, threads, &w);
    end(&w, 1);
}

/* ---- first come, first served ---- */

static uint32_t take_turn(world *w)
{
    sp_stream stream;
    SP_SCHED_ASSERT(sp__stream_pool_acquire(&w->device->pool, &stream) == SP_OK);
    const uint32_t turn = ++w->served;
    release(stream);
    return turn;
}

static void come_first(void *arg)
{
    SP_SCHED_ASSERT(take_turn(arg) == 1);
}

/* The only stream is taken until the first taker is in the line. */
static void release_to_line(void *arg)
{
    world *w = arg;
    while (sp_load_relaxed(&w->device->pool.waiting) == 0) sp_spin_hint();
    sp_store_relaxed(&w->is_first_in_line, 1);
    release(w->lease);
}

static void release_and_come_second(void *arg)
{
    release_to_line(arg);
    SP_SCHED_ASSERT(take_turn(arg) > 1);
}

static void come_behind(void *arg)
{
    world *w = arg;
    while (sp_load_relaxed(&w->is_first_in_line) == 0) sp_spin_hint();
    SP_SCHED_ASSERT(take_turn(w) > 1);
}

static void subject_pool_order(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    world w;
    begin(&w, 1, SP_OPTION_POLICY_WAIT, -1);
    (void)sp__subject_stream(w.device, &w.lease);
    if (threads == 2) {
        sp__subject_run((const sp_thread_fn[]){come_first, release_and_come_second}, 2, &w);
    } else {
        sp__subject_run((const sp_thread_fn[]){come_first, come_behind, release_to_line}, 3, &w);
    }
    SP_SCHED_ASSERT(w.served == 2);
    end(&w, 1);
}

/* ---- a close against takers ---- */

static void take_until_closed(void *arg)
{
    world *w = arg;
    sp_stream stream;
    const sp_status status = sp__stream_pool_acquire(&w->device->pool, &stream);
    SP_SCHED_ASSERT(status == SP_OK || status == SP_CLOSED);
    if (status != SP_OK) return;
    w->uses[1]++;
    release(stream);
}

static void close_pool(void *arg)
{
    world *w = arg;
    sp_stream stream;
    sp__stream_pool_close(&w->device->pool);
    SP_SCHED_ASSERT(sp__stream_pool_acquire(&w->device->pool, &stream) == SP_CLOSED);
}

static void release_lease(void *arg)
{
    release(((world *)arg)->lease);
}

/* With two threads the stream does not come back before the close, with three it may. */
static void subject_pool_close(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    world w;
    begin(&w, 1, SP_OPTION_POLICY_WAIT, -1);
    (void)sp__subject_stream(w.device, &w.lease);
    sp__subject_run((const sp_thread_fn[]){take_until_closed, close_pool, release_lease}, threads,
                    &w);
    if (threads == 2) {
        SP_SCHED_ASSERT(w.uses[1] == 0);
        release(w.lease);
    }
    SP_SCHED_ASSERT(sp_load_relaxed(&w.device->pool.waiting) == SP_POOL_CLOSED);
    sp_store_relaxed(&w.device->pool.waiting, 0); /* open again: the stream is free */
    end(&w, 1);
}

/* ---- takers that share and keep: no later release wakes the one that has missed the stream ----
 */

static void keep_one(void *arg)
{
    SP_SCHED_ASSERT(
        sp__stream_pool_acquire(&((world *)arg)->device->pool, &((world *)arg)->kept[0]) == SP_OK);
}

static void keep_another(void *arg)
{
    SP_SCHED_ASSERT(
        sp__stream_pool_acquire(&((world *)arg)->device->pool, &((world *)arg)->kept[1]) == SP_OK);
}

static void subject_pool_keep(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    world w;
    begin(&w, 1, SP_OPTION_POLICY_SHARE, -1);
    if (threads == 3) (void)sp__subject_stream(w.device, &w.lease);
    sp__subject_run((const sp_thread_fn[]){keep_one, keep_another, release_lease}, threads, &w);
    SP_SCHED_ASSERT(sp_load_relaxed(&w.device->pool.streams[1].holders) == 2);
    release(w.kept[0]);
    release(w.kept[1]);
    end(&w, 1);
}

/* ---- handles of leases that end and begin ---- */

static void find_it(void *arg)
{
    world *w = arg;
    sp_stream_ref ref;
    if (sp__stream_find(w->lease, &ref) != SP_OK) return;
    SP_SCHED_ASSERT(ref.lease == w->expected.lease && ref.stream == w->expected.stream);
    SP_SCHED_ASSERT(ref.queue != NULL);
}

static void release_and_take(void *arg)
{
    world *w = arg;
    sp_stream stream;
    release(w->lease);
    SP_SCHED_ASSERT(sp__stream_pool_acquire(&w->device->pool, &stream) == SP_OK);
    SP_SCHED_ASSERT(stream.bits != w->lease.bits);
    release(stream);
}

static void take_another(void *arg)
{
    use_once(arg);
}

/* The slot of the lease gets another stream if the third thread takes in between. */
static void subject_pool_find(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    world w;
    begin(&w, 2, SP_OPTION_POLICY_WAIT, -1);
    w.expected = sp__subject_stream(w.device, &w.lease);
    sp__subject_run((const sp_thread_fn[]){find_it, release_and_take, take_another}, threads, &w);
    SP_SCHED_ASSERT(sp__stream_find(w.lease, &w.expected) == SP_INVALID);
    end(&w, 2);
}

/* ---- a walk over all streams finds initialised queues, or none ---- */

static void look_at_stream(void *arg)
{
    world *w = arg;
    sp_queue *queue = sp__stream_queue_if_made(&w->device->pool.streams[1]);
    if (queue == NULL) return;
    SP_SCHED_ASSERT(queue->index == 1);
    SP_SCHED_ASSERT(queue->device->vtable->last_value(queue) == 0);
}

static void subject_pool_made(void *arg)
{
    (void)arg;
    world w;
    begin(&w, 1, SP_OPTION_POLICY_WAIT, -1);
    sp__subject_run((const sp_thread_fn[]){use_once, look_at_stream}, 2, &w);
    end(&w, 1);
}

/* ---- the table ---- */

const sp_subject sp__subjects_pool[] = {
    {.name = "pool_wait_2",
     .test = subject_pool_wait,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .dpor_seconds = 3,
     .planted = "look_before_return",
     .seconds = 0.4},
    {.name = "pool_wait_3",
     .test = subject_pool_wait,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "look_before_return",
     .seconds = 0.4},
    {.name = "pool_wait_two",
     .test = subject_pool_wait_two,
     .thread_count = 3,
     .planted = "look_before_return",
     .seconds = 0.4},
    {.name = "pool_timeout_2",
     .test = subject_pool_timeout,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .planted = "waits_for_ever",
     .options = {.timeouts_are_choices = true},
     .seconds = 0.4},
    {.name = "pool_timeout_3",
     .test = subject_pool_timeout,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "waits_for_ever",
     .options = {.timeouts_are_choices = true},
     .seconds = 0.4},
    {.name = "pool_share_2",
     .test = subject_pool_share,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .inexhaustible_weak = SP_ENDLESS_LINE,
     .dpor_seconds = 10,
     .planted = "share_returned",
     .seconds = 0.4},
    {.name = "pool_share_3",
     .test = subject_pool_share,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "share_returned",
     .seconds = 0.4},
    {.name = "pool_made",
     .test = subject_pool_made,
     .thread_count = 2,
     .planted = "relaxed_queue",
     .seconds = 0.4},
    {.name = "pool_order_2",
     .test = subject_pool_order,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .inexhaustible = SP_ENDLESS_RUNTIME,
     .planted = "look_before_return",
     .seconds = 0.4},
    {.name = "pool_order_3",
     .test = subject_pool_order,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "take_past_line",
     .seconds = 0.4},
    {.name = "pool_close_2",
     .test = subject_pool_close,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .inexhaustible = SP_ENDLESS_RUNTIME,
     .planted = "close_leaves_takers",
     .seconds = 0.4},
    {.name = "pool_close_3",
     .test = subject_pool_close,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "close_leaves_takers",
     .seconds = 0.4},
    {.name = "pool_keep_2",
     .test = subject_pool_keep,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .dpor_seconds = 3,
     .planted = "no_look_after_take",
     .seconds = 0.4},
    {.name = "pool_keep_3",
     .test = subject_pool_keep,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "no_look_after_take",
     .seconds = 0.4},
    {.name = "pool_find_2",
     .test = subject_pool_find,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .planted = "generation_stays",
     .seconds = 0.4},
    {.name = "pool_find_3",
     .test = subject_pool_find,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "find_blindly",
     .seconds = 0.4},
    {0},
};
