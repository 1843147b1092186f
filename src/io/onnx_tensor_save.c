/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a TensorProto: dims packed, the elements as raw_data. */
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "base/macros.h"
#include "io/onnx_tensor_reader.h"
#include "tensor/onnx_dtype.h"

enum { WIRE_VARINT = 0, WIRE_BYTES = 2, MOST_VARINT = 10 };

/* If `bytes` is NULL, only counts. */
typedef struct output {
    unsigned char *bytes;
    size_t at;
} output;

static void output_put(output *o, const void *bytes, size_t len)
{
    if (o->bytes != NULL && len > 0) memcpy(o->bytes + o->at, bytes, len);
    o->at += len;
}

static size_t varint_encode(uint64_t value, unsigned char out[MOST_VARINT])
{
    size_t len = 0;
    for (; value >= 0x80; value >>= 7) out[len++] = (unsigned char)(value | 0x80);
    out[len++] = (unsigned char)value;
    return len;
}

static void put_varint(output *o, uint64_t value)
{
    unsigned char text[MOST_VARINT];
    output_put(o, text, varint_encode(value, text));
}

static void put_bytes(output *o, uint32_t field, const void *bytes, size_t len)
{
    put_varint(o, field << 3 | WIRE_BYTES);
    put_varint(o, len);
    output_put(o, bytes, len);
}

static void put_tensor(output *o, const sp_array_view *array, const char *name, size_t bytes)
{
    unsigned char dims[SP_MAX_RANK * MOST_VARINT];
    size_t used = 0;
    for (uint32_t i = 0; i < array->shape.rank; i++) {
        used += varint_encode((uint64_t)array->shape.dims[i], dims + used);
    }
    if (used > 0) put_bytes(o, SP_ONNX_TENSOR_DIMS, dims, used);
    put_varint(o, SP_ONNX_TENSOR_DATA_TYPE << 3 | WIRE_VARINT);
    put_varint(o, (uint64_t)sp__onnx_data_type(array->dtype));
    put_bytes(o, SP_ONNX_TENSOR_NAME, name, strlen(name));
    put_bytes(o, SP_ONNX_TENSOR_RAW_DATA, array->data, bytes);
}

sp_status sp__onnx_tensor_save(const sp_array_view *array, const char *name, void **bytes,
                               size_t *len)
{
    uint64_t data_bytes;
    SP_TRY(sp__shape_bytes(&array->shape, array->dtype, &data_bytes));
    output o = {.bytes = NULL};
    put_tensor(&o, array, name, (size_t)data_bytes);
    o = (output){.bytes = sp_malloc(o.at), .at = 0};
    if (o.bytes == NULL) {
        return sp__fail(SP_OUT_OF_MEMORY, "no memory for a TensorProto of %" PRIu64 " bytes",
                        data_bytes);
    }
    put_tensor(&o, array, name, (size_t)data_bytes);
    *bytes = o.bytes;
    *len = o.at;
    return SP_OK;
}
