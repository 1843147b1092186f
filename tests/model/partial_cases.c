/* SPDX-License-Identifier: Apache-2.0 */
#include "partial_cases.h"

#include <string.h>

static const int64_t any_dims[1] = {-1};

static void add_found(writer *graph)
{
    partial_add_found(graph, "values");
    add_node(graph, make_node("Add", "values values", "y"));
    add_node(graph, make_node("Shape", "values", "s"));
    add_output(graph, "y");
    add_output(graph, "s");
}

static void add_loop(writer *graph)
{
    static const int64_t dims[1] = {CASE_COUNT};
    writer body = partial_body(1);
    partial_add_found(graph, "values");
    add_node(graph, make_node("Shape", "values", "n"));
    partial_add_bool(graph, "c", true);
    add_node(&body, partial_node_int("Cast", "i", "f", "to", ONNX_FLOAT));
    add_node(&body, make_node("Tanh", "v", "t"));
    add_node(&body, make_node("Add", "t f", "w"));
    add_node(&body, make_node("Identity", "w", "each"));
    add_output(&body, "on");
    add_output(&body, "w");
    partial_add_result(&body, "each", ONNX_FLOAT, dims, 1);
    add_node(graph, partial_loop("n c x", "y s", &body));
    add_output(graph, "y");
    add_output(graph, "s");
}

static void add_if(writer *graph)
{
    writer then_branch = {0};
    writer else_branch = {0};
    add_input(graph, "x", ONNX_FLOAT, any_dims, 1);
    partial_add_floats(graph, "nothing", (const float[]){0}, -1);
    add_node(graph, partial_node_int("ReduceSum", "x", "sum", "keepdims", 0));
    add_node(graph, make_node("Greater", "sum nothing", "is_more"));
    add_node(graph, make_node("Tanh", "x", "t"));
    add_node(&then_branch, make_node("Add", "t sum", "result"));
    add_output(&then_branch, "result");
    add_node(&else_branch, make_node("Neg", "t", "result"));
    add_output(&else_branch, "result");
    add_node(graph, partial_if("is_more", "chosen", &then_branch, &else_branch));
    add_node(graph, make_node("Abs", "chosen", "y"));
    add_output(graph, "y");
}

sp_model partial_model(case_kind kind, const sp_model_options *options)
{
    writer graph = {0};
    sp_model model = {0};
    if (kind == CASE_FOUND) add_found(&graph);
    else if (kind == CASE_LOOP) add_loop(&graph);
    else add_if(&graph);
    CHECK_OK(partial_load(&graph, options, &model));
    return model;
}

uint32_t partial_output_count(case_kind kind)
{
    return kind == CASE_IF ? 1 : 2;
}

void partial_case_make(partial_case *c, case_kind kind, uint64_t seed)
{
    uint64_t state = (seed + 1) * 0x9e3779b97f4a7c15u;
    c->kind = kind;
    for (int i = 0; i < CASE_COUNT; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const int32_t value = (int32_t)(state >> 40 & 0xff) - 128;
        c->x[i] = (state >> 33 & 31) < 30 ? 0 : (float)value * 0.0625f;
    }
    c->input = partial_floats("x", c->x, CASE_COUNT);
}

sp_status partial_case_run(sp_model model, const partial_case *c, sp_host_tensor *outputs)
{
    return sp_model_run(model, &c->input, 1, outputs, partial_output_count(c->kind));
}

sp_status partial_case_submit(sp_model model, const partial_case *c, sp_host_tensor *outputs,
                              sp_future *out)
{
    return sp_model_submit(model, &c->input, 1, outputs, partial_output_count(c->kind), out);
}

void partial_case_take(const partial_case *c, sp_future future, sp_host_tensor *out)
{
    for (uint32_t i = 0; i < partial_output_count(c->kind); i++) {
        CHECK_OK(sp_future_take_output(future, i, &out[i]));
    }
}

bool partial_is_same(const partial_case *c, const sp_host_tensor *a, const sp_host_tensor *b)
{
    bool is_same = true;
    for (uint32_t i = 0; i < partial_output_count(c->kind) && is_same; i++) {
        is_same = a[i].dtype == b[i].dtype && a[i].rank == b[i].rank && a[i].bytes == b[i].bytes &&
                  memcmp(a[i].shape, b[i].shape, a[i].rank * sizeof *a[i].shape) == 0 &&
                  (a[i].bytes == 0 || memcmp(a[i].data, b[i].data, a[i].bytes) == 0);
    }
    return is_same;
}

void partial_free(const partial_case *c, sp_host_tensor *outputs)
{
    for (uint32_t i = 0; i < partial_output_count(c->kind); i++) sp_host_tensor_free(&outputs[i]);
}

void partial_case_check(sp_model model, const partial_case *c, sp_future future)
{
    sp_host_tensor expected[CASE_OUTPUTS] = {0};
    sp_host_tensor taken[CASE_OUTPUTS] = {0};
    CHECK_OK(sp_future_wait(future));
    partial_case_take(c, future, taken);
    CHECK_OK(sp_future_release(future));
    CHECK_OK(partial_case_run(model, c, expected));
    CHECK(partial_is_same(c, taken, expected));
    partial_free(c, expected);
    partial_free(c, taken);
}
