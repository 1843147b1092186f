/* SPDX-License-Identifier: Apache-2.0 */
#include "support/eager_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/registry.h"
#include "support/onnx_writer.h"
#include "tensor/onnx_dtype.h"

/* ---- from a file ---- */

static char *text_of(sp_text text)
{
    char *copy = malloc(text.len + 1);
    if (copy == NULL) abort();
    if (text.len > 0) memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    return copy;
}

/* All strings of an attribute in one block: the pointers, then the strings. */
static char *list_of(const sp_attribute *from)
{
    size_t bytes = from->count * sizeof(char *);
    for (uint32_t i = 0; i < from->count; i++) bytes += from->as.strings[i].len + 1;
    char *block = calloc(1, bytes + 1);
    if (block == NULL) abort();
    char *at = block + from->count * sizeof(char *);
    for (uint32_t i = 0; i < from->count; i++) {
        memcpy(block + i * sizeof at, &at, sizeof at);
        if (from->as.strings[i].len > 0)
            memcpy(at, from->as.strings[i].ptr, from->as.strings[i].len);
        at += from->as.strings[i].len + 1;
    }
    return block;
}

static bool read_attribute(eager_case *c, uint32_t index, const sp_attribute *from)
{
    sp_op_attribute *to = &c->attributes[index];
    to->name = text_of(from->name);
    to->type = (sp_op_attribute_type)from->type;
    to->count = from->count;
    if (from->type == SP_ATTRIBUTE_FLOAT) to->f = from->as.floats[0];
    else if (from->type == SP_ATTRIBUTE_INT) to->i = from->as.ints[0];
    else if (from->type == SP_ATTRIBUTE_FLOATS) to->floats = from->as.floats;
    else if (from->type == SP_ATTRIBUTE_INTS) to->ints = from->as.ints;
    else if (from->type == SP_ATTRIBUTE_STRING)
        to->s = c->texts[index] = text_of(*from->as.strings);
    else if (from->type == SP_ATTRIBUTE_STRINGS) {
        c->texts[index] = list_of(from);
        to->strings = (const char *const *)(const void *)c->texts[index];
    } else if (from->type == SP_ATTRIBUTE_TENSOR) {
        const sp_array_view *view = from->as.tensors;
        sp_host_tensor *tensor = &c->tensors[index];
        *tensor = (sp_host_tensor){.dtype = view->dtype, .rank = view->shape.rank};
        if (sp__shape_bytes(&view->shape, view->dtype, &tensor->bytes) != SP_OK) return false;
        memcpy(tensor->shape, view->shape.dims, sizeof view->shape.dims);
        tensor->data = (void *)(uintptr_t)view->data;
        to->t = tensor;
    } else {
        return false;
    }
    return true;
}

static bool read_attributes(eager_case *c, const sp_onnx_node *node)
{
    if (node->attributes.count > SP_OP_MAX_ATTRIBUTES) return false;
    for (uint32_t i = 0; i < node->attributes.count; i++) {
        if (!read_attribute(c, i, &node->attributes.items[i])) return false;
    }
    c->options.attributes = c->attributes;
    c->options.attribute_count = node->attributes.count;
    return true;
}

static const sp_onnx_tensor *find_initializer(const sp_onnx_graph *graph, sp_text name,
                                              uint32_t *at)
{
    for (*at = 0; *at < graph->initializer_count; (*at)++) {
        if (sp__text_equal(graph->initializers[*at].name, name)) return &graph->initializers[*at];
    }
    return NULL;
}

static const sp_array *find_constant(eager_case *c, sp_text name)
{
    uint32_t at;
    const sp_onnx_tensor *tensor = find_initializer(&c->file->graph, name, &at);
    if (tensor == NULL || at >= CASE_OPERANDS) return NULL;
    sp_array *array = &c->constants[at];
    if (array->data != NULL) return array;
    if (sp__array_init(array, tensor->dtype, &tensor->shape) != SP_OK) return NULL;
    return sp__onnx_tensor_decode(tensor, array->data) == SP_OK ? array : NULL;
}

/* The array of a graph input: the given arrays belong, in order, to the inputs without
 * initializer. */
static const sp_array *find_given(eager_case *c, sp_text name)
{
    const sp_onnx_graph *graph = &c->file->graph;
    uint32_t given = 0;
    for (uint32_t i = 0; i < graph->input_count; i++) {
        uint32_t at;
        if (find_initializer(graph, graph->inputs[i].name, &at) != NULL) continue;
        if (sp__text_equal(graph->inputs[i].name, name)) {
            return given < c->given_count ? &c->given[given] : NULL;
        }
        given++;
    }
    return NULL;
}

static bool read_operands(eager_case *c, const sp_onnx_node *node)
{
    if (node->input_count > CASE_OPERANDS || node->output_count > CASE_OPERANDS) return false;
    c->operand_count = node->input_count;
    c->result_count = node->output_count;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->inputs[i].len == 0) continue;
        c->operands[i] = find_given(c, node->inputs[i]);
        if (c->operands[i] == NULL) c->operands[i] = find_constant(c, node->inputs[i]);
        if (c->operands[i] == NULL) return false;
    }
    return true;
}

static bool read_results(eager_case *c, const sp_onnx_node *node)
{
    const sp_onnx_graph *graph = &c->file->graph;
    c->output_count = graph->output_count;
    for (uint32_t i = 0; i < graph->output_count; i++) {
        uint32_t k = 0;
        while (k < node->output_count &&
               !sp__text_equal(node->outputs[k], graph->outputs[i].name)) {
            k++;
        }
        if (k == node->output_count) return false;
        c->result_of[i] = k;
    }
    return true;
}

static bool read_file(eager_case *c)
{
    if (sp__onnx_read(c->bytes, c->len, &c->file) != SP_OK) return false;
    const sp_onnx_graph *graph = &c->file->graph;
    if (graph->node_count != 1 || c->file->function_count > 0) return false;
    const sp_onnx_node *node = &graph->nodes[0];
    for (uint32_t i = 0; i < c->file->opset_count; i++) {
        if (!sp__op_is_onnx_domain(c->file->opsets[i].domain)) continue;
        c->options.opset = (uint32_t)c->file->opsets[i].version;
    }
    if (!sp__op_is_onnx_domain(node->domain) || node->op_type.len >= sizeof c->op) return false;
    memcpy(c->op, node->op_type.ptr, node->op_type.len);
    return read_attributes(c, node) && read_operands(c, node) && read_results(c, node);
}

bool eager_case_open(unsigned char *bytes, size_t len, sp_array *inputs, uint32_t input_count,
                     eager_case *out)
{
    *out = (eager_case){.bytes = bytes, .len = len, .given_count = input_count};
    for (uint32_t i = 0; i < input_count; i++) out->given[i] = inputs[i];
    if (read_file(out)) return true;
    eager_case_close(out);
    return false;
}

void eager_case_close(eager_case *c)
{
    for (uint32_t i = 0; i < SP_OP_MAX_ATTRIBUTES; i++) {
        free((void *)(uintptr_t)c->attributes[i].name);
        free(c->texts[i]);
    }
    data_free(c->given, CASE_OPERANDS);
    data_free(c->constants, CASE_OPERANDS);
    if (c->file != NULL) sp__onnx_destroy(c->file);
    free(c->bytes);
}

/* ---- from a row ---- */

static void row_fail(const eager_row *row, const char *where)
{
    fprintf(stderr, "a row of %s: %s\n", row->op, where);
    abort();
}

static sp_dtype dtype_of(const char *word, size_t len)
{
    for (int dtype = SP_F32; dtype <= SP_BOOL; dtype++) {
        const char *name = sp_dtype_name((sp_dtype)dtype);
        if (strlen(name) == len && strncmp(name, word, len) == 0) return (sp_dtype)dtype;
    }
    return SP_DTYPE_NONE;
}

/* Reads numbers separated by commas; returns their count. */
static uint32_t read_numbers(const char *text, double *out, uint32_t max)
{
    uint32_t count = 0;
    while (count < max && *text != '\0' && *text != ']') {
        char *end;
        out[count++] = strtod(text, &end);
        text = *end == ',' ? end + 1 : end;
        if (*end != ',' && *end != ']' && *end != '\0') abort();
    }
    return count;
}

/* These small numbers are exact in bf16 and f16. */
static uint16_t half_bits(double value, bool is_bf16)
{
    const float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    if (is_bf16) return (uint16_t)(bits >> 16);
    const uint32_t sign = bits >> 16 & 0x8000;
    const int32_t exponent = (int32_t)(bits >> 23 & 0xff) - 127 + 15;
    if (value == 0) return (uint16_t)sign;
    return (uint16_t)(sign | (uint32_t)exponent << 10 | (bits >> 13 & 0x3ff));
}

static void set_element(sp_array *array, uint64_t index, double value)
{
    void *at = (char *)array->data + index * sp_dtype_bytes(array->dtype);
    const int64_t integer = (int64_t)value;
    const float narrow = (float)value;
    uint16_t half;
    switch (array->dtype) {
    case SP_F32:
        memcpy(at, &narrow, sizeof narrow);
        return;
    case SP_F64:
        memcpy(at, &value, sizeof value);
        return;
    case SP_F16:
    case SP_BF16:
        half = half_bits(value, array->dtype == SP_BF16);
        memcpy(at, &half, sizeof half);
        return;
    case SP_BOOL:
        *(uint8_t *)at = value > 0;
        return;
    default: /* little endian only */
        memcpy(at, &integer, sp_dtype_bytes(array->dtype));
    }
}

static double random_value(data_random *random, sp_dtype dtype)
{
    if (dtype == SP_BOOL) return data_next_float(random) > 0;
    const double eighths = (double)((int64_t)(data_next(random) % 33) - 16) / 8;
    const bool is_unsigned = dtype >= SP_U8 && dtype <= SP_U64;
    if (dtype == SP_I32 || dtype == SP_I64) return (double)(data_next(random) % 2);
    return is_unsigned ? eighths * eighths : eighths;
}

static sp_array read_input(const eager_row *row, const char *word, data_random *random)
{
    double numbers[64] = {0};
    const size_t len = strcspn(word, "[=:");
    sp_array array = {0};
    sp_shape shape = {0};
    const sp_dtype dtype = dtype_of(word, len);
    if (dtype == SP_DTYPE_NONE) row_fail(row, word);
    const uint32_t count = read_numbers(word + len + 1, numbers, SP_COUNT_OF(numbers));
    if (word[len] == '=') shape = SHAPE((int64_t)count);
    if (word[len] == '[') {
        for (shape.rank = 0; shape.rank < count; shape.rank++) {
            shape.dims[shape.rank] = (int64_t)numbers[shape.rank];
        }
    }
    if (sp__array_init(&array, dtype, &shape) != SP_OK) row_fail(row, word);
    for (uint64_t i = 0; i < sp__shape_count(&shape); i++) {
        set_element(&array, i, word[len] == '[' ? random_value(random, dtype) : numbers[i]);
    }
    return array;
}

static void add_attribute(const eager_row *row, writer *node, const char *word)
{
    char name[64];
    double numbers[16] = {0};
    int64_t ints[16];
    float floats[16];
    const size_t len = strcspn(word, "=");
    if (word[len] != '=' || len >= sizeof name) row_fail(row, word);
    memcpy(name, word, len);
    name[len] = '\0';
    const char *value = word + len + 1;
    if (value[0] == '\'') {
        char text[64] = "";
        snprintf(text, sizeof text, "%.*s", (int)strcspn(value + 1, "'"), value + 1);
        add_attribute_text(node, name, text);
    } else if (strcmp(value, "tensor") == 0) {
        const int64_t seven = 7, one = 1;
        writer tensor = make_tensor("", sp__onnx_data_type(SP_I64), &one, 1, &seven, sizeof seven);
        add_attribute_tensor(node, name, &tensor);
    } else if (value[0] == '[') {
        const uint32_t count = read_numbers(value + 1, numbers, 16);
        for (uint32_t i = 0; i < count; i++) ints[i] = (int64_t)numbers[i];
        for (uint32_t i = 0; i < count; i++) floats[i] = (float)numbers[i];
        if (strchr(value, '.') != NULL) add_attribute_floats(node, name, floats, count);
        else add_attribute_ints(node, name, ints, count);
    } else {
        (void)read_numbers(value, numbers, 1);
        if (strchr(value, '.') != NULL) add_attribute_float(node, name, (float)numbers[0]);
        else add_attribute_int(node, name, (int64_t)numbers[0]);
    }
}

void eager_case_make(const eager_row *row, eager_case *out)
{
    data_random random = {.state = 11};
    char words[512], names[256] = "", results[256] = "";
    char *rest = NULL;
    sp_array inputs[CASE_OPERANDS] = {0};
    uint32_t count = 0, given = 0;
    writer graph = {0};
    snprintf(words, sizeof words, "%s", row->inputs);
    for (char *word = strtok_r(words, " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest)) {
        char name[16];
        const bool is_absent = strcmp(word, "-") == 0;
        snprintf(name, sizeof name, is_absent ? "-" : "x%u", count++);
        if (count > 1) strncat(names, " ", sizeof names - strlen(names) - 1);
        strncat(names, name, sizeof names - strlen(names) - 1);
        if (is_absent) continue;
        inputs[given] = read_input(row, word, &random);
        add_input(&graph, name, sp__onnx_data_type(inputs[given].dtype), inputs[given].shape.dims,
                  (int)inputs[given].shape.rank);
        given++;
    }
    for (uint32_t i = 0; i < row->outputs; i++) {
        char name[16];
        snprintf(name, sizeof name, "%sy%u", i > 0 ? " " : "", i);
        strncat(results, name, sizeof results - strlen(results) - 1);
        add_output(&graph, i > 0 ? name + 1 : name);
    }
    writer node = make_node(row->op, names, results);
    snprintf(words, sizeof words, "%s", row->attributes);
    for (char *word = strtok_r(words, " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest)) {
        add_attribute(row, &node, word);
    }
    add_node(&graph, node);
    writer file = make_model(&graph, row->opset);
    if (!eager_case_open(file.bytes, file.len, inputs, given, out)) row_fail(row, "no case");
}

/* ---- runs ---- */

static sp_status run_loaded(const eager_case *c, sp_model model, sp_array *outputs)
{
    sp_host_tensor ins[CASE_OPERANDS] = {0}, outs[CASE_OPERANDS] = {0};
    for (uint32_t i = 0; i < c->given_count; i++) {
        const sp_array *array = &c->given[i];
        ins[i] = (sp_host_tensor){.data = array->data,
                                  .bytes = array->bytes,
                                  .dtype = array->dtype,
                                  .rank = array->shape.rank};
        memcpy(ins[i].shape, array->shape.dims, sizeof ins[i].shape);
    }
    SP_TRY(sp_model_infer(model, ins, c->given_count, outs, c->output_count));
    for (uint32_t i = 0; i < c->output_count; i++) {
        sp_shape shape;
        SP_TRY(sp__shape_make(outs[i].shape, outs[i].rank, &shape));
        SP_TRY(sp__array_init(&outputs[i], outs[i].dtype, &shape));
        outs[i].data = outputs[i].data;
        outs[i].capacity = outputs[i].bytes;
        memset(outputs[i].data, 0xff, (size_t)outputs[i].bytes);
    }
    return sp_model_run(model, ins, c->given_count, outs, c->output_count);
}

sp_status eager_case_run_model(const eager_case *c, sp_device device, sp_array *outputs)
{
    sp_model model;
    const sp_model_options options = {.device = device};
    SP_TRY(sp_model_load_from_memory(c->bytes, c->len, &options, &model));
    const sp_status status = run_loaded(c, model, outputs);
    (void)sp_model_release(model);
    if (status != SP_OK) data_free(outputs, c->output_count);
    return status;
}

/* A view with reversed dimension order in memory, with every other element unused, the first one
 * too. */
static sp_status make_scattered(sp_device device, const sp_array *array, sp_tensor *out)
{
    int64_t strides[SP_MAX_RANK] = {0}, next = 2;
    const sp_shape *shape = &array->shape;
    for (uint32_t i = 0; i < shape->rank; i++) {
        strides[i] = next;
        next *= shape->dims[i] > 0 ? shape->dims[i] : 1;
    }
    const uint64_t element = sp_dtype_bytes(array->dtype);
    sp_storage storage;
    SP_TRY(sp_storage_create(device, (uint64_t)(next + 2) * element, NULL, &storage));
    const sp_status status = sp_tensor_from_storage(storage, element, array->dtype, shape->rank,
                                                    shape->dims, strides, out);
    (void)sp_storage_release(storage);
    return status;
}

sp_status tensor_from_array(sp_device device, const sp_array *array, bool is_scattered,
                            sp_tensor *out)
{
    if (is_scattered) SP_TRY(make_scattered(device, array, out));
    else SP_TRY(sp_tensor_create(device, array->dtype, array->shape.rank, array->shape.dims, out));
    return sp_tensor_write(*out, array->data, array->bytes);
}

sp_status array_from_tensor(sp_tensor tensor, sp_array *out)
{
    sp_tensor_info info;
    sp_shape shape;
    SP_TRY(sp_tensor_get_info(tensor, &info));
    SP_TRY(sp__shape_make(info.shape, info.rank, &shape));
    SP_TRY(sp__array_init(out, info.dtype, &shape));
    return sp_tensor_read(tensor, out->data, out->bytes);
}

void tensors_release(const sp_tensor *tensors, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) (void)sp_tensor_release(tensors[i]);
}

sp_status eager_case_upload(const eager_case *c, sp_device device, bool is_scattered,
                            sp_tensor *tensors)
{
    for (uint32_t i = 0; i < c->operand_count; i++) {
        tensors[i] = (sp_tensor){0};
        if (c->operands[i] == NULL) continue;
        SP_TRY(tensor_from_array(device, c->operands[i], is_scattered, &tensors[i]));
    }
    return SP_OK;
}

sp_status eager_case_call(const eager_case *c, sp_device device, const sp_tensor *tensors,
                          sp_tensor *results)
{
    sp_op_options options = c->options;
    options.device = device;
    return sp_op_run(c->op, &options, tensors, c->operand_count, results, c->result_count);
}

sp_status eager_case_run(const eager_case *c, sp_device device, bool is_scattered,
                         sp_array *outputs)
{
    sp_tensor tensors[CASE_OPERANDS] = {0}, results[CASE_OPERANDS] = {0};
    sp_status status = eager_case_upload(c, device, is_scattered, tensors);
    if (status == SP_OK) status = eager_case_call(c, device, tensors, results);
    tensors_release(tensors, CASE_OPERANDS);
    for (uint32_t i = 0; i < c->output_count && status == SP_OK; i++) {
        status = array_from_tensor(results[c->result_of[i]], &outputs[i]);
    }
    tensors_release(results, CASE_OPERANDS);
    if (status != SP_OK) data_free(outputs, c->output_count);
    return status;
}

bool arrays_are_same(const sp_array *a, const sp_array *b, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const bool is_same = a[i].dtype == b[i].dtype && a[i].bytes == b[i].bytes &&
                             sp__shape_equal(&a[i].shape, &b[i].shape) &&
                             memcmp(a[i].data, b[i].data, (size_t)a[i].bytes) == 0;
        if (!is_same) return false;
    }
    return true;
}
