/* SPDX-License-Identifier: Apache-2.0 */
/* Mutexes and condition variables. For the lock order see test_lock_check.c. */
#include "base/mutex.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "base/thread.h"
#include "support/test.h"

#define MS UINT64_C(1000000)

typedef struct guarded_counter {
    sp_mutex lock;
    uint64_t count SP_GUARDED_BY(lock);
    uint64_t rounds;
} guarded_counter;

static void count_up(void *arg, uint32_t index)
{
    guarded_counter *counter = arg;
    for (uint64_t i = 0; i < counter->rounds; i++) {
        if ((i + index) % 3 == 0) {
            while (!sp_mutex_try_lock(&counter->lock)) sp_thread_yield();
            counter->count++;
            sp_mutex_unlock(&counter->lock);
        } else {
            sp_mutex_lock(&counter->lock);
            counter->count++;
            sp_mutex_unlock(&counter->lock);
        }
    }
}

static uint64_t read_count(guarded_counter *counter)
{
    sp_mutex_lock(&counter->lock);
    const uint64_t count = counter->count;
    sp_mutex_unlock(&counter->lock);
    return count;
}

TEST(one_thread_at_a_time_holds_a_mutex)
{
    guarded_counter counter = {.rounds = test_count(200000, 20000)};
    sp_mutex_init(&counter.lock, SP_LOCK_FOREIGN);
    test_threads(8, count_up, &counter);
    CHECK_EQ_U64(read_count(&counter), 8 * counter.rounds);
    sp_mutex_deinit(&counter.lock);
}

TEST(the_initialiser_makes_an_unlocked_mutex)
{
    guarded_counter counter = {.lock = SP_MUTEX_INIT(SP_LOCK_FOREIGN), .rounds = 1000};
    test_threads(4, count_up, &counter);
    CHECK_EQ_U64(read_count(&counter), 4000);
}

static void try_once(void *arg, uint32_t index)
{
    (void)index;
    guarded_counter *counter = arg;
    if (!sp_mutex_try_lock(&counter->lock)) return;
    counter->count++;
    sp_mutex_unlock(&counter->lock);
}

TEST(try_lock_says_no_while_another_thread_holds_it)
{
    guarded_counter counter = {.rounds = 0};
    sp_mutex_init(&counter.lock, SP_LOCK_FOREIGN);
    sp_mutex_lock(&counter.lock);
    test_threads(2, try_once, &counter);
    CHECK_EQ_U64(counter.count, 0);
    sp_mutex_unlock(&counter.lock);
    test_threads(1, try_once, &counter);
    CHECK_EQ_U64(read_count(&counter), 1);
    sp_mutex_deinit(&counter.lock);
}

/* ---- condition variables ---- */

typedef struct channel {
    sp_mutex lock;
    sp_cond not_empty, not_full;
    uint32_t items[4] SP_GUARDED_BY(lock);
    uint32_t count SP_GUARDED_BY(lock);
    uint32_t producers_left SP_GUARDED_BY(lock);
    uint32_t rounds;
    sp_atomic_u64 sum_in, sum_out;
} channel;

static void produce(channel *c, uint32_t index)
{
    for (uint32_t i = 0; i < c->rounds; i++) {
        const uint32_t item = index * c->rounds + i;
        sp_mutex_lock(&c->lock);
        while (c->count == SP_COUNT_OF(c->items)) sp_cond_wait(&c->not_full, &c->lock);
        c->items[c->count++] = item;
        sp_mutex_unlock(&c->lock);
        sp_cond_signal(&c->not_empty);
        sp_fetch_add_relaxed(&c->sum_in, (uint64_t)item);
    }
    sp_mutex_lock(&c->lock);
    c->producers_left--;
    sp_mutex_unlock(&c->lock);
    sp_cond_broadcast(&c->not_empty);
}

static void consume(channel *c)
{
    for (;;) {
        sp_mutex_lock(&c->lock);
        while (c->count == 0 && c->producers_left > 0) sp_cond_wait(&c->not_empty, &c->lock);
        const bool is_any = c->count > 0;
        const uint32_t item = is_any ? c->items[--c->count] : 0;
        sp_mutex_unlock(&c->lock);
        if (!is_any) return;
        sp_cond_signal(&c->not_full);
        sp_fetch_add_relaxed(&c->sum_out, (uint64_t)item);
    }
}

static void produce_or_consume(void *arg, uint32_t index)
{
    if (index % 2 == 0) {
        produce(arg, index / 2);
    } else {
        consume(arg);
    }
}

static void run_channel(channel *c)
{
    c->rounds = (uint32_t)test_count(100000, 5000);
    sp_mutex_lock(&c->lock);
    c->producers_left = 3;
    sp_mutex_unlock(&c->lock);
    test_threads(6, produce_or_consume, c);
    const uint64_t total = 3 * (uint64_t)c->rounds;
    CHECK_EQ_U64(sp_load_relaxed(&c->sum_in), total * (total - 1) / 2);
    CHECK_EQ_U64(sp_load_relaxed(&c->sum_out), sp_load_relaxed(&c->sum_in));
}

TEST(what_producers_put_in_consumers_take_out)
{
    channel c = {.rounds = 0};
    sp_mutex_init(&c.lock, SP_LOCK_FOREIGN);
    sp_cond_init(&c.not_empty);
    sp_cond_init(&c.not_full);
    run_channel(&c);
    sp_cond_deinit(&c.not_full);
    sp_cond_deinit(&c.not_empty);
    sp_mutex_deinit(&c.lock);
}

TEST(zeroed_memory_is_a_condition_variable)
{
    channel c = {.lock = SP_MUTEX_INIT(SP_LOCK_FOREIGN)};
    run_channel(&c);
}

typedef struct gate {
    sp_mutex lock;
    sp_cond opened;
    bool is_open SP_GUARDED_BY(lock);
    uint32_t inside SP_GUARDED_BY(lock);
    uint32_t passed SP_GUARDED_BY(lock);
} gate;

static void wait_at_gate(void *arg, uint32_t index)
{
    gate *g = arg;
    sp_mutex_lock(&g->lock);
    if (index == 0) { /* opens when the others wait */
        while (g->inside < 7) {
            sp_mutex_unlock(&g->lock);
            sp_thread_yield();
            sp_mutex_lock(&g->lock);
        }
        g->is_open = true;
        sp_mutex_unlock(&g->lock);
        sp_cond_broadcast(&g->opened);
        return;
    }
    g->inside++;
    while (!g->is_open) sp_cond_wait(&g->opened, &g->lock);
    g->passed++;
    sp_mutex_unlock(&g->lock);
}

TEST(a_broadcast_wakes_everybody)
{
    gate g = {.lock = SP_MUTEX_INIT(SP_LOCK_FOREIGN)};
    test_threads(8, wait_at_gate, &g);
    sp_mutex_lock(&g.lock);
    CHECK_EQ_U64(g.passed, 7);
    sp_mutex_unlock(&g.lock);
}

/* Waits until the time-out; returns the duration. */
static uint64_t wait_in_vain(sp_cond *cond, sp_mutex *mutex, uint64_t duration_ns)
{
    const uint64_t start = sp_clock_now();
    sp_mutex_lock(mutex);
    while (sp_cond_wait_until(cond, mutex, start + duration_ns)) {
    }
    sp_mutex_unlock(mutex);
    return sp_clock_now() - start;
}

TEST(a_timed_wait_ends_at_its_deadline)
{
    sp_mutex mutex;
    sp_cond cond;
    sp_mutex_init(&mutex, SP_LOCK_FOREIGN);
    sp_cond_init(&cond);
    const uint64_t waited = wait_in_vain(&cond, &mutex, 20 * MS);
    CHECK(waited >= 20 * MS && waited < 2000 * MS);
    sp_mutex_lock(&mutex);
    CHECK(!sp_cond_wait_until(&cond, &mutex, 0));
    CHECK(!sp_mutex_try_lock(&mutex)); /* held again after the time-out */
    sp_mutex_unlock(&mutex);
    sp_cond_deinit(&cond);
    sp_mutex_deinit(&mutex);
}

TEST(a_timed_wait_on_zeroed_memory_ends_at_its_deadline_too)
{
    sp_mutex mutex = SP_MUTEX_INIT(SP_LOCK_FOREIGN);
    sp_cond cond = {0};
    const uint64_t waited = wait_in_vain(&cond, &mutex, 20 * MS);
    CHECK(waited >= 20 * MS && waited < 2000 * MS);
}

static void wait_at_gate_with_deadline(void *arg, uint32_t index)
{
    gate *g = arg;
    sp_mutex_lock(&g->lock);
    if (index == 0) {
        g->is_open = true;
        sp_mutex_unlock(&g->lock);
        sp_cond_signal(&g->opened);
        return;
    }
    const uint64_t deadline = index == 1 ? SP_NO_DEADLINE : sp_clock_now() + 60000 * MS;
    bool is_in_time = true;
    while (!g->is_open && is_in_time) {
        is_in_time = sp_cond_wait_until(&g->opened, &g->lock, deadline);
    }
    g->passed += g->is_open;
    sp_mutex_unlock(&g->lock);
    sp_cond_signal(&g->opened);
}

TEST(a_signal_ends_a_timed_wait_early)
{
    for (int i = 0; i < 20; i++) {
        gate g = {.lock = SP_MUTEX_INIT(SP_LOCK_FOREIGN)};
        test_threads(3, wait_at_gate_with_deadline, &g);
        sp_mutex_lock(&g.lock);
        CHECK_EQ_U64(g.passed, 2);
        sp_mutex_unlock(&g.lock);
    }
}

TEST_MAIN
