/* SPDX-License-Identifier: Apache-2.0 */
/* Normalisations by moments, as JAX writes them: what they do for each element is one step with the
 * bits of the steps, on every instruction set, and so are sums of squares. */
#include "plan/plan_fuse.h"

#include <math.h>

#include "support/fused_plans.h"
#include "support/model_data.h"
#include "support/onnx_writer.h"
#include "support/test.h"

enum { NODES = 14 };

static const char *const usual_nodes[NODES] = {"ReduceSum x axes > sum",
                                               "Mul x x > square",
                                               "ReduceSum square axes > squares",
                                               "Mul sum part > mean",
                                               "Mul squares part > m",
                                               "Mul mean mean > mm",
                                               "Sub m mm > v",
                                               "Max v zero > w",
                                               "Add w epsilon > u",
                                               "Reciprocal u > factor",
                                               "Sub x mean > d",
                                               "Mul factor scale > g",
                                               "Mul d g > p",
                                               "Add p bias > y"};

/* Node number `node` is `other`; then comes `more`; each may be NULL. */
typedef struct moments_case {
    sp_shape x; /* over the last dimension */
    size_t node;
    const char *other, *more, *output;
    bool has_specials;
} moments_case;

/* ---- graphs ---- */

static void add_list(writer *graph, const char *name, const sp_shape *shape, bool has_specials,
                     data_random *random)
{
    sp_array values = data_floats(random, shape);
    if (has_specials) ((float *)values.data)[0] = INFINITY;
    writer tensor = make_tensor(name, 1, shape->dims, shape->rank, values.data, values.bytes);
    write_message(graph, GRAPH_INITIALIZER_FIELD, &tensor);
    sp__array_deinit(&values);
}

static void add_number(writer *graph, const char *name, float value)
{
    writer tensor = make_tensor(name, 1, NULL, 0, &value, sizeof value);
    write_message(graph, GRAPH_INITIALIZER_FIELD, &tensor);
}

static const sp_graph *load(const moments_case *c, data_random *random)
{
    const int64_t last = -1, one = 1, extent = c->x.dims[c->x.rank - 1];
    const sp_shape list = SHAPE(extent);
    writer graph = {0};
    add_input(&graph, "x", 1, c->x.dims, (int)c->x.rank);
    add_input(&graph, "other", 1, c->x.dims, (int)c->x.rank);
    writer axes = make_tensor("axes", 7, &one, 1, &last, sizeof last);
    write_message(&graph, GRAPH_INITIALIZER_FIELD, &axes);
    add_number(&graph, "part", 1 / (float)extent);
    add_number(&graph, "zero", 0);
    add_number(&graph, "epsilon", 1e-6f);
    add_list(&graph, "scale", &list, c->has_specials, random);
    add_list(&graph, "bias", &list, c->has_specials, random);
    for (size_t i = 0; i < NODES; i++) {
        const char *text = i == c->node && c->other != NULL ? c->other : usual_nodes[i];
        add_node(&graph, make_text_node(text));
    }
    if (c->more != NULL) add_node(&graph, make_text_node(c->more));
    add_output(&graph, "y");
    if (c->output != NULL) add_output(&graph, c->output);
    return fused_plans_load(&graph);
}

static sp_array make_x(const moments_case *c, data_random *random)
{
    static const float specials[] = {INFINITY, -INFINITY, -0.0f, 1e-42f, 3e38f, NAN};
    sp_array x = data_floats(random, &c->x);
    const uint64_t count = x.bytes / sizeof(float);
    for (uint64_t i = 0; c->has_specials && i < count; i += 1 + data_next(random) % 100) {
        ((float *)x.data)[i] = specials[data_next(random) % SP_COUNT_OF(specials)];
    }
    return x;
}

/* ---- the same run, fused and not ---- */

/* Sums of squares are 1 of the reductions, or 0. */
static uint32_t count_squares(const sp_graph_plan *plan)
{
    uint32_t count = 0;
    for (uint32_t s = 0; s < plan->step_count; s++) {
        if (plan->steps[s].kernel != SP_KERNEL_ID_reduce_f32) continue;
        const sp_reduce_constants *k = plan->steps[s].constants;
        count += k->reduction == SP_REDUCE_SUM_SQUARE;
    }
    return count;
}

static void check_case(const moments_case *c, uint64_t seed, uint32_t rows, uint32_t squares)
{
    data_random random = {seed};
    const sp_graph *graph = load(c, &random);
    REQUIRE(graph != NULL);
    sp_array inputs[2] = {make_x(c, &random), make_x(c, &random)};
    fused_plans_check(graph, inputs, 2, SP_KERNEL_ID_row_affine_f32, rows);
    const sp_graph_plan *plan = fused_plans_compile(graph, inputs, 2, SP_CPU_PORTABLE, false);
    REQUIRE(plan != NULL);
    CHECK_EQ_INT(count_squares(plan), squares);
    sp__plan_destroy(plan);
    sp__graph_destroy(graph);
    data_free(inputs, 2);
}

/* ---- tests ---- */

TEST(a_normalisation_by_moments_has_the_bits_of_its_steps)
{
    const uint64_t count = test_count(10000, 400);
    data_random random = {1};
    for (uint64_t i = 0; i < count; i++) {
        const int64_t extent = 2 + (int64_t)(data_next(&random) % 300);
        const sp_shape shapes[] = {SHAPE(1, extent), SHAPE(2 + (int64_t)(i % 20), extent),
                                   SHAPE(2, 3, extent), SHAPE(extent)};
        const moments_case c = {.x = shapes[i % SP_COUNT_OF(shapes)],
                                .has_specials = data_next(&random) % 2 == 0};
        check_case(&c, i + 2, 1, 1);
    }
}

TEST(many_rows_are_several_tiles)
{
    const moments_case c = {.x = SHAPE(3000, 70)};
    check_case(&c, 3, 1, 1);
}

typedef struct other_node {
    size_t node;
    const char *text;
    uint32_t rows, squares;
} other_node;

/* Where nothing reads the factor, there is no sum of squares at all. */
TEST(operands_may_be_in_any_order_and_other_nodes_stay)
{
    static const other_node others[] = {{11, "Mul scale factor > g", 1, 1},
                                        {12, "Mul g d > p", 1, 1},
                                        {13, "Add bias p > y", 1, 1},
                                        {1, "Mul x other > square", 1, 0},
                                        {1, "Add x x > square", 1, 0},
                                        {1, "Mul x part > square", 1, 0},
                                        {2, "ReduceMean square > squares", 1, 0},
                                        {10, "Sub x other > d", 0, 1},
                                        {10, "Sub mean x > d", 0, 1},
                                        {10, "Sub x scale > d", 0, 1},
                                        {10, "Add x mean > d", 0, 1},
                                        {11, "Mul factor part > g", 0, 1},
                                        {11, "Add factor scale > g", 0, 1},
                                        {11, "Mul other scale > g", 0, 0},
                                        {12, "Mul d factor > p", 0, 1},
                                        {12, "Mul d d > p", 0, 0},
                                        {12, "Mul g g > p", 0, 1},
                                        {12, "Div d g > p", 0, 1},
                                        {13, "Add p mean > y", 0, 1},
                                        {13, "Add p other > y", 0, 1},
                                        {13, "Sub p bias > y", 0, 1},
                                        {13, "Add p p > y", 0, 1},
                                        {13, "Add p part > y", 0, 1}};
    for (size_t i = 0; i < SP_COUNT_OF(others); i++) {
        const moments_case c = {.x = SHAPE(7, 40), .node = others[i].node, .other = others[i].text};
        check_case(&c, 4 + i, others[i].rows, others[i].squares);
    }
}

TEST(values_that_others_read_keep_it_in_steps)
{
    static const struct {
        const char *name, *more;
        uint32_t rows, squares;
    } values[] = {{"d", "Exp d > more", 0, 1},          {"g", "Exp g > more", 0, 1},
                  {"p", "Exp p > more", 0, 1},          {"square", "Exp square > more", 1, 0},
                  {"mean", "Exp mean > more", 1, 1},    {"x", "Exp x > more", 1, 1},
                  {"factor", "Exp factor > more", 1, 1}};
    for (size_t i = 0; i < SP_COUNT_OF(values); i++) {
        moments_case c = {.x = SHAPE(7, 40), .more = values[i].more, .output = "more"};
        check_case(&c, 40 + i, values[i].rows, values[i].squares);
        c.more = NULL;
        c.output = values[i].name;
        if (values[i].name[0] != 'x') check_case(&c, 50 + i, values[i].rows, values[i].squares);
    }
}

TEST_MAIN
