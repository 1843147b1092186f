/* SPDX-License-Identifier: Apache-2.0 */
/* One call, lowered and run by sp__lowering_run over host memory. */
#include "ops/evaluate.h"

#include <string.h>

#include "base/error.h"
#include "base/fpenv.h"
#include "base/heap.h"
#include "base/macros.h"

typedef struct operands {
    const sp_op_call *call;
    void *const *outputs;
    void *scratch[SP_LOWERING_MAX_SCRATCH];
} operands;

static void *operand_address(const sp_operand *operand, void *context)
{
    operands *all = context;
    switch (operand->kind) {
    /* Kernels get inputs and outputs in one array of pointers. */
    case SP_OPERAND_INPUT:
        return (void *)(uintptr_t)all->call->inputs[operand->index].data;
    case SP_OPERAND_OUTPUT:
        return all->outputs[operand->index];
    case SP_OPERAND_SCRATCH:
        return all->scratch[operand->index];
    case SP_OPERAND_PACKED:
        break; /* inputs are not packed here */
    }
    return NULL;
}

static sp_status lowering_run(const sp_op_call *call, const sp_lowering *lowering,
                              const sp_kernel *kernels, void *const *outputs)
{
    operands all = {.call = call, .outputs = outputs};
    sp_status status = SP_OK;
    for (uint32_t i = 0; i < lowering->scratch_count && status == SP_OK; i++) {
        all.scratch[i] = sp_aligned_malloc(SP_ARRAY_ALIGNMENT, (size_t)lowering->scratch_bytes[i]);
        if (all.scratch[i] == NULL) status = sp__fail(SP_OUT_OF_MEMORY, "no memory to fold a node");
    }
    if (status == SP_OK) {
        const sp_fpenv before = sp_fpenv_enter();
        status = sp__lowering_run(lowering, kernels, operand_address, &all);
        sp_fpenv_leave(before);
    }
    for (uint32_t i = 0; i < lowering->scratch_count; i++) sp_free(all.scratch[i]);
    return status;
}

/* `outputs` is zeroed by the caller, which frees the arrays on an error. */
static sp_status call_evaluate(const sp_op_call *call, const sp_kernel *kernels,
                               sp_lowering *lowering, void **pointers, sp_array *outputs)
{
    for (uint32_t i = 0; i < call->output_count; i++) {
        const sp_op_value *output = &call->outputs[i];
        SP_TRY(sp__array_init(&outputs[i], output->dtype, &output->shape));
        pointers[i] = outputs[i].data;
        if (output->data != NULL && output->bytes > 0) {
            memcpy(outputs[i].data, output->data, (size_t)output->bytes);
        }
    }
    SP_TRY(sp__op_lower(call, lowering));
    if (lowering->alias_input != SP_NO_INPUT) {
        for (uint32_t i = 0; i < call->output_count; i++) {
            const void *from = call->inputs[lowering->alias_input + i].data;
            if (outputs[i].bytes > 0) memcpy(outputs[i].data, from, (size_t)outputs[i].bytes);
        }
        return SP_OK;
    }
    return lowering_run(call, lowering, kernels, pointers);
}

sp_status sp__evaluate(const sp_op_call *call, const sp_kernel *kernels, sp_array *outputs)
{
    memset(outputs, 0, call->output_count * sizeof(*outputs));
    void **pointers = sp_calloc(call->output_count, sizeof(*pointers));
    if (pointers == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory to fold a node");
    sp_lowering lowering;
    sp__lowering_init(&lowering);
    const sp_status status = call_evaluate(call, kernels, &lowering, pointers, outputs);
    sp__lowering_deinit(&lowering);
    sp_free((void *)pointers);
    if (status != SP_OK) {
        for (uint32_t i = 0; i < call->output_count; i++) sp__array_deinit(&outputs[i]);
    }
    return status;
}
