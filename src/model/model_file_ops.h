/* SPDX-License-Identifier: Apache-2.0 */
/* The operators of a file, counted as the file has them: also those that are not supported. */
#ifndef SP_MODEL_MODEL_FILE_OPS_H
#define SP_MODEL_MODEL_FILE_OPS_H

#include "onnx/onnx.h"

/* One operator, with the text of the file. */
typedef struct sp_file_op {
    sp_text domain, name;
    int64_t version;       /* of its domain's opset, at the first node; 0 if the file names none */
    uint32_t count, first; /* nodes; number of the first one */
    uint32_t scope;        /* of the first one: 0 the main graph, k function k - 1 */
    bool is_function, is_supported;
} sp_file_op;

/* The operators of the main graph, of the graphs in its nodes, and of each function: most frequent
 * first, then by name, then by first use. The caller frees *ops with sp_free. Errors:
 * SP_OUT_OF_MEMORY, SP_EXHAUSTED. */
sp_status sp__file_ops_count(const sp_onnx_model *model, sp_file_op **ops, uint32_t *count);

#endif
