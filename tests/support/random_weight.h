/* SPDX-License-Identifier: Apache-2.0 */
/* Weights whose values do not matter, for graphs that a test writes. */
#ifndef SP_TESTS_SUPPORT_RANDOM_WEIGHT_H
#define SP_TESTS_SUPPORT_RANDOM_WEIGHT_H

#include "support/onnx_writer.h"

/* An initializer of random floats in [-1, 1), the same for the same seed. */
void add_random_weight(writer *graph, const char *name, const int64_t *dims, uint32_t rank,
                       uint64_t seed);

#endif
