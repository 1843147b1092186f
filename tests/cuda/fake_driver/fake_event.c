/* SPDX-License-Identifier: Apache-2.0 */
/* Events: the newest recorded mark. primitive: see fake.h. */
#include "fake.h"

#include <stdlib.h>

struct CUevent_st {
    CUcontext context;
    bool has_time;
    pthread_mutex_t lock;
    fake_mark *mark; /* of the last record, or NULL */
};

typedef struct mark_command {
    fake_command base;
    fake_mark *mark;
} mark_command;

fake_mark *fake_mark_create(void)
{
    fake_mark *mark = calloc(1, sizeof *mark);
    if (mark == NULL) return NULL;
    atomic_init(&mark->references, 1);
    pthread_mutex_init(&mark->lock, NULL);
    pthread_cond_init(&mark->reached, NULL);
    return mark;
}

fake_mark *fake_mark_retain(fake_mark *mark)
{
    if (mark != NULL) atomic_fetch_add(&mark->references, 1);
    return mark;
}

void fake_mark_release(fake_mark *mark)
{
    if (mark == NULL || atomic_fetch_sub(&mark->references, 1) != 1) return;
    pthread_cond_destroy(&mark->reached);
    pthread_mutex_destroy(&mark->lock);
    free(mark);
}

void fake_mark_reach(fake_mark *mark)
{
    pthread_mutex_lock(&mark->lock);
    mark->is_done = true;
    mark->time_ns = fake_now();
    pthread_cond_broadcast(&mark->reached);
    pthread_mutex_unlock(&mark->lock);
}

void fake_mark_wait(fake_mark *mark)
{
    if (mark == NULL) return;
    pthread_mutex_lock(&mark->lock);
    while (!mark->is_done) pthread_cond_wait(&mark->reached, &mark->lock);
    pthread_mutex_unlock(&mark->lock);
}

bool fake_mark_is_done(fake_mark *mark, uint64_t *time_ns)
{
    pthread_mutex_lock(&mark->lock);
    const bool is_done = mark->is_done;
    *time_ns = mark->time_ns;
    pthread_mutex_unlock(&mark->lock);
    return is_done;
}

static fake_mark *mark_of(CUevent event)
{
    pthread_mutex_lock(&event->lock);
    fake_mark *mark = fake_mark_retain(event->mark);
    pthread_mutex_unlock(&event->lock);
    return mark;
}

static void run_nothing(fake_command *command)
{
    (void)command;
}

static void run_wait(fake_command *command)
{
    fake_mark_wait(((mark_command *)command)->mark);
}

static void end_wait(fake_command *command)
{
    fake_mark_release(((mark_command *)command)->mark);
    free(command);
}

static void end_record(fake_command *command)
{
    fake_mark_reach(((mark_command *)command)->mark);
    end_wait(command);
}

CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
    FAKE_CONTEXT(cuEventCreate, context);
    if ((flags & ~(unsigned int)CU_EVENT_DISABLE_TIMING) != 0) return CUDA_ERROR_INVALID_VALUE;
    CUevent made = calloc(1, sizeof *made);
    if (made == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    made->context = context;
    made->has_time = (flags & CU_EVENT_DISABLE_TIMING) == 0;
    pthread_mutex_init(&made->lock, NULL);
    fake_count(FAKE_EVENT, 1);
    *event = made;
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent event)
{
    FAKE_CONTEXT_TO_DESTROY(cuEventDestroy, context);
    if (event == NULL) return FAKE_ERROR_INVALID_HANDLE;
    fake_mark_release(event->mark);
    pthread_mutex_destroy(&event->lock);
    free(event);
    return fake_destroyed(FAKE_EVENT, context);
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    FAKE_CONTEXT(cuEventRecord, context);
    FAKE_TRY(fake_stream_check(stream, context));
    if (event == NULL || event->context != context) return FAKE_ERROR_INVALID_HANDLE;
    fake_mark *mark = fake_mark_create();
    mark_command *command = calloc(1, sizeof *command);
    if (mark == NULL || command == NULL) {
        fake_mark_release(mark);
        free(command);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *command = (mark_command){{NULL, run_nothing, end_record}, fake_mark_retain(mark)};
    /* Pushed under the lock, so that of two concurrent records the later one in the stream is
     * kept. */
    pthread_mutex_lock(&event->lock);
    fake_mark_release(event->mark);
    event->mark = mark;
    const CUresult result = fake_stream_push(stream, &command->base);
    pthread_mutex_unlock(&event->lock);
    return result;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
    FAKE_CONTEXT(cuStreamWaitEvent, context);
    FAKE_TRY(fake_stream_check(stream, context));
    if (event == NULL) return FAKE_ERROR_INVALID_HANDLE;
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    fake_mark *mark = mark_of(event);
    mark_command *command = calloc(1, sizeof *command);
    if (command == NULL) {
        fake_mark_release(mark);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *command = (mark_command){{NULL, run_wait, end_wait}, mark};
    return fake_stream_push(stream, &command->base);
}

/* Uses the event's own context: the driver does not require a current one. */
CUresult cuEventQuery(CUevent event)
{
    FAKE_ENTER(cuEventQuery);
    if (event == NULL) return FAKE_ERROR_INVALID_HANDLE;
    fake_mark *mark = mark_of(event);
    uint64_t time_ns = 0;
    const bool is_done = mark == NULL || fake_mark_is_done(mark, &time_ns);
    fake_mark_release(mark);
    FAKE_TRY(fake_failure(event->context)); /* read last: includes earlier failures */
    return is_done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuEventSynchronize(CUevent event)
{
    FAKE_CONTEXT(cuEventSynchronize, context);
    if (event == NULL) return FAKE_ERROR_INVALID_HANDLE;
    fake_mark *mark = mark_of(event);
    fake_mark_wait(mark);
    fake_mark_release(mark);
    FAKE_TRY(fake_failure(context));
    return fake_failure(event->context);
}

/* CUDA_SUCCESS with the time, or the reason why it is missing. */
static CUresult time_of(CUevent event, uint64_t *time_ns)
{
    if (event == NULL || !event->has_time) return FAKE_ERROR_INVALID_HANDLE;
    fake_mark *mark = mark_of(event);
    if (mark == NULL) return FAKE_ERROR_INVALID_HANDLE;
    const bool is_done = fake_mark_is_done(mark, time_ns);
    fake_mark_release(mark);
    FAKE_TRY(fake_failure(event->context));
    return is_done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent first, CUevent second)
{
    FAKE_ENTER(cuEventElapsedTime);
    uint64_t begin = 0;
    uint64_t end = 0;
    FAKE_TRY(time_of(first, &begin));
    FAKE_TRY(time_of(second, &end));
    *milliseconds = (float)((double)(int64_t)(end - begin) / 1e6);
    return CUDA_SUCCESS;
}
