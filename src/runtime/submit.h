/* SPDX-License-Identifier: Apache-2.0 */
/* The hazard step: the only way to submit commands over storages to a stream.
 *
 * Reading the frontiers, submitting and publishing the new point are one atomic step: the storages
 * are locked in the order of their slots, then the stream. So of two commands that conflict, the
 * one that is submitted second waits, on the device, for the first. */
#ifndef SP_RUNTIME_SUBMIT_H
#define SP_RUNTIME_SUBMIT_H

#include <streampool/storage.h>

#include "device/command.h"
#include "runtime/stream_pool.h"

/* A use of a storage by a command; or of memory that the submitter orders itself. */
typedef struct sp_use {
    sp_storage storage;
    const sp_memory *memory; /* not NULL: instead of a storage */
    uint64_t offset;
    uint64_t bytes;
    sp_access access;
    bool is_overwritten; /* all of these bytes are written before any of them is read */
} sp_use;

/* Uses of a call up to which it needs no heap. */
#define SP_MAX_USES 32

/* Submits one command whose bindings are the uses, in their order: they are set during the call, to
 * memory of the call, and NULL afterwards. `call_site` is for the checker's reports (SP_CALL_SITE).
 * Errors: SP_INVALID (a stale storage, one of another device, a range outside of it, a write to a
 * frozen one). */
sp_status sp__submit_command(const sp_stream_ref *stream, sp_command *command, const sp_use *uses,
                             uint32_t use_count, const void *call_site, sp_point *out);

/* Commands that are submitted as one. */
typedef struct sp_command_batch {
    /* The bindings of the commands are the uses, in their order: the first command has as many of
     * them as its binding_count says, and so on. */
    sp_command *commands;
    uint32_t command_count;
    const sp_use *uses;
    uint32_t use_count; /* any number */
    /* What the submission follows beside the frontiers of its storages: a point whose fault it
     * takes over, and one whose fault it does not. Without a timeline: none. */
    sp_point cause, after;
    const void *call_site;
    /* The commands can name storages of other devices than the stream's. Otherwise these are
     * refused: with a message, or, if `crosses` is not NULL, by true in it. */
    bool may_cross;
    bool *crosses;
} sp_command_batch;

/* Submits the commands, in one hazard step over all of their storages. As sp__submit_command but
 * for the number of uses. Errors: also SP_OUT_OF_MEMORY. */
sp_status sp__submit_commands(const sp_stream_ref *stream, const sp_command_batch *batch,
                              sp_point *out);

/* SP_INVALID if `bytes` from `offset` on exceed a storage of `total` bytes. */
sp_status sp__use_check_range(uint64_t offset, uint64_t bytes, uint64_t total);

/* A submission that may find its stream full; `stream` is given. */
typedef struct sp_room {
    const sp_stream_ref *stream;
    bool was_empty; /* of work, after a refusal, with this as its last value */
    uint64_t value;
} sp_room;

/* After SP_BUSY, if the calling thread is to wait (sp_thread_set_wait_for_room): waits until about
 * half of what is on the stream has completed. Returns whether to submit again; if not, *status is
 * the one to return: SP_BUSY, with its message, also where a stream without work has refused the
 * submission; SP_DEADLOCK inside a check; that of the thread's check. No lock, and nothing that
 * commands may wait for, is held by the caller. */
bool sp__room_wait(sp_room *room, sp_status *status);

/* Of a loop: do status = submit; while (sp__submit_again(&room, &status)). */
static inline bool sp__submit_again(sp_room *room, sp_status *status)
{
    return SP_UNLIKELY(*status == SP_BUSY) && sp__room_wait(room, status);
}

/* Submits commands and waits without storages. */
sp_status sp__submit_plain(const sp_stream_ref *stream, const sp_submission *submission,
                           sp_point *out);
/* The same for a caller that waits for room on a full stream, if its thread is to. */
sp_status sp__submit_plain_with_room(const sp_stream_ref *stream, const sp_submission *submission,
                                     sp_point *out);
/* The same for a caller that waits for the point next, outside of host functions and callbacks: the
 * calling thread may run the commands before the return. */
sp_status sp__submit_and_run(const sp_stream_ref *stream, const sp_submission *submission,
                             sp_point *out);

#endif
