/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion of attributes from the public API's form to the form that ops read. */
#ifndef SP_OPS_EAGER_ATTRIBUTES_H
#define SP_OPS_EAGER_ATTRIBUTES_H

#include <streampool/ops.h>

#include "ops/op.h"

/* The attributes of one call. Points into the caller's attributes and into itself, so it must not
 * be copied. */
typedef struct sp_eager_attributes {
    sp_attribute items[SP_OP_MAX_ATTRIBUTES];
    uint32_t count;
    sp_text texts[SP_OP_MAX_ATTRIBUTES];
    sp_array_view tensors[SP_OP_MAX_ATTRIBUTES];
    sp_text *lists[SP_OP_MAX_ATTRIBUTES]; /* owned */
} sp_eager_attributes;

/* Errors: SP_INVALID for attributes that a model file could not have either (no name, a duplicate
 * name, no values, a tensor whose size does not match its shape), SP_OUT_OF_MEMORY. Deinit is
 * required after an error, too. */
sp_status sp__eager_attributes_init(sp_eager_attributes *out, const sp_op_attribute *attributes,
                                    uint32_t count);
void sp__eager_attributes_deinit(sp_eager_attributes *attributes);

#endif
