/* SPDX-License-Identifier: Apache-2.0 */
/* Files of tensors go through tensors of the library on cpu; comparisons are in double precision.
 */
#include "tensors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <streampool/npy.h>
#include <streampool/tensor_proto.h>

#include "failure.h"
#include "text.h"

#define ALIGNMENT 64

/* ---- memory ---- */

void tensor_free(sp_host_tensor *tensor)
{
    free(tensor->data);
    *tensor = (sp_host_tensor){0};
}

sp_status tensor_bytes(sp_dtype dtype, uint32_t rank, const int64_t *shape, uint64_t *out)
{
    const uint64_t most = (uint64_t)1 << 40;
    uint64_t bytes = sp_dtype_bytes(dtype);
    bool is_empty = false;
    for (uint32_t i = 0; i < rank; i++) {
        if (shape[i] == 0) {
            is_empty = true;
        } else if (__builtin_mul_overflow(bytes, (uint64_t)shape[i], &bytes) || bytes > most) {
            return fail(SP_EXHAUSTED, "a tensor of shape %s and type %s exceeds 2^40 bytes",
                        show_shape(rank, shape).text, sp_dtype_name(dtype));
        }
    }
    *out = is_empty ? 0 : bytes;
    return SP_OK;
}

/* Zeroed. The bytes are those of tensor_bytes. */
static sp_status data_make(sp_host_tensor *tensor)
{
    const size_t bytes = (size_t)(tensor->bytes / ALIGNMENT + 1) * ALIGNMENT;
    tensor->data = aligned_alloc(ALIGNMENT, bytes);
    if (tensor->data == NULL) {
        return fail(SP_OUT_OF_MEMORY, "no memory for an array of %llu bytes",
                    (unsigned long long)tensor->bytes);
    }
    memset(tensor->data, 0, bytes);
    return SP_OK;
}

static sp_status tensor_init(sp_dtype dtype, uint32_t rank, const int64_t *shape,
                             sp_host_tensor *out)
{
    *out = (sp_host_tensor){.dtype = dtype, .rank = rank};
    memcpy(out->shape, shape, rank * sizeof *shape);
    TRY(tensor_bytes(dtype, rank, shape, &out->bytes));
    return data_make(out);
}

/* ---- files ---- */

static bool ends_in(const char *path, const char *ending)
{
    const size_t len = strlen(path), ending_len = strlen(ending);
    return len >= ending_len && strcmp(path + len - ending_len, ending) == 0;
}

static const sp_device cpu; /* the zero handle */

static sp_status copy_out(sp_tensor tensor, sp_host_tensor *out)
{
    sp_tensor_info info;
    CALL(sp_tensor_get_info(tensor, &info));
    TRY(tensor_init(info.dtype, info.rank, info.shape, out));
    const sp_status status = from_library(sp_tensor_read(tensor, out->data, out->bytes));
    if (status != SP_OK) tensor_free(out);
    return status;
}

sp_status tensor_read(const char *path, sp_host_tensor *out)
{
    sp_tensor tensor;
    const bool is_npy = ends_in(path, ".npy");
    CALL(is_npy ? sp_npy_read(cpu, path, &tensor) : sp_tensor_proto_read(cpu, path, &tensor));
    const sp_status status = copy_out(tensor, out);
    CALL(sp_tensor_release(tensor));
    return status;
}

sp_status tensor_check_name(const char *path)
{
    if (ends_in(path, ".npy") || ends_in(path, ".pb")) return SP_OK;
    return fail(SP_INVALID, "%s: an output's file is named .npy or .pb", path);
}

sp_status tensor_write(const char *path, const char *name, const sp_host_tensor *tensor)
{
    sp_tensor made;
    TRY(tensor_check_name(path));
    CALL(sp_tensor_from_host(cpu, tensor->dtype, tensor->rank, tensor->shape, tensor->data,
                             tensor->bytes, &made));
    const sp_status status = from_library(
        ends_in(path, ".npy") ? sp_npy_write(path, made) : sp_tensor_proto_write(path, name, made));
    CALL(sp_tensor_release(made));
    if (status == SP_OK || status == SP_IO) return status; /* which names the file */
    return fail_prefix(status, "%s: ", path);
}

/* ---- made up ---- */

sp_status tensor_room(const sp_host_tensor *output, sp_host_tensor *out)
{
    return tensor_init(output->dtype, output->rank, output->shape, out);
}

sp_status tensor_describe(const sp_port *port, sp_host_tensor *out)
{
    *out = (sp_host_tensor){.dtype = port->dtype, .rank = port->rank};
    for (uint32_t i = 0; i < port->rank; i++) {
        out->shape[i] = port->shape[i] < 0 ? 1 : port->shape[i];
    }
    return tensor_bytes(out->dtype, out->rank, out->shape, &out->bytes);
}

sp_status tensor_make(const sp_port *port, sp_host_tensor *out)
{
    TRY(tensor_describe(port, out));
    TRY(data_make(out));
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

static double element(const sp_host_tensor *array, uint64_t index)
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

static bool is_close(double got, double want, tensor_tolerance tolerance)
{
    if (isnan(want)) return isnan(got);
    if (isinf(want)) return got == want;
    return fabs(got - want) <= tolerance.absolute + tolerance.relative * fabs(want);
}

static bool is_same_shape(const sp_host_tensor *a, const sp_host_tensor *b)
{
    return a->rank == b->rank && memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0;
}

sp_status tensor_compare(const sp_host_tensor *got, const sp_host_tensor *want,
                         tensor_tolerance tolerance, tensor_difference *out)
{
    *out = (tensor_difference){0};
    if (got->dtype != want->dtype || !is_same_shape(got, want)) {
        return fail(SP_MISMATCH, "got %s of shape %s, expected %s of shape %s",
                    sp_dtype_name(got->dtype), show_shape(got->rank, got->shape).text,
                    sp_dtype_name(want->dtype), show_shape(want->rank, want->shape).text);
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
    return SP_OK;
}
