/* SPDX-License-Identifier: Apache-2.0 */
/* Running out of memory: memory that models keep only for speed is reclaimed. On a null device, or
 * on the first GPU if STREAMPOOL_TEST_DEVICE is cuda. */
#include <stdlib.h>
#include <string.h>

#include <streampool/device.h>
#include <streampool/future.h>
#include <streampool/storage.h>
#include <streampool/stream.h>

#include "base/heap.h"
#include "exec/model_object.h"
#include "run_fixture.h"

/* Runs of at least ROWS rows need blocks of one size, each in its own slab; no plan has an arena
 * that would be a workspace of a GPU. */
#define ROWS 87300u
#define SHAPES 12u
#define MOST_ROWS (ROWS + SHAPES)

typedef struct memory_fixture {
    sp_device device;
    sp_model_options options;
    float *x, *y;   /* all rows, and their result in one run on cpu */
    uint32_t slots; /* contexts that a plan is made with: of a GPU one, else one for each slot */
} memory_fixture;

static memory_fixture begin(void)
{
    memory_fixture f = {0};
    const char *kind = getenv("STREAMPOOL_TEST_DEVICE");
    const bool is_cuda = kind != NULL && strcmp(kind, "cuda") == 0;
    CHECK_OK(sp_device_open(is_cuda ? "cuda:0" : "null", &f.device));
    f.options = (sp_model_options){.device = f.device};
    f.x = sp_malloc(MOST_ROWS * SMALL_IN * sizeof *f.x);
    f.y = sp_malloc(MOST_ROWS * SMALL_OUT * sizeof *f.y);
    small_fill_rows(f.x, 0, MOST_ROWS);
    const sp_model on_cpu = small_model(NULL);
    CHECK_OK(small_run_rows(on_cpu, f.x, MOST_ROWS, f.y));
    CHECK_OK(sp_model_release(on_cpu));
    sp_device_info info = {0};
    CHECK_OK(sp_device_get_info(f.device, &info));
    f.slots = is_cuda ? 1 : info.run_slots;
    return f;
}

static void end(memory_fixture *f)
{
    sp_free(f->x);
    sp_free(f->y);
    CHECK_OK(sp_device_close(f->device));
}

enum { MOST_STORAGES = 256 };

/* Creates storages until memory runs out; returns their number. */
static uint32_t fill_up(const memory_fixture *f, uint64_t bytes, sp_storage *storages)
{
    uint32_t count = 0;
    sp_status status = SP_OK;
    while (status == SP_OK && count < MOST_STORAGES) {
        status = sp_storage_create(f->device, bytes, NULL, &storages[count]);
        if (status == SP_OK) count++;
    }
    CHECK_STATUS(status, SP_OUT_OF_MEMORY);
    CHECK_MESSAGE("limit");
    return count;
}

static void release_all(const sp_storage *storages, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) CHECK_OK(sp_storage_release(storages[i]));
}

/* Runs the first rows and checks the bits. */
static sp_status run_shape(const memory_fixture *f, sp_model model, uint32_t shape, bool *is_same)
{
    const uint64_t rows = ROWS + shape;
    const size_t bytes = rows * SMALL_OUT * sizeof *f->y;
    float *y = sp_calloc(rows * SMALL_OUT, sizeof *y);
    const sp_status status = small_run_rows(model, f->x, rows, y);
    *is_same = memcmp(y, f->y, bytes) == 0;
    sp_free(y);
    return status;
}

static void run_right(const memory_fixture *f, sp_model model, uint32_t shape)
{
    bool is_same;
    CHECK_OK(run_shape(f, model, shape, &is_same));
    CHECK(is_same);
}

static uint64_t reserved(const memory_fixture *f)
{
    sp_memory_stats stats = {0};
    CHECK_OK(sp_device_empty_cache(f->device));
    CHECK_OK(sp_device_get_memory_stats(f->device, &stats));
    return stats.reserved_bytes;
}

/* The size of one context of the model's plans. */
static uint64_t context_bytes(const memory_fixture *f)
{
    const uint64_t before = reserved(f);
    const sp_model model = small_model(&f->options);
    run_right(f, model, 0);
    CHECK_EQ_U64(model_info_of(model).context_count, f->slots);
    const uint64_t bytes = (reserved(f) - before) / f->slots;
    CHECK(bytes >= ROWS * SMALL_OUT * sizeof(float));
    CHECK_OK(sp_model_release(model));
    return bytes;
}

/* Leaves memory for that many contexts. */
static void leave_room_for(const memory_fixture *f, uint32_t contexts)
{
    const uint64_t bytes = context_bytes(f);
    CHECK_OK(sp_device_set_memory_limit(f->device, reserved(f) + contexts * bytes));
}

TEST(unused_plans_are_reclaimed_for_new_ones)
{
    memory_fixture f = begin();
    leave_room_for(&f, 2 * f.slots);
    const sp_model model = small_model(&f.options);
    for (uint32_t shape = 0; shape < SHAPES; shape++) run_right(&f, model, shape);
    const sp_model_info info = model_info_of(model);
    CHECK_EQ_U64(info.plan_builds, SHAPES);
    CHECK_EQ_U64(info.plan_evictions + info.plan_count, SHAPES);
    CHECK(info.plan_count >= 2);
    run_right(&f, model, SHAPES - 1); /* the newest one is cached */
    CHECK_EQ_U64(model_info_of(model).plan_builds, SHAPES);
    CHECK_OK(sp_model_release(model));
    end(&f);
}

TEST(the_plan_that_was_not_used_for_longest_gives_way_whichever_model_has_it)
{
    memory_fixture f = begin();
    leave_room_for(&f, 3 * f.slots);
    const sp_model first = small_model(&f.options);
    const sp_model second = small_model(&f.options);
    const sp_model third = small_model(&f.options);
    run_right(&f, first, 0);
    run_right(&f, second, 0);
    run_right(&f, second, 1);
    run_right(&f, first, 0); /* used again: now the first plan of `second` is the oldest */
    run_right(&f, third, 0);
    CHECK_EQ_U64(model_info_of(first).plan_count, 1);
    CHECK_EQ_U64(model_info_of(second).plan_evictions, 1);
    run_right(&f, second, 1);
    CHECK_EQ_U64(model_info_of(second).plan_builds, 2);
    CHECK_OK(sp_model_release(first));
    CHECK_OK(sp_model_release(second));
    CHECK_OK(sp_model_release(third));
    end(&f);
}

TEST(plans_are_reclaimed_for_storages)
{
    memory_fixture f = begin();
    leave_room_for(&f, 2 * f.slots);
    const uint64_t bytes = context_bytes(&f);
    const sp_model model = small_model(&f.options);
    run_right(&f, model, 0);
    run_right(&f, model, 1);
    sp_storage storages[MOST_STORAGES];
    const uint32_t count = fill_up(&f, bytes / 2, storages);
    CHECK(count >= 2 * f.slots);
    CHECK_EQ_U64(model_info_of(model).plan_count, 0);
    bool is_same;
    CHECK_STATUS(run_shape(&f, model, 0, &is_same), SP_OUT_OF_MEMORY);
    CHECK_MESSAGE("limit");
    release_all(storages, count);
    run_right(&f, model, 0);
    CHECK_OK(sp_model_release(model));
    end(&f);
}

static uint32_t contexts_alive(sp_executable *compiled)
{
    sp_mutex_lock(&compiled->lock);
    const uint32_t alive = compiled->alive;
    sp_mutex_unlock(&compiled->lock);
    return alive;
}

/* A plan in use keeps one context, which its runs use in turn. */
TEST(contexts_of_a_plan_in_use_are_reclaimed_but_for_the_last)
{
    memory_fixture f = begin();
    leave_room_for(&f, f.slots);
    const uint64_t bytes = context_bytes(&f);
    const sp_model model = small_model(&f.options);
    run_right(&f, model, 0);
    sp_rt_model *held = sp__model_hold(model);
    sp_plan_entry *entry = sp__plan_cache_acquire_newest(&held->plans);
    REQUIRE(entry != NULL);
    CHECK_EQ_U64(contexts_alive(entry->executable), f.slots);
    sp_storage storages[MOST_STORAGES];
    const uint32_t count = fill_up(&f, bytes / 2, storages);
    CHECK(count >= f.slots - 1);
    REQUIRE_EQ_U64(contexts_alive(entry->executable), 1);
    run_right(&f, model, 0);
    CHECK_EQ_U64(model_info_of(model).plan_builds, 1);
    sp__plan_cache_release(&held->plans, entry);
    release_all(storages, count);
    sp__model_drop(held);
    CHECK_OK(sp_model_release(model));
    end(&f);
}

TEST(nothing_is_reclaimed_for_contexts_that_only_make_runs_quicker)
{
    memory_fixture f = begin();
    leave_room_for(&f, f.slots + 1);
    const sp_model first = small_model(&f.options);
    const sp_model second = small_model(&f.options);
    for (int i = 0; i < 3; i++) {
        run_right(&f, first, 0);
        run_right(&f, second, 0);
    }
    CHECK_EQ_U64(model_info_of(first).plan_builds, 1);
    CHECK_EQ_U64(model_info_of(second).plan_builds, 1);
    CHECK_EQ_U64(model_info_of(second).context_count, 1);
    CHECK_OK(sp_model_release(first));
    CHECK_OK(sp_model_release(second));
    end(&f);
}

/* ---- memory returned later ---- */

typedef struct held_memory {
    const memory_fixture *f;
    sp_model model;
    sp_stream stream;
    sp_atomic_u32 is_open;
    sp_status status;
} held_memory;

static void wait_until_open(void *ctx, sp_status status)
{
    held_memory *held = ctx;
    (void)status;
    while (sp_load_acquire(&held->is_open) == 0) sp_thread_yield();
}

/* Allocates all memory to storages that are freed after the function has returned. */
static void hold_memory(held_memory *held, sp_host_function fn, uint64_t bytes)
{
    sp_storage storages[MOST_STORAGES];
    const uint64_t pattern = 0;
    CHECK_OK(sp_stream_from_pool(held->f->device, &held->stream));
    CHECK_OK(sp_stream_host_function(held->stream, fn, held));
    const uint32_t count = fill_up(held->f, bytes, storages);
    for (uint32_t i = 0; i < count; i++) {
        const sp_storage_range range = {.storage = storages[i], .bytes = 8};
        CHECK_OK(sp_storage_fill_async(held->stream, range, &pattern, sizeof pattern));
    }
    release_all(storages, count);
    CHECK_OK(sp_stream_flush(held->stream));
}

static void run_while_it_is_built(void *ctx, sp_status status)
{
    held_memory *held = ctx;
    (void)status;
    bool is_same;
    while (model_info_of(held->model).plan_builds == 0) sp_thread_yield();
    held->status = run_shape(held->f, held->model, 0, &is_same);
}

TEST(a_run_in_a_host_function_does_not_wait_for_a_build_that_waits_for_the_function)
{
    memory_fixture f = begin();
    leave_room_for(&f, f.slots);
    const uint64_t bytes = context_bytes(&f) / 2;
    held_memory held = {.f = &f, .model = small_model(&f.options)};
    hold_memory(&held, run_while_it_is_built, bytes);
    run_right(&f, held.model, 0); /* waits for the memory, and thus for the function */
    CHECK_OK(sp_stream_synchronize(held.stream));
    CHECK_EQ_INT(held.status, SP_OUT_OF_MEMORY);
    CHECK_OK(sp_stream_release(held.stream));
    CHECK_OK(sp_model_release(held.model));
    end(&f);
}

/* A thread of the device may start submitted runs. */
TEST(a_submitted_run_waits_for_no_memory_where_it_is_started)
{
    memory_fixture f = begin();
    leave_room_for(&f, f.slots + 2);
    const uint64_t bytes = context_bytes(&f) / 2;
    held_memory held = {.f = &f, .model = small_model(&f.options)};
    run_right(&f, held.model, 0); /* the plan is cached */
    sp_rt_model *model = sp__model_hold(held.model);
    sp_plan_entry *entry = sp__plan_cache_acquire_newest(&model->plans); /* and is not evicted */
    hold_memory(&held, wait_until_open, bytes);
    const sp_host_tensor x = {.data = f.x,
                              .bytes = ROWS * SMALL_IN * sizeof *f.x,
                              .dtype = SP_F32,
                              .rank = 2,
                              .shape = {ROWS, SMALL_IN}};
    sp_future future;
    CHECK_OK(sp_model_submit(held.model, &x, 1, NULL, 0, &future)); /* y is left out */
    const sp_status status = sp_future_wait_for(future, 10000000000);
    /* Devices that write outputs in place need no copy of this one. */
    CHECK(status == SP_OK || status == SP_OUT_OF_MEMORY);
    sp_store_release(&held.is_open, 1);
    CHECK_OK(sp_stream_synchronize(held.stream));
    CHECK_OK(sp_future_release(future));
    sp__plan_cache_release(&model->plans, entry);
    sp__model_drop(model);
    CHECK_OK(sp_stream_release(held.stream));
    CHECK_OK(sp_model_release(held.model));
    end(&f);
}

/* ---- threads ---- */

#define THREADS 4u

typedef struct short_load {
    const memory_fixture *f;
    sp_model models[2];
    uint32_t rounds;
    sp_atomic_u32 failed, wrong;
} short_load;

static void run_short(void *arg, uint32_t index)
{
    short_load *l = arg;
    for (uint32_t i = 0; i < l->rounds; i++) {
        bool is_same = false;
        const uint32_t at = i * THREADS + index;
        const sp_status status = run_shape(l->f, l->models[at % 2], at * 5 % SHAPES, &is_same);
        if (status != SP_OK) sp_fetch_add_relaxed(&l->failed, 1);
        if (status == SP_OK && !is_same) sp_fetch_add_relaxed(&l->wrong, 1);
    }
}

/* Each thread uses one plan at a time, and needs one context of it: there is memory for twice
 * that. */
TEST(threads_share_too_little_memory)
{
    memory_fixture f = begin();
    leave_room_for(&f, 2 * THREADS);
    short_load l = {.f = &f, .rounds = (uint32_t)test_count(500, 10)};
    for (int i = 0; i < 2; i++) l.models[i] = small_model(&f.options);
    test_threads(THREADS, run_short, &l);
    CHECK_EQ_U64(sp_load_relaxed(&l.failed), 0);
    CHECK_EQ_U64(sp_load_relaxed(&l.wrong), 0);
    uint64_t evictions = 0;
    for (int i = 0; i < 2; i++) {
        evictions += model_info_of(l.models[i]).plan_evictions;
        CHECK_OK(sp_model_release(l.models[i]));
    }
    CHECK(evictions > 0);
    end(&f);
}

TEST_MAIN
