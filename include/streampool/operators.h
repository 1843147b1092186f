/* SPDX-License-Identifier: Apache-2.0 */
/* The table of operators that models and sp_op_run may use. docs/operators.md is generated from it.
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

/* As a count of inputs or outputs: no limit. */
#define SP_OP_ANY_COUNT UINT32_MAX

/* One row of the table: an operator of ONNX's own domain in a range of its versions. */
typedef struct sp_op_info {
    const char *name;
    uint32_t since, until; /* opset versions, both included */
    uint32_t min_inputs, max_inputs;
    uint32_t min_outputs, max_outputs;
    /* Number of inputs with their own set of types; later inputs have the types of the last of
     * these. 1 if there is no input. */
    uint32_t typed_input_count;
    uint32_t attribute_count;
} sp_op_info;

/* Number of rows. Rows of one operator are adjacent, oldest version first. */
SP_API uint32_t sp_op_count(void);

/* The newest opset version of ONNX's own domain that models may use. A row with this `until` is the
 * operator's last one. */
SP_API uint32_t sp_op_newest_opset(void);

/* The `index`-th row. */
SP_API sp_status sp_op_get_info(uint32_t index, sp_op_info *out);

/* Types that an input may have. */
typedef struct sp_op_input_types {
    uint32_t dtypes; /* a set of SP_DTYPE_BIT; 0 if `is_like` */
    bool is_like;    /* the type is that of input `like` */
    uint32_t like;
} sp_op_input_types;

/* Types of input `input` of the `index`-th row. For an operator without inputs, input 0 gives the
 * types of its output. */
SP_API sp_status sp_op_get_input_types(uint32_t index, uint32_t input, sp_op_input_types *out);

/* An attribute of an operator. */
typedef struct sp_op_attribute_info {
    const char *name;
    sp_op_attribute_type type;
    bool is_required;
    /* A set of types, or 0: unless the attribute has the value `unless`, input 0 must have one of
     * these types. */
    uint32_t dtypes;
    const char *unless; /* NULL without `dtypes` */
} sp_op_attribute_info;

/* Attribute `attribute` of the `index`-th row. */
SP_API sp_status sp_op_get_attribute(uint32_t index, uint32_t attribute, sp_op_attribute_info *out);

/* Whether devices of a kind ("cpu", "null" or "cuda", as in sp_device_info) have kernels for the
 * operator, as counted by sp_device_get_ops; otherwise its steps run on cpu. `name` is the
 * operator's ONNX name. No device of the kind needs to exist. SP_NOT_FOUND for an unknown name or
 * kind. */
SP_API sp_status sp_op_has_kernels(const char *name, const char *kind, bool *out);

SP_EXTERN_C_END

#endif
