/* SPDX-License-Identifier: Apache-2.0 */
#include "batch/batch_measure.h"

#include "base/error.h"
#include "base/heap.h"
#include "base/log.h"
#include "base/option.h"
#include "base/thread.h"
#include "batch/batch.h"
#include "batch/batch_judge.h"
#include "batch/batch_time.h"
#include "batch/wake_cost.h"
#include "ops/device_kernels.h"
#include "plan/plan_key.h"
#include "plan/plan_rows.h"
#include "runtime/submit_queue.h"

/* Batches of a bucket; with all in use a run is alone or in a smaller one. Where all slots lead,
 * they want the same size: a bucket of few rows has a batch for each slot, if those need little
 * memory, and BATCHES_OF_FEW else. */
#define FEW_ROWS 8u
#define BATCHES_OF_FEW 4u
#define BATCHES_OF_MANY 2u
#define LITTLE_BYTES (UINT64_C(16) << 20)
/* Of longer runs batches of 8 rows are not tried if those of 4 save nothing: they take as long as
 * hundreds of runs of callers. */
#define LONG_RUN_NS 100000u
/* Of a merged row, the time that no other caller has at the same time: as measured, decision 0062.
 */
#define QUEUE_NS 1400u

/* One plan and what is known of it. */
typedef struct measure {
    const sp_batch_build *build;
    sp_rt_model *model;
    const sp_plan_request *single;
    sp_plan_input *inputs; /* of the larger plans */
    sp_rows_value *rows;   /* of inputs, then of outputs: of the last search */
    uint64_t *inner;       /* the same of the first one: sp_rows_value.inner */
    sp_rows_proof proof;
    sp_batch_plans *plans;
    sp_batch_plans *lone; /* one bucket of one row, of no entry: to measure with */
    uint64_t lone_ns;     /* of its run, beside the last batch that was measured */
    uint64_t wake_ns;     /* the least so far, or 0 */
    bool is_host;         /* the device computes on the processors; else callers cost nothing */
    uint32_t width;       /* processors of the device */
    uint32_t slot_count;  /* batches that may be in flight */
    uint32_t queue_count; /* submit queues that there should be */
    uint32_t queue_limit; /* up to this number: see queue_open */
} measure;

/* ---- the time of a run ---- */

static sp_status times_measure(measure *m, const sp_batch *batch, uint64_t *run_ns)
{
    sp_batch *lone = sp__batch_acquire(m->lone, 1);
    sp_batch_time time = {0};
    const sp_status status = sp__batch_time_measure(batch, lone, &time);
    sp__batch_release(lone);
    *run_ns = time.batch_ns;
    m->lone_ns = time.lone_ns;
    if (!m->is_host || status != SP_OK) return status;
    if (sp_load_relaxed(m->build->is_stopping) != 0) return SP_CANCELLED;
    const uint64_t wake_ns = sp__wake_cost_measure();
    if (m->wake_ns == 0 || wake_ns < m->wake_ns) m->wake_ns = wake_ns;
    return status;
}

/* ---- a bucket ---- */

static uint32_t batches_of(const measure *m, uint32_t rows, const sp_graph_plan *plan)
{
    if (rows > FEW_ROWS) return BATCHES_OF_MANY;
    const uint64_t most = LITTLE_BYTES / (plan->arena_bytes + 1);
    const uint32_t count = m->slot_count < most ? m->slot_count : (uint32_t)most;
    return count > BATCHES_OF_FEW ? count : BATCHES_OF_FEW;
}

/* Runs keep several devices busy, each by itself. And steps on the fallback read and write the
 * tensors in host memory, where those of a batch are not as the plan has them: rows of callers lie
 * anywhere. */
static bool has_fallback_steps(const sp_executable *executable)
{
    return executable->segments.count > 1;
}

/* Adds a bucket with one batch, and measures it. On an error it is removed; else the caller
 * publishes or removes it. */
static sp_status bucket_add(measure *m, const sp_plan_request *request, uint32_t rows,
                            uint64_t *run_ns)
{
    sp_batch_plans *plans = m->plans;
    sp_executable *executable;
    sp_batch *batch;
    SP_TRY(sp__plan_cache_compile(&m->model->plans, request, true, &executable));
    if (has_fallback_steps(executable)) { /* of ops that do nothing to one row */
        sp__executable_destroy(executable);
        return SP_UNSUPPORTED;
    }
    executable->rows = (sp_port_rows){.count = rows, .pieces = plans->pieces};
    const uint32_t batches = batches_of(m, rows, executable->plan);
    sp_batch_bucket *bucket = sp__batch_bucket_add(plans, rows, batches - 1, executable);
    const uint64_t most = m->model->limits.bytes * rows; /* 0: no limit */
    sp_status status = sp__plan_check_bytes(executable->plan, most);
    if (status == SP_OK) status = sp__executable_open_queues(executable);
    if (status == SP_OK) status = sp__batch_create(plans, bucket, &batch);
    if (status == SP_OK) {
        status = times_measure(m, batch, run_ns);
        bucket->run_ns = *run_ns;
        bucket->lone_ns = m->lone_ns;
        sp__batch_release(batch);
    }
    if (status != SP_OK) sp__batch_bucket_remove(plans);
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

/* On a device that has its own memory, whose kernels can copy rows from anywhere. Others compute in
 * the host's: there the lead's copies are one of two passes over a row that is in its cache. */
static bool can_find_rows(const sp_dev *dev)
{
    const sp_kernel *own = sp__device_kernels(dev); /* NULL: it has those of the host */
    return dev->vtable->staging_create != NULL &&
           (own == NULL || sp__kernel_is_there(&own[SP_KERNEL_ID_move_rows]));
}

/* Ports whose rows are so large that callers copy their own. */
static void ports_set_by_rows(const measure *m)
{
    sp_batch_plans *plans = m->plans;
    if (!can_find_rows(m->model->device->dev)) return;
    for (uint32_t i = 0; i < plans->input_count + plans->output_count; i++) {
        sp_batch_port *port = &plans->ports[i];
        if (!port->is_batched || sp__batch_port_row_bytes(port) < SP_BATCH_ROW_BYTES) continue;
        port->is_by_rows = true;
        plans->pieces[i] = (sp_row_pieces){.outer = port->outer, .chunk = port->chunk};
    }
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
    ports_set_by_rows(m);
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

static sp_status bucket_try(measure *m, uint32_t rows, uint64_t *run_ns)
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
    return bucket_add(m, &request, rows, run_ns);
}

/* ---- all buckets ---- */

/* What a row costs besides its computation: its caller's way into the queue and out of it. That
 * takes a wake-up's time or more; and callers on all processors go one by one. */
static uint64_t row_cost(const measure *m)
{
    const uint64_t one_by_one = (uint64_t)QUEUE_NS * m->width;
    if (!m->is_host) return 0;
    return m->wake_ns > one_by_one ? m->wake_ns : one_by_one;
}

/* On a device that has its own memory, which computes by itself. */
static sp_status slots_create(const measure *m)
{
    if (m->model->flow.limit != 0) return SP_OK; /* it counts on the device's slots */
    sp_run_slots *slots = sp_aligned_malloc(SP_CACHE_LINE, sizeof *slots);
    if (slots == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for run slots");
    const uint32_t count = sp__batches_in_flight(m->lone_ns);
    sp__run_slots_init(slots, count, count);
    sp_mutex_lock(&slots->lock);
    slots->own.most_queued = m->model->flow.most_queued;
    sp_mutex_unlock(&slots->lock);
    m->plans->own_slots = slots;
    return SP_OK;
}

/* What such a device has beside the buckets. */
static sp_status extras_create(const measure *m)
{
    sp_batch_plans *plans = m->plans;
    sp_rt_device *device = m->model->device;
    if (device->dev->vtable->staging_create == NULL) return SP_OK;
    SP_TRY(slots_create(m));
    return sp__batch_rows_create(&device->staging, plans->ports, plans->input_count,
                                 plans->output_count, &plans->rows);
}

/* One submit queue for each batch that may be in flight. One with each bucket: a busy GPU takes a
 * long time for it. */
static void queue_open(measure *m)
{
    if (m->queue_count == m->queue_limit) return;
    (void)sp__submit_queues_open(m->model->device, ++m->queue_count);
}

/* On a GPU the batches of all sizes share workspaces. Where each has an arena of its own, all of
 * them take several times what those take that are used: leads show which these are. */
static bool are_made_at_once(const measure *m)
{
    return !m->is_host || sp_option_enum(SP_OPTION_BATCHING) == SP_OPTION_BATCHING_ALWAYS;
}

static void batches_make(const measure *m, sp_batch_bucket *bucket)
{
    if (!are_made_at_once(m)) {
        sp__batch_bucket_reclaim(bucket);
        return;
    }
    sp_store_relaxed(&bucket->is_wanted, 1);
    /* As far as there is free memory. */
    while (sp__batch_bucket_refill(m->plans, bucket)) {
    }
    (void)sp__batch_rows_refill(m->plans->rows);
}

/* The plans' runs use the new bucket from now on. *may_continue is false if there is no plan. */
static sp_status bucket_publish(measure *m, bool *may_continue)
{
    sp_batch_plans *plans = m->plans;
    const uint32_t count = sp__batch_plans_count(plans);
    sp_batch_bucket *bucket = &plans->buckets[count];
    if (count == 0) {
        const sp_status status = extras_create(m);
        if (status != SP_OK) sp__batch_bucket_remove(plans);
        SP_TRY(status);
    }
    batches_make(m, bucket);
    sp__batch_bucket_publish(plans);
    *may_continue = m->build->attach(m->build, plans);
    queue_open(m);
    return SP_OK;
}

/* What the log tells of a size. */
typedef struct size_note {
    uint32_t rows;
    unsigned long long run_ns, lone_ns, caller_ns;
} size_note;

static void size_log(void *arg)
{
    const size_note *note = arg;
    SP_LOG(SP_LOG_DEBUG, "a batch of %u takes %llu ns, a run %llu ns, a caller in it %llu ns",
           note->rows, note->run_ns, note->lone_ns, note->caller_ns);
}

/* The log's callback has ended the thread. It is kept, since it has what it is building. */
static bool size_log_ended(void *arg)
{
    (void)arg;
    return true;
}

/* One size. *may_continue is false if larger ones promise nothing. */
static sp_status size_try(measure *m, uint32_t rows, bool *may_continue)
{
    sp_batch_plans *plans = m->plans;
    uint64_t run_ns = 0;
    *may_continue = false;
    SP_TRY(bucket_try(m, rows, &run_ns));
    size_note note = {rows, run_ns, m->lone_ns, row_cost(m)};
    sp_error_scope scope; /* ends those that the callback has left open */
    sp__error_set_aside(&scope);
    if (sp__log_is_on(SP_LOG_DEBUG)) sp_thread_guard(size_log, size_log_ended, &note);
    sp__error_put_back(&scope);
    sp_batch_bucket *bucket = &plans->buckets[sp__batch_plans_count(plans)];
    if (sp__batch_bucket_saves(bucket, 0)) {
        SP_TRY(bucket_publish(m, may_continue));
        if (run_ns > SP_BATCH_MAX_NS) *may_continue = false; /* always: one of these */
        return SP_OK;
    }
    if (m->is_host) sp__batch_bucket_reclaim(bucket);
    sp__batch_bucket_remove(plans);
    const uint32_t enough = m->lone_ns < LONG_RUN_NS ? 8 : 4;
    const bool is_hopeless = sp__batch_plans_count(plans) == 0 && rows >= enough;
    *may_continue = !is_hopeless && run_ns <= SP_BATCH_MAX_NS / 2;
    return SP_OK;
}

static sp_status buckets_make(measure *m)
{
    static const uint32_t sizes[] = {2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
    bool may_continue = true;
    for (uint32_t i = 0; i < SP_COUNT_OF(sizes) && may_continue; i++) {
        if (sp_load_relaxed(m->build->is_stopping) != 0) break;
        const sp_status status = size_try(m, sizes[i], &may_continue);
        sp__batch_plans_judge(m->plans, row_cost(m));
        /* What leads have wanted meanwhile: their requests wait for the end of this one. */
        if (m->build->refill != NULL) m->build->refill(m->build);
        if (status == SP_OUT_OF_MEMORY && sp__batch_plans_count(m->plans) == 0) return status;
        if (status != SP_OK) break;
    }
    while (m->queue_count < m->queue_limit) queue_open(m);
    return SP_OK;
}

/* A run of one row, to compare with. */
static sp_status lone_create(measure *m)
{
    sp_executable *executable;
    SP_TRY(sp__plan_cache_compile(&m->model->plans, m->single, true, &executable));
    const sp_status status = sp__batch_plans_create(executable->plan, &m->lone);
    if (status != SP_OK) sp__executable_destroy(executable);
    SP_TRY(status);
    sp_batch_bucket *bucket = sp__batch_bucket_add(m->lone, 1, 0, executable);
    sp__batch_bucket_publish(m->lone);
    SP_TRY(sp__executable_open_queues(executable));
    sp_batch *batch;
    SP_TRY(sp__batch_create(m->lone, bucket, &batch));
    sp__batch_release(batch);
    return SP_OK;
}

static sp_status plans_fill(measure *m)
{
    sp_rt_device *device = m->model->device;
    SP_TRY(lone_create(m));
    if (has_fallback_steps(m->lone->buckets[0].executable)) return SP_OK;
    /* Beside a device that computes by itself the processors are free to wake callers. */
    m->is_host = device->dev->vtable->staging_create == NULL;
    m->width = device->dev->limits.width;
    m->queue_count = sp__submit_queues_count(device);
    m->slot_count = m->is_host ? device->dev->limits.run_slots : SP_BATCHES_IN_FLIGHT;
    m->queue_limit = m->queue_count + m->slot_count;
    return buckets_make(m);
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

static sp_status measure_make(measure *m, sp_batch_plans **out)
{
    SP_TRY(plans_create(m));
    sp_status status = SP_OK;
    if (m->proof.is_separable && is_mergeable(m->plans)) status = plans_fill(m);
    if (m->lone != NULL) sp__batch_plans_drop(m->lone);
    if (status == SP_OUT_OF_MEMORY || status == SP_CLOSED) {
        sp__batch_plans_drop(m->plans);
        return status;
    }
    *out = m->plans;
    return SP_OK;
}

sp_status sp__batch_plans_make(const sp_batch_build *build, sp_batch_plans **out)
{
    sp_rt_model *model = build->model;
    const uint32_t inputs = model->graph->input_count;
    const uint32_t ports = inputs + model->graph->output_count;
    sp_plan_input *single_inputs = sp_calloc(2 * (size_t)inputs, sizeof *single_inputs);
    sp_rows_value *rows = sp_calloc(ports, sizeof *rows);
    uint64_t *inner = sp_calloc(ports, sizeof *inner);
    sp_plan_request single;
    measure m = {.build = build, .model = model, .single = &single, .rows = rows, .inner = inner};
    sp_status status = SP_UNSUPPORTED;
    if (single_inputs == NULL || rows == NULL || inner == NULL) {
        status = sp__fail(SP_OUT_OF_MEMORY, "no memory to make plans for batches");
    } else if (sp__plan_key_decode(build->words, build->word_count, single_inputs, inputs,
                                   &single)) {
        single.precision = model->plans.precision; /* decides which values a plan knows */
        m.inputs = single_inputs + inputs;
        status = measure_make(&m, out);
    }
    sp_free(single_inputs);
    sp_free(rows);
    sp_free(inner);
    return status;
}
