/* SPDX-License-Identifier: Apache-2.0 */
/* Command lists: commands recorded once and submitted as one unit, any number of times, to any
 * stream of the device. Threads that share a stream interleave whole submissions, so commands that
 * must stay together go into a list. For hazards a list is one command that uses all its storages.
 * For poison (storages that a failed command should have written) each of its commands counts by
 * itself: a poisoned storage that one command of the list overwrites whole before the list reads
 * any of it is allowed, and is clear again once the list has succeeded. All other storages that the
 * list reads must not be poisoned when the list begins. */
#ifndef STREAMPOOL_COMMAND_LIST_H
#define STREAMPOOL_COMMAND_LIST_H

#include <stdint.h>

#include <streampool/storage.h>

SP_EXTERN_C_BEGIN

typedef struct sp_command_list {
    uint64_t bits;
} sp_command_list;

/* Most storages that one list uses. */
#define SP_COMMAND_LIST_STORAGES 32

/* An empty list. Commands are added until its first submission, which closes it. */
SP_API sp_status sp_command_list_create(sp_device device, sp_command_list *out);
/* One more reference. */
SP_API sp_status sp_command_list_retain(sp_command_list list);
/* Submissions that are still queued complete. The zero handle is fine. */
SP_API sp_status sp_command_list_release(sp_command_list list);

/* Appends a copy, as sp_storage_copy_async but on one device, the list's. The list keeps no
 * reference to storages: their handles must be valid when it is submitted. SP_INVALID once the list
 * is closed, and for storages of another device; SP_MISMATCH for ranges of other sizes;
 * SP_EXHAUSTED past SP_COMMAND_LIST_STORAGES storages. */
SP_API sp_status sp_command_list_copy(sp_command_list list, sp_storage_range destination,
                                      sp_storage_range source);

/* Appends a fill, as sp_storage_fill_async. */
SP_API sp_status sp_command_list_fill(sp_command_list list, sp_storage_range destination,
                                      const void *pattern, uint32_t pattern_bytes);

/* Submits the whole list to a stream of its device. If one of its commands fails, or the list reads
 * a poisoned storage, the rest is skipped and everything that the list writes is poisoned: reads of
 * it fail with the same failure until all of it is overwritten. SP_INVALID on another device's
 * stream; SP_BUSY if the stream is full. */
SP_API sp_status sp_stream_submit_list(sp_stream stream, sp_command_list list);

SP_EXTERN_C_END

#endif
