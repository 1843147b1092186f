/* SPDX-License-Identifier: Apache-2.0 */
/* Models on the null device: kernels that fail, lost devices, undisturbed other callers. */
#include <stdio.h>
#include <string.h>

#include "base/heap.h"
#include "device/null/null.h"
#include "exec/model_object.h"
#include "run_fixture.h"
#include "runtime/runtime_state.h"

TEST(a_model_on_another_device_gives_the_same_bits)
{
    null_fixture f = null_open();
    model_case on_cpu;
    model_case on_null;
    if (!case_open("policy_go1", NULL, &on_cpu)) SKIP("no shared data");
    CHECK(case_open("policy_go1", &f.options, &on_null));
    CHECK(case_is_same(&on_cpu, on_null.outputs));
    case_close(&on_cpu);
    case_close(&on_null);
    CHECK_OK(sp_device_close(f.device));
}

/* The labels named by failures so far. */
typedef struct named_steps {
    char labels[100][128];
    uint32_t count;
} named_steps;

/* Whether the model has a node of this name and op. A step with a fused activation has it after the
 * op: "Gemm+Relu". */
static bool is_in_model(sp_model handle, const char *label)
{
    sp_rt_model *model = sp__model_hold(handle);
    bool is_there = false;
    for (uint32_t i = 0; i < model->graph->node_count && !is_there; i++) {
        const sp_graph_node *node = &model->graph->nodes[i];
        char expected[256];
        const int len =
            snprintf(expected, sizeof expected, "node '%.80s' (%.64s", node->name, node->op->name);
        is_there = strncmp(label, expected, (size_t)len) == 0 &&
                   (label[len] == '+' || strcmp(label + len, ")") == 0);
    }
    sp__model_drop(model);
    return is_there;
}

/* The last error's label belongs to a node of the model, and no earlier failure had it. */
static void check_label(const model_case *c, named_steps *named)
{
    const char *start = strstr(sp_last_error(), "node '");
    const char *end = start != NULL ? strstr(start, "): ") : NULL;
    REQUIRE(end != NULL);
    char *label = named->labels[named->count++];
    snprintf(label, sizeof named->labels[0], "%.*s", (int)(end + 1 - start), start);
    const bool is_known = is_in_model(c->model, label);
    CHECK(is_known);
    if (!is_known) test_note("there is no %s", label);
    for (uint32_t i = 0; i + 1 < named->count; i++) CHECK(strcmp(label, named->labels[i]) != 0);
}

/* No more faults; closes the case and the device. */
static void faults_end(const null_fixture *f, model_case *c, sp_array *outputs)
{
    sp__null_fail_command(f->dev, UINT64_MAX / 2);
    outputs_free(c, outputs);
    case_close(c);
    CHECK_OK(sp_device_close(f->device));
}

TEST(a_kernel_that_fails_in_mid_plan_names_node_and_op_and_the_next_run_is_right)
{
    null_fixture f = null_open();
    model_case c;
    if (!case_open("policy_go1", &f.options, &c)) SKIP("no shared data");
    sp_array outputs[FIXTURE_PORTS] = {0};
    outputs_make(&c, outputs);
    named_steps *named = sp_calloc(1, sizeof *named);
    for (uint64_t step = 0; step < 100; step++) {
        sp__null_fail_command(f.dev, step);
        const sp_status status = case_run(&c, outputs);
        if (status == SP_OK) break; /* no more steps */
        CHECK_STATUS(status, SP_FAILED);
        check_label(&c, named);
        CHECK_MESSAGE("injected fault");
        CHECK_MESSAGE("null:");
        sp__null_fail_command(f.dev, UINT64_MAX / 2);
        outputs_wipe(&c, outputs);
        CHECK_OK(case_run(&c, outputs));
        CHECK(case_is_same(&c, outputs));
    }
    CHECK(named->count >= 8);
    bool names_activation = false;
    for (uint32_t i = 0; i < named->count; i++) {
        names_activation |= strstr(named->labels[i], " (Gemm+Sigmoid+Mul)") != NULL;
    }
    CHECK(names_activation);
    test_note("%u steps failed one by one", named->count);
    sp_free(named);
    faults_end(&f, &c, outputs);
}

TEST(a_normalisation_that_fails_names_all_of_its_ops)
{
    null_fixture f = null_open();
    model_case c;
    if (!case_open("torch_bert", &f.options, &c)) SKIP("no shared data");
    sp_array outputs[FIXTURE_PORTS] = {0};
    outputs_make(&c, outputs);
    bool is_named = false;
    for (uint64_t step = 0; step < 200 && !is_named; step++) {
        sp__null_fail_command(f.dev, step);
        const sp_status status = case_run(&c, outputs);
        if (status == SP_OK) break; /* no more steps */
        CHECK_STATUS(status, SP_FAILED);
        is_named = strstr(sp_last_error(),
                          " (ReduceMean+Sub+Pow+ReduceMean+Add+Sqrt+Div+Mul+Add): ") != NULL;
    }
    CHECK(is_named);
    faults_end(&f, &c, outputs);
}

typedef struct faulty_load {
    const model_case *c;
    uint32_t rounds;
    sp_atomic_u32 failed;
    sp_atomic_u32 right;
} faulty_load;

static void run_with_faults(void *arg, uint32_t index)
{
    faulty_load *load = arg;
    (void)index;
    sp_array outputs[FIXTURE_PORTS] = {0};
    outputs_make(load->c, outputs);
    for (uint32_t i = 0; i < load->rounds; i++) {
        const sp_status status = case_run(load->c, outputs);
        if (status == SP_OK) {
            CHECK(case_is_same(load->c, outputs));
            sp_fetch_add_relaxed(&load->right, 1);
        } else {
            CHECK_STATUS(status, SP_FAILED);
            sp_fetch_add_relaxed(&load->failed, 1);
        }
    }
    outputs_free(load->c, outputs);
}

TEST(random_faults_fail_their_own_run_and_no_other)
{
    null_fixture f = null_open();
    model_case c;
    if (!case_open("policy_g1", &f.options, &c)) SKIP("no shared data");
    faulty_load load = {.c = &c, .rounds = (uint32_t)test_count(2000, 60)};
    sp__null_fail_randomly(f.dev, 10, 7);
    test_threads(16, run_with_faults, &load);
    sp__null_fail_randomly(f.dev, 0, 0);
    CHECK(sp_load_relaxed(&load.failed) > 0);
    CHECK(sp_load_relaxed(&load.right) > 0);
    test_note("%u runs failed, %u were right", sp_load_relaxed(&load.failed),
              sp_load_relaxed(&load.right));
    case_close(&c);
    CHECK_OK(sp_device_close(f.device));
}

static void run_in_turns(void *arg, uint32_t index)
{
    const model_case *c = arg;
    (void)index;
    sp_array outputs[FIXTURE_PORTS] = {0};
    outputs_make(c, outputs);
    for (uint64_t i = 0; i < test_count(200, 10); i++) {
        CHECK_OK(case_run(c, outputs));
        CHECK(case_is_same(c, outputs));
    }
    CHECK_EQ_STR(sp_last_error(), ""); /* a missing extra context is no error */
    outputs_free(c, outputs);
}

TEST(where_memory_holds_one_context_runs_take_turns)
{
    null_fixture f = null_open();
    model_case c;
    if (!case_open("blazeface_front_128", NULL, &c)) SKIP("no shared data");
    const sp_model on_cpu = c.model;
    char path[DATA_PATH_BYTES];
    CHECK(data_path(path, "models/blazeface_front_128/model.onnx"));
    CHECK_OK(sp_model_load(path, &f.options, &c.model));
    char last_error[512] = "";
    sp_status status = SP_OUT_OF_MEMORY;
    for (uint64_t limit = 256 << 10; status == SP_OUT_OF_MEMORY; limit += 256 << 10) {
        CHECK_OK(sp_device_set_memory_limit(f.device, limit));
        sp_host_tensor input = tensor_of(&c.inputs[0], NULL);
        sp_host_tensor output[FIXTURE_PORTS] = {0};
        status = sp_model_infer(c.model, &input, 1, output, c.output_count);
        if (status != SP_OK) snprintf(last_error, sizeof last_error, "%s", sp_last_error());
    }
    CHECK_OK(status);
    CHECK_EQ_STR(sp_last_error(), last_error);
    sp_model_info info;
    sp_device_info device;
    CHECK_OK(sp_model_get_info(c.model, &info));
    CHECK_OK(sp_device_get_info(f.device, &device));
    test_note("%u contexts for %u run slots", info.context_count, device.run_slots);
    CHECK(device.run_slots == 1 || info.context_count < device.run_slots);
    test_threads(8, run_in_turns, &c);
    CHECK_OK(sp_model_release(on_cpu));
    case_close(&c);
    CHECK_OK(sp_device_close(f.device));
}

TEST(a_lost_device_fails_its_models_and_cpu_goes_on)
{
    null_fixture f = null_open();
    model_case lost;
    model_case alive;
    if (!case_open("torch_linear", &f.options, &lost)) SKIP("no shared data");
    CHECK(case_open("torch_linear", NULL, &alive));
    sp_array outputs[FIXTURE_PORTS] = {0};
    outputs_make(&lost, outputs);
    sp__null_lose(f.dev);
    for (int i = 0; i < 3; i++) {
        CHECK_STATUS(case_run(&lost, outputs), SP_DEVICE_LOST);
        CHECK_MESSAGE("injected loss");
    }
    CHECK_OK(case_run(&alive, outputs));
    CHECK(case_is_same(&alive, outputs));
    outputs_free(&lost, outputs);
    case_close(&lost);
    case_close(&alive);
    CHECK_OK(sp_device_close(f.device));
}

TEST(a_closed_device_refuses_its_models)
{
    null_fixture f = null_open();
    model_case c;
    if (!case_open("torch_linear", &f.options, &c)) SKIP("no shared data");
    sp_array outputs[FIXTURE_PORTS] = {0};
    outputs_make(&c, outputs);
    CHECK_OK(sp_device_close(f.device));
    CHECK_STATUS(case_run(&c, outputs), SP_CLOSED);
    outputs_free(&c, outputs);
    case_close(&c);
}

static void run_closed(void *arg, uint32_t index)
{
    const model_case *c = arg;
    sp_array outputs[FIXTURE_PORTS] = {0};
    (void)index;
    outputs_make(c, outputs);
    CHECK_STATUS(case_run(c, outputs), SP_CLOSED);
    CHECK_MESSAGE("null");
    outputs_free(c, outputs);
}

TEST(a_closed_device_refuses_its_models_to_threads_that_never_had_a_stream_of_it)
{
    null_fixture f = null_open();
    model_case c;
    if (!case_open("torch_linear", &f.options, &c)) SKIP("no shared data");
    CHECK_OK(sp_device_close(f.device));
    test_threads(3, run_closed, &c);
    case_close(&c);
}

TEST_MAIN
