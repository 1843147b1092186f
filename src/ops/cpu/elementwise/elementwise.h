/* SPDX-License-Identifier: Apache-2.0 */
/* What the loops of elementwise kernels share. The loops, around a static inline function of one or
 * two elements, are the texts unary, function and binary; each is written so that it vectorises; y
 * may be the memory of an operand that has y's shape and size. */
#ifndef SP_OPS_CPU_ELEMENTWISE_ELEMENTWISE_H
#define SP_OPS_CPU_ELEMENTWISE_ELEMENTWISE_H

#include "ops/cpu/arch/strided.h"
#include "ops/cpu/arch/typed.h"

/* Elements after which a kernel may do more with its results: they are still in the first-level
 * cache. */
enum { SP_STRETCH = 2048 };

/* The elements of a flat tile: `first`, `n`. */
#define SP_FLAT_TILE(constants_type)                                                               \
    const constants_type *k = tile->constants;                                                     \
    const int64_t first = tile->index[0] * k->tile_count;                                          \
    const int64_t left = k->count - first;                                                         \
    const int64_t n = left < k->tile_count ? left : k->tile_count;

#endif
