/* SPDX-License-Identifier: Apache-2.0 */
/* A row has the same bits alone and in any batch at any position: each op that treats rows
 * independently, on views of part of a scattered tensor, from many threads. */
#include <stdlib.h>
#include <string.h>

#include "runtime_fixture.h"
#include "support/eager_case.h"

enum { ROWS = 64, THREADS = 31 };

/* Inputs whose first dimension is 64 are batches, and so are all outputs. */
/* clang-format off */
static const eager_row uses[] = {
    {"Abs", 13, "f32[64,5]", "", 1},
    {"Acos", 7, "f32[64,9]", "", 1},
    {"Acosh", 9, "f32[64,9]", "", 1},
    {"Add", 14, "f32[64,3,7] f32[3,1]", "", 1},
    {"Add", 14, "f16[64,3] f16[64,3]", "", 1},
    {"ArgMax", 13, "f32[64,9]", "axis=1", 1},
    {"Asin", 7, "f32[64,9]", "", 1},
    {"Asinh", 9, "f32[64,9]", "", 1},
    {"Atan", 7, "f32[64,9]", "", 1},
    {"Atanh", 9, "f32[64,9]", "", 1},
    {"AveragePool", 11, "f32[64,2,6,6]", "kernel_shape=[3,3] pads=[1,1,1,1]", 1},
    {"BatchNormalization", 15, "f32[64,3,4] f32[3] f32[3] f32[3] f32=1,2,3", "", 1},
    {"Cast", 13, "f32[64,5]", "to=10", 1},
    {"Clip", 13, "f32[64,5] f32:-1 f32:1", "", 1},
    {"Concat", 13, "f32[64,3] f32[64,1]", "axis=1", 1},
    {"Conv", 11, "f32[64,3,5,6] f32[4,3,3,3] f32[4]", "pads=[1,1,1,1] strides=[2,1]", 1},
    {"Conv", 11, "f32[64,4,5,5] f32[4,1,3,3]", "group=4", 1},
    {"Conv", 11, "f32[64,2,9] f32[3,2,3]", "", 1},
    {"ConvTranspose", 11, "f32[64,2,3,3] f32[2,3,2,2]", "strides=[2,2]", 1},
    {"Cos", 7, "f32[64,9]", "", 1},
    {"Cosh", 9, "f32[64,9]", "", 1},
    {"CumSum", 14, "f32[64,9] i64:1", "", 1},
    {"Div", 14, "f32[64,3] f32[3]", "", 1},
    {"Einsum", 12, "f32[64,5,7] f32[7,9]", "equation='bij,jk->bki'", 1},
    {"Einsum", 12, "f32[64,5,7] f32[64,9,7]", "equation='bij,bkj->bik'", 1},
    {"Erf", 13, "f32[64,9]", "", 1},
    {"Exp", 13, "f64[64,9]", "", 1},
    {"Flatten", 13, "f32[64,2,3]", "", 1},
    {"GatherElements", 13, "f32[64,3] i64[64,2]", "axis=1", 1},
    {"Gelu", 20, "f32[64,9]", "", 1},
    {"Gemm", 13, "f32[64,19] f32[19,21] f32[21]", "", 1},
    {"Gemm", 13, "f32[64,33] f32[40,33]", "transB=1", 1},
    {"Gemm", 13, "f64[64,19] f64[19,21]", "", 1},
    {"GlobalAveragePool", 1, "f32[64,3,4,5]", "", 1},
    {"GridSample", 16, "f32[64,2,4,5] f32[64,3,3,2]", "", 1},
    {"GroupNormalization", 21, "f32[64,4,3] f32[4] f32[4]", "num_groups=2", 1},
    {"GRU", 14, "f32[64,3,4] f32[1,9,4] f32[1,9,3]", "hidden_size=3 layout=1", 1},
    {"InstanceNormalization", 6, "f32[64,3,5] f32[3] f32[3]", "", 1},
    {"LRN", 13, "f32[64,5,2,2]", "size=3", 1},
    {"LSTM", 14, "f32[64,3,4] f32[1,12,4] f32[1,12,3]", "hidden_size=3 layout=1", 1},
    {"LayerNormalization", 17, "f32[64,50] f32[50] f32[50]", "axis=-1", 1},
    {"LogSoftmax", 13, "f32[64,35]", "axis=1", 1},
    {"LpNormalization", 1, "f32[64,4]", "axis=1 p=2", 1},
    {"MatMul", 13, "f32[64,37] f32[37,20]", "", 1},
    {"MatMul", 13, "f32[64,5,7] f32[64,7,9]", "", 1},
    {"MatMul", 13, "f16[64,37] f16[37,20]", "", 1},
    {"Max", 13, "f32[64,3] f32[3] f32[64,1]", "", 1},
    {"MaxPool", 12, "f32[64,2,6,6]", "kernel_shape=[3,3] strides=[2,2]", 1},
    {"Mul", 14, "f32[64,3] f32[64,3]", "", 1},
    {"OneHot", 11, "i64[64] i64:4 f32=0,1", "", 1},
    {"PRelu", 16, "f32[64,3] f32[3]", "", 1},
    {"Pow", 15, "f32[64,3] f32=2,3,2", "", 1},
    {"RNN", 14, "f32[64,3,4] f32[1,3,4] f32[1,3,3]", "hidden_size=3 layout=1", 1},
    {"ReduceLogSumExp", 13, "f32[64,40]", "axes=[1]", 1},
    {"ReduceMax", 18, "f32[64,4,9] i64=1,2", "", 1},
    {"ReduceMean", 18, "f32[64,40] i64=1", "", 1},
    {"ReduceSum", 13, "f32[64,70] i64=1", "", 1},
    {"ReduceSum", 13, "f16[64,70] i64=1", "", 1},
    {"Relu", 14, "f32[64,3]", "", 1},
    {"Resize", 13, "f32[64,1,3,3] - f32=1,1,2,2", "mode='linear'", 1},
    {"Sigmoid", 13, "f32[64,5]", "", 1},
    {"Sin", 7, "f32[64,9]", "", 1},
    {"Sinh", 9, "f32[64,9]", "", 1},
    {"Slice", 13, "f32[64,6] i64=1 i64=5 i64=1 i64=2", "", 1},
    {"Softmax", 13, "f32[64,4,17]", "axis=-1", 1},
    {"Split", 13, "f32[64,6] i64=1,2,3", "axis=1", 3},
    {"Sub", 14, "f32[64,2,3] f32[64,2,3]", "", 1},
    {"Tan", 7, "f32[64,9]", "", 1},
    {"Tanh", 13, "f32[64,9]", "", 1},
    {"TopK", 11, "f32[64,6] i64=2", "axis=1", 2},
    {"Transpose", 13, "f32[64,3,4]", "perm=[0,2,1]", 1},
    {"Where", 16, "bool[64,3] f32[3] f32[64,1]", "", 1},
};
/* clang-format on */

#define USES (sizeof uses / sizeof uses[0])

typedef struct batch_use {
    eager_case c;
    sp_tensor tensors[CASE_OPERANDS]; /* scattered, of 64 rows where they are batches */
    sp_array alone[ROWS][3];          /* the result of each row alone */
} batch_use;

typedef struct batch_load {
    batch_use *all;
    uint64_t rounds;
    sp_atomic_u32 differing;
} batch_load;

/* The call on rows [start, start + count). */
static sp_status run_rows(const batch_use *use, int64_t start, int64_t count, sp_array *outputs)
{
    sp_tensor views[CASE_OPERANDS] = {0}, results[CASE_OPERANDS] = {0};
    sp_status status = SP_OK;
    for (uint32_t i = 0; i < use->c.operand_count && status == SP_OK; i++) {
        const sp_array *operand = use->c.operands[i];
        if (operand == NULL) continue;
        const bool is_batch = operand->shape.rank > 0 && operand->shape.dims[0] == ROWS;
        views[i] = use->tensors[i];
        status = is_batch ? sp_tensor_slice(use->tensors[i], 0, start, count, 1, &views[i])
                          : sp_tensor_retain(use->tensors[i]);
    }
    if (status == SP_OK) status = eager_case_call(&use->c, TESTED, views, results);
    for (uint32_t i = 0; i < use->c.output_count && status == SP_OK; i++) {
        status = array_from_tensor(results[i], &outputs[i]);
    }
    tensors_release(views, CASE_OPERANDS);
    tensors_release(results, CASE_OPERANDS);
    return status;
}

static bool is_as_alone(const batch_use *use, int64_t start, int64_t count, const sp_array *got)
{
    for (uint32_t k = 0; k < use->c.output_count; k++) {
        for (int64_t i = 0; i < count; i++) {
            const sp_array *alone = &use->alone[start + i][k];
            if (got[k].bytes != alone->bytes * (uint64_t)count) return false;
            const char *row = (const char *)got[k].data + (uint64_t)i * alone->bytes;
            if (memcmp(row, alone->data, (size_t)alone->bytes) != 0) return false;
        }
    }
    return true;
}

static void check_batch(batch_load *self, const batch_use *use, int64_t start, int64_t count)
{
    sp_array got[3] = {0};
    const sp_status status = run_rows(use, start, count, got);
    CHECK_OK(status);
    if (status != SP_OK || !is_as_alone(use, start, count, got)) {
        sp_fetch_add_relaxed(&self->differing, 1);
        test_note("%s: %d rows from %d on", use->c.op, (int)count, (int)start);
    }
    data_free(got, 3);
}

static void run_batches(void *arg, uint32_t index)
{
    batch_load *self = arg;
    data_random random = {.state = index + 1};
    for (uint64_t round = 0; round < self->rounds; round++) {
        const int64_t count = 1 + (int64_t)(data_next(&random) % ROWS);
        const int64_t start = (int64_t)(data_next(&random) % (uint64_t)(ROWS - count + 1));
        check_batch(self, &self->all[data_next(&random) % USES], start, count);
    }
}

TEST(a_row_in_a_batch_has_the_bits_of_the_row_alone)
{
    runtime_begin();
    batch_load load = {.all = calloc(USES, sizeof *load.all), .rounds = test_count(10000, 40)};
    REQUIRE(load.all != NULL);
    for (uint32_t i = 0; i < USES; i++) {
        batch_use *use = &load.all[i];
        eager_case_make(&uses[i], &use->c);
        CHECK_OK(eager_case_upload(&use->c, TESTED, true, use->tensors));
        for (int64_t row = 0; row < ROWS; row++) CHECK_OK(run_rows(use, row, 1, use->alone[row]));
        check_batch(&load, use, 0, ROWS);
    }
    test_threads(THREADS, run_batches, &load);
    CHECK_EQ_U64(sp_load_relaxed(&load.differing), 0);
    for (uint32_t i = 0; i < USES; i++) {
        for (int64_t row = 0; row < ROWS; row++) data_free(load.all[i].alone[row], 3);
        tensors_release(load.all[i].tensors, CASE_OPERANDS);
        eager_case_close(&load.all[i].c);
    }
    free(load.all);
    runtime_end();
}

TEST_MAIN
