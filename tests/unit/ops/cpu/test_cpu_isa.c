/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of an instruction set, for machines that this one is not. */
#include "ops/cpu/arch/cpu_isa.h"

#include "support/test.h"

#define ISA(name) (1u << SP_CPU_##name)
#define X86_BUILD (ISA(PORTABLE) | ISA(AVX2) | ISA(AVX512))
#define ARM_BUILD (ISA(PORTABLE) | ISA(NEON))
#define FEATURES_AVX2 (SP_CPU_HAS(AVX2) | SP_CPU_HAS(FMA))
#define FEATURES_AVX512                                                                            \
    (FEATURES_AVX2 | SP_CPU_HAS(AVX512F) | SP_CPU_HAS(AVX512BW) | SP_CPU_HAS(AVX512DQ) |           \
     SP_CPU_HAS(AVX512VL))

static sp_cpu_choice choose(sp_option_isa option, uint32_t isas, uint32_t features)
{
    const sp_cpu_machine machine = {.isas = isas, .features = features};
    return sp__cpu_isa_choose(option, &machine);
}

static void check_choice(sp_cpu_choice choice, sp_cpu_isa isa, const char *why)
{
    CHECK_EQ_STR(sp__cpu_isa_name(choice.isa), sp__cpu_isa_name(isa));
    CHECK_EQ_STR(choice.why, why);
}

TEST(the_best_that_the_machine_has_is_the_default)
{
    check_choice(choose(SP_OPTION_ISA_AUTO, X86_BUILD, FEATURES_AVX512), SP_CPU_AVX512,
                 "the best of this build");
    check_choice(choose(SP_OPTION_ISA_AUTO, X86_BUILD, FEATURES_AVX2), SP_CPU_AVX2,
                 "this machine lacks avx512f");
    check_choice(choose(SP_OPTION_ISA_AUTO, X86_BUILD, 0), SP_CPU_PORTABLE,
                 "this machine lacks avx2");
    check_choice(choose(SP_OPTION_ISA_AUTO, ARM_BUILD, 0), SP_CPU_NEON, "the best of this build");
    check_choice(choose(SP_OPTION_ISA_AUTO, ISA(PORTABLE), 0), SP_CPU_PORTABLE,
                 "the best of this build");
}

TEST(avx512_needs_every_feature_that_its_kernels_use)
{
    static const struct {
        uint32_t feature;
        sp_cpu_isa isa;
        const char *why;
    } rows[] = {
        {SP_CPU_HAS(AVX2), SP_CPU_PORTABLE, "this machine lacks avx2"},
        {SP_CPU_HAS(FMA), SP_CPU_PORTABLE, "this machine lacks fma"},
        {SP_CPU_HAS(AVX512F), SP_CPU_AVX2, "this machine lacks avx512f"},
        {SP_CPU_HAS(AVX512BW), SP_CPU_AVX2, "this machine lacks avx512bw"},
        {SP_CPU_HAS(AVX512DQ), SP_CPU_AVX2, "this machine lacks avx512dq"},
        {SP_CPU_HAS(AVX512VL), SP_CPU_AVX2, "this machine lacks avx512vl"},
    };
    uint32_t all = 0;
    for (size_t i = 0; i < SP_COUNT_OF(rows); i++) {
        const uint32_t features = FEATURES_AVX512 & ~rows[i].feature;
        check_choice(choose(SP_OPTION_ISA_AUTO, X86_BUILD, features), rows[i].isa, rows[i].why);
        all |= rows[i].feature;
    }
    CHECK_EQ_U64(all, FEATURES_AVX512);
}

TEST(a_name_selects_what_the_machine_has)
{
    check_choice(choose(SP_OPTION_ISA_PORTABLE, X86_BUILD, FEATURES_AVX512), SP_CPU_PORTABLE,
                 "STREAMPOOL_ISA asks for it");
    check_choice(choose(SP_OPTION_ISA_AVX2, X86_BUILD, FEATURES_AVX512), SP_CPU_AVX2,
                 "STREAMPOOL_ISA asks for it");
    check_choice(choose(SP_OPTION_ISA_AVX512, X86_BUILD, FEATURES_AVX512), SP_CPU_AVX512,
                 "STREAMPOOL_ISA asks for it");
    check_choice(choose(SP_OPTION_ISA_NEON, ARM_BUILD, 0), SP_CPU_NEON,
                 "STREAMPOOL_ISA asks for it");
    check_choice(choose(SP_OPTION_ISA_PORTABLE, ARM_BUILD, 0), SP_CPU_PORTABLE,
                 "STREAMPOOL_ISA asks for it");
}

TEST(a_name_of_more_than_the_machine_has_selects_the_next_lower_one)
{
    check_choice(choose(SP_OPTION_ISA_AVX512, X86_BUILD, FEATURES_AVX512 & ~SP_CPU_HAS(AVX512VL)),
                 SP_CPU_AVX2, "STREAMPOOL_ISA asks for more, but this machine lacks avx512vl");
    check_choice(choose(SP_OPTION_ISA_AVX2, X86_BUILD, SP_CPU_HAS(AVX2)), SP_CPU_PORTABLE,
                 "STREAMPOOL_ISA asks for more, but this machine lacks fma");
}

TEST(a_name_of_another_processors_kernels_selects_as_no_name_does)
{
    const char *why = "STREAMPOOL_ISA names kernels for other processors";
    check_choice(choose(SP_OPTION_ISA_NEON, X86_BUILD, FEATURES_AVX512), SP_CPU_AVX512, why);
    check_choice(choose(SP_OPTION_ISA_NEON, X86_BUILD, 0), SP_CPU_PORTABLE, why);
    check_choice(choose(SP_OPTION_ISA_AVX512, ARM_BUILD, 0), SP_CPU_NEON, why);
}

TEST(kernels_are_there_for_what_this_machine_has)
{
    const sp_cpu_machine machine = sp__cpu_machine();
    CHECK((machine.isas & ISA(PORTABLE)) != 0);
    CHECK_EQ_INT(sp__cpu_kernels(SP_CPU_NEON) != NULL, (machine.isas & ISA(NEON)) != 0);
    const bool has_avx512 = (machine.isas & ISA(AVX512)) != 0 &&
                            (machine.features & FEATURES_AVX512) == FEATURES_AVX512;
    CHECK_EQ_INT(sp__cpu_kernels(SP_CPU_AVX512) != NULL, has_avx512);
    CHECK(sp__cpu_kernels(sp__cpu_isa_choice().isa) != NULL);
    CHECK_EQ_INT(sp__cpu_isa_choice().isa, sp__cpu_isa_selected());
}

TEST_MAIN
