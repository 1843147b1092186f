/* SPDX-License-Identifier: Apache-2.0 */
/* The library's CUDA kernels on the driver made of threads: the CPU's, by the names and with the
 * parameters of the CUDA program's; what the program lacks, the driver lacks. So models run there
 * as they do on a GPU, and a sanitizer sees the driver's copies. Programs link fake_cuda and
 * fake_nvrtc. */
#ifndef SP_TESTS_FAKE_KERNELS_H
#define SP_TESTS_FAKE_KERNELS_H

/* Before the first model is loaded on a cuda device. */
void fake_kernels_begin(void);

#endif
