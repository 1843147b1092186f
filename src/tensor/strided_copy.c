/* SPDX-License-Identifier: Apache-2.0 */
/* Planning of strided copies, and copying on the host, without assumptions about alignment. */
#include "tensor/strided_copy.h"

#include <string.h>

#include "tensor/collapse.h"

/* Iterates over dimension i from its other end. */
static void dimension_reverse(sp_strided_copy *copy, uint32_t i)
{
    const int64_t far = copy->dims[i] - 1;
    copy->from_first += copy->from[i] * far;
    copy->to_first += copy->to[i] * far;
    copy->from[i] = -copy->from[i];
    copy->to[i] = -copy->to[i];
}

static void swap_i64(int64_t *a, int64_t *b)
{
    const int64_t kept = *a;
    *a = *b;
    *b = kept;
}

/* Largest strides of the destination outermost; the order of equal ones is kept. */
static void dimensions_sort(sp_strided_copy *copy)
{
    for (uint32_t i = 1; i < copy->rank; i++) {
        for (uint32_t k = i; k > 0 && copy->to[k - 1] < copy->to[k]; k--) {
            swap_i64(&copy->dims[k - 1], &copy->dims[k]);
            swap_i64(&copy->from[k - 1], &copy->from[k]);
            swap_i64(&copy->to[k - 1], &copy->to[k]);
        }
    }
}

static int64_t elements_below(const sp_layout *layout)
{
    sp_layout_reach reach;
    (void)sp__layout_reach(layout, &reach);
    return (int64_t)(reach.below / sp_dtype_bytes(layout->dtype));
}

void sp__strided_copy_plan(const sp_layout *to, const sp_layout *from, sp_strided_copy *out)
{
    *out = (sp_strided_copy){.rank = to->shape.rank,
                             .element_bytes = (uint32_t)sp_dtype_bytes(to->dtype),
                             .count = (int64_t)sp__shape_count(&to->shape),
                             .from_first = elements_below(from),
                             .to_first = elements_below(to)};
    if (out->count == 0) {
        out->rank = 1;
        return;
    }
    for (uint32_t i = 0; i < out->rank; i++) {
        out->dims[i] = to->shape.dims[i];
        out->from[i] = from->strides[i];
        out->to[i] = to->strides[i];
        if (out->to[i] < 0) dimension_reverse(out, i);
    }
    dimensions_sort(out);
    out->rank = sp__collapse(out->rank, out->dims, out->from, out->to);
}

bool sp__strided_copy_is_plain(const sp_strided_copy *copy)
{
    if (copy->count <= 1) return true;
    return copy->rank == 1 && copy->from[0] == 1 && copy->to[0] == 1;
}

/* A row of elements of `bytes`, a constant at each call, so each copy is one instruction. */
static inline void row_copy(size_t bytes, char *to, int64_t to_step, const char *from,
                            int64_t from_step, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        memcpy(to + i * to_step, from + i * from_step, bytes);
    }
}

static void row_copy_any(const sp_strided_copy *copy, char *to, const char *from)
{
    const uint32_t last = copy->rank - 1;
    const int64_t bytes = copy->element_bytes, n = copy->dims[last];
    const int64_t to_step = copy->to[last] * bytes, from_step = copy->from[last] * bytes;
    if (to_step == bytes && from_step == bytes) {
        memcpy(to, from, (size_t)(n * bytes));
        return;
    }
    switch (bytes) {
    case 1:
        row_copy(1, to, to_step, from, from_step, n);
        break;
    case 2:
        row_copy(2, to, to_step, from, from_step, n);
        break;
    case 4:
        row_copy(4, to, to_step, from, from_step, n);
        break;
    default:
        row_copy(8, to, to_step, from, from_step, n);
        break;
    }
}

void sp__strided_copy_on_host(const sp_strided_copy *copy, void *to, const void *from)
{
    if (copy->count == 0) return;
    const int64_t bytes = copy->element_bytes;
    int64_t at[SP_MAX_RANK] = {0};
    int64_t from_at = copy->from_first, to_at = copy->to_first;
    for (;;) {
        row_copy_any(copy, (char *)to + to_at * bytes, (const char *)from + from_at * bytes);
        uint32_t i = copy->rank - 1;
        for (;;) { /* to the next row: the innermost outer dimension that is not at its end */
            if (i-- == 0) return;
            from_at += copy->from[i];
            to_at += copy->to[i];
            if (++at[i] < copy->dims[i]) break;
            from_at -= copy->from[i] * at[i];
            to_at -= copy->to[i] * at[i];
            at[i] = 0;
        }
    }
}
