/* SPDX-License-Identifier: Apache-2.0 */
/* Requests by every API, with a ledger: each has one outcome. Shared by the two files of
 * stress_requests. */
#ifndef SP_TESTS_STRESS_REQUESTS_H
#define SP_TESTS_STRESS_REQUESTS_H

#include "stress_queue.h"

enum { THREADS = 31, BURST = 12, ROWS = 32, TOKENS = 4, LEFT = 4 };

typedef enum target {
    TARGET_TABLE, /* on cpu; requests with an index out of range fail */
    TARGET_SMALL, /* on cpu */
    TARGET_GUEST, /* on a null device whose commands fail, which is lost or closes at any time */
    TARGET_COUNT
} target;

typedef enum outcome {
    OUTCOME_DONE,
    OUTCOME_FAILED,
    OUTCOME_CANCELLED,
    OUTCOME_EXPIRED,
    OUTCOME_REFUSED, /* by the call */
    OUTCOME_COUNT
} outcome;

/* A model, and a queue for it. */
typedef struct served {
    sp_model model;
    sp_batch_queue queue;
} served;

typedef struct storm {
    served served[TARGET_COUNT]; /* but for the guest */
    sp_mutex guest_lock;
    served guest SP_GUARDED_BY(guest_lock);
    float expected[ROWS][SMALL_OUT];
    uint64_t requests;            /* of each thread */
    sp_atomic_u64 tokens[TOKENS]; /* a thread that finds one cancelled replaces it */
    sp_atomic_u32 left;           /* threads that have made their requests */
    sp_atomic_u64 outcomes[TARGET_COUNT][OUTCOME_COUNT];
    sp_atomic_u64 made;      /* requests */
    sp_atomic_u64 callbacks; /* registered */
    sp_atomic_u64 called;
    sp_atomic_u64 guests, forks; /* figures */
} storm;

/* Neither moved nor used again before its future is done. */
typedef struct request {
    storm *all;
    target target;
    served served; /* with references of the request's */
    uint32_t row;  /* of the small model */
    int64_t index; /* of the table */
    bool has_wrong_shape;
    float x[SMALL_IN], y[SMALL_OUT];
    bool has_callback;
    uint64_t in_callback; /* what its callback does */
    sp_atomic_u32 calls;  /* of its callback */
    sp_future future;     /* zero: the call refused it, or has run it */
} request;

void request_draw(request *r, storm *all, uint64_t *random);
/* On this thread, by sp_model_run_with, with its outcome. */
void request_run(request *r, uint64_t *random);
/* By sp_model_submit_with, or through the target's queue. */
void request_submit(request *r, bool is_queued, uint64_t *random);
/* Waits for a submitted one, with its outcome; nothing for the others. */
void request_end(request *r);
/* `count` requests for one target, by one call of sp_batch_inference. */
void requests_infer(request *requests, uint32_t count, uint64_t *random);

#endif
