/* SPDX-License-Identifier: Apache-2.0 */
/* Batch queues: many runs of one model in flight from few threads, computed as batches.
 *
 * A run that is submitted to a queue (a request) waits there. The oldest one leads: when the device
 * has a run slot for it, it is computed together with others of the same input shapes, as many as
 * wait, up to `max_batch`. A request alone on an idle device runs at once, unless the queue has a
 * delay. The result of each has the same bits as sp_model_run's.
 *
 * Requests are computed together where that is faster, which is measured once for each set of input
 * shapes, in the background; until then each runs alone. STREAMPOOL_BATCHING=off merges none. */
#ifndef STREAMPOOL_BATCH_H
#define STREAMPOOL_BATCH_H

#include <streampool/model.h>

SP_EXTERN_C_BEGIN

typedef struct sp_batch_queue {
    uint64_t bits;
} sp_batch_queue;

typedef struct sp_batch_queue_options {
    uint32_t max_batch; /* most requests of a batch, at most 64; 0: 64 */
    /* How long the oldest request waits for others. A full batch starts at once, and so do requests
     * that no batch is made of, and those of a full queue. 0: not at all: requests gather only
     * while others are computed. */
    int64_t max_delay_ns;
    /* Batches in flight, at most 64; 0: as many as the device computes at the same time, 8 at most.
     * Of more than that the others wait for a run slot. */
    uint32_t workers;
    uint32_t max_waiting;  /* requests that wait in the queue, at most 524,288; 0: 32,768 */
    bool refuse_when_full; /* a submit is SP_BUSY then; else it waits until there is room */
} sp_batch_queue_options;

/* A queue for a model, which may be released before it. NULL options are all defaults.
 * Errors: SP_INVALID for an option out of its range; SP_EXHAUSTED if all queues of the process have
 * more than 16,384 workers. */
SP_API sp_status sp_batch_queue_create(sp_model model, const sp_batch_queue_options *options,
                                       sp_batch_queue *out);
/* One more reference. SP_EXHAUSTED past 65,535. */
SP_API sp_status sp_batch_queue_retain(sp_batch_queue queue);
/* Drops a reference. Requests inside complete; after the last release they wait for no others. Does
 * nothing for the zero handle. */
SP_API sp_status sp_batch_queue_release(sp_batch_queue queue);

/* Submits a request; *out is done when it is (future.h). What sp_model_submit says of tensors and
 * their memory holds here too. Requests of one queue that are not merged start in order of arrival.
 *
 * If `max_waiting` requests wait, the call waits until one of them starts, in order of arrival, or
 * until the time-out or the cancel token of the options; it is SP_BUSY if the queue refuses, if
 * `no_wait` is set, and inside host functions and callbacks, where it never waits. There a wait for
 * the future computes the request on the calling thread if it is still queued. NULL options are
 * all defaults. Requests of high priority lead before others, and wait for none.
 *
 * Errors of the call are those of sp_model_submit_with: a request with a wrong tensor is refused by
 * itself. What fails later is the future's status: if a batch fails each of its requests runs
 * alone, so that a failure is that of the request that causes it. A request that is past its
 * time-out is SP_TIMEOUT when its turn comes. A request that computes in a batch with others is not
 * cancelled.
 *
 * A model whose shapes, branches or loops follow from values that it computes is not merged: its
 * requests are submitted as by sp_model_submit_with, and are not in the statistics. */
SP_API sp_status sp_batch_queue_submit(sp_batch_queue queue, const sp_run_options *options,
                                       const sp_host_tensor *inputs, uint32_t input_count,
                                       sp_host_tensor *outputs, uint32_t output_count,
                                       sp_future *out);

/* The requests that are in the queue now wait for no others: max_delay_ns is over for them. */
SP_API sp_status sp_batch_queue_flush(sp_batch_queue queue);

/* Replaces all options; NULL: by the defaults. Requests that wait are treated by the new ones.
 * Fewer workers take effect as batches end. Errors: as sp_batch_queue_create. */
SP_API sp_status sp_batch_queue_configure(sp_batch_queue queue,
                                          const sp_batch_queue_options *options);

/* Numbers of requests that batches are made of. */
#define SP_BATCH_QUEUE_SIZES 12

/* Since the creation. submitted = done + failed + cancelled + expired + waiting + in_flight. */
typedef struct sp_batch_queue_statistics {
    uint64_t submitted; /* requests that were accepted */
    uint64_t done, failed;
    uint64_t cancelled, expired; /* SP_CANCELLED, SP_TIMEOUT */
    uint64_t refused;            /* SP_BUSY, since max_waiting requests waited */
    /* What was computed: as batches, of one request too, and requests in them; also those that
     * failed, or were cancelled, while they computed. */
    uint64_t batches, rows;
    struct {
        uint32_t rows;
        uint64_t batches; /* of so many rows */
    } by_rows[SP_BATCH_QUEUE_SIZES];
    uint32_t waiting;   /* now */
    uint32_t in_flight; /* now: started, and not done */
    /* From the submit to the start of a request, of all that have started. */
    uint64_t total_wait_ns, longest_wait_ns;
} sp_batch_queue_statistics;

/* The queue's statistics: its counts of requests are of one moment, batches and rows are read
 * afterwards. */
SP_API sp_status sp_batch_queue_get_statistics(sp_batch_queue queue,
                                               sp_batch_queue_statistics *out);

/* One run of sp_batch_inference. The arrays are as for sp_model_run. */
typedef struct sp_inference {
    const sp_host_tensor *inputs;
    sp_host_tensor *outputs;
    uint32_t input_count;
    uint32_t output_count;
    sp_status status; /* written by the call */
} sp_inference;

/* Runs the model on `count` requests and waits for all: as a queue of its own with default options
 * would, a bounded number in flight. The results and the status of each are written where the
 * request has them. Returns SP_OK, or the status of the first request, by index, that failed, with
 * its message; the others are computed all the same. Outputs that the library has allocated are the
 * caller's to free, those of a failed request too.
 * Errors of the call itself, with every status set: those of sp_batch_queue_create. */
SP_API sp_status sp_batch_inference(sp_model model, sp_inference *requests, uint32_t count);

SP_EXTERN_C_END

#endif
