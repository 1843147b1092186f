/* SPDX-License-Identifier: Apache-2.0 */
#include "support/rows_case.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/evaluate.h"
#include "ops/registry.h"

#define TEXT_BYTES 512

/* ---- the texts of a pattern ---- */

/* Sizes of the letters. */
typedef struct letters {
    double sizes[8];
} letters;

static uint64_t below(data_random *random, uint64_t end)
{
    return data_next(random) % end;
}

static void pattern_fail(const char *text)
{
    fprintf(stderr, "a pattern of a random call: %s\n", text);
    abort();
}

/* Chooses one alternative of each <a|b|c>, inner ones first. */
static void choose(const char *from, data_random *random, char out[TEXT_BYTES])
{
    if (strlen(from) >= TEXT_BYTES) pattern_fail(from);
    snprintf(out, TEXT_BYTES, "%s", from);
    for (char *group = strrchr(out, '<'); group != NULL; group = strrchr(out, '<')) {
        char *end = strchr(group, '>'), *at = group + 1;
        if (end == NULL) pattern_fail(from);
        uint64_t count = 1;
        for (const char *c = group; c < end; c++) count += *c == '|';
        for (uint64_t skip = below(random, count); skip > 0; at++) skip -= *at == '|';
        const size_t len = strcspn(at, "|>");
        memmove(group, at, len);
        memmove(group + len, end + 1, strlen(end + 1) + 1);
    }
}

/* Mostly 1 to 4, seldom 0. */
static letters draw_letters(data_random *random)
{
    letters out;
    for (int i = 0; i < 8; i++) {
        out.sizes[i] = below(random, 60) == 0 ? 0 : 1 + (double)below(random, 4);
    }
    return out;
}

/* A number at *text, which is advanced. */
static double read_number(const char **text, const letters *sizes)
{
    double value = **text == '-' ? -1 : 1;
    if (**text == '-') (*text)++;
    if (isdigit((unsigned char)**text)) {
        char *end;
        value *= strtod(*text, &end);
        *text = end;
    }
    for (; **text >= 'a' && **text <= 'h'; (*text)++) value *= sizes->sizes[**text - 'a'];
    return value;
}

/* Numbers separated by commas, up to a bracket or the end. */
static uint32_t read_numbers(const char *text, const letters *sizes, double out[ROWS_NUMBERS])
{
    uint32_t count = 0;
    while (*text != '\0' && *text != ']') {
        if (count == ROWS_NUMBERS) pattern_fail(text);
        out[count++] = read_number(&text, sizes);
        if (*text == ',') text++;
        else if (*text != '\0' && *text != ']') pattern_fail(text);
    }
    return count;
}

static sp_dtype dtype_of(const char *name, size_t len)
{
    for (int dtype = SP_F32; dtype <= SP_BOOL; dtype++) {
        const char *other = sp_dtype_name((sp_dtype)dtype);
        if (strlen(other) == len && strncmp(other, name, len) == 0) return (sp_dtype)dtype;
    }
    pattern_fail(name);
    return SP_DTYPE_NONE;
}

static void read_input(const char *word, const letters *sizes, sp_dtype type, data_random *random,
                       rows_operand *out)
{
    double dims[ROWS_NUMBERS];
    *out = (rows_operand){.grown = UINT32_MAX};
    if (word[0] == '-') return;
    out->is_present = true;
    out->is_known = word[0] == '#' || word[0] == '!';
    out->may_grow = word[0] == '!';
    if (out->is_known) word++;
    const size_t len = strcspn(word, "[=:%");
    out->dtype = len == 1 && word[0] == 'T' ? type : dtype_of(word, len);
    const char *at = word + len;
    if (*at == '%') {
        at++;
        out->bound = (int64_t)read_number(&at, sizes);
    }
    if (*at == '[') {
        out->shape.rank = read_numbers(at + 1, sizes, dims);
        for (uint32_t i = 0; i < out->shape.rank; i++) out->shape.dims[i] = (int64_t)dims[i];
        return;
    }
    const uint32_t count = read_numbers(at + 1, sizes, out->numbers);
    if (*at == '=') out->shape = SHAPE((int64_t)count);
    if (out->may_grow && count > 0 && below(random, 2) == 0) {
        out->grown = (uint32_t)below(random, count);
    }
}

static void read_attribute(const char *word, const letters *sizes, uint32_t index, rows_case *out)
{
    double numbers[ROWS_NUMBERS] = {0};
    const size_t len = strcspn(word, "=");
    if (word[len] != '=' || len >= ROWS_TEXT) pattern_fail(word);
    const char *value = word + len + 1;
    snprintf(out->names[index], ROWS_TEXT, "%.*s", (int)len, word);
    if (value[0] == '\'') {
        snprintf(out->texts[index], ROWS_TEXT, "%.*s", (int)strcspn(value + 1, "'"), value + 1);
        out->strings[index] = sp__text(out->texts[index]);
        out->attributes[index] = data_attribute_text(out->names[index], &out->strings[index]);
        return;
    }
    const bool is_float = strchr(value, '.') != NULL;
    const bool is_list = value[0] == '[';
    const uint32_t count = read_numbers(value + (is_list ? 1 : 0), sizes, numbers);
    for (uint32_t i = 0; i < count; i++) {
        out->ints[index][i] = (int64_t)numbers[i];
        out->floats[index][i] = (float)numbers[i];
    }
    sp_attribute *attribute = &out->attributes[index];
    *attribute = data_attribute_ints(out->names[index], out->ints[index], count);
    if (is_float) attribute->as.floats = out->floats[index];
    attribute->type = is_float  ? is_list ? SP_ATTRIBUTE_FLOATS : SP_ATTRIBUTE_FLOAT
                      : is_list ? SP_ATTRIBUTE_INTS
                                : SP_ATTRIBUTE_INT;
}

/* ---- the places of the rows ---- */

/* A divisor of the size, most often the size itself. */
static int64_t draw_divisor(data_random *random, int64_t size)
{
    int64_t divisor = size;
    if (below(random, 3) > 0) return size;
    do divisor = 1 + (int64_t)below(random, (uint64_t)size);
    while (size % divisor != 0);
    return divisor;
}

static void place_rows(rows_operand *operand, uint32_t axis, int64_t inner)
{
    const sp_shape *shape = &operand->shape;
    operand->axis = axis;
    operand->rows.kind = SP_ROWS_BATCHED;
    operand->rows.inner = (uint64_t)inner * sp__shape_range_count(shape, axis + 1, shape->rank);
}

static bool can_have_rows(const rows_operand *operand)
{
    return operand->is_present && !operand->is_known && operand->shape.rank > 0;
}

/* The inputs with rows have them most often along one axis, counted from the first or the last. */
static void draw_places(data_random *random, rows_case *c)
{
    const uint64_t share = below(random, 4); /* 0: all inputs, 1: some of them, else one */
    const uint64_t only = below(random, 3) > 0 ? 0 : below(random, c->input_count);
    const bool is_from_end = below(random, 2) == 0;
    const rows_operand *first = NULL;
    int64_t inner = 1;
    for (uint32_t i = 0; i < c->input_count; i++) {
        rows_operand *operand = &c->inputs[i];
        const sp_shape *shape = &operand->shape;
        if (!can_have_rows(operand)) continue;
        if (share == 1 ? below(random, 2) != 0 : share > 1 && i != only) continue;
        uint32_t axis = (uint32_t)below(random, shape->rank);
        if (first != NULL && below(random, 6) != 0) {
            const uint32_t last = first->shape.rank - 1 - first->axis;
            if (!is_from_end && first->axis < shape->rank) axis = first->axis;
            if (is_from_end && last < shape->rank) axis = shape->rank - 1 - last;
        }
        const int64_t size = shape->dims[axis];
        if (size == 0) inner = 1;
        else if (first == NULL || size % inner != 0 || below(random, 6) == 0) {
            inner = draw_divisor(random, size);
        }
        place_rows(operand, axis, inner);
        if (first == NULL) first = operand;
    }
}

void rows_case_make(const rows_pattern *pattern, data_random *random, rows_case *out)
{
    char text[TEXT_BYTES], types[TEXT_BYTES], *rest = NULL;
    const letters sizes = draw_letters(random);
    *out = (rows_case){.output_count = pattern->outputs};
    out->version = pattern->since + (uint32_t)below(random, pattern->until - pattern->since + 1);
    const sp_text domain = {0};
    if (sp__op_find(domain, sp__text(pattern->op), out->version, &out->op) != SP_OK) {
        pattern_fail(pattern->op);
    }
    choose(pattern->types, random, types);
    const sp_dtype type = types[0] == '\0' ? SP_F32 : dtype_of(types, strlen(types));
    choose(pattern->inputs, random, text);
    for (char *word = strtok_r(text, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        if (out->input_count == ROWS_INPUTS) pattern_fail(pattern->inputs);
        read_input(word, &sizes, type, random, &out->inputs[out->input_count++]);
    }
    choose(pattern->attributes, random, text);
    for (char *word = strtok_r(text, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        if (out->attribute_count == ROWS_ATTRIBUTES) pattern_fail(pattern->attributes);
        read_attribute(word, &sizes, out->attribute_count++, out);
    }
    draw_places(random, out);
}

/* ---- calls ---- */

static void set_number(sp_array *array, uint64_t index, double value)
{
    void *at = (char *)array->data + index * sp_dtype_bytes(array->dtype);
    const int64_t integer = (int64_t)value;
    const float narrow = (float)value;
    if (array->dtype == SP_F32) memcpy(at, &narrow, sizeof narrow);
    else if (array->dtype == SP_F64) memcpy(at, &value, sizeof value);
    else memcpy(at, &integer, sp_dtype_bytes(array->dtype)); /* little endian only */
}

static void known_init(const rows_operand *operand, uint64_t rows, sp_array *out)
{
    if (sp__array_init(out, operand->dtype, &operand->shape) != SP_OK) abort();
    for (uint64_t i = 0; i < sp__shape_count(&operand->shape); i++) {
        const double factor = i == operand->grown ? (double)rows : 1;
        set_number(out, i, operand->numbers[i] * factor);
    }
}

void rows_build(const rows_case *c, const sp_op *op, uint64_t rows, rows_built *out)
{
    *out = (rows_built){.status = SP_OK};
    for (uint32_t i = 0; i < c->input_count; i++) {
        const rows_operand *operand = &c->inputs[i];
        sp_op_value *value = &out->inputs[i];
        if (!operand->is_present) continue;
        *value =
            (sp_op_value){.is_present = true, .dtype = operand->dtype, .shape = operand->shape};
        if (operand->is_known) known_init(operand, rows, &out->known[i]);
        if (operand->is_known) value->data = out->known[i].data;
        if (operand->rows.kind == SP_ROWS_BATCHED) {
            value->shape.dims[operand->axis] *= (int64_t)rows;
        }
        if (sp__shape_bytes(&value->shape, value->dtype, &value->bytes) != SP_OK) abort();
    }
    out->call = (sp_op_call){.op = op,
                             .version = c->version,
                             .attributes = {c->attributes, c->attribute_count},
                             .inputs = out->inputs,
                             .outputs = out->outputs,
                             .input_count = c->input_count,
                             .output_count = c->output_count};
    out->status = sp__op_infer(&out->call);
}

void rows_built_deinit(rows_built *built)
{
    data_free(built->known, ROWS_INPUTS);
}

/* ---- values ---- */

/* Numbers with few bits, so that some are equal, and special ones. */
static void draw_element(data_random *random, const rows_operand *operand, sp_array *out,
                         uint64_t index)
{
    static const uint32_t specials[] = {0x80000000u, 0x7f800000u, 0xff800000u, 0x7fc00000u};
    uint16_t half;
    double value = ((double)below(random, 33) - 16) / 8;
    if (operand->bound > 0) value = (double)below(random, (uint64_t)operand->bound);
    void *at = (char *)out->data + index * sp_dtype_bytes(out->dtype);
    switch (out->dtype) {
    case SP_F32:
        set_number(out, index, value);
        if (operand->bound == 0 && below(random, 100) == 0) {
            memcpy(at, &specials[below(random, 4)], sizeof specials[0]);
        }
        return;
    case SP_F16:
        half = (uint16_t)(below(random, 2) << 15 | (12 + below(random, 6)) << 10 |
                          below(random, 1024));
        memcpy(at, &half, sizeof half);
        return;
    case SP_BF16:
        half =
            (uint16_t)(below(random, 2) << 15 | (124 + below(random, 6)) << 7 | below(random, 128));
        memcpy(at, &half, sizeof half);
        return;
    case SP_BOOL:
        *(uint8_t *)at = (uint8_t)below(random, 2);
        return;
    case SP_U8:
    case SP_U16:
    case SP_U32:
    case SP_U64:
        set_number(out, index, value < 0 ? -value : value);
        return;
    default:
        set_number(out, index, operand->bound > 0 ? value : 4 * value);
    }
}

void rows_draw(const rows_case *c, const rows_built *built, data_random *random, sp_array *out)
{
    for (uint32_t i = 0; i < c->input_count; i++) {
        const sp_op_value *input = &built->inputs[i];
        out[i] = (sp_array){0};
        if (!input->is_present || input->data != NULL) continue;
        if (sp__array_init(&out[i], input->dtype, &input->shape) != SP_OK) abort();
        for (uint64_t k = 0; k < sp__shape_count(&input->shape); k++) {
            draw_element(random, &c->inputs[i], &out[i], k);
        }
    }
}

sp_status rows_run(const rows_built *built, const sp_array *inputs, sp_array *outputs)
{
    sp_op_value values[ROWS_INPUTS] = {0};
    sp_op_call call = built->call;
    for (uint32_t i = 0; i < call.input_count; i++) {
        values[i] = built->inputs[i];
        if (inputs[i].data != NULL) values[i].data = inputs[i].data;
    }
    call.inputs = values;
    return sp__evaluate(&call, sp__cpu_kernels(sp__cpu_isa_selected()), outputs);
}

void rows_copy(const sp_rows_value *value, const sp_array *source, uint64_t source_rows,
               uint64_t from, sp_array *target, uint64_t target_rows, uint64_t to, uint64_t count)
{
    if (source->bytes == 0) return;
    if (value->kind != SP_ROWS_BATCHED) {
        memcpy(target->data, source->data, (size_t)source->bytes);
        return;
    }
    const size_t bytes = (size_t)(value->inner * sp_dtype_bytes(source->dtype));
    const uint64_t outer = source->bytes / (bytes * source_rows);
    for (uint64_t i = 0; i < outer; i++) {
        memcpy((char *)target->data + (i * target_rows + to) * bytes,
               (const char *)source->data + (i * source_rows + from) * bytes,
               (size_t)(count * bytes));
    }
}
