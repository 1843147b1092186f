/* SPDX-License-Identifier: Apache-2.0 */
/* Pinned host memory inside the library. */
#ifndef SP_RUNTIME_HOST_MEMORY_H
#define SP_RUNTIME_HOST_MEMORY_H

/* Frees what is left, and the table: tests, when nobody uses it any more. */
void sp__host_memory_deinit(void);

#endif
