/* SPDX-License-Identifier: Apache-2.0 */
/* Normalisations that a model writes in steps: which become one step, and that the bits are those
 * of the steps, on every instruction set. */
#include "plan/plan_fuse.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support/fused_plans.h"
#include "support/model_data.h"
#include "support/onnx_writer.h"
#include "support/test.h"

/* ---- graphs ---- */

typedef struct norm_graph {
    sp_shape x;
    int64_t axes[SP_MAX_RANK];
    uint32_t axis_count;
    bool is_rms; /* not centred */
    bool is_mul, is_swapped, has_scale, has_bias, keeps_no_dims;
    const char *inverse;    /* the node of the root's reciprocal, or NULL: Div by the root */
    const char *activation; /* or NULL */
    float epsilon;
    sp_shape scale, bias;
    float exponent;
    bool has_specials;
} norm_graph;

static void add_two(const norm_graph *g, writer *graph, const char *op, const char *a,
                    const char *b, const char *output)
{
    char inputs[64];
    const bool is_swapped = g->is_swapped && (strcmp(op, "Add") == 0 || strcmp(op, "Mul") == 0);
    if (b == NULL) (void)snprintf(inputs, sizeof inputs, "%s", a);
    else (void)snprintf(inputs, sizeof inputs, "%s %s", is_swapped ? b : a, is_swapped ? a : b);
    writer node = make_node(op, inputs, output);
    write_message(graph, GRAPH_NODE_FIELD, &node);
}

static void add_mean(const norm_graph *g, writer *graph, const char *x, const char *output)
{
    writer node = make_node("ReduceMean", x, output);
    add_attribute_ints(&node, "axes", g->axes, g->axis_count);
    if (g->keeps_no_dims) add_attribute_int(&node, "keepdims", 0);
    write_message(graph, GRAPH_NODE_FIELD, &node);
}

static void add_list(data_random *random, writer *graph, const char *name, const sp_shape *shape,
                     bool has_specials)
{
    sp_array array = data_floats(random, shape);
    if (has_specials && array.bytes >= 8) ((float *)array.data)[1] = INFINITY;
    writer tensor = make_tensor(name, 1, shape->dims, shape->rank, array.data, array.bytes);
    write_message(graph, GRAPH_INITIALIZER_FIELD, &tensor);
    sp__array_deinit(&array);
}

static void add_number(writer *graph, const char *name, float value)
{
    writer tensor = make_tensor(name, 1, NULL, 0, &value, sizeof value);
    write_message(graph, GRAPH_INITIALIZER_FIELD, &tensor);
}

/* The nodes up to the quotient. */
static void add_quotient(const norm_graph *g, writer *graph)
{
    const char *d = g->is_rms ? "x" : "d";
    if (!g->is_rms) {
        add_mean(g, graph, "x", "mean");
        add_two(g, graph, "Sub", "x", "mean", "d");
    }
    add_two(g, graph, g->is_mul ? "Mul" : "Pow", d, g->is_mul ? d : "two", "square");
    add_mean(g, graph, "square", "variance");
    add_two(g, graph, "Add", "variance", "epsilon", "sum");
    add_two(g, graph, "Sqrt", "sum", NULL, "root");
    if (g->inverse != NULL) add_node(graph, make_text_node(g->inverse));
    add_two(g, graph, g->inverse != NULL ? "Mul" : "Div", d,
            g->inverse != NULL ? "inverse" : "root", "quotient");
}

static const sp_graph *load(const norm_graph *g, data_random *random)
{
    writer graph = {0};
    add_input(&graph, "x", 1, g->x.dims, (int)g->x.rank);
    add_number(&graph, "one", 1);
    add_number(&graph, "two", g->exponent);
    add_number(&graph, "epsilon", g->epsilon);
    if (g->has_scale) add_list(random, &graph, "scale", &g->scale, g->has_specials);
    if (g->has_bias) add_list(random, &graph, "bias", &g->bias, g->has_specials);
    add_quotient(g, &graph);
    const char *last = "quotient";
    if (g->has_scale) {
        add_two(g, &graph, "Mul", last, "scale", "scaled");
        last = "scaled";
    }
    if (g->has_bias) {
        add_two(g, &graph, "Add", last, "bias", "shifted");
        last = "shifted";
    }
    if (g->activation != NULL) {
        add_two(g, &graph, g->activation, last, NULL, "activated");
        last = "activated";
    }
    add_output(&graph, last);
    return fused_plans_load(&graph);
}

/* ---- the same run, fused and not ---- */

static const sp_graph_plan *compile(const sp_graph *graph, const sp_shape *x, sp_cpu_isa isa,
                                    bool is_unfused)
{
    const sp_plan_input input = {.dtype = SP_F32, .shape = *x};
    const sp_plan_request request = {.kernels = sp__cpu_kernels(isa),
                                     .inputs = &input,
                                     .input_count = 1,
                                     .is_unfused = is_unfused};
    const sp_graph_plan *plan = NULL;
    CHECK_OK(sp__plan_compile(graph, &request, &plan));
    if (plan != NULL) CHECK_OK(sp__plan_check(plan));
    return plan;
}

/* What of a plan is one step: nothing, a normalisation that is not centred, one that is. */
typedef enum norm_form { STEPS, RMS, CENTRED } norm_form;

static norm_form find_norm(const sp_graph_plan *plan)
{
    for (uint32_t s = 0; s < plan->step_count; s++) {
        const sp_plan_step *step = &plan->steps[s];
        if (step->kernel != SP_KERNEL_ID_row_norm_f32) continue;
        return ((const sp_row_norm_constants *)step->constants)->is_centred ? CENTRED : RMS;
    }
    return STEPS;
}

/* Numbers of several sizes with rows of one number each; infinities and NaNs if asked for. */
static sp_array make_x(const norm_graph *g, data_random *random)
{
    static const float specials[] = {INFINITY, -INFINITY, -0.0f, 1e-42f, 3e38f, NAN, 1e-20f};
    sp_array x = data_floats(random, &g->x);
    float *values = x.data;
    const uint64_t count = x.bytes / sizeof(float);
    const float scale = ldexpf(1, (int)(data_next(random) % 60) - 30);
    for (uint64_t i = 0; i < count; i++) values[i] = values[i] * scale + scale;
    for (uint64_t i = 0; g->has_specials && i < count; i += 1 + data_next(random) % 200) {
        values[i] = specials[data_next(random) % SP_COUNT_OF(specials)];
    }
    const uint64_t row = (uint64_t)g->x.dims[g->x.rank - 1];
    for (uint64_t i = 0; data_next(random) % 4 == 0 && i < row; i++) values[i] = -0.0f;
    return x;
}

/* Is the normalisation one step in the fused plan, of the same bits? */
static void check_norm(const norm_graph *g, uint64_t seed, bool is_fused, const char *what)
{
    const norm_form form = !is_fused ? STEPS : g->is_rms ? RMS : CENTRED;
    data_random random = {seed};
    const sp_graph *graph = load(g, &random);
    REQUIRE(graph != NULL);
    sp_array x = make_x(g, &random), want[2] = {0};
    const sp_graph_plan *apart = compile(graph, &g->x, SP_CPU_PORTABLE, true);
    REQUIRE(apart != NULL);
    CHECK_EQ_INT(find_norm(apart), STEPS);
    REQUIRE_OK(data_run_plan(apart, &x, want));
    for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
        if (sp__cpu_kernels((sp_cpu_isa)isa) == NULL) continue;
        const sp_graph_plan *fused = compile(graph, &g->x, (sp_cpu_isa)isa, false);
        REQUIRE(fused != NULL);
        CHECK_EQ_INT(find_norm(fused), form);
        if (find_norm(fused) != form) test_note("%s, seed %llu", what, (unsigned long long)seed);
        fused_plans_check_outputs(fused, &x, want, what);
        sp__plan_destroy(fused);
    }
    for (uint32_t i = 0; i < apart->output_count; i++) sp__array_deinit(&want[i]);
    sp__plan_destroy(apart);
    sp__graph_destroy(graph);
    sp__array_deinit(&x);
}

/* Of the last dimension, as exporters write it. */
static norm_graph usual_norm(const sp_shape *x)
{
    const int64_t extent = x->dims[x->rank - 1];
    return (norm_graph){.x = *x,
                        .axes = {-1},
                        .axis_count = 1,
                        .has_scale = true,
                        .has_bias = true,
                        .epsilon = 1e-5f,
                        .exponent = 2,
                        .scale = SHAPE(extent),
                        .bias = SHAPE(extent)};
}

/* ---- tests ---- */

TEST(a_normalisation_in_steps_is_one_step_of_the_same_bits)
{
    static const float epsilons[] = {1e-5f, 1e-12f, 0, 1e-3f, INFINITY, -1, NAN};
    static const char *const inverses[] = {NULL, "Reciprocal root > inverse",
                                           "Div one root > inverse"};
    const uint64_t count = test_count(20000, 600);
    data_random random = {70};
    for (uint64_t i = 0; i < count; i++) {
        const int64_t sizes[] = {2, 3, 15, 16, 17, 31, 64, 100, 128, 256, 333, 1024, 4096, 4097};
        const int64_t extent = i % 3 == 0 ? sizes[data_next(&random) % SP_COUNT_OF(sizes)]
                                          : 2 + (int64_t)(data_next(&random) % 200);
        sp_shape x = SHAPE(1 + (int64_t)(data_next(&random) % 11), extent);
        if (data_next(&random) % 2 == 0) x = SHAPE(2, x.dims[0], extent);
        norm_graph g = usual_norm(&x);
        g.is_rms = data_next(&random) % 2 == 0;
        g.inverse = inverses[data_next(&random) % SP_COUNT_OF(inverses)];
        g.is_mul = data_next(&random) % 2 == 0;
        g.is_swapped = data_next(&random) % 2 == 0;
        g.has_scale = data_next(&random) % 4 != 0;
        g.has_bias = data_next(&random) % 4 != 0;
        g.has_specials = data_next(&random) % 2 == 0;
        if (data_next(&random) % 4 == 0) g.activation = "Relu";
        if (data_next(&random) % 4 == 0) g.scale = SHAPE(1, extent);
        if (data_next(&random) % 4 == 0) {
            g.epsilon = epsilons[data_next(&random) % SP_COUNT_OF(epsilons)];
        }
        check_norm(&g, i + 1, true, "a normalisation");
    }
}

/* Rows of more than one tile, and of several blocks. */
TEST(long_rows_and_many_rows_have_the_same_bits)
{
    const sp_shape shapes[] = {SHAPE(1000, 70), SHAPE(3, 5, 9000), SHAPE(1, 40000),
                               SHAPE(261, 256)};
    for (size_t i = 0; i < SP_COUNT_OF(shapes); i++) {
        norm_graph g = usual_norm(&shapes[i]);
        check_norm(&g, 900 + i, true, "a large normalisation");
        g.is_rms = true;
        check_norm(&g, 900 + i, true, "a large normalisation that is not centred");
        g.inverse = "Reciprocal root > inverse";
        check_norm(&g, 900 + i, true, "a large normalisation by reciprocal");
    }
}

TEST(several_last_dimensions_are_a_row)
{
    const sp_shape x = SHAPE(3, 4, 5, 6);
    norm_graph g = usual_norm(&x);
    g.axes[0] = 2, g.axes[1] = 3, g.axis_count = 2;
    g.scale = g.bias = SHAPE(5, 6);
    check_norm(&g, 71, true, "two dimensions");
    g.axes[0] = 1, g.axes[1] = 2; /* not the last one */
    g.scale = g.bias = SHAPE(6);
    check_norm(&g, 72, false, "dimensions in the middle");
    g.is_rms = true;
    check_norm(&g, 72, false, "dimensions in the middle, not centred");
}

/* What a row is not, and lists that are not one for each element of it. */
TEST(other_shapes_stay_steps)
{
    const sp_shape x = SHAPE(6, 6);
    norm_graph g = usual_norm(&x);
    g.axes[0] = 0;
    check_norm(&g, 73, false, "columns");
    g.is_rms = true;
    check_norm(&g, 73, false, "columns, not centred");
    g = usual_norm(&x);
    g.keeps_no_dims = true; /* one for each column then */
    check_norm(&g, 74, false, "means of rows for columns");
    const sp_shape lists[] = {SHAPE(6, 1), SHAPE(1), SHAPE(6, 6), SHAPE(2, 6, 6)};
    for (size_t i = 0; i < SP_COUNT_OF(lists); i++) {
        g = usual_norm(&x);
        g.bias = lists[i]; /* up to the product it is one step */
        check_norm(&g, 75 + i, true, "a bias");
        g = usual_norm(&x);
        g.scale = lists[i];
        check_norm(&g, 80 + i, true, "a scale");
    }
    g = usual_norm(&(const sp_shape){.rank = 2, .dims = {6, 1}});
    check_norm(&g, 85, false, "rows of one element");
}

TEST(another_power_stays_a_step)
{
    const sp_shape x = SHAPE(7, 40);
    norm_graph g = usual_norm(&x);
    g.exponent = 3;
    check_norm(&g, 86, false, "a cube");
    g.exponent = 2;
    check_norm(&g, 87, true, "a square");
}

/* ---- broken patterns ---- */

static const char *const usual_nodes[] = {"ReduceMean x > mean",      "Sub x mean > d",
                                          "Pow d two > square",       "ReduceMean square > spread",
                                          "Add spread epsilon > sum", "Sqrt sum > root",
                                          "Div d root > quotient",    "Mul quotient list > y",
                                          "Add y list > z",           NULL},
                         *const rms_nodes[] = {
                             "Mul x x > square",          "ReduceMean square > spread",
                             "Add spread epsilon > sum",  "Sqrt sum > root",
                             "Reciprocal root > inverse", "Mul x inverse > quotient",
                             "Mul quotient list > z",     NULL};

static void add_text_node(writer *graph, const char *text)
{
    writer node = make_text_node(text);
    if (strncmp(text, "Reduce", 6) == 0) add_attribute_ints(&node, "axes", (int64_t[]){-1}, 1);
    write_message(graph, GRAPH_NODE_FIELD, &node);
}

/* A number of a node that there is not. */
static const size_t no_node = SIZE_MAX;

/* The nodes but one, which is another or there are more; "x" and "other" are [7, 40]. */
static void check_broken(const char *const *nodes, size_t node, const char *other, const char *more,
                         const char *output, norm_form form)
{
    const sp_shape x = SHAPE(7, 40), list = SHAPE(40), column = SHAPE(7, 1);
    data_random random = {88};
    writer graph = {0};
    add_input(&graph, "x", 1, x.dims, 2);
    add_list(&random, &graph, "other", &x, false);
    add_list(&random, &graph, "list", &list, false);
    add_list(&random, &graph, "column", &column, false);
    add_number(&graph, "one", 1);
    add_number(&graph, "two", 2);
    add_number(&graph, "three", 3);
    add_number(&graph, "epsilon", 1e-5f);
    for (size_t i = 0; nodes[i] != NULL; i++) {
        add_text_node(&graph, i == node && other != NULL ? other : nodes[i]);
    }
    if (more != NULL) add_text_node(&graph, more);
    add_output(&graph, "z");
    if (output != NULL) add_output(&graph, output);
    writer model = make_model(&graph, 14);
    const sp_graph *loaded = NULL;
    REQUIRE_OK(sp__graph_load(model.bytes, model.len, &loaded));
    writer_free(&model);
    sp_array in = data_floats(&random, &x), want[2] = {0};
    const sp_graph_plan *apart = compile(loaded, &x, SP_CPU_PORTABLE, true),
                        *fused = compile(loaded, &x, SP_CPU_PORTABLE, false);
    REQUIRE(apart != NULL && fused != NULL);
    const char *what = more != NULL ? more : other != NULL ? other : "an output";
    CHECK_EQ_INT(find_norm(fused), form);
    if (find_norm(fused) != form) test_note("%s %s", what, output != NULL ? output : "");
    REQUIRE_OK(data_run_plan(apart, &in, want));
    fused_plans_check_outputs(fused, &in, want, what);
    for (uint32_t i = 0; i < apart->output_count; i++) sp__array_deinit(&want[i]);
    sp__array_deinit(&in);
    sp__plan_destroy(apart);
    sp__plan_destroy(fused);
    sp__graph_destroy(loaded);
}

typedef struct other_node {
    size_t node;
    const char *text;
    norm_form form;
} other_node;

static void check_others(const char *const *nodes, const other_node *others, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        check_broken(nodes, others[i].node, others[i].text, NULL, NULL, others[i].form);
    }
}

/* Without a mean of x, d is normalised as it is. */
TEST(other_nodes_in_the_pattern_keep_it_in_steps)
{
    static const other_node others[] = {
        {0, "ReduceMean x > mean", CENTRED},
        {0, "ReduceL1 x > mean", RMS},
        {0, "ReduceMax x > mean", RMS},
        {0, "ReduceMean other > mean", RMS},
        {1, "Add x mean > d", RMS},
        {1, "Sub mean x > d", RMS},
        {1, "Sub other mean > d", RMS},
        {1, "Sub x column > d", RMS},
        {2, "Pow d three > square", STEPS},
        {2, "Pow other two > square", STEPS},
        {2, "Mul d other > square", STEPS},
        {2, "Mul other d > square", STEPS},
        {2, "Mul d two > square", STEPS},
        {2, "Abs d > square", STEPS},
        {3, "ReduceL1 square > spread", STEPS},
        {3, "ReduceMean other > spread", STEPS},
        {4, "Sub spread epsilon > sum", STEPS},
        {4, "Mul spread epsilon > sum", STEPS},
        {4, "Add spread column > sum", STEPS},
        {4, "Add column epsilon > sum", STEPS},
        {4, "Add spread mean > sum", STEPS},
        {5, "Exp sum > root", STEPS},
        {5, "Sqrt spread > root", STEPS},
        {6, "Mul d root > quotient", STEPS},
        {6, "Div root d > quotient", STEPS},
        {6, "Div other root > quotient", STEPS},
        {6, "Div x root > quotient", STEPS},
        {6, "Div d column > quotient", STEPS},
        {6, "Div d sum > quotient", STEPS},
        {2, "Mul d d > square", CENTRED},
        {7, "Sub quotient list > y", CENTRED}, /* the rest is one step */
        {8, "Sub y list > z", CENTRED},
        {8, "Add y y > z", CENTRED}};
    check_others(usual_nodes, others, SP_COUNT_OF(others));
}

TEST(other_nodes_in_a_pattern_without_means_keep_it_in_steps)
{
    static const other_node others[] = {
        {0, "Mul x other > square", STEPS},     {0, "Mul other x > square", STEPS},
        {0, "Mul other other > square", STEPS}, {0, "Mul x two > square", STEPS},
        {0, "Pow x three > square", STEPS},     {0, "Pow other two > square", STEPS},
        {0, "Abs x > square", STEPS},           {1, "ReduceMax square > spread", STEPS},
        {1, "ReduceMean x > spread", STEPS},    {2, "Sub spread epsilon > sum", STEPS},
        {2, "Add spread column > sum", STEPS},  {2, "Add spread spread > sum", STEPS},
        {3, "Exp sum > root", STEPS},           {3, "Sqrt spread > root", STEPS},
        {4, "Neg root > inverse", STEPS},       {4, "Reciprocal sum > inverse", STEPS},
        {4, "Div two root > inverse", STEPS},   {4, "Div column root > inverse", STEPS},
        {4, "Div root one > inverse", STEPS},   {5, "Div x inverse > quotient", STEPS},
        {5, "Add x inverse > quotient", STEPS}, {5, "Mul other inverse > quotient", STEPS},
        {5, "Mul x root > quotient", STEPS},    {5, "Mul x column > quotient", STEPS},
        {5, "Mul x x > quotient", STEPS},       {5, "Div root x > quotient", STEPS},
        {0, "Mul x x > square", RMS},           {0, "Pow x two > square", RMS},
        {2, "Add epsilon spread > sum", RMS},   {4, "Div one root > inverse", RMS},
        {5, "Mul inverse x > quotient", RMS},   {5, "Div x root > quotient", RMS},
        {6, "Mul list quotient > z", RMS},      {6, "Add quotient list > z", RMS},
        {6, "Mul quotient column > z", RMS}};
    check_others(rms_nodes, others, SP_COUNT_OF(others));
}

typedef struct read_value {
    const char *name;
    norm_form form;
} read_value;

static void check_readers(const char *const *nodes, const read_value *values, size_t count)
{
    char more[64];
    for (size_t i = 0; i < count; i++) {
        check_broken(nodes, no_node, NULL, NULL, values[i].name, values[i].form);
        (void)snprintf(more, sizeof more, "Exp %s > more", values[i].name);
        check_broken(nodes, no_node, NULL, more, "more", values[i].form);
    }
    check_broken(nodes, no_node, NULL, "Exp x > more", "more", nodes == rms_nodes ? RMS : CENTRED);
}

TEST(values_that_others_read_keep_it_in_steps)
{
    static const read_value usual[] = {{"mean", RMS},         {"d", RMS},     {"square", STEPS},
                                       {"spread", STEPS},     {"sum", STEPS}, {"root", STEPS},
                                       {"quotient", CENTRED}, {"y", CENTRED}};
    static const read_value rms[] = {{"square", STEPS}, {"spread", STEPS},  {"sum", STEPS},
                                     {"root", STEPS},   {"inverse", STEPS}, {"quotient", RMS}};
    check_readers(usual_nodes, usual, SP_COUNT_OF(usual));
    check_readers(rms_nodes, rms, SP_COUNT_OF(rms));
}

static void check_names(const norm_graph *g, const char *node_name, const char *op_name)
{
    data_random random = {89};
    const sp_graph *graph = load(g, &random);
    const sp_graph_plan *plan = compile(graph, &g->x, SP_CPU_PORTABLE, false);
    REQUIRE(plan != NULL);
    REQUIRE_EQ_INT(plan->step_count, 1);
    CHECK_EQ_STR(plan->steps[0].node_name, node_name);
    CHECK_EQ_STR(plan->steps[0].op_name, op_name);
    CHECK_EQ_U64(plan->arena_bytes, 0);
    sp__plan_destroy(plan);
    sp__graph_destroy(graph);
}

TEST(the_step_has_the_names_of_its_nodes)
{
    const sp_shape x = SHAPE(8, 32);
    norm_graph g = usual_norm(&x);
    g.activation = "Tanh";
    check_names(&g, "mean", "ReduceMean+Sub+Pow+ReduceMean+Add+Sqrt+Div+Mul+Add+Tanh");
    g = usual_norm(&x);
    g.is_rms = g.is_mul = true;
    g.has_bias = false;
    g.inverse = "Reciprocal root > inverse";
    check_names(&g, "square", "Mul+ReduceMean+Add+Sqrt+Reciprocal+Mul+Mul");
}

TEST_MAIN
