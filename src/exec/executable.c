/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/executable.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "exec/context.h"
#include "exec/partition.h"
#include "exec/reports.h"
#include "runtime/submit_queue.h"

static sp_status labels_create(sp_executable *executable)
{
    const sp_graph_plan *plan = executable->plan;
    executable->labels = sp_calloc(plan->step_count, sizeof *executable->labels);
    if (executable->labels == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a plan");
    for (uint32_t i = 0; i < plan->step_count; i++) {
        const sp_plan_step *step = &plan->steps[i];
        char label[160];
        snprintf(label, sizeof label, "node '%.80s' (%.64s)", step->node_name, step->op_name);
        executable->labels[i] = sp_strdup(label);
        if (executable->labels[i] == NULL)
            return sp__fail(SP_OUT_OF_MEMORY, "no memory for a plan");
    }
    return SP_OK;
}

static sp_status constants_upload(const sp_executable *executable, sp_target *target)
{
    const sp_graph_plan *plan = executable->plan;
    return sp__upload_init(target->device, plan->constants, plan->constant_count,
                           &target->constants);
}

static sp_status fallback_init(sp_executable *executable)
{
    const sp_graph *graph = executable->plan->graph;
    sp_target *target = &executable->targets[SP_SEGMENT_FALLBACK];
    SP_TRY(sp__rt_device_find((sp_device){0}, &target->device));
    executable->target_count = SP_SEGMENT_FALLBACK + 1;
    SP_TRY(sp__fallback_queues_open(target->device, sp__executable_device(executable)));
    SP_TRY(
        sp__upload_init(target->device, graph->weights, graph->weight_count, &target->own_weights));
    target->weights = target->own_weights.memories;
    return constants_upload(executable, target);
}

static sp_status plan_partition(sp_executable *executable, const char *cpu_ops)
{
    SP_TRY(sp__partition(executable->plan, sp__executable_device(executable), cpu_ops,
                         &executable->segments));
    const uint32_t count = executable->segments.fallback_step_count;
    if (count == 0) return SP_OK;
    const sp_status status = fallback_init(executable);
    if (status == SP_OK) return SP_OK;
    return sp__fail_prefix(status, "%u of %u steps run on the cpu: ", count,
                           executable->plan->step_count);
}

sp_status sp__executable_create(const sp_graph_plan *plan, sp_rt_device *device,
                                const sp_memory *weights, const char *cpu_ops, sp_executable **out)
{
    sp_executable *executable = sp_aligned_malloc(SP_CACHE_LINE, sizeof *executable);
    if (executable == NULL) {
        sp__plan_destroy(plan);
        return sp__fail(SP_OUT_OF_MEMORY, "no memory for a plan");
    }
    memset(executable, 0, sizeof *executable);
    executable->plan = plan;
    executable->targets[SP_SEGMENT_MODEL] = (sp_target){.device = device, .weights = weights};
    executable->target_count = 1;
    sp_mutex_init(&executable->lock, SP_LOCK_EXECUTABLE);
    sp_mutex_lock(&executable->lock);
    sp__wait_queue_init(&executable->queue);
    sp_mutex_unlock(&executable->lock);
    sp_status status = labels_create(executable);
    if (status == SP_OK)
        status = constants_upload(executable, &executable->targets[SP_SEGMENT_MODEL]);
    if (status == SP_OK) status = plan_partition(executable, cpu_ops);
    if (status == SP_OK) status = sp__reporting_init(executable);
    if (status != SP_OK) {
        sp__executable_destroy(executable);
        return status;
    }
    *out = executable;
    return SP_OK;
}

void sp__executable_destroy(sp_executable *executable)
{
    sp__executable_destroy_contexts(executable);
    for (uint32_t i = 0; executable->labels != NULL && i < executable->plan->step_count; i++) {
        sp_free(executable->labels[i]);
    }
    sp_free(executable->labels);
    sp__reporting_deinit(executable);
    for (uint32_t t = 0; t < executable->target_count; t++) {
        sp_target *target = &executable->targets[t];
        sp__upload_deinit(target->device, &target->own_weights);
        sp__upload_deinit(target->device, &target->constants);
    }
    sp__executable_unpack(executable);
    sp__segments_deinit(&executable->segments);
    sp__plan_destroy(executable->plan);
    sp_mutex_deinit(&executable->lock);
    sp_free(executable);
}

sp_status sp__executable_open_queues(const sp_executable *executable)
{
    sp_rt_device *device = sp__executable_device(executable);
    SP_TRY(sp__submit_queues_open(device, 1));
    for (uint32_t t = 1; t < executable->target_count; t++) {
        sp_rt_device *other = executable->targets[t].device;
        SP_TRY(sp__submit_queues_open(other, sp__submit_queues_count(device)));
    }
    return SP_OK;
}

void sp__executable_queues(const sp_executable *executable, uint32_t index, sp_queue **queues)
{
    for (uint32_t t = 0; t < executable->target_count; t++) {
        queues[t] = sp__submit_queue_at(executable->targets[t].device, index);
    }
}
