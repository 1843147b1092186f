/* SPDX-License-Identifier: Apache-2.0 */
/* Checks what the reader of model files checks: type, name and presence of values. The op's schema
 * decides whether it has such an attribute. */
#include "ops/eager_attributes.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "base/macros.h"

static sp_status fail_empty(const sp_op_attribute *from)
{
    return sp__fail(SP_INVALID, "attribute '%s' has no values",
                    sp__text_print(sp__text(from->name)).text);
}

static sp_status read_strings(sp_eager_attributes *all, uint32_t index, const sp_op_attribute *from)
{
    if (from->count > 0 && from->strings == NULL) return fail_empty(from);
    sp_text *texts = sp_calloc(from->count, sizeof *texts);
    if (texts == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for attributes");
    all->lists[index] = texts;
    for (uint32_t i = 0; i < from->count; i++) {
        if (from->strings[i] == NULL) return fail_empty(from);
        texts[i] = sp__text(from->strings[i]);
    }
    all->items[index].as.strings = texts;
    return SP_OK;
}

static sp_status read_tensor(sp_eager_attributes *all, uint32_t index, const sp_op_attribute *from)
{
    const sp_host_tensor *tensor = from->t;
    sp_array_view *view = &all->tensors[index];
    uint64_t bytes;
    if (tensor == NULL) return fail_empty(from);
    if (sp_dtype_bytes(tensor->dtype) == 0) {
        return sp__fail(SP_INVALID, "attribute '%s' is a tensor without an element type",
                        from->name);
    }
    view->dtype = tensor->dtype;
    view->data = tensor->data;
    SP_TRY(sp__shape_make(tensor->shape, tensor->rank, &view->shape));
    SP_TRY(sp__shape_bytes(&view->shape, view->dtype, &bytes));
    if (tensor->bytes != bytes || (bytes > 0 && tensor->data == NULL)) {
        return sp__fail(SP_INVALID,
                        "attribute '%s' is a tensor of %s of shape %s: %" PRIu64
                        " bytes are expected, %" PRIu64 " given",
                        from->name, sp_dtype_name(view->dtype), sp__shape_print(&view->shape).text,
                        bytes, tensor->data == NULL ? 0 : tensor->bytes);
    }
    all->items[index].as.tensors = view;
    return SP_OK;
}

static sp_status read_list(sp_attribute *to, const sp_op_attribute *from)
{
    const bool is_ints = from->type == SP_OP_INTS;
    to->count = from->count;
    if (from->count > 0 && (is_ints ? (const void *)from->ints : from->floats) == NULL) {
        return fail_empty(from);
    }
    if (is_ints) to->as.ints = from->ints;
    else to->as.floats = from->floats;
    return SP_OK;
}

static sp_status read_attribute(sp_eager_attributes *all, uint32_t index,
                                const sp_op_attribute *from)
{
    sp_attribute *to = &all->items[index];
    to->count = 1;
    switch (from->type) {
    case SP_OP_FLOAT:
        to->type = SP_ATTRIBUTE_FLOAT;
        to->as.floats = &from->f;
        return SP_OK;
    case SP_OP_INT:
        to->type = SP_ATTRIBUTE_INT;
        to->as.ints = &from->i;
        return SP_OK;
    case SP_OP_STRING:
        if (from->s == NULL) return fail_empty(from);
        to->type = SP_ATTRIBUTE_STRING;
        all->texts[index] = sp__text(from->s);
        to->as.strings = &all->texts[index];
        return SP_OK;
    case SP_OP_TENSOR:
        to->type = SP_ATTRIBUTE_TENSOR;
        return read_tensor(all, index, from);
    case SP_OP_FLOATS:
        to->type = SP_ATTRIBUTE_FLOATS;
        return read_list(to, from);
    case SP_OP_INTS:
        to->type = SP_ATTRIBUTE_INTS;
        return read_list(to, from);
    case SP_OP_STRINGS:
        to->type = SP_ATTRIBUTE_STRINGS;
        to->count = from->count;
        return read_strings(all, index, from);
    case SP_OP_GRAPH:
        break;
    }
    return sp__fail(SP_INVALID, "attribute '%s' has the unknown type %d", from->name,
                    (int)from->type);
}

sp_status sp__eager_attributes_init(sp_eager_attributes *out, const sp_op_attribute *attributes,
                                    uint32_t count)
{
    memset(out, 0, sizeof *out);
    if (count > SP_OP_MAX_ATTRIBUTES) {
        return sp__fail(SP_INVALID, "%" PRIu32 " attributes are given; no op has more than %d",
                        count, SP_OP_MAX_ATTRIBUTES);
    }
    if (count > 0 && attributes == NULL) {
        return sp__fail(SP_INVALID, "attributes is NULL, with a count of %" PRIu32, count);
    }
    for (uint32_t i = 0; i < count; i++) {
        const char *name = attributes[i].name;
        if (name == NULL) return sp__fail(SP_INVALID, "attribute %" PRIu32 " has no name", i);
        const sp_attribute_list before = {out->items, i};
        if (sp__attribute_find(before, name) != NULL) {
            return sp__fail(SP_INVALID, "attribute '%s' is given twice", name);
        }
        out->items[i].name = sp__text(name);
        SP_TRY(read_attribute(out, i, &attributes[i]));
    }
    out->count = count;
    return SP_OK;
}

void sp__eager_attributes_deinit(sp_eager_attributes *attributes)
{
    for (uint32_t i = 0; i < SP_OP_MAX_ATTRIBUTES; i++) sp_free(attributes->lists[i]);
}
