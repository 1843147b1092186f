/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of GPU devices, independent of the driver: command queues whose claim's holder
 * issues commands to the driver and does not wait for them.
 *
 * Issued submissions are `drained`. Completion on the GPU is detected on demand, through signals: a
 * signal is an event of the driver behind the newest issued submission, recorded by the thread that
 * needs it, so a submission that no thread waits for costs no event. Where the last that a
 * submission does is to raise a word in memory of the host, the signal is that word: to look at it
 * needs no call of the driver, whose calls wait for each other (docs/decisions/0085). A fault
 * raises no word, so an event is recorded too when the word has been looked at in vain for a while.
 *
 *     done <= signals[first].value < ... < newest signal's value <= drained
 *
 * A waiting thread polls in a loop (help); sleeping waiters, and queues that are parked behind
 * their own GPU work, are served by the device's poller thread.
 *
 * A driver fills in sp_gpu_driver, and execute, execute_list, queue_open and queue_close of its
 * engine (device/queue/engine.h). */
#ifndef SP_DEVICE_GPU_GPU_H
#define SP_DEVICE_GPU_GPU_H

#include "base/mutex.h"
#include "base/thread.h"
#include "base/wait.h"
#include "device/gpu/gpu_gate.h"
#include "device/queue/engine.h"

#define SP_GPU_SIGNALS 8         /* pending signals of a queue */
#define SP_GPU_MAX_IN_FLIGHT 512 /* submissions issued and not done, per queue */

typedef struct sp_gpu_device sp_gpu_device;
typedef struct sp_gpu_queue sp_gpu_queue;
typedef struct sp_gpu_event sp_gpu_event; /* defined by the driver */

/* Result of a call of the driver: SP_GPU_DONE, SP_GPU_NOT_READY, or a positive error code of the
 * driver. */
typedef int32_t sp_gpu_result;
#define SP_GPU_DONE 0
#define SP_GPU_NOT_READY (-1)

typedef enum sp_gpu_call { SP_GPU_CREATE, SP_GPU_RECORD, SP_GPU_QUERY, SP_GPU_WAIT } sp_gpu_call;

/* Any thread, between enter and leave. */
typedef struct sp_gpu_driver {
    /* Makes the device current on the calling thread; leave restores the previous one. May nest. */
    void (*enter)(const sp_gpu_device *device);
    void (*leave)(void);
    sp_gpu_result (*event_create)(sp_gpu_event **out);
    void (*event_destroy)(sp_gpu_event *event);
    /* The event is ready once everything issued to the queue so far is done. */
    sp_gpu_result (*event_record)(sp_gpu_event *event, const sp_gpu_queue *queue);
    sp_gpu_result (*event_query)(sp_gpu_event *event);
    /* Orders everything issued to the queue from now on after the event, which may be of another
     * GPU. */
    sp_gpu_result (*event_wait)(const sp_gpu_queue *queue, sp_gpu_event *event);
    /* Called when the GPU has completed the submission `value`. Under queue->lock. */
    void (*passed)(sp_gpu_queue *queue, uint64_t value);
    /* The result as a status, with a message that names the call; `what` is its purpose, or NULL. A
     * result that means loss of the device loses it. No lock is held. */
    sp_status (*check)(sp_gpu_device *device, sp_gpu_result result, sp_gpu_call call,
                       const char *what);
} sp_gpu_driver;

/* A word in memory of the host that the GPU raises to `count`. */
typedef struct sp_gpu_word {
    const sp_atomic_u64 *word; /* of the device, while it is open. NULL: none */
    uint64_t count;
} sp_gpu_word;

static inline bool sp__gpu_word_is_raised(const sp_gpu_word *word)
{
    if (SP_PLANTED(relaxed_word)) return sp_load_relaxed(word->word) >= word->count;
    /* Pairs with the store of the list's last kernel: what the list has written. */
    return sp_load_acquire(word->word) >= word->count;
}

typedef struct sp_gpu_signal {
    uint64_t value; /* the signal comes after all submissions up to this one */
    sp_gpu_event *event;
    sp_gpu_word word; /* looked at before the event; `none`: the event is recorded */
    uint32_t looks;   /* at the word */
    bool is_recorded; /* the event */
} sp_gpu_signal;

/* A storage of another device that an issued submission writes. */
typedef struct sp_gpu_write {
    uint64_t value;
    sp_poison *poison;
    uint32_t epoch; /* of the memory */
} sp_gpu_write;

struct sp_gpu_queue {
    sp_command_queue common;
    sp_mutex lock;                                             /* also for raising `done` */
    sp_gpu_signal signals[SP_GPU_SIGNALS] SP_GUARDED_BY(lock); /* a ring; events are reused */
    uint32_t first SP_GUARDED_BY(lock);
    uint32_t count SP_GUARDED_BY(lock);
    uint64_t looked_ns SP_GUARDED_BY(lock); /* see sp__gpu_poll_now_and_then */
    /* Raised at the end of the submission `word_value`, as the last that this does. */
    sp_gpu_word word SP_GUARDED_BY(lock);
    uint64_t word_value SP_GUARDED_BY(lock);
    uint64_t noted; /* the same, of the claim's holder, who alone changes it */
    /* Writes that are not known to be done, oldest first: a ring of SP_GPU_MAX_IN_FLIGHT, since a
     * submission has one at most. NULL until the first one. */
    sp_gpu_write *writes SP_GUARDED_BY(lock);
    uint32_t first_write SP_GUARDED_BY(lock);
    uint32_t write_count SP_GUARDED_BY(lock);
    /* Of the claim's holder: event after the commands that precede a host function. */
    sp_gpu_event *settle;
    bool is_settling; /* `settle` has been recorded */
    /* 1 while the queue is parked until `settle` is done. Set by the holder once it has parked; the
     * thread that exchanges it for 0, after it has seen the event done, unparks the queue. */
    sp_atomic_u32 must_settle;
    sp_atomic_u32 is_watched; /* the poller polls this queue; see gpu_poller.c */
    /* Name of the newest kernel or list, static: for messages of failures. Relaxed. */
    SP_ATOMIC(const char *) last_issued;
};

struct sp_gpu_device {
    sp_queue_device common;
    const sp_gpu_driver *driver;
    sp_gpu_gate gate; /* passed by polls, and by what the driver issues */
    /* The poller. */
    sp_thread poller;
    sp_parker poller_parker;
    sp_atomic_u32 is_poller_asleep;
    sp_atomic_u32 is_stopping;
    bool has_poller; /* only the thread that starts or stops the device */
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

/* Starts the queues and the poller of a device whose `driver` is set; stop completes accepted work
 * and ends both. Errors: as sp__queue_device_init. */
sp_status sp__gpu_device_init(sp_gpu_device *device, const sp_device_vtable *vtable,
                              const sp_queue_device_options *options);
void sp__gpu_device_stop(sp_dev *dev);

/* gpu_signal.c */
/* The word that the submission `value` raises at its end, if it is known to raise one. */
sp_gpu_word sp__gpu_word_of(sp_gpu_queue *queue, uint64_t value);
/* By the claim's holder: the command that it has issued raises the word; */
void sp__gpu_note_word(sp_gpu_queue *queue, const sp_gpu_word *word);
/* and one that does not will be issued. */
void sp__gpu_note_command(sp_gpu_queue *queue);
/* The common part of a queue, between enter and leave. Close: also after a failed open. */
sp_status sp__gpu_queue_open(sp_gpu_queue *queue);
void sp__gpu_queue_close(sp_gpu_queue *queue);
/* Raises `done` to what the GPU has completed, and unparks the queue if it has settled. Records a
 * signal if none is pending. Between enter and leave. */
void sp__gpu_poll(sp_gpu_queue *queue);
/* The same, by a thread that may not poll again for long: it learns of a failure too. */
void sp__gpu_poll_now_and_then(sp_gpu_queue *queue);
/* Makes `queue` wait on the GPU for the submission `value` of `behind`, which has been issued. */
sp_status sp__gpu_wait_signal(const sp_gpu_queue *queue, sp_gpu_queue *behind, uint64_t value);
/* Whether issued work of the queue is not known to be done. */
bool sp__gpu_is_busy(sp_gpu_queue *queue);

/* gpu_write.c: before a command of the submission at the cursor is issued that writes the binding.
 * If the GPU is lost before the submission is done, what it should have written on another device,
 * which works on, is poisoned. By the claim's holder. Errors: SP_OUT_OF_MEMORY. */
sp_status sp__gpu_write_note(sp_gpu_queue *queue, const sp_binding *to);
/* The submissions up to `value` are done; all others are lost. Before their points pass. */
void sp__gpu_writes_pass_locked(sp_gpu_queue *queue, uint64_t value) SP_REQUIRES(&queue->lock);
void sp__gpu_writes_lose_locked(sp_gpu_queue *queue) SP_REQUIRES(&queue->lock);
/* Frees the notes of a queue with nothing in flight. */
void sp__gpu_writes_free(sp_gpu_queue *queue);

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
bool sp__gpu_is_issued(sp_queue *queue, uint64_t value);

#endif
