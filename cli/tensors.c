/* SPDX-License-Identifier: Apache-2.0 */
/* Files are read and written through the library's tensors on cpu; comparisons use double
 * precision. */
#include "tensors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <streampool/npy.h>
#include <streampool/tensor_proto.h>

#include "failure.h"
#include "source.h"
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

/* Allocates zeroed data of tensor->bytes bytes (tensor_bytes). */
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

static const sp_device cpu; /* the zero handle */

static sp_status tensor_copy_out(sp_tensor tensor, sp_host_tensor *out)
{
    sp_tensor_info info;
    CALL(sp_tensor_get_info(tensor, &info));
    TRY(tensor_init(info.dtype, info.rank, info.shape, out));
    const sp_status status = from_library(sp_tensor_read(tensor, out->data, out->bytes));
    if (status != SP_OK) tensor_free(out);
    return status;
}

/* Releases the tensor. */
static sp_status tensor_export(sp_tensor tensor, sp_host_tensor *out)
{
    const sp_status status = tensor_copy_out(tensor, out);
    CALL(sp_tensor_release(tensor));
    return status;
}

sp_status tensor_read(const char *path, sp_host_tensor *out)
{
    sp_tensor tensor;
    const bool is_npy = text_ends_in(path, ".npy");
    CALL(is_npy ? sp_npy_read(cpu, path, &tensor) : sp_tensor_proto_read(cpu, path, &tensor));
    return tensor_export(tensor, out);
}

static sp_status tensor_of_bytes(const char *bytes, size_t len, sp_host_tensor *out)
{
    static const char npy_begin[] = "\x93NUMPY", zip_begin[] = "PK\x03\x04";
    const bool is_npy = len >= 6 && memcmp(bytes, npy_begin, 6) == 0;
    sp_tensor tensor;
    if (len >= 4 && memcmp(bytes, zip_begin, 4) == 0) {
        return fail(SP_UNSUPPORTED,
                    "an archive cannot be read: give its file, as in --input FILE.npz");
    }
    CALL(is_npy ? sp_npy_read_from_memory(cpu, bytes, len, &tensor)
                : sp_tensor_proto_read_from_memory(cpu, bytes, len, &tensor));
    return tensor_export(tensor, out);
}

static sp_status tensor_read_standard_input(sp_host_tensor *out)
{
    void *bytes;
    size_t len;
    TRY(standard_input_read(&bytes, &len));
    const sp_status status = tensor_of_bytes(bytes, len, out);
    free(bytes);
    return status == SP_OK ? SP_OK : fail_prefix(status, STANDARD_INPUT ": ");
}

sp_status tensor_read_named(const char *path, const char *name, sp_host_tensor *out)
{
    sp_tensor tensor;
    if (is_standard_input(path)) return tensor_read_standard_input(out);
    if (!text_ends_in(path, ".npz")) return tensor_read(path, out);
    CALL(sp_npz_read(cpu, path, name, &tensor));
    return tensor_export(tensor, out);
}

bool tensor_is_writable(const char *path)
{
    return text_ends_in(path, ".npy") || text_ends_in(path, ".npz") || text_ends_in(path, ".pb");
}

static sp_status tensor_import(const sp_host_tensor *tensor, sp_tensor *out)
{
    return from_library(sp_tensor_from_host(cpu, tensor->dtype, tensor->rank, tensor->shape,
                                            tensor->data, tensor->bytes, out));
}

/* The library's message names the file only for SP_IO. */
static sp_status prefix_with_path(const char *path, sp_status status)
{
    if (status == SP_OK || status == SP_IO) return status;
    return fail_prefix(status, "%s: ", path);
}

sp_status tensor_write(const char *path, const char *name, const sp_host_tensor *tensor)
{
    sp_tensor made;
    TRY(tensor_import(tensor, &made));
    const sp_status status =
        from_library(text_ends_in(path, ".npy") ? sp_npy_write(path, made)
                                                : sp_tensor_proto_write(path, name, made));
    CALL(sp_tensor_release(made));
    return prefix_with_path(path, status);
}

sp_status tensors_write(const char *path, const char *const *names, const sp_host_tensor *tensors,
                        uint32_t count)
{
    sp_tensor *made = calloc((size_t)count + 1, sizeof *made);
    if (made == NULL) return fail(SP_OUT_OF_MEMORY, "no memory for %u arrays", count);
    sp_status status = SP_OK;
    for (uint32_t i = 0; i < count && status == SP_OK; i++)
        status = tensor_import(&tensors[i], &made[i]);
    if (status == SP_OK) status = from_library(sp_npz_write(path, names, made, count));
    for (uint32_t i = 0; i < count; i++) sp_tensor_release(made[i]);
    free(made);
    return prefix_with_path(path, status);
}

/* ---- generated values ---- */

/* Numerators of values in [-1, 1) with 2^bits steps per unit, from the sequence of `seed`: the
 * mixing function of splitmix64. */
static int64_t random_step(uint64_t seed, uint64_t index, unsigned bits)
{
    uint64_t z = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15) + index * UINT64_C(0xd1342543de82ef95);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    z ^= z >> 31;
    return (int64_t)(z >> (63 - bits)) - (INT64_C(1) << bits);
}

/* k / 1024 for |k| <= 1024, which is exact. */
static uint16_t half_of(int64_t k)
{
    const uint32_t magnitude = (uint32_t)(k < 0 ? -k : k);
    if (magnitude == 0) return 0;
    const uint32_t top = 31 - (uint32_t)__builtin_clz(magnitude);
    const uint32_t mantissa = (magnitude << (10 - top)) & 1023;
    return (uint16_t)((k < 0 ? 0x8000u : 0u) | ((top + 5) << 10) | mantissa);
}

/* k / 128 for |k| <= 128, which is exact. */
static uint16_t bfloat_of(int64_t k)
{
    const float value = (float)k / 128.0f;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)(bits >> 16);
}

static void set_element(sp_host_tensor *tensor, uint64_t index, uint64_t seed)
{
    switch (tensor->dtype) {
    case SP_F32:
        ((float *)tensor->data)[index] = (float)random_step(seed, index, 23) * 0x1p-23f;
        break;
    case SP_F64:
        ((double *)tensor->data)[index] = (double)random_step(seed, index, 52) * 0x1p-52;
        break;
    case SP_F16:
        ((uint16_t *)tensor->data)[index] = half_of(random_step(seed, index, 10));
        break;
    case SP_BF16:
        ((uint16_t *)tensor->data)[index] = bfloat_of(random_step(seed, index, 7));
        break;
    default:
        break; /* 0 */
    }
}

sp_status tensor_make_up(sp_host_tensor *tensor, uint64_t seed)
{
    TRY(data_make(tensor));
    const uint64_t count = tensor->bytes / sp_dtype_bytes(tensor->dtype);
    for (uint64_t i = 0; i < count; i++) set_element(tensor, i, seed);
    return SP_OK;
}

static void set_one(sp_host_tensor *tensor, uint64_t index)
{
    if (tensor->dtype == SP_F32) ((float *)tensor->data)[index] = 1;
    if (tensor->dtype == SP_F64) ((double *)tensor->data)[index] = 1;
    if (tensor->dtype == SP_F16) ((uint16_t *)tensor->data)[index] = half_of(1024);
    if (tensor->dtype == SP_BF16) ((uint16_t *)tensor->data)[index] = bfloat_of(128);
}

sp_status tensor_make_neutral(sp_host_tensor *tensor)
{
    TRY(data_make(tensor));
    const uint64_t count = tensor->bytes / sp_dtype_bytes(tensor->dtype);
    for (uint64_t i = 0; i < count; i++) set_one(tensor, i);
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

static double tensor_element(const sp_host_tensor *array, uint64_t index)
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
        const double a = tensor_element(got, i);
        const double b = tensor_element(want, i);
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
