/* SPDX-License-Identifier: Apache-2.0 */
/* Golden hashes: the bits of each kernel on fixed inputs, on every instruction set and with every
 * compiler. A changed hash breaks a guarantee to users. */
#include <math.h>
#include <string.h>

#include "base/fpenv.h"
#include "support/model_data.h"
#include "support/test.h"

enum { MAX_INPUTS = 5, MAX_ATTRIBUTES = 5 };

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

/* With an activation fused into the op's kernel. */
typedef struct golden_activated {
    sp_activation activation;
    golden golden;
} golden_activated;

#define DIMS(...)                                                                                  \
    {                                                                                              \
        .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dims = { __VA_ARGS__ }        \
    }

/* clang-format off */
static const golden table[] = {
    {"Gemm", 13, {DIMS(9, 77), DIMS(77, 43), DIMS(43)}, 3, {{0}}, 0xe048e75301bc8bd8},
    {"Gemm", 13, {DIMS(50, 300), DIMS(129, 300)}, 2, {{"transB", {1}, 0}}, 0x548b10e607c7514f},
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
    {"ReduceSum", 11, {DIMS(5, 1003)}, 1, {{"axes", {1}, 1}}, 0x456fff95f3d20a65},
    {"ReduceSum", 11, {DIMS(3, 100, 77)}, 1, {{"axes", {1}, 1}}, 0xb564e2768c6014d2},
    {"ReduceSum", 11, {DIMS(3, 10007)}, 1, {{"axes", {1}, 1}}, 0xae974591aa1d36fa},
    {"ReduceMean", 11, {DIMS(3, 5, 7, 11)}, 1, {{"axes", {0, 2}, 2}}, 0xbdcfc56f2fb933ff},
    {"ReduceMax", 11, {DIMS(4, 133)}, 1, {{"axes", {1}, 1}}, 0xe97053fbf2c678b4},
    {"ReduceMin", 11, {DIMS(133, 20)}, 1, {{"axes", {0}, 1}}, 0x2cf91bf787838138},
    {"ReduceProd", 11, {DIMS(40, 19)}, 1, {{"axes", {1}, 1}}, 0x42fea02ed34fddab},
    {"ReduceL1", 11, {DIMS(5, 203)}, 1, {{"axes", {1}, 1}}, 0x8664c94ccfca155f},
    {"ReduceL2", 11, {DIMS(5, 203)}, 1, {{"axes", {0}, 1}}, 0x1114fd175a04fe60},
    {"ReduceLogSumExp", 11, {DIMS(9, 77)}, 1, {{"axes", {1}, 1}}, 0xead62cb17c6e7cc7},
    {"ReduceSumSquare", 11, {DIMS(9, 77)}, 1, {{"axes", {1}, 1}}, 0x5f0fa9f83cbf5b29},
    {"Softmax", 13, {DIMS(7, 131)}, 1, {{"axis", {1}, 0}}, 0xd04cf8fa6aaa8a07},
    {"Softmax", 13, {DIMS(3, 21, 70)}, 1, {{"axis", {1}, 0}}, 0x10cf6f2f345dc53b},
    {"Softmax", 13, {DIMS(5003, 5)}, 1, {{"axis", {0}, 0}}, 0xfb9375068d538a5a},
    {"LogSoftmax", 11, {DIMS(5, 6, 7)}, 1, {{"axis", {1}, 0}}, 0x694e7666cd51e0b5},
    {"BatchNormalization", 15, {DIMS(2, 9, 5, 5), DIMS(9), DIMS(9), DIMS(9), DIMS(9)}, 5, {{0}}, 0x0c2017c126cfd06c},
    {"LayerNormalization", 17, {DIMS(6, 100), DIMS(100), DIMS(100)}, 3, {{0}}, 0xed4318a21ec7679e},
    {"AveragePool", 19, {DIMS(2, 3, 15, 16)}, 1,
     {{"kernel_shape", {5, 4}, 2}, {"strides", {2, 1}, 2}, {"pads", {1, 0, 2, 3}, 4}, {"ceil_mode", {1}, 0}}, 0xcd1ad76af462b195},
    {"AveragePool", 19, {DIMS(1, 2, 80, 70)}, 1,
     {{"kernel_shape", {70, 65}, 2}, {"strides", {2, 1}, 2}, {"pads", {3, 4, 2, 1}, 4}}, 0x91cb1a8e1c30ea9c},
    {"GlobalAveragePool", 1, {DIMS(2, 30, 7, 7)}, 1, {{0}}, 0xe699a4aebabb69ad},
    {"MaxPool", 12, {DIMS(2, 3, 7, 8, 9)}, 1, {{"kernel_shape", {2, 3, 2}, 3}, {"strides", {1, 2, 2}, 3}}, 0x5ef6d52d6395e734},
    {"Conv", 11, {DIMS(2, 4, 7, 8, 9), DIMS(6, 2, 3, 2, 3), DIMS(6)}, 3,
     {{"group", {2}, 0}, {"strides", {2, 1, 2}, 3}, {"dilations", {1, 2, 1}, 3}}, 0x7acebc43ad88cd4e},
    {"ConvTranspose", 11, {DIMS(2, 6, 9, 17), DIMS(6, 4, 3, 4), DIMS(8)}, 3,
     {{"group", {2}, 0}, {"strides", {2, 3}, 2}, {"pads", {1, 0, 2, 1}, 4}, {"dilations", {1, 2}, 2}}, 0xa61c8a44e8c02f53},
    {"ArgMax", 13, {DIMS(9, 77, 3)}, 1, {{"axis", {1}, 0}}, 0xb98418d728e7961d},
    {"Hardmax", 13, {DIMS(9, 77)}, 1, {{0}}, 0xadc6d060e55dc9e8},
    {"LpNormalization", 1, {DIMS(9, 77)}, 1, {{0}}, 0xa92b020f7b3c9000},
    {"LRN", 13, {DIMS(2, 9, 5, 7)}, 1, {{"size", {5}, 0}}, 0x996b705aeb8a800e},
    {"MeanVarianceNormalization", 13, {DIMS(3, 5, 6, 7)}, 1, {{0}}, 0xbbdb02c7ef699151},
    {"InstanceNormalization", 6, {DIMS(2, 9, 5, 5), DIMS(9), DIMS(9)}, 3, {{0}}, 0xe55519755b135b62},
    {"GroupNormalization", 21, {DIMS(2, 9, 5, 5), DIMS(9), DIMS(9)}, 3, {{"num_groups", {3}, 0}}, 0x0ec09058ff8eab29},
};

static const golden_activated activated_table[] = {
    {SP_ACTIVATION_RELU, {"Gemm", 13, {DIMS(9, 77), DIMS(77, 43), DIMS(43)}, 3, {{0}}, 0x8a17dc95d80d56ad}},
    {SP_ACTIVATION_SIGMOID, {"Gemm", 13, {DIMS(9, 77), DIMS(77, 43), DIMS(43)}, 3, {{0}}, 0x1672b50dcfca6a65}},
    {SP_ACTIVATION_TANH, {"Gemm", 13, {DIMS(9, 77), DIMS(77, 43), DIMS(43)}, 3, {{0}}, 0xd632efe038ecde6f}},
    {SP_ACTIVATION_SILU, {"Gemm", 13, {DIMS(9, 77), DIMS(77, 43), DIMS(43)}, 3, {{0}}, 0x86f105529bb24eac}},
    {SP_ACTIVATION_SILU, {"Conv", 11, {DIMS(1, 40, 12, 12), DIMS(33, 40, 1, 1)}, 2, {{0}}, 0xb1a1b7dfb6118f36}},
    {SP_ACTIVATION_TANH, {"Conv", 11, {DIMS(2, 5, 70), DIMS(5, 1, 3)}, 2, {{"group", {5}, 0}, {"pads", {1, 1}, 2}}, 0x772dfe631209465f}},
    {SP_ACTIVATION_SILU, {"Conv", 11, {DIMS(2, 3, 4, 5, 9), DIMS(7, 3, 2, 3, 2), DIMS(7)}, 3, {{0}}, 0x343e57131d80c101}},
    {SP_ACTIVATION_SIGMOID, {"ConvTranspose", 11, {DIMS(2, 3, 5, 9), DIMS(3, 7, 2, 3), DIMS(7)}, 3, {{"strides", {2, 2}, 2}}, 0x5b8249a2a27c9dbb}},
    {SP_ACTIVATION_HARD_SWISH, {"Gemm", 13, {DIMS(9, 77), DIMS(77, 43), DIMS(43)}, 3, {{0}}, 0x0f34d5968fe88622}},
    {SP_ACTIVATION_HARD_SWISH, {"Conv", 11, {DIMS(1, 40, 12, 12), DIMS(33, 40, 1, 1)}, 2, {{0}}, 0x5da50fb99db8c4b1}},
    {SP_ACTIVATION_RELU, {"Add", 14, {DIMS(4, 33), DIMS(33)}, 2, {{0}}, 0x3d8000dd03ac56e7}},
};
/* clang-format on */

static uint64_t hash_of(const golden *g, sp_activation activation, sp_cpu_isa isa)
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
                            .isa = isa,
                            .activation = activation};
    CHECK_OK(data_run_op(&call, &out));
    const uint64_t hash = data_hash(out.data, (size_t)out.bytes);
    for (uint32_t i = 0; i < g->input_count; i++) sp__array_deinit(&inputs[i]);
    sp__array_deinit(&out);
    return hash;
}

/* Ops on integers, with an operand of given numbers, with text, with several outputs. */
typedef struct golden_typed {
    const char *op;
    uint32_t version;
    sp_dtype dtype; /* of the inputs that have a shape: f32, i32 or i64 */
    sp_shape inputs[2];
    uint32_t input_count;
    int64_t values[8]; /* one more input, if there are values */
    uint32_t value_count;
    const char *mode; /* optional attributes */
    const char *number_name;
    int64_t number;
    const int64_t *fill; /* the attribute "value", one i64 */
    uint32_t output_count;
    uint64_t hash; /* over all outputs */
} golden_typed;

static const int64_t minus_seven = -7;

/* clang-format off */
static const golden_typed typed_table[] = {
    {.op = "Add", .version = 14, .dtype = SP_I64, .inputs = {DIMS(37, 29), DIMS(29)}, .input_count = 2, .output_count = 1, .hash = 0x597c3020635760aa},
    {.op = "Sub", .version = 14, .dtype = SP_I64, .inputs = {DIMS(37, 29), DIMS(37, 1)}, .input_count = 2, .output_count = 1, .hash = 0x307690806df9bd19},
    {.op = "Mul", .version = 14, .dtype = SP_I64, .inputs = {DIMS(1003), DIMS(1003)}, .input_count = 2, .output_count = 1, .hash = 0x5ede6d9e10eb7836},
    {.op = "Div", .version = 14, .dtype = SP_I64, .inputs = {DIMS(1003), DIMS(1003)}, .input_count = 2, .output_count = 1, .hash = 0x90dd44e179a179c2},
    {.op = "Add", .version = 14, .dtype = SP_I32, .inputs = {DIMS(37, 29), DIMS(29)}, .input_count = 2, .output_count = 1, .hash = 0x8301aee70387121a},
    {.op = "Sub", .version = 14, .dtype = SP_I32, .inputs = {DIMS(37, 29), DIMS(37, 1)}, .input_count = 2, .output_count = 1, .hash = 0x51aeee16bfb6c895},
    {.op = "Mul", .version = 14, .dtype = SP_I32, .inputs = {DIMS(1003), DIMS(1003)}, .input_count = 2, .output_count = 1, .hash = 0x08e9f69118339659},
    {.op = "Div", .version = 14, .dtype = SP_I32, .inputs = {DIMS(1003), DIMS(1003)}, .input_count = 2, .output_count = 1, .hash = 0x12893d92273864ae},
    {.op = "Transpose", .version = 13, .dtype = SP_I64, .inputs = {DIMS(7, 5, 6)}, .input_count = 1, .output_count = 1, .hash = 0x0195299d00bf0db0},
    {.op = "Pad", .version = 13, .dtype = SP_F32, .inputs = {DIMS(5, 6, 7)}, .input_count = 1,
     .values = {1, 0, 3, 2, -1, 0}, .value_count = 6, .mode = "constant", .output_count = 1, .hash = 0x731563508f8034da},
    {.op = "Pad", .version = 13, .dtype = SP_F32, .inputs = {DIMS(5, 6, 7)}, .input_count = 1,
     .values = {1, 0, 3, 2, 4, 0}, .value_count = 6, .mode = "reflect", .output_count = 1, .hash = 0x1367ff250cfd485e},
    {.op = "Pad", .version = 13, .dtype = SP_I64, .inputs = {DIMS(5, 6)}, .input_count = 1,
     .values = {9, 0, 3, 12}, .value_count = 4, .mode = "edge", .output_count = 1, .hash = 0xa58f00e3608efdb4},
    {.op = "Split", .version = 13, .dtype = SP_F32, .inputs = {DIMS(9, 11)}, .input_count = 1,
     .values = {2, 5, 4}, .value_count = 3, .number_name = "axis", .number = 1, .output_count = 3, .hash = 0x9c22fa56d9b6c89d},
    {.op = "Split", .version = 18, .dtype = SP_I64, .inputs = {DIMS(10, 4)}, .input_count = 1,
     .number_name = "num_outputs", .number = 4, .output_count = 4, .hash = 0xca7d490045cdbd24},
    {.op = "CumSum", .version = 14, .dtype = SP_F32, .inputs = {DIMS(5, 60, 7)}, .input_count = 1,
     .values = {1}, .value_count = 1, .number_name = "reverse", .number = 1, .output_count = 1, .hash = 0x23a205c56adaa67d},
    {.op = "ReduceSum", .version = 13, .dtype = SP_I64, .inputs = {DIMS(9, 60, 7)}, .input_count = 1,
     .values = {1, 2}, .value_count = 2, .output_count = 1, .hash = 0x5849b55a646da09d},
    {.op = "ReduceMax", .version = 18, .dtype = SP_I32, .inputs = {DIMS(9, 60, 7)}, .input_count = 1,
     .values = {0}, .value_count = 1, .output_count = 1, .hash = 0x8457036c33dd6231},
    {.op = "ConstantOfShape", .version = 9, .values = {3, 5}, .value_count = 2, .output_count = 1, .hash = 0xf87b38c6cf34ac55},
    {.op = "ConstantOfShape", .version = 9, .values = {1000}, .value_count = 1, .fill = &minus_seven, .output_count = 1, .hash = 0x4fd3ae3e0ce489e5},
};
/* clang-format on */

/* Numbers of all magnitudes, including 0, -1 and the minimum. */
static sp_array integers(data_random *random, sp_dtype dtype, const sp_shape *shape)
{
    sp_array array = {0};
    CHECK_OK(sp__array_init(&array, dtype, shape));
    const uint64_t count = sp__shape_count(shape);
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t bits = data_next(random);
        const int64_t value = (int64_t)bits >> data_next(random) % 64;
        if (dtype == SP_I64) ((int64_t *)array.data)[i] = i == 0 ? INT64_MIN : value;
        else ((int32_t *)array.data)[i] = i == 0 ? INT32_MIN : (int32_t)value;
    }
    return array;
}

static uint32_t typed_inputs(const golden_typed *g, sp_array inputs[3])
{
    data_random random = {77};
    uint32_t count = 0;
    for (; count < g->input_count; count++) {
        const sp_shape *shape = &g->inputs[count];
        inputs[count] =
            g->dtype == SP_F32 ? data_floats(&random, shape) : integers(&random, g->dtype, shape);
    }
    if (g->value_count > 0) inputs[count++] = data_ints(g->values, g->value_count);
    return count;
}

static uint64_t hash_of_typed(const golden_typed *g, sp_cpu_isa isa)
{
    sp_array inputs[3], outputs[4] = {0};
    sp_attribute attributes[3];
    uint32_t count = 0;
    const sp_text mode = sp__text(g->mode != NULL ? g->mode : "");
    const sp_array_view fill = {
        .dtype = SP_I64, .shape = {.rank = 1, .dims = {1}}, .data = g->fill};
    if (g->mode != NULL) attributes[count++] = data_attribute_text("mode", &mode);
    if (g->number_name != NULL) {
        attributes[count++] = data_attribute_int(g->number_name, &g->number);
    }
    if (g->fill != NULL) {
        attributes[count] =
            (sp_attribute){.name = sp__text("value"), .type = SP_ATTRIBUTE_TENSOR, .count = 1};
        attributes[count++].as.tensors = &fill;
    }
    const uint32_t input_count = typed_inputs(g, inputs);
    const data_call call = {.op = g->op,
                            .version = g->version,
                            .attributes = attributes,
                            .attribute_count = count,
                            .inputs = inputs,
                            .input_count = input_count,
                            .output_count = g->output_count,
                            .isa = isa};
    CHECK_OK(data_run_op(&call, outputs));
    uint64_t hash = 0;
    for (uint32_t i = 0; i < g->output_count; i++) {
        hash = hash * 0x100000001b3u ^ data_hash(outputs[i].data, (size_t)outputs[i].bytes);
        sp__array_deinit(&outputs[i]);
    }
    for (uint32_t i = 0; i < input_count; i++) sp__array_deinit(&inputs[i]);
    return hash;
}

TEST(every_kernel_of_integers_and_of_moves_has_its_golden_bits_on_every_isa)
{
    for (size_t i = 0; i < SP_COUNT_OF(typed_table); i++) {
        for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
            if (sp__cpu_kernels((sp_cpu_isa)isa) == NULL) continue;
            const uint64_t hash = hash_of_typed(&typed_table[i], (sp_cpu_isa)isa);
            if (hash == typed_table[i].hash) continue;
            test_note("%s (row %zu, %s): 0x%016llx", typed_table[i].op, i,
                      sp__cpu_isa_name((sp_cpu_isa)isa), (unsigned long long)hash);
            CHECK_EQ_U64(hash, typed_table[i].hash);
        }
    }
}

/* CTest runs this program once for each instruction set. */
TEST(the_instruction_set_that_was_asked_for_is_selected)
{
    const sp_cpu_isa asked = data_asked_isa();
    if (asked == SP_CPU_ISA_COUNT) SKIP("STREAMPOOL_ISA names none that is there");
    CHECK_EQ_STR(sp__cpu_isa_name(sp__cpu_isa_selected()), sp__cpu_isa_name(asked));
}

static void check_golden(const golden *g, sp_activation activation, size_t row)
{
    for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
        if (sp__cpu_kernels((sp_cpu_isa)isa) == NULL) continue;
        const uint64_t hash = hash_of(g, activation, (sp_cpu_isa)isa);
        if (hash == g->hash) continue;
        test_note("%s (row %zu, %s): 0x%016llx", g->op, row, sp__cpu_isa_name((sp_cpu_isa)isa),
                  (unsigned long long)hash);
        CHECK_EQ_U64(hash, g->hash);
    }
}

TEST(every_kernel_has_its_golden_bits_on_every_isa)
{
    for (size_t i = 0; i < SP_COUNT_OF(table); i++) {
        check_golden(&table[i], SP_ACTIVATION_NONE, i);
    }
}

TEST(kernels_that_apply_an_activation_have_their_golden_bits_on_every_isa)
{
    for (size_t i = 0; i < SP_COUNT_OF(activated_table); i++) {
        check_golden(&activated_table[i].golden, activated_table[i].activation, i);
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
