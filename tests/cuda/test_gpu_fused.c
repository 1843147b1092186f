/* SPDX-License-Identifier: Apache-2.0 */
/* On a GPU: attention, rows that are kept in registers, running sums, TopK and ScatterND have the
 * bits of the cpu, at sizes around those of their tiles. STREAMPOOL_TEST_DEVICE names another
 * device. Skipped without it. */
#include <streampool/device.h>
#include <streampool/model.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "support/model_data.h"
#include "support/onnx_writer.h"
#include "support/test.h"

enum { ONNX_F32 = 1, ONNX_I64 = 7, MOST = 4 };

static bool open_device(sp_device *out)
{
    const char *name = getenv("STREAMPOOL_TEST_DEVICE");
    return sp_device_open(name != NULL ? name : "cuda:0", out) == SP_OK;
}

/* A graph that is written, and its inputs. */
typedef struct gpu_case {
    writer graph;
    sp_array inputs[MOST];
    uint32_t input_count, output_count;
    data_random random;
} gpu_case;

static void add_floats(gpu_case *c, const char *name, sp_shape shape)
{
    static const float specials[] = {INFINITY, -INFINITY, NAN, -0.0f, 1e-42f};
    add_input(&c->graph, name, ONNX_F32, shape.dims, (int)shape.rank);
    sp_array *x = &c->inputs[c->input_count++];
    *x = data_floats(&c->random, &shape);
    float *values = x->data;
    const uint64_t count = x->bytes / sizeof *values;
    for (uint64_t i = data_next(&c->random) % 2000; i < count; i += 3001) {
        values[i] = specials[data_next(&c->random) % SP_COUNT_OF(specials)];
    }
}

static void add_number(gpu_case *c, const char *name, float value)
{
    writer tensor = make_tensor(name, ONNX_F32, NULL, 0, &value, sizeof value);
    write_message(&c->graph, GRAPH_INITIALIZER_FIELD, &tensor);
}

static void add_ints(gpu_case *c, const char *name, const int64_t *values, sp_shape shape)
{
    int64_t count = 1;
    for (uint32_t i = 0; i < shape.rank; i++) count *= shape.dims[i];
    writer tensor =
        make_tensor(name, ONNX_I64, shape.dims, shape.rank, values, (size_t)count * sizeof *values);
    write_message(&c->graph, GRAPH_INITIALIZER_FIELD, &tensor);
}

static void add_text(gpu_case *c, const char *text)
{
    add_node(&c->graph, make_text_node(text));
}

static void add_result(gpu_case *c, const char *name)
{
    add_output(&c->graph, name);
    c->output_count++;
}

static void add_transpose(gpu_case *c, const char *text, const int64_t order[4])
{
    writer node = make_text_node(text);
    add_attribute_ints(&node, "perm", order, 4);
    add_node(&c->graph, node);
}

static void run(const gpu_case *c, const writer *file, sp_device device, sp_host_tensor *outputs)
{
    const sp_model_options options = {.device = device};
    sp_host_tensor inputs[MOST] = {0};
    sp_model model;
    for (uint32_t i = 0; i < c->input_count; i++) {
        const sp_array *x = &c->inputs[i];
        inputs[i] = (sp_host_tensor){
            .data = x->data, .bytes = x->bytes, .dtype = x->dtype, .rank = x->shape.rank};
        memcpy(inputs[i].shape, x->shape.dims, sizeof inputs[i].shape);
    }
    REQUIRE_OK(sp_model_load_from_memory(file->bytes, file->len, &options, &model));
    CHECK_OK(sp_model_run(model, inputs, c->input_count, outputs, c->output_count));
    CHECK_OK(sp_model_release(model));
}

/* Frees the case. */
static void check(gpu_case *c, sp_device device, const char *what, int64_t a, int64_t b)
{
    writer file = make_model(&c->graph, 17);
    sp_host_tensor want[MOST] = {0}, got[MOST] = {0};
    sp_device cpu;
    CHECK_OK(sp_device_at(0, &cpu));
    run(c, &file, cpu, want);
    run(c, &file, device, got);
    for (uint32_t i = 0; i < c->output_count; i++) {
        CHECK_EQ_U64(got[i].bytes, want[i].bytes);
        const bool is_same = got[i].bytes == want[i].bytes && want[i].data != NULL &&
                             got[i].data != NULL &&
                             memcmp(got[i].data, want[i].data, want[i].bytes) == 0;
        CHECK(is_same);
        if (!is_same) test_note("%s: %lld, %lld", what, (long long)a, (long long)b);
        sp_host_tensor_free(&got[i]);
        sp_host_tensor_free(&want[i]);
    }
    data_free(c->inputs, MOST);
    writer_free(&file);
}

static void check_attention(sp_device device, int64_t images, int64_t length, int64_t depth)
{
    static const int64_t heads_first[] = {0, 2, 1, 3}, keys_last[] = {0, 2, 3, 1};
    gpu_case c = {.random = {(uint64_t)(images + length + depth)}};
    add_floats(&c, "q", SHAPE(images, length, 3, depth));
    add_floats(&c, "k", SHAPE(images, length, 3, depth));
    add_floats(&c, "v", SHAPE(images, length, 3, depth));
    add_floats(&c, "mask", SHAPE(images, 1, 1, length));
    add_number(&c, "number", 0.125f);
    add_transpose(&c, "Transpose q > queries", heads_first);
    add_transpose(&c, "Transpose k > keys", keys_last);
    add_transpose(&c, "Transpose v > values", heads_first);
    add_text(&c, "MatMul queries keys > products");
    add_text(&c, "Mul products number > scaled");
    add_text(&c, "Add scaled mask > scores");
    add_text(&c, "Softmax scores > weights");
    add_text(&c, "MatMul weights values > sums");
    add_transpose(&c, "Transpose sums > y", heads_first);
    add_result(&c, "y");
    check(&c, device, "attention", length, depth);
}

TEST(attention_has_the_bits_of_the_cpu)
{
    static const int64_t lengths[] = {8, 33, 64, 77, 128, 256, 257, 512, 896};
    static const int64_t depths[] = {20, 32, 64, 100, 256};
    sp_device device;
    if (!open_device(&device)) SKIP("no GPU");
    for (size_t i = 0; i < SP_COUNT_OF(lengths) * SP_COUNT_OF(depths); i++) {
        const int64_t length = lengths[i / SP_COUNT_OF(depths)];
        check_attention(device, 1 + (int64_t)i % 3, length, depths[i % SP_COUNT_OF(depths)]);
    }
    CHECK_OK(sp_device_close(device));
}

static void check_rows(sp_device device, int64_t rows, int64_t length)
{
    static const int64_t axis = 1, five[] = {5};
    gpu_case c = {.random = {(uint64_t)(rows + length)}};
    add_floats(&c, "x", SHAPE(rows, length));
    add_floats(&c, "scale", SHAPE(length));
    add_floats(&c, "bias", SHAPE(length));
    add_ints(&c, "axis", &axis, (sp_shape){0});
    add_ints(&c, "count", five, SHAPE(1));
    add_text(&c, "Softmax x > weights");
    add_text(&c, "LayerNormalization x scale bias > norm");
    add_text(&c, "CumSum x axis > sums");
    add_result(&c, "weights");
    add_result(&c, "norm");
    add_result(&c, "sums");
    if (length >= five[0]) {
        add_text(&c, "TopK x count > values indices");
        add_result(&c, "indices");
    }
    check(&c, device, "rows", rows, length);
}

TEST(rows_have_the_bits_of_the_cpu)
{
    static const int64_t lengths[] = {1,   16,  32,  33,   64,   128,  129,  256,  257,
                                      512, 768, 769, 1000, 1024, 1025, 4096, 4097, 9000};
    sp_device device;
    if (!open_device(&device)) SKIP("no GPU");
    for (size_t i = 0; i < SP_COUNT_OF(lengths); i++) {
        check_rows(device, 1, lengths[i]);
        check_rows(device, 37, lengths[i]);
    }
    CHECK_OK(sp_device_close(device));
}

static void check_updates(sp_device device, int64_t count, int64_t slice, const char *reduction)
{
    enum { PLACES = 50 };
    gpu_case c = {.random = {(uint64_t)(count + slice)}};
    int64_t *indices = malloc((size_t)count * sizeof *indices);
    REQUIRE(indices != NULL);
    for (int64_t i = 0; i < count; i++) indices[i] = (int64_t)(data_next(&c.random) % PLACES);
    add_floats(&c, "x", SHAPE(PLACES, slice));
    add_floats(&c, "updates", SHAPE(count, slice));
    add_ints(&c, "indices", indices, SHAPE(count, 1));
    writer node = make_text_node("ScatterND x indices updates > y");
    add_attribute_text(&node, "reduction", reduction);
    add_node(&c.graph, node);
    add_result(&c, "y");
    check(&c, device, reduction, count, slice);
    free(indices);
}

TEST(updates_have_the_bits_of_the_cpu)
{
    static const char *const reductions[] = {"none", "add", "mul"};
    sp_device device;
    if (!open_device(&device)) SKIP("no GPU");
    for (size_t i = 0; i < SP_COUNT_OF(reductions); i++) {
        check_updates(device, 3000, 1, reductions[i]);
        check_updates(device, 300, 700, reductions[i]);
    }
    CHECK_OK(sp_device_close(device));
}

TEST_MAIN
