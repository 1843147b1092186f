/* SPDX-License-Identifier: Apache-2.0 */
/* Gemm and MatMul: compared with a sum in long double, with equal bits packed and not, on every
 * instruction set, and for every row in any batch. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "product_rule.h"
#include "support/model_data.h"
#include "support/test.h"

/* The bits are those of the rule itself. */
static float sum(const float *a, int64_t a_step, const float *b, int64_t b_step, int64_t depth)
{
    product_sum p = product_begin(1);
    for (int64_t k = 0; k < depth; k++) product_step(&p, a[k * a_step], b[k * b_step]);
    return product_end(&p);
}

typedef struct gemm_case {
    int64_t m, n, k;
    int64_t ta, tb;
    float alpha, beta;
    int c_rank; /* -1: no C; 0: scalar; 1: [n]; 2: [m, n]; 3: [m, 1] */
} gemm_case;

static sp_shape pair(int64_t a, int64_t b)
{
    return (sp_shape){.rank = 2, .dims = {a, b}};
}

static sp_shape c_shape(const gemm_case *g)
{
    switch (g->c_rank) {
    case 0:
        return (sp_shape){.rank = 0};
    case 1:
        return (sp_shape){.rank = 1, .dims = {g->n}};
    case 2:
        return pair(g->m, g->n);
    default:
        return pair(g->m, 1);
    }
}

/* By the rules for bits, in plain loops. */
static void expect(const gemm_case *g, const sp_array *in, float *out)
{
    const float *a = in[0].data, *b = in[1].data, *c = in[2].data;
    for (int64_t i = 0; i < g->m; i++) {
        for (int64_t j = 0; j < g->n; j++) {
            const float *row = g->ta ? a + i : a + i * g->k;
            const float *column = g->tb ? b + j * g->k : b + j;
            float y = sum(row, g->ta ? g->m : 1, column, g->tb ? 1 : g->n, g->k) * g->alpha;
            const int64_t at[4] = {0, j, i * g->n + j, i};
            if (g->c_rank >= 0) y += c[at[g->c_rank]] * g->beta;
            out[i * g->n + j] = y;
        }
    }
}

static void check_gemm(const gemm_case *g, data_random *random)
{
    const sp_shape shapes[3] = {g->ta ? pair(g->k, g->m) : pair(g->m, g->k),
                                g->tb ? pair(g->n, g->k) : pair(g->k, g->n), c_shape(g)};
    sp_array in[3];
    for (int i = 0; i < 3; i++) in[i] = data_floats(random, &shapes[i]);
    const sp_attribute attributes[] = {
        data_attribute_int("transA", &g->ta), data_attribute_int("transB", &g->tb),
        data_attribute_float("alpha", &g->alpha), data_attribute_float("beta", &g->beta)};
    float *want = calloc((size_t)(g->m * g->n) + 1, sizeof(float));
    expect(g, in, want);
    for (int run = 0; run < 2 * SP_CPU_ISA_COUNT; run++) {
        const data_call call = {.op = "Gemm",
                                .version = 13,
                                .attributes = attributes,
                                .attribute_count = 4,
                                .inputs = in,
                                .input_count = g->c_rank < 0 ? 2 : 3,
                                .output_count = 1,
                                .isa = (sp_cpu_isa)(run / 2),
                                .packs = run % 2 == 1};
        if (sp__cpu_kernels(call.isa) == NULL) continue;
        sp_array out;
        REQUIRE_OK(data_run_op(&call, &out));
        CHECK_EQ_MEM(out.data, want, (size_t)out.bytes);
        sp__array_deinit(&out);
    }
    free(want);
    for (int i = 0; i < 3; i++) sp__array_deinit(&in[i]);
}

TEST(gemm_gives_the_bits_of_the_rule_for_odd_sizes_and_every_variant)
{
    static const int64_t sizes[] = {1, 2, 3, 4, 5, 7, 15, 16, 17, 33, 64, 67};
    data_random random = {3};
    for (int i = 0; i < 400; i++) {
        const gemm_case g = {.m = sizes[data_next(&random) % SP_COUNT_OF(sizes)],
                             .n = sizes[data_next(&random) % SP_COUNT_OF(sizes)],
                             .k = (int64_t)(data_next(&random) % 70),
                             .ta = i & 1,
                             .tb = i >> 1 & 1,
                             .alpha = i & 4 ? 1.0f : 0.37f,
                             .beta = i & 8 ? 1.0f : -1.6f,
                             .c_rank = i % 5 - 1};
        check_gemm(&g, &random);
    }
}

TEST(gemm_of_many_tiles_gives_the_same_bits)
{
    data_random random = {4};
    const gemm_case wide = {.m = 9, .n = 1500, .k = 300, .alpha = 1, .beta = 1, .c_rank = 1};
    const gemm_case tall = {.m = 700, .n = 130, .k = 40, .tb = 1, .alpha = 1, .c_rank = -1};
    check_gemm(&wide, &random);
    check_gemm(&tall, &random);
}

TEST(long_sums_are_cut_into_segments)
{
    static const int64_t depths[] = {255, 256, 257, 511, 512, 513, 1030};
    static const int64_t columns[] = {1, 5, 16, 40, 70};
    data_random random = {6};
    for (size_t i = 0; i < SP_COUNT_OF(depths) * SP_COUNT_OF(columns); i++) {
        const gemm_case g = {.m = 1 + (int64_t)(i % 7),
                             .n = columns[i % SP_COUNT_OF(columns)],
                             .k = depths[i / SP_COUNT_OF(columns)],
                             .ta = i & 1,
                             .tb = i >> 1 & 1,
                             .alpha = i & 4 ? 1.0f : 0.37f,
                             .beta = 1.0f,
                             .c_rank = (int)(i % 5) - 1};
        check_gemm(&g, &random);
    }
}

static data_call matmul_on(int isa, const sp_array *in)
{
    return (data_call){.op = "MatMul",
                       .version = 13,
                       .inputs = in,
                       .input_count = 2,
                       .output_count = 1,
                       .isa = (sp_cpu_isa)isa};
}

/* Products that underflow, one below zero. */
TEST(no_sum_is_a_negative_zero)
{
    float tiny[] = {-1e-30f, 1e-30f};
    sp_array in[2] = {{.dtype = SP_F32, .shape = pair(1, 1), .data = &tiny[0], .bytes = 4},
                      {.dtype = SP_F32, .shape = pair(1, 1), .data = &tiny[1], .bytes = 4}};
    for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
        const data_call call = matmul_on(isa, in);
        if (sp__cpu_kernels(call.isa) == NULL) continue;
        sp_array out;
        REQUIRE_OK(data_run_op(&call, &out));
        const float zero = 0;
        CHECK_EQ_MEM(out.data, &zero, sizeof zero);
        sp__array_deinit(&out);
    }
}

TEST(a_nan_row_leaves_its_neighbours_alone_and_is_canonical)
{
    data_random random = {5};
    const sp_shape a = pair(9, 33), b = pair(33, 20);
    sp_array in[2] = {data_floats(&random, &a), data_floats(&random, &b)}, clean, dirty;
    for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
        const data_call call = matmul_on(isa, in);
        if (sp__cpu_kernels(call.isa) == NULL) continue;
        float *row = (float *)in[0].data + 4 * 33;
        const float before = row[7];
        REQUIRE_OK(data_run_op(&call, &clean));
        const uint32_t odd_nan = 0xffc12345u;
        memcpy(&row[7], &odd_nan, sizeof(odd_nan));
        REQUIRE_OK(data_run_op(&call, &dirty));
        row[7] = before;
        for (int64_t i = 0; i < 9; i++) {
            const uint32_t *got = (const uint32_t *)dirty.data + i * 20;
            if (i != 4) CHECK_EQ_MEM(got, (const uint32_t *)clean.data + i * 20, 80);
            for (int64_t j = 0; i == 4 && j < 20; j++) CHECK_EQ_INT(got[j], 0x7fc00000);
        }
        sp__array_deinit(&clean);
        sp__array_deinit(&dirty);
    }
    for (int i = 0; i < 2; i++) sp__array_deinit(&in[i]);
}

/* ---- MatMul ---- */

static void check_matmul(sp_shape a, sp_shape b, sp_shape want_shape, data_random *random)
{
    sp_array in[2] = {data_floats(random, &a), data_floats(random, &b)}, first = {0};
    for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
        const data_call call = {.op = "MatMul",
                                .version = 13,
                                .inputs = in,
                                .input_count = 2,
                                .output_count = 1,
                                .isa = (sp_cpu_isa)isa,
                                .packs = isa == 0 && b.rank == 2};
        if (sp__cpu_kernels(call.isa) == NULL) continue;
        sp_array out;
        REQUIRE_OK(data_run_op(&call, &out));
        REQUIRE(sp__shape_equal(&out.shape, &want_shape));
        if (isa == 0) {
            first = out;
            continue;
        }
        CHECK_EQ_MEM(out.data, first.data, (size_t)first.bytes);
        sp__array_deinit(&out);
    }
    /* Matrices of the operands, the batch walked by numpy's rule. */
    const int64_t m = a.rank > 1 ? a.dims[a.rank - 2] : 1, k = a.dims[a.rank - 1];
    const int64_t n = b.rank > 1 ? b.dims[b.rank - 1] : 1;
    sp_shape a_batch = a, b_batch = b, batch;
    a_batch.rank = a.rank > 2 ? a.rank - 2 : 0;
    b_batch.rank = b.rank > 2 ? b.rank - 2 : 0;
    REQUIRE_OK(sp__shape_broadcast(&a_batch, &b_batch, &batch));
    int64_t a_step[SP_MAX_RANK], b_step[SP_MAX_RANK];
    sp__shape_broadcast_strides(&a_batch, &batch, a_step);
    sp__shape_broadcast_strides(&b_batch, &batch, b_step);
    const float *got = first.data;
    if (got == NULL) return; /* reported above */
    for (uint64_t i = 0; i < sp__shape_count(&batch); i++) {
        int64_t rest = (int64_t)i, a_at = 0, b_at = 0;
        for (uint32_t d = batch.rank; d-- > 0; rest /= batch.dims[d]) {
            a_at += rest % batch.dims[d] * a_step[d];
            b_at += rest % batch.dims[d] * b_step[d];
        }
        for (int64_t r = 0; r < m; r++) {
            for (int64_t c = 0; c < n; c++) {
                const float *row = (const float *)in[0].data + (a_at * m + r) * k;
                const float *column = (const float *)in[1].data + b_at * k * n + c;
                CHECK(*got++ == sum(row, 1, column, n, k));
            }
        }
    }
    sp__array_deinit(&first);
    for (int i = 0; i < 2; i++) sp__array_deinit(&in[i]);
}

TEST(matmul_broadcasts_batches_and_takes_vectors)
{
    data_random random = {6};
    check_matmul(SHAPE(3, 5), SHAPE(5, 7), SHAPE(3, 7), &random);
    check_matmul(SHAPE(2, 3, 5), SHAPE(5, 7), SHAPE(2, 3, 7), &random);
    check_matmul(SHAPE(2, 1, 3, 5), SHAPE(4, 5, 17), SHAPE(2, 4, 3, 17), &random);
    check_matmul(SHAPE(4, 3, 5), SHAPE(2, 1, 5, 16), SHAPE(2, 4, 3, 16), &random);
    check_matmul(SHAPE(5), SHAPE(5, 7), SHAPE(7), &random);
    check_matmul(SHAPE(3, 5), SHAPE(5), SHAPE(3), &random);
    check_matmul(SHAPE(2, 3, 5), SHAPE(5), SHAPE(2, 3), &random);
    check_matmul(SHAPE(5), SHAPE(2, 5, 3), SHAPE(2, 3), &random);
    check_matmul(SHAPE(3, 0), SHAPE(0, 4), SHAPE(3, 4), &random);
    check_matmul(SHAPE(2, 0, 5), SHAPE(2, 5, 4), SHAPE(2, 0, 4), &random);
    check_matmul(SHAPE(0, 3, 5), SHAPE(1, 5, 4), SHAPE(0, 3, 4), &random);
}

static sp_status run_shapes(const char *op, sp_shape a, sp_shape b)
{
    data_random random = {1};
    sp_array in[2] = {data_floats(&random, &a), data_floats(&random, &b)}, out = {0};
    const data_call call = {
        .op = op, .version = 13, .inputs = in, .input_count = 2, .output_count = 1};
    const sp_status status = data_run_op(&call, &out);
    for (int i = 0; i < 2; i++) sp__array_deinit(&in[i]);
    sp__array_deinit(&out);
    return status;
}

TEST(shapes_that_do_not_fit_are_refused)
{
    CHECK_STATUS(run_shapes("MatMul", SHAPE(3, 5), SHAPE(4, 7)), SP_MISMATCH);
    CHECK_MESSAGE("[3,5] and [4,7]");
    CHECK_STATUS(run_shapes("MatMul", SHAPE(2, 3, 5), SHAPE(3, 5, 7)), SP_MISMATCH);
    CHECK_STATUS(run_shapes("MatMul", (sp_shape){0}, SHAPE(1)), SP_MISMATCH);
    CHECK_STATUS(run_shapes("Gemm", SHAPE(3, 5), SHAPE(4, 7)), SP_MISMATCH);
    CHECK_STATUS(run_shapes("Gemm", SHAPE(2, 3, 5), SHAPE(5, 7)), SP_MISMATCH);
}

TEST(wrong_types_are_refused_with_op_version_and_type)
{
    const sp_array in[2] = {data_ints((int64_t[]){1}, 1), data_ints((int64_t[]){1}, 1)};
    sp_array out;
    const data_call call = {
        .op = "Gemm", .version = 11, .inputs = in, .input_count = 2, .output_count = 1};
    CHECK_STATUS(data_run_op(&call, &out), SP_UNSUPPORTED);
    CHECK_MESSAGE("Gemm version 11 for type i64");
    for (int i = 0; i < 2; i++) sp_free(in[i].data);
}

TEST_MAIN
