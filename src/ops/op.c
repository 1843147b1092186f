/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that hold for every op: counts, attributes, element types, sizes. */
#include "ops/op.h"

#include <inttypes.h>

#include "base/error.h"
#include "base/macros.h"
#include "base/size.h"

static sp_status check_count(const char *what, uint32_t count, uint32_t min, uint32_t max)
{
    if (count >= min && count <= max) return SP_OK;
    return sp__fail(SP_CORRUPT, "%" PRIu32 " %s, the op takes %" PRIu32 " to %" PRIu32, count, what,
                    min, max);
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
        return sp__fail(SP_CORRUPT, "attribute '%s' is of type %s, wanted %s", schema->name,
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
        return sp__fail(SP_UNSUPPORTED, "%" PRIu32 " outputs, at most %" PRIu32 " are supported",
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
    if (call->op->dtypes & SP_DTYPE_BIT(dtype)) return SP_OK;
    return sp__fail(SP_UNSUPPORTED, "not supported: %s version %" PRIu32 " for type %s",
                    call->op->name, call->version, sp_dtype_name(dtype));
}

sp_status sp__op_infer(sp_op_call *call)
{
    for (uint32_t i = 0; i < call->op->min_inputs; i++) {
        if (!sp__op_has_input(call, i)) {
            return sp__fail(SP_CORRUPT, "input %" PRIu32 " is left out", i);
        }
    }
    if (call->input_count > 0) SP_TRY(check_dtype(call, call->inputs[0].dtype));
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
                    " decide a shape and must be known: constant, or an input of the model of at "
                    "most %d bytes",
                    index, SP_DECIDING_BYTES);
}

/* A list of at most `max` numbers, which must be known. */
static sp_status check_known(const sp_op_call *call, uint32_t index, uint32_t max, uint32_t *count)
{
    const sp_op_value *input = &call->inputs[index];
    const uint64_t found = sp__shape_count(&input->shape);
    if (input->shape.rank > 1 || found > max) {
        return sp__fail(SP_MISMATCH,
                        "input %" PRIu32 " has shape %s, wanted a list of at most %" PRIu32, index,
                        sp__shape_print(&input->shape).text, max);
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
        return sp__fail(SP_MISMATCH, "input %" PRIu32 " is of type %s, wanted i64", index,
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
    if (input->dtype != SP_F32) {
        return sp__fail(SP_MISMATCH, "input %" PRIu32 " is of type %s, wanted f32", index,
                        sp_dtype_name(input->dtype));
    }
    SP_TRY(check_known(call, index, max, count));
    for (uint32_t i = 0; i < *count; i++) out[i] = (double)((const float *)input->data)[i];
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

sp_status sp__op_same_types(const sp_op_call *call)
{
    const sp_dtype first = call->inputs[0].dtype;
    for (uint32_t i = 1; i < call->input_count; i++) {
        if (!sp__op_has_input(call, i) || call->inputs[i].dtype == first) continue;
        return sp__fail(SP_MISMATCH, "inputs of types %s and %s", sp_dtype_name(first),
                        sp_dtype_name(call->inputs[i].dtype));
    }
    return SP_OK;
}

sp_status sp__op_infer_same(sp_op_call *call)
{
    sp__op_set_output(call, 0, call->inputs[0].dtype, &call->inputs[0].shape);
    return SP_OK;
}
