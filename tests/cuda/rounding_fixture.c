/* SPDX-License-Identifier: Apache-2.0 */
#include "rounding_fixture.h"

#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/macros.h"
#include "precision_fixture.h"
#include "run_fixture.h"
#include "support/model_data.h"
#include "support/onnx_writer.h"
#include "support/test.h"

enum { ONNX_F32 = 1, HEADS = 3, IMAGES = 4, INPUTS = 3, OUTPUTS = 2 };

static const sp_precision precisions[] = {SP_PRECISION_TF32, SP_PRECISION_F16, SP_PRECISION_BF16};

/* ---- models ---- */

static void add_text(writer *graph, const char *text)
{
    add_node(graph, make_text_node(text));
}

static void add_transpose(writer *graph, const char *text, const int64_t order[4])
{
    writer node = make_text_node(text);
    add_attribute_ints(&node, "perm", order, 4);
    add_node(graph, node);
}

/* Of q, k and v, [images, length, HEADS, depth]. Where the weights are an output, nothing is fused.
 */
static writer make_attention(const rounding_sizes *s, bool has_weights)
{
    static const int64_t heads_first[] = {0, 2, 1, 3}, keys_last[] = {0, 2, 3, 1};
    static const float number = 0.125f;
    const int64_t dims[] = {-1, s->length, HEADS, s->depth};
    writer graph = {0};
    add_input(&graph, "q", ONNX_F32, dims, 4);
    add_input(&graph, "k", ONNX_F32, dims, 4);
    add_input(&graph, "v", ONNX_F32, dims, 4);
    writer tensor = make_tensor("number", ONNX_F32, NULL, 0, &number, sizeof number);
    write_message(&graph, GRAPH_INITIALIZER_FIELD, &tensor);
    add_transpose(&graph, "Transpose q > queries", heads_first);
    add_transpose(&graph, "Transpose k > keys", keys_last);
    add_transpose(&graph, "Transpose v > values", heads_first);
    add_text(&graph, "MatMul queries keys > products");
    add_text(&graph, "Mul products number > scores");
    add_text(&graph, "Softmax scores > weights");
    add_text(&graph, "MatMul weights values > sums");
    add_transpose(&graph, "Transpose sums > y", heads_first);
    add_output(&graph, "y");
    if (has_weights) add_output(&graph, "weights");
    return make_model(&graph, 17);
}

static writer make_product(int64_t rows, int64_t depth, int64_t columns)
{
    writer graph = {0};
    add_input(&graph, "a", ONNX_F32, (const int64_t[]){rows, depth}, 2);
    add_input(&graph, "b", ONNX_F32, (const int64_t[]){depth, columns}, 2);
    add_text(&graph, "MatMul a b > y");
    add_output(&graph, "y");
    return make_model(&graph, 17);
}

static sp_model load(const writer *file, sp_device device, sp_precision precision)
{
    sp_model model = {0};
    const sp_model_options options = {.device = device, .precision = precision};
    CHECK_OK(sp_model_load_from_memory(file->bytes, file->len, &options, &model));
    return model;
}

/* ---- runs ---- */

static float *memory_of(uint64_t bytes)
{
    float *memory = sp_malloc((size_t)bytes);
    if (memory == NULL) abort();
    return memory;
}

static sp_host_tensor input_of(float *data, const sp_shape *shape)
{
    sp_host_tensor x = {.data = data, .dtype = SP_F32, .rank = shape->rank};
    x.bytes = sp__shape_count(shape) * sizeof *data;
    memcpy(x.shape, shape->dims, sizeof x.shape);
    return x;
}

/* y of `count` images from `first` on, which has room for all of them. */
static void run_images(sp_model model, const rounding_sizes *s, float *const *x, int64_t first,
                       int64_t count, uint32_t outputs, float *y)
{
    const int64_t image = s->length * HEADS * s->depth;
    const sp_shape shape = SHAPE(count, s->length, HEADS, s->depth);
    sp_host_tensor in[INPUTS], out[OUTPUTS] = {0};
    for (int i = 0; i < INPUTS; i++) in[i] = input_of(x[i] + first * image, &shape);
    out[0] = (sp_host_tensor){.data = y + first * image,
                              .capacity = (uint64_t)(count * image) * sizeof *y};
    REQUIRE_OK(sp_model_run(model, in, INPUTS, out, outputs));
    if (outputs > 1) sp_host_tensor_free(&out[1]);
}

static float *make_floats(data_random *random, int64_t count)
{
    float *x = memory_of((uint64_t)count * sizeof *x);
    data_fill(random, x, (size_t)count);
    return x;
}

static void check_precision(sp_device device, const rounding_sizes *s, sp_precision precision,
                            float *const *x, const float *want)
{
    const int64_t image = s->length * HEADS * s->depth, count = IMAGES * image;
    const uint64_t bytes = (uint64_t)count * sizeof(float);
    writer fused_file = make_attention(s, false), step_file = make_attention(s, true);
    const sp_model fused = load(&fused_file, device, precision);
    const sp_model steps = load(&step_file, device, precision);
    float *got = memory_of(bytes), *of_steps = memory_of(bytes);
    run_images(fused, s, x, 0, IMAGES, 1, got);
    run_images(steps, s, x, 0, IMAGES, 2, of_steps);
    CHECK(model_info_of(fused).step_count < model_info_of(steps).step_count);
    CHECK_EQ_MEM(got, of_steps, bytes);
    const double difference = precision_difference(got, want, (uint64_t)count);
    if (precision == SP_PRECISION_TF32) CHECK(difference == 0);
    else CHECK(difference > 0 && difference < precision_bound(precision));
    for (int64_t i = 0; i < IMAGES; i++) run_images(fused, s, x, i, 1, 1, of_steps);
    CHECK_EQ_MEM(of_steps, got, bytes);
    CHECK_OK(sp_model_release(fused));
    CHECK_OK(sp_model_release(steps));
    writer_free(&fused_file);
    writer_free(&step_file);
    sp_free(got);
    sp_free(of_steps);
}

void rounding_check_attention(sp_device device, const rounding_sizes *sizes)
{
    const int64_t count = IMAGES * sizes->length * HEADS * sizes->depth;
    data_random random = {(uint64_t)(sizes->length + sizes->depth)};
    float *x[INPUTS], *want = memory_of((uint64_t)count * sizeof *want);
    for (int i = 0; i < INPUTS; i++) x[i] = make_floats(&random, count);
    writer file = make_attention(sizes, false);
    const sp_model plain = load(&file, device, SP_PRECISION_DEFAULT);
    run_images(plain, sizes, x, 0, IMAGES, 1, want);
    CHECK_OK(sp_model_release(plain));
    writer_free(&file);
    for (size_t i = 0; i < SP_COUNT_OF(precisions); i++) {
        check_precision(device, sizes, precisions[i], x, want);
    }
    for (int i = 0; i < INPUTS; i++) sp_free(x[i]);
    sp_free(want);
}

/* ---- products ---- */

static float *make_integers(data_random *random, int64_t count)
{
    float *x = make_floats(random, count);
    for (int64_t i = 0; i < count; i++) x[i] = (float)((int64_t)(data_next(random) >> 40) % 5 - 2);
    return x;
}

static float *run_product(const writer *file, sp_device device, sp_precision precision,
                          const sp_host_tensor in[2], uint64_t bytes)
{
    const sp_model model = load(file, device, precision);
    float *y = memory_of(bytes);
    sp_host_tensor out = {.data = y, .capacity = bytes};
    CHECK_OK(sp_model_run(model, in, 2, &out, 1));
    CHECK_OK(sp_model_release(model));
    return y;
}

void rounding_check_product(sp_device device, int64_t rows, int64_t depth, int64_t columns)
{
    data_random random = {(uint64_t)(rows * depth + columns)};
    float *a = make_integers(&random, rows * depth), *b = make_integers(&random, depth * columns);
    const sp_shape of_a = SHAPE(rows, depth), of_b = SHAPE(depth, columns);
    const sp_host_tensor in[] = {input_of(a, &of_a), input_of(b, &of_b)};
    const uint64_t bytes = (uint64_t)(rows * columns) * sizeof(float);
    writer file = make_product(rows, depth, columns);
    float *want = run_product(&file, (sp_device){0}, SP_PRECISION_DEFAULT, in, bytes);
    for (size_t i = 0; i < SP_COUNT_OF(precisions); i++) {
        float *got = run_product(&file, device, precisions[i], in, bytes);
        CHECK_EQ_MEM(got, want, bytes);
        sp_free(got);
    }
    sp_free(want);
    sp_free(a);
    sp_free(b);
    writer_free(&file);
}
