/* SPDX-License-Identifier: Apache-2.0 */
/* Checked sizes, broadcasting and printing of shapes. */
#include "tensor/shape.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/macros.h"
#include "base/size.h"

sp_status sp__shape_make(const int64_t *dims, uint64_t rank, sp_shape *out)
{
    if (rank > SP_MAX_RANK) {
        return sp__fail(SP_MISMATCH, "a tensor of rank %" PRIu64 "; at most %d is supported", rank,
                        SP_MAX_RANK);
    }
    sp_shape shape = {.rank = (uint32_t)rank};
    for (uint32_t i = 0; i < shape.rank; i++) {
        if (dims[i] < 0) {
            return sp__fail(SP_MISMATCH, "dimension %" PRIu32 " is negative (%" PRId64 ")", i,
                            dims[i]);
        }
        shape.dims[i] = dims[i];
    }
    *out = shape;
    return SP_OK;
}

sp_status sp__shape_bytes(const sp_shape *shape, sp_dtype dtype, uint64_t *out)
{
    uint64_t bytes = sp_dtype_bytes(dtype);
    bool is_empty = false;
    bool fits = true;
    for (uint32_t i = 0; i < shape->rank; i++) {
        if (shape->dims[i] < 0) {
            return sp__fail(SP_MISMATCH, "shape %s has a negative dimension",
                            sp__shape_print(shape).text);
        }
        /* Each dimension is bounded even next to a 0, so that partial products cannot overflow. */
        if (shape->dims[i] == 0) is_empty = true;
        else fits = fits && sp_size_mul(bytes, (uint64_t)shape->dims[i], &bytes);
        fits = fits && bytes <= SP_MAX_TENSOR_BYTES;
    }
    if (!fits) {
        return sp__fail(SP_EXHAUSTED, "a tensor of shape %s and type %s exceeds 2^40 bytes",
                        sp__shape_print(shape).text, sp_dtype_name(dtype));
    }
    *out = is_empty ? 0 : bytes;
    return SP_OK;
}

uint64_t sp__shape_range_count(const sp_shape *shape, uint32_t first, uint32_t last)
{
    uint64_t count = 1;
    for (uint32_t i = first; i < last; i++) count *= (uint64_t)shape->dims[i];
    return count;
}

uint64_t sp__shape_count(const sp_shape *shape)
{
    return sp__shape_range_count(shape, 0, shape->rank);
}

bool sp__shape_equal(const sp_shape *a, const sp_shape *b)
{
    return a->rank == b->rank && memcmp(a->dims, b->dims, a->rank * sizeof(a->dims[0])) == 0;
}

sp_status sp__shape_broadcast(const sp_shape *a, const sp_shape *b, sp_shape *out)
{
    const sp_shape *longer = a->rank >= b->rank ? a : b;
    const sp_shape *shorter = a->rank >= b->rank ? b : a;
    const uint32_t shift = longer->rank - shorter->rank;
    sp_shape shape = *longer;
    for (uint32_t i = 0; i < shorter->rank; i++) {
        const int64_t x = longer->dims[shift + i];
        const int64_t y = shorter->dims[i];
        if (x != y && x != 1 && y != 1) {
            return sp__fail(SP_MISMATCH, "shapes %s and %s cannot be broadcast together",
                            sp__shape_print(a).text, sp__shape_print(b).text);
        }
        shape.dims[shift + i] = x == 1 ? y : x;
    }
    *out = shape;
    return SP_OK;
}

void sp__shape_strides(const sp_shape *shape, int64_t strides[SP_MAX_RANK])
{
    int64_t stride = 1;
    for (uint32_t i = shape->rank; i-- > 0;) {
        strides[i] = stride;
        stride *= shape->dims[i];
    }
}

void sp__shape_broadcast_strides(const sp_shape *shape, const sp_shape *target,
                                 int64_t strides[SP_MAX_RANK])
{
    const uint32_t shift = target->rank - shape->rank;
    int64_t own[SP_MAX_RANK];
    sp__shape_strides(shape, own);
    for (uint32_t i = 0; i < target->rank; i++) {
        strides[i] = i < shift || shape->dims[i - shift] == 1 ? 0 : own[i - shift];
    }
}

sp_status sp__shape_axis(const sp_shape *shape, int64_t axis, uint32_t *out)
{
    const int64_t rank = (int64_t)shape->rank;
    if (axis < -rank || axis >= rank) {
        return sp__fail(SP_MISMATCH, "axis %" PRId64 " is outside shape %s", axis,
                        sp__shape_print(shape).text);
    }
    *out = (uint32_t)(axis < 0 ? axis + rank : axis);
    return SP_OK;
}

sp_shape_text sp__shape_print(const sp_shape *shape)
{
    sp_shape_text out;
    size_t used = 0;
    out.text[used++] = '[';
    for (uint32_t i = 0; i < shape->rank; i++) {
        /* 8 dimensions of at most 20 characters and their commas always fit. */
        const int n = snprintf(out.text + used, sizeof(out.text) - used, "%s%" PRId64,
                               i == 0 ? "" : ",", shape->dims[i]);
        used += (size_t)n;
    }
    out.text[used++] = ']';
    out.text[used] = '\0';
    return out;
}
