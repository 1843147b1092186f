/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a batch's tensors in pinned memory, which may lie anywhere there: kernels copy them
 * from where they are, and to where they shall be, row by row (move_rows). */
#ifndef SP_EXEC_PORT_ROWS_H
#define SP_EXEC_PORT_ROWS_H

#include <stdint.h>

/* A row: `outer` pieces of `chunk` bytes, which alternate with those of other rows in the batch's
 * tensor on the device. In pinned memory they follow each other. chunk 0: the tensor is copied as a
 * whole. */
typedef struct sp_row_pieces {
    uint64_t outer, chunk;
} sp_row_pieces;

/* Of an executable that is a batch. Zeroed: all tensors are copied as wholes. */
typedef struct sp_port_rows {
    uint32_t count;              /* rows of each tensor */
    const sp_row_pieces *pieces; /* by port, inputs, then outputs; lent */
} sp_port_rows;

static inline uint64_t sp__row_bytes(const sp_row_pieces *row)
{
    return row->outer * row->chunk;
}

#endif
