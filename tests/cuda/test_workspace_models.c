/* SPDX-License-Identifier: Apache-2.0 */
/* Models whose plans have large arenas share the workspaces of their device, on the fake driver:
 * the bits are those of the cpu whatever plan had the memory before, whatever call of the driver
 * fails, and with memory for one workspace. */
#include <string.h>

#include "base/heap.h"
#include "device/cuda/cuda_api.h"
#include "exec/context.h"
#include "exec/model_object.h"
#include "fake_cuda.h"
#include "segment_fixture.h"
#include "support/child.h"

/* Rows of plans that have large arenas, of 12 bytes a row. */
#define ROWS 90000u
#define STEP 30000u
#define SHAPES 4u
#define MOST_ROWS (ROWS + STEP * (SHAPES - 1))
#define THREADS 8u

static float x[MOST_ROWS * SMALL_IN], wanted[MOST_ROWS * SMALL_OUT];

static uint64_t rows_of(uint32_t shape)
{
    return ROWS + (uint64_t)STEP * (shape % SHAPES);
}

static sp_device begin(void)
{
    const sp_device device = segment_begin();
    small_fill_rows(x, 0, MOST_ROWS);
    const sp_model on_cpu = small_model(NULL);
    CHECK_OK(small_run_rows(on_cpu, x, MOST_ROWS, wanted));
    CHECK_OK(sp_model_release(on_cpu));
    return device;
}

static sp_model load(sp_device device)
{
    return small_model(&(sp_model_options){.device = device});
}

static sp_status run(sp_model model, uint32_t shape, bool *is_same)
{
    const uint64_t rows = rows_of(shape);
    float *y = sp_calloc(rows * SMALL_OUT, sizeof *y);
    const sp_status status = small_run_rows(model, x, rows, y);
    *is_same = memcmp(y, wanted, rows * SMALL_OUT * sizeof *y) == 0;
    sp_free(y);
    return status;
}

static void check_run(sp_model model, uint32_t shape)
{
    bool is_same = false;
    CHECK_OK(run(model, shape, &is_same));
    CHECK(is_same);
}

static uint64_t in_use(sp_device device)
{
    sp_memory_stats stats = {0};
    CHECK_OK(sp_device_get_memory_stats(device, &stats));
    return stats.in_use_bytes;
}

TEST(runs_before_and_after_a_growth_have_the_same_bits)
{
    const sp_device device = begin();
    const sp_model model = load(device);
    for (uint32_t shape = 0; shape < SHAPES; shape++) {
        check_run(model, shape);
        for (uint32_t before = 0; before <= shape; before++) check_run(model, before);
    }
    /* One workspace, and a graph for each plan, which never changed its addresses. */
    CHECK_EQ_U64(fake_cuda_live(FAKE_ADDRESS_RANGE), 1);
    CHECK_EQ_U64(fake_cuda_live(FAKE_GRAPH_EXEC), SHAPES);
    CHECK_EQ_U64(model_info_of(model).context_count, SHAPES);
    CHECK_OK(sp_model_release(model));
    CHECK_EQ_U64(fake_cuda_live(FAKE_RANGE_MEMORY), 0);
    segment_end();
}

TEST(models_run_in_one_workspace_one_after_the_other)
{
    const sp_device device = begin();
    const sp_model a = load(device), b = load(device);
    check_run(a, 3);
    check_run(b, 2);
    const uint64_t patched = sp__cuda_call_count(SP_CUDA_CALL_cuGraphExecKernelNodeSetParams);
    for (uint32_t i = 0; i < 8; i++) check_run(i % 2 == 0 ? a : b, 3 - i % 2);
    CHECK_EQ_U64(fake_cuda_live(FAKE_ADDRESS_RANGE), 1);
    CHECK_EQ_U64(sp__cuda_call_count(SP_CUDA_CALL_cuGraphExecKernelNodeSetParams), patched);
    CHECK_OK(sp_model_release(a));
    check_run(b, 2);
    CHECK(fake_cuda_live(FAKE_RANGE_MEMORY) > 0);
    CHECK_OK(sp_model_release(b));
    CHECK_EQ_U64(fake_cuda_live(FAKE_RANGE_MEMORY), 0);
    segment_end();
}

typedef struct crowd {
    sp_model models[2];
    uint32_t rounds;
    sp_atomic_u32 differing, failed;
    sp_device device;
    bool may_close;
} crowd;

static void run_rounds(void *arg, uint32_t index)
{
    crowd *c = arg;
    for (uint32_t i = 0; i < c->rounds; i++) {
        bool is_same;
        const sp_status status = run(c->models[(index + i) % 2], index + i, &is_same);
        if (status == SP_OK && !is_same) sp_fetch_add_relaxed(&c->differing, 1);
        const bool is_closed = c->may_close && status == SP_CLOSED;
        if (status != SP_OK && !is_closed) sp_fetch_add_relaxed(&c->failed, 1);
    }
}

static crowd crowd_begin(sp_device device)
{
    return (crowd){.models = {load(device), load(device)},
                   .rounds = (uint32_t)test_count(40, 6),
                   .device = device};
}

static void crowd_end(const crowd *c)
{
    CHECK_EQ_U64(sp_load_relaxed(&c->differing), 0);
    CHECK_EQ_U64(sp_load_relaxed(&c->failed), 0);
    for (uint32_t i = 0; i < 2; i++) CHECK_OK(sp_model_release(c->models[i]));
    CHECK_EQ_U64(fake_cuda_live(FAKE_RANGE_MEMORY), 0);
    segment_end();
}

TEST(threads_of_two_models_get_the_bits_of_the_cpu)
{
    crowd c = crowd_begin(begin());
    test_threads(THREADS, run_rounds, &c);
    for (uint32_t i = 0; i < 2; i++) {
        /* Of 28 bytes of inputs and outputs a row, as many as take 16 MiB, but 4 at least. */
        CHECK(model_info_of(c.models[i]).context_count <= 6 + 4 + 4 + 4);
    }
    crowd_end(&c);
}

TEST(threads_share_the_only_workspace_that_there_is_memory_for)
{
    crowd c = crowd_begin(begin());
    for (uint32_t i = 0; i < 2 * SHAPES; i++) check_run(c.models[i % 2], i / 2);
    CHECK_OK(sp_device_empty_cache(c.device));
    CHECK_OK(sp_device_set_memory_limit(c.device, in_use(c.device)));
    const uint64_t parts = fake_cuda_live(FAKE_RANGE_MEMORY);
    test_threads(THREADS, run_rounds, &c);
    CHECK_EQ_U64(fake_cuda_live(FAKE_RANGE_MEMORY), parts);
    crowd_end(&c);
}

static uint64_t reserved(sp_device device)
{
    sp_memory_stats stats = {0};
    CHECK_OK(sp_device_empty_cache(device));
    CHECK_OK(sp_device_get_memory_stats(device, &stats));
    return stats.reserved_bytes;
}

TEST(a_plan_that_needs_a_larger_workspace_evicts_idle_ones)
{
    const sp_device device = begin();
    const sp_model model = load(device);
    check_run(model, 0);
    check_run(model, 1);
    /* Room for one plan's ports, or for growth, but not for both beside the idle plans. */
    CHECK_OK(sp_device_set_memory_limit(device, reserved(device) + (2 << 20)));
    for (uint32_t i = 0; i < 8; i++) check_run(model, i);
    CHECK(model_info_of(model).plan_count < SHAPES);
    CHECK_OK(sp_model_release(model));
    segment_end();
}

TEST(runs_fail_without_a_workspace_and_are_right_afterwards)
{
    static const char *const calls[] = {"cuMemAddressReserve", "cuMemCreate", "cuMemMap",
                                        "cuMemSetAccess"};
    for (uint32_t i = 0; i < SP_COUNT_OF(calls); i++) {
        const sp_device device = begin();
        const sp_model model = load(device);
        bool is_same;
        fake_cuda_fail_call(calls[i], 1, 1000, CUDA_ERROR_OUT_OF_MEMORY);
        CHECK_STATUS(run(model, 0, &is_same), SP_OUT_OF_MEMORY);
        CHECK_MESSAGE(calls[i]);
        fake_cuda_fail_call(calls[i], 1, 0, CUDA_SUCCESS);
        check_run(model, 0);
        check_run(model, 3);
        CHECK_OK(sp_model_release(model));
        segment_end();
    }
}

TEST(without_ranges_contexts_have_arenas)
{
    fake_cuda_set_attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0);
    const sp_device device = begin();
    const sp_model model = load(device);
    check_run(model, 0);
    check_run(model, 3);
    CHECK_EQ_U64(fake_cuda_live(FAKE_ADDRESS_RANGE), 0);
    CHECK_OK(sp_model_release(model));
    segment_end();
}

static void run_inside(void *ctx, sp_status status)
{
    const sp_model *model = ctx;
    CHECK_OK(status);
    check_run(*model, 1);
}

TEST(a_run_in_a_host_function_needs_no_workspace)
{
    const sp_device device = begin();
    sp_model model = load(device);
    sp_stream stream;
    check_run(model, 0);
    CHECK_OK(sp_stream_current(device, &stream));
    CHECK_OK(sp_stream_host_function(stream, run_inside, &model));
    CHECK_OK(sp_stream_synchronize(stream));
    CHECK_OK(sp_model_release(model));
    segment_end();
}

static void run_until_closed(void *arg, uint32_t index)
{
    crowd *c = arg;
    if (index > 0) run_rounds(arg, index);
    else CHECK_OK(sp_device_close(c->device));
}

TEST(a_device_is_closed_while_its_workspaces_are_in_use)
{
    crowd c = crowd_begin(begin());
    c.may_close = true;
    check_run(c.models[0], 0);
    test_threads(THREADS, run_until_closed, &c);
    crowd_end(&c);
}

static int leave_in_child(void *arg)
{
    const crowd *c = arg;
    bool is_same;
    if (run(c->models[0], 0, &is_same) == SP_OK) return 1;
    return sp_model_release(c->models[0]) == SP_OK ? 0 : 2;
}

TEST(a_forked_child_leaves_the_workspaces_alone)
{
    crowd c = crowd_begin(begin());
    check_run(c.models[0], 0);
    CHECK_EQ_INT(child_run(leave_in_child, &c), 0);
    check_run(c.models[0], 3);
    check_run(c.models[1], 0);
    crowd_end(&c);
}

TEST_MAIN
