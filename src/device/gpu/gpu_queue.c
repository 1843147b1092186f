/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of the engines of GPUs, and the calls of submitting and waiting threads. */
#include "base/clock.h"
#include "base/error.h"
#include "device/gpu/gpu.h"

/* How long a waiting thread polls before it sleeps and relies on the poller: several times the cost
 * of a sleep and a wake-up. */
#define SPIN_NS 100000u
#define POLLS_PER_CLOCK 16
/* Looks at a word between two polls, and pauses between two looks: what the other thread of the
 * processor's core does is not held up. */
#define LOOKS_PER_POLL 16
#define PAUSES_PER_LOOK 4

static const sp_gpu_driver *driver_of(const sp_gpu_queue *queue)
{
    return sp__gpu_device_of(queue)->driver;
}

/* ---- life ---- */

sp_status sp__gpu_device_init(sp_gpu_device *device, const sp_device_vtable *vtable,
                              const sp_queue_device_options *options)
{
    SP_TRY(sp__queue_device_init(&device->common, vtable, options));
    const sp_status status = sp__gpu_poller_start(device);
    if (status != SP_OK) sp__queue_device_deinit(&device->common);
    return status;
}

void sp__gpu_device_stop(sp_dev *dev)
{
    sp__queue_device_stop(dev);
    sp__gpu_poller_stop(sp__gpu_device(dev));
}

/* ---- the engine ---- */

void sp__gpu_enter(sp_command_queue *queue)
{
    const sp_gpu_device *device = sp__gpu_device_of(sp__gpu_queue(queue));
    device->driver->enter(device);
}

bool sp__gpu_has_room(sp_command_queue *commands, uint64_t value)
{
    if (value <= SP_GPU_MAX_IN_FLIGHT) return true;
    const sp_point point = {&commands->base.timeline, value - SP_GPU_MAX_IN_FLIGHT};
    if (sp__point_has_passed(point)) return true;
    sp__gpu_poll(sp__gpu_queue(commands));
    return !sp__queue_park_on(commands, point);
}

/* An issued point of a queue of the same driver can be waited for on the GPU; its result is already
 * known, except for the loss of the device. Commands that follow one of another GPU read what may
 * be lost with that: they are issued when it has passed. */
bool sp__gpu_wait(sp_command_queue *commands, sp_point point)
{
    if (sp__point_has_passed(point)) return true;
    sp_queue *owner = point.timeline->owner;
    if (owner == &commands->base) return true; /* older, so issued; the driver keeps the order */
    if (owner == NULL || owner->device->vtable != commands->base.device->vtable) return false;
    const bool is_elsewhere = owner->device != commands->base.device;
    if (is_elsewhere && commands->cursor.commands_left > 0 && !SP_PLANTED(follows_unseen_loss)) {
        return false;
    }
    sp_gpu_queue *behind = sp__gpu_queue(sp__command_queue(owner));
    if (sp_load_seq_cst(&behind->common.drained) < point.value) return false;
    return sp__gpu_wait_signal(sp__gpu_queue(commands), behind, point.value) == SP_OK;
}

/* It is not known whether what comes before the host function is done: the function is told so. */
static void settle_fail(sp_command_queue *commands, sp_status status)
{
    if (commands->cursor.fault == SP_NO_FAULT) commands->cursor.fault = sp__fault_create(status);
}

bool sp__gpu_settle(sp_command_queue *commands)
{
    sp_gpu_queue *queue = sp__gpu_queue(commands);
    const sp_gpu_driver *driver = driver_of(queue);
    sp_gpu_result result = SP_GPU_DONE;
    if (!queue->is_settling) result = driver->event_record(queue->settle, queue);
    queue->is_settling = true;
    if (result == SP_GPU_DONE) result = driver->event_query(queue->settle);
    if (result != SP_GPU_NOT_READY) {
        queue->is_settling = false;
        const sp_status status =
            driver->check(sp__gpu_device_of(queue), result, SP_GPU_QUERY, "before a host function");
        if (status != SP_OK && !SP_PLANTED(settles_blindly)) settle_fail(commands, status);
        return true;
    }
    sp_store_relaxed(&commands->parked_on, NULL);
    sp__queue_become_parked(commands);
    sp_store_seq_cst(&queue->must_settle, 1);
    if (!SP_PLANTED(settle_unwatched)) sp__gpu_watch(&commands->base);
    return false;
}

void sp__gpu_finish(sp_command_queue *commands, uint64_t value)
{
    /* Both sequentially consistent: a thread that found the submission not issued may have gone to
     * sleep; see gpu_poller.c. */
    sp_store_seq_cst(&commands->drained, value);
    if (SP_PLANTED(issued_unwatched)) return;
    if (SP_UNLIKELY(sp_load_seq_cst(&commands->base.timeline.wanted) <= value)) {
        sp__gpu_watch(&commands->base);
    }
}

bool sp__gpu_is_issued(sp_queue *queue, uint64_t value)
{
    /* Pairs with the store in sp__gpu_finish. */
    return sp_load_seq_cst(&sp__command_queue(queue)->drained) >= value;
}

/* ---- threads that submit and wait ---- */

void sp__gpu_kick(sp_queue *base)
{
    sp_command_queue *commands = sp__command_queue(base);
    sp__queue_note_commit(commands);
    sp__queue_issue(commands, NULL);
}

void sp__gpu_flush(sp_queue *base)
{
    sp_gpu_queue *queue = sp__gpu_queue(sp__command_queue(base));
    if (!sp__gpu_is_busy(queue)) return;
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    driver_of(queue)->enter(sp__gpu_device_of(queue));
    sp__gpu_poll_now_and_then(queue);
    driver_of(queue)->leave();
    sp__error_put_back(&scope);
}

/* Until the word is raised, or for some looks. */
static void word_watch(const sp_gpu_word *word)
{
    for (uint32_t look = 0; look < LOOKS_PER_POLL && !sp__gpu_word_is_raised(word); look++) {
        for (uint32_t i = 0; i < PAUSES_PER_LOOK; i++) sp_spin_hint();
    }
}

/* Polls until the point has passed or the time is over. Issues awaited submissions that become free
 * to issue in that time. */
static void queue_spin(sp_gpu_queue *queue, sp_point point, sp_thread_record *record)
{
    const uint64_t deadline = sp_clock_now() + SPIN_NS;
    const sp_gpu_word word = sp__gpu_word_of(queue, point.value);
    for (uint32_t polls = 1;; polls++) {
        if (word.word != NULL) word_watch(&word);
        sp__gpu_poll(queue);
        if (sp__point_has_passed(point)) return;
        if (sp__queue_has_work(&queue->common)) sp__queue_issue(&queue->common, record);
        if (polls % POLLS_PER_CLOCK == 0 && sp_clock_now() >= deadline) return;
        sp_spin_hint();
    }
}

void sp__gpu_help(sp_queue *base, uint64_t value)
{
    sp_gpu_queue *queue = sp__gpu_queue(sp__command_queue(base));
    sp_thread_record *record = sp__thread_record();
    /* Failures of commands are reported by waits for them; this thread's last error is kept. */
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    sp__queue_issue(&queue->common, record);
    driver_of(queue)->enter(sp__gpu_device_of(queue));
    queue_spin(queue, (sp_point){&base->timeline, value}, record);
    driver_of(queue)->leave();
    sp__error_put_back(&scope);
}
