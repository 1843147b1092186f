/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/schema/math/equation.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/macros.h"
#include "base/text.h"

/* ---- terms ---- */

/* A term as it is written. */
typedef struct term {
    uint8_t letters[SP_MAX_RANK];
    uint32_t count;
    uint32_t before; /* letters in front of the ellipsis */
    bool has_ellipsis;
} term;

/* What of the text is not read yet, without spaces. */
typedef struct reader {
    sp_text whole, rest;
} reader;

static sp_status bad_equation(const reader *r, const char *why)
{
    return sp__fail(SP_CORRUPT, "equation '%s': %s", sp__text_print(r->whole).text, why);
}

static char reader_peek(reader *r)
{
    while (r->rest.len > 0 && *r->rest.ptr == ' ') r->rest.ptr++, r->rest.len--;
    return r->rest.len > 0 ? *r->rest.ptr : '\0';
}

static bool reader_take(reader *r, const char *token)
{
    const size_t len = strlen(token);
    (void)reader_peek(r);
    if (r->rest.len < len || memcmp(r->rest.ptr, token, len) != 0) return false;
    r->rest.ptr += len;
    r->rest.len -= len;
    return true;
}

static bool letter_of(char c, uint8_t *out)
{
    if (c >= 'A' && c <= 'Z') *out = (uint8_t)(c - 'A');
    else if (c >= 'a' && c <= 'z') *out = (uint8_t)(c - 'a' + 26);
    else return false;
    return true;
}

static sp_status read_term(reader *r, term *out)
{
    *out = (term){0};
    for (;;) {
        uint8_t letter;
        if (letter_of(reader_peek(r), &letter)) {
            if (out->count == SP_MAX_RANK) return bad_equation(r, "a term has too many indices");
            out->letters[out->count++] = letter;
            r->rest.ptr++, r->rest.len--;
        } else if (reader_take(r, "...")) {
            if (out->has_ellipsis) return bad_equation(r, "a term has two ellipses");
            out->has_ellipsis = true;
            out->before = out->count;
        } else {
            return SP_OK;
        }
    }
}

/* ---- inputs ---- */

static char printed_letter(uint8_t label)
{
    return (char)(label < 26 ? 'A' + label : 'a' + label - 26);
}

static sp_status bad_size(uint8_t label, int64_t known, int64_t size)
{
    if (label < SP_EQUATION_LETTERS) {
        return sp__fail(SP_MISMATCH, "index '%c' has the sizes %" PRId64 " and %" PRId64,
                        printed_letter(label), known, size);
    }
    return sp__fail(SP_MISMATCH, "the ellipsis has the sizes %" PRId64 " and %" PRId64, known,
                    size);
}

/* The size of a label in one operand. The axes of a diagonal have one size; a size of 1 repeats
 * along the other operand's, as NumPy, PyTorch and ONNX Runtime have it. */
static sp_status set_size(sp_equation *e, uint32_t index, uint8_t label, int64_t size, int64_t *own)
{
    int64_t *known = &e->sizes[label];
    if (e->operands[index].has[label] && own[label] != size) {
        return bad_size(label, own[label], size);
    }
    own[label] = size;
    const bool is_known = e->operands[0].has[label] || e->operands[index].has[label];
    if (is_known && *known != size && *known != 1 && size != 1) {
        return bad_size(label, *known, size);
    }
    if (!is_known || *known == 1) *known = size;
    return SP_OK;
}

static sp_status bind_operand(const reader *r, const term *t, const sp_shape *shape, uint32_t index,
                              sp_equation *e)
{
    sp_equation_operand *o = &e->operands[index];
    if (shape->rank < t->count || (shape->rank > t->count && !t->has_ellipsis)) {
        return sp__fail(SP_MISMATCH, "equation '%s' has %" PRIu32 " indices for shape %s",
                        sp__text_print(r->whole).text, t->count, sp__shape_print(shape).text);
    }
    int64_t own[SP_EQUATION_LABELS];
    const uint32_t places = shape->rank - t->count;
    for (uint32_t axis = 0; axis < shape->rank; axis++) {
        uint8_t label;
        if (axis < t->before || !t->has_ellipsis) label = t->letters[axis];
        else if (axis < t->before + places) {
            label = (uint8_t)(SP_EQUATION_LABELS - places + axis - t->before);
        } else label = t->letters[axis - places];
        SP_TRY(set_size(e, index, label, shape->dims[axis], own));
        o->labels[axis] = label;
        o->has[label] = true;
    }
    o->rank = shape->rank;
    return SP_OK;
}

static void set_strides(const sp_shape *shape, const sp_equation *e, sp_equation_operand *o)
{
    int64_t strides[SP_MAX_RANK];
    sp__shape_strides(shape, strides);
    for (uint32_t axis = 0; axis < o->rank; axis++) {
        const uint8_t label = o->labels[axis];
        const bool is_repeated = shape->dims[axis] == 1 && e->sizes[label] != 1;
        o->strides[label] += is_repeated ? 0 : strides[axis];
    }
}

/* ---- the output ---- */

static uint32_t axes_of(const sp_equation *e, uint8_t label)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < SP_EQUATION_OPERANDS; i++) {
        for (uint32_t axis = 0; axis < e->operands[i].rank; axis++) {
            count += e->operands[i].labels[axis] == label;
        }
    }
    return count;
}

static sp_status add_output(const reader *r, sp_equation *e, uint8_t label)
{
    if (axes_of(e, label) == 0) return bad_equation(r, "the output has an index that no input has");
    if (sp__equation_place(e, label) < e->output_rank) {
        return bad_equation(r, "the output has an index twice");
    }
    if (e->output_rank == SP_MAX_RANK) {
        return sp__fail(SP_UNSUPPORTED, "equation '%s': the output has more than %d axes",
                        sp__text_print(r->whole).text, SP_MAX_RANK);
    }
    e->output[e->output_rank++] = label;
    return SP_OK;
}

static sp_status add_ellipsis(const reader *r, sp_equation *e)
{
    for (uint32_t label = SP_EQUATION_LETTERS; label < SP_EQUATION_LABELS; label++) {
        if (axes_of(e, (uint8_t)label) > 0) SP_TRY(add_output(r, e, (uint8_t)label));
    }
    return SP_OK;
}

static sp_status read_output(reader *r, sp_equation *e)
{
    term t;
    SP_TRY(read_term(r, &t));
    for (uint32_t i = 0; i <= t.count; i++) {
        if (t.has_ellipsis && i == t.before) SP_TRY(add_ellipsis(r, e));
        if (i < t.count) SP_TRY(add_output(r, e, t.letters[i]));
    }
    return SP_OK;
}

/* The ellipsis, and in alphabetical order the letters that are there once. */
static sp_status imply_output(const reader *r, sp_equation *e)
{
    SP_TRY(add_ellipsis(r, e));
    for (uint32_t label = 0; label < SP_EQUATION_LETTERS; label++) {
        if (axes_of(e, (uint8_t)label) == 1) SP_TRY(add_output(r, e, (uint8_t)label));
    }
    return SP_OK;
}

uint32_t sp__equation_place(const sp_equation *equation, uint8_t label)
{
    uint32_t place = 0;
    while (place < equation->output_rank && equation->output[place] != label) place++;
    return place;
}

sp_status sp__equation_read(const sp_op_call *call, sp_equation *out)
{
    const sp_text text = sp__attribute_text(call->attributes, "equation", "");
    reader r = {text, text};
    *out = (sp_equation){0};
    for (uint32_t i = 0; i < call->input_count; i++) {
        term t;
        if (i > 0 && !reader_take(&r, ",")) return bad_equation(&r, "it has a term for each input");
        SP_TRY(read_term(&r, &t));
        SP_TRY(bind_operand(&r, &t, &call->inputs[i].shape, i, out));
    }
    for (uint32_t i = 0; i < call->input_count; i++) {
        set_strides(&call->inputs[i].shape, out, &out->operands[i]);
    }
    SP_TRY(reader_take(&r, "->") ? read_output(&r, out) : imply_output(&r, out));
    (void)reader_peek(&r);
    if (r.rest.len > 0) return bad_equation(&r, "its end cannot be read");
    return SP_OK;
}
