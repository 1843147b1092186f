/* SPDX-License-Identifier: Apache-2.0 */
/* A sorted list of gaps. Real graphs have a few dozen; at most as many as values. */
#include "plan/arena_layout.h"

#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "base/macros.h"
#include "base/size.h"
#include "tensor/shape.h"

void sp__arena_layout_deinit(sp_arena_layout *layout)
{
    sp_free(layout->gaps);
    *layout = (sp_arena_layout){0};
}

static void remove_gap(sp_arena_layout *layout, uint32_t at)
{
    layout->gap_count--;
    memmove(&layout->gaps[at], &layout->gaps[at + 1],
            (layout->gap_count - at) * sizeof(*layout->gaps));
}

/* All sizes in the layout are multiples of the alignment. */
static uint64_t align_up(uint64_t bytes)
{
    return (bytes + SP_ARENA_ALIGNMENT - 1) / SP_ARENA_ALIGNMENT * SP_ARENA_ALIGNMENT;
}

sp_status sp__arena_layout_acquire(sp_arena_layout *layout, uint64_t bytes, uint64_t *offset)
{
    uint64_t end;
    *offset = 0;
    if (bytes == 0) return SP_OK;
    if (bytes <= SP_MAX_TENSOR_BYTES) {
        bytes = align_up(bytes);
        for (uint32_t i = 0; i < layout->gap_count; i++) {
            sp_arena_gap *gap = &layout->gaps[i];
            if (gap->bytes < bytes) continue;
            *offset = gap->offset;
            gap->offset += bytes;
            gap->bytes -= bytes;
            if (gap->bytes == 0) remove_gap(layout, i);
            return SP_OK;
        }
    }
    if (!sp_size_add(layout->end, bytes, &end) || end > SP_MAX_TENSOR_BYTES) {
        return sp__fail(SP_EXHAUSTED, "the plan needs more than 2^40 bytes of memory");
    }
    *offset = layout->end;
    layout->end = end;
    if (end > layout->bytes) layout->bytes = end;
    return SP_OK;
}

static sp_status insert_gap(sp_arena_layout *layout, uint32_t at, sp_arena_gap gap)
{
    sp_arena_gap *larger =
        sp_grow(layout->gaps, layout->gap_count, &layout->gap_capacity, sizeof(*larger));
    if (larger == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory to lay out a plan");
    layout->gaps = larger;
    memmove(&layout->gaps[at + 1], &layout->gaps[at],
            (layout->gap_count - at) * sizeof(*layout->gaps));
    layout->gaps[at] = gap;
    layout->gap_count++;
    return SP_OK;
}

sp_status sp__arena_layout_release(sp_arena_layout *layout, uint64_t offset, uint64_t bytes)
{
    sp_arena_gap gap = {.offset = offset, .bytes = align_up(bytes)};
    if (gap.bytes == 0) return SP_OK;
    uint32_t at = 0;
    while (at < layout->gap_count && layout->gaps[at].offset < offset) at++;
    if (at < layout->gap_count && layout->gaps[at].offset == offset + gap.bytes) {
        gap.bytes += layout->gaps[at].bytes;
        remove_gap(layout, at);
    }
    if (at > 0 && layout->gaps[at - 1].offset + layout->gaps[at - 1].bytes == offset) {
        at--;
        gap.offset = layout->gaps[at].offset;
        gap.bytes += layout->gaps[at].bytes;
        remove_gap(layout, at);
    }
    if (gap.offset + gap.bytes == layout->end) {
        layout->end = gap.offset; /* free bytes at the end are not a gap */
        return SP_OK;
    }
    return insert_gap(layout, at, gap);
}
