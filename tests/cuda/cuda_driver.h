/* SPDX-License-Identifier: Apache-2.0 */
/* The little of CUDA's driver that launching a kernel by hand takes, found at run time. For tests
 * of the kernels alone; one thread, one GPU, one stream. */
#ifndef SP_TESTS_CUDA_CUDA_DRIVER_H
#define SP_TESTS_CUDA_CUDA_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ops/lowering.h"

/* False, with a reason, if there is no driver, no GPU or no binary of the kernels. */
bool cuda_driver_open(const char **why);

/* Memory on the GPU, for as long as the program runs. Aligned to 256. */
uint64_t cuda_driver_memory(uint64_t bytes);
bool cuda_driver_to_gpu(uint64_t to, const void *from, uint64_t bytes);
bool cuda_driver_from_gpu(void *to, uint64_t from, uint64_t bytes);

/* Submits one dispatch of the CUDA kernels; addresses[i] is binding i. */
bool cuda_driver_launch(const sp_dispatch *dispatch, const uint64_t *addresses);
bool cuda_driver_synchronize(void);

/* Microseconds that the GPU took between the last two calls; 0 at first. */
double cuda_driver_lap_us(void);

#endif
