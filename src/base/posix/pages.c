/* SPDX-License-Identifier: Apache-2.0 */
/* Pages from mmap. */
#include "base/pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/heap.h"

static char *map(size_t bytes)
{
    void *address = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return address == MAP_FAILED ? NULL : address;
}

/* Begins where a huge page may. */
static char *map_huge(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    bytes = (bytes + page - 1) / page * page;
    char *all = map(bytes + SP_HUGE_PAGE_BYTES);
    if (all == NULL) return NULL;
    const size_t before = (size_t)(-(uintptr_t)all % SP_HUGE_PAGE_BYTES);
    char *address = all + before;
    if (before > 0) munmap(all, before);
    if (before < SP_HUGE_PAGE_BYTES) munmap(address + bytes, SP_HUGE_PAGE_BYTES - before);
    sp_pages_prefer_huge(address, bytes);
    return address;
}

void *sp_pages_map(uint64_t bytes)
{
    if (bytes == 0 || bytes > SIZE_MAX - 2 * SP_HUGE_PAGE_BYTES || sp_heap_must_fail()) return NULL;
    return bytes < SP_HUGE_PAGE_BYTES ? map((size_t)bytes) : map_huge((size_t)bytes);
}

void sp_pages_prefer_huge(void *address, uint64_t bytes)
{
    const uintptr_t first = (uintptr_t)address, last = first + (uintptr_t)bytes;
    const uintptr_t before = -first % SP_HUGE_PAGE_BYTES, after = last % SP_HUGE_PAGE_BYTES;
    if (before + after >= bytes) return;
    /* Where the system gives none, the pages stay as they are. */
    (void)madvise((char *)address + before, (size_t)(bytes - before - after), MADV_HUGEPAGE);
}

void sp_pages_discard(void *address, uint64_t bytes)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t first = (uintptr_t)address, last = first + (uintptr_t)bytes;
    const uintptr_t before = -first % page, after = last % page;
    if (before + after >= bytes) return;
    /* Pages that are locked in memory stay. */
    (void)madvise((char *)address + before, (size_t)(bytes - before - after), MADV_DONTNEED);
}

void sp_pages_unmap(void *address, uint64_t bytes)
{
    munmap(address, (size_t)bytes);
}

uint64_t sp_pages_total_bytes(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES);
    const long page_bytes = sysconf(_SC_PAGESIZE);
    return pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes : 0;
}
