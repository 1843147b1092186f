/* SPDX-License-Identifier: Apache-2.0 */
/* The moves of a storm's thread. While a thread has a host access open it makes only calls that may
 * be refused with SP_DEADLOCK, and then ends the access: so the program itself creates no
 * deadlock. */
#include <stdlib.h>
#include <string.h>

#include "stress_storm.h"

static uint32_t draw_below(worker *self, uint32_t bound)
{
    return random_next(&self->random) % bound;
}

static sp_stream any_stream(worker *self)
{
    const uint32_t pick = draw_below(self, 2 * SHARED_STREAMS);
    return pick < SHARED_STREAMS ? self->all->shared[pick] : current_stream();
}

/* True if SP_OK; counts the refusals that the storm provokes. */
static bool is_accepted(storm *all, sp_status status)
{
    if (status == SP_OK) return true;
    sp_atomic_u64 *counter = NULL;
    if (status == SP_DEADLOCK || status == SP_EXHAUSTED) counter = &all->deadlocks;
    if (status == SP_OUT_OF_MEMORY) counter = &all->shortages;
    if (counter == NULL) {
        CHECK_OK(status);
    } else {
        sp_fetch_add_relaxed(counter, (uint64_t)1);
    }
    return false;
}

/* ---- commands over the thread's own storages ---- */

static void move_fill(worker *self, sp_stream stream)
{
    const uint32_t to = draw_below(self, STORAGES);
    const uint8_t value = (uint8_t)draw_below(self, 256);
    sp_status status;
    do {
        status = sp_storage_fill_async(stream, whole(self->storages[to]), &value, 1);
    } while (is_busy(status, stream));
    CHECK_OK(status);
    memset(self->shadow[to], value, BYTES);
}

static void move_copy(worker *self, sp_stream stream)
{
    const uint32_t to = draw_below(self, STORAGES);
    const uint32_t from = draw_below(self, STORAGES);
    sp_status status;
    do {
        status =
            sp_storage_copy_async(stream, whole(self->storages[to]), whole(self->storages[from]));
    } while (is_busy(status, stream));
    CHECK_OK(status);
    memmove(self->shadow[to], self->shadow[from], BYTES);
}

static void move_slice(worker *self, sp_stream stream)
{
    const uint8_t value = (uint8_t)draw_below(self, 256);
    const sp_storage_range range = {self->all->common, (uint64_t)self->index * BYTES, BYTES};
    sp_status status;
    do {
        status = sp_storage_fill_async(stream, range, &value, 1);
    } while (is_busy(status, stream));
    CHECK_OK(status);
    memset(self->slice, value, BYTES);
}

static void move_compare(worker *self)
{
    const uint32_t at = draw_below(self, STORAGES);
    void *data;
    CHECK_OK(sp_storage_host_begin(self->storages[at], SP_READ_WRITE, &data));
    CHECK_EQ_MEM(data, self->shadow[at], BYTES);
    memset(data, (int)at, BYTES);
    memset(self->shadow[at], (int)at, BYTES);
    CHECK_OK(sp_storage_host_end(self->storages[at], SP_READ_WRITE));
}

/* ---- nested host accesses ---- */

static bool lock_begin(storm *all, uint32_t index, uint32_t **numbers)
{
    void *data;
    const sp_status status = sp_storage_host_begin(all->locks[index], SP_READ_WRITE, &data);
    if (!is_accepted(all, status)) return false;
    *numbers = data;
    CHECK_EQ_U64((*numbers)[0], (*numbers)[1]);
    (*numbers)[0]++;
    return true;
}

static void lock_end(storm *all, uint32_t index, uint32_t *numbers)
{
    numbers[1]++;
    CHECK_OK(sp_storage_host_end(all->locks[index], SP_READ_WRITE));
}

static void create_and_release(storm *all, uint64_t bytes)
{
    sp_storage storage;
    const sp_status status = sp_storage_create(CPU, bytes, NULL, &storage);
    if (!is_accepted(all, status)) return;
    const uint8_t value = 1;
    const sp_status filled = sp_storage_fill_async(current_stream(), whole(storage), &value, 1);
    CHECK(filled == SP_OK || filled == SP_BUSY);
    CHECK_OK(sp_storage_release(storage));
}

/* Takes two locks in any order, with a waiting operation in between, and submits commands behind
 * the first one. */
static void take_locks(storm *all, uint32_t first, uint32_t second, uint64_t bytes)
{
    uint32_t *numbers;
    if (!lock_begin(all, first, &numbers)) return;
    const uint64_t pattern = 0;
    const sp_storage_range range = whole(all->locks[first]);
    if (bytes % 3 == 0) {
        const sp_stream stream = all->shared[second % SHARED_STREAMS];
        const sp_status status = sp_storage_fill_async(stream, range, &pattern, 8);
        CHECK(status == SP_OK || status == SP_BUSY);
    }
    if (bytes % 5 == 0) create_and_release(all, bytes);
    uint32_t *others;
    if (lock_begin(all, second, &others)) lock_end(all, second, others);
    lock_end(all, first, numbers);
}

static void move_locks(worker *self)
{
    take_locks(self->all, draw_below(self, LOCKS), draw_below(self, LOCKS),
               1 + draw_below(self, 100000));
}

static void move_read_lock(worker *self)
{
    const sp_storage storage = self->all->locks[draw_below(self, LOCKS)];
    void *data;
    CHECK_OK(sp_storage_host_begin(storage, SP_READ, &data));
    const uint32_t *numbers = data;
    CHECK_EQ_U64(numbers[0], numbers[1]);
    CHECK_OK(sp_storage_host_end(storage, SP_READ));
}

/* ---- host functions and callbacks ---- */

typedef struct errand {
    storm *all;
    uint32_t what;
    uint32_t number;
    sp_stream stream;
    sp_event event; /* retained */
} errand;

static void run_errand(void *ctx, sp_status status)
{
    errand *self = ctx;
    storm *all = self->all;
    CHECK_OK(status);
    switch (self->what) {
    case 0: /* waits for an event that may be recorded later */
        (void)is_accepted(all, sp_event_synchronize(self->event));
        break;
    case 1:
        take_locks(all, self->number % LOCKS, self->number / LOCKS % LOCKS, self->number);
        break;
    case 2:
        create_and_release(all, 1 + self->number % 200000);
        break;
    case 3:
        (void)is_accepted(all, sp_stream_synchronize(self->stream));
        break;
    default:
        break;
    }
    CHECK_OK(sp_event_release(self->event));
    free(self);
    balance_end(&all->host_functions);
}

static void move_host_function(worker *self, sp_stream stream)
{
    errand *work = malloc(sizeof *work);
    REQUIRE(work != NULL);
    *work = (errand){.all = self->all,
                     .what = draw_below(self, 8),
                     .number = draw_below(self, 1u << 30),
                     .stream = self->all->shared[draw_below(self, SHARED_STREAMS)],
                     .event = self->events[draw_below(self, EVENTS)]};
    CHECK_OK(sp_event_retain(work->event));
    sp_status status;
    do {
        status = sp_stream_host_function(stream, run_errand, work);
    } while (is_busy(status, stream));
    CHECK_OK(status);
    if (status == SP_OK) balance_accept(&self->all->host_functions);
}

static void called_back(void *ctx, sp_status status)
{
    CHECK_OK(status);
    balance_end(ctx);
}

/* ---- events ---- */

static void move_event(worker *self, sp_stream stream)
{
    const sp_event event = self->events[draw_below(self, EVENTS)];
    sp_status status;
    do {
        status = sp_event_record(event, stream);
    } while (is_busy(status, stream));
    CHECK_OK(status);
    const sp_stream other = any_stream(self);
    do {
        status = sp_stream_wait_event(other, event);
    } while (is_busy(status, other));
    CHECK_OK(status);
    if (draw_below(self, 2) == 0) return;
    CHECK_OK(sp_event_on_complete(event, called_back, &self->all->callbacks));
    balance_accept(&self->all->callbacks);
}

static void move_wait(worker *self)
{
    uint32_t which = EVENTS;
    int64_t ns;
    switch (draw_below(self, 4)) {
    case 0:
        CHECK_OK(sp_event_wait_any(self->events, EVENTS, SP_FOREVER, &which));
        CHECK(which < EVENTS);
        break;
    case 1:
        CHECK_OK(sp_event_wait_all(self->events, EVENTS, SP_FOREVER));
        break;
    case 2:
        CHECK_OK(sp_event_elapsed(self->events[EVENTS - 1], self->events[EVENTS - 1], &ns));
        CHECK_EQ_INT(ns, 0);
        break;
    default: {
        const sp_status status = sp_event_synchronize_for(self->events[0], 1000);
        CHECK(status == SP_OK || status == SP_TIMEOUT);
        break;
    }
    }
}

/* ---- adopted memory ---- */

typedef struct lent {
    balance *adopted;
    unsigned char bytes[BYTES];
} lent;

static void adopted_free(void *ctx, void *data)
{
    lent *self = ctx;
    CHECK(data == self->bytes);
    CHECK_EQ_U64(self->bytes[0], self->bytes[BYTES - 1]);
    memset(self->bytes, 0xdd, BYTES); /* detects late readers by their shadow */
    balance_end(self->adopted);
    free(self);
}

static void move_adopt(worker *self, sp_stream stream)
{
    lent *memory = malloc(sizeof *memory);
    REQUIRE(memory != NULL);
    memory->adopted = &self->all->adopted;
    memset(memory->bytes, (int)draw_below(self, 256), BYTES);
    sp_adopt_options options = {.release = adopted_free, .ctx = memory};
    if (draw_below(self, 3) == 0) options.ready = self->events[draw_below(self, EVENTS)];
    if (options.ready.bits == 0 && draw_below(self, 2) == 0) options.ready_after = any_stream(self);
    sp_storage storage;
    REQUIRE_OK(sp_storage_adopt(CPU, memory->bytes, BYTES, &options, &storage));
    balance_accept(memory->adopted);
    const uint32_t to = draw_below(self, STORAGES);
    memset(self->shadow[to], memory->bytes[0], BYTES);
    sp_status status;
    do {
        status = sp_storage_copy_async(stream, whole(self->storages[to]), whole(storage));
    } while (is_busy(status, stream));
    CHECK_OK(status);
    CHECK_OK(sp_storage_release(storage));
}

/* ---- memory, streams, devices ---- */

static void move_memory(worker *self)
{
    switch (draw_below(self, 16)) {
    case 0:
        CHECK_OK(sp_device_set_memory_limit(CPU, stats_of(CPU).reserved_bytes));
        break;
    case 1:
        CHECK_OK(sp_device_set_memory_limit(CPU, (uint64_t)64 << 20));
        break;
    case 2:
        CHECK_OK(sp_device_empty_cache(CPU));
        break;
    default:
        create_and_release(self->all, (uint64_t)1 << draw_below(self, 22));
        break;
    }
}

static void move_stream(worker *self)
{
    sp_stream stream;
    switch (draw_below(self, 3)) {
    case 0:
        CHECK_OK(sp_thread_release_stream());
        break;
    case 1:
        CHECK_OK(sp_stream_from_pool(CPU, &stream));
        move_fill(self, stream);
        CHECK_OK(sp_stream_release(stream));
        break;
    default:
        CHECK_OK(sp_stream_synchronize(any_stream(self)));
        break;
    }
}

/* Uses a device that may be closed, lost or failing at any moment: any refusal is allowed, a hang
 * is not. */
static void move_guest(worker *self)
{
    const sp_device device = {sp_load_acquire(&self->all->guest)};
    sp_stream stream;
    sp_storage storage;
    if (device.bits == 0) return;
    if (sp_stream_from_pool(device, &stream) != SP_OK) {
        sp_fetch_add_relaxed(&self->all->closed, (uint64_t)1);
        return;
    }
    if (sp_storage_create(device, 256, NULL, &storage) == SP_OK) {
        const uint8_t value = 7;
        void *data;
        const bool is_filled = sp_storage_fill_async(stream, whole(storage), &value, 1) == SP_OK;
        if (sp_storage_host_begin(storage, SP_READ, &data) == SP_OK) {
            if (is_filled) CHECK_EQ_U64(*(unsigned char *)data, 7);
            CHECK_OK(sp_storage_host_end(storage, SP_READ));
        }
        CHECK_OK(sp_storage_release(storage));
    }
    (void)sp_stream_synchronize(stream);
    CHECK_OK(sp_stream_release(stream));
}

/* ---- everything ---- */

void storm_worker_begin(worker *self, storm *all, uint32_t index)
{
    memset(self, 0, sizeof *self);
    self->all = all;
    self->index = index;
    self->random = random_seed(index);
    for (uint32_t i = 0; i < STORAGES; i++) {
        self->storages[i] = new_storage(BYTES);
        fill(current_stream(), self->storages[i], 0);
    }
    for (uint32_t i = 0; i < EVENTS; i++) {
        const sp_event_options options = {.enable_timing = i == EVENTS - 1};
        CHECK_OK(sp_event_create(&options, &self->events[i]));
        CHECK_OK(sp_event_record(self->events[i], current_stream()));
    }
    move_slice(self, current_stream());
    raise_by_one(&all->arrived);
    await_at_least(&all->arrived, THREADS);
}

void storm_move(worker *self)
{
    const sp_stream stream = any_stream(self);
    overlap_enter(&self->all->calls);
    switch (draw_below(self, 24)) {
    case 0:
    case 1:
    case 2:
    case 3:
        move_fill(self, stream);
        break;
    case 4:
    case 5:
    case 6:
    case 7:
        move_copy(self, stream);
        break;
    case 8:
        move_slice(self, stream);
        break;
    case 9:
    case 10:
        move_compare(self);
        break;
    case 11:
    case 12:
        move_locks(self);
        break;
    case 13:
        move_read_lock(self);
        break;
    case 14:
    case 15:
        move_host_function(self, stream);
        break;
    case 16:
    case 17:
        move_event(self, stream);
        break;
    case 18:
        move_wait(self);
        break;
    case 19:
    case 20:
        move_adopt(self, stream);
        break;
    case 21:
        move_memory(self);
        break;
    case 22:
        move_stream(self);
        break;
    default:
        move_guest(self);
        break;
    }
    overlap_leave(&self->all->calls);
    sp_fetch_add_relaxed(&self->all->moves, (uint64_t)1);
}

void storm_worker_end(worker *self)
{
    void *data;
    for (uint32_t i = 0; i < STORAGES; i++) {
        CHECK_OK(sp_storage_host_begin(self->storages[i], SP_READ, &data));
        CHECK_EQ_MEM(data, self->shadow[i], BYTES);
        CHECK_OK(sp_storage_host_end(self->storages[i], SP_READ));
        CHECK_OK(sp_storage_release(self->storages[i]));
    }
    CHECK_OK(sp_storage_host_begin(self->all->common, SP_READ, &data));
    CHECK_EQ_MEM((unsigned char *)data + (size_t)self->index * BYTES, self->slice, BYTES);
    CHECK_OK(sp_storage_host_end(self->all->common, SP_READ));
    for (uint32_t i = 0; i < EVENTS; i++) CHECK_OK(sp_event_release(self->events[i]));
}
