/* SPDX-License-Identifier: Apache-2.0 */
/* The poller: a thread that polls the driver on behalf of sleeping threads.
 *
 *     a thread sleeps for a point of a queue whose GPU work is not done
 *         =>  the queue is watched, and the poller is awake or about to be
 *
 * watch raises the queue's flag, then reads whether the poller sleeps; the poller sets that it
 * sleeps, then reads the flags. The poller lowers a flag when the queue needs no polling, then
 * checks that again: the flag was raised after a waiter registered (timeline.wanted) or after its
 * submission was issued (drained). All of these are sequentially consistent, so in each pair one
 * side sees the other. */
#include "base/clock.h"
#include "base/delay.h"
#include "device/gpu/gpu.h"

/* Rounds without progress before the poller sleeps between rounds, and the length of that sleep. */
#define BUSY_ROUNDS 4000
#define REST_NS 20000u

static bool queue_needs_poll(sp_gpu_queue *queue)
{
    sp_timeline *timeline = &queue->common.base.timeline;
    const bool is_slept_for = sp_load_seq_cst(&timeline->wanted) != UINT64_MAX ||
                              sp_load_seq_cst(&queue->must_settle) != 0;
    return is_slept_for && sp__gpu_is_busy(queue);
}

/* Polls one watched queue; false if it needs no more polling. */
static bool queue_poll_watched(sp_gpu_queue *queue)
{
    sp__gpu_poll(queue);
    if (queue_needs_poll(queue)) return true;
    sp_store_seq_cst(&queue->is_watched, 0);
    sp_delay_point();
    if (SP_PLANTED(no_second_poll) || !queue_needs_poll(queue)) return false;
    sp_store_seq_cst(&queue->is_watched, 1);
    return true;
}

static sp_gpu_queue *poller_watched_at(sp_gpu_device *device, uint32_t index)
{
    sp_command_queue *commands = sp_load_seq_cst(&device->common.queues[index]);
    if (commands == NULL) return NULL;
    sp_gpu_queue *queue = sp__gpu_queue(commands);
    return sp_load_seq_cst(&queue->is_watched) != 0 ? queue : NULL;
}

static bool poller_has_watched(sp_gpu_device *device)
{
    const uint32_t count = sp_load_seq_cst(&device->common.queue_count);
    for (uint32_t i = 0; i < count; i++) {
        if (poller_watched_at(device, i) != NULL) return true;
    }
    return false;
}

/* One round over the queues. True if one still needs polling; *is_news if any made progress. */
static bool poller_poll_all(sp_gpu_device *device, bool *is_news)
{
    bool is_any = false;
    *is_news = false;
    const uint32_t count = sp_load_seq_cst(&device->common.queue_count);
    for (uint32_t i = 0; i < count; i++) {
        sp_gpu_queue *queue = poller_watched_at(device, i);
        if (queue == NULL) continue;
        const uint64_t before = sp_load_relaxed(&queue->common.base.timeline.done);
        if (queue_poll_watched(queue)) is_any = true;
        if (sp_load_relaxed(&queue->common.base.timeline.done) != before) *is_news = true;
    }
    return is_any;
}

static void poller_sleep(sp_gpu_device *device)
{
    sp_store_seq_cst(&device->is_poller_asleep, 1);
    sp_delay_point();
    const bool is_any = !SP_PLANTED(poller_sleeps_blindly) && poller_has_watched(device);
    if (!is_any && sp_load_seq_cst(&device->is_stopping) == 0) {
        sp_parker_park(&device->poller_parker, SP_NO_DEADLINE);
    }
    sp_store_seq_cst(&device->is_poller_asleep, 0);
}

static void poller_main(void *arg)
{
    sp_gpu_device *device = arg;
    uint32_t idle_rounds = 0;
    device->driver->enter(device);
    while (sp_load_seq_cst(&device->is_stopping) == 0) {
        bool is_news;
        if (!poller_poll_all(device, &is_news)) {
            poller_sleep(device);
            idle_rounds = 0;
            continue;
        }
        idle_rounds = is_news ? 0 : idle_rounds + 1;
        if (idle_rounds < BUSY_ROUNDS) {
            sp_thread_yield();
        } else {
            sp_clock_sleep(REST_NS);
        }
    }
    device->driver->leave();
}

static void poller_wake(sp_gpu_device *device)
{
    if (sp_load_seq_cst(&device->is_poller_asleep) != 0) sp_parker_unpark(&device->poller_parker);
}

void sp__gpu_watch(sp_queue *base)
{
    sp_gpu_queue *queue = sp__gpu_queue(sp__command_queue(base));
    sp_store_seq_cst(&queue->is_watched, 1);
    poller_wake(sp__gpu_device_of(queue));
}

sp_status sp__gpu_poller_start(sp_gpu_device *device)
{
    SP_TRY(sp_thread_create(&device->poller, "sp-gpu-poll", poller_main, device));
    device->has_poller = true;
    return SP_OK;
}

void sp__gpu_poller_stop(sp_gpu_device *device)
{
    if (!device->has_poller) return;
    device->has_poller = false;
    sp_store_seq_cst(&device->is_stopping, 1);
    sp_parker_unpark(&device->poller_parker);
    sp_thread_join(&device->poller);
}
