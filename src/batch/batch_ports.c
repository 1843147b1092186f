/* SPDX-License-Identifier: Apache-2.0 */
#include "batch/batch_ports.h"

#include <string.h>

void sp__batch_port_gather(const sp_batch_port *port, uint32_t rows, uint32_t row, const void *from,
                           void *batch)
{
    char *to = (char *)batch + row * port->chunk;
    for (uint64_t i = 0; i < port->outer; i++) {
        memcpy(to + i * rows * port->chunk, (const char *)from + i * port->chunk, port->chunk);
    }
}

void sp__batch_port_scatter(const sp_batch_port *port, uint32_t rows, uint32_t row,
                            const void *batch, void *to)
{
    const char *from = (const char *)batch + row * port->chunk;
    for (uint64_t i = 0; i < port->outer; i++) {
        memcpy((char *)to + i * port->chunk, from + i * rows * port->chunk, port->chunk);
    }
}
