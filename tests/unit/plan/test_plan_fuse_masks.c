/* SPDX-License-Identifier: Apache-2.0 */
/* Attention whose keys are scaled too, and whose scores are chosen by a condition: one step with
 * the bits of the steps, on every instruction set. Queries, keys and values are parts of one
 * tensor, or tensors of their own. */
#include <math.h>
#include <stdio.h>

#include "plan/plan_fuse.h"
#include "support/fused_plans.h"
#include "support/model_data.h"
#include "support/onnx_writer.h"
#include "support/test.h"

enum { ONNX_F32 = 1, ONNX_I64 = 7, ONNX_BOOL = 9, INPUTS = 6 };
enum { X, QUERY, KEY, VALUE, MASK, CONDITION };

typedef enum key_form {
    KEY_PLAIN,
    KEY_TURNED_SCALED, /* as PyTorch exports it */
    KEY_SCALED_TURNED,
    KEY_SCALED_BETWEEN, /* between two Transposes */
    KEY_FORMS
} key_form;

typedef enum choice_form { NO_CHOICE, FILLS_TRUE, FILLS_FALSE, CHOICE_FORMS } choice_form;

/* Which dimensions a mask or a condition has. */
typedef enum rows_form {
    OF_KEYS,
    OF_QUERIES,
    OF_IMAGES,
    OF_IMAGES_AND_QUERIES,
    OF_ALL,
    ROWS_FORMS,
    OF_COLUMN = ROWS_FORMS /* one for each query: stays */
} rows_form;

typedef struct mask_case {
    int64_t images, heads, queries, keys, depth;
    bool is_packed; /* queries, keys and values are parts of x */
    bool has_query_scale, has_score_scale, has_mask, is_mask_first;
    bool is_causal;  /* the condition is a constant */
    bool fills_many; /* not by one number */
    bool has_specials;
    key_form key;
    choice_form choice;
    rows_form mask, condition;
    float number, fill;
    const char *wanted; /* a value between that is an output, or NULL */
} mask_case;

/* ---- graphs ---- */

static sp_shape rows_shape(const mask_case *c, rows_form form)
{
    switch (form) {
    case OF_QUERIES:
        return SHAPE(c->queries, c->keys);
    case OF_IMAGES:
        return SHAPE(c->images, 1, 1, c->keys);
    case OF_IMAGES_AND_QUERIES:
        return SHAPE(c->images, 1, c->queries, c->keys);
    case OF_ALL:
        return SHAPE(c->images, c->heads, c->queries, c->keys);
    case OF_COLUMN:
        return SHAPE(c->queries, 1);
    default:
        return SHAPE(c->keys);
    }
}

static void make_shapes(const mask_case *c, sp_shape shapes[INPUTS])
{
    shapes[X] = SHAPE(c->images, c->keys, 3 * c->heads * c->depth);
    shapes[QUERY] = SHAPE(c->images, c->queries, c->heads, c->depth);
    shapes[KEY] = shapes[VALUE] = SHAPE(c->images, c->keys, c->heads, c->depth);
    shapes[MASK] = rows_shape(c, c->mask);
    shapes[CONDITION] = rows_shape(c, c->condition);
}

static void add_tensor(writer *graph, const char *name, int type, const int64_t *dims,
                       uint32_t rank, const void *values, size_t bytes)
{
    writer tensor = make_tensor(name, type, dims, rank, values, bytes);
    write_message(graph, GRAPH_INITIALIZER_FIELD, &tensor);
}

static void add_transpose(writer *graph, const char *from, const char *to, const int64_t order[4])
{
    writer node = make_node("Transpose", from, to);
    add_attribute_ints(&node, "perm", order, 4);
    add_node(graph, node);
}

/* "query", "key" and "value" of x. */
static void add_parts(writer *graph, const mask_case *c)
{
    const int64_t width = c->heads * c->depth, three = 3, four = 4;
    const int64_t sizes[3] = {width, width, width};
    const int64_t heads[4] = {c->images, c->keys, c->heads, c->depth};
    add_tensor(graph, "widths", ONNX_I64, &three, 1, sizes, sizeof sizes);
    add_tensor(graph, "heads", ONNX_I64, &four, 1, heads, sizeof heads);
    writer split = make_node("Split", "x widths", "xq xk xv");
    add_attribute_int(&split, "axis", 2);
    add_node(graph, split);
    add_node(graph, make_node("Reshape", "xq heads", "query"));
    add_node(graph, make_node("Reshape", "xk heads", "key"));
    add_node(graph, make_node("Reshape", "xv heads", "value"));
}

static void add_key(writer *graph, const mask_case *c)
{
    static const int64_t keys_last[] = {0, 2, 3, 1}, heads_first[] = {0, 2, 1, 3},
                         turned[] = {0, 1, 3, 2};
    switch (c->key) {
    case KEY_TURNED_SCALED:
        add_transpose(graph, "key", "kt", keys_last);
        add_node(graph, make_node("Mul", "kt number", "k"));
        break;
    case KEY_SCALED_TURNED:
        add_node(graph, make_node("Mul", "number key", "ks"));
        add_transpose(graph, "ks", "k", keys_last);
        break;
    case KEY_SCALED_BETWEEN:
        add_transpose(graph, "key", "kh", heads_first);
        add_node(graph, make_node("Div", "kh number", "ks"));
        add_transpose(graph, "ks", "k", turned);
        break;
    default:
        add_transpose(graph, "key", "k", keys_last);
        break;
    }
}

static const char *add_choice(writer *graph, const mask_case *c, const char *scores, const char *to)
{
    char operands[64];
    const char *fill = c->fills_many ? "fills" : "fill";
    if (c->choice == NO_CHOICE) return scores;
    (void)snprintf(operands, sizeof operands, "condition %s %s",
                   c->choice == FILLS_TRUE ? fill : scores,
                   c->choice == FILLS_TRUE ? scores : fill);
    add_node(graph, make_node("Where", operands, to));
    return to;
}

static const char *add_mask(writer *graph, const mask_case *c, const char *scores, const char *to)
{
    char operands[64];
    if (!c->has_mask) return scores;
    (void)snprintf(operands, sizeof operands, "%s mask", scores);
    add_node(graph, make_node("Add", operands, to));
    return to;
}

static const char *add_scores(writer *graph, const mask_case *c)
{
    const char *scores = "product";
    add_node(graph, make_node("MatMul", c->has_query_scale ? "qs k" : "q k", "product"));
    if (c->has_score_scale) add_node(graph, make_node("Div", "product number", "scaled"));
    if (c->has_score_scale) scores = "scaled";
    if (c->is_mask_first) {
        scores = add_mask(graph, c, scores, "summed");
        return add_choice(graph, c, scores, "chosen");
    }
    scores = add_choice(graph, c, scores, "chosen");
    return add_mask(graph, c, scores, "summed");
}

/* Key i is read by query i and the later ones. */
static void add_causal(writer *graph, const mask_case *c)
{
    static uint8_t values[1 << 16];
    const int64_t dims[2] = {c->queries, c->keys};
    for (int64_t i = 0; i < c->queries * c->keys; i++) {
        values[i] = (i % c->keys <= i / c->keys) == (c->choice == FILLS_FALSE);
    }
    add_tensor(graph, "condition", ONNX_BOOL, dims, 2, values, (size_t)(dims[0] * dims[1]));
}

static const sp_graph *load(const mask_case *c, const sp_shape shapes[INPUTS])
{
    static const char *const names[] = {"x", "query", "key", "value", "mask", "condition"};
    static const int64_t heads_first[] = {0, 2, 1, 3};
    const float fills[2] = {c->fill, 1};
    const int64_t one = 1, keys = c->keys;
    float list[256];
    writer graph = {0};
    for (int i = 0; i < INPUTS; i++) {
        char unused[16];
        const bool is_part = c->is_packed && i >= QUERY && i <= VALUE;
        const bool is_unread = is_part || (i == CONDITION && c->is_causal);
        (void)snprintf(unused, sizeof unused, "unread%d", i);
        add_input(&graph, is_unread ? unused : names[i], i == CONDITION ? ONNX_BOOL : ONNX_F32,
                  shapes[i].dims, (int)shapes[i].rank);
    }
    for (int i = 0; i < 256; i++) list[i] = c->fill;
    add_tensor(&graph, "number", ONNX_F32, &one, 0, &c->number, sizeof c->number);
    add_tensor(&graph, "fill", ONNX_F32, &one, 0, fills, sizeof *fills);
    add_tensor(&graph, "fills", ONNX_F32, &keys, 1, list, (size_t)keys * sizeof *list);
    if (c->is_causal) add_causal(&graph, c);
    if (c->is_packed) add_parts(&graph, c);
    add_transpose(&graph, "query", "q", heads_first);
    if (c->has_query_scale) add_node(&graph, make_node("Mul", "q number", "qs"));
    add_key(&graph, c);
    add_transpose(&graph, "value", "v", heads_first);
    writer softmax = make_node("Softmax", add_scores(&graph, c), "weights");
    add_attribute_int(&softmax, "axis", -1);
    add_node(&graph, softmax);
    add_node(&graph, make_node("MatMul", "weights v", "y"));
    add_output(&graph, "y");
    if (c->wanted != NULL) add_output(&graph, c->wanted);
    return fused_plans_load(&graph);
}

/* ---- the same run, fused and not ---- */

static void fill_input(const mask_case *c, data_random *random, sp_array *array, int which)
{
    static const float specials[] = {INFINITY, -INFINITY, NAN, -0.0f, 1e-42f, 3e38f};
    uint8_t *bytes = array->data;
    float *values = array->data;
    for (uint64_t i = 0; i < array->bytes && which == CONDITION; i++) {
        bytes[i] = (uint8_t)(data_next(random) % 3);
    }
    if (which == CONDITION) return;
    for (uint64_t i = 0; i < array->bytes / sizeof(float); i++) {
        values[i] *= 3;
        if (which == MASK && data_next(random) % 3 == 0) values[i] = -INFINITY;
        if (!c->has_specials || data_next(random) % 200 != 0) continue;
        values[i] = specials[data_next(random) % SP_COUNT_OF(specials)];
    }
}

static void check_case(const mask_case *c, uint64_t seed, uint32_t steps, int64_t copies)
{
    data_random random = {seed};
    sp_shape shapes[INPUTS];
    sp_array inputs[INPUTS];
    make_shapes(c, shapes);
    const sp_graph *graph = load(c, shapes);
    REQUIRE(graph != NULL);
    for (int i = 0; i < INPUTS; i++) {
        inputs[i] =
            i == CONDITION ? data_counted(SP_BOOL, shapes[i], 0) : data_floats(&random, &shapes[i]);
        fill_input(c, &random, &inputs[i], i);
    }
    fused_plans_check(graph, inputs, INPUTS, SP_KERNEL_ID_attention_f32, steps);
    const sp_graph_plan *plan = fused_plans_compile(graph, inputs, INPUTS, SP_CPU_PORTABLE, false);
    REQUIRE(plan != NULL);
    /* The step has taken in all others. */
    if (copies >= 0) CHECK_EQ_INT(plan->step_count, copies + 1);
    sp__plan_destroy(plan);
    sp__graph_destroy(graph);
    data_free(inputs, INPUTS);
}

/* ---- tests ---- */

static int64_t pick(data_random *random, int64_t first, int64_t last)
{
    return first + (int64_t)(data_next(random) % (uint64_t)(last - first + 1));
}

static bool one_in(data_random *random, int64_t n)
{
    return pick(random, 1, n) == 1;
}

static mask_case random_case(data_random *random)
{
    static const float numbers[] = {0.35355338f, 0.125f, -0.3f, 1e-20f, 1e30f};
    static const float fills[] = {-INFINITY, -3.4028235e38f, -1e9f, 0, NAN};
    mask_case c = {.images = pick(random, 1, 3),
                   .heads = pick(random, 2, 3),
                   .queries = pick(random, SP_ATTENTION_LEAST_ROWS, 80),
                   .keys = pick(random, 1, 140),
                   .depth = pick(random, 2, one_in(random, 4) ? 130 : 40),
                   .is_packed = one_in(random, 2),
                   .has_query_scale = one_in(random, 2),
                   .has_score_scale = one_in(random, 3),
                   .has_mask = one_in(random, 2),
                   .is_mask_first = one_in(random, 2),
                   .is_causal = one_in(random, 3),
                   .has_specials = one_in(random, 2),
                   .key = (key_form)pick(random, 0, KEY_FORMS - 1),
                   .choice = (choice_form)pick(random, 0, CHOICE_FORMS - 1),
                   .mask = (rows_form)pick(random, 0, ROWS_FORMS - 1),
                   .condition = (rows_form)pick(random, 0, ROWS_FORMS - 1),
                   .number = numbers[pick(random, 0, 4)],
                   .fill = fills[pick(random, 0, 4)]};
    if (c.is_packed) c.queries = c.keys = c.keys < c.queries ? c.queries : c.keys;
    return c;
}

TEST(attention_with_conditions_and_scaled_keys_is_one_step_of_the_same_bits)
{
    const uint64_t count = test_count(6000, 250);
    data_random random = {1};
    for (uint64_t i = 0; i < count; i++) {
        const mask_case c = random_case(&random);
        check_case(&c, i + 2, 1, -1);
    }
}

static const mask_case usual = {.images = 2,
                                .heads = 3,
                                .queries = 37,
                                .keys = 37,
                                .depth = 24,
                                .has_query_scale = true,
                                .has_score_scale = true,
                                .has_mask = true,
                                .key = KEY_TURNED_SCALED,
                                .choice = FILLS_TRUE,
                                .mask = OF_IMAGES,
                                .condition = OF_QUERIES,
                                .number = 0.4f,
                                .fill = -INFINITY};

TEST(nothing_else_is_left)
{
    mask_case c = usual;
    for (int i = 0; i < 8; i++) {
        c.key = i & 1 ? KEY_TURNED_SCALED : KEY_SCALED_TURNED;
        c.is_packed = (i & 2) != 0;
        c.is_causal = (i & 4) != 0;
        check_case(&c, 100 + (uint64_t)i, 1, 0);
    }
}

TEST(a_choice_of_many_numbers_or_by_query_alone_stays)
{
    mask_case c = usual;
    check_case(&c, 200, 1, 0);
    c.fills_many = true;
    check_case(&c, 201, 0, -1);
    c.fills_many = false;
    c.condition = OF_COLUMN;
    check_case(&c, 202, 0, -1);
}

TEST(values_that_others_read_stay)
{
    static const char *const between[] = {"product", "scaled", "chosen", "summed", "weights"};
    for (size_t i = 0; i < SP_COUNT_OF(between); i++) {
        mask_case c = usual;
        c.wanted = between[i];
        check_case(&c, 300 + i, 0, -1);
    }
    mask_case c = usual; /* the scaled keys: the step reads them */
    c.wanted = "k";
    check_case(&c, 310, 1, -1);
    c.wanted = "kt"; /* the copy stays, and the step reads past it */
    check_case(&c, 311, 1, 1);
}

TEST(many_queries_are_several_tiles)
{
    mask_case c = usual;
    c.images = 1;
    c.queries = 1500;
    c.keys = 40;
    check_case(&c, 400, 1, 0);
}

TEST_MAIN
