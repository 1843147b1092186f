/* SPDX-License-Identifier: Apache-2.0 */
/* Host accesses to memory without a host pointer: what the host and commands write, they see of
 * each other, and nothing else. The copies are commands, run by the threads that wait for them. */
#include "support.h"

#include <string.h>

#include <streampool/storage.h>

#include "device/queue/page_memory.h"
#include "runtime/storage.h"
#include "runtime/submit.h"
#include "sched/subject.h"

typedef struct world {
    sp_queue_device *common;
    sp_rt_device *device;
    sp_device_vtable vtable; /* of a device with memory of its own */
    sp_stream lease;
    sp_stream_ref stream;
    sp_storage x;
    uint32_t memory; /* plain: the device's */
} world;

static sp_status memory_adopt(sp_dev *device, void *data, uint64_t bytes, sp_memory *out)
{
    *out = (sp_memory){.device = device, .bytes = bytes, .address = data};
    return SP_OK;
}

static void begin(world *w)
{
    memset(w, 0, sizeof *w);
    w->common = sp__subject_device(1);
    w->vtable = *w->common->base.vtable;
    w->vtable.memory_adopt = memory_adopt;
    w->vtable.staging_create = sp__page_memory_create;
    w->vtable.staging_destroy = sp__page_memory_destroy;
    w->common->base.vtable = &w->vtable;
    w->device = sp__subject_runtime(w->common);
    w->stream = sp__subject_stream(w->device, &w->lease);
    SP_SCHED_ASSERT(sp_storage_adopt((sp_device){0}, &w->memory, sizeof w->memory, NULL, &w->x) ==
                    SP_OK);
}

static void end(world *w)
{
    SP_SCHED_ASSERT(sp_storage_release(w->x) == SP_OK);
    sp__stream_lease_release(w->lease);
    sp__subject_runtime_down();
}

/* ---- threads ---- */

static sp_status write_one(const sp_tile *tile)
{
    *(uint32_t *)tile->bindings[0] = 1;
    return SP_OK;
}

static void command_write(void *arg)
{
    static const sp_kernel kernel = {.name = "write one", .run = write_one};
    world *w = arg;
    sp_command command = {
        .type = SP_COMMAND_DISPATCH, .kernel = &kernel, .grid = {1, 1, 1}, .binding_count = 1};
    const sp_use use = {
        .storage = w->x, .bytes = sizeof w->memory, .access = SP_WRITE, .is_overwritten = true};
    sp_point point;
    SP_SCHED_ASSERT(sp__submit_command(&w->stream, &command, &use, 1, NULL, &point) == SP_OK);
    SP_SCHED_ASSERT(sp_stream_synchronize(w->lease) == SP_OK);
}

static void host_add(void *arg)
{
    world *w = arg;
    void *data;
    SP_SCHED_ASSERT(sp_storage_host_begin(w->x, SP_READ_WRITE, &data) == SP_OK);
    *(uint32_t *)data += 10;
    SP_SCHED_ASSERT(sp_storage_host_end(w->x, SP_READ_WRITE) == SP_OK);
}

static uint32_t host_value(const world *w)
{
    void *data;
    SP_SCHED_ASSERT(sp_storage_host_begin(w->x, SP_READ, &data) == SP_OK);
    const uint32_t value = *(uint32_t *)data;
    SP_SCHED_ASSERT(sp_storage_host_end(w->x, SP_READ) == SP_OK);
    return value;
}

static void host_read(void *arg)
{
    const uint32_t value = host_value(arg);
    SP_SCHED_ASSERT(value % 10 <= 1 && value <= 11);
}

/* ---- subjects ---- */

static void subject_mirror_command(void *arg)
{
    (void)arg;
    world w;
    begin(&w);
    sp__subject_run((const sp_thread_fn[]){command_write, host_add}, 2, &w);
    const uint32_t value = host_value(&w);
    SP_SCHED_ASSERT(value == 1 || value == 11);
    end(&w);
}

static void subject_mirror_hosts(void *arg)
{
    (void)arg;
    world w;
    begin(&w);
    sp__subject_run((const sp_thread_fn[]){host_read, host_add}, 2, &w);
    SP_SCHED_ASSERT(host_value(&w) == 10);
    end(&w);
}

const sp_subject sp__subjects_mirror[] = {
    {.name = "mirror_command",
     .test = subject_mirror_command,
     .thread_count = 3,
     .planted = "end_before_copy",
     .options = SP_SLEEPERS,
     .seconds = 0.4},
    {.name = "mirror_hosts",
     .test = subject_mirror_hosts,
     .thread_count = 3,
     .planted = "end_before_copy",
     .options = SP_SLEEPERS,
     .seconds = 0.4},
    {0},
};
