/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: a list of commands and a thread that runs them in order. primitive: see fake.h. */
#include "fake.h"

#include <stdlib.h>
#include <time.h>

struct CUstream_st {
    CUcontext context;
    pthread_mutex_t lock;
    pthread_cond_t pushed; /* a command, or is_closing */
    pthread_cond_t ended;  /* a command */
    fake_command *first;
    fake_command **last;
    uint64_t pushed_count, ended_count;
    bool is_closing;
};

static pthread_mutex_t threads_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t thread_ended = PTHREAD_COND_INITIALIZER;
static uint64_t closing_threads; /* of destroyed streams */

static void sleep_ns(uint64_t ns)
{
    const struct timespec duration = {.tv_sec = (time_t)(ns / 1000000000),
                                      .tv_nsec = (long)(ns % 1000000000)};
    nanosleep(&duration, NULL);
}

/* Waits for the next command, which still counts as queued; NULL: the stream is destroyed and
 * empty. */
static fake_command *wait_for_command(CUstream stream)
{
    pthread_mutex_lock(&stream->lock);
    while (stream->first == NULL && !stream->is_closing) {
        pthread_cond_wait(&stream->pushed, &stream->lock);
    }
    fake_command *command = stream->first;
    if (command != NULL) stream->first = command->next;
    if (stream->first == NULL) stream->last = &stream->first;
    pthread_mutex_unlock(&stream->lock);
    return command;
}

static void note_end(CUstream stream)
{
    pthread_mutex_lock(&stream->lock);
    stream->ended_count++;
    pthread_cond_broadcast(&stream->ended);
    pthread_mutex_unlock(&stream->lock);
}

static void free_stream(CUstream stream)
{
    pthread_cond_destroy(&stream->ended);
    pthread_cond_destroy(&stream->pushed);
    pthread_mutex_destroy(&stream->lock);
    free(stream);
}

static void *run_stream(void *arg)
{
    CUstream stream = arg;
    for (;;) {
        fake_command *command = wait_for_command(stream);
        if (command == NULL) break;
        fake_wait_until_let_go();
        const uint64_t delay = fake_delay();
        if (delay > 0) sleep_ns(delay);
        if (fake_failure(stream->context) == CUDA_SUCCESS) command->run(command);
        command->end(command);
        note_end(stream);
    }
    free_stream(stream);
    pthread_mutex_lock(&threads_lock);
    closing_threads--;
    pthread_cond_broadcast(&thread_ended);
    pthread_mutex_unlock(&threads_lock);
    return NULL;
}

void fake_cuda_drain(void)
{
    pthread_mutex_lock(&threads_lock);
    while (closing_threads > 0) pthread_cond_wait(&thread_ended, &threads_lock);
    pthread_mutex_unlock(&threads_lock);
}

CUresult fake_stream_check(CUstream stream, CUcontext context)
{
    return stream != NULL && stream->context == context ? CUDA_SUCCESS : FAKE_ERROR_INVALID_HANDLE;
}

CUresult fake_stream_push(CUstream stream, fake_command *command)
{
    if (command == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    command->next = NULL;
    pthread_mutex_lock(&stream->lock);
    while (stream->pushed_count - stream->ended_count >= fake_queue_limit()) {
        pthread_cond_wait(&stream->ended, &stream->lock);
    }
    *stream->last = command;
    stream->last = &command->next;
    stream->pushed_count++;
    pthread_cond_signal(&stream->pushed);
    pthread_mutex_unlock(&stream->lock);
    return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
    FAKE_CONTEXT(cuStreamCreate, context);
    if ((flags & ~(unsigned int)CU_STREAM_NON_BLOCKING) != 0) return CUDA_ERROR_INVALID_VALUE;
    CUstream made = calloc(1, sizeof *made);
    if (made == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    made->context = context;
    made->last = &made->first;
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->pushed, NULL);
    pthread_cond_init(&made->ended, NULL);
    pthread_t thread;
    if (pthread_create(&thread, NULL, run_stream, made) != 0) {
        free_stream(made);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    pthread_detach(thread);
    fake_count(FAKE_STREAM, 1);
    *stream = made;
    return CUDA_SUCCESS;
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
    FAKE_CONTEXT_TO_DESTROY(cuStreamDestroy, context);
    FAKE_TRY(fake_stream_check(stream, context));
    pthread_mutex_lock(&threads_lock);
    closing_threads++;
    pthread_mutex_unlock(&threads_lock);
    pthread_mutex_lock(&stream->lock);
    stream->is_closing = true;
    pthread_cond_signal(&stream->pushed);
    pthread_mutex_unlock(&stream->lock);
    return fake_destroyed(FAKE_STREAM, context);
}

CUresult cuStreamSynchronize(CUstream stream)
{
    FAKE_CONTEXT(cuStreamSynchronize, context);
    FAKE_TRY(fake_stream_check(stream, context));
    pthread_mutex_lock(&stream->lock);
    const uint64_t all = stream->pushed_count;
    while (stream->ended_count < all) pthread_cond_wait(&stream->ended, &stream->lock);
    pthread_mutex_unlock(&stream->lock);
    return fake_failure(context);
}
