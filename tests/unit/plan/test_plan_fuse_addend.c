/* SPDX-License-Identifier: Apache-2.0 */
/* Sums that only a normalisation reads, which it adds itself: which ones, and that the bits are
 * those of two steps, on every instruction set. */
#include "plan/plan_fuse.h"

#include <math.h>
#include <string.h>

#include "support/fused_plans.h"
#include "support/model_data.h"
#include "support/onnx_writer.h"
#include "support/test.h"

/* Norm(x + w), or Norm(x + transposed Neg(w)): copies of inputs are read as they are. */
typedef struct sum_graph {
    sp_shape x, w;
    int64_t order[SP_MAX_RANK]; /* of the axes of w; none: as it is */
    bool is_transposed, is_swapped, has_specials;
    const char *between; /* an op on the sum, or NULL */
    bool is_output;      /* the sum too */
    bool is_twice;       /* x + x */
} sum_graph;

static void add_text_node(writer *graph, const char *text)
{
    writer node = make_text_node(text);
    if (strncmp(text, "Reduce", 6) == 0) add_attribute_ints(&node, "axes", (int64_t[]){-1}, 1);
    write_message(graph, GRAPH_NODE_FIELD, &node);
}

static void add_numbers(writer *graph)
{
    const float two = 2, epsilon = 1e-5f;
    writer power = make_tensor("two", 1, NULL, 0, &two, sizeof two);
    writer small = make_tensor("epsilon", 1, NULL, 0, &epsilon, sizeof epsilon);
    write_message(graph, GRAPH_INITIALIZER_FIELD, &power);
    write_message(graph, GRAPH_INITIALIZER_FIELD, &small);
}

static void add_sum(const sum_graph *g, writer *graph)
{
    if (g->is_transposed) {
        add_text_node(graph, "Neg w > negative");
        writer node = make_text_node("Transpose negative > t");
        add_attribute_ints(&node, "perm", g->order, g->w.rank);
        write_message(graph, GRAPH_NODE_FIELD, &node);
    }
    const char *sum = g->is_transposed ? "Add x t > sum" : "Add x w > sum";
    if (g->is_swapped) sum = g->is_transposed ? "Add t x > sum" : "Add w x > sum";
    add_text_node(graph, g->is_twice ? "Add x x > sum" : sum);
    add_text_node(graph, g->between != NULL ? g->between : "Identity sum > s");
}

static const sp_graph *load(const sum_graph *g)
{
    static const char *const norm[] = {"ReduceMean s > mean",
                                       "Sub s mean > d",
                                       "Pow d two > square",
                                       "ReduceMean square > spread",
                                       "Add spread epsilon > all",
                                       "Sqrt all > root",
                                       "Div d root > y"};
    writer graph = {0};
    add_input(&graph, "x", 1, g->x.dims, (int)g->x.rank);
    add_input(&graph, "w", 1, g->w.dims, (int)g->w.rank);
    add_numbers(&graph);
    add_sum(g, &graph);
    for (size_t i = 0; i < SP_COUNT_OF(norm); i++) add_text_node(&graph, norm[i]);
    add_output(&graph, "y");
    if (g->is_output) add_output(&graph, "sum");
    return fused_plans_load(&graph);
}

static void spoil(sp_array *array, data_random *random)
{
    static const float specials[] = {INFINITY, -INFINITY, -0.0f, 1e-42f, NAN};
    const uint64_t count = array->bytes / sizeof(float);
    for (uint64_t i = 0; i < count; i += 1 + data_next(random) % 50) {
        ((float *)array->data)[i] = specials[data_next(random) % SP_COUNT_OF(specials)];
    }
}

/* `sums` and `copies` are the steps that are left of them. */
static void check_sum(const sum_graph *g, uint64_t seed, uint32_t sums, uint32_t copies)
{
    data_random random = {seed};
    const sp_graph *graph = load(g);
    REQUIRE(graph != NULL);
    sp_array inputs[2] = {data_floats(&random, &g->x), data_floats(&random, &g->w)};
    for (int i = 0; i < 2 && g->has_specials; i++) spoil(&inputs[i], &random);
    fused_plans_check(graph, inputs, 2, SP_KERNEL_ID_row_norm_f32, 1);
    const sp_graph_plan *plans[] = {
        fused_plans_compile(graph, inputs, 2, SP_CPU_PORTABLE, false),
        fused_plans_compile_for_others(graph, inputs, 2),
    };
    for (int i = 0; i < 2; i++) {
        REQUIRE(plans[i] != NULL);
        CHECK_EQ_INT(fused_plans_steps(plans[i], SP_KERNEL_ID_add_f32), sums);
        if (sums == 0) CHECK_EQ_INT(fused_plans_steps(plans[i], SP_KERNEL_ID_copy_strided), copies);
        sp__plan_destroy(plans[i]);
    }
    for (int i = 0; i < 2; i++) sp__array_deinit(&inputs[i]);
    sp__graph_destroy(graph);
}

TEST(a_norm_adds_what_is_only_for_it)
{
    const sum_graph g = {.x = SHAPE(3, 5, 40), .w = SHAPE(3, 5, 40)};
    check_sum(&g, 1, 0, 0);
    const sum_graph one = {.x = SHAPE(1, 40), .w = SHAPE(1, 40)};
    check_sum(&one, 2, 0, 0);
}

TEST(an_operand_that_is_transposed_is_read_where_it_lies)
{
    sum_graph g = {
        .x = SHAPE(5, 3, 40), .w = SHAPE(3, 5, 40), .order = {1, 0, 2}, .is_transposed = true};
    check_sum(&g, 3, 0, 0);
    g.is_swapped = true;
    check_sum(&g, 4, 0, 0);
}

TEST(random_sums_have_the_bits_of_two_steps)
{
    data_random random = {5};
    for (uint64_t i = 0; i < test_count(2000, 60); i++) {
        const int64_t a = 1 + (int64_t)(data_next(&random) % 9);
        const int64_t b = 1 + (int64_t)(data_next(&random) % 9);
        const int64_t extent = 2 + (int64_t)(data_next(&random) % (i % 9 == 0 ? 5000 : 90));
        sum_graph g = {.x = SHAPE(a, b, extent),
                       .w = SHAPE(a, b, extent),
                       .order = {1, 0, 2},
                       .is_transposed = data_next(&random) % 2 == 0,
                       .is_swapped = data_next(&random) % 2 == 0,
                       .has_specials = data_next(&random) % 2 == 0};
        if (g.is_transposed) g.w = SHAPE(b, a, extent);
        else if (data_next(&random) % 3 == 0) g.w = SHAPE(1, b, extent); /* one for all */
        else if (data_next(&random) % 3 == 0) g.w = SHAPE(extent);
        check_sum(&g, i, 0, 0);
    }
}

/* Not those of whole rows. */
TEST(other_operands_are_added_before)
{
    sum_graph g = {
        .x = SHAPE(4, 6, 30), .w = SHAPE(30, 4, 6), .order = {1, 2, 0}, .is_transposed = true};
    check_sum(&g, 6, 0, 1); /* the copy has rows */
    g = (sum_graph){.x = SHAPE(4, 6, 30), .w = SHAPE(6, 1)};
    check_sum(&g, 7, 1, 0);
    g = (sum_graph){.x = SHAPE(4, 6, 30), .w = SHAPE(1)};
    check_sum(&g, 8, 1, 0);
}

TEST(a_sum_that_others_read_stays_a_step)
{
    sum_graph g = {.x = SHAPE(7, 40), .w = SHAPE(7, 40), .is_output = true};
    check_sum(&g, 9, 1, 0);
    g = (sum_graph){.x = SHAPE(7, 40), .w = SHAPE(7, 40), .between = "Relu sum > s"};
    check_sum(&g, 10, 1, 0);
}

TEST(a_value_is_added_to_itself)
{
    const sum_graph g = {.x = SHAPE(7, 40), .w = SHAPE(7, 40), .is_twice = true};
    check_sum(&g, 11, 0, 0);
}

TEST_MAIN
