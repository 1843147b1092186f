/* SPDX-License-Identifier: Apache-2.0 */
/* What an op is, and one use of it. An op is a row of the registry: a schema, a shape rule, and a
 * function that lowers a use to dispatches. A use (sp_op_call) says all that those may look at, so
 * models and eager calls share them. Rows are constant; a call belongs to one thread. */
#ifndef SP_OPS_OP_H
#define SP_OPS_OP_H

#include <stdbool.h>
#include <stdint.h>

#include "ops/attribute.h"
#include "tensor/shape.h"

/* An op of a later ONNX version than this is unknown; 'from this version on' ends here. */
#define SP_OPSET_NEWEST 27

typedef struct sp_op_call sp_op_call;
typedef struct sp_lowering sp_lowering;

/* One operand of a call. */
typedef struct sp_op_value {
    bool is_present; /* false: an optional one that the call leaves out */
    sp_dtype dtype;
    sp_shape shape;
    uint64_t bytes;
    const void *data; /* the elements, if they are known before the run; NULL otherwise */
    bool is_packed;   /* a constant that dispatches find as the op's `pack` lays it out */
    int64_t number;   /* of an output: room for the one integer that a shape rule knows */
} sp_op_value;

typedef struct sp_attribute_schema {
    const char *name;
    sp_attribute_type type;
    bool is_required;
    /* Unless 0, of a text or an integer: bits of the types allowed for input 0 where the attribute
     * is not `free`. One that is left out is `fallback`. */
    uint32_t dtypes;
    const char *fallback, *free;
} sp_attribute_schema;

#define SP_OP_MAX_ATTRIBUTES 9
#define SP_OP_VARIADIC UINT32_MAX
#define SP_OP_PACKED_INPUTS 2

/* In sp_op's dtypes, in the place of bits: the input has the type of input `index`. 0 is input 0.
 */
#define SP_DTYPES_LIKE(index) (0x80000000u | (index))
#define SP_OP_TYPED_INPUTS 6

/* What holds for an op whatever its version. */
typedef struct sp_op_traits {
    const char *kernels;   /* op_kernels.h */
    uint32_t shape_inputs; /* bits of those whose values decide shapes, an axis, or a branch */
    bool hides_values;     /* its outputs depend on the shapes of its inputs only */
    bool is_if;            /* its branches' nodes stand in the graph that it stands in */
    bool has_body;         /* Loop and Scan: it holds a graph that a run computes many times */
} sp_op_traits;

typedef struct sp_op {
    const char *name; /* in ONNX's own domain */
    const sp_op_traits *traits;
    uint32_t since, until; /* opset versions, both included */
    uint32_t min_inputs, max_inputs;
    uint32_t min_outputs, max_outputs;
    /* Of each input: bits of the types allowed, or SP_DTYPES_LIKE. Those of input 0 are output 0's
     * if there is no input; the last ones hold for all inputs behind, too. sp__op_infer refuses
     * what is not in here, docs/operators.md shows it. */
    uint32_t dtypes[SP_OP_TYPED_INPUTS];
    sp_attribute_schema attributes[SP_OP_MAX_ATTRIBUTES]; /* ended by a NULL name */

    /* From the inputs (and the values of those that are known) to dtype and shape of each output.
     * Errors: SP_MISMATCH, SP_UNSUPPORTED. */
    sp_status (*infer)(sp_op_call *call);

    /* Emits the dispatches of a call whose outputs have been inferred. */
    sp_status (*lower)(const sp_op_call *call, sp_lowering *lowering);

    /* NULL, or: emits the one dispatch that lays out constant input `input`, from 1 to
     * SP_OP_PACKED_INPUTS, as `lower` wants it: it reads the input and writes a scratch. Depends on
     * that input and the attributes only. Emits nothing if the input is better left as it is. */
    sp_status (*pack)(const sp_op_call *call, uint32_t input, sp_lowering *lowering);
} sp_op;

struct sp_op_call {
    const sp_op *op;
    uint32_t version; /* opset version that the model asks for, since <= version <= until */
    sp_attribute_list attributes;
    const sp_op_value *inputs;
    sp_op_value *outputs;
    uint32_t input_count, output_count;
    /* Elements of input behind one element of output, if it is not about one: products of a sum,
     * places of a window, bytes of what lies between input and output if that can be far more than
     * both. Set by the shape rule. */
    uint64_t depth;
};

/* Bits of the types that input `index` may have, or SP_DTYPES_LIKE. */
static inline uint32_t sp__op_dtypes(const sp_op *op, uint32_t index)
{
    const uint32_t last = SP_OP_TYPED_INPUTS - 1;
    const uint32_t dtypes = op->dtypes[index < last ? index : last];
    return dtypes != 0 ? dtypes : SP_DTYPES_LIKE(0u);
}

/* Of which input is it the type? False if the bits say. */
static inline bool sp__op_is_like(uint32_t dtypes, uint32_t *index)
{
    *index = dtypes & ~SP_DTYPES_LIKE(0u);
    return (dtypes & SP_DTYPES_LIKE(0u)) != 0;
}

/* Is input `index` given, and not left out? */
static inline bool sp__op_has_input(const sp_op_call *call, uint32_t index)
{
    return index < call->input_count && call->inputs[index].is_present;
}

/* Checks counts and attributes of a use against the schema, before any shape is known. Errors:
 * SP_CORRUPT, SP_UNSUPPORTED for an attribute that the schema does not have. */
sp_status sp__op_check(const sp_op_call *call);

/* Checks the inputs' types and runs the shape rule: afterwards outputs have dtype, shape and bytes.
 * Errors as `infer`; SP_UNSUPPORTED naming op, version and dtype; SP_MISMATCH where one input has
 * not the type of another; SP_EXHAUSTED for absurd shapes. */
sp_status sp__op_infer(sp_op_call *call);

/* About how many bytes and multiply-adds an inferred call costs; UINT64_MAX if that is absurd. */
uint64_t sp__op_work(const sp_op_call *call);

/* Inputs of a model that decide shapes are part of a plan's key by their values, up to this size.
 */
#define SP_SHAPE_INPUT_BYTES 512

/* For shape rules: SP_UNSUPPORTED unless the elements of input `index` are known. */
sp_status sp__op_require_known(const sp_op_call *call, uint32_t index);

/* For shape rules: the integers of input `index` (i64 or i32, at most `max` of them), which must be
 * known. Errors: SP_UNSUPPORTED if they depend on data, SP_MISMATCH. */
sp_status sp__op_known_ints(const sp_op_call *call, uint32_t index, uint32_t max, int64_t *out,
                            uint32_t *count);

/* The same for floats (f32, f64 or f16), as doubles. */
sp_status sp__op_known_floats(const sp_op_call *call, uint32_t index, uint32_t max, double *out,
                              uint32_t *count);

/* For shape rules: the integers of input `index`, before version `from` of the attribute `name`.
 * An absent list gives *has as false. Errors: as sp__op_known_ints. */
sp_status sp__op_known_list(const sp_op_call *call, const char *name, uint32_t from, uint32_t index,
                            int64_t out[SP_MAX_RANK], uint32_t *count, bool *has);

/* For shape rules: output `index` gets this type and shape. */
static inline void sp__op_set_output(sp_op_call *call, uint32_t index, sp_dtype dtype,
                                     const sp_shape *shape)
{
    call->outputs[index].dtype = dtype;
    call->outputs[index].shape = *shape;
}

/* For shape rules of ops whose one output is like input 0. */
sp_status sp__op_infer_same(sp_op_call *call);

#endif
