/* SPDX-License-Identifier: Apache-2.0 */
/* One op, run now on tensors: the same shape rule, lowering and kernels as in a plan. eager.c is
 * the life of a call, eager_launch.c puts memory behind a lowering's operands, eager_attributes.c
 * reads what users give, eager_ops.c holds the public functions with a name each. */
#ifndef SP_OPS_EAGER_H
#define SP_OPS_EAGER_H

#include <streampool/ops.h>

#include "ops/lowering.h"
#include "runtime/current_stream.h"
#include "tensor/tensor.h"

/* What is asked for; all is borrowed. */
typedef struct sp_eager_request {
    const sp_op *op;
    uint32_t version;
    sp_attribute_list attributes;
    sp_device device;        /* if there are no inputs; else theirs, or zero */
    const sp_tensor *inputs; /* zero handles are left out */
    uint32_t input_count;
    const sp_tensor *into; /* NULL, or one per output: zero is a new one */
    uint32_t output_count;
    const void *call_site;
} sp_eager_request;

/* The first line of every eager call: checks the lists and clears the outputs. SP_INVALID for no
 * list, or one of a size that somebody made up. Includes sp__runtime_enter. */
sp_status sp__eager_begin(const char *op, const sp_tensor *inputs, uint32_t input_count,
                          sp_tensor *outputs, uint32_t output_count);

/* Runs it. `outputs` has room for all; zero handles on an error. */
sp_status sp__eager_run(const sp_eager_request *request, sp_tensor *outputs);

/* ---- a call while it is made: of eager.c and eager_launch.c ---- */

typedef struct sp_eager_input {
    sp_rt_tensor *tensor; /* held; NULL: left out */
    void *values;         /* owned: a copy in the host's memory, for shape rules; or NULL */
    sp_tensor copy;       /* owned: contiguous elements, if those of `tensor` cannot be bound */
    sp_storage storage;   /* what kernels read, once it is not zero */
    uint64_t offset;
} sp_eager_input;

typedef struct sp_eager_output {
    sp_tensor tensor;     /* owned: new */
    sp_rt_tensor *into;   /* held: where the result goes; or NULL */
    sp_tensor into_owned; /* the reference to it that the caller gets */
    sp_storage storage;   /* what kernels write */
    uint64_t offset;
    bool is_written; /* by a dispatch of this call */
    void *values;    /* owned: the result, if it was computed in the host's memory */
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

/* Host memory for values, at most as much as the device has: a view may repeat elements without
 * end. SP_OUT_OF_MEMORY. */
sp_status sp__eager_allocate(const sp_eager *eager, uint64_t bytes, void **out);
/* Has the device a kernel for each dispatch, and may it use it? */
bool sp__eager_is_on_device(const sp_eager *eager);
/* Makes what the dispatches read contiguous, and gives them scratch; outputs have their storage.
 * Submits them to the calling thread's current stream. */
sp_status sp__eager_submit(sp_eager *eager);
/* Or computes them on this thread, from copies of the inputs in the host's memory. */
sp_status sp__eager_run_on_host(sp_eager *eager);

#endif
