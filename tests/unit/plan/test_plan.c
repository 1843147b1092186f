/* SPDX-License-Identifier: Apache-2.0 */
/* Plans: places of values, folding, and the requirements of a request. */
#include "plan/plan.h"

#include <fenv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/model_data.h"
#include "support/onnx_writer.h"
#include "support/test.h"

static const int64_t dims_n4[] = {-1, 4};

static void add_tensor(writer *graph, writer tensor)
{
    write_message(graph, GRAPH_INITIALIZER_FIELD, &tensor);
}

static const sp_graph *finish(writer *graph, int64_t opset)
{
    writer model = make_model(graph, opset);
    const sp_graph *loaded = NULL;
    CHECK_OK(sp__graph_load(model.bytes, model.len, &loaded));
    writer_free(&model);
    return loaded;
}

static sp_plan_input floats(uint32_t rank, int64_t a, int64_t b)
{
    return (sp_plan_input){.dtype = SP_F32, .shape = {.rank = rank, .dims = {a, b}}};
}

static const sp_graph_plan *compile(const sp_graph *graph, const sp_plan_input *inputs)
{
    const sp_plan_request request = {.inputs = inputs, .input_count = graph->input_count};
    const sp_graph_plan *plan = NULL;
    CHECK_OK(sp__plan_compile(graph, &request, &plan));
    if (plan != NULL) CHECK_OK(sp__plan_check(plan));
    return plan;
}

/* A chain of Relus: all in place, the last one directly into the output. */
TEST(values_are_written_in_place_and_into_the_output)
{
    writer graph = {0};
    add_input(&graph, "x", 1, dims_n4, 2);
    add_node(&graph, make_node("Relu", "x", "a"));
    add_node(&graph, make_node("Relu", "a", "b"));
    add_node(&graph, make_node("Relu", "b", "c"));
    add_node(&graph, make_node("Relu", "c", "y"));
    add_output(&graph, "y");
    const sp_graph *loaded = finish(&graph, 14);
    const sp_plan_input input = floats(2, 100, 4);
    const sp_graph_plan *plan = compile(loaded, &input);
    REQUIRE(plan != NULL);
    CHECK_EQ_INT(plan->step_count, 4);
    CHECK_EQ_U64(plan->arena_bytes, 1600);
    CHECK_EQ_INT(plan->steps[0].bindings[0].where, SP_PLACE_INPUT);
    CHECK_EQ_INT(plan->steps[2].bindings[1].where, SP_PLACE_ARENA);
    CHECK_EQ_INT(plan->steps[3].bindings[1].where, SP_PLACE_OUTPUT);
    CHECK_EQ_STR(plan->steps[3].node_name, "y");
    CHECK_EQ_STR(plan->steps[3].op_name, "Relu");
    sp__plan_destroy(plan);
    sp__graph_destroy(loaded);
}

TEST(a_value_that_is_still_needed_is_not_overwritten)
{
    writer graph = {0};
    add_input(&graph, "x", 1, dims_n4, 2);
    add_node(&graph, make_node("Relu", "x", "a"));
    add_node(&graph, make_node("Sub", "a x", "b"));
    add_node(&graph, make_node("Mul", "b a", "y"));
    add_output(&graph, "y");
    const sp_graph *loaded = finish(&graph, 14);
    const sp_plan_input wanted = floats(2, 2, 4);
    const sp_graph_plan *plan = compile(loaded, &wanted);
    REQUIRE(plan != NULL);
    data_random random = {41};
    sp_array x = data_floats(&random, &wanted.shape), y;
    REQUIRE_OK(data_run_plan(plan, &x, &y));
    for (int i = 0; i < 8; i++) {
        const float v = ((float *)x.data)[i], relu = v > 0 ? v : 0;
        CHECK(((float *)y.data)[i] == (relu - v) * relu);
    }
    sp__array_deinit(&x);
    sp__array_deinit(&y);
    sp__plan_destroy(plan);
    sp__graph_destroy(loaded);
}

/* Outputs that are views, inputs, constants, each other. */
TEST(every_kind_of_output_gets_its_bytes)
{
    writer graph = {0};
    const float c[4] = {1, 2, 3, 4};
    add_input(&graph, "x", 1, dims_n4, 2);
    add_tensor(&graph, make_tensor("c", 1, (int64_t[]){4}, 1, c, sizeof(c)));
    add_tensor(&graph, make_tensor("s", 7, (int64_t[]){1}, 1, &(int64_t){-1}, 8));
    add_node(&graph, make_node("Identity", "x", "same"));
    add_node(&graph, make_node("Relu", "x", "r"));
    add_node(&graph, make_node("Reshape", "r s", "flat"));
    add_node(&graph, make_node("Relu", "flat", "again"));
    const char *const outputs[] = {"same", "c", "r", "flat", "again", "again", "x"};
    for (size_t i = 0; i < SP_COUNT_OF(outputs); i++) add_output(&graph, outputs[i]);
    const sp_graph *loaded = finish(&graph, 14);
    const sp_plan_input wanted = floats(2, 3, 4);
    const sp_graph_plan *plan = compile(loaded, &wanted);
    REQUIRE(plan != NULL);
    data_random random = {42};
    sp_array x = data_floats(&random, &wanted.shape), out[7];
    REQUIRE_OK(data_run_plan(plan, &x, out));
    float relu[12];
    for (int i = 0; i < 12; i++) {
        const float v = ((float *)x.data)[i];
        relu[i] = v > 0 ? v : 0;
    }
    const void *const want[] = {x.data, c, relu, relu, relu, relu, x.data};
    for (int i = 0; i < 7; i++) {
        CHECK_EQ_MEM(out[i].data, want[i], (size_t)out[i].bytes);
        CHECK_EQ_U64(out[i].bytes, i == 1 ? 16 : 48);
        sp__array_deinit(&out[i]);
    }
    CHECK_EQ_STR(sp__shape_print(&plan->outputs[3].shape).text, "[12]");
    sp__array_deinit(&x);
    sp__plan_destroy(plan);
    sp__graph_destroy(loaded);
}

TEST(a_tensor_in_an_attribute_is_a_value)
{
    writer graph = {0}, constant = make_node("Constant", "", "c");
    const float c[4] = {1, -2, 3, 0.5f};
    writer tensor = make_tensor("t", 1, (int64_t[]){4}, 1, c, sizeof(c));
    add_attribute_tensor(&constant, "value", &tensor);
    add_input(&graph, "x", 1, dims_n4, 2);
    add_node(&graph, constant);
    add_node(&graph, make_node("Add", "x c", "y"));
    add_output(&graph, "y");
    const sp_graph *loaded = finish(&graph, 14);
    const sp_plan_input wanted = floats(2, 2, 4);
    const sp_graph_plan *plan = compile(loaded, &wanted);
    REQUIRE(plan != NULL);
    data_random random = {46};
    sp_array x = data_floats(&random, &wanted.shape), y;
    REQUIRE_OK(data_run_plan(plan, &x, &y));
    for (int i = 0; i < 8; i++) {
        CHECK(((float *)y.data)[i] == ((float *)x.data)[i] + c[i % 4]);
    }
    sp__array_deinit(&x);
    sp__array_deinit(&y);
    sp__plan_destroy(plan);
    sp__graph_destroy(loaded);
}

/* Shape -> ConstantOfShape is known as soon as the shapes are. */
TEST(values_that_follow_from_shapes_are_folded_by_the_plan)
{
    writer graph = {0};
    add_input(&graph, "x", 1, dims_n4, 2);
    add_node(&graph, make_node("Shape", "x", "shape"));
    add_node(&graph, make_node("ConstantOfShape", "shape", "zeros"));
    add_node(&graph, make_node("Add", "x zeros", "y"));
    add_output(&graph, "y");
    add_output(&graph, "shape");
    const sp_graph *loaded = finish(&graph, 14);
    const sp_plan_input wanted = floats(2, 3, 4);
    const sp_graph_plan *plan = compile(loaded, &wanted);
    REQUIRE(plan != NULL);
    CHECK_EQ_INT(plan->constant_count, 2);
    CHECK_EQ_INT(plan->step_count, 2);
    data_random random = {43};
    sp_array x = data_floats(&random, &wanted.shape), out[2];
    REQUIRE_OK(data_run_plan(plan, &x, out));
    CHECK_EQ_MEM(out[0].data, x.data, (size_t)x.bytes);
    CHECK_EQ_MEM(out[1].data, ((int64_t[]){3, 4}), 16);
    sp__array_deinit(&x);
    for (int i = 0; i < 2; i++) sp__array_deinit(&out[i]);
    sp__plan_destroy(plan);
    sp__graph_destroy(loaded);
}

/* Shape arithmetic of exporters: all of it is known when the plan is compiled. */
TEST(shape_arithmetic_through_elementwise_ops_is_folded_by_the_plan)
{
    writer graph = {0};
    const int64_t two[] = {2}, minus[] = {-1, -1}, dims[] = {1}, pair[] = {2};
    writer to_float = make_node("Cast", "c", "d"), to_int = make_node("Cast", "d", "e");
    add_attribute_int(&to_float, "to", 1);
    add_attribute_int(&to_int, "to", 7);
    add_input(&graph, "x", 1, dims_n4, 2);
    add_tensor(&graph, make_tensor("two", 7, dims, 1, two, sizeof(two)));
    add_tensor(&graph, make_tensor("minus", 7, pair, 1, minus, sizeof(minus)));
    add_node(&graph, make_node("Shape", "x", "shape"));
    add_node(&graph, make_node("Mul", "shape two", "a"));
    add_node(&graph, make_node("Add", "a two", "b"));
    add_node(&graph, make_node("Div", "b two", "c")); /* shape + 1 */
    add_node(&graph, to_float);
    add_node(&graph, to_int);
    add_node(&graph, make_node("Equal", "e shape", "is_same"));
    add_node(&graph, make_node("Not", "is_same", "is_more"));
    add_node(&graph, make_node("Where", "is_more e minus", "wanted"));
    add_node(&graph, make_node("Sub", "wanted two", "less"));
    add_node(&graph, make_node("Max", "less minus two", "most"));
    add_node(&graph, make_node("ConstantOfShape", "most", "zeros"));
    add_output(&graph, "zeros");
    const sp_graph *loaded = finish(&graph, 14);
    const sp_plan_input input = floats(2, 7, 4);
    const sp_graph_plan *plan = compile(loaded, &input);
    REQUIRE(plan != NULL);
    const sp_shape want = {.rank = 2, .dims = {6, 3}};
    CHECK(sp__shape_equal(&plan->outputs[0].shape, &want));
    CHECK_EQ_INT(plan->step_count, 1); /* the copy to the output */
    sp__plan_destroy(plan);
    sp__graph_destroy(loaded);
}

/* Folding by the plan with a weight that the graph also packs: it uses the plain layout. */
static void check_folded(writer *graph, const sp_array *want, uint32_t count)
{
    const sp_graph *loaded = finish(graph, 14);
    const sp_plan_input input = floats(2, 2, 4);
    const sp_graph_plan *plan = compile(loaded, &input);
    REQUIRE(plan != NULL);
    data_random random = {47};
    sp_array x = data_floats(&random, &input.shape), out[3];
    REQUIRE(plan->output_count == count);
    REQUIRE_OK(data_run_plan(plan, &x, out));
    for (uint32_t i = 0; i < count; i++) {
        CHECK_EQ_U64(out[i].bytes, want[i].bytes);
        CHECK_EQ_MEM(out[i].data, want[i].data, (size_t)want[i].bytes);
    }
    data_free(out, count);
    sp__array_deinit(&x);
    sp__plan_destroy(plan);
    sp__graph_destroy(loaded);
}

static writer graph_of_sizes(const char *sizes)
{
    writer graph = {0}, cast = make_node("Cast", "s", sizes);
    add_attribute_int(&cast, "to", 1);
    add_input(&graph, "x", 1, dims_n4, 2);
    add_node(&graph, make_node("Shape", "x", "s"));
    add_node(&graph, cast);
    return graph;
}

TEST(a_product_of_sizes_and_a_weight_that_is_an_output_is_folded)
{
    const float w[6] = {1, -2, 3, 0.5f, 4, -1};
    float product[3];
    for (int i = 0; i < 3; i++) product[i] = 2 * w[i] + 4 * w[3 + i];
    writer graph = graph_of_sizes("a");
    add_tensor(&graph, make_tensor("w", 1, (int64_t[]){2, 3}, 2, w, sizeof(w)));
    add_node(&graph, make_node("MatMul", "a w", "y"));
    add_output(&graph, "y");
    add_output(&graph, "w");
    check_folded(&graph,
                 (const sp_array[]){{.data = product, .bytes = sizeof(product)},
                                    {.data = (void *)(uintptr_t)w, .bytes = sizeof(w)}},
                 2);
}

TEST(a_recurrent_node_over_sizes_with_weights_that_are_outputs_is_folded)
{
    enum { HIDDEN = 3 };
    float w[4 * HIDDEN * 2], r[4 * HIDDEN * HIDDEN];
    const float sizes[2] = {2, 4};
    data_random random = {48};
    data_fill(&random, w, SP_COUNT_OF(w));
    data_fill(&random, r, SP_COUNT_OF(r));
    const int64_t hidden = HIDDEN, one[] = {1, 1, 2};
    const sp_attribute attribute = data_attribute_int("hidden_size", &hidden);
    const sp_array inputs[3] = {
        {.dtype = SP_F32, .shape = SHAPE(1, 1, 2), .data = (void *)(uintptr_t)sizes, .bytes = 8},
        {.dtype = SP_F32, .shape = SHAPE(1, 4 * HIDDEN, 2), .data = w, .bytes = sizeof(w)},
        {.dtype = SP_F32, .shape = SHAPE(1, 4 * HIDDEN, HIDDEN), .data = r, .bytes = sizeof(r)}};
    sp_array want[3];
    REQUIRE_OK(data_run("LSTM", 14, &attribute, 1, inputs, 3, want, 1));
    want[1] = inputs[1];
    want[2] = inputs[2];
    writer graph = graph_of_sizes("a"), lstm = make_node("LSTM", "sequence w r", "y");
    add_attribute_int(&lstm, "hidden_size", HIDDEN);
    add_tensor(&graph, make_tensor("w", 1, inputs[1].shape.dims, 3, w, sizeof(w)));
    add_tensor(&graph, make_tensor("r", 1, inputs[2].shape.dims, 3, r, sizeof(r)));
    add_tensor(&graph, make_tensor("one", 7, (int64_t[]){3}, 1, one, sizeof(one)));
    add_node(&graph, make_node("Reshape", "a one", "sequence"));
    add_node(&graph, lstm);
    add_node(&graph, make_node("Identity", "r", "again"));
    add_output(&graph, "y");
    add_output(&graph, "w");
    add_output(&graph, "again");
    check_folded(&graph, want, 3);
    sp__array_deinit(&want[0]);
}

/* ---- the caller's rounding ---- */

/* From x [1,1,n]: n / 0.3 elements, once with the file's n and once with x's; and x as an image of
 * other widths. */
static writer rounded_graph(const int64_t *widths, uint32_t width_count, int64_t n)
{
    writer graph = {0}, cast = make_node("Cast", "size", "limit");
    const double zero = 0, third = 0.3, limit = (double)n;
    add_attribute_int(&cast, "to", 11);
    add_input(&graph, "x", 1, (int64_t[]){1, 1, -1}, 3);
    add_tensor(&graph, make_tensor("zero", 11, NULL, 0, &zero, 8));
    add_tensor(&graph, make_tensor("third", 11, NULL, 0, &third, 8));
    add_tensor(&graph, make_tensor("fixed", 11, NULL, 0, &limit, 8));
    add_node(&graph, make_node("Size", "x", "size"));
    add_node(&graph, cast);
    add_node(&graph, make_node("Range", "zero limit third", "a"));
    add_node(&graph, make_node("Range", "zero fixed third", "b"));
    add_output(&graph, "a");
    add_output(&graph, "b");
    for (uint32_t i = 0; i < width_count; i++) {
        const int64_t sizes[3] = {1, 1, widths[i]};
        char names[2][16], inputs[32];
        (void)snprintf(names[0], sizeof names[0], "sizes%u", i);
        (void)snprintf(names[1], sizeof names[1], "r%u", i);
        (void)snprintf(inputs, sizeof inputs, "x - - %s", names[0]);
        add_tensor(&graph, make_tensor(names[0], 7, (int64_t[]){3}, 1, sizes, sizeof sizes));
        writer resize = make_node("Resize", inputs, names[1]);
        add_attribute_text(&resize, "mode", "nearest");
        add_attribute_text(&resize, "nearest_mode", "floor");
        add_attribute_text(&resize, "coordinate_transformation_mode", "asymmetric");
        add_node(&graph, resize);
        add_output(&graph, names[1]);
    }
    return graph;
}

enum { WIDTHS = 9, ROUNDED = WIDTHS + 2 };

/* Loads and compiles with that rounding mode, runs with the default one. */
static void run_rounded(int rounding, sp_array *out)
{
    static const int64_t widths[WIDTHS] = {5, 6, 7, 8, 9, 10, 11, 13, 17};
    writer graph = rounded_graph(widths, WIDTHS, 6);
    const sp_plan_input input = {.dtype = SP_F32, .shape = SHAPE(1, 1, 6)};
    data_random random = {49};
    sp_array x = data_floats(&random, &input.shape);
    CHECK_EQ_INT(fesetround(rounding), 0);
    const sp_graph *loaded = finish(&graph, 14);
    const sp_graph_plan *plan = compile(loaded, &input);
    CHECK_EQ_INT(fegetround(), rounding);
    fesetround(FE_TONEAREST);
    REQUIRE(plan != NULL);
    REQUIRE_OK(data_run_plan(plan, &x, out));
    sp__array_deinit(&x);
    sp__plan_destroy(plan);
    sp__graph_destroy(loaded);
}

TEST(shapes_and_constants_do_not_depend_on_the_rounding_of_the_thread_that_compiles)
{
    sp_array want[ROUNDED] = {0}, out[ROUNDED] = {0};
    static const int roundings[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    run_rounded(FE_TONEAREST, want);
    CHECK_EQ_STR(sp__shape_print(&want[0].shape).text, "[20]");
    for (size_t i = 0; i < SP_COUNT_OF(roundings); i++) {
        run_rounded(roundings[i], out);
        for (int k = 0; k < ROUNDED; k++) {
            CHECK_EQ_STR(sp__shape_print(&out[k].shape).text, sp__shape_print(&want[k].shape).text);
            CHECK_EQ_U64(data_hash(out[k].data, out[k].bytes),
                         data_hash(want[k].data, want[k].bytes));
        }
        data_free(out, ROUNDED);
    }
    data_free(want, ROUNDED);
}

/* A shape-determining input: its data is in the request, or the plan ends before the node. */
TEST(inputs_may_give_their_values_to_the_plan)
{
    writer graph = {0};
    add_input(&graph, "x", 1, dims_n4, 2);
    add_input(&graph, "shape", 7, (int64_t[]){2}, 1);
    add_node(&graph, make_node("Reshape", "x shape", "y"));
    add_output(&graph, "y");
    const sp_graph *loaded = finish(&graph, 14);
    sp_plan_input inputs[2] = {floats(2, 3, 4),
                               {.dtype = SP_I64, .shape = {.rank = 1, .dims = {2}}}};
    sp_plan_request request = {.inputs = inputs, .input_count = 2};
    const sp_graph_plan *plan;
    REQUIRE_OK(sp__plan_compile(loaded, &request, &plan));
    CHECK(plan->is_partial && plan->is_subgraph);
    CHECK_EQ_U64(plan->stop_count, 1);
    CHECK_EQ_STR(loaded->nodes[plan->stops[0]].name, "y");
    sp__plan_destroy(plan);
    const int64_t shape[2] = {6, -1};
    inputs[1].data = shape;
    REQUIRE_OK(sp__plan_compile(loaded, &request, &plan));
    CHECK(!plan->is_partial && !plan->is_subgraph);
    CHECK_OK(sp__plan_check(plan));
    CHECK_EQ_STR(sp__shape_print(&plan->outputs[0].shape).text, "[6,2]");
    sp__plan_destroy(plan);
    sp__graph_destroy(loaded);
}

TEST(a_weight_in_a_format_that_the_kernel_does_not_read_is_found)
{
    writer graph = {0};
    const float w[12] = {0};
    add_input(&graph, "x", 1, dims_n4, 2);
    add_tensor(&graph, make_tensor("w", 1, (int64_t[]){4, 3}, 2, w, sizeof w));
    add_node(&graph, make_node("MatMul", "x w", "y"));
    add_output(&graph, "y");
    const sp_graph *loaded = finish(&graph, 14);
    const sp_plan_input input = floats(2, 3, 4);
    const sp_graph_plan *plan = compile(loaded, &input);
    REQUIRE(plan != NULL && plan->packing_count == 1);
    sp_packing *packing = (sp_packing *)(uintptr_t)plan->packings;
    CHECK_EQ_INT(packing->kernel, SP_KERNEL_ID_gemm_pack_f32);
    packing->kernel = SP_KERNEL_ID_narrow_pack_tf32;
    CHECK_STATUS(sp__plan_check(plan), SP_INTERNAL);
    CHECK(strstr(sp_last_error(), "step 0: binding 1") != NULL);
    sp__plan_destroy(plan);
    sp__graph_destroy(loaded);
}

/* As mnist_8: weights that are inputs too, reshaped before use, so folded and packed. */
TEST(overridden_defaults_undo_folding_and_packing)
{
    writer graph = {0};
    float w[12];
    for (int i = 0; i < 12; i++) w[i] = (float)i;
    add_input(&graph, "x", 1, dims_n4, 2);
    add_input(&graph, "w", 1, (int64_t[]){12}, 1);
    add_input(&graph, "s", 7, (int64_t[]){2}, 1);
    add_tensor(&graph, make_tensor("w", 1, (int64_t[]){12}, 1, w, sizeof(w)));
    add_tensor(&graph, make_tensor("s", 7, (int64_t[]){2}, 1, ((int64_t[]){4, 3}), 16));
    add_node(&graph, make_node("Reshape", "w s", "m"));
    add_node(&graph, make_node("MatMul", "x m", "y"));
    add_output(&graph, "y");
    const sp_graph *loaded = finish(&graph, 14);
    CHECK_EQ_INT(loaded->default_count, 2);
    const sp_plan_input wanted = floats(2, 3, 4);
    const sp_plan_override override = {.index = 0, .input = floats(1, 12, 0)};
    const sp_plan_request plain = {.inputs = &wanted, .input_count = 1};
    sp_plan_request given = plain;
    given.overrides = &override;
    given.override_count = 1;
    const sp_graph_plan *first, *second;
    REQUIRE_OK(sp__plan_compile(loaded, &plain, &first));
    REQUIRE_OK(sp__plan_compile(loaded, &given, &second));
    CHECK_OK(sp__plan_check(second));
    data_random random = {44};
    const sp_shape w_shape = {.rank = 1, .dims = {12}};
    sp_array in[2] = {data_floats(&random, &wanted.shape), data_floats(&random, &w_shape)};
    sp_array by_default, same, other;
    REQUIRE_OK(data_run_plan(first, in, &by_default));
    REQUIRE_OK(data_run_plan(second, in, &other));
    CHECK(memcmp(by_default.data, other.data, (size_t)other.bytes) != 0);
    memcpy(in[1].data, w, sizeof(w));
    REQUIRE_OK(data_run_plan(second, in, &same));
    CHECK_EQ_MEM(same.data, by_default.data, (size_t)same.bytes);
    sp_array *const all[] = {&in[0], &in[1], &by_default, &same, &other};
    for (size_t i = 0; i < SP_COUNT_OF(all); i++) sp__array_deinit(all[i]);
    const sp_plan_override twice[2] = {override, override};
    given.overrides = twice;
    given.override_count = 2;
    const sp_graph_plan *none;
    CHECK_STATUS(sp__plan_compile(loaded, &given, &none), SP_INVALID);
    sp__plan_destroy(first);
    sp__plan_destroy(second);
    sp__graph_destroy(loaded);
}

TEST(requests_that_do_not_fit_name_the_input)
{
    writer graph = {0};
    add_input(&graph, "a", 1, dims_n4, 2);
    add_input(&graph, "b", 1, dims_n4, 2);
    add_node(&graph, make_node("Add", "a b", "y"));
    add_output(&graph, "y");
    const sp_graph *loaded = finish(&graph, 14);
    const sp_graph_plan *plan;
    sp_plan_input in[2] = {floats(2, 3, 4), floats(2, 3, 4)};
    const sp_plan_request few = {.inputs = in, .input_count = 1};
    const sp_plan_request both = {.inputs = in, .input_count = 2};
    CHECK_STATUS(sp__plan_compile(loaded, &few, &plan), SP_MISMATCH);
    CHECK_MESSAGE("1 inputs are given; the model expects 2");
    in[1] = floats(2, 3, 5);
    CHECK_STATUS(sp__plan_compile(loaded, &both, &plan), SP_MISMATCH);
    CHECK_MESSAGE("input 'b' has shape [3,5]; the model expects 4 in dimension 1");
    in[1] = floats(2, 2, 4);
    CHECK_STATUS(sp__plan_compile(loaded, &both, &plan), SP_MISMATCH);
    CHECK_MESSAGE("dimension 'n' is 3 in input 'a' and 2 in input 'b'");
    in[1] = floats(1, 4, 0);
    CHECK_STATUS(sp__plan_compile(loaded, &both, &plan), SP_MISMATCH);
    CHECK_MESSAGE("rank 2");
    in[1] = floats(2, 3, 4);
    in[1].dtype = SP_I64;
    CHECK_STATUS(sp__plan_compile(loaded, &both, &plan), SP_MISMATCH);
    CHECK_MESSAGE("input 'b' is of type i64; the model expects f32");
    in[0] = in[1] = floats(2, INT64_MAX, 4);
    CHECK_STATUS(sp__plan_compile(loaded, &both, &plan), SP_EXHAUSTED);
    in[0] = in[1] = floats(2, -1, 4);
    CHECK_STATUS(sp__plan_compile(loaded, &both, &plan), SP_MISMATCH);
    in[0] = in[1] = floats(2, 0, 4);
    CHECK_OK(sp__plan_compile(loaded, &both, &plan));
    CHECK_EQ_U64(plan->arena_bytes, 0);
    sp__plan_destroy(plan);
    in[0] = in[1] = floats(2, INT64_C(1) << 36, 4);
    CHECK_OK(sp__plan_compile(loaded, &both, &plan)); /* only numbers so far */
    sp__plan_destroy(plan);
    sp__graph_destroy(loaded);
}

/* A declared output type that the graph does not give. */
TEST(outputs_must_have_the_declared_type)
{
    writer graph = {0}, value = make_value("y", 7, NULL, -1);
    add_input(&graph, "x", 1, dims_n4, 2);
    add_node(&graph, make_node("Relu", "x", "y"));
    write_message(&graph, GRAPH_OUTPUT_FIELD, &value);
    const sp_graph *loaded = finish(&graph, 14);
    const sp_plan_input in = floats(2, 3, 4);
    const sp_plan_request request = {.inputs = &in, .input_count = 1};
    const sp_graph_plan *plan;
    CHECK_STATUS(sp__plan_compile(loaded, &request, &plan), SP_MISMATCH);
    CHECK_MESSAGE("output 'y' is of type f32; the file declares i64");
    sp__graph_destroy(loaded);
}

/* Random graphs of ops that split, join, view and overwrite: the bits equal those of a plan in
 * which every value is an output, so that nothing shares memory. */
enum { NODES = 25 };

static writer random_graph(uint64_t seed, bool shows_all, uint32_t *outputs)
{
    static const char *const unary[] = {"Relu", "Sigmoid", "Identity", "Transpose", "Flatten"};
    static const char *const binary[] = {"Add", "Sub", "Mul", "MatMul", "Max", "Sum"};
    data_random random = {seed};
    writer graph = {0};
    char inputs[64], output[16];
    add_input(&graph, "v0", 1, (int64_t[]){4, 4}, 2);
    *outputs = 0;
    for (int i = 1; i <= NODES; i++) {
        /* Recent values more often, so that some lifetimes end early. */
        const int a = i - 1 - (int)(data_next(&random) % (uint64_t)(i < 4 ? i : 4));
        const int b = i - 1 - (int)(data_next(&random) % (uint64_t)(i < 9 ? i : 9));
        const bool is_unary = data_next(&random) % 2 == 0;
        (void)snprintf(output, sizeof(output), "v%d", i);
        const uint64_t op = data_next(&random);
        const char *name =
            is_unary ? unary[op % SP_COUNT_OF(unary)] : binary[op % SP_COUNT_OF(binary)];
        const bool is_sum = strcmp(name, "Sum") == 0; /* a + b + a: a is read again */
        (void)snprintf(inputs, sizeof(inputs),
                       is_unary ? "v%d"
                       : is_sum ? "v%d v%d v%d"
                                : "v%d v%d",
                       a, b, a);
        add_node(&graph, make_node(name, inputs, output));
        const bool is_picked = data_next(&random) % 8 == 0 || i == NODES;
        if (!shows_all && !is_picked) continue;
        add_output(&graph, output);
        ++*outputs;
    }
    return graph;
}

static void check_random_graph(uint64_t seed, const sp_array *x)
{
    uint32_t few, all;
    writer small = random_graph(seed, false, &few), large = random_graph(seed, true, &all);
    const sp_graph *lean = finish(&small, 14), *full = finish(&large, 14);
    const sp_plan_input wanted = floats(2, 4, 4);
    const sp_graph_plan *lean_plan = compile(lean, &wanted), *full_plan = compile(full, &wanted);
    sp_array lean_out[NODES] = {0}, full_out[NODES] = {0};
    REQUIRE_OK(data_run_plan(lean_plan, x, lean_out));
    REQUIRE_OK(data_run_plan(full_plan, x, full_out));
    for (uint32_t i = 0; i < few; i++) {
        const uint32_t at =
            sp__graph_name_find(full->output_names, full->output_count, lean->outputs[i].name);
        CHECK_EQ_MEM(lean_out[i].data, full_out[at].data, (size_t)lean_out[i].bytes);
    }
    for (uint32_t i = 0; i < NODES; i++) {
        sp__array_deinit(&lean_out[i]);
        sp__array_deinit(&full_out[i]);
    }
    sp__plan_destroy(lean_plan);
    sp__plan_destroy(full_plan);
    sp__graph_destroy(lean);
    sp__graph_destroy(full);
}

TEST(sharing_memory_never_changes_a_result)
{
    data_random random = {45};
    const sp_shape shape = {.rank = 2, .dims = {4, 4}};
    sp_array x = data_floats(&random, &shape);
    const uint64_t count = test_count(50000, 500);
    for (uint64_t seed = 1; seed <= count; seed++) check_random_graph(seed, &x);
    sp__array_deinit(&x);
}

TEST_MAIN
