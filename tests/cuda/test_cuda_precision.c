/* SPDX-License-Identifier: Apache-2.0 */
/* A precision of products: which devices have it, what it changes and what not, on the fake driver,
 * whose kernels are the cpu's. */
#include <streampool/stream.h>

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "base/macros.h"
#include "device/cuda/cuda_api.h"
#include "fake_cuda.h"
#include "precision_fixture.h"
#include "rounding_fixture.h"
#include "segment_fixture.h"

static const precision_sizes sizes = {70, 512, 33, 0, SP_F32};
enum { MOST_ROWS = 140 };

static const sp_precision precisions[] = {SP_PRECISION_TF32, SP_PRECISION_F16, SP_PRECISION_BF16};

static sp_model load(sp_device device, sp_precision precision, bool is_exact)
{
    sp_model model = {0};
    const sp_model_options options = {.device = device, .precision = precision};
    CHECK_OK(precision_load(&sizes, is_exact, &options, &model));
    return model;
}

/* y of all rows at once, to be freed. */
static float *run_all(sp_model model, bool is_exact)
{
    float *x = precision_rows(&sizes, is_exact, MOST_ROWS);
    float *y = sp_malloc((size_t)(MOST_ROWS * sizes.columns) * sizeof *y);
    CHECK_OK(precision_run(model, &sizes, x, MOST_ROWS, y));
    sp_free(x);
    return y;
}

static float *run_on_cpu(bool is_exact)
{
    const sp_model model = load((sp_device){0}, SP_PRECISION_DEFAULT, is_exact);
    float *y = run_all(model, is_exact);
    CHECK_OK(sp_model_release(model));
    return y;
}

static const uint64_t all = (uint64_t)MOST_ROWS * 33;

TEST(without_a_precision_a_gpu_has_the_bits_of_the_cpu)
{
    const sp_device device = segment_begin();
    float *want = run_on_cpu(false);
    const sp_model model = load(device, SP_PRECISION_DEFAULT, false);
    float *got = run_all(model, false);
    CHECK_EQ_MEM(got, want, all * sizeof *got);
    CHECK_EQ_INT(model_info_of(model).precision, SP_PRECISION_DEFAULT);
    sp_free(got);
    sp_free(want);
    CHECK_OK(sp_model_release(model));
    segment_end();
}

TEST(each_precision_rounds_operands_and_keeps_sums)
{
    const sp_device device = segment_begin();
    float *want = run_on_cpu(false), *exact = run_on_cpu(true);
    for (size_t i = 0; i < SP_COUNT_OF(precisions); i++) {
        const sp_model model = load(device, precisions[i], false);
        float *got = run_all(model, false);
        const double difference = precision_difference(got, want, all);
        test_note("precision %d: a difference of %.2g", (int)precisions[i], difference);
        CHECK(difference > 0 && difference < precision_bound(precisions[i]));
        CHECK_EQ_INT(model_info_of(model).precision, precisions[i]);
        CHECK_EQ_U64(model_info_of(model).cpu_step_count, 0);
        CHECK_OK(sp_model_release(model));
        sp_free(got);
        const sp_model of_integers = load(device, precisions[i], true);
        got = run_all(of_integers, true);
        CHECK_EQ_MEM(got, exact, all * sizeof *got);
        CHECK_OK(sp_model_release(of_integers));
        sp_free(got);
    }
    sp_free(want);
    sp_free(exact);
    segment_end();
}

TEST(a_row_has_the_same_bits_with_any_number_of_rows)
{
    const sp_device device = segment_begin();
    float *x = precision_rows(&sizes, false, MOST_ROWS);
    float *y = sp_malloc(all * sizeof *y);
    for (size_t i = 0; i < SP_COUNT_OF(precisions); i++) {
        const sp_model model = load(device, precisions[i], false);
        float *want = run_all(model, false);
        for (int64_t rows = 1; rows < MOST_ROWS; rows += rows < 20 ? 1 : 27) {
            CHECK_OK(precision_run(model, &sizes, x, rows, y));
            CHECK_EQ_MEM(y, want, (uint64_t)(rows * sizes.columns) * sizeof *y);
        }
        sp_free(want);
        CHECK_OK(sp_model_release(model));
    }
    sp_free(x);
    sp_free(y);
    segment_end();
}

/* From 128 rows on the left operand of the first product is packed by a step of its own. */
TEST(a_row_has_the_same_bits_in_a_product_whose_left_operand_is_packed)
{
    static const precision_sizes wide = {9, 16384, 2, 0, SP_F32};
    static const int64_t rows[] = {1, 127, 128, 133};
    const sp_device device = segment_begin();
    const sp_model_options options = {.device = device, .precision = SP_PRECISION_BF16};
    sp_model model = {0};
    CHECK_OK(precision_load(&wide, false, &options, &model));
    float *x = precision_rows(&wide, false, 133);
    float want[2 * 133], got[2 * 133];
    for (int64_t row = 0; row < 133; row++) {
        CHECK_OK(precision_run(model, &wide, x + row * 9, 1, want + row * 2));
    }
    for (size_t i = 0; i < SP_COUNT_OF(rows); i++) {
        CHECK_OK(precision_run(model, &wide, x, rows[i], got));
        CHECK_EQ_MEM(got, want, (uint64_t)rows[i] * 2 * sizeof(float));
        CHECK_EQ_U64(model_info_of(model).step_count, rows[i] < 128 ? 2 : 3);
    }
    sp_free(x);
    CHECK_OK(sp_model_release(model));
    segment_end();
}

TEST(weights_are_packed_in_the_type)
{
    const sp_device device = segment_begin();
    /* Chunks of 128 bytes of the depth, and columns in groups of eight. */
    const uint64_t halves = 128 * (2 * 512 + 8 * 40), words = 128 * (3 * 512 + 16 * 40);
    for (size_t i = 0; i < SP_COUNT_OF(precisions); i++) {
        const sp_model model = load(device, precisions[i], false);
        float *y = run_all(model, false);
        CHECK_EQ_U64(model_info_of(model).packed_bytes,
                     precisions[i] == SP_PRECISION_TF32 ? words : halves);
        sp_free(y);
        CHECK_OK(sp_model_release(model));
    }
    segment_end();
}

TEST(products_that_a_user_moves_to_the_cpu_round_too)
{
    const sp_device device = segment_begin();
    const sp_model own = load(device, SP_PRECISION_BF16, false);
    float *want = run_all(own, false);
    segment_set_ops("MatMul,Gemm");
    const sp_model moved = load(device, SP_PRECISION_BF16, false);
    float *got = run_all(moved, false);
    CHECK(model_info_of(moved).cpu_step_count > 0);
    CHECK_EQ_MEM(got, want, all * sizeof *got); /* the fake driver's kernels are the cpu's */
    sp_free(got);
    sp_free(want);
    CHECK_OK(sp_model_release(own));
    CHECK_OK(sp_model_release(moved));
    segment_set_ops(NULL);
    segment_end();
}

/* ---- convolutions, and files of f16 and bf16 ---- */

static const precision_sizes others[] = {{70, 24, 9, 5, SP_F32},  {128, 24, 9, 4, SP_F32},
                                         {70, 130, 9, 0, SP_F16}, {70, 130, 9, 0, SP_BF16},
                                         {70, 24, 9, 5, SP_F16},  {64, 24, 9, 4, SP_BF16}};
enum { OTHER_ROWS = 5 };

static sp_model load_other(sp_device device, const precision_sizes *s, sp_precision precision,
                           bool is_exact)
{
    sp_model model = {0};
    const sp_model_options options = {.device = device, .precision = precision};
    CHECK_OK(precision_load(s, is_exact, &options, &model));
    return model;
}

static float *run_other(sp_model model, const precision_sizes *s, bool is_exact)
{
    float *x = precision_rows(s, is_exact, OTHER_ROWS);
    float *y = sp_malloc((size_t)(OTHER_ROWS * precision_outputs(s)) * sizeof *y);
    CHECK_OK(precision_run(model, s, x, OTHER_ROWS, y));
    sp_free(x);
    return y;
}

static void check_other(sp_device device, const precision_sizes *s, sp_precision precision,
                        bool is_exact)
{
    const uint64_t count = (uint64_t)(OTHER_ROWS * precision_outputs(s));
    const bool is_half = s->type == SP_F16 || s->type == SP_BF16;
    const sp_model cpu = load_other((sp_device){0}, s, SP_PRECISION_DEFAULT, is_exact);
    const sp_model plain = load_other(device, s, SP_PRECISION_DEFAULT, is_exact);
    const sp_model model = load_other(device, s, precision, is_exact);
    float *want = run_other(cpu, s, is_exact), *same = run_other(plain, s, is_exact);
    float *got = run_other(model, s, is_exact);
    CHECK_EQ_MEM(same, want, count * sizeof *same);
    const double difference = precision_difference(got, want, count);
    const double bound = precision_bound(s->type == SP_BF16 ? SP_PRECISION_BF16 : precision);
    /* Sums of integers are exact in any order; a bf16 does not have all of those of an f32 file. */
    if (is_exact && (is_half || precision != SP_PRECISION_BF16)) CHECK(difference == 0);
    if (!is_exact && !is_half) CHECK(difference > 0);
    CHECK(difference < bound);
    CHECK_EQ_U64(model_info_of(model).cpu_step_count, 0);
    CHECK(model_info_of(model).packed_bytes > 0);
    /* A row's bits are those of the row alone. */
    float *x = precision_rows(s, is_exact, OTHER_ROWS);
    for (int64_t row = 0; row < OTHER_ROWS; row++) {
        float *alone = got + row * precision_outputs(s);
        CHECK_OK(precision_run(model, s, x + row * precision_inputs(s), 1, want));
        CHECK_EQ_MEM(want, alone, (uint64_t)precision_outputs(s) * sizeof *want);
    }
    sp_free(x);
    sp_free(want);
    sp_free(same);
    sp_free(got);
    CHECK_OK(sp_model_release(cpu));
    CHECK_OK(sp_model_release(plain));
    CHECK_OK(sp_model_release(model));
}

TEST(convolutions_and_products_of_halves_are_narrow_too)
{
    const sp_device device = segment_begin();
    for (size_t i = 0; i < SP_COUNT_OF(others) * SP_COUNT_OF(precisions); i++) {
        const sp_precision precision = precisions[i % SP_COUNT_OF(precisions)];
        check_other(device, &others[i / SP_COUNT_OF(precisions)], precision, false);
        check_other(device, &others[i / SP_COUNT_OF(precisions)], precision, true);
    }
    segment_end();
}

TEST(a_convolution_of_f32_with_few_channels_keeps_its_bits)
{
    static const precision_sizes few = {15, 15, 9, 5, SP_F32}, enough = {16, 15, 9, 5, SP_F32};
    const sp_device device = segment_begin();
    const precision_sizes *all_sizes[] = {&few, &enough};
    for (int i = 0; i < 2; i++) {
        const sp_model cpu = load_other((sp_device){0}, all_sizes[i], SP_PRECISION_DEFAULT, false);
        const sp_model model = load_other(device, all_sizes[i], SP_PRECISION_BF16, false);
        float *want = run_other(cpu, all_sizes[i], false);
        float *got = run_other(model, all_sizes[i], false);
        const uint64_t bytes = (uint64_t)(OTHER_ROWS * precision_outputs(all_sizes[i])) * 4;
        CHECK_EQ_INT(memcmp(got, want, bytes) == 0, i == 0);
        CHECK_EQ_INT(model_info_of(model).packed_bytes == 0, i == 0);
        sp_free(want);
        sp_free(got);
        CHECK_OK(sp_model_release(cpu));
        CHECK_OK(sp_model_release(model));
    }
    segment_end();
}

/* The type is the file's, so its bits are the same whichever precision is asked for. */
TEST(each_precision_gives_a_file_of_halves_the_same_bits)
{
    const sp_device device = segment_begin();
    for (size_t i = 0; i < SP_COUNT_OF(others); i++) {
        const precision_sizes *s = &others[i];
        if (s->type != SP_F16 && s->type != SP_BF16) continue;
        float *first = NULL;
        for (size_t k = 0; k < SP_COUNT_OF(precisions); k++) {
            const sp_model model = load_other(device, s, precisions[k], false);
            float *y = run_other(model, s, false);
            const uint64_t bytes = (uint64_t)(OTHER_ROWS * precision_outputs(s)) * sizeof *y;
            if (first != NULL) CHECK_EQ_MEM(y, first, bytes);
            if (first == NULL) first = y;
            else sp_free(y);
            CHECK_OK(sp_model_release(model));
        }
        sp_free(first);
    }
    segment_end();
}

/* ---- products of two computed values ---- */

TEST(attention_rounds_in_f16_and_bf16_with_the_bits_of_its_steps)
{
    static const rounding_sizes all_sizes[] = {{8, 5}, {64, 32}, {77, 20}, {300, 33}};
    const sp_device device = segment_begin();
    for (size_t i = 0; i < SP_COUNT_OF(all_sizes); i++) {
        rounding_check_attention(device, &all_sizes[i]);
    }
    segment_end();
}

TEST(a_product_of_two_computed_values_is_exact_for_integers)
{
    const sp_device device = segment_begin();
    rounding_check_product(device, 17, 300, 9);
    rounding_check_product(device, 1, 64, 65);
    segment_end();
}

/* ---- refusals ---- */

static void check_refused(sp_device device, const char *name)
{
    for (size_t i = 0; i < SP_COUNT_OF(precisions); i++) {
        sp_model model = {1};
        const sp_model_options options = {.device = device, .precision = precisions[i]};
        CHECK_STATUS(precision_load(&sizes, false, &options, &model), SP_UNSUPPORTED);
        CHECK(strstr(sp_last_error(), "compute capability 8.0") != NULL);
        CHECK(strstr(sp_last_error(), name) != NULL);
        CHECK_EQ_U64(model.bits, 0);
    }
}

TEST(devices_without_tensor_cores_refuse_the_load)
{
    sp_device null = {0};
    segment_begin();
    check_refused((sp_device){0}, "cpu");
    CHECK_OK(sp_device_open("null", &null));
    check_refused(null, "null");
    segment_end();
    fake_cuda_set_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 7);
    check_refused(segment_begin(), "cuda:0");
    segment_end();
}

TEST(a_precision_that_does_not_exist_is_invalid)
{
    sp_model model = {1};
    const sp_model_options options = {.device = segment_begin(), .precision = (sp_precision)4};
    CHECK_STATUS(precision_load(&sizes, false, &options, &model), SP_INVALID);
    CHECK(strstr(sp_last_error(), "precision is 4; it can be 3 at most") != NULL);
    CHECK_EQ_U64(model.bits, 0);
    segment_end();
}

typedef struct inside {
    sp_model model;
    const float *x;
    float y[33];
    sp_status status;
    char message[SP_ERROR_BYTES];
} inside;

static void run_inside(void *ctx, sp_status status)
{
    inside *in = ctx;
    CHECK_OK(status);
    in->status = precision_run(in->model, &sizes, in->x, 1, in->y);
    snprintf(in->message, sizeof in->message, "%s", sp_last_error());
}

TEST(a_run_in_a_host_function_is_refused_and_others_are_not)
{
    const sp_device device = segment_begin();
    sp_stream stream;
    float *x = precision_rows(&sizes, false, 1);
    const sp_precision tried[] = {SP_PRECISION_DEFAULT, SP_PRECISION_BF16};
    for (size_t i = 0; i < SP_COUNT_OF(tried); i++) {
        inside in = {.model = load(device, tried[i], false), .x = x};
        CHECK_OK(precision_run(in.model, &sizes, x, 1, in.y));
        CHECK_OK(sp_stream_current((sp_device){0}, &stream));
        CHECK_OK(sp_stream_host_function(stream, run_inside, &in));
        CHECK_OK(sp_stream_synchronize(stream));
        CHECK_STATUS(in.status, i == 0 ? SP_OK : SP_UNSUPPORTED);
        if (i > 0) CHECK(strstr(in.message, "which has other bits") != NULL);
        CHECK_OK(precision_run(in.model, &sizes, x, 1, in.y));
        CHECK_OK(sp_model_release(in.model));
    }
    sp_free(x);
    segment_end();
}

TEST_MAIN
