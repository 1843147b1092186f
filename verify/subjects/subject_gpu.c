/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of GPUs (device/gpu), on a driver made of counters: a thread that sleeps for GPU
 * work is woken by the poller, whenever the work was issued and whenever the thread went to sleep;
 * a queue that is parked behind its own work is unparked; done <= issued. */
#include "support.h"

#include <string.h>

#include "base/clock.h"
#include "base/heap.h"
#include "device/gpu/gpu.h"
#include "device/host_executor.h"
#include "device/thread_record.h"
#include "device/wait.h"
#include "sched/subject.h"

/* ---- the driver ---- */

struct sp_gpu_event {
    uint32_t polls_left; /* until it is ready */
};

typedef struct pretend_queue {
    sp_gpu_queue gpu;
    uint64_t issued; /* commands; the claim's holder */
    /* The result of the GPU's work: commands known to be done. Plain: written under the queue's
     * lock, read after a wait. */
    uint64_t completed;
    sp_gpu_word word; /* that its commands raise, or none */
    sp_atomic_u32 has_issued;
} pretend_queue;

static const sp_device_vtable gpu_vtable;

static pretend_queue *pretend(const sp_gpu_queue *queue)
{
    return SP_CONTAINER_OF(queue, pretend_queue, gpu);
}

static void enter(const sp_gpu_device *device)
{
    (void)device;
}

static void leave(void) {}

static sp_gpu_result event_create(sp_gpu_event **out)
{
    *out = sp_calloc(1, sizeof **out);
    SP_SCHED_ASSERT(*out != NULL);
    return SP_GPU_DONE;
}

static void event_destroy(sp_gpu_event *event)
{
    sp_free(event);
}

static sp_gpu_result event_record(sp_gpu_event *event, const sp_gpu_queue *queue)
{
    event->polls_left = pretend(queue)->word.word != NULL ? UINT32_MAX : 1;
    return SP_GPU_DONE;
}

static sp_gpu_result event_query(sp_gpu_event *event)
{
    if (event->polls_left == 0) return SP_GPU_DONE;
    event->polls_left--;
    return SP_GPU_NOT_READY;
}

static sp_gpu_result event_wait(const sp_gpu_queue *queue, sp_gpu_event *event)
{
    (void)queue, (void)event;
    return SP_GPU_DONE;
}

static void passed(sp_gpu_queue *queue, uint64_t value)
{
    SP_SCHED_ASSERT(value <= sp_load_relaxed(&queue->common.drained));
    pretend(queue)->completed = value;
}

static sp_status check(sp_gpu_device *device, sp_gpu_result result, sp_gpu_call call,
                       const char *what)
{
    (void)device, (void)call, (void)what;
    SP_SCHED_ASSERT(result == SP_GPU_DONE);
    return SP_OK;
}

static const sp_gpu_driver driver = {
    .enter = enter,
    .leave = leave,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_query = event_query,
    .event_wait = event_wait,
    .passed = passed,
    .check = check,
};

/* ---- the engine and the device ---- */

static sp_status execute(sp_command_queue *queue, const sp_record *record,
                         const sp_binding *bindings)
{
    pretend_queue *self = pretend(sp__gpu_queue(queue));
    (void)record, (void)bindings;
    self->issued++;
    if (self->word.word == NULL) return SP_OK;
    sp__gpu_note_word(&self->gpu, &self->word);
    sp_store_release(&self->has_issued, 1);
    sp_word_wake(&self->has_issued, SP_WAKE_ALL);
    return SP_OK;
}

static sp_status execute_list(sp_command_queue *queue, const sp_record *record)
{
    (void)queue, (void)record;
    return SP_UNSUPPORTED;
}

static sp_status queue_open(sp_command_queue *queue)
{
    return sp__gpu_queue_open(sp__gpu_queue(queue));
}

static void queue_close(sp_command_queue *queue)
{
    sp__gpu_queue_close(sp__gpu_queue(queue));
}

static const sp_queue_engine engine = {
    .queue_size = sizeof(pretend_queue),
    .is_drained_by_submitters = true,
    .enter = sp__gpu_enter,
    .leave = leave,
    .has_room = sp__gpu_has_room,
    .wait = sp__gpu_wait,
    .execute = execute,
    .execute_list = execute_list,
    .settle = sp__gpu_settle,
    .finish = sp__gpu_finish,
    .queue_open = queue_open,
    .queue_close = queue_close,
};

static const sp_device_kind kind = {.name = "pretend", .numbering = SP_DEVICE_UNBOUNDED};

static const sp_device_vtable gpu_vtable = {
    .kind = &kind,
    .stop = sp__gpu_device_stop,
    .queue_create = sp__command_queue_create,
    .queue_destroy = sp__command_queue_destroy,
    .submit = sp__queue_submit,
    .kick = sp__gpu_kick,
    .watch = sp__gpu_watch,
    .flush = sp__gpu_flush,
    .help = sp__gpu_help,
    .last_value = sp__queue_last_value,
    .each_wait = sp__queue_each_wait,
};

typedef struct world {
    sp_gpu_device device;
    pretend_queue *queue;
    sp_point point;
    uint32_t called; /* plain: of the host function, read after a wait */
    uint32_t result; /* plain: of the GPU, read after a wait */
    sp_atomic_u64 word;
} world;

/* Without sp__queue_device_init: the executor and its thread only where a host function runs. */
static void begin(world *w, uint32_t worker_count)
{
    memset(w, 0, sizeof *w);
    sp_queue_device *common = &w->device.common;
    common->base.vtable = &gpu_vtable;
    common->options = (sp_queue_device_options){.engine = &engine,
                                                .worker_count = worker_count,
                                                .queue_bytes = (uint64_t)1 << 20,
                                                .nap_ns = 1000000};
    if (worker_count > 0) SP_SCHED_ASSERT(sp__host_executor_start() == SP_OK);
    SP_SCHED_ASSERT(sp__queue_throttles_init(common) == SP_OK);
    sp_mutex_init(&common->lock, SP_LOCK_QUEUE_DEVICE);
    SP_SCHED_ASSERT(sp__queue_workers_start(common) == SP_OK);
    w->device.driver = &driver;
    SP_SCHED_ASSERT(sp__gpu_poller_start(&w->device) == SP_OK);
    w->queue = pretend(sp__gpu_queue(sp__subject_queue(common, 0, true)));
}

static void end(world *w)
{
    sp__gpu_device_stop(&w->device.common.base);
    sp__queue_device_deinit(&w->device.common);
    sp__host_executor_stop();
    sp__subject_end();
}

/* ---- threads ---- */

static void submit(world *w)
{
    static const uint32_t pattern = 0;
    static sp_memory memory = {.bytes = 4};
    const sp_binding binding = {.memory = &memory, .bytes = 4, .access = SP_WRITE};
    const sp_command command = {.type = SP_COMMAND_FILL,
                                .binding_count = 1,
                                .bindings = &binding,
                                .constants = &pattern,
                                .constant_bytes = sizeof pattern};
    SP_SCHED_ASSERT(sp__subject_submit(&w->queue->gpu.common, &command, NULL, 0, &w->point) ==
                    SP_OK);
}

static void kick(void *arg)
{
    world *w = arg;
    sp__gpu_kick(&w->queue->gpu.common.base);
}

typedef struct sleeper {
    sp_waiter waiter;
    sp_atomic_u32 is_awake;
} sleeper;

static void wake(sp_waiter *waiter)
{
    sleeper *self = SP_CONTAINER_OF(waiter, sleeper, waiter);
    sp_store_release(&self->is_awake, 1);
    sp_word_wake(&self->is_awake, SP_WAKE_ALL);
}

/* As a thread does that has polled long enough: without help. */
static void sleep_for_the_point(void *arg)
{
    world *w = arg;
    sleeper self = {.waiter = {.value = w->point.value, .fire = wake}};
    if (sp__timeline_register(w->point.timeline, &self.waiter)) {
        while (sp_load_acquire(&self.is_awake) == 0) {
            sp_word_wait(&self.is_awake, 0, SP_NO_DEADLINE);
        }
    }
    SP_SCHED_ASSERT(sp__point_has_passed(w->point));
    SP_SCHED_ASSERT(w->queue->completed >= w->point.value);
}

static void help(void *arg)
{
    world *w = arg;
    SP_SCHED_ASSERT(sp__point_wait_passed(w->point, SP_NO_DEADLINE) == SP_OK);
    SP_SCHED_ASSERT(w->queue->completed >= w->point.value);
}

/* The GPU: it computes, then raises the word. */
static void compute(void *arg)
{
    world *w = arg;
    while (sp_load_acquire(&w->queue->has_issued) == 0) {
        sp_word_wait(&w->queue->has_issued, 0, SP_NO_DEADLINE);
    }
    w->result = 7;
    sp_store_release(&w->word, 1);
}

static void sleep_for_the_result(void *arg)
{
    world *w = arg;
    sleep_for_the_point(w);
    SP_SCHED_ASSERT(w->result == 7);
}

/* ---- subjects ---- */

static void subject_gpu_sleep(void *arg)
{
    (void)arg;
    world w;
    begin(&w, 0);
    submit(&w);
    kick(&w);
    sleep_for_the_point(&w);
    end(&w);
}

static void subject_gpu_issue(void *arg)
{
    (void)arg;
    world w;
    begin(&w, 0);
    submit(&w);
    sp__subject_run((const sp_thread_fn[]){kick, sleep_for_the_point}, 2, &w);
    end(&w);
}

static sp_status count_call(void *ctx, sp_fault fault)
{
    world *w = ctx;
    SP_SCHED_ASSERT(fault == SP_NO_FAULT);
    /* The GPU's work before it is done. */
    SP_SCHED_ASSERT(w->queue->issued == 1);
    w->called++;
    return SP_OK;
}

/* A host function behind a command: the queue parks until the event behind the command is done,
 * which the poller finds out, or a thread that waits. */
static void settle(sp_thread_fn issue)
{
    world w;
    begin(&w, 1);
    submit(&w);
    const sp_command command = {.type = SP_COMMAND_HOST, .host = count_call, .ctx = &w};
    SP_SCHED_ASSERT(sp__subject_submit(&w.queue->gpu.common, &command, NULL, 0, &w.point) == SP_OK);
    sp__subject_run((const sp_thread_fn[]){issue, sleep_for_the_point}, 2, &w);
    SP_SCHED_ASSERT(w.called == 1);
    end(&w);
}

static void subject_gpu_settle(void *arg)
{
    (void)arg;
    settle(kick);
}

static void subject_gpu_help(void *arg)
{
    (void)arg;
    settle(help);
}

/* A command that tells by a word that it is done. */
static void subject_gpu_word(void *arg)
{
    (void)arg;
    world w;
    begin(&w, 0);
    w.queue->word = (sp_gpu_word){.word = &w.word, .count = 1};
    submit(&w);
    sp__subject_run((const sp_thread_fn[]){kick, compute, sleep_for_the_result}, 3, &w);
    end(&w);
}

/* ---- the table ---- */

const sp_subject sp__subjects_gpu[] = {
    {.name = "gpu_sleep",
     .test = subject_gpu_sleep,
     .thread_count = 2,
     .planted = "poller_sleeps_blindly",
     .seconds = 0.5},
    {.name = "gpu_issue",
     .test = subject_gpu_issue,
     .thread_count = 3,
     .planted = "issued_unwatched no_second_poll",
     .seconds = 0.5},
    {.name = "gpu_word",
     .test = subject_gpu_word,
     .thread_count = 4,
     .planted = "relaxed_word",
     .seconds = 0.5},
    {.name = "gpu_settle",
     .test = subject_gpu_settle,
     .thread_count = 4,
     .planted = "settle_unwatched stale_settle",
     .options = SP_SLEEPERS,
     .seconds = 0.5},
    {.name = "gpu_help",
     .test = subject_gpu_help,
     .thread_count = 4,
     .planted = "settled_twice",
     .options = SP_SLEEPERS,
     .seconds = 0.5},
    {0},
};
