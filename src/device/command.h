/* SPDX-License-Identifier: Apache-2.0 */
/* Commands over bindings, grouped into submissions to a stream.
 *
 * A binding names memory as (memory, offset, bytes, access), never as a pointer: hazards, poison,
 * the checker and the sanitizers use it, and Metal, Vulkan and CUDA graphs need it. */
#ifndef SP_DEVICE_COMMAND_H
#define SP_DEVICE_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include <streampool/storage.h>

#include "device/fault.h"
#include "device/kernel.h"
#include "device/memory.h"
#include "device/timeline.h"

typedef struct sp_list sp_list;

typedef struct sp_binding {
    /* NULL in a command list: the memory of the list's slot `slot`, at that slot's offset. */
    const sp_memory *memory;
    uint64_t offset;
    uint64_t bytes;
    sp_poison *poison; /* the storage's, or NULL for memory that has none */
    uint32_t epoch;
    uint16_t slot;
    uint8_t access;
    /* All of the storage is written before any of it is read: the command ignores and clears
     * earlier poison. For hazards only `access` counts. */
    bool is_overwritten;
} sp_binding;

typedef enum sp_command_type {
    SP_COMMAND_DISPATCH,
    SP_COMMAND_COPY,
    SP_COMMAND_FILL,
    SP_COMMAND_HOST,
    SP_COMMAND_TIMESTAMP,
    SP_COMMAND_LIST
} sp_command_type;

/* Runs on the host executor, or on the submitting thread while it waits. A status other than SP_OK
 * is a failed command. `fault` is SP_NO_FAULT, or the failure of an earlier command of the
 * submission or of what wrote a binding that is read: a host function always runs, since its owner
 * may have to free something. */
typedef sp_status (*sp_host_fn)(void *ctx, sp_fault fault);

typedef struct sp_command {
    sp_command_type type;
    const char *label; /* static, or NULL: names the command in messages (a plan's node) */
    const sp_kernel *kernel;
    uint32_t grid[3]; /* dispatch: of a kernel without a tiling or a launch shape of its own */
    uint32_t binding_count;
    const sp_binding *bindings; /* dispatch: all; copy: destination, source; fill: destination;
                                   list: one per slot; host: what it reads and writes, for poison */
    uint32_t constant_bytes;
    const void *constants; /* dispatch; fill: the pattern, 1, 2, 4 or 8 bytes */
    sp_host_fn host;
    void *ctx;
    sp_atomic_u64 *timestamp; /* receives sp_clock_now, or the device's clock on that scale */
    sp_list *list;
    /* List, may be NULL: once it is not 0, the rest of the list is skipped, and the submission
     * fails with SP_FAULT_CANCELLED. Read before the list and, where an engine executes it command
     * by command, before each of these; relaxed: it publishes nothing. Must exist until the
     * submission is done. */
    const sp_atomic_u32 *cancel;
} sp_command;

/* Commands that execute together, after `waits`, with one point. Everything is copied. */
typedef struct sp_submission {
    const sp_point *waits;
    uint32_t wait_count;
    uint32_t fault_count; /* number of leading waits whose fault makes this submission fail */
    const sp_command *commands;
    uint32_t command_count;
    uint64_t thread; /* number of the submitting thread; 0: a call waits for the submission and
                        returns its failure, which no synchronize is to report */
    uint64_t lease;  /* handle of the lease, 0: none. Failures of the lease affect only its later
                        untracked submissions (lease_faults.h) */
    bool is_untracked;
    /* Its submitter waits for it before it returns, and returns its failure: see sp_queue.followed;
     * sp__submit_plain and sp__submit_and_run make it one of no thread and no lease. */
    bool is_awaited;
} sp_submission;

#if defined(SP_SCHED)
#define SP_MAX_WAITS 8 /* small enough for a scheduler subject to exceed it */
#else
#define SP_MAX_WAITS 64
#endif

#endif
