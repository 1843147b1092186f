/* SPDX-License-Identifier: Apache-2.0 */
/* Command lists. */
#include "device/queue/queue.h"

#include "base/error.h"
#include "base/heap.h"
#include "base/tsan.h"
#include "device/queue/record.h"

static sp_status command_check(const sp_command *command, uint32_t slot_count)
{
    if (command->type == SP_COMMAND_HOST || command->type == SP_COMMAND_LIST) {
        return sp__fail(SP_INVALID, "a command list cannot contain host functions or lists");
    }
    for (uint32_t i = 0; i < command->binding_count; i++) {
        const sp_binding *binding = &command->bindings[i];
        if (binding->memory == NULL && binding->slot >= slot_count) {
            return sp__fail(SP_INVALID, "binding %u names slot %u of a list with %u slots", i,
                            binding->slot, slot_count);
        }
    }
    return SP_OK;
}

sp_status sp__queue_list_create(sp_dev *device, const sp_command *commands, uint32_t command_count,
                                uint32_t slot_count, sp_list **out)
{
    (void)device;
    size_t total = sizeof(sp_record);
    for (uint32_t i = 0; i < command_count; i++) {
        SP_TRY(command_check(&commands[i], slot_count));
        total += sp__record_command_bytes(&commands[i]);
    }
    sp_list *list = sp_aligned_malloc(16, sizeof *list + total);
    if (list == NULL) {
        return sp__fail(SP_OUT_OF_MEMORY, "no memory for a list of %u commands", command_count);
    }
    sp_store_relaxed(&list->references, 1);
    list->issued = NULL;
    unsigned char *place = list->bytes;
    for (uint32_t i = 0; i < command_count; i++) {
        const uint32_t bytes = sp__record_command_bytes(&commands[i]);
        sp__record_write_command(place, bytes, &commands[i]);
        place += bytes;
    }
    sp__record_write_end(place);
    *out = list;
    return SP_OK;
}

const sp_record *sp__queue_list_records(const sp_list *list)
{
    return (const sp_record *)(const void *)list->bytes;
}

void sp__queue_list_retain(sp_list *list)
{
    sp_fetch_add_relaxed(&list->references, 1);
}

void sp__queue_list_release(sp_list *list)
{
    sp_tsan_release(&list->references);
    /* Release and acquire: all readers are done before the block is freed. */
    if (sp_fetch_sub_acq_rel(&list->references, 1) != 1) return;
    sp_tsan_acquire(&list->references);
    if (list->issued != NULL) list->issued_free(list->issued);
    sp_free(list);
}
