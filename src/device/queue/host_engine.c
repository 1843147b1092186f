/* SPDX-License-Identifier: Apache-2.0 */
/* The host engine: resolves bindings to addresses, announces them to the sanitizers and runs the
 * kernel. What is drained is done. */
#include "device/queue/engine.h"

#include <string.h>

#include "base/announce.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/lock_check.h"

static void *binding_address(const sp_binding *binding)
{
    return (char *)binding->memory->address + binding->offset;
}

static void binding_announce(const sp_binding *binding)
{
    if (SP_PLANTED(missing_range)) return;
    if ((binding->access & SP_WRITE) != 0) {
        sp_announce_write(binding_address(binding), binding->bytes);
    } else {
        sp_announce_read(binding_address(binding), binding->bytes);
    }
}

/* ---- commands ---- */

static sp_status host_dispatch(sp_command_queue *queue, const sp_record *record,
                               const sp_binding *bindings)
{
    const sp_kernel *kernel = record->command.kernel;
    const sp_tiling *tiling = &record->command.tiling;
    const uint32_t *grid = tiling->grid;
    const void *constants = sp__record_constants(record);
    const uint32_t count = record->count;
    const uint64_t total = (uint64_t)grid[0] * grid[1] * grid[2];
    if (total == 0) return SP_OK;
    if (total > UINT32_MAX / 2) { /* a joining thread's last claim is past the end */
        return sp__fail(SP_INVALID, "a grid has %llu tiles, which is too large",
                        (unsigned long long)total);
    }
    if (total == 1) {
        void *addresses[SP_MAX_BINDINGS];
        for (uint32_t i = 0; i < count; i++) addresses[i] = binding_address(&bindings[i]);
        const sp_tile tile = {.count = {1, 1, 1},
                              .grid = {1, 1, 1},
                              .size = {tiling->size[0], tiling->size[1], tiling->size[2]},
                              .bindings = addresses,
                              .constants = constants};
        sp_lock_check_none("a kernel");
        return kernel->run(&tile);
    }
    sp_tile_job *tiles = &queue->tiles;
    tiles->kernel = kernel;
    tiles->constants = constants;
    tiles->tiling = *tiling;
    sp_store_relaxed(&tiles->total, (uint32_t)total);
    for (uint32_t i = 0; i < count; i++) tiles->bindings[i] = binding_address(&bindings[i]);
    /* The record is the queue's or a list's memory, which is not constant. */
    return sp__queue_run_tiles(queue, (sp_atomic_u32 *)(uintptr_t)&record->command.tile_ns);
}

static void host_fill(const sp_binding *target, const void *pattern, uint32_t pattern_bytes)
{
    unsigned char *bytes = binding_address(target);
    if (pattern_bytes == 1) {
        memset(bytes, *(const unsigned char *)pattern, target->bytes);
        return;
    }
    for (uint64_t at = 0; at + pattern_bytes <= target->bytes; at += pattern_bytes) {
        memcpy(bytes + at, pattern, pattern_bytes);
    }
}

static sp_status host_execute(sp_command_queue *queue, const sp_record *record,
                              const sp_binding *bindings)
{
    for (uint32_t i = 0; i < record->count; i++) binding_announce(&bindings[i]);
    switch ((sp_command_type)record->type) {
    case SP_COMMAND_DISPATCH:
        return host_dispatch(queue, record, bindings);
    case SP_COMMAND_COPY:
        SP_ASSERT(record->count == 2);
        memmove(binding_address(&bindings[0]), binding_address(&bindings[1]), bindings[0].bytes);
        return SP_OK;
    case SP_COMMAND_FILL:
        SP_ASSERT(record->count == 1);
        host_fill(&bindings[0], sp__record_constants(record), record->constant_bytes);
        return SP_OK;
    case SP_COMMAND_TIMESTAMP:
        sp_store_relaxed(record->command.timestamp, sp_clock_now());
        return SP_OK;
    case SP_COMMAND_HOST:
    case SP_COMMAND_LIST:
        break; /* handled in drain.c */
    }
    return sp__fail(SP_INTERNAL, "unknown command %u", record->type);
}

static sp_status host_execute_list(sp_command_queue *queue, const sp_record *record)
{
    (void)queue, (void)record;
    return SP_UNSUPPORTED;
}

/* ---- progress ---- */

static void host_enter(sp_command_queue *queue)
{
    (void)queue;
}

static void host_leave(void) {}

static bool host_has_room(sp_command_queue *queue, uint64_t value)
{
    (void)queue, (void)value;
    return true;
}

static bool host_wait(sp_command_queue *queue, sp_point point)
{
    (void)queue, (void)point;
    return false;
}

static bool host_settle(sp_command_queue *queue)
{
    (void)queue;
    return true;
}

static void host_finish(sp_command_queue *queue, uint64_t value)
{
    /* Relaxed: read only to decide whether there is work. */
    sp_store_relaxed(&queue->drained, value);
    sp__timeline_advance(&queue->base.timeline, value);
}

static sp_status host_queue_open(sp_command_queue *queue)
{
    (void)queue;
    return SP_OK;
}

static void host_queue_close(sp_command_queue *queue)
{
    (void)queue;
}

const sp_queue_engine sp__host_engine = {
    .queue_size = sizeof(sp_command_queue),
    .enter = host_enter,
    .leave = host_leave,
    .has_room = host_has_room,
    .wait = host_wait,
    .execute = host_execute,
    .execute_list = host_execute_list,
    .settle = host_settle,
    .finish = host_finish,
    .queue_open = host_queue_open,
    .queue_close = host_queue_close,
};
