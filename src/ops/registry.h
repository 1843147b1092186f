/* SPDX-License-Identifier: Apache-2.0 */
/* The one table of ops, for models and eager calls alike. Constant data. */
#ifndef SP_OPS_REGISTRY_H
#define SP_OPS_REGISTRY_H

#include "ops/op.h"

/* Is this the default ONNX domain: "" or "ai.onnx"? */
bool sp__op_is_onnx_domain(sp_text domain);

/* The op for a version of its domain's opset. All ops are in the default domain. Errors:
 * SP_UNSUPPORTED naming op and version. */
sp_status sp__op_find(sp_text domain, sp_text name, int64_t version, const sp_op **out);

/* All schemas, grouped by op, for listings. */
const sp_op *sp__op_table(uint32_t *count);

#endif
