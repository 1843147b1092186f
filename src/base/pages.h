/* SPDX-License-Identifier: Apache-2.0 */
/* Whole pages from the system. */
#ifndef SP_BASE_PAGES_H
#define SP_BASE_PAGES_H

#include <stdint.h>

/* A huge page of x86-64, and of AArch64 with pages of 4 KiB. */
#define SP_HUGE_PAGE_BYTES ((uintptr_t)2 << 20)

/* Asks the system for huge pages wherever a whole one fits the range, which has not been written.
 * For memory that is read from begin to end: with pages of 4 KiB the translation of its addresses
 * takes longer than its bytes. */
void sp_pages_prefer_huge(void *address, uint64_t bytes);

/* Gives whole pages of the range back to the system; they read as zeros afterwards. Of private
 * memory. */
void sp_pages_discard(void *address, uint64_t bytes);

/* Zeroed pages, huge ones if the system has them, or NULL; counts as an allocation for
 * sp_heap_fail_after. */
void *sp_pages_map(uint64_t bytes);
void sp_pages_unmap(void *address, uint64_t bytes);

/* The machine's memory in bytes. */
uint64_t sp_pages_total_bytes(void);

#endif
