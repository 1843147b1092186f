/* SPDX-License-Identifier: Apache-2.0 */
/* The engine of a queue device: what becomes of the commands that the claim's holder takes out of a
 * queue, in order. The host engine runs each where it is drained. An engine of a device with
 * processors of its own issues them and does not wait for them:
 *
 *     drained   newest value whose commands have been run or issued
 *     done      newest value that is known to have completed (timeline.done)
 *
 * Only the engine raises both. All functions but `leave` are called by the claim's holder, with no
 * lock held, after `enter`. A failure is a failed command; what makes the device useless is
 * SP_DEVICE_LOST. */
#ifndef SP_DEVICE_QUEUE_ENGINE_H
#define SP_DEVICE_QUEUE_ENGINE_H

#include "device/queue/queue.h"
#include "device/queue/record.h"

struct sp_queue_engine {
    size_t queue_size; /* of its queues, which begin with sp_command_queue */
    /* Who submits drains the queue too, by a kick, so that no worker is woken for it. */
    bool is_drained_by_submitters;
    /* The calling thread begins to drain, and has ended: the queue is another's by then. */
    void (*enter)(sp_command_queue *queue);
    void (*leave)(void);
    /* May the submission `value` begin now? False: too much is in flight; the queue is parked until
     * some of it is done. */
    bool (*has_room)(sp_command_queue *queue, uint64_t value);
    /* What is drained from now on comes after the point; false: the queue has to wait for it. */
    bool (*wait)(sp_command_queue *queue, sp_point point);
    /* Runs or issues a dispatch, copy, fill or timestamp; the bindings are resolved. */
    sp_status (*execute)(sp_command_queue *queue, const sp_record *record,
                         const sp_binding *bindings);
    /* Issues a whole list in one step; SP_UNSUPPORTED, without a message, for one that has to be
     * executed command by command. */
    sp_status (*execute_list)(sp_command_queue *queue, const sp_record *record);
    /* Is all that was executed done? False: the queue is parked until it is. */
    bool (*settle)(sp_command_queue *queue);
    /* The submission `value` has been executed, or skipped because of a fault: raises `drained`. */
    void (*finish)(sp_command_queue *queue, uint64_t value);
    /* The engine's own part of a queue: after the rest was set up, before anyone sees it; and
     * when nothing is in flight any more. */
    sp_status (*queue_open)(sp_command_queue *queue);
    void (*queue_close)(sp_command_queue *queue);
};

/* Runs kernels of the host, on memory of the host. */
extern const sp_queue_engine sp__host_engine;

#endif
