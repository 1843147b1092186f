/* SPDX-License-Identifier: Apache-2.0 */
#include "precision_fixture.h"

#include <math.h>
#include <stdlib.h>

#include "base/heap.h"
#include "ops/cpu/arch/half.h"
#include "support/onnx_writer.h"
#include "support/test.h"

static void fill(data_random *random, bool is_exact, float *values, uint64_t count)
{
    if (!is_exact) {
        data_fill(random, values, (size_t)count);
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        values[i] = (float)((int64_t)(data_next(random) >> 40) % 5 - 2);
    }
}

static bool is_half(const precision_sizes *s)
{
    return s->type == SP_F16 || s->type == SP_BF16;
}

/* The numbers of types in files. */
static int64_t type_number(const precision_sizes *s)
{
    return s->type == SP_F16 ? 10 : s->type == SP_BF16 ? 16 : 1;
}

/* Weights of the model's type. */
static void add_weights(writer *graph, const precision_sizes *s, data_random *random, bool is_exact,
                        const char *name, const int64_t *dims, uint32_t rank)
{
    uint64_t count = 1;
    for (uint32_t i = 0; i < rank; i++) count *= (uint64_t)dims[i];
    float *values = sp_malloc(count * sizeof *values);
    if (values == NULL) abort();
    fill(random, is_exact, values, count);
    uint16_t *halves = (uint16_t *)values; /* each is written behind the next number to be read */
    for (uint64_t i = 0; i < count && is_half(s); i++) {
        const float value = values[i];
        halves[i] = s->type == SP_F16 ? sp_f16_of_float(value) : sp_bf16_of_float(value);
    }
    writer part =
        make_tensor(name, type_number(s), dims, rank, values, count * (is_half(s) ? 2 : 4));
    write_message(graph, GRAPH_INITIALIZER_FIELD, &part);
    sp_free(values);
}

static void add_cast(writer *graph, const char *from, const char *to, int64_t type)
{
    writer cast = make_node("Cast", from, to);
    add_attribute_int(&cast, "to", type);
    add_node(graph, cast);
}

static void add_products(writer *graph, const precision_sizes *s, data_random *random,
                         bool is_exact)
{
    add_weights(graph, s, random, is_exact, "w", (int64_t[]){s->depth, s->width}, 2);
    add_weights(graph, s, random, is_exact, "b", (int64_t[]){1, s->width}, 2);
    add_weights(graph, s, random, is_exact, "v", (int64_t[]){s->columns, s->width}, 2);
    add_weights(graph, s, random, is_exact, "c", (int64_t[]){1, s->columns}, 2);
    add_node(graph, make_node("MatMul", is_half(s) ? "x_ w" : "x w", "p"));
    add_node(graph, make_node("Add", "p b", "q"));
    add_node(graph, make_node("Relu", "q", "h"));
    writer gemm = make_node("Gemm", "h v c", is_half(s) ? "y_" : "y");
    add_attribute_int(&gemm, "transB", 1);
    add_node(graph, gemm);
}

static void add_convolutions(writer *graph, const precision_sizes *s, data_random *random,
                             bool is_exact)
{
    add_weights(graph, s, random, is_exact, "w", (int64_t[]){s->width, s->depth, 3, 3}, 4);
    add_weights(graph, s, random, is_exact, "b", &s->width, 1);
    add_weights(graph, s, random, is_exact, "v", (int64_t[]){s->columns, s->width, 1, 1}, 4);
    add_weights(graph, s, random, is_exact, "c", &s->columns, 1);
    writer conv = make_node("Conv", is_half(s) ? "x_ w b" : "x w b", "q");
    add_attribute_ints(&conv, "pads", (int64_t[]){1, 1, 1, 1}, 4);
    add_node(graph, conv);
    add_node(graph, make_node("Relu", "q", "h"));
    add_node(graph, make_node("Conv", "h v c", is_half(s) ? "y_" : "y"));
}

static int64_t pixels(const precision_sizes *s)
{
    return s->image > 0 ? s->image * s->image : 1;
}

int64_t precision_inputs(const precision_sizes *s)
{
    return s->depth * pixels(s);
}

int64_t precision_outputs(const precision_sizes *s)
{
    return s->columns * pixels(s);
}

sp_status precision_load(const precision_sizes *s, bool is_exact, const sp_model_options *options,
                         sp_model *out)
{
    const int64_t x[4] = {-1, s->depth, s->image, s->image};
    data_random random = {29};
    writer graph = {0};
    add_input(&graph, "x", 1, x, s->image > 0 ? 4 : 2);
    if (is_half(s)) add_cast(&graph, "x", "x_", type_number(s));
    if (s->image > 0) add_convolutions(&graph, s, &random, is_exact);
    else add_products(&graph, s, &random, is_exact);
    if (is_half(s)) add_cast(&graph, "y_", "y", 1);
    add_output(&graph, "y");
    writer file = make_model(&graph, 13);
    const sp_status status = sp_model_load_from_memory(file.bytes, file.len, options, out);
    writer_free(&file);
    return status;
}

float *precision_rows(const precision_sizes *s, bool is_exact, int64_t rows)
{
    data_random random = {31};
    const uint64_t count = (uint64_t)(rows * precision_inputs(s));
    float *x = sp_malloc(count * sizeof *x);
    if (x == NULL) abort();
    fill(&random, is_exact, x, count);
    return x;
}

sp_status precision_run(sp_model model, const precision_sizes *s, const float *x, int64_t rows,
                        float *y)
{
    const sp_host_tensor in = {.data = (void *)(uintptr_t)x,
                               .bytes = (uint64_t)(rows * precision_inputs(s)) * sizeof *x,
                               .dtype = SP_F32,
                               .rank = s->image > 0 ? 4 : 2,
                               .shape = {rows, s->depth, s->image, s->image}};
    sp_host_tensor out = {.data = y,
                          .capacity = (uint64_t)(rows * precision_outputs(s)) * sizeof *y};
    return sp_model_run(model, &in, 1, &out, 1);
}

double precision_difference(const float *got, const float *want, uint64_t count)
{
    double most = 0, largest = 0;
    for (uint64_t i = 0; i < count; i++) {
        const double difference = fabs((double)got[i] - (double)want[i]);
        if (!(difference <= most)) most = difference; /* a NaN is the largest difference */
        if (fabs((double)want[i]) > largest) largest = fabs((double)want[i]);
    }
    return most > 0 || most != most ? most / largest : 0;
}

double precision_bound(sp_precision precision)
{
    return precision == SP_PRECISION_BF16 ? 0x1p-6 : 0x1p-9;
}
