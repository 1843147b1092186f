/* SPDX-License-Identifier: Apache-2.0 */
/* The cuda device inside: command queues whose claim's holder issues commands to the driver.
 *
 * A queue has a CUstream. What the holder has issued is `drained`; what the GPU has done is found
 * out by whoever asks, through signals: a signal is an event recorded behind the newest issued
 * submission, by the asking thread, so a submission that nobody waits for costs no event.
 *
 *     done <= signals[first].value < ... < newest signal's value <= drained
 *
 * A thread that waits asks again and again (help); a waiter that sleeps, and a queue that is parked
 * behind its own GPU work, are looked after by the device's poller thread. */
#ifndef SP_DEVICE_CUDA_DEVICE_H
#define SP_DEVICE_CUDA_DEVICE_H

#include "base/mutex.h"
#include "base/thread.h"
#include "base/wait.h"
#include "device/cuda/cuda_api.h"
#include "device/cuda/cuda_program.h"
#include "device/queue/engine.h"

#define SP_CUDA_SIGNALS 8         /* unanswered signals of a queue */
#define SP_CUDA_MAX_IN_FLIGHT 512 /* submissions issued and not done, per queue */

typedef struct sp_cuda_device sp_cuda_device;

typedef struct sp_cuda_signal {
    uint64_t value; /* all submissions up to this one come before the event */
    CUevent event;
} sp_cuda_signal;

/* A moment at which both clocks are known. */
typedef struct sp_cuda_epoch {
    CUevent event;
    uint64_t host_ns;
    uint32_t references; /* stamps that count from it, and being the newest; the device's lock */
} sp_cuda_epoch;

/* A timestamp that has been issued. */
typedef struct sp_cuda_stamp {
    uint64_t value; /* of its submission */
    CUevent event;
    sp_cuda_epoch *epoch;
    sp_atomic_u64 *target;
    struct sp_cuda_stamp *next;
} sp_cuda_stamp;

typedef struct sp_cuda_queue {
    sp_command_queue common;
    CUstream stream;                                             /* constant */
    sp_mutex lock;                                               /* and raising `done` */
    sp_cuda_signal signals[SP_CUDA_SIGNALS] SP_GUARDED_BY(lock); /* a ring; the events stay */
    uint32_t first SP_GUARDED_BY(lock);
    uint32_t count SP_GUARDED_BY(lock);
    sp_cuda_stamp *stamps SP_GUARDED_BY(lock); /* oldest first */
    sp_cuda_stamp **stamps_end SP_GUARDED_BY(lock);
    sp_cuda_stamp *free_stamps SP_GUARDED_BY(lock);
    /* The claim's holder: behind the commands that a host function comes after. */
    CUevent settle;
    bool is_settling; /* it has been recorded there */
    /* 1 while the queue is parked until `settle` is done. Set by the holder once it has parked;
     * whoever exchanges it for 0, having seen the event done, unparks the queue. */
    sp_atomic_u32 must_settle;
    sp_atomic_u32 is_watched; /* the poller looks here; see cuda_poller.c */
    /* Name of the newest kernel or list, static: for the message when the GPU fails. Relaxed. */
    SP_ATOMIC(const char *) last_issued;
} sp_cuda_queue;

struct sp_cuda_device {
    sp_queue_device common;
    CUdevice ordinal;
    CUcontext context;
    bool is_managed; /* memory is managed; else it is the host's, mapped */
    sp_cuda_programs programs;
    CUstream clock_stream;
    sp_mutex clock_lock;
    sp_cuda_epoch *epoch SP_GUARDED_BY(clock_lock); /* the newest */
    /* The poller. */
    sp_thread poller;
    sp_parker poller_parker;
    sp_atomic_u32 is_poller_asleep;
    sp_atomic_u32 is_stopping;
    bool has_poller; /* of whoever starts and stops the device */
};

static inline sp_cuda_device *sp__cuda_device(sp_dev *dev)
{
    return SP_CONTAINER_OF(sp__queue_device(dev), sp_cuda_device, common);
}

static inline sp_cuda_queue *sp__cuda_queue(sp_command_queue *queue)
{
    return SP_CONTAINER_OF(queue, sp_cuda_queue, common);
}

static inline sp_cuda_device *sp__cuda_device_of(const sp_cuda_queue *queue)
{
    return sp__cuda_device(queue->common.base.device);
}

/* The calling thread works on the device, whatever context it had, and has it back afterwards. */
void sp__cuda_enter(const sp_cuda_device *device);
void sp__cuda_leave(void);

/* Checks a call on a queue of the device; one that says that the device is lost loses it. */
sp_status sp__cuda_check_on(sp_cuda_device *device, CUresult result, const char *call,
                            const char *what);

/* cuda_signal.c */
sp_status sp__cuda_signals_open(sp_cuda_queue *queue);
void sp__cuda_signals_close(sp_cuda_queue *queue);
/* Raises `done` as far as the GPU has come, and unparks the queue if it has settled. Asks for a
 * signal if there is none. The context must be current. */
void sp__cuda_poll(sp_cuda_queue *queue);
/* Makes `stream` wait for the submission `value` of the queue, which has been issued. */
sp_status sp__cuda_wait_signal(sp_cuda_queue *queue, uint64_t value, CUstream stream);
/* Is there anything that the GPU still has to do for the queue? */
bool sp__cuda_is_busy(sp_cuda_queue *queue);

/* cuda_clock.c: timestamps */
sp_status sp__cuda_clock_open(sp_cuda_device *device);
void sp__cuda_clock_close(sp_cuda_device *device);
/* Issues a timestamp of the submission at the cursor. */
sp_status sp__cuda_stamp(sp_cuda_queue *queue, sp_atomic_u64 *target);
/* Writes the times of all stamps up to `value`, which the GPU has passed. */
void sp__cuda_stamps_resolve_locked(sp_cuda_queue *queue, uint64_t value) SP_REQUIRES(&queue->lock);
void sp__cuda_stamps_free(sp_cuda_queue *queue);

/* cuda_issue.c */
sp_status sp__cuda_issue(sp_command_queue *queue, const sp_record *record,
                         const sp_binding *bindings);

/* cuda_graph.c: lists without slots as graphs */
sp_status sp__cuda_list_create(sp_dev *device, const sp_command *commands, uint32_t command_count,
                               uint32_t slot_count, sp_list **out);
/* The graph of a list that has one, else NULL: for benchmarks, which launch it bare. */
CUgraphExec sp__cuda_list_graph(const sp_list *list);
sp_status sp__cuda_issue_list(sp_command_queue *queue, const sp_record *record);

/* cuda_poller.c */
sp_status sp__cuda_poller_start(sp_cuda_device *device);
void sp__cuda_poller_stop(sp_cuda_device *device);
/* The poller looks at the queue until nobody sleeps for it. Any thread. */
void sp__cuda_watch(sp_queue *queue);

/* cuda_queue.c */
extern const sp_queue_engine sp__cuda_engine;
void sp__cuda_kick(sp_queue *queue);
void sp__cuda_flush(sp_queue *queue);
void sp__cuda_help(sp_queue *queue, uint64_t value);

#endif
