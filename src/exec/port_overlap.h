/* SPDX-License-Identifier: Apache-2.0 */
/* Search for an output that shares a byte with another port. Owned by one thread. */
#ifndef SP_EXEC_PORT_OVERLAP_H
#define SP_EXEC_PORT_OVERLAP_H

#include <stdbool.h>
#include <stdint.h>

/* The memory of one port, [begin, end); not empty. */
typedef struct sp_port_span {
    uintptr_t begin, end;
    uint32_t index; /* of the input or output */
    bool is_output;
} sp_port_span;

/* Sorts the spans. True: `found` has two that overlap, the first of them an output. Inputs may
 * overlap each other. Time: O(count log count). */
bool sp__port_spans_overlap(sp_port_span *spans, uint32_t count, sp_port_span found[2]);

#endif
