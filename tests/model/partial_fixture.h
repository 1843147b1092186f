/* SPDX-License-Identifier: Apache-2.0 */
/* Small models whose shapes or control flow depend on values, built by the tests. All functions
 * report errors as failed checks. */
#ifndef SP_TESTS_PARTS_FIXTURE_H
#define SP_TESTS_PARTS_FIXTURE_H

#include <streampool/model.h>

#include "base/thread.h"
#include "support/onnx_writer.h"
#include "support/test.h"

enum { ONNX_FLOAT = 1, ONNX_INT64 = 7, ONNX_BOOL = 9, ONNX_DOUBLE = 11 };

/* Initializers: lists, or scalars for a count of -1. */
void partial_add_floats(writer *graph, const char *name, const float *data, int64_t count);
void partial_add_ints(writer *graph, const char *name, const int64_t *data, int64_t count);
void partial_add_bool(writer *graph, const char *name, bool value);

/* An output of a body, with a type, since a Loop of zero trips has no other source for it. */
void partial_add_result(writer *graph, const char *name, int64_t data_type, const int64_t *dims,
                        int rank);
/* A node with a list of integers as attribute. */
writer partial_node_ints(const char *op, const char *inputs, const char *outputs, const char *name,
                         const int64_t *values, uint32_t count);
/* A node with an integer as attribute. */
writer partial_node_int(const char *op, const char *inputs, const char *outputs, const char *name,
                        int64_t value);
/* A Loop or If of these graphs, which are freed. */
writer partial_loop(const char *inputs, const char *outputs, writer *body);
writer partial_if(const char *condition, const char *outputs, writer *then_branch,
                  writer *else_branch);
/* A body with the inputs of a Loop that carries one float tensor: i, on, v. */
writer partial_body(int v_rank);

/* An input x, a list of floats, and as `out` those that are not 0: the size is that of NonZero. */
void partial_add_found(writer *graph, const char *out);

/* Loads the graph, which is freed. */
sp_status partial_load(writer *graph, const sp_model_options *options, sp_model *out);
/* The same, of a given opset. */
sp_status partial_load_opset(writer *graph, int64_t opset, sp_model *out);

/* Tensors over the caller's memory: lists, or scalars for a count of -1. */
sp_host_tensor partial_floats(const char *name, const float *data, int64_t count);
sp_host_tensor partial_ints(const char *name, const int64_t *data, int64_t count);
sp_host_tensor partial_bool(const char *name, const bool *value);
/* A tensor to receive an output. */
sp_host_tensor partial_room(const char *name, void *data, uint64_t bytes);

sp_model_info partial_info(sp_model model);

/* An endless loop on its own thread, to be ended from outside. Its body has a node, or none; it is
 * running when begin returns. Join returns the run's status, and releases the model. */
typedef struct partial_endless {
    sp_model model;
    sp_thread thread;
    sp_run_options run_options;
    sp_status status;
} partial_endless;

void partial_endless_begin(partial_endless *e, const sp_model_options *options, bool has_node);
/* The same with options of the run. */
void partial_endless_begin_with(partial_endless *e, const sp_model_options *options, bool has_node,
                                const sp_run_options *run_options);
sp_status partial_endless_join(partial_endless *e);

#endif
