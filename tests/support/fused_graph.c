/* SPDX-License-Identifier: Apache-2.0 */
#include "support/fused_graph.h"

#include <stdio.h>
#include <string.h>

#include "base/macros.h"
#include "support/fused_plans.h"
#include "support/graph_draw.h"

enum { MOST_ELEMENTS = 6000, LAST = -1 };

/* ---- functions ---- */

static graph_value clip_gate(graph_draw *g, graph_value x)
{
    const graph_value sum = draw_plus(g, x, 3), low = draw_number(g, 0),
                      high = draw_number(g, draw_one_in(g, 3) ? 5 : 6);
    const graph_value part = draw_value(g, &sum.shape);
    add_node(&g->graph, draw_node("Clip", (const graph_value *[]){&sum, &low, &high}, 3, &part));
    return draw_over(g, draw_mul(g, x, part), 6);
}

static graph_value erf_gate(graph_draw *g, graph_value x)
{
    const graph_value erf = draw_unary(g, "Erf", draw_over(g, x, 1.41421354f));
    return draw_times(g, draw_mul(g, x, draw_plus(g, erf, 1)), 0.5f);
}

static graph_value tanh_gate(graph_draw *g, graph_value x)
{
    const graph_value cube = draw_mul(g, x, draw_mul(g, x, draw_times(g, x, 0.044715f)));
    const graph_value tanh = draw_unary(g, "Tanh", draw_times(g, draw_add(g, x, cube), 0.7978846f));
    return draw_mul(g, x, draw_times(g, draw_plus(g, tanh, 1), 0.7f));
}

static const char *any_of(graph_draw *g, const char *const *names, uint32_t count)
{
    return names[draw_pick(g, 0, count - 1)];
}

static graph_value function(graph_draw *g, graph_value x)
{
    static const char *const names[] = {"Relu", "Sigmoid", "Tanh", "Softsign", "Exp"};
    switch (draw_pick(g, 0, 6)) {
    case 0:
        return clip_gate(g, x);
    case 1:
        return erf_gate(g, x);
    case 2:
        return tanh_gate(g, x);
    case 3:
        return draw_mul(g, x, draw_unary(g, "Tanh", draw_unary(g, "Softplus", x)));
    case 4:
        return draw_mul(g, x, draw_unary(g, "HardSigmoid", x));
    case 5:
        return draw_mul(g, x, draw_unary(g, "Sigmoid", x));
    default:
        return draw_unary(g, any_of(g, names, SP_COUNT_OF(names)), x);
    }
}

/* ---- normalisations ---- */

static graph_value reduce(graph_draw *g, const char *op, graph_value x)
{
    sp_shape shape = x.shape;
    shape.dims[shape.rank - 1] = 1;
    const graph_value y = draw_value(g, &shape);
    const int64_t axis = LAST;
    if (strcmp(op, "ReduceSum") == 0) {
        const graph_value axes = draw_list(g, &axis, 1);
        add_node(&g->graph, draw_node(op, (const graph_value *[]){&x, &axes}, 2, &y));
        return draw_disturbed(g, y);
    }
    writer node = draw_node(op, (const graph_value *[]){&x}, 1, &y);
    add_attribute_ints(&node, "axes", &axis, 1);
    add_node(&g->graph, node);
    return draw_disturbed(g, y);
}

/* A number for each element of a row, or x itself. */
static graph_value row_list(graph_draw *g, graph_value x)
{
    return draw_one_in(g, 8) ? x : draw_constant(g, &SHAPE(x.shape.dims[x.shape.rank - 1]));
}

static graph_value norm(graph_draw *g, graph_value x)
{
    const graph_value d =
        draw_one_in(g, 3) ? x : draw_binary(g, "Sub", x, reduce(g, "ReduceMean", x));
    const graph_value square =
        draw_one_in(g, 2) ? draw_mul(g, d, d) : draw_with_number(g, "Pow", d, 2, false);
    const graph_value sum = draw_plus(g, reduce(g, "ReduceMean", square), 1e-5f);
    const graph_value root = draw_disturbed(g, draw_unary(g, "Sqrt", sum));
    const graph_value one = draw_number(g, 1);
    graph_value y;
    if (draw_one_in(g, 2)) y = draw_binary(g, "Div", d, root);
    else if (draw_one_in(g, 2)) y = draw_mul(g, d, draw_unary(g, "Reciprocal", root));
    else y = draw_mul(g, d, draw_binary(g, "Div", one, root));
    if (!draw_one_in(g, 4)) y = draw_mul(g, y, row_list(g, x));
    return draw_one_in(g, 4) ? y : draw_add(g, y, row_list(g, x));
}

static graph_value moments(graph_draw *g, graph_value x)
{
    const graph_value scale = row_list(g, x);
    const graph_value bias = draw_one_in(g, 6) ? scale : row_list(g, x);
    const graph_value mean = reduce(g, "ReduceMean", x);
    const graph_value squares = reduce(g, "ReduceSum", draw_mul(g, x, x));
    const graph_value factor =
        draw_unary(g, "Reciprocal", draw_unary(g, "Sqrt", draw_plus(g, squares, 1e-3f)));
    const graph_value d = draw_binary(g, "Sub", x, mean), f = draw_mul(g, factor, scale);
    return draw_add(g, draw_mul(g, d, f), bias);
}

/* ---- moves ---- */

static graph_value transpose(graph_draw *g, graph_value x, const int64_t *perm)
{
    sp_shape shape = x.shape;
    for (uint32_t i = 0; i < shape.rank; i++) shape.dims[i] = x.shape.dims[perm[i]];
    const graph_value y = draw_value(g, &shape);
    writer node = draw_node("Transpose", (const graph_value *[]){&x}, 1, &y);
    add_attribute_ints(&node, "perm", perm, shape.rank);
    add_node(&g->graph, node);
    return draw_disturbed(g, y);
}

static graph_value transpose_any(graph_draw *g, graph_value x)
{
    int64_t perm[SP_MAX_RANK];
    for (uint32_t i = 0; i < x.shape.rank; i++) perm[i] = i;
    for (uint32_t i = 0; i < x.shape.rank; i++) {
        const int64_t other = draw_pick(g, i, x.shape.rank - 1), kept = perm[i];
        perm[i] = perm[other];
        perm[other] = kept;
    }
    return transpose(g, x, perm);
}

static graph_value transpose_last(graph_draw *g, graph_value x)
{
    int64_t perm[SP_MAX_RANK];
    for (uint32_t i = 0; i < x.shape.rank; i++) perm[i] = i;
    perm[x.shape.rank - 1] = x.shape.rank - 2;
    perm[x.shape.rank - 2] = x.shape.rank - 1;
    return transpose(g, x, perm);
}

/* Merges two dimensions, or divides one. */
static graph_value reshape(graph_draw *g, graph_value x)
{
    sp_shape shape = x.shape;
    const uint32_t axis = (uint32_t)draw_pick(g, 0, shape.rank - 1);
    if (shape.rank > 2 && axis + 1 < shape.rank && draw_one_in(g, 2)) {
        shape.dims[axis] *= shape.dims[axis + 1];
        shape.rank--;
        for (uint32_t i = axis + 1; i < shape.rank; i++) shape.dims[i] = shape.dims[i + 1];
    } else if (shape.rank < 6) {
        const int64_t factor = shape.dims[axis] % 2 == 0 ? 2 : 1;
        for (uint32_t i = shape.rank++; i > axis; i--) shape.dims[i] = shape.dims[i - 1];
        shape.dims[axis] = factor;
        shape.dims[axis + 1] /= factor;
    }
    const graph_value sizes = draw_list(g, shape.dims, shape.rank), y = draw_value(g, &shape);
    add_node(&g->graph, draw_node("Reshape", (const graph_value *[]){&x, &sizes}, 2, &y));
    return y;
}

/* Every one, or every other one, of the elements of an axis from some on, in either order. */
static graph_value slice(graph_draw *g, graph_value x)
{
    sp_shape shape = x.shape;
    const int64_t axis = draw_pick(g, 0, shape.rank - 1), size = shape.dims[axis];
    const int64_t first = draw_pick(g, 0, size - 1),
                  step = draw_one_in(g, 4) ? -draw_pick(g, 1, 2) : draw_pick(g, 1, 2);
    const int64_t end = step > 0 ? INT64_MAX : INT64_MIN;
    shape.dims[axis] = step > 0 ? (size - first + step - 1) / step : first / -step + 1;
    const graph_value a = draw_list(g, &first, 1), b = draw_list(g, &end, 1),
                      c = draw_list(g, &axis, 1), d = draw_list(g, &step, 1),
                      y = draw_value(g, &shape);
    add_node(&g->graph, draw_node("Slice", (const graph_value *[]){&x, &a, &b, &c, &d}, 5, &y));
    return draw_disturbed(g, y);
}

/* Some rows of the first two dimensions are replaced by indices that are known: even or not, and in
 * some cases one more than once. */
static graph_value scatter(graph_draw *g, graph_value x)
{
    enum { MOST = 64 };
    int64_t indices[2 * MOST], count = 0;
    const int64_t rows = x.shape.dims[0], columns = x.shape.dims[1];
    const int64_t first[2] = {draw_pick(g, 0, rows - 1), draw_pick(g, 0, columns - 1)};
    const int64_t step[2] = {draw_pick(g, 1, 2), draw_pick(g, 1, 3)};
    for (int64_t r = first[0]; r < rows; r += step[0]) {
        for (int64_t c = first[1]; c < columns && count < MOST; c += step[1], count++) {
            indices[2 * count] = draw_one_in(g, 30) ? draw_pick(g, 0, rows - 1) : r;
            indices[2 * count + 1] = draw_one_in(g, 10) ? c - columns : c;
        }
    }
    sp_shape shape = x.shape;
    shape.dims[0] = count;
    shape.rank--;
    for (uint32_t i = 1; i < shape.rank; i++) shape.dims[i] = x.shape.dims[i + 1];
    const graph_value at = draw_integers(g, &SHAPE(count, 2), indices),
                      updates = draw_constant(g, &shape), y = draw_value(g, &x.shape);
    add_node(&g->graph, draw_node("ScatterND", (const graph_value *[]){&x, &at, &updates}, 3, &y));
    return y;
}

/* The sum of the halves of an axis, one of which is moved, or one half. */
static graph_value split(graph_draw *g, graph_value x)
{
    sp_shape shape = x.shape;
    const int64_t axis = draw_pick(g, 0, shape.rank - 1), size = shape.dims[axis];
    if (size % 2 != 0) return transpose_any(g, x);
    shape.dims[axis] = size / 2;
    const graph_value sizes = draw_list(g, (int64_t[]){size / 2, size / 2}, 2);
    const graph_value a = draw_value(g, &shape), b = draw_value(g, &shape);
    char inputs[40], outputs[40];
    (void)snprintf(inputs, sizeof inputs, "%s %s", x.name, sizes.name);
    (void)snprintf(outputs, sizeof outputs, "%s %s", a.name, b.name);
    writer node = make_node("Split", inputs, outputs);
    add_attribute_int(&node, "axis", axis);
    add_node(&g->graph, node);
    if (draw_one_in(g, 2)) return transpose_any(g, b);
    return draw_add(g, a, transpose_last(g, transpose_last(g, b)));
}

static graph_value move(graph_draw *g, graph_value x)
{
    switch (draw_pick(g, 0, 5)) {
    case 0:
        return reshape(g, x);
    case 1:
        return slice(g, x);
    case 2:
        return scatter(g, x);
    case 3:
        return split(g, x);
    default:
        return transpose_any(g, x);
    }
}

/* ---- products ---- */

static graph_value matmul(graph_draw *g, graph_value a, graph_value b)
{
    sp_shape shape;
    draw_broadcast(&a.shape, &b.shape, &shape);
    shape.dims[shape.rank - 2] = a.shape.dims[a.shape.rank - 2];
    shape.dims[shape.rank - 1] = b.shape.dims[b.shape.rank - 1];
    const graph_value y = draw_value(g, &shape);
    add_node(&g->graph, draw_node("MatMul", (const graph_value *[]){&a, &b}, 2, &y));
    return draw_disturbed(g, y);
}

/* A shape that broadcasts to that one. */
static sp_shape some_dims(graph_draw *g, const sp_shape *of)
{
    sp_shape shape = *of;
    for (uint32_t i = 0; i < shape.rank; i++) {
        if (draw_one_in(g, 3)) shape.dims[i] = 1;
    }
    return shape;
}

static graph_value addend(graph_draw *g, graph_value x)
{
    const sp_shape shape = some_dims(g, &x.shape);
    return draw_constant(g, &shape);
}

/* Behind a product may be the sum with a constant, or with what is computed after the product. */
static graph_value product(graph_draw *g, graph_value x)
{
    const int64_t depth = x.shape.dims[x.shape.rank - 1];
    const bool is_square = draw_one_in(g, 3);
    const int64_t columns = is_square ? depth : draw_pick(g, 1, 20);
    const graph_value y = matmul(g, x, draw_constant(g, &SHAPE(depth, columns)));
    if (is_square) return draw_add(g, y, function(g, x));
    return draw_one_in(g, 2) ? y : draw_add(g, y, addend(g, y));
}

static graph_value scaled(graph_draw *g, graph_value x)
{
    if (draw_one_in(g, 2)) return x;
    return draw_one_in(g, 3) ? draw_over(g, x, 3) : draw_times(g, x, 0.3f);
}

/* Where a condition is, or where it is not, a score is a number. */
static graph_value chosen(graph_draw *g, graph_value x)
{
    static uint8_t bytes[MOST_ELEMENTS * 20];
    sp_shape shape = some_dims(g, &x.shape);
    if (!draw_one_in(g, 8)) shape.dims[shape.rank - 1] = x.shape.dims[shape.rank - 1];
    const graph_value condition = draw_value(g, &shape),
                      fill = draw_number(g, draw_one_in(g, 2) ? -1e9f : 0.7f);
    const uint64_t count = sp__shape_count(&shape);
    if (count > sizeof bytes) return x;
    for (uint64_t i = 0; i < count; i++) bytes[i] = draw_one_in(g, 3);
    writer tensor = make_tensor(condition.name, ONNX_BOOL, shape.dims, shape.rank, bytes, count);
    write_message(&g->graph, GRAPH_INITIALIZER_FIELD, &tensor);
    const graph_value y = draw_value(g, &x.shape);
    const bool fills = draw_one_in(g, 2);
    add_node(&g->graph,
             draw_node("Where",
                       (const graph_value *[]){&condition, fills ? &fill : &x, fills ? &x : &fill},
                       3, &y));
    return draw_disturbed(g, y);
}

static graph_value softmax(graph_draw *g, graph_value x)
{
    const graph_value y = draw_value(g, &x.shape);
    writer node = draw_node("Softmax", (const graph_value *[]){&x}, 1, &y);
    add_attribute_int(&node, "axis", LAST);
    add_node(&g->graph, node);
    return draw_disturbed(g, y);
}

static graph_value attention(graph_draw *g, graph_value x)
{
    const graph_value queries = scaled(g, x);
    const graph_value keys = transpose_last(g, draw_one_in(g, 3) ? function(g, x) : x);
    graph_value scores = scaled(g, matmul(g, queries, scaled(g, keys)));
    const bool is_chosen_first = draw_one_in(g, 2);
    if (is_chosen_first) scores = chosen(g, scores);
    if (draw_one_in(g, 2)) scores = draw_add(g, scores, addend(g, scores));
    if (!is_chosen_first && draw_one_in(g, 2)) scores = chosen(g, scores);
    const graph_value weights = softmax(g, scores);
    return matmul(g, weights, x);
}

/* ---- graphs ---- */

static graph_value step(graph_draw *g, graph_value x)
{
    switch (draw_pick(g, 0, 7)) {
    case 0:
    case 1:
        return function(g, x);
    case 2:
        return norm(g, x);
    case 3:
        return moments(g, x);
    case 4:
        return product(g, x);
    case 5:
        return attention(g, x);
    default:
        return move(g, x);
    }
}

/* A matrix, or several, of sizes around those of vectors and of what is computed together. */
static sp_shape input_shape(graph_draw *g)
{
    static const int64_t sizes[] = {1, 2, 3, 7, 8, 9, 16, 17, 20, 33, 70};
    sp_shape shape = {.rank = (uint32_t)draw_pick(g, 2, 4)};
    for (uint32_t i = 0; i < shape.rank; i++) {
        shape.dims[i] = i + 2 < shape.rank
                            ? draw_pick(g, 1, 3)
                            : sizes[draw_pick(g, 0, (int64_t)SP_COUNT_OF(sizes) - 1)];
    }
    return shape;
}

static graph_draw generator_of(uint64_t seed)
{
    graph_draw g = {.random = {.state = seed}, .most_outputs = FUSED_GRAPH_OUTPUTS};
    g.disturbs = draw_one_in(&g, 3) ? 12 : 60;
    g.has_specials = draw_one_in(&g, 6);
    return g;
}

const sp_graph *fused_graph_make(uint64_t seed, sp_shape *x)
{
    graph_draw g = generator_of(seed);
    *x = input_shape(&g);
    graph_value last = draw_value(&g, x);
    add_input(&g.graph, last.name, ONNX_F32, x->dims, (int)x->rank);
    for (int64_t steps = draw_pick(&g, 1, 5); steps > 0; steps--) {
        if (sp__shape_count(&last.shape) > MOST_ELEMENTS) break;
        last = step(&g, last);
    }
    last = draw_unary(&g, "Identity", last); /* is no output yet */
    add_output(&g.graph, last.name);
    return fused_plans_load(&g.graph);
}

sp_array fused_graph_input(uint64_t seed, const sp_shape *x)
{
    graph_draw g = generator_of(seed);
    sp_array array = data_floats(&g.random, x);
    if (g.has_specials) draw_specials(&g.random, array.data, array.bytes / sizeof(float));
    return array;
}
