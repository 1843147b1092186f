/* SPDX-License-Identifier: Apache-2.0 */
/* Shadow memory of each byte that the code under test accessed: its last writer, its readers since,
 * and whether it is allocated. */
#ifndef SP_SCHED_SHADOW_H
#define SP_SCHED_SHADOW_H

#include "engine.h"

/* A store in an atomic's modification order (level weak only). */
typedef struct sp_store {
    uint64_t value;
    int32_t epoch; /* of the writer */
    uint32_t writer;
    bool is_rmw;
    bool is_seq_cst;
    uint32_t serial; /* in the order of execution, from 1 */
    sp_vclock sync;  /* joined by an acquire load of it */
    sp_vclock reads; /* first epoch at which each thread loaded it; 0 never */
    uint8_t stale_reads[SP_SCHED_MAX_THREADS];
} sp_store;

#define SP_HISTORY_STORES 32

/* An atomic object, a mutex, or another object that synchronises through this address. */
typedef struct sp_loc {
    uintptr_t addr;
    uint32_t size;
    sp_vclock writes; /* last epoch of an atomic write, per thread */
    sp_vclock reads;
    sp_vclock sync;       /* level hb: joined by an acquire load of the newest store */
    sp_store *history;    /* level weak: modification order, oldest first */
    uint32_t store_count; /* 0: not begun; the first store is the value in memory */
    uint32_t last_serial;
} sp_loc;

/* The accesses to [start, start + size), which lies within one aligned 8-byte granule. */
typedef struct sp_cell {
    uintptr_t start;
    uint32_t size;
    uint32_t loc; /* index; 0 none */
    uint32_t next_in_block;
    int32_t write_epoch;
    uint32_t writer;
    bool is_freed;
    uint32_t write_pc;
    sp_vclock reads;
    uint32_t read_pc[SP_SCHED_MAX_THREADS];
} sp_cell;

void sp__shadow_setup(void);
/* Restores the globals that the last run changed (restores_globals). */
void sp__shadow_undo(void);
void sp__shadow_begin(void);

/* A plain access of the running thread. */
void sp__shadow_access(sp_sched_thread *self, uintptr_t addr, size_t bytes, bool is_write,
                       const void *pc);

/* The atomic at `addr`; the access is checked against plain ones. */
sp_loc *sp__shadow_atomic(sp_sched_thread *self, uintptr_t addr, uint32_t size, bool is_write,
                          const void *pc);
/* The cell under an atomic, for its last plain write. */
const sp_cell *sp__shadow_cell_of(const sp_loc *loc);

/* --- backend_heap.c --- */
typedef struct sp_block {
    uintptr_t start;
    size_t size;
    int32_t epoch; /* of its allocation, or of the last write to all of it */
    uint32_t writer;
    uint32_t first_cell; /* 0: none yet */
    bool is_freed;
    const void *pc;
} sp_block;

void sp__heap_setup(void);
void sp__heap_begin(void);
/* The block that contains `addr`; NULL: none. */
sp_block *sp__heap_block_at(uintptr_t addr);
/* Ends the run with the verdict leak if a block is still allocated. */
void sp__heap_check_leaks(void);
/* Frees the cells of a block, as a write to all of it. */
void sp__shadow_free(sp_sched_thread *self, sp_block *block, const void *pc);

/* Pool memory of the engine: reserved address space, committed on first access. */
void *sp__reserve(size_t bytes);

/* Code addresses are stored as offsets from the start of the program. */
uint32_t sp__pc_offset(const void *pc);

#endif
