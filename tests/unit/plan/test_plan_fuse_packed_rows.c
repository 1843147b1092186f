/* SPDX-License-Identifier: Apache-2.0 */
/* Normalisations and attention whose results narrow products read write them packed: which ones,
 * and that the bits are those of packing them afterwards. */
#include "plan/plan_fuse.h"

#include <string.h>

#include "base/macros.h"
#include "support/fused_plans.h"
#include "support/model_data.h"
#include "support/onnx_writer.h"
#include "support/test.h"

enum { ONNX_F32 = 1, ONNX_I64 = 7, INPUTS = 3 };

static int64_t pick(data_random *random, int64_t first, int64_t last)
{
    return first + (int64_t)(data_next(random) % (uint64_t)(last - first + 1));
}

static bool one_in(data_random *random, int64_t count)
{
    return pick(random, 1, count) == 1;
}

/* ---- graphs ---- */

static void add_text_node(writer *graph, const char *text)
{
    writer node = make_text_node(text);
    if (strncmp(text, "Reduce", 6) == 0) add_attribute_ints(&node, "axes", (int64_t[]){-1}, 1);
    write_message(graph, GRAPH_NODE_FIELD, &node);
}

static void add_matrix(writer *graph, const char *name, int64_t rows, int64_t columns)
{
    data_random random = {77};
    const sp_shape shape = SHAPE(rows, columns);
    sp_array array = data_floats(&random, &shape);
    writer tensor = make_tensor(name, ONNX_F32, shape.dims, 2, array.data, array.bytes);
    write_message(graph, GRAPH_INITIALIZER_FIELD, &tensor);
    sp__array_deinit(&array);
}

static void add_transpose(writer *graph, const char *text, const int64_t *order, uint32_t count)
{
    writer node = make_text_node(text);
    add_attribute_ints(&node, "perm", order, count);
    write_message(graph, GRAPH_NODE_FIELD, &node);
}

/* ---- plans ---- */

static const sp_graph_plan *compile(const sp_graph *graph, const sp_array *inputs, uint32_t count,
                                    sp_precision precision, bool is_strided, bool is_unfused)
{
    sp_plan_input given[INPUTS];
    for (uint32_t i = 0; i < count; i++) {
        given[i] = (sp_plan_input){.dtype = inputs[i].dtype, .shape = inputs[i].shape};
    }
    const sp_plan_request request = {.kernels = sp__cpu_kernels(SP_CPU_PORTABLE),
                                     .inputs = given,
                                     .input_count = count,
                                     .precision = precision,
                                     .packs_left = true,
                                     .is_strided = is_strided && !is_unfused,
                                     .is_unfused = is_unfused};
    const sp_graph_plan *plan = NULL;
    CHECK_OK(sp__plan_compile(graph, &request, &plan));
    if (plan != NULL) CHECK_OK(sp__plan_check(plan));
    return plan;
}

/* Steps that a fused plan has. */
typedef struct wanted_steps {
    sp_kernel_id kernel;
    uint32_t count, packings, copies;
} wanted_steps;

/* Of a copy of the attention's operands, a plan that is not fused has more. */
static void check_graph(const sp_graph *graph, const sp_array *inputs, uint32_t count,
                        sp_precision precision, const wanted_steps *wanted)
{
    sp_array want[2] = {0};
    const sp_graph_plan *apart = compile(graph, inputs, count, precision, false, true);
    REQUIRE(apart != NULL);
    REQUIRE_OK(data_run_plan(apart, inputs, want));
    for (int is_strided = 0; is_strided < 2; is_strided++) {
        const sp_graph_plan *fused =
            compile(graph, inputs, count, precision, is_strided != 0, false);
        REQUIRE(fused != NULL);
        CHECK_EQ_INT(fused_plans_steps(fused, wanted->kernel), wanted->count);
        CHECK_EQ_INT(fused_plans_packings(fused), wanted->packings);
        CHECK_EQ_INT(fused_plans_steps(fused, SP_KERNEL_ID_copy_strided), wanted->copies);
        fused_plans_check_outputs(fused, inputs, want, "packed rows");
        sp__plan_destroy(fused);
    }
    for (uint32_t i = 0; i < apart->output_count; i++) sp__array_deinit(&want[i]);
    sp__plan_destroy(apart);
}

/* ---- normalisations ---- */

/* y = MatMul(Norm(x), w), or of the norm with its first two axes transposed. */
typedef struct norm_case {
    int64_t images, rows, extent, columns;
    bool is_transposed, is_output; /* the norm's result, too */
    bool is_read_twice;            /* by another product */
    const char *between;           /* of "norm" to "n", or NULL */
    sp_precision precision;
} norm_case;

static const sp_graph *load_norm(const norm_case *c)
{
    static const char *const norm[] = {"ReduceMean x > mean",      "Sub x mean > d",
                                       "Pow d two > square",       "ReduceMean square > spread",
                                       "Add spread epsilon > all", "Sqrt all > root",
                                       "Div d root > norm"};
    const float two = 2, epsilon = 1e-5f;
    const int64_t dims[] = {c->images, c->rows, c->extent};
    writer graph = {0};
    add_input(&graph, "x", ONNX_F32, dims, 3);
    writer power = make_tensor("two", ONNX_F32, NULL, 0, &two, sizeof two);
    writer small = make_tensor("epsilon", ONNX_F32, NULL, 0, &epsilon, sizeof epsilon);
    write_message(&graph, GRAPH_INITIALIZER_FIELD, &power);
    write_message(&graph, GRAPH_INITIALIZER_FIELD, &small);
    add_matrix(&graph, "w", c->extent, c->columns);
    add_matrix(&graph, "v", c->extent, 5);
    for (size_t i = 0; i < SP_COUNT_OF(norm); i++) add_text_node(&graph, norm[i]);
    add_text_node(&graph, c->between != NULL ? c->between : "Identity norm > n");
    if (c->is_transposed) add_transpose(&graph, "Transpose n > t", (int64_t[]){1, 0, 2}, 3);
    add_text_node(&graph, c->is_transposed ? "MatMul t w > y" : "MatMul n w > y");
    add_output(&graph, "y");
    if (c->is_read_twice) add_text_node(&graph, "MatMul n v > z");
    if (c->is_read_twice) add_output(&graph, "z");
    if (c->is_output) add_output(&graph, "norm");
    return fused_plans_load(&graph);
}

/* `packings` and `copies` are left in the fused plan. */
static void check_norm(const norm_case *c, uint64_t seed, uint32_t packings, uint32_t copies)
{
    data_random random = {seed};
    const sp_graph *graph = load_norm(c);
    REQUIRE(graph != NULL);
    sp_array x = data_floats(&random, &SHAPE(c->images, c->rows, c->extent));
    const wanted_steps wanted = {SP_KERNEL_ID_row_norm_f32, 1, packings, copies};
    check_graph(graph, &x, 1, c->precision, &wanted);
    sp__array_deinit(&x);
    sp__graph_destroy(graph);
}

static const sp_precision precisions[] = {SP_PRECISION_TF32, SP_PRECISION_F16, SP_PRECISION_BF16};

TEST(a_norm_packs_its_rows_for_a_product)
{
    data_random random = {5};
    for (uint64_t i = 0; i < test_count(200, 24); i++) {
        const norm_case c = {.images = 8 * pick(&random, 1, 3),
                             .rows = pick(&random, 1, 6),
                             .extent = 64 * pick(&random, 1, 4),
                             .columns = pick(&random, 1, 30),
                             .is_transposed = one_in(&random, 2),
                             .is_output = one_in(&random, 2),
                             .precision = precisions[i % SP_COUNT_OF(precisions)]};
        check_norm(&c, i + 1, 0, 0);
    }
}

TEST(rows_that_another_product_reads_are_written_too)
{
    norm_case c = {.images = 8,
                   .rows = 3,
                   .extent = 64,
                   .columns = 9,
                   .is_read_twice = true,
                   .is_transposed = true,
                   .precision = SP_PRECISION_BF16};
    check_norm(&c, 30, 1, 0);
}

TEST(rows_that_are_not_whole_lines_or_groups_are_packed_afterwards)
{
    norm_case c = {
        .images = 5, .rows = 3, .extent = 64, .columns = 9, .precision = SP_PRECISION_BF16};
    check_norm(&c, 31, 1, 0);
    c.images = 8;
    c.extent = 96;
    check_norm(&c, 32, 1, 0);
    c.is_transposed = true;
    check_norm(&c, 33, 1, 1);
}

TEST(long_rows_and_those_with_an_activation_are_packed_afterwards)
{
    norm_case c = {.images = 8,
                   .rows = 1,
                   .extent = SP_NORM_PACKED_EXTENT + 64,
                   .columns = 2,
                   .precision = SP_PRECISION_F16};
    check_norm(&c, 34, 1, 0);
    c.extent = SP_NORM_PACKED_EXTENT;
    check_norm(&c, 35, 0, 0);
    c.between = "Relu norm > n";
    check_norm(&c, 36, 1, 0);
}

/* ---- attention ---- */

/* y = MatMul(rows of Attention(query, key, value), w), where a row has all heads. */
typedef struct attention_case {
    int64_t images, heads, queries, keys, depth, columns, outputs;
    bool is_output;                /* attention's result, too */
    bool is_by_images, is_swapped; /* rows of an image are neighbours; heads are last */
    sp_precision precision;
} attention_case;

static void make_shapes(const attention_case *c, sp_shape shapes[INPUTS])
{
    shapes[0] = SHAPE(c->images, c->queries, c->heads, c->depth);
    shapes[1] = SHAPE(c->images, c->keys, c->heads, c->depth);
    shapes[2] = SHAPE(c->images, c->keys, c->heads, c->columns);
}

static const sp_graph *load_attention(const attention_case *c)
{
    static const char *const names[INPUTS] = {"query", "key", "value"};
    static const int64_t heads_first[] = {0, 2, 1, 3}, keys_last[] = {0, 2, 3, 1};
    static const int64_t by_images[] = {0, 2, 1, 3}, by_queries[] = {2, 0, 1, 3};
    static const int64_t swapped[] = {0, 2, 3, 1};
    const int64_t width = c->heads * c->columns, rows[] = {-1, width}, two = 2;
    const float number = 5.656854f;
    sp_shape shapes[INPUTS];
    writer graph = {0};
    make_shapes(c, shapes);
    for (int i = 0; i < INPUTS; i++) {
        add_input(&graph, names[i], ONNX_F32, shapes[i].dims, (int)shapes[i].rank);
    }
    writer scale = make_tensor("number", ONNX_F32, NULL, 0, &number, sizeof number);
    writer shape = make_tensor("rows", ONNX_I64, &two, 1, rows, sizeof rows);
    write_message(&graph, GRAPH_INITIALIZER_FIELD, &scale);
    write_message(&graph, GRAPH_INITIALIZER_FIELD, &shape);
    add_matrix(&graph, "w", width, c->outputs);
    add_transpose(&graph, "Transpose query > q", heads_first, 4);
    add_transpose(&graph, "Transpose key > k", keys_last, 4);
    add_transpose(&graph, "Transpose value > v", heads_first, 4);
    add_text_node(&graph, "Div q number > scaled");
    add_text_node(&graph, "MatMul scaled k > scores");
    add_text_node(&graph, "Softmax scores > weights");
    add_text_node(&graph, "MatMul weights v > heads");
    add_transpose(&graph, "Transpose heads > merged",
                  c->is_swapped     ? swapped
                  : c->is_by_images ? by_images
                                    : by_queries,
                  4);
    add_text_node(&graph, "Reshape merged rows > matrix");
    add_text_node(&graph, "MatMul matrix w > y");
    add_output(&graph, "y");
    if (c->is_output) add_output(&graph, "matrix");
    return fused_plans_load(&graph);
}

static void check_attention(const attention_case *c, uint64_t seed, uint32_t packings,
                            uint32_t copies)
{
    data_random random = {seed};
    sp_shape shapes[INPUTS];
    sp_array inputs[INPUTS];
    const sp_graph *graph = load_attention(c);
    REQUIRE(graph != NULL);
    make_shapes(c, shapes);
    for (int i = 0; i < INPUTS; i++) inputs[i] = data_floats(&random, &shapes[i]);
    const wanted_steps wanted = {SP_KERNEL_ID_attention_f32, 1, packings, copies};
    check_graph(graph, inputs, INPUTS, c->precision, &wanted);
    sp__graph_destroy(graph);
    data_free(inputs, INPUTS);
}

TEST(attention_packs_its_rows_for_a_product)
{
    data_random random = {6};
    for (uint64_t i = 0; i < test_count(200, 24); i++) {
        attention_case c = {.images = 8 * pick(&random, 1, 2),
                            .heads = 2 * pick(&random, 1, 2),
                            .queries = pick(&random, SP_ATTENTION_LEAST_ROWS, 40),
                            .keys = pick(&random, 2, 40),
                            .depth = pick(&random, 32, 70),
                            .columns = 32,
                            .outputs = pick(&random, 1, 20),
                            .is_by_images = one_in(&random, 2),
                            .precision = i % 2 == 0 ? SP_PRECISION_F16 : SP_PRECISION_BF16};
        if (one_in(&random, 3)) {
            c.depth = c.columns = 8;
            c.heads = 8;
        }
        check_attention(&c, i + 1, 0, 0);
    }
}

static const attention_case usual = {.images = 8,
                                     .heads = 2,
                                     .queries = 9,
                                     .keys = 12,
                                     .depth = 32,
                                     .columns = 32,
                                     .outputs = 7,
                                     .precision = SP_PRECISION_BF16};

/* Attention is f32 beside products of tf32. */
TEST(attention_of_another_type_or_with_other_readers_is_packed_afterwards)
{
    attention_case c = usual;
    c.precision = SP_PRECISION_TF32;
    check_attention(&c, 40, 1, 0);
    c = usual;
    c.is_output = true;
    check_attention(&c, 41, 1, 0);
}

TEST(heads_that_are_not_parts_of_rows_are_packed_afterwards)
{
    attention_case c = usual;
    c.heads = 16;
    c.columns = 4; /* half of a part */
    check_attention(&c, 42, 1, 0);
    c = usual;
    c.depth = 16; /* less than the columns, whose rows the cpu keeps in the room of queries */
    check_attention(&c, 43, 1, 0);
    c = usual;
    c.is_swapped = true;
    check_attention(&c, 44, 1, 1);
}

TEST_MAIN
