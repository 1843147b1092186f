/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of streampool inspect. */
#ifndef SP_CLI_INSPECT_H
#define SP_CLI_INSPECT_H

#include "inputs.h"

/* Compiles the model's plan for the inputs that these arguments describe, and prints it. Errors:
 * those of inputs_open and sp_plan_create, and those of a run that are known without running it. */
sp_status sp__inspect_plan(sp_model model, const model_arguments *arguments);

#endif
