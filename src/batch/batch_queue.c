/* SPDX-License-Identifier: Apache-2.0 */
/* Batch queues: life, options, statistics. */
#include "batch/batch_queue.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/heap.h"
#include "batch/batch_builder.h"
#include "batch/batch_plans.h"
#include "batch/batch_run.h"
#include "runtime/runtime_state.h"

#define MOST_WORKERS 64u
#define DEFAULT_WORKERS 8u
/* So that each request can have a hold on its queue. */
#define MOST_WAITING (1u << 19)
/* Of all queues: a lead is among the submitted runs that wait for a slot of the device, and these
 * are counted in 16 bits (exec/run_slots.h). */
#define MOST_ALL_WORKERS 16384u

static void queue_destroy(sp_object *object);

static sp_handle_table queues = {/* process-wide: the table of all handles of batch queues */
                                 .kind = SP_KIND_BATCH_QUEUE,
                                 .object_bytes = sizeof(sp_rt_batch_queue),
                                 .destroy = queue_destroy,
                                 .lock = SP_MUTEX_INIT(SP_LOCK_HANDLE_TABLE)};

/* Workers of all queues; orders nothing. */
static sp_atomic_u32 all_workers; /* process-wide: a limit for all queues */

static sp_rt_batch_queue *queue_of(sp_object *object)
{
    return SP_CONTAINER_OF(object, sp_rt_batch_queue, object);
}

/* ---- options ---- */

static sp_status workers_count(uint32_t added)
{
    if (sp_fetch_add_relaxed(&all_workers, added) + added <= MOST_ALL_WORKERS) return SP_OK;
    sp_fetch_sub_relaxed(&all_workers, added);
    return sp__fail(SP_EXHAUSTED, "batch queues: all queues may have %u workers in all",
                    MOST_ALL_WORKERS);
}

static sp_status options_check(const sp_batch_queue_options *options)
{
    if (options->max_batch > SP_BATCH_ROWS) {
        return sp__fail(SP_INVALID, "max_batch is %u; a batch has at most %d requests",
                        options->max_batch, SP_BATCH_ROWS);
    }
    if (options->workers > MOST_WORKERS) {
        return sp__fail(SP_INVALID, "workers is %u; a batch queue has at most %u", options->workers,
                        MOST_WORKERS);
    }
    if (options->max_waiting > MOST_WAITING) {
        return sp__fail(SP_INVALID, "max_waiting is %u; at most %u requests wait in a batch queue",
                        options->max_waiting, MOST_WAITING);
    }
    if (options->max_delay_ns >= 0) return SP_OK;
    return sp__fail(SP_INVALID, "max_delay_ns is %lld; it must not be negative",
                    (long long)options->max_delay_ns);
}

/* With the defaults in place of zeroes. */
static sp_status options_resolve(const sp_rt_model *model, const sp_batch_queue_options *options,
                                 sp_batch_queue_options *out)
{
    *out = options != NULL ? *options : (sp_batch_queue_options){0};
    SP_TRY(options_check(out));
    const uint32_t width = model->device->dev->limits.width;
    if (out->max_batch == 0) out->max_batch = SP_BATCH_ROWS;
    if (out->workers == 0) out->workers = width < DEFAULT_WORKERS ? width : DEFAULT_WORKERS;
    if (out->max_waiting == 0) out->max_waiting = SP_RUN_SLOTS_SUBMITTED;
    return SP_OK;
}

/* ---- life ---- */

static void queue_reset(sp_rt_batch_queue *queue, sp_rt_model *model,
                        const sp_batch_queue_options *options)
{
    queue->model = model;
    sp__object_hold(&model->object);
    sp_mutex_init(&queue->lock, SP_LOCK_BATCH_QUEUE);
    sp_mutex_lock(&queue->lock);
    queue->options = *options;
    queue->counted_workers = options->workers;
    queue->alone = (sp_batch_group){0};
    sp__wait_queue_init(&queue->alone.requests);
    sp__wait_queue_init(&queue->room);
    queue->leads = queue->waiting = queue->reserved = queue->passed_over = 0;
    queue->next_number = 0;
    queue->is_released = false;
    queue->timer_ns = SP_NO_DEADLINE;
    queue->total_wait_ns = queue->longest_wait_ns = queue->refused = 0;
    sp_mutex_unlock(&queue->lock);
    sp_store_relaxed(&queue->done, 0);
    sp_store_relaxed(&queue->failed, 0);
    sp_store_relaxed(&queue->cancelled, 0);
    sp_store_relaxed(&queue->expired, 0);
    for (uint32_t i = 0; i < SP_BATCH_QUEUE_SIZES; i++) sp_store_relaxed(&queue->batches[i], 0);
}

sp_status sp__batch_queue_create(sp_rt_model *model, const sp_batch_queue_options *options,
                                 sp_batch_queue *out)
{
    sp_object *object;
    sp_batch_queue_options resolved;
    SP_TRY(options_resolve(model, options, &resolved));
    SP_TRY(workers_count(resolved.workers));
    const sp_status status = sp__handle_acquire(&queues, &object);
    if (status != SP_OK) {
        sp_fetch_sub_relaxed(&all_workers, resolved.workers);
        return status;
    }
    queue_reset(queue_of(object), model, &resolved);
    out->bits = sp__handle_publish(&queues, object);
    return SP_OK;
}

static void queue_destroy(sp_object *object)
{
    sp_rt_batch_queue *queue = queue_of(object);
    if (sp__runtime_is_forked()) return;
    sp_mutex_lock(&queue->lock);
    sp_batch_group *groups = queue->alone.next;
    const uint32_t workers = queue->counted_workers;
    sp_mutex_unlock(&queue->lock);
    sp_mutex_deinit(&queue->lock);
    for (sp_batch_group *next; groups != NULL; groups = next) {
        next = groups->next;
        sp_free(groups);
    }
    sp_fetch_sub_relaxed(&all_workers, workers);
    sp_rt_model *model = queue->model;
    sp__handle_recycle(&queues, object);
    sp__model_drop(model);
}

sp_status sp__batch_queue_hold(sp_batch_queue handle, sp_rt_batch_queue **out)
{
    sp_object *object = sp__handle_hold(&queues, handle.bits, "batch queue");
    if (object == NULL) return SP_INVALID;
    *out = queue_of(object);
    return SP_OK;
}

bool sp__batch_queue_hold_slot(uint32_t slot, sp_rt_batch_queue **out)
{
    sp_object *object;
    const bool is_slot = sp__handle_hold_slot(&queues, slot, &object);
    *out = object != NULL ? queue_of(object) : NULL;
    return is_slot;
}

void sp__batch_queues_deinit(void)
{
    sp__handle_table_reset(&queues);
}

static void drop_last(sp_host_job *job)
{
    sp__object_drop(&queues, &SP_CONTAINER_OF(job, sp_rt_batch_queue, job)->object);
}

/* The thread may be one of a device, and to destroy a model takes long. */
void sp__batch_queue_drop(sp_rt_batch_queue *queue)
{
    if (sp__object_drop_unless_last(&queue->object)) return;
    queue->job = (sp_host_job){.run = drop_last};
    if (!sp__host_executor_post(&queue->job)) drop_last(&queue->job);
}

sp_status sp__batch_queue_retain(sp_batch_queue handle)
{
    return sp__handle_retain(&queues, handle.bits, "batch queue");
}

sp_status sp__batch_queue_release(sp_batch_queue handle)
{
    sp_object *object =
        handle.bits != 0 ? sp__handle_hold(&queues, handle.bits, "batch queue") : NULL;
    const sp_status status = sp__handle_release(&queues, handle.bits, "batch queue");
    if (object == NULL) return status;
    if (!sp__handle_is_current(object, handle.bits)) sp__batch_queue_flush(queue_of(object), true);
    sp__object_drop(&queues, object);
    return status;
}

/* ---- calls ---- */

/* The workers by which the queue counts: those of its options, and more while they still lead. */
static uint32_t workers_settle_locked(sp_rt_batch_queue *queue) SP_REQUIRES(&queue->lock)
{
    const uint32_t workers = queue->options.workers;
    const uint32_t needed = workers > queue->leads ? workers : queue->leads;
    const uint32_t surplus = queue->counted_workers > needed ? queue->counted_workers - needed : 0;
    queue->counted_workers -= surplus;
    return surplus;
}

void sp__batch_queue_lead_end(sp_rt_batch_queue *queue)
{
    sp_mutex_lock(&queue->lock);
    queue->leads--;
    const uint32_t surplus = workers_settle_locked(queue);
    sp_mutex_unlock(&queue->lock);
    if (surplus != 0) sp_fetch_sub_relaxed(&all_workers, surplus);
}

sp_status sp__batch_queue_configure(sp_rt_batch_queue *queue, const sp_batch_queue_options *options)
{
    sp_batch_queue_options resolved;
    SP_TRY(options_resolve(queue->model, options, &resolved));
    SP_TRY(workers_count(resolved.workers)); /* beside the present ones, of which the rest goes */
    sp_mutex_lock(&queue->lock);
    queue->options = resolved;
    queue->counted_workers += resolved.workers;
    const uint32_t surplus = workers_settle_locked(queue);
    sp_mutex_unlock(&queue->lock);
    sp_fetch_sub_relaxed(&all_workers, surplus);
    sp_resume_list ready = {0};
    sp__batch_queue_settle(queue, &ready);
    sp__resume_list_run(&ready);
    return SP_OK;
}

void sp__batch_queue_poll(sp_rt_batch_queue *queue)
{
    sp_resume_list ready = {0};
    sp_mutex_lock(&queue->lock);
    queue->timer_ns = SP_NO_DEADLINE;
    sp_mutex_unlock(&queue->lock);
    sp__batch_queue_settle(queue, &ready);
    sp__resume_list_run(&ready);
}

static void plans_request(const sp_rt_batch_queue *queue, sp_plan_entry *entry)
{
    const uint32_t most = SP_WAITS_BEFORE_PLANS;
    if (sp_load_relaxed(&entry->waits) >= most) return;
    if (sp_fetch_add_relaxed(&entry->waits, most) >= most) return;
    if (!sp__batch_builder_request(queue->model, entry)) sp_store_relaxed(&entry->waits, 0);
}

sp_status sp__batch_queue_line(const sp_rt_batch_queue *queue, sp_plan_entry *entry,
                               sp_batch_line *out)
{
    const sp_batch_plans *plans = sp__batch_plans_of(entry);
    if (plans != NULL && plans->own_slots != NULL) {
        *out = (sp_batch_line){.slots = plans->own_slots};
        return SP_OK;
    }
    *out = (sp_batch_line){.slots = sp__device_run_slots(queue->model->device),
                           .flow = &queue->model->flow};
    if (out->slots == NULL) return SP_OUT_OF_MEMORY;
    if (SP_UNLIKELY(plans == NULL) && !entry->is_private) plans_request(queue, entry);
    return SP_OK;
}

/* ---- statistics ---- */

static const uint32_t sizes[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
_Static_assert(SP_COUNT_OF(sizes) == SP_BATCH_QUEUE_SIZES, "all sizes of batches");

void sp__batch_queue_count(sp_rt_batch_queue *queue, uint32_t rows)
{
    uint32_t i = 0;
    while (sizes[i] < rows) i++;
    sp_fetch_add_relaxed(&queue->batches[i], (uint64_t)1);
}

void sp__batch_queue_read(sp_rt_batch_queue *queue, sp_batch_queue_statistics *out)
{
    *out = (sp_batch_queue_statistics){0};
    sp_mutex_lock(&queue->lock);
    out->submitted = queue->next_number;
    out->refused = queue->refused;
    out->waiting = queue->waiting;
    out->total_wait_ns = queue->total_wait_ns;
    out->longest_wait_ns = queue->longest_wait_ns;
    out->done = sp_load_relaxed(&queue->done);
    out->failed = sp_load_relaxed(&queue->failed);
    out->cancelled = sp_load_relaxed(&queue->cancelled);
    out->expired = sp_load_relaxed(&queue->expired);
    sp_mutex_unlock(&queue->lock);
    const uint64_t ended = out->done + out->failed + out->cancelled + out->expired;
    out->in_flight = (uint32_t)(out->submitted - out->waiting - ended);
    for (uint32_t i = 0; i < SP_BATCH_QUEUE_SIZES; i++) {
        const uint64_t batches = sp_load_relaxed(&queue->batches[i]);
        out->by_rows[i].rows = sizes[i];
        out->by_rows[i].batches = batches;
        out->batches += batches;
        out->rows += batches * sizes[i];
    }
}
