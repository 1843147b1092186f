/* SPDX-License-Identifier: Apache-2.0 */
/* On a GPU: products and convolutions with a precision are near those of the cpu, and equal where
 * sums are exact; a row has the same bits with any number of rows, from any thread, alone and in
 * batches. Skipped without a GPU. */
#include <streampool/device.h>

#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/heap.h"
#include "base/macros.h"
#include "precision_fixture.h"
#include "run_fixture.h"

static const sp_precision precisions[] = {SP_PRECISION_TF32, SP_PRECISION_F16, SP_PRECISION_BF16};
static const char *const names[] = {"tf32", "f16", "bf16"};

static sp_model load(sp_device device, const precision_sizes *sizes, bool is_exact,
                     sp_precision precision)
{
    sp_model model = {0};
    const sp_model_options options = {.device = device, .precision = precision};
    CHECK_OK(precision_load(sizes, is_exact, &options, &model));
    return model;
}

static float *results(const precision_sizes *sizes, int64_t rows)
{
    const size_t bytes = (size_t)(rows * precision_outputs(sizes)) * sizeof(float);
    float *y = sp_malloc(bytes);
    if (y == NULL) abort();
    memset(y, 0xff, bytes);
    return y;
}

/* ---- values ---- */

static void check_values(sp_device device, const precision_sizes *sizes, int64_t rows)
{
    const uint64_t count = (uint64_t)(rows * precision_outputs(sizes));
    const int64_t taps = sizes->image > 0 ? 9 : 1;
    const bool is_half = sizes->type == SP_F16 || sizes->type == SP_BF16;
    for (int exact = 0; exact < 2; exact++) {
        float *x = precision_rows(sizes, exact, rows);
        float *want = results(sizes, rows), *got = results(sizes, rows);
        const sp_model cpu = load((sp_device){0}, sizes, exact, SP_PRECISION_DEFAULT);
        REQUIRE_OK(precision_run(cpu, sizes, x, rows, want));
        CHECK_OK(sp_model_release(cpu));
        for (size_t i = 0; i < SP_COUNT_OF(precisions); i++) {
            const sp_model model = load(device, sizes, exact, precisions[i]);
            REQUIRE_OK(precision_run(model, sizes, x, rows, got));
            const double difference = precision_difference(got, want, count);
            const double bound =
                precision_bound(sizes->type == SP_BF16 ? SP_PRECISION_BF16 : precisions[i]);
            /* Sums of more integers have more bits than a bf16; those of the file are rounded where
             * the cpu rounds them. */
            if (exact == 1 && (is_half || sizes->depth * taps <= 100)) CHECK(difference == 0);
            if (exact == 0 && sizes->depth > 1 && !is_half) CHECK(difference > 0);
            CHECK(difference < bound);
            if (!(difference < bound)) {
                test_note("%s, %lld rows of %lld x %lld x %lld (%lld): %g", names[i],
                          (long long)rows, (long long)sizes->depth, (long long)sizes->width,
                          (long long)sizes->columns, (long long)sizes->image, difference);
            }
            CHECK_OK(sp_model_release(model));
        }
        sp_free(x);
        sp_free(want);
        sp_free(got);
    }
}

TEST(values_are_near_those_of_the_cpu)
{
    static const precision_sizes sizes[] = {
        {1, 1, 1, 0, SP_F32},      {17, 9, 3, 0, SP_F32},       {64, 64, 64, 0, SP_F32},
        {100, 203, 77, 0, SP_F32}, {1000, 515, 520, 0, SP_F32}, {4096, 640, 130, 0, SP_F32}};
    static const int64_t rows[] = {1, 2, 15, 16, 17, 64, 129, 300};
    sp_device device;
    if (sp_device_open("cuda:0", &device) != SP_OK) SKIP("no GPU");
    for (size_t i = 0; i < SP_COUNT_OF(sizes); i++) {
        for (size_t k = 0; k < SP_COUNT_OF(rows); k++) check_values(device, &sizes[i], rows[k]);
    }
}

TEST(values_of_images_are_near_those_of_the_cpu)
{
    /* Chunks of one tap and of several; planes of a multiple of four pixels, and others. */
    static const precision_sizes sizes[] = {{1, 2, 3, 4, SP_F32},      {3, 24, 7, 15, SP_F32},
                                            {20, 64, 64, 16, SP_F32},  {64, 64, 130, 14, SP_F32},
                                            {128, 130, 96, 7, SP_F32}, {256, 300, 3, 7, SP_F32}};
    static const int64_t rows[] = {1, 2, 5, 33};
    sp_device device;
    if (sp_device_open("cuda:0", &device) != SP_OK) SKIP("no GPU");
    for (size_t i = 0; i < SP_COUNT_OF(sizes); i++) {
        for (size_t k = 0; k < SP_COUNT_OF(rows); k++) check_values(device, &sizes[i], rows[k]);
    }
}

TEST(values_of_f16_and_bf16_files_are_near_those_of_the_cpu)
{
    static const precision_sizes sizes[] = {{17, 9, 3, 0, SP_F16},     {64, 64, 64, 0, SP_F16},
                                            {100, 203, 77, 0, SP_F16}, {1000, 515, 520, 0, SP_BF16},
                                            {17, 9, 3, 0, SP_BF16},    {3, 24, 7, 9, SP_F16},
                                            {64, 64, 30, 6, SP_BF16}};
    static const int64_t rows[] = {1, 2, 17};
    sp_device device;
    if (sp_device_open("cuda:0", &device) != SP_OK) SKIP("no GPU");
    for (size_t i = 0; i < SP_COUNT_OF(sizes); i++) {
        for (size_t k = 0; k < SP_COUNT_OF(rows); k++) check_values(device, &sizes[i], rows[k]);
    }
}

/* ---- every number of rows ---- */

enum { MOST_ROWS = 4096 };

static void check_rows(sp_device device, const precision_sizes *sizes, size_t which)
{
    const int64_t in = precision_inputs(sizes), out = precision_outputs(sizes);
    const uint64_t row_bytes = (uint64_t)out * sizeof(float);
    const sp_model model = load(device, sizes, false, precisions[which]);
    float *x = precision_rows(sizes, false, MOST_ROWS);
    float *alone = results(sizes, MOST_ROWS), *got = results(sizes, MOST_ROWS);
    for (int64_t row = 0; row < MOST_ROWS; row++) {
        REQUIRE_OK(precision_run(model, sizes, x + row * in, 1, alone + row * out));
    }
    const int64_t step = (int64_t)(MOST_ROWS / test_count(MOST_ROWS, 512));
    for (int64_t rows = 1; rows <= MOST_ROWS; rows += rows < 300 ? 1 : step) {
        REQUIRE_OK(precision_run(model, sizes, x, rows, got));
        const bool is_same = memcmp(got, alone, (uint64_t)rows * row_bytes) == 0;
        CHECK(is_same);
        if (!is_same) test_note("%s, %lld rows", names[which], (long long)rows);
    }
    CHECK_OK(sp_model_release(model));
    sp_free(x);
    sp_free(alone);
    sp_free(got);
}

TEST(a_row_has_the_same_bits_with_1_to_4096_rows)
{
    /* The last one packs the left operand of its first product from 512 rows on. */
    static const precision_sizes sizes[] = {{256, 512, 128, 0, SP_F32},
                                            {512, 512, 512, 0, SP_F32},
                                            {1000, 203, 517, 0, SP_F32},
                                            {1100, 4096, 64, 0, SP_F32}};
    sp_device device;
    if (sp_device_open("cuda:0", &device) != SP_OK) SKIP("no GPU");
    for (size_t i = 0; i < SP_COUNT_OF(sizes); i++) {
        for (size_t k = 0; k < SP_COUNT_OF(precisions); k++) check_rows(device, &sizes[i], k);
    }
}

TEST(an_image_has_the_same_bits_with_1_to_4096_images)
{
    static const precision_sizes sizes[] = {{3, 24, 40, 5, SP_F32}, {64, 96, 130, 4, SP_F32}};
    sp_device device;
    if (sp_device_open("cuda:0", &device) != SP_OK) SKIP("no GPU");
    for (size_t i = 0; i < SP_COUNT_OF(sizes); i++) {
        for (size_t k = 0; k < SP_COUNT_OF(precisions); k++) check_rows(device, &sizes[i], k);
    }
}

TEST(a_row_of_a_file_of_halves_has_the_same_bits_with_1_to_4096_rows)
{
    static const precision_sizes sizes[] = {
        {1000, 203, 517, 0, SP_F16}, {256, 512, 128, 0, SP_BF16}, {64, 96, 130, 4, SP_BF16}};
    sp_device device;
    if (sp_device_open("cuda:0", &device) != SP_OK) SKIP("no GPU");
    for (size_t i = 0; i < SP_COUNT_OF(sizes); i++) check_rows(device, &sizes[i], 2);
}

/* ---- threads and batches ---- */

enum { THREADS = 31, ROWS = 64 };

typedef struct load_of {
    sp_model model;
    const precision_sizes *sizes;
    const float *x, *alone;
    uint64_t rounds;
    sp_atomic_u64 differing;
} load_of;

/* Runs of one row: those that wait for one another become batches. */
static void run_rows(void *arg, uint32_t index)
{
    load_of *l = arg;
    const precision_sizes *s = l->sizes;
    float *y = results(s, 1);
    for (uint64_t i = 0; i < l->rounds; i++) {
        const int64_t row = (int64_t)(index * 7 + i) % ROWS;
        CHECK_OK(precision_run(l->model, s, l->x + row * s->depth, 1, y));
        if (memcmp(y, l->alone + row * s->columns, (size_t)s->columns * sizeof *y) != 0) {
            sp_fetch_add_relaxed(&l->differing, (uint64_t)1);
        }
    }
    sp_free(y);
}

TEST(rows_of_31_threads_have_the_bits_of_the_row_alone)
{
    static const precision_sizes sizes = {512, 768, 256, 0, SP_F32};
    sp_device device;
    if (sp_device_open("cuda:0", &device) != SP_OK) SKIP("no GPU");
    float *x = precision_rows(&sizes, false, ROWS), *alone = results(&sizes, ROWS);
    for (size_t k = 0; k < SP_COUNT_OF(precisions); k++) {
        load_of l = {.model = load(device, &sizes, false, precisions[k]),
                     .sizes = &sizes,
                     .x = x,
                     .alone = alone,
                     .rounds = test_count(20000, 2000)};
        for (int64_t row = 0; row < ROWS; row++) {
            REQUIRE_OK(precision_run(l.model, &sizes, x + row * sizes.depth, 1,
                                     alone + row * sizes.columns));
        }
        test_threads(THREADS, run_rows, &l);
        CHECK_EQ_U64(sp_load_relaxed(&l.differing), 0);
        test_note("%s: %llu of %llu runs in %llu batches", names[k],
                  (unsigned long long)model_info_of(l.model).batched_runs,
                  (unsigned long long)model_info_of(l.model).runs,
                  (unsigned long long)model_info_of(l.model).batches);
        CHECK_OK(sp_model_release(l.model));
    }
    sp_free(x);
    sp_free(alone);
}

TEST_MAIN
