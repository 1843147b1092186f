/* SPDX-License-Identifier: Apache-2.0 */
/* Signals: events behind issued submissions, recorded and queried by the threads that need them. */
#include <stdio.h>

#include "base/clock.h"
#include "base/delay.h"
#include "base/error.h"
#include "device/gpu/gpu.h"

/* Looks at a word between two calls of the driver, which say whether the device has failed: a look
 * costs less than a tenth of a microsecond, and such a call waits for others. */
#define LOOKS_PER_QUERY 128u
/* A thread that looks now and then, not in a loop, would learn of a failure after as many looks:
 * the first one after such a time calls the driver. */
#define SELDOM_NS 1000000u

static const sp_gpu_driver *driver_of(const sp_gpu_queue *queue)
{
    return sp__gpu_device_of(queue)->driver;
}

sp_status sp__gpu_queue_open(sp_gpu_queue *queue)
{
    const sp_gpu_driver *driver = driver_of(queue);
    sp_mutex_init(&queue->lock, SP_LOCK_GPU_QUEUE);
    sp_gpu_result result = driver->event_create(&queue->settle);
    sp_mutex_lock(&queue->lock);
    for (uint32_t i = 0; i < SP_GPU_SIGNALS && result == SP_GPU_DONE; i++) {
        result = driver->event_create(&queue->signals[i].event);
    }
    sp_mutex_unlock(&queue->lock);
    return driver->check(sp__gpu_device_of(queue), result, SP_GPU_CREATE, NULL);
}

void sp__gpu_queue_close(sp_gpu_queue *queue)
{
    const sp_gpu_driver *driver = driver_of(queue);
    sp_mutex_lock(&queue->lock);
    for (uint32_t i = 0; i < SP_GPU_SIGNALS; i++) {
        if (queue->signals[i].event != NULL) driver->event_destroy(queue->signals[i].event);
    }
    sp_mutex_unlock(&queue->lock);
    if (queue->settle != NULL) driver->event_destroy(queue->settle);
    sp__gpu_writes_free(queue);
    sp_mutex_deinit(&queue->lock);
}

static uint64_t value_at_cursor(const sp_gpu_queue *queue)
{
    return sp_load_relaxed(&queue->common.drained) + 1;
}

sp_gpu_word sp__gpu_word_of(sp_gpu_queue *queue, uint64_t value)
{
    sp_mutex_lock(&queue->lock);
    const sp_gpu_word word = queue->word_value == value ? queue->word : (sp_gpu_word){0};
    sp_mutex_unlock(&queue->lock);
    return word;
}

void sp__gpu_note_word(sp_gpu_queue *queue, const sp_gpu_word *word)
{
    queue->noted = value_at_cursor(queue);
    sp_mutex_lock(&queue->lock);
    queue->word = *word;
    queue->word_value = queue->noted;
    sp_mutex_unlock(&queue->lock);
}

void sp__gpu_note_command(sp_gpu_queue *queue)
{
    if (SP_LIKELY(queue->noted != value_at_cursor(queue)) || SP_PLANTED(word_too_early)) return;
    sp__gpu_note_word(queue, &(sp_gpu_word){0});
}

static sp_gpu_signal *signal_newest_locked(sp_gpu_queue *queue) SP_REQUIRES(&queue->lock)
{
    if (queue->count == 0) return NULL;
    return &queue->signals[(queue->first + queue->count - 1) % SP_GPU_SIGNALS];
}

static sp_gpu_result signal_record_event(sp_gpu_queue *queue, sp_gpu_signal *signal)
{
    if (signal->is_recorded) return SP_GPU_DONE;
    const sp_gpu_result result = driver_of(queue)->event_record(signal->event, queue);
    signal->is_recorded = result == SP_GPU_DONE;
    return result;
}

/* Behind all that was issued: the word of the newest submission, if that has one, or the event. */
static sp_gpu_result signal_place_locked(sp_gpu_queue *queue, sp_gpu_signal *signal,
                                         uint64_t drained) SP_REQUIRES(&queue->lock)
{
    const bool has_word = queue->word_value == drained || SP_PLANTED(word_of_former);
    signal->word = has_word ? queue->word : (sp_gpu_word){0};
    signal->looks = 0;
    signal->is_recorded = false;
    return signal->word.word != NULL ? SP_GPU_DONE : signal_record_event(queue, signal);
}

/* The word is not raised by a list that has failed: then the event tells. */
static sp_gpu_result signal_query(sp_gpu_queue *queue, sp_gpu_signal *signal)
{
    const sp_gpu_driver *driver = driver_of(queue);
    if (signal->word.word == NULL) return driver->event_query(signal->event);
    if (sp__gpu_word_is_raised(&signal->word)) return SP_GPU_DONE;
    if (++signal->looks % LOOKS_PER_QUERY != 0 || SP_PLANTED(word_alone)) return SP_GPU_NOT_READY;
    const sp_gpu_result result = signal_record_event(queue, signal);
    return result == SP_GPU_DONE ? driver->event_query(signal->event) : result;
}

/* Records a signal behind everything issued so far. The event may also be behind later submissions:
 * it is then ready later than needed, never earlier. */
static sp_gpu_result signal_record_locked(sp_gpu_queue *queue) SP_REQUIRES(&queue->lock)
{
    /* Pairs with the store in sp__gpu_finish: the driver has the commands up to here. */
    const uint64_t drained = sp_load_seq_cst(&queue->common.drained);
    sp_gpu_signal *newest = signal_newest_locked(queue);
    const uint64_t known =
        newest != NULL ? newest->value : sp_load_relaxed(&queue->common.base.timeline.done);
    if (drained == known) return SP_GPU_DONE;
    if (queue->count < SP_GPU_SIGNALS) {
        newest = &queue->signals[(queue->first + queue->count) % SP_GPU_SIGNALS];
    } /* else the newest signal is recorded again: its waiters wait longer */
    const sp_gpu_result result = signal_place_locked(queue, newest, drained);
    if (result != SP_GPU_DONE) return result;
    if (queue->count < SP_GPU_SIGNALS) queue->count++;
    newest->value = drained;
    return SP_GPU_DONE;
}

/* Ensures that there is a signal, and drops those that are ready. Returns the newest value of
 * these, or 0. */
static uint64_t signals_query_locked(sp_gpu_queue *queue, sp_gpu_result *result)
    SP_REQUIRES(&queue->lock)
{
    uint64_t value = 0;
    *result = signal_record_locked(queue);
    while (*result == SP_GPU_DONE && queue->count > 0) {
        *result = signal_query(queue, &queue->signals[queue->first]);
        if (*result != SP_GPU_DONE) break;
        value = queue->signals[queue->first].value;
        queue->first = (queue->first + 1) % SP_GPU_SIGNALS;
        queue->count--;
    }
    if (*result == SP_GPU_NOT_READY) *result = SP_GPU_DONE;
    return value;
}

/* After the loss of the device: everything issued has failed. */
static uint64_t queue_lose_locked(sp_gpu_queue *queue) SP_REQUIRES(&queue->lock)
{
    sp_timeline *timeline = &queue->common.base.timeline;
    const uint64_t drained = sp_load_seq_cst(&queue->common.drained);
    sp__gpu_writes_lose_locked(queue);
    if (drained > sp_load_relaxed(&timeline->done)) {
        sp__timeline_lose(timeline, drained, sp_load_acquire(&queue->common.base.device->lost));
    }
    queue->count = 0;
    return drained;
}

static void queue_settle_if_done(sp_gpu_queue *queue, bool is_lost)
{
    if (sp_load_acquire(&queue->must_settle) == 0) return;
    if (!is_lost && driver_of(queue)->event_query(queue->settle) == SP_GPU_NOT_READY) return;
    /* Acquire and release: of several threads that see the event done, one unparks the queue. */
    if (sp_exchange_acq_rel(&queue->must_settle, 0) == 1 || SP_PLANTED(settled_twice)) {
        sp__queue_unpark(&queue->common);
    }
}

static bool queue_is_lost(const sp_gpu_queue *queue)
{
    return sp_load_acquire(&queue->common.base.device->lost) != SP_NO_FAULT;
}

/* The driver does not tell which command failed; the message names the newest, which is near it. */
static void queue_report(sp_gpu_queue *queue, sp_gpu_result result)
{
    const char *name = sp_load_relaxed(&queue->last_issued);
    char what[128];
    snprintf(what, sizeof what, "kernel %s, or a command shortly before it on stream %u",
             name != NULL ? name : "(none)", queue->common.base.index);
    (void)driver_of(queue)->check(sp__gpu_device_of(queue), result, SP_GPU_QUERY, what);
}

void sp__gpu_poll(sp_gpu_queue *queue)
{
    sp_timeline *timeline = &queue->common.base.timeline;
    sp_gpu_result result = SP_GPU_DONE;
    sp__gpu_gate_pass(&sp__gpu_device_of(queue)->gate);
    sp_mutex_lock(&queue->lock);
    const uint64_t value =
        queue_is_lost(queue) ? queue_lose_locked(queue) : signals_query_locked(queue, &result);
    const bool is_news = value > sp_load_relaxed(&timeline->done);
    if (is_news) {
        driver_of(queue)->passed(queue, value);
        sp__gpu_writes_pass_locked(queue, value);
        sp__timeline_publish(timeline, value);
    }
    sp_mutex_unlock(&queue->lock);
    if (is_news) sp__timeline_fire(timeline, value);
    sp_delay_point();
    if (result != SP_GPU_DONE) queue_report(queue, result);
    queue_settle_if_done(queue, queue_is_lost(queue));
}

void sp__gpu_poll_now_and_then(sp_gpu_queue *queue)
{
    const uint64_t now = sp_clock_now();
    sp_mutex_lock(&queue->lock);
    const bool is_seldom = now - queue->looked_ns >= SELDOM_NS;
    if (is_seldom) queue->looked_ns = now;
    if (is_seldom && queue->count > 0) queue->signals[queue->first].looks = LOOKS_PER_QUERY - 1;
    sp_mutex_unlock(&queue->lock);
    sp__gpu_poll(queue);
}

sp_status sp__gpu_wait_signal(const sp_gpu_queue *queue, sp_gpu_queue *behind, uint64_t value)
{
    const sp_gpu_driver *driver = driver_of(queue);
    const sp_gpu_queue *failing = behind; /* if a call of the driver fails: that it was on */
    sp_gpu_call call = SP_GPU_RECORD;
    sp_gpu_result result = SP_GPU_DONE;
    sp_mutex_lock(&behind->lock);
    if (sp_load_relaxed(&behind->common.base.timeline.done) < value) {
        sp_gpu_signal *newest = signal_newest_locked(behind);
        /* May be another GPU than the one that the caller has entered. */
        driver->enter(sp__gpu_device_of(behind));
        if (newest == NULL || newest->value < value) {
            result = signal_record_locked(behind);
            newest = signal_newest_locked(behind);
        }
        if (result == SP_GPU_DONE) result = signal_record_event(behind, newest);
        driver->leave();
        if (result == SP_GPU_DONE) {
            failing = queue;
            call = SP_GPU_WAIT;
            result = driver->event_wait(queue, newest->event);
        }
    }
    sp_mutex_unlock(&behind->lock);
    return driver->check(sp__gpu_device_of(failing), result, call, NULL);
}

bool sp__gpu_is_busy(sp_gpu_queue *queue)
{
    const uint64_t drained = sp_load_seq_cst(&queue->common.drained);
    if (drained > sp_load_acquire(&queue->common.base.timeline.done)) return true;
    /* Sequentially consistent: the poller's check after it has lowered the queue's flag. */
    return (SP_PLANTED(stale_settle) ? sp_load_acquire(&queue->must_settle)
                                     : sp_load_seq_cst(&queue->must_settle)) != 0;
}
