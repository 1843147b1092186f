/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of the tests of tensor, ops and model. */
#include "support/model_data.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "base/macros.h"
#include "ops/activation.h"
#include "ops/evaluate.h"
#include "ops/registry.h"

bool data_path(char out[DATA_PATH_BYTES], const char *format, ...)
{
    const char *root = getenv("STREAMPOOL_TEST_DATA");
    if (root == NULL || root[0] == '\0') root = SP_TEST_DATA_DIR;
    const int used = snprintf(out, DATA_PATH_BYTES, "%s/", root);
    va_list args;
    va_start(args, format);
    vsnprintf(out + used, DATA_PATH_BYTES - (size_t)used, format, args);
    va_end(args);
    FILE *file = fopen(out, "rb");
    if (file == NULL) return false;
    fclose(file);
    return true;
}

unsigned char *data_read(const char *path, size_t *len)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) return NULL;
    fseek(file, 0, SEEK_END);
    const long size = ftell(file);
    rewind(file);
    unsigned char *bytes = malloc(size > 0 ? (size_t)size : 1);
    *len = fread(bytes, 1, (size_t)size, file);
    fclose(file);
    return bytes;
}

uint64_t data_next(data_random *random)
{
    random->state += 0x9e3779b97f4a7c15u;
    uint64_t z = random->state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

float data_next_float(data_random *random)
{
    return (float)(int64_t)(data_next(random) >> 40) / 8388608.0f - 1.0f;
}

void data_fill(data_random *random, float *out, size_t count)
{
    for (size_t i = 0; i < count; i++) out[i] = data_next_float(random);
}

bool data_is_same(float a, float b)
{
    uint32_t a_bits, b_bits;
    memcpy(&a_bits, &a, sizeof(a_bits));
    memcpy(&b_bits, &b, sizeof(b_bits));
    return a_bits == b_bits;
}

uint64_t data_hash(const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < len; i++) hash = (hash ^ at[i]) * 0x100000001b3u;
    return hash;
}

sp_array data_floats(data_random *random, const sp_shape *shape)
{
    sp_array array;
    if (sp__array_init(&array, SP_F32, shape) != SP_OK) abort();
    data_fill(random, array.data, (size_t)(array.bytes / sizeof(float)));
    return array;
}

sp_array data_ints(const int64_t *values, int64_t count)
{
    const sp_shape shape = {.rank = 1, .dims = {count}};
    sp_array array;
    if (sp__array_init(&array, SP_I64, &shape) != SP_OK) abort();
    if (array.bytes > 0) memcpy(array.data, values, (size_t)array.bytes);
    return array;
}

void data_free(sp_array *arrays, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) sp__array_deinit(&arrays[i]);
}

sp_array data_counted(sp_dtype dtype, sp_shape shape, uint64_t start)
{
    sp_array array;
    if (sp__array_init(&array, dtype, &shape) != SP_OK) abort();
    const size_t size = sp_dtype_bytes(dtype);
    for (uint64_t i = 0; i < array.bytes / size; i++) {
        const uint64_t value = start + i;
        memcpy((char *)array.data + i * size, &value, size);
    }
    return array;
}

uint64_t data_element(const sp_array *array, uint64_t index)
{
    const size_t size = sp_dtype_bytes(array->dtype);
    uint64_t value = 0;
    memcpy(&value, (const char *)array->data + index * size, size);
    return value;
}

sp_cpu_isa data_asked_isa(void)
{
    const char *asked = getenv("STREAMPOOL_ISA");
    for (int isa = 0; asked != NULL && isa < SP_CPU_ISA_COUNT; isa++) {
        const bool is_there = sp__cpu_kernels((sp_cpu_isa)isa) != NULL;
        if (is_there && strcmp(asked, sp__cpu_isa_name((sp_cpu_isa)isa)) == 0) {
            return (sp_cpu_isa)isa;
        }
    }
    return SP_CPU_ISA_COUNT;
}

static sp_attribute make_attribute(const char *name, sp_attribute_type type, uint32_t count)
{
    return (sp_attribute){.name = sp__text(name), .type = type, .count = count};
}

sp_attribute data_attribute_ints(const char *name, const int64_t *values, uint32_t count)
{
    sp_attribute a = make_attribute(name, SP_ATTRIBUTE_INTS, count);
    a.as.ints = values;
    return a;
}

sp_attribute data_attribute_int(const char *name, const int64_t *value)
{
    sp_attribute a = make_attribute(name, SP_ATTRIBUTE_INT, 1);
    a.as.ints = value;
    return a;
}

sp_attribute data_attribute_float(const char *name, const float *value)
{
    sp_attribute a = make_attribute(name, SP_ATTRIBUTE_FLOAT, 1);
    a.as.floats = value;
    return a;
}

sp_attribute data_attribute_text(const char *name, const sp_text *value)
{
    sp_attribute a = make_attribute(name, SP_ATTRIBUTE_STRING, 1);
    a.as.strings = value;
    return a;
}

typedef struct op_memory {
    const sp_op_call *call;
    const sp_kernel *kernels;
    sp_array *outputs;
    void *packed[SP_OP_PACKED_INPUTS]; /* from input 1 on */
    void *scratch[SP_LOWERING_MAX_SCRATCH];
} op_memory;

static void *op_place(const sp_operand *operand, void *context)
{
    op_memory *memory = context;
    switch (operand->kind) {
    case SP_OPERAND_INPUT:
        return (void *)(uintptr_t)memory->call->inputs[operand->index].data;
    case SP_OPERAND_OUTPUT:
        return memory->outputs[operand->index].data;
    case SP_OPERAND_PACKED:
        return memory->packed[operand->index - 1];
    case SP_OPERAND_SCRATCH:
        return memory->scratch[operand->index];
    }
    return NULL;
}

static sp_status pack_inputs(op_memory *memory, sp_op_value *inputs, sp_lowering *lowering)
{
    for (uint32_t i = 1; i <= SP_OP_PACKED_INPUTS && i < memory->call->input_count; i++) {
        uint32_t scratch;
        if (!inputs[i].is_present) continue;
        const sp_pack pack = sp__op_pack(memory->call, i);
        if (pack.format == SP_PACK_NONE) continue;
        sp__lowering_reset(lowering);
        SP_TRY(sp__lower_pack(lowering, memory->call, i, &pack, &scratch));
        memory->packed[i - 1] = malloc((size_t)sp__pack_copy_bytes(&pack) + 1);
        memory->scratch[scratch] = memory->packed[i - 1];
        SP_TRY(sp__lowering_run(lowering, memory->kernels, op_place, memory));
        inputs[i].is_packed = true;
    }
    return SP_OK;
}

static void set_activation(const sp_lowering *lowering, sp_activation activation)
{
    if (activation == SP_ACTIVATION_NONE || lowering->dispatch_count == 0) return;
    sp_dispatch *last = &lowering->dispatches[lowering->dispatch_count - 1];
    uint8_t *field = sp__activation_field(last->kernel, last->constants);
    if (field == NULL) abort();
    *field = (uint8_t)activation;
}

static sp_status lower_and_run(op_memory *memory, sp_activation activation, sp_lowering *lowering)
{
    const sp_op_call *call = memory->call;
    sp__lowering_reset(lowering);
    SP_TRY(sp__op_lower(call, lowering));
    set_activation(lowering, activation);
    if (lowering->alias_input != SP_NO_INPUT) {
        memcpy(memory->outputs[0].data, call->inputs[lowering->alias_input].data,
               (size_t)memory->outputs[0].bytes);
        return SP_OK;
    }
    for (uint32_t i = 0; i < lowering->scratch_count; i++) {
        memory->scratch[i] = malloc((size_t)lowering->scratch_bytes[i] + 1);
    }
    const sp_status status = sp__lowering_run(lowering, memory->kernels, op_place, memory);
    for (uint32_t i = 0; i < lowering->scratch_count; i++) free(memory->scratch[i]);
    return status;
}

sp_op_value data_operand(const sp_array *from, bool is_known)
{
    return (sp_op_value){.is_present = from->dtype != SP_DTYPE_NONE,
                         .dtype = from->dtype,
                         .shape = from->shape,
                         .bytes = from->bytes,
                         .data = is_known ? from->data : NULL};
}

sp_status data_run_op(const data_call *what, sp_array *outputs)
{
    enum { MAX = 64 };
    sp_op_value inputs[MAX] = {0}, results[MAX] = {0};
    const sp_op *op;
    memset(outputs, 0, what->output_count * sizeof(*outputs));
    SP_TRY(sp__op_find((sp_text){0}, sp__text(what->op), what->version, &op));
    for (uint32_t i = 0; i < what->input_count; i++) {
        inputs[i] = data_operand(&what->inputs[i], true);
    }
    sp_op_call call = {.op = op,
                       .version = what->version,
                       .attributes = {what->attributes, what->attribute_count},
                       .inputs = inputs,
                       .outputs = results,
                       .input_count = what->input_count,
                       .output_count = what->output_count};
    SP_TRY(sp__op_check(&call));
    SP_TRY(sp__op_infer(&call));
    for (uint32_t i = 0; i < what->output_count; i++) {
        SP_TRY(sp__array_init(&outputs[i], results[i].dtype, &results[i].shape));
        /* Elements that a kernel does not write remain NaN. */
        memset(outputs[i].data, 0xff, (size_t)outputs[i].bytes);
    }
    op_memory memory = {.call = &call, .kernels = sp__cpu_kernels(what->isa), .outputs = outputs};
    sp_lowering lowering;
    sp__lowering_init(&lowering);
    sp_status status = what->packs ? pack_inputs(&memory, inputs, &lowering) : SP_OK;
    if (status == SP_OK) status = lower_and_run(&memory, what->activation, &lowering);
    for (uint32_t i = 0; i < SP_OP_PACKED_INPUTS; i++) free(memory.packed[i]);
    sp__lowering_deinit(&lowering);
    return status;
}

sp_status data_run(const char *op, uint32_t version, const sp_attribute *attributes,
                   uint32_t attribute_count, const sp_array *inputs, uint32_t input_count,
                   sp_array *outputs, uint32_t output_count)
{
    const data_call call = {.op = op,
                            .version = version,
                            .attributes = attributes,
                            .attribute_count = attribute_count,
                            .inputs = inputs,
                            .input_count = input_count,
                            .output_count = output_count,
                            .isa = sp__cpu_isa_selected()};
    return data_run_op(&call, outputs);
}

sp_status data_run_plan(const sp_graph_plan *plan, const sp_array *inputs, sp_array *outputs)
{
    enum { MAX = 64 };
    const void *in[MAX];
    void *out[MAX];
    for (uint32_t i = 0; i < plan->input_count; i++) in[i] = inputs[i].data;
    for (uint32_t i = 0; i < plan->output_count; i++) {
        SP_TRY(sp__array_init(&outputs[i], plan->outputs[i].dtype, &plan->outputs[i].shape));
        memset(outputs[i].data, 0xff, (size_t)outputs[i].bytes);
        out[i] = outputs[i].data;
    }
    void *arena = aligned_alloc(64, (size_t)plan->arena_bytes + 64);
    memset(arena, 0xff, (size_t)plan->arena_bytes + 64);
    const sp_status status = sp__plan_run_reference(plan, in, out, arena);
    free(arena);
    return status;
}

bool data_is_close(const sp_array *got, const sp_array *want, double tolerance, double relative,
                   double *worst)
{
    if (got->dtype != want->dtype || !sp__shape_equal(&got->shape, &want->shape)) return false;
    if (got->dtype != SP_F32) return memcmp(got->data, want->data, (size_t)got->bytes) == 0;
    const float *a = got->data, *b = want->data;
    for (uint64_t i = 0; i < got->bytes / sizeof(float); i++) {
        if (isnan(a[i]) && isnan(b[i])) continue;
        const double difference = a[i] == b[i] ? 0.0 : fabs((double)a[i] - (double)b[i]);
        if (difference > *worst) *worst = difference;
        if (!(difference <= tolerance + relative * fabs((double)b[i]))) return false;
    }
    return true;
}
