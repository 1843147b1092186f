/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels that each op may lower to, for coverage figures; plans do not use this.
 *
 * A row of the ops (op_rows.h) lists names of kernels, separated by commas; a trailing * matches
 * one word without a _: max_* matches max_f32 and max_i64, not max_pool_f32. A leading ? marks a
 * kernel as not needed for f32, or only in rare forms (training, volumes, indices of maxima); the
 * op counts as covered without it. */
#ifndef SP_OPS_OP_KERNELS_H
#define SP_OPS_OP_KERNELS_H

#include "ops/cpu/arch/kernels.h"

/* May the lowering of the op called `op` emit this kernel? */
bool sp__op_may_use(const char *op, sp_kernel_id kernel);

/* Does the table have the kernels that the op needs on f32: each whose name ends in _f32, and each
 * whose name ends in no element type, except the marked ones? An op without such kernels needs all
 * of its kernels. Views and values known before the run need none. `table` NULL has all. */
bool sp__op_is_covered(const char *op, const sp_kernel *table);

/* Number of op types, and of those that the table covers. */
typedef struct sp_op_coverage {
    uint32_t op_count;
    uint32_t covered_count;
} sp_op_coverage;

sp_op_coverage sp__op_coverage(const sp_kernel *table);

#endif
