/* SPDX-License-Identifier: Apache-2.0 */
/* 31 threads, which end and are replaced, make requests by every API: runs, submits, batch queues,
 * sp_batch_inference; with wrong shapes, runs that fail, cancels, time-outs, priorities, callbacks
 * that run and submit, and a device that fails, is lost and closes under them, beside forks. Each
 * request has one outcome, with its bits if it is done, and the models count the same. */
#include "stress_requests.h"

#include <streampool/null_device.h>

#include "base/clock.h"
#include "base/thread.h"
#include "cancel_fixture.h"
#include "support/child.h"

#define GUESTS 40u /* null devices in sequence: a process has room for 64 devices */

/* ---- threads that end ---- */

/* A place for one thread after the other. */
typedef struct place {
    storm *all;
    uint64_t random;
    uint64_t made;
    request left[LEFT]; /* submitted by a thread that has ended */
} place;

/* Requests that the last thread has left in flight are the next one's to end. */
static void left_end(place *self)
{
    for (uint32_t i = 0; i < LEFT; i++) {
        request_end(&self->left[i]);
        self->left[i].future = (sp_future){0};
    }
}

static void burst(place *self)
{
    storm *all = self->all;
    uint64_t *random = &self->random;
    request requests[BURST];
    const uint32_t count = 1 + random_next(random) % BURST;
    for (uint32_t i = 0; i < count; i++) {
        request_draw(&requests[i], all, random);
        request_submit(&requests[i], random_next(random) % 2 == 0, random);
        if (requests[i].future.bits != 0 && random_next(random) % 16 == 0) {
            CHECK_OK(sp_future_cancel(requests[i].future));
        }
    }
    if (random_next(random) % 16 == 0)
        queue_options_change(all->served[TARGET_SMALL].queue, random);
    if (random_next(random) % 4 == 0) {
        CHECK_OK(sp_batch_queue_flush(all->served[random_next(random) % 2].queue));
    }
    for (uint32_t i = 0; i < count; i++) request_end(&requests[i]);
    self->made += count;
}

static void move(place *self)
{
    request requests[BURST];
    const uint32_t kind = random_next(&self->random) % 8;
    const uint32_t count = kind == 0 ? 1 + random_next(&self->random) % BURST : 1;
    if (kind > 3) {
        burst(self);
        return;
    }
    if (kind == 0) {
        requests[0].all = self->all;
        requests_infer(requests, count, &self->random);
    } else {
        request_draw(&requests[0], self->all, &self->random);
        request_run(&requests[0], &self->random);
    }
    self->made += count;
}

static void life(void *arg)
{
    place *self = arg;
    const uint64_t until = self->made + 1 + random_next(&self->random) % 400;
    left_end(self);
    while (self->made < until) move(self);
    for (uint32_t i = 0; i < LEFT; i++) {
        request_draw(&self->left[i], self->all, &self->random);
        request_submit(&self->left[i], i % 2 == 0, &self->random);
    }
    self->made += LEFT;
}

static void run_place(storm *all, uint32_t index)
{
    static place places[THREADS];
    place *self = &places[index];
    *self = (place){.all = all, .random = random_seed(index)};
    while (self->made < all->requests) {
        sp_thread thread;
        REQUIRE_OK(sp_thread_create(&thread, "life", life, self));
        sp_thread_join(&thread);
    }
    left_end(self);
}

/* ---- guests ---- */

static served guest_open(sp_device *device)
{
    null_fixture null = null_open();
    served out = {.model = small_model(&null.options)};
    const sp_host_tensor x = input_x(1);
    if (combining_is_certain()) CHECK(combining_prepare(out.model, &x, 1) > 0);
    out.queue = queue_open(out.model, NULL);
    *device = null.device;
    return out;
}

static void guest_publish(storm *all, served fresh)
{
    sp_mutex_lock(&all->guest_lock);
    const served former = all->guest;
    all->guest = fresh;
    sp_mutex_unlock(&all->guest_lock);
    CHECK_OK(sp_batch_queue_release(former.queue));
    CHECK_OK(sp_model_release(former.model));
}

static bool is_over(storm *all)
{
    return sp_load_acquire(&all->left) == THREADS;
}

/* Until the guest's share of all requests has been made. */
static void guest_await_end(storm *all, uint64_t number)
{
    const uint64_t until = number * all->requests * THREADS / GUESTS;
    while (!is_over(all) && sp_load_relaxed(&all->made) < until) sp_clock_sleep(1000000);
}

/* Each guest fails in one way, and gives way to the next one in mid-flight. */
static void run_guests(storm *all, sp_device device)
{
    for (uint64_t i = 1; i < GUESTS && !is_over(all); i++) {
        if (i % 4 == 1) CHECK_OK(sp_null_fail_randomly(device, 100, i));
        if (i % 4 == 2) CHECK_OK(sp_device_set_memory_limit(device, 1));
        if (i % 4 == 3) CHECK_OK(sp_null_lose(device));
        guest_await_end(all, i);
        sp_device next;
        const served fresh = guest_open(&next);
        if (i % 2 == 0) CHECK_OK(sp_device_close(device)); /* in use */
        guest_publish(all, fresh);
        if (i % 2 == 1) CHECK_OK(sp_device_close(device));
        device = next;
        sp_fetch_add_relaxed(&all->guests, (uint64_t)1);
    }
    while (!is_over(all)) sp_clock_sleep(1000000);
    guest_publish(all, (served){.model = {0}});
    CHECK_OK(sp_device_close(device));
}

/* ---- forks ---- */

static int use_in_child(void *arg)
{
    const storm *all = arg;
    const served *small = &all->served[TARGET_SMALL];
    const sp_host_tensor x = input_x(1);
    float values[SMALL_OUT];
    sp_host_tensor y = output_y(values, SMALL_OUT);
    sp_future future;
    const bool is_refused =
        sp_model_run(small->model, &x, 1, &y, 1) == SP_FORKED &&
        sp_model_submit(small->model, &x, 1, &y, 1, &future) == SP_FORKED &&
        sp_batch_queue_submit(small->queue, NULL, &x, 1, &y, 1, &future) == SP_FORKED;
    return is_refused ? 0 : 1;
}

static void run_forks(storm *all)
{
    while (!is_over(all)) {
        CHECK_EQ_INT(child_run(use_in_child, all), 0);
        sp_fetch_add_relaxed(&all->forks, (uint64_t)1);
        sp_clock_sleep(50000000);
    }
}

/* ---- the test ---- */

typedef struct crew {
    storm *all;
    sp_device device; /* of the first guest */
} crew;

static void run_crew(void *arg, uint32_t index)
{
    const crew *self = arg;
    if (index == THREADS) {
        run_guests(self->all, self->device);
    } else if (index == THREADS + 1) {
        run_forks(self->all);
    } else {
        run_place(self->all, index);
        raise_by_one(&self->all->left);
    }
}

static sp_device storm_open(storm *all)
{
    static const int64_t no_row = 0;
    const sp_host_tensor x = table_input(&no_row);
    const sp_batch_queue_options delayed = {.max_delay_ns = 50000, .max_waiting = 100};
    *all = (storm){.requests = test_count(10000000, 40000) / THREADS};
    sp_mutex_init(&all->guest_lock, SP_LOCK_FOREIGN);
    all->served[TARGET_TABLE].model = table_model(NULL);
    if (combining_is_certain())
        CHECK(combining_prepare(all->served[TARGET_TABLE].model, &x, 1) > 0);
    all->served[TARGET_SMALL].model = queue_model();
    for (uint32_t row = 0; row < ROWS; row++) {
        float in[SMALL_IN];
        small_fill_rows(in, row, 1);
        CHECK_OK(small_run_rows(all->served[TARGET_SMALL].model, in, 1, all->expected[row]));
    }
    all->served[TARGET_TABLE].queue = queue_open(all->served[TARGET_TABLE].model, NULL);
    all->served[TARGET_SMALL].queue = queue_open(all->served[TARGET_SMALL].model, &delayed);
    for (int i = 0; i < TOKENS; i++) sp_store_relaxed(&all->tokens[i], token_create().bits);
    sp_device device;
    guest_publish(all, guest_open(&device));
    return device;
}

static sp_model_statistics statistics_at_rest(sp_model model)
{
    sp_model_statistics s;
    do {
        s = (sp_model_statistics){0};
        CHECK_OK(sp_model_get_statistics(model, &s));
    } while (s.waiting + s.in_flight > 0);
    return s;
}

/* What the model has counted since `before` is what the test has. */
static void check_statistics(const storm *all, target which, const sp_model_statistics *before)
{
    const sp_model_statistics s = statistics_at_rest(all->served[which].model);
    const sp_atomic_u64 *outcomes = all->outcomes[which];
    const uint64_t done = s.runs - s.failed - s.cancelled - s.expired;
    CHECK_EQ_U64(done - before->runs, sp_load_relaxed(&outcomes[OUTCOME_DONE]));
    CHECK_EQ_U64(s.failed, sp_load_relaxed(&outcomes[OUTCOME_FAILED]));
    test_note("%llu done, %llu failed, %llu cancelled, %llu expired, %llu refused; %llu in batches",
              (unsigned long long)done, (unsigned long long)s.failed,
              (unsigned long long)s.cancelled, (unsigned long long)s.expired,
              (unsigned long long)s.refused, (unsigned long long)s.batched_runs);
}

static void check_ledger(const storm *all)
{
    uint64_t sum = 0;
    for (int which = 0; which < TARGET_COUNT; which++) {
        for (int i = 0; i < OUTCOME_COUNT; i++) sum += sp_load_relaxed(&all->outcomes[which][i]);
    }
    CHECK_EQ_U64(sum, sp_load_relaxed(&all->made));
    CHECK_EQ_U64(sp_load_relaxed(&all->called), sp_load_relaxed(&all->callbacks));
    test_note("%llu requests, %llu callbacks, %llu guests, %llu forks", (unsigned long long)sum,
              (unsigned long long)sp_load_relaxed(&all->callbacks),
              (unsigned long long)sp_load_relaxed(&all->guests),
              (unsigned long long)sp_load_relaxed(&all->forks));
}

TEST(every_request_has_one_outcome)
{
    static storm all;
    const crew self = {.all = &all, .device = storm_open(&all)};
    sp_model_statistics before[2];
    for (int i = 0; i < 2; i++) before[i] = statistics_at_rest(all.served[i].model);
    test_threads(THREADS + 2, run_crew, (void *)(uintptr_t)&self);
    check_ledger(&all);
    for (int i = 0; i < 2; i++) {
        check_statistics(&all, (target)i, &before[i]);
        CHECK_OK(sp_batch_queue_release(all.served[i].queue));
        CHECK_OK(sp_model_release(all.served[i].model));
    }
    for (int i = 0; i < TOKENS; i++) {
        CHECK_OK(sp_cancel_token_release((sp_cancel_token){sp_load_relaxed(&all.tokens[i])}));
    }
    sp_mutex_deinit(&all.guest_lock);
}

TEST_MAIN
