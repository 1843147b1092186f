/* SPDX-License-Identifier: Apache-2.0 */
/* Detection and selection of the instruction set. */
#include "base/option.h"
#include "ops/cpu/arch/kernels.h"

extern const sp_kernel sp__kernel_table_portable[SP_KERNEL_COUNT];

/* Both check CPUID, and that the operating system saves the registers. */
#if defined(__x86_64__)

extern const sp_kernel sp__kernel_table_avx2[SP_KERNEL_COUNT];
extern const sp_kernel sp__kernel_table_avx512[SP_KERNEL_COUNT];

static const sp_kernel *avx2_table(void)
{
    const bool is_there = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    return is_there ? sp__kernel_table_avx2 : NULL;
}

/* All that the build's flags allow the compiler to use (cmake/layers.cmake). */
static const sp_kernel *avx512_table(void)
{
    const bool is_there = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    return is_there && avx2_table() != NULL ? sp__kernel_table_avx512 : NULL;
}

#else

static const sp_kernel *avx2_table(void)
{
    return NULL;
}

static const sp_kernel *avx512_table(void)
{
    return NULL;
}

#endif

const sp_kernel *sp__cpu_kernels(sp_cpu_isa isa)
{
    switch (isa) {
    case SP_CPU_PORTABLE:
        return sp__kernel_table_portable;
    case SP_CPU_AVX2:
        return avx2_table();
    case SP_CPU_AVX512:
        return avx512_table();
    case SP_CPU_ISA_COUNT:
        break;
    }
    return NULL;
}

const char *sp__cpu_isa_name(sp_cpu_isa isa)
{
    static const char *const names[] = {"portable", "avx2", "avx512"};
    return isa < SP_CPU_ISA_COUNT ? names[isa] : "none";
}

sp_cpu_isa sp__cpu_isa_selected(void)
{
    static const sp_cpu_isa best[] = {[SP_OPTION_ISA_AUTO] = SP_CPU_AVX512,
                                      [SP_OPTION_ISA_PORTABLE] = SP_CPU_PORTABLE,
                                      [SP_OPTION_ISA_AVX2] = SP_CPU_AVX2,
                                      [SP_OPTION_ISA_AVX512] = SP_CPU_AVX512};
    sp_cpu_isa isa = best[sp_option_enum(SP_OPTION_ISA)];
    while (sp__cpu_kernels(isa) == NULL) isa--; /* portable is always there */
    return isa;
}
