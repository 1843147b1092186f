/* SPDX-License-Identifier: Apache-2.0 */
/* Detection and selection of the instruction set. */
#include "base/option.h"
#include "ops/cpu/arch/kernels.h"

extern const sp_kernel sp__kernel_table_portable[SP_KERNEL_COUNT];

#if defined(__x86_64__)

extern const sp_kernel sp__kernel_table_avx2[SP_KERNEL_COUNT];

static const sp_kernel *avx2_table(void)
{
    /* Checks CPUID and that the operating system saves the registers. */
    const bool is_there = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    return is_there ? sp__kernel_table_avx2 : NULL;
}

#else

static const sp_kernel *avx2_table(void)
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
    case SP_CPU_ISA_COUNT:
        break;
    }
    return NULL;
}

const char *sp__cpu_isa_name(sp_cpu_isa isa)
{
    return isa == SP_CPU_AVX2 ? "avx2" : "portable";
}

sp_cpu_isa sp__cpu_isa_selected(void)
{
    const bool wants_portable = sp_option_enum(SP_OPTION_ISA) == SP_OPTION_ISA_PORTABLE;
    return !wants_portable && avx2_table() ? SP_CPU_AVX2 : SP_CPU_PORTABLE;
}
