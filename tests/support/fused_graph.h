/* SPDX-License-Identifier: Apache-2.0 */
/* Random graphs of what plans fuse or read by strides, on floats: functions, normalisations and
 * attention as exporters write them in steps, products, moves, assignments to slices. Some values
 * between the steps have other readers, are outputs, or are computed otherwise. */
#ifndef SP_TESTS_SUPPORT_FUSED_GRAPH_H
#define SP_TESTS_SUPPORT_FUSED_GRAPH_H

#include "support/model_data.h"
#include "support/onnx_writer.h"

enum { FUSED_GRAPH_OUTPUTS = 6 };

/* A random graph of a seed, of one input x, whose shape is set; NULL after a failed check. The
 * caller destroys it. */
const sp_graph *fused_graph_make(uint64_t seed, sp_shape *x);

/* Its input: in some graphs with infinities, NaNs of several kinds, and denormals. The caller frees
 * it. */
sp_array fused_graph_input(uint64_t seed, const sp_shape *x);

#endif
