/* SPDX-License-Identifier: Apache-2.0 */
/* Activations fused into other kernels: the bits are those of the op followed by the activation, on
 * every instruction set and for every number of rows. Random calls of all kinds are in
 * tests/cuda/test_kernel_cases.c. */
#include "ops/activation.h"

#include <math.h>
#include <string.h>

#include "base/fpenv.h"
#include "ops/lowering.h"
#include "support/model_data.h"
#include "support/test.h"

TEST(only_relu_sigmoid_tanh_and_a_gate_of_certain_numbers_are_activations)
{
    for (int i = 0; i < SP_KERNEL_COUNT; i++) {
        _Alignas(16) const unsigned char constants[SP_MAX_CONSTANT_BYTES] = {0};
        const char *name = sp__cpu_kernels(SP_CPU_PORTABLE)[i].name;
        sp_activation expected = SP_ACTIVATION_NONE;
        if (strcmp(name, "relu_f32") == 0) expected = SP_ACTIVATION_RELU;
        if (strcmp(name, "sigmoid_f32") == 0) expected = SP_ACTIVATION_SIGMOID;
        if (strcmp(name, "tanh_f32") == 0) expected = SP_ACTIVATION_TANH;
        CHECK_EQ_INT(sp__activation_of((sp_kernel_id)i, constants), expected);
    }
    const sp_gate_constants swish = {.addend = 3, .low = 0, .high = 6, .divisor = 6};
    sp_gate_constants others[5] = {swish, swish, swish, swish, swish};
    others[0].addend = 2.5f;
    others[1].low = -0.0f;
    others[2].high = 5;
    others[3].divisor = -6;
    others[4].low = NAN;
    const sp_kernel_id gate = SP_KERNEL_ID_clip_gate_f32;
    CHECK_EQ_INT(sp__activation_of(gate, &swish), SP_ACTIVATION_HARD_SWISH);
    for (size_t i = 0; i < SP_COUNT_OF(others); i++) {
        CHECK_EQ_INT(sp__activation_of(gate, &others[i]), SP_ACTIVATION_NONE);
    }
}

TEST(kernels_that_compute_floats_can_apply_one)
{
    static const char *const able[] = {"gemm_f32",
                                       "gemm_narrow_tf32",
                                       "gemm_narrow_f16",
                                       "gemm_narrow_bf16",
                                       "gemm_packed_tf32",
                                       "gemm_packed_f16",
                                       "gemm_packed_bf16",
                                       "conv_f32",
                                       "conv_depthwise_f32",
                                       "conv_narrow_tf32",
                                       "conv_narrow_f16",
                                       "conv_narrow_bf16",
                                       "conv_3d_f32",
                                       "conv_transpose_f32",
                                       "batch_norm_f32",
                                       "row_norm_f32",
                                       "add_f32",
                                       "sub_f32",
                                       "mul_f32",
                                       "div_f32"};
    for (int i = 0; i < SP_KERNEL_COUNT; i++) {
        _Alignas(16) unsigned char constants[SP_MAX_CONSTANT_BYTES] = {0};
        bool is_able = false;
        for (size_t k = 0; k < SP_COUNT_OF(able); k++) {
            is_able |= strcmp(able[k], sp__cpu_kernels(SP_CPU_PORTABLE)[i].name) == 0;
        }
        CHECK_EQ_INT(sp__activation_field((sp_kernel_id)i, constants) != NULL, is_able);
    }
}

/* ---- HardSwish of floats ---- */

enum { BATCH = 4096 };

/* All operations are rounded once. */
static float hard_swish_of(float x)
{
    const float sum = x + 3, above = sum < 0 ? 0 : sum;
    const float y = x * (above > 6 ? 6 : above) / 6;
    return y == y ? y : NAN;
}

/* Checks the floats whose bits are first, first + step, ... */
static bool check_floats(uint32_t first, uint32_t step, sp_cpu_isa isa)
{
    static float x[BATCH], want[BATCH], got[BATCH];
    for (uint32_t i = 0; i < BATCH; i++) {
        const uint32_t bits = first + i * step;
        memcpy(&x[i], &bits, sizeof bits);
    }
    for (uint32_t i = 0; i < BATCH; i++) want[i] = hard_swish_of(x[i]);
    const sp_gate_constants k = {.count = BATCH, .addend = 3, .low = 0, .high = 6, .divisor = 6};
    const sp_fpenv before = sp_fpenv_enter();
    CHECK_OK(
        sp__kernel_run(&sp__cpu_kernels(isa)[SP_KERNEL_ID_clip_gate_f32], (void *[]){x, got}, &k));
    sp_fpenv_leave(before);
    const void *const computed = got, *const expected = want;
    const bool is_same = memcmp(computed, expected, sizeof want) == 0;
    CHECK(is_same);
    if (!is_same) test_note("%s, from 0x%08x on", sp__cpu_isa_name(isa), first);
    return is_same;
}

/* In full all floats, else some hundredths of them, and all whose results are subnormal in steps of
 * a prime. */
TEST(hard_swish_has_the_bits_of_its_steps_for_all_floats)
{
    const uint64_t all = UINT64_C(1) << 32, count = test_count(all, all / 128);
    const uint32_t step = (uint32_t)(all / count) | 1; /* odd: each float once */
    const uint32_t subnormal = 0x01800000, fine = count == all ? 1 : 31;
    for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
        if (sp__cpu_kernels((sp_cpu_isa)isa) == NULL) continue;
        for (uint64_t i = 0; i < count; i += BATCH) {
            REQUIRE(check_floats((uint32_t)i * step, step, (sp_cpu_isa)isa));
        }
        for (uint32_t i = 0; fine > 1 && i < subnormal; i += BATCH * fine) {
            REQUIRE(check_floats(i, fine, (sp_cpu_isa)isa));
            REQUIRE(check_floats(i | 0x80000000u, fine, (sp_cpu_isa)isa));
        }
    }
}

/* ---- bits ---- */

static sp_status run_one(const char *op, const sp_array *inputs, uint32_t count, sp_cpu_isa isa,
                         sp_activation activation, sp_array *out)
{
    const data_call call = {.op = op,
                            .version = 13,
                            .inputs = inputs,
                            .input_count = count,
                            .output_count = 1,
                            .isa = isa,
                            .packs = strcmp(op, "Gemm") == 0,
                            .activation = activation};
    return data_run_op(&call, out);
}

/* x becomes x * clip(x + 3, 0, 6) / 6, each step by the op itself. */
static void apply_hard_swish(sp_array *x)
{
    static float three = 3, zero = 0, six = 6;
    const sp_array numbers[] = {{.dtype = SP_F32, .data = &three, .bytes = sizeof three},
                                {.dtype = SP_F32, .data = &zero, .bytes = sizeof zero},
                                {.dtype = SP_F32, .data = &six, .bytes = sizeof six}};
    const sp_activation none = SP_ACTIVATION_NONE;
    sp_array sum, part, product, y;
    REQUIRE_OK(run_one("Add", (sp_array[]){*x, numbers[0]}, 2, SP_CPU_PORTABLE, none, &sum));
    REQUIRE_OK(run_one("Clip", (sp_array[]){sum, numbers[1], numbers[2]}, 3, SP_CPU_PORTABLE, none,
                       &part));
    REQUIRE_OK(run_one("Mul", (sp_array[]){*x, part}, 2, SP_CPU_PORTABLE, none, &product));
    REQUIRE_OK(run_one("Div", (sp_array[]){product, numbers[2]}, 2, SP_CPU_PORTABLE, none, &y));
    data_free((sp_array[]){*x, sum, part, product}, 4);
    *x = y;
}

/* Applies the activation to x by separate ops on the portable kernels. */
static void apply_alone(sp_activation activation, sp_array *x)
{
    static const char *const ops[SP_ACTIVATION_COUNT] = {NULL, "Relu", "Sigmoid", "Tanh",
                                                         "Sigmoid"};
    if (activation == SP_ACTIVATION_HARD_SWISH) {
        apply_hard_swish(x);
        return;
    }
    sp_array both[2] = {*x}, y;
    REQUIRE_OK(run_one(ops[activation], both, 1, SP_CPU_PORTABLE, SP_ACTIVATION_NONE, &both[1]));
    y = both[1];
    if (activation == SP_ACTIVATION_SILU) {
        REQUIRE_OK(run_one("Mul", both, 2, SP_CPU_PORTABLE, SP_ACTIVATION_NONE, &y));
        sp__array_deinit(&both[1]);
    }
    sp__array_deinit(x);
    *x = y;
}

static void add_specials(sp_array *array)
{
    const uint32_t bits[] = {0x7fc00000, 0xffc12345, 0x7f800000, 0xff800000, 0x80000000,
                             0x00000001, 0x80000001, 0x007fffff, 0x7f7fffff, 0xff7fffff,
                             0x00000003, 0x80355555, 0xc0400000, 0xc03fffff, 0x40400000};
    float *to = array->data;
    for (size_t i = 0; i < SP_COUNT_OF(bits) && i * 7 < array->bytes / sizeof(float); i++) {
        memcpy(&to[i * 7], &bits[i], sizeof(bits[i]));
    }
}

static void check_op(const char *op, const sp_array *inputs, uint32_t count)
{
    for (int a = SP_ACTIVATION_RELU; a < SP_ACTIVATION_COUNT; a++) {
        sp_array want;
        REQUIRE_OK(run_one(op, inputs, count, SP_CPU_PORTABLE, SP_ACTIVATION_NONE, &want));
        apply_alone((sp_activation)a, &want);
        for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
            if (sp__cpu_kernels((sp_cpu_isa)isa) == NULL) continue;
            sp_array got;
            REQUIRE_OK(run_one(op, inputs, count, (sp_cpu_isa)isa, (sp_activation)a, &got));
            CHECK_EQ_MEM(got.data, want.data, (size_t)want.bytes);
            sp__array_deinit(&got);
        }
        sp__array_deinit(&want);
    }
}

TEST(a_product_of_1_to_64_rows_has_the_bits_of_product_and_activation)
{
    data_random random = {51};
    for (int64_t rows = 1; rows <= 64; rows++) {
        /* Columns that end inside, at and after a panel; with a depth of 0 the result is the
         * bias. */
        const int64_t columns = 1 + (rows * 37) % 150, depth = rows % 13;
        const sp_shape shapes[3] = {{.rank = 2, .dims = {rows, depth}},
                                    {.rank = 2, .dims = {depth, columns}},
                                    {.rank = 1, .dims = {columns}}};
        sp_array in[3];
        for (int i = 0; i < 3; i++) in[i] = data_floats(&random, &shapes[i]);
        add_specials(&in[2]);
        check_op("Gemm", in, 3);
        if (rows % 8 == 0) add_specials(&in[0]);
        check_op("MatMul", in, 2);
        for (int i = 0; i < 3; i++) sp__array_deinit(&in[i]);
    }
}

/* Pixels of the general kernel, rows of the depthwise one; with 0 channels the result is the
 * bias. */
TEST(convolutions_have_the_bits_of_convolution_and_activation)
{
    static const int64_t sizes[][4] = {{3, 5, 9, 11},  {1, 1, 7, 70}, {16, 33, 12, 12},
                                       {1, 2, 3, 200}, {0, 3, 6, 7},  {2, 6, 1, 33}};
    data_random random = {52};
    for (size_t i = 0; i < SP_COUNT_OF(sizes); i++) {
        const int64_t channels = sizes[i][0], filters = sizes[i][1];
        const sp_shape shapes[3] = {
            {.rank = 4, .dims = {2, channels, sizes[i][2], sizes[i][3]}},
            {.rank = 4, .dims = {filters, channels, 1, 1 + (int64_t)(i % 3)}},
            {.rank = 1, .dims = {filters}}};
        sp_array in[3];
        for (int k = 0; k < 3; k++) in[k] = data_floats(&random, &shapes[k]);
        if (i % 2 == 0) add_specials(&in[0]);
        check_op("Conv", in, 3);
        check_op("Conv", in, 2);
        for (int k = 0; k < 3; k++) sp__array_deinit(&in[k]);
    }
}

TEST(convolutions_of_volumes_and_transposed_ones_have_the_bits_of_both)
{
    data_random random = {54};
    const sp_shape shapes[3] = {{.rank = 5, .dims = {2, 3, 4, 5, 70}},
                                {.rank = 5, .dims = {3, 3, 2, 3, 2}},
                                {.rank = 1, .dims = {3}}};
    sp_array in[3];
    for (int k = 0; k < 3; k++) in[k] = data_floats(&random, &shapes[k]);
    add_specials(&in[0]);
    for (uint32_t count = 2; count <= 3; count++) {
        check_op("Conv", in, count);
        check_op("ConvTranspose", in, count);
    }
    for (int k = 0; k < 3; k++) sp__array_deinit(&in[k]);
}

TEST(elementwise_ops_have_the_bits_of_op_and_activation)
{
    static const char *const ops[] = {"Add", "Sub", "Mul", "Div"};
    data_random random = {53};
    const sp_shape long_row = {.rank = 1, .dims = {70001}}; /* more than one tile */
    const sp_shape square = {.rank = 2, .dims = {37, 41}}, row = {.rank = 1, .dims = {41}};
    for (size_t i = 0; i < SP_COUNT_OF(ops); i++) {
        sp_array in[4] = {data_floats(&random, &long_row), data_floats(&random, &long_row),
                          data_floats(&random, &square), data_floats(&random, &row)};
        for (int k = 0; k < 4; k++) add_specials(&in[k]);
        check_op(ops[i], in, 2);
        check_op(ops[i], in + 2, 2);
        for (int k = 0; k < 4; k++) sp__array_deinit(&in[k]);
    }
}

TEST_MAIN
