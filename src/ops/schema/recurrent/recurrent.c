/* SPDX-License-Identifier: Apache-2.0 */
/* LSTM, GRU and RNN: one product of the whole input with the input weights of all directions, then
 * one dispatch that runs the steps (docs/decisions/0019). */
#include <inttypes.h>

#include "base/error.h"
#include "base/macros.h"
#include "base/size.h"
#include "ops/ops.h"

enum {
    INPUT_W = 1,
    INPUT_R = 2,
    INPUT_BIAS = 3,
    INPUT_LENGTHS = 4,
    INPUT_H = 5,
    INPUT_C = 6,
    INPUT_PEEPHOLES = 7
};

typedef struct recurrent_kind {
    sp_kernel_id kernel;
    int64_t gates;
    uint32_t functions;
    const char *defaults[SP_CELL_MAX_FUNCTIONS];
} recurrent_kind;

static const recurrent_kind lstm = {SP_KERNEL_ID_lstm_f32, 4, 3, {"Sigmoid", "Tanh", "Tanh"}};
static const recurrent_kind gru = {SP_KERNEL_ID_gru_f32, 3, 2, {"Sigmoid", "Tanh"}};
static const recurrent_kind rnn = {SP_KERNEL_ID_rnn_f32, 1, 1, {"Tanh"}};

static const recurrent_kind *kind_of(const sp_op_call *call)
{
    return call->op->name[0] == 'L' ? &lstm : call->op->name[0] == 'G' ? &gru : &rnn;
}

/* The sizes of a call. */
typedef struct recurrent_sizes {
    int64_t steps, rows, input, hidden, directions;
    bool is_row_first; /* layout 1 */
    bool is_backwards;
} recurrent_sizes;

/* ---- shapes ---- */

static sp_status check_shape(const sp_op_call *call, uint32_t index, sp_dtype dtype,
                             const sp_shape *wanted)
{
    if (!sp__op_has_input(call, index)) return SP_OK;
    const sp_op_value *input = &call->inputs[index];
    if (sp__shape_equal(&input->shape, wanted) && input->dtype == dtype) return SP_OK;
    return sp__fail(SP_MISMATCH, "input %" PRIu32 " is %s of shape %s; expected %s of shape %s",
                    index, sp_dtype_name(input->dtype), sp__shape_print(&input->shape).text,
                    sp_dtype_name(dtype), sp__shape_print(wanted).text);
}

static sp_status read_direction(const sp_op_call *call, recurrent_sizes *out)
{
    const sp_text text = sp__attribute_text(call->attributes, "direction", "forward");
    out->directions = 1;
    if (sp__text_is(text, "forward")) return SP_OK;
    if (sp__text_is(text, "reverse")) {
        out->is_backwards = true;
        return SP_OK;
    }
    out->directions = 2;
    if (sp__text_is(text, "bidirectional")) return SP_OK;
    return sp__fail(SP_CORRUPT, "unknown direction '%s'", sp__text_print(text).text);
}

static sp_shape shape2(int64_t a, int64_t b)
{
    return (sp_shape){.rank = 2, .dims = {a, b}};
}

static sp_shape shape3(int64_t a, int64_t b, int64_t c)
{
    return (sp_shape){.rank = 3, .dims = {a, b, c}};
}

/* The shape of h and c, initial and last. */
static sp_shape state_shape(const recurrent_sizes *s)
{
    return s->is_row_first ? shape3(s->rows, s->directions, s->hidden)
                           : shape3(s->directions, s->rows, s->hidden);
}

static sp_status read_sizes(const sp_op_call *call, recurrent_sizes *out)
{
    const sp_shape *x = &call->inputs[0].shape, *r = &call->inputs[INPUT_R].shape;
    *out = (recurrent_sizes){.is_row_first = sp__attribute_int(call->attributes, "layout", 0) != 0};
    SP_TRY(read_direction(call, out));
    if (x->rank != 3 || r->rank != 3 || r->dims[2] < 1) {
        return sp__fail(SP_MISMATCH,
                        "an input of shape %s does not fit recurrent weights of shape %s",
                        sp__shape_print(x).text, sp__shape_print(r).text);
    }
    out->steps = x->dims[out->is_row_first ? 1 : 0];
    out->rows = x->dims[out->is_row_first ? 0 : 1];
    out->input = x->dims[2];
    out->hidden = r->dims[2];
    const int64_t hidden = sp__attribute_int(call->attributes, "hidden_size", out->hidden);
    if (hidden == out->hidden) return SP_OK;
    return sp__fail(SP_MISMATCH, "hidden_size is %" PRId64 "; the recurrent weights have shape %s",
                    hidden, sp__shape_print(r).text);
}

static sp_status check_inputs(const sp_op_call *call, const recurrent_sizes *s)
{
    const int64_t gates = kind_of(call)->gates * s->hidden, d = s->directions;
    const sp_shape w = shape3(d, gates, s->input), r = shape3(d, gates, s->hidden);
    const sp_shape bias = shape2(d, 2 * gates), state = state_shape(s);
    const sp_shape lengths = {.rank = 1, .dims = {s->rows}}, p = shape2(d, 3 * s->hidden);
    SP_TRY(check_shape(call, INPUT_W, SP_F32, &w));
    SP_TRY(check_shape(call, INPUT_R, SP_F32, &r));
    SP_TRY(check_shape(call, INPUT_BIAS, SP_F32, &bias));
    SP_TRY(check_shape(call, INPUT_LENGTHS, SP_I32, &lengths));
    SP_TRY(check_shape(call, INPUT_H, SP_F32, &state));
    SP_TRY(check_shape(call, INPUT_C, SP_F32, &state));
    return check_shape(call, INPUT_PEEPHOLES, SP_F32, &p);
}

/* ---- activations ---- */

typedef struct cell_function {
    const char *name;
    sp_cell_function function;
    float alpha, beta; /* defaults */
} cell_function;

static const cell_function cell_functions[] = {
    {"Sigmoid", SP_CELL_SIGMOID, 0, 0},
    {"Tanh", SP_CELL_TANH, 0, 0},
    {"Relu", SP_CELL_RELU, 0, 0},
    {"Affine", SP_CELL_AFFINE, 1, 0},
    {"LeakyRelu", SP_CELL_LEAKY_RELU, 0.01f, 0},
    {"ThresholdedRelu", SP_CELL_THRESHOLDED_RELU, 1, 0},
    {"ScaledTanh", SP_CELL_SCALED_TANH, 1, 1},
    {"HardSigmoid", SP_CELL_HARD_SIGMOID, 0.2f, 0.5f},
    {"Softsign", SP_CELL_SOFTSIGN, 0, 0},
};

/* Names are compared without case, which ONNX does not define. */
static bool is_name(sp_text text, const char *name)
{
    if (text.len != strlen(name)) return false;
    for (size_t i = 0; i < text.len; i++) {
        const char a = text.ptr[i], b = name[i];
        const char low_a = a >= 'A' && a <= 'Z' ? (char)(a + 32) : a;
        const char low_b = b >= 'A' && b <= 'Z' ? (char)(b + 32) : b;
        if (low_a != low_b) return false;
    }
    return true;
}

/* Values are listed in the order of the functions; those without the parameter have none. */
static float next_value(const sp_attribute *values, uint32_t *next, float fallback, bool takes)
{
    if (!takes || !values || *next >= values->count) return fallback;
    return values->as.floats[(*next)++];
}

static sp_status read_activations(const sp_op_call *call, const recurrent_sizes *s,
                                  sp_cell_activation out[2][SP_CELL_MAX_FUNCTIONS])
{
    const recurrent_kind *kind = kind_of(call);
    const sp_attribute *names = sp__attribute_find(call->attributes, "activations");
    const sp_attribute *alphas = sp__attribute_find(call->attributes, "activation_alpha");
    const sp_attribute *betas = sp__attribute_find(call->attributes, "activation_beta");
    const uint32_t wanted = kind->functions * (uint32_t)s->directions;
    uint32_t alpha = 0, beta = 0;
    if (names && names->count != wanted) {
        return sp__fail(SP_MISMATCH, "%" PRIu32 " activations are given; expected %" PRIu32,
                        names->count, wanted);
    }
    for (uint32_t i = 0; i < wanted; i++) {
        const sp_text name =
            names ? names->as.strings[i] : sp__text(kind->defaults[i % kind->functions]);
        const cell_function *found = NULL;
        for (size_t f = 0; f < SP_COUNT_OF(cell_functions) && !found; f++) {
            if (is_name(name, cell_functions[f].name)) found = &cell_functions[f];
        }
        if (!found) {
            return sp__fail(SP_UNSUPPORTED, "activation '%s' is not supported",
                            sp__text_print(name).text);
        }
        const bool takes_beta = found->function == SP_CELL_AFFINE ||
                                found->function == SP_CELL_SCALED_TANH ||
                                found->function == SP_CELL_HARD_SIGMOID;
        const bool takes_alpha = takes_beta || found->function == SP_CELL_LEAKY_RELU ||
                                 found->function == SP_CELL_THRESHOLDED_RELU;
        out[i / kind->functions][i % kind->functions] =
            (sp_cell_activation){.function = found->function,
                                 .alpha = next_value(alphas, &alpha, found->alpha, takes_alpha),
                                 .beta = next_value(betas, &beta, found->beta, takes_beta)};
    }
    return SP_OK;
}

/* The bound on both sides of 0. Not a NaN, with which each comparison would be false. */
static sp_status check_clip(const sp_op_call *call)
{
    const sp_attribute *clip = sp__attribute_find(call->attributes, "clip");
    if (clip == NULL || clip->as.floats[0] >= 0) return SP_OK;
    return sp__fail(SP_CORRUPT, "clip is %g; it has to be a number of 0 or more",
                    (double)clip->as.floats[0]);
}

sp_status sp__recurrent_infer(sp_op_call *call)
{
    recurrent_sizes s;
    sp_cell_activation functions[2][SP_CELL_MAX_FUNCTIONS];
    SP_TRY(read_sizes(call, &s));
    SP_TRY(check_inputs(call, &s));
    SP_TRY(check_clip(call));
    SP_TRY(read_activations(call, &s, functions));
    const sp_shape y = {.rank = 4,
                        .dims = {s.is_row_first ? s.rows : s.steps,
                                 s.is_row_first ? s.steps : s.directions,
                                 s.is_row_first ? s.directions : s.rows, s.hidden}};
    const sp_shape state = state_shape(&s);
    for (uint32_t i = 0; i < call->output_count; i++) {
        sp__op_set_output(call, i, SP_F32, i == 0 ? &y : &state);
    }
    call->depth = (uint64_t)kind_of(call)->gates * (uint64_t)(s.input + s.hidden);
    return SP_OK;
}

/* ---- packing ---- */

/* Input or recurrent weights of all directions, as the right-hand matrix of one product. */
static sp_pack pack_of(const sp_op_call *call, uint32_t index)
{
    const int64_t *dims = call->inputs[index].shape.dims;
    const sp_kernel_id reader = index == INPUT_W ? SP_KERNEL_ID_gemm_f32 : kind_of(call)->kernel;
    return (sp_pack){.format = sp__pack_format_of(reader),
                     .matrix = {.depth = dims[2],
                                .columns = dims[0] * dims[1],
                                .depth_stride = 1,
                                .column_stride = dims[2]}};
}

void sp__recurrent_pack(const sp_op_call *call, uint32_t input, sp_pack *out)
{
    const sp_op_value *weights = &call->inputs[input];
    if (weights->dtype != SP_F32 || weights->shape.rank != 3 || weights->bytes == 0) return;
    *out = pack_of(call, input);
}

/* Packs the input by a dispatch, unless it is a packed constant. */
static sp_status emit_pack(const sp_op_call *call, sp_lowering *lowering, uint32_t index,
                           uint32_t *scratch)
{
    if (call->inputs[index].is_packed) return SP_OK;
    const sp_pack pack = pack_of(call, index);
    return sp__lower_pack(lowering, call, index, &pack, scratch);
}

/* ---- lowering ---- */

/* products[step, row][direction, gate, unit] of the whole input, in a scratch. */
static sp_status emit_products(const sp_op_call *call, sp_lowering *lowering,
                               const recurrent_sizes *s, uint32_t *products)
{
    const sp_pack w = pack_of(call, INPUT_W);
    uint32_t weights = 0;
    SP_TRY(emit_pack(call, lowering, INPUT_W, &weights));
    sp_gemm_constants k = {.rows = s->steps * s->rows,
                           .columns = w.matrix.columns,
                           .depth = s->input,
                           .a_row = s->input,
                           .a_depth = 1,
                           .alpha = 1.0f,
                           .beta = 1.0f,
                           .b_format = (uint8_t)w.format};
    uint64_t bytes;
    if (!sp_size_mul((uint64_t)k.rows, (uint64_t)k.columns * sizeof(float), &bytes)) {
        return sp__fail(SP_EXHAUSTED, "the products of the input are too large");
    }
    *products = sp__lower_scratch(lowering, bytes);
    sp_dispatch *dispatch;
    SP_TRY(sp__lower_dispatch(lowering, SP_KERNEL_ID_gemm_f32, &k, sizeof(k), &dispatch));
    dispatch->multiply_adds = (uint64_t)k.rows * (uint64_t)k.columns * (uint64_t)k.depth;
    sp__lower_bind_input(dispatch, call, 0);
    sp__lower_bind_packed(dispatch, call, lowering, INPUT_W, weights);
    sp__lower_bind_scratch(dispatch, lowering, *products, true);
    return SP_OK;
}

static void set_strides(const recurrent_sizes *s, sp_recurrent_constants *k)
{
    const int64_t width = k->gates * s->hidden, all = s->directions * width, n = s->hidden;
    k->x_direction = width;
    if (s->is_row_first) {
        k->x_step = all;
        k->x_row = s->steps * all;
        k->y_direction = n;
        k->y_step = s->directions * n;
        k->y_row = s->steps * s->directions * n;
        k->state_direction = n;
        k->state_row = s->directions * n;
    } else {
        k->x_step = s->rows * all;
        k->x_row = all;
        k->y_direction = s->rows * n;
        k->y_step = s->directions * s->rows * n;
        k->y_row = n;
        k->state_direction = s->rows * n;
        k->state_row = n;
    }
    /* Three vectors, and the gates with one panel of padding before and after them. */
    k->scratch_row = 3 * n + width + INT64_C(2) * SP_GEMM_PANEL;
}

static sp_status recurrent_constants(const sp_op_call *call, const recurrent_sizes *s,
                                     sp_recurrent_constants *k)
{
    const sp_attribute *clip = sp__attribute_find(call->attributes, "clip");
    *k = (sp_recurrent_constants){
        .steps = s->steps,
        .rows = s->rows,
        .hidden = s->hidden,
        .gates = kind_of(call)->gates,
        .directions = (uint32_t)s->directions,
        .is_backwards = s->is_backwards,
        .has_bias = sp__op_has_input(call, INPUT_BIAS),
        .has_lengths = sp__op_has_input(call, INPUT_LENGTHS),
        .has_h = sp__op_has_input(call, INPUT_H),
        .has_c = sp__op_has_input(call, INPUT_C),
        .has_peepholes = sp__op_has_input(call, INPUT_PEEPHOLES),
        .has_last_h = call->output_count > 1,
        .has_last_c = call->output_count > 2,
        .resets_after = sp__attribute_int(call->attributes, "linear_before_reset", 0) != 0,
        .couples_gates = sp__attribute_int(call->attributes, "input_forget", 0) != 0,
        .clips = clip != NULL,
        .clip = clip ? clip->as.floats[0] : 0};
    set_strides(s, k);
    return read_activations(call, s, k->functions);
}

sp_status sp__recurrent_lower(const sp_op_call *call, sp_lowering *lowering)
{
    recurrent_sizes s;
    sp_recurrent_constants k;
    uint32_t products = 0, weights = 0;
    SP_TRY(read_sizes(call, &s));
    if (s.rows == 0) return SP_OK; /* all outputs are empty */
    SP_TRY(recurrent_constants(call, &s, &k));
    SP_TRY(emit_products(call, lowering, &s, &products));
    SP_TRY(emit_pack(call, lowering, INPUT_R, &weights));
    const uint64_t rows = (uint64_t)s.rows * (uint64_t)s.directions;
    const uint32_t state =
        sp__lower_scratch(lowering, rows * (uint64_t)k.scratch_row * sizeof(float));
    sp_dispatch *dispatch;
    SP_TRY(sp__lower_dispatch(lowering, kind_of(call)->kernel, &k, sizeof(k), &dispatch));
    dispatch->multiply_adds = (uint64_t)(s.steps * k.gates * s.hidden * s.hidden) * rows;
    sp__lower_bind_scratch(dispatch, lowering, products, false);
    if (k.has_bias) sp__lower_bind_input(dispatch, call, INPUT_BIAS);
    sp__lower_bind_packed(dispatch, call, lowering, INPUT_R, weights);
    for (uint32_t i = INPUT_LENGTHS; i <= INPUT_PEEPHOLES; i++) {
        if (sp__op_has_input(call, i)) sp__lower_bind_input(dispatch, call, i);
    }
    sp__lower_bind_scratch(dispatch, lowering, state, true);
    for (uint32_t i = 0; i < call->output_count; i++) sp__lower_bind_output(dispatch, call, i);
    return SP_OK;
}

/* ---- rows ---- */

/* X, the lengths and the initial states have the rows in the same place. */
const char *sp__recurrent_rows(const sp_rows_call *call)
{
    const bool is_row_first = sp__attribute_int(call->many->attributes, "layout", 0) != 0;
    const uint32_t x_axis = is_row_first ? 0 : 1;
    sp_rows_axis rows = {0};
    const char *why = sp__rows_check_sizes(call, 0);
    if (why != NULL) return why;
    for (uint32_t i = 0; i < call->many->input_count; i++) {
        const bool is_state = i == 0 || i == INPUT_LENGTHS || i == INPUT_H || i == INPUT_C;
        const bool is_batched = call->inputs[i].kind == SP_ROWS_BATCHED;
        sp_rows_axis at;
        if (!call->many->inputs[i].is_present) continue;
        if (is_state != is_batched) {
            return is_batched ? "a parameter is batched" : "a state is the same for all rows";
        }
        if (!is_batched) continue;
        const sp_shape *shape = &call->many->inputs[i].shape;
        const bool has_axis = sp__rows_find_axis(shape, call->rows, &call->inputs[i], &at);
        if (!has_axis || at.axis != (i == INPUT_LENGTHS ? 0 : x_axis)) {
            return "the rows are not along the batch axis";
        }
        if (i == 0) rows = at;
        if (at.inner != rows.inner) return "its inputs have their rows in different places";
    }
    for (uint32_t i = 0; i < call->many->output_count; i++) {
        const uint32_t y_axis = is_row_first ? 0 : 2;
        sp__rows_set_axis(call, i, i == 0 ? y_axis : x_axis, &rows);
    }
    return NULL;
}
