/* SPDX-License-Identifier: Apache-2.0 */
/* Execution of single commands: bindings are resolved and checked for poison, the engine executes,
 * and the storages that a failed or skipped command would have written are poisoned. */
#include <stdio.h>

#include "device/queue/queue.h"

#include "base/clock.h"
#include "base/error.h"
#include "device/queue/engine.h"
#include "device/queue/record.h"

/* A binding of a list names a slot; the submission gives the slot's memory. */
static sp_binding binding_resolve(const sp_binding *binding, const sp_binding *slots)
{
    sp_binding resolved = *binding;
    if (slots != NULL && binding->memory == NULL) {
        const sp_binding *slot = &slots[binding->slot];
        resolved.memory = slot->memory;
        resolved.offset = slot->offset + binding->offset;
        resolved.poison = NULL; /* the slot's poison is handled for the list as a whole */
    }
    return resolved;
}

/* ---- poison ---- */

sp_fault sp__queue_poison_of(const sp_binding *bindings, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const sp_binding *binding = &bindings[i];
        if (binding->poison == NULL || binding->is_overwritten) continue;
        /* A write of part of a poisoned storage runs, and leaves the storage poisoned. */
        if ((binding->access & SP_READ) == 0) continue;
        const sp_fault fault = sp__poison_fault(binding->poison, binding->epoch);
        if (SP_UNLIKELY(fault != SP_NO_FAULT)) return fault;
    }
    return SP_NO_FAULT;
}

void sp__queue_clear_poison(const sp_binding *bindings, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const sp_binding *binding = &bindings[i];
        if (binding->poison != NULL && binding->is_overwritten) {
            sp__poison_clear(binding->poison, binding->epoch);
        }
    }
}

void sp__queue_skip(const sp_record *record, const sp_binding *slots, sp_fault fault)
{
    const sp_binding *bindings = sp__record_bindings(record);
    for (uint32_t i = 0; i < record->count; i++) {
        const sp_binding binding = binding_resolve(&bindings[i], slots);
        if (SP_PLANTED(no_poison)) continue;
        if (binding.poison != NULL && (binding.access & SP_WRITE) != 0) {
            sp__poison_set(binding.poison, binding.epoch, fault);
        }
    }
    if (record->type == SP_COMMAND_TIMESTAMP) {
        sp_store_relaxed(record->command.timestamp, sp_clock_now());
    }
}

/* ---- commands ---- */

/* The loss of another device that a copy names: it fails the copy, and nothing else. */
static sp_fault loss_of_others(const sp_command_queue *queue, const sp_record *record,
                               const sp_binding *bindings)
{
    for (uint32_t i = 0; i < record->count && record->type == SP_COMMAND_COPY; i++) {
        const sp_dev *device = bindings[i].memory->device;
        if (SP_LIKELY(device == queue->base.device)) continue;
        const sp_fault lost = sp_load_acquire(&device->lost);
        if (lost != SP_NO_FAULT) return lost;
    }
    return SP_NO_FAULT;
}

static sp_status command_run(sp_command_queue *queue, const sp_record *record,
                             const sp_binding *bindings)
{
    sp_queue_device *device = sp__queue_device_of(queue);
    if (device->options.before_command != NULL) {
        SP_TRY(device->options.before_command(device, record->command.label));
    }
    return device->options.engine->execute(queue, record, bindings);
}

static const char *command_name(const sp_record *record)
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

static SP_NOINLINE sp_fault command_fault(sp_command_queue *queue, const sp_record *record,
                                          sp_status status)
{
    const char *label = record->command.label;
    char stream[24] = "";
    if (!queue->base.is_internal) {
        snprintf(stream, sizeof stream, "stream %u of ", queue->base.index);
    }
    sp__fail_prefix(status, "%s%s%s on %s%s: ", label != NULL ? label : "",
                    label != NULL ? ": " : "", command_name(record), stream,
                    queue->base.device->limits.name);
    const sp_fault fault = sp__fault_create(status);
    if (status == SP_DEVICE_LOST) sp__device_lose(queue->base.device, fault);
    return fault;
}

bool sp__queue_execute_list(sp_command_queue *queue, const sp_record *record, sp_fault *fault)
{
    const sp_status status =
        sp__queue_device_of(queue)->options.engine->execute_list(queue, record);
    if (status == SP_UNSUPPORTED) return false;
    if (status != SP_OK) *fault = command_fault(queue, record, status);
    return true;
}

sp_fault sp__queue_execute(sp_command_queue *queue, const sp_record *record,
                           const sp_binding *slots)
{
    sp_binding bindings[SP_MAX_BINDINGS];
    const sp_binding *raw = sp__record_bindings(record);
    const uint32_t count = record->count;
    for (uint32_t i = 0; i < count; i++) bindings[i] = binding_resolve(&raw[i], slots);
    sp_fault fault = sp__queue_poison_of(bindings, count);
    if (fault == SP_NO_FAULT) fault = loss_of_others(queue, record, bindings);
    if (SP_LIKELY(fault == SP_NO_FAULT)) {
        const sp_status status = command_run(queue, record, bindings);
        if (SP_LIKELY(status == SP_OK)) {
            sp__queue_clear_poison(bindings, count);
            return SP_NO_FAULT;
        }
        fault = command_fault(queue, record, status);
    }
    sp__queue_skip(record, slots, fault);
    return fault;
}
