/* SPDX-License-Identifier: Apache-2.0 */
/* With a precision a row has the same bits in every batch, on the fake driver: what a proof of rows
 * takes for known, which device computes a product, and which products are rounded. */
#include <streampool/stream.h>

#include <math.h>
#include <string.h>

#include "base/heap.h"
#include "base/macros.h"
#include "combining_fixture.h"
#include "fake_cuda.h"
#include "ops/cpu/arch/cpu_isa.h"
#include "ops/cpu/arch/kernels.h"
#include "ops/lowering.h"
#include "partial_fixture.h"
#include "segment_fixture.h"
#include "support/model_data.h"

static const sp_precision precisions[] = {SP_PRECISION_DEFAULT, SP_PRECISION_TF32, SP_PRECISION_F16,
                                          SP_PRECISION_BF16};

static sp_host_tensor matrix(const char *name, float *data, int64_t rows, int64_t columns)
{
    return (sp_host_tensor){.name = name,
                            .data = data,
                            .bytes = (uint64_t)(rows * columns) * sizeof *data,
                            .dtype = SP_F32,
                            .rank = 2,
                            .shape = {rows, columns}};
}

static void add_matrix(writer *graph, const char *name, const float *data, int64_t rows,
                       int64_t columns)
{
    const int64_t dims[] = {rows, columns};
    writer tensor =
        make_tensor(name, ONNX_FLOAT, dims, 2, data, (size_t)(rows * columns) * sizeof *data);
    write_message(graph, GRAPH_INITIALIZER_FIELD, &tensor);
}

static void add_node_with_int(writer *graph, const char *text, const char *attribute, int64_t value)
{
    writer node = make_text_node(text);
    add_attribute_int(&node, attribute, value);
    add_node(graph, node);
}

static sp_model load_graph(writer *graph, const sp_model_options *options)
{
    sp_model model = {0};
    add_output(graph, "y");
    writer file = make_model(graph, 17);
    CHECK_OK(sp_model_load_from_memory(file.bytes, file.len, options, &model));
    writer_free(&file);
    return model;
}

/* ---- what a proof takes for known ---- */

/* y = Concat(x, p), p a product of values that only sizes decide, of one row whatever x has. */
static sp_model joined_model(sp_device device, sp_precision precision, bool has_weights)
{
    static const int64_t x_dims[] = {-1, 4}, one[] = {1, 1}, wide[] = {1, 3};
    static const float weights[] = {1, 2, 3, 4, 5, 6};
    writer graph = {0};
    add_input(&graph, "x", ONNX_FLOAT, x_dims, 2);
    add_matrix(&graph, "w", weights, 2, 3);
    partial_add_ints(&graph, "one", one, 2);
    partial_add_ints(&graph, "wide", wide, 2);
    add_node_with_int(&graph, "Shape x > s", "start", 1);
    add_node_with_int(&graph, "Cast s > f", "to", ONNX_FLOAT);
    add_node(&graph, make_text_node("Reshape f one > g"));
    add_node_with_int(&graph, "Concat g g > pair", "axis", 1);
    add_node_with_int(&graph, "Concat g g > column", "axis", 0);
    add_node(&graph, make_text_node("Expand column wide > right"));
    add_node(&graph, make_text_node(has_weights ? "MatMul pair w > p" : "MatMul pair right > p"));
    add_node_with_int(&graph, "Concat x p > y", "axis", 1);
    const sp_model_options options = {.device = device, .precision = precision};
    return load_graph(&graph, &options);
}

static void check_joined(sp_precision precision, bool has_weights)
{
    const sp_device device = segment_begin();
    const sp_model model = joined_model(device, precision, has_weights);
    float x[4] = {1, 2, 3, 4}, y[7];
    const sp_host_tensor in = matrix("x", x, 1, 4);
    sp_host_tensor out = {.data = y, .capacity = sizeof y};
    sp_model_batching batching = {0};
    CHECK_OK(sp_model_run(model, &in, 1, &out, 1));
    CHECK_OK(sp_model_get_batching(model, &in, 1, 2, &batching, NULL, NULL));
    const uint32_t buckets = combining_build(model);
    CHECK_EQ_INT(batching.is_separable, buckets > 0);
    CHECK(precision != SP_PRECISION_DEFAULT || buckets > 0);
    CHECK_OK(sp_model_release(model));
    segment_end();
}

TEST(a_value_that_a_proof_repeats_is_known_to_the_plan)
{
    for (size_t i = 0; i < SP_COUNT_OF(precisions); i++) {
        check_joined(precisions[i], false);
        check_joined(precisions[i], true);
    }
}

/* y = x * p, p = [1 / n, ...] [1, ...]^T: 1 by exact products for most n, and not by rounded ones.
 */
static sp_model mean_model(sp_device device, sp_precision precision)
{
    static const int64_t x_dims[] = {-1, 4}, one[] = {1}, four[] = {4};
    static const float unit[] = {1};
    writer graph = {0};
    add_input(&graph, "x", ONNX_FLOAT, x_dims, 2);
    partial_add_ints(&graph, "one", one, 1);
    partial_add_ints(&graph, "four", four, 1);
    partial_add_floats(&graph, "unit", unit, 1);
    add_node_with_int(&graph, "Shape x > n", "end", 1);
    add_node_with_int(&graph, "Cast n > f", "to", ONNX_FLOAT);
    add_node(&graph, make_text_node("Div unit f > inverse"));
    add_node_with_int(&graph, "Concat one n > row_shape", "axis", 0);
    add_node_with_int(&graph, "Concat n four > column_shape", "axis", 0);
    add_node(&graph, make_text_node("Expand inverse row_shape > row"));
    add_node(&graph, make_text_node("Expand unit column_shape > column"));
    add_node(&graph, make_text_node("MatMul row column > p"));
    add_node(&graph, make_text_node("Mul x p > y"));
    const sp_model_options options = {.device = device, .precision = precision};
    return load_graph(&graph, &options);
}

TEST(values_that_narrow_products_may_make_of_sizes_keep_runs_apart)
{
    float x[4] = {1, 2, 3, 4};
    const sp_host_tensor in = matrix("x", x, 1, 4);
    for (size_t i = 0; i < SP_COUNT_OF(precisions); i++) {
        const sp_device device = segment_begin();
        const sp_model model = mean_model(device, precisions[i]);
        float y[4];
        sp_host_tensor out = {.data = y, .capacity = sizeof y};
        CHECK_OK(sp_model_run(model, &in, 1, &out, 1));
        CHECK_EQ_MEM(y, x, sizeof y);
        CHECK_EQ_INT(combining_build(model) > 0, precisions[i] == SP_PRECISION_DEFAULT);
        CHECK_OK(sp_model_release(model));
        segment_end();
    }
}

/* ---- where products are computed ---- */

enum { HEAD = 16, KEYS = 20, QUERIES = 12 };

typedef struct attention_case {
    float q[QUERIES * HEAD], k[HEAD * KEYS], v[KEYS * HEAD];
    float all[QUERIES * HEAD], alone[QUERIES * HEAD];
} attention_case;

static sp_model attention_model(sp_device device, sp_precision precision, const char *cpu_ops,
                                bool has_gemm)
{
    static const int64_t q_dims[] = {-1, HEAD}, k_dims[] = {HEAD, KEYS}, v_dims[] = {KEYS, HEAD};
    writer graph = {0};
    add_input(&graph, "q", ONNX_FLOAT, q_dims, 2);
    add_input(&graph, "k", ONNX_FLOAT, k_dims, 2);
    add_input(&graph, "v", ONNX_FLOAT, v_dims, 2);
    add_node(&graph, make_text_node(has_gemm ? "Gemm q k > s" : "MatMul q k > s"));
    add_node(&graph, make_text_node("Softmax s > p"));
    add_node(&graph, make_text_node("MatMul p v > y"));
    const sp_model_options options = {.device = device, .precision = precision, .cpu_ops = cpu_ops};
    return load_graph(&graph, &options);
}

static sp_status run_attention(sp_model model, attention_case *c, int64_t first, int64_t rows,
                               float *y)
{
    const sp_host_tensor in[] = {matrix("q", c->q + first * HEAD, rows, HEAD),
                                 matrix("k", c->k, HEAD, KEYS), matrix("v", c->v, KEYS, HEAD)};
    sp_host_tensor out = {.data = y, .capacity = (uint64_t)(rows * HEAD) * sizeof *y};
    return sp_model_run(model, in, SP_COUNT_OF(in), &out, 1);
}

static void attention_fill(attention_case *c)
{
    data_random random = {6};
    data_fill(&random, c->q, QUERIES * HEAD);
    data_fill(&random, c->k, HEAD * KEYS);
    data_fill(&random, c->v, KEYS * HEAD);
}

static void check_rows(sp_model model)
{
    static attention_case c;
    attention_fill(&c);
    CHECK_OK(run_attention(model, &c, 0, QUERIES, c.all));
    for (int64_t row = 0; row < QUERIES; row++) {
        CHECK_OK(run_attention(model, &c, row, 1, c.alone + row * HEAD));
    }
    CHECK_EQ_MEM(c.all, c.alone, sizeof c.all);
    CHECK_OK(sp_model_release(model));
}

/* Tensor cores have other last bits than the cpu. */
static void multiply_with_other_bits(const uint32_t grid[3], const uint32_t block[3], void **params)
{
    (void)grid, (void)block;
    void *const *bindings = params[0];
    const sp_gemm_constants *k = params[1];
    const sp_kernel *kernel = &sp__cpu_kernels(sp__cpu_isa_selected())[SP_KERNEL_ID_gemm_f32];
    CHECK_OK(sp__kernel_run(kernel, bindings, k));
    uint32_t *y = bindings[k->has_c ? 3 : 2];
    for (int64_t i = 0; i < k->rows * k->columns; i++) y[i] ^= 0x100;
}

static void attend_with_other_bits(const uint32_t grid[3], const uint32_t block[3], void **params)
{
    (void)grid, (void)block;
    void *const *bindings = params[0];
    const sp_attention_constants *k = params[1];
    const sp_kernel *kernel = &sp__cpu_kernels(sp__cpu_isa_selected())[SP_KERNEL_ID_attention_f32];
    CHECK_OK(sp__kernel_run(kernel, bindings, k));
    uint32_t *y = bindings[3];
    for (int i = 0; i < QUERIES * HEAD; i++) y[i] ^= 0x100;
}

/* Of few queries the softmax is a step of its own, of many a part of attention. */
TEST(a_softmax_on_the_cpu_moves_no_rounded_product_there)
{
    static attention_case c;
    attention_fill(&c);
    const sp_device device = segment_begin();
    fake_cuda_register("sp_gemm_rounded_bf16", multiply_with_other_bits);
    fake_cuda_register("sp_attention_rounded_bf16", attend_with_other_bits);
    const sp_model model = attention_model(device, SP_PRECISION_BF16, "Softmax", false);
    const sp_model own = attention_model(device, SP_PRECISION_BF16, "", false);
    CHECK_OK(run_attention(own, &c, 0, QUERIES, c.all));
    CHECK_OK(run_attention(model, &c, 0, QUERIES, c.alone));
    CHECK_EQ_MEM(c.all, c.alone, sizeof c.all);
    CHECK_EQ_U64(model_info_of(model).cpu_step_count, 0);
    CHECK_OK(run_attention(model, &c, 0, 1, c.alone));
    CHECK_EQ_U64(model_info_of(model).cpu_step_count, 1);
    CHECK_OK(sp_model_release(own));
    CHECK_OK(sp_model_release(model));
    segment_end();
}

/* A Gemm of computed values keeps f32, so it is no part of attention that rounds. */
TEST(a_gemm_and_a_matmul_are_not_one_attention)
{
    for (size_t i = 0; i < SP_COUNT_OF(precisions); i++) {
        const sp_device device = segment_begin();
        check_rows(attention_model(device, precisions[i], "", true));
        segment_end();
    }
}

/* ---- a run in a host function ---- */

typedef struct inside {
    sp_model model;
    attention_case *c;
    int64_t rows;
    sp_status status;
} inside;

static void run_inside(void *ctx, sp_status status)
{
    inside *in = ctx;
    CHECK_OK(status);
    in->status = run_attention(in->model, in->c, 0, in->rows, in->c->all);
}

/* Attention in one step, and a product that is a step of its own. */
TEST(rounded_attention_is_refused_in_a_host_function)
{
    static attention_case c;
    static const int64_t rows[] = {QUERIES, 1};
    attention_fill(&c);
    const sp_device device = segment_begin();
    sp_stream stream;
    for (size_t i = 0; i < SP_COUNT_OF(precisions) * SP_COUNT_OF(rows); i++) {
        const sp_precision precision = precisions[i / 2];
        const bool is_rounded = precision == SP_PRECISION_F16 || precision == SP_PRECISION_BF16;
        inside in = {attention_model(device, precision, "", false), &c, rows[i % 2], SP_OK};
        CHECK_OK(run_attention(in.model, &c, 0, in.rows, c.all));
        CHECK_OK(sp_stream_current((sp_device){0}, &stream));
        CHECK_OK(sp_stream_host_function(stream, run_inside, &in));
        CHECK_OK(sp_stream_synchronize(stream));
        CHECK_STATUS(in.status, is_rounded ? SP_UNSUPPORTED : SP_OK);
        CHECK_OK(sp_model_release(in.model));
    }
    segment_end();
}

/* ---- products of depth 1 ---- */

/* Positions by frequencies, computed or constant, as rotary embeddings have them. */
TEST(products_of_depth_one_are_not_rounded)
{
    enum { FREQUENCIES = 4, POSITIONS = 600 };
    static const char *const forms[] = {"MatMul x w > y", "Gemm x w > y", "MatMul x x2 > y"};
    static float x[POSITIONS], w[FREQUENCIES], y[POSITIONS * FREQUENCIES],
        want[POSITIONS * FREQUENCIES];
    static const int64_t x_dims[] = {-1, 1}, w_dims[] = {1, FREQUENCIES};
    for (int i = 0; i < POSITIONS; i++) x[i] = (float)i;
    for (int i = 0; i < FREQUENCIES; i++) w[i] = powf(10000, -(float)i / (float)FREQUENCIES);
    for (size_t i = 0; i < SP_COUNT_OF(forms) * SP_COUNT_OF(precisions); i++) {
        const bool is_computed = i / SP_COUNT_OF(precisions) == 2;
        const sp_device device = segment_begin();
        writer graph = {0};
        add_input(&graph, "x", ONNX_FLOAT, x_dims, 2);
        if (is_computed) add_input(&graph, "x2", ONNX_FLOAT, w_dims, 2);
        else add_matrix(&graph, "w", w, 1, FREQUENCIES);
        add_node(&graph, make_text_node(forms[i / SP_COUNT_OF(precisions)]));
        const sp_model_options options = {.device = device,
                                          .precision = precisions[i % SP_COUNT_OF(precisions)]};
        const sp_model model = load_graph(&graph, &options);
        const sp_host_tensor in[] = {matrix("x", x, POSITIONS, 1), matrix("x2", w, 1, FREQUENCIES)};
        sp_host_tensor out = {.data = y, .capacity = sizeof y};
        CHECK_OK(sp_model_run(model, in, is_computed ? 2 : 1, &out, 1));
        if (i % SP_COUNT_OF(precisions) == 0) memcpy(want, y, sizeof want);
        CHECK_EQ_MEM(y, want, sizeof y);
        CHECK_OK(sp_model_release(model));
        segment_end();
    }
}

TEST_MAIN
