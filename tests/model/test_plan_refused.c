/* SPDX-License-Identifier: Apache-2.0 */
/* Calls on plans that are refused: each with every kind of invalid argument, plans that cannot be
 * made.
 */
#include "base/heap.h"
#include "plan_fixture.h"

typedef sp_status (*plan_question)(sp_plan plan, uint32_t index, bool has_place);

static sp_status ask_input(sp_plan plan, uint32_t index, bool has_place)
{
    sp_host_tensor out;
    return sp_plan_get_input(plan, index, has_place ? &out : NULL);
}

static sp_status ask_output(sp_plan plan, uint32_t index, bool has_place)
{
    sp_host_tensor out;
    return sp_plan_get_output(plan, index, has_place ? &out : NULL);
}

static sp_status ask_step(sp_plan plan, uint32_t index, bool has_place)
{
    sp_plan_step_info out;
    return sp_plan_get_step(plan, index, has_place ? &out : NULL);
}

static sp_status ask_kernel(sp_plan plan, uint32_t index, bool has_place)
{
    bool out;
    return sp_plan_step_has_kernel(plan, index, "cpu", has_place ? &out : NULL);
}

static sp_status ask_segment(sp_plan plan, uint32_t index, bool has_place)
{
    sp_plan_segment_info out;
    return sp_plan_get_segment(plan, index, has_place ? &out : NULL);
}

static sp_status ask_buffer(sp_plan plan, uint32_t index, bool has_place)
{
    sp_plan_buffer_info out;
    return sp_plan_get_buffer(plan, index, has_place ? &out : NULL);
}

static sp_status ask_stop(sp_plan plan, uint32_t index, bool has_place)
{
    sp_plan_stop_info out;
    return sp_plan_get_stop(plan, index, has_place ? &out : NULL);
}

static sp_status ask_info(sp_plan plan, uint32_t index, bool has_place)
{
    sp_plan_info out;
    (void)index;
    return sp_plan_get_info(plan, has_place ? &out : NULL);
}

/* Those with an index first. */
static const plan_question questions[] = {ask_input,   ask_output, ask_step, ask_kernel,
                                          ask_segment, ask_buffer, ask_stop, ask_info};
enum { INDEXED_QUESTIONS = SP_COUNT_OF(questions) - 1 };

TEST(an_index_past_the_end_is_not_found)
{
    const sp_model model = small_model(NULL);
    const sp_plan plan = small_plan(model, 1);
    for (size_t i = 0; i < INDEXED_QUESTIONS; i++) {
        CHECK_STATUS(questions[i](plan, 1000, true), SP_NOT_FOUND);
        CHECK_MESSAGE("none with index 1000");
        CHECK_STATUS(questions[i](plan, UINT32_MAX, true), SP_NOT_FOUND);
    }
    CHECK_OK(sp_plan_release(plan));
    CHECK_OK(sp_model_release(model));
}

static void expect_invalid(sp_plan plan, const char *message)
{
    for (size_t i = 0; i < SP_COUNT_OF(questions); i++) {
        CHECK_STATUS(questions[i](plan, 0, true), SP_INVALID);
        CHECK_MESSAGE(message);
    }
    CHECK_STATUS(sp_plan_retain(plan), SP_INVALID);
    CHECK_MESSAGE(message);
    if (plan.bits == 0) return; /* the release of the zero handle succeeds */
    CHECK_STATUS(sp_plan_release(plan), SP_INVALID);
    CHECK_MESSAGE(message);
}

TEST(zero_forged_and_stale_plans_are_invalid_in_every_call)
{
    const sp_model model = small_model(NULL);
    const sp_plan live = small_plan(model, 1);
    const sp_plan stale = small_plan(model, 1);
    CHECK_OK(sp_plan_release(stale));
    expect_invalid((sp_plan){0}, "the zero handle");
    expect_invalid(stale, "stale");
    expect_invalid((sp_plan){live.bits | 0xfffffff}, "stale");
    expect_invalid((sp_plan){model.bits}, "no plan handle");
    for (size_t i = 0; i < SP_COUNT_OF(questions); i++) {
        CHECK_STATUS(questions[i](live, 0, false), SP_INVALID); /* out is NULL */
    }
    CHECK_OK(sp_plan_release((sp_plan){0}));
    CHECK_OK(sp_plan_retain(live));
    CHECK_OK(sp_plan_release(live));
    CHECK_OK(ask_info(live, 0, true));
    CHECK_OK(sp_plan_release(live));
    CHECK_OK(sp_model_release(model));
}

static void expect_refused(sp_model model, const sp_host_tensor *inputs, uint32_t count,
                           sp_status status, const char *message)
{
    sp_plan plan = {1};
    CHECK_STATUS(sp_plan_create(model, inputs, count, &plan), status);
    CHECK_MESSAGE(message);
    CHECK_EQ_U64(plan.bits, 0);
}

TEST(wrong_inputs_make_no_plan)
{
    const sp_model model = small_model(NULL);
    const sp_host_tensor x = {.dtype = SP_F32, .rank = 2, .shape = {1, 4}};
    const sp_host_tensor twice[2] = {x, {.name = "x", .dtype = SP_F32, .rank = 2, .shape = {1, 4}}};
    const sp_host_tensor wide = {.dtype = SP_F32, .rank = 2, .shape = {1, 5}};
    const sp_host_tensor doubles = {.dtype = SP_F64, .rank = 2, .shape = {1, 4}};
    const sp_host_tensor untyped = {.rank = 2, .shape = {1, 4}};
    const sp_host_tensor huge = {.dtype = SP_F32, .rank = 2, .shape = {INT64_MAX, 4}};
    const sp_host_tensor named = {.name = "z", .dtype = SP_F32, .rank = 2, .shape = {1, 4}};
    expect_refused(model, NULL, 0, SP_MISMATCH, "input 'x' is missing");
    expect_refused(model, NULL, 1, SP_INVALID, "no inputs");
    expect_refused(model, twice, 2, SP_INVALID, "given twice");
    expect_refused(model, &wide, 1, SP_MISMATCH, "'x'");
    expect_refused(model, &doubles, 1, SP_MISMATCH, "'x'");
    expect_refused(model, &untyped, 1, SP_MISMATCH, "no dtype");
    expect_refused(model, &huge, 1, SP_EXHAUSTED, "'x'");
    expect_refused(model, &named, 1, SP_NOT_FOUND, "no input 'z'");
    expect_refused((sp_model){0}, &x, 1, SP_INVALID, "the zero handle");
    CHECK_STATUS(sp_plan_create(model, &x, 1, NULL), SP_INVALID);
    CHECK_OK(sp_model_release(model));
}

TEST(a_plan_of_a_closed_device_is_refused)
{
    sp_model_options options = {0};
    REQUIRE_OK(sp_device_open("null", &options.device));
    const sp_model model = small_model(&options);
    const sp_plan before = small_plan(model, 1);
    CHECK_OK(sp_device_close(options.device));
    const sp_host_tensor x = {.dtype = SP_F32, .rank = 2, .shape = {1, 4}};
    expect_refused(model, &x, 1, SP_CLOSED, "");
    CHECK_OK(ask_info(before, 0, true)); /* existing plans stay readable */
    CHECK_OK(ask_step(before, 0, true));
    CHECK_OK(ask_segment(before, 0, true));
    CHECK_OK(sp_plan_release(before));
    CHECK_OK(sp_model_release(model));
}

TEST(without_memory_there_is_no_plan_and_nothing_stays_behind)
{
    const sp_model model = small_model(NULL);
    const sp_host_tensor x = {.dtype = SP_F32, .rank = 2, .shape = {1, 4}};
    CHECK_OK(sp_plan_release(small_plan(model, 1))); /* allocates the slab of the handle table */
    bool has_failed = true;
    for (uint64_t skip = 0; has_failed; skip++) {
        sp_plan plan;
        sp_heap_fail_after(skip);
        const sp_status status = sp_plan_create(model, &x, 1, &plan);
        has_failed = sp_heap_has_failed();
        sp_heap_fail_after(UINT64_MAX);
        CHECK_STATUS(status, has_failed ? SP_OUT_OF_MEMORY : SP_OK);
        CHECK_OK(sp_plan_release(plan));
    }
    CHECK_OK(sp_model_release(model));
}

TEST_MAIN
