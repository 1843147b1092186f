/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA program compiled as C++ for the host, with the threads of a block run in sequence from
 * barrier to barrier. Slow and exact: it tests indices, tails, barriers and bits, not speed. One
 * launch at a time. */
#ifndef SP_TESTS_CUDA_CUDA_EMULATOR_H
#define SP_TESTS_CUDA_CUDA_EMULATOR_H

#include <stdbool.h>

#include "device/gpu_kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* False if the entry does not exist, if its clusters do not fill the grid, if some threads of a
 * block ended at a barrier of others, or if a thread did not wait for what it needs: the kernels in
 * front, or a barrier. */
bool cuda_emulator_launch(const char *entry, const sp_launch_shape *shape, void *const *bindings,
                          uint32_t binding_count, const void *constants);

/* Whether later launches have clusters (as at the start), or each block runs alone. */
void cuda_emulator_set_clusters(bool has_clusters);

/* The kernel in front of later ones, NULL for none: it ends when the first thread awaits it. */
void cuda_emulator_set_front(void (*kernel)(void *context), void *context);

#ifdef __cplusplus
}
#endif

#endif
