/* SPDX-License-Identifier: Apache-2.0 */
/* The cpu's narrow products and convolutions: golden bits, the same on every instruction set and
 * with a packed left operand; each sum against the rule written as a plain loop. */
#include <math.h>
#include <string.h>

#include "base/fpenv.h"
#include "ops/cpu/arch/kernels.h"
#include "ops/lowering.h"
#include "support/model_data.h"
#include "support/test.h"

enum { ROWS = 5, COLUMNS = 19, DEPTH = 333, PADDED_COLUMNS = 24 };
enum { MOST_BYTES = 12 * 128 * PADDED_COLUMNS }; /* of a packed operand: 11 chunks of 128 bytes */

typedef struct narrow_type {
    sp_kernel_id pack, product, of_packed, conv;
    int fraction_bits;
    int64_t segment;
    uint64_t hash;
} narrow_type;

static const narrow_type types[] = {
    {SP_KERNEL_ID_narrow_pack_tf32, SP_KERNEL_ID_gemm_narrow_tf32, SP_KERNEL_ID_gemm_packed_tf32,
     SP_KERNEL_ID_conv_narrow_tf32, 10, 128, 0x0ca9552c47b32f90},
    {SP_KERNEL_ID_narrow_pack_f16, SP_KERNEL_ID_gemm_narrow_f16, SP_KERNEL_ID_gemm_packed_f16,
     SP_KERNEL_ID_conv_narrow_f16, 10, 256, 0x2f1228512febff05},
    {SP_KERNEL_ID_narrow_pack_bf16, SP_KERNEL_ID_gemm_narrow_bf16, SP_KERNEL_ID_gemm_packed_bf16,
     SP_KERNEL_ID_conv_narrow_bf16, 7, 256, 0xce6e3781b0913c6d},
};

static float a[ROWS * DEPTH], b[DEPTH * COLUMNS];

/* Numbers from 0.5 to 1 in size, so that no type has them as subnormals. */
static void fill(void)
{
    data_random random = {17};
    for (int i = 0; i < ROWS * DEPTH; i++) a[i] = data_next(&random) % 2 == 0 ? 0.5f : -0.5f;
    for (int i = 0; i < DEPTH * COLUMNS; i++) b[i] = data_next(&random) % 2 == 0 ? 0.5f : -0.5f;
    for (int i = 0; i < ROWS * DEPTH; i++) {
        a[i] += copysignf((float)(data_next(&random) >> 40) * 0x1p-25f, a[i]);
    }
    for (int i = 0; i < DEPTH * COLUMNS; i++) {
        b[i] += copysignf((float)(data_next(&random) >> 40) * 0x1p-25f, b[i]);
    }
}

static void run(sp_cpu_isa isa, sp_kernel_id id, void *const *bindings, const void *constants)
{
    static const sp_tiling one = {.grid = {1, 1, 1}, .size = {1024, 1024, 1}}; /* all */
    CHECK_OK(sp__kernel_run_tiling(&sp__cpu_kernels(isa)[id], &one, bindings, constants));
}

static void multiply(sp_cpu_isa isa, const narrow_type *type, bool is_packed, float *y)
{
    static _Alignas(64) unsigned char left[MOST_BYTES], right[MOST_BYTES];
    const sp_pack_constants of_b = {
        .depth = DEPTH, .columns = COLUMNS, .depth_stride = COLUMNS, .column_stride = 1};
    const sp_pack_constants of_a = {
        .depth = DEPTH, .columns = ROWS, .depth_stride = 1, .column_stride = DEPTH};
    const sp_gemm_constants k = {.rows = ROWS,
                                 .columns = COLUMNS,
                                 .depth = DEPTH,
                                 .a_row = DEPTH,
                                 .a_depth = 1,
                                 .alpha = 1,
                                 .beta = 1};
    run(isa, type->pack, (void *[]){b, right}, &of_b);
    run(isa, type->pack, (void *[]){a, left}, &of_a);
    if (is_packed) run(isa, type->of_packed, (void *[]){left, right, y}, &k);
    else run(isa, type->product, (void *[]){a, right, y}, &k);
}

/* To nearest even: rint rounds so. */
static float rounded(float x, int bits)
{
    int exponent;
    const double fraction = frexp((double)x, &exponent);
    return (float)ldexp(rint(ldexp(fraction, bits + 1)), exponent - bits - 1);
}

static float rule(const narrow_type *type, int row, int column)
{
    float sum = 0;
    for (int64_t first = 0; first < DEPTH; first += type->segment) {
        float chain = 0;
        for (int64_t k = first; k < DEPTH && k < first + type->segment; k++) {
            chain = fmaf(rounded(a[row * DEPTH + k], type->fraction_bits),
                         rounded(b[k * COLUMNS + column], type->fraction_bits), chain);
        }
        sum += chain;
    }
    return sum;
}

TEST(narrow_products_are_chains_of_rounded_operands_on_every_isa)
{
    const sp_fpenv before = sp_fpenv_enter();
    fill();
    for (size_t t = 0; t < SP_COUNT_OF(types); t++) {
        float want[ROWS * COLUMNS], got[ROWS * COLUMNS];
        for (int i = 0; i < ROWS * COLUMNS; i++)
            want[i] = rule(&types[t], i / COLUMNS, i % COLUMNS);
        for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
            if (sp__cpu_kernels((sp_cpu_isa)isa) == NULL) continue;
            for (int is_packed = 0; is_packed < 2; is_packed++) {
                memset(got, 0xff, sizeof got);
                multiply((sp_cpu_isa)isa, &types[t], is_packed, got);
                CHECK_EQ_MEM(got, want, sizeof got);
            }
        }
        const uint64_t hash = data_hash(got, sizeof got);
        CHECK_EQ_U64(hash, types[t].hash);
        if (hash != types[t].hash) test_note("type %zu: 0x%016llx", t, (unsigned long long)hash);
    }
    sp_fpenv_leave(before);
}

/* ---- convolutions ---- */

enum { CHANNELS = 37, FILTERS = 11, SIDE = 5, OUT = 3, TAPS = 9 }; /* stride 2, padding 1 */

static float conv_rule(const narrow_type *type, const float *x, const float *w, int filter, int at)
{
    float sum = 0;
    for (int64_t first = 0; first < CHANNELS * TAPS; first += type->segment) {
        float chain = 0;
        for (int64_t k = first; k < CHANNELS * TAPS && k < first + type->segment; k++) {
            const int64_t tap = k / CHANNELS, channel = k % CHANNELS;
            const int64_t row = at / OUT * 2 - 1 + tap / 3, column = at % OUT * 2 - 1 + tap % 3;
            const bool is_inside = row >= 0 && row < SIDE && column >= 0 && column < SIDE;
            const float step = is_inside ? x[(channel * SIDE + row) * SIDE + column] : 0;
            chain = fmaf(
                rounded(step, type->fraction_bits),
                rounded(w[(filter * CHANNELS + channel) * TAPS + tap], type->fraction_bits), chain);
        }
        sum += chain;
    }
    return sum;
}

TEST(narrow_convolutions_are_chains_over_the_channels_of_each_tap)
{
    const sp_fpenv before = sp_fpenv_enter();
    static _Alignas(64) unsigned char packed[MOST_BYTES];
    const float *x = a, *w = b;
    _Static_assert(CHANNELS * SIDE * SIDE <= ROWS * DEPTH, "x is a part of a");
    _Static_assert(FILTERS * CHANNELS * TAPS <= DEPTH * COLUMNS, "w is a part of b");
    const sp_pack_constants pack = {.depth = CHANNELS * TAPS,
                                    .columns = FILTERS,
                                    .depth_stride = TAPS,
                                    .column_stride = CHANNELS * TAPS,
                                    .block = CHANNELS,
                                    .block_stride = 1};
    const sp_conv_constants k = {.groups = 1,
                                 .channels = CHANNELS,
                                 .filters = FILTERS,
                                 .in_h = SIDE,
                                 .in_w = SIDE,
                                 .out_h = OUT,
                                 .out_w = OUT,
                                 .kernel_h = 3,
                                 .kernel_w = 3,
                                 .stride_h = 2,
                                 .stride_w = 2,
                                 .dilation_h = 1,
                                 .dilation_w = 1,
                                 .pad_top = 1,
                                 .pad_left = 1,
                                 .planes = FILTERS};
    fill();
    for (size_t t = 0; t < SP_COUNT_OF(types); t++) {
        for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
            float y[FILTERS * OUT * OUT];
            if (sp__cpu_kernels((sp_cpu_isa)isa) == NULL) continue;
            run((sp_cpu_isa)isa, types[t].pack, (void *[]){b, packed}, &pack);
            run((sp_cpu_isa)isa, types[t].conv, (void *[]){a, packed, y}, &k);
            for (int i = 0; i < FILTERS * OUT * OUT; i++) {
                const float want = conv_rule(&types[t], x, w, i / (OUT * OUT), i % (OUT * OUT));
                CHECK_EQ_MEM(&y[i], &want, sizeof want);
            }
        }
    }
    sp_fpenv_leave(before);
}

/* Infinities, and NaNs. */
TEST(f16_has_infinities_above_its_range_and_the_others_have_not)
{
    const sp_fpenv before = sp_fpenv_enter();
    float y[ROWS * COLUMNS];
    for (size_t t = 0; t < SP_COUNT_OF(types); t++) {
        memset(a, 0, sizeof a);
        memset(b, 0, sizeof b);
        a[0] = 65520.0f; /* rounds to 2^16, the first number above the range */
        b[0] = 1.0f;
        multiply(SP_CPU_PORTABLE, &types[t], false, y);
        CHECK_EQ_INT(isinf(y[0]) != 0, types[t].pack == SP_KERNEL_ID_narrow_pack_f16);
        a[0] = 65504.0f;
        multiply(SP_CPU_PORTABLE, &types[t], false, y);
        CHECK(isfinite(y[0]));
        a[0] = NAN;
        multiply(SP_CPU_PORTABLE, &types[t], false, y);
        uint32_t bits;
        memcpy(&bits, y, sizeof bits);
        CHECK_EQ_U64(bits, 0x7fc00000u);
    }
    sp_fpenv_leave(before);
}

TEST_MAIN
