/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a future whose run holds a model. */
#ifndef SP_EXEC_FUTURE_MODEL_H
#define SP_EXEC_FUTURE_MODEL_H

#include "exec/future.h"

/* Drops the run's holds on its model and its future. For threads of a device: destroying a model
 * takes long, so the host executor does it. */
void sp__future_drop_with_model(sp_rt_future *run);

#endif
