/* SPDX-License-Identifier: Apache-2.0 */
/* Which tensors of a run share memory. Searches take O(count log count), since a run may have tens
 * of thousands of tensors. */
#ifndef SP_EXEC_TENSOR_OVERLAP_H
#define SP_EXEC_TENSOR_OVERLAP_H

#include "exec/tensor_ports.h"

/* SP_INVALID if two of the given outputs share a byte. Also SP_OUT_OF_MEMORY. */
sp_status sp__tensor_ports_check_overlap(const sp_tensor_ports *ports);

/* Once the places of the inputs are known, before sp__tensor_ports_reads. Errors: SP_OUT_OF_MEMORY.
 */
sp_status sp__tensor_ports_sort_storages(sp_tensor_ports *ports, uint32_t input_count);
/* Is an input in that storage? */
bool sp__tensor_ports_reads(const sp_tensor_ports *ports, uint32_t input_count, sp_storage storage);

/* The bytes [begin, end) of a storage that an output is written to; not empty. */
typedef struct sp_tensor_extent {
    uint64_t storage; /* bits of the handle */
    uint64_t begin, end;
    uint32_t index; /* of the output */
} sp_tensor_extent;

/* Sorts the extents. True: `found` has the indices of two that share a byte, the lower one first.
 */
bool sp__tensor_extents_overlap(sp_tensor_extent *extents, uint32_t count, uint32_t found[2]);

#endif
