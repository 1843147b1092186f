/* SPDX-License-Identifier: Apache-2.0 */
#include "latencies.h"

#define SUB_BUCKETS ((uint64_t)1 << LATENCY_SUB_BITS)

/* Below SUB_BUCKETS a bucket for each value; above, SUB_BUCKETS buckets for each power of two. */
static uint32_t bucket_of(uint64_t ns)
{
    if (ns < SUB_BUCKETS) return (uint32_t)ns;
    const uint32_t shift = 63 - (uint32_t)__builtin_clzll(ns) - LATENCY_SUB_BITS;
    return (uint32_t)(((uint64_t)(shift + 1) << LATENCY_SUB_BITS) + (ns >> shift) - SUB_BUCKETS);
}

/* The largest value of a bucket. */
static uint64_t bucket_end(uint32_t bucket)
{
    if (bucket < SUB_BUCKETS) return bucket;
    const uint32_t shift = (bucket >> LATENCY_SUB_BITS) - 1;
    const uint64_t first = (SUB_BUCKETS + bucket % SUB_BUCKETS) << shift;
    return first + (((uint64_t)1 << shift) - 1);
}

void latencies_add(latencies *self, uint64_t ns)
{
    self->count++;
    self->sum_ns += ns;
    if (ns > self->max_ns) self->max_ns = ns;
    self->buckets[bucket_of(ns)]++;
}

void latencies_merge(latencies *self, const latencies *other)
{
    self->count += other->count;
    self->sum_ns += other->sum_ns;
    if (other->max_ns > self->max_ns) self->max_ns = other->max_ns;
    for (uint32_t i = 0; i < LATENCY_BUCKETS; i++) self->buckets[i] += other->buckets[i];
}

uint64_t latencies_percentile(const latencies *self, double share)
{
    const double wanted = share * (double)self->count;
    uint64_t seen = 0;
    for (uint32_t i = 0; i < LATENCY_BUCKETS; i++) {
        seen += self->buckets[i];
        if (seen == 0 || (double)seen < wanted) continue;
        const uint64_t end = bucket_end(i);
        return end < self->max_ns ? end : self->max_ns;
    }
    return self->max_ns;
}
