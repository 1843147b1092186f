/* SPDX-License-Identifier: Apache-2.0 */
/* The sum of a product or convolution as docs/decisions/0002-bit-rules.md defines it, step by step:
 * a chain of fused multiply-adds from +0 for each segment, and the sum of the chains from +0. */
#ifndef SP_TESTS_PRODUCT_RULE_H
#define SP_TESTS_PRODUCT_RULE_H

#include <math.h>
#include <stdint.h>

typedef struct product_sum {
    int64_t segment; /* steps */
    int64_t index;   /* of the next step */
    float chain, sum;
} product_sum;

/* L of the rule, for a kernel of so many taps; 1: of a matrix product. */
static inline int64_t product_segment(int64_t taps)
{
    if (taps > 512) return 512;
    int64_t power = 1;
    while (power * 2 <= 512 / taps) power *= 2;
    return taps * (power < 256 ? power : 256);
}

static inline product_sum product_begin(int64_t taps)
{
    return (product_sum){.segment = product_segment(taps)};
}

/* A step without a product: its place counts. */
static inline void product_skip(product_sum *p)
{
    if (++p->index % p->segment != 0) return;
    p->sum += p->chain;
    p->chain = 0;
}

static inline void product_step(product_sum *p, float a, float b)
{
    p->chain = fmaf(a, b, p->chain);
    product_skip(p);
}

static inline float product_end(const product_sum *p)
{
    return p->sum + p->chain;
}

#endif
