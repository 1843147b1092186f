/* SPDX-License-Identifier: Apache-2.0 */
/* The one table of ops, for models and eager calls alike. Constant data. */
#ifndef SP_OPS_REGISTRY_H
#define SP_OPS_REGISTRY_H

#include "ops/op.h"

/* Is this ONNX's own domain: "", or "ai.onnx"? */
bool sp__op_is_onnx_domain(sp_text domain);

/* The op for a version of its domain's opset. Every op that there is belongs to ONNX's own. Errors:
 * SP_UNSUPPORTED naming op and version. */
sp_status sp__op_find(sp_text domain, sp_text name, int64_t version, const sp_op **out);

/* Bits of the inputs whose values decide the outputs' shapes, an axis, or which branch runs. */
uint32_t sp__op_deciding_inputs(const sp_op *op);
/* Do its outputs depend on the shapes of its inputs only? */
bool sp__op_hides_values(const sp_op *op);
/* If: its branches' nodes stand in the graph that it stands in. */
bool sp__op_is_if(const sp_op *op);
/* Loop and Scan: they hold a graph that a run computes several times. */
bool sp__op_has_body(const sp_op *op);

/* All rows, for listings. */
const sp_op *sp__op_table(uint32_t *count);

#endif
