/* SPDX-License-Identifier: Apache-2.0 */
/* The first call initialises the runtime: every other call sees either no runtime or one with its
 * devices; an added device is seen completely initialised; counts are consistent. */
#include "support.h"

#include <string.h>

#include <streampool/device.h>
#include <streampool/stream.h>

#include "sched/subject.h"

/* ---- coming up ---- */

static void first_call(void *arg)
{
    (void)arg;
    sp_device cpu;
    sp_device_info info;
    SP_SCHED_ASSERT(sp_device_at(0, &cpu) == SP_OK);
    SP_SCHED_ASSERT(sp_device_get_info(cpu, &info) == SP_OK);
    SP_SCHED_ASSERT(strcmp(info.name, "cpu") == 0);
}

/* Calls only after it has seen the runtime up: a random schedule rarely delays a thread that long.
 */
static void later_call(void *arg)
{
    while (sp_load_relaxed(&sp__runtime_phase) != SP_RUNTIME_UP) sp_spin_hint();
    first_call(arg);
}

static void subject_runtime_up(void *arg)
{
    const bool is_late = *(const uint32_t *)arg != 0;
    const sp_thread_fn calls[] = {first_call, is_late ? later_call : first_call};
    sp__subject_run(calls, 2, NULL);
    SP_SCHED_ASSERT(sp_device_count() == 1);
    sp__subject_runtime_down();
}

/* ---- devices are added ---- */

static void add(void *arg)
{
    sp_queue_device *second = arg;
    sp_rt_device *device;
    SP_SCHED_ASSERT(sp__runtime_add_device(&second->base, &device) == SP_OK);
}

static sp_status look_at(sp_rt_device *device, void *ctx)
{
    uint32_t *count = ctx;
    SP_SCHED_ASSERT(device->dev != NULL);
    *count += 1;
    return SP_OK;
}

static void look(void *arg)
{
    (void)arg;
    uint32_t walked = 0;
    SP_SCHED_ASSERT(sp__runtime_each_device(look_at, &walked) == SP_OK);
    SP_SCHED_ASSERT(walked == 1 || walked == 2);
    const uint32_t count = sp_device_count();
    SP_SCHED_ASSERT(count == 1 || count == 2);
    sp_device device;
    sp_device_info info;
    SP_SCHED_ASSERT(sp_device_at(count - 1, &device) == SP_OK);
    SP_SCHED_ASSERT(sp_device_get_info(device, &info) == SP_OK);
    SP_SCHED_ASSERT(strcmp(info.name, count == 1 ? "subject:0" : "subject:1") == 0);
}

/* A handle that no call has returned finds no device, or a whole one. */
static void guess(void *arg)
{
    (void)arg;
    sp_device first;
    sp_device_info info;
    SP_SCHED_ASSERT(sp_device_at(0, &first) == SP_OK);
    const sp_status status = sp_device_get_info((sp_device){first.bits + 1}, &info);
    SP_SCHED_ASSERT(status == SP_OK || status == SP_NOT_FOUND || status == SP_INVALID);
    if (status == SP_OK) SP_SCHED_ASSERT(strcmp(info.name, "subject:1") == 0);
}

static void subject_runtime_add(void *arg)
{
    const bool is_guess = *(const uint32_t *)arg != 0;
    sp_queue_device *second = sp__subject_device(0);
    (void)sp__subject_runtime(sp__subject_device(0));
    const sp_thread_fn threads[] = {add, is_guess ? guess : look};
    sp__subject_run(threads, 2, second);
    sp__subject_runtime_down();
}

/* ---- the counts of a stream: none runs ahead of the one that it is part of ---- */

typedef struct counted {
    sp_queue_device *common;
    sp_command_queue *queue;
    sp_stream stream;
    sp_subject_log log;
} counted;

static void submit_and_run(void *arg)
{
    counted *w = arg;
    sp_point point;
    SP_SCHED_ASSERT(sp__subject_append(w->queue, &w->log, 0, NULL, 0, &point) == SP_OK);
    sp__subject_poll(w->common, 2, point);
}

static void read_counts(void *arg)
{
    counted *w = arg;
    sp_stream_info info;
    SP_SCHED_ASSERT(sp_stream_get_info(w->stream, &info) == SP_OK);
    SP_SCHED_ASSERT(info.done + info.failed <= info.submissions);
}

static void subject_stream_info(void *arg)
{
    (void)arg;
    counted w = {.common = sp__subject_device(0)};
    w.queue = sp__command_queue(sp__subject_stream(sp__subject_runtime(w.common), &w.stream).queue);
    sp__subject_run((const sp_thread_fn[]){submit_and_run, read_counts}, 2, &w);
    SP_SCHED_ASSERT(sp__stream_lease_release(w.stream) == SP_OK);
    sp__subject_runtime_down();
}

/* ---- the table ---- */

const sp_subject sp__subjects_runtime[] = {
    {.name = "runtime_up",
     .test = subject_runtime_up,
     .arg = SP_SUBJECT_ARG(0),
     .thread_count = 3,
     .planted = "up_twice",
     .options = SP_SLEEPERS,
     .seconds = 0.5},
    {.name = "runtime_up_late",
     .test = subject_runtime_up,
     .arg = SP_SUBJECT_ARG(1),
     .thread_count = 3,
     .planted = "relaxed_up",
     .options = SP_SLEEPERS,
     .seconds = 0.5},
    {.name = "runtime_add",
     .test = subject_runtime_add,
     .arg = SP_SUBJECT_ARG(0),
     .thread_count = 2,
     .planted = "count_before_device",
     .seconds = 0.4},
    {.name = "runtime_guess",
     .test = subject_runtime_add,
     .arg = SP_SUBJECT_ARG(1),
     .thread_count = 2,
     .planted = "relaxed_device",
     .seconds = 0.4},
    {.name = "stream_info",
     .test = subject_stream_info,
     .thread_count = 2,
     .planted = "relaxed_info",
     .options = SP_SPINNERS,
     .seconds = 0.4},
    {0},
};
