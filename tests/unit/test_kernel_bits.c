/* SPDX-License-Identifier: Apache-2.0 */
/* Golden hashes: what each kernel computes on fixed inputs, to the bit, on every instruction set
 * and with every compiler. A changed hash is a changed promise to users, never a detail. */
#include <math.h>
#include <string.h>

#include "base/fpenv.h"
#include "support/model_data.h"
#include "support/test.h"

enum { MAX_INPUTS = 3, MAX_ATTRIBUTES = 5 };

typedef struct golden {
    const char *op;
    uint32_t version;
    sp_shape inputs[MAX_INPUTS];
    uint32_t input_count;
    struct {
        const char *name;
        int64_t values[4];
        uint32_t count; /* 0: a single int */
    } attributes[MAX_ATTRIBUTES];
    uint64_t hash;
} golden;

#define DIMS(...)                                                                                  \
    {                                                                                              \
        .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dims = { __VA_ARGS__ }        \
    }

/* clang-format off */
static const golden table[] = {
    {"Gemm", 13, {DIMS(9, 77), DIMS(77, 43), DIMS(43)}, 3, {{0}}, 0xe048e75301bc8bd8},
    {"Gemm", 13, {DIMS(50, 300), DIMS(129, 300)}, 2, {{"transB", {1}, 0}}, 0x9873b5a1aafd60a1},
    {"MatMul", 13, {DIMS(3, 5, 19), DIMS(3, 19, 21)}, 2, {{0}}, 0x7582c243acc940cc},
    {"Conv", 11, {DIMS(2, 6, 17, 19), DIMS(10, 3, 3, 5), DIMS(10)}, 3,
     {{"group", {2}, 0}, {"strides", {2, 1}, 2}, {"pads", {1, 2, 0, 3}, 4}, {"dilations", {1, 2}, 2}}, 0xd526c259b399bcf4},
    {"Conv", 11, {DIMS(1, 40, 12, 12), DIMS(33, 40, 1, 1)}, 2, {{0}}, 0x747e6f87953bae61},
    {"Conv", 11, {DIMS(2, 5, 70), DIMS(5, 1, 3)}, 2, {{"group", {5}, 0}, {"pads", {1, 1}, 2}}, 0x8e06cf823bcee239},
    {"MaxPool", 12, {DIMS(2, 3, 15, 16)}, 1,
     {{"kernel_shape", {3, 2}, 2}, {"strides", {2, 2}, 2}, {"pads", {1, 0, 1, 1}, 4}}, 0x4915c89aed773d60},
    {"Add", 14, {DIMS(4, 33), DIMS(33)}, 2, {{0}}, 0xdc8f2c3c661f6a32},
    {"Sub", 14, {DIMS(4, 33), DIMS(4, 1)}, 2, {{0}}, 0xaf3c21a21154d241},
    {"Mul", 14, {DIMS(1000), DIMS(1000)}, 2, {{0}}, 0x4ce8dce60b47d45d},
    {"Div", 14, {DIMS(1000), DIMS(1000)}, 2, {{0}}, 0x66cbd5fa6c486c7e},
    {"Relu", 14, {DIMS(1000)}, 1, {{0}}, 0xd3ffe76b36441124},
    {"Sigmoid", 13, {DIMS(10007)}, 1, {{0}}, 0x936fe91f00992ca2},
    {"Tanh", 13, {DIMS(10007)}, 1, {{0}}, 0xe16d001b378c75e4},
    {"Exp", 13, {DIMS(10007)}, 1, {{0}}, 0x226c6c8707f97fda},
    {"Transpose", 13, {DIMS(5, 6, 7)}, 1, {{"perm", {2, 0, 1}, 3}}, 0x718b430b6fa0eaa2},
    {"Concat", 13, {DIMS(3, 5), DIMS(3, 2), DIMS(3, 4)}, 3, {{"axis", {1}, 0}}, 0xe317542d0edb365d},
};
/* clang-format on */

static uint64_t hash_of(const golden *g, sp_cpu_isa isa)
{
    data_random random = {99};
    sp_array inputs[MAX_INPUTS], out = {0};
    sp_attribute attributes[MAX_ATTRIBUTES];
    uint32_t count = 0;
    for (uint32_t i = 0; i < g->input_count; i++) {
        inputs[i] = data_floats(&random, &g->inputs[i]);
        /* Functions over a wider range than [-1, 1). */
        for (uint64_t k = 0; g->input_count == 1 && k < inputs[i].bytes / 4; k++) {
            ((float *)inputs[i].data)[k] *= 12.0f;
        }
    }
    for (; count < MAX_ATTRIBUTES && g->attributes[count].name != NULL; count++) {
        const int64_t *values = g->attributes[count].values;
        const char *name = g->attributes[count].name;
        attributes[count] = g->attributes[count].count == 0
                                ? data_attribute_int(name, values)
                                : data_attribute_ints(name, values, g->attributes[count].count);
    }
    const data_call call = {.op = g->op,
                            .version = g->version,
                            .attributes = attributes,
                            .attribute_count = count,
                            .inputs = inputs,
                            .input_count = g->input_count,
                            .output_count = 1,
                            .isa = isa};
    CHECK_OK(data_run_op(&call, &out));
    const uint64_t hash = data_hash(out.data, (size_t)out.bytes);
    for (uint32_t i = 0; i < g->input_count; i++) sp__array_deinit(&inputs[i]);
    sp__array_deinit(&out);
    return hash;
}

TEST(every_kernel_has_its_golden_bits_on_every_isa)
{
    for (size_t i = 0; i < SP_COUNT_OF(table); i++) {
        for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
            if (sp__cpu_kernels((sp_cpu_isa)isa) == NULL) continue;
            const uint64_t hash = hash_of(&table[i], (sp_cpu_isa)isa);
            if (hash == table[i].hash) continue;
            test_note("%s (row %zu, %s): 0x%016llx", table[i].op, i,
                      sp__cpu_isa_name((sp_cpu_isa)isa), (unsigned long long)hash);
            CHECK_EQ_U64(hash, table[i].hash);
        }
    }
}

TEST(every_table_has_every_kernel)
{
    for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
        const sp_kernel *kernels = sp__cpu_kernels((sp_cpu_isa)isa);
        for (int i = 0; kernels != NULL && i < SP_KERNEL_COUNT; i++) {
            CHECK(kernels[i].run != NULL);
            CHECK_EQ_STR(kernels[i].name, sp__cpu_kernels(SP_CPU_PORTABLE)[i].name);
        }
    }
    CHECK(sp__cpu_kernels(SP_CPU_PORTABLE) != NULL);
    CHECK(sp__cpu_kernels(SP_CPU_ISA_COUNT) == NULL);
}

TEST_MAIN
