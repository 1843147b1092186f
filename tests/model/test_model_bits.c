/* SPDX-License-Identifier: Apache-2.0 */
/* Golden hashes of whole models: the bits of a run, on every instruction set and with every
 * compiler. CTest runs this program once per instruction set, with one table. A changed hash breaks
 * a guarantee to users. */
#include "run_fixture.h"

typedef struct golden {
    const char *model;
    uint64_t hash; /* over all outputs for test data set 0 */
} golden;

static const golden table[FIXTURE_MODELS] = {
    {"blazeface_front_128", 0xf93bb6601cd19c32}, {"mnist_8", 0xabee6d01ce13d1b1},
    {"policy_go1", 0xc0df8c2fa1e878fd},          {"policy_g1", 0x4b09e399fe00606c},
    {"torch_linear", 0x8d842f16f349b124},        {"torch_mlp", 0x2ecb2c472b512bd3},
};

static uint64_t hash_of_outputs(const model_case *c)
{
    uint64_t hash = 0;
    for (uint32_t i = 0; i < c->output_count; i++) {
        const sp_array *output = &c->outputs[i];
        hash = hash * 0x100000001b3u ^ data_hash(output->data, (size_t)output->bytes);
    }
    return hash;
}

TEST(every_model_has_its_golden_bits)
{
    for (size_t i = 0; i < SP_COUNT_OF(table); i++) {
        model_case c;
        if (!case_open(table[i].model, NULL, &c)) SKIP("no shared data");
        outputs_wipe(&c, c.outputs);
        CHECK_OK(case_run(&c, c.outputs));
        const uint64_t hash = hash_of_outputs(&c);
        if (hash != table[i].hash) {
            test_note("%s (%s): 0x%016llx", table[i].model,
                      sp__cpu_isa_name(sp__cpu_isa_selected()), (unsigned long long)hash);
        }
        CHECK_EQ_U64(hash, table[i].hash);
        case_close(&c);
    }
}

TEST(the_instruction_set_that_was_asked_for_is_selected)
{
    const sp_cpu_isa asked = data_asked_isa();
    if (asked == SP_CPU_ISA_COUNT) SKIP("STREAMPOOL_ISA names none that is there");
    CHECK_EQ_STR(sp__cpu_isa_name(sp__cpu_isa_selected()), sp__cpu_isa_name(asked));
}

TEST_MAIN
