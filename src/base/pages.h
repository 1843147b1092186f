/* SPDX-License-Identifier: Apache-2.0 */
/* Whole pages from the system. */
#ifndef SP_BASE_PAGES_H
#define SP_BASE_PAGES_H

#include <stdint.h>

/* Zeroed pages, or NULL; counts as an allocation for sp_heap_fail_after. */
void *sp_pages_map(uint64_t bytes);
void sp_pages_unmap(void *address, uint64_t bytes);

/* The machine's memory in bytes. */
uint64_t sp_pages_total_bytes(void);

#endif
