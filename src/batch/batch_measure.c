/* SPDX-License-Identifier: Apache-2.0 */
#include "batch/batch_measure.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/heap.h"
#include "base/log.h"
#include "base/option.h"
#include "base/thread.h"
#include "base/wait.h"
#include "batch/batch.h"
#include "plan/plan_key.h"
#include "plan/plan_rows.h"
#include "runtime/submit_queue.h"

/* Batches that are longer keep others waiting: none is made. */
#define MAX_BATCH_NS 20000000u
/* Batches of a small and of a large bucket; with all in use a run is alone or in a smaller one. */
#define FEW_ROWS 8u
#define BATCHES_OF_FEW 4u
#define BATCHES_OF_MANY 2u
/* What a batch must save, in parts of a lone run's time. */
#define SAVINGS 16u
/* What a row costs besides its computation, in wake-ups: the wake-up itself, the switch to its
 * caller and back, and the caller's way to the queue. */
#define ROW_WAKE_UPS 3u

/* One plan and what is known of it. */
typedef struct measure {
    sp_rt_model *model;
    const sp_plan_request *single;
    sp_plan_input *inputs; /* of the larger plans */
    sp_rows_value *rows;   /* of inputs, then of outputs: of the last search */
    uint64_t *inner;       /* the same of the first one: sp_rows_value.inner */
    sp_rows_proof proof;
    sp_batch_plans *plans;
    uint64_t wake_ns;
} measure;

/* ---- the cost of a wake-up ---- */

#define ROUNDS 64

typedef struct wake_pair {
    sp_parker there, back;
} wake_pair;

static void wake_back(void *arg)
{
    wake_pair *pair = arg;
    for (int i = 0; i < ROUNDS; i++) {
        sp_parker_park(&pair->there, SP_NO_DEADLINE);
        sp_parker_unpark(&pair->back);
    }
}

/* CPU time of a thread that wakes another one and sleeps, once. */
static uint64_t wake_measure(void)
{
    wake_pair pair = {0};
    sp_thread thread;
    if (sp_thread_create(&thread, "sp-wake", wake_back, &pair) != SP_OK) return 5000;
    const uint64_t before = sp_clock_thread();
    for (int i = 0; i < ROUNDS; i++) {
        sp_parker_unpark(&pair.there);
        sp_parker_park(&pair.back, SP_NO_DEADLINE);
    }
    const uint64_t used = sp_clock_thread() - before;
    sp_thread_join(&thread);
    return used / ROUNDS;
}

/* ---- the time of a run ---- */

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

/* The shortest of some runs. */
static sp_status batch_time(const sp_batch *batch, uint64_t *shortest)
{
    const sp_graph_plan *plan = batch->bucket->executable->plan;
    for (uint32_t i = 0; i < plan->input_count; i++) {
        const sp_plan_tensor *input = &plan->inputs[i];
        memset(batch->ports[i], 0, input->bytes);
    }
    uint64_t all = 0;
    *shortest = UINT64_MAX;
    for (uint32_t i = 0; i < 16 && all < MAX_BATCH_NS; i++) {
        uint64_t ns;
        SP_TRY(run_time(batch, &ns));
        all += ns;
        if (ns < *shortest) *shortest = ns;
    }
    return SP_OK;
}

/* ---- a bucket ---- */

static void bucket_remove(sp_batch_plans *plans)
{
    sp__batch_bucket_deinit(&plans->buckets[--plans->bucket_count]);
}

/* Adds a bucket with one batch, and measures it. On an error it is removed. */
static sp_status bucket_add(measure *m, const sp_plan_request *request, uint32_t rows)
{
    sp_batch_plans *plans = m->plans;
    sp_executable *executable;
    sp_batch *batch;
    SP_TRY(sp__plan_cache_compile(&m->model->plans, request, true, &executable));
    sp_batch_bucket *bucket = sp__batch_plans_add(plans, rows, executable);
    const uint64_t most = m->model->limits.bytes * rows; /* 0: no limit */
    sp_status status = sp__plan_check_bytes(executable->plan, most);
    if (status == SP_OK) status = sp__executable_open_queues(executable);
    if (status == SP_OK) status = sp__batch_create(plans, bucket, &batch);
    if (status == SP_OK) {
        status = batch_time(batch, &bucket->run_ns);
        sp__batch_release(batch);
    }
    if (status != SP_OK) bucket_remove(plans);
    return status;
}

/* ---- rows ---- */

static sp_status rows_find(measure *m, uint64_t rows)
{
    const sp_rows_search search = {m->inputs, m->rows};
    return sp__plan_find_rows(m->model->graph, m->single, rows, &search,
                              m->rows + m->single->input_count, &m->proof);
}

static sp_batch_port port_of(const sp_plan_tensor *tensor, const sp_rows_value *rows)
{
    sp_batch_port port = {.is_batched = rows->kind == SP_ROWS_BATCHED};
    port.chunk = port.is_batched ? rows->inner * sp_dtype_bytes(tensor->dtype) : tensor->bytes;
    port.outer = port.chunk != 0 ? tensor->bytes / port.chunk : 0;
    return port;
}

static void ports_set(measure *m, const sp_graph_plan *single)
{
    sp_batch_plans *plans = m->plans;
    for (uint32_t i = 0; i < plans->input_count + plans->output_count; i++) {
        m->inner[i] = m->rows[i].inner;
    }
    for (uint32_t i = 0; i < plans->input_count; i++) {
        plans->ports[i] = port_of(&single->inputs[i], &m->rows[i]);
        const bool is_free = !plans->ports[i].is_batched && m->single->inputs[i].data == NULL;
        plans->shared_bytes[i] = is_free ? single->inputs[i].bytes : 0;
    }
    for (uint32_t i = 0; i < plans->output_count; i++) {
        const uint32_t port = plans->input_count + i;
        plans->ports[port] = port_of(&single->outputs[i], &m->rows[port]);
    }
}

/* Inputs that all requests have in common are compared before they are merged. */
static bool is_mergeable(const sp_batch_plans *plans)
{
    uint64_t shared = 0;
    for (uint32_t i = 0; i < plans->input_count; i++) shared += plans->shared_bytes[i];
    for (uint32_t i = 0; i < plans->input_count + plans->output_count; i++) {
        if (plans->ports[i].chunk == 0) return false;
    }
    return shared <= 256;
}

/* Has the last search found the rows where the gathered tensors have them? Another number of rows
 * could have another proof. */
static bool ports_match(const measure *m)
{
    const sp_batch_plans *plans = m->plans;
    for (uint32_t i = 0; i < plans->input_count + plans->output_count; i++) {
        const sp_rows_value *rows = &m->rows[i];
        const bool is_batched = rows->kind == SP_ROWS_BATCHED;
        if (is_batched != plans->ports[i].is_batched) return false;
        if (is_batched && rows->inner != m->inner[i]) return false;
    }
    return true;
}

static sp_status bucket_try(measure *m, uint32_t rows)
{
    SP_TRY(rows_find(m, rows));
    if (!m->proof.is_separable || !ports_match(m)) return SP_UNSUPPORTED;
    sp_plan_request request = *m->single;
    request.inputs = m->inputs;
    request.is_any_size = true;
    request.reshapes = m->proof.reshapes;
    request.reshape_count = m->proof.reshape_count;
    request.repeats = m->proof.repeats;
    request.repeat_count = m->proof.repeat_count;
    return bucket_add(m, &request, rows);
}

/* ---- all buckets ---- */

/* Is a batch faster than its rows one by one, though all callers but one must be woken? */
static bool pays(const measure *m, uint32_t rows, uint64_t run_ns)
{
    if (sp_option_enum(SP_OPTION_BATCHING) == SP_OPTION_BATCHING_ALWAYS) return true;
    const uint64_t lone = m->plans->lone_ns;
    const uint64_t all = rows * (lone - lone / SAVINGS);
    const uint64_t wake_ups = (uint64_t)ROW_WAKE_UPS * (rows - 1);
    return run_ns <= MAX_BATCH_NS && run_ns + wake_ups * m->wake_ns < all;
}

/* Tries sizes until larger ones promise nothing. */
static sp_status buckets_make(measure *m, const sp_atomic_u32 *is_stopping)
{
    static const uint32_t sizes[] = {2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
    sp_batch_plans *plans = m->plans;
    for (uint32_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        if (sp_load_relaxed(is_stopping) != 0) break;
        const sp_status status = bucket_try(m, sizes[i]);
        if (status == SP_OUT_OF_MEMORY && plans->bucket_count == 0) return status;
        if (status != SP_OK) break;
        const uint64_t run_ns = plans->buckets[plans->bucket_count - 1].run_ns;
        SP_LOG(SP_LOG_DEBUG, "a batch of %u takes %llu ns, a run %llu ns, a wake-up %llu ns",
               sizes[i], (unsigned long long)run_ns, (unsigned long long)plans->lone_ns,
               (unsigned long long)m->wake_ns);
        if (pays(m, sizes[i], run_ns)) {
            if (run_ns > MAX_BATCH_NS) break; /* always: one of these */
            continue;
        }
        bucket_remove(plans);
        const bool is_hopeless = plans->bucket_count == 0 && sizes[i] >= 8;
        if (is_hopeless || run_ns > MAX_BATCH_NS / 2) break;
    }
    return SP_OK;
}

/* More batches for each bucket, as far as there is free memory. */
static void batches_add(sp_batch_plans *plans)
{
    for (uint32_t i = 0; i < plans->bucket_count; i++) {
        const bool is_few = plans->buckets[i].rows <= FEW_ROWS;
        for (uint32_t n = 1; n < (is_few ? BATCHES_OF_FEW : BATCHES_OF_MANY); n++) {
            sp_batch *batch;
            if (sp__batch_create(plans, &plans->buckets[i], &batch) != SP_OK) return;
            sp__batch_release(batch);
        }
    }
}

/* Batches of one plan in flight on a device that computes beside the processors. With fewer, few
 * callers are slower than without batches; with more, many callers are. */
#define OWN_SLOTS 8

static sp_status slots_create(const measure *m)
{
    if (m->model->device->dev->vtable->staging_create == NULL) return SP_OK;
    sp_run_slots *slots = sp_aligned_malloc(SP_CACHE_LINE, sizeof *slots);
    if (slots == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for run slots");
    sp__run_slots_init(slots, OWN_SLOTS);
    m->plans->own_slots = slots;
    return SP_OK;
}

static sp_status plans_fill(measure *m, const sp_atomic_u32 *is_stopping)
{
    sp_batch_plans *plans = m->plans;
    SP_TRY(bucket_add(m, m->single, 1));
    plans->lone_ns = plans->buckets[0].run_ns;
    const bool is_split = plans->buckets[0].executable->segments.count > 1;
    bucket_remove(plans);
    if (is_split) return SP_OK; /* runs keep several devices busy, each by itself */
    /* Beside a device that computes by itself the processors are free to wake callers. */
    const bool is_host = m->model->device->dev->vtable->staging_create == NULL;
    m->wake_ns = is_host ? wake_measure() : 0;
    SP_TRY(buckets_make(m, is_stopping));
    if (m->plans->bucket_count > 0) SP_TRY(slots_create(m));
    batches_add(plans);
    return SP_OK;
}

/* The ports of one run, before there are larger plans. */
static sp_status plans_create(measure *m)
{
    const sp_graph_plan *single;
    SP_TRY(rows_find(m, 2));
    SP_TRY(sp__plan_compile(m->model->graph, m->single, &single));
    const sp_status status = sp__batch_plans_create(single, &m->plans);
    if (status == SP_OK) ports_set(m, single);
    sp__plan_destroy(single);
    return status;
}

static sp_status measure_make(measure *m, const sp_atomic_u32 *is_stopping, sp_batch_plans **out)
{
    SP_TRY(plans_create(m));
    sp_status status = SP_OK;
    if (m->proof.is_separable && is_mergeable(m->plans)) status = plans_fill(m, is_stopping);
    if (status == SP_OUT_OF_MEMORY || status == SP_CLOSED) {
        sp__batch_plans_destroy(m->plans);
        return status;
    }
    *out = m->plans;
    return SP_OK;
}

sp_status sp__batch_plans_make(sp_rt_model *model, const uint64_t *words, uint32_t word_count,
                               const sp_atomic_u32 *is_stopping, sp_batch_plans **out)
{
    const uint32_t inputs = model->graph->input_count;
    const uint32_t ports = inputs + model->graph->output_count;
    sp_plan_input *single_inputs = sp_calloc(2 * (size_t)inputs, sizeof *single_inputs);
    sp_rows_value *rows = sp_calloc(ports, sizeof *rows);
    uint64_t *inner = sp_calloc(ports, sizeof *inner);
    sp_plan_request single;
    measure m = {.model = model, .single = &single, .rows = rows, .inner = inner};
    sp_status status = SP_UNSUPPORTED;
    if (single_inputs == NULL || rows == NULL || inner == NULL) {
        status = sp__fail(SP_OUT_OF_MEMORY, "no memory to make plans for batches");
    } else if (sp__plan_key_decode(words, word_count, single_inputs, inputs, &single)) {
        m.inputs = single_inputs + inputs;
        status = measure_make(&m, is_stopping, out);
    }
    sp_free(single_inputs);
    sp_free(rows);
    sp_free(inner);
    return status;
}
