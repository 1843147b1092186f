/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of batch queues: rows of small_model, each with the bits that a run alone gives. */
#ifndef SP_TESTS_BATCH_QUEUE_FIXTURE_H
#define SP_TESTS_BATCH_QUEUE_FIXTURE_H

#include <streampool/batch.h>

#include "combining_fixture.h"

typedef struct queued_row {
    float x[SMALL_IN], y[SMALL_OUT], expected[SMALL_OUT];
    sp_future future;
} queued_row;

/* Rows `first` to `first + count - 1`, computed alone. */
void queued_rows_init(sp_model model, queued_row *rows, uint32_t first, uint32_t count);
sp_status queued_row_submit(sp_batch_queue queue, queued_row *row);
sp_status queued_row_submit_with(sp_batch_queue queue, const sp_run_options *options,
                                 queued_row *row);
void queued_rows_submit(sp_batch_queue queue, queued_row *rows, uint32_t count);
/* Waits for the row, which must have its bits. */
void queued_row_finish(queued_row *row);
/* Whether its output has the bits of a run alone. */
bool queued_row_is_right(const queued_row *row);
void queued_rows_finish(queued_row *rows, uint32_t count);

sp_batch_queue queue_open(sp_model model, const sp_batch_queue_options *options);
sp_batch_queue_statistics queue_statistics(sp_batch_queue queue);
/* So many batches of `rows` rows. */
uint64_t queue_batches_of(const sp_batch_queue_statistics *s, uint32_t rows);
/* Yields until so many requests wait. */
void queue_await_waiting(sp_batch_queue queue, uint32_t waiting);
/* All requests that were accepted have ended, `done` of them well, and none waits. */
void queue_check_done(sp_batch_queue queue, uint64_t done);

/* small_model with its larger plans: all of them if STREAMPOOL_BATCHING is `always`. */
sp_model queue_model(void);

/* `threads` threads submit bursts of their own rows to a queue of a model, `rounds` times. */
typedef struct queue_load {
    sp_model model;
    sp_batch_queue queue;
    uint64_t rounds;
} queue_load;
#define QUEUE_LOAD_BURST 24
void queue_load_run(const queue_load *load, uint32_t threads);

#endif
