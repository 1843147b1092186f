/* SPDX-License-Identifier: Apache-2.0 */
/* Proofs of row-separability on random graphs: a batch has the bits of its rows. */
#include <stdio.h>
#include <string.h>

#include "support/image_graph.h"
#include "support/rows_model.h"
#include "support/test.h"

enum { NODES = 12 };

/* A graph as it grows; value i is called v<i>, constant i k<i>. */
typedef struct generator {
    data_random random;
    writer graph;
    sp_shape shapes[NODES * 2 + 4];
    uint32_t value_count, constant_count;
} generator;

static uint64_t below(generator *g, uint64_t end)
{
    return data_next(&g->random) % end;
}

static void constant_add(generator *g, const sp_shape *shape, char name[16])
{
    snprintf(name, 16, "k%u", g->constant_count++);
    rows_add_floats(&g->graph, name, shape);
}

static void sizes_add(generator *g, const int64_t *values, uint32_t count, char name[16])
{
    snprintf(name, 16, "k%u", g->constant_count++);
    rows_add_ints(&g->graph, name, values, count);
}

/* A node on value `from` and perhaps another operand; its output is a new value. */
static writer node_begin(generator *g, const char *op, uint32_t from, const char *other,
                         const sp_shape *shape)
{
    char inputs[64], output[16];
    snprintf(inputs, sizeof inputs, "v%u%s%s", from, other[0] != '\0' ? " " : "", other);
    snprintf(output, sizeof output, "v%u", g->value_count);
    g->shapes[g->value_count++] = *shape;
    return make_node(op, inputs, output);
}

static void plain_add(generator *g, uint32_t from)
{
    static const char *const ops[] = {"Relu", "Tanh", "Neg", "Identity"};
    add_node(&g->graph, node_begin(g, ops[below(g, 4)], from, "", &g->shapes[from]));
}

/* With a constant: of all dimensions as for one row, of the last ones, or a number. */
static void constant_use(generator *g, uint32_t from)
{
    static const char *const ops[] = {"Add", "Mul", "Max"};
    sp_shape shape = g->shapes[from];
    char name[16];
    for (uint64_t drop = below(g, shape.rank + 1); drop > 0; drop--) {
        shape.rank--;
        memmove(shape.dims, shape.dims + 1, shape.rank * sizeof shape.dims[0]);
    }
    constant_add(g, &shape, name);
    add_node(&g->graph, node_begin(g, ops[below(g, 3)], from, name, &g->shapes[from]));
}

static void pair_add(generator *g, uint32_t from)
{
    char other[16];
    const uint32_t to = (uint32_t)below(g, g->value_count);
    if (!sp__shape_equal(&g->shapes[from], &g->shapes[to])) {
        plain_add(g, from);
        return;
    }
    snprintf(other, sizeof other, "v%u", to);
    add_node(&g->graph, node_begin(g, "Add", from, other, &g->shapes[from]));
}

static void product_add(generator *g, uint32_t from)
{
    sp_shape shape = g->shapes[from];
    char name[16];
    const int64_t columns = 1 + (int64_t)below(g, 5);
    constant_add(g, &SHAPE(shape.dims[shape.rank - 1], columns), name);
    shape.dims[shape.rank - 1] = columns;
    add_node(&g->graph, node_begin(g, "MatMul", from, name, &shape));
}

static void transpose_add(generator *g, uint32_t from)
{
    const sp_shape *x = &g->shapes[from];
    sp_shape shape = *x;
    int64_t perm[SP_MAX_RANK];
    for (uint32_t i = 0; i < x->rank; i++) perm[i] = i;
    for (uint32_t i = 0; i + 1 < x->rank; i++) {
        const uint32_t other = i + (uint32_t)below(g, x->rank - i);
        const int64_t kept = perm[i];
        perm[i] = perm[other];
        perm[other] = kept;
    }
    for (uint32_t i = 0; i < x->rank; i++) shape.dims[i] = x->dims[perm[i]];
    writer node = node_begin(g, "Transpose", from, "", &shape);
    add_attribute_ints(&node, "perm", perm, shape.rank);
    add_node(&g->graph, node);
}

/* Merges two dimensions, divides one, or adds one of size 1; one size may be left open. */
static void reshape_add(generator *g, uint32_t from)
{
    sp_shape shape = g->shapes[from];
    const uint32_t axis = (uint32_t)below(g, shape.rank);
    char name[16];
    if (below(g, 2) == 0 && axis + 1 < shape.rank) {
        shape.dims[axis] *= shape.dims[axis + 1];
        shape.rank--;
        for (uint32_t i = axis + 1; i < shape.rank; i++) shape.dims[i] = shape.dims[i + 1];
    } else if (shape.rank < 6) {
        const int64_t factor = shape.dims[axis] % 2 == 0 ? 2 : 1;
        for (uint32_t i = shape.rank++; i > axis; i--) shape.dims[i] = shape.dims[i - 1];
        shape.dims[axis] = factor;
        shape.dims[axis + 1] /= factor;
    }
    sp_shape sizes = shape;
    if (below(g, 2) == 0) sizes.dims[below(g, sizes.rank)] = -1;
    sizes_add(g, sizes.dims, sizes.rank, name);
    add_node(&g->graph, node_begin(g, "Reshape", from, name, &shape));
}

/* Joins a constant for one row, or the value itself. */
static void concat_add(generator *g, uint32_t from)
{
    sp_shape shape = g->shapes[from];
    const uint32_t axis = (uint32_t)below(g, shape.rank);
    char name[16];
    if (below(g, 2) == 0) {
        sp_shape part = shape;
        part.dims[axis] = 1 + (int64_t)below(g, 3);
        shape.dims[axis] += part.dims[axis];
        constant_add(g, &part, name);
    } else {
        snprintf(name, sizeof name, "v%u", from);
        shape.dims[axis] *= 2;
    }
    writer node = node_begin(g, "Concat", from, name, &shape);
    add_attribute_int(&node, "axis", axis);
    add_node(&g->graph, node);
}

static void softmax_add(generator *g, uint32_t from)
{
    writer node = node_begin(g, "Softmax", from, "", &g->shapes[from]);
    add_attribute_int(&node, "axis", (int64_t)below(g, g->shapes[from].rank));
    add_node(&g->graph, node);
}

static void reduce_add(generator *g, uint32_t from)
{
    sp_shape shape = g->shapes[from];
    const int64_t axis = (int64_t)below(g, shape.rank);
    char name[16];
    shape.dims[axis] = 1;
    sizes_add(g, &axis, 1, name);
    add_node(&g->graph, node_begin(g, "ReduceSum", from, name, &shape));
}

static void gather_add(generator *g, uint32_t from)
{
    sp_shape shape = g->shapes[from];
    const uint32_t axis = (uint32_t)below(g, shape.rank);
    int64_t picked[3];
    char name[16];
    const uint32_t count = 1 + (uint32_t)below(g, 3);
    for (uint32_t i = 0; i < count; i++) {
        picked[i] = (int64_t)below(g, (uint64_t)shape.dims[axis]);
    }
    shape.dims[axis] = count;
    sizes_add(g, picked, count, name);
    writer node = node_begin(g, "Gather", from, name, &shape);
    add_attribute_int(&node, "axis", axis);
    add_node(&g->graph, node);
}

/* Back to the sizes of the value, which are computed: Shape, then Expand to them. */
static void sizes_use(generator *g, uint32_t from)
{
    char name[16], value[16];
    snprintf(name, sizeof name, "s%u", g->value_count);
    snprintf(value, sizeof value, "v%u", from);
    add_node(&g->graph, make_node("Shape", value, name));
    add_node(&g->graph, node_begin(g, "Reshape", from, name, &g->shapes[from]));
}

/* One size of the value as a list of one number: Shape, then Gather. */
static void size_name(generator *g, uint32_t from, int64_t axis, char out[16])
{
    char value[16], shape[16], index[16], inputs[40];
    snprintf(value, sizeof value, "v%u", from);
    snprintf(shape, sizeof shape, "t%u", g->constant_count);
    snprintf(out, 16, "d%u", g->constant_count);
    sizes_add(g, &axis, 1, index);
    snprintf(inputs, sizeof inputs, "%s %s", shape, index);
    add_node(&g->graph, make_node("Shape", value, shape));
    add_node(&g->graph, make_node("Gather", inputs, out));
}

/* A number computed from a size and another number. */
static void size_compute(generator *g, const char *op, const char *size, const char *by,
                         char out[16])
{
    char inputs[40];
    snprintf(inputs, sizeof inputs, "%s %s", size, by);
    snprintf(out, 16, "e%u", g->constant_count++);
    add_node(&g->graph, make_node(op, inputs, out));
}

/* To a float and back; the name is that of the result. */
static void cast_twice(generator *g, char name[16])
{
    for (int i = 0; i < 2; i++) {
        char output[16];
        snprintf(output, sizeof output, "e%u", g->constant_count++);
        writer node = make_node("Cast", name, output);
        add_attribute_int(&node, "to", i == 0 ? ONNX_F32 : ONNX_I64);
        add_node(&g->graph, node);
        memcpy(name, output, sizeof output);
    }
}

/* Reshapes to computed sizes: the first two dimensions merged, or the first one halved; in between
 * a Cast to float and back. */
static void computed_reshape_add(generator *g, uint32_t from)
{
    const sp_shape *x = &g->shapes[from];
    char a[16], b[16], c[16], two[16], inputs[64], sizes[16];
    const bool halves = x->dims[0] % 2 == 0;
    const int64_t rest = -1;
    if (x->rank < 2 || sp__shape_count(x) == 0) {
        plain_add(g, from);
        return;
    }
    size_name(g, from, 0, a);
    size_name(g, from, 1, b);
    sizes_add(g, halves ? &(int64_t){2} : &rest, 1, two);
    size_compute(g, halves ? "Div" : "Mul", a, halves ? two : b, c);
    cast_twice(g, c);
    snprintf(inputs, sizeof inputs, "%s %s", halves ? two : c, halves ? c : two);
    snprintf(sizes, sizeof sizes, "z%u", g->constant_count++);
    sp_shape shape = {.rank = 2, .dims = {x->dims[0] * x->dims[1]}};
    shape.dims[1] = (int64_t)sp__shape_range_count(x, 2, x->rank);
    if (halves) {
        shape = (sp_shape){.rank = 3, .dims = {2, x->dims[0] / 2}};
        shape.dims[2] = (int64_t)sp__shape_range_count(x, 1, x->rank);
        char open[16];
        sizes_add(g, &rest, 1, open);
        snprintf(inputs, sizeof inputs, "%s %s %s", two, c, open);
    }
    writer node = make_node("Concat", inputs, sizes);
    add_attribute_int(&node, "axis", 0);
    add_node(&g->graph, node);
    add_node(&g->graph, node_begin(g, "Reshape", from, sizes, &shape));
}

static void norm_add(generator *g, uint32_t from)
{
    const sp_shape *x = &g->shapes[from];
    char name[16];
    constant_add(g, &SHAPE(x->dims[x->rank - 1]), name);
    add_node(&g->graph, node_begin(g, "LayerNormalization", from, name, x));
}

/* From an element on, along one axis, to the end. */
static void slice_add(generator *g, uint32_t from)
{
    sp_shape shape = g->shapes[from];
    const int64_t axis = (int64_t)below(g, shape.rank), end = INT64_MAX;
    const int64_t start = (int64_t)below(g, (uint64_t)shape.dims[axis]);
    char name[3][16], inputs[64];
    shape.dims[axis] -= start;
    sizes_add(g, &start, 1, name[0]);
    sizes_add(g, &end, 1, name[1]);
    sizes_add(g, &axis, 1, name[2]);
    snprintf(inputs, sizeof inputs, "%s %s %s", name[0], name[1], name[2]);
    add_node(&g->graph, node_begin(g, "Slice", from, inputs, &shape));
}

static void tile_add(generator *g, uint32_t from)
{
    sp_shape shape = g->shapes[from];
    int64_t repeats[SP_MAX_RANK];
    char name[16];
    for (uint32_t i = 0; i < shape.rank; i++) {
        repeats[i] = below(g, 4) == 0 ? 2 : 1;
        shape.dims[i] *= repeats[i];
    }
    sizes_add(g, repeats, shape.rank, name);
    add_node(&g->graph, node_begin(g, "Tile", from, name, &shape));
}

static void node_draw(generator *g)
{
    static void (*const kinds[])(generator *, uint32_t) = {
        plain_add,   constant_use,         pair_add,    product_add, transpose_add,
        reshape_add, concat_add,           softmax_add, reduce_add,  gather_add,
        sizes_use,   computed_reshape_add, norm_add,    slice_add,   tile_add};
    const bool is_last = below(g, 3) > 0;
    const uint32_t from = is_last ? g->value_count - 1 : (uint32_t)below(g, g->value_count);
    void (*add)(generator *, uint32_t) = kinds[below(g, SP_COUNT_OF(kinds))];
    if (sp__shape_count(&g->shapes[from]) > 2000) add = reduce_add;
    add(g, from);
}

/* One or two inputs of a shape; the outputs are the last values. */
static void graph_draw(uint64_t seed, rows_model *out)
{
    generator g = {.random = {.state = seed}};
    sp_shape shape = {.rank = 2 + (uint32_t)below(&g, 3)};
    for (uint32_t i = 0; i < shape.rank; i++) shape.dims[i] = 1 + (int64_t)below(&g, 4);
    const uint32_t axis = (uint32_t)below(&g, shape.rank);
    sp_shape declared = shape;
    shape.dims[axis] = 1;
    declared.dims[axis] = below(&g, 2) == 0 ? -1 : 1;
    for (uint64_t inputs = 1 + below(&g, 2); inputs > 0; inputs--) {
        char name[16];
        snprintf(name, sizeof name, "v%u", g.value_count);
        g.shapes[g.value_count++] = shape;
        rows_add_input(&g.graph, name, ONNX_F32, &declared);
    }
    const uint64_t nodes = 2 + below(&g, NODES - 1);
    for (uint64_t i = 0; i < nodes; i++) node_draw(&g);
    for (uint32_t i = 0; i < 2; i++) {
        char name[16];
        snprintf(name, sizeof name, "v%u", g.value_count - 1 - i);
        add_output(&g.graph, name);
    }
    rows_model_make(&g.graph, 17, out);
}

/* A model that is separable has the bits of its rows, and is counted. Destroys it. */
static bool check_rows(rows_model *model, uint64_t seed, uint64_t *separable)
{
    rows_model_prove(model, 2 + seed % 3);
    const bool is_separable = model->proof.is_separable;
    const bool is_right = !is_separable || rows_model_check(model, 2 + seed % 3);
    *separable += is_separable;
    rows_model_deinit(model);
    if (!is_right) test_note("seed %llu", (unsigned long long)seed);
    return is_right;
}

static void check_separable(uint64_t separable, uint64_t count)
{
    CHECK(separable > count / 10);
    test_note("%llu of %llu separable", (unsigned long long)separable, (unsigned long long)count);
}

TEST(random_graphs_have_the_bits_of_their_rows)
{
    const uint64_t count = test_count(500000, 20000);
    uint64_t separable = 0;
    for (uint64_t seed = 1; seed <= count; seed++) {
        rows_model model;
        graph_draw(seed, &model);
        REQUIRE(model.graph != NULL);
        REQUIRE(check_rows(&model, seed, &separable));
    }
    check_separable(separable, count);
}

/* One image is a row. */
TEST(random_graphs_of_images_have_the_bits_of_their_rows)
{
    const uint64_t count = test_count(20000, 400);
    uint64_t separable = 0;
    for (uint64_t seed = 1; seed <= count; seed++) {
        image_graph maker;
        sp_array x[ROWS_PORTS] = {0};
        rows_model model;
        sp_shape shape;
        const sp_graph *graph = image_graph_make(&maker, seed, &shape);
        REQUIRE(graph != NULL);
        if (shape.dims[0] > 1) {
            sp__graph_destroy(graph);
            continue;
        }
        x[0] = data_floats(&maker.random, &shape);
        rows_model_init(graph, x, &model);
        REQUIRE(check_rows(&model, seed, &separable));
    }
    check_separable(separable, count);
}

TEST_MAIN
