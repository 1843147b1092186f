/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that are common to all ops: counts, attributes, element types, sizes. */
#include "ops/op.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "base/macros.h"
#include "base/size.h"
#include "ops/cpu/arch/half.h"

static sp_status check_count(const char *what, uint32_t count, uint32_t min, uint32_t max)
{
    if (count >= min && count <= max) return SP_OK;
    return sp__fail(SP_CORRUPT, "%" PRIu32 " %s are given; the op takes %" PRIu32 " to %" PRIu32,
                    count, what, min, max);
}

static const sp_attribute_schema *find_schema(const sp_op *op, sp_text name)
{
    for (uint32_t i = 0; i < SP_OP_MAX_ATTRIBUTES && op->attributes[i].name; i++) {
        if (sp__text_is(name, op->attributes[i].name)) return &op->attributes[i];
    }
    return NULL;
}

static sp_status check_attribute(const sp_op *op, const sp_attribute *attribute)
{
    const sp_attribute_schema *schema = find_schema(op, attribute->name);
    if (!schema) {
        return sp__fail(SP_UNSUPPORTED, "attribute '%s' is not supported",
                        sp__text_print(attribute->name).text);
    }
    if (schema->type != attribute->type) {
        return sp__fail(SP_CORRUPT, "attribute '%s' is of type %s; expected %s", schema->name,
                        sp__attribute_type_name(attribute->type),
                        sp__attribute_type_name(schema->type));
    }
    return SP_OK;
}

sp_status sp__op_check(const sp_op_call *call)
{
    const sp_op *op = call->op;
    SP_TRY(check_count("inputs", call->input_count, op->min_inputs, op->max_inputs));
    if (call->output_count > op->max_outputs) {
        return sp__fail(SP_UNSUPPORTED,
                        "%" PRIu32 " outputs are requested; at most %" PRIu32 " are supported",
                        call->output_count, op->max_outputs);
    }
    SP_TRY(check_count("outputs", call->output_count, op->min_outputs, op->max_outputs));
    for (uint32_t i = 0; i < call->attributes.count; i++) {
        SP_TRY(check_attribute(op, &call->attributes.items[i]));
    }
    for (uint32_t i = 0; i < SP_OP_MAX_ATTRIBUTES && op->attributes[i].name; i++) {
        const sp_attribute_schema *schema = &op->attributes[i];
        if (schema->is_required && !sp__attribute_find(call->attributes, schema->name)) {
            return sp__fail(SP_CORRUPT, "attribute '%s' is missing", schema->name);
        }
    }
    return SP_OK;
}

static sp_status check_dtype(const sp_op_call *call, sp_dtype dtype)
{
    if (call->op->dtypes[0] & SP_DTYPE_BIT(dtype)) return SP_OK;
    return sp__fail(SP_UNSUPPORTED, "not supported: %s version %" PRIu32 " for type %s",
                    call->op->name, call->version, sp_dtype_name(dtype));
}

/* An attribute may narrow the types of input 0. */
static sp_status check_narrowing(const sp_op_call *call, const sp_attribute_schema *schema)
{
    const sp_dtype dtype = call->inputs[0].dtype;
    if (schema->dtypes == 0 || (schema->dtypes & SP_DTYPE_BIT(dtype)) != 0) return SP_OK;
    char number[24];
    sp_text value = sp__text(schema->fallback);
    if (schema->type == SP_ATTRIBUTE_STRING) {
        value = sp__attribute_text(call->attributes, schema->name, schema->fallback);
    } else if (sp__attribute_find(call->attributes, schema->name) != NULL) {
        snprintf(number, sizeof number, "%" PRId64,
                 sp__attribute_int(call->attributes, schema->name, 0));
        value = sp__text(number);
    }
    if (sp__text_is(value, schema->free)) return SP_OK;
    return sp__fail(SP_UNSUPPORTED, "not supported: %s version %" PRIu32 ", %s '%s' of type %s",
                    call->op->name, call->version, schema->name, sp__text_print(value).text,
                    sp_dtype_name(dtype));
}

static sp_status check_other_input(const sp_op_call *call, uint32_t index)
{
    const sp_dtype dtype = call->inputs[index].dtype;
    const uint32_t dtypes = sp__op_dtypes(call->op, index);
    uint32_t like;
    if (sp__op_is_like(dtypes, &like)) {
        if (dtype == call->inputs[like].dtype) return SP_OK;
        return sp__fail(SP_MISMATCH, "inputs of types %s and %s; expected one type",
                        sp_dtype_name(call->inputs[like].dtype), sp_dtype_name(dtype));
    }
    if (dtypes & SP_DTYPE_BIT(dtype)) return SP_OK;
    return sp__fail(SP_UNSUPPORTED,
                    "not supported: %s version %" PRIu32 " with an input %" PRIu32 " of type %s",
                    call->op->name, call->version, index, sp_dtype_name(dtype));
}

static sp_status check_inputs(const sp_op_call *call)
{
    for (uint32_t i = 0; i < call->op->min_inputs; i++) {
        if (!sp__op_has_input(call, i)) {
            return sp__fail(SP_CORRUPT, "required input %" PRIu32 " is missing", i);
        }
    }
    if (call->input_count == 0) return SP_OK;
    SP_TRY(check_dtype(call, call->inputs[0].dtype));
    for (uint32_t i = 0; i < SP_OP_MAX_ATTRIBUTES && call->op->attributes[i].name; i++) {
        SP_TRY(check_narrowing(call, &call->op->attributes[i]));
    }
    for (uint32_t i = 1; i < call->input_count; i++) {
        if (call->inputs[i].is_present) SP_TRY(check_other_input(call, i));
    }
    return SP_OK;
}

sp_status sp__op_infer(sp_op_call *call)
{
    SP_TRY(check_inputs(call));
    call->depth = 1;
    SP_TRY(call->op->infer(call));
    if (call->input_count == 0) SP_TRY(check_dtype(call, call->outputs[0].dtype));
    for (uint32_t i = 0; i < call->output_count; i++) {
        sp_op_value *output = &call->outputs[i];
        SP_TRY(sp__shape_bytes(&output->shape, output->dtype, &output->bytes));
    }
    return SP_OK;
}

uint64_t sp__op_work(const sp_op_call *call)
{
    uint64_t work = 0;
    for (uint32_t i = 0; i < call->input_count; i++) {
        if (!sp_size_add(work, call->inputs[i].bytes, &work)) return UINT64_MAX;
    }
    for (uint32_t i = 0; i < call->output_count; i++) {
        const sp_op_value *output = &call->outputs[i];
        uint64_t products;
        const bool fits = sp_size_mul(sp__shape_count(&output->shape), call->depth, &products) &&
                          sp_size_add(work, output->bytes, &work) &&
                          sp_size_add(work, products, &work);
        if (!fits) return UINT64_MAX;
    }
    return work;
}

sp_status sp__op_require_known(const sp_op_call *call, uint32_t index)
{
    if (call->inputs[index].data || call->inputs[index].bytes == 0) return SP_OK;
    return sp__fail(SP_UNSUPPORTED,
                    "the values of input %" PRIu32
                    " determine a shape and must be known: a constant, or an input of the model of "
                    "at most %d bytes",
                    index, SP_SHAPE_INPUT_BYTES);
}

/* Checks for a known list of at most `max` numbers. */
static sp_status check_known(const sp_op_call *call, uint32_t index, uint32_t max, uint32_t *count)
{
    const sp_op_value *input = &call->inputs[index];
    const uint64_t found = sp__shape_count(&input->shape);
    if (input->shape.rank > 1 || found > max) {
        return sp__fail(SP_MISMATCH,
                        "input %" PRIu32 " has shape %s; expected a list of at most %" PRIu32,
                        index, sp__shape_print(&input->shape).text, max);
    }
    SP_TRY(sp__op_require_known(call, index));
    *count = (uint32_t)found;
    return SP_OK;
}

sp_status sp__op_known_ints(const sp_op_call *call, uint32_t index, uint32_t max, int64_t *out,
                            uint32_t *count)
{
    const sp_op_value *input = &call->inputs[index];
    if (input->dtype != SP_I64 && input->dtype != SP_I32) {
        return sp__fail(SP_MISMATCH, "input %" PRIu32 " is of type %s; expected i64", index,
                        sp_dtype_name(input->dtype));
    }
    SP_TRY(check_known(call, index, max, count));
    const sp_array_view view = {.dtype = input->dtype, .shape = input->shape, .data = input->data};
    for (uint32_t i = 0; i < *count; i++) out[i] = sp__array_view_int(&view, i);
    return SP_OK;
}

sp_status sp__op_known_floats(const sp_op_call *call, uint32_t index, uint32_t max, double *out,
                              uint32_t *count)
{
    const sp_op_value *input = &call->inputs[index];
    SP_TRY(check_known(call, index, max, count));
    for (uint32_t i = 0; i < *count; i++) {
        switch (input->dtype) {
        case SP_F32:
            out[i] = (double)((const float *)input->data)[i];
            break;
        case SP_F64:
            out[i] = ((const double *)input->data)[i];
            break;
        case SP_F16:
            out[i] = (double)sp_float_of_f16(((const uint16_t *)input->data)[i]);
            break;
        default:
            return sp__fail(SP_MISMATCH, "input %" PRIu32 " is of type %s; expected f32", index,
                            sp_dtype_name(input->dtype));
        }
    }
    return SP_OK;
}

sp_status sp__op_known_list(const sp_op_call *call, const char *name, uint32_t from, uint32_t index,
                            int64_t out[SP_MAX_RANK], uint32_t *count, bool *has)
{
    *count = 0;
    if (call->version >= from) {
        *has = sp__op_has_input(call, index);
        return *has ? sp__op_known_ints(call, index, SP_MAX_RANK, out, count) : SP_OK;
    }
    const sp_attribute *attribute = sp__attribute_find(call->attributes, name);
    *has = attribute != NULL;
    if (!*has) return SP_OK;
    if (attribute->count > SP_MAX_RANK) {
        return sp__fail(SP_MISMATCH, "attribute '%s' has %" PRIu32 " values", name,
                        attribute->count);
    }
    *count = attribute->count;
    for (uint32_t i = 0; i < *count; i++) out[i] = attribute->as.ints[i];
    return SP_OK;
}

sp_status sp__op_infer_same(sp_op_call *call)
{
    sp__op_set_output(call, 0, call->inputs[0].dtype, &call->inputs[0].shape);
    return SP_OK;
}
