/* SPDX-License-Identifier: Apache-2.0 */
/* streampool: any number of threads run inference on one device at the same time.
 *
 * This header includes all others. What holds everywhere, unless a function says otherwise:
 * - Every object may be used from any thread at any time, with no lock of yours.
 * - Handles are passed by value. The caller owns what a call returns and must release it; arguments
 *   are borrowed for the call. Releasing the zero handle does nothing.
 * - Sizes are bytes, times nanoseconds; a negative time-out means no limit.
 * - Option structs may be NULL; zero in a field is its default.
 * - A call that can fail returns an sp_status; sp_last_error gives the message. On failure outputs
 *   are the zero handle and nothing has changed.
 * - Any call may return SP_CLOSED after sp_shutdown, SP_FORKED in a forked child (except calls that
 *   release something: see sp_init), SP_INVALID for NULL or an invalid handle, SP_OUT_OF_MEMORY.
 * - A call that submits to a stream may return SP_BUSY if the stream is full (wait for some of its
 *   work, or see sp_thread_set_wait_for_room), and SP_DEVICE_LOST. A call that needs the thread's
 *   own stream for the first time may return SP_EXHAUSTED or SP_TIMEOUT, depending on
 *   STREAMPOOL_STREAM_POLICY. */
#ifndef STREAMPOOL_STREAMPOOL_H
#define STREAMPOOL_STREAMPOOL_H

#include <streampool/batch.h>
#include <streampool/cancel.h>
#include <streampool/check.h>
#include <streampool/command_list.h>
#include <streampool/device.h>
#include <streampool/dlpack.h>
#include <streampool/dtype.h>
#include <streampool/event.h>
#include <streampool/future.h>
#include <streampool/log.h>
#include <streampool/model.h>
#include <streampool/model_file.h>
#include <streampool/model_tensors.h>
#include <streampool/npy.h>
#include <streampool/null_device.h>
#include <streampool/operators.h>
#include <streampool/ops.h>
#include <streampool/option.h>
#include <streampool/plan.h>
#include <streampool/runtime.h>
#include <streampool/status.h>
#include <streampool/storage.h>
#include <streampool/stream.h>
#include <streampool/tensor.h>
#include <streampool/tensor_proto.h>

#endif
