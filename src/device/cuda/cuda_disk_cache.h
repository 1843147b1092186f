/* SPDX-License-Identifier: Apache-2.0 */
/* Disk cache, in the user's cache folder, of kernels compiled at run time. An entry that is
 * missing, damaged or cannot be written costs another compilation, and is logged at level debug.
 * Any number of threads and processes may use one folder at once. */
#ifndef SP_DEVICE_CUDA_DISK_CACHE_H
#define SP_DEVICE_CUDA_DISK_CACHE_H

#include <stdbool.h>
#include <stddef.h>

#include "device/cuda/cuda_nvrtc.h"

/* Everything that determines an image. */
typedef struct sp_cuda_image_key {
    const char *name, *source;
    const char *architecture;
    sp_nvrtc_version compiler;
} sp_cuda_image_key;

/* The image, to be freed with sp_free, or false. Does not change the thread's last error. */
bool sp__cuda_disk_cache_read(const sp_cuda_image_key *key, void **image, size_t *image_bytes);
void sp__cuda_disk_cache_write(const sp_cuda_image_key *key, const void *image, size_t image_bytes);

#endif
