/* SPDX-License-Identifier: Apache-2.0 */
#include "batch/batch_time.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "runtime/submit_queue.h"

/* How often both are timed, fewer if all of it would take longer: callers need the processors. */
#define TURNS 16u
#define TURNS_NS UINT64_C(8000000)

/* Of runs that keep a device busy with fewer batches (bench/NOTES.md: torch_encoder6). */
#define LONG_NS UINT64_C(300000)
#define LONG_IN_FLIGHT 5u

uint32_t sp__batches_in_flight(uint64_t lone_ns)
{
    return lone_ns < LONG_NS ? SP_BATCHES_IN_FLIGHT : LONG_IN_FLIGHT;
}

/* Of one run on zeros: CPU time, or on other devices than cpu the time until it is done. */
static sp_status run_time(const sp_batch *batch, uint64_t *ns)
{
    sp_exec_context *context = batch->context;
    void *const *ports = batch->ports;
    const void *const *inputs = (const void *const *)ports;
    if (context->staging == NULL) {
        const uint64_t before = sp_clock_thread();
        SP_TRY(sp__exec_context_run_inline(context, inputs, ports + batch->plans->input_count));
        *ns = sp_clock_thread() - before;
        return SP_OK;
    }
    sp_queue *queues[SP_MAX_TARGETS] = {NULL};
    sp_rt_device *device = sp__executable_device(context->executable);
    const uint32_t index = sp__submit_queue_acquire(device);
    sp__executable_queues(context->executable, index, queues);
    const uint64_t before = sp_clock_now();
    const sp_status status = sp__exec_context_run_bound(context, queues);
    *ns = sp_clock_now() - before;
    sp__submit_queue_release(device, index);
    return status;
}

static void inputs_clear(const sp_batch *batch)
{
    const sp_graph_plan *plan = batch->bucket->executable->plan;
    for (uint32_t i = 0; i < plan->input_count; i++) {
        memset(batch->ports[i], 0, plan->inputs[i].bytes);
    }
}

static int time_compare(const void *a, const void *b)
{
    const sp_batch_time *first = a, *second = b;
    const uint64_t of_first = first->batch_ns * second->lone_ns;
    const uint64_t of_second = second->batch_ns * first->lone_ns;
    return (of_first > of_second) - (of_first < of_second);
}

sp_batch_time sp__batch_time_median(sp_batch_time *turns, uint32_t count)
{
    qsort(turns, count, sizeof turns[0], time_compare);
    return turns[count / 2];
}

/* A machine's speed changes from one moment to the next, by other programs, and with it which of
 * the two looks faster: hence turns, and the median of their ratios. The first one, which touches
 * memory for the first time, counts only if it takes so long that there is no other. */
static sp_status turns_measure(const sp_batch *batch, const sp_batch *lone, sp_batch_time *out)
{
    sp_batch_time turns[TURNS];
    uint64_t all = 0;
    uint32_t count = 0;
    do {
        SP_TRY(run_time(batch, &turns[count].batch_ns));
        SP_TRY(run_time(lone, &turns[count].lone_ns));
        all += turns[count].batch_ns + turns[count].lone_ns;
    } while (++count < TURNS && all < TURNS_NS);
    const uint32_t first = count > 1 ? 1 : 0;
    *out = sp__batch_time_median(turns + first, count - first);
    return SP_OK;
}

/* It saves something, but less than a quarter. */
static bool is_close(const sp_batch_time *time, uint64_t rows)
{
    const uint64_t all = rows * time->lone_ns;
    return time->batch_ns <= SP_BATCH_MAX_NS && time->batch_ns < all &&
           time->batch_ns > all - all / 4;
}

/* Medians of a busy machine are wrong by 4 %. What saves little is measured twice, and the smaller
 * saving counts: else one size of ten would be kept that saves nothing. */
sp_status sp__batch_time_measure(const sp_batch *batch, const sp_batch *lone, sp_batch_time *out)
{
    inputs_clear(batch);
    inputs_clear(lone);
    SP_TRY(turns_measure(batch, lone, out));
    if (!is_close(out, batch->bucket->rows)) return SP_OK;
    sp_batch_time again;
    SP_TRY(turns_measure(batch, lone, &again));
    if (time_compare(&again, out) > 0) *out = again;
    return SP_OK;
}
