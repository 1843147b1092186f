/* SPDX-License-Identifier: Apache-2.0 */
/* Host functions on streams: order, thread, the calls allowed inside them. */
#include "runtime_fixture.h"

#include "device/thread_record.h"

typedef struct steps {
    uint32_t order[16];
    uint32_t count;
} steps;

typedef struct one_step {
    steps *all;
    uint32_t number;
} one_step;

static void note_step(void *ctx, sp_status status)
{
    const one_step *step = ctx;
    CHECK_STATUS(status, SP_OK);
    step->all->order[step->all->count++] = step->number;
}

TEST(host_functions_run_once_in_stream_order)
{
    runtime_begin();
    steps all = {{0}, 0};
    one_step one[16];
    const sp_stream stream = new_stream();
    for (uint32_t i = 0; i < 16; i++) {
        one[i] = (one_step){&all, i};
        CHECK_OK(sp_stream_host_function(stream, note_step, &one[i]));
    }
    CHECK_OK(sp_stream_synchronize(stream));
    CHECK_EQ_U64(all.count, 16);
    for (uint32_t i = 0; i < 16; i++) CHECK_EQ_U64(all.order[i], i);
    CHECK_STATUS(sp_stream_host_function(stream, NULL, NULL), SP_INVALID);
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
}

typedef struct seen_thread {
    uint64_t ran_on;
    bool was_executor;
    sp_stream stream;
    sp_atomic_u32 is_submitted;
} seen_thread;

static void note_thread(void *ctx, sp_status status)
{
    seen_thread *self = ctx;
    (void)status;
    self->ran_on = sp_thread_number();
    self->was_executor = sp__thread_record()->is_executor;
}

static void submit_or_wait(void *arg, uint32_t index)
{
    seen_thread *self = arg;
    if (index == 0) {
        CHECK_OK(sp_stream_host_function(self->stream, note_thread, self));
        raise_by_one(&self->is_submitted);
    } else {
        await_at_least(&self->is_submitted, 1);
        CHECK_OK(sp_stream_synchronize(self->stream));
        CHECK(self->ran_on != sp_thread_number());
    }
}

TEST(a_host_function_never_runs_on_another_waiting_thread)
{
    runtime_begin();
    seen_thread self = {.stream = new_stream()};
    test_threads(2, submit_or_wait, &self);
    CHECK(self.was_executor);
    CHECK_EQ_U64(info_of(self.stream).by_host, 1);
    CHECK_OK(sp_stream_release(self.stream));
    runtime_end();
}

typedef struct inside {
    sp_stream stream;
    sp_storage storage;
    sp_device device;
    sp_status status[11];
    sp_atomic_u32 is_done;
} inside;

static void submit_to_own_stream(void *ctx, sp_status status)
{
    inside *self = ctx;
    (void)status;
    fill(self->stream, self->storage, 8);
    raise_by_one(&self->is_done);
}

static void ask_for_a_stream(void *ctx, sp_status status)
{
    inside *self = ctx;
    (void)status;
    /* On a thread that has no stream yet, while all are taken. */
    self->status[0] = sp_storage_create(CPU, 64, NULL, &self->storage);
    raise_by_one(&self->is_done);
}

TEST(a_host_function_gets_a_stream_though_all_are_taken_and_others_wait_for_ever)
{
    runtime_begin_with(&(runtime_setting){.streams = "3", .policy = "wait", .wait_ms = "-1"});
    const sp_stream one = new_stream();
    const sp_stream two = new_stream();
    inside self = {.stream = one};
    CHECK_OK(sp_stream_host_function(self.stream, ask_for_a_stream, &self));
    await_at_least(&self.is_done, 1); /* without helping: it runs on the executor */
    CHECK_OK(self.status[0]);
    CHECK_OK(sp_storage_release(self.storage));
    CHECK_OK(sp_stream_release(one));
    CHECK_OK(sp_stream_release(two));
    runtime_end();
}

TEST(a_host_function_submits_to_its_own_stream)
{
    runtime_begin();
    inside self = {.stream = new_stream(), .storage = new_storage(100)};
    CHECK_OK(sp_stream_host_function(self.stream, submit_to_own_stream, &self));
    await_at_least(&self.is_done, 1); /* on the library's thread: no thread waits for the stream */
    CHECK_EQ_INT(first_other(self.storage, 8), -1);
    CHECK_OK(sp_stream_host_function(self.stream, submit_to_own_stream, &self));
    CHECK_OK(sp_stream_synchronize(self.stream)); /* perhaps on this one */
    CHECK_OK(sp_storage_release(self.storage));
    CHECK_OK(sp_stream_release(self.stream));
    runtime_end();
}

static void wait_for_ever(void *ctx, sp_status status)
{
    inside *self = ctx;
    void *data;
    uint32_t which;
    (void)status;
    fill(self->stream, self->storage, 1);
    sp_event event;
    CHECK_OK(sp_event_create(NULL, &event));
    CHECK_OK(sp_event_record(event, self->stream));
    self->status[0] = sp_stream_synchronize(self->stream);
    self->status[1] = sp_device_synchronize(CPU);
    self->status[2] = sp_event_synchronize(event);
    self->status[3] = sp_storage_host_begin(self->storage, SP_READ, &data);
    self->status[4] = sp_storage_host_begin(self->storage, SP_WRITE, &data);
    self->status[5] = sp_shutdown();
    self->status[6] = sp_device_close(self->device);
    self->status[7] = sp_event_wait_any(&event, 1, SP_FOREVER, &which);
    self->status[8] = sp_event_wait_all(&event, 1, SP_FOREVER);
    self->status[9] = sp_stream_synchronize_for(self->stream, 0);
    self->status[10] = sp_storage_freeze(self->storage);
    CHECK_OK(sp_event_release(event));
    raise_by_one(&self->is_done);
}

static void expect_deadlocks(const inside *self)
{
    for (int i = 0; i < 9; i++) CHECK_STATUS(self->status[i], SP_DEADLOCK);
    CHECK_STATUS(self->status[10], SP_DEADLOCK);
    CHECK(self->status[9] == SP_TIMEOUT || self->status[9] == SP_DEADLOCK);
}

TEST(what_a_host_function_could_wait_for_only_without_end_is_a_deadlock)
{
    runtime_begin();
    inside self = {.stream = new_stream(), .storage = new_storage(100), .device = open_null()};
    CHECK_OK(sp_stream_host_function(self.stream, wait_for_ever, &self));
    await_at_least(&self.is_done, 1);
    expect_deadlocks(&self);
    CHECK_OK(sp_stream_host_function(self.stream, wait_for_ever, &self));
    CHECK_OK(sp_stream_synchronize(self.stream));
    expect_deadlocks(&self);
    /* Nothing remained locked, open or closed. */
    CHECK_EQ_INT(first_other(self.storage, 1), -1);
    CHECK_OK(sp_device_close(self.device));
    CHECK_OK(sp_storage_release(self.storage));
    CHECK_OK(sp_stream_release(self.stream));
    runtime_end();
}

/* One of the two is behind the function, the other is not. */
static void wait_for_any(void *ctx, sp_status status)
{
    inside *self = ctx;
    uint32_t which = 9;
    (void)status;
    sp_event events[2];
    for (int i = 0; i < 2; i++) CHECK_OK(sp_event_create(NULL, &events[i]));
    const sp_stream other = new_stream();
    submit_slow_fill(other, self->storage, 3, MILLISECOND);
    fill(self->stream, self->storage, 4);
    CHECK_OK(sp_event_record(events[0], self->stream));
    self->status[0] = sp_event_wait_any(events, 1, SP_FOREVER, &which);
    CHECK_EQ_U64(which, 1); /* none: SP_DEADLOCK */
    CHECK_OK(sp_event_record(events[1], other));
    self->status[1] = sp_event_wait_any(events, 2, SP_FOREVER, &which);
    CHECK_EQ_U64(which, 1);
    for (int i = 0; i < 2; i++) CHECK_OK(sp_event_release(events[i]));
    CHECK_OK(sp_stream_release(other));
    raise_by_one(&self->is_done);
}

TEST(a_host_function_waits_for_any_of_several_events_unless_all_come_after_it)
{
    runtime_begin();
    inside self = {.stream = new_stream(), .storage = new_storage(100)};
    for (uint32_t round = 0; round < 2; round++) {
        self.status[0] = self.status[1] = SP_FAILED;
        CHECK_OK(sp_stream_host_function(self.stream, wait_for_any, &self));
        if (round == 0) await_at_least(&self.is_done, 1); /* on the library's thread */
        CHECK_OK(sp_stream_synchronize(self.stream));     /* then perhaps on this one */
        CHECK_STATUS(self.status[0], SP_DEADLOCK);
        CHECK_OK(self.status[1]);
    }
    CHECK_OK(sp_storage_release(self.storage));
    CHECK_OK(sp_stream_release(self.stream));
    runtime_end();
}

static void wait_for_another_stream(void *ctx, sp_status status)
{
    inside *self = ctx;
    (void)status;
    const sp_stream other = new_stream();
    submit_slow_fill(other, self->storage, 2, MILLISECOND);
    CHECK_OK(sp_stream_synchronize(other));
    CHECK_OK(sp_stream_release(other));
    CHECK_EQ_INT(first_other(self->storage, 2), -1);
    raise_by_one(&self->is_done);
}

TEST(a_host_function_may_wait_for_another_stream)
{
    runtime_begin();
    inside self = {.stream = new_stream(), .storage = new_storage(100)};
    for (uint32_t round = 0; round < 2; round++) {
        CHECK_OK(sp_stream_host_function(self.stream, wait_for_another_stream, &self));
        if (round == 0) await_at_least(&self.is_done, 1);
        CHECK_OK(sp_stream_synchronize(self.stream));
    }
    CHECK_EQ_U64(sp_load_acquire(&self.is_done), 2);
    CHECK_OK(sp_storage_release(self.storage));
    CHECK_OK(sp_stream_release(self.stream));
    runtime_end();
}

typedef struct far_wait {
    sp_event last;
    sp_status status;
    sp_atomic_u32 is_done;
} far_wait;

static void wait_a_moment(void *ctx, sp_status status)
{
    far_wait *self = ctx;
    (void)status;
    self->status = sp_event_synchronize_for(self->last, MILLISECOND);
    raise_by_one(&self->is_done);
}

TEST(a_wait_behind_hundreds_of_queued_waits_is_no_deadlock)
{
    runtime_begin();
    far_wait self = {0};
    gate blocker = gate_closed(CPU);
    const sp_stream streams[2] = {new_stream(), new_stream()};
    const sp_stream unrelated = new_stream();
    gate_hold(&blocker, streams[0]);
    gate_hold(&blocker, streams[1]);
    CHECK_OK(sp_event_create(NULL, &self.last));
    for (uint32_t i = 0; i < 1200; i++) { /* each waits for the other one's newest submission */
        CHECK_OK(sp_event_record(self.last, streams[i % 2]));
        CHECK_OK(sp_stream_wait_event(streams[1 - i % 2], self.last));
    }
    CHECK_OK(sp_event_record(self.last, streams[0]));
    CHECK_OK(sp_stream_host_function(unrelated, wait_a_moment, &self));
    CHECK_OK(sp_stream_flush(unrelated));
    await_at_least(&self.is_done, 1);
    CHECK_STATUS(self.status, SP_TIMEOUT);
    gate_open(&blocker);
    CHECK_OK(sp_event_synchronize(self.last));
    gate_destroy(&blocker);
    CHECK_OK(sp_event_release(self.last));
    for (int i = 0; i < 2; i++) CHECK_OK(sp_stream_release(streams[i]));
    CHECK_OK(sp_stream_release(unrelated));
    runtime_end();
}

typedef struct locked_wait {
    sp_mutex lock; /* the application's own */
    sp_event event;
    sp_atomic_u32 is_waiting;
    sp_atomic_u32 is_started;
} locked_wait;

static void wait_with_lock(void *ctx, sp_status status)
{
    locked_wait *self = ctx;
    (void)status;
    sp_mutex_lock(&self->lock);
    raise_by_one(&self->is_waiting);
    CHECK_OK(sp_event_synchronize(self->event));
    sp_mutex_unlock(&self->lock);
}

static void want_lock(void *ctx, sp_status status)
{
    locked_wait *self = ctx;
    (void)status;
    raise_by_one(&self->is_started);
    sp_mutex_lock(&self->lock);
    sp_mutex_unlock(&self->lock);
}

TEST(a_host_function_that_holds_a_lock_of_the_application_while_it_waits_goes_on_beside_another)
{
    runtime_begin();
    locked_wait self = {.lock = SP_MUTEX_INIT(SP_LOCK_FOREIGN)};
    gate blocker = gate_closed(CPU);
    const sp_stream held = new_stream();
    const sp_stream streams[2] = {new_stream(), new_stream()};
    gate_hold(&blocker, held);
    CHECK_OK(sp_event_create(NULL, &self.event));
    CHECK_OK(sp_event_record(self.event, held));
    CHECK_OK(sp_stream_host_function(streams[0], wait_with_lock, &self));
    CHECK_OK(sp_stream_flush(streams[0]));
    await_at_least(&self.is_waiting, 1);
    CHECK_OK(sp_stream_host_function(streams[1], want_lock, &self));
    CHECK_OK(sp_stream_flush(streams[1]));
    await_at_least(&self.is_started, 1); /* the other one waits now */
    gate_open(&blocker);
    for (int i = 0; i < 2; i++) CHECK_OK(sp_stream_synchronize(streams[i]));
    gate_destroy(&blocker);
    CHECK_OK(sp_event_release(self.event));
    CHECK_OK(sp_stream_release(held));
    for (int i = 0; i < 2; i++) CHECK_OK(sp_stream_release(streams[i]));
    runtime_end();
}

typedef struct semaphore {
    sp_mutex lock;
    sp_cond raised;
    uint32_t count SP_GUARDED_BY(lock);
} semaphore;

static void post(void *ctx, sp_status status)
{
    semaphore *self = ctx;
    (void)status;
    sp_mutex_lock(&self->lock);
    self->count++;
    sp_mutex_unlock(&self->lock);
    sp_cond_signal(&self->raised);
}

TEST(a_host_function_runs_though_its_thread_only_waits_for_a_semaphore_of_its_own)
{
    runtime_begin();
    semaphore self = {.lock = SP_MUTEX_INIT(SP_LOCK_FOREIGN)};
    const sp_stream stream = new_stream();
    const uint32_t rounds = (uint32_t)test_count(2000, 200);
    for (uint32_t i = 0; i < rounds; i++) {
        CHECK_OK(sp_stream_host_function(stream, post, &self));
        const uint64_t deadline = sp_clock_deadline(30 * SECOND);
        bool is_in_time = true;
        sp_mutex_lock(&self.lock);
        while (self.count <= i && is_in_time) {
            is_in_time = sp_cond_wait_until(&self.raised, &self.lock, deadline);
        }
        sp_mutex_unlock(&self.lock);
        REQUIRE(is_in_time);
    }
    CHECK_OK(sp_stream_release(stream));
    runtime_end();
}

typedef struct chain {
    sp_stream stream;
    sp_atomic_u32 left;
} chain;

static void go_on(void *ctx, sp_status status)
{
    chain *self = ctx;
    (void)status;
    if (sp_fetch_sub_acq_rel(&self->left, 1) == 1) return;
    CHECK_OK(sp_stream_host_function(self->stream, go_on, self));
}

TEST(host_functions_that_submit_each_other_come_to_an_end)
{
    runtime_begin();
    chain self = {.stream = new_stream(), .left = {300}};
    CHECK_OK(sp_stream_host_function(self.stream, go_on, &self));
    const uint64_t deadline = sp_clock_deadline(30 * SECOND);
    while (sp_load_acquire(&self.left) > 0 && sp_clock_now() < deadline) {
        CHECK_OK(sp_stream_synchronize(self.stream));
    }
    CHECK_EQ_U64(sp_load_acquire(&self.left), 0);
    CHECK_OK(sp_stream_synchronize(self.stream));
    CHECK_OK(sp_stream_release(self.stream));
    runtime_end();
}

TEST_MAIN
