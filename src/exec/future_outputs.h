/* SPDX-License-Identifier: Apache-2.0 */
/* The outputs that a caller takes from a future, and the memory of those that belong to it. */
#ifndef SP_EXEC_FUTURE_OUTPUTS_H
#define SP_EXEC_FUTURE_OUTPUTS_H

#include "exec/future.h"

/* Room for the outputs of a call. Errors: SP_OUT_OF_MEMORY. */
sp_status sp__future_outputs_init(sp_future_outputs *outputs, uint32_t count);
/* Frees the memory of outputs that belong to the future and were not taken. Valid without init if
 * `count` is 0 and `block` NULL. */
void sp__future_outputs_deinit(sp_future_outputs *outputs);

/* The tensors as the caller has them. With `may_own`, an output without memory belongs to the
 * future once the run has allocated it; else all memory is the caller's. */
void sp__future_outputs_set(sp_future_outputs *outputs, const sp_host_tensor *tensors,
                            bool may_own);

/* Once for each output, when the future is done; all fields but the name. Errors: SP_NOT_FOUND. */
sp_status sp__future_outputs_take(sp_future_outputs *outputs, uint32_t index, sp_host_tensor *out);

#endif
