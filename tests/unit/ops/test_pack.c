/* SPDX-License-Identifier: Apache-2.0 */
/* Packed matrices: every element of every format is where the list of formats says, on every
 * instruction set, and what the matrix does not have is zeros. */
#include <stdlib.h>
#include <string.h>

#include "base/fpenv.h"
#include "ops/cpu/arch/half.h"
#include "ops/cpu/arch/kernels.h"
#include "ops/lowering.h"
#include "ops/pack.h"
#include "support/model_data.h"
#include "support/test.h"

/* A row of SP_PACK_FORMAT_LIST. */
typedef struct format_row {
    sp_pack_format format;
    size_t element_bytes;
    int64_t width, padding, group;
} format_row;

static const format_row rows[] = {
#define FORMAT_ROW(name, bytes, width, padding, group)                                             \
    {SP_PACK_##name, bytes, width, padding, group},
    SP_PACK_FORMAT_LIST(FORMAT_ROW)
#undef FORMAT_ROW
};

static uint32_t bits_of(sp_pack_format format, float x)
{
    switch (format) {
    case SP_PACK_F16:
        return sp_f16_of_float(x);
    case SP_PACK_BF16:
        return sp_bf16_of_float(x);
    case SP_PACK_TF32:
        return sp_tf32_bits_of_float(x);
    default:
        return sp_float_bits(x);
    }
}

static int64_t at_most(data_random *random, int64_t most)
{
    return 1 + (int64_t)(data_next(random) % (uint64_t)most);
}

static int64_t whole(int64_t count, int64_t of)
{
    return (count + of - 1) / of * of;
}

/* The matrix, of which step k of column n is k * columns + n + 1; its elements are as the constants
 * say. */
static float *matrix_of(const sp_pack_constants *k)
{
    float *b = calloc((size_t)(k->depth * k->columns), sizeof *b);
    if (b == NULL) abort();
    for (int64_t d = 0; d < k->depth; d++) {
        const int64_t step = k->block == 0
                                 ? d * k->depth_stride
                                 : d / k->block * k->block_stride + d % k->block * k->depth_stride;
        for (int64_t n = 0; n < k->columns; n++) {
            b[step + n * k->column_stride] = (float)(d * k->columns + n + 1);
        }
    }
    return b;
}

/* The copy that the formula gives. A table has a row of zeros more, for other indices. */
static void *copy_of(const format_row *row, const sp_pack_constants *k, size_t *bytes)
{
    const int64_t depth = k->depth + (row->format == SP_PACK_ROWS_F32 ? 1 : 0);
    const int64_t width = row->width > 0 ? row->width : whole(k->columns, row->padding);
    const int64_t groups = whole(depth, row->group) / row->group;
    *bytes = (size_t)(whole(k->columns, width) * groups * row->group) * row->element_bytes;
    unsigned char *copy = calloc(1, *bytes);
    if (copy == NULL) abort();
    for (int64_t d = 0; d < k->depth; d++) {
        for (int64_t n = 0; n < k->columns; n++) {
            const int64_t line = (n / width * groups + d / row->group) * width + n % width;
            const int64_t part = 16 / (int64_t)row->element_bytes; /* elements */
            const int64_t turn = row->group > 1 ? n % SP_NARROW_LINES * part : 0;
            const size_t at = (size_t)(line * row->group + (d % row->group ^ turn));
            const uint32_t bits = bits_of(row->format, (float)(d * k->columns + n + 1));
            memcpy(copy + at * row->element_bytes, &bits, row->element_bytes);
        }
    }
    return copy;
}

static sp_pack_constants random_matrix(data_random *random, const format_row *row)
{
    sp_pack_constants k = {.depth = at_most(random, 150), .columns = at_most(random, 40)};
    if (data_next(random) % 2 == 0) {
        k.depth_stride = k.columns;
        k.column_stride = 1;
    } else {
        k.depth_stride = 1;
        k.column_stride = k.depth;
    }
    const bool is_narrow = row->group > 1;
    if (!is_narrow || data_next(random) % 2 == 0) return k;
    /* Filters, [channel][tap], whose steps are tap by tap. */
    const int64_t taps = at_most(random, 9);
    k.block = at_most(random, 16);
    k.depth = k.block * taps;
    k.depth_stride = taps;
    k.block_stride = 1;
    k.column_stride = k.depth;
    return k;
}

static void check(const format_row *row, uint64_t seed)
{
    data_random random = {seed};
    size_t bytes;
    const sp_pack_constants k = random_matrix(&random, row);
    float *b = matrix_of(&k);
    void *want = copy_of(row, &k, &bytes), *got = malloc(bytes);
    REQUIRE(got != NULL);
    const int64_t depth = k.depth + (row->format == SP_PACK_ROWS_F32 ? 1 : 0);
    CHECK_EQ_U64(sp__pack_bytes(row->format, depth, k.columns), bytes);
    for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
        const sp_kernel *kernels = sp__cpu_kernels((sp_cpu_isa)isa);
        if (kernels == NULL) continue;
        memset(got, 0x5a, bytes);
        CHECK_OK(sp__kernel_run(&kernels[sp__pack_kernel(row->format)], (void *[]){b, got}, &k));
        CHECK_EQ_MEM(got, want, bytes);
    }
    free(b);
    free(want);
    free(got);
}

TEST(each_element_is_where_the_format_says)
{
    const sp_fpenv before = sp_fpenv_enter();
    for (size_t i = 0; i < SP_COUNT_OF(rows); i++) {
        for (uint64_t seed = 1; seed <= test_count(2000, 100); seed++) check(&rows[i], seed);
    }
    sp_fpenv_leave(before);
}

/* The same rows in other lanes: a list of rows is a matrix with the columns of the lanes. */
TEST(lists_of_rows_are_packed_in_the_same_format)
{
    enum { DEPTH = 5, LANES = 32, ROWS = 20 };
    union {
        sp_channels_pack_constants k;
        unsigned char room[sizeof(sp_channels_pack_constants) + LANES * sizeof(int32_t)];
    } of = {.k = {.depth = DEPTH,
                  .panels = LANES / SP_GEMM_PANEL,
                  .row_stride = DEPTH,
                  .depth_stride = 1}};
    const sp_pack_constants matrix = {
        .depth = DEPTH, .columns = LANES, .depth_stride = 1, .column_stride = DEPTH};
    float list[ROWS * DEPTH], lanes[LANES * DEPTH] = {0};
    float want[LANES * DEPTH], got[LANES * DEPTH];
    for (int i = 0; i < ROWS * DEPTH; i++) list[i] = (float)(i + 1);
    for (int l = 0; l < LANES; l++) {
        of.k.rows[l] = l % 3 == 2 ? -1 : (l * 7) % ROWS;
        if (of.k.rows[l] < 0) continue;
        memcpy(&lanes[l * DEPTH], &list[of.k.rows[l] * DEPTH], DEPTH * sizeof *lanes);
    }
    const sp_kernel_id kernel = SP_KERNEL_ID_channels_pack_f32;
    CHECK_EQ_INT(sp__pack_format_of(kernel), SP_PACK_F32);
    CHECK_EQ_U64(sp__pack_bytes(SP_PACK_F32, DEPTH, LANES), sizeof want);
    for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
        const sp_kernel *kernels = sp__cpu_kernels((sp_cpu_isa)isa);
        if (kernels == NULL) continue;
        CHECK_OK(sp__kernel_run(&kernels[sp__pack_kernel(SP_PACK_F32)], (void *[]){lanes, want},
                                &matrix));
        CHECK_OK(sp__kernel_run(&kernels[kernel], (void *[]){list, got}, &of.k));
        CHECK_EQ_MEM(got, want, sizeof want);
    }
}

TEST(a_kernel_that_packs_writes_the_format_that_it_is_found_by)
{
    for (size_t i = 0; i < SP_COUNT_OF(rows); i++) {
        CHECK_EQ_INT(sp__pack_format_of(sp__pack_kernel(rows[i].format)), rows[i].format);
    }
    CHECK_EQ_INT(sp__pack_format_of(SP_KERNEL_ID_copy_strided), SP_PACK_NONE);
}

TEST_MAIN
