/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of kernel_cases_move.c, which kernel_cases.c adds to its own. */
#ifndef SP_TESTS_CUDA_KERNEL_CASES_MOVE_H
#define SP_TESTS_CUDA_KERNEL_CASES_MOVE_H

#include "cuda/kernel_cases.h"

typedef struct kernel_case_kind {
    const char *name;
    void (*make)(data_random *random, kernel_case *c);
} kernel_case_kind;

#define KERNEL_CASE_MOVES 19
extern const kernel_case_kind kernel_case_moves[KERNEL_CASE_MOVES];

#endif
