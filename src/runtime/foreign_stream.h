/* SPDX-License-Identifier: Apache-2.0 */
/* Order with streams of a GPU's driver that belong to other code in the process. Only on devices
 * whose driver has streams. No lock may be held. */
#ifndef SP_RUNTIME_FOREIGN_STREAM_H
#define SP_RUNTIME_FOREIGN_STREAM_H

#include <streampool/storage.h>

#include "device/device.h"
#include "runtime/stream_pool.h"

/* What the stream `native` gets from now on follows everything submitted to the queue before: waits
 * for what has not been issued yet. */
sp_status sp__foreign_follow(sp_queue *queue, void *native);

/* Everything that the stream `native` has now counts as a read of the storage. Its reads are of no
 * consequence for writes submitted before; the memory is not reused before they are done. Waits for
 * them where the driver or the heap has no memory. Errors: SP_CLOSED, SP_DEVICE_LOST, and what the
 * driver says of that stream. */
sp_status sp__foreign_use_add(sp_rt_device *device, sp_storage storage, void *native);

#endif
