/* SPDX-License-Identifier: Apache-2.0 */
/* A model with inputs of one row, the proof that its rows are separable, and the comparison of a
 * batch with its rows. Not thread-safe. */
#ifndef SP_TESTS_SUPPORT_ROWS_MODEL_H
#define SP_TESTS_SUPPORT_ROWS_MODEL_H

#include "plan/plan_rows.h"
#include "support/model_data.h"
#include "support/onnx_writer.h"

enum { ROWS_PORTS = 8, ROWS_OUTPUTS = 16 };

typedef struct rows_model {
    const sp_graph *graph;
    sp_array inputs[ROWS_PORTS]; /* of one row */
    sp_plan_input single[ROWS_PORTS], many[ROWS_PORTS];
    sp_rows_value input_rows[ROWS_PORTS], output_rows[ROWS_OUTPUTS];
    sp_rows_proof proof;
} rows_model;

/* Takes ownership of the inputs. Those that determine shapes are known, up to 512 bytes. */
void rows_model_init(const sp_graph *graph, const sp_array *inputs, rows_model *out);
void rows_model_deinit(rows_model *model); /* the graph too */

/* Searches a proof for a batch of `rows`. */
void rows_model_prove(rows_model *model, uint64_t rows);

/* For a model that is separable: random rows, near the inputs, have the same bits alone and as a
 * batch, in a plan for the CPU and in one for other devices. False, after a failed check: they
 * differ. */
bool rows_model_check(const rows_model *model, uint64_t rows);

/* ---- small models ---- */

enum { ONNX_F32 = 1, ONNX_I64 = 7, ONNX_BOOL = 9 };

/* Initializers; the floats are random. */
void rows_add_floats(writer *graph, const char *name, const sp_shape *shape);
void rows_add_ints(writer *graph, const char *name, const int64_t *values, int64_t count);
/* An input; -1 is the dimension "n". */
void rows_add_input(writer *graph, const char *name, int64_t dtype, const sp_shape *shape);

/* Loads a graph, which is freed; its inputs are random floats, other types 0, and free dimensions
 * 1. model->graph is NULL after a failed check. */
void rows_model_make(writer *graph, int64_t opset, rows_model *out);

#endif
