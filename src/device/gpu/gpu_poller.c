/* SPDX-License-Identifier: Apache-2.0 */
/* The poller: a thread that asks the driver for the threads that sleep.
 *
 *     somebody sleeps for a point of a queue whose GPU work is not done
 *         =>  the queue is watched, and the poller is awake or about to be
 *
 * watch raises the queue's flag, then looks whether the poller sleeps; the poller says that it
 * sleeps, then looks at the flags. The poller lowers a flag when there is nothing to ask for, then
 * looks again whether there is: the flag was raised after a waiter registered (timeline.wanted) or
 * after its submission was issued (drained). All of these are sequentially consistent, so in each
 * pair one sees the other. */
#include "base/clock.h"
#include "base/delay.h"
#include "device/gpu/gpu.h"

/* Rounds without news before the poller sleeps between them, and for how long. */
#define BUSY_ROUNDS 4000
#define REST_NS 20000u

static bool is_needed(sp_gpu_queue *queue)
{
    sp_timeline *timeline = &queue->common.base.timeline;
    const bool is_slept_for = sp_load_seq_cst(&timeline->wanted) != UINT64_MAX ||
                              sp_load_seq_cst(&queue->must_settle) != 0;
    return is_slept_for && sp__gpu_is_busy(queue);
}

/* Asks for one watched queue; false if it need not be asked again. */
static bool look_after(sp_gpu_queue *queue)
{
    sp__gpu_poll(queue);
    if (is_needed(queue)) return true;
    sp_store_seq_cst(&queue->is_watched, 0);
    sp_delay_point();
    if (SP_PLANTED(no_second_poll) || !is_needed(queue)) return false;
    sp_store_seq_cst(&queue->is_watched, 1);
    return true;
}

static sp_gpu_queue *watched_at(sp_gpu_device *device, uint32_t index)
{
    sp_command_queue *commands = sp_load_seq_cst(&device->common.queues[index]);
    if (commands == NULL) return NULL;
    sp_gpu_queue *queue = sp__gpu_queue(commands);
    return sp_load_seq_cst(&queue->is_watched) != 0 ? queue : NULL;
}

static bool is_any_watched(sp_gpu_device *device)
{
    const uint32_t count = sp_load_seq_cst(&device->common.queue_count);
    for (uint32_t i = 0; i < count; i++) {
        if (watched_at(device, i) != NULL) return true;
    }
    return false;
}

/* One round over the queues. True if one is still needed; *is_news if any got further. */
static bool look_after_all(sp_gpu_device *device, bool *is_news)
{
    bool is_any = false;
    *is_news = false;
    const uint32_t count = sp_load_seq_cst(&device->common.queue_count);
    for (uint32_t i = 0; i < count; i++) {
        sp_gpu_queue *queue = watched_at(device, i);
        if (queue == NULL) continue;
        const uint64_t before = sp_load_relaxed(&queue->common.base.timeline.done);
        if (look_after(queue)) is_any = true;
        if (sp_load_relaxed(&queue->common.base.timeline.done) != before) *is_news = true;
    }
    return is_any;
}

static void sleep_until_watched(sp_gpu_device *device)
{
    sp_store_seq_cst(&device->is_poller_asleep, 1);
    sp_delay_point();
    const bool is_any = !SP_PLANTED(poller_sleeps_blindly) && is_any_watched(device);
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
        if (!look_after_all(device, &is_news)) {
            sleep_until_watched(device);
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

static void wake(sp_gpu_device *device)
{
    if (sp_load_seq_cst(&device->is_poller_asleep) != 0) sp_parker_unpark(&device->poller_parker);
}

void sp__gpu_watch(sp_queue *base)
{
    sp_gpu_queue *queue = sp__gpu_queue(sp__command_queue(base));
    sp_store_seq_cst(&queue->is_watched, 1);
    wake(sp__gpu_device_of(queue));
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
