/* SPDX-License-Identifier: Apache-2.0 */
#include "support/graph_draw.h"

#include <stdio.h>
#include <string.h>

#include "base/macros.h"

int64_t draw_pick(graph_draw *g, int64_t low, int64_t high)
{
    return low + (int64_t)(data_next(&g->random) % (uint64_t)(high - low + 1));
}

bool draw_one_in(graph_draw *g, int64_t n)
{
    return draw_pick(g, 1, n) == 1;
}

/* ---- constants ---- */

void draw_specials(data_random *random, float *values, uint64_t count)
{
    static const uint32_t bits[] = {0x7f800000, 0xff800000, 0x7fc00000, 0xffc00001, 0x7f800001,
                                    0x80000000, 0x00000123, 0x7f61b1e6, 0x00000000};
    for (uint64_t i = data_next(random) % 8; i < count; i += 1 + data_next(random) % 40) {
        memcpy(&values[i], &bits[data_next(random) % SP_COUNT_OF(bits)], sizeof *bits);
    }
}

graph_value draw_value(graph_draw *g, const sp_shape *shape)
{
    graph_value v = {.shape = *shape};
    (void)snprintf(v.name, sizeof v.name, "v%u", g->names++);
    return v;
}

graph_value draw_constant(graph_draw *g, const sp_shape *shape)
{
    const graph_value v = draw_value(g, shape);
    sp_array array = data_floats(&g->random, shape);
    if (g->has_specials && draw_one_in(g, 4)) {
        draw_specials(&g->random, array.data, array.bytes / sizeof(float));
    }
    writer tensor =
        make_tensor(v.name, ONNX_F32, shape->dims, shape->rank, array.data, array.bytes);
    write_message(&g->graph, GRAPH_INITIALIZER_FIELD, &tensor);
    sp__array_deinit(&array);
    return v;
}

graph_value draw_number(graph_draw *g, float of)
{
    const sp_shape shape = {.rank = draw_one_in(g, 2) ? 1 : 0, .dims = {1}};
    const graph_value v = draw_value(g, &shape);
    writer tensor = make_tensor(v.name, ONNX_F32, shape.dims, shape.rank, &of, sizeof of);
    write_message(&g->graph, GRAPH_INITIALIZER_FIELD, &tensor);
    return v;
}

graph_value draw_integers(graph_draw *g, const sp_shape *shape, const int64_t *numbers)
{
    const graph_value v = draw_value(g, shape);
    writer tensor = make_tensor(v.name, ONNX_I64, shape->dims, shape->rank, numbers,
                                (size_t)sp__shape_count(shape) * sizeof *numbers);
    write_message(&g->graph, GRAPH_INITIALIZER_FIELD, &tensor);
    return v;
}

graph_value draw_list(graph_draw *g, const int64_t *numbers, int64_t count)
{
    return draw_integers(g, &SHAPE(count), numbers);
}

/* ---- nodes ---- */

static void want(graph_draw *g, const graph_value *v)
{
    if (g->outputs + 1 >= g->most_outputs) return;
    g->outputs++;
    add_output(&g->graph, v->name);
}

writer draw_node(const char *op, const graph_value *const *inputs, uint32_t count,
                 const graph_value *y)
{
    char names[96] = "";
    for (uint32_t i = 0; i < count; i++) {
        const size_t len = strlen(names);
        (void)snprintf(names + len, sizeof names - len, "%s%s", i > 0 ? " " : "", inputs[i]->name);
    }
    return make_node(op, names, y->name);
}

graph_value draw_unary(graph_draw *g, const char *op, graph_value x)
{
    const graph_value y = draw_value(g, &x.shape);
    add_node(&g->graph, draw_node(op, (const graph_value *[]){&x}, 1, &y));
    return y;
}

/* The value, with what keeps steps from being joined behind it, in some cases. */
graph_value draw_disturbed(graph_draw *g, graph_value x)
{
    if (!draw_one_in(g, g->disturbs)) return x;
    switch (draw_pick(g, 0, 3)) {
    case 0:
        want(g, &x);
        return x;
    case 1: {
        const graph_value read = draw_unary(g, "Neg", x);
        want(g, &read);
        return x;
    }
    case 2:
        return draw_unary(g, "Identity", x);
    default:
        return draw_unary(g, "Abs", x);
    }
}

void draw_broadcast(const sp_shape *a, const sp_shape *b, sp_shape *out)
{
    *out = a->rank >= b->rank ? *a : *b;
    const sp_shape *other = a->rank >= b->rank ? b : a;
    for (uint32_t i = 0; i < other->rank; i++) {
        int64_t *dim = &out->dims[out->rank - other->rank + i];
        if (*dim == 1) *dim = other->dims[i];
    }
}

graph_value draw_binary(graph_draw *g, const char *op, graph_value a, graph_value b)
{
    sp_shape shape;
    draw_broadcast(&a.shape, &b.shape, &shape);
    const graph_value y = draw_value(g, &shape);
    add_node(&g->graph, draw_node(op, (const graph_value *[]){&a, &b}, 2, &y));
    return draw_disturbed(g, y);
}

/* The operands in any order. */
graph_value draw_mul(graph_draw *g, graph_value a, graph_value b)
{
    return draw_one_in(g, 2) ? draw_binary(g, "Mul", a, b) : draw_binary(g, "Mul", b, a);
}

graph_value draw_add(graph_draw *g, graph_value a, graph_value b)
{
    return draw_one_in(g, 2) ? draw_binary(g, "Add", a, b) : draw_binary(g, "Add", b, a);
}

/* The number is the second operand, or any if `is_any`. */
graph_value draw_with_number(graph_draw *g, const char *op, graph_value x, float of, bool is_any)
{
    const graph_value by = draw_number(g, of);
    return is_any && draw_one_in(g, 2) ? draw_binary(g, op, by, x) : draw_binary(g, op, x, by);
}

graph_value draw_times(graph_draw *g, graph_value x, float of)
{
    return draw_with_number(g, "Mul", x, of, true);
}

graph_value draw_plus(graph_draw *g, graph_value x, float of)
{
    return draw_with_number(g, "Add", x, of, true);
}

graph_value draw_over(graph_draw *g, graph_value x, float of)
{
    return draw_with_number(g, "Div", x, of, false);
}
