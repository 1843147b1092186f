/* SPDX-License-Identifier: Apache-2.0 */
/* Random recurrent layers. */
#include "cuda/kernel_case_parts.h"

static sp_shape shape_3d(int64_t a, int64_t b, int64_t d)
{
    return (sp_shape){.rank = 3, .dims = {a, b, d}};
}

static void add_lengths(kernel_case *c, data_random *random, int64_t rows, int64_t steps)
{
    sp_array *lengths = add_random(c, random, SP_I32, &(sp_shape){.rank = 1, .dims = {rows}});
    for (int64_t i = 0; i < rows; i++) {
        ((int32_t *)lengths->data)[i] = (int32_t)pick(random, 0, steps);
    }
}

static void make_layer(data_random *random, kernel_case *c, const char *op, int64_t gates,
                       bool has_lengths)
{
    const int64_t steps = pick(random, 1, 6), rows = pick(random, 1, 9);
    const int64_t input = pick(random, 1, 20), hidden = pick(random, 1, 40);
    const int64_t directions = pick(random, 1, 2);
    set_op(c, op, 14);
    c->packs = pick(random, 0, 1) == 1;
    add_text(c, "direction", &c->text, directions == 2 ? "bidirectional" : "reverse");
    if (gates == 3) add_int(c, "linear_before_reset", pick(random, 0, 1));
    add_floats(c, random, shape_3d(steps, rows, input));
    add_floats(c, random, shape_3d(directions, gates * hidden, input));
    add_floats(c, random, shape_3d(directions, gates * hidden, hidden));
    if (pick(random, 0, 1)) {
        add_floats(c, random, (sp_shape){.rank = 2, .dims = {directions, 2 * gates * hidden}});
    } else {
        c->input_count++;
    }
    if (has_lengths) add_lengths(c, random, rows, steps);
    else c->input_count++; /* all sequences have full length */
    add_floats(c, random, shape_3d(directions, rows, hidden));
    c->output_count = 2;
    if (gates != 4) return;
    add_floats(c, random, shape_3d(directions, rows, hidden));
    add_floats(c, random, (sp_shape){.rank = 2, .dims = {directions, 3 * hidden}});
    c->output_count = 3;
}

static void make_lstm(data_random *random, kernel_case *c)
{
    make_layer(random, c, "LSTM", 4, false);
}

static void make_gru(data_random *random, kernel_case *c)
{
    make_layer(random, c, "GRU", 3, false);
}

static void make_rnn(data_random *random, kernel_case *c)
{
    make_layer(random, c, "RNN", 1, false);
}

static void make_sequences(data_random *random, kernel_case *c)
{
    static const char *const ops[] = {"LSTM", "GRU", "RNN"};
    static const int64_t gates[] = {4, 3, 1};
    const int64_t op = pick(random, 0, 2);
    make_layer(random, c, ops[op], gates[op], true);
}

/* ---- layers of all forms: sizes around those of teams and panels, either layout, any functions
 * ---- */

/* The functions from a random one on. */
static void add_activations(kernel_case *c, data_random *random, int64_t count)
{
#define NAME(text) {(text), sizeof(text) - 1}
#define NAMES                                                                                      \
    NAME("Sigmoid"), NAME("Tanh"), NAME("Relu"), NAME("Affine"), NAME("LeakyRelu"),                \
        NAME("ThresholdedRelu"), NAME("ScaledTanh"), NAME("HardSigmoid"), NAME("Softsign")
    static const sp_text names[] = {NAMES, NAMES};
#undef NAMES
#undef NAME
    sp_attribute *to = &c->attributes[c->attribute_count++];
    *to = data_attribute_text("activations", &names[pick(random, 0, 8)]);
    to->type = SP_ATTRIBUTE_STRINGS;
    to->count = (uint32_t)count;
}

static int64_t pick_units(data_random *random)
{
    static const int64_t edges[] = {1, 7, 15, 16, 17, 31, 63, 64, 65, 100, 129, 255, 256, 257};
    return one_in(random, 8) ? edges[pick(random, 0, SP_COUNT_OF(edges) - 1)] : pick(random, 1, 40);
}

typedef struct layer_sizes {
    int64_t op, hidden, steps, rows, input;
    bool has_specials; /* NaNs, infinities ... */
} layer_sizes;

static void add_part(kernel_case *c, data_random *random, const layer_sizes *of, sp_shape shape)
{
    if (of->has_specials && one_in(random, 3)) add_random(c, random, SP_F32, &shape);
    else add_floats(c, random, shape);
}

static void add_or_skip(kernel_case *c, data_random *random, const layer_sizes *of, sp_shape shape)
{
    if (one_in(random, 3)) c->input_count++;
    else add_part(c, random, of, shape);
}

static void make_form_of(data_random *random, kernel_case *c, const layer_sizes *of)
{
    static const char *const ops[] = {"RNN", "GRU", "LSTM"};
    static const int64_t gates[] = {1, 3, 4}, functions[] = {1, 2, 3};
    static const char *const directions[] = {"forward", "reverse", "bidirectional"};
    const int64_t op = of->op, hidden = of->hidden, steps = of->steps, rows = of->rows;
    const int64_t way = pick(random, 0, 2), d = way == 2 ? 2 : 1, width = gates[op] * hidden;
    const bool is_row_first = one_in(random, 2);
    const sp_shape state = is_row_first ? shape_3d(rows, d, hidden) : shape_3d(d, rows, hidden);
    set_op(c, ops[op], 14);
    c->packs = one_in(random, 2);
    add_text(c, "direction", &c->text, directions[way]);
    if (is_row_first) add_int(c, "layout", 1);
    if (one_in(random, 2)) add_float(c, "clip", (float)pick(random, 0, 8) / 8);
    if (op == 1) add_int(c, "linear_before_reset", pick(random, 0, 1));
    if (op == 2) add_int(c, "input_forget", pick(random, 0, 1));
    if (one_in(random, 2)) add_activations(c, random, functions[op] * d);
    add_part(c, random, of,
             is_row_first ? shape_3d(rows, steps, of->input) : shape_3d(steps, rows, of->input));
    add_part(c, random, of, shape_3d(d, width, of->input));
    add_part(c, random, of, shape_3d(d, width, hidden));
    add_or_skip(c, random, of, (sp_shape){.rank = 2, .dims = {d, 2 * width}});
    if (one_in(random, 2)) add_lengths(c, random, rows, steps);
    else c->input_count++; /* all sequences have full length */
    add_or_skip(c, random, of, state);
    c->output_count = (uint32_t)pick(random, 1, op == 2 ? 3 : 2);
    if (op != 2) return;
    add_or_skip(c, random, of, state);
    add_or_skip(c, random, of, (sp_shape){.rank = 2, .dims = {d, 3 * hidden}});
}

static void make_form(data_random *random, kernel_case *c)
{
    layer_sizes of = {.op = pick(random, 0, 2)};
    of.hidden = pick_units(random);
    of.steps = of.hidden > 40 ? pick(random, 1, 2) : pick(random, 0, 6);
    of.rows = pick(random, 1, 9);
    of.input = pick(random, 0, 9);
    make_form_of(random, c, &of);
}

/* Layers of so many units that teams of blocks compute them: 16 to 256, in two ways, up to 128
 * units and more. More steps than an inbox has sides, and several groups of rows. */
static void make_team_layer(data_random *random, kernel_case *c)
{
    static const int64_t edges[] = {16,  17,  31,  49,  64,  100, 127,
                                    128, 129, 136, 160, 200, 255, 256};
    const bool is_edge = !one_in(random, 4);
    layer_sizes of = {.op = pick(random, 0, 2), .has_specials = one_in(random, 2)};
    of.hidden = is_edge ? edges[pick(random, 0, SP_COUNT_OF(edges) - 1)] : pick(random, 16, 48);
    of.steps = one_in(random, 9) ? pick(random, 0, 1) : pick(random, 3, of.hidden > 64 ? 4 : 7);
    of.rows = pick(random, 1, of.hidden > 64 ? 6 : 13);
    of.input = pick(random, 0, 3);
    make_form_of(random, c, &of);
}

const kernel_case_kind layer_case_kinds[] = {
    {"lstm", make_lstm, NULL},
    {"gru", make_gru, NULL},
    {"rnn", make_rnn, NULL},
    {"sequences", make_sequences, NULL},
    {"layer forms", make_form, NULL},
    {"team layers", make_team_layer, NULL},
    {0},
};
