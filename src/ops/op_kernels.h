/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernels each op may lower to, for figures: what a plan needs, it finds in its steps.
 *
 * A row of the ops (op_rows.h) has names of kernels, between commas; a * at the end stands for one
 * word without a _: add_* is add_f32 and add_i64, max_* is not max_pool_f32. A ? in front: f32 does
 * not need it, or only in rare forms (training, volumes, places of maxima); the op counts as
 * covered without. */
#ifndef SP_OPS_OP_KERNELS_H
#define SP_OPS_OP_KERNELS_H

#include "ops/cpu/arch/kernels.h"

/* May the lowering of the op called `op` emit this kernel? */
bool sp__op_may_use(const char *op, sp_kernel_id kernel);

/* Does the table have what the op needs on f32: each of its kernels whose name ends in _f32, and
 * each whose name ends in no element type, but for conversions from and to other types and what
 * rare forms of the op need? An op without such kernels needs each that it has. Views and what is
 * known before the run need none. NULL is a table that has all. */
bool sp__op_is_covered(const char *op, const sp_kernel *table);

/* How many op types there are, and how many of them the table covers. */
typedef struct sp_op_coverage {
    uint32_t op_count;
    uint32_t covered_count;
} sp_op_coverage;

sp_op_coverage sp__op_coverage(const sp_kernel *table);

#endif
