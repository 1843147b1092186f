/* SPDX-License-Identifier: Apache-2.0 */
/* Models in segments under failures: of memory, of driver calls, of the device, of the runtime, of
 * the model itself. */
#include <streampool/log.h>
#include <streampool/ops.h>

#include <string.h>

#include "base/heap.h"
#include "device/null/null.h"
#include "fake_cuda.h"
#include "segment_fixture.h"

/* ---- unknown op names: first, since a process is warned once ---- */

static sp_atomic_u32 warnings;

static void note_warning(void *ctx, sp_log_level level, const char *message)
{
    (void)ctx;
    if (level != SP_LOG_WARN || strstr(message, "STREAMPOOL_CPU_OPS") == NULL) return;
    sp_fetch_add_relaxed(&warnings, 1);
    if (strstr(message, "'Nonsense'") == NULL) CHECK(strstr(message, "'tanh'") != NULL);
}

TEST(a_name_that_no_op_has_is_told_once)
{
    segment_begin();
    segment_set_ops("Nonsense, Tanh,tanh");
    sp_log_set_callback(note_warning, NULL);
    sp_log_set_level(SP_LOG_WARN);
    for (int i = 0; i < 3; i++) CHECK_OK(sp_model_release(small_model(NULL)));
    CHECK_EQ_U64(sp_load_relaxed(&warnings), 2);
    sp_log_set_callback(NULL, NULL);
    segment_end();
}

/* ---- one model ---- */

/* MatMul on the cpu, Add and Tanh as one step on the device. */
static sp_model model_on(sp_device device)
{
    segment_set_ops("MatMul");
    const sp_model model = small_model(&(sp_model_options){.device = device});
    return model;
}

static sp_status run_model(sp_model model, float *y)
{
    const sp_host_tensor x = input_x(2);
    sp_host_tensor out = output_y(y, 6);
    return sp_model_run(model, &x, 1, &out, 1);
}

static void wanted_of(float *y)
{
    const sp_model cpu = small_model(NULL);
    CHECK_OK(run_model(cpu, y));
    CHECK_OK(sp_model_release(cpu));
}

TEST(the_counts_say_which_steps_are_on_the_cpu)
{
    const sp_device device = segment_begin();
    const sp_model model = model_on(device);
    sp_model_info info;
    sp_model_cpu_op op;
    float y[6];
    CHECK_OK(sp_model_get_info(model, &info));
    CHECK_EQ_U64(info.segment_count, 0); /* nothing has been compiled */
    CHECK_STATUS(sp_model_get_cpu_op(model, 0, &op), SP_NOT_FOUND);
    CHECK_OK(run_model(model, y));
    CHECK_OK(sp_model_get_info(model, &info));
    CHECK_EQ_U64(info.step_count, 2);
    CHECK_EQ_U64(info.cpu_step_count, 1);
    CHECK_EQ_U64(info.segment_count, 3); /* none, MatMul, Sub+Tanh */
    CHECK_OK(sp_model_get_cpu_op(model, 0, &op));
    CHECK_EQ_STR(op.name, "MatMul");
    CHECK_EQ_U64(op.step_count, 1);
    CHECK_STATUS(sp_model_get_cpu_op(model, 1, &op), SP_NOT_FOUND);
    CHECK_STATUS(sp_model_get_cpu_op(model, 0, NULL), SP_INVALID);
    CHECK_OK(sp_model_release(model));

    const sp_model on_cpu = small_model(NULL);
    CHECK_OK(run_model(on_cpu, y));
    CHECK_OK(sp_model_get_info(on_cpu, &info));
    CHECK_EQ_U64(info.cpu_step_count, 0);
    CHECK_EQ_U64(info.segment_count, 1);
    CHECK_OK(sp_model_release(on_cpu));

    sp_device_ops ops;
    CHECK_OK(sp_device_get_ops(device, &ops));
    CHECK(ops.own_count >= 20 && ops.own_count <= ops.op_count);
    CHECK_STATUS(sp_device_get_ops(device, NULL), SP_INVALID);
    segment_end();
}

/* ---- missing parts ---- */

/* The test's own code builds the model's file, so the model is loaded before. */
TEST(every_allocation_of_compiling_and_running_may_fail)
{
    bool is_done = false;
    uint64_t refused = 0;
    for (uint64_t skip = 0; !is_done; skip++) {
        const sp_device device = segment_begin_with(&(runtime_setting){.streams = "2"});
        float y[6], wanted[6];
        wanted_of(wanted);
        const sp_model model = model_on(device);
        sp_heap_fail_after(skip);
        const sp_status status = run_model(model, y);
        is_done = !sp_heap_has_failed();
        sp_heap_fail_after(UINT64_MAX);
        /* An additional context is optional. */
        if (status != SP_OK) CHECK_STATUS(status, SP_OUT_OF_MEMORY);
        if (status != SP_OK) refused++;
        CHECK_OK(run_model(model, y));
        CHECK_EQ_MEM(y, wanted, sizeof y);
        CHECK_OK(sp_model_release(model));
        segment_end();
    }
    CHECK(refused > 20);
    test_note("%llu allocations were missed", (unsigned long long)refused);
}

TEST(every_call_of_the_driver_may_fail)
{
    if (!segment_is_cuda()) SKIP("this is about the driver");
    static const char *const calls[] = {"cuMemHostAlloc",       "cuMemAlloc",
                                        "cuGraphCreate",        "cuGraphInstantiate",
                                        "cuGraphAddKernelNode", "cuGraphLaunch"};
    for (size_t i = 0; i < SP_COUNT_OF(calls); i++) {
        for (uint64_t nth = 1; nth <= 5; nth++) {
            const sp_device device = segment_begin();
            float y[6], wanted[6];
            wanted_of(wanted);
            const sp_model model = model_on(device);
            fake_cuda_fail_call(calls[i], nth, 1, CUDA_ERROR_OUT_OF_MEMORY);
            const sp_status status = run_model(model, y);
            if (status != SP_OK) CHECK_STATUS(status, SP_OUT_OF_MEMORY);
            fake_cuda_reset();
            CHECK_OK(run_model(model, y));
            CHECK_EQ_MEM(y, wanted, sizeof y);
            CHECK_OK(sp_model_release(model));
            segment_end();
        }
    }
}

static void lose(sp_device device)
{
    if (segment_is_cuda()) {
        fake_cuda_fail_kernel(1, CUDA_ERROR_ILLEGAL_ADDRESS);
    } else {
        sp__null_lose(rt_device(device)->dev);
    }
}

TEST(a_device_that_is_lost_fails_the_run_and_the_cpu_goes_on)
{
    const sp_device device = segment_begin();
    float y[6], wanted[6];
    wanted_of(wanted);
    const sp_model model = model_on(device);
    CHECK_OK(run_model(model, y));
    lose(device);
    for (int i = 0; i < 3; i++) CHECK_STATUS(run_model(model, y), SP_DEVICE_LOST);
    wanted_of(y);
    CHECK_EQ_MEM(y, wanted, sizeof y);
    CHECK_OK(sp_model_release(model));
    segment_end();
}

/* The driver does not tell which commands were lost, nor is it known any more whose they are. */
TEST(a_stream_with_commands_that_were_lost_is_lost_for_each_synchronize)
{
    if (!segment_is_cuda()) SKIP("commands of other devices fail themselves");
    static const int64_t shape[] = {3};
    static const float values[] = {1, 2, 3};
    const sp_device device = segment_begin();
    const sp_stream stream = new_stream_on(device), other = new_stream_on(device);
    sp_tensor x = {0}, y = {0};
    CHECK_OK(sp_tensor_from_host(device, SP_F32, 1, shape, values, sizeof values, &x));
    CHECK_OK(sp_stream_set_current(stream));
    CHECK_OK(sp_op_run("Relu", NULL, &x, 1, &y, 1));
    CHECK_OK(sp_stream_synchronize(stream));
    CHECK_OK(sp_tensor_release(y));
    lose(device);
    CHECK_OK(sp_op_run("Relu", NULL, &x, 1, &y, 1));
    for (int i = 0; i < 2; i++) {
        CHECK_STATUS(sp_stream_synchronize(stream), SP_DEVICE_LOST);
        CHECK_MESSAGE("illegal");
        CHECK_OK(sp_stream_synchronize(other)); /* which had none */
        CHECK_STATUS(sp_device_synchronize(device), SP_DEVICE_LOST);
    }
    CHECK_OK(sp_tensor_release(y));
    CHECK_OK(sp_tensor_release(x));
    CHECK_OK(sp_stream_release(stream));
    CHECK_OK(sp_stream_release(other));
    segment_end();
}

TEST(a_device_step_that_fails_fails_its_run_only)
{
    if (segment_is_cuda()) SKIP("a kernel that fails loses a GPU");
    const sp_device device = segment_begin();
    float y[6], wanted[6];
    wanted_of(wanted);
    const sp_model model = model_on(device);
    CHECK_OK(run_model(model, y));
    sp__null_fail_command(rt_device(device)->dev, 0);
    CHECK_STATUS(run_model(model, y), SP_FAILED);
    CHECK_MESSAGE("(Sub+Tanh)");
    CHECK_OK(run_model(model, y));
    CHECK_EQ_MEM(y, wanted, sizeof y);
    CHECK_OK(sp_model_release(model));
    segment_end();
}

/* ---- host functions ---- */

typedef struct inside {
    sp_model model;
    float y[6];
    sp_status status;
} inside;

static void run_inside(void *ctx, sp_status status)
{
    inside *self = ctx;
    CHECK_STATUS(status, SP_OK);
    self->status = run_model(self->model, self->y);
}

TEST(a_run_inside_a_host_function_waits_for_no_queue)
{
    const sp_device device = segment_begin();
    float wanted[6];
    wanted_of(wanted);
    inside self = {.model = model_on(device)};
    const sp_stream streams[2] = {new_stream_on(device), new_stream_on(CPU)};
    for (int i = 0; i < 2; i++) {
        memset(self.y, 0, sizeof self.y);
        CHECK_OK(sp_stream_host_function(streams[i], run_inside, &self));
        CHECK_OK(sp_stream_synchronize(streams[i]));
        CHECK_OK(self.status);
        CHECK_EQ_MEM(self.y, wanted, sizeof wanted);
        CHECK_OK(sp_stream_release(streams[i]));
    }
    CHECK_OK(sp_model_release(self.model));
    segment_end();
}

/* ---- losses ---- */

typedef enum end_kind { RELEASE_MODEL, CLOSE_DEVICE, SHUT_DOWN } end_kind;

typedef struct ending {
    end_kind kind;
    sp_device device;
    sp_model model;
    float wanted[6];
    sp_atomic_u32 ran, refused;
} ending;

static void end_it(ending *e)
{
    await_at_least(&e->ran, 30);
    if (e->kind == RELEASE_MODEL) CHECK_OK(sp_model_release(e->model));
    if (e->kind == CLOSE_DEVICE) CHECK_OK(sp_device_close(e->device));
    if (e->kind == SHUT_DOWN) CHECK_OK(sp_shutdown());
}

static void run_until_it_ends(void *arg, uint32_t index)
{
    ending *e = arg;
    if (index == 0) {
        end_it(e);
        return;
    }
    for (;;) {
        float y[6];
        const sp_status status = run_model(e->model, y);
        if (status != SP_OK) {
            CHECK_STATUS(status, e->kind == RELEASE_MODEL ? SP_INVALID : SP_CLOSED);
            raise_by_one(&e->refused);
            return;
        }
        CHECK_EQ_MEM(y, e->wanted, sizeof y);
        raise_by_one(&e->ran);
    }
}

static void check_ending(end_kind kind)
{
    for (uint64_t round = 0; round < test_count(50, 5); round++) {
        ending e = {.kind = kind, .device = segment_begin()};
        wanted_of(e.wanted);
        e.model = model_on(e.device);
        test_threads(8, run_until_it_ends, &e);
        CHECK_EQ_U64(sp_load_relaxed(&e.refused), 7);
        if (kind != RELEASE_MODEL) CHECK_OK(sp_model_release(e.model));
        segment_end();
    }
}

TEST(a_model_that_is_released_beside_runs_finishes_them)
{
    check_ending(RELEASE_MODEL);
}

TEST(a_device_that_is_closed_beside_runs_finishes_what_it_accepted)
{
    check_ending(CLOSE_DEVICE);
}

TEST(a_shutdown_beside_runs_finishes_what_was_accepted)
{
    check_ending(SHUT_DOWN);
}

TEST_MAIN
