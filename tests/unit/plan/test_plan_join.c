/* SPDX-License-Identifier: Apache-2.0 */
/* Concat and Split in place: random graphs of them, of sums and of functions have the bits of plans
 * that copy, and the cases that the pass is for copy nothing. */
#include <stdio.h>
#include <string.h>

#include "plan/plan.h"
#include "support/model_data.h"
#include "support/onnx_writer.h"
#include "support/test.h"

enum { VALUES = 24, NODES = 14, OPERANDS = 4 };

/* A graph of values [rows, columns]; all have the same columns. */
typedef struct row_graph {
    data_random random;
    writer graph;
    int64_t rows[VALUES];
    int count;
} row_graph;

static int64_t pick(row_graph *g, int64_t low, int64_t high)
{
    return low + (int64_t)(data_next(&g->random) % (uint64_t)(high - low + 1));
}

static int add_value(row_graph *g, int64_t rows)
{
    g->rows[g->count] = rows;
    return g->count++;
}

/* ---- nodes ---- */

static void add_unary(row_graph *g, const char *op, int x)
{
    char from[16], to[16];
    (void)snprintf(from, sizeof from, "v%d", x);
    (void)snprintf(to, sizeof to, "v%d", add_value(g, g->rows[x]));
    add_node(&g->graph, make_node(op, from, to));
}

/* Of x, and of y with as many rows or one. */
static int add_sum_of(row_graph *g, int x, int y)
{
    char from[32], to[16];
    const int sum = add_value(g, g->rows[x]);
    (void)snprintf(from, sizeof from, "v%d v%d", x, y);
    (void)snprintf(to, sizeof to, "v%d", sum);
    add_node(&g->graph, make_node("Add", from, to));
    return sum;
}

static void add_sum(row_graph *g, int x)
{
    int y = x;
    for (int i = 0; i < g->count; i++) {
        const bool fits = g->rows[i] == g->rows[x] || g->rows[i] == 1;
        if (fits && pick(g, 1, 3) == 1) y = i;
    }
    (void)add_sum_of(g, x, y);
}

static int add_concat(row_graph *g, const int *parts, int count)
{
    char from[OPERANDS * 8] = "", to[16];
    int64_t rows = 0;
    for (int i = 0; i < count; i++) {
        const size_t length = strlen(from);
        (void)snprintf(from + length, sizeof from - length, "%sv%d", i > 0 ? " " : "", parts[i]);
        rows += g->rows[parts[i]];
    }
    const int y = add_value(g, rows);
    (void)snprintf(to, sizeof to, "v%d", y);
    writer node = make_node("Concat", from, to);
    add_attribute_int(&node, "axis", 0);
    add_node(&g->graph, node);
    return y;
}

static void add_split(row_graph *g, int x, int64_t first)
{
    char name[16], from[32], to[32];
    const int64_t two = 2, sizes[2] = {first, g->rows[x] - first};
    (void)snprintf(name, sizeof name, "s%d", g->count);
    writer tensor = make_tensor(name, 7, &two, 1, sizes, sizeof sizes);
    write_message(&g->graph, GRAPH_INITIALIZER_FIELD, &tensor);
    (void)snprintf(from, sizeof from, "v%d %s", x, name);
    (void)snprintf(to, sizeof to, "v%d v%d", g->count, g->count + 1);
    (void)add_value(g, sizes[0]);
    (void)add_value(g, sizes[1]);
    writer node = make_node("Split", from, to);
    add_attribute_int(&node, "axis", 0);
    add_node(&g->graph, node);
}

static void add_random_node(row_graph *g)
{
    const int x = (int)pick(g, 0, g->count - 1);
    const int64_t kind = pick(g, 0, 9);
    if (kind < 5) {
        int parts[OPERANDS];
        const int count = (int)pick(g, 1, OPERANDS);
        for (int i = 0; i < count; i++) parts[i] = (int)pick(g, 0, g->count - 1);
        (void)add_concat(g, parts, count);
    } else if (kind < 7 && g->count + 2 <= VALUES) {
        add_split(g, x, pick(g, 0, g->rows[x]));
    } else if (kind == 7) {
        add_sum(g, x);
    } else {
        add_unary(g, kind == 8 ? "Tanh" : "Neg", x);
    }
}

/* ---- graphs ---- */

static void begin(row_graph *g, uint64_t seed, int64_t rows, int64_t columns)
{
    *g = (row_graph){.random = {seed}};
    const int64_t dims[2] = {rows, columns};
    add_input(&g->graph, "x", 1, dims, 2);
    add_node(&g->graph, make_node("Identity", "x", "v0"));
    (void)add_value(g, rows);
}

static void add_result(row_graph *g, int value)
{
    char name[16];
    (void)snprintf(name, sizeof name, "v%d", value);
    add_output(&g->graph, name);
}

static const sp_graph *finish(row_graph *g)
{
    writer model = make_model(&g->graph, 14);
    const sp_graph *graph = NULL;
    CHECK_OK(sp__graph_load(model.bytes, model.len, &graph));
    writer_free(&model);
    return graph;
}

/* Rows of 64 bytes, whose parts can be in place, more often than not. */
static const sp_graph *make_random(uint64_t seed, sp_shape *x)
{
    row_graph g;
    data_random random = {seed};
    const int64_t columns = data_next(&random) % 4 == 0 ? 5 : 16;
    *x = SHAPE((int64_t)(data_next(&random) % 4), columns);
    begin(&g, seed, x->dims[0], columns);
    add_unary(&g, "Exp", 0);
    const int nodes = (int)pick(&g, 1, NODES);
    for (int i = 0; i < nodes && g.count < VALUES; i++) add_random_node(&g);
    for (int i = 1; i < g.count; i++) {
        if (i == g.count - 1 || pick(&g, 1, 8) == 1) add_result(&g, i);
    }
    return finish(&g);
}

/* ---- plans ---- */

static const sp_graph_plan *compile(const sp_graph *graph, const sp_shape *x, bool is_joined)
{
    const sp_plan_input input = {.dtype = SP_F32, .shape = *x};
    const sp_plan_request request = {
        .inputs = &input, .input_count = 1, .is_unfused = !is_joined, .is_strided = is_joined};
    const sp_graph_plan *plan;
    CHECK_OK(sp__plan_compile(graph, &request, &plan));
    CHECK_OK(sp__plan_check(plan));
    return plan;
}

/* The bytes that its steps of Concat and Split copy. */
static uint64_t copied_bytes(const sp_graph_plan *plan)
{
    uint64_t bytes = 0;
    for (uint32_t s = 0; s < plan->step_count; s++) {
        const sp_plan_step *step = &plan->steps[s];
        const sp_concat_constants *k = step->constants;
        if (step->kernel != SP_KERNEL_ID_concat && step->kernel != SP_KERNEL_ID_split) continue;
        for (uint32_t i = 0; i < k->parts; i++) bytes += (uint64_t)(k->outer * k->part_bytes[i]);
    }
    return bytes;
}

/* Both plans of a graph have the same bits. *saved: the bytes that one copies more. */
static bool check_graph(const sp_graph *graph, const sp_shape *shape, uint64_t seed,
                        uint64_t *copied, uint64_t *saved)
{
    const sp_graph_plan *apart = compile(graph, shape, false),
                        *joined = compile(graph, shape, true);
    data_random random = {seed};
    sp_array x = data_floats(&random, shape), want[VALUES], got[VALUES];
    bool is_same = true;
    CHECK_OK(data_run_plan(apart, &x, want));
    CHECK_OK(data_run_plan(joined, &x, got));
    for (uint32_t i = 0; i < apart->output_count; i++) {
        is_same = is_same && got[i].bytes == want[i].bytes &&
                  memcmp(got[i].data, want[i].data, (size_t)want[i].bytes) == 0;
    }
    CHECK(is_same);
    *copied = copied_bytes(joined);
    *saved = copied_bytes(apart) - *copied;
    data_free(want, apart->output_count);
    data_free(got, joined->output_count);
    data_free(&x, 1);
    sp__plan_destroy(apart);
    sp__plan_destroy(joined);
    return is_same;
}

TEST(random_graphs_have_the_bits_of_plans_that_copy)
{
    const uint64_t count = test_count(100000, 10000);
    uint64_t copied, saved, all = 0;
    for (uint64_t seed = 1; seed <= count; seed++) {
        sp_shape x;
        const sp_graph *graph = make_random(seed, &x);
        const bool is_right = check_graph(graph, &x, seed, &copied, &saved);
        sp__graph_destroy(graph);
        all += saved;
        if (is_right) continue;
        test_note("graph %llu", (unsigned long long)seed);
        return;
    }
    CHECK(all / count >= 64); /* a row of each graph */
}

/* ---- what is in place ---- */

/* Checks the bits, and the bytes that are copied and that are not. */
static void check_copies(row_graph *g, int64_t rows, uint64_t copied, uint64_t saved)
{
    const sp_shape x = SHAPE(rows, 16);
    const sp_graph *graph = finish(g);
    uint64_t is_copied, is_saved;
    CHECK(check_graph(graph, &x, 1, &is_copied, &is_saved));
    CHECK_EQ_U64(is_copied, copied);
    CHECK_EQ_U64(is_saved, saved);
    sp__graph_destroy(graph);
}

enum { ROW = 64 };

TEST(results_are_computed_where_they_are_joined)
{
    row_graph g;
    begin(&g, 1, 3, 16);
    add_unary(&g, "Exp", 0);
    add_unary(&g, "Neg", 0);
    add_unary(&g, "Tanh", add_concat(&g, (int[]){1, 2}, 2));
    add_result(&g, 4);
    check_copies(&g, 3, 0, 6 * ROW);
}

TEST(the_input_of_a_model_is_copied_beside_results)
{
    row_graph g;
    begin(&g, 1, 3, 16);
    add_unary(&g, "Exp", 0);
    add_unary(&g, "Tanh", add_concat(&g, (int[]){0, 1, 1}, 3));
    add_result(&g, 3);
    check_copies(&g, 3, 6 * ROW, 3 * ROW);
}

TEST(parts_of_a_split_stay_where_they_are)
{
    row_graph g;
    begin(&g, 1, 3, 16);
    add_unary(&g, "Exp", 0);
    add_split(&g, 1, 1);
    add_unary(&g, "Neg", 2);
    add_unary(&g, "Tanh", 3);
    add_result(&g, 4);
    add_result(&g, 5);
    check_copies(&g, 3, 0, 3 * ROW);
}

/* The sum of the whole and a row of it could be where the whole was, but for the row, which is read
 * for each row of the sum. */
TEST(a_whole_is_not_overwritten_while_a_part_is_read)
{
    for (int part = 0; part < 2; part++) {
        row_graph g;
        begin(&g, 1, 1, 16);
        add_unary(&g, "Exp", 0);
        add_unary(&g, "Neg", 0);
        const int whole = add_concat(&g, (int[]){1, 2}, 2);
        add_unary(&g, "Abs", add_sum_of(&g, whole, 1 + part));
        add_result(&g, g.count - 1);
        check_copies(&g, 1, 0, 2 * ROW);
    }
}

/* Each layer of a dense block reads what all layers before it have computed. */
static int add_dense_layer(row_graph *g, int before)
{
    add_split(g, before, 1);
    add_unary(g, "Exp", g->count - 2);
    return g->count - 1;
}

TEST(a_dense_block_computes_into_its_result)
{
    row_graph g;
    begin(&g, 1, 3, 16);
    add_unary(&g, "Exp", 0);
    int block = 1;
    for (int i = 0; i < 3; i++)
        block = add_concat(&g, (int[]){block, add_dense_layer(&g, block)}, 2);
    add_unary(&g, "Neg", block);
    add_result(&g, g.count - 1);
    check_copies(&g, 3, 0, (3 + 4 + 4 + 5 + 5 + 6) * ROW);
}

TEST(joins_of_more_and_more_values_are_parts_of_the_last_one)
{
    row_graph g;
    begin(&g, 1, 2, 16);
    for (int i = 0; i < 3; i++) add_unary(&g, i == 1 ? "Neg" : "Exp", i);
    const int two = add_concat(&g, (int[]){1, 2}, 2), three = add_concat(&g, (int[]){1, 2, 3}, 3);
    add_unary(&g, "Tanh", two);
    add_unary(&g, "Tanh", three);
    add_result(&g, g.count - 2);
    add_result(&g, g.count - 1);
    check_copies(&g, 2, 0, 10 * ROW);
}

TEST(a_join_that_would_make_the_arena_larger_copies)
{
    row_graph g;
    begin(&g, 1, 16, 16);
    add_split(&g, 0, 1); /* 1, and 2 */
    add_unary(&g, "Neg", 1);
    const int early = g.count - 1;
    add_unary(&g, "Exp", 0);
    add_split(&g, g.count - 1, 1);
    const int rest = g.count - 1;
    add_unary(&g, "Neg", g.count - 2);
    const int late = g.count - 1;
    add_unary(&g, "Tanh", add_concat(&g, (int[]){early, late}, 2));
    add_result(&g, 2);
    add_result(&g, rest);
    add_result(&g, g.count - 1);
    check_copies(&g, 16, (16 + 16 + 2) * ROW, 0);
}

TEST_MAIN
