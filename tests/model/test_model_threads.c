/* SPDX-License-Identifier: Apache-2.0 */
/* Models from many threads: the bits of one thread, alone. Runs with several counts of workers and
 * policies of the stream pool. */
#include <string.h>

#include "base/heap.h"
#include "base/thread.h"
#include "run_fixture.h"

typedef struct load {
    model_case cases[FIXTURE_MODELS];
    uint32_t rounds;
    sp_atomic_u32 differing;
} load;

static bool load_open(load *l, const sp_model_options *options)
{
    memset(l, 0, sizeof *l);
    for (uint32_t i = 0; i < FIXTURE_MODELS; i++) {
        if (!case_open(fixture_models[i], options, &l->cases[i])) return false;
    }
    return true;
}

static void load_close(load *l)
{
    for (uint32_t i = 0; i < FIXTURE_MODELS; i++) case_close(&l->cases[i]);
}

static void run_all_models(void *arg, uint32_t index)
{
    load *l = arg;
    for (uint32_t i = 0; i < FIXTURE_MODELS; i++) {
        const model_case *c = &l->cases[(index + i) % FIXTURE_MODELS];
        sp_array outputs[FIXTURE_PORTS] = {0};
        outputs_make(c, outputs);
        for (uint32_t round = 0; round < l->rounds; round++) {
            memset(outputs[0].data, 0xff, outputs[0].bytes);
            CHECK_OK(case_run(c, outputs));
            if (!case_is_same(c, outputs)) sp_fetch_add_relaxed(&l->differing, 1);
        }
        outputs_free(c, outputs);
    }
}

TEST(all_models_from_31_threads_give_the_bits_of_one)
{
    load *l = sp_malloc(sizeof *l);
    if (!load_open(l, NULL)) {
        sp_free(l);
        SKIP("no shared data");
    }
    l->rounds = (uint32_t)test_count(100, 3);
    test_threads(31, run_all_models, l);
    CHECK_EQ_U64(sp_load_relaxed(&l->differing), 0);
    sp_device_info device;
    CHECK_OK(sp_device_get_info((sp_device){0}, &device));
    uint32_t most = 0;
    for (uint32_t i = 0; i < FIXTURE_MODELS; i++) {
        sp_model_info info;
        CHECK_OK(sp_model_get_info(l->cases[i].model, &info));
        CHECK_EQ_U64(info.plan_count, 1);
        CHECK(info.session_count <= device.run_slots);
        CHECK(info.most_in_flight <= device.run_slots);
        most = info.most_in_flight > most ? info.most_in_flight : most;
    }
    test_note("%u run slots, %u runs of one model at once", device.run_slots, most);
    if (device.run_slots > 1) CHECK(most >= 2);
    load_close(l);
    sp_free(l);
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
        sp_host_tensor y = {.data = out, .bytes = MOST * OUT * 4};
        REQUIRE_OK(sp_model_run(c.model, &x, 1, &y, 1));
        /* Row r alone, computed when it first appears. */
        const int64_t last = rows - 1;
        const sp_host_tensor row = {
            .data = in + last * IN, .bytes = IN * 4, .dtype = SP_F32, .rank = 2, .shape = {1, IN}};
        sp_host_tensor row_out = {.data = alone + last * OUT, .bytes = OUT * 4};
        REQUIRE_OK(sp_model_run(c.model, &row, 1, &row_out, 1));
        REQUIRE_EQ_MEM(out, alone, (size_t)rows * OUT * 4);
    }
    sp_free(in);
    sp_free(out);
    sp_free(alone);
    case_close(&c);
}

typedef struct cold_start {
    sp_model model;
    float outputs[31][12];
} cold_start;

static void run_cold(void *arg, uint32_t index)
{
    cold_start *start = arg;
    float observation[48];
    for (int i = 0; i < 48; i++) observation[i] = (float)i * 0.05f;
    const sp_host_tensor x = {.data = observation,
                              .bytes = sizeof observation,
                              .dtype = SP_F32,
                              .rank = 2,
                              .shape = {1, 48}};
    sp_host_tensor y = {.data = start->outputs[index], .bytes = sizeof start->outputs[index]};
    CHECK_OK(sp_model_run(start->model, &x, 1, &y, 1));
}

TEST(a_plan_is_built_once_however_many_threads_ask_first)
{
    char path[DATA_PATH_BYTES];
    if (!data_path(path, "models/policy_go1/model.onnx")) SKIP("no shared data");
    for (uint64_t round = 0; round < test_count(500, 20); round++) {
        cold_start start;
        REQUIRE_OK(sp_model_load(path, NULL, &start.model));
        test_threads(31, run_cold, &start);
        sp_model_info info;
        CHECK_OK(sp_model_get_info(start.model, &info));
        CHECK_EQ_U64(info.plan_count, 1);
        for (int i = 1; i < 31; i++) {
            CHECK_EQ_MEM(start.outputs[i], start.outputs[0], sizeof start.outputs[0]);
        }
        CHECK_OK(sp_model_release(start.model));
    }
}

#if defined(__x86_64__)
typedef struct strange_state {
    const model_case *c;
    uint32_t rounds;
    sp_atomic_u32 differing;
} strange_state;

static void run_strangely(void *arg, uint32_t index)
{
    strange_state *s = arg;
    const uint32_t before = __builtin_ia32_stmxcsr();
    const uint32_t strange = 0x1f80u | 0x8040u | 0x4000u; /* FTZ, DAZ, round up */
    if (index == 3) __builtin_ia32_ldmxcsr(strange);
    sp_array outputs[FIXTURE_PORTS] = {0};
    outputs_make(s->c, outputs);
    for (uint32_t i = 0; i < s->rounds; i++) {
        CHECK_OK(case_run(s->c, outputs));
        if (!case_is_same(s->c, outputs)) sp_fetch_add_relaxed(&s->differing, 1);
    }
    outputs_free(s->c, outputs);
    if (index == 3) CHECK_EQ_U64(__builtin_ia32_stmxcsr() & ~0x3fu, strange);
    __builtin_ia32_ldmxcsr(before);
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
#endif

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
        sp_host_tensor y = {.data = y_data, .bytes = sizeof y_data};
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
