/* SPDX-License-Identifier: Apache-2.0 */
/* Golden hashes, as in test_kernel_bits, of kernels that gather, scatter and interpolate elements
 * and of recurrent layers: of forty random calls each. */
#include <string.h>

#include "base/fpenv.h"
#include "cuda/kernel_case_parts.h"
#include "support/test.h"

typedef struct golden {
    const char *kind;
    uint64_t hash;
} golden;

static const golden moves[] = {
    {"slice", 0x23031e59b6015ffe},       {"slice of rows", 0x6e38d4424f062d86},
    {"tile", 0xf885293200a0d23d},        {"blocks", 0xf9006061113ae993},
    {"gather", 0x4d7c0392e2e5f1ba},      {"gather elements", 0xe3991e05e771ef69},
    {"gather nd", 0x139cb7ba1f517fa6},   {"scatter elements", 0x0ded7ece30aa17ce},
    {"scatter nd", 0x69c0c9b88a0c315c},  {"one hot", 0x598b73ba34ba6abe},
    {"range", 0xb664226446fdc376},       {"trilu", 0x488a3cf762964a44},
    {"eye", 0x13e4e321d3e92ed7},         {"non zero", 0x68a6dd73a4bf6116},
    {"top k", 0x82775f3cca38eb77},       {"resize nearest", 0x6c807b580d97d81f},
    {"resize f32", 0xba5bd54a35783e0a},  {"resize f64", 0xd074c875c08fccdb},
    {"grid sample", 0x6fd1e1aa2702518d},
};

static const golden layers[] = {
    {"lstm", 0x9f44deb73414530e},        {"gru", 0xddcc14c0e0eacf53},
    {"rnn", 0xa68874b209640406},         {"sequences", 0xecbd46d689d5261f},
    {"layer forms", 0xc7b9cfc5422656f4}, {"team layers", 0xc6f6eeff143d86de},
};

static void hash_call(const kernel_case *c, sp_cpu_isa isa, uint64_t *hash)
{
    sp_array out[3] = {0};
    const data_call call = {.op = c->op,
                            .version = c->version,
                            .attributes = c->attributes,
                            .attribute_count = c->attribute_count,
                            .inputs = c->inputs,
                            .input_count = c->input_count,
                            .output_count = c->output_count,
                            .isa = isa,
                            .packs = c->packs};
    CHECK_OK(data_run_op(&call, out));
    for (uint32_t i = 0; i < c->output_count; i++) {
        *hash = *hash * 0x100000001b3u ^ data_hash(out[i].data, (size_t)out[i].bytes);
        sp__array_deinit(&out[i]);
    }
}

static uint64_t hash_of(const kernel_case_kind *kind, sp_cpu_isa isa)
{
    uint64_t hash = 0;
    data_random random = {2024};
    for (int i = 0; i < 40; i++) {
        kernel_case c;
        memset(&c, 0, sizeof(c));
        c.output_count = 1;
        kind->make(&random, &c);
        hash_call(&c, isa, &hash);
        kernel_case_free(&c);
    }
    return hash;
}

static void check_kind(const kernel_case_kind *kind, const golden *want)
{
    CHECK_EQ_STR(want->kind, kind->name);
    for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
        if (sp__cpu_kernels((sp_cpu_isa)isa) == NULL) continue;
        const uint64_t hash = hash_of(kind, (sp_cpu_isa)isa);
        if (hash == want->hash) continue;
        test_note("%s (%s): 0x%016llx", want->kind, sp__cpu_isa_name((sp_cpu_isa)isa),
                  (unsigned long long)hash);
        CHECK_EQ_U64(hash, want->hash);
    }
}

static void check_kinds(const kernel_case_kind *kinds, const golden *want, size_t count)
{
    const sp_fpenv before = sp_fpenv_enter();
    for (size_t i = 0; kinds[i].name != NULL; i++) {
        REQUIRE(i < count);
        check_kind(&kinds[i], &want[i]);
    }
    sp_fpenv_leave(before);
}

TEST(every_kernel_that_moves_elements_has_its_golden_bits_on_every_isa)
{
    check_kinds(move_case_kinds, moves, SP_COUNT_OF(moves));
}

TEST(every_recurrent_layer_has_its_golden_bits_on_every_isa)
{
    check_kinds(layer_case_kinds, layers, SP_COUNT_OF(layers));
}

TEST_MAIN
