/* SPDX-License-Identifier: Apache-2.0 */
/* Attention that a model writes as two products and a softmax: when it becomes one step, and that
 * the bits are those of the steps, on every instruction set. */
#include "plan/plan_fuse.h"

#include <math.h>
#include <stdio.h>

#include "support/fused_plans.h"
#include "support/model_data.h"
#include "support/onnx_writer.h"
#include "support/test.h"

enum { ONNX_F32 = 1, ONNX_I64 = 7, INPUTS = 4 };

/* The number that scales, if there is one. */
typedef enum scale_form { NO_SCALE, MULTIPLIES, NUMBER_TIMES, DIVIDES, SCALE_FORMS } scale_form;

/* Which dimensions a mask has: a row of keys, one for each query, image or head. */
typedef enum mask_form {
    NO_MASK,
    MASK_OF_KEYS,
    MASK_OF_QUERIES,
    MASK_OF_IMAGES,
    MASK_OF_IMAGES_AND_QUERIES,
    MASK_OF_HEADS,
    MASK_OF_ALL,
    MASK_FORMS
} mask_form;

/* What differs from the pattern. */
typedef enum difference {
    NO_DIFFERENCE,
    SCALE_IS_A_VECTOR, /* not one number */
    SCALE_IS_INVERTED, /* a number divided by the scores */
    LOG_SOFTMAX,
    SOFTMAX_OF_QUERIES, /* over another axis */
    MASK_IS_SUBTRACTED,
    MASK_OF_COLUMN, /* one number for each query */
    SCORES_IN_RELU,
    WEIGHTS_IN_RELU,
    DIFFERENCES
} difference;

/* Inputs: query [images, queries, heads, depth], key [images, keys, heads, depth], value [images,
 * keys, heads, columns], mask. Their heads are moved in front by a Transpose. */
typedef struct attention_case {
    int64_t images, heads, queries, keys, depth, columns;
    scale_form query_scale, score_scale;
    mask_form mask;
    bool mask_first, is_merged; /* the sum's first operand; heads of the result are put together */
    bool has_specials;
    float number;
    float tiny; /* if not 0, what the mask adds to all keys but three, whose values are 0 */
    difference other;
    const char *wanted; /* a value between that is an output, or NULL */
    const char *read;   /* one that another node reads, or NULL */
} attention_case;

/* ---- graphs ---- */

static void add_floats(writer *graph, const char *name, const float *values, int64_t count)
{
    const int64_t dims[] = {count};
    writer tensor =
        make_tensor(name, ONNX_F32, dims, count > 1 ? 1 : 0, values, (size_t)count * sizeof(float));
    write_message(graph, GRAPH_INITIALIZER_FIELD, &tensor);
}

static void add_transpose(writer *graph, const char *from, const char *to, const int64_t order[4])
{
    writer node = make_node("Transpose", from, to);
    add_attribute_ints(&node, "perm", order, 4);
    add_node(graph, node);
}

static void add_scale(writer *graph, scale_form form, const char *from, const char *to,
                      const char *number)
{
    char operands[64];
    const bool is_first = form == NUMBER_TIMES;
    (void)snprintf(operands, sizeof operands, "%s %s", is_first ? number : from,
                   is_first ? from : number);
    static const char *const ops[] = {"Identity", "Mul", "Mul", "Div"};
    add_node(graph, make_node(ops[form], form == NO_SCALE ? from : operands, to));
}

static void add_scores(writer *graph, const attention_case *c)
{
    add_scale(graph, c->query_scale, "q", "scaled_q", "number");
    add_node(graph, make_node("MatMul", "scaled_q k", "product"));
    const char *number = c->other == SCALE_IS_A_VECTOR ? "numbers" : "number";
    if (c->other == SCALE_IS_INVERTED)
        add_node(graph, make_node("Div", "number product", "scaled"));
    else add_scale(graph, c->score_scale, "product", "scaled", number);
    const bool has_relu = c->other == SCORES_IN_RELU;
    add_node(graph, make_node(has_relu ? "Relu" : "Identity", "scaled", "unmasked"));
    const char *sum = c->other == MASK_IS_SUBTRACTED ? "Sub" : "Add";
    if (c->mask == NO_MASK) add_node(graph, make_node("Identity", "unmasked", "scores"));
    else
        add_node(graph,
                 make_node(sum, c->mask_first ? "mask unmasked" : "unmasked mask", "scores"));
}

static void add_weights(writer *graph, const attention_case *c)
{
    writer softmax =
        make_node(c->other == LOG_SOFTMAX ? "LogSoftmax" : "Softmax", "scores", "plain_weights");
    add_attribute_int(&softmax, "axis", c->other == SOFTMAX_OF_QUERIES ? 2 : -1);
    add_node(graph, softmax);
    const bool has_relu = c->other == WEIGHTS_IN_RELU;
    add_node(graph, make_node(has_relu ? "Relu" : "Identity", "plain_weights", "weights"));
}

static sp_shape mask_shape(const attention_case *c)
{
    if (c->other == MASK_OF_COLUMN) return SHAPE(c->queries, 1);
    switch (c->mask) {
    case MASK_OF_QUERIES:
        return SHAPE(c->queries, c->keys);
    case MASK_OF_IMAGES:
        return SHAPE(c->images, 1, 1, c->keys);
    case MASK_OF_IMAGES_AND_QUERIES:
        return SHAPE(c->images, 1, c->queries, c->keys);
    case MASK_OF_HEADS:
        return SHAPE(c->heads, c->queries, c->keys);
    case MASK_OF_ALL:
        return SHAPE(c->images, c->heads, c->queries, c->keys);
    default:
        return SHAPE(c->keys);
    }
}

static void make_shapes(const attention_case *c, sp_shape shapes[INPUTS])
{
    shapes[0] = SHAPE(c->images, c->queries, c->heads, c->depth);
    shapes[1] = SHAPE(c->images, c->keys, c->heads, c->depth);
    shapes[2] = SHAPE(c->images, c->keys, c->heads, c->columns);
    shapes[3] = mask_shape(c);
}

static const sp_graph *load(const attention_case *c)
{
    static const char *const names[INPUTS] = {"query", "key", "value", "mask"};
    static const int64_t heads_first[] = {0, 2, 1, 3}, keys_last[] = {0, 2, 3, 1};
    sp_shape shapes[INPUTS];
    writer graph = {0};
    float numbers[64];
    make_shapes(c, shapes);
    for (int i = 0; i < INPUTS; i++) {
        add_input(&graph, names[i], ONNX_F32, shapes[i].dims, (int)shapes[i].rank);
    }
    for (int i = 0; i < 64; i++) numbers[i] = c->number + (float)i;
    add_floats(&graph, "number", &c->number, 1);
    add_floats(&graph, "numbers", numbers, c->keys < 1 ? 1 : c->keys < 64 ? c->keys : 64);
    add_transpose(&graph, "query", "q", heads_first);
    add_transpose(&graph, "key", "k", keys_last);
    add_transpose(&graph, "value", "v", heads_first);
    add_scores(&graph, c);
    add_weights(&graph, c);
    add_node(&graph, make_node("MatMul", "weights v", "y"));
    if (c->is_merged) add_transpose(&graph, "y", "merged", heads_first);
    add_output(&graph, c->is_merged ? "merged" : "y");
    if (c->wanted != NULL) add_output(&graph, c->wanted);
    if (c->read != NULL) add_node(&graph, make_node("Neg", c->read, "other"));
    if (c->read != NULL) add_output(&graph, "other");
    return fused_plans_load(&graph);
}

/* ---- the same run, fused and not ---- */

static void add_specials(data_random *random, sp_array *array)
{
    static const float specials[] = {INFINITY, -INFINITY, NAN, -0.0f, 1e-42f, 3e38f};
    float *values = array->data;
    const uint64_t count = array->bytes / sizeof(float);
    for (uint64_t i = data_next(random) % 50; i < count; i += 20 + data_next(random) % 400) {
        values[i] = specials[data_next(random) % SP_COUNT_OF(specials)];
    }
}

/* A mask leaves keys out: by -inf, or by a large negative number. */
static void make_mask(data_random *random, sp_array *mask)
{
    float *values = mask->data;
    const float out = data_next(random) % 2 == 0 ? -INFINITY : -3.4e38f;
    for (uint64_t i = 0; i < mask->bytes / sizeof(float); i++) {
        if (data_next(random) % 3 == 0) values[i] = out;
    }
}

static void make_tiny(const attention_case *c, sp_array *value, sp_array *mask)
{
    float *v = value->data, *m = mask->data;
    const int64_t row = c->heads * c->columns;
    for (int64_t i = 0; i < c->keys; i++) m[i] = i < 3 ? 0 : c->tiny;
    for (int64_t i = 0; i < c->keys * row; i++) v[i] *= i < 3 * row ? 0 : 1e37f;
}

static void make_inputs(const attention_case *c, data_random *random, sp_array inputs[INPUTS])
{
    sp_shape shapes[INPUTS];
    make_shapes(c, shapes);
    for (int i = 0; i < INPUTS; i++) {
        inputs[i] = data_floats(random, &shapes[i]);
        float *values = inputs[i].data;
        for (uint64_t v = 0; v < inputs[i].bytes / sizeof(float); v++) values[v] *= 3;
    }
    make_mask(random, &inputs[3]);
    if (c->tiny != 0) make_tiny(c, &inputs[2], &inputs[3]);
    for (int i = 0; i < INPUTS && c->has_specials; i++) add_specials(random, &inputs[i]);
}

static void check_case(const attention_case *c, uint64_t seed, uint32_t steps)
{
    data_random random = {seed};
    sp_array inputs[INPUTS];
    const sp_graph *graph = load(c);
    REQUIRE(graph != NULL);
    make_inputs(c, &random, inputs);
    fused_plans_check(graph, inputs, INPUTS, SP_KERNEL_ID_attention_f32, steps);
    sp__graph_destroy(graph);
    data_free(inputs, INPUTS);
}

/* ---- tests ---- */

static int64_t pick(data_random *random, int64_t first, int64_t last)
{
    return first + (int64_t)(data_next(random) % (uint64_t)(last - first + 1));
}

/* Often near an end of a panel, of the lanes or of a segment. */
static int64_t pick_length(data_random *random, int64_t least, int64_t most)
{
    static const int64_t ends[] = {16, 32, 48, 64, 128, 256, 272, 512, 1024};
    const int64_t end = ends[data_next(random) % SP_COUNT_OF(ends)] + pick(random, -1, 1);
    const int64_t length = data_next(random) % 2 == 0 ? end : pick(random, least, 80);
    return length < least || length > most ? pick(random, least, most < 80 ? most : 80) : length;
}

static attention_case random_case(data_random *random, bool is_large)
{
    static const float numbers[] = {8, 5.656854f, 0.125f, -0.3f, 1e-20f, 1e30f, INFINITY};
    const int64_t most = is_large ? SP_ATTENTION_KEYS : 130;
    attention_case c = {.images = pick(random, 1, 3),
                        .heads = pick(random, 2, 3),
                        .queries = pick_length(random, SP_ATTENTION_LEAST_ROWS, most),
                        .keys = pick_length(random, 1, most),
                        .depth = pick_length(random, 2, is_large ? SP_ATTENTION_DEPTH : 65),
                        .columns = pick_length(random, 2, is_large ? 300 : 65),
                        .query_scale = (scale_form)pick(random, 0, SCALE_FORMS - 1),
                        .score_scale = (scale_form)pick(random, 0, SCALE_FORMS - 1),
                        .mask = (mask_form)pick(random, 0, MASK_FORMS - 1),
                        .mask_first = data_next(random) % 2 == 0,
                        .is_merged = data_next(random) % 2 == 0,
                        .has_specials = data_next(random) % 2 == 0};
    c.number = numbers[data_next(random) % SP_COUNT_OF(numbers)];
    return c;
}

TEST(attention_is_one_step_of_the_same_bits)
{
    const uint64_t count = test_count(4000, 120);
    data_random random = {1};
    for (uint64_t i = 0; i < count; i++) {
        const attention_case c = random_case(&random, i % 16 == 0);
        check_case(&c, i + 2, 1);
    }
}

/* Outputs are sums of tiny weights: the values of all others are zeros. */
TEST(tiny_weights_are_the_quotients)
{
    for (int i = 0; i < 24; i++) {
        const attention_case c = {.images = 1,
                                  .heads = 2,
                                  .queries = 64,
                                  .keys = 40 + 37 * i,
                                  .depth = 3,
                                  .columns = 16,
                                  .query_scale = MULTIPLIES,
                                  .mask = MASK_OF_KEYS,
                                  .number = 0.1f,
                                  .tiny = -40.0f - 3 * (float)i};
        check_case(&c, 1000 + (uint64_t)i, 1);
    }
}

static const attention_case usual = {.images = 2,
                                     .heads = 3,
                                     .queries = 37,
                                     .keys = 40,
                                     .depth = 24,
                                     .columns = 20,
                                     .query_scale = DIVIDES,
                                     .score_scale = MULTIPLIES,
                                     .mask = MASK_OF_IMAGES,
                                     .is_merged = true,
                                     .number = 5.656854f};

/* The step reads and writes past the copies, where products do not. */
TEST(plans_for_other_devices_have_no_copies_of_operands)
{
    data_random random = {3};
    sp_array inputs[INPUTS];
    const sp_graph *graph = load(&usual);
    REQUIRE(graph != NULL);
    make_inputs(&usual, &random, inputs);
    const sp_graph_plan *plan = fused_plans_compile_for_others(graph, inputs, INPUTS);
    REQUIRE(plan != NULL);
    CHECK_EQ_U64(plan->step_count, 1);
    CHECK_EQ_INT(plan->steps[0].kernel, SP_KERNEL_ID_attention_f32);
    sp__plan_destroy(plan);
    sp__graph_destroy(graph);
    data_free(inputs, INPUTS);
}

TEST(what_differs_from_the_pattern_stays)
{
    for (difference d = NO_DIFFERENCE; d < DIFFERENCES; d++) {
        attention_case c = usual;
        c.other = d;
        check_case(&c, 100 + (uint64_t)d, d == NO_DIFFERENCE ? 1 : 0);
    }
}

TEST(values_that_others_read_stay)
{
    static const char *const between[] = {"product", "scaled", "scores", "weights"};
    for (size_t i = 0; i < SP_COUNT_OF(between); i++) {
        attention_case c = usual;
        c.wanted = between[i];
        check_case(&c, 200 + i, 0);
        c.wanted = NULL;
        c.read = between[i];
        check_case(&c, 300 + i, 0);
    }
}

/* The step then reads the scaled queries. */
static void check_scaled_query(attention_case c)
{
    data_random random = {400};
    sp_array inputs[INPUTS];
    const sp_graph *graph = load(&c);
    REQUIRE(graph != NULL);
    make_inputs(&c, &random, inputs);
    fused_plans_check(graph, inputs, INPUTS, SP_KERNEL_ID_attention_f32, 1);
    const sp_graph_plan *plan = fused_plans_compile(graph, inputs, INPUTS, SP_CPU_PORTABLE, false);
    REQUIRE(plan != NULL);
    CHECK_EQ_INT(fused_plans_steps(plan, SP_KERNEL_ID_div_f32), 1);
    sp__plan_destroy(plan);
    sp__graph_destroy(graph);
    data_free(inputs, INPUTS);
}

TEST(a_scale_of_queries_that_others_read_stays_alone)
{
    attention_case c = usual;
    c.wanted = "scaled_q";
    check_scaled_query(c);
    c.wanted = NULL;
    c.read = "scaled_q";
    check_scaled_query(c);
}

TEST(sizes_beyond_the_limits_stay)
{
    attention_case c = usual;
    c.images = 1;
    c.keys = SP_ATTENTION_KEYS;
    check_case(&c, 500, 1);
    c.keys++;
    check_case(&c, 501, 0);
    c.keys = 40;
    c.depth = SP_ATTENTION_DEPTH;
    check_case(&c, 502, 1);
    c.depth++;
    check_case(&c, 503, 0);
    c.depth = 24;
    c.queries = SP_ATTENTION_LEAST_ROWS - 1;
    check_case(&c, 504, 0);
    c.queries = 0;
    check_case(&c, 505, 0);
    c.queries = 40;
    c.keys = 0;
    check_case(&c, 506, 0);
}

/* Only compiled: such results have half a gigabyte. */
TEST(more_columns_than_gpus_count_stay)
{
    attention_case c = usual;
    c.images = 1;
    c.queries = SP_ATTENTION_LEAST_ROWS;
    for (int64_t more = 0; more < 2; more++) {
        sp_array inputs[INPUTS] = {0};
        sp_shape shapes[INPUTS];
        c.columns = SP_ATTENTION_COLUMNS + more;
        make_shapes(&c, shapes);
        for (int i = 0; i < INPUTS; i++) {
            inputs[i] = (sp_array){.dtype = SP_F32, .shape = shapes[i]};
        }
        const sp_graph *graph = load(&c);
        REQUIRE(graph != NULL);
        const sp_graph_plan *plan = fused_plans_compile_for_others(graph, inputs, INPUTS);
        REQUIRE(plan != NULL);
        CHECK_EQ_INT(fused_plans_steps(plan, SP_KERNEL_ID_attention_f32), more == 0);
        sp__plan_destroy(plan);
        sp__graph_destroy(graph);
    }
}

TEST(one_head_is_one_step_unless_the_product_has_taken_the_mask_in)
{
    attention_case c = usual;
    c.images = c.heads = 1;
    c.score_scale = NO_SCALE;
    c.mask = NO_MASK;
    check_case(&c, 510, 1);
    c.mask = MASK_OF_QUERIES;
    check_case(&c, 511, 0);
    c.score_scale = DIVIDES;
    check_case(&c, 512, 1);
}

TEST(the_smallest_sizes_are_one_step)
{
    for (int64_t i = 0; i < 8; i++) {
        attention_case c = usual;
        c.keys = i & 1 ? 1 : 3;
        c.depth = i & 2 ? 1 : 3;
        c.columns = i & 4 ? 1 : 3;
        check_case(&c, 520 + (uint64_t)i, 1);
    }
}

TEST(many_queries_are_several_tiles)
{
    attention_case c = usual;
    c.queries = 3000;
    c.mask = MASK_OF_QUERIES;
    check_case(&c, 600, 1);
}

TEST(the_step_has_the_names_of_its_nodes)
{
    attention_case c = usual;
    data_random random = {700};
    sp_array inputs[INPUTS];
    const sp_graph *graph = load(&c);
    REQUIRE(graph != NULL);
    make_inputs(&c, &random, inputs);
    const sp_graph_plan *plan = fused_plans_compile(graph, inputs, INPUTS, SP_CPU_PORTABLE, false);
    REQUIRE(plan != NULL);
    REQUIRE_EQ_INT(plan->step_count, 1);
    CHECK_EQ_STR(plan->steps[0].op_name, "Div+MatMul+Mul+Add+Softmax+MatMul");
    CHECK_EQ_U64(plan->arena_bytes, 0);
    CHECK_EQ_U64(plan->steps[0].multiply_adds, 2 * 3 * 37 * 40 * (24 + 20));
    sp__plan_destroy(plan);
    sp__graph_destroy(graph);
    data_free(inputs, INPUTS);
}

/* ---- operands of many dimensions ---- */

/* An input whose transpose, of another shape, is an operand. */
typedef struct moved_input {
    const char *name, *moved, *operand;
    sp_shape shape, to; /* to: of `operand` */
    int64_t order[SP_MAX_RANK];
} moved_input;

static void add_moved(writer *graph, const moved_input *in)
{
    const int64_t dims[] = {in->to.rank};
    char name[32], operands[64];
    (void)snprintf(name, sizeof name, "shape_of_%s", in->operand);
    writer tensor =
        make_tensor(name, ONNX_I64, dims, 1, in->to.dims, in->to.rank * sizeof(int64_t));
    write_message(graph, GRAPH_INITIALIZER_FIELD, &tensor);
    add_input(graph, in->name, ONNX_F32, in->shape.dims, (int)in->shape.rank);
    writer node = make_node("Transpose", in->name, in->moved);
    add_attribute_ints(&node, "perm", in->order, in->shape.rank);
    add_node(graph, node);
    (void)snprintf(operands, sizeof operands, "%s %s", in->moved, name);
    add_node(graph, make_node("Reshape", operands, in->operand));
}

/* The transposes split the batch of the queries into more dimensions than a copy has. */
TEST(products_of_many_dimensions_stay)
{
    const moved_input in[3] = {
        {"query",
         "tq",
         "q",
         SHAPE(2, 8, 2, 2, 8, 2, 8, 2),
         SHAPE(2, 16, 16, 32, 1),
         {2, 6, 5, 1, 0, 4, 3, 7}},
        {"key", "tk", "k", SHAPE(4, 2, 4, 2, 2, 4), SHAPE(2, 16, 16, 1, 1), {5, 4, 3, 2, 1, 0}},
        {"value",
         "tv",
         "v",
         SHAPE(2, 2, 4, 2, 4, 4, 1, 16),
         SHAPE(2, 16, 16, 1, 16),
         {1, 4, 5, 2, 0, 3, 6, 7}},
    };
    const float number = 0.25f;
    data_random random = {800};
    sp_array inputs[3];
    writer graph = {0};
    add_floats(&graph, "number", &number, 1);
    for (int i = 0; i < 3; i++) {
        add_moved(&graph, &in[i]);
        inputs[i] = data_floats(&random, &in[i].shape);
    }
    add_node(&graph, make_node("Mul", "q number", "scaled"));
    add_node(&graph, make_node("MatMul", "scaled k", "scores"));
    writer softmax = make_node("Softmax", "scores", "weights");
    add_attribute_int(&softmax, "axis", -1);
    add_node(&graph, softmax);
    add_node(&graph, make_node("MatMul", "weights v", "y"));
    add_output(&graph, "y");
    const sp_graph *loaded = fused_plans_load(&graph);
    REQUIRE(loaded != NULL);
    fused_plans_check(loaded, inputs, 3, SP_KERNEL_ID_attention_f32, 0);
    sp__graph_destroy(loaded);
    data_free(inputs, 3);
}

TEST_MAIN
