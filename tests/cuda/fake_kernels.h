/* SPDX-License-Identifier: Apache-2.0 */
/* The library's CUDA kernels for the fake driver: the CPU kernels, under the names and with the
 * parameters of the CUDA program; kernels that the program lacks are missing here too. Models run
 * on it as on a GPU, and sanitizers see the driver's copies. Programs link fake_cuda and
 * fake_nvrtc. */
#ifndef SP_TESTS_FAKE_KERNELS_H
#define SP_TESTS_FAKE_KERNELS_H

/* Call before the first model is loaded on a cuda device. */
void fake_kernels_begin(void);

#endif
