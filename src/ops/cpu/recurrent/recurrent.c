/* SPDX-License-Identifier: Apache-2.0 */
/* LSTM, GRU and RNN after the products of the input, which a gemm has computed: a tile computes all
 * steps of one direction for a few rows of the batch. The product of a step is the gemm's
 * sum over the hidden units. A gate is then (x's product + its bias) + (h's product +
 * its bias), each sum rounded; rows are independent. */
#include "base/error.h"
#include "ops/cpu/arch/float_functions.h"
#include "ops/cpu/gemm/gemm_block.h"
#include "ops/cpu/recurrent/cell_rows.h"

enum { PANEL = SP_GEMM_PANEL };

/* One direction of a layer. Scratch of a row: h, two vectors for the cell, then the gates. */
typedef struct layer {
    const sp_recurrent_constants *k;
    const float *x, *bias, *panels, *h, *c, *peepholes;
    const int32_t *lengths;
    float *scratch, *y, *last_h, *last_c;
    const sp_cell_activation *functions;
    int64_t direction, width; /* width: gates * hidden */
    int64_t panel;            /* the first panel of this direction ... */
    int64_t skip;             /* ... and its columns of another direction */
    bool is_backwards;
} layer;

static void *binding_next(void *const **next, bool is_there)
{
    return is_there ? *(*next)++ : NULL;
}

static layer open_layer(const sp_tile *tile)
{
    const sp_recurrent_constants *k = tile->constants;
    const int64_t d = tile->index[1];
    void *const *next = tile->bindings;
    layer l = {.k = k, .direction = d, .width = k->gates * k->hidden};
    l.x = (const float *)binding_next(&next, true) + d * k->x_direction;
    l.bias = binding_next(&next, k->has_bias);
    l.panels = binding_next(&next, true);
    l.lengths = binding_next(&next, k->has_lengths);
    l.h = binding_next(&next, k->has_h);
    l.c = binding_next(&next, k->has_c);
    l.peepholes = binding_next(&next, k->has_peepholes);
    l.scratch = binding_next(&next, true);
    l.y = (float *)binding_next(&next, true) + d * k->y_direction;
    l.last_h = binding_next(&next, k->has_last_h);
    l.last_c = binding_next(&next, k->has_last_c);
    if (l.bias) l.bias += d * 2 * l.width;
    if (l.peepholes) l.peepholes += d * 3 * k->hidden;
    l.functions = k->functions[d];
    l.panel = d * l.width / PANEL;
    l.skip = d * l.width % PANEL;
    l.is_backwards = d == 1 || k->is_backwards;
    return l;
}

/* ---- the parts of a row's scratch ---- */

static float *row_h(const layer *l, int64_t row)
{
    return l->scratch + (l->direction * l->k->rows + row) * l->k->scratch_row;
}

/* LSTM: the cell. GRU: the left-hand side of h's last product. */
static float *row_c(const layer *l, int64_t row)
{
    return row_h(l, row) + l->k->hidden;
}

static float *row_z(const layer *l, int64_t row)
{
    return row_h(l, row) + 2 * l->k->hidden;
}

static float *row_gates(const layer *l, int64_t row)
{
    return row_h(l, row) + 3 * l->k->hidden + l->skip;
}

/* ---- the product of a step ---- */

/* The rows of a product, from `a` on, and its results. */
typedef struct product_rows {
    const layer *l;
    const float *a;
    float *gates;
} product_rows;

static SP_ALWAYS_INLINE void multiply_block(const void *of, const int64_t rows,
                                            const int64_t panels, int64_t panel)
{
    const product_rows *p = of;
    const layer *l = p->l;
    const int64_t stride = l->k->scratch_row, hidden = l->k->hidden;
    const int64_t vectors = panels * SP_PANEL_VECTORS;
    sp_vector sum[SP_BLOCK_MAX_VECTORS];
    sp_gemm_sums(rows, panels, p->a, stride, 1, l->panels + (l->panel + panel) * PANEL * hidden,
                 PANEL, PANEL * hidden, hidden, sum);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t v = 0; v < vectors; v++) {
            sp_vector_store(p->gates + r * stride + panel * PANEL + v * SP_VECTOR,
                            sum[r * vectors + v]);
        }
    }
}

static SP_ALWAYS_INLINE void multiply_rows(const layer *l, const int64_t rows, const float *a,
                                           float *gates, int64_t panel, int64_t end)
{
    const product_rows of = {l, a, gates};
    sp_gemm_each_block(rows, panel, end, &of, multiply_block);
}

/* Products of gates [first, last) of `rows` rows from `row` on; other gates in the same panels
 * change, too. The left-hand side is h, or row_c. */
static void multiply_gates(const layer *l, int64_t row, int64_t rows, bool is_of_h, int64_t first,
                           int64_t last)
{
    const int64_t begin = (l->skip + first) / PANEL;
    const int64_t end = (l->skip + last + PANEL - 1) / PANEL;
    const float *a = is_of_h ? row_h(l, row) : row_c(l, row);
    float *gates = row_gates(l, row) - l->skip;
    switch (rows) {
    case 1:
        multiply_rows(l, 1, a, gates, begin, end);
        break;
    case 2:
        multiply_rows(l, 2, a, gates, begin, end);
        break;
    case 3:
        multiply_rows(l, 3, a, gates, begin, end);
        break;
    default:
        multiply_rows(l, SP_CELL_ROWS, a, gates, begin, end);
        break;
    }
}

/* ---- activations ---- */

#define APPLY(expression)                                                                          \
    SP_INDEPENDENT for (int64_t i = 0; i < n; i++) to[i] = expression;                             \
    break

static void activate_gates(const sp_cell_activation *f, const float *from, float *to, int64_t n)
{
    const float alpha = f->alpha, beta = f->beta;
    switch (f->function) {
    case SP_CELL_SIGMOID:
        APPLY(sp_sigmoidf(from[i]));
    case SP_CELL_TANH:
        APPLY(sp_tanhf(from[i]));
    case SP_CELL_RELU:
        APPLY(sp_reluf(from[i]));
    case SP_CELL_AFFINE:
        APPLY(alpha * from[i] + beta);
    case SP_CELL_LEAKY_RELU:
        APPLY(sp_leaky_relu_f32(from[i], alpha, beta));
    case SP_CELL_THRESHOLDED_RELU:
        APPLY(sp_thresholded_relu_f32(from[i], alpha, beta));
    case SP_CELL_SCALED_TANH:
        APPLY(alpha * sp_tanhf(beta * from[i]));
    case SP_CELL_HARD_SIGMOID:
        APPLY(sp_hard_sigmoid_f32(from[i], alpha, beta));
    default:
        APPLY(sp_softsign_f32(from[i]));
    }
}

static void clip_gates(const layer *l, float *gates, int64_t n)
{
    if (!l->k->clips) return;
    const float most = l->k->clip;
    for (int64_t i = 0; i < n; i++) {
        gates[i] = gates[i] > most ? most : gates[i] < -most ? -most : gates[i];
    }
}

/* Gates [first, last): the sums before the activations. */
static void add_inputs(const layer *l, const float *x, float *gates, int64_t first, int64_t last)
{
    const float *of_x = l->bias, *of_h = l->bias ? l->bias + l->width : NULL;
    if (l->bias) {
        SP_INDEPENDENT for (int64_t i = first; i < last; i++)
        {
            gates[i] = (x[i] + of_x[i]) + (gates[i] + of_h[i]);
        }
    } else {
        SP_INDEPENDENT for (int64_t i = first; i < last; i++) gates[i] = x[i] + gates[i];
    }
}

static void add_peephole(const float *weights, const float *c, float *gates, int64_t n)
{
    SP_INDEPENDENT for (int64_t i = 0; i < n; i++) gates[i] = gates[i] + weights[i] * c[i];
}

/* ---- cells: x is the row's products at this step ---- */

static void lstm_cell(const layer *l, int64_t row, const float *x)
{
    const int64_t n = l->k->hidden;
    float *h = row_h(l, row), *c = row_c(l, row), *gates = row_gates(l, row);
    float *in = gates, *out = gates + n, *forget = gates + 2 * n, *cell = gates + 3 * n;
    add_inputs(l, x, gates, 0, l->width);
    if (l->peepholes) {
        add_peephole(l->peepholes, c, in, n);
        add_peephole(l->peepholes + 2 * n, c, forget, n);
    }
    clip_gates(l, in, n);
    clip_gates(l, forget, 2 * n);
    activate_gates(&l->functions[0], in, in, n);
    activate_gates(&l->functions[0], forget, forget, n);
    activate_gates(&l->functions[1], cell, cell, n);
    if (l->k->couples_gates) {
        for (int64_t i = 0; i < n; i++) forget[i] = 1.0f - in[i];
    }
    SP_INDEPENDENT for (int64_t i = 0; i < n; i++)
    {
        c[i] = sp_canonical(forget[i] * c[i] + in[i] * cell[i]);
    }
    if (l->peepholes) add_peephole(l->peepholes + n, c, out, n);
    clip_gates(l, out, n);
    activate_gates(&l->functions[0], out, out, n);
    activate_gates(&l->functions[2], c, cell, n);
    SP_INDEPENDENT for (int64_t i = 0; i < n; i++) h[i] = sp_canonical(out[i] * cell[i]);
}

/* The gates that do not depend on the reset gate: update and reset. */
static void gru_gates(const layer *l, int64_t row, const float *x)
{
    const int64_t n = l->k->hidden;
    float *h = row_h(l, row), *of = row_c(l, row), *z = row_z(l, row), *gates = row_gates(l, row);
    add_inputs(l, x, gates, 0, 2 * n);
    clip_gates(l, gates, 2 * n);
    activate_gates(&l->functions[0], gates, z, n);
    activate_gates(&l->functions[0], gates + n, gates + n, n);
    if (l->k->resets_after) {
        const float *bias = l->bias ? l->bias + l->width + 2 * n : NULL;
        for (int64_t i = 0; i < n; i++) {
            const float product = gates[2 * n + i];
            gates[2 * n + i] = gates[n + i] * (bias ? product + bias[i] : product);
        }
    } else {
        for (int64_t i = 0; i < n; i++) of[i] = gates[n + i] * h[i];
    }
}

static void gru_cell(const layer *l, int64_t row, const float *x)
{
    const int64_t n = l->k->hidden;
    float *h = row_h(l, row), *z = row_z(l, row), *hidden = row_gates(l, row) + 2 * n;
    if (l->k->resets_after) {
        const float *bias = l->bias ? l->bias + 2 * n : NULL;
        for (int64_t i = 0; i < n; i++) {
            hidden[i] = (bias ? x[2 * n + i] + bias[i] : x[2 * n + i]) + hidden[i];
        }
    } else {
        add_inputs(l, x, row_gates(l, row), 2 * n, 3 * n);
    }
    clip_gates(l, hidden, n);
    activate_gates(&l->functions[1], hidden, hidden, n);
    SP_INDEPENDENT for (int64_t i = 0; i < n; i++)
    {
        h[i] = sp_canonical((1.0f - z[i]) * hidden[i] + z[i] * h[i]);
    }
}

static void rnn_cell(const layer *l, int64_t row, const float *x)
{
    const int64_t n = l->k->hidden;
    float *h = row_h(l, row), *gates = row_gates(l, row);
    add_inputs(l, x, gates, 0, n);
    clip_gates(l, gates, n);
    activate_gates(&l->functions[0], gates, gates, n);
    for (int64_t i = 0; i < n; i++) h[i] = sp_canonical(gates[i]);
}

/* ---- the sequence ---- */

typedef enum cell_kind { LSTM, GRU, RNN } cell_kind;

static void copy_state(float *to, const float *from, int64_t n)
{
    if (from) memcpy(to, from, (size_t)n * sizeof(float));
    else memset(to, 0, (size_t)n * sizeof(float));
}

static int64_t state_at(const layer *l, int64_t row)
{
    return l->direction * l->k->state_direction + row * l->k->state_row;
}

static int64_t row_length(const layer *l, int64_t row)
{
    return l->lengths ? l->lengths[row] : l->k->steps;
}

/* The row's products at step `step` in its direction. */
static const float *input_at(const layer *l, int64_t row, int64_t step)
{
    const int64_t at = l->is_backwards ? row_length(l, row) - 1 - step : step;
    return l->x + at * l->k->x_step + row * l->k->x_row;
}

static void store_step(const layer *l, int64_t row, int64_t step)
{
    const int64_t length = row_length(l, row), n = l->k->hidden;
    const bool is_over = step >= length; /* zeros after the sequence */
    const int64_t at = is_over || !l->is_backwards ? step : length - 1 - step;
    float *y = l->y + at * l->k->y_step + row * l->k->y_row;
    copy_state(y, is_over ? NULL : row_h(l, row), n);
}

static SP_ALWAYS_INLINE void run_step(const layer *l, int64_t first, int64_t rows, int64_t step,
                                      const cell_kind kind)
{
    const int64_t n = l->k->hidden;
    const bool is_late = kind == GRU && !l->k->resets_after;
    multiply_gates(l, first, rows, true, 0, is_late ? 2 * n : l->width);
    for (int64_t row = first; row < first + rows && kind == GRU; row++) {
        if (step < row_length(l, row)) gru_gates(l, row, input_at(l, row, step));
    }
    if (is_late) multiply_gates(l, first, rows, false, 2 * n, 3 * n);
    for (int64_t row = first; row < first + rows; row++) {
        if (step < row_length(l, row)) {
            const float *x = input_at(l, row, step);
            if (kind == LSTM) lstm_cell(l, row, x);
            if (kind == GRU) gru_cell(l, row, x);
            if (kind == RNN) rnn_cell(l, row, x);
        }
        store_step(l, row, step);
    }
}

static SP_ALWAYS_INLINE sp_status run_layer(const sp_tile *tile, const cell_kind kind)
{
    const layer l = open_layer(tile);
    const sp_recurrent_constants *k = l.k;
    const int64_t first = sp_tile_first(tile, 0), rows = sp_tile_end(tile, 0, k->rows) - first;
    for (int64_t row = first; row < first + rows; row++) {
        const int64_t length = row_length(&l, row), at = state_at(&l, row);
        if (length < 0 || length > k->steps) {
            return sp__fail(SP_INVALID, "a sequence of length %lld; the longest has %lld",
                            (long long)length, (long long)k->steps);
        }
        copy_state(row_h(&l, row), l.h ? l.h + at : NULL, k->hidden);
        copy_state(row_c(&l, row), l.c ? l.c + at : NULL, k->hidden);
    }
    for (int64_t step = 0; step < k->steps; step++) run_step(&l, first, rows, step, kind);
    for (int64_t row = first; row < first + rows; row++) {
        const int64_t at = state_at(&l, row);
        if (l.last_h) copy_state(l.last_h + at, row_h(&l, row), k->hidden);
        if (l.last_c) copy_state(l.last_c + at, row_c(&l, row), k->hidden);
    }
    return SP_OK;
}

sp_status SP_KERNEL(lstm_f32)(const sp_tile *tile)
{
    return run_layer(tile, LSTM);
}

sp_status SP_KERNEL(gru_f32)(const sp_tile *tile)
{
    return run_layer(tile, GRU);
}

sp_status SP_KERNEL(rnn_f32)(const sp_tile *tile)
{
    return run_layer(tile, RNN);
}
