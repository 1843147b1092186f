/* SPDX-License-Identifier: Apache-2.0 */
/* The bits of every development model do not depend on which runs are computed together: from 1 to
 * 31 threads, with other inputs each, think times, runs that are waited for and submitted ones, and
 * two models and two keys at the same time. STREAMPOOL_BATCHING is off, combine or always. */
#include <string.h>

#include "base/clock.h"
#include "base/heap.h"
#include "base/thread.h"
#include "combining_fixture.h"
#include "batch/batch_builder.h"

enum { VARIANTS = 6, MOST_THREADS = 31 };

/* A model with several inputs of one key, and the outputs of a run alone for each. */
typedef struct variants {
    model_case c;
    sp_array inputs[VARIANTS][FIXTURE_PORTS];
    sp_array outputs[VARIANTS][FIXTURE_PORTS];
    bool is_separable;
    uint64_t run_ns; /* of the last run alone */
} variants;

/* Floats near those of the file; other types stay, since they may be indices or sizes. */
static void input_vary(data_random *random, const sp_array *from, bool is_first, sp_array *out)
{
    CHECK_OK(sp__array_init(out, from->dtype, &from->shape));
    memcpy(out->data, from->data, (size_t)from->bytes);
    if (is_first || from->dtype != SP_F32) return;
    float *values = out->data;
    for (uint64_t i = 0; i < from->bytes / sizeof *values; i++) {
        values[i] += 0.01f * data_next_float(random);
    }
}

static uint32_t variant_tensors(const variants *v, uint32_t k, sp_host_tensor *inputs)
{
    for (uint32_t i = 0; i < v->c.input_count; i++) inputs[i] = tensor_of(&v->inputs[k][i], NULL);
    return v->c.input_count;
}

/* Output i is requested if bit i of `skips` is 0. */
static uint32_t output_tensors(const variants *v, const sp_array *outputs, uint32_t skips,
                               sp_port *ports, sp_host_tensor *tensors)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < v->c.output_count; i++) {
        if ((skips >> i & 1) != 0) continue;
        CHECK_OK(sp_model_get_output(v->c.model, i, &ports[i]));
        tensors[count++] = tensor_of(&outputs[i], ports[i].name);
    }
    return count;
}

static bool outputs_are_right(const variants *v, uint32_t k, uint32_t skips,
                              const sp_array *outputs)
{
    for (uint32_t i = 0; i < v->c.output_count; i++) {
        if ((skips >> i & 1) != 0) continue;
        if (memcmp(outputs[i].data, v->outputs[k][i].data, (size_t)outputs[i].bytes) != 0) {
            return false;
        }
    }
    return true;
}

static sp_status variant_run(const variants *v, uint32_t k, uint32_t skips, const sp_array *outputs)
{
    sp_host_tensor inputs[FIXTURE_PORTS], tensors[FIXTURE_PORTS];
    sp_port ports[FIXTURE_PORTS];
    const uint32_t count = variant_tensors(v, k, inputs);
    const uint32_t wanted = output_tensors(v, outputs, skips, ports, tensors);
    return sp_model_run(v->c.model, inputs, count, tensors, wanted);
}

static sp_status variant_submit(const variants *v, uint32_t k, uint32_t skips,
                                const sp_array *outputs, sp_future *out)
{
    sp_host_tensor inputs[FIXTURE_PORTS], tensors[FIXTURE_PORTS];
    sp_port ports[FIXTURE_PORTS];
    const uint32_t count = variant_tensors(v, k, inputs);
    const uint32_t wanted = output_tensors(v, outputs, skips, ports, tensors);
    return sp_model_submit(v->c.model, inputs, count, tensors, wanted, out);
}

static bool variants_open(const char *name, variants *v)
{
    *v = (variants){0};
    if (!case_open(name, NULL, &v->c)) return false;
    data_random random = {.state = strlen(name)};
    for (uint32_t k = 0; k < VARIANTS; k++) {
        for (uint32_t i = 0; i < v->c.input_count; i++) {
            input_vary(&random, &v->c.inputs[i], k == 0, &v->inputs[k][i]);
        }
        outputs_make(&v->c, v->outputs[k]);
        const uint64_t before = sp_clock_now();
        CHECK_OK(variant_run(v, k, 0, v->outputs[k]));
        v->run_ns = sp_clock_now() - before;
    }
    sp_model_batching batching = {0};
    sp_host_tensor inputs[FIXTURE_PORTS];
    const uint32_t count = variant_tensors(v, 0, inputs);
    v->is_separable =
        sp_model_get_batching(v->c.model, inputs, count, 2, &batching, NULL, NULL) == SP_OK &&
        batching.is_separable;
    return true;
}

static void variants_close(variants *v)
{
    for (uint32_t k = 0; k < VARIANTS; k++) {
        for (uint32_t i = 0; i < FIXTURE_PORTS; i++) {
            sp__array_deinit(&v->inputs[k][i]);
            sp__array_deinit(&v->outputs[k][i]);
        }
    }
    case_close(&v->c);
}

/* ---- load ---- */

typedef struct bits_load {
    variants *models[2]; /* one may be NULL */
    uint64_t until_ns;
    uint32_t least; /* runs of each thread */
    sp_atomic_u64 runs;
} bits_load;

static void think(data_random *random)
{
    const uint64_t draw = data_next(random) >> 40;
    if (draw % 4 == 0) sp_thread_yield();
    if (draw % 64 == 1) sp_clock_sleep(20000);
}

/* Submits up to three runs, and looks at their outputs. */
static uint32_t burst(const variants *v, data_random *random, sp_array outputs[][FIXTURE_PORTS])
{
    sp_future futures[3];
    uint32_t which[3], skips[3];
    const uint32_t count = 1 + (uint32_t)(data_next(random) >> 40) % 3;
    for (uint32_t i = 0; i < count; i++) {
        which[i] = (uint32_t)(data_next(random) >> 40) % VARIANTS;
        skips[i] = (uint32_t)(data_next(random) >> 40) % 8 == 0 ? 1 : 0;
        outputs_wipe(&v->c, outputs[i]);
        CHECK_OK(variant_submit(v, which[i], skips[i], outputs[i], &futures[i]));
    }
    for (uint32_t i = 0; i < count; i++) {
        CHECK_OK(sp_future_wait(futures[i]));
        CHECK(outputs_are_right(v, which[i], skips[i], outputs[i]));
        CHECK_OK(sp_future_release(futures[i]));
    }
    return count;
}

static void run_load(void *arg, uint32_t index)
{
    bits_load *l = arg;
    data_random random = {.state = index + 1};
    sp_array outputs[2][3][FIXTURE_PORTS] = {0};
    const int models = l->models[1] != NULL ? 2 : 1;
    for (int m = 0; m < models; m++) {
        for (int i = 0; i < 3; i++) outputs_make(&l->models[m]->c, outputs[m][i]);
    }
    uint32_t runs = 0;
    while (runs < l->least || sp_clock_now() < l->until_ns) {
        const int m = models == 2 && (data_next(&random) >> 40) % 2 == 0;
        const variants *v = l->models[m];
        const uint32_t k = (uint32_t)(data_next(&random) >> 40) % VARIANTS;
        const uint32_t skips = (uint32_t)(data_next(&random) >> 40) % 8 == 0 ? 1 : 0;
        if ((data_next(&random) >> 40) % 4 == 0) {
            runs += burst(v, &random, outputs[m]);
        } else {
            outputs_wipe(&v->c, outputs[m][0]);
            CHECK_OK(variant_run(v, k, skips, outputs[m][0]));
            CHECK(outputs_are_right(v, k, skips, outputs[m][0]));
            runs++;
        }
        think(&random);
    }
    for (int m = 0; m < models; m++) {
        for (int i = 0; i < 3; i++) outputs_free(&l->models[m]->c, outputs[m][i]);
    }
    sp_fetch_add_relaxed(&l->runs, (uint64_t)runs);
}

/* `test_count` scales the time, in ms. */
static void check_load(variants *first, variants *second, uint32_t threads)
{
    bits_load l = {.models = {first, second}, .least = 2};
    l.until_ns = sp_clock_now() + test_count(5000, 30) * 1000000;
    test_threads(threads, run_load, &l);
}

static void prepare(variants *v)
{
    const uint32_t buckets = combining_build(v->c.model);
    if (!combining_is_certain()) return;
    if (v->is_separable) CHECK(buckets > 0);
    else CHECK_EQ_U64(buckets, 0);
}

/* All variants wait when a slot is given back. */
static void merge_once(const variants *v)
{
    sp_array outputs[VARIANTS][FIXTURE_PORTS] = {0};
    sp_future futures[VARIANTS];
    const merged_runs before = merged_of(v->c.model);
    held_slots held = slots_hold(v->c.model);
    for (uint32_t k = 0; k < VARIANTS; k++) {
        outputs_make(&v->c, outputs[k]);
        outputs_wipe(&v->c, outputs[k]);
        CHECK_OK(variant_submit(v, k, 0, outputs[k], &futures[k]));
    }
    slots_give(&held);
    for (uint32_t k = 0; k < VARIANTS; k++) {
        CHECK_OK(sp_future_wait(futures[k]));
        CHECK(outputs_are_right(v, k, 0, outputs[k]));
        CHECK_OK(sp_future_release(futures[k]));
        outputs_free(&v->c, outputs[k]);
    }
    const bool is_certain = combining_is_certain() && v->is_separable;
    if (is_certain) CHECK(merged_since(v->c.model, before).batches > 0);
}

static const uint32_t thread_counts[] = {1, 2, 3, 8, MOST_THREADS};

/* Light and heavy models alike: of the heavy ones a larger plan or two. */
TEST(every_model_has_the_bits_of_a_run_alone)
{
    uint32_t merged = 0, separable = 0;
    for (uint32_t i = 0; i < FIXTURE_ALL_MODELS; i++) {
        static variants v;
        if (!variants_open(fixture_all_models[i], &v)) SKIP("no shared data");
        if (test_scale() < 1 && v.run_ns > 5000000) { /* instrumented code */
            variants_close(&v);
            continue;
        }
        prepare(&v);
        merge_once(&v);
        /* Of a model that takes long, the numbers of threads in between are for soak tests. */
        const bool is_long = v.run_ns > 1000000 && test_count(1000, 1) == 1;
        for (uint32_t t = is_long ? 3 : 0; t < SP_COUNT_OF(thread_counts) - is_long; t++) {
            check_load(&v, NULL, thread_counts[t]);
        }
        const sp_model_info info = model_info_of(v.c.model);
        test_note("%s: %llu of %llu runs in %llu batches", fixture_all_models[i],
                  (unsigned long long)info.batched_runs, (unsigned long long)info.runs,
                  (unsigned long long)info.batches);
        separable += v.is_separable;
        merged += info.batches > 0;
        if (!v.is_separable) CHECK_EQ_U64(info.batches, 0);
        variants_close(&v);
    }
    CHECK(separable >= 26 || test_scale() < 1);
    test_note("runs of %u models were merged", merged);
}

TEST(two_models_at_the_same_time_have_the_bits_of_runs_alone)
{
    static const char *const pairs[][2] = {
        {"torch_linear", "policy_go1"}, {"torch_mlp", "mnist_8"}, {"torch_lstm", "silero_vad_v5"}};
    static variants first, second;
    for (uint32_t i = 0; i < SP_COUNT_OF(pairs); i++) {
        if (!variants_open(pairs[i][0], &first)) SKIP("no shared data");
        CHECK(variants_open(pairs[i][1], &second));
        prepare(&first);
        prepare(&second);
        for (uint32_t t = 1; t < SP_COUNT_OF(thread_counts); t++) {
            check_load(&first, &second, thread_counts[t]);
        }
        variants_close(&first);
        variants_close(&second);
    }
}

/* Nothing is prepared: plans are built and attached beside the runs. */
TEST(larger_plans_that_are_built_beside_the_runs_do_not_change_their_bits)
{
    static const char *const names[] = {"torch_linear", "torch_mlp", "policy_g1", "mnist_8",
                                        "silero_vad_v4"};
    for (uint64_t round = 0; round < test_count(20, 2); round++) {
        for (uint32_t i = 0; i < SP_COUNT_OF(names); i++) {
            static variants v;
            if (!variants_open(names[i], &v)) SKIP("no shared data");
            sp_host_tensor inputs[FIXTURE_PORTS];
            combining_request(v.c.model, inputs, variant_tensors(&v, 0, inputs));
            check_load(&v, NULL, MOST_THREADS);
            sp__batch_builder_drain();
            variants_close(&v);
        }
    }
}

TEST_MAIN
