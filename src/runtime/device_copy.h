/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between storages of one device or of two, as one submission to a stream of either.
 *
 * Between two devices the copy is, in this order of preference,
 * - a copy command of the stream, if its device reaches the other one's memory: host memory of a
 *   device that shares the host's, pinned host memory, a GPU that is a peer;
 * - a host function, which copies piece by piece through pinned memory, by the transfer queues of
 *   the devices whose memory the host cannot access. These wait for nothing but copies, so what a
 *   function waits for never depends on another copy between devices.
 * Order, poison and the life of the memory are those of any command: the hazard step has the
 * storages of both devices. */
#ifndef SP_RUNTIME_DEVICE_COPY_H
#define SP_RUNTIME_DEVICE_COPY_H

#include "runtime/runtime_state.h"
#include "runtime/submit.h"

/* The device on whose streams a copy between the two does not occupy the host, if there is one: of
 * those whose memory the host does not share, the source's first. */
static inline sp_rt_device *sp__copy_device(sp_rt_device *to, sp_rt_device *from)
{
    return from->dev->vtable->staging_create != NULL ? from : to;
}

/* `uses` are the destination and the source, of equal size. Errors: as sp__submit_command;
 * SP_INVALID for a stream of a third device; SP_CLOSED, SP_DEVICE_LOST of either device. */
sp_status sp__copy_submit(const sp_stream_ref *stream, const sp_use uses[2], const void *call_site);

#endif
