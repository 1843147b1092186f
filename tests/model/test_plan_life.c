/* SPDX-License-Identifier: Apache-2.0 */
/* How long plans live, and threads that make and read them. */
#include "plan_fixture.h"

TEST(a_plan_outlives_the_handle_of_its_model)
{
    const sp_model model = small_model(NULL);
    const sp_plan plan = small_plan(model, 1);
    CHECK_OK(sp_model_release(model));
    CHECK_STATUS(sp_model_retain(model), SP_INVALID);
    sp_plan_step_info step;
    CHECK_OK(sp_plan_get_step(plan, 0, &step));
    CHECK_EQ_STR(step.op, "MatMul");
    CHECK_OK(sp_plan_release(plan));
}

TEST(a_plan_is_made_past_the_limit_of_memory_and_of_plans)
{
    const sp_model_options options = {.max_plans = 1, .max_run_bytes = 1};
    const sp_model model = small_model(&options);
    const sp_plan a = small_plan(model, 1);
    const sp_plan b = small_plan(model, 64);
    CHECK(plan_info_of(b).arena_bytes > plan_info_of(a).arena_bytes);
    CHECK(plan_info_of(b).arena_bytes > 1);
    CHECK_OK(sp_plan_release(a));
    CHECK_OK(sp_plan_release(b));
    CHECK_OK(sp_model_release(model));
}

typedef struct plan_load {
    sp_model model;
    sp_plan shared;
    sp_plan_info expected;
    uint64_t rounds;
} plan_load;

static void read_and_make_plans(void *arg, uint32_t index)
{
    const plan_load *load = arg;
    for (uint64_t i = 0; i < load->rounds; i++) {
        const sp_plan mine = small_plan(load->model, 1 + (index + (int64_t)i) % 3);
        const sp_plan_info info = plan_info_of(load->shared);
        CHECK_EQ_U64(info.step_count, load->expected.step_count);
        CHECK_EQ_U64(info.arena_bytes, load->expected.arena_bytes);
        CHECK_OK(sp_plan_retain(load->shared));
        for (uint32_t s = 0; s < info.step_count; s++) {
            sp_plan_step_info a, b;
            CHECK_OK(sp_plan_get_step(load->shared, s, &a));
            CHECK_OK(sp_plan_get_step(mine, s, &b));
            CHECK_EQ_STR(a.op, b.op);
        }
        CHECK_OK(sp_plan_release(load->shared));
        small_run(load->model);
        CHECK_OK(sp_plan_release(mine));
    }
}

TEST(threads_make_and_read_plans_beside_runs)
{
    plan_load load = {.model = small_model(NULL), .rounds = test_count(1000, 50)};
    load.shared = small_plan(load.model, 2);
    load.expected = plan_info_of(load.shared);
    test_threads(8, read_and_make_plans, &load);
    CHECK_OK(sp_plan_release(load.shared));
    CHECK_OK(sp_model_release(load.model));
}

TEST_MAIN
