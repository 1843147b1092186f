/* SPDX-License-Identifier: Apache-2.0 */
/* The world of subject_batch_queue.c: a batch queue of a model with one run slot, and requests that
 * add 1 to a number. Slots, batches and the queue are real; plans and their devices are not needed.
 */
#ifndef SP_SUBJECTS_BATCH_QUEUE_WORLD_H
#define SP_SUBJECTS_BATCH_QUEUE_WORLD_H

#include "batches_world.h"

#include "batch/batch_queue.h"

enum { SP_QUEUE_WORLD_RUNS = 3 };

/* A request. Plain fields belong to the party that has the run. */
typedef struct sp_queue_world_run {
    sp_rt_future run;
    uint32_t input, output, ends;
    const void *inputs[1];
    void *outputs[1];
} sp_queue_world_run;

typedef struct sp_queue_world {
    sp_batches_world base;
    sp_rt_device *device;
    sp_rt_model model;
    sp_plan_entry entry;
    sp_rt_batch_queue *queue;
    sp_batch_queue handle;
    sp_queue_world_run requests[SP_QUEUE_WORLD_RUNS];
    sp_atomic_u32 batches; /* of several requests */
    sp_status status;      /* of a thread, which alone writes it */
    bool waits_for_one;    /* a batch that fails waits for the end of requests[1] */
    sp_atomic_u32 ended[SP_QUEUE_WORLD_RUNS]; /* release: the run's fields */
} sp_queue_world;

/* Made anew by each run of a subject. */
extern sp_queue_world sp__queue_world;

/* One slot; buckets for two and, if `rows` is 3, for three requests. */
void sp__queue_world_begin(const sp_batch_queue_options *options, uint32_t rows);
/* The first `count` requests have ended, once each, and nothing waits or is in use. */
void sp__queue_world_end(uint32_t count);
/* Adds the request to the queue. */
void sp__queue_world_add(uint32_t i);
/* Sleeps until the request has ended. */
void sp__queue_world_await(uint32_t i);

#endif
