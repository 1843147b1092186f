/* SPDX-License-Identifier: Apache-2.0 */
/* Generates random calls of the elementwise ops, of all types that the registry has for each. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "cuda/kernel_case_parts.h"
#include "ops/registry.h"

struct elementwise_op {
    uint32_t version;
    uint32_t inputs;           /* 0: one to four */
    const char *alpha, *beta;  /* attributes of floats, or NULL */
    const char *flag, *flag_b; /* attributes of 0 or 1, or NULL */
};

/* One of the op's types. */
static sp_dtype type_of(data_random *random, const kernel_case_kind *kind)
{
    const sp_op *op;
    if (sp__op_find((sp_text){0}, sp__text(kind->name), kind->op->version, &op) != SP_OK) abort();
    for (;;) {
        const sp_dtype dtype = (sp_dtype)pick(random, 1, SP_BOOL);
        if (op->dtypes[0] & SP_DTYPE_BIT(dtype)) return dtype;
    }
}

void elementwise_case_make(const kernel_case_kind *kind, data_random *random, kernel_case *c)
{
    const elementwise_op *what = kind->op;
    const sp_dtype dtype = type_of(random, kind);
    const bool is_clip = strcmp(kind->name, "Clip") == 0;
    c->op = kind->name;
    c->version = what->version;
    c->in_place = one_in(random, 2);
    if (what->alpha != NULL) add_float(c, what->alpha, data_next_float(random) * 2);
    if (what->beta != NULL) add_float(c, what->beta, data_next_float(random) * 2);
    if (what->flag != NULL) add_int(c, what->flag, one_in(random, 2));
    if (what->flag_b != NULL) add_int(c, what->flag_b, one_in(random, 2));
    const sp_shape y = pick_shape(random, 0, 6, 3000), scalar = {.rank = 0};
    const uint32_t count = what->inputs > 0 ? what->inputs : (uint32_t)pick(random, 1, 4);
    for (uint32_t i = 0; i < count; i++) {
        const sp_shape part = i > 0 && is_clip ? scalar
                              : count == 1 || is_clip || one_in(random, 2)
                                  ? y
                                  : pick_operand(random, &y);
        c->is_known[c->input_count] = i > 0 && is_clip && one_in(random, 2);
        if (i > 0 && is_clip && one_in(random, 4)) c->input_count++; /* left out */
        else add_random(c, random, dtype, &part);
    }
}

/* ---- ops of more than one type ---- */

static void make_pow(data_random *random, kernel_case *c)
{
    static const sp_dtype bases[] = {SP_F32, SP_F64, SP_F16, SP_BF16, SP_I32, SP_I64};
    c->op = "Pow";
    c->version = 15;
    c->in_place = one_in(random, 2);
    const sp_shape y = pick_shape(random, 0, 4, 1000), b = pick_operand(random, &y);
    add_random(c, random, bases[pick(random, 0, SP_COUNT_OF(bases) - 1)], &y);
    add_random(c, random, (sp_dtype)pick(random, SP_F32, SP_U64), &b);
}

static void make_prelu(data_random *random, kernel_case *c)
{
    static const sp_dtype types[] = {SP_F32, SP_F64,  SP_I32, SP_I64,
                                     SP_F16, SP_BF16, SP_U32, SP_U64};
    c->op = "PRelu";
    c->version = one_in(random, 4) ? 6 : 16;
    c->in_place = one_in(random, 2);
    const sp_dtype dtype = types[pick(random, 0, SP_COUNT_OF(types) - 1)];
    const sp_shape x = pick_shape(random, 1, 4, 2000);
    sp_shape slope = pick_operand(random, &x);
    if (c->version == 6) {
        slope = (sp_shape){.rank = 1, .dims = {x.rank > 1 && one_in(random, 2) ? x.dims[1] : 1}};
    }
    add_random(c, random, dtype, &x);
    add_random(c, random, dtype, &slope);
}

static void make_where(data_random *random, kernel_case *c)
{
    c->op = "Where";
    c->version = 16;
    c->in_place = one_in(random, 2);
    const sp_shape out = pick_shape(random, 0, 6, 3000);
    const sp_dtype dtype = (sp_dtype)pick(random, SP_F32, SP_BOOL);
    for (int i = 0; i < 3; i++) {
        const sp_shape part = one_in(random, 2) ? out : pick_operand(random, &out);
        add_random(c, random, i == 0 ? SP_BOOL : dtype, &part);
    }
}

static void make_cast(data_random *random, kernel_case *c)
{
    static const int64_t numbers[] = {1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 16};
    c->op = "Cast";
    c->version = 13;
    const sp_shape x = pick_shape(random, 0, 3, 3000);
    add_int(c, "to", numbers[pick(random, 0, SP_COUNT_OF(numbers) - 1)]);
    add_random(c, random, (sp_dtype)pick(random, SP_F32, SP_BOOL), &x);
}

static void make_gelu(data_random *random, kernel_case *c)
{
    static const sp_dtype types[] = {SP_F32, SP_F16, SP_BF16};
    c->op = "Gelu";
    c->version = 20;
    c->in_place = one_in(random, 2);
    const sp_shape x = pick_shape(random, 0, 3, 3000);
    c->text = sp__text(one_in(random, 2) ? "none" : "tanh");
    c->attributes[c->attribute_count++] = data_attribute_text("approximate", &c->text);
    add_random(c, random, types[pick(random, 0, 2)], &x);
}

static void make_expand(data_random *random, kernel_case *c)
{
    c->op = "Expand";
    c->version = 13;
    const sp_shape y = pick_shape(random, 0, 5, 300), x = pick_operand(random, &y);
    add_random(c, random, pick_dtype(random), &x);
    add_known_ints(c, y.dims, y.rank);
}

static void make_dropout(data_random *random, kernel_case *c)
{
    static const sp_dtype types[] = {SP_F32, SP_F64, SP_F16, SP_BF16};
    c->op = "Dropout";
    c->version = one_in(random, 2) ? 7 : 13;
    c->output_count = (uint32_t)pick(random, 1, 2);
    const sp_shape x = pick_shape(random, 0, 3, 3000);
    add_random(c, random, types[pick(random, 0, 3)], &x);
}

/* Name, version, inputs, and attributes if any. */
#define OP(name, since, ...)                                                                       \
    {                                                                                              \
        name, NULL, &(const elementwise_op)                                                        \
        {                                                                                          \
            .version = since, .inputs = __VA_ARGS__                                                \
        }                                                                                          \
    }

const kernel_case_kind elementwise_case_kinds[] = {
    OP("Abs", 13, 1),
    OP("Acos", 22, 1),
    OP("Acosh", 22, 1),
    OP("Add", 14, 2),
    OP("And", 7, 2),
    OP("Asin", 22, 1),
    OP("Asinh", 22, 1),
    OP("Atan", 22, 1),
    OP("Atanh", 22, 1),
    OP("Ceil", 13, 1),
    OP("Celu", 12, 1, .alpha = "alpha"),
    OP("Clip", 10, 1, .alpha = "min", .beta = "max"),
    OP("Clip", 13, 3),
    OP("Cos", 22, 1),
    OP("Cosh", 22, 1),
    OP("Div", 14, 2),
    OP("Elu", 22, 1, .alpha = "alpha"),
    OP("Equal", 19, 2),
    OP("Erf", 13, 1),
    OP("Exp", 13, 1),
    OP("Floor", 13, 1),
    OP("Greater", 13, 2),
    OP("GreaterOrEqual", 16, 2),
    OP("HardSigmoid", 22, 1, .alpha = "alpha", .beta = "beta"),
    OP("HardSwish", 22, 1),
    OP("IsInf", 20, 1, .flag = "detect_negative", .flag_b = "detect_positive"),
    OP("IsNaN", 20, 1),
    OP("LeakyRelu", 16, 1, .alpha = "alpha"),
    OP("Less", 13, 2),
    OP("LessOrEqual", 16, 2),
    OP("Log", 13, 1),
    OP("Max", 13, 0),
    OP("Mean", 13, 0),
    OP("Min", 13, 0),
    OP("Mish", 22, 1),
    OP("Mod", 13, 2, .flag = "fmod"),
    OP("Mul", 14, 2),
    OP("Neg", 13, 1),
    OP("Not", 1, 1),
    OP("Or", 7, 2),
    OP("Pow", 11, 2),
    OP("Reciprocal", 13, 1),
    OP("Relu", 14, 1),
    OP("Round", 22, 1),
    OP("Selu", 22, 1, .alpha = "alpha", .beta = "gamma"),
    OP("Sigmoid", 13, 1),
    OP("Sign", 13, 1),
    OP("Sin", 22, 1),
    OP("Sinh", 22, 1),
    OP("Softplus", 22, 1),
    OP("Softsign", 22, 1),
    OP("Sqrt", 13, 1),
    OP("Sub", 14, 2),
    OP("Sum", 13, 0),
    OP("Tan", 22, 1),
    OP("Tanh", 13, 1),
    OP("ThresholdedRelu", 22, 1, .alpha = "alpha"),
    OP("Xor", 7, 2),
    {"pow", make_pow, NULL},
    {"prelu", make_prelu, NULL},
    {"where", make_where, NULL},
    {"cast", make_cast, NULL},
    {"expand", make_expand, NULL},
    {"dropout", make_dropout, NULL},
    {"gelu", make_gelu, NULL},
    {0},
};
