/* SPDX-License-Identifier: Apache-2.0 */
/* Random calls of every op that has kernels: shapes with 0s and 1s, all types and attributes,
 * numbers of every float class. The same seed gives the same calls on every machine. */
#ifndef SP_TESTS_CUDA_KERNEL_CASES_H
#define SP_TESTS_CUDA_KERNEL_CASES_H

#include "support/model_data.h"

#define KERNEL_CASE_INPUTS 20
#define KERNEL_CASE_ATTRIBUTES 6

/* One call. It contains pointers into itself: created in place, not copied. */
typedef struct kernel_case {
    const char *op;
    uint32_t version;
    sp_attribute attributes[KERNEL_CASE_ATTRIBUTES];
    uint32_t attribute_count;
    sp_array inputs[KERNEL_CASE_INPUTS]; /* absent ones have no dtype */
    uint32_t input_count, output_count;
    bool is_known[KERNEL_CASE_INPUTS]; /* to the shape rule: a shape-determining input */
    sp_precision precision;            /* of a product */
    bool packs_left;                   /* of such a product */
    bool packs;                        /* packs input 1 first, if the op can */
    bool in_place;                     /* the output over the input, if the op can */
    sp_activation activation;          /* of the finished output, if the op's kernel can */

    int64_t ints[KERNEL_CASE_ATTRIBUTES][SP_MAX_RANK]; /* values that attributes point to */
    float floats[KERNEL_CASE_ATTRIBUTES];
    sp_text text, second_text;
    sp_array value;
    sp_array_view value_view;
} kernel_case;

/* Kinds of calls, each an op or a family of them. */
uint32_t kernel_case_kinds(void);
const char *kernel_case_kind_name(uint32_t kind);
/* The number of calls of the kind to make, at most `most`: a kind that is one simple op needs
 * few. */
uint64_t kernel_case_count(uint32_t kind, uint64_t most);

void kernel_case_make(uint32_t kind, data_random *random, kernel_case *out);
void kernel_case_free(kernel_case *what);

#endif
