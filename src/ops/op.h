/* SPDX-License-Identifier: Apache-2.0 */
/* Ops and calls of ops. An op is a row of the registry: a schema, a shape rule, and a function that
 * lowers a call to dispatches. A call (sp_op_call) has all that these may read, so models and eager
 * calls share them. Rows are constant; a call is used by one thread. */
#ifndef SP_OPS_OP_H
#define SP_OPS_OP_H

#include <stdbool.h>
#include <stdint.h>

#include "ops/attribute.h"
#include "tensor/shape.h"

/* The newest ONNX opset version that is supported; open-ended schemas end here. */
#define SP_OPSET_NEWEST 27

typedef struct sp_op_call sp_op_call;
typedef struct sp_lowering sp_lowering;
typedef struct sp_pack sp_pack;

/* One operand of a call. */
typedef struct sp_op_value {
    bool is_present; /* false: an optional operand that the call omits */
    sp_dtype dtype;
    sp_shape shape;
    uint64_t bytes;
    const void *data; /* the elements if they are known before the run, else NULL */
    bool is_packed;   /* a constant that dispatches read as packed by the op's `pack` */
    int64_t number;   /* of an output: storage for `data` if a shape rule computes one integer */
} sp_op_value;

typedef struct sp_attribute_schema {
    const char *name;
    sp_attribute_type type;
    bool is_required;
    /* Unless 0, of a text or an integer: bits of the types allowed for input 0 if the value is not
     * `free`. An absent attribute has the value `fallback`. */
    uint32_t dtypes;
    const char *fallback, *free;
} sp_attribute_schema;

#define SP_OP_MAX_ATTRIBUTES 9
#define SP_OP_VARIADIC UINT32_MAX
#define SP_OP_PACKED_INPUTS 2

/* In sp_op's dtypes instead of bits: the input has the type of input `index`. 0 is input 0. */
#define SP_DTYPES_LIKE(index) (0x80000000u | (index))
#define SP_OP_TYPED_INPUTS 6

typedef struct sp_rows_call sp_rows_call;

/* Properties of an op in all versions. */
typedef struct sp_op_traits {
    const char *kernels;   /* op_kernels.h */
    uint32_t shape_inputs; /* bits of the inputs that determine shapes, an axis or a branch */
    bool hides_values;     /* its outputs depend only on the shapes of its inputs */
    bool is_if;            /* its branches' nodes are in the same graph as its own */
    bool has_body; /* Loop and Scan: it has a graph that a run computes once per iteration */
    /* Shows that row i of the outputs depends on row i of the inputs only (ops/rows.h). NULL: not
     * separable. */
    const char *(*rows)(const sp_rows_call *call);
} sp_op_traits;

typedef struct sp_op {
    const char *name; /* in ONNX's own domain */
    const sp_op_traits *traits;
    uint32_t since, until; /* opset versions, both included */
    uint32_t min_inputs, max_inputs;
    uint32_t min_outputs, max_outputs;
    /* Of each input: bits of the types allowed, or SP_DTYPES_LIKE. Those of input 0 are output 0's
     * if there is no input; the last ones apply to all further inputs. sp__op_infer refuses other
     * types; docs/operators.md lists them. */
    uint32_t dtypes[SP_OP_TYPED_INPUTS];
    sp_attribute_schema attributes[SP_OP_MAX_ATTRIBUTES]; /* terminated by a NULL name */

    /* Sets dtype and shape of each output from the inputs (and their values, where known). Errors:
     * SP_MISMATCH, SP_UNSUPPORTED. */
    sp_status (*infer)(sp_op_call *call);

    /* Emits the dispatches of a call whose outputs have been inferred. */
    sp_status (*lower)(const sp_op_call *call, sp_lowering *lowering);

    /* NULL, or: how `lower` reads constant input `input`, from 1 to SP_OP_PACKED_INPUTS, if it is
     * packed; *out is zeroed, and stays so if packing does not pay. Depends on that input and the
     * attributes only. */
    void (*pack)(const sp_op_call *call, uint32_t input, sp_pack *out);
} sp_op;

struct sp_op_call {
    const sp_op *op;
    uint32_t version; /* the model's opset version, since <= version <= until */
    sp_attribute_list attributes;
    const sp_op_value *inputs;
    sp_op_value *outputs;
    uint32_t input_count, output_count;
    sp_precision precision; /* of products with packed matrices (docs/decisions/0072) */
    bool packs_left;        /* of such a product, whatever its size; the same bits. For tests */
    /* Input elements per output element, if not about one: products of a sum, elements of a window;
     * or bytes of an intermediate result that can be far larger than input and output. Set by the
     * shape rule. */
    uint64_t depth;
};

/* Bits of the types that input `index` may have, or SP_DTYPES_LIKE. */
static inline uint32_t sp__op_dtypes(const sp_op *op, uint32_t index)
{
    const uint32_t last = SP_OP_TYPED_INPUTS - 1;
    const uint32_t dtypes = op->dtypes[index < last ? index : last];
    return dtypes != 0 ? dtypes : SP_DTYPES_LIKE(0u);
}

/* True if the type is that of input *index; false if `dtypes` are bits. */
static inline bool sp__op_is_like(uint32_t dtypes, uint32_t *index)
{
    *index = dtypes & ~SP_DTYPES_LIKE(0u);
    return (dtypes & SP_DTYPES_LIKE(0u)) != 0;
}

/* Is input `index` given and not omitted? */
static inline bool sp__op_has_input(const sp_op_call *call, uint32_t index)
{
    return index < call->input_count && call->inputs[index].is_present;
}

/* Checks counts and attributes of a call against the schema, before any shape is known. Errors:
 * SP_CORRUPT, SP_UNSUPPORTED for an attribute that the schema does not have. */
sp_status sp__op_check(const sp_op_call *call);

/* Checks the inputs' types and runs the shape rule: afterwards outputs have dtype, shape and bytes.
 * Errors as `infer`; SP_UNSUPPORTED naming op, version and dtype; SP_MISMATCH if two inputs must
 * have the same type and do not; SP_EXHAUSTED for shapes whose size overflows. */
sp_status sp__op_infer(sp_op_call *call);

/* Estimated cost of an inferred call in bytes and multiply-adds; UINT64_MAX on overflow. */
uint64_t sp__op_work(const sp_op_call *call);

/* Values of a model's shape-determining inputs are part of a plan's key, up to this size. */
#define SP_SHAPE_INPUT_BYTES 512

/* For shape rules: SP_UNSUPPORTED unless the elements of input `index` are known. */
sp_status sp__op_require_known(const sp_op_call *call, uint32_t index);

/* For shape rules: the integers of input `index` (i64 or i32, at most `max` of them), which must be
 * known. Errors: SP_UNSUPPORTED if they are not known, SP_MISMATCH. */
sp_status sp__op_known_ints(const sp_op_call *call, uint32_t index, uint32_t max, int64_t *out,
                            uint32_t *count);

/* The same for floats (f32, f64 or f16), as doubles. */
sp_status sp__op_known_floats(const sp_op_call *call, uint32_t index, uint32_t max, double *out,
                              uint32_t *count);

/* For shape rules: the integers of input `index` or, before version `from`, of the attribute
 * `name`. *has is false if the list is absent. Errors: as sp__op_known_ints. */
sp_status sp__op_known_list(const sp_op_call *call, const char *name, uint32_t from, uint32_t index,
                            int64_t out[SP_MAX_RANK], uint32_t *count, bool *has);

/* For shape rules: sets type and shape of output `index`. */
static inline void sp__op_set_output(sp_op_call *call, uint32_t index, sp_dtype dtype,
                                     const sp_shape *shape)
{
    call->outputs[index].dtype = dtype;
    call->outputs[index].shape = *shape;
}

/* Shape rule of ops whose one output has type and shape of input 0. */
sp_status sp__op_infer_same(sp_op_call *call);

#endif
