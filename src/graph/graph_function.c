/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that a file defines. A call is replaced by the function's nodes while the graph is
 * imported, in a separate scope that sees only the inputs of the caller.
 *
 * The contents of a function, calls inside of it included, are counted once for each function
 * before anything is imported: functions that call functions twice each would otherwise expand a
 * small file to exponentially many nodes. */
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "base/macros.h"
#include "graph/graph_build.h"
#include "ops/registry.h"

/* Longest "domain NUL name NUL overload". */
#define KEY_BYTES 512

typedef enum function_state { NOT_COUNTED, BEING_COUNTED, COUNTED } function_state;

struct sp_graph_function {
    const sp_onnx_function *file;
    function_state state;
    sp_graph_totals totals; /* of one call */
    uint32_t height;        /* nested calls, its own included */
};

/* ---- the table ---- */

/* False if the key is longer than any function's. */
static bool make_key(sp_text domain, sp_text name, sp_text overload, char key[KEY_BYTES],
                     sp_text *out)
{
    const sp_text onnx = {0};
    const sp_text parts[3] = {sp__op_is_onnx_domain(domain) ? onnx : domain, name, overload};
    size_t len = 0;
    for (int i = 0; i < 3; i++) {
        if (parts[i].len >= KEY_BYTES - len) return false;
        if (parts[i].len > 0) memcpy(key + len, parts[i].ptr, parts[i].len);
        len += parts[i].len;
        key[len++] = '\0';
        if (len == KEY_BYTES) return false;
    }
    *out = (sp_text){key, len};
    return true;
}

static sp_status add_function(sp_graph_builder *builder, const sp_onnx_function *file,
                              uint32_t index)
{
    char key[KEY_BYTES];
    sp_text text;
    void *copy;
    if (!make_key(file->domain, file->name, file->overload, key, &text)) {
        return sp__fail(SP_EXHAUSTED, "function '%s': its name and domain have more than %d bytes",
                        sp__text_print(file->name).text, KEY_BYTES - 4);
    }
    SP_TRY(sp__bump_array(&builder->graph->bump, text.len, 1, &copy));
    memcpy(copy, text.ptr, text.len);
    text.ptr = copy;
    builder->functions[index].file = file;
    if (sp__name_map_add(&builder->function_names, text, index)) return SP_OK;
    return sp__fail(SP_CORRUPT, "two functions are named '%s'", sp__text_print(file->name).text);
}

sp_status sp__graph_functions_init(sp_graph_builder *builder)
{
    const sp_onnx_model *model = builder->model;
    if (model->function_count == 0) return SP_OK;
    SP_TRY(sp__bump_array(&builder->graph->bump, model->function_count, sizeof(*builder->functions),
                          &builder->functions));
    SP_TRY(sp__name_map_init(&builder->function_names, model->function_count,
                             builder->main.names.key));
    for (uint32_t i = 0; i < model->function_count; i++) {
        SP_TRY(add_function(builder, &model->functions[i], i));
    }
    return SP_OK;
}

sp_graph_function *sp__graph_function_of(const sp_graph_builder *builder, const sp_onnx_node *node)
{
    char key[KEY_BYTES];
    sp_text text;
    if (builder->functions == NULL) return NULL;
    if (!make_key(node->domain, node->op_type, node->overload, key, &text)) return NULL;
    const uint32_t index = sp__name_map_find(&builder->function_names, text);
    return index != SP_NO_VALUE ? &builder->functions[index] : NULL;
}

/* ---- counting ---- */

static sp_status fail_function(sp_status status, const sp_graph_function *function)
{
    return sp__fail_prefix(status, "function '%s': ", sp__text_print(function->file->name).text);
}

static sp_status check_totals(const sp_graph_totals *totals)
{
    if (totals->nodes <= SP_GRAPH_MAX_NODES && totals->names <= SP_GRAPH_MAX_CALL_NAMES &&
        totals->regions <= SP_GRAPH_MAX_NODES) {
        return SP_OK;
    }
    return sp__fail(SP_EXHAUSTED,
                    "with calls expanded the graph has more than %d nodes or %d "
                    "values",
                    SP_GRAPH_MAX_NODES, SP_GRAPH_MAX_CALL_NAMES);
}

static sp_status count_function(sp_graph_builder *builder, sp_graph_function *function)
{
    const sp_onnx_function *file = function->file;
    const uint32_t outer_height = builder->counted_height;
    builder->counted_height = 0;
    function->totals.names = (uint64_t)file->input_count + file->output_count;
    SP_TRY(sp__graph_count_nodes(builder, file->nodes, file->node_count, &function->totals));
    SP_TRY(check_totals(&function->totals));
    function->height = builder->counted_height + 1;
    builder->counted_height = outer_height;
    return SP_OK;
}

sp_status sp__graph_count_call(sp_graph_builder *builder, sp_graph_function *function,
                               sp_graph_totals *totals)
{
    if (function->state == BEING_COUNTED) {
        return fail_function(sp__fail(SP_CORRUPT, "calls itself, directly or through others"),
                             function);
    }
    if (function->state == NOT_COUNTED) {
        if (builder->counting_depth == SP_GRAPH_MAX_CALLS) {
            return sp__fail(SP_EXHAUSTED, "functions call each other more than %d deep",
                            SP_GRAPH_MAX_CALLS);
        }
        builder->counting_depth++;
        function->state = BEING_COUNTED;
        const sp_status status = count_function(builder, function);
        if (status != SP_OK) return status;
        function->state = COUNTED;
        builder->counting_depth--;
    }
    if (function->height + builder->counting_depth > SP_GRAPH_MAX_CALLS) {
        return sp__fail(SP_EXHAUSTED, "functions call each other more than %d deep",
                        SP_GRAPH_MAX_CALLS);
    }
    if (function->height > builder->counted_height) builder->counted_height = function->height;
    totals->nodes += function->totals.nodes;
    totals->names += function->totals.names;
    totals->regions += function->totals.regions;
    return SP_OK;
}

/* ---- cost of calls ---- */

/* Comparing an attribute counts as this many bytes. */
enum { ATTRIBUTE_COST = 64 };

sp_status sp__graph_charge_call(sp_graph_builder *builder, uint64_t bytes)
{
    if (builder->frame == NULL) return SP_OK;
    if (bytes <= builder->most_call_bytes - builder->call_bytes) {
        builder->call_bytes += bytes;
        return SP_OK;
    }
    return sp__fail(SP_EXHAUSTED,
                    "with calls expanded the graph has more than %" PRIu64
                    " bytes of tensors and attributes",
                    builder->most_call_bytes);
}

static uint64_t attribute_bytes(const sp_attribute *attribute)
{
    uint64_t bytes = 0;
    switch (attribute->type) {
    case SP_ATTRIBUTE_FLOAT:
    case SP_ATTRIBUTE_FLOATS:
        return attribute->count * sizeof(float);
    case SP_ATTRIBUTE_INT:
    case SP_ATTRIBUTE_INTS:
        return attribute->count * sizeof(int64_t);
    case SP_ATTRIBUTE_TENSOR:
    case SP_ATTRIBUTE_TENSORS:
        for (uint32_t i = 0; i < attribute->count; i++) {
            const sp_array_view *tensor = &attribute->as.tensors[i];
            bytes += sp__shape_count(&tensor->shape) * sp_dtype_bytes(tensor->dtype);
        }
        return bytes;
    default:
        return bytes; /* texts become no constants; graphs are counted separately */
    }
}

sp_status sp__graph_charge_attributes(sp_graph_builder *builder, sp_attribute_list attributes)
{
    for (uint32_t i = 0; builder->frame != NULL && i < attributes.count; i++) {
        SP_TRY(sp__graph_charge_call(builder, attribute_bytes(&attributes.items[i])));
    }
    return SP_OK;
}

/* ---- references to attributes ---- */

static const sp_attribute *attribute_find(sp_attribute_list list, sp_text name)
{
    for (uint32_t i = 0; i < list.count; i++) {
        if (sp__text_equal(list.items[i].name, name)) return &list.items[i];
    }
    return NULL;
}

/* The call's attribute, or the function's default; NULL if there is neither. */
static sp_status resolve_reference(sp_graph_builder *builder, const sp_attribute *reference,
                                   const sp_attribute **out)
{
    const sp_graph_call_frame *frame = builder->frame;
    const uint64_t looks =
        (uint64_t)frame->attributes.count + frame->function->file->defaults.count;
    SP_TRY(sp__graph_charge_call(builder, looks * ATTRIBUTE_COST));
    *out = attribute_find(frame->attributes, reference->reference);
    if (*out == NULL) *out = attribute_find(frame->function->file->defaults, reference->reference);
    if (*out == NULL) return SP_OK;
    const sp_text_print name = sp__text_print(reference->name);
    const bool is_graph = (*out)->type == SP_ATTRIBUTE_GRAPH || (*out)->type == SP_ATTRIBUTE_GRAPHS;
    if (is_graph || (*out)->reference.len > 0) {
        return sp__fail(SP_UNSUPPORTED,
                        "attribute '%s' is a graph passed to a function: not supported", name.text);
    }
    if (reference->type != SP_ATTRIBUTE_NONE && reference->type != (*out)->type) {
        return sp__fail(SP_CORRUPT, "attribute '%s' is of type %s, but the call passes %s",
                        name.text, sp__attribute_type_name(reference->type),
                        sp__attribute_type_name((*out)->type));
    }
    return SP_OK;
}

static bool has_references(sp_attribute_list list)
{
    for (uint32_t i = 0; i < list.count; i++) {
        if (list.items[i].reference.len > 0) return true;
    }
    return false;
}

sp_status sp__graph_resolve_attributes(sp_graph_builder *builder, sp_attribute_list file,
                                       sp_attribute_list *out)
{
    *out = file;
    SP_TRY(sp__graph_charge_call(builder, (uint64_t)file.count * ATTRIBUTE_COST));
    if (!has_references(file)) return SP_OK;
    if (builder->frame == NULL) {
        return sp__fail(SP_CORRUPT,
                        "an attribute refers to a function's attribute outside of any function");
    }
    sp_attribute *items;
    uint32_t count = 0;
    SP_TRY(sp__bump_array(&builder->graph->bump, file.count, sizeof(*items), &items));
    for (uint32_t i = 0; i < file.count; i++) {
        const sp_attribute *value = &file.items[i];
        if (value->reference.len > 0) SP_TRY(resolve_reference(builder, value, &value));
        if (value == NULL) continue;
        items[count] = *value;
        items[count++].name = file.items[i].name;
    }
    *out = (sp_attribute_list){.items = items, .count = count};
    return SP_OK;
}

/* ---- calls ---- */

sp_status sp__graph_node_name(sp_graph_builder *builder, const sp_onnx_node *file, const char **out)
{
    const bool has_name = file->name.len > 0 || file->output_count == 0;
    const sp_text name = has_name ? file->name : file->outputs[0];
    if (builder->frame == NULL) return sp__bump_text(&builder->graph->bump, name, out);
    const size_t outer_len = strlen(builder->frame->name);
    char *text;
    SP_TRY(sp__bump_text(&builder->graph->bump, name, out)); /* refuses invalid text */
    SP_TRY(sp__bump_array(&builder->graph->bump, outer_len + 1 + name.len + 1, 1, &text));
    memcpy(text, builder->frame->name, outer_len);
    text[outer_len] = '/';
    if (name.len > 0) memcpy(text + outer_len + 1, name.ptr, name.len);
    *out = text;
    return SP_OK;
}

static sp_status bind_inputs(const sp_graph_builder *builder, const sp_onnx_node *call,
                             const sp_onnx_function *file, sp_graph_scope *scope)
{
    for (uint32_t i = 0; i < file->input_count; i++) {
        uint32_t value = SP_ABSENT_VALUE;
        if (i < call->input_count && call->inputs[i].len > 0) {
            value = sp__graph_scope_find(builder->scope, call->inputs[i]);
            if (value == SP_NO_VALUE) {
                return sp__fail(SP_CORRUPT, "uses '%s', which nothing before it produces",
                                sp__text_print(call->inputs[i]).text);
            }
        }
        if (file->inputs[i].len == 0) continue;
        if (!sp__name_map_add(&scope->names, file->inputs[i], value)) {
            return sp__fail(SP_CORRUPT, "two inputs of the function are named '%s'",
                            sp__text_print(file->inputs[i]).text);
        }
    }
    return SP_OK;
}

/* Binds the outputs of the call to values that the function's nodes make. */
static sp_status bind_outputs(sp_graph_builder *builder, const sp_onnx_node *call,
                              const sp_onnx_function *file, const sp_graph_scope *scope)
{
    for (uint32_t i = 0; i < call->output_count; i++) {
        if (call->outputs[i].len == 0) continue;
        const uint32_t value = sp__name_map_find(&scope->names, file->outputs[i]);
        if (value == SP_NO_VALUE || value == SP_ABSENT_VALUE) {
            return sp__fail(SP_CORRUPT, "nothing produces output '%s' of the function",
                            sp__text_print(file->outputs[i]).text);
        }
        if (!sp__name_map_add(&builder->scope->names, call->outputs[i], value)) {
            return sp__fail(SP_CORRUPT, "two values are named '%s'",
                            sp__text_print(call->outputs[i]).text);
        }
    }
    return SP_OK;
}

static uint64_t count_names(const sp_onnx_function *file)
{
    uint64_t names = file->input_count;
    for (uint32_t i = 0; i < file->node_count; i++) names += file->nodes[i].output_count;
    return names;
}

/* Imports the function's nodes, with the scope, the opsets and the attributes of the call. */
static sp_status import_nodes(sp_graph_builder *builder, const sp_onnx_function *file,
                              sp_graph_scope *scope, const sp_graph_call_frame *frame)
{
    sp_graph_scope *outer_scope = builder->scope;
    const sp_graph_call_frame *outer_frame = builder->frame;
    builder->scope = scope;
    builder->frame = frame;
    sp_status status = SP_OK;
    for (uint32_t i = 0; i < file->node_count && status == SP_OK; i++) {
        status = sp__graph_import_node(builder, &file->nodes[i]);
    }
    builder->scope = outer_scope;
    builder->frame = outer_frame;
    return status;
}

static sp_status call_function(sp_graph_builder *builder, const sp_onnx_node *call,
                               sp_graph_call_frame *frame)
{
    const sp_onnx_function *file = frame->function->file;
    if (call->input_count > file->input_count || call->output_count > file->output_count) {
        return sp__fail(SP_CORRUPT,
                        "is called with %" PRIu32 " inputs and %" PRIu32
                        " outputs; the function has %" PRIu32 " and %" PRIu32,
                        call->input_count, call->output_count, file->input_count,
                        file->output_count);
    }
    SP_TRY(sp__graph_resolve_attributes(builder, call->attributes, &frame->attributes));
    sp_graph_scope scope = {.region = builder->scope->region, .home = builder->scope->home};
    SP_TRY(sp__name_map_init(&scope.names, count_names(file), builder->main.names.key));
    sp_status status = bind_inputs(builder, call, file, &scope);
    if (status == SP_OK) status = import_nodes(builder, file, &scope, frame);
    if (status == SP_OK) status = bind_outputs(builder, call, file, &scope);
    sp__name_map_deinit(&scope.names);
    return status;
}

sp_status sp__graph_import_call(sp_graph_builder *builder, const sp_onnx_node *call,
                                const sp_graph_function *function)
{
    sp_graph_call_frame frame = {.function = function};
    SP_TRY(sp__graph_node_name(builder, call, &frame.name));
    const sp_status status = call_function(builder, call, &frame);
    if (status == SP_OK) return SP_OK;
    return sp__fail_prefix(status, "in '%s' (%s): ", sp__text_print(sp__text(frame.name)).text,
                           sp__text_print(function->file->name).text);
}

/* ---- opsets ---- */

bool sp__graph_find_opset(const sp_graph_builder *builder, sp_text domain, int64_t *out)
{
    const sp_onnx_function *inside = builder->frame != NULL ? builder->frame->function->file : NULL;
    const sp_onnx_opset *opsets = inside != NULL ? inside->opsets : builder->model->opsets;
    const uint32_t count = inside != NULL ? inside->opset_count : builder->model->opset_count;
    const bool is_onnx = sp__op_is_onnx_domain(domain);
    for (uint32_t i = 0; i < count; i++) {
        const bool is_same = is_onnx ? sp__op_is_onnx_domain(opsets[i].domain)
                                     : sp__text_equal(opsets[i].domain, domain);
        if (!is_same) continue;
        *out = opsets[i].version;
        return true;
    }
    return false;
}

sp_status sp__graph_opset_version(const sp_graph_builder *builder, sp_text domain, int64_t *out)
{
    if (sp__graph_find_opset(builder, domain, out)) return SP_OK;
    return sp__fail(SP_CORRUPT, "the %s names no version of the opset '%s'",
                    builder->frame != NULL ? "function" : "model",
                    sp__op_is_onnx_domain(domain) ? "ai.onnx" : sp__text_print(domain).text);
}
