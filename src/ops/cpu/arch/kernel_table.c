/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel table of one instruction set; compiled once per instruction set, like the kernels. */
#include "ops/cpu/arch/isa.h"
#include "ops/cpu/cpu_list.h"
#include "ops/cpu/tiling.h"

#define TABLE_PASTE_(isa) sp__kernel_table_##isa
#define TABLE_EXPAND_(isa) TABLE_PASTE_(isa)

#define JOINS_TILES(kernel)                                                                        \
    (SP_KERNEL_ID_##kernel == SP_KERNEL_ID_conv_blocked_f32 ||                                     \
     SP_KERNEL_ID_##kernel == SP_KERNEL_ID_conv_pool_blocked_f32)

extern const sp_kernel TABLE_EXPAND_(SP_ISA)[SP_KERNEL_COUNT];

const sp_kernel TABLE_EXPAND_(SP_ISA)[SP_KERNEL_COUNT] = {
#define TABLE_ENTRY(kernel, how)                                                                   \
    [SP_KERNEL_ID_##kernel] = {.name = #kernel,                                                    \
                               .run = SP_KERNEL(kernel),                                           \
                               .tiling = sp__tiling_##how,                                         \
                               .joins_tiles = JOINS_TILES(kernel)},
    SP_CPU_KERNEL_LIST(TABLE_ENTRY)
#undef TABLE_ENTRY
};
