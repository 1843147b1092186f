/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/future_outputs.h"

#include "base/error.h"
#include "base/heap.h"

enum {
    LENT,  /* the memory is the caller's */
    OWNED, /* the memory is the future's */
    TAKEN
};

static bool has_no_memory(const sp_host_tensor *tensor)
{
    return tensor->data == NULL && tensor->capacity == 0;
}

sp_status sp__future_outputs_init(sp_future_outputs *outputs, uint32_t count)
{
    outputs->tensors = outputs->tensor_room;
    outputs->states = outputs->state_room;
    outputs->count = 0;
    outputs->block = NULL;
    if (count > SP_FUTURE_OUTPUTS) {
        outputs->block = sp_malloc(count * (sizeof *outputs->tensors + sizeof *outputs->states));
        if (outputs->block == NULL) {
            return sp__fail(SP_OUT_OF_MEMORY, "no memory for a run of %u outputs", count);
        }
        outputs->tensors = outputs->block;
        outputs->states = (void *)(outputs->tensors + count);
    }
    for (uint32_t i = 0; i < count; i++) sp_store_relaxed(&outputs->states[i], LENT);
    outputs->count = count;
    return SP_OK;
}

void sp__future_outputs_deinit(sp_future_outputs *outputs)
{
    for (uint32_t i = 0; i < outputs->count; i++) {
        if (sp_load_relaxed(&outputs->states[i]) == OWNED) sp_free(outputs->tensors[i].data);
    }
    sp_free(outputs->block);
    outputs->count = 0;
    outputs->block = NULL;
}

void sp__future_outputs_set(sp_future_outputs *outputs, const sp_host_tensor *tensors, bool may_own)
{
    for (uint32_t i = 0; i < outputs->count; i++) {
        outputs->tensors[i] = tensors[i];
        outputs->tensors[i].name = NULL; /* the caller's; see the call for another one */
        const bool is_owned = may_own && has_no_memory(&tensors[i]);
        sp_store_relaxed(&outputs->states[i], is_owned ? OWNED : LENT);
    }
}

sp_status sp__future_outputs_take(sp_future_outputs *outputs, uint32_t index, sp_host_tensor *out)
{
    if (index >= outputs->count) {
        return sp__fail(SP_NOT_FOUND, "output %u of the call was to be taken; it was given %u",
                        index, outputs->count);
    }
    if (sp_exchange_relaxed(&outputs->states[index], TAKEN) == TAKEN) {
        return sp__fail(SP_NOT_FOUND, "output %u has been taken already", index);
    }
    const char *name = out->name;
    *out = outputs->tensors[index];
    out->name = name;
    return SP_OK;
}
