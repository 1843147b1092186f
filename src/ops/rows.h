/* SPDX-License-Identifier: Apache-2.0 */
/* Row-separability: does row i of every output of a call depend on row i of its inputs only? Rows
 * of a batch may be along any axis, and may be a factor of one: in row-major order the elements of
 * a batched value are
 *
 *     [outer, rows, inner]
 *
 * whatever its shape is. So a reshape keeps the place of the rows.
 *
 * A call is proved for one number of rows, from two calls of the same node that have been inferred
 * with that number of rows and with one: shapes, and values that are known before a run, are those
 * of both. The op's rule (sp_op_traits.rows) must show that the outputs of the larger call are
 * those of a call for each row. Rules are constant and pure. */
#ifndef SP_OPS_ROWS_H
#define SP_OPS_ROWS_H

#include "ops/op.h"

typedef enum sp_rows_kind {
    SP_ROWS_SHARED,  /* the same elements in both calls, for all rows */
    SP_ROWS_BATCHED, /* [outer, rows, inner] */
    SP_ROWS_SIZES    /* known before the run, and other in both calls: sizes of batched values */
} sp_rows_kind;

/* Rules set kind and inner; the axis follows from them and the shape. */
typedef struct sp_rows_value {
    sp_rows_kind kind;
    uint64_t inner; /* of a batched value */
    int32_t axis;   /* along which the values of the rows are concatenated; -1: inside of one */
} sp_rows_value;

struct sp_rows_call {
    const sp_op_call *many;   /* with `rows` rows, at least 2 */
    const sp_op_call *single; /* with one */
    uint64_t rows;
    const sp_rows_value *inputs; /* by input; of those that are omitted: shared */
    sp_rows_value *outputs;      /* zeroed; set by the rule */
};

/* NULL: the call is separable, and the outputs are set. Else the reason why it is not, a phrase
 * such as "it reduces the batch axis"; constant text. A rule returns the same.
 *
 * Both calls have been inferred, and a batched input is along one axis `rows` times as large as in
 * the single call and otherwise of the same shape. Outputs whose values are known before both runs
 * need no rule: equal ones are shared, those that repeat the other's for each row are batched, all
 * others are sizes. If all inputs are shared, so are the outputs. The rest is the op's rule; an op
 * without one is not separable. What a rule says of an output must agree with its two shapes. */
const char *sp__rows_prove(const sp_rows_call *call);

/* ---- for rules ---- */

/* The axis that has the rows: its size is outer * rows * inner. */
typedef struct sp_rows_axis {
    uint32_t axis;
    uint64_t outer, inner;
} sp_rows_axis;

/* False: no single axis has all rows, or the value has no elements. No other axis has them, since
 * there are at least two. */
bool sp__rows_find_axis(const sp_shape *shape, uint64_t rows, const sp_rows_value *value,
                        sp_rows_axis *out);

/* The axis of the rows of a batched input; else the reason. */
const char *sp__rows_find_input(const sp_rows_call *call, uint32_t index, sp_rows_axis *out);

/* Are the rows in the same place along the same axis? The sizes of the axes may differ: a longer
 * one has more outer factors. */
bool sp__rows_match(const sp_rows_axis *a, const sp_rows_axis *b);

/* The one axis along which an output of the larger call is `rows` times the other's, as if the rows
 * were its outer factor. False: other axes differ too. */
bool sp__rows_find_growth(const sp_rows_call *call, uint32_t output, sp_rows_axis *out);

/* Sets an output whose `axis` has the rows as `from` has them. */
void sp__rows_set_axis(const sp_rows_call *call, uint32_t output, uint32_t axis,
                       const sp_rows_axis *from);

/* The axis of the rows of batched input 0, where no other input may be batched, and only those of
 * the mask may be sizes. Else the reason. */
const char *sp__rows_only_first(const sp_rows_call *call, uint32_t size_inputs, sp_rows_axis *out);

/* Inputs that are sizes must be among those of the mask. */
const char *sp__rows_check_sizes(const sp_rows_call *call, uint32_t size_inputs);

/* Rules that ops of several families share; the others are beside the shape rules (ops.h). */

/* Each element of the outputs depends on the elements at its place of inputs that broadcast. */
const char *sp__elementwise_rows(const sp_rows_call *call);
/* The output is the bytes of input 0; input 1 may be sizes. Plans for many rows may replace the
 * output's shape (sp_plan_reshape). */
const char *sp__reshape_rows(const sp_rows_call *call);
/* Input 0 and all outputs have the rows along the first axis; the other inputs are shared. */
const char *sp__image_rows(const sp_rows_call *call);

#endif
