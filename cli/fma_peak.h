/* SPDX-License-Identifier: Apache-2.0 */
/* The most multiply-adds of floats that one core does in a second, measured. */
#ifndef SP_CLI_FMA_PEAK_H
#define SP_CLI_FMA_PEAK_H

typedef struct fma_peak {
    double gflops;               /* two operations a multiply-add */
    const char *instruction_set; /* the widest one of the processor: "avx512", "avx2", "portable" */
} fma_peak;

/* On the calling thread, for some 50 ms. The best of many short measurements: others on the machine
 * only lower it. */
fma_peak fma_peak_measure(void);

#endif
