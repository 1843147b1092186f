/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a batch: where each request's tensors are in those of the batch. */
#ifndef SP_BATCH_BATCH_PORTS_H
#define SP_BATCH_BATCH_PORTS_H

#include <stdbool.h>
#include <stdint.h>

/* An input or output. Its rows may be along any axis: a row is `outer` pieces of `chunk` bytes, and
 * in a batch the pieces of all rows alternate (ops/rows.h). */
typedef struct sp_batch_port {
    bool is_batched; /* false: an input that all requests of a batch have in common */
    /* Its rows may lie anywhere in pinned memory (batch_rows.h), their pieces one after the other;
     * so do those in the batch's own memory. */
    bool is_by_rows;
    uint64_t outer, chunk;
} sp_batch_port;

static inline uint64_t sp__batch_port_row_bytes(const sp_batch_port *port)
{
    return port->outer * port->chunk;
}

/* Copies a request's tensor to its row of the batch's tensor, and back. */
void sp__batch_port_gather(const sp_batch_port *port, uint32_t rows, uint32_t row, const void *from,
                           void *batch);
void sp__batch_port_scatter(const sp_batch_port *port, uint32_t rows, uint32_t row,
                            const void *batch, void *to);

#endif
