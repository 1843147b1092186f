/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_point.h"

#include <stdlib.h>

#include "process.h"

/* ---- runs ---- */

static size_t place_of(const bench_model *model, uint32_t thread, uint32_t slot)
{
    return (size_t)thread * model->slots + slot;
}

static sp_status run_begin(void *ctx, uint32_t thread, uint32_t slot)
{
    const bench_model *model = ctx;
    const size_t at = place_of(model, thread, slot);
    return runner_submit(&model->runner, model->queue, model->outputs[at], &model->futures[at]);
}

static sp_status run_end(void *ctx, uint32_t thread, uint32_t slot)
{
    const bench_model *model = ctx;
    const size_t at = place_of(model, thread, slot);
    return runner_finish(&model->runner, model->futures[at], model->outputs[at]);
}

static sp_status run_whole(void *ctx, uint32_t thread)
{
    const bench_model *model = ctx;
    if (model->queue.bits == 0) return runner_run(&model->runner, model->outputs[thread]);
    TRY(run_begin(ctx, thread, 0));
    return run_end(ctx, thread, 0);
}

/* ---- outputs ---- */

static sp_status outputs_create(bench_model *model, uint32_t count)
{
    model->outputs = calloc(count, sizeof(sp_host_tensor *));
    model->futures = calloc(count, sizeof(sp_future));
    if (model->outputs == NULL || model->futures == NULL) {
        return fail(SP_OUT_OF_MEMORY, "no memory for outputs");
    }
    for (uint32_t i = 0; i < count; i++) {
        TRY(runner_outputs_create(&model->runner, &model->outputs[i]));
    }
    return SP_OK;
}

static void outputs_free(bench_model *model, uint32_t count)
{
    for (uint32_t i = 0; model->outputs != NULL && i < count; i++) {
        runner_outputs_free(&model->runner, model->outputs[i]);
    }
    free(model->outputs);
    free(model->futures);
    model->outputs = NULL;
    model->futures = NULL;
}

/* The last run of each slot has the bits of the first run. A thread may have had no arrival. */
static sp_status outputs_check(const bench_model *model, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const bool has_run =
            model->runner.output_count > 0 && model->outputs[i][0].dtype != SP_DTYPE_NONE;
        if (!has_run || runner_is_equal(&model->runner, model->outputs[i])) continue;
        return fail(SP_INTERNAL, "%s: a run differs in bits from the first run",
                    model->arguments.path);
    }
    return SP_OK;
}

/* ---- the point ---- */

static sp_status point_begin(bench_job *job, uint32_t slots, uint32_t count)
{
    for (uint32_t m = 0; m < job->count; m++) {
        bench_model *model = &job->models[m];
        model->slots = slots;
        TRY(outputs_create(model, count));
        CALL(sp_model_get_statistics(model->runner.model, &model->before));
    }
    return SP_OK;
}

static sp_status point_load(bench_job *job, const load_options *load)
{
    load_side sides[LOAD_MAX_SIDES];
    load_result results[LOAD_MAX_SIDES];
    for (uint32_t m = 0; m < job->count; m++) {
        sides[m] = (load_side){
            .call = run_whole, .begin = run_begin, .end = run_end, .ctx = &job->models[m]};
    }
    TRY(load_run(load, sides, job->count, results));
    for (uint32_t m = 0; m < job->count; m++) job->models[m].result = results[m];
    return SP_OK;
}

static sp_status point_end(bench_job *job, uint32_t count)
{
    for (uint32_t m = 0; m < job->count; m++) {
        bench_model *model = &job->models[m];
        CALL(sp_model_get_statistics(model->runner.model, &model->after));
        TRY(outputs_check(model, count));
    }
    return SP_OK;
}

sp_status bench_point_run(bench_job *job, const load_options *load)
{
    const uint32_t slots = load->in_flight > 0 ? load->in_flight : 1;
    const uint32_t count = load->threads * slots;
    sp_status status = point_begin(job, slots, count);
    if (status == SP_OK) status = point_load(job, load);
    if (status == SP_OK) status = point_end(job, count);
    job->peak_bytes = process_memory_read().peak_bytes;
    for (uint32_t m = 0; m < job->count; m++) outputs_free(&job->models[m], count);
    return status;
}
