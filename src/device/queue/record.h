/* SPDX-License-Identifier: Apache-2.0 */
/* Layout of commands in memory, in a queue's chunks and in command lists. Everything a command
 * needs is copied behind its record, 16-byte aligned:
 *
 *     header:  record | points[count]
 *     command: record | bindings[binding_count] | constants
 *
 * A record never spans chunks; a submission may. */
#ifndef SP_DEVICE_QUEUE_RECORD_H
#define SP_DEVICE_QUEUE_RECORD_H

#include "device/command.h"

typedef struct sp_record {
    _Alignas(16) uint32_t bytes; /* including everything behind it, a multiple of 16 */
    uint8_t is_header;
    uint8_t type; /* sp_command_type */
    bool is_untracked;
    uint8_t fault_count; /* header: leading points whose fault makes the submission fail */
    uint32_t count;      /* header: points; command: bindings */
    uint32_t constant_bytes;
    union {
        struct {
            uint64_t thread;
            uint64_t lease;
            uint32_t commands;
        } header;
        struct {
            const char *label;
            union {
                const sp_kernel *kernel;
                sp_host_fn host;
                sp_atomic_u64 *timestamp;
                sp_list *list;
            };
            union {
                void *ctx;
                const sp_atomic_u32 *cancel; /* list */
            };
            sp_tiling tiling; /* dispatch */
            /* How long a tile of this dispatch took, 0: not known. A list is replayed often. */
            sp_atomic_u32 tile_ns;
        } command;
    };
} sp_record;

/* Size of the record of a submission's header, or of a command. */
uint32_t sp__record_header_bytes(const sp_submission *submission);
uint32_t sp__record_command_bytes(const sp_command *command);

/* Write a record of `bytes` bytes to `place`. */
void sp__record_write_header(void *place, uint32_t bytes, const sp_submission *submission);
void sp__record_write_command(void *place, uint32_t bytes, const sp_command *command);
/* The mark after the last record of a chunk or a list. */
void sp__record_write_end(void *place);

static inline bool sp__record_is_end(const sp_record *record)
{
    return record->bytes == 0;
}

static inline sp_point *sp__record_points(const sp_record *record)
{
    return (sp_point *)(uintptr_t)(record + 1);
}

static inline const sp_binding *sp__record_bindings(const sp_record *record)
{
    return (const sp_binding *)(const void *)(record + 1);
}

static inline const void *sp__record_constants(const sp_record *record)
{
    return (const char *)record + record->bytes - ((record->constant_bytes + 15u) & ~15u);
}

static inline const sp_record *sp__record_next(const sp_record *record)
{
    return (const sp_record *)(const void *)((const char *)record + record->bytes);
}

#endif
