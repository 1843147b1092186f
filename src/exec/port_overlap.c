/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/port_overlap.h"

#include <stddef.h>
#include <stdlib.h>

static int by_begin(const void *a, const void *b)
{
    const sp_port_span *x = a;
    const sp_port_span *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

/* In the order of begins a span overlaps an earlier one exactly if it overlaps the one that ends
 * last. An input needs to be compared with the outputs only. */
bool sp__port_spans_overlap(sp_port_span *spans, uint32_t count, sp_port_span found[2])
{
    const sp_port_span *last = NULL;        /* of those before: the one that ends last */
    const sp_port_span *last_output = NULL; /* the same among the outputs */
    if (count > 0) qsort(spans, count, sizeof *spans, by_begin);
    for (uint32_t i = 0; i < count; i++) {
        const sp_port_span *span = &spans[i];
        const sp_port_span *other = span->is_output ? last : last_output;
        if (other != NULL && other->end > span->begin) {
            found[0] = span->is_output ? *span : *other;
            found[1] = span->is_output ? *other : *span;
            return true;
        }
        if (last == NULL || span->end > last->end) last = span;
        const bool ends_last = last_output == NULL || span->end > last_output->end;
        if (span->is_output && ends_last) last_output = span;
    }
    return false;
}
