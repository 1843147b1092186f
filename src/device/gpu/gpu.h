/* SPDX-License-Identifier: Apache-2.0 */
/* What GPUs have in common, whatever their driver: command queues whose claim's holder issues
 * commands to the driver and does not wait for them.
 *
 * What the holder has issued is `drained`; what the GPU has done is found out by whoever asks,
 * through signals: a signal is an event of the driver behind the newest issued submission, recorded
 * by the asking thread, so a submission that no thread waits for costs no event.
 *
 *     done <= signals[first].value < ... < newest signal's value <= drained
 *
 * A thread that waits polls again and again (help); a waiter that sleeps, and a queue that is
 * parked behind its own GPU work, are served by the device's poller thread.
 *
 * A driver fills in sp_gpu_driver, and execute, execute_list, queue_open and queue_close of its
 * engine (device/queue/engine.h). */
#ifndef SP_DEVICE_GPU_GPU_H
#define SP_DEVICE_GPU_GPU_H

#include "base/mutex.h"
#include "base/thread.h"
#include "base/wait.h"
#include "device/queue/engine.h"

#define SP_GPU_SIGNALS 8         /* unanswered signals of a queue */
#define SP_GPU_MAX_IN_FLIGHT 512 /* submissions issued and not done, per queue */

typedef struct sp_gpu_device sp_gpu_device;
typedef struct sp_gpu_queue sp_gpu_queue;
typedef struct sp_gpu_event sp_gpu_event; /* the driver's own */

/* What a call of the driver returned: SP_GPU_DONE, SP_GPU_NOT_READY or an error of the driver's,
 * which is positive. */
typedef int32_t sp_gpu_result;
#define SP_GPU_DONE 0
#define SP_GPU_NOT_READY (-1)

typedef enum sp_gpu_call { SP_GPU_CREATE, SP_GPU_RECORD, SP_GPU_QUERY, SP_GPU_WAIT } sp_gpu_call;

/* Any thread, between enter and leave; `destroy` fails never. */
typedef struct sp_gpu_driver {
    /* The calling thread works on the device, whatever it worked on, and has that back afterwards.
     * May nest. */
    void (*enter)(const sp_gpu_device *device);
    void (*leave)(void);
    sp_gpu_result (*event_create)(sp_gpu_event **out);
    void (*event_destroy)(sp_gpu_event *event);
    /* The event is ready once all that was issued to the queue so far is done. */
    sp_gpu_result (*event_record)(sp_gpu_event *event, const sp_gpu_queue *queue);
    sp_gpu_result (*event_query)(sp_gpu_event *event);
    /* What is issued to the queue from now on comes after the event, perhaps of another GPU. */
    sp_gpu_result (*event_wait)(const sp_gpu_queue *queue, sp_gpu_event *event);
    /* The GPU has passed the submission `value`. Under queue->lock. */
    void (*passed)(sp_gpu_queue *queue, uint64_t value);
    /* The result as a status, with a message that names the call; `what` it was for, or NULL. One
     * that says that the device is lost loses it. No lock is held. */
    sp_status (*check)(sp_gpu_device *device, sp_gpu_result result, sp_gpu_call call,
                       const char *what);
} sp_gpu_driver;

typedef struct sp_gpu_signal {
    uint64_t value; /* all submissions up to this one come before the event */
    sp_gpu_event *event;
} sp_gpu_signal;

struct sp_gpu_queue {
    sp_command_queue common;
    sp_mutex lock;                                             /* and raising `done` */
    sp_gpu_signal signals[SP_GPU_SIGNALS] SP_GUARDED_BY(lock); /* a ring; the events stay */
    uint32_t first SP_GUARDED_BY(lock);
    uint32_t count SP_GUARDED_BY(lock);
    /* The claim's holder: behind the commands that a host function comes after. */
    sp_gpu_event *settle;
    bool is_settling; /* it has been recorded there */
    /* 1 while the queue is parked until `settle` is done. Set by the holder once it has parked;
     * whoever exchanges it for 0, having seen the event done, unparks the queue. */
    sp_atomic_u32 must_settle;
    sp_atomic_u32 is_watched; /* the poller looks here; see gpu_poller.c */
    /* Name of the newest kernel or list, static: for the message when the GPU fails. Relaxed. */
    SP_ATOMIC(const char *) last_issued;
};

struct sp_gpu_device {
    sp_queue_device common;
    const sp_gpu_driver *driver;
    /* The poller. */
    sp_thread poller;
    sp_parker poller_parker;
    sp_atomic_u32 is_poller_asleep;
    sp_atomic_u32 is_stopping;
    bool has_poller; /* of whoever starts and stops the device */
};

static inline sp_gpu_device *sp__gpu_device(sp_dev *dev)
{
    return SP_CONTAINER_OF(sp__queue_device(dev), sp_gpu_device, common);
}

static inline sp_gpu_queue *sp__gpu_queue(sp_command_queue *queue)
{
    return SP_CONTAINER_OF(queue, sp_gpu_queue, common);
}

static inline sp_gpu_device *sp__gpu_device_of(const sp_gpu_queue *queue)
{
    return sp__gpu_device(queue->common.base.device);
}

/* Of a device whose driver is set. Starts its queues and its poller; stop ends both, and what was
 * accepted has completed. Errors: as sp__queue_device_init. */
sp_status sp__gpu_device_init(sp_gpu_device *device, const sp_device_vtable *vtable,
                              const sp_queue_device_options *options);
void sp__gpu_device_stop(sp_dev *dev);

/* gpu_signal.c */
/* The shared part of a queue, between enter and leave. Close: also after a failed open. */
sp_status sp__gpu_queue_open(sp_gpu_queue *queue);
void sp__gpu_queue_close(sp_gpu_queue *queue);
/* Raises `done` as far as the GPU has come, and unparks the queue if it has settled. Asks for a
 * signal if there is none. Between enter and leave. */
void sp__gpu_poll(sp_gpu_queue *queue);
/* Makes `queue` wait on the GPU for the submission `value` of `behind`, which has been issued. */
sp_status sp__gpu_wait_signal(const sp_gpu_queue *queue, sp_gpu_queue *behind, uint64_t value);
/* Is there anything that the GPU still has to do for the queue? */
bool sp__gpu_is_busy(sp_gpu_queue *queue);

/* gpu_poller.c: of sp_device_vtable */
sp_status sp__gpu_poller_start(sp_gpu_device *device);
void sp__gpu_poller_stop(sp_gpu_device *device);
/* The poller polls the queue until no thread sleeps for it. Any thread. */
void sp__gpu_watch(sp_queue *queue);

/* gpu_queue.c: of sp_queue_engine, */
void sp__gpu_enter(sp_command_queue *queue);
bool sp__gpu_has_room(sp_command_queue *queue, uint64_t value);
bool sp__gpu_wait(sp_command_queue *queue, sp_point point);
bool sp__gpu_settle(sp_command_queue *queue);
void sp__gpu_finish(sp_command_queue *queue, uint64_t value);
/* and of sp_device_vtable. */
void sp__gpu_kick(sp_queue *queue);
void sp__gpu_flush(sp_queue *queue);
void sp__gpu_help(sp_queue *queue, uint64_t value);

#endif
