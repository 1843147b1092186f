/* SPDX-License-Identifier: Apache-2.0 */
/* Random calls of an op with one row and with many (ops/rows.h). A call is described by a pattern,
 * and differs for each draw in versions, types, sizes, attributes, and in the places of the rows of
 * its inputs. Not thread-safe. */
#ifndef SP_TESTS_SUPPORT_ROWS_CASE_H
#define SP_TESTS_SUPPORT_ROWS_CASE_H

#include "ops/rows.h"
#include "support/model_data.h"

/* In both texts one alternative of each <a|b|c> is chosen. A number is a product of digits and of
 * letters from a to h, each a random size of the case: 2a.
 *
 * Inputs are words. "f32[a,3]" is computed by the run, and may have rows; the type T is one of
 * `types`; "i64%a[b]" has numbers from 0 to a - 1. "#i64=1,a" is a list and "#f32:2" a scalar that
 * are known before the run; "!i64=a,-1" likewise, and one of its numbers may grow with the batch.
 * "-" is left out.
 *
 * Attributes are words such as axis=1, alpha=0.5, perm=[1,0], scales=[1.0,a], mode='linear'. */
typedef struct rows_pattern {
    const char *op;
    uint32_t since, until; /* versions of the opset */
    const char *types, *inputs, *attributes;
    uint32_t outputs;
} rows_pattern;

enum { ROWS_INPUTS = 8, ROWS_NUMBERS = 16, ROWS_ATTRIBUTES = 8, ROWS_TEXT = 40 };

typedef struct rows_operand {
    bool is_present, is_known, may_grow;
    sp_dtype dtype;
    sp_shape shape;               /* of one row */
    int64_t bound;                /* of its numbers; 0: none */
    double numbers[ROWS_NUMBERS]; /* if they are known */
    uint32_t grown;               /* the one that grows, or UINT32_MAX */
    uint32_t axis;                /* of the rows */
    sp_rows_value rows;
} rows_operand;

typedef struct rows_case {
    const sp_op *op;
    uint32_t version;
    rows_operand inputs[ROWS_INPUTS];
    uint32_t input_count, output_count;
    sp_attribute attributes[ROWS_ATTRIBUTES];
    uint32_t attribute_count;
    char names[ROWS_ATTRIBUTES][ROWS_TEXT], texts[ROWS_ATTRIBUTES][ROWS_TEXT];
    sp_text strings[ROWS_ATTRIBUTES];
    int64_t ints[ROWS_ATTRIBUTES][ROWS_NUMBERS];
    float floats[ROWS_ATTRIBUTES][ROWS_NUMBERS];
} rows_case;

/* Draws a case and the places of its rows. Aborts on a mistake in the pattern. */
void rows_case_make(const rows_pattern *pattern, data_random *random, rows_case *out);

/* The call with a number of rows; it borrows the case. */
typedef struct rows_built {
    sp_op_call call;
    sp_op_value inputs[ROWS_INPUTS], outputs[ROWS_INPUTS];
    sp_array known[ROWS_INPUTS]; /* owned */
    sp_status status;            /* of the shape rule */
} rows_built;

void rows_build(const rows_case *c, const sp_op *op, uint64_t rows, rows_built *out);
void rows_built_deinit(rows_built *built);

/* Random values for the inputs that are not known, freed by the caller; then the call itself. */
void rows_draw(const rows_case *c, const rows_built *built, data_random *random, sp_array *out);
sp_status rows_run(const rows_built *built, const sp_array *inputs, sp_array *outputs);

/* Copies `count` rows of a batched [outer, rows, inner] tensor, from row `from` of one to row `to`
 * of the other; all of a tensor that is not batched. */
void rows_copy(const sp_rows_value *value, const sp_array *source, uint64_t source_rows,
               uint64_t from, sp_array *target, uint64_t target_rows, uint64_t to, uint64_t count);

#endif
