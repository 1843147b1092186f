/* SPDX-License-Identifier: Apache-2.0 */
#include "precision_fixture.h"

#include <math.h>
#include <stdlib.h>

#include "base/heap.h"
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

static void add_weights(writer *graph, data_random *random, bool is_exact, const char *name,
                        int64_t rows, int64_t columns)
{
    const int64_t dims[2] = {rows, columns};
    const uint64_t count = (uint64_t)(rows * columns);
    float *values = sp_malloc(count * sizeof *values);
    if (values == NULL) abort();
    fill(random, is_exact, values, count);
    writer part = make_tensor(name, 1, dims, 2, values, count * sizeof *values);
    write_message(graph, GRAPH_INITIALIZER_FIELD, &part);
    sp_free(values);
}

sp_status precision_load(const precision_sizes *s, bool is_exact, const sp_model_options *options,
                         sp_model *out)
{
    const int64_t x[2] = {-1, s->depth};
    data_random random = {29};
    writer graph = {0};
    add_weights(&graph, &random, is_exact, "w", s->depth, s->width);
    add_weights(&graph, &random, is_exact, "b", 1, s->width);
    add_weights(&graph, &random, is_exact, "v", s->columns, s->width);
    add_weights(&graph, &random, is_exact, "c", 1, s->columns);
    add_input(&graph, "x", 1, x, 2);
    add_node(&graph, make_node("MatMul", "x w", "p"));
    add_node(&graph, make_node("Add", "p b", "q"));
    add_node(&graph, make_node("Relu", "q", "h"));
    writer gemm = make_node("Gemm", "h v c", "y");
    add_attribute_int(&gemm, "transB", 1);
    add_node(&graph, gemm);
    add_output(&graph, "y");
    writer file = make_model(&graph, 13);
    const sp_status status = sp_model_load_from_memory(file.bytes, file.len, options, out);
    writer_free(&file);
    return status;
}

float *precision_rows(const precision_sizes *s, bool is_exact, int64_t rows)
{
    data_random random = {31};
    const uint64_t count = (uint64_t)(rows * s->depth);
    float *x = sp_malloc(count * sizeof *x);
    if (x == NULL) abort();
    fill(&random, is_exact, x, count);
    return x;
}

sp_status precision_run(sp_model model, const precision_sizes *s, const float *x, int64_t rows,
                        float *y)
{
    const sp_host_tensor in = {.data = (void *)(uintptr_t)x,
                               .bytes = (uint64_t)(rows * s->depth) * sizeof *x,
                               .dtype = SP_F32,
                               .rank = 2,
                               .shape = {rows, s->depth}};
    sp_host_tensor out = {.data = y, .capacity = (uint64_t)(rows * s->columns) * sizeof *y};
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
