/* SPDX-License-Identifier: Apache-2.0 */
/* Loops of independent multiply-adds in registers: enough chains that the latency of one is hidden
 * by the others, and few enough that all of them have a register. */
#include "fma_peak.h"

#include <stddef.h>
#include <stdint.h>

#include "process.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define CHAINS 12
#define ROUNDS 400000
#define SLICES 40

typedef struct fma_loop {
    const char *name;
    uint32_t lanes;
    float (*run)(uint32_t rounds, float a, float b); /* CHAINS * lanes multiply-adds a round */
} fma_loop;

/* ---- the loops ---- */

#define PORTABLE_LANES 4

/* Not fused: the product is rounded before the sum. */
static float run_portable(uint32_t rounds, float a, float b)
{
    float x[CHAINS * PORTABLE_LANES] = {0};
    for (uint32_t r = 0; r < rounds; r++) {
        for (int i = 0; i < CHAINS * PORTABLE_LANES; i++) x[i] = x[i] * a + b;
    }
    float sum = 0;
    for (int i = 0; i < CHAINS * PORTABLE_LANES; i++) sum += x[i];
    return sum;
}

static const fma_loop portable = {"portable", PORTABLE_LANES, run_portable};

#if defined(__x86_64__)

__attribute__((target("avx2,fma"))) static float run_avx2(uint32_t rounds, float a, float b)
{
    const __m256 factor = _mm256_set1_ps(a), added = _mm256_set1_ps(b);
    __m256 x[CHAINS];
    for (int i = 0; i < CHAINS; i++) x[i] = _mm256_setzero_ps();
    for (uint32_t r = 0; r < rounds; r++) {
        for (int i = 0; i < CHAINS; i++) x[i] = _mm256_fmadd_ps(x[i], factor, added);
    }
    for (int i = 1; i < CHAINS; i++) x[0] = _mm256_add_ps(x[0], x[i]);
    return _mm256_cvtss_f32(x[0]);
}

__attribute__((target("avx512f"))) static float run_avx512(uint32_t rounds, float a, float b)
{
    const __m512 factor = _mm512_set1_ps(a), added = _mm512_set1_ps(b);
    __m512 x[CHAINS];
    for (int i = 0; i < CHAINS; i++) x[i] = _mm512_setzero_ps();
    for (uint32_t r = 0; r < rounds; r++) {
        for (int i = 0; i < CHAINS; i++) x[i] = _mm512_fmadd_ps(x[i], factor, added);
    }
    for (int i = 1; i < CHAINS; i++) x[0] = _mm512_add_ps(x[0], x[i]);
    return _mm512_cvtss_f32(x[0]);
}

static const fma_loop avx2 = {"avx2", 8, run_avx2};
static const fma_loop avx512 = {"avx512", 16, run_avx512};

static const fma_loop *loop_choose(void)
{
    if (__builtin_cpu_supports("avx512f")) return &avx512;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? &avx2 : &portable;
}

#else

static const fma_loop *loop_choose(void)
{
    return &portable;
}

#endif

/* ---- the measurement ---- */

fma_peak fma_peak_measure(void)
{
    const fma_loop *loop = loop_choose();
    const volatile float factor = 0.5f, added = 0.25f; /* unknown to the compiler */
    volatile float sink;
    uint64_t least_ns = UINT64_MAX;
    for (int i = 0; i < SLICES; i++) {
        const uint64_t start_ns = clock_ns();
        sink = loop->run(ROUNDS, factor, added);
        const uint64_t ns = clock_ns() - start_ns;
        if (ns < least_ns) least_ns = ns;
    }
    (void)sink;
    const double flops = 2.0 * CHAINS * ROUNDS * loop->lanes;
    return (fma_peak){.gflops = flops / (double)(least_ns > 0 ? least_ns : 1),
                      .instruction_set = loop->name};
}
