/* SPDX-License-Identifier: Apache-2.0 */
/* The inverse of packings: what comes back is the weight bit for bit, on every instruction set, and
 * copies that lack elements are refused. */
#include "ops/unpack.h"

#include <stdlib.h>
#include <string.h>

#include "base/fpenv.h"
#include "ops/cpu/arch/kernels.h"
#include "ops/lowering.h"
#include "ops/pack.h"
#include "support/model_data.h"
#include "support/test.h"

#define PANEL SP_GEMM_PANEL

static int64_t at_most(data_random *random, int64_t most)
{
    return 1 + (int64_t)(data_next(random) % (uint64_t)most);
}

/* Any bits: signalling NaNs and subnormals too. */
static uint32_t *random_words(data_random *random, int64_t count)
{
    uint32_t *words = malloc((size_t)count * sizeof *words);
    if (words == NULL) abort();
    for (int64_t i = 0; i < count; i++) {
        const uint64_t bits = data_next(random);
        words[i] = bits % 4 == 0 ? 0x7f800001u + (uint32_t)(bits >> 42) : (uint32_t)(bits >> 32);
    }
    return words;
}

/* Packs by each instruction set and unpacks. */
static void check_round_trip(data_random *random, sp_kernel_id kernel, const void *constants,
                             uint32_t constant_bytes, int64_t count, uint64_t copy_bytes)
{
    uint32_t *weight = random_words(random, count);
    uint32_t *back = malloc((size_t)count * sizeof *back);
    void *copy = malloc((size_t)copy_bytes);
    REQUIRE(back != NULL && copy != NULL);
    CHECK(sp__unpack_is_possible(kernel, constants, constant_bytes, (uint64_t)count));
    for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
        const sp_kernel *kernels = sp__cpu_kernels((sp_cpu_isa)isa);
        if (kernels == NULL) continue;
        memset(copy, 0x5a, (size_t)copy_bytes);
        memset(back, 0xa5, (size_t)count * sizeof *back);
        CHECK_OK(sp__kernel_run(&kernels[kernel], (void *[]){weight, copy}, constants));
        sp__unpack(kernel, constants, copy, back);
        CHECK_EQ_MEM(back, weight, (size_t)count * sizeof *back);
    }
    free(weight);
    free(back);
    free(copy);
}

/* ---- matrices ---- */

static sp_pack_constants random_matrix(data_random *random)
{
    sp_pack_constants k = {.depth = at_most(random, 150), .columns = at_most(random, 70)};
    const bool is_transposed = data_next(random) % 2 == 0;
    k.depth_stride = is_transposed ? 1 : k.columns;
    k.column_stride = is_transposed ? k.depth : 1;
    return k;
}

static bool is_possible(const sp_pack_constants *k, int64_t count)
{
    return sp__unpack_is_possible(SP_KERNEL_ID_gemm_pack_f32, k, sizeof *k, (uint64_t)count);
}

TEST(packed_matrices_come_back_bit_for_bit)
{
    const sp_fpenv before = sp_fpenv_enter();
    for (uint64_t seed = 1; seed <= test_count(2000, 200); seed++) {
        data_random random = {seed};
        const sp_pack_constants k = random_matrix(&random);
        check_round_trip(&random, SP_KERNEL_ID_gemm_pack_f32, &k, sizeof k, k.depth * k.columns,
                         sp__pack_bytes(SP_PACK_F32, k.depth, k.columns));
    }
    sp_fpenv_leave(before);
}

TEST(matrices_that_are_a_part_of_a_weight_are_refused)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        data_random random = {seed};
        sp_pack_constants k = random_matrix(&random);
        const int64_t count = k.depth * k.columns;
        CHECK(is_possible(&k, count));
        CHECK(!is_possible(&k, count + 1));
        CHECK(!is_possible(&k, count + k.depth));
        CHECK(!is_possible(&k, 2 * count));
        CHECK(!is_possible(&k, 0));
        if (k.columns > 1) CHECK(!is_possible(&k, count - k.depth));
    }
}

TEST(matrices_that_read_an_element_twice_or_leave_one_out_are_refused)
{
    const sp_pack_constants whole = {
        .depth = 6, .columns = 10, .depth_stride = 10, .column_stride = 1};
    CHECK(is_possible(&whole, 60));
    sp_pack_constants k = whole;
    k.depth_stride = 0;
    CHECK(!is_possible(&k, 60));
    k.depth_stride = 11;
    CHECK(!is_possible(&k, 60));
    k = whole;
    k.column_stride = 2;
    CHECK(!is_possible(&k, 60));
    k.depth_stride = k.column_stride = 1;
    CHECK(!is_possible(&k, 60));
    k = whole;
    k.block = 2; /* the kernel of this format has no blocks */
    k.block_stride = 20;
    CHECK(!is_possible(&k, 60));
    k = whole;
    k.is_half = 1;
    CHECK(!is_possible(&k, 60));
}

TEST(a_single_step_or_column_has_any_stride_of_its_own)
{
    const sp_pack_constants row = {
        .depth = 1, .columns = 40, .depth_stride = 7, .column_stride = 1};
    const sp_pack_constants column = {
        .depth = 40, .columns = 1, .depth_stride = 1, .column_stride = 3};
    data_random random = {5};
    check_round_trip(&random, SP_KERNEL_ID_gemm_pack_f32, &row, sizeof row, 40,
                     sp__pack_bytes(SP_PACK_F32, 1, 40));
    check_round_trip(&random, SP_KERNEL_ID_gemm_pack_f32, &column, sizeof column, 40,
                     sp__pack_bytes(SP_PACK_F32, 40, 1));
}

/* ---- lists of rows ---- */

enum { MOST_PANELS = 6 };

typedef struct row_list {
    sp_channels_pack_constants *k;
    uint32_t bytes;
    int64_t count; /* rows that a lane has */
} row_list;

/* Each lane has a row, which no other lane has, or none. */
static row_list random_rows(data_random *random)
{
    const int64_t panels = at_most(random, MOST_PANELS), lanes = panels * PANEL;
    row_list list = {.bytes = (uint32_t)(sizeof *list.k + (size_t)lanes * sizeof(int32_t))};
    list.k = calloc(1, list.bytes);
    if (list.k == NULL) abort();
    for (int64_t i = 0; i < lanes; i++) {
        const bool has_row = i == 0 || data_next(random) % 4 != 0;
        list.k->rows[i] = has_row ? (int32_t)list.count++ : -1;
    }
    for (int64_t i = lanes - 1; i > 0; i--) {
        const int64_t other = (int64_t)(data_next(random) % (uint64_t)(i + 1));
        const int32_t row = list.k->rows[i];
        list.k->rows[i] = list.k->rows[other];
        list.k->rows[other] = row;
    }
    list.k->panels = panels;
    list.k->depth = at_most(random, 60);
    const bool is_transposed = data_next(random) % 2 == 0;
    list.k->row_stride = is_transposed ? 1 : list.k->depth;
    list.k->depth_stride = is_transposed ? list.count : 1;
    return list;
}

static bool list_is_possible(const row_list *list)
{
    return sp__unpack_is_possible(SP_KERNEL_ID_channels_pack_f32, list->k, list->bytes,
                                  (uint64_t)(list->count * list->k->depth));
}

TEST(packed_lists_of_rows_come_back_bit_for_bit)
{
    const sp_fpenv before = sp_fpenv_enter();
    for (uint64_t seed = 1; seed <= test_count(2000, 200); seed++) {
        data_random random = {seed};
        const row_list list = random_rows(&random);
        const int64_t lanes = list.k->panels * PANEL;
        check_round_trip(&random, SP_KERNEL_ID_channels_pack_f32, list.k, list.bytes,
                         list.count * list.k->depth,
                         sp__pack_bytes(SP_PACK_F32, list.k->depth, lanes));
        free(list.k);
    }
    sp_fpenv_leave(before);
}

TEST(lists_that_have_a_row_twice_or_leave_one_out_are_refused)
{
    for (uint64_t seed = 1; seed <= 300; seed++) {
        data_random random = {seed};
        const row_list list = random_rows(&random);
        const int64_t lanes = list.k->panels * PANEL;
        const int64_t i = (int64_t)(data_next(&random) % (uint64_t)lanes);
        const int32_t row = list.k->rows[i];
        CHECK(list_is_possible(&list));
        if (row < 0) {
            list.k->rows[i] = (int32_t)(data_next(&random) % (uint64_t)list.count); /* twice */
            CHECK(!list_is_possible(&list));
        } else {
            list.k->rows[i] = -1; /* left out */
            CHECK(!list_is_possible(&list));
            list.k->rows[i] = (int32_t)list.count; /* one that there is not */
            CHECK(!list_is_possible(&list));
            list.k->rows[i] = row == 0 ? 1 : row - 1; /* another one twice */
            CHECK(!list_is_possible(&list));
        }
        free(list.k);
    }
}

/* ---- other copies ---- */

TEST(other_packings_have_no_inverse)
{
    const sp_pack_constants k = {.depth = 4, .columns = 4, .depth_stride = 4, .column_stride = 1};
    for (int kernel = 0; kernel < SP_KERNEL_COUNT; kernel++) {
        const bool is_of_panels = kernel == SP_KERNEL_ID_gemm_pack_f32;
        if (kernel == SP_KERNEL_ID_channels_pack_f32) continue;
        CHECK(sp__unpack_is_possible((sp_kernel_id)kernel, &k, sizeof k, 16) == is_of_panels);
    }
    CHECK(!sp__unpack_is_possible(SP_KERNEL_ID_gemm_pack_f32, NULL, 0, 16));
    CHECK(!sp__unpack_is_possible(SP_KERNEL_ID_channels_pack_f32, NULL, 0, 16));
}

TEST_MAIN
