/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/reports.h"

#include "base/error.h"
#include "base/heap.h"
#include "device/gpu_kernel.h"
#include "exec/context.h"
#include "ops/device_kernels.h"
#include "ops/report.h"

static bool kernel_reports(const sp_kernel *kernels, sp_kernel_id kernel)
{
    return kernels[kernel].gpu != NULL && kernels[kernel].gpu->reports;
}

/* Of the model's device: the fallback's kernels fail themselves. Counts without `steps`. */
static uint32_t steps_find(const sp_executable *executable, uint32_t *steps)
{
    const sp_kernel *kernels = sp__device_kernels(sp__executable_device(executable)->dev);
    uint32_t count = 0;
    for (uint32_t g = 0; kernels != NULL && g < executable->segments.count; g++) {
        const sp_segment *segment = &executable->segments.list[g];
        if (segment->device != SP_SEGMENT_MODEL) continue;
        for (uint32_t i = 0; i < segment->step_count; i++) {
            const uint32_t step = segment->first_step + i;
            if (!kernel_reports(kernels, executable->plan->steps[step].kernel)) continue;
            if (steps != NULL) steps[count] = step;
            count++;
        }
    }
    return count;
}

sp_status sp__reporting_init(sp_executable *executable)
{
    const uint32_t count = steps_find(executable, NULL);
    if (count == 0) return SP_OK;
    executable->reporting = sp_calloc(count, sizeof *executable->reporting);
    if (executable->reporting == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a plan");
    executable->reporting_count = steps_find(executable, executable->reporting);
    return SP_OK;
}

void sp__reporting_deinit(sp_executable *executable)
{
    sp_free(executable->reporting);
}

/* ---- of a context ---- */

static uint64_t report_bytes(const sp_executable *executable)
{
    return executable->reporting_count * sizeof(sp_gpu_report);
}

void sp__reports_clear(const sp_exec_context *context)
{
    for (uint32_t i = 0; i < context->executable->reporting_count; i++) {
        context->reports[i] = (sp_gpu_report){0};
    }
}

sp_status sp__reports_create(sp_exec_context *context)
{
    const sp_executable *executable = context->executable;
    if (executable->reporting_count == 0) return SP_OK;
    void *host;
    SP_TRY(sp__allocator_acquire_any(&sp__executable_device(executable)->staging,
                                     report_bytes(executable), context->is_spare,
                                     &context->report_block));
    SP_TRY(sp__block_host(context->report_block, &host));
    context->reports = host;
    sp__reports_clear(context);
    return SP_OK;
}

void sp__reports_destroy(sp_exec_context *context)
{
    if (context->report_block == NULL) return;
    sp__allocator_release(&sp__executable_device(context->executable)->staging,
                          context->report_block);
}

bool sp__reports_bind(const sp_exec_context *context, uint32_t step, sp_binding *out)
{
    const sp_executable *executable = context->executable;
    const sp_block *block = context->report_block;
    for (uint32_t i = 0; i < executable->reporting_count; i++) {
        if (executable->reporting[i] != step) continue;
        *out = (sp_binding){.memory = &block->slab->memory,
                            .offset = block->offset + i * sizeof(sp_gpu_report),
                            .bytes = sizeof(sp_gpu_report),
                            .access = SP_READ_WRITE};
        return true;
    }
    return false;
}

sp_status sp__reports_take(const sp_exec_context *context)
{
    const sp_executable *executable = context->executable;
    sp_gpu_report *reports = context->reports;
    for (uint32_t i = 0; i < executable->reporting_count; i++) {
        if (SP_LIKELY(reports[i].most == 0)) continue;
        const uint32_t step = executable->reporting[i];
        const sp_status status = sp__report_fail(executable->plan->steps[step].kernel, &reports[i]);
        sp__reports_clear(context);
        return sp__fail_prefix(status, "%s: ", executable->labels[step]);
    }
    return SP_OK;
}
