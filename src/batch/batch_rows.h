/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of callers in pinned memory. Where the tensors of a plan are large, one lead would copy the
 * rows of all others. So a caller that finds no slot takes a row here and copies its inputs there,
 * before it waits; the batch that takes it reads them where they are, by the GPU, and writes the
 * outputs there, which the caller copies out when it is awake. A row belongs to its caller until
 * that releases it; in between to the batch that has taken the request, if any.
 *
 * A caller that finds none waits without: the lead copies for it. Any thread that uses the plan. */
#ifndef SP_BATCH_BATCH_ROWS_H
#define SP_BATCH_BATCH_ROWS_H

#include "base/tagged_stack.h"
#include "batch/batch_ports.h"
#include "runtime/allocator.h"

/* A row of a port is copied by its caller if it has at least so many bytes: fewer are copied by the
 * lead in the time in which the caller takes a row and returns it. */
#define SP_BATCH_ROW_BYTES UINT64_C(8192)

typedef struct sp_batch_rows {
    sp_allocator *allocator;
    const sp_batch_port *ports; /* of the plans: inputs, then outputs */
    uint32_t input_count, output_count;
    uint64_t *offsets;  /* by port, in a row */
    uint64_t row_bytes; /* a multiple of the alignment of ports */
    uint32_t count;
    sp_tagged_stack free; /* numbers of rows */
    sp_atomic_u32 *links; /* of the stack, by row */
    /* Set by the party that has all rows: the builder, which creates them, before it pushes them,
     * and a thread that has popped all. */
    sp_block *block;
    char *base;
    /* 1: there are rows. Release by the thread that has freed them, acquire by the builder before
     * it creates them again; leads read it relaxed, as a hint. */
    sp_atomic_u32 is_there;
    /* 1: a thread pops all rows, or pushes them again. Exchange acquire by who would do so, too;
     * pairs with the release at the end. */
    sp_atomic_u32 is_in_reclaim;
} sp_batch_rows;

/* For ports of which some are `is_by_rows`, lent, in memory of the allocator, which is pinned. *out
 * is NULL if there would be too few rows. Without rows at first. Errors: SP_OUT_OF_MEMORY. */
sp_status sp__batch_rows_create(sp_allocator *allocator, const sp_batch_port *ports,
                                uint32_t input_count, uint32_t output_count, sp_batch_rows **out);
/* Precondition: no row is in use. NULL is allowed. */
void sp__batch_rows_destroy(sp_batch_rows *rows);

/* Creates the rows if there are none, from free memory alone. False: there are some, or there is no
 * memory. By the builder's thread. */
bool sp__batch_rows_refill(sp_batch_rows *rows);
/* A hint: no memory was free for them, or it was reclaimed. NULL: false. */
static inline bool sp__batch_rows_are_missing(const sp_batch_rows *rows)
{
    return rows != NULL && sp_load_relaxed(&rows->is_there) == 0;
}
/* Frees the memory of the rows unless one is in use, or another thread is about to. NULL: false. */
bool sp__batch_rows_reclaim(sp_batch_rows *rows);

/* A row, or NULL: all are in use. */
void *sp__batch_rows_acquire(sp_batch_rows *rows);
void sp__batch_rows_release(sp_batch_rows *rows, void *row);

/* The port's bytes in the row. */
static inline void *sp__batch_rows_at(const sp_batch_rows *rows, void *row, uint32_t port)
{
    return (char *)row + rows->offsets[port];
}

/* Copies the inputs of ports that are by rows in, and the outputs out, which may be NULL. */
void sp__batch_rows_copy_in(const sp_batch_rows *rows, void *row, const void *const *inputs);
void sp__batch_rows_copy_out(const sp_batch_rows *rows, void *row, void *const *outputs);

#endif
