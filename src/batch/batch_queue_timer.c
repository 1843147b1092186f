/* SPDX-License-Identifier: Apache-2.0 */
#include "batch/batch_queue_timer.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "batch/batch_queue.h"
#include "device/thread_record.h"
#include "runtime/runtime_state.h"

static struct {
    sp_mutex lock;
    sp_cond changed; /* `wakes_ns` is earlier than before, or `is_stopping` was set */
    uint64_t wakes_ns SP_GUARDED_BY(lock); /* when the thread polls the queues */
    bool is_running SP_GUARDED_BY(lock);
    bool is_stopping SP_GUARDED_BY(lock);
    bool has_exit SP_GUARDED_BY(lock); /* timer_exit is registered */
    bool is_ended SP_GUARDED_BY(lock); /* the process ends */
    sp_thread thread;                  /* of the caller that sets or clears is_running */
    sp_atomic_u64 number; /* of the thread, which may end the process itself; orders nothing */
} timer = {.lock = SP_MUTEX_INIT(SP_LOCK_BATCH_TIMER)}; /* process-wide: one thread for all */

static void queues_poll(void)
{
    sp_rt_batch_queue *queue;
    for (uint32_t slot = 0; sp__batch_queue_hold_slot(slot, &queue); slot++) {
        if (queue == NULL) continue;
        sp__batch_queue_poll(queue);
        sp__batch_queue_drop(queue);
    }
}

/* ---- the thread ---- */

/* Until the next gate is to be opened: false if the thread is to end. */
static bool timer_wait(void)
{
    sp_mutex_lock(&timer.lock);
    while (!timer.is_stopping && sp_clock_now() < timer.wakes_ns) {
        (void)sp_cond_wait_until(&timer.changed, &timer.lock, timer.wakes_ns);
    }
    const bool is_stopping = timer.is_stopping;
    timer.wakes_ns = SP_NO_DEADLINE;
    sp_mutex_unlock(&timer.lock);
    return !is_stopping;
}

static void timer_main(void *unused)
{
    (void)unused;
    sp_store_relaxed(&timer.number, sp_thread_number());
    sp_thread_record *record = sp__thread_record();
    if (record != NULL) record->ends_with_shutdown = true;
    while (timer_wait()) queues_poll();
}

static bool is_timer(void)
{
    return sp_thread_number() == sp_load_relaxed(&timer.number);
}

/* ---- stop ---- */

/* A gate that has closed before is_running is cleared is opened here; later ones do not close. From
 * the log's callback, on the thread itself, it does not wait: the thread ends after the callback.
 */
static void timer_stop(void)
{
    sp_mutex_lock(&timer.lock);
    const bool is_running = timer.is_running;
    timer.is_running = false;
    timer.is_stopping = true;
    if (is_running) sp_cond_broadcast(&timer.changed);
    sp_mutex_unlock(&timer.lock);
    if (is_running && !is_timer()) {
        sp_thread_join(&timer.thread);
        sp_cond_deinit(&timer.changed);
    }
    if (!SP_PLANTED(gates_stay_closed)) queues_poll();
}

/* The thread itself may end the process, from the log's callback. */
static void timer_exit(void)
{
    if (sp__runtime_is_forked() || is_timer()) return;
    sp_mutex_lock(&timer.lock);
    timer.is_ended = true;
    sp_mutex_unlock(&timer.lock);
    timer_stop();
}

/* ---- start ---- */

/* Not after the phase has changed: the shutdown stops the timer after that. */
static bool timer_start_locked(void) SP_REQUIRES(&timer.lock)
{
    if (timer.is_running) return true;
    sp__runtime_set_stop(SP_BATCH_TIMER, timer_stop); /* before the phase is read */
    if (sp_load_seq_cst(&sp__runtime_phase) != SP_RUNTIME_UP || timer.is_ended) return false;
    if (!timer.has_exit) timer.has_exit = sp_thread_at_exit(timer_exit);
    if (!timer.has_exit) return false;
    sp_cond_init(&timer.changed);
    timer.wakes_ns = SP_NO_DEADLINE;
    timer.is_stopping = false;
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    timer.is_running = sp_thread_create(&timer.thread, "sp-gates", timer_main, NULL) == SP_OK;
    sp__error_put_back(&scope);
    if (!timer.is_running) sp_cond_deinit(&timer.changed);
    return timer.is_running;
}

bool sp__batch_timer_set(uint64_t deadline_ns)
{
    sp_mutex_lock(&timer.lock);
    const bool is_set = timer_start_locked();
    if (is_set && deadline_ns < timer.wakes_ns) {
        timer.wakes_ns = deadline_ns;
        if (!SP_PLANTED(quiet_gate)) sp_cond_broadcast(&timer.changed);
    }
    sp_mutex_unlock(&timer.lock);
    return is_set;
}
