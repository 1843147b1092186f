/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU kernels: one table of them per instruction set. All tables hold the same kernels with the
 * same bits; only speed differs. Tables are constant data.
 *
 * Every kernel reads and writes at the alignment of its elements, no more. Where the result of
 * arithmetic is a NaN it is the one NaN 0x7fc00000; kernels that only move data keep all bits. */
#ifndef SP_OPS_CPU_ARCH_KERNELS_H
#define SP_OPS_CPU_ARCH_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "device/kernel.h"
#include "ops/kernel_id.h"
#include "tensor/shape.h"

/* Each can be used where the ones before it of the same processor can. */
typedef enum sp_cpu_isa {
    SP_CPU_PORTABLE,
    SP_CPU_AVX2,
    SP_CPU_AVX512,
    SP_CPU_NEON,
    SP_CPU_ISA_COUNT
} sp_cpu_isa;

/* The table for one instruction set; NULL if the build or the processor does not have it. */
const sp_kernel *sp__cpu_kernels(sp_cpu_isa isa);
const char *sp__cpu_isa_name(sp_cpu_isa isa);

/* The instruction set that STREAMPOOL_ISA selects (cpu_isa.h). */
sp_cpu_isa sp__cpu_isa_selected(void);

#define SP_CONSTANTS_CHECK(type, bytes)                                                            \
    _Static_assert(sizeof(type) == bytes && sizeof(type) <= SP_MAX_CONSTANT_BYTES,                 \
                   "constants are bounded, and the same for every compiler");
SP_KERNEL_CONSTANTS_LIST(SP_CONSTANTS_CHECK)
#undef SP_CONSTANTS_CHECK
_Static_assert(SP_KERNEL_RANK == SP_MAX_RANK && SP_KERNEL_BINDINGS == SP_MAX_BINDINGS,
               "two names for one number");

#endif
