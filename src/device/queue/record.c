/* SPDX-License-Identifier: Apache-2.0 */
/* Encoding of commands into records. */
#include "device/queue/record.h"

#include <string.h>

#include "base/assert.h"

static uint32_t align16(size_t bytes)
{
    return (uint32_t)((bytes + 15u) & ~(size_t)15u);
}

uint32_t sp__record_header_bytes(const sp_submission *submission)
{
    return align16(sizeof(sp_record) + submission->wait_count * sizeof(sp_point));
}

uint32_t sp__record_command_bytes(const sp_command *command)
{
    return align16(sizeof(sp_record) + command->binding_count * sizeof(sp_binding)) +
           align16(command->constant_bytes);
}

void sp__record_write_header(void *place, uint32_t bytes, const sp_submission *submission)
{
    sp_record *record = place;
    SP_ASSERT(submission->fault_count <= submission->wait_count);
    SP_ASSERT(submission->fault_count <= UINT8_MAX);
    *record = (sp_record){.bytes = bytes,
                          .is_header = 1,
                          .is_untracked = submission->is_untracked,
                          .fault_count = (uint8_t)submission->fault_count,
                          .count = submission->wait_count,
                          .header = {.thread = submission->thread,
                                     .lease = submission->lease,
                                     .commands = submission->command_count}};
    if (submission->wait_count > 0) {
        memcpy(sp__record_points(record), submission->waits,
               submission->wait_count * sizeof(sp_point));
    }
}

static void set_tiling(const sp_command *command, sp_tiling *out)
{
    const sp_kernel *kernel = command->kernel;
    if (kernel->tiling != NULL) {
        kernel->tiling(command->constants, out);
        return;
    }
    *out = (sp_tiling){.grid = {command->grid[0], command->grid[1], command->grid[2]}};
}

void sp__record_write_command(void *place, uint32_t bytes, const sp_command *command)
{
    sp_record *record = place;
    *record = (sp_record){.bytes = bytes,
                          .type = (uint8_t)command->type,
                          .count = command->binding_count,
                          .constant_bytes = command->constant_bytes};
    record->command.label = command->label;
    record->command.ctx = command->ctx;
    switch (command->type) {
    case SP_COMMAND_DISPATCH:
        record->command.kernel = command->kernel;
        set_tiling(command, &record->command.tiling);
        sp_store_relaxed(&record->command.tile_ns, 0); /* the place may have held another record */
        break;
    case SP_COMMAND_HOST:
        record->command.host = command->host;
        break;
    case SP_COMMAND_TIMESTAMP:
        record->command.timestamp = command->timestamp;
        break;
    case SP_COMMAND_LIST:
        record->command.list = command->list;
        record->command.cancel = command->cancel;
        break;
    case SP_COMMAND_COPY:
    case SP_COMMAND_FILL:
        break;
    }
    if (command->binding_count > 0) {
        memcpy(record + 1, command->bindings, command->binding_count * sizeof(sp_binding));
    }
    if (command->constant_bytes > 0) {
        memcpy((char *)place + bytes - align16(command->constant_bytes), command->constants,
               command->constant_bytes);
    }
}

void sp__record_write_end(void *place)
{
    ((sp_record *)place)->bytes = 0;
}
