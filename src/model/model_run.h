/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of a model by other calls of the layer. */
#ifndef SP_MODEL_MODEL_RUN_H
#define SP_MODEL_MODEL_RUN_H

#include <streampool/model.h>

#include "exec/model_object.h"

/* sp_model_run_with on a model that the caller holds: its last handle may be released by now. */
sp_status sp__model_run_held(sp_rt_model *model, const sp_run_options *options,
                             const sp_host_tensor *inputs, uint32_t input_count,
                             sp_host_tensor *outputs, uint32_t output_count);

#endif
