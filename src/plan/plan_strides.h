/* SPDX-License-Identifier: Apache-2.0 */
/* Copies that are views (docs/decisions/0054-operands-by-strides.md): a product, a function of two
 * operands, or another copy reads by strides what a copy of its operand was made from, and a
 * product writes its result where a copy would have moved it. */
#ifndef SP_PLAN_PLAN_STRIDES_H
#define SP_PLAN_PLAN_STRIDES_H

#include "plan/plan_view.h"

/* Call last before memory is assigned: operands no longer are whole values in their order. Changes
 * no bit. Errors: SP_OUT_OF_MEMORY. */
sp_status sp__plan_stride(sp_plan_builder *builder);

/* ---- for plan_strides_product.c and plan_fuse_attention.c ---- */

/* Uses of a root value. */
typedef struct sp_stride_value {
    uint32_t reads; /* bindings and outputs */
    uint32_t writes;
    uint32_t writer, reader; /* the last one of each, or SP_NO_STEP */
} sp_stride_value;

/* One pass over the steps, of which those that become unused lose their kernel. */
typedef struct sp_stride_pass {
    sp_plan_builder *builder;
    sp_stride_value *values; /* by root */
} sp_stride_pass;

/* A pass with counted uses of all values: calls `visit` for the steps in order, those too that have
 * lost their kernel, and then removes these. Errors: SP_OUT_OF_MEMORY, those of `visit`. */
sp_status sp__stride_each(sp_plan_builder *builder,
                          sp_status (*visit)(sp_stride_pass *pass, uint32_t step));

/* What a copy is made from. */
typedef struct sp_stride_source {
    sp_view view;
    sp_plan_binding binding;
    bool is_only; /* nothing else reads the copy */
} sp_stride_source;

/* True if the operand is a copy of elements of so many bytes, by strides. */
bool sp__stride_find(const sp_stride_pass *pass, const sp_plan_binding *read,
                     uint32_t element_bytes, sp_stride_source *out);

/* The step reads the source as its operand `operand`, and writes its result over no operand. */
void sp__stride_read(sp_stride_pass *pass, uint32_t step, uint32_t operand,
                     const sp_stride_source *source);

/* One read less of the value. Removes a copy if nothing reads what it writes, and then the copy
 * that it reads. */
void sp__stride_drop_read(sp_stride_pass *pass, uint32_t root);

/* The copy of the whole result y, in another order, that nothing else reads: its step, and the view
 * by which the step of y writes it. */
bool sp__stride_find_result(const sp_stride_pass *pass, const sp_plan_binding *y, uint32_t *copy,
                            sp_view *out);

/* The step writes what the copy would have. */
void sp__stride_absorb(sp_stride_pass *pass, uint32_t step, uint32_t copy);

/* The builder may still write recorded constants and bindings. */
void *sp__stride_constants(const sp_plan_step *step);
sp_plan_binding *sp__stride_bindings(const sp_plan_step *step);

/* A product reads its operands and writes its result by strides, where it can. */
sp_status sp__stride_product(sp_stride_pass *pass, uint32_t step);

#endif
