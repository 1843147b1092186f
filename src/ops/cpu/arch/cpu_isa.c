/* SPDX-License-Identifier: Apache-2.0 */
/* Detection and selection of the instruction set. */
#include "ops/cpu/arch/cpu_isa.h"

#include <stddef.h>

#include "base/macros.h"

extern const sp_kernel sp__kernel_table_portable[SP_KERNEL_COUNT];
extern const sp_kernel sp__kernel_table_avx2[SP_KERNEL_COUNT];
extern const sp_kernel sp__kernel_table_avx512[SP_KERNEL_COUNT];
extern const sp_kernel sp__kernel_table_neon[SP_KERNEL_COUNT];

/* All that the flags of the build allow the compiler to use (cmake/layers.cmake). */
static const uint32_t needed[SP_CPU_ISA_COUNT] = {
    [SP_CPU_AVX2] = SP_CPU_HAS(AVX2) | SP_CPU_HAS(FMA),
    [SP_CPU_AVX512] = SP_CPU_HAS(AVX2) | SP_CPU_HAS(FMA) | SP_CPU_HAS(AVX512F) |
                      SP_CPU_HAS(AVX512BW) | SP_CPU_HAS(AVX512DQ) | SP_CPU_HAS(AVX512VL)};

/* The tables that the build has: cmake/layers.cmake defines SP_HAS_<name> for each. */
static const sp_kernel *const tables[SP_CPU_ISA_COUNT] = {
    [SP_CPU_PORTABLE] = sp__kernel_table_portable,
#ifdef SP_HAS_avx2
    [SP_CPU_AVX2] = sp__kernel_table_avx2,
#endif
#ifdef SP_HAS_avx512
    [SP_CPU_AVX512] = sp__kernel_table_avx512,
#endif
#ifdef SP_HAS_neon
    [SP_CPU_NEON] = sp__kernel_table_neon,
#endif
};

#if defined(__x86_64__)

/* The compiler's run time has read CPUID once. It reports a feature only if the operating system
 * saves the registers, too (XGETBV). */
static uint32_t find_features(void)
{
    uint32_t features = 0;
#define FIND_FEATURE(feature, name)                                                                \
    if (__builtin_cpu_supports(name)) features |= SP_CPU_HAS(feature);
    SP_CPU_FEATURE_LIST(FIND_FEATURE)
#undef FIND_FEATURE
#ifdef SP_AVX512_BY_AVX2
    /* The kernels for AVX-512 of this build, which is for tests, use AVX2 and FMA alone. */
    const uint32_t used = SP_CPU_HAS(AVX2) | SP_CPU_HAS(FMA);
    if ((features & used) == used) {
        features |= needed[SP_CPU_AVX512];
    }
#endif
    return features;
}

#else

/* Every AArch64 processor has NEON, the one instruction set besides x86's. */
static uint32_t find_features(void)
{
    return 0;
}

#endif

sp_cpu_machine sp__cpu_machine(void)
{
    sp_cpu_machine machine = {.features = find_features()};
    for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
        if (tables[isa] != NULL) machine.isas |= 1u << isa;
    }
    return machine;
}

/* ---- the choice ---- */

/* The reason for less than the best of the build, and for less than was asked for. */
typedef struct missing_feature {
    uint32_t feature;
    const char *best, *asked;
} missing_feature;

static const missing_feature lacks[] = {
#define LACK(feature, name)                                                                        \
    {SP_CPU_HAS(feature), "this machine lacks " name,                                              \
     "STREAMPOOL_ISA asks for more, but this machine lacks " name},
    SP_CPU_FEATURE_LIST(LACK)
#undef LACK
};

/* What the machine lacks for kernels of the build; NULL: nothing. */
static const missing_feature *find_lack(const sp_cpu_machine *machine, sp_cpu_isa isa)
{
    const uint32_t missing = needed[isa] & ~machine->features;
    for (size_t i = 0; i < SP_COUNT_OF(lacks); i++) {
        if ((missing & lacks[i].feature) != 0) return &lacks[i];
    }
    return NULL;
}

static bool is_built(const sp_cpu_machine *machine, sp_cpu_isa isa)
{
    return (machine->isas >> isa & 1u) != 0;
}

static bool is_usable(const sp_cpu_machine *machine, sp_cpu_isa isa)
{
    return is_built(machine, isa) && find_lack(machine, isa) == NULL;
}

static sp_cpu_isa best_built(const sp_cpu_machine *machine)
{
    sp_cpu_isa isa = SP_CPU_ISA_COUNT - 1;
    while (isa > SP_CPU_PORTABLE && !is_built(machine, isa)) isa--;
    return isa;
}

static const char *find_reason(sp_option_isa option, bool is_foreign, const missing_feature *lack)
{
    if (is_foreign) return "STREAMPOOL_ISA names kernels for other processors";
    if (option == SP_OPTION_ISA_AUTO) return lack != NULL ? lack->best : "the best of this build";
    return lack != NULL ? lack->asked : "STREAMPOOL_ISA asks for it";
}

sp_cpu_choice sp__cpu_isa_choose(sp_option_isa option, const sp_cpu_machine *machine)
{
    static const sp_cpu_isa named[] = {[SP_OPTION_ISA_PORTABLE] = SP_CPU_PORTABLE,
                                       [SP_OPTION_ISA_AVX2] = SP_CPU_AVX2,
                                       [SP_OPTION_ISA_AVX512] = SP_CPU_AVX512,
                                       [SP_OPTION_ISA_NEON] = SP_CPU_NEON};
    const bool is_named = option != SP_OPTION_ISA_AUTO;
    const bool is_foreign = is_named && !is_built(machine, named[option]);
    const sp_cpu_isa wanted = is_named && !is_foreign ? named[option] : best_built(machine);
    sp_cpu_isa isa = wanted;
    while (isa > SP_CPU_PORTABLE && !is_usable(machine, isa)) isa--;
    return (sp_cpu_choice){isa, find_reason(option, is_foreign, find_lack(machine, wanted))};
}

sp_cpu_choice sp__cpu_isa_choice(void)
{
    const sp_cpu_machine machine = sp__cpu_machine();
    return sp__cpu_isa_choose((sp_option_isa)sp_option_enum(SP_OPTION_ISA), &machine);
}

/* ---- kernels ---- */

const sp_kernel *sp__cpu_kernels(sp_cpu_isa isa)
{
    if (isa >= SP_CPU_ISA_COUNT) return NULL;
    const sp_cpu_machine machine = sp__cpu_machine();
    return is_usable(&machine, isa) ? tables[isa] : NULL;
}

const char *sp__cpu_isa_name(sp_cpu_isa isa)
{
    static const char *const names[] = {"portable", "avx2", "avx512", "neon"};
    return isa < SP_CPU_ISA_COUNT ? names[isa] : "none";
}

sp_cpu_isa sp__cpu_isa_selected(void)
{
    return sp__cpu_isa_choice().isa;
}
