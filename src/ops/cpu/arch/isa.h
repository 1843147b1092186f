/* SPDX-License-Identifier: Apache-2.0 */
/* Instruction sets for kernel files. Each kernel file is compiled once per instruction set with
 * -DSP_ISA=name; SP_KERNEL(gemm) is then that build's name for the kernel. The sources are the same
 * for all: only this header differs. All functions are static, so no code of one build is ever
 * linked into another.
 *
 * Rules for bits (docs/decisions/0002-bit-rules.md): a fused multiply-add is written sp_fmaf or
 * sp_vector_fma and is exact in every build; nothing else is ever fused. */
#ifndef SP_OPS_CPU_ARCH_ISA_H
#define SP_OPS_CPU_ARCH_ISA_H

#include <stdint.h>
#include <string.h>

#include "ops/cpu/arch/kernels.h"

#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#define SP_HAS_HARDWARE_FMA 1
#elif defined(SP_NEON)
#include <arm_neon.h>
#define SP_HAS_HARDWARE_FMA 1
#elif defined(__FP_FAST_FMAF)
#define SP_HAS_HARDWARE_FMA 1 /* AArch64 and others, in their portable build */
#else
#define SP_HAS_HARDWARE_FMA 0
#endif

#define SP_KERNEL_PASTE_(name, isa) sp__kernel_##name##_##isa
#define SP_KERNEL_EXPAND_(name, isa) SP_KERNEL_PASTE_(name, isa)
#define SP_KERNEL(name) SP_KERNEL_EXPAND_(name, SP_ISA)

#define SP_KERNEL_DECLARE(name) sp_status SP_KERNEL(name)(const sp_tile *tile);
SP_KERNEL_LIST(SP_KERNEL_DECLARE)
#undef SP_KERNEL_DECLARE

#define SP_ALWAYS_INLINE inline __attribute__((always_inline))

/* The loop's iterations do not depend on each other, although its pointers may be equal. */
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed" /* the pragma allows, it does not demand */
#define SP_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define SP_INDEPENDENT _Pragma("GCC ivdep")
#endif

/* Vectors are passed between inlined functions only, so their ABI does not matter. */
#pragma GCC diagnostic ignored "-Wpsabi"

/* Floats of a vector. Products of a few rows are computed in vectors; that a vector holds more of
 * their outputs changes no bit. */
#if defined(__AVX512F__) || defined(SP_AVX512_BY_AVX2)
#define SP_VECTOR 16 /* with SP_AVX512_BY_AVX2, a build for tests, two registers of AVX2 */
#elif defined(SP_NEON)
#define SP_VECTOR 4 /* one register: vectors of two are kept in memory by gcc */
#else
#define SP_VECTOR 8
#endif

typedef float sp_vector __attribute__((vector_size(SP_VECTOR * 4)));
typedef int32_t sp_vector_bits __attribute__((vector_size(SP_VECTOR * 4)));

static SP_ALWAYS_INLINE float sp_float_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static SP_ALWAYS_INLINE uint32_t sp_float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/* The NaN that an operation gives depends on the order of its operands in the instruction; all
 * results of a kernel have the same NaN. */
static SP_ALWAYS_INLINE float sp_canonical(float x)
{
    return x == x ? x : sp_float_from_bits(0x7fc00000u);
}

#if SP_HAS_HARDWARE_FMA

static SP_ALWAYS_INLINE float sp_fmaf(float a, float b, float c)
{
    return __builtin_fmaf(a, b, c);
}

#else

/* a * b + c with one rounding. The product of two floats is exact in a double; the sum is rounded
 * to odd (its error, by TwoSum, sets the last bit), so the second rounding, to float, is correct.
 * With an infinity or NaN the error is a NaN, both comparisons are false, and the sum is
 * unchanged. */
static SP_ALWAYS_INLINE float sp_fmaf(float a, float b, float c)
{
    const double product = (double)a * (double)b;
    const double addend = (double)c;
    const double sum = product + addend;
    const double part = sum - product;
    const double error = (product - (sum - part)) + (addend - part);
    uint64_t bits, error_bits;
    memcpy(&bits, &sum, sizeof(bits));
    memcpy(&error_bits, &error, sizeof(error_bits));
    const uint64_t is_inexact = (uint64_t)((error < 0) | (error > 0));
    /* Towards the error: one ulp more if it has the sum's sign, else one less; odd sums stay. */
    const uint64_t step = 1 - 2 * ((bits ^ error_bits) >> 63);
    bits += step & (0 - (is_inexact & (~bits & 1)));
    double odd;
    memcpy(&odd, &bits, sizeof(odd));
    return (float)odd;
}

#endif

static SP_ALWAYS_INLINE sp_vector sp_vector_load(const float *from)
{
    sp_vector v;
    memcpy(&v, from, sizeof(v));
    return v;
}

static SP_ALWAYS_INLINE void sp_vector_store(float *to, sp_vector v)
{
#if defined(SP_NEON)
    vst1q_f32(to, (float32x4_t)v); /* gcc copies 16 bytes by two other registers */
#else
    memcpy(to, &v, sizeof(v));
#endif
}

static SP_ALWAYS_INLINE sp_vector sp_vector_splat(float x)
{
#if SP_VECTOR == 16
    return (sp_vector){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x};
#elif SP_VECTOR == 4
    return (sp_vector){x, x, x, x};
#else
    return (sp_vector){x, x, x, x, x, x, x, x};
#endif
}

static SP_ALWAYS_INLINE sp_vector sp_vector_canonical(sp_vector v)
{
    const sp_vector_bits nan = (sp_vector_bits){0} + 0x7fc00000;
#if defined(__AVX512F__)
    /* By class, of which 0 and 1 are the NaNs: 0 takes the first operand, 1 the second. */
    return (sp_vector)_mm512_fixupimm_ps((__m512)nan, (__m512)v, _mm512_set1_epi32(0x11111100), 0);
#else
    const sp_vector_bits is_number = v == v;
    return (sp_vector)(((sp_vector_bits)v & is_number) | (nan & ~is_number));
#endif
}

/* a * b + c, rounded once. */
static SP_ALWAYS_INLINE sp_vector sp_vector_fma(sp_vector a, sp_vector b, sp_vector c)
{
#if defined(__AVX512F__)
    return (sp_vector)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__AVX2__) && defined(__FMA__) && SP_VECTOR == 8
    return (sp_vector)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(SP_NEON)
    return (sp_vector)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
    sp_vector result;
    for (int i = 0; i < SP_VECTOR; i++) result[i] = sp_fmaf(a[i], b[i], c[i]);
    return result;
#endif
}

#endif
