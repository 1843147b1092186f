/* SPDX-License-Identifier: Apache-2.0 */
#include "runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "failure.h"
#include "process.h"
#include "sizes.h"
#include "source.h"
#include "tensors.h"

sp_status runner_outputs_create(const model_runner *runner, sp_host_tensor **out)
{
    *out = calloc((size_t)runner->output_count + 1, sizeof **out);
    if (*out != NULL) return SP_OK;
    return fail(SP_OUT_OF_MEMORY, "no memory for %u outputs", runner->output_count);
}

void runner_outputs_free(const model_runner *runner, sp_host_tensor *outputs)
{
    if (outputs == NULL) return;
    for (uint32_t i = 0; i < runner->output_count; i++) sp_host_tensor_free(&outputs[i]);
    free(outputs);
}

sp_status runner_load(const model_arguments *arguments, model_runner *out)
{
    model_source source;
    sp_model_info info;
    *out = (model_runner){0};
    const uint64_t start_ns = clock_ns();
    sp_status status = source_open(arguments->path, &source);
    if (status == SP_OK) {
        status = source_load(&source, &arguments->device.options, &out->model);
    }
    source_close(&source);
    if (status != SP_OK) return status;
    out->load_ns = clock_ns() - start_ns;
    CALL(sp_model_get_info(out->model, &info));
    out->output_count = info.output_count;
    return SP_OK;
}

void runner_close(model_runner *runner)
{
    runner_outputs_free(runner, runner->expected);
    inputs_close(&runner->inputs);
    sp_model_release(runner->model);
    *runner = (model_runner){0};
}

/* ---- inputs ---- */

static sp_status check_made_up(const model_inputs *inputs, uint64_t max_bytes)
{
    uint64_t bytes = 0; /* each has at most 2^40 */
    for (uint32_t i = 0; i < inputs->count; i++) {
        bytes += inputs->tensors[i].data == NULL ? inputs->tensors[i].bytes : 0;
    }
    if (max_bytes == 0 || bytes <= max_bytes) return SP_OK;
    return fail(SP_EXHAUSTED,
                "the generated inputs would have %llu bytes; --max-memory allows %llu",
                (unsigned long long)bytes, (unsigned long long)max_bytes);
}

static bool has_all_data(const model_inputs *inputs)
{
    for (uint32_t i = 0; i < inputs->count; i++) {
        if (inputs->tensors[i].data == NULL) return false;
    }
    return true;
}

/* Checks the first plan before inputs of any size are generated. With the data of all inputs the
 * check could be a run: then the run itself checks. */
static sp_status check_plan(const model_arguments *arguments, const model_runner *runner)
{
    sp_host_tensor *outputs;
    if (has_all_data(&runner->inputs)) return SP_OK;
    TRY(runner_outputs_create(runner, &outputs));
    const sp_status status =
        from_library(sp_model_infer(runner->model, runner->inputs.tensors, runner->inputs.count,
                                    outputs, runner->output_count));
    free(outputs);
    if (status != SP_OK && status != SP_UNSUPPORTED) return status;
    return check_made_up(&runner->inputs, arguments->device.options.max_run_bytes);
}

sp_status runner_open_inputs(const model_arguments *arguments, model_runner *runner)
{
    return inputs_open(runner->model, arguments, &runner->inputs);
}

/* Sizes are chosen by the first partial plan; a later one, which depends on values, may refuse
 * them. */
sp_status runner_run_first(const model_arguments *arguments, model_runner *runner)
{
    uint64_t start_ns = clock_ns();
    TRY(check_plan(arguments, runner));
    runner->first_run_ns = clock_ns() - start_ns; /* it has made the plan, unless it did nothing */
    TRY(inputs_fill(&runner->inputs));
    TRY(runner_outputs_create(runner, &runner->expected));
    start_ns = clock_ns();
    const sp_status status = runner_run(runner, runner->expected);
    runner->first_run_ns += clock_ns() - start_ns;
    if (status != SP_MISMATCH || !sizes_are_chosen(&runner->inputs)) return status;
    char message[FAILURE_BYTES - 64];
    snprintf(message, sizeof message, "%s", failure_message());
    return fail(status, "%s (with chosen sizes; set others by --dim and --shape)", message);
}

/* ---- runs ---- */

sp_status runner_run(const model_runner *runner, sp_host_tensor *outputs)
{
    return from_library(sp_model_run(runner->model, runner->inputs.tensors, runner->inputs.count,
                                     outputs, runner->output_count));
}

sp_status runner_submit(const model_runner *runner, sp_batch_queue queue, sp_host_tensor *outputs,
                        sp_future *out)
{
    const model_inputs *inputs = &runner->inputs;
    if (queue.bits == 0) {
        return from_library(sp_model_submit(runner->model, inputs->tensors, inputs->count, outputs,
                                            runner->output_count, out));
    }
    return from_library(sp_batch_queue_submit(queue, NULL, inputs->tensors, inputs->count, outputs,
                                              runner->output_count, out));
}

/* Sizes that follow from values are known, and their memory is the caller's, from here on. */
sp_status runner_finish(const model_runner *runner, sp_future future, sp_host_tensor *outputs)
{
    sp_status status = from_library(sp_future_wait(future));
    for (uint32_t i = 0; status == SP_OK && i < runner->output_count; i++) {
        status = from_library(sp_future_take_output(future, i, &outputs[i]));
    }
    sp_future_release(future);
    return status;
}

bool runner_is_equal(const model_runner *runner, const sp_host_tensor *outputs)
{
    for (uint32_t i = 0; i < runner->output_count; i++) {
        const sp_host_tensor *expected = &runner->expected[i];
        if (outputs[i].bytes != expected->bytes) return false;
        if (expected->bytes == 0) continue;
        if (memcmp(outputs[i].data, expected->data, expected->bytes) != 0) return false;
    }
    return true;
}
