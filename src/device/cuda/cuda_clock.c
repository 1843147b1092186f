/* SPDX-License-Identifier: Apache-2.0 */
/* Timestamps: one event with timing for each, read when the GPU has passed it, relative to an
 * epoch: an event whose time on the host's clock is known. The driver returns differences as floats
 * of milliseconds, which are exact to a tenth of a microsecond for the first seconds only, so an
 * epoch is replaced after a second, at the next timestamp. */
#include "base/clock.h"
#include "base/error.h"
#include "base/heap.h"
#include "device/cuda/cuda_device.h"

#define EPOCH_NS ((uint64_t)1000000000)
#define EPOCH_TRIES 16
#define EPOCH_DOUBT_NS 30000u

/* ---- epochs ---- */

static void epoch_drop_locked(sp_cuda_device *device, sp_cuda_epoch *epoch)
    SP_REQUIRES(&device->clock_lock)
{
    (void)device;
    if (--epoch->references > 0) return;
    SP_CUDA(cuEventDestroy)(epoch->event);
    sp_free(epoch);
}

/* The idle clock stream passes the event at once, between two reads of the host's clock. The first
 * read is used, so that no time is in the future. If the reads are not close, since this thread was
 * preempted between them, it is repeated. */
static sp_status epoch_begin(const sp_cuda_device *device, sp_cuda_epoch *epoch)
{
    CUstream stream = device->clock_stream;
    SP_CUDA_TRY(cuStreamSynchronize, stream);
    for (int i = 0; i < EPOCH_TRIES; i++) {
        epoch->host_ns = sp_clock_now();
        SP_CUDA_TRY(cuEventRecord, epoch->event, stream);
        SP_CUDA_TRY(cuEventSynchronize, epoch->event);
        if (sp_clock_now() - epoch->host_ns < EPOCH_DOUBT_NS) break;
    }
    return SP_OK;
}

static CUresult event_create(sp_cuda_device *device, CUevent *out)
{
    sp__gpu_gate_close(&device->gpu.gate);
    const CUresult result = SP_CUDA(cuEventCreate)(out, CU_EVENT_DEFAULT);
    sp__gpu_gate_open(&device->gpu.gate);
    return result;
}

static sp_status epoch_new(sp_cuda_device *device, sp_cuda_epoch **out)
{
    sp_cuda_epoch *epoch = sp_calloc(1, sizeof *epoch);
    if (epoch == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a timestamp");
    sp_status status =
        sp__cuda_check(event_create(device, &epoch->event), "cuEventCreate", "a timestamp");
    if (status == SP_OK) status = epoch_begin(device, epoch);
    if (status != SP_OK) {
        if (epoch->event != NULL) SP_CUDA(cuEventDestroy)(epoch->event);
        sp_free(epoch);
        return status;
    }
    epoch->references = 1;
    *out = epoch;
    return SP_OK;
}

/* The newest epoch with one more reference, or a new one if that is too old. If two threads create
 * one at the same time the second one is kept. */
static sp_status epoch_hold(sp_cuda_device *device, sp_cuda_epoch **out)
{
    sp_mutex_lock(&device->clock_lock);
    sp_cuda_epoch *epoch = device->epoch;
    const bool is_fresh = epoch != NULL && sp_clock_now() - epoch->host_ns < EPOCH_NS;
    if (is_fresh) epoch->references++;
    sp_mutex_unlock(&device->clock_lock);
    if (!is_fresh) {
        SP_TRY(epoch_new(device, &epoch));
        sp_mutex_lock(&device->clock_lock);
        if (device->epoch != NULL) epoch_drop_locked(device, device->epoch);
        device->epoch = epoch;
        epoch->references++;
        sp_mutex_unlock(&device->clock_lock);
    }
    *out = epoch;
    return SP_OK;
}

static void epoch_drop(sp_cuda_device *device, sp_cuda_epoch *epoch)
{
    sp_mutex_lock(&device->clock_lock);
    epoch_drop_locked(device, epoch);
    sp_mutex_unlock(&device->clock_lock);
}

sp_status sp__cuda_clock_open(sp_cuda_device *device)
{
    sp_mutex_init(&device->clock_lock, SP_LOCK_CUDA_CLOCK);
    SP_CUDA_TRY(cuStreamCreate, &device->clock_stream, CU_STREAM_NON_BLOCKING);
    return SP_OK;
}

void sp__cuda_clock_close(sp_cuda_device *device)
{
    sp_mutex_lock(&device->clock_lock);
    if (device->epoch != NULL) epoch_drop_locked(device, device->epoch);
    device->epoch = NULL;
    sp_mutex_unlock(&device->clock_lock);
    if (device->clock_stream != NULL) SP_CUDA(cuStreamDestroy)(device->clock_stream);
    sp_mutex_deinit(&device->clock_lock);
}

/* ---- stamps ---- */

/* The thread-safety analysis accepts a lock in a member of a member only through a parameter. */
static sp_cuda_stamps *stamps_locked(sp_cuda_queue *queue) SP_REQUIRES(&queue->gpu.lock)
{
    return &queue->stamps;
}

void sp__cuda_stamps_init(sp_cuda_queue *queue)
{
    sp_mutex_lock(&queue->gpu.lock);
    stamps_locked(queue)->end = &stamps_locked(queue)->first;
    sp_mutex_unlock(&queue->gpu.lock);
}

static sp_cuda_stamp *stamp_acquire(sp_cuda_queue *queue)
{
    sp_mutex_lock(&queue->gpu.lock);
    sp_cuda_stamp *stamp = stamps_locked(queue)->free;
    if (stamp != NULL) stamps_locked(queue)->free = stamp->next;
    sp_mutex_unlock(&queue->gpu.lock);
    if (stamp != NULL) return stamp;
    stamp = sp_calloc(1, sizeof *stamp);
    if (stamp == NULL) return NULL;
    if (event_create(sp__cuda_device_of(queue), &stamp->event) == CUDA_SUCCESS) return stamp;
    sp_free(stamp);
    return NULL;
}

static void stamp_release_locked(sp_cuda_queue *queue, sp_cuda_stamp *stamp)
    SP_REQUIRES(&queue->gpu.lock)
{
    stamp->next = stamps_locked(queue)->free;
    stamps_locked(queue)->free = stamp;
}

static sp_status stamp_begin(sp_cuda_queue *queue, sp_cuda_stamp *stamp)
{
    sp_cuda_device *device = sp__cuda_device_of(queue);
    SP_TRY(epoch_hold(device, &stamp->epoch));
    const CUresult result = SP_CUDA(cuEventRecord)(stamp->event, queue->stream);
    if (result != CUDA_SUCCESS) epoch_drop(device, stamp->epoch);
    return sp__cuda_check(result, "cuEventRecord", "a timestamp");
}

sp_status sp__cuda_stamp(sp_cuda_queue *queue, sp_atomic_u64 *target)
{
    sp_cuda_stamp *stamp = stamp_acquire(queue);
    if (stamp == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a timestamp");
    const sp_status status = stamp_begin(queue, stamp);
    sp_mutex_lock(&queue->gpu.lock);
    if (status == SP_OK) {
        stamp->value = sp_load_relaxed(&queue->gpu.common.drained) + 1;
        stamp->target = target;
        stamp->next = NULL;
        *stamps_locked(queue)->end = stamp;
        stamps_locked(queue)->end = &stamp->next;
    } else {
        stamp_release_locked(queue, stamp);
    }
    sp_mutex_unlock(&queue->gpu.lock);
    return status;
}

static uint64_t stamp_time(const sp_cuda_stamp *stamp)
{
    float milliseconds = 0;
    const CUresult result =
        SP_CUDA(cuEventElapsedTime)(&milliseconds, stamp->epoch->event, stamp->event);
    if (result != CUDA_SUCCESS) return sp_clock_now(); /* the device is lost */
    return stamp->epoch->host_ns + (uint64_t)(int64_t)((double)milliseconds * 1e6);
}

void sp__cuda_stamps_resolve_locked(sp_cuda_queue *queue, uint64_t value)
{
    sp_cuda_stamps *stamps = stamps_locked(queue);
    while (stamps->first != NULL && stamps->first->value <= value) {
        sp_cuda_stamp *stamp = stamps->first;
        stamps->first = stamp->next;
        if (stamps->first == NULL) stamps->end = &stamps->first;
        /* Relaxed: the reader acquires `done`, which is raised afterwards. */
        sp_store_relaxed(stamp->target, stamp_time(stamp));
        epoch_drop(sp__cuda_device_of(queue), stamp->epoch);
        stamp_release_locked(queue, stamp);
    }
}

void sp__cuda_stamps_deinit(sp_cuda_queue *queue)
{
    sp_mutex_lock(&queue->gpu.lock);
    sp_cuda_stamp *stamp = stamps_locked(queue)->free;
    stamps_locked(queue)->free = NULL;
    sp_mutex_unlock(&queue->gpu.lock);
    while (stamp != NULL) {
        sp_cuda_stamp *next = stamp->next;
        SP_CUDA(cuEventDestroy)(stamp->event);
        sp_free(stamp);
        stamp = next;
    }
}
