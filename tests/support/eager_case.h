/* SPDX-License-Identifier: Apache-2.0 */
/* One use of an op, as a model of one node and as an eager call: the two must give the same bits.
 */
#ifndef SP_TESTS_SUPPORT_EAGER_CASE_H
#define SP_TESTS_SUPPORT_EAGER_CASE_H

#include <streampool/ops.h>

#include "onnx/onnx.h"
#include "support/model_data.h"

#define CASE_OPERANDS 64

typedef struct eager_case {
    const sp_onnx_model *file; /* points into `bytes` */
    unsigned char *bytes;      /* owned, as is everything below */
    size_t len;
    char op[64];
    sp_op_attribute attributes[SP_OP_MAX_ATTRIBUTES];
    char *texts[SP_OP_MAX_ATTRIBUTES];
    sp_host_tensor tensors[SP_OP_MAX_ATTRIBUTES];
    sp_op_options options;
    sp_array given[CASE_OPERANDS];     /* the model's inputs */
    sp_array constants[CASE_OPERANDS]; /* initializers that the node reads */
    uint32_t given_count;
    const sp_array *operands[CASE_OPERANDS]; /* of the node; NULL is left out */
    uint32_t operand_count;
    uint32_t result_count;             /* number of outputs of the node */
    uint32_t result_of[CASE_OPERANDS]; /* the node's output behind each output of the model */
    uint32_t output_count;
} eager_case;

/* Takes ownership of a model's bytes and inputs. False, with all freed, unless the model is one
 * node whose attributes an eager call supports. */
bool eager_case_open(unsigned char *bytes, size_t len, sp_array *inputs, uint32_t input_count,
                     eager_case *out);
void eager_case_close(eager_case *c);

/* Builds a case from a row. Inputs are words: a type with a shape, "f32[2,3]", filled with numbers
 * from -2 to 2 (indices and bools get small ones); "i64=1,2" is a list and "f32:0.5" a scalar of
 * that value; "-" is left out. Attributes likewise: "axis=-1 alpha=0.5 perm=[1,0] mode='x'
 * value=tensor", where tensor is an i64 7. Aborts on a mistake. */
typedef struct eager_row {
    const char *op;
    uint32_t opset;
    const char *inputs;
    const char *attributes;
    uint32_t outputs;
} eager_row;
void eager_case_make(const eager_row *row, eager_case *out);

/* The model's results: one array per output of the case, freed by the caller. */
sp_status eager_case_run_model(const eager_case *c, sp_device device, sp_array *outputs);

/* The same by an eager call. `is_scattered` passes views with reversed dimension order in memory
 * and gaps. */
sp_status eager_case_run(const eager_case *c, sp_device device, bool is_scattered,
                         sp_array *outputs);

/* The operands as tensors of a device, and the call on them; `results` receives all. */
sp_status eager_case_upload(const eager_case *c, sp_device device, bool is_scattered,
                            sp_tensor *tensors);
sp_status eager_case_call(const eager_case *c, sp_device device, const sp_tensor *tensors,
                          sp_tensor *results);
void tensors_release(const sp_tensor *tensors, uint32_t count);

/* An array as a tensor, scattered as above; and back. */
sp_status tensor_from_array(sp_device device, const sp_array *array, bool is_scattered,
                            sp_tensor *out);
sp_status array_from_tensor(sp_tensor tensor, sp_array *out);

bool arrays_are_same(const sp_array *a, const sp_array *b, uint32_t count);

#endif
