/* SPDX-License-Identifier: Apache-2.0 */
/* One op, run now on tensors: the same shape rule, lowering and kernels as in a plan. eager.c has
 * the steps of a call, eager_launch.c binds memory to a lowering's operands, eager_attributes.c
 * converts the caller's attributes, eager_ops.c has one public function per op. */
#ifndef SP_OPS_EAGER_H
#define SP_OPS_EAGER_H

#include <streampool/ops.h>

#include "ops/lowering.h"
#include "runtime/current_stream.h"
#include "tensor/tensor.h"

/* A call of an op; everything is borrowed. */
typedef struct sp_eager_request {
    const sp_op *op;
    uint32_t version;
    sp_attribute_list attributes;
    sp_device device;        /* without inputs: where to run; else that of the inputs, or zero */
    const sp_tensor *inputs; /* a zero handle is an omitted input */
    uint32_t input_count;
    const sp_tensor *into; /* NULL, or one per output: zero for a new tensor */
    uint32_t output_count;
    const void *call_site;
} sp_eager_request;

/* Begins every eager call: checks the lists and clears the outputs. Calls sp__runtime_enter.
 * Errors: SP_INVALID for a NULL list or a count out of range. */
sp_status sp__eager_begin(const char *op, const sp_tensor *inputs, uint32_t input_count,
                          sp_tensor *outputs, uint32_t output_count);

/* Runs the call. `outputs` has room for all outputs; zero handles on an error. */
sp_status sp__eager_run(const sp_eager_request *request, sp_tensor *outputs);

/* ---- state of a call, shared by eager.c and eager_launch.c ---- */

typedef struct sp_eager_input {
    sp_rt_tensor *tensor; /* held; NULL: omitted */
    void *values;         /* owned: a copy in host memory for shape rules, or NULL */
    sp_tensor copy;       /* owned: contiguous elements, if those of `tensor` cannot be bound */
    sp_storage storage;   /* what kernels read; zero until it is known */
    uint64_t offset;
} sp_eager_input;

typedef struct sp_eager_output {
    sp_tensor tensor;     /* owned: new */
    sp_rt_tensor *into;   /* held: the tensor that gets the result, or NULL */
    sp_tensor into_owned; /* the reference to it that the caller gets */
    sp_storage storage;   /* what kernels write */
    uint64_t offset;
    bool is_written; /* by a dispatch of this call */
    void *values;    /* owned: the result, if it was computed in host memory */
} sp_eager_output;

typedef struct sp_eager {
    const sp_eager_request *request;
    sp_op_call call;
    sp_op_value *values; /* owned: of the inputs, then of the outputs */
    sp_eager_input *inputs;
    sp_eager_output *outputs;
    sp_rt_device *device;
    sp_lowering lowering;
    sp_storage scratch[SP_LOWERING_MAX_SCRATCH];
    bool is_scratch_written[SP_LOWERING_MAX_SCRATCH];
} sp_eager;

/* Host memory for values, at most as much as the device has, since a view may repeat elements any
 * number of times. Errors: SP_OUT_OF_MEMORY. */
sp_status sp__eager_allocate(const sp_eager *eager, uint64_t bytes, void **out);
/* Does the device have a kernel for each dispatch, not excluded by options? */
bool sp__eager_is_on_device(const sp_eager *eager);
/* Copies inputs that are not contiguous, allocates scratch, and submits the dispatches to the
 * calling thread's current stream. Precondition: the outputs have their storage. */
sp_status sp__eager_submit(sp_eager *eager);
/* Computes the outputs on the calling thread instead, from copies of the inputs in host memory. */
sp_status sp__eager_run_on_host(sp_eager *eager);

#endif
