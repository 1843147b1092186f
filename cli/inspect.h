/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of streampool inspect. */
#ifndef SP_CLI_INSPECT_H
#define SP_CLI_INSPECT_H

#include "inputs.h"

/* Makes the model's plan for inputs of these arguments and prints it. Errors: those of inputs_open
 * and sp_plan_create; of a run, as far as they are known without one. */
sp_status sp__inspect_plan(sp_model model, const model_arguments *arguments);

#endif
