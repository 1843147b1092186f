/* SPDX-License-Identifier: Apache-2.0 */
/* Files of tensors through the library's own reader; comparisons in double precision. */
#include "tensors.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/heap.h"
#include "io/npy.h"
#include "io/onnx_tensor.h"

static bool ends_in(const char *path, const char *ending)
{
    const size_t len = strlen(path), ending_len = strlen(ending);
    return len >= ending_len && strcmp(path + len - ending_len, ending) == 0;
}

sp_status tensor_read(const char *path, sp_array *out)
{
    void *bytes;
    size_t len;
    SP_TRY(sp_file_read(path, &bytes, &len));
    const sp_status status = ends_in(path, ".npy") ? sp__npy_load(bytes, len, out)
                                                   : sp__onnx_tensor_load(bytes, len, out);
    sp_free(bytes);
    return status == SP_OK ? SP_OK : sp__fail_prefix(status, "%s: ", path);
}

sp_status tensor_check_name(const char *path)
{
    if (ends_in(path, ".npy") || ends_in(path, ".pb")) return SP_OK;
    return sp__fail(SP_INVALID, "%s: an output's file is named .npy or .pb", path);
}

sp_status tensor_write(const char *path, const char *name, const sp_array *array)
{
    const sp_array_view view = {.dtype = array->dtype, .shape = array->shape, .data = array->data};
    void *bytes;
    size_t len;
    SP_TRY(tensor_check_name(path));
    const sp_status made = ends_in(path, ".npy") ? sp__npy_save(&view, &bytes, &len)
                                                 : sp__onnx_tensor_save(&view, name, &bytes, &len);
    if (made != SP_OK) return sp__fail_prefix(made, "%s: ", path);
    const sp_status status = sp_file_replace(path, bytes, len);
    sp_free(bytes);
    return status;
}

sp_host_tensor tensor_of(const sp_array *array, const char *name)
{
    sp_host_tensor tensor = {.name = name,
                             .data = array->data,
                             .bytes = array->bytes,
                             .dtype = array->dtype,
                             .rank = array->shape.rank};
    memcpy(tensor.shape, array->shape.dims, sizeof tensor.shape);
    return tensor;
}

sp_status tensor_room(const sp_host_tensor *output, sp_array *out)
{
    sp_shape shape;
    SP_TRY(sp__shape_make(output->shape, output->rank, &shape));
    return sp__array_init(out, output->dtype, &shape);
}

static sp_shape shape_of(const sp_port *port)
{
    sp_shape shape = {.rank = port->rank};
    for (uint32_t i = 0; i < port->rank; i++) {
        shape.dims[i] = port->shape[i] < 0 ? 1 : port->shape[i];
    }
    return shape;
}

sp_status tensor_describe(const sp_port *port, sp_host_tensor *out)
{
    const sp_shape shape = shape_of(port);
    *out = (sp_host_tensor){.dtype = port->dtype, .rank = shape.rank};
    memcpy(out->shape, shape.dims, sizeof out->shape);
    return sp__shape_bytes(&shape, port->dtype, &out->bytes);
}

sp_status tensor_make(const sp_port *port, sp_array *out)
{
    const sp_shape shape = shape_of(port);
    SP_TRY(sp__array_init(out, port->dtype, &shape));
    if (port->dtype != SP_F32) return SP_OK; /* zeroes */
    float *values = out->data;
    for (uint64_t i = 0; i < out->bytes / sizeof *values; i++) {
        values[i] = (float)((i * 7919) % 1000) / 500.0f - 1.0f;
    }
    return SP_OK;
}

/* ---- compare ---- */

static double half_to_double(uint16_t half)
{
    const int exponent = (half >> 10) & 31;
    const int mantissa = half & 1023;
    double value;
    if (exponent == 31) {
        value = mantissa != 0 ? (double)NAN : (double)INFINITY;
    } else if (exponent == 0) {
        value = ldexp(mantissa, -24);
    } else {
        value = ldexp(mantissa + 1024, exponent - 25);
    }
    return (half & 0x8000) != 0 ? -value : value;
}

static double bfloat_to_double(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return (double)value;
}

static bool is_floating(sp_dtype dtype)
{
    return dtype == SP_F32 || dtype == SP_F64 || dtype == SP_F16 || dtype == SP_BF16;
}

static double element(const sp_array *array, uint64_t index)
{
    switch (array->dtype) {
    case SP_F32:
        return (double)((const float *)array->data)[index];
    case SP_F64:
        return ((const double *)array->data)[index];
    case SP_F16:
        return half_to_double(((const uint16_t *)array->data)[index]);
    case SP_BF16:
        return bfloat_to_double(((const uint16_t *)array->data)[index]);
    case SP_I8:
        return ((const int8_t *)array->data)[index];
    case SP_I16:
        return ((const int16_t *)array->data)[index];
    case SP_I32:
        return ((const int32_t *)array->data)[index];
    case SP_I64:
        return (double)((const int64_t *)array->data)[index];
    case SP_U8:
    case SP_BOOL:
        return ((const uint8_t *)array->data)[index];
    case SP_U16:
        return ((const uint16_t *)array->data)[index];
    case SP_U32:
        return ((const uint32_t *)array->data)[index];
    case SP_U64:
        return (double)((const uint64_t *)array->data)[index];
    case SP_DTYPE_NONE:
        break;
    }
    return 0;
}

static bool is_close(double got, double want, sp_tolerance tolerance)
{
    if (isnan(want)) return isnan(got);
    if (isinf(want)) return got == want;
    return fabs(got - want) <= tolerance.absolute + tolerance.relative * fabs(want);
}

bool tensor_compare(const sp_array *got, const sp_array *want, sp_tolerance tolerance,
                    sp_difference *out)
{
    *out = (sp_difference){0};
    if (got->dtype != want->dtype || !sp__shape_equal(&got->shape, &want->shape)) {
        sp__fail(SP_MISMATCH, "got %s of shape %s, expected %s of shape %s",
                 sp_dtype_name(got->dtype), sp__shape_print(&got->shape).text,
                 sp_dtype_name(want->dtype), sp__shape_print(&want->shape).text);
        return false;
    }
    const size_t bytes = sp_dtype_bytes(want->dtype);
    const bool is_exact = !is_floating(want->dtype);
    for (uint64_t i = 0; i < want->bytes / bytes; i++) {
        const double a = element(got, i);
        const double b = element(want, i);
        const bool is_good = is_exact ? memcmp((const char *)got->data + i * bytes,
                                               (const char *)want->data + i * bytes, bytes) == 0
                                      : is_close(a, b, tolerance);
        if (fabs(a - b) > out->largest) out->largest = fabs(a - b);
        if (is_good) continue;
        if (out->bad_count == 0) {
            out->first_bad = i;
            out->got = a;
            out->want = b;
        }
        out->bad_count++;
    }
    return true;
}
