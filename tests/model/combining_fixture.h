/* SPDX-License-Identifier: Apache-2.0 */
/* Runs that wait for a run slot, at will: the test holds the slots, callers queue, and the test
 * gives the slots back. Larger plans are built when a test asks for them, never beside it. */
#ifndef SP_TESTS_COMBINING_FIXTURE_H
#define SP_TESTS_COMBINING_FIXTURE_H

#include <streampool/model.h>

#include "exec/model_object.h"
#include "run_fixture.h"

/* STREAMPOOL_BATCHING is `always`: whether runs are merged does not depend on measured times. */
bool combining_is_certain(void);

/* All run slots of a model's device, acquired by the test's thread; and a hold on the model. */
typedef struct held_slots {
    sp_rt_model *model;
    sp_run_slots *slots;
    uint32_t count;
} held_slots;

held_slots slots_hold(sp_model model);
/* Gives one back, or all that are held, with the hold on the model. */
void slots_give_one(held_slots *held);
void slots_give(held_slots *held);
/* Until so many runs, or more, wait for a slot. */
void slots_await(const held_slots *held, uint32_t waiting);

/* Lets runs with these inputs find all slots taken until the model asks for larger plans. */
void combining_request(sp_model model, const sp_host_tensor *inputs, uint32_t count);
/* The same, and waits until they are built. Returns how many there are. */
uint32_t combining_prepare(sp_model model, const sp_host_tensor *inputs, uint32_t count);
/* Builds those of the plan that was built last, without such runs. */
uint32_t combining_build(sp_model model);
uint32_t combining_buckets(sp_model model); /* of the plan that was built last */
uint32_t combining_batches(sp_model model); /* idle batches of these */

/* The runs in batches, and batches, if `callers` runs of one group wait and one slot is given back:
 * each batch is the largest bucket that its lead's share fills. */
typedef struct merged_runs {
    uint64_t batches, runs;
} merged_runs;
merged_runs merged_expected(uint32_t callers, uint32_t slots);
merged_runs merged_of(sp_model model);
/* Since `before`. */
merged_runs merged_since(sp_model model, merged_runs before);

/* y[n,3] = table[x[n]], a table of 5 rows; an index out of range fails the run. */
sp_model table_model(const sp_model_options *options);
#define TABLE_ROWS 5
#define TABLE_WIDTH 3
sp_host_tensor table_input(const int64_t *index);
/* Whether the outputs of a run with this index are right. */
bool table_is_right(int64_t index, const float *y);

/* y = Tanh(x[n,3] * k[3]), of an x[n,4]: k has no rows, and its values are no part of the plan's
 * key. */
sp_model factors_model(void);

/* y = Neg(Tanh(x)) of x[n,4]: devices with memory of their own have its kernels. */
sp_model plain_model(const sp_model_options *options);

/* y = Abs(Neg(x)) of x[1,w]: a plan for each w. */
sp_model width_model(void);

/* y = x of x[n,4], by 60 products with a permutation, one after the other: two rows take little
 * more time than one, so that batches save something on any machine. */
sp_model products_model(void);
#define PRODUCTS_WIDTH 4

#endif
