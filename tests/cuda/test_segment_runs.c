/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in segments give the bits of the cpu, from any number of threads, and cost no more memory or
 * driver calls than a run of one segment: only launches and events. */
#include <string.h>

#include "base/heap.h"
#include "base/option.h"
#include "device/cuda/cuda_api.h"
#include "exec/context.h"
#include "exec/model_object.h"
#include "ops/op_list.h"
#include "segment_fixture.h"

/* Checks that exactly the named ops run on the cpu. */
static void check_ops(const model_case *c)
{
    const sp_model_info info = segment_info(c);
    const bool is_any = info.cpu_step_count > 0;
    CHECK(info.segment_count % 2 == 1);
    CHECK_EQ_INT(info.segment_count > 1, is_any);
    CHECK(info.cpu_step_count <= info.step_count);
    uint32_t steps = 0;
    sp_model_cpu_op op;
    for (uint32_t i = 0; sp_model_get_cpu_op(c->model, i, &op) == SP_OK; i++) {
        CHECK(sp__op_list_has(sp_option_text(SP_OPTION_CPU_OPS), op.name));
        CHECK(op.step_count > 0);
        steps += op.step_count;
    }
    CHECK_EQ_U64(steps, info.cpu_step_count);
}

static void check_threads(uint32_t threads, uint32_t rounds)
{
    const sp_device device = segment_begin();
    uint32_t cpu_steps = 0;
    for (uint32_t i = 0; i < FIXTURE_MODELS; i++) {
        model_case c;
        if (!segment_open(fixture_models[i], device, &c)) SKIP("no shared data");
        case_load l = {.c = &c, .rounds = rounds};
        test_threads(threads, case_run_rounds, &l);
        CHECK_EQ_U64(sp_load_relaxed(&l.differing), 0);
        check_ops(&c);
        cpu_steps += segment_info(&c).cpu_step_count;
        case_close(&c);
    }
    const bool has_ops = sp_option_text(SP_OPTION_CPU_OPS)[0] != '\0';
    CHECK_EQ_INT(cpu_steps > 0, has_ops);
    test_note("%u steps of all models on the cpu", cpu_steps);
    segment_end();
}

TEST(models_give_the_bits_of_the_cpu)
{
    check_threads(1, (uint32_t)test_count(200, 5));
}

TEST(models_from_31_threads_give_the_bits_of_the_cpu)
{
    check_threads(31, (uint32_t)test_count(100, 1));
}

enum { BURST = 6 };

typedef struct burst {
    sp_array outputs[BURST][FIXTURE_PORTS];
    sp_future futures[BURST];
} burst;

static void submit_one(const model_case *c, burst *b, uint32_t k)
{
    sp_host_tensor inputs[FIXTURE_PORTS];
    sp_host_tensor tensors[FIXTURE_PORTS];
    outputs_wipe(c, b->outputs[k]);
    for (uint32_t i = 0; i < c->input_count; i++) inputs[i] = tensor_of(&c->inputs[i], NULL);
    for (uint32_t i = 0; i < c->output_count; i++) tensors[i] = tensor_of(&b->outputs[k][i], NULL);
    CHECK_OK(sp_model_submit(c->model, inputs, c->input_count, tensors, c->output_count,
                             &b->futures[k]));
}

static void submit_rounds(void *arg, uint32_t index)
{
    case_load *load = arg;
    burst b = {0};
    (void)index;
    for (uint32_t k = 0; k < BURST; k++) outputs_make(load->c, b.outputs[k]);
    for (uint32_t round = 0; round < load->rounds; round++) {
        for (uint32_t k = 0; k < BURST; k++) submit_one(load->c, &b, k);
        for (uint32_t k = 0; k < BURST; k++) {
            CHECK_OK(sp_future_wait(b.futures[k]));
            CHECK_OK(sp_future_release(b.futures[k]));
            if (!case_is_same(load->c, b.outputs[k])) sp_fetch_add_relaxed(&load->differing, 1);
        }
    }
    for (uint32_t k = 0; k < BURST; k++) outputs_free(load->c, b.outputs[k]);
}

TEST(submitted_runs_give_the_bits_of_the_cpu)
{
    const sp_device device = segment_begin();
    for (uint32_t i = 0; i < FIXTURE_MODELS; i++) {
        model_case c;
        if (!segment_open(fixture_models[i], device, &c)) SKIP("no shared data");
        case_load l = {.c = &c, .rounds = (uint32_t)test_count(50, 2)};
        test_threads(4, submit_rounds, &l);
        CHECK_EQ_U64(sp_load_relaxed(&l.differing), 0);
        case_close(&c);
    }
    segment_end();
}

/* ---- cost ---- */

/* Driver calls that a run after the first may make. */
static bool is_cheap(int call)
{
    static const sp_cuda_call cheap[] = {
        SP_CUDA_CALL_cuCtxPushCurrent, SP_CUDA_CALL_cuCtxPopCurrent, SP_CUDA_CALL_cuGraphLaunch,
        SP_CUDA_CALL_cuEventRecord,    SP_CUDA_CALL_cuEventQuery,    SP_CUDA_CALL_cuStreamWaitEvent,
    };
    for (size_t i = 0; i < SP_COUNT_OF(cheap); i++) {
        if ((int)cheap[i] == call) return true;
    }
    return false;
}

enum { ROUNDS = 30 };

TEST(after_the_first_run_the_driver_only_launches_and_nothing_is_allocated)
{
    const sp_device device = segment_begin();
    for (uint32_t i = 0; i < FIXTURE_MODELS; i++) {
        model_case c;
        if (!segment_open(fixture_models[i], device, &c)) SKIP("no shared data");
        sp_array outputs[FIXTURE_PORTS] = {0};
        outputs_make(&c, outputs);
        CHECK_OK(case_run(&c, outputs));
        uint64_t before[SP_CUDA_CALL_COUNT];
        for (int k = 0; k < SP_CUDA_CALL_COUNT; k++) {
            before[k] = sp__cuda_call_count((sp_cuda_call)k);
        }
        sp_heap_fail_after(0);
        for (int round = 0; round < ROUNDS; round++) CHECK_OK(case_run(&c, outputs));
        CHECK(!sp_heap_has_failed());
        sp_heap_fail_after(UINT64_MAX);
        for (int k = 0; k < SP_CUDA_CALL_COUNT; k++) {
            const uint64_t calls = sp__cuda_call_count((sp_cuda_call)k) - before[k];
            if (is_cheap(k)) continue;
            CHECK_EQ_U64(calls, 0);
            if (calls != 0) test_note("%s: call %d", fixture_models[i], k);
        }
        const uint64_t launches =
            sp__cuda_call_count(SP_CUDA_CALL_cuGraphLaunch) - before[SP_CUDA_CALL_cuGraphLaunch];
        /* A first or last segment without steps and copies has nothing to launch. */
        const sp_model_info info = segment_info(&c);
        CHECK(launches <= ROUNDS * ((uint64_t)info.segment_count + 1) / 2);
        if (segment_is_cuda() && info.cpu_step_count < info.step_count) CHECK(launches >= ROUNDS);
        outputs_free(&c, outputs);
        case_close(&c);
    }
    segment_end();
}

typedef struct crowd {
    const model_case *c;
    sp_device device;
    sp_atomic_u32 ready, go;
} crowd;

static void run_beside_others(void *arg, uint32_t index)
{
    crowd *all = arg;
    (void)index;
    sp_stream stream;
    sp_array outputs[FIXTURE_PORTS] = {0};
    outputs_make(all->c, outputs);
    CHECK_OK(sp_stream_current(all->device, &stream));
    CHECK_OK(sp_stream_synchronize(stream));
    raise_by_one(&all->ready);
    await_at_least(&all->go, 1);
    for (int round = 0; round < 50; round++) CHECK_OK(case_run(all->c, outputs));
    raise_by_one(&all->ready);
    await_at_least(&all->go, 2);
    CHECK(case_is_same(all->c, outputs));
    outputs_free(all->c, outputs);
}

static void look_whether_they_allocate(crowd *all)
{
    await_at_least(&all->ready, 8);
    sp_heap_fail_after(0);
    raise_by_one(&all->go);
    await_at_least(&all->ready, 16);
    CHECK(!sp_heap_has_failed());
    sp_heap_fail_after(UINT64_MAX);
    raise_by_one(&all->go);
}

static void run_or_look(void *arg, uint32_t index)
{
    if (index == 8) {
        look_whether_they_allocate(arg);
    } else {
        run_beside_others(arg, index);
    }
}

/* Contexts of a GPU are made by the runs that find none idle. */
static void make_contexts(const model_case *c, uint32_t count)
{
    sp_exec_context *contexts[8];
    sp_rt_model *model = sp__model_hold(c->model);
    sp_plan_entry *entry = sp__plan_cache_acquire_newest(&model->plans);
    for (uint32_t i = 0; i < count; i++) {
        CHECK_OK(sp__exec_context_acquire(entry->executable, SP_NO_HOME, false, &contexts[i]));
    }
    for (uint32_t i = 0; i < count; i++) {
        sp__wait_entry_resume(sp__exec_context_release(contexts[i]));
    }
    sp__plan_cache_release(&model->plans, entry);
    sp__model_drop(model);
}

TEST(the_first_run_of_a_thread_that_has_its_stream_and_a_context_allocates_nothing)
{
    const sp_device device = segment_begin();
    model_case c;
    if (!segment_open("policy_go1", device, &c)) SKIP("no shared data");
    crowd all = {.c = &c, .device = device};
    make_contexts(&c, 8);
    test_threads(9, run_or_look, &all);
    case_close(&c);
    segment_end();
}

TEST_MAIN
