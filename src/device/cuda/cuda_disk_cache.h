/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels compiled on the spot, kept in the user's cache folder from one process to the next. It is
 * a convenience: what is missing, damaged or cannot be written costs another compilation, and a
 * line of the level debug. Any number of threads and processes use one folder at once. */
#ifndef SP_DEVICE_CUDA_DISK_CACHE_H
#define SP_DEVICE_CUDA_DISK_CACHE_H

#include <stdbool.h>
#include <stddef.h>

#include "device/cuda/cuda_nvrtc.h"

/* All that decides what an image is. */
typedef struct sp_cuda_image_key {
    const char *name, *source;
    const char *architecture;
    sp_nvrtc_version compiler;
} sp_cuda_image_key;

/* The image, to be freed with sp_free, or false. The thread's last error is left alone. */
bool sp__cuda_disk_cache_read(const sp_cuda_image_key *key, void **image, size_t *image_bytes);
void sp__cuda_disk_cache_write(const sp_cuda_image_key *key, const void *image, size_t image_bytes);

#endif
