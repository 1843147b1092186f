/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA's extensions of C++, for the emulator's threads, and the entries of the emulated programs.
 */
#ifndef SP_TESTS_CUDA_CUDA_DIALECT_H
#define SP_TESTS_CUDA_CUDA_DIALECT_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define __global__
#define __device__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __shared__ static
#define __grid_constant__
#define __launch_bounds__(...)
#define __align__(bytes) alignas(bytes)

struct sp_index {
    unsigned x, y, z;
};

extern sp_index threadIdx, blockIdx, gridDim;

struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};

void __syncthreads();

/* A warp of the emulator is in step with its block: it waits for all of it, so the whole block must
 * call what a warp calls. */
static inline void __syncwarp()
{
    __syncthreads();
}
float __shfl_xor_sync(unsigned mask, float value, int step);
float __shfl_sync(unsigned mask, float value, int lane);

/* The kernels in front of the running one have ended from here on. */
void emulated_await();
#define SP_CUDA_AWAIT emulated_await

/* In place of arch/cluster.cuh. */
#define SP_CUDA_CLUSTERED(blocks)
bool sp_has_clusters();
void sp_cluster_arrive();
void sp_cluster_wait();
float4 sp_cluster_read(const float4 *at, int rank);

/* In place of arch/mbarrier.cuh. Copies are made at once. */
#define SP_CUDA_MBARRIER
struct sp_mbarrier {
    int missing; /* bytes that are expected and have not come; below 0: they came first */
    unsigned char arrivals, rest;
    unsigned short phase;
};
void sp_open_mbarrier(sp_mbarrier *barrier, int arrivals);
static inline void sp_publish_mbarriers() {}
void sp_expect_at_mbarrier(sp_mbarrier *barrier, int bytes);
void sp_arrive_at_mbarrier(sp_mbarrier *barrier, int rank);
void sp_await_mbarrier(sp_mbarrier *barrier, int parity);
void sp_copy_to_blocks(char *to, const char *from, int bytes, sp_mbarrier *barrier, unsigned ranks);
void sp_copy_to_block(char *to, const char *from, int bytes, sp_mbarrier *barrier);
static inline void sp_publish_to_copies() {}

/* In place of arch/inbox.cuh. */
#define SP_CUDA_INBOX
struct sp_inbox {
    sp_mbarrier sides[2];
};
void sp_open_inbox(sp_inbox *inbox);
void sp_expect_bytes(sp_inbox *inbox, int side, int bytes);
void sp_push(float *to, float value, int rank, sp_inbox *inbox, int side);
void sp_await_inbox(sp_inbox *inbox, int side, int parity);

/* Of the running block; an access behind its end is a fault. */
extern float4 *shared_memory;
#define SP_CUDA_SHARED(name) float4 *const name = shared_memory

/* ---- the build contracts nothing (-ffp-contract=off), so each of these rounds once ---- */

#define ROUNDED_OPERATION(name, type, operation)                                                   \
    static inline type name(type a, type b)                                                        \
    {                                                                                              \
        return a operation b;                                                                      \
    }
ROUNDED_OPERATION(__fadd_rn, float, +)
ROUNDED_OPERATION(__fsub_rn, float, -)
ROUNDED_OPERATION(__fmul_rn, float, *)
ROUNDED_OPERATION(__fdiv_rn, float, /)
ROUNDED_OPERATION(__dadd_rn, double, +)
ROUNDED_OPERATION(__dsub_rn, double, -)
ROUNDED_OPERATION(__dmul_rn, double, *)
ROUNDED_OPERATION(__ddiv_rn, double, /)
#undef ROUNDED_OPERATION

static inline float __fmaf_rn(float a, float b, float c)
{
    return fmaf(a, b, c);
}
static inline float __fsqrt_rn(float a)
{
    return sqrtf(a);
}
static inline double __dsqrt_rn(double a)
{
    return sqrt(a);
}

/* ---- bits ---- */

template <class To, class From> static inline To same_bits(From from)
{
    static_assert(sizeof(To) == sizeof(From), "the same bits");
    To to;
    memcpy(&to, &from, sizeof(to));
    return to;
}
static inline float __uint_as_float(unsigned bits)
{
    return same_bits<float>(bits);
}
static inline unsigned __float_as_uint(float value)
{
    return same_bits<unsigned>(value);
}
static inline double __longlong_as_double(long long bits)
{
    return same_bits<double>(bits);
}
static inline long long __double_as_longlong(double value)
{
    return same_bits<long long>(value);
}
static inline int __clzll(long long bits)
{
    return bits == 0 ? 64 : __builtin_clzll((unsigned long long)bits);
}
template <class T> static inline T __ldg(const T *from)
{
    return *from;
}

#if defined(SP_EMULATED_GROUPS)
#include "cuda/emulated_group.h"
#endif

/* ---- entries ---- */

/* The bindings and constants of the running launch. */
struct emulated_launch {
    void *bindings[16];
    unsigned tile[3];
    const void *constants;
};
extern emulated_launch current_launch;

struct emulated_entry {
    const char *name; /* NULL after the last */
    unsigned cluster; /* blocks */
    void (*run)();
};

#endif
