/* SPDX-License-Identifier: Apache-2.0 */
/* What the libraries that stand for other runtimes share. Each output of their models is the Relu
 * of the first input, which has floats. FAKE_PEER names what is wrong: "old", a version that is too
 * old; "refused", the model; "wrong", other values; "type", another type; "small", too few
 * elements; "dies", the process ends in the third run; "slow", a run says so and takes 600 s. */
#ifndef SP_TESTS_FAKE_PEER_H
#define SP_TESTS_FAKE_PEER_H

#include <stdbool.h>
#include <stddef.h>

bool fake_peer_is(const char *fault);
/* Of a run: FAKE_PEER_THREADS, 0 the library's choice, or 1. Another number is refused. */
int fake_peer_run_threads(void);

/* Once a run; then for each output. */
void fake_peer_begin(void);
void fake_peer_compute(const float *x, float *y, size_t count);

#endif
