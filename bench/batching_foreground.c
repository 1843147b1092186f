/* SPDX-License-Identifier: Apache-2.0 */
#include "batching_foreground.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/thread.h"

/* Between two runs of the main thread. */
#define PAUSE_NS 2000000u

typedef struct foreground {
    const model_runner *runner;
    sp_host_tensor *outputs;
    sp_atomic_u32 is_over; /* relaxed: the join orders the rest */
    sp_status status;
    char message[FAILURE_BYTES]; /* of a failure */
    load_result result;
} foreground;

static sp_status run_timed(foreground *self)
{
    const sp_run_options options = {.priority = SP_PRIORITY_HIGH};
    const model_inputs *inputs = &self->runner->inputs;
    const uint64_t start = sp_clock_now();
    CALL(sp_model_run_with(self->runner->model, &options, inputs->tensors, inputs->count,
                           self->outputs, self->runner->output_count));
    latencies_add(&self->result.latencies, sp_clock_now() - start);
    if (runner_is_equal(self->runner, self->outputs)) return SP_OK;
    return fail(SP_INTERNAL, "a run of the main thread differs in bits from the first run");
}

static void foreground_main(void *arg)
{
    foreground *self = arg;
    while (self->status == SP_OK && sp_load_relaxed(&self->is_over) == 0) {
        self->status = run_timed(self);
        sp_clock_sleep(PAUSE_NS);
    }
    if (self->status != SP_OK) {
        snprintf(self->message, sizeof self->message, "%s", failure_message());
    }
}

/* The main thread's part, while the callers of the background run on threads of theirs. */
static sp_status both_run(foreground *self, const window *asked, const target *background,
                          window_result *out)
{
    sp_thread thread;
    CALL(sp_thread_create(&thread, "main thread", foreground_main, self));
    const sp_status status = window_callers(asked, background, 1, out);
    sp_store_relaxed(&self->is_over, 1);
    sp_thread_join(&thread);
    TRY(status);
    if (self->status != SP_OK) return fail(self->status, "%s", self->message);
    window_figures_fill(&self->result, &out->figures[1]);
    return SP_OK;
}

sp_status window_foreground(const window *asked, const target *background, const subject *model,
                            window_result *out)
{
    foreground *self = calloc(1, sizeof *self);
    if (self == NULL) return fail(SP_OUT_OF_MEMORY, "no memory for a histogram");
    self->runner = &model->runner;
    sp_status status = runner_outputs_create(self->runner, &self->outputs);
    if (status == SP_OK) status = both_run(self, asked, background, out);
    runner_outputs_free(self->runner, self->outputs);
    free(self);
    return status;
}
