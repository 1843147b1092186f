/* SPDX-License-Identifier: Apache-2.0 */
/* The one table of ops, for models and eager calls alike. Constant data. */
#ifndef SP_OPS_REGISTRY_H
#define SP_OPS_REGISTRY_H

#include "ops/op.h"

/* The op for a version of its domain's opset. "ai.onnx" is the domain "". Errors: SP_UNSUPPORTED
 * naming op and version. */
sp_status sp__op_find(sp_text domain, sp_text name, int64_t version, const sp_op **out);

/* All rows, for listings. */
const sp_op *sp__op_table(uint32_t *count);

#endif
