/* SPDX-License-Identifier: Apache-2.0 */
/* The words by which graphs tell the host how often they have been executed: each has a counter in
 * the GPU's memory and a word in pinned memory, which the last kernel of a graph raises
 * (sp_gpu_kernel.signals). They are made many at a time, and live as long as the device: a graph
 * has one while it exists. */
#ifndef SP_DEVICE_CUDA_WORDS_H
#define SP_DEVICE_CUDA_WORDS_H

#include "base/mutex.h"
#include "device/cuda/cuda_api.h"

typedef struct sp_cuda_device sp_cuda_device;

typedef struct sp_cuda_word {
    sp_atomic_u64 *word; /* in pinned memory; its address is the GPU's too */
    CUdeviceptr counter;
    uint64_t launches; /* of its kernel; the user's */
    struct sp_cuda_word *next;
} sp_cuda_word;

/* Zeroed: empty. */
typedef struct sp_cuda_words {
    sp_mutex lock;
    sp_cuda_word *free SP_GUARDED_BY(lock);
    struct sp_cuda_word_block *blocks SP_GUARDED_BY(lock);
} sp_cuda_words;

void sp__cuda_words_init(sp_cuda_words *words);
/* No kernel raises a word any more. */
void sp__cuda_words_deinit(sp_cuda_device *device);

/* Both with the device's context current. Errors: SP_OUT_OF_MEMORY, SP_DEVICE_LOST. */
sp_status sp__cuda_word_acquire(sp_cuda_device *device, sp_cuda_word **out);
/* A word with launches that have not ended is kept until the device is closed. */
void sp__cuda_word_release(sp_cuda_device *device, sp_cuda_word *word);

#endif
