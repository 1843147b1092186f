/* SPDX-License-Identifier: Apache-2.0 */
#include "device_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/delay.h"
#include "base/error.h"
#include "base/thread.h"
#include "device/cpu/cpu.h"
#include "device/cuda/cuda.h"
#include "device/null/null.h"
#include "device/thread_record.h"
#include "gpu_fixture.h"
#include "gpu_kernels.h"

const char *fixture_kind(void)
{
    const char *kind = getenv("STREAMPOOL_TEST_DEVICE");
    return kind != NULL ? kind : "cpu";
}

static uint32_t worker_count(void)
{
    const char *count = getenv("STREAMPOOL_CPU_WORKERS");
    return count != NULL ? (uint32_t)atoi(count) : 0;
}

/* STREAMPOOL_TEST_DELAYS: per mille of marked places that sleep, in builds that have them. */
static void set_delays(void)
{
    const char *per_mille = getenv("STREAMPOOL_TEST_DELAYS");
    if (per_mille != NULL) sp_delay_configure(1, (uint32_t)atoi(per_mille), 50000);
}

bool fixture_has_meetings(void)
{
    return strcmp(fixture_kind(), "cuda") != 0 || gpu_is_fake();
}

const char *fixture_failure(void)
{
    return strcmp(fixture_kind(), "cuda") == 0 ? "CUDA_ERROR_INVALID_VALUE" : "asked to fail";
}

fixture fixture_open_kind(const char *kind)
{
    fixture f = {0};
    set_delays();
    sp_status status;
    if (strcmp(kind, "null") == 0) {
        status = sp__null_open(&(sp_null_options){.quirk_limit = 2}, &f.device);
    } else if (strcmp(kind, "cuda") == 0) {
        gpu_kernels_open();
        status = sp__cuda_open(0, &f.device);
    } else {
        status = sp__cpu_open(&(sp_cpu_options){.worker_count = worker_count()}, &f.device);
    }
    for (uint32_t i = 0; i < FIXTURE_QUEUES && status == SP_OK; i++) {
        status = f.device->vtable->queue_create(
            f.device, i, &(sp_queue_options){.is_batching = true}, &f.queues[i]);
    }
    if (status == SP_OK) return f;
    fprintf(stderr, "cannot open a %s device: %s\n", kind, sp_last_error());
    exit(1);
}

fixture fixture_open(void)
{
    return fixture_open_kind(fixture_kind());
}

void fixture_stop(fixture *f)
{
    f->device->vtable->stop(f->device);
}

void fixture_close(fixture *f)
{
    f->device->vtable->close(f->device);
    f->device = NULL;
}

/* That the host can access, too. */
sp_memory fixture_words(fixture *f, uint32_t count)
{
    sp_memory memory = {0};
    const sp_device_vtable *vtable = f->device->vtable;
    const uint64_t bytes = count * sizeof(uint32_t);
    CHECK_OK(vtable->staging_create != NULL ? vtable->staging_create(f->device, bytes, &memory)
                                            : vtable->memory_create(f->device, bytes, &memory));
    memset(memory.host, 0, count * sizeof(uint32_t));
    return memory;
}

void fixture_free(sp_memory *memory)
{
    const sp_device_vtable *vtable = memory->device->vtable;
    if (vtable->staging_destroy != NULL) vtable->staging_destroy(memory);
    else vtable->memory_destroy(memory);
}

uint32_t *words_of(const sp_memory *memory)
{
    return memory->host;
}

sp_binding bind_poison(const sp_memory *memory, uint32_t first, uint32_t count, sp_access access,
                       sp_poison *poison)
{
    return (sp_binding){.memory = memory,
                        .offset = first * sizeof(uint32_t),
                        .bytes = count * sizeof(uint32_t),
                        .poison = poison,
                        .epoch = 1,
                        .access = (uint8_t)access,
                        .is_overwritten =
                            access == SP_WRITE && count * sizeof(uint32_t) == memory->bytes};
}

sp_binding bind_words(const sp_memory *memory, uint32_t first, uint32_t count, sp_access access)
{
    return bind_poison(memory, first, count, access, NULL);
}

sp_command command_fill(const sp_binding *target, const uint32_t *value)
{
    return (sp_command){.type = SP_COMMAND_FILL,
                        .binding_count = 1,
                        .bindings = target,
                        .constants = value,
                        .constant_bytes = sizeof *value};
}

sp_command command_copy(const sp_binding *target_and_source)
{
    return (sp_command){.type = SP_COMMAND_COPY, .binding_count = 2, .bindings = target_and_source};
}

sp_command command_dispatch(const sp_kernel *kernel, uint32_t tiles, const sp_binding *bindings,
                            uint32_t binding_count, const void *constants, uint32_t constant_bytes)
{
    return (sp_command){.type = SP_COMMAND_DISPATCH,
                        .kernel = kernel,
                        .grid = {tiles, 1, 1},
                        .bindings = bindings,
                        .binding_count = binding_count,
                        .constants = constants,
                        .constant_bytes = constant_bytes};
}

sp_command command_host(sp_host_fn fn, void *ctx)
{
    return (sp_command){.type = SP_COMMAND_HOST, .host = fn, .ctx = ctx};
}

sp_status try_submit(sp_queue *queue, const sp_submission *submission, sp_point *out)
{
    sp_thread_record *record = sp__thread_record();
    if (record == NULL) return SP_OUT_OF_MEMORY;
    sp_submission mine = *submission;
    mine.thread = record->number;
    const sp_device_vtable *vtable = queue->device->vtable;
    SP_TRY(vtable->submit(queue, &mine, out));
    if (vtable->kick != NULL) vtable->kick(queue);
    return SP_OK;
}

sp_point submit_after(sp_queue *queue, const sp_point *waits, uint32_t wait_count,
                      const sp_command *commands, uint32_t count)
{
    sp_point point = {0};
    const sp_submission submission = {
        .waits = waits, .wait_count = wait_count, .commands = commands, .command_count = count};
    CHECK_OK(try_submit(queue, &submission, &point));
    return point;
}

sp_point submit(sp_queue *queue, const sp_command *commands, uint32_t count)
{
    return submit_after(queue, NULL, 0, commands, count);
}

static sp_status run_meet(const sp_tile *tile)
{
    meeting *self = *(meeting *const *)tile->constants;
    const uint64_t deadline = sp_clock_now() + 30000000000u;
    sp_fetch_add_acq_rel(&self->arrived, 1);
    while (sp_load_acquire(&self->arrived) < self->wanted) {
        if (sp_clock_now() > deadline) return SP_OK;
        sp_thread_yield();
    }
    sp_fetch_add_relaxed(&self->met, 1);
    return SP_OK;
}

sp_command command_meet(meeting *self, uint32_t tiles)
{
    self->self = self;
    return command_dispatch(&kernel_meet, tiles, NULL, 0, &self->self, sizeof(meeting *));
}

sp_point submit_held(sp_queue *queue, meeting *held)
{
    *held = (meeting){.wanted = 2};
    const sp_command command = command_meet(held, 1);
    return submit(queue, &command, 1);
}

void let_go(meeting *held)
{
    sp_fetch_add_acq_rel(&held->arrived, 1);
}

sp_status wait_point(sp_point point)
{
    /* Without a deadline, so that this thread may help; a hang ends at the test's time-out. */
    return sp__point_wait(point, SP_NO_DEADLINE);
}

/* ---- kernels ---- */

static sp_status run_add_one(const sp_tile *tile)
{
    ((uint32_t *)tile->bindings[0])[tile->index[0]] += 1;
    return SP_OK;
}

static sp_status run_add_block(const sp_tile *tile)
{
    uint32_t *words = tile->bindings[0];
    sp_clock_sleep(*(const uint64_t *)tile->constants);
    for (uint32_t j = 0; j < tile->count[1]; j++) {
        const uint32_t row = tile->index[2] * tile->grid[1] + tile->index[1] + j;
        for (uint32_t i = 0; i < tile->count[0]; i++) {
            words[row * tile->grid[0] + tile->index[0] + i] += 1;
        }
    }
    return tile->count[2] == 1 ? SP_OK : sp__fail(SP_FAILED, "a block of several planes");
}

static sp_status run_append(const sp_tile *tile)
{
    uint32_t *words = tile->bindings[0];
    words[1 + words[0]] = *(const uint32_t *)tile->constants;
    words[0]++;
    return SP_OK;
}

static sp_status run_fail(const sp_tile *tile)
{
    (void)tile;
    return sp__fail(SP_FAILED, "asked to fail");
}

static sp_status run_slow(const sp_tile *tile)
{
    sp_clock_sleep(*(const uint64_t *)tile->constants);
    *(uint32_t *)tile->bindings[0] += 1;
    return SP_OK;
}

const sp_kernel kernel_add_one = {.name = "add_one", .run = run_add_one, .gpu = &gpu_add_one};
const sp_kernel kernel_add_block = {.name = "add_block", .run = run_add_block, .joins_tiles = true};
const sp_kernel kernel_append = {.name = "append", .run = run_append, .gpu = &gpu_append};
const sp_kernel kernel_meet = {.name = "meet", .run = run_meet, .gpu = &gpu_meet};
const sp_kernel kernel_fail = {.name = "fail", .run = run_fail, .gpu = &gpu_fail};
const sp_kernel kernel_slow = {.name = "slow", .run = run_slow, .gpu = &gpu_slow};
