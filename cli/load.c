/* SPDX-License-Identifier: Apache-2.0 */
/* primitive: threads, locks and clock of the operating system, as in a user's program. */
#include "load.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#define NS_PER_SECOND 1e9

typedef struct load load;

/* The arrivals of one side. */
typedef struct load_arrivals {
    pthread_mutex_t lock;
    uint64_t next_ns; /* guarded by lock, like the others */
    uint64_t random;
    uint64_t missed;
} load_arrivals;

typedef struct load_thread {
    pthread_t handle;
    load *owner;
    const load_side *side;
    load_arrivals *arrivals;
    uint32_t number; /* of the side */
    latencies latencies;
} load_thread;

struct load {
    const load_options *options;
    pthread_mutex_t lock;
    pthread_cond_t is_begun;
    /* Written once, under the lock; 0: not begun. */
    uint64_t start_ns, begin_ns, end_ns; /* the window: [begin_ns, end_ns) */
    atomic_bool is_over;                 /* a call has failed, or a thread did not start */
    sp_status status;                    /* of the first failure; guarded by lock */
    char message[FAILURE_BYTES];
};

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * (uint64_t)NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

static void sleep_until(uint64_t ns)
{
    const struct timespec until = {.tv_sec = (time_t)(ns / (uint64_t)NS_PER_SECOND),
                                   .tv_nsec = (long)(ns % (uint64_t)NS_PER_SECOND)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0) {
    }
}

/* ---- arrivals ---- */

/* splitmix64 (Steele, Lea and Flood, OOPSLA 2014), in (0, 1]. */
static double random_next(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return ((double)((z ^ (z >> 31)) >> 11) + 1) * 0x1p-53;
}

/* The time of the next arrival. */
static uint64_t arrival_take(load_arrivals *arrivals, double rate)
{
    pthread_mutex_lock(&arrivals->lock);
    const uint64_t at = arrivals->next_ns;
    arrivals->next_ns += (uint64_t)(-log(random_next(&arrivals->random)) / rate * NS_PER_SECOND);
    pthread_mutex_unlock(&arrivals->lock);
    return at;
}

static void arrival_miss(load_arrivals *arrivals)
{
    pthread_mutex_lock(&arrivals->lock);
    arrivals->missed++;
    pthread_mutex_unlock(&arrivals->lock);
}

/* ---- threads ---- */

static void load_fail(load *self, sp_status status)
{
    pthread_mutex_lock(&self->lock);
    if (self->status == SP_OK) {
        self->status = status;
        snprintf(self->message, sizeof self->message, "%s", failure_message());
    }
    pthread_mutex_unlock(&self->lock);
    atomic_store(&self->is_over, true);
}

/* False: the call has failed. */
static bool thread_call(load_thread *thread)
{
    const sp_status status = thread->side->call(thread->side->ctx, thread->number);
    if (status != SP_OK) load_fail(thread->owner, status);
    return status == SP_OK;
}

static void run_closed(load_thread *thread)
{
    const load *self = thread->owner;
    uint64_t before = now_ns();
    while (before < self->end_ns && !atomic_load(&self->is_over)) {
        if (!thread_call(thread)) return;
        const uint64_t after = now_ns();
        if (after >= self->begin_ns && after < self->end_ns) {
            latencies_add(&thread->latencies, after - before);
        }
        before = after;
    }
}

static void run_open(load_thread *thread)
{
    const load *self = thread->owner;
    const uint64_t given_up_ns = self->end_ns + (self->end_ns - self->begin_ns);
    while (!atomic_load(&self->is_over)) {
        const uint64_t arrival = arrival_take(thread->arrivals, self->options->rate);
        if (arrival >= self->end_ns) return;
        if (now_ns() >= given_up_ns) {
            arrival_miss(thread->arrivals);
            continue;
        }
        sleep_until(arrival);
        if (!thread_call(thread)) return;
        if (arrival >= self->begin_ns) latencies_add(&thread->latencies, now_ns() - arrival);
    }
}

static void *thread_main(void *arg)
{
    load_thread *thread = arg;
    load *self = thread->owner;
    prctl(PR_SET_TIMERSLACK, 1UL); /* wakes up for an arrival as soon as it can */
    pthread_mutex_lock(&self->lock);
    while (self->start_ns == 0) pthread_cond_wait(&self->is_begun, &self->lock);
    pthread_mutex_unlock(&self->lock);
    if (self->options->rate > 0) run_open(thread);
    else run_closed(thread);
    return NULL;
}

/* ---- the load ---- */

static void load_begin(load *self, load_arrivals *arrivals, uint32_t side_count)
{
    pthread_mutex_lock(&self->lock);
    self->start_ns = now_ns();
    self->begin_ns = self->start_ns + (uint64_t)(self->options->warm_up_seconds * NS_PER_SECOND);
    self->end_ns = self->begin_ns + (uint64_t)(self->options->window_seconds * NS_PER_SECOND);
    for (uint32_t s = 0; s < side_count; s++) {
        arrivals[s].next_ns = self->start_ns;
        arrivals[s].random = s;
    }
    pthread_cond_broadcast(&self->is_begun);
    pthread_mutex_unlock(&self->lock);
}

static uint32_t threads_start(load *self, load_thread *threads, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const int error = pthread_create(&threads[i].handle, NULL, thread_main, &threads[i]);
        if (error == 0) continue;
        load_fail(self, fail(SP_EXHAUSTED,
                             "the system refused to start a thread (error %d): raise its limit of "
                             "threads",
                             error));
        return i;
    }
    return count;
}

static void results_fill(const load *self, const load_thread *threads,
                         const load_arrivals *arrivals, load_result *result)
{
    const uint32_t count = self->options->threads;
    *result = (load_result){.missed = arrivals->missed};
    for (uint32_t i = 0; i < count; i++) {
        latencies_merge(&result->latencies, &threads[i].latencies);
    }
    result->per_second = (double)result->latencies.count / self->options->window_seconds;
}

sp_status load_run(const load_options *options, const load_side *sides, uint32_t side_count,
                   load_result *results)
{
    const uint32_t count = options->threads * side_count;
    load self = {.options = options,
                 .lock = PTHREAD_MUTEX_INITIALIZER,
                 .is_begun = PTHREAD_COND_INITIALIZER};
    load_arrivals arrivals[LOAD_MAX_SIDES];
    load_thread *threads = calloc(count, sizeof *threads);
    if (threads == NULL) return fail(SP_OUT_OF_MEMORY, "no memory for %u threads", count);
    for (uint32_t s = 0; s < side_count; s++) {
        arrivals[s] = (load_arrivals){.lock = PTHREAD_MUTEX_INITIALIZER};
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t s = i / options->threads;
        threads[i].owner = &self;
        threads[i].side = &sides[s];
        threads[i].arrivals = &arrivals[s];
        threads[i].number = i % options->threads;
    }
    const uint32_t started = threads_start(&self, threads, count);
    load_begin(&self, arrivals, side_count);
    for (uint32_t i = 0; i < started; i++) pthread_join(threads[i].handle, NULL);
    for (uint32_t s = 0; s < side_count; s++) {
        results_fill(&self, &threads[(size_t)s * options->threads], &arrivals[s], &results[s]);
    }
    free(threads);
    return self.status == SP_OK ? SP_OK : fail(self.status, "%s", self.message);
}
