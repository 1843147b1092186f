/* SPDX-License-Identifier: Apache-2.0 */
/* The table of operators: what models and sp_op_run may use. docs/operators.md is written from it.
 *
 * The table is constant: these calls may be made from any thread, need no device, and work before
 * sp_init and after sp_shutdown. Strings live as long as the library is loaded. Errors of all:
 * SP_INVALID for NULL, SP_NOT_FOUND for an index past the end. */
#ifndef STREAMPOOL_OPERATORS_H
#define STREAMPOOL_OPERATORS_H

#include <stdbool.h>
#include <stdint.h>

#include <streampool/dtype.h>
#include <streampool/ops.h>

SP_EXTERN_C_BEGIN

/* Counts of inputs and outputs: no limit. */
#define SP_OP_ANY_COUNT UINT32_MAX

/* One row of the table: an operator of ONNX's own domain in a range of its versions. */
typedef struct sp_op_info {
    const char *name;
    uint32_t since, until; /* opset versions, both included */
    uint32_t min_inputs, max_inputs;
    uint32_t min_outputs, max_outputs;
    /* Inputs with types of their own: those behind the last one of them have its types. 1 where
     * there is no input. */
    uint32_t typed_input_count;
    uint32_t attribute_count;
} sp_op_info;

/* Rows of the table. Those of one operator follow each other, oldest version first. */
SP_API uint32_t sp_op_count(void);

/* The newest opset version of ONNX's own domain that models may use. A row with this `until` is
 * the operator's last one. */
SP_API uint32_t sp_op_newest_opset(void);

/* The `index`-th row. */
SP_API sp_status sp_op_get_info(uint32_t index, sp_op_info *out);

/* Types that an input may have. */
typedef struct sp_op_input_types {
    uint32_t dtypes; /* a set of SP_DTYPE_BIT; 0 if it has the type of another input: */
    bool is_like;
    uint32_t like; /* the index of that input */
} sp_op_input_types;

/* Types of input `input` of the `index`-th row; of an operator without inputs, those of its output
 * as input 0. */
SP_API sp_status sp_op_get_input_types(uint32_t index, uint32_t input, sp_op_input_types *out);

/* An attribute of an operator. */
typedef struct sp_op_attribute_info {
    const char *name;
    sp_op_attribute_type type;
    bool is_required;
    /* A set of types, or 0. Unless the attribute has the value `unless`, input 0 has one of these
     * types. */
    uint32_t dtypes;
    const char *unless; /* NULL without `dtypes` */
} sp_op_attribute_info;

/* Attribute `attribute` of the `index`-th row. */
SP_API sp_status sp_op_get_attribute(uint32_t index, uint32_t attribute, sp_op_attribute_info *out);

/* Whether devices of a kind ("cpu", "null" or "cuda", as in sp_device_info) run the operator
 * themselves, as sp_device_get_ops counts it; otherwise its steps run on cpu. `name` is the
 * operator's in ONNX. No device of the kind need be there. SP_NOT_FOUND for a name or a kind that
 * there is not. */
SP_API sp_status sp_op_has_kernels(const char *name, const char *kind, bool *out);

SP_EXTERN_C_END

#endif
