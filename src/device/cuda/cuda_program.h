/* SPDX-License-Identifier: Apache-2.0 */
/* The programs of one CUDA device. Each is loaded at the first use of one of its kernels, from its
 * binary, or compiled from its source if the binary has no code for this GPU.
 *
 * All functions are called with the device's context current. */
#ifndef SP_DEVICE_CUDA_PROGRAM_H
#define SP_DEVICE_CUDA_PROGRAM_H

#include <streampool/status.h>

#include "base/atomic.h"
#include "base/mutex.h"
#include "device/cuda/cuda_api.h"
#include "device/gpu/gpu_gate.h"
#include "device/gpu_kernel.h"

typedef struct sp_cuda_programs {
    char architecture[16]; /* "sm_90"; empty: not open */
    uint32_t shared_bytes; /* of memory that a block can have */
    sp_gpu_gate *gate;     /* of the device */
    /* List of loaded_program, newest first. Pushed (release) under the lock, traversed (acquire)
     * without it: their constant fields. */
    sp_atomic_ptr first;
    sp_mutex lock;
    sp_cond load_ended;
} sp_cuda_programs;

sp_status sp__cuda_programs_open(sp_cuda_programs *programs, sp_gpu_gate *gate, CUdevice device);
/* Unloads all; no look-up and no kernel of them may run. Does nothing for zeroed memory. */
void sp__cuda_programs_close(sp_cuda_programs *programs);

/* The driver's function of a kernel; from any thread, without a lock once it was found. Loading may
 * compile, which is slow, and is done once: concurrent callers wait. A failure is returned to all
 * waiting callers, and the next call tries again. SP_UNSUPPORTED if there is neither code for this
 * GPU nor a compiler; SP_FAILED with the compiler's log. */
sp_status sp__cuda_program_function(sp_cuda_programs *programs, const sp_gpu_kernel *kernel,
                                    CUfunction *out);

/* The program's whole text, zero-terminated, to be freed. SP_OUT_OF_MEMORY; SP_CORRUPT if a part is
 * no deflate stream of its text. */
sp_status sp__cuda_program_text(const sp_gpu_program *program, char **out);

#endif
