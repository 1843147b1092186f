/* SPDX-License-Identifier: Apache-2.0 */
/* What makers of random calls are written in. */
#ifndef SP_TESTS_CUDA_KERNEL_CASE_PARTS_H
#define SP_TESTS_CUDA_KERNEL_CASE_PARTS_H

#include "cuda/kernel_cases.h"

/* In [low, high]. */
int64_t pick(data_random *random, int64_t low, int64_t high);
bool one_in(data_random *random, int64_t n);

/* Dimensions of up to `most`: mostly small, often 1, seldom 0. */
sp_shape pick_shape(data_random *random, uint32_t least_rank, uint32_t most_rank, int64_t most);
/* What broadcasts to `shape`: some dimensions 1, some leading ones left out. */
sp_shape pick_operand(data_random *random, const sp_shape *shape);
sp_dtype pick_dtype(data_random *random);

/* Appends an input of random numbers, or of the integers given, which the shape rule may know. */
sp_array *add_random(kernel_case *c, data_random *random, sp_dtype dtype, const sp_shape *shape);
void add_known_ints(kernel_case *c, const int64_t *values, int64_t count);
void add_int(kernel_case *c, const char *name, int64_t value);
void add_float(kernel_case *c, const char *name, float value);

/* Calls of the elementwise ops, one kind for each op. */
uint32_t elementwise_case_kinds(void);
const char *elementwise_case_kind_name(uint32_t kind);
void elementwise_case_make(uint32_t kind, data_random *random, kernel_case *c);

#endif
