/* SPDX-License-Identifier: Apache-2.0 */
/* What makers of random calls are written in, and where families of them are named. */
#ifndef SP_TESTS_CUDA_KERNEL_CASE_PARTS_H
#define SP_TESTS_CUDA_KERNEL_CASE_PARTS_H

#include "cuda/kernel_cases.h"

/* In [low, high]. */
int64_t pick(data_random *random, int64_t low, int64_t high);
bool one_in(data_random *random, int64_t n);
/* A size: mostly small, often 1, seldom 0. */
int64_t pick_size(data_random *random, int64_t most);

/* Dimensions of such sizes, of 20000 elements or so together. */
sp_shape pick_shape(data_random *random, uint32_t least_rank, uint32_t most_rank, int64_t most);
/* What broadcasts to `shape`: some dimensions 1, some leading ones left out. */
sp_shape pick_operand(data_random *random, const sp_shape *shape);
sp_dtype pick_dtype(data_random *random);
sp_activation pick_activation(data_random *random);

/* Appends an input of random numbers, or of the integers given, which the shape rule may know. */
sp_array *add_random(kernel_case *c, data_random *random, sp_dtype dtype, const sp_shape *shape);
void add_known_ints(kernel_case *c, const int64_t *values, int64_t count);
void add_int(kernel_case *c, const char *name, int64_t value);
void add_ints(kernel_case *c, const char *name, const int64_t *values, uint32_t count);
void add_float(kernel_case *c, const char *name, float value);

/* Windows over `spatial` dimensions. */
typedef struct case_window {
    int64_t in[3], kernel[3], stride[3], dilation[3], pads[6];
    uint32_t spatial;
} case_window;

/* Strides, dilations and pads. */
void add_window(kernel_case *c, const case_window *w);
/* [first, second, sizes ...] */
sp_shape window_shape(const case_window *w, int64_t first, int64_t second, const int64_t *sizes);

typedef struct elementwise_op elementwise_op; /* elementwise_cases.c */

/* One kind of calls: what `make` makes, or, without it, calls of one simple op. */
typedef struct kernel_case_kind {
    const char *name;
    void (*make)(data_random *random, kernel_case *c);
    const elementwise_op *op;
} kernel_case_kind;

/* The kinds of a family, ended by one without a name. */
extern const kernel_case_kind elementwise_case_kinds[]; /* elementwise_cases.c */
extern const kernel_case_kind move_case_kinds[];        /* move_cases.c */
extern const kernel_case_kind reduce_case_kinds[];      /* reduce_cases.c */

void elementwise_case_make(const kernel_case_kind *kind, data_random *random, kernel_case *c);

#endif
