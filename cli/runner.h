/* SPDX-License-Identifier: Apache-2.0 */
/* A model that is ready to be run by any number of threads: loaded, with its inputs, and with the
 * outputs of a first run, which every later run has to equal. */
#ifndef SP_CLI_RUNNER_H
#define SP_CLI_RUNNER_H

#include <stdbool.h>

#include <streampool/batch.h>
#include <streampool/future.h>
#include <streampool/model.h>

#include "inputs.h"

/* Zeroed: nothing to close. */
typedef struct model_runner {
    sp_model model;
    model_inputs inputs;
    sp_host_tensor *expected; /* of the first run */
    uint32_t output_count;
    uint64_t load_ns;
    uint64_t first_run_ns; /* the plan included */
} model_runner;

/* Loads the model on the device that the arguments have opened. End with runner_close, also after a
 * failure. */
sp_status runner_load(const model_arguments *arguments, model_runner *out);
/* Reads the inputs and chooses sizes; then generates the rest and makes the first run. */
sp_status runner_open_inputs(const model_arguments *arguments, model_runner *runner);
sp_status runner_run_first(const model_arguments *arguments, model_runner *runner);
void runner_close(model_runner *runner);

/* Outputs of a thread: zeroed, the first run allocates their memory, later ones use it again. */
sp_status runner_outputs_create(const model_runner *runner, sp_host_tensor **out);
void runner_outputs_free(const model_runner *runner, sp_host_tensor *outputs);

/* Any thread. */
sp_status runner_run(const model_runner *runner, sp_host_tensor *outputs);
/* The same in two steps, the first through the queue unless it is the zero handle. The future is
 * the second one's, which has to follow a success of the first. */
sp_status runner_submit(const model_runner *runner, sp_batch_queue queue, sp_host_tensor *outputs,
                        sp_future *out);
sp_status runner_finish(const model_runner *runner, sp_future future, sp_host_tensor *outputs);
/* Do the outputs have the sizes and bits of the first run's? */
bool runner_is_equal(const model_runner *runner, const sp_host_tensor *outputs);

#endif
