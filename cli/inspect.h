/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of streampool inspect. */
#ifndef SP_CLI_INSPECT_H
#define SP_CLI_INSPECT_H

#include "graph/graph.h"
#include "onnx/onnx.h"

/* Sizes of named free dimensions, as --dim NAME=SIZE gives them; the others are 1. */
#define SP_INSPECT_MAX_DIMS 32
typedef struct sp_inspect_dims {
    const char *names[SP_INSPECT_MAX_DIMS];
    int64_t sizes[SP_INSPECT_MAX_DIMS];
    uint32_t count;
} sp_inspect_dims;

/* Prints how often each op stands in the model, in branches too, and those that there are not; *out
 * is how many op types these are. Errors: SP_OUT_OF_MEMORY. */
sp_status sp__inspect_ops(const sp_onnx_model *model, uint32_t *out);

/* Compiles the graph for these sizes and prints the plan. Errors: as sp__plan_compile;
 * SP_UNSUPPORTED for an input of a type that no array has. */
sp_status sp__inspect_plan(const sp_graph *graph, const sp_inspect_dims *dims);

#endif
