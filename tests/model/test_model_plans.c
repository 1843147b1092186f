/* SPDX-License-Identifier: Apache-2.0 */
/* The number of plans that a model caches, and which. */
#include <string.h>

#include <streampool/log.h>
#include <streampool/storage.h>
#include <streampool/stream.h>

#include "base/heap.h"
#include "base/option.h"
#include "base/thread.h"
#include "run_fixture.h"

/* A run of the first `rows` rows, up to 64 of them. */
static void run(sp_model model, uint64_t rows)
{
    float x[64 * SMALL_IN];
    float y[64 * SMALL_OUT];
    small_fill_rows(x, 0, rows);
    CHECK_OK(small_run_rows(model, x, rows, y));
}

TEST(a_model_keeps_as_many_plans_as_it_is_told_to)
{
    const sp_model model = small_model(&(sp_model_options){.max_plans = 3});
    for (uint64_t rows = 1; rows <= 3; rows++) run(model, rows);
    CHECK_EQ_U64(model_info_of(model).plan_evictions, 0);
    for (uint64_t rows = 4; rows <= 10; rows++) run(model, rows);
    const sp_model_info info = model_info_of(model);
    CHECK_EQ_U64(info.plan_count, 3);
    CHECK_EQ_U64(info.plan_builds, 10);
    CHECK_EQ_U64(info.plan_evictions, 7);
    CHECK_OK(sp_model_release(model));
}

typedef struct told {
    uint32_t loads, plans, evictions;
} told;

static void count_lines(void *ctx, sp_log_level level, const char *message)
{
    told *self = ctx;
    if (level != SP_LOG_INFO) return;
    if (strstr(message, "was loaded for cpu") != NULL) self->loads++;
    if (strstr(message, "plan built for cpu") != NULL) self->plans++;
    if (strstr(message, "another plan was evicted") != NULL) self->evictions++;
}

TEST(loads_plans_and_evictions_are_infos)
{
    told lines = {0};
    sp_log_set_level(SP_LOG_INFO);
    sp_log_set_callback(count_lines, &lines);
    const sp_model model = small_model(&(sp_model_options){.max_plans = 1});
    for (int i = 0; i < 2; i++) run(model, 1);
    run(model, 2);
    CHECK_OK(sp_model_release(model));
    sp_log_set_callback(NULL, NULL);
    sp_log_set_level(SP_LOG_WARN);
    CHECK_EQ_U64(lines.loads, 1);
    CHECK_EQ_U64(lines.plans, 2);
    CHECK_EQ_U64(lines.evictions, 1);
}

typedef struct log_runs {
    sp_model model;
    uint32_t count;
} log_runs;

static void run_in_log(void *ctx, sp_log_level level, const char *message)
{
    log_runs *self = ctx;
    if (level != SP_LOG_INFO || strstr(message, "plan built for cpu") == NULL) return;
    run(self->model, 20 + self->count++);
}

/* No plan is in use while it is told, so the one entry can be evicted for the callback's run. */
TEST(the_log_of_a_plan_may_run_the_model_with_another_shape)
{
    log_runs runs = {.model = small_model(&(sp_model_options){.max_plans = 1})};
    sp_log_set_level(SP_LOG_INFO);
    sp_log_set_callback(run_in_log, &runs);
    for (uint64_t rows = 1; rows <= 3; rows++) run(runs.model, rows);
    sp_log_set_callback(NULL, NULL);
    sp_log_set_level(SP_LOG_WARN);
    CHECK_EQ_U64(runs.count, 3);
    CHECK_EQ_U64(model_info_of(runs.model).plan_count, 1);
    CHECK_OK(sp_model_release(runs.model));
}

TEST(the_plan_that_was_not_used_for_longest_gives_way)
{
    const sp_model model = small_model(&(sp_model_options){.max_plans = 3});
    for (uint64_t rows = 1; rows <= 3; rows++) run(model, rows);
    run(model, 1);
    run(model, 4); /* evicts 2 */
    run(model, 1);
    run(model, 3);
    CHECK_EQ_U64(model_info_of(model).plan_builds, 4);
    run(model, 2); /* evicts 4 */
    run(model, 1);
    run(model, 3);
    CHECK_EQ_U64(model_info_of(model).plan_builds, 5);
    CHECK_OK(sp_model_release(model));
}

TEST(a_plan_that_is_built_again_gives_the_same_bits)
{
    const sp_model model = small_model(&(sp_model_options){.max_plans = 1});
    float x[8 * SMALL_IN];
    float first[8 * SMALL_OUT];
    float again[8 * SMALL_OUT];
    small_fill_rows(x, 0, 8);
    CHECK_OK(small_run_rows(model, x, 8, first));
    run(model, 5);
    CHECK_OK(small_run_rows(model, x, 8, again));
    CHECK_EQ_U64(model_info_of(model).plan_builds, 3);
    CHECK_EQ_MEM(first, again, sizeof first);
    CHECK_OK(sp_model_release(model));
}

TEST(without_a_bound_of_its_own_a_model_keeps_as_many_plans_as_the_option_says)
{
    const uint64_t bound = (uint64_t)sp_option_int(SP_OPTION_PLANS);
    const sp_model model = small_model(NULL);
    for (uint64_t rows = 1; rows <= bound + 2; rows++) run(model, rows);
    CHECK_EQ_U64(model_info_of(model).plan_count, bound);
    CHECK_OK(sp_model_release(model));
}

TEST(a_bound_that_is_too_large_is_refused)
{
    sp_model model;
    CHECK_STATUS(sp_model_load_from_memory("x", 1, &(sp_model_options){.max_plans = 4097}, &model),
                 SP_INVALID);
    CHECK_MESSAGE("at most 4096 plans");
}

/* ---- threads ---- */

#define THREADS 16
#define BOUND 8

typedef struct shapes_load {
    sp_model model;
    uint64_t rounds; /* shapes of each thread, used by no other thread */
    float *x, *y;    /* all rows, and their result in one run */
    sp_atomic_u64 wrong;
    sp_atomic_u64 most_plans, most_contexts, most_bytes;
} shapes_load;

static void raise(sp_atomic_u64 *most, uint64_t now)
{
    uint64_t seen = sp_load_relaxed(most);
    while (seen < now && !sp_cas_relaxed(most, &seen, now)) {
    }
}

static uint64_t bytes_in_use(void)
{
    sp_memory_stats stats = {0};
    CHECK_OK(sp_device_get_memory_stats((sp_device){0}, &stats));
    return stats.in_use_bytes;
}

/* The figure is the sum of counters that are read one by one, so one reading may count a block
 * twice that moves meanwhile. Memory that is held is in each of several. */
static uint64_t bytes_held(void)
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 8; i++) {
        const uint64_t now = bytes_in_use();
        if (now < least) least = now;
    }
    return least;
}

static void run_shapes(void *arg, uint32_t index)
{
    shapes_load *l = arg;
    const uint64_t most = THREADS * l->rounds;
    float *y = sp_malloc(most * SMALL_OUT * sizeof *y);
    for (uint64_t i = 0; i < l->rounds; i++) {
        const uint64_t rows = i * THREADS + index + 1;
        const size_t bytes = rows * SMALL_OUT * sizeof *y;
        memset(y, 0xff, bytes);
        CHECK_OK(small_run_rows(l->model, l->x, rows, y));
        if (memcmp(y, l->y, bytes) != 0) sp_fetch_add_relaxed(&l->wrong, (uint64_t)1);
        const sp_model_info info = model_info_of(l->model);
        raise(&l->most_plans, info.plan_count);
        raise(&l->most_contexts, info.context_count);
        raise(&l->most_bytes, bytes_held());
    }
    sp_free(y);
}

TEST(threads_with_many_shapes_get_the_same_bits_under_a_small_bound)
{
    shapes_load l = {.rounds = test_count(200, 10)};
    const uint64_t most = THREADS * l.rounds;
    l.x = sp_malloc(most * SMALL_IN * sizeof *l.x);
    l.y = sp_malloc(most * SMALL_OUT * sizeof *l.y);
    small_fill_rows(l.x, 0, most);
    const uint64_t before = bytes_in_use();
    const sp_model whole = small_model(NULL);
    CHECK_OK(small_run_rows(whole, l.x, most, l.y));
    const uint64_t largest = bytes_in_use() - before; /* plan */
    CHECK_OK(sp_model_release(whole));
    l.model = small_model(&(sp_model_options){.max_plans = BOUND});
    test_threads(THREADS, run_shapes, &l);
    const sp_model_info info = model_info_of(l.model);
    CHECK_EQ_U64(sp_load_relaxed(&l.wrong), 0);
    CHECK_EQ_U64(info.plan_builds, most); /* each shape once */
    CHECK_EQ_U64(info.plan_evictions, most - BOUND);
    CHECK(sp_load_relaxed(&l.most_plans) <= BOUND);
    sp_device_info device = {0};
    CHECK_OK(sp_device_get_info((sp_device){0}, &device));
    CHECK(sp_load_relaxed(&l.most_contexts) <= BOUND * device.run_slots);
    /* An evicted plan is freed before the next one is built. */
    CHECK(sp_load_relaxed(&l.most_bytes) - before <= BOUND * largest);
    CHECK_OK(sp_model_release(l.model));
    CHECK_EQ_U64(bytes_in_use(), before);
    sp_free(l.x);
    sp_free(l.y);
}

/* ---- runs that must not wait ---- */

typedef struct inside {
    sp_model model;
    sp_stream stream;
    sp_atomic_u32 is_entered;
    sp_status status;
} inside;

/* Other runs may hold the only plan while they wait for this stream. */
static void run_two_rows(void *ctx, sp_status status)
{
    inside *in = ctx;
    (void)status;
    float x[2 * SMALL_IN];
    float y[2 * SMALL_OUT];
    small_fill_rows(x, 0, 2);
    sp_store_release(&in->is_entered, 1);
    while (model_info_of(in->model).runs == 0) sp_thread_yield();
    in->status = small_run_rows(in->model, x, 2, y);
}

static void run_one_row_behind(void *arg, uint32_t index)
{
    (void)index;
    inside *in = arg;
    sp_stream_guard guard;
    CHECK_OK(sp_stream_guard_begin(in->stream, &guard));
    while (sp_load_acquire(&in->is_entered) == 0) sp_thread_yield();
    run(in->model, 1);
    CHECK_OK(sp_stream_guard_end(&guard));
}

TEST(a_run_inside_a_host_function_does_not_wait_for_a_plan_in_use)
{
    inside in = {.model = small_model(&(sp_model_options){.max_plans = 1})};
    CHECK_OK(sp_stream_from_pool((sp_device){0}, &in.stream));
    CHECK_OK(sp_stream_host_function(in.stream, run_two_rows, &in));
    CHECK_OK(sp_stream_flush(in.stream));
    test_threads(1, run_one_row_behind, &in);
    CHECK_OK(sp_stream_synchronize(in.stream));
    CHECK_OK(in.status);
    CHECK_EQ_U64(model_info_of(in.model).plan_count, 1);
    CHECK_EQ_U64(model_info_of(in.model).plan_builds, 2);
    CHECK_OK(sp_stream_release(in.stream));
    CHECK_OK(sp_model_release(in.model));
}

TEST_MAIN
