/* SPDX-License-Identifier: Apache-2.0 */
/* Public command lists. Every storage of a list is a slot of the device's list, bound as a whole
 * when the list is submitted; the commands name slots and offsets. Recorded commands are kept until
 * the first submission compiles them for the device. */
#include <streampool/command_list.h>

#include <string.h>

#include "base/error.h"
#include "base/handle.h"
#include "base/heap.h"
#include "runtime/checker.h"
#include "runtime/command_list.h"
#include "runtime/runtime_state.h"
#include "runtime/storage_ops.h"
#include "runtime/submit.h"

typedef struct recorded_command {
    sp_command_type type;
    uint32_t binding_count;
    sp_binding bindings[2];
    uint32_t constant_bytes;
    _Alignas(8) unsigned char constants[8];
} recorded_command;

typedef struct sp_rt_list {
    SP_CACHE_ALIGNED sp_object object;
    sp_rt_device *device; /* constant */
    sp_mutex lock;
    recorded_command *commands SP_GUARDED_BY(lock); /* none are added once it is closed */
    uint32_t command_count SP_GUARDED_BY(lock);
    uint32_t command_capacity SP_GUARDED_BY(lock);
    sp_list *list SP_GUARDED_BY(lock); /* once closed; immutable */
    uint32_t use_count SP_GUARDED_BY(lock);
    sp_use uses[SP_COMMAND_LIST_STORAGES] SP_GUARDED_BY(lock); /* by slot */
} sp_rt_list;

static void list_make(sp_object *object);
static void list_destroy(sp_object *object);

static sp_handle_table lists = {/* process-wide: the table of all list handles */
                                .kind = SP_KIND_LIST,
                                .object_bytes = sizeof(sp_rt_list),
                                .make = list_make,
                                .destroy = list_destroy,
                                .lock = SP_MUTEX_INIT(SP_LOCK_HANDLE_TABLE)};

/* ---- create and destroy ---- */

static sp_rt_list *list_of(sp_object *object)
{
    return SP_CONTAINER_OF(object, sp_rt_list, object);
}

static void list_make(sp_object *object)
{
    sp_mutex_init(&list_of(object)->lock, SP_LOCK_LIST);
}

static void list_destroy(sp_object *object)
{
    sp_rt_list *list = list_of(object);
    if (sp__runtime_is_forked()) return;
    sp_mutex_lock(&list->lock);
    recorded_command *commands = list->commands;
    sp_list *made = list->list;
    list->commands = NULL;
    list->command_count = list->command_capacity = list->use_count = 0;
    list->list = NULL;
    sp_mutex_unlock(&list->lock);
    sp_free(commands);
    if (made != NULL) list->device->dev->vtable->list_release(made);
    sp__handle_recycle(&lists, object);
}

sp_status sp_command_list_create(sp_device device, sp_command_list *out)
{
    if (out == NULL) return sp__fail(SP_INVALID, "sp_command_list_create: out is NULL");
    *out = (sp_command_list){0};
    sp_rt_device *on;
    SP_TRY(sp__rt_device_find(device, &on));
    sp_object *object;
    SP_TRY(sp__handle_acquire(&lists, &object));
    list_of(object)->device = on;
    out->bits = sp__handle_publish(&lists, object);
    return SP_OK;
}

sp_status sp_command_list_retain(sp_command_list list)
{
    SP_TRY(sp__runtime_enter());
    return sp__handle_retain(&lists, list.bits, "command list");
}

sp_status sp_command_list_release(sp_command_list list)
{
    if (sp__runtime_is_forked()) return SP_OK;
    return sp__handle_release(&lists, list.bits, "command list");
}

void sp__command_lists_deinit(void)
{
    sp__handle_table_reset(&lists);
}

/* ---- recording ---- */

/* The slot of the range's storage; a new one has no access yet. */
static sp_status slot_find_locked(sp_rt_list *list, const sp_storage_range *range, uint32_t *slot)
    SP_REQUIRES(&list->lock)
{
    sp_storage_info info;
    SP_TRY(sp_storage_get_info(range->storage, &info));
    if (info.device.bits != sp__rt_device_handle(list->device).bits) {
        return sp__fail(SP_INVALID,
                        "the storage is of another device than the list: copy between devices "
                        "outside of the list, with sp_storage_copy_async");
    }
    SP_TRY(sp__use_check_range(range->offset, range->bytes, info.bytes));
    for (*slot = 0; *slot < list->use_count; (*slot)++) {
        if (list->uses[*slot].storage.bits == range->storage.bits) return SP_OK;
    }
    if (*slot == SP_COMMAND_LIST_STORAGES) {
        return sp__fail(SP_EXHAUSTED, "a command list uses at most %d storages",
                        SP_COMMAND_LIST_STORAGES);
    }
    list->uses[list->use_count++] = (sp_use){.storage = range->storage, .bytes = info.bytes};
    return SP_OK;
}

/* Widens the slot's use to what the list does with it: only once the whole command is accepted.
 * What is written whole before its first read stays overwritten, whatever reads it afterwards. */
static void slot_bind_locked(sp_rt_list *list, uint32_t slot, const sp_storage_range *range,
                             sp_access access, sp_binding *out) SP_REQUIRES(&list->lock)
{
    sp_use *use = &list->uses[slot];
    const bool is_whole_write = access == SP_WRITE && range->bytes == use->bytes;
    if (is_whole_write && (use->access & SP_READ) == 0) use->is_overwritten = true;
    use->access |= access;
    *out = (sp_binding){.offset = range->offset,
                        .bytes = range->bytes,
                        .slot = (uint16_t)slot,
                        .access = (uint8_t)access};
}

static sp_status commands_grow_locked(sp_rt_list *list) SP_REQUIRES(&list->lock)
{
    recorded_command *grown =
        sp_grow(list->commands, list->command_count, &list->command_capacity, sizeof *grown);
    if (grown == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for one more command");
    list->commands = grown;
    return SP_OK;
}

/* Appends a command over a destination and, if there is one, a source. */
static sp_status command_append_locked(sp_rt_list *list, recorded_command *command,
                                       const sp_storage_range *destination,
                                       const sp_storage_range *source) SP_REQUIRES(&list->lock)
{
    if (list->list != NULL) {
        return sp__fail(SP_INVALID, "the command list was submitted already and is closed");
    }
    SP_TRY(commands_grow_locked(list));
    const uint32_t use_count = list->use_count;
    uint32_t slots[2] = {0};
    sp_status status = slot_find_locked(list, destination, &slots[0]);
    if (status == SP_OK && source != NULL) status = slot_find_locked(list, source, &slots[1]);
    if (status != SP_OK) {
        list->use_count = use_count;
        return status;
    }
    /* The source first: a copy within one storage reads before it writes. */
    if (source != NULL) slot_bind_locked(list, slots[1], source, SP_READ, &command->bindings[1]);
    slot_bind_locked(list, slots[0], destination, SP_WRITE, &command->bindings[0]);
    command->binding_count = source != NULL ? 2 : 1;
    list->commands[list->command_count++] = *command;
    return SP_OK;
}

static sp_status command_append(sp_command_list handle, recorded_command *command,
                                const sp_storage_range *destination, const sp_storage_range *source)
{
    SP_TRY(sp__runtime_enter());
    sp_object *object = sp__handle_hold(&lists, handle.bits, "command list");
    if (object == NULL) return SP_INVALID;
    sp_rt_list *list = list_of(object);
    sp_mutex_lock(&list->lock);
    const sp_status status = command_append_locked(list, command, destination, source);
    sp_mutex_unlock(&list->lock);
    sp__object_drop(&lists, object);
    return status;
}

sp_status sp_command_list_copy(sp_command_list list, sp_storage_range destination,
                               sp_storage_range source)
{
    SP_TRY(sp__copy_check(&destination, &source));
    recorded_command command = {.type = SP_COMMAND_COPY};
    return command_append(list, &command, &destination, &source);
}

sp_status sp_command_list_fill(sp_command_list list, sp_storage_range destination,
                               const void *pattern, uint32_t pattern_bytes)
{
    SP_TRY(sp__fill_check(destination.bytes, pattern, pattern_bytes));
    recorded_command command = {.type = SP_COMMAND_FILL, .constant_bytes = pattern_bytes};
    memcpy(command.constants, pattern, pattern_bytes);
    return command_append(list, &command, &destination, NULL);
}

/* ---- submission ---- */

/* Compiles the commands for the device; afterwards the list is immutable. */
static sp_status list_close_locked(sp_rt_list *list) SP_REQUIRES(&list->lock)
{
    if (list->list != NULL) return SP_OK;
    sp_command *commands = sp_calloc(list->command_count, sizeof *commands);
    if (commands == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a command list");
    for (uint32_t i = 0; i < list->command_count; i++) {
        const recorded_command *recorded = &list->commands[i];
        commands[i] = (sp_command){.type = recorded->type,
                                   .bindings = recorded->bindings,
                                   .binding_count = recorded->binding_count,
                                   .constants = recorded->constants,
                                   .constant_bytes = recorded->constant_bytes};
    }
    sp_dev *dev = list->device->dev;
    const sp_status status =
        dev->vtable->list_create(dev, commands, list->command_count, list->use_count, &list->list);
    sp_free(commands);
    return status;
}

/* The uses of a closed list. */
static const sp_use *uses_of_closed(const sp_rt_list *list) SP_NO_LOCK_ANALYSIS
{
    return list->uses;
}

static sp_status list_submit(const sp_stream_ref *stream, sp_rt_list *list, const void *call_site)
{
    if (stream->stream->device != list->device) {
        return sp__fail(SP_INVALID, "the stream is of another device than the list");
    }
    sp_mutex_lock(&list->lock);
    const sp_status status = list_close_locked(list);
    sp_command command = {.type = SP_COMMAND_LIST, .list = list->list};
    const uint32_t use_count = list->use_count;
    sp_mutex_unlock(&list->lock);
    if (status != SP_OK) return status;
    /* Closed, so the uses no longer change; the caller's hold keeps them. */
    sp_point point;
    return sp__submit_command(stream, &command, uses_of_closed(list), use_count, call_site, &point);
}

sp_status sp_stream_submit_list(sp_stream stream, sp_command_list handle)
{
    sp_stream_ref ref;
    SP_TRY(sp__rt_stream_find(stream, &ref));
    sp_object *object = sp__handle_hold(&lists, handle.bits, "command list");
    if (object == NULL) return SP_INVALID;
    const sp_status status = list_submit(&ref, list_of(object), SP_CALL_SITE);
    sp__object_drop(&lists, object);
    return status;
}
