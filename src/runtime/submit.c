/* SPDX-License-Identifier: Apache-2.0 */
/* The hazard step. */
#include "runtime/submit.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/delay.h"
#include "base/error.h"
#include "base/heap.h"
#include "base/size.h"
#include "device/device.h"
#include "device/thread_record.h"
#include "device/wait.h"
#include "runtime/checker.h"
#include "runtime/runtime_state.h"
#include "runtime/storage.h"

/* One storage of a command, however many bindings name it. */
typedef struct used_storage {
    sp_rt_storage *storage;
    sp_storage handle;
    sp_access access;  /* of all its bindings */
    bool is_tracked;   /* and not frozen: ordered by its frontier */
    bool is_elsewhere; /* of another device than the stream */
    bool ends_ready;   /* overwrites adopted memory that is not known to be ready */
} used_storage;

/* One cause, and one for each storage. */
#define FAULT_POINTS(uses) ((uses) + 1)
/* Most that a submission has (sp_record.fault_count). */
#define MAX_FAULT_POINTS 255u

/* Of a step with few uses. */
typedef struct step_room {
    sp_rt_storage *by_use[SP_MAX_USES];
    used_storage storages[SP_MAX_USES];
    sp_binding bindings[SP_MAX_USES];
    sp_point points[FAULT_POINTS(SP_MAX_USES) + SP_MAX_WAITS];
} step_room;

typedef struct step {
    const sp_stream_ref *stream;
    const sp_use *uses;
    uint32_t use_count;
    sp_rt_storage **by_use; /* NULL: the use is of memory */
    used_storage *storages; /* by slot, each once */
    uint32_t storage_count;
    uint32_t locked_count;
    bool is_untracked;
    sp_binding *bindings;
    /* What the submission waits for. Before the entries of `waits`, up to them, are the points
     * whose faults it takes over. */
    uint32_t fault_count;
    sp_wait_set waits;
    const void *call_site;
    bool may_cross; /* see sp_command_batch */
    bool *crosses;
    sp_check_batch *reports; /* NULL if the checker is off */
    void *block;             /* of the arrays; NULL: they are the room */
    step_room room;
} step;

typedef sp_status (*submit_fn)(sp_queue *queue, const sp_submission *submission, sp_point *out);

static sp_status queue_submit_by(submit_fn submit, const sp_stream_ref *stream,
                                 sp_submission *submission, sp_point *out)
{
    const sp_thread_record *record = sp__thread_record();
    if (record == NULL) return SP_OUT_OF_MEMORY;
    /* The call returns the failure, so it concerns nobody else, also before the call has returned:
     * other threads' commands on the lease are concurrent with the call. */
    const bool is_told_by_call = submission->is_awaited && !SP_PLANTED(awaited_untold);
    submission->thread = is_told_by_call ? 0 : record->number;
    submission->lease = is_told_by_call ? 0 : stream->lease;
    SP_TRY(submit(stream->queue, submission, out));
    if (sp__check_is_on()) sp__check_submitted(*out, submission->waits, submission->wait_count);
    return SP_OK;
}

static sp_status queue_submit(const sp_stream_ref *stream, sp_submission *submission, sp_point *out)
{
    return queue_submit_by(stream->queue->device->vtable->submit, stream, submission, out);
}

/* After a submit, with no lock held. */
static void queue_kick(sp_queue *queue)
{
    const sp_device_vtable *vtable = queue->device->vtable;
    if (SP_UNLIKELY(vtable->kick != NULL)) vtable->kick(queue);
}

sp_status sp__submit_plain(const sp_stream_ref *stream, const sp_submission *submission,
                           sp_point *out)
{
    sp_submission mine = *submission;
    const sp_status status = queue_submit(stream, &mine, out);
    if (status == SP_OK) queue_kick(stream->queue);
    return status;
}

sp_status sp__submit_plain_with_room(const sp_stream_ref *stream, const sp_submission *submission,
                                     sp_point *out)
{
    sp_room room = {.stream = stream};
    sp_status status;
    do {
        status = sp__submit_plain(stream, submission, out);
    } while (sp__submit_again(&room, &status));
    return status;
}

sp_status sp__submit_and_run(const sp_stream_ref *stream, const sp_submission *submission,
                             sp_point *out)
{
    const submit_fn submit = stream->queue->device->vtable->submit_and_run;
    if (submit == NULL) return sp__submit_plain(stream, submission, out);
    sp_submission mine = *submission;
    return queue_submit_by(submit, stream, &mine, out);
}

/* Not for all: the thread would wait again at each of its next calls. */
static sp_point half_of(const sp_queue *queue, sp_point last)
{
    const uint64_t done = sp_load_acquire(&queue->timeline.done);
    return (sp_point){last.timeline, last.value - (last.value - done) / 2};
}

/* Whether a stream that is empty by now may take the submission: not if it was empty before. */
static bool room_is_new(sp_room *room, sp_point last)
{
    const bool is_new = !room->was_empty || room->value != last.value;
    room->was_empty = true;
    room->value = last.value;
    return is_new;
}

/* The status to return; SP_OK: there is room. */
static sp_status room_make(sp_room *room)
{
    const sp_thread_record *record = sp__thread_record();
    const sp_point last = sp__queue_last_point(room->stream->queue);
    const bool waits =
        record != NULL && record->waits_for_room && !sp__thread_is_inside_callback(record);
    if (!waits) return SP_BUSY;
    if (sp__point_has_passed(last)) return room_is_new(room, last) ? SP_OK : SP_BUSY;
    const sp_point half = half_of(room->stream->queue, last);
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    const sp_status status = sp__point_wait_for_access(&half, 1);
    if (status != SP_DEADLOCK || record->check_depth > 0) {
        return sp__error_settle(&scope, status);
    }
    sp__error_put_back(&scope);
    return SP_BUSY;
}

bool sp__room_wait(sp_room *room, sp_status *status)
{
    *status = room_make(room);
    return *status == SP_OK;
}

/* The order in which a step locks its storages: that of their slots. */
static bool storage_comes_before(const sp_rt_storage *a, const sp_rt_storage *b)
{
    if (SP_PLANTED(lock_order)) return a->object.slot > b->object.slot;
    return a->object.slot < b->object.slot;
}

/* Of two handles of one slot one is stale. */
static sp_status fail_stale_handle(const sp_rt_storage *storage, sp_storage a, sp_storage b)
{
    const bool is_a_current = sp__handle_is_current(&storage->object, a.bits);
    return sp__handle_refuse(SP_KIND_STORAGE, is_a_current ? b.bits : a.bits, "storage");
}

/* Sorted at once, by step_sort, since that many insertions would take too long. */
static bool step_is_large(const step *s)
{
    return s->use_count > SP_MAX_USES;
}

/* Sorted, so that every step locks in one order; a storage used twice is entered once. */
static sp_status step_insert(step *s, sp_rt_storage *storage, const sp_use *use)
{
    uint32_t at = 0;
    if (SP_UNLIKELY(step_is_large(s))) {
        s->storages[s->storage_count++] =
            (used_storage){storage, use->storage, use->access, true, false, false};
        return SP_OK;
    }
    while (at < s->storage_count && storage_comes_before(s->storages[at].storage, storage)) at++;
    if (at < s->storage_count && s->storages[at].storage == storage) {
        s->storages[at].access |= use->access;
        return s->storages[at].handle.bits == use->storage.bits
                   ? SP_OK
                   : fail_stale_handle(storage, s->storages[at].handle, use->storage);
    }
    for (uint32_t i = s->storage_count; i > at; i--) s->storages[i] = s->storages[i - 1];
    s->storages[at] = (used_storage){storage, use->storage, use->access, true, false, false};
    s->storage_count++;
    return SP_OK;
}

static int by_lock_order(const void *a, const void *b)
{
    const used_storage *x = a, *y = b;
    return storage_comes_before(y->storage, x->storage) -
           storage_comes_before(x->storage, y->storage);
}

/* Of a large step, whose storages are in the order of its uses. */
static SP_NOINLINE sp_status step_sort(step *s)
{
    const uint32_t count = s->storage_count;
    used_storage *last = NULL;
    if (count > 1) qsort(s->storages, count, sizeof *s->storages, by_lock_order);
    s->storage_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        const used_storage *next = &s->storages[i];
        if (last == NULL || last->storage != next->storage) {
            last = &s->storages[s->storage_count++];
            *last = *next;
            continue;
        }
        last->access |= next->access;
        if (last->handle.bits != next->handle.bits) {
            return fail_stale_handle(last->storage, last->handle, next->handle);
        }
    }
    return SP_OK;
}

static sp_status collect_storages(step *s)
{
    for (uint32_t i = 0; i < s->use_count; i++) {
        s->by_use[i] = NULL;
        if (s->uses[i].memory != NULL) continue;
        sp_rt_storage *storage = sp__storage_peek(s->uses[i].storage);
        if (storage == NULL) return SP_INVALID;
        s->by_use[i] = storage;
        SP_TRY(step_insert(s, storage, &s->uses[i]));
    }
    return SP_LIKELY(!step_is_large(s)) ? SP_OK : step_sort(s);
}

/* A full set: the points collected so far become a submission of their own on the same stream. */
static sp_status step_spill_waits(step *s)
{
    sp_submission waits = {.waits = s->waits.points, .wait_count = s->waits.count};
    sp_point point;
    if (!SP_PLANTED(spill_forgets)) SP_TRY(queue_submit(s->stream, &waits, &point));
    s->waits.count = 0;
    return SP_OK;
}

static bool is_overwrite_locked(const sp_use *use, const sp_rt_storage *storage)
    SP_REQUIRES(&storage->lock)
{
    return use->is_overwritten && use->bytes == storage->bytes;
}

/* Whether the command writes all of the storage before it reads any of it. */
static bool step_overwrites_locked(const step *s, const used_storage *used)
    SP_REQUIRES(&used->storage->lock)
{
    bool is_all = false;
    for (uint32_t i = 0; i < s->use_count; i++) {
        const sp_use *use = &s->uses[i];
        if (s->by_use[i] != used->storage) continue;
        const bool is_this = is_overwrite_locked(use, used->storage);
        if (!is_this && (use->access & SP_READ) != 0) return false;
        is_all = is_all || is_this;
    }
    return is_all;
}

static sp_status fault_point_add(step *s, sp_point point)
{
    if (s->fault_count == MAX_FAULT_POINTS) {
        return sp__fail(SP_UNSUPPORTED,
                        "a call uses more than %u adopted storages that are not ready",
                        MAX_FAULT_POINTS - 1);
    }
    *(s->waits.points - ++s->fault_count) = point;
    return SP_OK;
}

/* Adopted memory that is not ready: every use follows the point, and a use that reads the memory as
 * adopted takes over the point's fault. */
static sp_status follow_ready_locked(step *s, used_storage *used) SP_REQUIRES(&used->storage->lock)
{
    const sp_point ready = used->storage->ready;
    if (sp__adopted_is_ready_locked(used->storage)) return SP_OK;
    used->ends_ready = step_overwrites_locked(s, used);
    const bool reads_old = (used->access & SP_READ) != 0 && !used->ends_ready;
    if (reads_old && !SP_PLANTED(ready_without_fault)) return fault_point_add(s, ready);
    const sp_timeline *own = &s->stream->queue->timeline;
    while (!sp__wait_set_add(&s->waits, ready, own)) SP_TRY(step_spill_waits(s));
    return SP_OK;
}

static sp_status follow_frontier_locked(step *s, const used_storage *used)
    SP_REQUIRES(&used->storage->lock)
{
    const sp_timeline *own = &s->stream->queue->timeline;
    const sp_frontier *frontier = &used->storage->block.frontier;
    uint32_t next = 0; /* continues after what was spilled: each point is waited for once */
    while (!sp__frontier_collect(frontier, used->access, own, &next, &s->waits)) {
        SP_TRY(step_spill_waits(s));
    }
    return SP_OK;
}

static SP_NOINLINE sp_status fail_elsewhere_locked(const step *s, const used_storage *used)
    SP_REQUIRES(&used->storage->lock)
{
    if (s->crosses != NULL) {
        *s->crosses = true;
        return SP_INVALID;
    }
    return sp__fail(SP_INVALID,
                    "a storage of device %s is used on a stream of device %s: a command uses "
                    "storages of its stream's device only; copy between the two with "
                    "sp_storage_copy_async",
                    used->storage->device->dev->limits.name, s->stream->queue->device->limits.name);
}

/* Uses that order nothing, but keep the memory until they are done: by the stream of the storage's
 * device, or, on another device's, by a point. */
static sp_status note_use_locked(step *s, used_storage *used) SP_REQUIRES(&used->storage->lock)
{
    sp_rt_storage *storage = used->storage;
    if (used->is_elsewhere) return sp__frontier_reserve(&storage->block.frontier);
    sp_fetch_or_relaxed(&storage->used_streams, (uint64_t)1 << s->stream->stream->index);
    return SP_OK;
}

static sp_status step_enter_locked(step *s, used_storage *used) SP_REQUIRES(&used->storage->lock)
{
    sp_rt_storage *storage = used->storage;
    used->is_elsewhere = storage->device != s->stream->stream->device;
    if (SP_UNLIKELY(used->is_elsewhere) && !s->may_cross) return fail_elsewhere_locked(s, used);
    if (storage->is_frozen && (used->access & SP_WRITE) != 0) {
        return sp__fail(SP_INVALID, "a frozen storage cannot be written");
    }
    used->is_tracked = storage->is_tracked && !storage->is_frozen;
    if (!storage->is_tracked) s->is_untracked = true;
    if (SP_UNLIKELY(storage->ready.timeline != NULL)) SP_TRY(follow_ready_locked(s, used));
    if (!used->is_tracked) return note_use_locked(s, used);
    const sp_timeline *own = &s->stream->queue->timeline;
    if (SP_LIKELY(sp__frontier_is_own(&storage->block.frontier, own))) return SP_OK;
    if ((used->access & SP_WRITE) == 0) SP_TRY(sp__frontier_reserve(&storage->block.frontier));
    return follow_frontier_locked(s, used);
}

static sp_status step_enter_and_check_locked(step *s, used_storage *used)
    SP_REQUIRES(&used->storage->lock)
{
    const sp_status status = step_enter_locked(s, used);
    sp_rt_storage *storage = used->storage;
    const bool is_hand_over = storage->is_tracked || storage->is_frozen;
    if (SP_UNLIKELY(sp__check_is_on()) && is_hand_over) sp__check_met(&storage->history);
    return status;
}

static sp_status step_lock(step *s) SP_NO_LOCK_ANALYSIS
{
    for (; s->locked_count < s->storage_count; s->locked_count++) {
        used_storage *used = &s->storages[s->locked_count];
        if (!sp__storage_lock(used->storage, used->handle)) return SP_INVALID;
        const sp_status status = step_enter_and_check_locked(s, used);
        if (status != SP_OK) {
            sp_mutex_unlock(&used->storage->lock);
            return status;
        }
    }
    return SP_OK;
}

static void step_unlock(step *s) SP_NO_LOCK_ANALYSIS
{
    const uint32_t count = s->locked_count;
    s->locked_count = 0;
    for (uint32_t i = count; i > 0; i--) sp_mutex_unlock(&s->storages[i - 1].storage->lock);
}

sp_status sp__use_check_range(uint64_t offset, uint64_t bytes, uint64_t total)
{
    if (SP_LIKELY(sp_size_in_range(offset, bytes, total))) return SP_OK;
    return sp__fail(SP_INVALID, "bytes %llu + %llu are outside of a storage of %llu bytes",
                    (unsigned long long)offset, (unsigned long long)bytes,
                    (unsigned long long)total);
}

static sp_status storage_bind_locked(sp_rt_storage *storage, const sp_use *use, sp_binding *out)
    SP_REQUIRES(&storage->lock)
{
    SP_TRY(sp__use_check_range(use->offset, use->bytes, storage->bytes));
    *out = (sp_binding){
        .memory = storage->memory,
        .offset = storage->offset + use->offset,
        .bytes = use->bytes,
        .poison = &storage->poison,
        .epoch = storage->epoch,
        .access = (uint8_t)use->access,
        .is_overwritten = is_overwrite_locked(use, storage),
    };
    return SP_OK;
}

static sp_status step_bind(step *s) SP_NO_LOCK_ANALYSIS
{
    const uint32_t count = s->use_count;
    for (uint32_t i = 0; i < count; i++) {
        const sp_use *use = &s->uses[i];
        if (s->by_use[i] != NULL) {
            SP_TRY(storage_bind_locked(s->by_use[i], use, &s->bindings[i]));
            continue;
        }
        s->bindings[i] = (sp_binding){.memory = use->memory,
                                      .offset = use->offset,
                                      .bytes = use->bytes,
                                      .access = (uint8_t)use->access};
    }
    return SP_OK;
}

static void step_publish(step *s, sp_point point) SP_NO_LOCK_ANALYSIS
{
    const uint32_t count = s->storage_count;
    for (uint32_t i = 0; i < count; i++) {
        const used_storage *used = &s->storages[i];
        if (used->ends_ready) used->storage->ready = (sp_point){0};
        sp_frontier *frontier = &used->storage->block.frontier;
        if (used->is_tracked) {
            sp__frontier_publish(frontier, used->access, point);
        } else if (used->is_elsewhere && !SP_PLANTED(visit_unseen)) {
            sp__frontier_publish_read(frontier, point);
        }
    }
}

static const char *command_name(const sp_command *command)
{
    switch (command->type) {
    case SP_COMMAND_DISPATCH:
        return command->kernel->name;
    case SP_COMMAND_COPY:
        return "copy";
    case SP_COMMAND_FILL:
        return "fill";
    case SP_COMMAND_LIST:
        return "list";
    case SP_COMMAND_HOST:
    case SP_COMMAND_TIMESTAMP:
        break;
    }
    return "command";
}

/* Reports every storage of the step to the checker. */
static void step_check(step *s, const sp_command *command, sp_point point) SP_NO_LOCK_ANALYSIS
{
    sp_check_use use = {
        .op = command_name(command), .stream = s->stream->stream->index, .call_site = s->call_site};
    const sp_thread_record *record = sp__thread_record();
    if (record != NULL) use.thread = record->number;
    snprintf(use.device, sizeof use.device, "%s", s->stream->queue->device->limits.name);
    for (uint32_t i = 0; i < s->storage_count; i++) {
        sp_rt_storage *storage = s->storages[i].storage;
        use.access = s->storages[i].access;
        sp__check_used(&storage->history, storage->bytes, point, &use, s->reports);
    }
}

/* The commands' bindings are those of the step, in order. */
static void commands_bind(const step *s, const sp_command_batch *batch)
{
    const sp_binding *next = s->bindings;
    for (uint32_t i = 0; i < batch->command_count; i++) {
        batch->commands[i].bindings = next;
        next += batch->commands[i].binding_count;
    }
}

static sp_status step_submit_locked(step *s, const sp_command_batch *batch, sp_point *out)
{
    SP_TRY(step_bind(s));
    commands_bind(s, batch);
    sp_submission submission = {.waits = s->waits.points - s->fault_count,
                                .wait_count = s->fault_count + s->waits.count,
                                .fault_count = s->fault_count,
                                .commands = batch->commands,
                                .command_count = batch->command_count,
                                .is_untracked = s->is_untracked};
    /* The point of what came before this submission. */
    sp_point early = {0};
    if (SP_PLANTED(publish_before_record)) early = sp__queue_last_point(s->stream->queue);
    SP_TRY(queue_submit(s->stream, &submission, out));
    if (SP_PLANTED(missing_storage_lock)) step_unlock(s);
    sp_delay_point();
    step_publish(s, SP_PLANTED(publish_before_record) ? early : *out);
    if (s->reports != NULL) step_check(s, &batch->commands[0], *out);
    return SP_OK;
}

/* ---- the common command: one storage, whose last use was a write on the same stream ---- */

static sp_status command_submit_own_locked(const sp_stream_ref *stream, sp_command *command,
                                           const sp_use *use, sp_rt_storage *storage, sp_point *out)
    SP_REQUIRES(&storage->lock)
{
    sp_binding binding;
    SP_TRY(storage_bind_locked(storage, use, &binding));
    command->bindings = &binding;
    command->binding_count = 1;
    sp_submission submission = {.commands = command, .command_count = 1};
    const sp_status status = queue_submit(stream, &submission, out);
    command->bindings = NULL;
    SP_TRY(status);
    sp_delay_point();
    sp__frontier_publish(&storage->block.frontier, use->access, *out);
    return SP_OK;
}

/* Nothing to wait for, so no sets are built. False, and nothing is done, in any other case. */
static bool command_submit_own(const sp_stream_ref *stream, sp_command *command, const sp_use *use,
                               sp_point *out, sp_status *status)
{
    if (sp__check_is_on()) return false;
    sp_rt_storage *storage = sp__storage_peek(use->storage);
    *status = SP_INVALID;
    if (!sp__storage_lock(storage, use->storage)) return true;
    const bool is_own = storage->is_tracked && !storage->is_frozen &&
                        storage->ready.timeline == NULL &&
                        storage->device == stream->stream->device &&
                        sp__frontier_is_own(&storage->block.frontier, &stream->queue->timeline);
    if (is_own) *status = command_submit_own_locked(stream, command, use, storage, out);
    sp_mutex_unlock(&storage->lock);
    if (is_own) queue_kick(stream->queue);
    return is_own;
}

/* ---- any commands ---- */

/* All arrays in one block, each of a multiple of its alignment. */
static SP_NOINLINE sp_status step_use_heap(step *s, uint32_t use_count, sp_point **points)
{
    const size_t count = use_count;
    const size_t point_bytes = (FAULT_POINTS(count) + SP_MAX_WAITS) * sizeof(sp_point);
    char *at = sp_malloc(point_bytes +
                         count * (sizeof *s->bindings + sizeof *s->storages + sizeof *s->by_use));
    if (at == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for %u bindings", use_count);
    s->block = at;
    *points = (void *)at;
    s->bindings = (void *)(at + point_bytes);
    s->storages = (void *)(s->bindings + count);
    s->by_use = (void *)(s->storages + count);
    return SP_OK;
}

static sp_status step_init(step *s, const sp_stream_ref *stream, const sp_command_batch *batch)
{
    s->stream = stream;
    s->uses = batch->uses;
    s->use_count = batch->use_count;
    s->by_use = s->room.by_use;
    s->storages = s->room.storages;
    s->bindings = s->room.bindings;
    s->storage_count = 0;
    s->locked_count = 0;
    s->is_untracked = false;
    s->call_site = batch->call_site;
    s->may_cross = batch->may_cross;
    s->crosses = batch->crosses;
    s->reports = SP_UNLIKELY(sp__check_is_on()) ? sp_calloc(1, sizeof *s->reports) : NULL;
    s->fault_count = 0;
    s->block = NULL;
    sp_point *points = s->room.points;
    uint32_t room = SP_MAX_USES;
    if (SP_UNLIKELY(batch->use_count > SP_MAX_USES)) {
        room = batch->use_count;
        SP_TRY(step_use_heap(s, room, &points));
    }
    s->waits =
        (sp_wait_set){.capacity = SP_MAX_WAITS, .points = points + FAULT_POINTS((size_t)room)};
    return SP_OK;
}

/* What the submission follows beside its storages. */
static sp_status step_follow(step *s, const sp_command_batch *batch)
{
    const sp_timeline *own = &s->stream->queue->timeline;
    if (batch->cause.timeline != NULL) SP_TRY(fault_point_add(s, batch->cause));
    if (batch->after.timeline != NULL) (void)sp__wait_set_add(&s->waits, batch->after, own);
    return SP_OK;
}

sp_status sp__submit_commands(const sp_stream_ref *stream, const sp_command_batch *batch,
                              sp_point *out)
{
    step s;
    sp_status status = step_init(&s, stream, batch);
    if (status == SP_OK) status = step_follow(&s, batch);
    if (status == SP_OK) status = collect_storages(&s);
    if (status == SP_OK) status = step_lock(&s);
    if (status == SP_OK) status = step_submit_locked(&s, batch, out);
    step_unlock(&s);
    queue_kick(stream->queue); /* also on failure: waits may have been spilled */
    for (uint32_t i = 0; i < batch->command_count; i++) {
        batch->commands[i].bindings = NULL; /* they belonged to the step */
    }
    if (SP_UNLIKELY(s.reports != NULL)) sp__check_emit(s.reports);
    sp_free(s.block);
    return status;
}

sp_status sp__submit_command(const sp_stream_ref *stream, sp_command *command, const sp_use *uses,
                             uint32_t use_count, const void *call_site, sp_point *out)
{
    const uint32_t most = command->type == SP_COMMAND_LIST ? SP_MAX_USES : SP_MAX_BINDINGS;
    if (use_count > most) {
        return sp__fail(SP_INVALID, "a command has at most %u bindings, not %u", most, use_count);
    }
    sp_status status;
    if (use_count == 1 && command_submit_own(stream, command, uses, out, &status)) return status;
    command->binding_count = use_count;
    const sp_command_batch batch = {.commands = command,
                                    .command_count = 1,
                                    .uses = uses,
                                    .use_count = use_count,
                                    .call_site = call_site};
    return sp__submit_commands(stream, &batch, out);
}
