/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/transfer.h"

#include "base/backoff.h"
#include "base/error.h"
#include "device/device.h"
#include "device/wait.h"
#include "runtime/runtime_state.h"
#include "runtime/submit.h"

/* In the place of the fallback queues, which only the cpu device has: its memory has host pointers.
 */
#define FIRST_INDEX SP_POOL_STREAMS

typedef struct queue_place {
    sp_rt_device *device;
    sp_transfer_direction direction;
} queue_place;

static sp_status queue_create(void *arg)
{
    const queue_place *place = arg;
    sp_rt_device *device = place->device;
    const sp_queue_options options = {
        .is_batching = true, .is_internal = true, .is_unlimited = true};
    return device->dev->vtable->queue_create(device->dev, FIRST_INDEX + place->direction, &options,
                                             &device->transfer_queues.queues[place->direction]);
}

sp_status sp__transfer_queue(sp_rt_device *device, sp_transfer_direction direction, sp_queue **out)
{
    queue_place place = {device, direction};
    SP_TRY(sp_once_run(&device->transfer_queues.once[direction], queue_create, &place));
    *out = device->transfer_queues.queues[direction];
    return SP_OK;
}

sp_status sp__transfer_wait(sp_point copied)
{
    sp_backoff backoff = {0};
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    /* In a host function it needs a thread for other functions. A copy waits for none of them. */
    while (sp__point_wait_passed(copied, SP_NO_DEADLINE) != SP_OK &&
           !sp__point_has_passed(copied)) {
        sp_backoff_turn(&backoff);
    }
    sp__error_put_back(&scope);
    sp__point_observed(copied);
    return sp__fault_report(sp__point_fault(copied));
}

/* A full queue gets room by itself, since what is in it waits for nothing else. */
static sp_status submit_with_room(const sp_stream_ref *ref, const sp_submission *submission,
                                  sp_point *out)
{
    sp_status status;
    while ((status = sp__submit_plain(ref, submission, out)) == SP_BUSY) {
        (void)sp__transfer_wait(sp__queue_last_point(ref->queue));
    }
    return status;
}

sp_status sp__transfer_submit(sp_rt_device *device, sp_transfer_direction direction, sp_binding to,
                              sp_binding from, sp_point *out)
{
    sp_stream_ref ref = {0};
    SP_TRY(sp__transfer_queue(device, direction, &ref.queue));
    to.access = SP_WRITE;
    from.access = SP_READ;
    const sp_binding bindings[2] = {to, from};
    const sp_command copy = {.type = SP_COMMAND_COPY, .bindings = bindings, .binding_count = 2};
    const sp_submission submission = {.commands = &copy, .command_count = 1};
    return submit_with_room(&ref, &submission, out);
}
