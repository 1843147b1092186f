/* SPDX-License-Identifier: Apache-2.0 */
/* Race, use-after-free and bounds checks of plain and atomic accesses (FastTrack, C. Flanagan and
 * S. Freund, PLDI 2009, with full read vectors).
 *
 * A table with one 32-bit cell number per byte of stacks and arena (hashed by granule elsewhere)
 * leads to cells. A cell stores the range of its bytes, so stale numbers of earlier runs are
 * recognised and a new run clears nothing: it only restarts the allocation of cells. */
#include "shadow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define CELLS_MAX (1u << 20)
#define LOCS_MAX (1u << 16)
#define GRANULE 8u
#define OUTSIDE_SLOTS (1u << 15)
#define OUTSIDE_PROBES 64u
#define BIG_RANGE 128u /* bytes; from here on, a write of a whole block is kept in the block */

/* Cell numbers of one granule outside the region: globals, the caller's stack and heap. */
typedef struct outside_granule {
    uintptr_t granule;
    uint64_t run;
    uint32_t numbers[GRANULE];
} outside_granule;

static sp_cell *cells; /* [0] means none */
static uint32_t cell_count;
static sp_loc *locs;
static uint32_t loc_count;
static sp_store *stores; /* SP_HISTORY_STORES of each loc */
static uint32_t *region_numbers;
static outside_granule *outside;
static uint64_t run_number;

/* The contents of granules outside the region at the last run's first access. */
typedef struct undo_entry {
    uintptr_t granule;
    uint64_t bytes;
} undo_entry;

static undo_entry undo[OUTSIDE_SLOTS];
static volatile uint32_t undo_count; /* volatile: a signal may arrive between steps */

void *sp__reserve(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        perror("sched: mmap");
        abort();
    }
    return memory;
}

extern const char __executable_start[];

uint32_t sp__pc_offset(const void *pc)
{
    return (uint32_t)((uintptr_t)pc - (uintptr_t)__executable_start);
}

void sp__shadow_setup(void)
{
    cells = sp__reserve(CELLS_MAX * sizeof *cells);
    locs = sp__reserve(LOCS_MAX * sizeof *locs);
    stores = sp__reserve((size_t)LOCS_MAX * SP_HISTORY_STORES * sizeof *stores);
    region_numbers = sp__reserve(SP_SCHED_REGION_BYTES * sizeof *region_numbers);
    outside = sp__reserve(OUTSIDE_SLOTS * sizeof *outside);
}

void sp__shadow_undo(void)
{
    while (undo_count > 0) {
        const undo_entry *entry = &undo[--undo_count];
        void *place = (void *)(entry->granule * GRANULE);
        /* Constants are recorded too, and must not be written. */
        if (memcmp(place, &entry->bytes, GRANULE) != 0) memcpy(place, &entry->bytes, GRANULE);
    }
}

void sp__shadow_begin(void)
{
    sp__shadow_undo();
    cell_count = 1;
    loc_count = 1;
    run_number++;
}

static uint32_t *outside_numbers(uintptr_t addr)
{
    const uintptr_t granule = addr / GRANULE;
    const uint64_t hash = (uint64_t)granule * 0x9e3779b97f4a7c15u;
    for (uint32_t i = 0; i < OUTSIDE_PROBES; i++) {
        outside_granule *slot = &outside[((hash >> 40) + i) % OUTSIDE_SLOTS];
        if (slot->run != run_number) {
            slot->run = run_number;
            slot->granule = granule;
            memset(slot->numbers, 0, sizeof slot->numbers);
            if (sp__engine.options.restores_globals) {
                /* Counted only after the read: a wild address ends the run here. */
                const uint64_t bytes = *(const volatile uint64_t *)(granule * GRANULE);
                undo[undo_count] = (undo_entry){granule, bytes};
                undo_count++;
            }
        }
        if (slot->granule == granule) return slot->numbers;
    }
    sp__engine_fail(SP_SCHED_TOO_BIG, "too many globals touched in one run");
}

/* The cell numbers of addr's granule, beginning with addr's own. */
static inline uint32_t *numbers_at(uintptr_t addr)
{
    const uintptr_t offset = addr - (uintptr_t)sp__engine.region;
    if (SP_LIKELY(offset < SP_SCHED_REGION_BYTES)) return &region_numbers[offset];
    return outside_numbers(addr) + addr % GRANULE;
}

static inline sp_cell *cell_at(uintptr_t addr, uint32_t number)
{
    if (number >= cell_count) return NULL;
    sp_cell *cell = &cells[number];
    return addr - cell->start < cell->size ? cell : NULL;
}

static _Noreturn void fail_memory(sp_sched_verdict verdict, const sp_sched_thread *self,
                                  uintptr_t addr, const void *pc, const char *what)
{
    sp__engine_fail(verdict, "thread %u touches %#lx at pc %#x, %s", self->id,
                    (unsigned long)(addr - (uintptr_t)sp__engine.region), sp__pc_offset(pc), what);
}

static sp_cell *new_cell(sp_sched_thread *self, uintptr_t addr, uint32_t size, const void *pc)
{
    if (cell_count == CELLS_MAX) {
        sp__engine_fail(SP_SCHED_TOO_BIG, "more than %u variables touched in one run", CELLS_MAX);
    }
    sp_cell *cell = &cells[cell_count];
    memset(cell, 0, offsetof(sp_cell, read_pc));
    const uintptr_t offset = addr - (uintptr_t)sp__engine.region;
    if (offset < SP_SCHED_REGION_BYTES && offset >= SP_SCHED_MAX_THREADS * SP_SCHED_STACK_BYTES) {
        sp_block *block = sp__heap_block_at(addr);
        if (block == NULL || addr + size > block->start + block->size) {
            fail_memory(SP_SCHED_OUT_OF_BOUNDS, self, addr, pc, "outside any block");
        }
        if (block->is_freed) {
            fail_memory(SP_SCHED_USE_AFTER_FREE, self, addr, pc, "which was freed");
        }
        cell->writer = block->writer;
        cell->write_epoch = block->epoch;
        cell->write_pc = sp__pc_offset(block->pc);
        cell->next_in_block = block->first_cell;
        block->first_cell = cell_count;
    }
    cell->start = addr;
    cell->size = size;
    uint32_t *numbers = numbers_at(addr);
    for (uint32_t i = 0; i < size; i++) numbers[i] = cell_count;
    cell_count++;
    return cell;
}

/* Splits `cell` at `addr`; a cell with an atomic is not split. */
static void cell_split(sp_cell *cell, uintptr_t addr)
{
    if (cell->loc != 0) return;
    if (cell_count == CELLS_MAX) sp__engine_fail(SP_SCHED_TOO_BIG, "too many variables");
    sp_cell *upper = &cells[cell_count];
    *upper = *cell;
    upper->start = addr;
    upper->size = (uint32_t)(cell->start + cell->size - addr);
    cell->size -= upper->size;
    cell->next_in_block = cell_count; /* `upper` has the old successor */
    uint32_t *numbers = numbers_at(addr);
    for (uint32_t i = 0; i < upper->size; i++) numbers[i] = cell_count;
    cell_count++;
}

static uint32_t first_above(const sp_vclock *a, const sp_vclock *b)
{
    uint32_t i = 0;
    while (i < SP_SCHED_MAX_THREADS && a->at[i] <= b->at[i]) i++;
    return i;
}

static _Noreturn SP_NOINLINE void fail_race(const sp_sched_thread *self, const sp_cell *cell,
                                            const char *access, const void *pc, uint32_t other,
                                            const char *other_access, uint32_t other_pc)
{
    sp__engine_fail(SP_SCHED_RACE,
                    "thread %u's %s of %u bytes at pc %#x is unordered with thread %u's %s at pc "
                    "%#x",
                    self->id, access, cell->size, sp__pc_offset(pc), other, other_access, other_pc);
}

static inline void check_write_before(const sp_sched_thread *self, const sp_cell *cell,
                                      const char *access, const void *pc)
{
    if (SP_LIKELY(cell->write_epoch <= self->clock.at[cell->writer])) return;
    fail_race(self, cell, access, pc, cell->writer, "write", cell->write_pc);
}

static inline void check_reads_before(const sp_sched_thread *self, const sp_cell *cell,
                                      const char *access, const void *pc)
{
    if (SP_LIKELY(!sp__vclock_exceeds(&cell->reads, &self->clock))) return;
    const uint32_t other = first_above(&cell->reads, &self->clock);
    fail_race(self, cell, access, pc, other, "read", cell->read_pc[other]);
}

static void check_atomics_before(const sp_sched_thread *self, const sp_cell *cell, bool is_write,
                                 const void *pc)
{
    const sp_loc *loc = &locs[cell->loc];
    const char *access = is_write ? "write" : "read";
    if (sp__vclock_exceeds(&loc->writes, &self->clock)) {
        fail_race(self, cell, access, pc, first_above(&loc->writes, &self->clock), "atomic write",
                  0);
    }
    if (is_write && sp__vclock_exceeds(&loc->reads, &self->clock)) {
        fail_race(self, cell, access, pc, first_above(&loc->reads, &self->clock), "atomic read", 0);
    }
}

/* A plain access to the whole cell. */
static inline void cell_touch(sp_sched_thread *self, sp_cell *cell, bool is_write, const void *pc)
{
    if (SP_UNLIKELY(cell->is_freed)) {
        fail_memory(SP_SCHED_USE_AFTER_FREE, self, cell->start, pc, "which was freed");
    }
    const int32_t epoch = self->clock.at[self->id];
    if (!is_write) {
        /* Already read in this epoch: a write since then would have been reported by its writer. */
        if (cell->reads.at[self->id] == epoch) return;
        check_write_before(self, cell, "read", pc);
        if (cell->loc != 0) check_atomics_before(self, cell, false, pc);
        cell->reads.at[self->id] = epoch;
        cell->read_pc[self->id] = sp__pc_offset(pc);
        return;
    }
    check_write_before(self, cell, "write", pc);
    check_reads_before(self, cell, "write", pc);
    if (SP_UNLIKELY(cell->loc != 0)) {
        check_atomics_before(self, cell, true, pc);
        sp_loc *loc = &locs[cell->loc]; /* a plain store publishes nothing */
        memset(&loc->sync, 0, sizeof loc->sync);
        loc->store_count = 0;
    }
    cell->write_epoch = epoch;
    cell->writer = self->id;
    cell->write_pc = sp__pc_offset(pc);
}

/* The cell of `addr`, split so that it ends at or before `end`; created if missing. */
static sp_cell *piece_at(sp_sched_thread *self, uintptr_t addr, uintptr_t end, const void *pc)
{
    const uint32_t *numbers = numbers_at(addr);
    sp_cell *cell = cell_at(addr, numbers[0]);
    if (cell == NULL) {
        uint32_t gap = 1;
        while (addr + gap < end && cell_at(addr + gap, numbers[gap]) == NULL) gap++;
        return new_cell(self, addr, gap, pc);
    }
    if (cell->start < addr) {
        cell_split(cell, addr);
        cell = cell_at(addr, numbers[0]);
    }
    if (cell->start + cell->size > end) cell_split(cell, end);
    return cell;
}

/* An access that does not match a single cell. */
static SP_NOINLINE void access_pieces(sp_sched_thread *self, uintptr_t addr, uint32_t size,
                                      bool is_write, const void *pc)
{
    const uintptr_t end = addr + size;
    while (addr < end) {
        sp_cell *cell = piece_at(self, addr, end, pc);
        cell_touch(self, cell, is_write, pc);
        addr = cell->start + cell->size;
    }
}

static inline void access_granule(sp_sched_thread *self, uintptr_t addr, uint32_t size,
                                  bool is_write, const void *pc)
{
    const uint32_t number = *numbers_at(addr);
    if (SP_LIKELY(number < cell_count)) {
        sp_cell *cell = &cells[number];
        if (SP_LIKELY(cell->start == addr && cell->size == size)) {
            cell_touch(self, cell, is_write, pc);
            return;
        }
    }
    access_pieces(self, addr, size, is_write, pc);
}

/* Records a write to all existing cells of the block. */
static void write_cells_of(sp_sched_thread *self, const sp_block *block, bool is_free,
                           const void *pc)
{
    for (uint32_t i = block->first_cell; i != 0; i = cells[i].next_in_block) {
        cell_touch(self, &cells[i], true, pc);
        cells[i].is_freed = is_free;
    }
}

static void check_block_before(const sp_sched_thread *self, const sp_block *block,
                               const char *access, const void *pc)
{
    if (block->epoch <= self->clock.at[block->writer]) return;
    const sp_cell whole = {.start = block->start, .size = (uint32_t)block->size};
    fail_race(self, &whole, access, pc, block->writer, "allocation", sp__pc_offset(block->pc));
}

void sp__shadow_free(sp_sched_thread *self, sp_block *block, const void *pc)
{
    check_block_before(self, block, "free", pc);
    write_cells_of(self, block, true, pc);
    block->is_freed = true;
}

/* A write of a whole block is recorded as the block's own epoch, without cells for untouched
 * bytes. */
static bool wrote_whole_block(sp_sched_thread *self, uintptr_t addr, size_t bytes, const void *pc)
{
    sp_block *block = sp__heap_block_at(addr);
    if (block == NULL || block->is_freed || block->start != addr || block->size != bytes) {
        return false;
    }
    check_block_before(self, block, "write", pc);
    write_cells_of(self, block, false, pc);
    block->writer = self->id;
    block->epoch = self->clock.at[self->id];
    block->pc = pc;
    return true;
}

void sp__shadow_access(sp_sched_thread *self, uintptr_t addr, size_t bytes, bool is_write,
                       const void *pc)
{
    if (is_write && bytes >= BIG_RANGE && wrote_whole_block(self, addr, bytes, pc)) return;
    const uintptr_t end = addr + bytes;
    while (addr < end) {
        uintptr_t next = addr - addr % GRANULE + GRANULE;
        if (next > end) next = end;
        access_granule(self, addr, (uint32_t)(next - addr), is_write, pc);
        addr = next;
    }
}

/* Merges the cells of these bytes into one: all reads, and the write of the last piece. */
static sp_cell *merge_pieces(sp_sched_thread *self, uintptr_t addr, uint32_t size, const void *pc)
{
    const uintptr_t end = addr + size;
    sp_vclock reads = {{0}};
    uintptr_t at = addr;
    sp_cell *cell;
    do {
        cell = piece_at(self, at, end, pc);
        if (cell->is_freed) {
            fail_memory(SP_SCHED_USE_AFTER_FREE, self, at, pc, "which was freed");
        }
        check_write_before(self, cell, "atomic access", pc);
        sp__vclock_join(&reads, &cell->reads);
        at = cell->start + cell->size;
    } while (at < end);
    cell->reads = reads;
    cell->start = addr;
    cell->size = size;
    uint32_t *numbers = numbers_at(addr);
    for (uint32_t i = 0; i < size; i++) numbers[i] = (uint32_t)(cell - cells);
    return cell;
}

static SP_NOINLINE sp_loc *new_loc(sp_sched_thread *self, uintptr_t addr, uint32_t size,
                                   const void *pc)
{
    const uint32_t cell_size = size < GRANULE ? size : GRANULE;
    sp_cell *cell = merge_pieces(self, addr, cell_size, pc);
    if (loc_count == LOCS_MAX) sp__engine_fail(SP_SCHED_TOO_BIG, "too many atomics in one run");
    sp_loc *loc = &locs[loc_count];
    memset(loc, 0, sizeof *loc);
    loc->addr = addr;
    loc->size = size;
    loc->history = &stores[(size_t)loc_count * SP_HISTORY_STORES];
    cell->loc = loc_count++;
    return loc;
}

const sp_cell *sp__shadow_cell_of(const sp_loc *loc)
{
    return &cells[*numbers_at(loc->addr)];
}

sp_loc *sp__shadow_atomic(sp_sched_thread *self, uintptr_t addr, uint32_t size, bool is_write,
                          const void *pc)
{
    sp_cell *cell = cell_at(addr, *numbers_at(addr));
    sp_loc *loc = cell != NULL && cell->loc != 0 ? &locs[cell->loc] : NULL;
    if (SP_UNLIKELY(loc == NULL || loc->addr != addr || loc->size != size)) {
        loc = new_loc(self, addr, size, pc);
        cell = &cells[*numbers_at(addr)];
    }
    if (SP_UNLIKELY(cell->is_freed)) {
        fail_memory(SP_SCHED_USE_AFTER_FREE, self, addr, pc, "which was freed");
    }
    const int32_t epoch = self->clock.at[self->id];
    if (is_write) {
        if (loc->writes.at[self->id] == epoch) return loc;
        check_write_before(self, cell, "atomic write", pc);
        check_reads_before(self, cell, "atomic write", pc);
        loc->writes.at[self->id] = epoch;
    } else {
        if (loc->reads.at[self->id] == epoch) return loc;
        check_write_before(self, cell, "atomic read", pc);
        loc->reads.at[self->id] = epoch;
    }
    return loc;
}
