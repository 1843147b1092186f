/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of models that run in several plans: inputs by a number, and the comparison of outputs. */
#ifndef SP_TESTS_PARTIAL_CASES_H
#define SP_TESTS_PARTIAL_CASES_H

#include <streampool/future.h>

#include "partial_fixture.h"

/* Floats: larger than the values of inputs that belong to the key of a plan. */
enum { CASE_COUNT = 200, CASE_OUTPUTS = 2 };

typedef enum case_kind {
    CASE_FOUND, /* y: the elements of x that are not 0, doubled; s: how many */
    CASE_LOOP,  /* y: x after as many steps as it has such elements; s: after each step */
    CASE_IF,    /* y: by the sign of the sum of x */
    CASE_KINDS
} case_kind;

sp_model partial_model(case_kind kind, const sp_model_options *options);
uint32_t partial_output_count(case_kind kind);

typedef struct partial_case {
    case_kind kind;
    float x[CASE_COUNT];
    sp_host_tensor input;
} partial_case;

/* The same seed gives the same values. */
void partial_case_make(partial_case *c, case_kind kind, uint64_t seed);

/* All outputs, in memory of the library or, with zeroed tensors, left to it. */
sp_status partial_case_run(sp_model model, const partial_case *c, sp_host_tensor *outputs);
sp_status partial_case_submit(sp_model model, const partial_case *c, sp_host_tensor *outputs,
                              sp_future *out);
/* Takes all outputs of a future that is done. */
void partial_case_take(const partial_case *c, sp_future future, sp_host_tensor *out);

/* Type, shape and bits are equal. */
bool partial_is_same(const partial_case *c, const sp_host_tensor *a, const sp_host_tensor *b);
void partial_free(const partial_case *c, sp_host_tensor *outputs);

/* Waits, takes and compares with a run; releases the future. */
void partial_case_check(sp_model model, const partial_case *c, sp_future future);

#endif
