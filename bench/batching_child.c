/* SPDX-License-Identifier: Apache-2.0 */
/* primitive: the set of processors of the process, which nothing of the library changes. */
#include "batching_child.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <streampool/runtime.h>

#include "base/clock.h"
#include "batch/batch_builder.h"

/* ---- the process ---- */

static sp_status processor_pin(void)
{
    cpu_set_t all, one;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof all, &all) == 0) {
        for (unsigned i = CPU_SETSIZE; i-- > 0;) {
            if (!CPU_ISSET(i, &all)) continue;
            CPU_SET(i, &one);
            break;
        }
    }
    if (sched_setaffinity(0, sizeof one, &one) == 0) return SP_OK;
    return fail(SP_IO, "the system refused to keep a process on one processor");
}

static sp_status process_prepare(worker_mode mode)
{
    static const char *const batching[WORKER_MODES] = {"combine", "off", "off", "always"};
    if (setenv("STREAMPOOL_BATCHING", batching[mode], 1) != 0) {
        return fail(SP_OUT_OF_MEMORY, "no memory for the environment");
    }
    return mode == WORKER_COSTS ? processor_pin() : SP_OK;
}

/* ---- models ---- */

static sp_status greeting_fill(const child *self, worker_greeting *out)
{
    const model_runner *runner = &self->models[0].runner;
    sp_device_info device;
    sp_model_batching verdict;
    CALL(sp_device_get_info(self->models[0].arguments.device.options.device, &device));
    out->width = device.width;
    out->run_slots = device.run_slots;
    out->is_cpu = strcmp(device.kind, "cpu") == 0;
    const sp_status status = from_library(sp_model_get_batching(
        runner->model, runner->inputs.tensors, runner->inputs.count, 2, &verdict, NULL, NULL));
    out->is_separable = status == SP_OK && verdict.is_separable;
    snprintf(out->reason, sizeof out->reason, "%s",
             status == SP_OK ? verdict.reason : failure_message());
    return SP_OK;
}

static sp_status models_open(child *self)
{
    const worker_options *options = self->options;
    const uint32_t threads = options->threads;
    TRY(subject_open(&self->models[0], options->paths[0], options->device, threads));
    if (options->paths[1] != NULL) {
        TRY(subject_open(&self->models[1], options->paths[1], options->device, threads));
    }
    return subject_open_empty(&self->empty, options->device, threads);
}

static sp_status peer_start(child *self)
{
    const worker_options *options = self->options;
    TRY(peer_load(&self->peer, options->library));
    TRY(peer_case_make(&self->models[0].runner, options->paths[0], &self->of));
    TRY(peer_open(&self->peer, &self->of));
    return from_library(sp_shutdown()); /* ends our threads; the inputs remain */
}

sp_status child_open(child *self, worker_greeting *greeting)
{
    const worker_options *options = self->options;
    TRY(process_prepare(options->mode));
    TRY(models_open(self));
    TRY(greeting_fill(self, greeting));
    const bool is_cpu_time = options->mode == WORKER_COSTS && greeting->is_cpu;
    self->costs = (costs){.model = &self->models[0],
                          .empty = &self->empty,
                          .clock = is_cpu_time ? bench_processor_clock : sp_clock_now};
    return options->mode == WORKER_PEER ? peer_start(self) : SP_OK;
}

void child_close(child *self)
{
    costs_close(&self->costs);
    peer_close(&self->peer);
    peer_case_free(&self->of);
    subject_close(&self->empty);
    for (uint32_t i = 0; i < 2; i++) subject_close(&self->models[i]);
}

/* ---- windows ---- */

static target subject_target(subject *model)
{
    return (target){.side = {.call = subject_call, .ctx = model}, .model = model->runner.model};
}

static uint32_t targets_choose(child *self, window_call call, target out[2])
{
    if (self->options->mode == WORKER_PEER) {
        out[0] = (target){.side = {.call = peer_call, .ctx = &self->peer}};
        return 1;
    }
    subject *first = &self->models[0];
    if (call == WINDOW_EMPTY) first = &self->empty;
    if (call == WINDOW_SECOND) first = &self->models[1];
    out[0] = subject_target(first);
    out[1] = subject_target(&self->models[1]);
    return call == WINDOW_BOTH ? 2 : 1;
}

static sp_status subjects_check(const child *self)
{
    for (uint32_t i = 0; i < 2; i++) TRY(subject_check(&self->models[i]));
    return SP_OK;
}

static sp_status infos_read(const target *targets, uint32_t count, sp_model_info *out)
{
    for (uint32_t i = 0; i < count; i++) {
        out[i] = (sp_model_info){0};
        if (targets[i].model.bits != 0) CALL(sp_model_get_info(targets[i].model, &out[i]));
    }
    return SP_OK;
}

/* Runs by how many times the model was computed for them: once for all those of a batch. */
static double mean_rows(const sp_model_info *from, const sp_model_info *to)
{
    const double runs = (double)(to->runs - from->runs);
    const double saved =
        (double)(to->batched_runs - from->batched_runs) - (double)(to->batches - from->batches);
    return runs > saved ? runs / (runs - saved) : 1;
}

static sp_status load_measure(const window *asked, const target *targets, uint32_t count,
                              window_result *out)
{
    switch (asked->load) {
    case WINDOW_ARRIVALS:
        return window_arrivals(asked, targets, out);
    case WINDOW_FOREGROUND:
        return window_foreground(asked, targets, targets[0].side.ctx, out);
    case WINDOW_IN_FLIGHT:
        return window_in_flight(asked, targets[0].side.ctx, out);
    default:
        return window_callers(asked, targets, count, out);
    }
}

sp_status child_measure(child *self, const window *asked, window_result *out)
{
    target targets[2];
    sp_model_info before[2], after[2];
    if (asked->load == WINDOW_COST) return window_cost(&self->costs, asked, out);
    const uint32_t count = targets_choose(self, asked->call, targets);
    TRY(infos_read(targets, count, before));
    if (self->options->mode == WORKER_PEER) TRY(peer_prepare(&self->peer, asked->count));
    TRY(load_measure(asked, targets, count, out));
    TRY(infos_read(targets, count, after));
    for (uint32_t i = 0; i < count; i++) out->figures[i].rows = mean_rows(&before[i], &after[i]);
    if (asked->load == WINDOW_WARM_UP && self->options->mode == WORKER_COMBINE) {
        sp__batch_builder_drain();
    }
    return subjects_check(self);
}
