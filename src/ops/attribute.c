/* SPDX-License-Identifier: Apache-2.0 */
/* Look-ups in a list of attributes. */
#include "ops/attribute.h"

#include <inttypes.h>

#include "base/error.h"

const char *sp__attribute_type_name(sp_attribute_type type)
{
    switch (type) {
#define SP_ATTRIBUTE_NAME(code, value, name)                                                       \
    case SP_ATTRIBUTE_##code:                                                                      \
        return name;
        SP_ATTRIBUTE_TYPE_LIST(SP_ATTRIBUTE_NAME)
#undef SP_ATTRIBUTE_NAME
    case SP_ATTRIBUTE_NONE:
        break;
    }
    return "none";
}

const sp_attribute *sp__attribute_find(sp_attribute_list list, const char *name)
{
    for (uint32_t i = 0; i < list.count; i++) {
        if (sp__text_is(list.items[i].name, name)) return &list.items[i];
    }
    return NULL;
}

int64_t sp__attribute_int(sp_attribute_list list, const char *name, int64_t fallback)
{
    const sp_attribute *found = sp__attribute_find(list, name);
    return found ? found->as.ints[0] : fallback;
}

float sp__attribute_float(sp_attribute_list list, const char *name, float fallback)
{
    const sp_attribute *found = sp__attribute_find(list, name);
    return found ? found->as.floats[0] : fallback;
}

sp_text sp__attribute_text(sp_attribute_list list, const char *name, const char *fallback)
{
    const sp_attribute *found = sp__attribute_find(list, name);
    return found ? found->as.strings[0] : sp__text(fallback);
}

sp_status sp__attribute_ints(sp_attribute_list list, const char *name, uint32_t count,
                             int64_t fallback, int64_t *out)
{
    const sp_attribute *found = sp__attribute_find(list, name);
    if (found && found->count != count) {
        return sp__fail(SP_MISMATCH,
                        "attribute '%s' has %" PRIu32 " values; the shape requires %" PRIu32, name,
                        found->count, count);
    }
    for (uint32_t i = 0; i < count; i++) out[i] = found ? found->as.ints[i] : fallback;
    return SP_OK;
}
