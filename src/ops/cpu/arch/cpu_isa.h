/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of an instruction set, and its reason. The choice is a function of what was asked for,
 * what the build has and what the machine has, so tests make it for any machine. */
#ifndef SP_OPS_CPU_ARCH_CPU_ISA_H
#define SP_OPS_CPU_ARCH_CPU_ISA_H

#include <stdint.h>

#include "base/option.h"
#include "ops/cpu/arch/kernels.h"

/* Features that kernels need and processors may lack, with the compiler's names of them. */
#define SP_CPU_FEATURE_LIST(X)                                                                     \
    X(AVX2, "avx2")                                                                                \
    X(FMA, "fma")                                                                                  \
    X(AVX512F, "avx512f")                                                                          \
    X(AVX512BW, "avx512bw")                                                                        \
    X(AVX512DQ, "avx512dq")                                                                        \
    X(AVX512VL, "avx512vl")

typedef enum sp_cpu_feature {
#define SP_CPU_FEATURE_VALUE(feature, name) SP_CPU_FEATURE_##feature,
    SP_CPU_FEATURE_LIST(SP_CPU_FEATURE_VALUE)
#undef SP_CPU_FEATURE_VALUE
} sp_cpu_feature;

#define SP_CPU_HAS(feature) (1u << SP_CPU_FEATURE_##feature)

typedef struct sp_cpu_machine {
    uint32_t isas;     /* of the build: 1 << sp_cpu_isa each; portable is one of them */
    uint32_t features; /* of the processor, if the operating system saves their registers */
} sp_cpu_machine;

typedef struct sp_cpu_choice {
    sp_cpu_isa isa;
    const char *why; /* constant text */
} sp_cpu_choice;

sp_cpu_machine sp__cpu_machine(void);

/* The named instruction set, or the next lower one that the machine has; without a name, or with
 * one that the build does not have, the best that the machine has. */
sp_cpu_choice sp__cpu_isa_choose(sp_option_isa option, const sp_cpu_machine *machine);

/* The choice for STREAMPOOL_ISA and this machine. */
sp_cpu_choice sp__cpu_isa_choice(void);

#endif
