/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that code compiled with -fsanitize=thread calls, by gcc 12 and clang 19. Outside a
 * run they only perform the access. One macro line per width: the names are the compilers'. */
#include <string.h>

#include "atomics.h"

typedef unsigned char sp_bits8;
typedef unsigned short sp_bits16;
typedef unsigned int sp_bits32;
typedef unsigned long sp_bits64;
__extension__ typedef unsigned __int128 sp_bits128;

#define HOOK __attribute__((visibility("default")))
#define PC __builtin_return_address(0)

/* --- plain accesses --- */

static inline void hook_plain_access(const volatile void *addr, size_t bytes, bool is_write,
                                     const void *pc)
{
    sp_sched_thread *self = sp__engine.self;
    if (self != NULL) sp__shadow_access(self, (uintptr_t)addr, bytes, is_write, pc);
}

#define PLAIN_HOOK(name, bytes, is_write)                                                          \
    HOOK void __tsan_##name(void *addr);                                                           \
    HOOK void __tsan_##name(void *addr)                                                            \
    {                                                                                              \
        hook_plain_access(addr, bytes, is_write, PC);                                              \
    }
#define PLAIN_HOOKS(bytes)                                                                         \
    PLAIN_HOOK(read##bytes, bytes, false)                                                          \
    PLAIN_HOOK(write##bytes, bytes, true)                                                          \
    PLAIN_HOOK(read_write##bytes, bytes, true)                                                     \
    PLAIN_HOOK(volatile_read##bytes, bytes, false)                                                 \
    PLAIN_HOOK(volatile_write##bytes, bytes, true)
#define UNALIGNED_HOOKS(bytes)                                                                     \
    PLAIN_HOOK(unaligned_read##bytes, bytes, false)                                                \
    PLAIN_HOOK(unaligned_write##bytes, bytes, true)                                                \
    PLAIN_HOOK(unaligned_read_write##bytes, bytes, true)                                           \
    PLAIN_HOOK(unaligned_volatile_read##bytes, bytes, false)                                       \
    PLAIN_HOOK(unaligned_volatile_write##bytes, bytes, true)

PLAIN_HOOKS(1)
PLAIN_HOOKS(2)
PLAIN_HOOKS(4)
PLAIN_HOOKS(8)
PLAIN_HOOKS(16)
UNALIGNED_HOOKS(2)
UNALIGNED_HOOKS(4)
UNALIGNED_HOOKS(8)
UNALIGNED_HOOKS(16)
PLAIN_HOOK(vptr_read, sizeof(void *), false)

HOOK void __tsan_vptr_update(void **slot, void *value);
HOOK void __tsan_vptr_update(void **slot, void *value)
{
    if (*slot != value) hook_plain_access(slot, sizeof *slot, true, PC);
}

HOOK void __tsan_read_range(void *addr, unsigned long bytes);
HOOK void __tsan_read_range(void *addr, unsigned long bytes)
{
    hook_plain_access(addr, bytes, false, PC);
}

HOOK void __tsan_write_range(void *addr, unsigned long bytes);
HOOK void __tsan_write_range(void *addr, unsigned long bytes)
{
    hook_plain_access(addr, bytes, true, PC);
}

HOOK void *__tsan_memcpy(void *dst, const void *src, size_t bytes);
HOOK void *__tsan_memcpy(void *dst, const void *src, size_t bytes)
{
    hook_plain_access(src, bytes, false, PC);
    hook_plain_access(dst, bytes, true, PC);
    return memcpy(dst, src, bytes);
}

HOOK void *__tsan_memmove(void *dst, const void *src, size_t bytes);
HOOK void *__tsan_memmove(void *dst, const void *src, size_t bytes)
{
    hook_plain_access(src, bytes, false, PC);
    hook_plain_access(dst, bytes, true, PC);
    return memmove(dst, src, bytes);
}

HOOK void *__tsan_memset(void *dst, int byte, size_t bytes);
HOOK void *__tsan_memset(void *dst, int byte, size_t bytes)
{
    hook_plain_access(dst, bytes, true, PC);
    return memset(dst, byte, bytes);
}

/* --- functions: ignored, since traces have the program counter of each step --- */

HOOK void __tsan_init(void);
HOOK void __tsan_init(void) {}

HOOK void __tsan_func_entry(void *pc);
HOOK void __tsan_func_entry(void *pc)
{
    (void)pc;
}

HOOK void __tsan_func_exit(void);
HOOK void __tsan_func_exit(void) {}

/* --- atomics --- */

#define RMW_HOOK(bits, type, name, rmw, builtin)                                                   \
    HOOK type __tsan_atomic##bits##_##name(volatile type *addr, type operand, int order);          \
    HOOK type __tsan_atomic##bits##_##name(volatile type *addr, type operand, int order)           \
    {                                                                                              \
        sp_sched_thread *self = sp__engine.self;                                                   \
        if (self == NULL) return builtin(addr, operand, __ATOMIC_SEQ_CST);                         \
        return (type)sp__atomic_rmw(self, rmw, (uintptr_t)addr, sizeof(type), operand, order, PC); \
    }

#define CAS_HOOK(bits, type, name)                                                                 \
    HOOK int __tsan_atomic##bits##_##name(volatile type *addr, type *expected, type desired,       \
                                          int order, int failure_order);                           \
    HOOK int __tsan_atomic##bits##_##name(volatile type *addr, type *expected, type desired,       \
                                          int order, int failure_order)                            \
    {                                                                                              \
        return cas##bits(addr, expected, desired, order, failure_order, PC);                       \
    }

#define CAS_VALUE_HOOK(bits, type)                                                                 \
    HOOK type __tsan_atomic##bits##_compare_exchange_val(                                          \
        volatile type *addr, type expected, type desired, int order, int failure_order);           \
    HOOK type __tsan_atomic##bits##_compare_exchange_val(                                          \
        volatile type *addr, type expected, type desired, int order, int failure_order)            \
    {                                                                                              \
        (void)cas##bits(addr, &expected, desired, order, failure_order, PC);                       \
        return expected;                                                                           \
    }

#define ATOMIC_HOOKS(bits, type)                                                                   \
    HOOK type __tsan_atomic##bits##_load(const volatile type *addr, int order);                    \
    HOOK type __tsan_atomic##bits##_load(const volatile type *addr, int order)                     \
    {                                                                                              \
        sp_sched_thread *self = sp__engine.self;                                                   \
        if (self == NULL) return __atomic_load_n(addr, __ATOMIC_SEQ_CST);                          \
        return (type)sp__atomic_load(self, (uintptr_t)addr, sizeof(type), order, PC);              \
    }                                                                                              \
    HOOK void __tsan_atomic##bits##_store(volatile type *addr, type value, int order);             \
    HOOK void __tsan_atomic##bits##_store(volatile type *addr, type value, int order)              \
    {                                                                                              \
        sp_sched_thread *self = sp__engine.self;                                                   \
        if (self == NULL) {                                                                        \
            __atomic_store_n(addr, value, __ATOMIC_SEQ_CST);                                       \
        } else {                                                                                   \
            sp__atomic_store(self, (uintptr_t)addr, sizeof(type), value, order, PC);               \
        }                                                                                          \
    }                                                                                              \
    static int cas##bits(volatile type *addr, type *expected, type desired, int order,             \
                         int failure_order, const void *pc)                                        \
    {                                                                                              \
        sp_sched_thread *self = sp__engine.self;                                                   \
        if (self == NULL) {                                                                        \
            return __atomic_compare_exchange_n(addr, expected, desired, false, __ATOMIC_SEQ_CST,   \
                                               __ATOMIC_SEQ_CST);                                  \
        }                                                                                          \
        uint64_t found = *expected;                                                                \
        const bool done = sp__atomic_cas(self, (uintptr_t)addr, sizeof(type), &found, desired,     \
                                         order, failure_order, pc);                                \
        *expected = (type)found;                                                                   \
        return done;                                                                               \
    }                                                                                              \
    CAS_HOOK(bits, type, compare_exchange_strong)                                                  \
    CAS_HOOK(bits, type, compare_exchange_weak)                                                    \
    CAS_VALUE_HOOK(bits, type)                                                                     \
    RMW_HOOK(bits, type, exchange, SP_RMW_EXCHANGE, __atomic_exchange_n)                           \
    RMW_HOOK(bits, type, fetch_add, SP_RMW_ADD, __atomic_fetch_add)                                \
    RMW_HOOK(bits, type, fetch_sub, SP_RMW_SUB, __atomic_fetch_sub)                                \
    RMW_HOOK(bits, type, fetch_and, SP_RMW_AND, __atomic_fetch_and)                                \
    RMW_HOOK(bits, type, fetch_or, SP_RMW_OR, __atomic_fetch_or)                                   \
    RMW_HOOK(bits, type, fetch_xor, SP_RMW_XOR, __atomic_fetch_xor)                                \
    RMW_HOOK(bits, type, fetch_nand, SP_RMW_NAND, __atomic_fetch_nand)

ATOMIC_HOOKS(8, sp_bits8)
ATOMIC_HOOKS(16, sp_bits16)
ATOMIC_HOOKS(32, sp_bits32)
ATOMIC_HOOKS(64, sp_bits64)

HOOK void __tsan_atomic_thread_fence(int order);
HOOK void __tsan_atomic_thread_fence(int order)
{
    if (sp__engine.self != NULL) sp__atomic_fence(sp__engine.self, order, PC);
}

HOOK void __tsan_atomic_signal_fence(int order);
HOOK void __tsan_atomic_signal_fence(int order)
{
    (void)order;
}

/* --- 16-byte atomics: plain accesses suffice, since only one logical thread runs --- */

HOOK sp_bits128 __tsan_atomic128_load(const volatile sp_bits128 *addr, int order);
HOOK sp_bits128 __tsan_atomic128_load(const volatile sp_bits128 *addr, int order)
{
    sp_sched_thread *self = sp__engine.self;
    if (self == NULL) return *addr;
    sp__atomic_wide_begin(self, (uintptr_t)addr, SP_OP_LOAD, order, PC);
    const sp_bits128 value = *addr;
    sp__atomic_wide_end(self, (uintptr_t)addr, SP_WIDE_READ, order);
    return value;
}

HOOK void __tsan_atomic128_store(volatile sp_bits128 *addr, sp_bits128 value, int order);
HOOK void __tsan_atomic128_store(volatile sp_bits128 *addr, sp_bits128 value, int order)
{
    sp_sched_thread *self = sp__engine.self;
    if (self != NULL) sp__atomic_wide_begin(self, (uintptr_t)addr, SP_OP_STORE, order, PC);
    *addr = value;
    if (self != NULL) sp__atomic_wide_end(self, (uintptr_t)addr, SP_WIDE_STORED, order);
}

static int cas128(volatile sp_bits128 *addr, sp_bits128 *expected, sp_bits128 desired, int order,
                  int failure_order, const void *pc)
{
    sp_sched_thread *self = sp__engine.self;
    if (self != NULL) sp__atomic_wide_begin(self, (uintptr_t)addr, SP_OP_CAS, order, pc);
    const bool done = *addr == *expected;
    if (done) {
        *addr = desired;
    } else {
        *expected = *addr;
    }
    if (self == NULL) return done;
    sp__atomic_wide_end(self, (uintptr_t)addr, done ? SP_WIDE_CHANGED : SP_WIDE_READ,
                        done ? order : failure_order);
    return done;
}

CAS_HOOK(128, sp_bits128, compare_exchange_strong)
CAS_HOOK(128, sp_bits128, compare_exchange_weak)
CAS_VALUE_HOOK(128, sp_bits128)

#define WIDE_RMW_HOOK(name, expression)                                                            \
    HOOK sp_bits128 __tsan_atomic128_##name(volatile sp_bits128 *addr, sp_bits128 operand,         \
                                            int order);                                            \
    HOOK sp_bits128 __tsan_atomic128_##name(volatile sp_bits128 *addr, sp_bits128 operand,         \
                                            int order)                                             \
    {                                                                                              \
        sp_sched_thread *self = sp__engine.self;                                                   \
        if (self != NULL) sp__atomic_wide_begin(self, (uintptr_t)addr, SP_OP_RMW, order, PC);      \
        const sp_bits128 before = *addr;                                                           \
        *addr = expression;                                                                        \
        if (self != NULL) sp__atomic_wide_end(self, (uintptr_t)addr, SP_WIDE_CHANGED, order);      \
        return before;                                                                             \
    }

WIDE_RMW_HOOK(exchange, operand)
WIDE_RMW_HOOK(fetch_add, before + operand)
WIDE_RMW_HOOK(fetch_sub, before - operand)
WIDE_RMW_HOOK(fetch_and, before &operand)
WIDE_RMW_HOOK(fetch_or, before | operand)
WIDE_RMW_HOOK(fetch_xor, before ^ operand)
WIDE_RMW_HOOK(fetch_nand, ~(before &operand))
