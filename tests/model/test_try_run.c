/* SPDX-License-Identifier: Apache-2.0 */
/* Runs on the calling thread that wait for nothing: sp_model_try_run. Each reason to refuse one is
 * made, checked and removed. */
#include <string.h>

#include "combining_fixture.h"
#include "exec/context.h"
#include "partial_cases.h"
#include "support/fp_state.h"
#include "support/malloc_count.h"

static sp_status try_into(sp_model model, int64_t most_ns, small_row *out)
{
    const sp_host_tensor x = input_x(1);
    sp_host_tensor y = output_y((float *)(void *)out, 3);
    return sp_model_try_run(model, most_ns, &x, 1, &y, 1);
}

/* The run is refused for this reason, and nothing has changed. */
static void check_busy(sp_model model, const char *reason)
{
    const uint64_t runs = statistics_of(model).runs;
    small_row out, wiped;
    memset(&wiped, 0xff, sizeof wiped);
    out = wiped;
    CHECK_STATUS(try_into(model, SP_FOREVER, &out), SP_BUSY);
    CHECK_MESSAGE(reason);
    CHECK(small_is_same(&out, &wiped));
    CHECK_EQ_U64(statistics_of(model).runs, runs);
    CHECK_EQ_U64(statistics_of(model).refused, 0);
}

static void check_runs(sp_model model, const small_row *expected)
{
    small_row out;
    memset(&out, 0xff, sizeof out);
    CHECK_OK(try_into(model, SP_FOREVER, &out));
    CHECK(small_is_same(&out, expected));
}

TEST(the_first_run_of_a_plan_is_refused_and_later_ones_have_the_bits_of_sp_model_run)
{
    const sp_model model = small_model(NULL);
    sp_stream stream;
    CHECK_OK(sp_stream_current((sp_device){0}, &stream));
    check_busy(model, "no plan for its inputs yet");
    const small_row expected = small_run(model);
    for (int i = 0; i < 200; i++) check_runs(model, &expected);
    CHECK_EQ_U64(statistics_of(model).runs, 201);
    CHECK(statistics_of(model).timed >= 3);
    sp_host_tensor y = {0};
    const sp_host_tensor x = input_x(1);
    CHECK_OK(sp_model_try_run(model, SP_FOREVER, &x, 1, &y, 1));
    CHECK_EQ_U64(y.bytes, sizeof expected);
    CHECK_EQ_MEM(y.data, &expected, sizeof expected);
    sp_host_tensor_free(&y);
    CHECK_OK(sp_model_release(model));
}

TEST(a_run_that_is_expected_to_take_longer_than_allowed_is_refused)
{
    small_row out;
    const sp_model model = small_model(NULL);
    const small_row expected = small_run(model);
    CHECK_STATUS(try_into(model, 0, &out), SP_BUSY);
    CHECK_MESSAGE("runs of its plan take longer");
    CHECK_OK(try_into(model, INT64_MAX, &out));
    CHECK(small_is_same(&out, &expected));
    CHECK_STATUS(try_into(model, -2, &out), SP_INVALID);
    CHECK_MESSAGE("most_ns is -2");
    CHECK_OK(sp_model_release(model));
}

TEST(without_a_slot_a_context_or_a_finished_stream_nothing_is_waited_for)
{
    const sp_model model = small_model(NULL);
    const small_row expected = small_run(model);
    held_slots held = slots_hold(model);
    check_busy(model, "no run slot is free");
    slots_give(&held);
    check_runs(model, &expected);

    sp_rt_model *object = sp__model_hold(model);
    sp_plan_entry *entry = sp__plan_cache_acquire_newest(&object->plans);
    sp_exec_context *contexts[256];
    uint32_t count = 0;
    while ((contexts[count] = sp__exec_context_try_acquire(entry->executable, 0)) != NULL) count++;
    CHECK(count > 0);
    check_busy(model, "no memory for one run more is idle");
    while (count > 0) sp__wait_entry_resume(sp__exec_context_release(contexts[--count]));
    sp__plan_cache_release(&object->plans, entry);
    sp__model_drop(object);
    check_runs(model, &expected);
    CHECK_OK(sp_model_release(model));
}

static void spin_until(void *ctx, sp_status status)
{
    CHECK_OK(status);
    await_count(ctx, 1);
}

TEST(a_run_does_not_pass_work_on_the_threads_own_stream)
{
    const sp_model model = small_model(NULL);
    const small_row expected = small_run(model);
    sp_atomic_u32 go = {0};
    sp_stream stream;
    CHECK_OK(sp_stream_current((sp_device){0}, &stream));
    CHECK_OK(sp_stream_host_function(stream, spin_until, &go));
    check_busy(model, "work on its stream is not done");
    sp_fetch_add_release(&go, 1);
    CHECK_OK(sp_stream_synchronize(stream));
    check_runs(model, &expected);
    CHECK_OK(sp_model_release(model));
}

static void try_first(void *arg, uint32_t index)
{
    const sp_model *model = arg;
    (void)index;
    check_busy(*model, "needs a stream");
    const small_row expected = small_run(*model);
    check_runs(*model, &expected);
}

TEST(a_new_thread_needs_a_stream_first)
{
    sp_model model = small_model(NULL);
    (void)small_run(model);
    test_threads(1, try_first, &model);
    CHECK_OK(sp_model_release(model));
}

static void try_inside(void *ctx, sp_status status)
{
    CHECK_OK(status);
    check_busy(*(const sp_model *)ctx, "inside a host function");
}

TEST(it_is_for_the_cpu_and_for_threads_of_the_program)
{
    sp_model model = small_model(NULL);
    (void)small_run(model);
    sp_stream stream;
    CHECK_OK(sp_stream_current((sp_device){0}, &stream));
    CHECK_OK(sp_stream_host_function(stream, try_inside, &model));
    CHECK_OK(sp_stream_synchronize(stream));
    CHECK_OK(sp_model_release(model));

    const null_fixture null = null_open();
    model = small_model(&null.options);
    (void)small_run(model);
    check_busy(model, "not the cpu");
    CHECK_OK(sp_model_release(model));
    CHECK_OK(sp_device_close(null.device));
}

TEST(runs_of_several_plans_are_refused)
{
    const sp_model model = partial_model(CASE_FOUND, NULL);
    partial_case c;
    partial_case_make(&c, CASE_FOUND, 1);
    sp_host_tensor outputs[CASE_OUTPUTS] = {0};
    CHECK_OK(partial_case_run(model, &c, outputs));
    partial_free(&c, outputs);
    const sp_status status =
        sp_model_try_run(model, SP_FOREVER, &c.input, 1, outputs, partial_output_count(CASE_FOUND));
    CHECK_STATUS(status, SP_BUSY);
    CHECK_MESSAGE("several plans");
    CHECK(outputs[0].data == NULL);
    CHECK_OK(sp_model_release(model));
}

TEST(arguments_are_checked_as_by_sp_model_run)
{
    const sp_model model = small_model(NULL);
    (void)small_run(model);
    sp_host_tensor x = input_x(1), y = {0};
    CHECK_STATUS(sp_model_try_run(model, SP_FOREVER, &x, 0, &y, 1), SP_MISMATCH);
    x.dtype = SP_I64;
    CHECK_STATUS(sp_model_try_run(model, SP_FOREVER, &x, 1, &y, 1), SP_MISMATCH);
    x = input_x(1);
    float little[1];
    y = output_y(little, 1);
    CHECK_STATUS(sp_model_try_run(model, SP_FOREVER, &x, 1, &y, 1), SP_MISMATCH);
    CHECK_EQ_U64(y.bytes, 12);
    y = (sp_host_tensor){.name = "nothing"};
    CHECK_STATUS(sp_model_try_run(model, SP_FOREVER, &x, 1, &y, 1), SP_NOT_FOUND);
    CHECK_OK(sp_model_release(model));
    CHECK_STATUS(sp_model_try_run(model, SP_FOREVER, &x, 1, &y, 1), SP_INVALID);
}

TEST(a_kernel_that_fails_is_reported_as_by_sp_model_run)
{
    const sp_model model = table_model(NULL);
    float out[TABLE_WIDTH];
    int64_t index = 2;
    sp_host_tensor x = table_input(&index);
    sp_host_tensor y = output_y(out, TABLE_WIDTH);
    CHECK_OK(sp_model_run(model, &x, 1, &y, 1));
    index = TABLE_ROWS + 4;
    const sp_status expected = sp_model_run(model, &x, 1, &y, 1);
    CHECK(expected != SP_OK);
    CHECK_MESSAGE("node 'g' (Gather)");
    CHECK_STATUS(sp_model_try_run(model, SP_FOREVER, &x, 1, &y, 1), expected);
    CHECK_MESSAGE("node 'g' (Gather)");
    CHECK_MESSAGE("index 9 is out of range for a dimension of 5");
    CHECK_EQ_U64(statistics_of(model).failed, 2);
    index = 3;
    CHECK_OK(sp_model_try_run(model, SP_FOREVER, &x, 1, &y, 1));
    CHECK(table_is_right(3, out));
    CHECK_OK(sp_model_release(model));
}

TEST(the_callers_floating_point_state_does_not_matter)
{
    const sp_model model = small_model(NULL);
    const small_row expected = small_run(model);
    const sp_fpenv before = fp_state_read();
    fp_state_write(FP_STATE_STRANGE);
    check_runs(model, &expected);
    fp_state_write(before);
    CHECK_OK(sp_model_release(model));
}

TEST(a_run_allocates_nothing)
{
    if (!malloc_is_counted()) SKIP("a sanitizer replaces malloc");
    const sp_model model = small_model(NULL);
    const small_row expected = small_run(model);
    check_runs(model, &expected);
    small_row out;
    const uint64_t before = malloc_count();
    for (int i = 0; i < 100; i++) CHECK_OK(try_into(model, SP_FOREVER, &out));
    CHECK_EQ_U64(malloc_count(), before);
    CHECK_OK(sp_model_release(model));
}

/* ---- beside others ---- */

typedef struct mixed_load {
    sp_model model;
    small_row expected;
    sp_atomic_u32 tried, busy;
} mixed_load;

static void mixed_rounds(void *arg, uint32_t index)
{
    mixed_load *load = arg;
    small_row out;
    for (uint64_t i = 0; i < test_count(20000, 500); i++) {
        memset(&out, 0xff, sizeof out);
        sp_status status = SP_BUSY;
        if (index % 3 != 0) status = try_into(load->model, SP_FOREVER, &out);
        sp_fetch_add_relaxed(status == SP_OK ? &load->tried : &load->busy, 1);
        if (status == SP_BUSY) out = small_run(load->model);
        else CHECK_OK(status);
        CHECK(small_is_same(&out, &load->expected));
    }
}

TEST(runs_that_wait_and_runs_that_do_not_have_equal_bits)
{
    for (uint32_t limit = 0; limit < 2; limit++) {
        mixed_load load = {.model = small_model(&(sp_model_options){.max_concurrent_runs = limit})};
        load.expected = small_run(load.model);
        test_threads(6, mixed_rounds, &load);
        test_note("%u at once, %u refused", sp_load_relaxed(&load.tried),
                  sp_load_relaxed(&load.busy));
        CHECK(sp_load_relaxed(&load.tried) > 0);
        const sp_model_statistics statistics = statistics_of(load.model);
        CHECK_EQ_U64(statistics.runs, 6 * test_count(20000, 500) + 1);
        if (limit == 1) CHECK_EQ_U64(statistics.most_in_flight, 1);
        CHECK_OK(sp_model_release(load.model));
    }
}

TEST(models_of_the_shared_data_have_equal_bits)
{
    static const char *const names[] = {"torch_linear", "torch_lstm", "ppocr_cls", "mnist_8"};
    for (size_t i = 0; i < SP_COUNT_OF(names); i++) {
        model_case c;
        if (!case_open(names[i], NULL, &c)) SKIP("no shared data");
        sp_array outputs[FIXTURE_PORTS] = {0};
        outputs_make(&c, outputs);
        outputs_wipe(&c, outputs);
        sp_host_tensor inputs[FIXTURE_PORTS], results[FIXTURE_PORTS];
        for (uint32_t k = 0; k < c.input_count; k++) inputs[k] = tensor_of(&c.inputs[k], NULL);
        for (uint32_t k = 0; k < c.output_count; k++) results[k] = tensor_of(&outputs[k], NULL);
        CHECK_OK(
            sp_model_try_run(c.model, SP_FOREVER, inputs, c.input_count, results, c.output_count));
        CHECK(case_is_same(&c, outputs));
        outputs_free(&c, outputs);
        case_close(&c);
    }
}

TEST_MAIN
