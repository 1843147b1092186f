/* SPDX-License-Identifier: Apache-2.0 */
#include "batching_rows.h"

#include <stdlib.h>
#include <string.h>

#include "batch/batch_measure.h"
#include "exec/run_ports.h"
#include "failure.h"

/* ---- the caller's batch ---- */

/* Where the rows are in a tensor of a batch: pieces of `chunk` bytes of all rows alternate. */
typedef struct pieces {
    uint64_t count, chunk; /* of one row */
} pieces;

static pieces pieces_of(const sp_host_tensor *row, const sp_batch_axis *axis)
{
    const uint64_t chunk = axis->inner * sp_dtype_bytes(row->dtype);
    return (pieces){.count = chunk > 0 ? row->bytes / chunk : 0, .chunk = chunk};
}

static sp_status input_make(const sp_host_tensor *row, const sp_batch_axis *axis, uint32_t rows,
                            sp_host_tensor *out)
{
    *out = *row;
    out->data = NULL;
    if (axis->has_rows && axis->axis < 0) {
        return fail(SP_UNSUPPORTED, "the rows of an input share a dimension with other elements");
    }
    if (axis->has_rows) {
        out->shape[axis->axis] *= rows;
        out->bytes *= rows;
    }
    out->data = malloc(out->bytes + 1);
    if (out->data == NULL) return fail(SP_OUT_OF_MEMORY, "no memory for a batch of inputs");
    if (!axis->has_rows) {
        memcpy(out->data, row->data, row->bytes);
        return SP_OK;
    }
    const pieces p = pieces_of(row, axis);
    for (uint64_t i = 0; i < p.count * rows; i++) {
        const uint64_t from = i / rows;
        memcpy((char *)out->data + i * p.chunk, (char *)row->data + from * p.chunk, p.chunk);
    }
    return SP_OK;
}

static bool has_row(const sp_host_tensor *batch, const sp_host_tensor *row,
                    const sp_batch_axis *axis, uint32_t rows)
{
    const pieces p = pieces_of(row, axis);
    if (!axis->has_rows || batch->bytes != row->bytes * rows) return false;
    for (uint64_t i = 0; i < p.count * rows; i++) {
        const char *want = (const char *)row->data + i / rows * p.chunk;
        if (memcmp((const char *)batch->data + i * p.chunk, want, p.chunk) != 0) return false;
    }
    return true;
}

sp_status rows_run(rows_case *self)
{
    return from_library(sp_model_run(self->model->runner.model, self->inputs, self->input_count,
                                     self->outputs, self->model->runner.output_count));
}

static sp_status rows_fill(rows_case *self, sp_batch_axis *input_axes, sp_batch_axis *output_axes)
{
    const model_runner *runner = &self->model->runner;
    const model_inputs *inputs = &runner->inputs;
    sp_model_batching verdict;
    CALL(sp_model_get_batching(runner->model, inputs->tensors, inputs->count, self->rows, &verdict,
                               input_axes, output_axes));
    if (!verdict.is_separable) return fail(SP_UNSUPPORTED, "%s", verdict.reason);
    for (; self->input_count < inputs->count; self->input_count++) {
        const uint32_t i = self->input_count;
        TRY(input_make(&inputs->tensors[i], &input_axes[i], self->rows, &self->inputs[i]));
    }
    TRY(runner_outputs_create(runner, &self->outputs));
    TRY(rows_run(self));
    for (uint32_t i = 0; i < runner->output_count; i++) {
        if (has_row(&self->outputs[i], &runner->expected[i], &output_axes[i], self->rows)) continue;
        return fail(SP_INTERNAL, "%s: a row of a batch of %u differs in bits from its run alone",
                    self->model->arguments.path, self->rows);
    }
    return SP_OK;
}

sp_status rows_open(rows_case *self, const subject *model, uint32_t rows)
{
    const size_t inputs = (size_t)model->runner.inputs.count + 1;
    *self = (rows_case){.model = model, .rows = rows};
    self->inputs = calloc(inputs, sizeof *self->inputs);
    sp_batch_axis *axes = calloc(inputs + model->runner.output_count, sizeof *axes);
    const sp_status status = self->inputs != NULL && axes != NULL
                                 ? rows_fill(self, axes, axes + inputs)
                                 : fail(SP_OUT_OF_MEMORY, "no memory for a batch");
    free(axes);
    return status;
}

void rows_close(rows_case *self)
{
    if (self->model == NULL) return;
    runner_outputs_free(&self->model->runner, self->outputs);
    for (uint32_t i = 0; self->inputs != NULL && i < self->model->runner.inputs.count; i++) {
        free(self->inputs[i].data);
    }
    free(self->inputs);
    *self = (rows_case){0};
}

/* ---- the library's larger plans ---- */

static void times_copy(const sp_batch_plans *plans, rows_library *out)
{
    for (uint32_t i = 0; i < sp__batch_plans_count(plans) && i < ROWS_LIBRARY_PLANS; i++) {
        out->rows[i] = plans->buckets[i].rows;
        out->run_ns[i] = (double)plans->buckets[i].run_ns;
        out->count = i + 1;
    }
}

/* They are not attached: the model's runs stay as they are. */
static bool plans_keep(const sp_batch_build *build, sp_batch_plans *plans)
{
    (void)build;
    (void)plans;
    return true;
}

static sp_status entry_measure(sp_rt_model *model, const sp_plan_entry *entry, rows_library *out)
{
    const sp_atomic_u32 is_stopping = {0}; /* never set */
    sp_batch_plans *plans;
    const sp_batch_build build = {.model = model,
                                  .words = entry->words,
                                  .word_count = entry->word_count,
                                  .is_stopping = &is_stopping,
                                  .attach = plans_keep};
    CALL(sp__batch_plans_make(&build, &plans));
    times_copy(plans, out);
    sp__batch_plans_drop(plans);
    return SP_OK;
}

static sp_status model_measure(sp_rt_model *model, const model_inputs *inputs, rows_library *out)
{
    sp_run_ports ports;
    sp_plan_entry *entry = NULL;
    CALL(sp__run_ports_init(&ports, model->graph, inputs->count));
    sp_status status =
        sp__run_ports_take_inputs(model->graph, inputs->tensors, inputs->count, true, &ports);
    if (status == SP_OK) {
        status = sp__run_ports_find_plan(&model->plans, &ports, true, &entry);
    }
    status = from_library(status);
    if (entry != NULL) {
        status = entry_measure(model, entry, out);
        sp__plan_cache_release(&model->plans, entry);
    }
    sp__run_ports_deinit(&ports);
    return status;
}

sp_status rows_library_measure(const subject *model, rows_library *out)
{
    *out = (rows_library){0};
    sp_rt_model *held = sp__model_hold(model->runner.model);
    if (held == NULL) return from_library(SP_INVALID);
    const sp_status status = model_measure(held, &model->runner.inputs, out);
    sp__model_drop(held);
    return status;
}
