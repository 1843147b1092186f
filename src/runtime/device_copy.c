/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/device_copy.h"

#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/heap.h"
#include "device/wait.h"
#include "runtime/runtime_state.h"
#include "runtime/storage.h"
#include "runtime/transfer.h"

/* Large enough that a transfer takes longer than the hand-over to the next one. */
#define PIECE_BYTES ((uint64_t)2 << 20)
/* Of pinned memory: one is filled and one emptied while the host copies into or out of a third. */
#define SLOTS 3

typedef struct copy_side {
    sp_rt_device *device;
    sp_memory memory; /* a copy, since the storage may be released before the submission */
    uint64_t offset;
    char *host; /* of the first byte; NULL: the host cannot access it */
} copy_side;

/* Through pinned memory; belongs to the host function. */
typedef struct pinned_copy {
    copy_side to, from;
    uint64_t bytes;
    sp_block *block;
    char *host;           /* of the block, if a side needs it */
    sp_point busy[SLOTS]; /* the transfer that uses a slot; without a timeline: none */
} pinned_copy;

/* ---- the host function ---- */

static sp_binding slot_binding(const pinned_copy *copy, uint64_t piece, uint64_t bytes)
{
    return (sp_binding){.memory = &copy->block->slab->memory,
                        .offset = copy->block->offset + piece % SLOTS * PIECE_BYTES,
                        .bytes = bytes};
}

static sp_binding side_binding(const copy_side *side, uint64_t piece, uint64_t bytes)
{
    return (sp_binding){
        .memory = &side->memory, .offset = side->offset + piece * PIECE_BYTES, .bytes = bytes};
}

/* For the host, which has asked for it: the block is not empty. */
static char *slot_host(const pinned_copy *copy, uint64_t piece)
{
    SP_ASSERT(copy->host != NULL);
    return copy->host + piece % SLOTS * PIECE_BYTES;
}

static uint64_t piece_bytes(const pinned_copy *copy, uint64_t piece)
{
    const uint64_t left = copy->bytes - piece * PIECE_BYTES;
    return left < PIECE_BYTES ? left : PIECE_BYTES;
}

/* Waits until no transfer uses the piece's slot; the status of the last one that did. */
static sp_status slot_await(pinned_copy *copy, uint64_t piece)
{
    sp_point *busy = &copy->busy[piece % SLOTS];
    const sp_point point = *busy;
    *busy = (sp_point){0};
    if (point.timeline == NULL) return SP_OK;
    sp__point_wait_in_host_function(point);
    return sp__fault_report(sp__point_fault(point));
}

static sp_status piece_read(pinned_copy *copy, uint64_t piece)
{
    const uint64_t bytes = piece_bytes(copy, piece);
    if (!SP_PLANTED(slot_in_use)) SP_TRY(slot_await(copy, piece));
    if (copy->from.host != NULL) {
        memcpy(slot_host(copy, piece), copy->from.host + piece * PIECE_BYTES, bytes);
        return SP_OK;
    }
    return sp__transfer_submit(copy->from.device, SP_TRANSFER_TO_HOST,
                               slot_binding(copy, piece, bytes),
                               side_binding(&copy->from, piece, bytes), &copy->busy[piece % SLOTS]);
}

static sp_status piece_write(pinned_copy *copy, uint64_t piece)
{
    const uint64_t bytes = piece_bytes(copy, piece);
    SP_TRY(slot_await(copy, piece));
    if (copy->to.host != NULL) {
        memcpy(copy->to.host + piece * PIECE_BYTES, slot_host(copy, piece), bytes);
        return SP_OK;
    }
    return sp__transfer_submit(copy->to.device, SP_TRANSFER_TO_DEVICE,
                               side_binding(&copy->to, piece, bytes),
                               slot_binding(copy, piece, bytes), &copy->busy[piece % SLOTS]);
}

/* The next piece is read before one is written, so both directions are under way at once. */
static sp_status pieces_copy(pinned_copy *copy)
{
    const uint64_t count = (copy->bytes + PIECE_BYTES - 1) / PIECE_BYTES;
    sp_status status = piece_read(copy, 0);
    for (uint64_t piece = 0; piece < count && status == SP_OK; piece++) {
        if (piece + 1 < count) status = piece_read(copy, piece + 1);
        if (status == SP_OK) status = piece_write(copy, piece);
    }
    for (uint64_t slot = 0; slot < SLOTS; slot++) {
        sp_error_scope scope;
        sp__error_set_aside(&scope);
        const sp_status last = slot_await(copy, slot);
        if (status == SP_OK) status = sp__error_settle(&scope, last);
        else sp__error_put_back(&scope);
    }
    return status;
}

static sp_status pinned_copy_do(pinned_copy *copy)
{
    const bool has_host = copy->to.host != NULL || copy->from.host != NULL;
    if (copy->to.host != NULL && copy->from.host != NULL) {
        memmove(copy->to.host, copy->from.host, copy->bytes);
        return SP_OK;
    }
    sp_rt_device *device = copy->from.host == NULL ? copy->from.device : copy->to.device;
    const uint64_t most = SLOTS * PIECE_BYTES;
    SP_TRY(sp__allocator_acquire(&device->staging, copy->bytes < most ? copy->bytes : most, NULL,
                                 &copy->block));
    void *host = NULL;
    sp_status status = has_host ? sp__block_host(copy->block, &host) : SP_OK;
    copy->host = host;
    if (status == SP_OK) status = pieces_copy(copy);
    sp__allocator_release(&device->staging, copy->block);
    return status;
}

static const char *name_of(const copy_side *side)
{
    return side->device->dev->limits.name;
}

static sp_status pinned_copy_run(void *ctx, sp_fault fault)
{
    pinned_copy *copy = ctx;
    sp_status status = SP_OK;
    if (fault == SP_NO_FAULT) {
        status = pinned_copy_do(copy);
        if (status != SP_OK) {
            sp__fail_prefix(status, "copy from %s to %s: ", name_of(&copy->from),
                            name_of(&copy->to));
        }
    }
    sp_free(copy);
    return status;
}

/* ---- submission ---- */

static sp_status side_find(const sp_use *use, copy_side *out)
{
    sp_rt_storage *storage = sp__storage_peek(use->storage);
    if (!sp__storage_lock(storage, use->storage)) return SP_INVALID;
    const sp_memory *memory = storage->memory;
    const uint64_t offset = storage->offset + use->offset;
    const sp_status status = sp__use_check_range(use->offset, use->bytes, storage->bytes);
    *out = (copy_side){.device = storage->device,
                       .memory = *memory,
                       .offset = offset,
                       .host = sp__memory_host_or_null(memory, offset)};
    sp_mutex_unlock(&storage->lock);
    SP_TRY(status);
    sp_rt_device *working;
    return sp__rt_device_find_working(sp__rt_device_handle(out->device), &working);
}

static bool is_pinned_for(sp_dev *dev, void *data, uint64_t bytes)
{
    sp_memory memory;
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    const bool is_known = dev->vtable->memory_adopt(dev, data, bytes, &memory) == SP_OK;
    sp__error_put_back(&scope);
    return is_known;
}

/* Whether commands of `own`'s device can name the memory of `other`, which is another device's. */
static bool side_reaches(const copy_side *own, const copy_side *other, uint64_t bytes)
{
    sp_dev *dev = own->device->dev;
    const sp_device_vtable *vtable = dev->vtable;
    if (vtable->staging_create == NULL) return other->host != NULL;
    if (other->host != NULL) return is_pinned_for(dev, other->host, bytes);
    return own->host == NULL && vtable->reaches != NULL && other->device->dev->vtable == vtable &&
           vtable->reaches(dev, other->device->dev);
}

static sp_status submit(const sp_stream_ref *stream, sp_command *command, const sp_use uses[2],
                        bool *crosses, const void *call_site)
{
    sp_point point;
    command->binding_count = 2;
    const sp_command_batch batch = {.commands = command,
                                    .command_count = 1,
                                    .uses = uses,
                                    .use_count = 2,
                                    .call_site = call_site,
                                    .may_cross = crosses == NULL,
                                    .crosses = crosses};
    return sp__submit_commands(stream, &batch, &point);
}

static sp_status submit_pinned(const sp_stream_ref *stream, const sp_use uses[2],
                               const pinned_copy *sides, const void *call_site)
{
    pinned_copy *copy = sp_malloc(sizeof *copy);
    if (copy == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a copy between devices");
    *copy = *sides;
    sp_command command = {.type = SP_COMMAND_HOST, .host = pinned_copy_run, .ctx = copy};
    const sp_status status = submit(stream, &command, uses, NULL, call_site);
    if (status != SP_OK) sp_free(copy);
    return status;
}

static sp_status submit_between(const sp_stream_ref *stream, const sp_use uses[2],
                                const void *call_site)
{
    pinned_copy sides = {.bytes = uses[0].bytes};
    SP_TRY(side_find(&uses[0], &sides.to));
    SP_TRY(side_find(&uses[1], &sides.from));
    const sp_rt_device *device = stream->stream->device;
    const bool is_to = device == sides.to.device;
    if (!is_to && device != sides.from.device) {
        return sp__fail(SP_INVALID,
                        "a copy from %s to %s on a stream of %s: pass a stream of one of them",
                        name_of(&sides.from), name_of(&sides.to), device->dev->limits.name);
    }
    const copy_side *own = is_to ? &sides.to : &sides.from;
    const copy_side *other = is_to ? &sides.from : &sides.to;
    if (sides.bytes > 0 && !side_reaches(own, other, sides.bytes)) {
        return submit_pinned(stream, uses, &sides, call_site);
    }
    sp_command command = {.type = SP_COMMAND_COPY};
    return submit(stream, &command, uses, NULL, call_site);
}

sp_status sp__copy_submit(const sp_stream_ref *stream, const sp_use uses[2], const void *call_site)
{
    bool crosses = false;
    sp_command command = {.type = SP_COMMAND_COPY};
    const sp_status status = submit(stream, &command, uses, &crosses, call_site);
    return SP_LIKELY(!crosses) ? status : submit_between(stream, uses, call_site);
}
