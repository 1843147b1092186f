/* SPDX-License-Identifier: Apache-2.0 */
/* The entry of a fuzz target, which libFuzzer calls by this name. Returns 0. */
#ifndef SP_TESTS_FUZZ_FUZZ_H
#define SP_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
