/* SPDX-License-Identifier: Apache-2.0 */
/* Planning of moves, and moving on the host, where nothing is assumed about alignment. */
#include "tensor/strided_copy.h"

#include <string.h>

#include "tensor/collapse.h"

/* Walks dimension i from its other end. */
static void reverse(sp_strided_copy *copy, uint32_t i)
{
    const int64_t far = copy->dims[i] - 1;
    copy->from_first += copy->from[i] * far;
    copy->to_first += copy->to[i] * far;
    copy->from[i] = -copy->from[i];
    copy->to[i] = -copy->to[i];
}

static void swap(int64_t *a, int64_t *b)
{
    const int64_t kept = *a;
    *a = *b;
    *b = kept;
}

/* Largest steps of the destination outermost; equal ones stay as they are. */
static void sort(sp_strided_copy *copy)
{
    for (uint32_t i = 1; i < copy->rank; i++) {
        for (uint32_t k = i; k > 0 && copy->to[k - 1] < copy->to[k]; k--) {
            swap(&copy->dims[k - 1], &copy->dims[k]);
            swap(&copy->from[k - 1], &copy->from[k]);
            swap(&copy->to[k - 1], &copy->to[k]);
        }
    }
}

static int64_t below(const sp_layout *layout)
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
                             .from_first = below(from),
                             .to_first = below(to)};
    if (out->count == 0) {
        out->rank = 1;
        return;
    }
    for (uint32_t i = 0; i < out->rank; i++) {
        out->dims[i] = to->shape.dims[i];
        out->from[i] = from->strides[i];
        out->to[i] = to->strides[i];
        if (out->to[i] < 0) reverse(out, i);
    }
    sort(out);
    out->rank = sp__collapse(out->rank, out->dims, out->from, out->to);
}

bool sp__strided_copy_is_plain(const sp_strided_copy *copy)
{
    if (copy->count <= 1) return true;
    return copy->rank == 1 && copy->from[0] == 1 && copy->to[0] == 1;
}

/* A row of elements of `bytes`, a constant where this is called, so each copy is one instruction.
 */
static inline void move_row(size_t bytes, char *to, int64_t to_step, const char *from,
                            int64_t from_step, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        memcpy(to + i * to_step, from + i * from_step, bytes);
    }
}

static void move_any_row(const sp_strided_copy *copy, char *to, const char *from)
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
        move_row(1, to, to_step, from, from_step, n);
        break;
    case 2:
        move_row(2, to, to_step, from, from_step, n);
        break;
    case 4:
        move_row(4, to, to_step, from, from_step, n);
        break;
    default:
        move_row(8, to, to_step, from, from_step, n);
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
        move_any_row(copy, (char *)to + to_at * bytes, (const char *)from + from_at * bytes);
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
