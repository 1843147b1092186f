/* SPDX-License-Identifier: Apache-2.0 */
/* Atomic operations of the code under test: C11's happens-before, and at level weak its stale
 * values. Values are passed as 64 bits; 16-byte atomics always load the newest value. */
#ifndef SP_SCHED_ATOMICS_H
#define SP_SCHED_ATOMICS_H

#include "shadow.h"

typedef enum sp_rmw {
    SP_RMW_EXCHANGE,
    SP_RMW_ADD,
    SP_RMW_SUB,
    SP_RMW_AND,
    SP_RMW_OR,
    SP_RMW_XOR,
    SP_RMW_NAND
} sp_rmw;

uint64_t sp__atomic_load(sp_sched_thread *self, uintptr_t addr, uint32_t size, int order,
                         const void *pc);
void sp__atomic_store(sp_sched_thread *self, uintptr_t addr, uint32_t size, uint64_t value,
                      int order, const void *pc);
uint64_t sp__atomic_rmw(sp_sched_thread *self, sp_rmw rmw, uintptr_t addr, uint32_t size,
                        uint64_t operand, int order, const void *pc);
bool sp__atomic_cas(sp_sched_thread *self, uintptr_t addr, uint32_t size, uint64_t *expected,
                    uint64_t desired, int order, int failure_order, const void *pc);
void sp__atomic_fence(sp_sched_thread *self, int order, const void *pc);

/* 16-byte atomics: begin waits until the step is chosen and checks the access, the caller accesses
 * memory, end updates the clocks by the result. */
typedef enum sp_wide_result {
    SP_WIDE_READ,   /* a load, or a compare-and-swap that failed */
    SP_WIDE_STORED, /* ends the release sequence */
    SP_WIDE_CHANGED /* continues it */
} sp_wide_result;

void sp__atomic_wide_begin(sp_sched_thread *self, uintptr_t addr, sp_op_kind kind, int order,
                           const void *pc);
void sp__atomic_wide_end(sp_sched_thread *self, uintptr_t addr, sp_wide_result result, int order);

/* The clock updates of a mutex: acquire joins what its last holder published; release publishes. */
void sp__sync_acquire(sp_sched_thread *self, uintptr_t addr, const void *pc);
void sp__sync_release(sp_sched_thread *self, uintptr_t addr, const void *pc);

static inline bool sp__order_acquires(int order)
{
    return order != __ATOMIC_RELAXED && order != __ATOMIC_RELEASE;
}

static inline bool sp__order_releases(int order)
{
    return order >= __ATOMIC_RELEASE;
}

/* --- store_history.c, level weak --- */
/* A store that the load may return, chosen by the search; marks it as read. */
const sp_store *sp__history_load(sp_sched_thread *self, sp_loc *loc, int order);
/* Index of the store that a read-modify-write reads, chosen by the search: valid until the next
 * operation on the location. */
uint32_t sp__history_rmw(sp_sched_thread *self, sp_loc *loc, int order);
/* The same for a compare-and-swap, which fails, as a load, if the store's value is not `expected`.
 */
uint32_t sp__history_cas(sp_sched_thread *self, sp_loc *loc, uint64_t expected, int order,
                         int failure_order);
/* Adds a store at a position in the modification order that C11 allows; true if it is the
 * newest. */
bool sp__history_store(sp_sched_thread *self, sp_loc *loc, uint64_t value, int order,
                       const sp_vclock *sync);
/* Adds the store of the read-modify-write that read the store `read`, directly after that one. */
bool sp__history_store_rmw(sp_sched_thread *self, sp_loc *loc, uint32_t read, uint64_t value,
                           int order, const sp_vclock *sync);

uint64_t sp__memory_read(uintptr_t addr, uint32_t size);
void sp__memory_write(uintptr_t addr, uint32_t size, uint64_t value);

#endif
