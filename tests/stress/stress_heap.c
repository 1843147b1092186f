/* SPDX-License-Identifier: Apache-2.0 */
/* After warm-up, no call of the steady state allocates from the heap: everything is pooled. The
 * malloc of the whole process is counted, so the library's own threads are included. */
#include "stress.h"

#include "support/malloc_count.h"

#define THREADS 8
#define BYTES 4096
#define STEPS 8 /* per round; each creates and releases a storage */

typedef struct steady {
    sp_storage shared;
    uint32_t rounds;
    malloc_span span;
} steady;

typedef struct worker {
    steady *all;
    sp_stream streams[2]; /* its own, and another one */
    sp_storage kept;
    sp_event event;
    uint8_t value;
} worker;

static void access_on_host(sp_storage storage, sp_access access)
{
    void *data;
    CHECK_OK(sp_storage_host_begin(storage, access, &data));
    CHECK_OK(sp_storage_host_end(storage, access));
}

/* A storage used on two streams, ordered by tracking and by an event, and destroyed in use. */
static void step(worker *self)
{
    const sp_storage moved = new_storage(BYTES);
    fill(self->streams[0], moved, ++self->value);
    copy(self->streams[1], self->kept, moved);
    CHECK_OK(sp_event_record(self->event, self->streams[1]));
    CHECK_OK(sp_stream_wait_event(self->streams[0], self->event));
    copy(self->streams[0], moved, self->all->shared);
    CHECK_OK(sp_storage_release(moved));
}

static void run_round(worker *self)
{
    for (int i = 0; i < STEPS; i++) step(self);
    CHECK_EQ_INT(first_other(self->kept, self->value), -1);
    access_on_host(self->kept, SP_READ_WRITE);
    access_on_host(self->all->shared, SP_READ);
    CHECK_OK(sp_event_synchronize(self->event));
    for (int i = 0; i < 2; i++) CHECK_OK(sp_stream_synchronize(self->streams[i]));
}

/* All threads' storages and commands at once, so that the steady rounds never need more. */
static void warm_up(worker *self)
{
    sp_storage storages[4 * STEPS];
    for (int i = 0; i < 4 * STEPS; i++) {
        storages[i] = new_storage(BYTES);
        fill(self->streams[i % 2], storages[i], 1);
        copy(self->streams[(i + 1) % 2], storages[i], self->all->shared);
    }
    for (int i = 0; i < 4 * STEPS; i++) CHECK_OK(sp_storage_release(storages[i]));
    for (int i = 0; i < 100; i++) run_round(self);
}

/* Concurrent readers of the shared storage on the maximum number of timelines: one per stream, and
 * host accesses. Its frontier grows to hold them. */
static void gather_readers(sp_storage shared)
{
    sp_stream streams[3 * THREADS];
    sp_storage copies[3 * THREADS];
    gate blocker = gate_closed(TESTED);
    for (int i = 0; i < 3 * THREADS; i++) {
        streams[i] = new_stream();
        copies[i] = new_storage(BYTES);
        gate_hold(&blocker, streams[i]);
        copy(streams[i], copies[i], shared);
    }
    gate_open(&blocker);
    for (int i = 0; i < 3 * THREADS; i++) {
        CHECK_OK(sp_storage_release(copies[i]));
        CHECK_OK(sp_stream_release(streams[i]));
    }
    gate_destroy(&blocker);
}

/* The maximum number of concurrent host accesses: the pool of tickets grows to hold them. */
static void gather_accesses(sp_storage shared)
{
    void *data;
    for (int i = 0; i < 2 * THREADS; i++) CHECK_OK(sp_storage_host_begin(shared, SP_READ, &data));
    for (int i = 0; i < 2 * THREADS; i++) CHECK_OK(sp_storage_host_end(shared, SP_READ));
}

static void run_steadily(void *arg, uint32_t index)
{
    steady *all = arg;
    worker self = {.all = all,
                   .streams = {current_stream(), new_stream()},
                   .kept = new_storage(BYTES),
                   .value = (uint8_t)index};
    CHECK_OK(sp_event_create(NULL, &self.event));
    warm_up(&self);
    malloc_span_start(&all->span);
    for (uint32_t i = 0; i < all->rounds; i++) run_round(&self);
    malloc_span_end(&all->span);
    CHECK_OK(sp_event_release(self.event));
    CHECK_OK(sp_storage_release(self.kept));
    CHECK_OK(sp_stream_release(self.streams[1]));
}

TEST(no_call_of_the_steady_state_allocates)
{
    if (!malloc_is_counted()) SKIP("the sanitizer has its own malloc");
    runtime_begin();
    steady all = {.rounds = (uint32_t)test_count(10000, 500), .span = {.threads = THREADS}};
    all.shared = new_storage(BYTES);
    fill(current_stream(), all.shared, 0);
    gather_readers(all.shared);
    gather_accesses(all.shared);
    test_threads(THREADS, run_steadily, &all);
    CHECK(all.span.before > 0); /* the counter works */
    CHECK_EQ_U64(all.span.after - all.span.before, 0);
    test_note("%u rounds each; %llu allocations up to the end of the warm-up", all.rounds,
              (unsigned long long)all.span.before);
    CHECK_OK(sp_storage_release(all.shared));
    runtime_end();
}

TEST_MAIN
