/* SPDX-License-Identifier: Apache-2.0 */
/* Runs random calls with the portable kernels and with those of another table, and compares every
 * byte that a kernel may write, and the bytes around it. An activation is a separate kernel on the
 * portable side and fused into the call's kernel on the other. Operands have exactly the alignment
 * of their elements, the same on both sides. */
#ifndef SP_TESTS_CUDA_KERNEL_COMPARE_H
#define SP_TESTS_CUDA_KERNEL_COMPARE_H

#include "cuda/kernel_cases.h"
#include "ops/lowering.h"

/* Runs one dispatch of the table's kernels. bindings[i] is the host address of operand i; its
 * dispatch->bindings[i].bytes bytes have been written by earlier dispatches or hold a pattern that
 * must remain where the kernel does not write. So a device copies all of them in, keeping the
 * address's last 8 bits, and those with is_write out. */
typedef sp_status (*kernel_compare_run)(const sp_kernel *kernel, const sp_dispatch *dispatch,
                                        void *const *bindings, void *context);

typedef struct kernel_compare {
    const sp_kernel *kernels;
    kernel_compare_run run;
    void *context;
    bool skips_narrow;              /* products whose bits are not defined (docs/decisions/0072) */
    uint64_t runs[SP_KERNEL_COUNT]; /* dispatches of each kernel so far */
    uint64_t fused[SP_KERNEL_COUNT][SP_ACTIVATION_COUNT]; /* by applied activation */
} kernel_compare;

/* Runs at most `most` calls of one kind (kernel_case_count), except those that need a kernel
 * missing in the table; each difference is a failed check with a note of the call. */
void kernel_compare_calls(kernel_compare *compare, uint32_t kind, uint64_t seed, uint64_t most);

/* Runs `count` random copies of rows (move_rows), which no op's lowering emits, in the same way. */
void kernel_compare_rows(kernel_compare *compare, uint64_t seed, uint64_t count);
/* And `count` random runs of signal_done, whose result is checked. */
void kernel_compare_signals(kernel_compare *compare, uint64_t seed, uint64_t count);

/* As test_count, but not below `least`, with which the check holds whatever the scale. */
uint64_t kernel_compare_count(uint64_t full, uint64_t quick, uint64_t least);

/* Checks that every kernel of the table has run, those that can apply an activation with one and
 * without, and that every activation has been applied. */
void kernel_compare_check_runs(const kernel_compare *compare);

#endif
