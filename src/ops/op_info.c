/* SPDX-License-Identifier: Apache-2.0 */
/* Public queries of the table of operators. */
#include <streampool/operators.h>

#include <string.h>

#include "base/error.h"
#include "ops/device_kernels.h"
#include "ops/op_kernels.h"
#include "ops/registry.h"

_Static_assert(SP_OP_ANY_COUNT == SP_OP_VARIADIC, "counts are returned unchanged");

#define SAME_TYPE(name) (int)SP_OP_##name == (int)SP_ATTRIBUTE_##name
_Static_assert(SAME_TYPE(FLOAT) && SAME_TYPE(INT) && SAME_TYPE(STRING) && SAME_TYPE(TENSOR) &&
                   SAME_TYPE(GRAPH) && SAME_TYPE(FLOATS) && SAME_TYPE(INTS) && SAME_TYPE(STRINGS),
               "attribute types are returned unchanged");

uint32_t sp_op_count(void)
{
    uint32_t count;
    sp__op_table(&count);
    return count;
}

uint32_t sp_op_newest_opset(void)
{
    return SP_OPSET_NEWEST;
}

static sp_status op_at(uint32_t index, const void *out, const sp_op **row)
{
    uint32_t count;
    const sp_op *table = sp__op_table(&count);
    if (out == NULL) return sp__fail(SP_INVALID, "out is NULL");
    if (index >= count) {
        return sp__fail(SP_NOT_FOUND, "the table of ops has %u rows, none with index %u", count,
                        index);
    }
    *row = &table[index];
    return SP_OK;
}

static uint32_t attribute_count(const sp_op *op)
{
    uint32_t count = 0;
    while (count < SP_OP_MAX_ATTRIBUTES && op->attributes[count].name != NULL) count++;
    return count;
}

static uint32_t typed_input_count(const sp_op *op)
{
    if (op->max_inputs == 0) return 1;
    return op->max_inputs < SP_OP_TYPED_INPUTS ? op->max_inputs : SP_OP_TYPED_INPUTS;
}

sp_status sp_op_get_info(uint32_t index, sp_op_info *out)
{
    const sp_op *op;
    SP_TRY(op_at(index, out, &op));
    *out = (sp_op_info){.name = op->name,
                        .since = op->since,
                        .until = op->until,
                        .min_inputs = op->min_inputs,
                        .max_inputs = op->max_inputs,
                        .min_outputs = op->min_outputs,
                        .max_outputs = op->max_outputs,
                        .typed_input_count = typed_input_count(op),
                        .attribute_count = attribute_count(op)};
    return SP_OK;
}

sp_status sp_op_get_input_types(uint32_t index, uint32_t input, sp_op_input_types *out)
{
    const sp_op *op;
    SP_TRY(op_at(index, out, &op));
    const uint32_t count = op->max_inputs > 0 ? op->max_inputs : 1;
    if (input >= count) {
        return sp__fail(SP_NOT_FOUND, "%s has %u inputs, none with index %u", op->name,
                        op->max_inputs, input);
    }
    const uint32_t dtypes = sp__op_dtypes(op, input);
    *out = (sp_op_input_types){0};
    out->is_like = sp__op_is_like(dtypes, &out->like);
    if (!out->is_like) {
        out->like = 0;
        out->dtypes = dtypes & ~SP_DTYPE_BIT(SP_DTYPE_NONE); /* of a branch that is not taken */
    }
    return SP_OK;
}

sp_status sp_op_get_attribute(uint32_t index, uint32_t attribute, sp_op_attribute_info *out)
{
    const sp_op *op;
    SP_TRY(op_at(index, out, &op));
    const uint32_t count = attribute_count(op);
    if (attribute >= count) {
        return sp__fail(SP_NOT_FOUND, "%s has %u attributes, none with index %u", op->name, count,
                        attribute);
    }
    const sp_attribute_schema *schema = &op->attributes[attribute];
    *out = (sp_op_attribute_info){.name = schema->name,
                                  .type = (sp_op_attribute_type)schema->type,
                                  .is_required = schema->is_required,
                                  .dtypes = schema->dtypes,
                                  .unless = schema->dtypes != 0 ? schema->free : NULL};
    return SP_OK;
}

sp_status sp_op_has_kernels(const char *name, const char *kind, bool *out)
{
    uint32_t count;
    const sp_kernel *kernels;
    const sp_op *table = sp__op_table(&count);
    if (name == NULL || out == NULL) {
        return sp__fail(SP_INVALID, "sp_op_has_kernels: name or out is NULL");
    }
    SP_TRY(sp__device_kind_kernels(kind, &kernels));
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(table[i].name, name) != 0) continue;
        *out = sp__op_is_covered(name, kernels);
        return SP_OK;
    }
    return sp__fail(SP_NOT_FOUND, "unknown op '%s'", name);
}
