/* SPDX-License-Identifier: Apache-2.0 */
/* Real models compared with their reference outputs, on every instruction set, with equal bits. */
#include <fenv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "io/onnx_tensor.h"
#include "support/model_data.h"
#include "support/test.h"

enum { MAX_PORTS = 8 };

/* |ORT basic - ORT optimised| from INFO.txt makes the tolerance max(1e-4, 4 * difference). */
typedef struct model_case {
    const char *name;
    uint32_t sets;
    double tolerance;
} model_case;

static const model_case cases[] = {
    {"blazeface_front_128", 2, 4 * 9.16e-5},
    {"mnist_8", 3, 4 * 3.42e-3}, /* its reference is from the model zoo, 0.00342 from ORT's */
    {"policy_go1", 2, 1e-4},
    {"policy_g1", 2, 1e-4},
    {"torch_linear", 2, 1e-4},
    {"torch_mlp", 2, 1e-4},
};

static const sp_graph *load(const char *name)
{
    char path[DATA_PATH_BYTES];
    if (!data_path(path, "models/%s/model.onnx", name)) return NULL;
    size_t len;
    unsigned char *bytes = data_read(path, &len);
    const sp_graph *graph = NULL;
    CHECK_OK(sp__graph_load(bytes, len, &graph));
    free(bytes);
    return graph;
}

static bool load_array(const char *name, uint32_t set, const char *kind, uint32_t index,
                       sp_array *out)
{
    char path[DATA_PATH_BYTES];
    size_t len;
    if (!data_path(path, "models/%s/test_data_set_%u/%s_%u.pb", name, set, kind, index)) {
        return false;
    }
    unsigned char *bytes = data_read(path, &len);
    const sp_status status = sp__onnx_tensor_load(bytes, len, out);
    CHECK_OK(status);
    free(bytes);
    return status == SP_OK;
}

static const sp_graph_plan *compile(const sp_graph *graph, const sp_array *inputs, sp_cpu_isa isa)
{
    sp_plan_input wanted[MAX_PORTS] = {0};
    for (uint32_t i = 0; i < graph->input_count; i++) {
        wanted[i] = (sp_plan_input){.dtype = inputs[i].dtype, .shape = inputs[i].shape};
    }
    const sp_plan_request request = {
        .kernels = sp__cpu_kernels(isa), .inputs = wanted, .input_count = graph->input_count};
    const sp_graph_plan *plan = NULL;
    CHECK_OK(sp__plan_compile(graph, &request, &plan));
    return plan;
}

static void free_arrays(sp_array *arrays, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) sp__array_deinit(&arrays[i]);
}

static void check_set(const model_case *which, const sp_graph *graph, uint32_t set, double *worst)
{
    sp_array inputs[MAX_PORTS] = {0}, results[SP_CPU_ISA_COUNT][MAX_PORTS] = {0};
    for (uint32_t i = 0; i < graph->input_count; i++) {
        REQUIRE(load_array(which->name, set, "input", i, &inputs[i]));
    }
    for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
        if (sp__cpu_kernels((sp_cpu_isa)isa) == NULL) continue;
        const sp_graph_plan *plan = compile(graph, inputs, (sp_cpu_isa)isa);
        REQUIRE(plan != NULL);
        CHECK_OK(sp__plan_check(plan));
        CHECK_OK(data_run_plan(plan, inputs, results[isa]));
        sp__plan_destroy(plan);
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        sp_array want = {0};
        REQUIRE(load_array(which->name, set, "output", i, &want));
        const sp_array *got = &results[SP_CPU_PORTABLE][i];
        CHECK(data_is_close(got, &want, which->tolerance, 1e-3, worst));
        for (int isa = 1; isa < SP_CPU_ISA_COUNT; isa++) {
            if (results[isa][i].data == NULL) continue;
            CHECK_EQ_MEM(results[isa][i].data, got->data, (size_t)got->bytes);
        }
        sp__array_deinit(&want);
    }
    free_arrays(inputs, MAX_PORTS);
    for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) free_arrays(results[isa], MAX_PORTS);
}

TEST(real_models_match_their_references_with_equal_bits_on_every_isa)
{
    uint32_t checked = 0;
    for (size_t i = 0; i < SP_COUNT_OF(cases); i++) {
        const sp_graph *graph = load(cases[i].name);
        if (graph == NULL) continue;
        double worst = 0;
        for (uint32_t set = 0; set < cases[i].sets; set++) {
            check_set(&cases[i], graph, set, &worst);
        }
        test_note("%s: %u sets, largest difference %.3g", cases[i].name, cases[i].sets, worst);
        checked++;
        sp__graph_destroy(graph);
    }
    if (checked == 0) SKIP("shared/data is not there (set STREAMPOOL_TEST_DATA)");
}

TEST(row_i_of_a_batch_has_the_bits_of_the_row_alone)
{
    const sp_graph *graph = load("torch_mlp");
    if (graph == NULL) SKIP("shared/data is not there (set STREAMPOOL_TEST_DATA)");
    enum { MAX_BATCH = 64, IN = 256, OUT = 128 };
    data_random random = {7};
    const sp_shape all = {.rank = 2, .dims = {MAX_BATCH, IN}};
    sp_array rows = data_floats(&random, &all);
    static float alone[MAX_BATCH][OUT];
    for (int64_t batch = 1; batch <= MAX_BATCH; batch++) {
        sp_array input = rows, output = {0};
        input.shape.dims[0] = batch;
        const sp_graph_plan *plan = compile(graph, &input, sp__cpu_isa_selected());
        REQUIRE(plan != NULL);
        for (int64_t first = 0; batch == 1 && first < MAX_BATCH; first++) {
            input.data = (float *)rows.data + first * IN;
            REQUIRE_OK(data_run_plan(plan, &input, &output));
            memcpy(alone[first], output.data, sizeof(alone[0]));
            sp__array_deinit(&output);
        }
        input.data = rows.data;
        REQUIRE_OK(data_run_plan(plan, &input, &output));
        REQUIRE_EQ_MEM(output.data, alone, (size_t)batch * sizeof(alone[0]));
        sp__array_deinit(&output);
        sp__plan_destroy(plan);
    }
    sp__array_deinit(&rows);
    sp__graph_destroy(graph);
}

/* Loading folds and packs, running computes: neither uses the caller's rounding mode. */
TEST(the_callers_floating_point_state_does_not_matter)
{
    const sp_graph *graph = load("policy_go1");
    if (graph == NULL) SKIP("shared/data is not there (set STREAMPOOL_TEST_DATA)");
    sp_array input = {0}, outputs[2] = {0};
    REQUIRE(load_array("policy_go1", 0, "input", 0, &input));
    for (int i = 0; i < 2; i++) {
        fesetround(i == 0 ? FE_TONEAREST : FE_UPWARD);
        const sp_graph *again = load("policy_go1");
        const sp_graph_plan *plan = compile(again, &input, sp__cpu_isa_selected());
        CHECK_OK(data_run_plan(plan, &input, &outputs[i]));
        CHECK_EQ_INT(fegetround(), i == 0 ? FE_TONEAREST : FE_UPWARD);
        sp__plan_destroy(plan);
        sp__graph_destroy(again);
    }
    fesetround(FE_TONEAREST);
    CHECK_EQ_MEM(outputs[1].data, outputs[0].data, (size_t)outputs[0].bytes);
    free_arrays(outputs, 2);
    sp__array_deinit(&input);
    sp__graph_destroy(graph);
}

TEST(single_core_speed_of_the_reference_run)
{
    for (size_t i = 0; i < SP_COUNT_OF(cases); i++) {
        const sp_graph *graph = load(cases[i].name);
        if (graph == NULL) continue;
        sp_array input = {0}, outputs[MAX_PORTS] = {0};
        REQUIRE(load_array(cases[i].name, 0, "input", 0, &input));
        const sp_graph_plan *plan = compile(graph, &input, sp__cpu_isa_selected());
        REQUIRE(plan != NULL);
        REQUIRE_OK(data_run_plan(plan, &input, outputs));
        const void *in[1] = {input.data};
        void *out[MAX_PORTS];
        for (uint32_t k = 0; k < plan->output_count; k++) out[k] = outputs[k].data;
        void *arena = aligned_alloc(64, (size_t)plan->arena_bytes + 64);
        uint64_t best = UINT64_MAX;
        for (int round = 0; round < 20; round++) {
            const uint64_t start = sp_clock_now();
            CHECK_OK(sp__plan_run_reference(plan, in, out, arena));
            const uint64_t taken = sp_clock_now() - start;
            if (taken < best) best = taken;
        }
        test_note("%s (%s): %.1f us a run, %u steps, arena %llu KiB, weights %llu KiB",
                  cases[i].name, sp__cpu_isa_name(sp__cpu_isa_selected()), (double)best / 1e3,
                  plan->step_count, (unsigned long long)plan->arena_bytes / 1024,
                  (unsigned long long)graph->weight_bytes / 1024);
        free(arena);
        sp__plan_destroy(plan);
        sp__array_deinit(&input);
        free_arrays(outputs, MAX_PORTS);
        sp__graph_destroy(graph);
    }
}

TEST_MAIN
