/* SPDX-License-Identifier: Apache-2.0 */
/* SP_TREE(lanes, width, extent): combines the lanes by SP_COMBINE: afterwards lanes[c] is reduction
 * c of `extent` elements. Included by other templates; parameters SP_TREE and SP_COMBINE. */

static SP_ALWAYS_INLINE void SP_TREE(SP_WIDE *lanes, int64_t width, int64_t extent)
{
    for (int64_t step = SP_LANES / 2; step > 0; step /= 2) {
        for (int64_t l = 0; l < step && l + step < extent; l++) {
            SP_WIDE *to = lanes + l * width;
            const SP_WIDE *from = to + step * width;
            SP_INDEPENDENT for (int64_t c = 0; c < width; c++) to[c] =
                SP_WIDE_OF(SP_COMBINE)(to[c], from[c]);
        }
    }
}

#undef SP_COMBINE
#undef SP_TREE
