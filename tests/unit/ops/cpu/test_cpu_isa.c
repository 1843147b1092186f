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

/* A machine, what STREAMPOOL_ISA says, and what follows. */
typedef struct choice_case {
    sp_option_isa option;
    uint32_t isas, features;
    sp_cpu_isa isa;
    const char *why;
} choice_case;

static void check_choice(const choice_case *c)
{
    const sp_cpu_machine machine = {.isas = c->isas, .features = c->features};
    const sp_cpu_choice choice = sp__cpu_isa_choose(c->option, &machine);
    CHECK_EQ_STR(sp__cpu_isa_name(choice.isa), sp__cpu_isa_name(c->isa));
    CHECK_EQ_STR(choice.why, c->why);
}

static void check_choices(const choice_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) check_choice(&cases[i]);
}

TEST(the_best_that_the_machine_has_is_the_default)
{
    static const char best[] = "the best of this build";
    static const choice_case cases[] = {
        {SP_OPTION_ISA_AUTO, X86_BUILD, FEATURES_AVX512, SP_CPU_AVX512, best},
        {SP_OPTION_ISA_AUTO, X86_BUILD, FEATURES_AVX2, SP_CPU_AVX2, "this machine lacks avx512f"},
        {SP_OPTION_ISA_AUTO, X86_BUILD, 0, SP_CPU_PORTABLE, "this machine lacks avx2"},
        {SP_OPTION_ISA_AUTO, ARM_BUILD, 0, SP_CPU_NEON, best},
        {SP_OPTION_ISA_AUTO, ISA(PORTABLE), 0, SP_CPU_PORTABLE, best},
    };
    check_choices(cases, SP_COUNT_OF(cases));
}

TEST(avx512_needs_every_feature_that_its_kernels_use)
{
    static const struct {
        uint32_t feature;
        sp_cpu_isa isa;
        const char *why;
    } lacks[] = {
        {SP_CPU_HAS(AVX2), SP_CPU_PORTABLE, "this machine lacks avx2"},
        {SP_CPU_HAS(FMA), SP_CPU_PORTABLE, "this machine lacks fma"},
        {SP_CPU_HAS(AVX512F), SP_CPU_AVX2, "this machine lacks avx512f"},
        {SP_CPU_HAS(AVX512BW), SP_CPU_AVX2, "this machine lacks avx512bw"},
        {SP_CPU_HAS(AVX512DQ), SP_CPU_AVX2, "this machine lacks avx512dq"},
        {SP_CPU_HAS(AVX512VL), SP_CPU_AVX2, "this machine lacks avx512vl"},
    };
    uint32_t all = 0;
    for (size_t i = 0; i < SP_COUNT_OF(lacks); i++) {
        check_choice(&(choice_case){SP_OPTION_ISA_AUTO, X86_BUILD,
                                    FEATURES_AVX512 & ~lacks[i].feature, lacks[i].isa,
                                    lacks[i].why});
        all |= lacks[i].feature;
    }
    CHECK_EQ_U64(all, FEATURES_AVX512);
}

TEST(a_name_selects_what_the_machine_has)
{
    static const char asked[] = "STREAMPOOL_ISA asks for it";
    static const choice_case cases[] = {
        {SP_OPTION_ISA_PORTABLE, X86_BUILD, FEATURES_AVX512, SP_CPU_PORTABLE, asked},
        {SP_OPTION_ISA_AVX2, X86_BUILD, FEATURES_AVX512, SP_CPU_AVX2, asked},
        {SP_OPTION_ISA_AVX512, X86_BUILD, FEATURES_AVX512, SP_CPU_AVX512, asked},
        {SP_OPTION_ISA_NEON, ARM_BUILD, 0, SP_CPU_NEON, asked},
        {SP_OPTION_ISA_PORTABLE, ARM_BUILD, 0, SP_CPU_PORTABLE, asked},
    };
    check_choices(cases, SP_COUNT_OF(cases));
}

TEST(a_name_of_more_than_the_machine_has_selects_the_next_lower_one)
{
    static const choice_case cases[] = {
        {SP_OPTION_ISA_AVX512, X86_BUILD, FEATURES_AVX512 & ~SP_CPU_HAS(AVX512VL), SP_CPU_AVX2,
         "STREAMPOOL_ISA asks for more, but this machine lacks avx512vl"},
        {SP_OPTION_ISA_AVX2, X86_BUILD, SP_CPU_HAS(AVX2), SP_CPU_PORTABLE,
         "STREAMPOOL_ISA asks for more, but this machine lacks fma"},
    };
    check_choices(cases, SP_COUNT_OF(cases));
}

TEST(a_name_of_another_processors_kernels_selects_as_no_name_does)
{
    static const char others[] = "STREAMPOOL_ISA names kernels for other processors";
    static const choice_case cases[] = {
        {SP_OPTION_ISA_NEON, X86_BUILD, FEATURES_AVX512, SP_CPU_AVX512, others},
        {SP_OPTION_ISA_NEON, X86_BUILD, 0, SP_CPU_PORTABLE, others},
        {SP_OPTION_ISA_AVX512, ARM_BUILD, 0, SP_CPU_NEON, others},
    };
    check_choices(cases, SP_COUNT_OF(cases));
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
