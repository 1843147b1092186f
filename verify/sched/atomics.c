/* SPDX-License-Identifier: Apache-2.0 */
/* Each operation is one step: it waits until it is chosen, then acts on the real memory and updates
 * the clocks. Release sequences are C20's: a store ends the sequence, a read-modify-write continues
 * it. A thread's own clock component ticks after each release, so that later operations are not
 * covered. */
#include "atomics.h"

#include <string.h>

uint64_t sp__memory_read(uintptr_t addr, uint32_t size)
{
    uint64_t value = 0;
    switch (size) {
    case 1:
        return *(const uint8_t *)addr;
    case 2:
        return *(const uint16_t *)addr;
    case 4:
        return *(const uint32_t *)addr;
    default:
        memcpy(&value, (const void *)addr, sizeof value);
        return value;
    }
}

void sp__memory_write(uintptr_t addr, uint32_t size, uint64_t value)
{
    switch (size) {
    case 1:
        *(uint8_t *)addr = (uint8_t)value;
        break;
    case 2:
        *(uint16_t *)addr = (uint16_t)value;
        break;
    case 4:
        *(uint32_t *)addr = (uint32_t)value;
        break;
    default:
        memcpy((void *)addr, &value, sizeof value);
        break;
    }
}

static inline void clock_tick(sp_sched_thread *self)
{
    self->clock.at[self->id]++;
}

static inline void clock_acquire(sp_sched_thread *self, const sp_vclock *sync, int order)
{
    sp__vclock_join(sp__order_acquires(order) ? &self->clock : &self->acquire_pending, sync);
}

/* The clock that a store of this order publishes. */
static inline const sp_vclock *clock_published(const sp_sched_thread *self, int order)
{
    return sp__order_releases(order) ? &self->clock : &self->release_fence;
}

uint64_t sp__atomic_load(sp_sched_thread *self, uintptr_t addr, uint32_t size, int order,
                         const void *pc)
{
    sp__engine_step(self, SP_OP_LOAD, addr, false, pc);
    sp_loc *loc = sp__shadow_atomic(self, addr, size, false, pc);
    uint64_t value;
    if (SP_UNLIKELY(sp__engine.is_weak)) {
        const sp_store *store = sp__history_load(self, loc, order);
        value = store->value;
        clock_acquire(self, &store->sync, order);
    } else {
        value = sp__memory_read(addr, size);
        clock_acquire(self, &loc->sync, order);
    }
    sp__engine_done(self, false, value);
    return value;
}

void sp__atomic_store(sp_sched_thread *self, uintptr_t addr, uint32_t size, uint64_t value,
                      int order, const void *pc)
{
    sp__engine_step(self, SP_OP_STORE, addr, true, pc);
    sp_loc *loc = sp__shadow_atomic(self, addr, size, true, pc);
    const sp_vclock *sync = clock_published(self, order);
    bool is_newest = true;
    if (SP_UNLIKELY(sp__engine.is_weak)) {
        is_newest = sp__history_store(self, loc, value, order, sync);
    } else {
        loc->sync = *sync;
    }
    if (is_newest) sp__memory_write(addr, size, value);
    if (sp__order_releases(order)) clock_tick(self);
    sp__engine_done(self, true, value);
}

/* The store that a read-modify-write reads. */
typedef struct rmw_read {
    uint64_t value;
    sp_vclock sync;
    uint32_t index; /* level weak */
    bool is_newest;
} rmw_read;

static rmw_read rmw_read_newest(const sp_loc *loc)
{
    return (rmw_read){
        .value = sp__memory_read(loc->addr, loc->size), .sync = loc->sync, .is_newest = true};
}

static rmw_read rmw_read_history(const sp_loc *loc, uint32_t index)
{
    const sp_store *store = &loc->history[index];
    return (rmw_read){.value = store->value,
                      .sync = store->sync,
                      .index = index,
                      .is_newest = index + 1 == loc->store_count};
}

/* The store of a read-modify-write: it continues the release sequences it read from. */
static void rmw_store(sp_sched_thread *self, sp_loc *loc, const rmw_read *read, uint64_t value,
                      int order)
{
    sp_vclock sync = read->sync;
    sp__vclock_join(&sync, clock_published(self, order));
    if (SP_UNLIKELY(sp__engine.is_weak)) {
        sp__history_store_rmw(self, loc, read->index, value, order, &sync);
    } else {
        loc->sync = sync;
    }
    if (read->is_newest) sp__memory_write(loc->addr, loc->size, value);
    if (sp__order_releases(order)) clock_tick(self);
}

static uint64_t rmw_result(sp_rmw rmw, uint64_t before, uint64_t operand)
{
    switch (rmw) {
    case SP_RMW_ADD:
        return before + operand;
    case SP_RMW_SUB:
        return before - operand;
    case SP_RMW_AND:
        return before & operand;
    case SP_RMW_OR:
        return before | operand;
    case SP_RMW_XOR:
        return before ^ operand;
    case SP_RMW_NAND:
        return ~(before & operand);
    default:
        return operand;
    }
}

static uint64_t value_truncate(uint64_t value, uint32_t size)
{
    return size == 8 ? value : value & (((uint64_t)1 << (size * 8)) - 1);
}

uint64_t sp__atomic_rmw(sp_sched_thread *self, sp_rmw rmw, uintptr_t addr, uint32_t size,
                        uint64_t operand, int order, const void *pc)
{
    sp__engine_step(self, SP_OP_RMW, addr, true, pc);
    sp_loc *loc = sp__shadow_atomic(self, addr, size, true, pc);
    const rmw_read read = SP_UNLIKELY(sp__engine.is_weak)
                              ? rmw_read_history(loc, sp__history_rmw(self, loc, order))
                              : rmw_read_newest(loc);
    clock_acquire(self, &read.sync, order);
    const uint64_t after = value_truncate(rmw_result(rmw, read.value, operand), size);
    rmw_store(self, loc, &read, after, order);
    sp__engine_done(self, after != read.value || !read.is_newest, read.value);
    return read.value;
}

static bool cas_fail(sp_sched_thread *self, const rmw_read *read, uint64_t *expected,
                     int failure_order)
{
    clock_acquire(self, &read->sync, failure_order);
    *expected = read->value;
    self->op.is_write[0] = false; /* a failed compare-and-swap is a load */
    sp__engine_done(self, false, read->value);
    return false;
}

bool sp__atomic_cas(sp_sched_thread *self, uintptr_t addr, uint32_t size, uint64_t *expected,
                    uint64_t desired, int order, int failure_order, const void *pc)
{
    sp__engine_step(self, SP_OP_CAS, addr, true, pc);
    sp_loc *loc = sp__shadow_atomic(self, addr, size, false, pc);
    const rmw_read read =
        SP_UNLIKELY(sp__engine.is_weak)
            ? rmw_read_history(loc, sp__history_cas(self, loc, *expected, order, failure_order))
            : rmw_read_newest(loc);
    if (read.value != *expected) return cas_fail(self, &read, expected, failure_order);
    (void)sp__shadow_atomic(self, addr, size, true, pc);
    clock_acquire(self, &read.sync, order);
    rmw_store(self, loc, &read, desired, order);
    sp__engine_done(self, true, desired);
    return true;
}

/* A seq_cst fence joins all earlier ones both ways, which is stronger than C11: it may hide a stale
 * value, it never invents one. */
void sp__atomic_fence(sp_sched_thread *self, int order, const void *pc)
{
    static sp_atomic_u32 fence_order; /* its address is the key of the order of seq_cst fences */
    if (order == __ATOMIC_RELAXED) return;
    if (sp__order_acquires(order)) sp__vclock_join(&self->clock, &self->acquire_pending);
    if (order == __ATOMIC_SEQ_CST) {
        const uintptr_t addr = (uintptr_t)&fence_order;
        sp__engine_step(self, SP_OP_FENCE, addr, true, pc);
        sp__vclock_join(&self->clock, &self->acquire_pending);
        sp__sync_acquire(self, addr, pc);
        sp__sync_release(self, addr, pc);
        sp__engine_done(self, true, 0);
    }
    if (sp__order_releases(order)) {
        self->release_fence = self->clock;
        clock_tick(self);
    }
}

void sp__atomic_wide_begin(sp_sched_thread *self, uintptr_t addr, sp_op_kind kind, int order,
                           const void *pc)
{
    const bool may_write = kind != SP_OP_LOAD;
    sp__engine_step(self, kind, addr, may_write, pc);
    const sp_loc *loc = sp__shadow_atomic(self, addr, 16, may_write, pc);
    if (kind != SP_OP_STORE) clock_acquire(self, &loc->sync, order);
}

void sp__atomic_wide_end(sp_sched_thread *self, uintptr_t addr, sp_wide_result result, int order)
{
    const bool has_changed = result != SP_WIDE_READ;
    if (has_changed) {
        sp_loc *loc = sp__shadow_atomic(self, addr, 16, true, self->op.pc);
        if (result == SP_WIDE_STORED) memset(&loc->sync, 0, sizeof loc->sync);
        sp__vclock_join(&loc->sync, clock_published(self, order));
        if (sp__order_releases(order)) clock_tick(self);
    }
    self->op.is_write[0] = has_changed;
    sp__engine_done(self, has_changed, 0);
}

void sp__sync_acquire(sp_sched_thread *self, uintptr_t addr, const void *pc)
{
    const sp_loc *loc = sp__shadow_atomic(self, addr, 8, true, pc);
    sp__vclock_join(&self->clock, &loc->sync);
}

void sp__sync_release(sp_sched_thread *self, uintptr_t addr, const void *pc)
{
    sp_loc *loc = sp__shadow_atomic(self, addr, 8, true, pc);
    loc->sync = self->clock;
    clock_tick(self);
}
