/* SPDX-License-Identifier: Apache-2.0 */
#include "batching_subject.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "failure.h"

/* ONNX: y = Identity(x), both float[1]. */
static const char empty_model[] =
    "\x08\x08"
    "\x3a\x34"
    "\x0a\x10\x0a\x01x\x12\x01y\x22\x08"
    "Identity"
    "\x5a\x0f\x0a\x01x\x12\x0a\x0a\x08\x08\x01\x12\x04\x0a\x02\x08\x01"
    "\x62\x0f\x0a\x01y\x12\x0a\x0a\x08\x08\x01\x12\x04\x0a\x02\x08\x01"
    "\x42\x02\x10\x0d";

static sp_status outputs_open(subject *self, uint32_t threads)
{
    self->outputs = calloc(threads, sizeof(sp_host_tensor *));
    if (self->outputs == NULL) return fail(SP_OUT_OF_MEMORY, "no memory for outputs");
    for (; self->thread_count < threads; self->thread_count++) {
        TRY(runner_outputs_create(&self->runner, &self->outputs[self->thread_count]));
    }
    return SP_OK;
}

static sp_status model_start(subject *self, uint32_t threads)
{
    TRY(runner_open_inputs(&self->arguments, &self->runner));
    TRY(runner_run_first(&self->arguments, &self->runner));
    return outputs_open(self, threads);
}

/* The inputs of the test data beside the model, if there are any. */
static sp_status take_test_data(subject *self, const char *path)
{
    const char *slash = strrchr(path, '/');
    const int length = slash == NULL ? 1 : (int)(slash - path);
    snprintf(self->data, sizeof self->data, "%.*s/test_data_set_0", length,
             slash == NULL ? "." : path);
    if (!path_is_folder(self->data)) return SP_OK;
    if (text_list_add(&self->arguments.inputs, self->data)) return SP_OK;
    return fail(SP_OUT_OF_MEMORY, "no memory for an input's name");
}

sp_status subject_open(subject *self, const char *path, const char *device, uint32_t threads)
{
    *self = (subject){.arguments = {.path = path, .device.device = device}};
    TRY(take_test_data(self, path));
    TRY(device_arguments_open(&self->arguments.device));
    TRY(runner_load(&self->arguments, &self->runner));
    return model_start(self, threads);
}

sp_status subject_open_empty(subject *self, const char *device, uint32_t threads)
{
    *self = (subject){.arguments = {.path = "the empty model", .device.device = device}};
    TRY(device_arguments_open(&self->arguments.device));
    CALL(sp_model_load_from_memory(empty_model, sizeof empty_model - 1,
                                   &self->arguments.device.options, &self->runner.model));
    self->runner.output_count = 1;
    return model_start(self, threads);
}

void subject_close(subject *self)
{
    for (uint32_t i = 0; i < self->thread_count; i++) {
        runner_outputs_free(&self->runner, self->outputs[i]);
    }
    free(self->outputs);
    runner_close(&self->runner);
    model_arguments_free(&self->arguments);
    *self = (subject){0};
}

sp_status subject_call(void *ctx, uint32_t thread)
{
    const subject *self = ctx;
    return runner_run(&self->runner, self->outputs[thread]);
}

sp_status subject_check(const subject *self)
{
    for (uint32_t i = 0; i < self->thread_count; i++) {
        const sp_host_tensor *outputs = self->outputs[i];
        const bool has_run = self->runner.output_count > 0 && outputs[0].dtype != SP_DTYPE_NONE;
        if (!has_run || runner_is_equal(&self->runner, outputs)) continue;
        return fail(SP_INTERNAL, "%s: a run differs in bits from the first run",
                    self->arguments.path);
    }
    return SP_OK;
}
