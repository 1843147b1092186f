/* SPDX-License-Identifier: Apache-2.0 */
/* A growing list of dispatches, and its reference execution. */
#include "ops/lowering.h"

#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/heap.h"
#include "base/macros.h"
#include "ops/cpu/arch/kernels.h"

void sp__lowering_init(sp_lowering *lowering)
{
    *lowering = (sp_lowering){0};
    sp__lowering_reset(lowering);
}

void sp__lowering_deinit(sp_lowering *lowering)
{
    sp_free(lowering->dispatches);
    *lowering = (sp_lowering){0};
}

void sp__lowering_reset(sp_lowering *lowering)
{
    lowering->dispatch_count = 0;
    lowering->scratch_count = 0;
    lowering->alias_input = SP_NO_INPUT;
    lowering->in_place_input = SP_NO_INPUT;
}

static sp_status dispatches_grow(sp_lowering *lowering)
{
    const uint32_t capacity =
        lowering->dispatch_capacity == 0 ? 4 : lowering->dispatch_capacity * 2;
    sp_dispatch *larger =
        sp_aligned_malloc(_Alignof(sp_dispatch), (size_t)capacity * sizeof(*larger));
    if (!larger) return sp__fail(SP_OUT_OF_MEMORY, "no memory to lower an op");
    if (lowering->dispatch_count > 0) {
        memcpy(larger, lowering->dispatches, lowering->dispatch_count * sizeof(*larger));
    }
    sp_free(lowering->dispatches);
    lowering->dispatches = larger;
    lowering->dispatch_capacity = capacity;
    return SP_OK;
}

sp_status sp__lower_dispatch(sp_lowering *lowering, sp_kernel_id kernel, const void *constants,
                             uint32_t constant_bytes, sp_dispatch **out)
{
    SP_ASSERT(constant_bytes <= SP_MAX_CONSTANT_BYTES);
    if (lowering->dispatch_count == lowering->dispatch_capacity) SP_TRY(dispatches_grow(lowering));
    sp_dispatch *dispatch = &lowering->dispatches[lowering->dispatch_count++];
    dispatch->kernel = kernel;
    dispatch->binding_count = 0;
    dispatch->constant_bytes = constant_bytes;
    dispatch->multiply_adds = 0;
    memcpy(dispatch->constants, constants, constant_bytes);
    *out = dispatch;
    return SP_OK;
}

void sp__lower_bind(sp_dispatch *dispatch, sp_operand operand)
{
    SP_ASSERT(dispatch->binding_count < SP_MAX_BINDINGS);
    dispatch->bindings[dispatch->binding_count++] = operand;
}

void sp__lower_bind_input(sp_dispatch *dispatch, const sp_op_call *call, uint32_t index)
{
    sp__lower_bind(dispatch,
                   (sp_operand){SP_OPERAND_INPUT, index, false, call->inputs[index].bytes});
}

void sp__lower_bind_output(sp_dispatch *dispatch, const sp_op_call *call, uint32_t index)
{
    sp__lower_bind(dispatch,
                   (sp_operand){SP_OPERAND_OUTPUT, index, true, call->outputs[index].bytes});
}

void sp__lower_bind_scratch(sp_dispatch *dispatch, const sp_lowering *lowering, uint32_t index,
                            bool is_write)
{
    sp__lower_bind(dispatch, (sp_operand){SP_OPERAND_SCRATCH, index, is_write,
                                          lowering->scratch_bytes[index]});
}

void sp__lower_bind_packed(sp_dispatch *dispatch, const sp_op_call *call,
                           const sp_lowering *lowering, uint32_t index, uint32_t scratch)
{
    if (!call->inputs[index].is_packed) {
        sp__lower_bind_scratch(dispatch, lowering, scratch, false);
        return;
    }
    const sp_pack pack = sp__op_pack(call, index);
    sp__lower_bind(dispatch,
                   (sp_operand){SP_OPERAND_PACKED, index, false, sp__pack_copy_bytes(&pack)});
}

sp_status sp__lower_pack(sp_lowering *lowering, const sp_op_call *call, uint32_t index,
                         const sp_pack *pack, uint32_t *scratch)
{
    sp_dispatch *dispatch;
    *scratch = sp__lower_scratch(lowering, sp__pack_copy_bytes(pack));
    SP_TRY(sp__lower_dispatch(lowering, sp__pack_kernel(pack->format), &pack->matrix,
                              sizeof pack->matrix, &dispatch));
    sp__lower_bind_input(dispatch, call, index);
    sp__lower_bind_scratch(dispatch, lowering, *scratch, true);
    return SP_OK;
}

uint32_t sp__lower_scratch(sp_lowering *lowering, uint64_t bytes)
{
    SP_ASSERT(lowering->scratch_count < SP_LOWERING_MAX_SCRATCH);
    lowering->scratch_bytes[lowering->scratch_count] = bytes;
    return lowering->scratch_count++;
}

/* A tile writes a byte at least, so the tiles of smaller operands are counted by 32 bits. */
static bool may_have_many_tiles(const sp_dispatch *dispatch)
{
    for (uint32_t i = 0; i < dispatch->binding_count; i++) {
        if (dispatch->bindings[i].is_write && dispatch->bindings[i].bytes >= UINT32_MAX)
            return true;
    }
    return false;
}

static sp_status tiles_check(const sp_dispatch *dispatch)
{
    if (!may_have_many_tiles(dispatch)) return SP_OK;
    sp_tiling tiling;
    sp__cpu_kernels(SP_CPU_PORTABLE)[dispatch->kernel].tiling(dispatch->constants, &tiling);
    for (int i = 0; i < 3; i++) {
        if (tiling.grid[i] == UINT32_MAX) {
            return sp__fail(SP_EXHAUSTED, "the op needs a grid of more than 2^32 tiles");
        }
    }
    return SP_OK;
}

sp_status sp__op_lower(const sp_op_call *call, sp_lowering *lowering)
{
    SP_TRY(call->op->lower(call, lowering));
    for (uint32_t i = 0; i < lowering->dispatch_count; i++) {
        SP_TRY(tiles_check(&lowering->dispatches[i]));
    }
    return SP_OK;
}

sp_status sp__kernel_run_tiling(const sp_kernel *kernel, const sp_tiling *tiling,
                                void *const *bindings, const void *constants)
{
    const uint32_t *grid = tiling->grid, *size = tiling->size;
    sp_tile tile = {.count = {1, 1, 1},
                    .grid = {grid[0], grid[1], grid[2]},
                    .size = {size[0], size[1], size[2]},
                    .bindings = bindings,
                    .constants = constants};
    for (tile.index[2] = 0; tile.index[2] < grid[2]; tile.index[2]++) {
        for (tile.index[1] = 0; tile.index[1] < grid[1]; tile.index[1]++) {
            for (tile.index[0] = 0; tile.index[0] < grid[0]; tile.index[0]++) {
                SP_TRY(kernel->run(&tile));
            }
        }
    }
    return SP_OK;
}

sp_status sp__kernel_run(const sp_kernel *kernel, void *const *bindings, const void *constants)
{
    sp_tiling tiling;
    kernel->tiling(constants, &tiling);
    return sp__kernel_run_tiling(kernel, &tiling, bindings, constants);
}

sp_status sp__lowering_run(const sp_lowering *lowering, const sp_kernel *kernels,
                           sp_lowering_place place, void *context)
{
    for (uint32_t i = 0; i < lowering->dispatch_count; i++) {
        const sp_dispatch *dispatch = &lowering->dispatches[i];
        void *bindings[SP_MAX_BINDINGS];
        for (uint32_t k = 0; k < dispatch->binding_count; k++) {
            bindings[k] = place(&dispatch->bindings[k], context);
        }
        SP_TRY(sp__kernel_run(&kernels[dispatch->kernel], bindings, dispatch->constants));
    }
    return SP_OK;
}

uint64_t sp__lower_one(sp_dtype dtype)
{
    switch (dtype) {
    case SP_F32:
        return 0x3f800000u;
    case SP_F64:
        return 0x3ff0000000000000u;
    case SP_F16:
        return 0x3c00u;
    case SP_BF16:
        return 0x3f80u;
    default:
        return 1;
    }
}
