/* SPDX-License-Identifier: Apache-2.0 */
/* The calling thread's current stream per device, and the leases that the thread owns. */
#ifndef SP_RUNTIME_CURRENT_STREAM_H
#define SP_RUNTIME_CURRENT_STREAM_H

#include "runtime/runtime_state.h"
#include "runtime/stream_pool.h"

/* The current stream of the device, leased now if the thread has none yet. */
sp_status sp__current_stream(sp_rt_device *device, sp_stream_ref *out);

/* The same without a lease: false if the thread has no stream of the device, or one that was
 * released. */
bool sp__current_stream_peek(const sp_rt_device *device, sp_stream_ref *out);

/* Forgets the calling thread's streams without releasing them. For tests, after a reset. */
void sp__current_stream_forget(void);

#endif
