/* SPDX-License-Identifier: Apache-2.0 */
/* The values, constants and nodes of a random graph of floats as it grows (fused_graph.h). Calls
 * that draw are no operands of each other, but for one: C has no order for several. */
#ifndef SP_TESTS_SUPPORT_GRAPH_DRAW_H
#define SP_TESTS_SUPPORT_GRAPH_DRAW_H

#include "support/model_data.h"
#include "support/onnx_writer.h"

enum { ONNX_F32 = 1, ONNX_I64 = 7, ONNX_BOOL = 9 };

typedef struct graph_value {
    char name[16];
    sp_shape shape;
} graph_value;

typedef struct graph_draw {
    data_random random;
    writer graph;
    uint32_t names;
    uint32_t outputs, most_outputs; /* one less is added by draw_disturbed */
    uint32_t disturbs;              /* one value in so many */
    bool has_specials;
} graph_draw;

/* From low to high, both included; true once in n times. */
int64_t draw_pick(graph_draw *g, int64_t low, int64_t high);
bool draw_one_in(graph_draw *g, int64_t n);

/* Some infinities, NaNs, denormals and zeros in the place of numbers. */
void draw_specials(data_random *random, float *values, uint64_t count);

/* A name for a value that the caller adds. */
graph_value draw_value(graph_draw *g, const sp_shape *shape);

/* Initializers: random floats, in some graphs with specials; one number, as a scalar or a list; and
 * integers. */
graph_value draw_constant(graph_draw *g, const sp_shape *shape);
graph_value draw_number(graph_draw *g, float of);
graph_value draw_integers(graph_draw *g, const sp_shape *shape, const int64_t *numbers);
graph_value draw_list(graph_draw *g, const int64_t *numbers, int64_t count);

/* The node that computes y, to which the caller adds attributes. */
writer draw_node(const char *op, const graph_value *const *inputs, uint32_t count,
                 const graph_value *y);

/* The value; in some cases with what keeps steps from being joined behind it: another reader, or
 * another value. */
graph_value draw_disturbed(graph_draw *g, graph_value x);

/* Whole nodes; their results may be disturbed. draw_mul and draw_add have their operands in any
 * order, and so have draw_times and draw_plus, whose other operand is a number; draw_over divides
 * by one. */
graph_value draw_unary(graph_draw *g, const char *op, graph_value x);
graph_value draw_binary(graph_draw *g, const char *op, graph_value a, graph_value b);
graph_value draw_mul(graph_draw *g, graph_value a, graph_value b);
graph_value draw_add(graph_draw *g, graph_value a, graph_value b);
graph_value draw_with_number(graph_draw *g, const char *op, graph_value x, float of, bool is_any);
graph_value draw_times(graph_draw *g, graph_value x, float of);
graph_value draw_plus(graph_draw *g, graph_value x, float of);
graph_value draw_over(graph_draw *g, graph_value x, float of);

/* The shape of a function of two operands of these shapes, which fit each other. */
void draw_broadcast(const sp_shape *a, const sp_shape *b, sp_shape *out);

#endif
