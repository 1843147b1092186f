/* SPDX-License-Identifier: Apache-2.0 */
/* Execution of single commands: bindings become host addresses here and nowhere else, are checked
 * for poison, announced to the sanitizers, and handed to the kernel. */
#include "device/queue/queue.h"

#include <string.h>

#include "base/announce.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/lock_check.h"
#include "device/queue/engine.h"
#include "device/queue/record.h"

/* A binding of a list names a slot; the submission says what the slot is. */
static sp_binding resolve(const sp_binding *binding, const sp_binding *slots)
{
    sp_binding resolved = *binding;
    if (slots != NULL && binding->memory == NULL) {
        const sp_binding *slot = &slots[binding->slot];
        resolved.memory = slot->memory;
        resolved.offset = slot->offset + binding->offset;
        resolved.cell = NULL; /* the list as a whole looks after the slot's poison */
    }
    return resolved;
}

static void *address_of(const sp_binding *binding)
{
    return (char *)binding->memory->host + binding->offset;
}

/* Not for an engine: its device uses the memory later, and the sanitizers do not see it. */
static void announce(const sp_binding *binding)
{
    if (SP_PLANTED(missing_range)) return;
    if ((binding->access & SP_WRITE) != 0) {
        sp_announce_write(address_of(binding), binding->bytes);
    } else {
        sp_announce_read(address_of(binding), binding->bytes);
    }
}

/* ---- poison ---- */

sp_fault sp__queue_poison_of(const sp_binding *bindings, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const sp_binding *binding = &bindings[i];
        if (binding->cell == NULL) continue;
        /* A write that leaves part of a bad storage as it was leaves it bad, but can itself run. */
        if ((binding->access & SP_READ) == 0) continue;
        const sp_fault fault = sp__cell_fault(binding->cell, binding->epoch);
        if (SP_UNLIKELY(fault != SP_NO_FAULT)) return fault;
    }
    return SP_NO_FAULT;
}

void sp__queue_cure(const sp_binding *bindings, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const sp_binding *binding = &bindings[i];
        const bool is_overwritten = binding->access == SP_WRITE && binding->covers_all;
        if (binding->cell != NULL && is_overwritten) {
            sp__cell_clear(binding->cell, binding->epoch);
        }
    }
}

void sp__queue_skip(const sp_record *record, const sp_binding *slots, sp_fault fault)
{
    const sp_binding *bindings = sp__record_bindings(record);
    for (uint32_t i = 0; i < record->count; i++) {
        const sp_binding binding = resolve(&bindings[i], slots);
        if (SP_PLANTED(no_poison)) continue;
        if (binding.cell != NULL && (binding.access & SP_WRITE) != 0) {
            sp__cell_poison(binding.cell, binding.epoch, fault);
        }
    }
    if (record->type == SP_COMMAND_TIMESTAMP) {
        sp_store_relaxed(record->command.timestamp, sp_clock_now());
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

static sp_status run(sp_command_queue *queue, const sp_record *record, const sp_binding *bindings)
{
    sp_queue_device *device = sp__queue_device_of(queue);
    if (device->options.before_command != NULL) {
        SP_TRY(device->options.before_command(device, record->command.label));
    }
    if (device->options.engine != NULL)
        return device->options.engine->issue(queue, record, bindings);
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
        /* Release: whoever reads the time sees that the commands before it are done. */
        sp_store_relaxed(record->command.timestamp, sp_clock_now());
        return SP_OK;
    case SP_COMMAND_HOST:
    case SP_COMMAND_LIST:
        break; /* the drain unpacks these */
    }
    return sp__fail(SP_INTERNAL, "unknown command %u", record->type);
}

static const char *name_of(const sp_record *record)
{
    switch ((sp_command_type)record->type) {
    case SP_COMMAND_DISPATCH:
        return record->command.kernel->name;
    case SP_COMMAND_COPY:
        return "copy";
    case SP_COMMAND_FILL:
        return "fill";
    case SP_COMMAND_TIMESTAMP:
        return "timestamp";
    case SP_COMMAND_HOST:
        return "host function";
    case SP_COMMAND_LIST:
        return "list";
    }
    return "command";
}

static SP_NOINLINE sp_fault make_fault(sp_command_queue *queue, const sp_record *record,
                                       sp_status status)
{
    const char *label = record->command.label;
    sp__fail_prefix(status, "%s%s%s on stream %u of %s: ", label != NULL ? label : "",
                    label != NULL ? ": " : "", name_of(record), queue->base.index,
                    queue->base.device->limits.name);
    const sp_fault fault = sp__fault_new(status);
    if (status == SP_DEVICE_LOST) sp__device_lose(queue->base.device, fault);
    return fault;
}

bool sp__queue_issue_list(sp_command_queue *queue, const sp_record *record, sp_fault *fault)
{
    const sp_status status = sp__queue_device_of(queue)->options.engine->issue_list(queue, record);
    if (status == SP_UNSUPPORTED) return false;
    if (status != SP_OK) *fault = make_fault(queue, record, status);
    return true;
}

sp_fault sp__queue_execute(sp_command_queue *queue, const sp_record *record,
                           const sp_binding *slots)
{
    sp_binding bindings[SP_MAX_BINDINGS];
    const sp_binding *raw = sp__record_bindings(record);
    const uint32_t count = record->count;
    const bool is_here = sp__queue_device_of(queue)->options.engine == NULL;
    for (uint32_t i = 0; i < count; i++) {
        bindings[i] = resolve(&raw[i], slots);
        if (is_here) announce(&bindings[i]);
    }
    sp_fault fault = sp__queue_poison_of(bindings, count);
    if (SP_LIKELY(fault == SP_NO_FAULT)) {
        const sp_status status = run(queue, record, bindings);
        if (SP_LIKELY(status == SP_OK)) {
            sp__queue_cure(bindings, count);
            return SP_NO_FAULT;
        }
        fault = make_fault(queue, record, status);
    }
    sp__queue_skip(record, slots, fault);
    return fault;
}
