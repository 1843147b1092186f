/* SPDX-License-Identifier: Apache-2.0 */
/* LSTM, GRU and RNN compared with the definition in doubles; bits are independent of the batch, the
 * layout, the other direction and the packing. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "support/model_data.h"
#include "support/test.h"

enum { X, W, R, BIAS, LENGTHS, H, C, PEEPHOLES, INPUTS };

/* A layer with its inputs, in layout 0. */
typedef struct layer {
    const char *op;
    int64_t gates, steps, rows, input, hidden, directions;
    const char *direction;
    int64_t resets_after, couples;
    float clip; /* 0: none */
    sp_array in[INPUTS];
} layer;

static sp_array make(data_random *random, uint32_t rank, int64_t a, int64_t b, int64_t c)
{
    const sp_shape shape = {.rank = rank, .dims = {a, b, c}};
    return data_floats(random, &shape);
}

/* `parts` has a bit for each given optional input. */
static layer make_layer(const char *op, uint64_t seed, int64_t directions, uint32_t parts)
{
    data_random random = {seed};
    const bool is_lstm = op[0] == 'L';
    layer l = {.op = op,
               .gates = is_lstm        ? 4
                        : op[0] == 'G' ? 3
                                       : 1,
               .steps = 1 + (int64_t)(seed % 7),
               .rows = 1 + (int64_t)(seed % 11),
               .input = 1 + (int64_t)(seed % 19),
               .hidden = 1 + (int64_t)(seed % 23),
               .directions = directions,
               .direction = directions == 2 ? "bidirectional"
                            : seed % 2      ? "forward"
                                            : "reverse"};
    const int64_t width = l.gates * l.hidden, d = directions, n = l.hidden;
    l.in[X] = make(&random, 3, l.steps, l.rows, l.input);
    l.in[W] = make(&random, 3, d, width, l.input);
    l.in[R] = make(&random, 3, d, width, n);
    if (parts & 1u << BIAS) l.in[BIAS] = make(&random, 2, d, 2 * width, 0);
    if (parts & 1u << H) l.in[H] = make(&random, 3, d, l.rows, n);
    if (is_lstm && parts & 1u << C) l.in[C] = make(&random, 3, d, l.rows, n);
    if (is_lstm && parts & 1u << PEEPHOLES) l.in[PEEPHOLES] = make(&random, 2, d, 3 * n, 0);
    if (parts & 1u << LENGTHS) {
        const sp_shape shape = {.rank = 1, .dims = {l.rows}};
        if (sp__array_init(&l.in[LENGTHS], SP_I32, &shape) != SP_OK) abort();
        for (int64_t i = 0; i < l.rows; i++) {
            ((int32_t *)l.in[LENGTHS].data)[i] =
                (int32_t)(data_next(&random) % (uint64_t)(l.steps + 1));
        }
    }
    return l;
}

static void free_layer(layer *l)
{
    for (int i = 0; i < INPUTS; i++) sp__array_deinit(&l->in[i]);
}

static sp_status run_layer(const layer *l, int64_t layout, sp_cpu_isa isa, bool packs,
                           sp_array *out)
{
    const bool is_lstm = l->op[0] == 'L';
    const sp_text direction = sp__text(l->direction);
    sp_attribute attributes[6] = {data_attribute_text("direction", &direction),
                                  data_attribute_int("hidden_size", &l->hidden),
                                  data_attribute_int("layout", &layout)};
    uint32_t count = 3;
    if (l->op[0] == 'G') {
        attributes[count++] = data_attribute_int("linear_before_reset", &l->resets_after);
    }
    if (is_lstm) attributes[count++] = data_attribute_int("input_forget", &l->couples);
    if (l->clip != 0) attributes[count++] = data_attribute_float("clip", &l->clip);
    const data_call call = {.op = l->op,
                            .version = 14,
                            .attributes = attributes,
                            .attribute_count = count,
                            .inputs = l->in,
                            .input_count = is_lstm ? 8 : 6,
                            .output_count = is_lstm ? 3 : 2,
                            .isa = isa,
                            .packs = packs};
    return data_run_op(&call, out);
}

/* ---- the definition ---- */

static double number(const layer *l, int input, int64_t index)
{
    return l->in[input].data ? (double)((const float *)l->in[input].data)[index] : 0;
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double clipped(const layer *l, double x)
{
    return l->clip == 0 ? x : fmax(-(double)l->clip, fmin((double)l->clip, x));
}

/* Products of gate column `g` with x and with a state, and their biases. */
static double of_x(const layer *l, int64_t d, int64_t g, int64_t row, int64_t t)
{
    const int64_t width = l->gates * l->hidden;
    double sum = number(l, BIAS, d * 2 * width + g);
    for (int64_t k = 0; k < l->input; k++) {
        sum += number(l, X, (t * l->rows + row) * l->input + k) *
               number(l, W, (d * width + g) * l->input + k);
    }
    return sum;
}

static double of_h(const layer *l, int64_t d, int64_t g, const double *h)
{
    const int64_t width = l->gates * l->hidden;
    double sum = number(l, BIAS, d * 2 * width + width + g);
    for (int64_t k = 0; k < l->hidden; k++) {
        sum += h[k] * number(l, R, (d * width + g) * l->hidden + k);
    }
    return sum;
}

/* A step of one row: updates h and c. */
static void step(const layer *l, int64_t d, int64_t row, int64_t t, double *h, double *c)
{
    const int64_t n = l->hidden, p = d * 3 * n;
    double before[32], reset[32] = {0};
    memcpy(before, h, sizeof(before));
    for (int64_t i = 0; i < n && l->op[0] == 'G'; i++) {
        reset[i] = sigmoid(clipped(l, of_x(l, d, n + i, row, t) + of_h(l, d, n + i, before)));
        reset[i] *= l->resets_after ? 1 : before[i];
    }
    for (int64_t i = 0; i < n; i++) {
        double sums[4] = {0};
        for (int64_t g = 0; g < l->gates; g++) {
            sums[g] = of_x(l, d, g * n + i, row, t) + of_h(l, d, g * n + i, before);
        }
        if (l->op[0] == 'R') h[i] = tanh(clipped(l, sums[0]));
        if (l->op[0] == 'G') {
            const double z = sigmoid(clipped(l, sums[0]));
            const double inner = l->resets_after ? reset[i] * of_h(l, d, 2 * n + i, before)
                                                 : of_h(l, d, 2 * n + i, reset);
            h[i] =
                (1 - z) * tanh(clipped(l, of_x(l, d, 2 * n + i, row, t) + inner)) + z * before[i];
        }
        if (l->op[0] != 'L') continue;
        const double in = sigmoid(clipped(l, sums[0] + number(l, PEEPHOLES, p + i) * c[i]));
        double forget = sigmoid(clipped(l, sums[2] + number(l, PEEPHOLES, p + 2 * n + i) * c[i]));
        if (l->couples) forget = 1 - in;
        c[i] = forget * c[i] + in * tanh(clipped(l, sums[3]));
        h[i] = sigmoid(clipped(l, sums[1] + number(l, PEEPHOLES, p + n + i) * c[i])) * tanh(c[i]);
    }
}

static void check_number(const sp_array *got, int64_t index, double want)
{
    CHECK(fabs((double)((const float *)got->data)[index] - want) < 2e-5);
}

/* A row of one direction through all steps. */
static void check_row(const layer *l, const sp_array *out, int64_t d, int64_t row)
{
    const int64_t n = l->hidden, state = (d * l->rows + row) * n;
    const bool is_backwards = d == 1 || strcmp(l->direction, "reverse") == 0;
    int64_t length = l->steps;
    if (l->in[LENGTHS].data) length = ((const int32_t *)l->in[LENGTHS].data)[row];
    double h[32] = {0}, c[32] = {0};
    for (int64_t i = 0; i < n; i++) {
        h[i] = number(l, H, state + i);
        c[i] = number(l, C, state + i);
    }
    for (int64_t s = 0; s < l->steps; s++) {
        const int64_t t = s < length && is_backwards ? length - 1 - s : s;
        if (s < length) step(l, d, row, t, h, c);
        for (int64_t i = 0; i < n; i++) {
            const int64_t at = ((t * l->directions + d) * l->rows + row) * n + i;
            check_number(&out[0], at, s < length ? h[i] : 0);
        }
    }
    for (int64_t i = 0; i < n; i++) {
        check_number(&out[1], state + i, h[i]);
        if (l->op[0] == 'L') check_number(&out[2], state + i, c[i]);
    }
}

static const char *const ops[] = {"LSTM", "GRU", "RNN"};

static layer nth_layer(uint64_t i)
{
    layer l = make_layer(ops[i % 3], i * 7 + 1, 1 + (int64_t)(i / 3 % 2), (uint32_t)(i * 37));
    l.resets_after = (int64_t)(i / 6 % 2);
    l.couples = (int64_t)(i / 12 % 2);
    l.clip = i % 5 == 0 ? 0.4f : 0;
    return l;
}

TEST(layers_of_every_kind_follow_the_definition)
{
    for (uint64_t i = 0; i < 200; i++) {
        layer l = nth_layer(i);
        sp_array out[3] = {0};
        REQUIRE_OK(run_layer(&l, 0, sp__cpu_isa_selected(), i % 2 != 0, out));
        for (int64_t d = 0; d < l.directions; d++) {
            for (int64_t row = 0; row < l.rows; row++) check_row(&l, out, d, row);
        }
        for (int k = 0; k < 3; k++) sp__array_deinit(&out[k]);
        free_layer(&l);
    }
}

/* ---- bits ---- */

static bool is_same(const sp_array *a, const sp_array *b)
{
    return a->bytes == b->bytes && (a->bytes == 0 || memcmp(a->data, b->data, a->bytes) == 0);
}

TEST(packing_and_instruction_set_change_no_bit)
{
    for (uint64_t i = 0; i < 60; i++) {
        layer l = nth_layer(i);
        sp_array want[3] = {0};
        REQUIRE_OK(run_layer(&l, 0, SP_CPU_PORTABLE, false, want));
        for (int how = 1; how < 4; how++) {
            const sp_cpu_isa isa =
                how < 2 || !sp__cpu_kernels(SP_CPU_AVX2) ? SP_CPU_PORTABLE : SP_CPU_AVX2;
            sp_array got[3] = {0};
            REQUIRE_OK(run_layer(&l, 0, isa, how % 2 != 0, got));
            for (int k = 0; k < 3; k++) {
                CHECK(is_same(&got[k], &want[k]));
                sp__array_deinit(&got[k]);
            }
        }
        for (int k = 0; k < 3; k++) sp__array_deinit(&want[k]);
        free_layer(&l);
    }
}

/* [a, b, c] of `inner` elements to [b, a, c] of them. */
static void swap_first(sp_array *array, int64_t a, int64_t b, int64_t inner)
{
    if (!array->data) return;
    float *copy = malloc((size_t)array->bytes + 1);
    memcpy(copy, array->data, (size_t)array->bytes);
    for (int64_t i = 0; i < a * b; i++) {
        memcpy((float *)array->data + (i % b * a + i / b) * inner, copy + i * inner,
               (size_t)inner * sizeof(float));
    }
    free(copy);
    array->shape.dims[0] = b;
    array->shape.dims[1] = a;
}

TEST(the_layout_changes_no_bit)
{
    for (uint64_t i = 0; i < 60; i++) {
        layer l = nth_layer(i);
        const int64_t d = l.directions, n = l.hidden;
        sp_array want[3] = {0}, got[3] = {0};
        REQUIRE_OK(run_layer(&l, 0, sp__cpu_isa_selected(), false, want));
        swap_first(&l.in[X], l.steps, l.rows, l.input);
        swap_first(&l.in[H], d, l.rows, n);
        swap_first(&l.in[C], d, l.rows, n);
        REQUIRE_OK(run_layer(&l, 1, sp__cpu_isa_selected(), false, got));
        for (int64_t t = 0; t < l.steps; t++) {
            for (int64_t at = 0; at < d * l.rows; at++) {
                const int64_t row = at % l.rows, side = at / l.rows;
                const float *a = (float *)want[0].data + ((t * d + side) * l.rows + row) * n;
                const float *b = (float *)got[0].data + ((row * l.steps + t) * d + side) * n;
                CHECK_EQ_MEM(b, a, (size_t)n * sizeof(float));
            }
        }
        swap_first(&got[1], l.rows, d, n);
        swap_first(&got[2], l.rows, d, n);
        CHECK(is_same(&got[1], &want[1]));
        CHECK(is_same(&got[2], &want[2]));
        for (int k = 0; k < 3; k++) {
            sp__array_deinit(&want[k]);
            sp__array_deinit(&got[k]);
        }
        free_layer(&l);
    }
}

/* The same layer for row `row` alone. */
static layer row_of(const layer *l, int64_t row)
{
    layer one = make_layer(l->op, 1, l->directions, 0);
    free_layer(&one);
    one = *l;
    one.rows = 1;
    const int inputs[] = {X, H, C};
    for (int i = 0; i < 3; i++) {
        const sp_array *from = &l->in[inputs[i]];
        sp_array *to = &one.in[inputs[i]];
        if (!from->data) continue;
        sp_shape shape = from->shape;
        shape.dims[1] = 1;
        if (sp__array_init(to, SP_F32, &shape) != SP_OK) abort();
        const size_t bytes = (size_t)shape.dims[2] * sizeof(float);
        for (int64_t a = 0; a < shape.dims[0]; a++) {
            memcpy((char *)to->data + (size_t)a * bytes,
                   (char *)from->data + (size_t)(a * l->rows + row) * bytes, bytes);
        }
    }
    one.in[LENGTHS].shape.dims[0] = 1;
    one.in[LENGTHS].bytes = l->in[LENGTHS].data ? 4 : 0;
    if (l->in[LENGTHS].data) one.in[LENGTHS].data = (int32_t *)l->in[LENGTHS].data + row;
    return one;
}

TEST(a_row_of_a_batch_has_the_bits_of_the_row_alone)
{
    for (uint64_t i = 0; i < 60; i++) {
        layer l = nth_layer(i);
        const int64_t d = l.directions, n = l.hidden;
        sp_array want[3] = {0}, got[3];
        REQUIRE_OK(run_layer(&l, 0, sp__cpu_isa_selected(), true, want));
        for (int64_t row = 0; row < l.rows; row++) {
            layer one = row_of(&l, row);
            memset(got, 0, sizeof(got));
            REQUIRE_OK(run_layer(&one, 0, sp__cpu_isa_selected(), true, got));
            for (int64_t k = 0; k < l.steps * d; k++) {
                CHECK_EQ_MEM((float *)got[0].data + k * n,
                             (float *)want[0].data + (k * l.rows + row) * n,
                             (size_t)n * sizeof(float));
            }
            for (int k = 0; k < 3; k++) sp__array_deinit(&got[k]);
            const int copied[] = {X, H, C};
            for (int k = 0; k < 3; k++) sp__array_deinit(&one.in[copied[k]]);
        }
        for (int k = 0; k < 3; k++) sp__array_deinit(&want[k]);
        free_layer(&l);
    }
}

/* ---- activations and refusals ---- */

static sp_status run_rnn(layer *l, const sp_attribute *attributes, uint32_t count, sp_array *y)
{
    return data_run("RNN", 14, attributes, count, l->in, 6, y, 1);
}

TEST(activations_take_their_values_in_order)
{
    static const char *const names[] = {"Relu",       "affine",      "LeakyRelu", "ThresholdedRelu",
                                        "ScaledTanh", "HardSigmoid", "Softsign",  "Sigmoid"};
    static const float alpha = 0.5f, beta = 0.25f;
    layer l = make_layer("RNN", 22, 1, 0); /* one step of random products */
    l.steps = 1;
    for (size_t i = 0; i < SP_COUNT_OF(names); i++) {
        const sp_text name = sp__text(names[i]);
        sp_attribute attributes[] = {data_attribute_text("activations", &name),
                                     data_attribute_float("activation_alpha", &alpha),
                                     data_attribute_float("activation_beta", &beta)};
        attributes[0].type = SP_ATTRIBUTE_STRINGS;
        attributes[1].type = attributes[2].type = SP_ATTRIBUTE_FLOATS;
        l.in[X].shape.dims[0] = 1;
        l.in[X].bytes = (uint64_t)(l.rows * l.input) * sizeof(float);
        sp_array y;
        REQUIRE_OK(run_rnn(&l, attributes, 3, &y));
        for (int64_t row = 0; row < l.rows; row++) {
            for (int64_t k = 0; k < l.hidden; k++) {
                const double x = of_x(&l, 0, k, row, 0);
                const double want[] = {fmax(x, 0),           0.5 * x + 0.25,
                                       x < 0 ? 0.5 * x : x,  x > 0.5 ? x : 0,
                                       0.5 * tanh(0.25 * x), fmax(0, fmin(1, 0.5 * x + 0.25)),
                                       x / (1 + fabs(x)),    sigmoid(x)};
                check_number(&y, row * l.hidden + k, want[i]);
            }
        }
        sp__array_deinit(&y);
    }
    free_layer(&l);
}

TEST(layers_that_do_not_fit_are_refused)
{
    const sp_text odd = sp__text("sideways"), softplus = sp__text("Softplus");
    const sp_text two[] = {sp__text("Tanh"), sp__text("Tanh")};
    const int64_t size = 77;
    sp_attribute direction = data_attribute_text("direction", &odd);
    sp_attribute hidden = data_attribute_int("hidden_size", &size);
    sp_attribute activation = data_attribute_text("activations", &softplus);
    activation.type = SP_ATTRIBUTE_STRINGS;
    sp_attribute pair = activation;
    pair.count = 2;
    pair.as.strings = two;
    layer l = make_layer("RNN", 9, 1, 1u << LENGTHS | 1u << H);
    sp_array y;
    CHECK_STATUS(run_rnn(&l, &direction, 1, &y), SP_CORRUPT);
    CHECK_STATUS(run_rnn(&l, &hidden, 1, &y), SP_MISMATCH);
    CHECK_STATUS(run_rnn(&l, &activation, 1, &y), SP_UNSUPPORTED);
    CHECK_MESSAGE("activation 'Softplus' is not supported");
    CHECK_STATUS(run_rnn(&l, &pair, 1, &y), SP_MISMATCH);
    CHECK_MESSAGE("2 activations are given; expected 1");
    const float clips[] = {-0.5f, NAN};
    for (size_t i = 0; i < SP_COUNT_OF(clips); i++) {
        sp_attribute clip = data_attribute_float("clip", &clips[i]);
        CHECK_STATUS(run_rnn(&l, &clip, 1, &y), SP_CORRUPT);
        CHECK_MESSAGE("clip is ");
        CHECK_MESSAGE("a number of 0 or more");
    }
    ((int32_t *)l.in[LENGTHS].data)[0] = (int32_t)l.steps + 1;
    CHECK_STATUS(run_rnn(&l, NULL, 0, &y), SP_INVALID);
    CHECK_MESSAGE("a sequence of length");
    sp__array_deinit(&y);
    ((int32_t *)l.in[LENGTHS].data)[0] = -1;
    CHECK_STATUS(run_rnn(&l, NULL, 0, &y), SP_INVALID);
    sp__array_deinit(&y);
    l.in[H].shape.dims[2]++;
    CHECK_STATUS(run_rnn(&l, NULL, 0, &y), SP_MISMATCH);
    CHECK_MESSAGE("input 5 is f32");
    l.in[R].shape.rank = 2;
    CHECK_STATUS(run_rnn(&l, NULL, 0, &y), SP_MISMATCH);
    l.in[R].shape.rank = 3;
    free_layer(&l);
}

TEST(a_sequence_or_a_batch_may_be_empty)
{
    layer l = make_layer("GRU", 8, 1, 1u << H);
    l.in[X].shape.dims[0] = 0;
    l.in[X].bytes = 0;
    sp_array out[2];
    REQUIRE_OK(data_run("GRU", 14, NULL, 0, l.in, 6, out, 2));
    CHECK_EQ_U64(out[0].bytes, 0);
    CHECK_EQ_MEM(out[1].data, l.in[H].data, (size_t)l.in[H].bytes); /* the state is unchanged */
    for (int k = 0; k < 2; k++) sp__array_deinit(&out[k]);
    l.in[X].shape.dims[1] = l.in[H].shape.dims[1] = 0;
    l.in[H].bytes = 0;
    REQUIRE_OK(data_run("GRU", 14, NULL, 0, l.in, 6, out, 2));
    CHECK_EQ_U64(out[1].bytes, 0);
    for (int k = 0; k < 2; k++) sp__array_deinit(&out[k]);
    free_layer(&l);
}

TEST_MAIN
