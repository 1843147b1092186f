/* SPDX-License-Identifier: Apache-2.0 */
/* Futures of models that run in several plans: the bits of sp_model_run, and outputs that belong to
 * the future. Host functions and callbacks that wait are in test_futures_partial_waits.c, the end
 * of the library in test_futures_partial_process.c. */
#include <string.h>

#include <streampool/storage.h>
#include <streampool/stream.h>

#include "base/heap.h"
#include "base/thread.h"
#include "exec/model_object.h"
#include "partial_cases.h"
#include "run_fixture.h"

/* ---- bits ---- */

TEST(a_submitted_run_gives_the_bits_of_a_run)
{
    for (int kind = 0; kind < CASE_KINDS; kind++) {
        const sp_model model = partial_model((case_kind)kind, NULL);
        for (uint64_t seed = 0; seed < 12; seed++) {
            partial_case c;
            sp_future future;
            sp_host_tensor outputs[CASE_OUTPUTS] = {0};
            partial_case_make(&c, (case_kind)kind, seed);
            CHECK_OK(partial_case_submit(model, &c, outputs, &future));
            CHECK(outputs[0].data == NULL && outputs[0].bytes == 0 && outputs[0].rank == 0);
            partial_case_check(model, &c, future);
        }
        CHECK_OK(sp_model_release(model));
    }
}

enum { PIPELINE = 300 };

TEST(one_thread_keeps_hundreds_of_runs_under_way)
{
    static partial_case cases[PIPELINE];
    static sp_future futures[PIPELINE];
    sp_model models[CASE_KINDS];
    for (int k = 0; k < CASE_KINDS; k++) models[k] = partial_model((case_kind)k, NULL);
    for (uint64_t round = 0; round < test_count(20, 1); round++) {
        for (int i = 0; i < PIPELINE; i++) {
            sp_host_tensor outputs[CASE_OUTPUTS] = {0};
            partial_case_make(&cases[i], (case_kind)(i % CASE_KINDS), (uint64_t)i % 17);
            CHECK_OK(partial_case_submit(models[i % CASE_KINDS], &cases[i], outputs, &futures[i]));
        }
        for (int i = PIPELINE - 1; i >= 0; i--) {
            partial_case_check(models[i % CASE_KINDS], &cases[i], futures[i]);
        }
    }
    for (int k = 0; k < CASE_KINDS; k++) CHECK_OK(sp_model_release(models[k]));
}

TEST(a_model_may_be_released_right_after_the_submit)
{
    for (uint64_t round = 0; round < test_count(200, 10); round++) {
        for (int kind = 0; kind < CASE_KINDS; kind++) {
            const sp_model other = partial_model((case_kind)kind, NULL);
            const sp_model model = partial_model((case_kind)kind, NULL);
            partial_case c;
            sp_future future;
            sp_host_tensor outputs[CASE_OUTPUTS] = {0};
            partial_case_make(&c, (case_kind)kind, round);
            CHECK_OK(partial_case_submit(model, &c, outputs, &future));
            CHECK_OK(sp_model_release(model));
            partial_case_check(other, &c, future);
            CHECK_OK(sp_model_release(other));
        }
    }
}

/* The names and structs of the call may end with it, also of an overridden default. */
TEST(the_run_owns_what_it_needs_of_the_arguments)
{
    writer graph = {0};
    partial_add_found(&graph, "values");
    partial_add_floats(&graph, "factor", (const float[]){2}, 1);
    add_input(&graph, "factor", ONNX_FLOAT, (const int64_t[]){1}, 1);
    add_node(&graph, make_node("Mul", "values factor", "y"));
    add_node(&graph, make_node("Neg", "values", "z"));
    add_output(&graph, "y");
    add_output(&graph, "z");
    sp_model model = {0};
    REQUIRE_OK(partial_load(&graph, NULL, &model));
    const float x[CASE_COUNT] = {0, 3, 0, 5};
    const float factor = 10;
    char names[4][8] = {"factor", "x", "z", "y"};
    sp_host_tensor inputs[2] = {partial_floats(names[0], &factor, 1),
                                partial_floats(names[1], x, CASE_COUNT)};
    sp_host_tensor outputs[2] = {{.name = names[2]}, {.name = names[3]}};
    sp_future future;
    CHECK_OK(sp_model_submit(model, inputs, 2, outputs, 2, &future));
    memset(names, 'q', sizeof names);
    memset(inputs, 0xff, sizeof inputs);
    memset(outputs, 0xff, sizeof outputs);
    CHECK_OK(sp_future_wait(future));
    sp_host_tensor z = {.name = "mine"};
    sp_host_tensor y = {0};
    CHECK_OK(sp_future_take_output(future, 1, &y));
    CHECK_OK(sp_future_take_output(future, 0, &z));
    CHECK_EQ_STR(z.name, "mine");
    CHECK_EQ_MEM(y.data, ((const float[]){30, 50}), 8);
    CHECK_EQ_MEM(z.data, ((const float[]){-3, -5}), 8);
    sp_host_tensor_free(&y);
    sp_host_tensor_free(&z);
    CHECK_OK(sp_future_release(future));
    CHECK_OK(sp_model_release(model));
}

/* ---- outputs ---- */

TEST(an_output_is_taken_once_and_the_others_are_freed_with_the_future)
{
    const sp_model model = partial_model(CASE_FOUND, NULL);
    partial_case c;
    sp_future future;
    sp_host_tensor outputs[CASE_OUTPUTS] = {0};
    sp_host_tensor taken = {0};
    partial_case_make(&c, CASE_FOUND, 1);
    CHECK_OK(partial_case_submit(model, &c, outputs, &future));
    CHECK_OK(sp_future_wait(future));
    CHECK_OK(sp_future_take_output(future, 0, &taken));
    CHECK_EQ_U64(taken.capacity, taken.bytes);
    const sp_host_tensor before = taken;
    CHECK_STATUS(sp_future_take_output(future, 0, &taken), SP_NOT_FOUND);
    CHECK_MESSAGE("output 0 has been taken already");
    CHECK_STATUS(sp_future_take_output(future, 2, &taken), SP_NOT_FOUND);
    CHECK_MESSAGE("output 2 of the call was to be taken; it was given 2");
    CHECK_EQ_MEM(&taken, &before, sizeof taken);
    CHECK_STATUS(sp_future_take_output(future, 1, NULL), SP_INVALID);
    CHECK_OK(sp_future_release(future));
    CHECK_STATUS(sp_future_take_output(future, 1, &taken), SP_INVALID);
    sp_host_tensor_free(&taken);
    CHECK_OK(sp_model_release(model));
}

static sp_run_slots *cpu_slots(sp_model model, uint32_t *count)
{
    sp_rt_model *object = sp__model_hold(model);
    sp_run_slots *slots = sp__device_run_slots(object->device);
    *count = slots->count;
    sp__model_drop(object);
    return slots;
}

static sp_run_slots *take_all_slots(sp_model model)
{
    uint32_t count;
    sp_run_slots *slots = cpu_slots(model, &count);
    for (uint32_t i = 0; i < count; i++) CHECK_OK(sp__run_slots_acquire(slots, NULL));
    return slots;
}

static void give_all_slots(sp_run_slots *slots)
{
    const uint32_t count = slots->count;
    for (uint32_t i = 0; i < count; i++) sp__wait_entry_resume(sp__run_slots_release(slots, NULL));
}

TEST(before_the_end_no_output_can_be_taken)
{
    const sp_model model = partial_model(CASE_LOOP, NULL);
    partial_case c;
    sp_future future;
    sp_host_tensor outputs[CASE_OUTPUTS] = {0};
    partial_case_make(&c, CASE_LOOP, 3);
    sp_run_slots *slots = take_all_slots(model);
    CHECK_OK(partial_case_submit(model, &c, outputs, &future));
    CHECK_STATUS(sp_future_take_output(future, 0, &outputs[0]), SP_NOT_READY);
    CHECK_STATUS(sp_future_query(future), SP_NOT_READY);
    CHECK_STATUS(sp_future_wait_for(future, 1000000), SP_TIMEOUT);
    give_all_slots(slots);
    partial_case_check(model, &c, future);
    CHECK_OK(sp_model_release(model));
}

TEST(outputs_with_memory_are_written_there_and_described_by_taking)
{
    const sp_model model = partial_model(CASE_FOUND, NULL);
    partial_case c;
    sp_future future;
    float y[CASE_COUNT];
    sp_host_tensor expected[CASE_OUTPUTS] = {0};
    partial_case_make(&c, CASE_FOUND, 4);
    CHECK_OK(partial_case_run(model, &c, expected));
    sp_host_tensor outputs[CASE_OUTPUTS] = {partial_room("y", y, sizeof y), {0}};
    CHECK_OK(partial_case_submit(model, &c, outputs, &future));
    CHECK_OK(sp_future_wait(future));
    CHECK_EQ_MEM(y, expected[0].data, expected[0].bytes);
    sp_host_tensor taken[CASE_OUTPUTS] = {0};
    partial_case_take(&c, future, taken);
    CHECK(taken[0].data == y && taken[0].capacity == sizeof y);
    CHECK(partial_is_same(&c, taken, expected));
    CHECK_STATUS(sp_future_take_output(future, 0, &taken[0]), SP_NOT_FOUND);
    sp_host_tensor_free(&taken[1]);
    partial_free(&c, expected);
    CHECK_OK(sp_future_release(future));
    CHECK_OK(sp_model_release(model));
}

TEST(too_little_capacity_is_the_status_of_the_future)
{
    const sp_model model = partial_model(CASE_LOOP, NULL);
    partial_case c;
    sp_future future;
    float y[4];
    partial_case_make(&c, CASE_LOOP, 5);
    sp_host_tensor outputs[CASE_OUTPUTS] = {{0}, partial_room("y", y, sizeof y)};
    outputs[0].name = "s";
    CHECK_OK(partial_case_submit(model, &c, outputs, &future));
    CHECK_STATUS(sp_future_wait(future), SP_MISMATCH);
    CHECK_MESSAGE("output 'y' is f32 of shape [200] and needs 800 bytes; its capacity is 16");
    CHECK_STATUS(sp_future_take_output(future, 0, &outputs[0]), SP_MISMATCH);
    CHECK_MESSAGE("its capacity is 16");
    CHECK(outputs[0].data == NULL);
    CHECK_OK(sp_future_release(future));
    CHECK_OK(sp_model_release(model));
}

static void count_call(void *ctx, sp_status status)
{
    CHECK_OK(status);
    sp_fetch_add_acq_rel((sp_atomic_u32 *)ctx, 1);
}

TEST(outputs_may_be_left_out_and_the_future_released_at_once)
{
    const sp_model model = partial_model(CASE_FOUND, NULL);
    partial_case c;
    sp_future future;
    sp_host_tensor outputs[CASE_OUTPUTS] = {0};
    partial_case_make(&c, CASE_FOUND, 6);
    CHECK_OK(sp_model_submit(model, &c.input, 1, NULL, 0, &future));
    CHECK_OK(sp_future_wait(future));
    CHECK_STATUS(sp_future_take_output(future, 0, &outputs[0]), SP_NOT_FOUND);
    CHECK_OK(sp_future_release(future));
    sp_atomic_u32 calls = {0};
    CHECK_OK(partial_case_submit(model, &c, outputs, &future));
    CHECK_OK(sp_future_on_complete(future, count_call, &calls));
    CHECK_OK(sp_future_release(future));
    await_count(&calls, 1); /* the input belongs to the run until then */
    CHECK_OK(sp_model_release(model));
}

/* ---- plans that are whole ---- */

enum { MANY = 7 };

/* Outputs o0 = |x|, o1 = ||x||, ... of which each has another name. */
static sp_model many_model(void)
{
    static const int64_t dims[1] = {-1};
    writer graph = {0};
    char names[MANY + 1][3] = {"x"};
    add_input(&graph, "x", ONNX_FLOAT, dims, 1);
    for (int i = 0; i < MANY; i++) {
        names[i + 1][0] = 'o';
        names[i + 1][1] = (char)('0' + i);
        add_node(&graph, make_node(i % 2 == 0 ? "Neg" : "Abs", names[i], names[i + 1]));
        add_output(&graph, names[i + 1]);
    }
    sp_model model = {0};
    CHECK_OK(partial_load(&graph, NULL, &model));
    return model;
}

TEST(taking_the_outputs_of_other_models_repeats_what_the_call_has_written)
{
    const sp_model model = many_model();
    const float x[3] = {1, -2, 3};
    const sp_host_tensor input = partial_floats("x", x, 3);
    for (uint32_t count = 0; count <= MANY; count++) {
        float y[3] = {0};
        sp_host_tensor outputs[MANY] = {0};
        sp_host_tensor taken[MANY + 1] = {0};
        sp_future future;
        if (count > 0) outputs[0] = partial_room(NULL, y, sizeof y);
        CHECK_OK(sp_model_submit(model, &input, 1, outputs, count, &future));
        CHECK_OK(sp_future_wait(future));
        for (uint32_t i = 0; i < count; i++) {
            CHECK_OK(sp_future_take_output(future, i, &taken[i]));
            CHECK_EQ_MEM(&taken[i], &outputs[i], sizeof taken[i]);
            CHECK_STATUS(sp_future_take_output(future, i, &taken[i]), SP_NOT_FOUND);
            if (i > 0) sp_host_tensor_free(&taken[i]); /* the same memory: the caller's already */
        }
        CHECK_STATUS(sp_future_take_output(future, count, &taken[count]), SP_NOT_FOUND);
        CHECK_OK(sp_future_release(future));
    }
    CHECK_OK(sp_model_release(model));
}

/* ---- several takers ---- */

enum { TAKERS = 8 };

typedef struct taking {
    sp_future future;
    sp_atomic_u32 taken, refused;
} taking;

static void take_first(void *arg, uint32_t index)
{
    taking *t = arg;
    (void)index;
    sp_host_tensor out = {0};
    CHECK_OK(sp_future_wait(t->future));
    const sp_status status = sp_future_take_output(t->future, 0, &out);
    if (status != SP_OK) CHECK_STATUS(status, SP_NOT_FOUND);
    sp_fetch_add_relaxed(status == SP_OK ? &t->taken : &t->refused, 1);
    sp_host_tensor_free(&out);
}

TEST(one_of_several_takers_gets_an_output)
{
    const sp_model model = partial_model(CASE_LOOP, NULL);
    partial_case c;
    partial_case_make(&c, CASE_LOOP, 7);
    for (uint64_t i = 0; i < test_count(500, 20); i++) {
        taking t = {0};
        sp_host_tensor outputs[CASE_OUTPUTS] = {0};
        CHECK_OK(partial_case_submit(model, &c, outputs, &t.future));
        test_threads(TAKERS, take_first, &t);
        CHECK_EQ_U64(sp_load_relaxed(&t.taken), 1);
        CHECK_EQ_U64(sp_load_relaxed(&t.refused), TAKERS - 1);
        CHECK_OK(sp_future_release(t.future));
    }
    CHECK_OK(sp_model_release(model));
}

/* ---- refusals and failures ---- */

TEST(a_wrong_call_is_refused_and_gives_no_future)
{
    const sp_model model = partial_model(CASE_FOUND, NULL);
    partial_case c;
    partial_case_make(&c, CASE_FOUND, 8);
    sp_host_tensor output = {.name = "q"};
    sp_future future = {1};
    CHECK_STATUS(sp_model_submit(model, &c.input, 1, &output, 1, &future), SP_NOT_FOUND);
    CHECK_EQ_U64(future.bits, 0);
    CHECK_STATUS(sp_model_submit(model, &c.input, 0, NULL, 0, &future), SP_MISMATCH);
    CHECK_STATUS(sp_model_submit(model, &c.input, 1, NULL, 0, NULL), SP_INVALID);
    CHECK_OK(sp_model_release(model));
}

TEST(a_run_that_fails_has_the_status_and_message_of_sp_model_run)
{
    const sp_model model = partial_model(CASE_LOOP, &(sp_model_options){.max_loop_trips = 2});
    partial_case c;
    sp_future future;
    sp_host_tensor outputs[CASE_OUTPUTS] = {0};
    partial_case_make(&c, CASE_LOOP, 9);
    CHECK_OK(partial_case_submit(model, &c, outputs, &future));
    CHECK_STATUS(sp_future_wait(future), SP_EXHAUSTED);
    CHECK_MESSAGE("max_loop_trips allows 2");
    CHECK_STATUS(sp_future_take_output(future, 0, &outputs[0]), SP_EXHAUSTED);
    CHECK_OK(sp_future_release(future));
    CHECK_STATUS(partial_case_run(model, &c, outputs), SP_EXHAUSTED);
    CHECK_OK(sp_model_release(model));
}

TEST(past_the_bound_of_submitted_runs_a_run_is_refused)
{
    const sp_model model = partial_model(CASE_IF, NULL);
    uint32_t count;
    sp_run_slots *slots = cpu_slots(model, &count);
    partial_case c;
    sp_future future;
    sp_host_tensor outputs[CASE_OUTPUTS] = {0};
    partial_case_make(&c, CASE_IF, 10);
    for (int i = 0; i < SP_RUN_SLOTS_SUBMITTED; i++) CHECK_OK(sp__run_slots_admit(slots));
    CHECK_STATUS(partial_case_submit(model, &c, outputs, &future), SP_BUSY);
    for (int i = 0; i < SP_RUN_SLOTS_SUBMITTED; i++) sp__run_slots_retire(slots);
    CHECK_OK(partial_case_submit(model, &c, outputs, &future));
    partial_case_check(model, &c, future);
    CHECK_EQ_U64(sp_load_relaxed(&slots->submitted_count), 0);
    CHECK_OK(sp_model_release(model));
}

TEST(an_allocation_that_fails_leaks_nothing)
{
    for (int kind = 0; kind < CASE_KINDS; kind++) {
        bool is_done = false;
        for (uint64_t skip = 0; !is_done; skip++) {
            const sp_model model = partial_model((case_kind)kind, NULL);
            partial_case c;
            sp_future future = {0};
            sp_host_tensor outputs[CASE_OUTPUTS] = {0};
            partial_case_make(&c, (case_kind)kind, 11);
            sp_heap_fail_after(skip);
            const sp_status called = partial_case_submit(model, &c, outputs, &future);
            const sp_status status = called == SP_OK ? sp_future_wait(future) : called;
            is_done = !sp_heap_has_failed();
            sp_heap_fail_after(UINT64_MAX);
            if (called != SP_OK) CHECK_EQ_U64(future.bits, 0);
            if (status != SP_OK) CHECK_EQ_INT(status, SP_OUT_OF_MEMORY);
            CHECK_OK(sp_future_release(future));
            CHECK_OK(partial_case_submit(model, &c, outputs, &future));
            partial_case_check(model, &c, future);
            CHECK_OK(sp_model_release(model));
        }
    }
}

/* ---- devices ---- */

static void check_on(sp_device device)
{
    for (int kind = 0; kind < CASE_KINDS; kind++) {
        const sp_model on_cpu = partial_model((case_kind)kind, NULL);
        const sp_model model =
            partial_model((case_kind)kind, &(sp_model_options){.device = device});
        for (uint64_t seed = 0; seed < 6; seed++) {
            partial_case c;
            sp_future future;
            sp_host_tensor outputs[CASE_OUTPUTS] = {0};
            partial_case_make(&c, (case_kind)kind, seed);
            CHECK_OK(partial_case_submit(model, &c, outputs, &future));
            partial_case_check(on_cpu, &c, future);
        }
        CHECK_OK(sp_model_release(model));
        CHECK_OK(sp_model_release(on_cpu));
    }
}

TEST(another_device_gives_the_same_bits)
{
    sp_device device;
    CHECK_OK(sp_device_open("null", &device));
    check_on(device);
    CHECK_OK(sp_device_close(device));
}

/* ---- streams ---- */

TEST(a_blocked_stream_delays_no_run)
{
    const sp_model model = partial_model(CASE_LOOP, NULL);
    sp_stream stream;
    sp_storage key;
    void *bytes;
    const uint8_t zero = 0;
    CHECK_OK(sp_stream_from_pool((sp_device){0}, &stream));
    CHECK_OK(sp_storage_create((sp_device){0}, 1, NULL, &key));
    CHECK_OK(sp_storage_host_begin(key, SP_WRITE, &bytes));
    const sp_storage_range all = {.storage = key, .bytes = 1};
    CHECK_OK(sp_storage_fill_async(stream, all, &zero, 1));
    CHECK_OK(sp_stream_set_current(stream));
    for (uint64_t seed = 0; seed < 20; seed++) {
        partial_case c;
        sp_future future;
        sp_host_tensor outputs[CASE_OUTPUTS] = {0};
        partial_case_make(&c, CASE_LOOP, seed);
        CHECK_OK(partial_case_submit(model, &c, outputs, &future));
        CHECK_OK(sp_future_wait(future));
        CHECK_OK(sp_future_release(future));
    }
    CHECK_OK(sp_stream_set_current((sp_stream){0}));
    CHECK_OK(sp_storage_host_end(key, SP_WRITE));
    CHECK_OK(sp_storage_release(key));
    CHECK_OK(sp_stream_release(stream));
    CHECK_OK(sp_model_release(model));
}

TEST_MAIN
