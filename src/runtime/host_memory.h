/* SPDX-License-Identifier: Apache-2.0 */
/* Pinned host memory inside the library. */
#ifndef SP_RUNTIME_HOST_MEMORY_H
#define SP_RUNTIME_HOST_MEMORY_H

/* Frees remaining allocations, and the table. For tests, when none is in use. */
void sp__host_memory_deinit(void);

#endif
