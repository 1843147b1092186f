/* SPDX-License-Identifier: Apache-2.0 */
/* The engine of a queue device executes the commands that the claim's holder drains from a queue,
 * in order. The host engine runs each on the draining thread. The engine of a device with its own
 * processors issues commands and does not wait for them:
 *
 *     drained   newest value whose commands have been run or issued
 *     done      newest value that is known to have completed (timeline.done)
 *
 * Only the engine raises both. All functions except `leave` are called by the claim's holder, with
 * no lock held, after `enter`. A failure is that of the command; SP_DEVICE_LOST means that the
 * device is unusable. */
#ifndef SP_DEVICE_QUEUE_ENGINE_H
#define SP_DEVICE_QUEUE_ENGINE_H

#include "device/queue/queue.h"
#include "device/queue/record.h"

struct sp_queue_engine {
    size_t queue_size; /* of its queues, which begin with sp_command_queue */
    /* Submitting threads drain the queue, in kick, so that no worker is woken for it. */
    bool is_drained_by_submitters;
    /* Before and after the calling thread drains. At `leave` it no longer has the claim. */
    void (*enter)(sp_command_queue *queue);
    void (*leave)(void);
    /* Whether the submission `value` may begin now. False: too much is in flight; the queue is
     * parked until some of it is done. */
    bool (*has_room)(sp_command_queue *queue, uint64_t value);
    /* Orders everything drained from now on after the point; false: the queue has to wait for it.
     */
    bool (*wait)(sp_command_queue *queue, sp_point point);
    /* Runs or issues a dispatch, copy, fill or timestamp; the bindings are resolved. */
    sp_status (*execute)(sp_command_queue *queue, const sp_record *record,
                         const sp_binding *bindings);
    /* Issues a whole list in one step; SP_UNSUPPORTED, without a message, for a list that has to be
     * executed command by command. */
    sp_status (*execute_list)(sp_command_queue *queue, const sp_record *record);
    /* Whether everything that was executed is done. False: the queue is parked until it is. If that
     * cannot be known, the submission at the cursor has failed. */
    bool (*settle)(sp_command_queue *queue);
    /* The submission `value` has been executed, or skipped because of a fault: raises `drained`. */
    void (*finish)(sp_command_queue *queue, uint64_t value);
    /* The engine's part of a queue. Open: after the rest was set up, before the queue is published.
     * Close: with nothing in flight. */
    sp_status (*queue_open)(sp_command_queue *queue);
    void (*queue_close)(sp_command_queue *queue);
};

/* Runs host kernels, on host memory. */
extern const sp_queue_engine sp__host_engine;

#endif
