/* SPDX-License-Identifier: Apache-2.0 */
/* The queue device: an asynchronous device made of threads; base of all device kinds.
 *
 * Each queue is a list of records that one thread at a time, the claim's holder, runs in order. One
 * word per queue has both how much was published and the state of the claim.
 *
 *     queue->word = published:62 | claim:2      published >= drained >= timeline.done
 *     FREE    no holder; published > drained: any thread may claim the queue and run it
 *     RUNNING one thread drains it; all fields marked "claim" are that thread's
 *     PARKED  it waits for a point or for a host function, whose end makes it FREE again
 *
 * The device's engine (engine.h) runs the drained commands, or issues them to its own processors
 * and learns of their completion later.
 *
 * submit adds 4 and reads the claim in the same step; a holder releases the claim with a
 * compare-and-swap that fails if more was published. So one of the two always knows of published
 * work, without a second check. A submitter that waits next takes the claim of an empty queue in
 * the step that publishes. Workers that find nothing spin (sharing.c), nap, then sleep. */
#ifndef SP_DEVICE_QUEUE_QUEUE_H
#define SP_DEVICE_QUEUE_QUEUE_H

#include "base/clock.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "base/wait.h"
#include "device/device.h"
#include "base/fpenv.h"
#include "device/host_executor.h"
#include "device/thread_record.h"

typedef struct sp_queue_engine sp_queue_engine;

#define SP_DEVICE_QUEUES 256 /* per device */
#define SP_DEVICE_WORKERS 64 /* per device: the bits of an idle mask */
#define SP_CHUNK_BYTES 16384

typedef struct sp_queue_device sp_queue_device;
typedef struct sp_record sp_record;

/* Consecutive records; an end mark where the next one did not fit. */
typedef struct sp_chunk {
    struct sp_chunk *next; /* written by the producer before it publishes records of that chunk */
    uint32_t capacity; /* of `bytes`: SP_CHUNK_CAPACITY, or more for one larger record. Constant */
    _Alignas(16) unsigned char bytes[];
} sp_chunk;

#define SP_CHUNK_CAPACITY (SP_CHUNK_BYTES - sizeof(sp_chunk))

typedef enum sp_claim { SP_FREE = 0, SP_RUNNING = 1, SP_PARKED = 2 } sp_claim;

#define SP_CLAIM_MASK ((uint64_t)3)
#define SP_ONE_SUBMISSION ((uint64_t)4)

/* An unmet wait of a submission. */
typedef struct sp_pending_wait {
    uint64_t value; /* of the submission that waits */
    sp_point point;
} sp_pending_wait;

/* One running dispatch that other threads may join; see tiles.c. */
typedef struct sp_tile_job {
    /* OPEN bit | threads that joined. Opened (release) by the executor after it wrote the fields
     * below; joined (acquire) and left (release) by other threads; the executor reads 0 (acquire)
     * before it writes the fields again. */
    SP_CACHE_ALIGNED sp_atomic_u32 state;
    sp_atomic_u32 failed;                /* the fault of the first tile that failed */
    SP_CACHE_ALIGNED sp_atomic_u32 next; /* next unclaimed tile */
    const sp_kernel *kernel;
    const void *constants;
    sp_tiling tiling;
    sp_atomic_u32 total;   /* written before the job is opened; also read without joining */
    sp_atomic_u32 tile_ns; /* about how long a tile takes; likewise */
    void *bindings[SP_MAX_BINDINGS];
} sp_tile_job;

/* Dispatches whose sharing is judged together. */
typedef enum sp_share_class {
    SP_SHARE_VERY_SHORT, /* of ready_ns and more: shared with workers that are awake */
    SP_SHARE_LONGER,     /* of share_ns and more */
    SP_SHARE_CLASSES
} sp_share_class;

/* What sharing the dispatches of one class has brought. */
typedef struct sp_share_trial {
    /* Of those that were shared since the last judgement: on one thread, as expected, and taken;
     * and how long a worker has been awake for them. */
    uint64_t alone_ns, taken_ns, awake_ns;
    uint64_t shared_at;    /* when the last of these has ended */
    uint32_t judgements;   /* wraps */
    uint32_t refusals;     /* the last judgements, in a row, by which it saves too little */
    uint64_t paused_until; /* 0, or when sharing is tried again */
} sp_share_trial;

/* Of the dispatches so far; of the claim's holder. */
typedef struct sp_share_history {
    uint32_t untimed;   /* dispatches that were not shared, whose time was not needed; wraps */
    bool has_sharer;    /* another thread has run tiles of the last dispatch that was shared */
    uint64_t missed_ns; /* of those that sp__queue_miss counts, but the first */
    uint64_t missed_at; /* when the last of these has ended */
    sp_share_trial trials[SP_SHARE_CLASSES];
} sp_share_history;

/* Position of the claim's holder in the records. */
typedef struct sp_cursor {
    sp_chunk *chunk;
    uint32_t offset;
    uint32_t waits_met;     /* of the header at the cursor */
    bool is_inside;         /* the header has been read and its waits are met: */
    bool is_consumer;       /* `fault` is that of the lease */
    uint32_t commands_left; /* of the submission that is entered */
    uint64_t lease;
    uint64_t thread;
    sp_fault fault;           /* if set, the rest of this submission is skipped */
    bool is_host_done;        /* the host function at the cursor has run */
    const sp_record *host;    /* that function, while the executor runs it */
    sp_fpenv fpenv;           /* of the holder's caller, while the holder is in sp__queue_drain */
    bool has_permit;          /* the dispatch at the cursor has a permit of the throttle */
    sp_fault host_fault;      /* result of the host function */
    const sp_record *in_list; /* next record of the list at the cursor, or NULL: not begun */
} sp_cursor;

typedef struct sp_command_queue {
    sp_queue base;
    SP_CACHE_ALIGNED sp_atomic_u64 word;
    /* The point that the queue is parked on: a hint for helpers, written before PARKED. A reader
     * may see the two fields of different points if the queue has parked again in between. */
    SP_ATOMIC(sp_timeline *) parked_on;
    sp_atomic_u64 parked_value;

    /* Producers. */
    SP_CACHE_ALIGNED sp_mutex lock;
    sp_chunk *tail SP_GUARDED_BY(lock);
    uint32_t tail_used SP_GUARDED_BY(lock);
    sp_chunk *pool SP_GUARDED_BY(lock); /* empty chunks */
    uint64_t last SP_GUARDED_BY(lock);  /* value of the newest submission */
    /* A ring of the unmet waits, by the value of their submissions. */
    sp_pending_wait *waits SP_GUARDED_BY(lock);
    uint32_t wait_capacity SP_GUARDED_BY(lock); /* a power of two */
    uint32_t wait_first SP_GUARDED_BY(lock);
    uint32_t wait_count SP_GUARDED_BY(lock);
    bool is_closed SP_GUARDED_BY(lock);
    bool is_batching SP_GUARDED_BY(lock);
    sp_atomic_u64 committed; /* newest flushed value, and the number of flushes: */
    sp_atomic_u64 commits;   /* statistics, they order nothing */
    /* Newest value for which a worker was woken after its publication: that worker polls this
     * queue, so no other is woken for it. Only saves wake-ups. */
    sp_atomic_u64 woken_for;
    /* Chunks of this queue. Incremented by producers, decremented by the claim's holder. */
    sp_atomic_u32 chunk_count;
    /* Empty chunks, pushed by the holder (release); producers take all of them (acquire). */
    SP_ATOMIC(sp_chunk *) spares;
    sp_atomic_u32 spare_count; /* approximate: only bounds the list */

    /* Of the claim's holder; passed on by the release and acquire of `word`. */
    SP_CACHE_ALIGNED sp_cursor cursor;
    /* Newest value whose commands have been run or issued; written by the engine. There is work if
     * less than published; on a GPU signals are for values up to this one. */
    sp_atomic_u64 drained;
    sp_waiter park;                          /* registered while parked on a point */
    sp_host_job job;                         /* posted while parked on a host function */
    struct sp_command_queue *next_throttled; /* guarded by the throttle's lock while parked there */
    /* Counters: written by the holder, read by any thread. */
    sp_atomic_u64 by_workers;
    sp_atomic_u64 by_helpers;
    sp_atomic_u64 by_host;
    sp_atomic_u64 tiles_shared;

    sp_share_history history;
    sp_tile_job tiles;
} sp_command_queue;

/* One limited quirk. Invariant: a queue is parked only while running == limit. */
typedef struct sp_throttle {
    sp_mutex lock;
    uint32_t limit;
    uint32_t running SP_GUARDED_BY(lock);
    sp_command_queue *first SP_GUARDED_BY(lock); /* parked queues, oldest first */
    sp_command_queue **end SP_GUARDED_BY(lock);
} sp_throttle;

typedef struct sp_queue_worker {
    SP_CACHE_ALIGNED sp_parker parker;
    sp_thread thread;
    sp_queue_device *device;
    uint32_t index;
    /* When it has last run a tile of another thread's dispatch, or was woken too late for one; or 0
     */
    uint64_t shared_ns;
} sp_queue_worker;

typedef struct sp_queue_device_options {
    uint32_t worker_count;  /* 1 ... SP_DEVICE_WORKERS */
    bool can_help;          /* waiting threads run commands */
    uint64_t queue_bytes;   /* of records per queue before submit is SP_BUSY */
    uint32_t max_in_flight; /* submissions per device before submit is SP_BUSY; 0: no limit */
    /* A dispatch that takes less on one thread is not shared. 0: all are, by as many as there are
     */
    uint64_t share_ns;
    /* One that takes less than that, but so much, is shared with workers that are awake; 0: none
     * is. */
    uint64_t ready_ns;
    uint64_t nap_ns; /* how long an idle worker polls before it sleeps without limit */
    const sp_queue_engine *engine;
    /* May be NULL. Called before each command; a status other than SP_OK fails the command. */
    sp_status (*before_command)(sp_queue_device *device, const char *label);
} sp_queue_device_options;

struct sp_queue_device {
    sp_dev base;
    sp_queue_device_options options;
    /* Orders queue creation and stop: a queue is closed with the others, or not created. */
    sp_mutex lock;
    bool is_closed SP_GUARDED_BY(lock);
    /* Queues by index. Published sequentially consistent, never removed before close. */
    SP_ATOMIC(sp_command_queue *) queues[SP_DEVICE_QUEUES];
    sp_atomic_u32 queue_count;
    /* Bits of workers that spin, nap or sleep. A worker sets its bit, then polls for work once
     * more; a submitter publishes, then reads the bits: both sequentially consistent. The thread
     * that clears a bit must wake that worker. */
    SP_CACHE_ALIGNED sp_atomic_u64 spinning;
    sp_atomic_u64 napping;
    sp_atomic_u64 sleeping;
    SP_CACHE_ALIGNED sp_atomic_u32
        sharing;               /* workers in dispatches of other threads, or spinning */
    sp_atomic_u32 is_stopping; /* workers end when there is no work; written once, relaxed: the
                                  token of each worker's parker comes after it */
    SP_CACHE_ALIGNED sp_atomic_u64 in_flight; /* kept only with a limit (max_in_flight) */
    /* Threads of other devices that are about to wake a worker: close waits for them. */
    sp_atomic_u32 visitors;
    sp_queue_worker *workers; /* constant until deinit */
    uint32_t worker_count;    /* running threads; only the thread that starts or stops the device */
    sp_throttle *throttles;   /* one per quirk */
};

static inline sp_command_queue *sp__command_queue(sp_queue *queue)
{
    return SP_CONTAINER_OF(queue, sp_command_queue, base);
}

static inline sp_queue_device *sp__queue_device(sp_dev *device)
{
    return SP_CONTAINER_OF(device, sp_queue_device, base);
}

static inline sp_queue_device *sp__queue_device_of(const sp_command_queue *queue)
{
    return sp__queue_device(queue->base.device);
}

/* Whether its submissions count in `in_flight`. */
static inline bool sp__queue_is_limited(const sp_command_queue *queue)
{
    return sp__queue_device_of(queue)->options.max_in_flight > 0 && !queue->base.is_unlimited;
}

/* queue_device.c */
sp_status sp__queue_device_init(sp_queue_device *device, const sp_device_vtable *vtable,
                                const sp_queue_device_options *options);
/* Stops accepting, completes all work, ends the workers. Idempotent. */
void sp__queue_device_stop(sp_dev *device);
/* Stops and frees all queues; not `device` itself. */
void sp__queue_device_deinit(sp_queue_device *device);

/* command_queue.c: the functions of the device's table */
sp_status sp__command_queue_create(sp_dev *device, uint32_t index, const sp_queue_options *options,
                                   sp_queue **out);
void sp__command_queue_destroy(sp_queue *queue);
void sp__command_queue_set_batching(sp_queue *queue, bool is_batching);
void sp__command_queue_stats(sp_queue *queue, sp_queue_stats *out);
sp_status sp__queue_submit(sp_queue *queue, const sp_submission *submission, sp_point *out);
/* For kinds whose waiting threads run commands. */
sp_status sp__queue_submit_and_run(sp_queue *queue, const sp_submission *submission, sp_point *out);
void sp__queue_flush(sp_queue *queue);
uint64_t sp__queue_last_value(sp_queue *queue);
void sp__queue_each_wait(sp_queue *queue, uint64_t after, uint64_t value, sp_point_visitor visit,
                         void *ctx);
/* Counts a flush of everything submitted so far. */
void sp__queue_note_commit(sp_command_queue *queue);
/* Refuses further submissions with SP_CLOSED and returns the last accepted value. */
uint64_t sp__command_queue_close(sp_command_queue *queue);
/* Removes the pending waits of the submission `value`, which are met. */
void sp__command_queue_forget_waits(sp_command_queue *queue, uint64_t value);
/* Returns an emptied chunk to the producers. */
void sp__queue_chunk_retire(sp_command_queue *queue, sp_chunk *chunk);

/* drain.c: the claim */
/* The kind of thread that runs a queue: one of the device's, a waiting one, or one that has just
 * submitted and issues to an engine. */
typedef enum sp_executor_kind { SP_WORKER, SP_HELPER, SP_ISSUER } sp_executor_kind;

typedef struct sp_executor {
    sp_executor_kind kind;
    uint64_t thread; /* number of the executing thread, which runs its own host functions */
    sp_thread_record *record; /* helper only */
    uint64_t until;           /* releases the claim once this value is done */
    uint32_t budget;          /* or after this many submissions */
    /* Helper only: or once this point, the awaited one, has passed. */
    sp_point awaited;
} sp_executor;

/* Whether the thread has helped for as long as it may. */
static inline bool sp__helper_is_late(const sp_thread_record *record)
{
    return SP_UNLIKELY(record->help_until_ns != 0) && sp_clock_now() >= record->help_until_ns;
}

/* Claims the queue if it is free and has work. */
bool sp__queue_claim(sp_command_queue *queue);
/* Runs a claimed queue, then releases the claim or passes it on. */
void sp__queue_drain(sp_command_queue *queue, const sp_executor *executor);
bool sp__queue_has_work(const sp_command_queue *queue);
/* Whether the queue has a holder. If not, everything that the last holder wrote is visible. */
bool sp__queue_is_claimed(const sp_command_queue *queue);
/* For engines: parks a claimed queue until its `point` has passed. True: the caller no longer has
 * the claim. */
bool sp__queue_park_on(sp_command_queue *queue, sp_point point);
/* For engines: RUNNING -> PARKED; the awaited party must call sp__queue_unpark. */
void sp__queue_become_parked(sp_command_queue *queue);
/* PARKED -> FREE; wakes a worker if there is work. */
void sp__queue_unpark(sp_command_queue *queue);
/* RUNNING -> FREE with work left. Wakes a worker: producers that saw RUNNING did not. */
void sp__queue_give_up_with_work(sp_command_queue *queue);

/* host_function.c: host functions of a claimed queue. True once the function of `record` has run.
 * It runs inline if this thread submitted it and is in a bare wait (sp__point_wait_bare); otherwise
 * the queue is parked until the host executor has run it: false. */
bool sp__queue_host_is_done(sp_command_queue *queue, const sp_record *record,
                            const sp_executor *executor);

/* execute.c: one command of a claimed queue. `slots` are the bindings of the list that contains the
 * record, or NULL. Returns SP_NO_FAULT on success. */
sp_fault sp__queue_execute(sp_command_queue *queue, const sp_record *record,
                           const sp_binding *slots);
/* Lets the engine execute a whole list; false if it must be executed command by command. */
bool sp__queue_execute_list(sp_command_queue *queue, const sp_record *record, sp_fault *fault);
/* Poisons everything that the command would have written. */
void sp__queue_skip(const sp_record *record, const sp_binding *slots, sp_fault fault);
/* The fault of any poisoned storage that the bindings read, or SP_NO_FAULT. */
sp_fault sp__queue_poison_of(const sp_binding *bindings, uint32_t count);
/* Clears the poison of storages that the bindings overwrite as a whole. */
void sp__queue_clear_poison(const sp_binding *bindings, uint32_t count);

/* tiles.c: the dispatch in queue->tiles */
/* `tile_ns`: how long a tile took the last time, 0: not known. The call writes it. */
sp_status sp__queue_run_tiles(sp_command_queue *queue, sp_atomic_u32 *tile_ns);
/* Tiles of the running dispatch, if there is one, that no thread has claimed; a hint. */
uint32_t sp__queue_tiles_left(const sp_command_queue *queue);
/* Whether a thread may run another tile of a dispatch that it has joined. */
typedef bool sp_sharer_test(const sp_queue_device *device);
/* Joins the running dispatch, if there is one, until its last tile, or until `may_go_on`, which may
 * be NULL, says no. True if any tile was run. */
bool sp__queue_join_tiles(sp_command_queue *queue, sp_sharer_test *may_go_on);

/* sharing.c */
/* Wakes workers for so many tiles of the running dispatch that the caller may not come to, where
 * they have cores. */
void sp__queue_wake_sharers(sp_command_queue *queue, uint32_t tiles);
/* Whether tiles that take so long on one thread are shared: a short dispatch only while many cores
 * are free, a very short one only if a worker is awake for it besides; none in a pause. */
bool sp__queue_shares(const sp_command_queue *queue, uint64_t ns);
/* Whether the executor has to know how long such tiles take that it runs alone: always for
 * sp__queue_miss, now and then for later decisions. */
bool sp__queue_times_tiles(sp_command_queue *queue, uint64_t ns);
/* The executor has run such tiles alone. Where that happens again and again, and one such dispatch
 * does not wake a sleeping worker, it wakes one, which spins for the next ones. */
void sp__queue_miss(sp_command_queue *queue, uint64_t ns);
/* Whether tiles that take so long on one thread are shared with workers that are awake only. */
bool sp__queue_is_very_short(const sp_command_queue *queue, uint64_t ns);
/* Whether the running dispatch, if there is one, has unclaimed tiles, and a worker a core for them.
 */
bool sp__queue_has_tiles_to_share(const sp_command_queue *queue);
/* For a worker: joins the running dispatch as long as it has a core. True if any tile was run. */
bool sp__queue_share_tiles(sp_command_queue *queue);
/* For a worker that has found nothing: waits a little for the next dispatch. True if it was woken.
 */
bool sp__queue_spin(sp_queue_worker *worker);

/* How long a worker spins after the last tile that it has run, or a wake-up that came too late. */
#define SP_SHARE_SPIN_NS 100000u

/* share_trial.c */
/* Tiles that take `alone_ns` on one thread were shared in `taken_ns`. If sharing such ones saves
 * too little it pauses, the longer the more often. */
void sp__queue_judge_sharing(sp_command_queue *queue, uint64_t alone_ns, uint64_t taken_ns);
bool sp__share_trial_is_paused(const sp_share_trial *trial);

/* workers.c */
sp_status sp__queue_workers_start(sp_queue_device *device);
/* Ends and joins the threads; their records remain valid for late wake-ups. */
void sp__queue_workers_stop(sp_queue_device *device);
/* After a submit: wakes a sleeping worker if none naps, so that the work is found within a nap.
 * True if it woke one. */
bool sp__queue_notify(sp_queue_device *device);
/* Wakes up to `count` idle workers at once; true if any. */
bool sp__queue_wake(sp_queue_device *device, uint32_t count);
/* Wakes up to `count` workers that spin; returns their number. */
uint32_t sp__queue_wake_spinning(sp_queue_device *device, uint32_t count);
/* Whether there is anything to do for a worker. */
bool sp__queue_device_has_work(sp_queue_device *device);
/* `help` of the device's table. */
void sp__queue_help(sp_queue *queue, uint64_t value);
/* Runs a claimed queue up to the value, on the calling thread, which waits for it. */
void sp__queue_run_claimed(sp_command_queue *queue, uint64_t value, sp_thread_record *record);
/* For devices with an issuing engine: issues all commands that can be issued, on the calling
 * thread. A waiting thread passes its record, and runs its own host functions. */
void sp__queue_issue(sp_command_queue *queue, sp_thread_record *record);

/* throttle.c: quirks that limit the number of commands running at once */
sp_status sp__queue_throttles_init(sp_queue_device *device);
void sp__queue_throttles_deinit(sp_queue_device *device);
/* True: the command has a permit; call leave afterwards. False: the queue is parked, the claim is
 * gone; it is unparked, with cursor.has_permit, when there is a permit. */
bool sp__queue_throttle_enter(sp_command_queue *queue, uint32_t quirk);
void sp__queue_throttle_leave(sp_queue_device *device, uint32_t quirk);

/* Common entries of the tables of kinds with command queues; a kind adds its row, `close`, and its
 * memory. */
#define SP_QUEUE_VTABLE                                                                            \
    .stop = sp__queue_device_stop, .queue_create = sp__command_queue_create,                       \
    .queue_destroy = sp__command_queue_destroy,                                                    \
    .queue_set_batching = sp__command_queue_set_batching, .queue_stats = sp__command_queue_stats,  \
    .submit = sp__queue_submit, .flush = sp__queue_flush, .help = sp__queue_help,                  \
    .last_value = sp__queue_last_value, .each_wait = sp__queue_each_wait,                          \
    .list_create = sp__queue_list_create, .list_retain = sp__queue_list_retain,                    \
    .list_release = sp__queue_list_release

/* list.c: records in one block, terminated by an end mark, immutable once created */
struct sp_list {
    /* References of the creator and of every submission that has not completed. */
    sp_atomic_u32 references;
    /* An engine's own form of the list, and its destructor; NULL if none. Constant. */
    void *issued;
    void (*issued_free)(void *issued);
    _Alignas(16) unsigned char bytes[];
};

const sp_record *sp__queue_list_records(const sp_list *list);
sp_status sp__queue_list_create(sp_dev *device, const sp_command *commands, uint32_t command_count,
                                uint32_t slot_count, sp_list **out);
void sp__queue_list_retain(sp_list *list);
void sp__queue_list_release(sp_list *list);

#endif
