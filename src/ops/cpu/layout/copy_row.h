/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of rows of elements of 1, 2, 4 and 8 bytes. All bits are kept, those of NaNs too. */
#ifndef SP_OPS_CPU_LAYOUT_COPY_ROW_H
#define SP_OPS_CPU_LAYOUT_COPY_ROW_H

#include "ops/cpu/arch/strided.h"
#include "ops/cpu/arch/typed.h"

/* Offsets and steps are in elements. */
typedef struct copy_side {
    void *base;
    int64_t offset, step;
} copy_side;

#define SP_TEXT "ops/cpu/layout/copy_row.inc.h"
#include "ops/cpu/arch/each_unsigned.inc.h"

static SP_ALWAYS_INLINE void copy_row(uint32_t element_bytes, copy_side from, copy_side to,
                                      int64_t n)
{
    switch (element_bytes) {
    case 1:
        copy_row_u8(from, to, n);
        break;
    case 2:
        copy_row_u16(from, to, n);
        break;
    case 4:
        copy_row_u32(from, to, n);
        break;
    default:
        copy_row_u64(from, to, n);
        break;
    }
}

#endif
