/* SPDX-License-Identifier: Apache-2.0 */
/* Atomics with the memory order in the name (C17 7.17.3). An atomic is a struct, so an accidental
 * plain access does not compile. Each field of these types documents its writers, its readers, and
 * what the release publishes.
 *
 * These are the plain compiler builtins in every build; under -fsanitize=thread the compiler turns
 * them into calls that ThreadSanitizer, or our controlled scheduler, implements. */
#ifndef SP_BASE_ATOMIC_H
#define SP_BASE_ATOMIC_H

#include <stdbool.h>
#include <stdint.h>

#define SP_ATOMIC(type)                                                                            \
    struct {                                                                                       \
        type value;                                                                                \
    }

typedef SP_ATOMIC(uint32_t) sp_atomic_u32;
typedef SP_ATOMIC(uint64_t) sp_atomic_u64;
typedef SP_ATOMIC(int64_t) sp_atomic_i64;
typedef SP_ATOMIC(void *) sp_atomic_ptr;

#define sp_load_relaxed(a) __atomic_load_n(&(a)->value, __ATOMIC_RELAXED)
#define sp_load_acquire(a) __atomic_load_n(&(a)->value, __ATOMIC_ACQUIRE)
#define sp_load_seq_cst(a) __atomic_load_n(&(a)->value, __ATOMIC_SEQ_CST)

#define sp_store_relaxed(a, v) __atomic_store_n(&(a)->value, (v), __ATOMIC_RELAXED)
#define sp_store_release(a, v) __atomic_store_n(&(a)->value, (v), __ATOMIC_RELEASE)
#if defined(SP_EMULATED)
/* QEMU lets a later load of another word overtake a store, which AArch64's STLR and LDAR exclude;
 * an exchange it orders. */
#define sp_store_seq_cst(a, v) ((void)__atomic_exchange_n(&(a)->value, (v), __ATOMIC_SEQ_CST))
#else
#define sp_store_seq_cst(a, v) __atomic_store_n(&(a)->value, (v), __ATOMIC_SEQ_CST)
#endif

/* Each exchange returns the previous value. */
#define sp_exchange_relaxed(a, v) __atomic_exchange_n(&(a)->value, (v), __ATOMIC_RELAXED)
#define sp_exchange_acquire(a, v) __atomic_exchange_n(&(a)->value, (v), __ATOMIC_ACQUIRE)
#define sp_exchange_release(a, v) __atomic_exchange_n(&(a)->value, (v), __ATOMIC_RELEASE)
#define sp_exchange_acq_rel(a, v) __atomic_exchange_n(&(a)->value, (v), __ATOMIC_ACQ_REL)
#define sp_exchange_seq_cst(a, v) __atomic_exchange_n(&(a)->value, (v), __ATOMIC_SEQ_CST)

/* Each fetch returns the previous value. */
#define sp_fetch_add_relaxed(a, v) __atomic_fetch_add(&(a)->value, (v), __ATOMIC_RELAXED)
#define sp_fetch_add_release(a, v) __atomic_fetch_add(&(a)->value, (v), __ATOMIC_RELEASE)
#define sp_fetch_add_acq_rel(a, v) __atomic_fetch_add(&(a)->value, (v), __ATOMIC_ACQ_REL)
#define sp_fetch_add_seq_cst(a, v) __atomic_fetch_add(&(a)->value, (v), __ATOMIC_SEQ_CST)
#define sp_fetch_sub_relaxed(a, v) __atomic_fetch_sub(&(a)->value, (v), __ATOMIC_RELAXED)
#define sp_fetch_sub_release(a, v) __atomic_fetch_sub(&(a)->value, (v), __ATOMIC_RELEASE)
#define sp_fetch_sub_acq_rel(a, v) __atomic_fetch_sub(&(a)->value, (v), __ATOMIC_ACQ_REL)
#define sp_fetch_sub_seq_cst(a, v) __atomic_fetch_sub(&(a)->value, (v), __ATOMIC_SEQ_CST)
#define sp_fetch_or_relaxed(a, v) __atomic_fetch_or(&(a)->value, (v), __ATOMIC_RELAXED)
#define sp_fetch_or_release(a, v) __atomic_fetch_or(&(a)->value, (v), __ATOMIC_RELEASE)
#define sp_fetch_or_seq_cst(a, v) __atomic_fetch_or(&(a)->value, (v), __ATOMIC_SEQ_CST)
#define sp_fetch_and_seq_cst(a, v) __atomic_fetch_and(&(a)->value, (v), __ATOMIC_SEQ_CST)
#define sp_fetch_and_acq_rel(a, v) __atomic_fetch_and(&(a)->value, (v), __ATOMIC_ACQ_REL)

/* Compare and swap: on failure *expected holds the value found. Failure orders are relaxed for
 * release, acquire otherwise. */
#define sp_cas_relaxed(a, expected, desired)                                                       \
    __atomic_compare_exchange_n(&(a)->value, (expected), (desired), false, __ATOMIC_RELAXED,       \
                                __ATOMIC_RELAXED)
#define sp_cas_acquire(a, expected, desired)                                                       \
    __atomic_compare_exchange_n(&(a)->value, (expected), (desired), false, __ATOMIC_ACQUIRE,       \
                                __ATOMIC_ACQUIRE)
#define sp_cas_release(a, expected, desired)                                                       \
    __atomic_compare_exchange_n(&(a)->value, (expected), (desired), false, __ATOMIC_RELEASE,       \
                                __ATOMIC_RELAXED)
#define sp_cas_acq_rel(a, expected, desired)                                                       \
    __atomic_compare_exchange_n(&(a)->value, (expected), (desired), false, __ATOMIC_ACQ_REL,       \
                                __ATOMIC_ACQUIRE)
#define sp_cas_seq_cst(a, expected, desired)                                                       \
    __atomic_compare_exchange_n(&(a)->value, (expected), (desired), false, __ATOMIC_SEQ_CST,       \
                                __ATOMIC_SEQ_CST)

#endif
