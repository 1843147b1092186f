/* SPDX-License-Identifier: Apache-2.0 */
/* Summaries of ONNX files. All tables and strings are made when the file is read, in a bump
 * allocator of the object; constant from publish to destroy. */
#include <streampool/model_file.h>

#include "base/bump.h"
#include "base/error.h"
#include "base/file.h"
#include "base/handle.h"
#include "base/heap.h"
#include "model/model_file_ops.h"
#include "onnx/onnx.h"
#include "runtime/runtime_state.h"

/* Limit of the tables and names: bytes for each byte of the file, and bytes in addition. */
enum { BYTES_PER_BYTE = 32, BYTES_FREE = 1 << 20 };

typedef struct file_tables {
    sp_model_file_info info;
    const sp_model_file_opset *opsets;
    const sp_model_file_port *inputs, *outputs;
    const sp_model_file_op *ops;
    sp_bump bump; /* owns all of them, and the strings */
} file_tables;

typedef struct sp_rt_model_file {
    SP_CACHE_ALIGNED sp_object object;
    file_tables tables;
} sp_rt_model_file;

static void file_destroy(sp_object *object);

static sp_handle_table files = {/* process-wide: the table of all handles of model files */
                                .kind = SP_KIND_MODEL_FILE,
                                .object_bytes = sizeof(sp_rt_model_file),
                                .destroy = file_destroy,
                                .lock = SP_MUTEX_INIT(SP_LOCK_HANDLE_TABLE)};

static void file_destroy(sp_object *object)
{
    sp_rt_model_file *file = SP_CONTAINER_OF(object, sp_rt_model_file, object);
    if (sp__runtime_is_forked()) return;
    sp__bump_deinit(&file->tables.bump);
    sp__handle_recycle(&files, object);
}

/* ---- tables ---- */

/* A terminated copy, with '?' for each NUL. */
static sp_status text_copy(sp_bump *bump, sp_text text, const char **out)
{
    char *copy;
    SP_TRY(sp__bump_array(bump, (uint64_t)text.len + 1, 1, &copy));
    for (size_t i = 0; i < text.len; i++) copy[i] = text.ptr[i] != '\0' ? text.ptr[i] : '?';
    *out = copy;
    return SP_OK;
}

static sp_status opsets_make(const sp_onnx_model *model, file_tables *out)
{
    sp_model_file_opset *opsets;
    SP_TRY(sp__bump_array(&out->bump, model->opset_count, sizeof *opsets, &opsets));
    for (uint32_t i = 0; i < model->opset_count; i++) {
        opsets[i].version = model->opsets[i].version;
        SP_TRY(text_copy(&out->bump, model->opsets[i].domain, &opsets[i].domain));
    }
    out->opsets = opsets;
    return SP_OK;
}

static sp_status port_make(sp_bump *bump, const sp_onnx_value_info *from, sp_model_file_port *to)
{
    to->is_tensor = from->is_tensor;
    to->has_shape = from->has_shape;
    to->dtype = from->dtype;
    to->rank = from->has_shape ? from->rank : 0;
    for (uint32_t i = 0; i < to->rank; i++) {
        to->shape[i] = from->dims[i].value;
        SP_TRY(text_copy(bump, from->dims[i].param, &to->dim_names[i]));
    }
    return text_copy(bump, from->name, &to->name);
}

static sp_status ports_make(sp_bump *bump, const sp_onnx_value_info *from, uint32_t count,
                            const sp_model_file_port **out)
{
    sp_model_file_port *ports;
    SP_TRY(sp__bump_array(bump, count, sizeof *ports, &ports));
    for (uint32_t i = 0; i < count; i++) SP_TRY(port_make(bump, &from[i], &ports[i]));
    *out = ports;
    return SP_OK;
}

static sp_status ops_copy(const sp_file_op *from, uint32_t count, file_tables *out)
{
    sp_model_file_op *ops;
    SP_TRY(sp__bump_array(&out->bump, count, sizeof *ops, &ops));
    for (uint32_t i = 0; i < count; i++) {
        ops[i] = (sp_model_file_op){.version = from[i].version,
                                    .count = from[i].count,
                                    .is_function = from[i].is_function,
                                    .is_supported = from[i].is_supported};
        SP_TRY(text_copy(&out->bump, from[i].domain, &ops[i].domain));
        SP_TRY(text_copy(&out->bump, from[i].name, &ops[i].name));
        out->info.unsupported_op_count += !from[i].is_supported;
    }
    out->ops = ops;
    out->info.op_count = count;
    return SP_OK;
}

static sp_status ops_make(const sp_onnx_model *model, file_tables *out)
{
    sp_file_op *ops;
    uint32_t count;
    SP_TRY(sp__file_ops_count(model, &ops, &count));
    const sp_status status = ops_copy(ops, count, out);
    sp_free(ops);
    return status;
}

static sp_status tables_make(const sp_onnx_model *model, file_tables *out)
{
    const sp_onnx_graph *graph = &model->graph;
    out->info = (sp_model_file_info){.ir_version = model->ir_version,
                                     .opset_count = model->opset_count,
                                     .node_count = graph->node_count,
                                     .initializer_count = graph->initializer_count,
                                     .function_count = model->function_count,
                                     .input_count = graph->input_count,
                                     .output_count = graph->output_count};
    SP_TRY(text_copy(&out->bump, model->producer, &out->info.producer));
    SP_TRY(opsets_make(model, out));
    SP_TRY(ports_make(&out->bump, graph->inputs, graph->input_count, &out->inputs));
    SP_TRY(ports_make(&out->bump, graph->outputs, graph->output_count, &out->outputs));
    return ops_make(model, out);
}

/* ---- life ---- */

static sp_status bytes_read(const void *bytes, size_t len, file_tables *out)
{
    const sp_onnx_model *model;
    SP_TRY(sp__onnx_read(bytes, len, &model));
    sp__bump_init(&out->bump, (uint64_t)len * BYTES_PER_BYTE + BYTES_FREE);
    const sp_status status = tables_make(model, out);
    if (status != SP_OK) sp__bump_deinit(&out->bump);
    sp__onnx_destroy(model);
    return status;
}

static sp_status bytes_open(const void *bytes, size_t len, sp_model_file *out)
{
    file_tables tables = {0};
    sp_object *object;
    SP_TRY(bytes_read(bytes, len, &tables));
    const sp_status status = sp__handle_acquire(&files, &object);
    if (status != SP_OK) {
        sp__bump_deinit(&tables.bump);
        return status;
    }
    SP_CONTAINER_OF(object, sp_rt_model_file, object)->tables = tables;
    out->bits = sp__handle_publish(&files, object);
    return SP_OK;
}

sp_status sp_model_file_open_memory(const void *bytes, size_t len, sp_model_file *out)
{
    if (out == NULL) return sp__fail(SP_INVALID, "sp_model_file_open_memory: out is NULL");
    *out = (sp_model_file){0};
    SP_TRY(sp__runtime_enter());
    if (bytes == NULL) return sp__fail(SP_INVALID, "sp_model_file_open_memory: bytes is NULL");
    if (len > PTRDIFF_MAX) { /* no object is that large: refuse it before anything is read */
        return sp__fail(SP_INVALID,
                        "sp_model_file_open_memory: len is %zu bytes, which no file has", len);
    }
    return bytes_open(bytes, len, out);
}

sp_status sp_model_file_open(const char *path, sp_model_file *out)
{
    void *bytes;
    size_t len;
    if (out == NULL) return sp__fail(SP_INVALID, "sp_model_file_open: out is NULL");
    *out = (sp_model_file){0};
    SP_TRY(sp__runtime_enter());
    if (path == NULL) return sp__fail(SP_INVALID, "sp_model_file_open: path is NULL");
    SP_TRY(sp_file_read(path, &bytes, &len));
    const sp_status status = bytes_open(bytes, len, out);
    sp_free(bytes);
    return status == SP_OK ? SP_OK : sp__fail_prefix(status, "%s: ", path);
}

sp_status sp_model_file_retain(sp_model_file file)
{
    SP_TRY(sp__runtime_enter());
    return sp__handle_retain(&files, file.bits, "model file");
}

sp_status sp_model_file_release(sp_model_file file)
{
    if (sp__runtime_is_forked()) return SP_OK;
    return sp__handle_release(&files, file.bits, "model file");
}

/* ---- questions ---- */

/* The file with a hold, for a question whose answer goes to `out`. */
static sp_status file_hold(sp_model_file handle, const void *out, sp_rt_model_file **file)
{
    if (out == NULL) {
        return sp__fail(SP_INVALID, "a question about a model file: out is NULL");
    }
    SP_TRY(sp__runtime_enter());
    sp_object *object = sp__handle_hold(&files, handle.bits, "model file");
    if (object == NULL) return SP_INVALID;
    *file = SP_CONTAINER_OF(object, sp_rt_model_file, object);
    return SP_OK;
}

/* Drops the hold. SP_NOT_FOUND if `index` is not below `count`. */
static sp_status file_answer(sp_rt_model_file *file, uint32_t index, uint32_t count,
                             const char *noun)
{
    sp__object_drop(&files, &file->object);
    if (index < count) return SP_OK;
    return sp__fail(SP_NOT_FOUND, "the file has %u %s, none with index %u", count, noun, index);
}

sp_status sp_model_file_get_info(sp_model_file handle, sp_model_file_info *out)
{
    sp_rt_model_file *file;
    SP_TRY(file_hold(handle, out, &file));
    *out = file->tables.info;
    sp__object_drop(&files, &file->object);
    return SP_OK;
}

sp_status sp_model_file_get_opset(sp_model_file handle, uint32_t index, sp_model_file_opset *out)
{
    sp_rt_model_file *file;
    SP_TRY(file_hold(handle, out, &file));
    const uint32_t count = file->tables.info.opset_count;
    if (index < count) *out = file->tables.opsets[index];
    return file_answer(file, index, count, "operator sets");
}

sp_status sp_model_file_get_input(sp_model_file handle, uint32_t index, sp_model_file_port *out)
{
    sp_rt_model_file *file;
    SP_TRY(file_hold(handle, out, &file));
    const uint32_t count = file->tables.info.input_count;
    if (index < count) *out = file->tables.inputs[index];
    return file_answer(file, index, count, "inputs");
}

sp_status sp_model_file_get_output(sp_model_file handle, uint32_t index, sp_model_file_port *out)
{
    sp_rt_model_file *file;
    SP_TRY(file_hold(handle, out, &file));
    const uint32_t count = file->tables.info.output_count;
    if (index < count) *out = file->tables.outputs[index];
    return file_answer(file, index, count, "outputs");
}

sp_status sp_model_file_get_op(sp_model_file handle, uint32_t index, sp_model_file_op *out)
{
    sp_rt_model_file *file;
    SP_TRY(file_hold(handle, out, &file));
    const uint32_t count = file->tables.info.op_count;
    if (index < count) *out = file->tables.ops[index];
    return file_answer(file, index, count, "ops");
}
