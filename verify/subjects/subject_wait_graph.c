/* SPDX-License-Identifier: Apache-2.0 */
/* The wait-for graph: of the waits that form a wait cycle, through host functions and host
 * accesses, the last one is refused, and all others end. And later uses stay ordered after what a
 * refused access was ordered after. */
#include "support.h"

#include <string.h>

#include <streampool/storage.h>

#include "base/clock.h"
#include "device/host_executor.h"
#include "device/wait.h"
#include "device/wait_graph.h"
#include "runtime/storage.h"
#include "sched/subject.h"

#define MOST 3

typedef struct world {
    sp_queue_device *common;
    sp_rt_device *device;
    sp_stream leases[2];
    sp_stream_ref streams[2];
    uint32_t count; /* of the storages, and of the threads that begin accesses */
    sp_storage storages[MOST];
    uint32_t memory[MOST]; /* plain: the contents of the storages */
    sp_atomic_u32 refused;
    sp_atomic_u32 is_submitted; /* a word to wait on: the host function may continue */
    sp_event event;
    sp_point refusal; /* of the host function whose access is refused */
    sp_point last;
} world;

static void begin(world *w, uint32_t storage_count, uint32_t stream_count)
{
    memset(w, 0, sizeof *w);
    w->common = sp__subject_device(0);
    w->device = sp__subject_runtime(w->common);
    SP_SCHED_ASSERT(sp__host_executor_start() == SP_OK);
    w->count = storage_count;
    for (uint32_t i = 0; i < storage_count; i++) {
        SP_SCHED_ASSERT(sp_storage_adopt((sp_device){0}, &w->memory[i], sizeof w->memory[i], NULL,
                                         &w->storages[i]) == SP_OK);
    }
    for (uint32_t i = 0; i < stream_count; i++) {
        w->streams[i] = sp__subject_stream(w->device, &w->leases[i]);
    }
}

static void end(world *w)
{
    for (uint32_t i = 0; i < w->count; i++) {
        SP_SCHED_ASSERT(sp_storage_release(w->storages[i]) == SP_OK);
    }
    SP_SCHED_ASSERT(sp_event_release(w->event) == SP_OK);
    for (uint32_t i = 0; i < 2; i++) sp__stream_lease_release(w->leases[i]);
    sp__subject_runtime_down();
}

static void raise(sp_atomic_u32 *word)
{
    sp_store_release(word, 1);
    sp_word_wake(word, SP_WAKE_ALL);
}

static void await(sp_atomic_u32 *word)
{
    while (sp_load_acquire(word) == 0) sp_word_wait(word, 0, SP_NO_DEADLINE);
}

static void fill(world *w, uint32_t stream, uint32_t storage, uint32_t value)
{
    const sp_storage_range range = {w->storages[storage], 0, sizeof value};
    SP_SCHED_ASSERT(sp_storage_fill_async(w->leases[stream], range, &value, sizeof value) == SP_OK);
    w->last = sp__queue_last_point(w->streams[stream].queue);
}

/* ---- the graph alone: each thread waits for what the next one holds, cyclically ---- */

typedef struct ring_member {
    sp_timeline timeline; /* held by thread `index + 1` */
    uint32_t index;
} ring_member;

static struct {
    uint32_t count;
    ring_member members[MOST];
    sp_atomic_u32 inside;
} ring;

static uint64_t held(sp_timeline *timeline, uint64_t value, sp_point_visitor visit, void *ctx)
{
    (void)value;
    (void)visit;
    (void)ctx;
    return SP_CONTAINER_OF(timeline, ring_member, timeline)->index + 1;
}

/* The threads of the cycle never all wait at once. */
static void enter_and_leave(uint32_t index)
{
    const sp_point point = {&ring.members[(index + 1) % ring.count].timeline, 1};
    sp_graph_wait wait = {.holder = index + 1, .points = &point, .count = 1};
    const sp_status status = sp__wait_graph_enter(&wait);
    SP_SCHED_ASSERT(status == SP_OK || status == SP_DEADLOCK);
    if (status != SP_OK) return;
    SP_SCHED_ASSERT(sp_fetch_add_relaxed(&ring.inside, 1) < ring.count - 1);
    sp_fetch_sub_relaxed(&ring.inside, 1);
    sp__wait_graph_leave(&wait);
}

static void enter_first(void *arg)
{
    (void)arg;
    enter_and_leave(0);
}

static void enter_second(void *arg)
{
    (void)arg;
    enter_and_leave(1);
}

static void enter_third(void *arg)
{
    (void)arg;
    enter_and_leave(2);
}

static void subject_wait_graph_ring(void *arg)
{
    static const sp_timeline_source source = {.each_wait = held};
    ring.count = *(const uint32_t *)arg;
    sp_store_relaxed(&ring.inside, 0);
    for (uint32_t i = 0; i < ring.count; i++) {
        sp__timeline_init(&ring.members[i].timeline, NULL);
        ring.members[i].timeline.source = &source;
        ring.members[i].index = i;
    }
    sp__subject_run((const sp_thread_fn[]){enter_first, enter_second, enter_third}, ring.count,
                    NULL);
    for (uint32_t i = 0; i < ring.count; i++) sp__timeline_deinit(&ring.members[i].timeline);
    sp__subject_end();
}

/* ---- threads that each hold one access and want the next one's ---- */

static void hold_one_and_want(world *w, uint32_t index)
{
    const sp_storage own = w->storages[index];
    const sp_storage wanted = w->storages[(index + 1) % w->count];
    void *data;
    SP_SCHED_ASSERT(sp_storage_host_begin(own, SP_WRITE, &data) == SP_OK);
    *(uint32_t *)data = 1;
    const sp_status status = sp_storage_host_begin(wanted, SP_WRITE, &data);
    SP_SCHED_ASSERT(status == SP_OK || status == SP_DEADLOCK);
    if (status == SP_OK) {
        *(uint32_t *)data = 2;
        SP_SCHED_ASSERT(sp_storage_host_end(wanted, SP_WRITE) == SP_OK);
    } else {
        sp_fetch_add_relaxed(&w->refused, 1);
    }
    SP_SCHED_ASSERT(sp_storage_host_end(own, SP_WRITE) == SP_OK);
}

static void want_first(void *arg)
{
    hold_one_and_want(arg, 0);
}

static void want_second(void *arg)
{
    hold_one_and_want(arg, 1);
}

static void want_third(void *arg)
{
    hold_one_and_want(arg, 2);
}

static void subject_wait_graph_accesses(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    world w;
    begin(&w, threads, 0);
    sp__subject_run((const sp_thread_fn[]){want_first, want_second, want_third}, threads, &w);
    SP_SCHED_ASSERT(sp_load_relaxed(&w.refused) <= 1);
    end(&w);
}

/* ---- a host function behind an access that another thread begins ---- */

static void wait_for_the_event(void *ctx, sp_status status)
{
    world *w = ctx;
    SP_SCHED_ASSERT(status == SP_OK);
    await(&w->is_submitted);
    SP_SCHED_ASSERT(sp_event_synchronize(w->event) == SP_DEADLOCK);
}

/* The event is behind a fill of the second stream, that behind a fill of the first one or behind
 * the access in between, and both behind the host function. */
static void submit_and_poll(void *arg)
{
    world *w = arg;
    fill(w, 1, 0, 2);
    SP_SCHED_ASSERT(sp_event_record(w->event, w->leases[1]) == SP_OK);
    raise(&w->is_submitted);
    sp__subject_poll(w->common, 3, w->last);
}

static void access_x(void *arg)
{
    world *w = arg;
    void *data;
    SP_SCHED_ASSERT(sp_storage_host_begin(w->storages[0], SP_READ_WRITE, &data) == SP_OK);
    const uint32_t value = *(uint32_t *)data;
    SP_SCHED_ASSERT(value == 1 || value == 2);
    SP_SCHED_ASSERT(sp_storage_host_end(w->storages[0], SP_READ_WRITE) == SP_OK);
}

static void subject_wait_graph_host(void *arg)
{
    (void)arg;
    world w;
    begin(&w, 1, 2);
    SP_SCHED_ASSERT(sp_event_create(NULL, &w.event) == SP_OK);
    SP_SCHED_ASSERT(sp_stream_host_function(w.leases[0], wait_for_the_event, &w) == SP_OK);
    fill(&w, 0, 0, 1);
    sp__subject_run((const sp_thread_fn[]){submit_and_poll, access_x}, 2, &w);
    SP_SCHED_ASSERT(w.memory[0] == 2);
    end(&w);
}

/* ---- an access that was refused ---- */

static void begin_and_be_refused(void *ctx, sp_status status)
{
    world *w = ctx;
    void *data;
    SP_SCHED_ASSERT(status == SP_OK);
    SP_SCHED_ASSERT(sp_storage_host_begin(w->storages[0], SP_WRITE, &data) == SP_DEADLOCK);
}

/* Writes once more when the access has been refused. */
static void poll_and_fill_again(void *arg)
{
    world *w = arg;
    sp__subject_poll(w->common, 3, w->refusal);
    fill(w, 0, 0, 2);
    sp__subject_poll(w->common, 3, w->last);
}

/* Before the refused access, behind it, or after it: the first fill comes first, and the second one
 * before or after the whole access. */
static void read_beside(void *arg)
{
    world *w = arg;
    void *data;
    SP_SCHED_ASSERT(sp_storage_host_begin(w->storages[0], SP_READ, &data) == SP_OK);
    const uint32_t value = *(uint32_t *)data;
    SP_SCHED_ASSERT(value == 1 || value == 2);
    SP_SCHED_ASSERT(sp_storage_host_end(w->storages[0], SP_READ) == SP_OK);
}

static void subject_wait_graph_abandoned(void *arg)
{
    (void)arg;
    world w;
    begin(&w, 1, 1);
    SP_SCHED_ASSERT(sp_stream_host_function(w.leases[0], begin_and_be_refused, &w) == SP_OK);
    w.refusal = sp__queue_last_point(w.streams[0].queue);
    fill(&w, 0, 0, 1);
    sp__subject_run((const sp_thread_fn[]){poll_and_fill_again, read_beside}, 2, &w);
    SP_SCHED_ASSERT(w.memory[0] == 2);
    end(&w);
}

/* ---- the table ---- */

const sp_subject sp__subjects_wait_graph[] = {
    {.name = "wait_graph_ring_2",
     .test = subject_wait_graph_ring,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .planted = "search_finds_nothing search_stops_at_host"},
    {.name = "wait_graph_ring_3",
     .test = subject_wait_graph_ring,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "search_finds_nothing search_stops_at_host",
     .seconds = 0.4},
    {.name = "wait_graph_accesses_2",
     .test = subject_wait_graph_accesses,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .inexhaustible = SP_ENDLESS_RUNTIME,
     .planted = "search_finds_nothing search_stops_at_host",
     .options = SP_SLEEPERS,
     .seconds = 0.4},
    {.name = "wait_graph_accesses_3",
     .test = subject_wait_graph_accesses,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "search_finds_nothing",
     .options = SP_SLEEPERS,
     .seconds = 0.4},
    {.name = "wait_graph_host",
     .test = subject_wait_graph_host,
     .thread_count = 3,
     .planted = "search_finds_nothing search_stops_at_host",
     .options = SP_SLEEPERS,
     .seconds = 0.4},
    {.name = "wait_graph_abandoned",
     .test = subject_wait_graph_abandoned,
     .thread_count = 3,
     .planted = "close_abandoned_early withdraw_blindly",
     .options = SP_SLEEPERS,
     .seconds = 0.4},
    {0},
};
