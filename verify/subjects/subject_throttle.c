/* SPDX-License-Identifier: Apache-2.0 */
/* Throttle: never more than the limit inside, every queue gets its turn, none is overtaken. */
#include "support.h"

#include <string.h>
#include "sched/subject.h"

typedef struct world {
    sp_queue_device *device;
    sp_command_queue *queues[3];
    uint32_t ran; /* plain: the limit is one, so the permits order it */
    sp_atomic_u32 cancel;
} world;

static sp_status run_alone(const sp_tile *tile)
{
    world *w = tile->bindings[0];
    w->ran++;
    return SP_OK;
}

static const sp_kernel kernel = {.name = "run alone", .run = run_alone, .quirk = 1};
static sp_memory memory[3];

static void command_poll(world *w, uint32_t index, const sp_command *command)
{
    sp_point point;
    SP_SCHED_ASSERT(sp__subject_submit(w->queues[index], command, NULL, 0, &point) == SP_OK);
    /* Its own queue only: one that is parked has to come back to it. */
    const sp_executor executor = {.kind = SP_WORKER, .until = UINT64_MAX, .budget = UINT32_MAX};
    while (!sp__point_has_passed(point)) {
        if (sp__queue_claim(w->queues[index])) {
            sp__queue_drain(w->queues[index], &executor);
        } else {
            sp_spin_hint();
        }
    }
}

static void submit_and_poll(world *w, uint32_t index)
{
    sp_binding binding;
    const sp_command command = sp__subject_dispatch(&kernel, &binding, &memory[index], w, 0, NULL);
    command_poll(w, index, &command);
}

static void run_0(void *arg)
{
    submit_and_poll(arg, 0);
}

static void run_1(void *arg)
{
    submit_and_poll(arg, 1);
}

static void run_2(void *arg)
{
    submit_and_poll(arg, 2);
}

static void subject_throttle(void *arg)
{
    const uint32_t count = *(const uint32_t *)arg;
    world w;
    memset(&w, 0, sizeof w);
    w.device = sp__subject_device(0);
    for (uint32_t i = 0; i < count; i++) w.queues[i] = sp__subject_queue(w.device, i, true);
    sp__subject_run((const sp_thread_fn[]){run_0, run_1, run_2}, count, &w);
    SP_SCHED_ASSERT(w.ran == count);
    sp__subject_device_free(w.device);
    sp__subject_end();
}

/* ---- a list that is cancelled while it waits for the permit ---- */

static void run_list_1(void *arg)
{
    world *w = arg;
    sp_binding binding;
    sp_list *list;
    const sp_command inside = sp__subject_dispatch(&kernel, &binding, &memory[1], w, 0, NULL);
    SP_SCHED_ASSERT(sp__queue_list_create(&w->device->base, &inside, 1, 0, &list) == SP_OK);
    const sp_command command = {.type = SP_COMMAND_LIST, .list = list, .cancel = &w->cancel};
    command_poll(w, 1, &command);
    sp__queue_list_release(list);
}

static void cancel_list(void *arg)
{
    world *w = arg;
    sp_store_relaxed(&w->cancel, 1);
}

/* The permit is free afterwards. */
static void subject_throttle_cancel(void *arg)
{
    (void)arg;
    world w;
    memset(&w, 0, sizeof w);
    w.device = sp__subject_device(0);
    for (uint32_t i = 0; i < 2; i++) w.queues[i] = sp__subject_queue(w.device, i, true);
    sp__subject_run((const sp_thread_fn[]){run_0, run_list_1, cancel_list}, 3, &w);
    SP_SCHED_ASSERT(w.ran == 1 || w.ran == 2);
    run_0(&w);
    sp__subject_device_free(w.device);
    sp__subject_end();
}

/* ---- the table ---- */

const sp_subject sp__subjects_throttle[] = {
    {.name = "throttle_2",
     .test = subject_throttle,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .planted = "permit_is_lost",
     .seconds = 0.5},
    {.name = "throttle_3",
     .test = subject_throttle,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "permit_is_lost",
     .seconds = 0.5},
    {.name = "throttle_cancel",
     .test = subject_throttle_cancel,
     .thread_count = 3,
     .planted = "cancel_keeps_permit",
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {0},
};
