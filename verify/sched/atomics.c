/* SPDX-License-Identifier: Apache-2.0 */
/* Each operation is one step: it waits for its turn, then acts on the real memory and moves clocks.
 * Release sequences are C20's: a store ends the sequence, a read-modify-write continues it. A
 * thread's own clock component ticks after each release, so that what follows is not covered. */
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

static inline void tick(sp_sched_thread *self)
{
    self->clock.at[self->id]++;
}

static inline void acquire_from(sp_sched_thread *self, const sp_vclock *sync, int order)
{
    sp__vclock_join(sp__order_acquires(order) ? &self->clock : &self->acquire_pending, sync);
}

/* What a store of this order publishes. */
static inline const sp_vclock *published_by(const sp_sched_thread *self, int order)
{
    return sp__order_releases(order) ? &self->clock : &self->release_fence;
}

static const sp_vclock *newest_sync(sp_sched_thread *self, sp_loc *loc, int order)
{
    return sp__engine.is_weak ? &sp__history_newest(self, loc, order)->sync : &loc->sync;
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
        acquire_from(self, &store->sync, order);
    } else {
        value = sp__memory_read(addr, size);
        acquire_from(self, &loc->sync, order);
    }
    sp__engine_done(self, false, value);
    return value;
}

/* The newest value becomes `value`; `sync` is what it publishes. */
static void store_newest(sp_sched_thread *self, sp_loc *loc, uint64_t value, int order, bool is_rmw,
                         const sp_vclock *sync)
{
    if (SP_UNLIKELY(sp__engine.is_weak)) {
        if (sp__history_store(self, loc, value, order, is_rmw, sync)) {
            sp__memory_write(loc->addr, loc->size, value);
        }
    } else {
        loc->sync = *sync;
        sp__memory_write(loc->addr, loc->size, value);
    }
    if (sp__order_releases(order)) tick(self);
}

void sp__atomic_store(sp_sched_thread *self, uintptr_t addr, uint32_t size, uint64_t value,
                      int order, const void *pc)
{
    sp__engine_step(self, SP_OP_STORE, addr, true, pc);
    sp_loc *loc = sp__shadow_atomic(self, addr, size, true, pc);
    store_newest(self, loc, value, order, false, published_by(self, order));
    sp__engine_done(self, true, value);
}

/* The store of a read-modify-write: it continues the release sequences it read from. */
static void store_rmw(sp_sched_thread *self, sp_loc *loc, uint64_t value, int order)
{
    sp_vclock sync = *newest_sync(self, loc, order);
    sp__vclock_join(&sync, published_by(self, order));
    store_newest(self, loc, value, order, true, &sync);
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

static uint64_t truncated(uint64_t value, uint32_t size)
{
    return size == 8 ? value : value & (((uint64_t)1 << (size * 8)) - 1);
}

uint64_t sp__atomic_rmw(sp_sched_thread *self, sp_rmw rmw, uintptr_t addr, uint32_t size,
                        uint64_t operand, int order, const void *pc)
{
    sp__engine_step(self, SP_OP_RMW, addr, true, pc);
    sp_loc *loc = sp__shadow_atomic(self, addr, size, true, pc);
    const sp_vclock *sync =
        newest_sync(self, loc, order); /* may refresh the history: before the read */
    const uint64_t before = sp__memory_read(addr, size);
    acquire_from(self, sync, order);
    const uint64_t after = truncated(rmw_result(rmw, before, operand), size);
    store_rmw(self, loc, after, order);
    sp__engine_done(self, after != before, before);
    return before;
}

static bool cas_fails(sp_sched_thread *self, uint64_t value, const sp_vclock *sync,
                      uint64_t *expected, int failure_order)
{
    acquire_from(self, sync, failure_order);
    *expected = value;
    self->op.is_write[0] = false; /* only a load after all */
    sp__engine_done(self, false, value);
    return false;
}

bool sp__atomic_cas(sp_sched_thread *self, uintptr_t addr, uint32_t size, uint64_t *expected,
                    uint64_t desired, int order, int failure_order, const void *pc)
{
    sp__engine_step(self, SP_OP_CAS, addr, true, pc);
    sp_loc *loc = sp__shadow_atomic(self, addr, size, false, pc);
    if (SP_UNLIKELY(sp__engine.is_weak)) {
        const sp_store *stale = sp__history_stale_failure(self, loc, *expected, failure_order);
        if (stale != NULL) {
            return cas_fails(self, stale->value, &stale->sync, expected, failure_order);
        }
    }
    const sp_vclock *sync = newest_sync(self, loc, order);
    const uint64_t value = sp__memory_read(addr, size);
    if (value != *expected) return cas_fails(self, value, sync, expected, failure_order);
    (void)sp__shadow_atomic(self, addr, size, true, pc);
    acquire_from(self, sync, order);
    store_rmw(self, loc, desired, order);
    sp__engine_done(self, true, desired);
    return true;
}

/* A seq_cst fence joins all earlier ones both ways, which is more than C11 says: it may hide a
 * stale value, it never invents one. */
void sp__atomic_fence(sp_sched_thread *self, int order, const void *pc)
{
    static sp_atomic_u32 fence_order; /* its address stands for the order of seq_cst fences */
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
        tick(self);
    }
}

void sp__atomic_wide_begin(sp_sched_thread *self, uintptr_t addr, sp_op_kind kind, int order,
                           const void *pc)
{
    const bool may_write = kind != SP_OP_LOAD;
    sp__engine_step(self, kind, addr, may_write, pc);
    const sp_loc *loc = sp__shadow_atomic(self, addr, 16, may_write, pc);
    if (kind != SP_OP_STORE) acquire_from(self, &loc->sync, order);
}

void sp__atomic_wide_end(sp_sched_thread *self, uintptr_t addr, sp_wide_result result, int order)
{
    const bool has_changed = result != SP_WIDE_READ;
    if (has_changed) {
        sp_loc *loc = sp__shadow_atomic(self, addr, 16, true, self->op.pc);
        if (result == SP_WIDE_STORED) memset(&loc->sync, 0, sizeof loc->sync);
        sp__vclock_join(&loc->sync, published_by(self, order));
        if (sp__order_releases(order)) tick(self);
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
    tick(self);
}
