/* SPDX-License-Identifier: Apache-2.0 */
/* Models and the life cycle of the process: fork, shutdown, closing of devices, exit. Each test
 * runs in a child that is forked before first use, so each has its own library. */
#include <streampool/device.h>
#include <streampool/runtime.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/heap.h"
#include "base/thread.h"
#include "partial_fixture.h"
#include "run_fixture.h"
#include "support/child.h"

static bool has_data(void)
{
    char path[DATA_PATH_BYTES];
    return data_path(path, "models/policy_go1/model.onnx");
}

/* The return value of a child, whose checks are not counted. */
static int failed(const char *what)
{
    printf("  %s: %s\n", what, sp_last_error());
    fflush(stdout);
    return 1;
}

/* ---- one state, every call ---- */

/* 0: every call gives this status, with a message if it is an error. */
static int every_call_gives(sp_model model, sp_status expected)
{
    for (uint32_t i = 0; i < model_call_count; i++) {
        if (model_calls[i].run(model) != expected) return failed(model_calls[i].name);
        if (expected != SP_OK && sp_last_error()[0] == '\0') return failed(model_calls[i].name);
    }
    return 0;
}

/* Needs no file: the state is checked first. */
static int loads_give(sp_status expected)
{
    sp_model model = {1};
    if (sp_model_load("/nowhere/model.onnx", NULL, &model) != expected) return failed("load");
    if (model.bits != 0) return failed("a failed load left a handle");
    if (sp_model_load_from_memory("", 0, NULL, &model) != expected) return failed("from memory");
    return 0;
}

static int use_forked(void *arg)
{
    const sp_model model = *(const sp_model *)arg;
    const uint64_t start = sp_clock_now();
    if (every_call_gives(model, SP_FORKED) != 0 || loads_give(SP_FORKED) != 0) return 1;
    if (sp_model_release(model) != SP_OK) return failed("release");
    if (sp_model_release(model) != SP_OK) return failed("release again"); /* it does nothing */
    if (sp_shutdown() != SP_OK) return failed("shutdown");
    if (every_call_gives(model, SP_FORKED) != 0) return 1; /* also after the silent shutdown */
    return sp_clock_now() - start < UINT64_C(5000000000) ? 0 : failed("it took long");
}

static int fork_with_a_model(void *arg)
{
    (void)arg;
    sp_model model = small_model(NULL);
    if (every_call_gives(model, SP_OK) != 0) return 1;
    if (child_run(use_forked, &model) != 0) return failed("the forked child");
    if (every_call_gives(model, SP_OK) != 0) return 1; /* the parent's state is unchanged */
    return sp_model_release(model) == SP_OK && sp_shutdown() == SP_OK ? 0 : failed("the end");
}

TEST(a_forked_child_gets_an_error_from_every_call_and_its_release_is_silent)
{
    CHECK_EQ_INT(child_run(fork_with_a_model, NULL), 0);
}

static int use_after_shutdown(void *arg)
{
    (void)arg;
    const sp_model model = small_model(NULL);
    const sp_model other = small_model(NULL);
    if (every_call_gives(model, SP_OK) != 0) return 1;
    if (sp_shutdown() != SP_OK) return failed("shutdown");
    if (every_call_gives(model, SP_CLOSED) != 0 || loads_give(SP_CLOSED) != 0) return 1;
    if (sp_model_release(model) != SP_OK) return failed("release");
    if (sp_model_release(other) != SP_OK) return failed("release of one that never ran");
    return sp_model_release(model) == SP_INVALID ? 0 : failed("release again");
}

TEST(after_a_shutdown_every_call_is_refused_and_models_can_be_released)
{
    CHECK_EQ_INT(child_run(use_after_shutdown, NULL), 0);
}

/* ---- everything at once ---- */

typedef struct from_nothing {
    const char *path;
    sp_atomic_u32 wrong;
    _Alignas(float) unsigned char outputs[31][12 * sizeof(float)]; /* compared as bits */
} from_nothing;

static void come_up_load_and_run(void *arg, uint32_t index)
{
    from_nothing *self = arg;
    float observation[48];
    for (int i = 0; i < 48; i++) observation[i] = (float)i * 0.05f;
    const sp_host_tensor x = {.data = observation,
                              .bytes = sizeof observation,
                              .dtype = SP_F32,
                              .rank = 2,
                              .shape = {1, 48}};
    sp_host_tensor y = {.data = self->outputs[index], .capacity = sizeof self->outputs[index]};
    sp_model model = {0};
    const bool is_right = sp_model_load(self->path, NULL, &model) == SP_OK &&
                          sp_model_run(model, &x, 1, &y, 1) == SP_OK &&
                          sp_model_release(model) == SP_OK;
    if (!is_right) sp_fetch_add_relaxed(&self->wrong, 1);
}

static int all_from_nothing(void *arg)
{
    (void)arg;
    char path[DATA_PATH_BYTES];
    if (!data_path(path, "models/policy_go1/model.onnx")) return 2;
    static from_nothing self; /* process-wide: in this child alone */
    self.path = path;
    test_threads(31, come_up_load_and_run, &self);
    if (sp_load_relaxed(&self.wrong) != 0) return failed("a thread's load or run");
    for (int i = 1; i < 31; i++) {
        if (memcmp(self.outputs[i], self.outputs[0], sizeof self.outputs[0]) != 0) return 3;
    }
    return sp_shutdown() == SP_OK ? 0 : failed("shutdown");
}

TEST(thirty_one_threads_bring_the_library_up_load_and_run_at_once)
{
    if (!has_data()) SKIP("no shared data");
    const uint64_t rounds = test_count(200, 10);
    for (uint64_t i = 0; i < rounds; i++) CHECK_EQ_INT(child_run(all_from_nothing, NULL), 0);
}

/* ---- shutdown during runs ---- */

enum { RUNNERS = 8 };

typedef struct ending_load {
    model_case c;
    sp_atomic_u32 started; /* threads that have a result */
    sp_atomic_u32 wrong;   /* bits that differ, and errors but SP_CLOSED */
    void (*end)(struct ending_load *self);
} ending_load;

/* Every run has the right bits or is refused because of the shutdown; no other outcome. */
static void run_until_closed(ending_load *self)
{
    const model_case *c = &self->c;
    sp_array outputs[FIXTURE_PORTS] = {0};
    outputs_make(c, outputs);
    sp_status status = SP_OK;
    for (uint32_t i = 0; status == SP_OK; i++) {
        outputs_wipe(c, outputs);
        status = case_run(c, outputs);
        if (status == SP_OK && !case_is_same(c, outputs)) sp_fetch_add_relaxed(&self->wrong, 1);
        if (i == 0) sp_fetch_add_acq_rel(&self->started, 1);
    }
    if (status != SP_CLOSED) {
        failed("a run beside the end");
        sp_fetch_add_relaxed(&self->wrong, 1);
    }
    outputs_free(c, outputs);
}

static void run_or_end(void *arg, uint32_t index)
{
    ending_load *self = arg;
    if (index > 0) {
        run_until_closed(self);
        return;
    }
    while (sp_load_acquire(&self->started) < RUNNERS) sp_thread_yield();
    self->end(self);
}

static void end_all(ending_load *self)
{
    if (sp_shutdown() != SP_OK) sp_fetch_add_relaxed(&self->wrong, 1);
}

static void end_device(ending_load *self)
{
    sp_model_info info;
    const bool is_closed =
        sp_model_get_info(self->c.model, &info) == SP_OK && sp_device_close(info.device) == SP_OK;
    if (!is_closed) sp_fetch_add_relaxed(&self->wrong, 1);
}

/* Returns 0 if the load on this model ended as expected. */
static int end_beside_runs(const char *name, const sp_model_options *options,
                           void (*end)(ending_load *self))
{
    ending_load *self = sp_calloc(1, sizeof *self);
    if (!case_open(name, options, &self->c)) return 2;
    self->end = end;
    test_threads(1 + RUNNERS, run_or_end, self);
    const uint32_t wrong = sp_load_relaxed(&self->wrong);
    const sp_status status = sp_model_release(self->c.model);
    for (uint32_t i = 0; i < FIXTURE_PORTS; i++) {
        sp__array_deinit(&self->c.inputs[i]);
        sp__array_deinit(&self->c.outputs[i]);
    }
    sp_free(self);
    if (status != SP_OK) return failed("release");
    return wrong == 0 ? 0 : failed("a run was wrong");
}

static int shut_down_beside_runs(void *arg)
{
    return end_beside_runs(arg, NULL, end_all);
}

TEST(a_shutdown_beside_runs_lets_each_finish_or_refuses_it)
{
    if (!has_data()) SKIP("no shared data");
    const uint64_t rounds = test_count(50, 3) * FIXTURE_MODELS;
    for (uint64_t i = 0; i < rounds; i++) {
        const char *name = fixture_models[i % FIXTURE_MODELS];
        CHECK_EQ_INT(child_run(shut_down_beside_runs, (void *)(uintptr_t)name), 0);
    }
}

static int shut_down_beside_an_endless_loop(void *arg)
{
    partial_endless e;
    partial_endless_begin(&e, NULL, *(const bool *)arg);
    if (sp_shutdown() != SP_OK) return failed("shutdown");
    return partial_endless_join(&e) == SP_CLOSED ? 0 : failed("the loop's end");
}

TEST(a_shutdown_ends_an_endless_loop)
{
    for (int has_node = 0; has_node < 2; has_node++) {
        bool arg = has_node != 0;
        CHECK_EQ_INT(child_run(shut_down_beside_an_endless_loop, &arg), 0);
    }
}

static int close_beside_runs(void *arg)
{
    const uint32_t rounds = *(const uint32_t *)arg;
    for (uint32_t i = 0; i < rounds; i++) {
        sp_model_options options = {0};
        if (sp_device_open("null", &options.device) != SP_OK) return failed("open");
        const int code = end_beside_runs(fixture_models[i % FIXTURE_MODELS], &options, end_device);
        if (code != 0) return code;
    }
    const sp_model model = small_model(NULL); /* cpu is unaffected */
    if (every_call_gives(model, SP_OK) != 0) return 1;
    return sp_model_release(model) == SP_OK && sp_shutdown() == SP_OK ? 0 : failed("the end");
}

TEST(a_device_closed_beside_runs_lets_each_finish_or_refuses_it)
{
    if (!has_data()) SKIP("no shared data");
    uint32_t rounds = (uint32_t)test_count(60, 18); /* a process opens 63 at most */
    CHECK_EQ_INT(child_run(close_beside_runs, &rounds), 0);
}

/* ---- exit ---- */

enum { EXIT_THREADS = 31 };

/* The thread that ends the process, and the way. */
typedef struct ending {
    const char *model;
    bool is_worker;
    bool has_shutdown;
} ending;

static ending_load exit_load; /* process-wide: in one child each */

static void run_for_ever(void *arg)
{
    ending_load *self = arg;
    sp_array outputs[FIXTURE_PORTS] = {0};
    outputs_make(&self->c, outputs);
    for (uint32_t i = 0;; i++) {
        const sp_status status = case_run(&self->c, outputs);
        /* A shutdown before the exit refuses runs; the process exits with 4 if a result is
         * wrong. */
        if (status != SP_OK && status != SP_CLOSED) _exit(4);
        if (status == SP_OK && !case_is_same(&self->c, outputs)) _exit(5);
        if (i == 0) sp_fetch_add_acq_rel(&self->started, 1);
    }
}

static void end_process(void *arg)
{
    const ending *how = arg;
    while (sp_load_acquire(&exit_load.started) < EXIT_THREADS) sp_thread_yield();
    if (how->has_shutdown) sp_shutdown();
    exit(0);
}

static int exit_beside_runs(void *arg)
{
    const ending *how = arg;
    if (!case_open(how->model, NULL, &exit_load.c)) return 2;
    sp_thread threads[EXIT_THREADS + 1];
    for (int i = 0; i < EXIT_THREADS; i++) {
        if (sp_thread_create(&threads[i], "runner", run_for_ever, &exit_load) != SP_OK) return 3;
    }
    if (!how->is_worker) end_process(arg);
    if (sp_thread_create(&threads[EXIT_THREADS], "ender", end_process, arg) != SP_OK) return 3;
    for (;;) sp_clock_sleep(UINT64_C(1000000000));
}

TEST(exit_while_thirty_one_threads_run_a_model_is_clean)
{
    if (!has_data()) SKIP("no shared data");
    static const ending ways[] = {{"policy_go1", false, false},
                                  {"torch_mlp", true, false},
                                  {"policy_g1", false, true},
                                  {"mnist_8", true, true}};
    const uint64_t rounds = test_count(100, 2) * SP_COUNT_OF(ways);
    for (uint64_t i = 0; i < rounds; i++) {
        ending how = ways[i % SP_COUNT_OF(ways)];
        CHECK_EQ_INT(child_run(exit_beside_runs, &how), 0);
    }
}

TEST_MAIN
