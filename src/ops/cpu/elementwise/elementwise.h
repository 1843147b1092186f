/* SPDX-License-Identifier: Apache-2.0 */
/* Definitions that the elementwise kernels share. Their loops, around a static inline function of
 * one or two elements, are the templates unary, function and binary; all of them vectorise. y may
 * be the memory of an operand that has y's shape and size. */
#ifndef SP_OPS_CPU_ELEMENTWISE_ELEMENTWISE_H
#define SP_OPS_CPU_ELEMENTWISE_ELEMENTWISE_H

#include "ops/cpu/arch/strided.h"
#include "ops/cpu/arch/typed.h"

/* Elements of a block: a kernel may process the results of a block again while they are in the
 * first-level cache. */
enum { SP_STRETCH = 2048 };

/* The elements of a flat tile: `first`, `n`. */
#define SP_FLAT_TILE(constants_type)                                                               \
    const constants_type *k = tile->constants;                                                     \
    const int64_t first = sp_tile_first(tile, 0);                                                  \
    const int64_t n = sp_tile_end(tile, 0, k->count) - first;

#endif
