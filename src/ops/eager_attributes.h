/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes as users of the public API give them, as ops read them. */
#ifndef SP_OPS_EAGER_ATTRIBUTES_H
#define SP_OPS_EAGER_ATTRIBUTES_H

#include <streampool/ops.h>

#include "ops/op.h"

/* Room for one call's. Points into what the user gave and into itself: it is not moved. */
typedef struct sp_eager_attributes {
    sp_attribute items[SP_OP_MAX_ATTRIBUTES];
    uint32_t count;
    sp_text texts[SP_OP_MAX_ATTRIBUTES];
    sp_array_view tensors[SP_OP_MAX_ATTRIBUTES];
    sp_text *lists[SP_OP_MAX_ATTRIBUTES]; /* owned */
} sp_eager_attributes;

/* Errors: SP_INVALID for what could not stand in a file either (no name, a name twice, no values, a
 * tensor that is not as large as it says), SP_OUT_OF_MEMORY. Ended with deinit, also then. */
sp_status sp__eager_attributes_init(sp_eager_attributes *out, const sp_op_attribute *attributes,
                                    uint32_t count);
void sp__eager_attributes_deinit(sp_eager_attributes *attributes);

#endif
