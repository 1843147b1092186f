/* SPDX-License-Identifier: Apache-2.0 */
/* What the files onnx*.c share: the reader's state and one function per message. Each takes a
 * protobuf reader at the start of its message and fills a zeroed table. */
#ifndef SP_ONNX_ONNX_READER_H
#define SP_ONNX_ONNX_READER_H

#include "base/bump.h"
#include "io/onnx_tensor_reader.h"
#include "onnx/onnx.h"

typedef struct sp_onnx_reader {
    sp_bump *bump;
    uint32_t depth; /* graphs that enclose what is being read */
} sp_onnx_reader;

sp_status sp__onnx_read_graph(sp_onnx_reader *reader, sp_proto proto, sp_onnx_graph *out);
sp_status sp__onnx_read_node(sp_onnx_reader *reader, sp_proto proto, sp_onnx_node *out);
sp_status sp__onnx_read_function(sp_onnx_reader *reader, sp_proto proto, sp_onnx_function *out);
/* Operator sets that a model or a function may import: each node looks through them. */
enum { SP_ONNX_OPSETS = 1024 };
/* SP_EXHAUSTED past the limit. */
sp_status sp__onnx_check_opsets(uint64_t count);
sp_status sp__onnx_read_opset(sp_proto proto, sp_onnx_opset *out);
sp_status sp__onnx_read_attribute(sp_onnx_reader *reader, sp_proto proto, sp_attribute *out);
/* SP_CORRUPT if two attributes have one name. `proto` is the message that contains them. */
sp_status sp__onnx_check_attributes(sp_proto proto, sp_attribute_list list);
sp_status sp__onnx_read_value_info(sp_onnx_reader *reader, sp_proto proto, sp_onnx_value_info *out);

/* Allocates an array of `count` elements from the reader's tables; returns its length as 32
 * bits. */
#define SP_ONNX_ARRAY(reader, count_, array, count_out)                                            \
    sp__onnx_array(reader, count_, sizeof *(array), &(array), count_out)
sp_status sp__onnx_array(sp_onnx_reader *reader, uint64_t count, uint64_t element_bytes,
                         void *array_out, uint32_t *count_out);

#endif
