/* SPDX-License-Identifier: Apache-2.0 */
/* The host engine: bindings become addresses here, are announced to the sanitizers, and handed to
 * the kernel. What is drained is done. */
#include "device/queue/engine.h"

#include <string.h>

#include "base/announce.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/lock_check.h"

static void *address_of(const sp_binding *binding)
{
    return (char *)binding->memory->address + binding->offset;
}

static void announce(const sp_binding *binding)
{
    if (SP_PLANTED(missing_range)) return;
    if ((binding->access & SP_WRITE) != 0) {
        sp_announce_write(address_of(binding), binding->bytes);
    } else {
        sp_announce_read(address_of(binding), binding->bytes);
    }
}

/* ---- commands ---- */

static sp_status dispatch(sp_command_queue *queue, const sp_record *record,
                          const sp_binding *bindings)
{
    const sp_kernel *kernel = record->command.kernel;
    const uint32_t *grid = record->command.grid;
    const void *constants = sp__record_constants(record);
    const uint32_t count = record->count;
    const uint64_t total = (uint64_t)grid[0] * grid[1] * grid[2];
    if (total == 0) return SP_OK;
    if (total > UINT32_MAX / 2) { /* every thread that joins raises the counter once past the end */
        return sp__fail(SP_INVALID, "a grid of %llu tiles is too large", (unsigned long long)total);
    }
    if (total == 1) {
        void *addresses[SP_MAX_BINDINGS];
        for (uint32_t i = 0; i < count; i++) addresses[i] = address_of(&bindings[i]);
        const sp_tile tile = {.grid = {1, 1, 1}, .bindings = addresses, .constants = constants};
        sp_lock_check_none("a kernel");
        return kernel->run(&tile);
    }
    sp_tile_job *tiles = &queue->tiles;
    tiles->kernel = kernel;
    tiles->constants = constants;
    memcpy(tiles->grid, grid, sizeof tiles->grid);
    sp_store_relaxed(&tiles->total, (uint32_t)total);
    for (uint32_t i = 0; i < count; i++) tiles->bindings[i] = address_of(&bindings[i]);
    return sp__queue_run_tiles(queue);
}

static void fill(const sp_binding *target, const void *pattern, uint32_t pattern_bytes)
{
    unsigned char *bytes = address_of(target);
    if (pattern_bytes == 1) {
        memset(bytes, *(const unsigned char *)pattern, target->bytes);
        return;
    }
    for (uint64_t at = 0; at + pattern_bytes <= target->bytes; at += pattern_bytes) {
        memcpy(bytes + at, pattern, pattern_bytes);
    }
}

static sp_status execute(sp_command_queue *queue, const sp_record *record,
                         const sp_binding *bindings)
{
    for (uint32_t i = 0; i < record->count; i++) announce(&bindings[i]);
    switch ((sp_command_type)record->type) {
    case SP_COMMAND_DISPATCH:
        return dispatch(queue, record, bindings);
    case SP_COMMAND_COPY:
        SP_ASSERT(record->count == 2);
        memmove(address_of(&bindings[0]), address_of(&bindings[1]), bindings[0].bytes);
        return SP_OK;
    case SP_COMMAND_FILL:
        SP_ASSERT(record->count == 1);
        fill(&bindings[0], sp__record_constants(record), record->constant_bytes);
        return SP_OK;
    case SP_COMMAND_TIMESTAMP:
        sp_store_relaxed(record->command.timestamp, sp_clock_now());
        return SP_OK;
    case SP_COMMAND_HOST:
    case SP_COMMAND_LIST:
        break; /* the drain unpacks these */
    }
    return sp__fail(SP_INTERNAL, "unknown command %u", record->type);
}

static sp_status execute_list(sp_command_queue *queue, const sp_record *record)
{
    (void)queue, (void)record;
    return SP_UNSUPPORTED;
}

/* ---- progress ---- */

static void enter(sp_command_queue *queue)
{
    (void)queue;
}

static void leave(void) {}

static bool has_room(sp_command_queue *queue, uint64_t value)
{
    (void)queue, (void)value;
    return true;
}

static bool wait_on_host(sp_command_queue *queue, sp_point point)
{
    (void)queue, (void)point;
    return false;
}

static bool settle(sp_command_queue *queue)
{
    (void)queue;
    return true;
}

static void finish(sp_command_queue *queue, uint64_t value)
{
    /* Relaxed: it only tells whether there is work. */
    sp_store_relaxed(&queue->drained, value);
    sp__timeline_advance(&queue->base.timeline, value);
}

static sp_status queue_open(sp_command_queue *queue)
{
    (void)queue;
    return SP_OK;
}

static void queue_close(sp_command_queue *queue)
{
    (void)queue;
}

const sp_queue_engine sp__host_engine = {
    .queue_size = sizeof(sp_command_queue),
    .enter = enter,
    .leave = leave,
    .has_room = has_room,
    .wait = wait_on_host,
    .execute = execute,
    .execute_list = execute_list,
    .settle = settle,
    .finish = finish,
    .queue_open = queue_open,
    .queue_close = queue_close,
};
