/* SPDX-License-Identifier: Apache-2.0 */
/* Every model of shared data from many threads: the bits of a single-threaded run. */
#include <streampool/device.h>

#include "run_fixture.h"

/* Each of `threads` runs every model `rounds` times. */
static void check_models(const char *const *names, uint32_t count, uint32_t threads,
                         uint32_t rounds)
{
    cases_load l;
    if (!cases_open(names, count, NULL, &l)) SKIP("no shared data");
    l.rounds = rounds;
    test_threads(threads, cases_run_rounds, &l);
    CHECK_EQ_U64(sp_load_relaxed(&l.differing), 0);
    sp_device_info device;
    CHECK_OK(sp_device_get_info((sp_device){0}, &device));
    for (uint32_t i = 0; i < count; i++) {
        sp_model_info info;
        CHECK_OK(sp_model_get_info(l.cases[i].model, &info));
        CHECK_EQ_U64(info.plan_count, 1);
        CHECK_EQ_U64(info.runs, (uint64_t)threads * rounds + 1);
        CHECK(info.context_count <= device.run_slots);
    }
    test_note("%u threads, %u runs each of %u models", threads, rounds, count);
    cases_close(&l);
}

TEST(all_models_at_once_from_31_threads_give_the_bits_of_one)
{
    check_models(fixture_all_models, FIXTURE_ALL_MODELS, (uint32_t)test_count(31, 31),
                 (uint32_t)test_count(7, 1));
}

TEST(transformers_from_31_threads_give_the_bits_of_one)
{
    static const char *const names[] = {"torch_mha", "torch_encoder", "torch_bert"};
    check_models(names, SP_COUNT_OF(names), 31, (uint32_t)test_count(1000, 5));
}

TEST_MAIN
