/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of images (docs/decisions/0051-channel-blocks.md): convolutions, and what is between
 * them, compute images in blocks of channels; steps that need plain images get copies of them. */
#ifndef SP_PLAN_PLAN_BLOCKS_H
#define SP_PLAN_PLAN_BLOCKS_H

#include "ops/blocked.h"
#include "plan/plan_build.h"

/* Replaces the recorded steps. Call before packings are finished. */
sp_status sp__plan_block(sp_plan_builder *builder);

/* ---- between the files of the pass ---- */

/* What there is of a root value. */
typedef struct sp_block_value {
    bool is_plain;      /* as it was recorded */
    uint32_t blocked;   /* the value with its blocks, or SP_NO_VALUE */
    sp_image_form form; /* of that */
    uint32_t writer;    /* the added step that writes the blocks; SP_NO_STEP: none, or a view */
} sp_block_value;

/* One pass over the recorded steps. */
typedef struct sp_block_pass {
    sp_plan_builder *builder;
    sp_block_value *values;      /* by root of the recorded steps, and those that are added */
    const sp_channel_map **maps; /* grows; owned (plan_blocks_maps.h) */
    uint32_t *offsets;           /* grows: values that are lists of offsets */
    uint32_t value_count, value_capacity, map_count, map_capacity, offset_count, offset_capacity;
} sp_block_pass;

/* Is it blocked in this form? */
bool sp__block_is_in_form(const sp_block_pass *pass, uint32_t root, const sp_image_form *form);

/* Copies the value where needed, for `step`, so that it is plain, or blocked in this form. */
sp_status sp__block_read_plain(sp_block_pass *pass, const sp_plan_step *step, uint32_t root);
sp_status sp__block_read(sp_block_pass *pass, const sp_plan_step *step, uint32_t root,
                         const sp_image_form *form, uint32_t *blocked);

/* A copy of a blocked value to other lanes: its channels are those of the copy from `first` on, and
 * the others are +0. */
typedef struct sp_block_move {
    uint32_t from;
    const sp_image_form *from_form;
    uint32_t to;
    const sp_image_form *to_form;
    int64_t first;
} sp_block_move;

/* Adds it; `step` gives the names. */
sp_status sp__block_add_move(sp_block_pass *pass, const sp_plan_step *step,
                             const sp_block_move *move);

/* The blocks that a step writes in place of the value. */
sp_status sp__block_write(sp_block_pass *pass, uint32_t root, const sp_image_form *form,
                          uint32_t *blocked);

/* Adds a root value in this form, which the step that is added next writes; one of so many floats,
 * as if a recorded step would write it. */
sp_status sp__block_add_root(sp_block_pass *pass, const sp_image_form *form, uint32_t *root);
sp_status sp__block_add_recorded(sp_block_pass *pass, int64_t count, uint32_t *root);

/* Adds a step that reads and writes plain values. */
sp_status sp__block_plain(sp_block_pass *pass, const sp_plan_step *step);

/* Adds the step in blocks, if it can be; otherwise *is_done is false and nothing is added. The
 * second is for steps that compute or move elements, the others for those that become views. */
sp_status sp__block_step(sp_block_pass *pass, const sp_plan_step *step, bool *is_done);
sp_status sp__block_elements(sp_block_pass *pass, const sp_plan_step *step, bool *is_done);
sp_status sp__block_join(sp_block_pass *pass, const sp_plan_step *step, bool *is_done);
sp_status sp__block_view(sp_block_pass *pass, const sp_plan_step *step, bool *is_done);
sp_status sp__block_view_parts(sp_block_pass *pass, const sp_plan_step *step, bool *is_done);

/* The convolution that computes the normalised image normalises it; that computes one operand of a
 * sum of two images adds the other one; that computes the image of a pool, whose call is given,
 * stores the maxima. *is_done is false if none can. */
sp_status sp__block_fuse_norm(sp_block_pass *pass, const sp_plan_step *norm,
                              const sp_norm_blocked_constants *constants, bool *is_done);
sp_status sp__block_fuse_add(sp_block_pass *pass, const sp_plan_step *add, uint32_t operand,
                             uint8_t activation, bool *is_done);
sp_status sp__block_fuse_pool(sp_block_pass *pass, const sp_plan_step *pool,
                              const sp_blocked_call *call, bool *is_done);

/* The step that has been added last, for the recorded one, and the elementwise one whose result it
 * alone reads become one step: each operation is rounded as before. */
sp_status sp__block_chain(sp_block_pass *pass, const sp_plan_step *step);

/* ---- convolutions ---- */

/* What a convolution reads besides images; nothing of a pool. */
typedef struct sp_block_operands {
    sp_plan_binding weights, bias, offsets;
} sp_block_operands;

/* Is the value blocked, and of the same images but for the lanes? */
bool sp__block_is_like(const sp_block_pass *pass, uint32_t x, const sp_image_form *form);

/* Sets the lanes of x that the call reads, and those of y. */
sp_status sp__block_set_maps(sp_block_pass *pass, uint32_t x, sp_blocked_call *call,
                             sp_block_operands *operands);

/* Adds the call in the place of the step. */
sp_status sp__block_add_call(sp_block_pass *pass, const sp_plan_step *step, sp_kernel_id kernel,
                             const sp_blocked_call *call, const sp_block_operands *operands);

/* A transposed convolution whose kernel is as large as its stride: a pointwise convolution, and a
 * copy of its results to their places. */
sp_status sp__block_transposed(sp_block_pass *pass, const sp_plan_step *step, bool *is_done);

/* ---- operands of steps ---- */

/* The last binding. */
const sp_plan_binding *sp__block_output(const sp_plan_step *step);

/* Of a blocked value. */
sp_plan_binding sp__block_binding(uint32_t value, const sp_image_form *form, bool is_write);

/* Is the operand a whole value of so many floats, at an address that the plan assigns? */
bool sp__block_is_whole(const sp_block_pass *pass, const sp_plan_binding *binding, int64_t count);

int64_t sp__block_plain_count(const sp_image_form *form);

/* The form in which steps that compute all lanes read a value of that form: itself, or without a
 * map if too many lanes are empty. */
sp_image_form sp__block_dense(const sp_image_form *form);

/* The form of a blocked operand that has so many elements; NULL if it is not blocked. */
const sp_image_form *sp__block_form(const sp_block_pass *pass, const sp_plan_binding *binding,
                                    int64_t count);

/* The added step writes `to` over `from`, its operand number `operand`, if the recorded one would
 * have. */
void sp__block_set_in_place(sp_block_pass *pass, const sp_plan_step *step, uint32_t operand,
                            uint32_t from, uint32_t to);

#endif
