/* SPDX-License-Identifier: Apache-2.0 */
/* A histogram of durations. Its buckets are 1/32 of a power of two wide, so a percentile is at most
 * 1/32 too large. Owned by one thread. */
#ifndef SP_CLI_LATENCIES_H
#define SP_CLI_LATENCIES_H

#include <stdint.h>

#define LATENCY_SUB_BITS 5
#define LATENCY_BUCKETS ((64 - LATENCY_SUB_BITS + 1) << LATENCY_SUB_BITS)

/* Zeroed: empty. */
typedef struct latencies {
    uint64_t count;
    uint64_t sum_ns;
    uint64_t max_ns;
    uint64_t buckets[LATENCY_BUCKETS];
} latencies;

void latencies_add(latencies *self, uint64_t ns);
void latencies_merge(latencies *self, const latencies *other);

/* Nanoseconds that `share` of the durations (0 to 1) do not exceed; 0 if there are none. */
uint64_t latencies_percentile(const latencies *self, double share);

#endif
