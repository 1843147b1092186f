/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernels each op may lower to, for figures: what a plan needs, it finds in its steps. */
#ifndef SP_OPS_OP_KERNELS_H
#define SP_OPS_OP_KERNELS_H

#include "ops/cpu/kernels.h"

/* May the lowering of the op called `op` emit this kernel? */
bool sp__op_may_use(const char *op, sp_kernel_id kernel);

/* How many op types there are, and how many of them need no kernel that the table lacks. NULL is a
 * table that has all. */
typedef struct sp_op_coverage {
    uint32_t op_count;
    uint32_t covered_count;
} sp_op_coverage;

sp_op_coverage sp__op_coverage(const sp_kernel *table);

#endif
