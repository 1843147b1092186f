/* SPDX-License-Identifier: Apache-2.0 */
/* Planning of moves, and moving on the host, where nothing is assumed about alignment. */
#include "tensor/move.h"

#include <string.h>

#include "tensor/collapse.h"

/* Walks dimension i from its other end. */
static void reverse(sp_move *move, uint32_t i)
{
    const int64_t far = move->dims[i] - 1;
    move->from_first += move->from[i] * far;
    move->to_first += move->to[i] * far;
    move->from[i] = -move->from[i];
    move->to[i] = -move->to[i];
}

static void swap(int64_t *a, int64_t *b)
{
    const int64_t kept = *a;
    *a = *b;
    *b = kept;
}

/* Largest steps of the destination outermost; equal ones stay as they are. */
static void sort(sp_move *move)
{
    for (uint32_t i = 1; i < move->rank; i++) {
        for (uint32_t k = i; k > 0 && move->to[k - 1] < move->to[k]; k--) {
            swap(&move->dims[k - 1], &move->dims[k]);
            swap(&move->from[k - 1], &move->from[k]);
            swap(&move->to[k - 1], &move->to[k]);
        }
    }
}

static int64_t below(const sp_layout *layout)
{
    sp_layout_reach reach;
    (void)sp__layout_reach(layout, &reach);
    return (int64_t)(reach.below / sp_dtype_bytes(layout->dtype));
}

void sp__move_plan(const sp_layout *to, const sp_layout *from, sp_move *out)
{
    *out = (sp_move){.rank = to->shape.rank,
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

bool sp__move_is_plain(const sp_move *move)
{
    if (move->count <= 1) return true;
    return move->rank == 1 && move->from[0] == 1 && move->to[0] == 1;
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

static void move_any_row(const sp_move *move, char *to, const char *from)
{
    const uint32_t last = move->rank - 1;
    const int64_t bytes = move->element_bytes, n = move->dims[last];
    const int64_t to_step = move->to[last] * bytes, from_step = move->from[last] * bytes;
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

void sp__move_on_host(const sp_move *move, void *to, const void *from)
{
    if (move->count == 0) return;
    const int64_t bytes = move->element_bytes;
    int64_t at[SP_MAX_RANK] = {0};
    int64_t from_at = move->from_first, to_at = move->to_first;
    for (;;) {
        move_any_row(move, (char *)to + to_at * bytes, (const char *)from + from_at * bytes);
        uint32_t i = move->rank - 1;
        for (;;) { /* to the next row: the innermost outer dimension that is not at its end */
            if (i-- == 0) return;
            from_at += move->from[i];
            to_at += move->to[i];
            if (++at[i] < move->dims[i]) break;
            from_at -= move->from[i] * at[i];
            to_at -= move->to[i] * at[i];
            at[i] = 0;
        }
    }
}
