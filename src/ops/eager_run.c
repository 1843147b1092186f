/* SPDX-License-Identifier: Apache-2.0 */
/* sp_op_run: calls any op of the registry by name. */
#include "base/error.h"
#include "ops/eager.h"
#include "ops/eager_attributes.h"
#include "ops/registry.h"
#include "runtime/checker.h"

static sp_status find_op(const char *name, const sp_op_options *options, uint32_t *version,
                         const sp_op **out)
{
    const char *domain = options->domain != NULL ? options->domain : "";
    *version = options->opset != 0 ? options->opset : SP_OPSET_NEWEST;
    SP_TRY(sp__op_find(sp__text(domain), sp__text(name), *version, out));
    for (uint32_t i = 0; i < SP_OP_MAX_ATTRIBUTES && (*out)->attributes[i].name != NULL; i++) {
        if ((*out)->attributes[i].type != SP_ATTRIBUTE_GRAPH) continue;
        return sp__fail(SP_UNSUPPORTED,
                        "not supported: %s outside of a model, since its attributes are graphs",
                        (*out)->name);
    }
    return SP_OK;
}

sp_status sp_op_run(const char *op, const sp_op_options *options, const sp_tensor *inputs,
                    uint32_t input_count, sp_tensor *outputs, uint32_t output_count)
{
    static const sp_op_options defaults = {0};
    if (op == NULL) return sp__fail(SP_INVALID, "sp_op_run: op is NULL");
    SP_TRY(sp__eager_begin(op, inputs, input_count, outputs, output_count));
    if (options == NULL) options = &defaults;
    sp_eager_request request = {.device = options->device,
                                .inputs = inputs,
                                .input_count = input_count,
                                .into = options->into,
                                .output_count = output_count,
                                .call_site = SP_CALL_SITE};
    SP_TRY(find_op(op, options, &request.version, &request.op));
    sp_eager_attributes attributes;
    sp_status status =
        sp__eager_attributes_init(&attributes, options->attributes, options->attribute_count);
    if (status == SP_OK) {
        request.attributes = (sp_attribute_list){attributes.items, attributes.count};
        status = sp__eager_run(&request, outputs);
    } else {
        (void)sp__fail_prefix(status, "%s: ", op);
    }
    sp__eager_attributes_deinit(&attributes);
    return status;
}
