/* SPDX-License-Identifier: Apache-2.0 */
/* The heap and the pages under the controlled scheduler: a bump arena, reset in each run. Freed
 * memory is not reused within a run, so that every use after free is detected. Addresses depend
 * only on the schedule. Not schedule points. */
#include <stdint.h>
#include <string.h>

#include "base/heap.h"
#include "base/pages.h"
#include "base/raw_heap.h"
#include "shadow.h"

#define BLOCKS_MAX (1u << 16)
#define GAP 16u /* bytes between blocks, so that one past the end belongs to no block */
#define PAGE_BYTES 4096u
#define FRESH_BYTE 0xa5 /* the contents of new blocks; the same in every run */

static sp_block *blocks; /* in the order of their addresses */
static uint32_t block_count;
static uint32_t live_count;
static uintptr_t next_addr;

void sp__heap_setup(void)
{
    blocks = sp__reserve(BLOCKS_MAX * sizeof *blocks);
}

static uintptr_t arena_start(void)
{
    return (uintptr_t)sp__engine.region + SP_SCHED_MAX_THREADS * SP_SCHED_STACK_BYTES;
}

void sp__heap_begin(void)
{
    block_count = 0;
    live_count = 0;
    next_addr = arena_start() + GAP;
}

sp_block *sp__heap_block_at(uintptr_t addr)
{
    uint32_t low = 0;
    uint32_t high = block_count;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (addr - blocks[middle].start < blocks[middle].size) return &blocks[middle];
        if (addr < blocks[middle].start) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return NULL;
}

void sp__heap_check_leaks(void)
{
    if (live_count == 0) return;
    const sp_block *block = blocks;
    while (block->is_freed) block++;
    sp__engine_fail(SP_SCHED_LEAK, "%u blocks are never freed; the first: %zu bytes from pc %#x",
                    live_count, block->size, sp__pc_offset(block->pc));
}

static void *block_new(size_t alignment, size_t bytes, const void *pc)
{
    const uintptr_t start = (next_addr + alignment - 1) & ~(uintptr_t)(alignment - 1);
    const size_t left = (uintptr_t)sp__engine.region + SP_SCHED_REGION_BYTES - start;
    if (bytes > left || left - bytes < GAP || block_count == BLOCKS_MAX) {
        sp__engine_fail(SP_SCHED_TOO_BIG, "the arena is full: %u blocks, %zu bytes requested",
                        block_count, bytes);
    }
    const sp_sched_thread *self = sp__engine.self;
    sp_block *block = &blocks[block_count++];
    block->start = start;
    block->size = bytes;
    block->writer = self->id;
    block->epoch = self->clock.at[self->id];
    block->first_cell = 0;
    block->is_freed = false;
    block->pc = pc;
    live_count++;
    next_addr = (start + bytes + GAP + 15) & ~(uintptr_t)15;
    memset((void *)start, FRESH_BYTE, bytes);
    return (void *)start;
}

/* The live block that starts at `ptr`; otherwise the run ends with a verdict. */
static sp_block *live_block(void *ptr, const void *pc)
{
    sp_block *block = sp__heap_block_at((uintptr_t)ptr);
    if (block == NULL || block->start != (uintptr_t)ptr) {
        sp__engine_fail(SP_SCHED_MISUSE, "free of a pointer that is not from malloc, at pc %#x",
                        sp__pc_offset(pc));
    }
    if (block->is_freed) {
        sp__engine_fail(SP_SCHED_DOUBLE_FREE,
                        "block of %zu bytes from pc %#x freed again at pc %#x", block->size,
                        sp__pc_offset(block->pc), sp__pc_offset(pc));
    }
    return block;
}

static void block_free(void *ptr, const void *pc)
{
    sp__shadow_free(sp__engine.self, live_block(ptr, pc), pc);
    live_count--;
}

/* Outside a run there is no arena: allocations come from here and are never freed. */
static char outside_memory[1 << 16];
static size_t outside_used;

static void *outside_malloc(size_t alignment, size_t bytes)
{
    const uintptr_t start = (uintptr_t)outside_memory;
    const uintptr_t at = (start + outside_used + alignment - 1) & ~(uintptr_t)(alignment - 1);
    if (bytes > sizeof outside_memory || at - start > sizeof outside_memory - bytes) return NULL;
    outside_used = at - start + bytes;
    return (void *)at;
}

void *sp__raw_malloc(size_t bytes)
{
    if (sp__engine.self == NULL) return outside_malloc(16, bytes);
    return block_new(16, bytes, __builtin_return_address(0));
}

void *sp__raw_aligned_malloc(size_t alignment, size_t bytes)
{
    const size_t at_least = alignment < 16 ? 16 : alignment;
    if (sp__engine.self == NULL) return outside_malloc(at_least, bytes);
    return block_new(at_least, bytes, __builtin_return_address(0));
}

void *sp__raw_realloc(void *ptr, size_t bytes)
{
    const void *pc = __builtin_return_address(0);
    if (ptr == NULL) return sp__raw_malloc(bytes);
    if (sp__engine.self == NULL) return NULL;
    const size_t old_bytes = live_block(ptr, pc)->size;
    const size_t kept = old_bytes < bytes ? old_bytes : bytes;
    void *copy = block_new(16, bytes, pc);
    memcpy(copy, ptr, kept);
    block_free(ptr, pc);
    return copy;
}

void sp__raw_free(void *ptr)
{
    if (sp__engine.self == NULL) return;
    block_free(ptr, __builtin_return_address(0));
}

/* Pages are zeroed blocks. Large maps are cleared in every run: subjects should map little. */
void *sp_pages_map(uint64_t bytes)
{
    if (bytes == 0 || bytes > SIZE_MAX || sp_heap_must_fail()) return NULL;
    if (sp__engine.self == NULL) return NULL;
    void *address = block_new(PAGE_BYTES, (size_t)bytes, __builtin_return_address(0));
    memset(address, 0, (size_t)bytes);
    return address;
}

void sp_pages_prefer_huge(void *address, uint64_t bytes)
{
    (void)address;
    (void)bytes;
}

/* Of whole pages, as the system does. */
void sp_pages_discard(void *address, uint64_t bytes)
{
    const uintptr_t first = (uintptr_t)address, last = first + (uintptr_t)bytes;
    const uintptr_t before = -first % PAGE_BYTES, after = last % PAGE_BYTES;
    if (before + after >= bytes) return;
    memset((char *)address + before, 0, (size_t)(bytes - before - after));
}

void sp_pages_unmap(void *address, uint64_t bytes)
{
    (void)bytes;
    if (sp__engine.self == NULL) return;
    block_free(address, __builtin_return_address(0));
}

uint64_t sp_pages_total_bytes(void)
{
    return SP_SCHED_ARENA_BYTES;
}
