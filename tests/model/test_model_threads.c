/* SPDX-License-Identifier: Apache-2.0 */
/* Models from many threads: the bits of a single thread. Runs with several worker counts and
 * policies of the stream pool. */
#include <streampool/storage.h>
#include <streampool/stream.h>

#include <string.h>

#include "base/heap.h"
#include "base/option.h"
#include "base/thread.h"
#include "run_fixture.h"
#include "support/fp_state.h"

TEST(all_models_from_31_threads_give_the_bits_of_one)
{
    cases_load l;
    if (!cases_open(fixture_models, FIXTURE_MODELS, NULL, &l)) SKIP("no shared data");
    l.rounds = (uint32_t)test_count(100, 3);
    test_threads(31, cases_run_rounds, &l);
    CHECK_EQ_U64(sp_load_relaxed(&l.differing), 0);
    sp_device_info device;
    CHECK_OK(sp_device_get_info((sp_device){0}, &device));
    uint32_t most = 0;
    for (uint32_t i = 0; i < FIXTURE_MODELS; i++) {
        sp_model_info info;
        CHECK_OK(sp_model_get_info(l.cases[i].model, &info));
        CHECK_EQ_U64(info.plan_count, 1);
        CHECK(info.context_count <= device.run_slots);
        CHECK(info.most_in_flight <= device.run_slots);
        most = info.most_in_flight > most ? info.most_in_flight : most;
    }
    test_note("%u run slots, %u runs of one model at once", device.run_slots, most);
    if (device.run_slots > 1) CHECK(most >= 2);
    cases_close(&l);
}

TEST(a_row_of_a_batch_has_the_bits_of_the_row_alone)
{
    model_case c;
    if (!case_open("torch_mlp", NULL, &c)) SKIP("no shared data");
    enum { MOST = 64, IN = 256, OUT = 128 };
    data_random random = {5};
    float *in = sp_malloc(MOST * IN * sizeof *in);
    float *out = sp_malloc(MOST * OUT * sizeof *out);
    float *alone = sp_malloc(MOST * OUT * sizeof *alone);
    data_fill(&random, in, MOST * IN);
    for (int64_t rows = 1; rows <= MOST; rows++) {
        const sp_host_tensor x = {.data = in,
                                  .bytes = (uint64_t)rows * IN * 4,
                                  .dtype = SP_F32,
                                  .rank = 2,
                                  .shape = {rows, IN}};
        sp_host_tensor y = {.data = out, .capacity = MOST * OUT * 4};
        REQUIRE_OK(sp_model_run(c.model, &x, 1, &y, 1));
        /* Row r alone, computed when it first appears. */
        const int64_t last = rows - 1;
        const sp_host_tensor row = {
            .data = in + last * IN, .bytes = IN * 4, .dtype = SP_F32, .rank = 2, .shape = {1, IN}};
        sp_host_tensor row_out = {.data = alone + last * OUT, .capacity = OUT * 4};
        REQUIRE_OK(sp_model_run(c.model, &row, 1, &row_out, 1));
        REQUIRE_EQ_MEM(out, alone, (size_t)rows * OUT * 4);
    }
    sp_free(in);
    sp_free(out);
    sp_free(alone);
    case_close(&c);
}

/* A model without any run yet, and `reference`, the same model after a run. */
typedef struct cold_start {
    const model_case *reference;
    model_case cold;
    sp_array outputs[31][FIXTURE_PORTS];
} cold_start;

static void run_cold(void *arg, uint32_t index)
{
    cold_start *start = arg;
    CHECK_OK(case_run(&start->cold, start->outputs[index]));
}

/* Allocates the outputs without a call on the cold model. */
static void make_room(cold_start *start)
{
    const model_case *c = start->reference;
    for (uint32_t t = 0; t < 31; t++) {
        for (uint32_t i = 0; i < c->output_count; i++) {
            const sp_array *like = &c->outputs[i];
            CHECK_OK(sp__array_init(&start->outputs[t][i], like->dtype, &like->shape));
        }
    }
}

static void start_cold(cold_start *start, const char *path)
{
    start->cold = *start->reference; /* the inputs and counts; the model is its own */
    REQUIRE_OK(sp_model_load(path, NULL, &start->cold.model));
    for (uint32_t t = 0; t < 31; t++) outputs_wipe(start->reference, start->outputs[t]);
    test_threads(31, run_cold, start);
    sp_model_info info;
    CHECK_OK(sp_model_get_info(start->cold.model, &info));
    CHECK_EQ_U64(info.plan_count, 1);
    CHECK_EQ_U64(info.runs, 31);
    for (uint32_t t = 0; t < 31; t++) CHECK(case_is_same(start->reference, start->outputs[t]));
    CHECK_OK(sp_model_release(start->cold.model));
}

TEST(a_plan_is_built_once_however_many_threads_ask_first)
{
    cold_start *start = sp_malloc(sizeof *start);
    for (uint32_t i = 0; i < FIXTURE_MODELS; i++) {
        char path[DATA_PATH_BYTES];
        model_case c;
        if (!case_open(fixture_models[i], NULL, &c)) {
            sp_free(start);
            SKIP("no shared data");
        }
        data_path(path, "models/%s/model.onnx", fixture_models[i]);
        *start = (cold_start){.reference = &c};
        make_room(start);
        const uint64_t rounds = test_count(80, 2);
        for (uint64_t round = 0; round < rounds; round++) start_cold(start, path);
        for (uint32_t t = 0; t < 31; t++) outputs_free(&c, start->outputs[t]);
        case_close(&c);
    }
    sp_free(start);
}

/* ---- concurrent use of the allocator ---- */

/* Allocates memory, writes to it, releases it, and empties the device's cache: memory that contexts
 * keep must be neither reused nor returned to the system. */
static void churn(uint32_t round)
{
    sp_stream stream;
    sp_storage storages[8];
    const uint32_t pattern = 0x7fc0dead;
    CHECK_OK(sp_stream_current((sp_device){0}, &stream));
    for (uint32_t i = 0; i < SP_COUNT_OF(storages); i++) {
        /* From 4 KiB to 1 MiB, the sizes of the arenas. */
        const uint64_t bytes = (uint64_t)4096 << (i + round) % 9;
        CHECK_OK(sp_storage_create((sp_device){0}, bytes, NULL, &storages[i]));
        const sp_storage_range all = {.storage = storages[i], .bytes = bytes};
        CHECK_OK(sp_storage_fill_async(stream, all, &pattern, sizeof pattern));
    }
    for (uint32_t i = 0; i < SP_COUNT_OF(storages); i++) CHECK_OK(sp_storage_release(storages[i]));
    if (round % 2 == 0) CHECK_OK(sp_stream_synchronize(stream));
    CHECK_OK(sp_device_empty_cache((sp_device){0}));
}

/* Without a cache every release trims; the default again afterwards. */
static void keep_no_cache(bool is_on)
{
    const uint64_t high = is_on ? 0 : sp_option_bytes(SP_OPTION_CACHE);
    CHECK_OK(sp_device_set_cache_watermarks((sp_device){0}, high / 4 * 3, high));
}

TEST(memory_that_is_taken_and_trimmed_between_runs_changes_no_bit)
{
    cases_load l;
    if (!cases_open(fixture_models, FIXTURE_MODELS, NULL, &l)) SKIP("no shared data");
    const uint32_t rounds = (uint32_t)test_count(200, 10);
    for (uint32_t round = 0; round < rounds; round++) {
        keep_no_cache(round % 3 == 0);
        churn(round);
        l.rounds = 1;
        cases_run_rounds(&l, round);
    }
    keep_no_cache(false);
    CHECK_EQ_U64(sp_load_relaxed(&l.differing), 0);
    cases_close(&l);
}

typedef struct churned_load {
    cases_load models;
    sp_atomic_u32 running;
    sp_atomic_u32 churns;
} churned_load;

enum { CHURNERS = 2, CHURNED_THREADS = 8 };

/* At least until a churn has ended beside the runs, however late a busy machine lets it begin. */
static void run_beside_churns(churned_load *c, uint32_t index)
{
    const uint32_t before = sp_load_acquire(&c->churns);
    do {
        cases_run_rounds(&c->models, index);
    } while (sp_load_acquire(&c->churns) == before);
    sp_fetch_sub_release(&c->running, 1);
}

static void run_or_churn(void *arg, uint32_t index)
{
    churned_load *c = arg;
    if (index >= CHURNERS) {
        run_beside_churns(c, index);
        return;
    }
    for (uint32_t round = index; sp_load_acquire(&c->running) > 0; round++) {
        churn(round);
        sp_fetch_add_release(&c->churns, 1);
    }
}

TEST(memory_that_is_taken_and_trimmed_beside_runs_changes_no_bit)
{
    churned_load c = {0};
    if (!cases_open(fixture_models, FIXTURE_MODELS, NULL, &c.models)) SKIP("no shared data");
    c.models.rounds = (uint32_t)test_count(200, 5);
    sp_store_relaxed(&c.running, CHURNED_THREADS - CHURNERS);
    keep_no_cache(true);
    test_threads(CHURNED_THREADS, run_or_churn, &c);
    keep_no_cache(false);
    CHECK_EQ_U64(sp_load_relaxed(&c.models.differing), 0);
    test_note("%u rounds of taking and trimming", sp_load_relaxed(&c.churns));
    cases_close(&c.models);
}

typedef struct strange_state {
    const model_case *c;
    uint32_t rounds;
    sp_atomic_u32 differing;
} strange_state;

static void run_strangely(void *arg, uint32_t index)
{
    strange_state *s = arg;
    const sp_fpenv before = fp_state_read();
    if (index == 3) fp_state_write(FP_STATE_STRANGE);
    sp_array outputs[FIXTURE_PORTS] = {0};
    outputs_make(s->c, outputs);
    for (uint32_t i = 0; i < s->rounds; i++) {
        CHECK_OK(case_run(s->c, outputs));
        if (!case_is_same(s->c, outputs)) sp_fetch_add_relaxed(&s->differing, 1);
    }
    outputs_free(s->c, outputs);
    if (index == 3) CHECK_EQ_U64(fp_state_read() & ~FP_STATE_FLAGS, FP_STATE_STRANGE);
    fp_state_write(before);
}

TEST(a_caller_with_another_floating_point_state_gets_and_gives_the_same_bits)
{
    model_case c;
    if (!case_open("policy_g1", NULL, &c)) SKIP("no shared data");
    strange_state s = {.c = &c, .rounds = (uint32_t)test_count(5000, 200)};
    test_threads(8, run_strangely, &s);
    CHECK_EQ_U64(sp_load_relaxed(&s.differing), 0);
    case_close(&c);
}

typedef struct release_race {
    sp_model model;
    sp_atomic_u32 ran;
} release_race;

static void run_until_released(void *arg, uint32_t index)
{
    release_race *race = arg;
    float x_data[4] = {1, 2, 3, 4};
    float y_data[3];
    if (index == 0) {
        while (sp_load_acquire(&race->ran) < 50) sp_thread_yield();
        CHECK_OK(sp_model_release(race->model));
        return;
    }
    for (;;) {
        const sp_host_tensor x = {
            .data = x_data, .bytes = 16, .dtype = SP_F32, .rank = 2, .shape = {1, 4}};
        sp_host_tensor y = {.data = y_data, .capacity = sizeof y_data};
        const sp_status status = sp_model_run(race->model, &x, 1, &y, 1);
        if (status == SP_INVALID) return;
        CHECK_OK(status);
        sp_fetch_add_release(&race->ran, 1);
    }
}

TEST(a_model_released_beside_running_threads_finishes_their_runs)
{
    for (uint64_t round = 0; round < test_count(500, 20); round++) {
        release_race race = {.model = small_model(NULL)};
        test_threads(8, run_until_released, &race);
    }
}

TEST_MAIN
