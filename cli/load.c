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

#include "process.h"

#define NS_PER_SECOND 1e9
#define ARRIVAL_PARTS 1024u        /* of a nanosecond */
#define LOOK_NS UINT64_C(50000000) /* how often a wait looks whether the load is over */

/* Threads do not write to the same pair of cache lines, which processors fetch together. */
#define LINE_BYTES 128

typedef struct load load;

/* The arrivals of one side. Relaxed: figures only. */
typedef struct load_arrivals {
    /* Since the start of the load, in parts of a nanosecond: gaps are short at high rates. */
    _Alignas(LINE_BYTES) atomic_uint_least64_t next;
    atomic_uint_least64_t missed;
} load_arrivals;

typedef struct load_thread {
    _Alignas(LINE_BYTES) pthread_t handle;
    load *owner;
    const load_side *side;
    load_arrivals *arrivals;
    uint32_t number; /* of the side */
    uint64_t random;
    uint64_t *begun_ns; /* of the calls in flight, by slot */
    latencies latencies;
    double shares; /* of calls that were in the window */
    /* Open loop: calls that ended in the window; and when the last one ended. */
    uint64_t ended_count, last_ns;
    /* Of the calls that ended behind the window. */
    uint64_t late_count, late_ns; /* their number, how long the last one took */
} load_thread;

struct load {
    const load_options *options;
    uint32_t thread_count; /* of all sides */
    pthread_mutex_t lock;
    pthread_cond_t is_begun, has_ended;
    uint32_t started, ended; /* threads; guarded by lock */
    /* Written once, under the lock; 0: not begun. */
    uint64_t start_ns, begin_ns, end_ns; /* the window: [begin_ns, end_ns) */
    atomic_bool is_over;                 /* a call has failed, or a thread did not start */
    sp_status status;                    /* of the first failure; guarded by lock */
    char message[FAILURE_BYTES];
};

static struct timespec timespec_of(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / (uint64_t)NS_PER_SECOND),
                             .tv_nsec = (long)(ns % (uint64_t)NS_PER_SECOND)};
}

static void sleep_until(uint64_t ns)
{
    const struct timespec until = timespec_of(ns);
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

/* The time of the next arrival. The gap to the one after it is exponentially distributed, whichever
 * thread draws it. */
static uint64_t arrival_take(load_thread *thread)
{
    const load *self = thread->owner;
    const double gap = -log(random_next(&thread->random)) / self->options->rate;
    const uint64_t next = atomic_fetch_add_explicit(&thread->arrivals->next,
                                                    (uint64_t)(gap * NS_PER_SECOND * ARRIVAL_PARTS),
                                                    memory_order_relaxed);
    return self->start_ns + next / ARRIVAL_PARTS;
}

/* The arrival that was taken, and as many as are to be expected until the end of the window. */
static void arrivals_give_up(load_thread *thread)
{
    const load *self = thread->owner;
    const uint64_t end = (self->end_ns - self->start_ns) * ARRIVAL_PARTS;
    const uint64_t next =
        atomic_exchange_explicit(&thread->arrivals->next, end, memory_order_relaxed);
    uint64_t missed = 1;
    if (next < end) { /* the next one, and those behind it */
        const double rest_ns = (double)(end - next) / ARRIVAL_PARTS;
        missed += 1 + (uint64_t)(rest_ns / NS_PER_SECOND * self->options->rate);
    }
    atomic_fetch_add_explicit(&thread->arrivals->missed, missed, memory_order_relaxed);
}

/* False: the load is over. */
static bool arrival_await(const load *self, uint64_t arrival)
{
    for (uint64_t now; (now = clock_ns()) < arrival && !atomic_load(&self->is_over);) {
        sleep_until(arrival - now < LOOK_NS ? arrival : now + LOOK_NS);
    }
    return !atomic_load(&self->is_over);
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
static bool thread_go_on(const load_thread *thread, sp_status status)
{
    if (status != SP_OK) load_fail(thread->owner, status);
    return status == SP_OK;
}

static bool thread_call(const load_thread *thread)
{
    return thread_go_on(thread, thread->side->call(thread->side->ctx, thread->number));
}

/* Of a call, how much of it was in the window. */
static double share_in_window(const load *self, uint64_t begun_ns, uint64_t ended_ns)
{
    const uint64_t from = begun_ns > self->begin_ns ? begun_ns : self->begin_ns;
    const uint64_t to = ended_ns < self->end_ns ? ended_ns : self->end_ns;
    if (from > to) return 0;
    return ended_ns > begun_ns ? (double)(to - from) / (double)(ended_ns - begun_ns) : 1;
}

static void latency_note(load_thread *thread, uint64_t begun_ns, uint64_t ended_ns)
{
    const load *self = thread->owner;
    thread->shares += share_in_window(self, begun_ns, ended_ns);
    if (ended_ns >= self->end_ns) {
        thread->late_count++;
        thread->late_ns = ended_ns - begun_ns;
    }
    if (ended_ns < self->begin_ns || ended_ns >= self->end_ns) return;
    latencies_add(&thread->latencies, ended_ns - begun_ns);
}

/* At least once: a short window may be over before the thread is awake. */
static void run_closed(load_thread *thread)
{
    const load *self = thread->owner;
    for (uint64_t before = clock_ns(), after = 0; after < self->end_ns; before = after) {
        if (atomic_load(&self->is_over) || !thread_call(thread)) return;
        after = clock_ns();
        latency_note(thread, before, after);
    }
}

/* Waits for the call of the slot. */
static void call_end(load_thread *thread, uint32_t slot)
{
    const load_side *side = thread->side;
    if (!thread_go_on(thread, side->end(side->ctx, thread->number, slot))) return;
    latency_note(thread, thread->begun_ns[slot], clock_ns());
}

static bool call_begin(load_thread *thread, uint32_t slot)
{
    const load_side *side = thread->side;
    thread->begun_ns[slot] = clock_ns();
    return thread_go_on(thread, side->begin(side->ctx, thread->number, slot));
}

static void run_in_flight(load_thread *thread)
{
    const load *self = thread->owner;
    const uint64_t most = self->options->in_flight;
    uint64_t begun = 0, ended = 0;
    while ((begun == 0 || clock_ns() < self->end_ns) && !atomic_load(&self->is_over)) {
        if (begun - ended == most) call_end(thread, (uint32_t)(ended++ % most));
        if (!call_begin(thread, (uint32_t)(begun % most))) break;
        begun++;
    }
    while (ended < begun) call_end(thread, (uint32_t)(ended++ % most));
}

static void arrival_note(load_thread *thread, uint64_t arrival_ns, uint64_t ended_ns)
{
    const load *self = thread->owner;
    if (arrival_ns >= self->begin_ns) latencies_add(&thread->latencies, ended_ns - arrival_ns);
    if (ended_ns >= self->begin_ns && ended_ns < self->end_ns) thread->ended_count++;
    thread->last_ns = ended_ns;
}

static void run_open(load_thread *thread)
{
    const load *self = thread->owner;
    const uint64_t given_up_ns = self->end_ns + (self->end_ns - self->begin_ns);
    while (!atomic_load(&self->is_over)) {
        const uint64_t arrival = arrival_take(thread);
        if (arrival >= self->end_ns) return;
        if (clock_ns() >= given_up_ns) {
            arrivals_give_up(thread);
            return;
        }
        if (!arrival_await(self, arrival) || !thread_call(thread)) return;
        arrival_note(thread, arrival, clock_ns());
    }
}

static void thread_end(load *self)
{
    pthread_mutex_lock(&self->lock);
    if (++self->ended == self->started) pthread_cond_signal(&self->has_ended);
    pthread_mutex_unlock(&self->lock);
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
    else if (self->options->in_flight > 0) run_in_flight(thread);
    else run_closed(thread);
    thread_end(self);
    return NULL;
}

/* ---- the load ---- */

static void load_init(load *self)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&self->lock, NULL);
    pthread_cond_init(&self->is_begun, NULL);
    pthread_cond_init(&self->has_ended, &attributes);
    pthread_condattr_destroy(&attributes);
}

static void load_deinit(load *self)
{
    pthread_cond_destroy(&self->has_ended);
    pthread_cond_destroy(&self->is_begun);
    pthread_mutex_destroy(&self->lock);
}

static void load_begin(load *self, load_arrivals *arrivals, uint32_t side_count, uint32_t started)
{
    pthread_mutex_lock(&self->lock);
    self->started = started;
    self->start_ns = clock_ns();
    self->begin_ns = self->start_ns + (uint64_t)(self->options->warm_up_seconds * NS_PER_SECOND);
    self->end_ns = self->begin_ns + (uint64_t)(self->options->window_seconds * NS_PER_SECOND);
    for (uint32_t s = 0; s < side_count; s++) atomic_store(&arrivals[s].next, 0);
    pthread_cond_broadcast(&self->is_begun);
    pthread_mutex_unlock(&self->lock);
}

/* Asks the owner of the load whether it goes on. */
static void load_ask(load *self)
{
    const load_options *options = self->options;
    const uint64_t now = clock_ns();
    const double share = (double)(now - self->start_ns) / (double)(self->end_ns - self->start_ns);
    if (options->go_on == NULL || options->go_on(options->ctx, share < 1 ? share : 1)) return;
    load_fail(self, fail(SP_CANCELLED, "the load was ended before its time"));
}

/* Waits until `until_ns`, or until all threads have ended. */
static void load_wait(load *self, uint64_t until_ns)
{
    pthread_mutex_lock(&self->lock);
    for (uint64_t now; self->ended < self->started && (now = clock_ns()) < until_ns;) {
        const struct timespec next =
            timespec_of(until_ns - now < LOOK_NS ? until_ns : now + LOOK_NS);
        pthread_cond_timedwait(&self->has_ended, &self->lock, &next);
        pthread_mutex_unlock(&self->lock);
        load_ask(self);
        pthread_mutex_lock(&self->lock);
    }
    pthread_mutex_unlock(&self->lock);
}

/* While the threads run. Returns how many processors the process used in the window. */
static double load_watch(load *self)
{
    load_wait(self, self->begin_ns);
    const uint64_t cpu_ns = process_cpu_ns();
    load_wait(self, self->end_ns);
    const double cores =
        (double)(process_cpu_ns() - cpu_ns) / (double)(self->end_ns - self->begin_ns);
    load_wait(self, UINT64_MAX); /* calls that have begun */
    return cores;
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

/* No call ended in the window: the rates of the threads are those of their last calls. Their shares
 * of the window would be too small by the time that the threads took to wake up in it. */
static void late_calls_fill(const load *self, const load_thread *threads, load_result *result)
{
    for (uint32_t i = 0; i < self->options->threads; i++) {
        const load_thread *thread = &threads[i];
        if (thread->late_ns == 0) continue; /* no call, or none that the clock has seen */
        latencies_add(&result->latencies, thread->late_ns);
        result->per_second += (double)thread->late_count * NS_PER_SECOND / (double)thread->late_ns;
    }
}

/* The backlog of a device that is overloaded is served after the window. So the rate is that of the
 * calls that ended in it; if none did, of all until the last one ended. */
static double open_rate(const load *self, const load_thread *threads, uint64_t served)
{
    uint64_t ended = 0, last_ns = 0;
    for (uint32_t i = 0; i < self->options->threads; i++) {
        ended += threads[i].ended_count;
        if (threads[i].last_ns > last_ns) last_ns = threads[i].last_ns;
    }
    if (ended > 0) return (double)ended / self->options->window_seconds;
    return served > 0 ? (double)served * NS_PER_SECOND / (double)(last_ns - self->begin_ns) : 0;
}

static void results_fill(const load *self, const load_thread *threads, load_arrivals *arrivals,
                         load_result *result)
{
    const uint32_t count = self->options->threads;
    *result = (load_result){.missed = atomic_load(&arrivals->missed)};
    for (uint32_t i = 0; i < count; i++) {
        latencies_merge(&result->latencies, &threads[i].latencies);
        result->shares_per_second += threads[i].shares / self->options->window_seconds;
    }
    const uint64_t calls = result->latencies.count;
    result->per_second = self->options->rate > 0 ? open_rate(self, threads, calls)
                                                 : (double)calls / self->options->window_seconds;
    if (calls == 0) late_calls_fill(self, threads, result);
}

/* Of a thread, whole lines. */
static size_t begun_stride(const load_options *options)
{
    const size_t line = LINE_BYTES / sizeof(uint64_t);
    return (options->in_flight / line + 1) * line;
}

static void threads_init(load *self, const load_side *sides, load_arrivals *arrivals,
                         load_thread *threads, uint64_t *begun_ns)
{
    const load_options *options = self->options;
    for (uint32_t i = 0; i < self->thread_count; i++) {
        const uint32_t s = i / options->threads;
        threads[i].owner = self;
        threads[i].side = &sides[s];
        threads[i].arrivals = &arrivals[s];
        threads[i].number = i % options->threads;
        threads[i].random = i;
        threads[i].begun_ns = begun_ns + i * begun_stride(options);
    }
}

sp_status load_run(const load_options *options, const load_side *sides, uint32_t side_count,
                   load_result *results)
{
    load self = {.options = options, .thread_count = options->threads * side_count};
    load_arrivals arrivals[LOAD_MAX_SIDES] = {0};
    const size_t thread_bytes = self.thread_count * sizeof(load_thread);
    load_thread *threads = aligned_alloc(_Alignof(load_thread), thread_bytes);
    uint64_t *begun_ns = calloc(self.thread_count * begun_stride(options), sizeof *begun_ns);
    if (threads == NULL || begun_ns == NULL) {
        free(threads);
        free(begun_ns);
        return fail(SP_OUT_OF_MEMORY, "no memory for %u threads", self.thread_count);
    }
    memset(threads, 0, thread_bytes);
    load_init(&self);
    threads_init(&self, sides, arrivals, threads, begun_ns);
    const uint32_t started = threads_start(&self, threads, self.thread_count);
    load_begin(&self, arrivals, side_count, started);
    const double cores = load_watch(&self);
    for (uint32_t i = 0; i < started; i++) pthread_join(threads[i].handle, NULL);
    for (uint32_t s = 0; s < side_count; s++) {
        results_fill(&self, &threads[(size_t)s * options->threads], &arrivals[s], &results[s]);
        results[s].cores = cores;
    }
    load_deinit(&self);
    free(threads);
    free(begun_ns);
    return self.status == SP_OK ? SP_OK : fail(self.status, "%s", self.message);
}
