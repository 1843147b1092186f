/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of streampool inspect. */
#ifndef SP_CLI_INSPECT_H
#define SP_CLI_INSPECT_H

#include <streampool/model.h>

/* Sizes of named free dimensions, as --dim NAME=SIZE gives them; the others are 1. */
#define SP_INSPECT_MAX_DIMS 32
typedef struct sp_inspect_dims {
    const char *names[SP_INSPECT_MAX_DIMS];
    int64_t sizes[SP_INSPECT_MAX_DIMS];
    uint32_t count;
} sp_inspect_dims;

/* Makes the model's plan for these sizes and prints it. Errors: as sp_plan_create; SP_UNSUPPORTED
 * for an input whose type or shape the file does not say. */
sp_status sp__inspect_plan(sp_model model, const sp_inspect_dims *dims);

#endif
