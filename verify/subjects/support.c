/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <string.h>

#include "base/heap.h"
#include "device/queue/engine.h"
#include "device/thread_record.h"

/* ---- threads ---- */

void sp__subject_run(const sp_thread_fn *fns, uint32_t count, void *arg)
{
    sp_thread threads[4];
    SP_SCHED_ASSERT(count <= 4);
    for (uint32_t i = 0; i < count; i++) {
        SP_SCHED_ASSERT(sp_thread_create(&threads[i], "", fns[i], arg) == SP_OK);
    }
    for (uint32_t i = 0; i < count; i++) sp_thread_join(&threads[i]);
}

void sp__subject_end(void)
{
    sp__thread_records_deinit();
}

void sp__subject_is_not_merged(sp_run_request *request, sp_resume_list *ready)
{
    (void)request;
    (void)ready;
    SP_SCHED_ASSERT(false);
}

/* ---- devices ---- */

/* Blocks of the allocator are large; subjects use the first bytes of each (subject_allocator.c), so
 * the pages are few. */
#define PAGES_PER_MEMORY_BYTES 4096u

static sp_status memory_create(sp_dev *device, uint64_t bytes, sp_memory *out)
{
    const uint64_t real = bytes / PAGES_PER_MEMORY_BYTES + 64;
    void *host = sp_aligned_malloc(SP_CACHE_LINE, real);
    if (host == NULL) return SP_OUT_OF_MEMORY;
    *out = sp__memory_at_host(device, host, bytes);
    return SP_OK;
}

static void memory_destroy(sp_memory *memory)
{
    sp_free(memory->host);
}

static void device_close(sp_dev *base)
{
    sp_queue_device *device = sp__queue_device(base);
    sp__queue_device_deinit(device);
    sp_free(device);
}

static const sp_device_kind kind = {.name = "subject", .numbering = SP_DEVICE_UNBOUNDED};

static const sp_device_vtable vtable = {
    SP_QUEUE_VTABLE,
    .kind = &kind,
    .close = device_close,
    .memory_create = memory_create,
    .memory_destroy = memory_destroy,
};

sp_queue_device *sp__subject_device(uint32_t worker_count)
{
    static const sp_quirk quirk = {.name = "one at a time", .limit = 1};
    sp_queue_device *device = sp_aligned_malloc(SP_CACHE_LINE, sizeof *device);
    SP_SCHED_ASSERT(device != NULL);
    memset(device, 0, sizeof *device);
    device->base.vtable = &vtable;
    device->base.limits = (sp_device_limits){
        .name = "subject", .width = 1, .run_slots = 1, .quirk_count = 1, .quirks = &quirk};
    device->options = (sp_queue_device_options){.engine = &sp__host_engine,
                                                .worker_count = worker_count,
                                                .can_help = true,
                                                .queue_bytes = (uint64_t)1 << 20,
                                                .nap_ns = 1000000};
    SP_SCHED_ASSERT(sp__queue_throttles_init(device) == SP_OK);
    sp_mutex_init(&device->lock, SP_LOCK_QUEUE_DEVICE);
    SP_SCHED_ASSERT(sp__queue_workers_start(device) == SP_OK);
    return device;
}

void sp__subject_device_free(sp_queue_device *device)
{
    device->base.vtable->close(&device->base);
}

sp_command_queue *sp__subject_queue(sp_queue_device *device, uint32_t index, bool is_batching)
{
    const sp_queue_options options = {.is_batching = is_batching};
    sp_queue *queue;
    SP_SCHED_ASSERT(sp__command_queue_create(&device->base, index, &options, &queue) == SP_OK);
    return sp__command_queue(queue);
}

static sp_status append(const sp_tile *tile)
{
    sp_subject_log *log = tile->bindings[0];
    SP_SCHED_ASSERT(log->count < SP_LOG_ITEMS);
    log->items[log->count] = *(const uint32_t *)tile->constants;
    log->count++;
    return SP_OK;
}

static const sp_kernel append_kernel = {.name = "append", .run = append};

sp_command sp__subject_dispatch(const sp_kernel *kernel, sp_binding *binding, sp_memory *memory,
                                void *data, uint64_t bytes, const uint32_t *constant)
{
    *memory = sp__memory_at_host(NULL, data, bytes);
    *binding = (sp_binding){.memory = memory, .bytes = bytes, .access = SP_READ_WRITE};
    return (sp_command){.type = SP_COMMAND_DISPATCH,
                        .kernel = kernel,
                        .grid = {1, 1, 1},
                        .binding_count = 1,
                        .bindings = binding,
                        .constant_bytes = constant != NULL ? sizeof *constant : 0,
                        .constants = constant};
}

sp_status sp__subject_submit(sp_command_queue *queue, const sp_command *command,
                             const sp_point *waits, uint32_t wait_count, sp_point *out)
{
    const sp_submission submission = {.waits = waits,
                                      .wait_count = wait_count,
                                      .commands = command,
                                      .command_count = command != NULL ? 1 : 0};
    return sp__queue_submit(&queue->base, &submission, out);
}

/* The memory that bindings name outlives every command: one per item. */
static sp_memory log_memory[SP_LOG_ITEMS];

static sp_command append_to(sp_subject_log *log, const uint32_t *item, sp_binding *binding)
{
    SP_SCHED_ASSERT(*item < SP_LOG_ITEMS);
    return sp__subject_dispatch(&append_kernel, binding, &log_memory[*item], log, sizeof log->count,
                                item);
}

sp_status sp__subject_append(sp_command_queue *queue, sp_subject_log *log, uint32_t item,
                             const sp_point *waits, uint32_t wait_count, sp_point *out)
{
    sp_binding binding;
    const sp_command command = append_to(log, &item, &binding);
    return sp__subject_submit(queue, &command, waits, wait_count, out);
}

sp_status sp__subject_append_and_run(sp_command_queue *queue, sp_subject_log *log, uint32_t item,
                                     sp_point *out)
{
    sp_binding binding;
    const sp_command command = append_to(log, &item, &binding);
    const sp_submission submission = {.commands = &command, .command_count = 1};
    return sp__queue_submit_and_run(&queue->base, &submission, out);
}

bool sp__subject_work(sp_queue_device *device, uint32_t queue_count)
{
    static const sp_executor executor = {
        .kind = SP_WORKER, .until = UINT64_MAX, .budget = UINT32_MAX};
    bool is_any = false;
    for (uint32_t i = 0; i < queue_count; i++) {
        sp_command_queue *queue = sp_load_acquire(&device->queues[i]);
        if (queue == NULL || !sp__queue_claim(queue)) continue;
        sp__queue_drain(queue, &executor);
        is_any = true;
    }
    return is_any;
}

void sp__subject_poll(sp_queue_device *device, uint32_t queue_count, sp_point until)
{
    while (!sp__point_has_passed(until)) {
        if (!sp__subject_work(device, queue_count)) sp_spin_hint();
    }
}

/* ---- runtime ---- */

sp_rt_device *sp__subject_runtime(sp_queue_device *device)
{
    sp_rt_device *out;
    sp_store_release(&sp__runtime_phase, SP_RUNTIME_UP);
    SP_SCHED_ASSERT(sp__runtime_add_device(&device->base, &out) == SP_OK);
    return out;
}

void sp__subject_runtime_down(void)
{
    sp__runtime_reset();
}

sp_rt_device *sp__subject_bare_device(void)
{
    sp_rt_device *device = sp_aligned_malloc(SP_CACHE_LINE, sizeof *device);
    SP_SCHED_ASSERT(device != NULL);
    memset(device, 0, sizeof *device);
    device->dev = &sp__subject_device(0)->base;
    return device;
}

void sp__subject_bare_device_free(sp_rt_device *device)
{
    sp__subject_device_free(sp__queue_device(device->dev));
    sp_free(device);
}

sp_stream_ref sp__subject_stream(sp_rt_device *device, sp_stream *out)
{
    sp_stream_ref ref;
    SP_SCHED_ASSERT(sp__stream_pool_acquire(&device->pool, out) == SP_OK);
    SP_SCHED_ASSERT(sp__stream_find(*out, &ref) == SP_OK);
    return ref;
}
