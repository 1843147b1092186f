/* SPDX-License-Identifier: Apache-2.0 */
/* Pages from mmap. */
#include "base/pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/heap.h"

void *sp_pages_map(uint64_t bytes)
{
    if (bytes == 0 || bytes > SIZE_MAX || sp_heap_must_fail()) return NULL;
    void *address =
        mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return address == MAP_FAILED ? NULL : address;
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
