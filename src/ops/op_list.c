/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/op_list.h"

#include <string.h>

#include "base/log.h"
#include "ops/registry.h"

bool sp__op_list_next(const char **list, sp_text *name)
{
    const char *at = *list + strspn(*list, ", ");
    size_t length = strcspn(at, ",");
    *list = at + length;
    while (length > 0 && at[length - 1] == ' ') length--;
    *name = (sp_text){at, length};
    return length > 0;
}

static bool list_has(const char *list, sp_text name)
{
    for (sp_text next; sp__op_list_next(&list, &next);) {
        if (sp__text_equal(next, name)) return true;
    }
    return false;
}

bool sp__op_list_has_of(const char *list, const char *name, const char *counting)
{
    for (;;) {
        const size_t length = strcspn(name, "+");
        const sp_text op = {name, length};
        if (list_has(list, op) && (counting == NULL || list_has(counting, op))) return true;
        if (name[length] == '\0') return false;
        name += length + 1;
    }
}

bool sp__op_list_has(const char *list, const char *name)
{
    return sp__op_list_has_of(list, name, NULL);
}

static bool op_is_known(sp_text name)
{
    uint32_t count;
    const sp_op *ops = sp__op_table(&count);
    for (uint32_t i = 0; i < count; i++) {
        if (sp__text_is(name, ops[i].name)) return true;
    }
    return false;
}

void sp__op_list_check(const char *what, const char *list)
{
    for (sp_text next; sp__op_list_next(&list, &next);) {
        if (op_is_known(next)) continue;
        SP_LOG(SP_LOG_WARN,
               "%s: unknown op '%s'; expected ONNX op types separated by commas, as in Conv,Tanh",
               what, sp__text_print(next).text);
    }
}
