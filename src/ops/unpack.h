/* SPDX-License-Identifier: Apache-2.0 */
/* The inverse of packings that change no element and leave none out: each element of the weight is
 * in one place of the copy, from where it is copied back bit for bit. Only copies of 32-bit floats
 * in panels (SP_PACK_F32) can be that; those of narrow types are rounded. */
#ifndef SP_OPS_UNPACK_H
#define SP_OPS_UNPACK_H

#include "ops/kernel_id.h"

/* Does a copy by `kernel` with these constants have each of the weight's `count` floats? Without
 * memory to find out the answer is no. */
bool sp__unpack_is_possible(sp_kernel_id kernel, const void *constants, uint32_t constant_bytes,
                            uint64_t count);

/* Writes each element of the weight. Precondition: sp__unpack_is_possible. Cannot fail. */
void sp__unpack(sp_kernel_id kernel, const void *constants, const void *copy, void *weight);

#endif
