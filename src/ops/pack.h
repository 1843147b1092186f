/* SPDX-License-Identifier: Apache-2.0 */
/* Packings of matrices: which format a kernel reads, what packs it, and how large the copy is. Ops,
 * plans and launches find all of that here (docs/decisions/0080-pack-formats.md). */
#ifndef SP_OPS_PACK_H
#define SP_OPS_PACK_H

#include "ops/kernel_id.h"
#include "ops/op.h"

/* A matrix that is read in a format. */
struct sp_pack {
    sp_pack_format format; /* SP_PACK_NONE: it is read as it is */
    sp_pack_constants matrix;
};

/* The format in which the kernel reads a packed matrix, or writes one if it packs; SP_PACK_NONE of
 * others. The same for all devices and instruction sets. */
sp_pack_format sp__pack_format_of(sp_kernel_id kernel);

/* The kernel that packs a matrix into the format; its constants are sp_pack_constants. */
sp_kernel_id sp__pack_kernel(sp_pack_format format);

/* Bytes of a packed matrix. */
uint64_t sp__pack_bytes(sp_pack_format format, int64_t depth, int64_t columns);

/* Is it a matrix of f32 as a product writes it, column after column of the packed one, and of whole
 * groups and lines, so that nothing is padded? */
bool sp__pack_is_whole(sp_pack_format format, const sp_pack_constants *matrix);

static inline uint64_t sp__pack_copy_bytes(const sp_pack *pack)
{
    return sp__pack_bytes(pack->format, pack->matrix.depth, pack->matrix.columns);
}

/* How the call reads constant input `input`, if it is packed. */
sp_pack sp__op_pack(const sp_op_call *call, uint32_t input);

#endif
