/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that opens the gates of batch queues whose oldest request has waited long enough: one
 * for all queues, started by the first gate that closes, ended by the shutdown. */
#ifndef SP_BATCH_BATCH_QUEUE_TIMER_H
#define SP_BATCH_BATCH_QUEUE_TIMER_H

#include <stdbool.h>
#include <stdint.h>

/* All queues are polled (sp__batch_queue_poll) at `deadline_ns` or earlier. False: there is no
 * such thread any more, or it cannot be started: gates stay open. The caller has the lock of its
 * queue. */
bool sp__batch_timer_set(uint64_t deadline_ns);

#endif
