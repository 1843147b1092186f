/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA's run-time compiler, for architectures that a program's binary has no code for. Loaded when
 * first needed. */
#ifndef SP_DEVICE_CUDA_NVRTC_H
#define SP_DEVICE_CUDA_NVRTC_H

#include <stddef.h>

#include <streampool/status.h>

typedef struct sp_nvrtc_version {
    int major, minor;
} sp_nvrtc_version;

/* Loads the compiler: STREAMPOOL_NVRTC, or one of the system's. SP_UNSUPPORTED, with how to install
 * one; the next call then tries again. */
sp_status sp__nvrtc_open(sp_nvrtc_version *out);

/* Compiles a source, without contraction of a*b+c, for the architecture "sm_XY". The image is freed
 * with sp_free. SP_FAILED with the compiler's log. Only after sp__nvrtc_open. */
sp_status sp__nvrtc_compile(const char *name, const char *source, const char *architecture,
                            void **image, size_t *image_bytes);

#endif
