/* SPDX-License-Identifier: Apache-2.0 */
/* Row i of a batch has the bits of the row alone, for every op of the family that has a batch axis,
 * for batches of 1 to 64, with every instruction set. */
#include <string.h>

#include "support/model_data.h"
#include "support/test.h"

enum { ROWS = 64, MAX_WEIGHTS = 4, MAX_ATTRIBUTES = 4 };

typedef struct row_case {
    const char *op;
    uint32_t version;
    sp_shape row; /* of the first input, without the batch axis, which comes first */
    struct {
        const char *name;
        int64_t values[6];
        uint32_t count; /* 0: one integer, not a list */
    } attributes[MAX_ATTRIBUTES];
    sp_shape weights[MAX_WEIGHTS]; /* further inputs, shared by all rows */
    uint32_t weight_count;
} row_case;

#define DIMS(...)                                                                                  \
    {                                                                                              \
        .rank = (uint32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), .dims = {          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

/* Rows split across tiles, and tiles with part of several rows; contiguous and not. */
/* clang-format off */
static const row_case cases[] = {
    {"ReduceSum", 11, DIMS(37), {{"axes", {1}, 1}}, {{0}}, 0},
    {"ReduceMean", 11, DIMS(2, 1500), {{"axes", {2}, 1}}, {{0}}, 0},
    {"ReduceL2", 11, DIMS(20, 70), {{"axes", {1}, 1}}, {{0}}, 0},
    {"ReduceLogSumExp", 11, DIMS(30, 33), {{"axes", {1, 2}, 2}}, {{0}}, 0},
    {"ReduceMax", 11, DIMS(3, 700), {{"axes", {1}, 1}}, {{0}}, 0},
    {"ReduceProd", 11, DIMS(2, 19), {{"axes", {1}, 1}, {"keepdims", {0}, 0}}, {{0}}, 0},
    {"ReduceSum", 11, DIMS(8197), {{"axes", {1}, 1}}, {{0}}, 0},
    {"ReduceL2", 11, DIMS(4099, 3), {{"axes", {1}, 1}}, {{0}}, 0},
    {"Softmax", 13, DIMS(37), {{0}}, {{0}}, 0},
    {"Softmax", 13, DIMS(13, 70), {{"axis", {1}, 0}}, {{0}}, 0},
    {"LogSoftmax", 13, DIMS(700), {{0}}, {{0}}, 0},
    {"LogSoftmax", 13, DIMS(4099), {{0}}, {{0}}, 0},
    {"Hardmax", 13, DIMS(21, 3), {{"axis", {1}, 0}}, {{0}}, 0},
    {"ArgMax", 13, DIMS(100, 7), {{"axis", {1}, 0}}, {{0}}, 0},
    {"LpNormalization", 1, DIMS(50), {{0}}, {{0}}, 0},
    {"LRN", 13, DIMS(9, 6, 7), {{"size", {5}, 0}}, {{0}}, 0},
    {"MeanVarianceNormalization", 13, DIMS(3, 8, 9), {{"axes", {2, 3}, 2}}, {{0}}, 0},
    {"BatchNormalization", 15, DIMS(6, 5, 7), {{0}}, {DIMS(6), DIMS(6), DIMS(6), DIMS(6)}, 4},
    {"BatchNormalization", 15, DIMS(70), {{0}}, {DIMS(70), DIMS(70), DIMS(70), DIMS(70)}, 4},
    {"LayerNormalization", 17, DIMS(9, 100), {{0}}, {DIMS(100), DIMS(100)}, 2},
    {"LayerNormalization", 17, DIMS(4099), {{0}}, {DIMS(4099), DIMS(4099)}, 2},
    {"InstanceNormalization", 6, DIMS(5, 8, 9), {{0}}, {DIMS(5), DIMS(5)}, 2},
    {"GroupNormalization", 21, DIMS(6, 8, 9), {{"num_groups", {3}, 0}}, {DIMS(6), DIMS(6)}, 2},
    {"AveragePool", 19, DIMS(4, 15, 16), {{"kernel_shape", {5, 4}, 2}, {"strides", {2, 1}, 2}, {"pads", {1, 0, 2, 3}, 4}}, {{0}}, 0},
    {"AveragePool", 19, DIMS(1, 66, 70), {{"kernel_shape", {65, 64}, 2}, {"strides", {2, 5}, 2}, {"pads", {1, 2, 0, 3}, 4}}, {{0}}, 0},
    {"MaxPool", 12, DIMS(4, 15, 16), {{"kernel_shape", {3, 3}, 2}, {"pads", {1, 1, 1, 1}, 4}}, {{0}}, 0},
    {"MaxPool", 12, DIMS(2, 5, 6, 70), {{"kernel_shape", {2, 3, 2}, 3}, {"strides", {1, 2, 1}, 3}}, {{0}}, 0},
    {"GlobalAveragePool", 1, DIMS(30, 7, 7), {{0}}, {{0}}, 0},
    {"GlobalMaxPool", 1, DIMS(3, 20, 25), {{0}}, {{0}}, 0},
    {"Conv", 11, DIMS(4, 5, 8, 9), {{"group", {2}, 0}, {"strides", {2, 1, 2}, 3}}, {DIMS(6, 2, 3, 2, 3), DIMS(6)}, 2},
    {"ConvTranspose", 11, DIMS(6, 9, 17), {{"group", {2}, 0}, {"strides", {2, 3}, 2}, {"pads", {1, 0, 2, 1}, 4}}, {DIMS(6, 4, 3, 4), DIMS(8)}, 2},
};
/* clang-format on */

/* Variances must not be negative. */
static sp_array positive_floats(data_random *random, const sp_shape *shape)
{
    sp_array a = data_floats(random, shape);
    for (uint64_t i = 0; i < a.bytes / sizeof(float); i++) ((float *)a.data)[i] += 1.25f;
    return a;
}

static uint32_t read_attributes(const row_case *c, sp_attribute out[MAX_ATTRIBUTES])
{
    uint32_t count = 0;
    for (; count < MAX_ATTRIBUTES && c->attributes[count].name != NULL; count++) {
        const char *name = c->attributes[count].name;
        const int64_t *values = c->attributes[count].values;
        const uint32_t n = c->attributes[count].count;
        out[count] =
            n == 0 ? data_attribute_int(name, values) : data_attribute_ints(name, values, n);
    }
    return count;
}

static void check_batches(const row_case *c, sp_cpu_isa isa)
{
    data_random random = {35};
    sp_shape batch = {.rank = c->row.rank + 1, .dims = {ROWS}};
    memcpy(batch.dims + 1, c->row.dims, c->row.rank * sizeof(int64_t));
    sp_attribute attributes[MAX_ATTRIBUTES];
    sp_array in[1 + MAX_WEIGHTS] = {data_floats(&random, &batch)}, all, some;
    for (uint32_t i = 0; i < c->weight_count; i++) {
        in[1 + i] = positive_floats(&random, &c->weights[i]);
    }
    const data_call call = {.op = c->op,
                            .version = c->version,
                            .attributes = attributes,
                            .attribute_count = read_attributes(c, attributes),
                            .inputs = in,
                            .input_count = 1 + c->weight_count,
                            .output_count = 1,
                            .isa = isa};
    REQUIRE_OK(data_run_op(&call, &all));
    float *rows = in[0].data;
    const uint64_t row_floats = in[0].bytes / sizeof(float) / ROWS;
    const size_t out_bytes = (size_t)all.bytes / ROWS;
    for (int64_t count = 1; count <= ROWS; count++) {
        const int64_t first = (int64_t)(data_next(&random) % (uint64_t)(ROWS - count + 1));
        in[0].shape.dims[0] = count;
        in[0].data = rows + (uint64_t)first * row_floats;
        in[0].bytes = (uint64_t)count * row_floats * sizeof(float);
        REQUIRE_OK(data_run_op(&call, &some));
        CHECK_EQ_U64(some.bytes, (uint64_t)count * out_bytes);
        CHECK_EQ_MEM(some.data, (char *)all.data + (size_t)first * out_bytes, (size_t)some.bytes);
        sp__array_deinit(&some);
    }
    in[0].data = rows;
    for (uint32_t i = 0; i <= c->weight_count; i++) sp__array_deinit(&in[i]);
    sp__array_deinit(&all);
}

TEST(row_i_of_a_batch_has_the_bits_of_the_row_alone)
{
    for (size_t i = 0; i < SP_COUNT_OF(cases); i++) {
        for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
            if (sp__cpu_kernels((sp_cpu_isa)isa) != NULL) check_batches(&cases[i], (sp_cpu_isa)isa);
        }
    }
}

TEST_MAIN
