/* SPDX-License-Identifier: Apache-2.0 */
/* When, how often and for which device weights are packed, and that nothing else changes. */
#include <string.h>

#include <streampool/device.h>
#include <streampool/plan.h>
#include <streampool/stream.h>

#include "run_fixture.h"

enum { SMALL_PACKED = 4 * 16 * 4 }; /* the small model's matrix in panels of 16 columns */
enum { MOST_ROWS = 16 };

TEST(loading_packs_nothing_and_the_first_plan_does)
{
    static const char *const names[] = {"torch_mlp", "torch_lstm", "policy_go1"};
    for (size_t i = 0; i < SP_COUNT_OF(names); i++) {
        model_case c;
        if (!case_open(names[i], NULL, &c)) SKIP("no shared data"); /* runs it once */
        sp_model fresh;
        char path[DATA_PATH_BYTES];
        CHECK(data_path(path, "models/%s/model.onnx", names[i]));
        REQUIRE_OK(sp_model_load(path, NULL, &fresh));
        CHECK_EQ_U64(model_info_of(fresh).packed_bytes, 0);
        CHECK_EQ_U64(model_info_of(fresh).weight_bytes, model_info_of(c.model).weight_bytes);
        CHECK(model_info_of(c.model).packed_bytes > 0);
        CHECK_OK(sp_model_release(fresh));
        case_close(&c);
    }
}

TEST(a_plan_that_only_tells_packs_nothing)
{
    const sp_model model = small_model(NULL);
    const sp_host_tensor x = input_x(1);
    sp_plan plan;
    sp_plan_info info;
    REQUIRE_OK(sp_plan_create(model, &x, 1, &plan));
    CHECK_OK(sp_plan_get_info(plan, &info));
    CHECK_EQ_U64(info.weight_bytes, (4 * 3 + 3) * 4);
    CHECK_OK(sp_plan_release(plan));
    CHECK_EQ_U64(model_info_of(model).packed_bytes, 0);
    CHECK_EQ_U64(model_info_of(model).weight_bytes, (4 * 3 + 3) * 4);
    CHECK_OK(sp_model_release(model));
}

/* ---- many plans ---- */

typedef struct small_load {
    sp_model model;
    float x[MOST_ROWS * SMALL_IN], want[MOST_ROWS * SMALL_OUT];
} small_load;

static void small_load_init(small_load *load)
{
    *load = (small_load){.model = small_model(NULL)};
    small_fill_rows(load->x, 0, MOST_ROWS);
    CHECK_OK(small_run_rows(load->model, load->x, MOST_ROWS, load->want));
    CHECK_OK(sp_model_release(load->model));
}

/* Each thread compiles its own plan. */
static void run_own_rows(void *arg, uint32_t index)
{
    const small_load *load = arg;
    const uint64_t rows = index + 1;
    float y[MOST_ROWS * SMALL_OUT];
    CHECK_OK(small_run_rows(load->model, load->x, rows, y));
    CHECK_EQ_MEM(y, load->want, (size_t)rows * SMALL_OUT * sizeof *y);
}

TEST(threads_that_compile_different_plans_at_the_same_time_pack_once)
{
    small_load load;
    small_load_init(&load);
    for (uint64_t round = 0; round < test_count(500, 40); round++) {
        load.model = small_model(NULL);
        test_threads(MOST_ROWS, run_own_rows, &load);
        CHECK_EQ_U64(model_info_of(load.model).packed_bytes, SMALL_PACKED);
        CHECK_EQ_U64(model_info_of(load.model).plan_builds, MOST_ROWS);
        CHECK_OK(sp_model_release(load.model));
    }
}

TEST(plans_that_were_evicted_find_the_copies_again)
{
    small_load load;
    small_load_init(&load);
    load.model = small_model(&(sp_model_options){.max_plans = 1});
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < MOST_ROWS; i++) run_own_rows(&load, i);
    }
    CHECK(model_info_of(load.model).plan_evictions > MOST_ROWS);
    CHECK_EQ_U64(model_info_of(load.model).packed_bytes, SMALL_PACKED);
    CHECK_OK(sp_model_release(load.model));
}

TEST(a_plan_without_rows_packs_nothing)
{
    small_load load;
    small_load_init(&load);
    load.model = small_model(NULL);
    CHECK_OK(small_run_rows(load.model, load.x, 0, load.want));
    CHECK_EQ_U64(model_info_of(load.model).packed_bytes, 0);
    run_own_rows(&load, 1);
    CHECK_EQ_U64(model_info_of(load.model).packed_bytes, SMALL_PACKED);
    CHECK_OK(sp_model_release(load.model));
}

/* ---- host functions ---- */

static void run_inside(void *ctx, sp_status status)
{
    CHECK_OK(status);
    run_own_rows(ctx, 2);
}

static void run_in_function(small_load *load)
{
    sp_stream stream;
    REQUIRE_OK(sp_stream_from_pool((sp_device){0}, &stream));
    CHECK_OK(sp_stream_host_function(stream, run_inside, load));
    CHECK_OK(sp_stream_synchronize(stream));
    CHECK_OK(sp_stream_release(stream));
}

TEST(the_first_run_may_be_inside_a_host_function)
{
    small_load load;
    small_load_init(&load);
    load.model = small_model(NULL);
    run_in_function(&load);
    CHECK_EQ_U64(model_info_of(load.model).packed_bytes, SMALL_PACKED);
    run_own_rows(&load, 5);
    CHECK_EQ_U64(model_info_of(load.model).packed_bytes, SMALL_PACKED);
    CHECK_OK(sp_model_release(load.model));
}

static void run_here_or_in_function(void *arg, uint32_t index)
{
    if (index % 2 == 0) run_own_rows(arg, index);
    else run_in_function(arg);
}

/* Host functions do not wait for other threads: in the worst case each packs a copy, of which one
 * is kept. */
TEST(first_runs_inside_and_outside_of_host_functions_share_the_copies)
{
    small_load load;
    small_load_init(&load);
    for (uint64_t round = 0; round < test_count(500, 40); round++) {
        load.model = small_model(NULL);
        test_threads(4, run_here_or_in_function, &load);
        CHECK_EQ_U64(model_info_of(load.model).packed_bytes, SMALL_PACKED);
        CHECK_OK(sp_model_release(load.model));
    }
}

/* ---- devices ---- */

TEST(a_device_that_is_closed_and_opened_again_packs_for_itself)
{
    const sp_model on_cpu = small_model(NULL);
    const small_row want = small_run(on_cpu);
    for (int round = 0; round < 3; round++) {
        sp_device device;
        REQUIRE_OK(sp_device_open("null", &device));
        const sp_model model = small_model(&(sp_model_options){.device = device});
        CHECK_EQ_U64(model_info_of(model).packed_bytes, 0);
        const small_row got = small_run(model);
        CHECK(small_is_same(&got, &want));
        CHECK_EQ_U64(model_info_of(model).packed_bytes, SMALL_PACKED);
        CHECK_OK(sp_device_close(device));
        const sp_host_tensor x = input_x(2);
        float out[6];
        sp_host_tensor y = output_y(out, 6);
        CHECK_STATUS(sp_model_run(model, &x, 1, &y, 1), SP_CLOSED);
        CHECK_EQ_U64(model_info_of(model).packed_bytes, SMALL_PACKED);
        CHECK_OK(sp_model_release(model));
    }
    CHECK_EQ_U64(model_info_of(on_cpu).packed_bytes, SMALL_PACKED);
    CHECK_OK(sp_model_release(on_cpu));
}

TEST_MAIN
