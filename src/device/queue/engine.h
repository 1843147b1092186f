/* SPDX-License-Identifier: Apache-2.0 */
/* How a device with processors of its own hangs below the command queues: whoever holds the claim
 * of a queue issues its commands to the device, in order, and does not wait for them.
 *
 *     drained   newest value whose commands have been issued
 *     done      newest value that the device is known to have completed (timeline.done)
 *
 * Only the engine raises `done`, when somebody asks. All functions but `leave` are called by the
 * claim's holder, with no lock held, after `enter`. A failure is a failed command; what makes the
 * device useless is SP_DEVICE_LOST. */
#ifndef SP_DEVICE_QUEUE_ENGINE_H
#define SP_DEVICE_QUEUE_ENGINE_H

#include "device/queue/queue.h"
#include "device/queue/record.h"

struct sp_queue_engine {
    /* The calling thread begins to issue, and has ended: the queue is another's by then. */
    void (*enter)(sp_command_queue *queue);
    void (*leave)(void);
    /* May the submission `value` be issued now? False: too much is in flight; the queue is parked
     * until some of it is done. */
    bool (*has_room)(sp_command_queue *queue, uint64_t value);
    /* What is issued from now on comes after the point; false: only the host can wait for it. */
    bool (*wait)(sp_command_queue *queue, sp_point point);
    /* Issues a dispatch, copy, fill or timestamp; the bindings are resolved. */
    sp_status (*issue)(sp_command_queue *queue, const sp_record *record,
                       const sp_binding *bindings);
    /* Issues a whole list in one step; SP_UNSUPPORTED, without a message, for one that has to be
     * issued command by command. */
    sp_status (*issue_list)(sp_command_queue *queue, const sp_record *record);
    /* Is all that was issued done? False: the queue is parked until it is. */
    bool (*settle)(sp_command_queue *queue);
    /* The submission `value` has been issued, or skipped because of a fault. */
    void (*finish)(sp_command_queue *queue, uint64_t value);
    /* The engine's own part of a queue: after the rest was set up, before anyone sees it; and
     * when nothing is in flight any more. */
    sp_status (*queue_open)(sp_command_queue *queue);
    void (*queue_close)(sp_command_queue *queue);
};

#endif
