/* SPDX-License-Identifier: Apache-2.0 */
/* Activations fused into other kernels: the bits are those of the op followed by the activation, on
 * every instruction set and for every number of rows. Random calls of all kinds are in
 * tests/cuda/test_kernel_cases.c. */
#include "ops/activation.h"

#include <string.h>

#include "support/model_data.h"
#include "support/test.h"

TEST(only_relu_sigmoid_and_tanh_are_activations)
{
    for (int i = 0; i < SP_KERNEL_COUNT; i++) {
        const char *name = sp__cpu_kernels(SP_CPU_PORTABLE)[i].name;
        sp_activation expected = SP_ACTIVATION_NONE;
        if (strcmp(name, "relu_f32") == 0) expected = SP_ACTIVATION_RELU;
        if (strcmp(name, "sigmoid_f32") == 0) expected = SP_ACTIVATION_SIGMOID;
        if (strcmp(name, "tanh_f32") == 0) expected = SP_ACTIVATION_TANH;
        CHECK_EQ_INT(sp__activation_of((sp_kernel_id)i), expected);
    }
}

TEST(kernels_that_compute_floats_can_apply_one)
{
    static const char *const able[] = {"gemm_f32",
                                       "conv_f32",
                                       "conv_depthwise_f32",
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

/* Applies the activation to x by separate ops on the portable kernels. */
static void apply_alone(sp_activation activation, sp_array *x)
{
    static const char *const ops[SP_ACTIVATION_COUNT] = {NULL, "Relu", "Sigmoid", "Tanh",
                                                         "Sigmoid"};
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
                             0x00000001, 0x80000001, 0x007fffff, 0x7f7fffff, 0xff7fffff};
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
