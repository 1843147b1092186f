/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cuda/cuda_words.h"

#include "base/error.h"
#include "base/heap.h"
#include "device/cuda/cuda_device.h"

#define WORDS 128u
/* Each word has a cache line, since a thread looks at it all the time. */
#define WORD_BYTES 64u

typedef struct sp_cuda_word_block {
    sp_memory pinned, counters;
    struct sp_cuda_word_block *next;
    sp_cuda_word words[WORDS];
} word_block;

void sp__cuda_words_init(sp_cuda_words *words)
{
    sp_mutex_init(&words->lock, SP_LOCK_CUDA_WORDS);
}

/* With the context current. Memory that could not be made has a device, but no address. */
static void block_free(word_block *block)
{
    if (block->counters.address != NULL) sp__cuda_memory_destroy(&block->counters);
    if (block->pinned.address != NULL) sp__cuda_staging_destroy(&block->pinned);
    sp_free(block);
}

void sp__cuda_words_deinit(sp_cuda_device *device)
{
    sp_cuda_words *words = &device->words;
    sp_mutex_lock(&words->lock);
    word_block *block = words->blocks;
    sp_mutex_unlock(&words->lock);
    if (block != NULL) sp__cuda_enter(device);
    const bool has_entered = block != NULL;
    while (block != NULL) {
        word_block *next = block->next;
        block_free(block);
        block = next;
    }
    if (has_entered) sp__cuda_leave();
    sp_mutex_deinit(&words->lock);
}

static sp_status counters_clear(sp_cuda_device *device, const sp_memory *counters)
{
    CUstream stream = device->clock_stream;
    const CUdeviceptr address = (CUdeviceptr)(uintptr_t)counters->address;
    CUresult result = SP_CUDA(cuMemsetD8Async)(address, 0, counters->bytes, stream);
    if (result == CUDA_SUCCESS) result = SP_CUDA(cuStreamSynchronize)(stream);
    return sp__cuda_check_on(device, result, "cuMemsetD8Async", "counters");
}

static sp_status block_fill(sp_cuda_device *device, word_block *block)
{
    sp_dev *dev = &device->gpu.common.base;
    SP_TRY(sp__cuda_staging_create(dev, (uint64_t)WORDS * WORD_BYTES, &block->pinned));
    SP_TRY(sp__cuda_memory_create(dev, WORDS * sizeof(uint64_t), &block->counters));
    SP_TRY(counters_clear(device, &block->counters));
    for (uint32_t i = 0; i < WORDS; i++) {
        sp_cuda_word *word = &block->words[i];
        word->word = (void *)((char *)block->pinned.host + (size_t)i * WORD_BYTES);
        word->counter = (CUdeviceptr)(uintptr_t)block->counters.address + i * sizeof(uint64_t);
        word->next = i + 1 < WORDS ? &block->words[i + 1] : NULL;
        sp_store_relaxed(word->word, 0);
    }
    return SP_OK;
}

static void block_publish(sp_cuda_words *words, word_block *block)
{
    sp_mutex_lock(&words->lock);
    block->next = words->blocks;
    words->blocks = block;
    block->words[WORDS - 1].next = words->free;
    words->free = &block->words[0];
    sp_mutex_unlock(&words->lock);
}

static sp_status words_add(sp_cuda_device *device)
{
    word_block *block = sp_calloc(1, sizeof *block);
    if (block == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for the words of graphs");
    const sp_status status = block_fill(device, block);
    if (status == SP_OK) block_publish(&device->words, block);
    else block_free(block);
    return status;
}

static sp_cuda_word *word_pop(sp_cuda_words *words)
{
    sp_mutex_lock(&words->lock);
    sp_cuda_word *word = words->free;
    if (word != NULL) words->free = word->next;
    sp_mutex_unlock(&words->lock);
    return word;
}

sp_status sp__cuda_word_acquire(sp_cuda_device *device, sp_cuda_word **out)
{
    while ((*out = word_pop(&device->words)) == NULL) SP_TRY(words_add(device));
    return SP_OK;
}

void sp__cuda_word_release(sp_cuda_device *device, sp_cuda_word *word)
{
    sp_cuda_words *words = &device->words;
    /* Acquire: the next user's kernels come after those that have raised it so far. */
    if (sp_load_acquire(word->word) != word->launches) return;
    sp_mutex_lock(&words->lock);
    word->next = words->free;
    words->free = word;
    sp_mutex_unlock(&words->lock);
}
