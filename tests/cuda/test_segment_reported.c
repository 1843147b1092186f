/* SPDX-License-Identifier: Apache-2.0 */
/* Failures that a call has returned: no synchronize returns them again, and no device logs them as
 * unreported when it closes. Those that no call has returned stay for the next synchronize. */
#include <stdio.h>
#include <string.h>

#include <streampool/log.h>
#include <streampool/ops.h>

#include "base/clock.h"
#include "device/null/null.h"
#include "fake_cuda.h"
#include "partial_fixture.h"
#include "runtime/fallback_queue.h"
#include "support/onnx_writer.h"
#include "tensor_fixture.h"

enum { SIZE = 5, COUNT = 3 };

static const float table[SIZE] = {1, 2, 3, 4, 5}, wanted[COUNT] = {5, 1, 3};
static const int64_t good[COUNT] = {4, -5, 2}, bad[COUNT] = {0, 9, 1};
static const sp_stream no_stream;

/* Segments of the model: one; or three, of which the second, or the second and third step, is on
 * the cpu. On the cpu always one. */
static const char *const all_ops[] = {"", "Gather", "Gather,Relu"};

/* ---- the log of a device that is closed ---- */

static sp_atomic_u32 logged;
static char last_line[1024];

static void note_line(void *ctx, sp_log_level level, const char *message)
{
    (void)ctx;
    if (level != SP_LOG_ERROR || strstr(message, "that no call has reported") == NULL) return;
    snprintf(last_line, sizeof last_line, "%s", message);
    sp_fetch_add_relaxed(&logged, 1);
}

/* ---- the model ---- */

/* y = Relu(Gather(x, i)); with `is_partial` x has as many elements as the input x has that are not
 * 0, so that a second plan computes y. */
static sp_model load_gather(sp_device device, bool is_partial)
{
    static const int64_t dims_x[] = {SIZE}, dims_i[] = {COUNT};
    writer graph = {0};
    if (is_partial) partial_add_found(&graph, "f");
    else add_input(&graph, "x", 1, dims_x, 1);
    add_input(&graph, "i", 7, dims_i, 1);
    add_node(&graph, make_node("Gather", is_partial ? "f i" : "x i", "g"));
    add_node(&graph, make_node("Relu", "g", "y"));
    add_output(&graph, "y");
    sp_model model = {0};
    CHECK_OK(partial_load(&graph, &(sp_model_options){.device = device}, &model));
    return model;
}

typedef struct world {
    sp_device device;
    sp_stream stream; /* the current one */
    sp_model model;
} world;

static world begin_with(const char *cpu_ops, bool is_partial)
{
    world w = {.device = segment_begin()};
    sp_store_relaxed(&logged, 0);
    sp_log_set_level(SP_LOG_ERROR);
    sp_log_set_callback(note_line, NULL);
    segment_set_ops(cpu_ops);
    w.model = load_gather(w.device, is_partial);
    w.stream = current_on(w.device);
    return w;
}

static world begin(const char *cpu_ops)
{
    return begin_with(cpu_ops, false);
}

/* Closes the device, which logs so many lines: one for each stream with unreported failures. */
static void end(const world *w, uint32_t lines)
{
    CHECK_OK(sp_model_release(w->model));
    CHECK_OK(sp_shutdown());
    CHECK_EQ_U64(sp_load_relaxed(&logged), lines);
    sp_log_set_callback(NULL, NULL);
    segment_end();
    segment_set_ops(NULL);
}

static void check_nothing_is_unreported(const world *w)
{
    CHECK_OK(sp_stream_synchronize(w->stream));
    CHECK_OK(sp_device_synchronize(w->device));
}

static sp_status run(sp_model model, const int64_t *indices)
{
    float y[COUNT];
    const sp_host_tensor inputs[2] = {partial_floats("x", table, SIZE),
                                      partial_ints("i", indices, COUNT)};
    sp_host_tensor output = partial_room("y", y, sizeof y);
    const sp_status status = sp_model_run(model, inputs, 2, &output, 1);
    if (status == SP_OK) CHECK_EQ_MEM(y, wanted, sizeof y);
    return status;
}

static void check_run_fails(const world *w)
{
    CHECK_STATUS(run(w->model, bad), SP_INVALID);
    CHECK_MESSAGE("index 9 is out of range for a dimension of 5");
    CHECK_MESSAGE("(Gather");
}

/* ---- runs on the caller's stream ---- */

TEST(a_failed_run_is_reported_by_its_call_alone)
{
    for (size_t i = 0; i < SP_COUNT_OF(all_ops); i++) {
        const world w = begin(all_ops[i]);
        for (int round = 0; round < 3; round++) {
            check_run_fails(&w);
            check_nothing_is_unreported(&w);
            CHECK_OK(run(w.model, good));
        }
        end(&w, 0);
    }
}

TEST(failed_runs_without_a_synchronize_are_not_logged)
{
    for (size_t i = 0; i < SP_COUNT_OF(all_ops); i++) {
        const world w = begin(all_ops[i]);
        for (int round = 0; round < 3; round++) check_run_fails(&w);
        end(&w, 0);
    }
}

TEST(a_failed_run_of_several_plans_is_reported_by_its_call_alone)
{
    for (size_t i = 0; i < SP_COUNT_OF(all_ops); i++) {
        const world w = begin_with(all_ops[i], true);
        CHECK_OK(run(w.model, good));
        check_run_fails(&w);
        check_nothing_is_unreported(&w);
        check_run_fails(&w);
        end(&w, 0);
    }
}

/* Of the device, once. */
static void fail_next_command(const world *w)
{
    if (segment_is_cuda()) fake_cuda_fail_call("cuGraphLaunch", 1, 1, CUDA_ERROR_INVALID_VALUE);
    else sp__null_fail_command(rt_device(w->device)->dev, 0);
}

TEST(a_command_that_the_device_refuses_is_reported_by_its_run_alone)
{
    if (segment_is_cpu()) SKIP("nothing can be refused");
    const world w = begin("");
    CHECK_OK(run(w.model, good));
    fail_next_command(&w);
    CHECK_STATUS(run(w.model, good), SP_FAILED);
    check_nothing_is_unreported(&w);
    CHECK_OK(run(w.model, good));
    end(&w, 0);
}

/* ---- failures that no call has returned ---- */

TEST(a_failed_run_leaves_earlier_and_later_failures_to_the_next_synchronize)
{
    for (int is_later = 0; is_later < 2; is_later++) {
        const world w = begin("");
        if (is_later == 1) check_run_fails(&w);
        submit_failing(w.stream, (sp_storage){0});
        if (is_later == 0) check_run_fails(&w);
        CHECK_STATUS(sp_stream_synchronize(w.stream), SP_FAILED);
        CHECK_MESSAGE("fail on stream");
        check_nothing_is_unreported(&w);
        end(&w, 0);
    }
}

TEST(a_closed_device_counts_the_failures_that_no_call_has_returned)
{
    const world w = begin("Gather");
    check_run_fails(&w);
    submit_failing(w.stream, (sp_storage){0});
    check_run_fails(&w);
    end(&w, 1);
    CHECK(strstr(last_line, ": 1 failed submissions of stream ") != NULL);
    CHECK(strstr(last_line, "fail on stream") != NULL);
}

/* What a command on untracked storages of the stream gets. */
static sp_status next_untracked(const world *w, sp_storage storage)
{
    sp_event event;
    fill(w->stream, storage, 7);
    CHECK_OK(sp_event_create(NULL, &event));
    CHECK_OK(sp_event_record(event, w->stream));
    const sp_status status = sp_event_synchronize(event);
    CHECK_OK(sp_event_release(event));
    return status;
}

TEST(a_failed_run_is_no_failure_of_its_lease)
{
    const world w = begin("");
    const sp_storage storage = new_storage_on(w.device, 64, true);
    check_run_fails(&w);
    CHECK_OK(next_untracked(&w, storage));
    submit_failing(w.stream, storage);
    check_run_fails(&w); /* reports none of the lease's own */
    CHECK_STATUS(next_untracked(&w, storage), SP_FAILED);
    CHECK_STATUS(sp_stream_synchronize(w.stream), SP_FAILED);
    check_run_fails(&w);
    CHECK_OK(next_untracked(&w, storage));
    CHECK_OK(sp_storage_release(storage));
    end(&w, 0);
}

/* A wait for a point returns what became of it, any number of times. */
TEST(an_event_behind_a_failed_run_has_its_status)
{
    if (segment_is_cuda()) SKIP("the step on a GPU only reports an index out of range");
    const world w = begin("");
    sp_event event;
    CHECK_OK(sp_event_create(NULL, &event));
    check_run_fails(&w);
    CHECK_OK(sp_event_record(event, w.stream));
    for (int i = 0; i < 2; i++) CHECK_STATUS(sp_event_synchronize(event), SP_INVALID);
    check_nothing_is_unreported(&w);
    CHECK_OK(sp_event_release(event));
    end(&w, 0);
}

/* Another thread's synchronize takes nothing from a run, and finds nothing of it. */
typedef struct beside {
    world w;
    uint32_t rounds;
    sp_atomic_u32 is_ended;
} beside;

static void synchronize_beside(void *arg, uint32_t index)
{
    beside *b = arg;
    if (index == 0) {
        const sp_stream own = current_on(b->w.device);
        CHECK_OK(sp_stream_set_current(b->w.stream));
        for (uint32_t i = 0; i < b->rounds; i++) {
            check_run_fails(&b->w);
            if (i % 16 == 0) CHECK_OK(run(b->w.model, good));
        }
        check_nothing_is_unreported(&b->w);
        CHECK_OK(sp_stream_set_current(own));
        sp_store_release(&b->is_ended, 1);
        return;
    }
    while (sp_load_acquire(&b->is_ended) == 0) check_nothing_is_unreported(&b->w);
}

TEST(a_synchronize_of_another_thread_beside_failing_runs_takes_no_failure)
{
    for (size_t i = 0; i < SP_COUNT_OF(all_ops); i++) {
        beside b = {.w = begin(all_ops[i]), .rounds = (uint32_t)test_count(300, 30)};
        test_threads(3, synchronize_beside, &b);
        check_nothing_is_unreported(&b.w);
        end(&b.w, 0);
    }
}

TEST(a_lost_device_is_lost_for_each_synchronize)
{
    if (segment_is_cpu()) SKIP("the cpu is never lost");
    const world w = begin("");
    CHECK_OK(run(w.model, good));
    if (segment_is_cuda()) fake_cuda_fail_kernel(1, CUDA_ERROR_ILLEGAL_ADDRESS);
    else sp__null_lose(rt_device(w.device)->dev);
    for (int i = 0; i < 3; i++) CHECK_STATUS(run(w.model, good), SP_DEVICE_LOST);
    for (int i = 0; i < 2; i++) CHECK_STATUS(sp_device_synchronize(w.device), SP_DEVICE_LOST);
    end(&w, 0);
}

/* ---- a run that fails and is refused ---- */

static sp_status do_nothing(const sp_tile *tile)
{
    (void)tile;
    return SP_OK;
}

static const sp_kernel kernel_nothing = {.name = "nothing", .run = do_nothing};

/* Fills the queue behind a closed gate: with large submissions, and the rest with empty ones. */
static void queue_fill(sp_queue *queue, sp_point held)
{
    static const char constants[4096];
    const sp_stream_ref ref = {.queue = queue};
    const sp_command large = {.type = SP_COMMAND_DISPATCH,
                              .kernel = &kernel_nothing,
                              .grid = {1, 1, 1},
                              .constants = constants,
                              .constant_bytes = sizeof constants};
    sp_submission submission = {
        .waits = &held, .wait_count = 1, .commands = &large, .command_count = 1};
    sp_point point;
    while (sp__submit_plain(&ref, &submission, &point) == SP_OK) submission.wait_count = 0;
    submission.command_count = 0;
    while (sp__submit_plain(&ref, &submission, &point) == SP_OK) continue;
    CHECK_MESSAGE("wait for some of its work");
}

/* The first segment fails; the list of the second is refused. */
TEST(a_run_with_a_list_that_is_refused_returns_the_failure_of_those_before)
{
    if (segment_is_cpu()) SKIP("there is one list");
    const world w = begin("Relu"); /* Gather is on the device */
    CHECK_OK(run(w.model, good));
    sp_stream_ref ref;
    CHECK_OK(sp__stream_find(w.stream, &ref));
    sp_rt_device *cpu = rt_device(CPU);
    sp_queue *fallback = sp__fallback_queue(cpu, ref.stream);
    gate held = gate_closed(CPU);
    const sp_stream waits = new_stream_on(CPU);
    sp_stream_ref behind;
    CHECK_OK(sp__stream_find(waits, &behind));
    gate_hold(&held, waits);
    queue_fill(fallback, sp__queue_last_point(behind.queue));
    CHECK_STATUS(run(w.model, good), SP_BUSY);
    CHECK_MESSAGE("wait for some of its work");
    fail_next_command(&w);
    CHECK_STATUS(run(w.model, good), SP_FAILED);
    CHECK_MESSAGE(segment_is_cuda() ? "cuGraphLaunch" : "injected fault");
    gate_open(&held);
    check_nothing_is_unreported(&w);
    while (run(w.model, good) == SP_BUSY) sp_thread_yield();
    CHECK_OK(run(w.model, good));
    gate_destroy(&held);
    CHECK_OK(sp_stream_release(waits));
    end(&w, 0);
}

/* ---- other calls ---- */

TEST(a_failed_run_on_the_calling_thread_is_reported_by_its_call_alone)
{
    if (!segment_is_cpu()) SKIP("sp_model_try_run is for the cpu");
    const world w = begin("");
    float y[COUNT];
    const sp_host_tensor inputs[2] = {partial_floats("x", table, SIZE),
                                      partial_ints("i", bad, COUNT)};
    sp_host_tensor output = partial_room("y", y, sizeof y);
    for (int i = 0; i < 4; i++) CHECK_OK(run(w.model, good)); /* the plan is timed */
    CHECK_STATUS(sp_model_try_run(w.model, SP_FOREVER, inputs, 2, &output, 1), SP_INVALID);
    CHECK_MESSAGE("index 9 is out of range");
    check_nothing_is_unreported(&w);
    end(&w, 0);
}

TEST(a_submitted_run_is_reported_by_its_future_alone)
{
    for (size_t i = 0; i < SP_COUNT_OF(all_ops); i++) {
        const world w = begin(all_ops[i]);
        float y[COUNT];
        sp_future future;
        const sp_host_tensor inputs[2] = {partial_floats("x", table, SIZE),
                                          partial_ints("i", bad, COUNT)};
        sp_host_tensor output = partial_room("y", y, sizeof y);
        CHECK_OK(sp_model_submit(w.model, inputs, 2, &output, 1, &future));
        for (int k = 0; k < 2; k++) CHECK_STATUS(sp_future_wait(future), SP_INVALID);
        CHECK_OK(sp_future_release(future));
        check_nothing_is_unreported(&w);
        end(&w, 0);
    }
}

static sp_tensor tensor_of_table(const world *w)
{
    static const int64_t shape[] = {SIZE};
    sp_tensor tensor = {0};
    CHECK_OK(sp_tensor_from_host(w->device, SP_F32, 1, shape, table, sizeof table, &tensor));
    return tensor;
}

static sp_tensor tensor_of_indices(const world *w, const int64_t *indices)
{
    static const int64_t shape[] = {COUNT};
    sp_tensor tensor = {0};
    CHECK_OK(sp_tensor_from_host(w->device, SP_I64, 1, shape, indices, COUNT * sizeof *indices,
                                 &tensor));
    return tensor;
}

/* An output in host memory makes the call wait, so that it returns the failure. */
TEST(a_run_on_tensors_that_the_call_waits_for_is_reported_by_it_alone)
{
    for (size_t i = 0; i < SP_COUNT_OF(all_ops); i++) {
        const world w = begin(all_ops[i]);
        float y[COUNT];
        sp_model_tensor inputs[2] = {{.tensor = tensor_of_table(&w)},
                                     {.tensor = tensor_of_indices(&w, bad)}};
        sp_host_tensor host = partial_room(NULL, y, sizeof y);
        sp_model_tensor output = {.host = &host};
        for (int is_behind = 0; is_behind < 2; is_behind++) {
            if (is_behind == 1) submit_failing(w.stream, (sp_storage){0});
            CHECK_STATUS(sp_model_run_tensors(w.model, no_stream, NULL, inputs, 2, &output, 1),
                         SP_INVALID);
            CHECK_MESSAGE("index 9 is out of range");
            CHECK_STATUS(sp_stream_synchronize(w.stream), is_behind == 1 ? SP_FAILED : SP_OK);
            check_nothing_is_unreported(&w);
        }
        for (int k = 0; k < 2; k++) CHECK_OK(sp_tensor_release(inputs[k].tensor));
        end(&w, 0);
    }
}

/* The run's failure is returned; that of a command before it is not, and stops the lease. */
TEST(a_run_on_tensors_that_is_reported_leaves_earlier_failures_of_its_lease)
{
    const world w = begin("Gather");
    float y[COUNT];
    const sp_storage storage = new_storage_on(w.device, 64, true);
    const sp_model_tensor inputs[2] = {{.tensor = tensor_of_table(&w)},
                                       {.tensor = tensor_of_indices(&w, bad)}};
    sp_host_tensor host = partial_room(NULL, y, sizeof y);
    sp_model_tensor output = {.host = &host};
    CHECK_STATUS(sp_model_run_tensors(w.model, no_stream, NULL, inputs, 2, &output, 1), SP_INVALID);
    CHECK_OK(next_untracked(&w, storage));
    submit_failing(w.stream, storage);
    CHECK_STATUS(sp_model_run_tensors(w.model, no_stream, NULL, inputs, 2, &output, 1), SP_INVALID);
    CHECK_STATUS(next_untracked(&w, storage), SP_FAILED);
    CHECK_STATUS(sp_stream_synchronize(w.stream), SP_FAILED);
    CHECK_OK(next_untracked(&w, storage));
    check_nothing_is_unreported(&w);
    for (int k = 0; k < 2; k++) CHECK_OK(sp_tensor_release(inputs[k].tensor));
    CHECK_OK(sp_storage_release(storage));
    end(&w, 0);
}

/* As a read of the tensor would be: the run waits for the end of the access, which is the caller's.
 */
TEST(a_run_on_tensors_behind_an_access_of_its_own_caller_is_a_deadlock)
{
    for (size_t i = 0; i < SP_COUNT_OF(all_ops); i++) {
        const world w = begin(all_ops[i]);
        float y[COUNT];
        void *data;
        sp_tensor_info info;
        const sp_model_tensor inputs[2] = {{.tensor = tensor_of_table(&w)},
                                           {.tensor = tensor_of_indices(&w, good)}};
        sp_host_tensor host = partial_room(NULL, y, sizeof y);
        sp_model_tensor output = {.host = &host};
        CHECK_OK(sp_tensor_get_info(inputs[0].tensor, &info));
        CHECK_OK(sp_storage_host_begin(info.storage, SP_READ_WRITE, &data));
        CHECK_STATUS(sp_model_run_tensors(w.model, no_stream, NULL, inputs, 2, &output, 1),
                     SP_DEADLOCK);
        CHECK_OK(sp_storage_host_end(info.storage, SP_READ_WRITE));
        CHECK_OK(sp_model_run_tensors(w.model, no_stream, NULL, inputs, 2, &output, 1));
        CHECK_EQ_MEM(y, wanted, sizeof y);
        check_nothing_is_unreported(&w);
        for (int k = 0; k < 2; k++) CHECK_OK(sp_tensor_release(inputs[k].tensor));
        end(&w, 0);
    }
}

TEST(an_eager_op_that_the_calling_thread_computes_is_reported_by_its_call_alone)
{
    if (segment_is_cpu()) SKIP("the cpu has all kernels");
    const world w = begin("Gather");
    const sp_tensor x = tensor_of_table(&w), i = tensor_of_indices(&w, bad);
    sp_tensor y = {0};
    CHECK_STATUS(sp_op_run("Gather", NULL, (const sp_tensor[]){x, i}, 2, &y, 1), SP_INVALID);
    CHECK_MESSAGE("index 9 is out of range");
    check_nothing_is_unreported(&w);
    CHECK_OK(sp_tensor_release(x));
    CHECK_OK(sp_tensor_release(i));
    end(&w, 0);
}

/* It depends on a poisoned storage: the failure is that of the command that should have written
 * it, which no call has waited for. */
TEST(an_op_that_reads_what_a_failed_command_should_have_written_gets_its_failure_as_well)
{
    const world w = begin(segment_is_cpu() ? "" : "Gather");
    const sp_tensor x = tensor_of_table(&w), i = tensor_of_indices(&w, good);
    sp_tensor_info info;
    sp_tensor y = {0};
    float values[COUNT];
    CHECK_OK(sp_tensor_get_info(x, &info));
    submit_failing(w.stream, info.storage);
    sp_status status = sp_op_run("Gather", NULL, (const sp_tensor[]){x, i}, 2, &y, 1);
    if (segment_is_cpu()) {
        CHECK_OK(status);
        status = sp_tensor_read(y, values, sizeof values);
        CHECK_OK(sp_tensor_release(y));
    }
    CHECK_STATUS(status, SP_FAILED);
    CHECK_STATUS(sp_stream_synchronize(w.stream), SP_FAILED);
    check_nothing_is_unreported(&w);
    CHECK_OK(sp_tensor_release(x));
    CHECK_OK(sp_tensor_release(i));
    end(&w, 0);
}

TEST_MAIN
