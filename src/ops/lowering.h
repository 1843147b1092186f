/* SPDX-License-Identifier: Apache-2.0 */
/* A lowered call: dispatches in order, whose bindings name the call's own operands. Plans, constant
 * folding and eager calls bind memory to these names. A lowering is used by one thread.
 *
 * A dispatch sees all writes of the dispatches before it. */
#ifndef SP_OPS_LOWERING_H
#define SP_OPS_LOWERING_H

#include "device/kernel.h"
#include "ops/kernel_id.h"
#include "ops/op.h"
#include "ops/pack.h"

typedef enum sp_operand_kind {
    SP_OPERAND_INPUT,  /* the call's input `index`, unpacked */
    SP_OPERAND_PACKED, /* the call's input `index`, packed by the op's `pack` */
    SP_OPERAND_OUTPUT,
    SP_OPERAND_SCRATCH /* temporary memory number `index` of this call */
} sp_operand_kind;

typedef struct sp_operand {
    sp_operand_kind kind;
    uint32_t index;
    bool is_write;
    uint64_t bytes; /* from the operand's start */
} sp_operand;

typedef struct sp_dispatch {
    sp_kernel_id kernel;
    uint32_t binding_count;
    uint32_t constant_bytes;
    uint64_t multiply_adds; /* 0: not counted */
    sp_operand bindings[SP_MAX_BINDINGS];
    _Alignas(16) unsigned char constants[SP_MAX_CONSTANT_BYTES];
} sp_dispatch;

#define SP_LOWERING_MAX_SCRATCH 4
#define SP_NO_INPUT UINT32_MAX

struct sp_lowering {
    sp_dispatch *dispatches; /* owned */
    uint32_t dispatch_count, dispatch_capacity;
    uint64_t scratch_bytes[SP_LOWERING_MAX_SCRATCH];
    uint32_t scratch_count;
    uint32_t alias_input;    /* output i is input alias_input + i; or SP_NO_INPUT */
    uint32_t in_place_input; /* output 0 may be written over this input; or SP_NO_INPUT */
};

void sp__lowering_init(sp_lowering *lowering);
void sp__lowering_deinit(sp_lowering *lowering);
/* Empties the lowering but keeps its memory. */
void sp__lowering_reset(sp_lowering *lowering);

/* Appends a dispatch; constants are copied. *out is valid until the next call. Errors:
 * SP_OUT_OF_MEMORY. */
sp_status sp__lower_dispatch(sp_lowering *lowering, sp_kernel_id kernel, const void *constants,
                             uint32_t constant_bytes, sp_dispatch **out);

/* Appends a binding to the dispatch. */
void sp__lower_bind(sp_dispatch *dispatch, sp_operand operand);
void sp__lower_bind_input(sp_dispatch *dispatch, const sp_op_call *call, uint32_t index);
void sp__lower_bind_output(sp_dispatch *dispatch, const sp_op_call *call, uint32_t index);
void sp__lower_bind_scratch(sp_dispatch *dispatch, const sp_lowering *lowering, uint32_t index,
                            bool is_write);
/* Binds input `index` as it is packed by the op's `pack`, or the scratch where a dispatch has
 * packed it, if it was none of the call's packed constants. */
void sp__lower_bind_packed(sp_dispatch *dispatch, const sp_op_call *call,
                           const sp_lowering *lowering, uint32_t index, uint32_t scratch);

/* Appends the dispatch that packs input `index` into a new scratch, number *scratch. */
sp_status sp__lower_pack(sp_lowering *lowering, const sp_op_call *call, uint32_t index,
                         const sp_pack *pack, uint32_t *scratch);

/* Adds a scratch of `bytes`; returns its number. */
uint32_t sp__lower_scratch(sp_lowering *lowering, uint64_t bytes);

/* Each output i is input `index` + i, possibly with another shape. */
static inline void sp__lower_alias(sp_lowering *lowering, uint32_t index)
{
    lowering->alias_input = index;
}

/* The kernel reads each element of input `index` before it writes the element of output 0 with the
 * same index, in the same tile, so both may share one memory. */
static inline void sp__lower_in_place(sp_lowering *lowering, uint32_t index)
{
    lowering->in_place_input = index;
}

/* Lowers the call. Errors: those of the op's lowering, SP_EXHAUSTED if 32 bits do not count the
 * tiles of a dispatch. */
sp_status sp__op_lower(const sp_op_call *call, sp_lowering *lowering);

/* Runs the dispatches on the calling thread, in order, tile by tile, with a kernel table of the
 * CPU. `place` returns each operand's address. Needs the FP state of kernels (sp_fpenv_enter). */
typedef void *(*sp_lowering_place)(const sp_operand *operand, void *context);
sp_status sp__lowering_run(const sp_lowering *lowering, const sp_kernel *kernels,
                           sp_lowering_place place, void *context);

/* Runs every tile of a dispatch on the calling thread, of the kernel's own tiling or of another
 * one. */
sp_status sp__kernel_run(const sp_kernel *kernel, void *const *bindings, const void *constants);
sp_status sp__kernel_run_tiling(const sp_kernel *kernel, const sp_tiling *tiling,
                                void *const *bindings, const void *constants);

/* The bits of a 1, for kernels that fill. */
uint64_t sp__lower_one(sp_dtype dtype);

#endif
