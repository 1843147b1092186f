/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of the cuda device: a GPU (device/gpu) whose queues are CUstreams and whose events are
 * CUevents of the driver API. */
#ifndef SP_DEVICE_CUDA_DEVICE_H
#define SP_DEVICE_CUDA_DEVICE_H

#include "device/cuda/cuda_api.h"
#include "device/cuda/cuda_program.h"
#include "device/cuda/cuda_words.h"
#include "device/gpu/gpu.h"

typedef struct sp_cuda_device sp_cuda_device;

/* A correspondence of both clocks: `event` was at `host_ns`. */
typedef struct sp_cuda_epoch {
    CUevent event;
    uint64_t host_ns;
    uint32_t references; /* of stamps relative to it, and of the device to its newest epoch; guarded
                            by the device's clock_lock */
} sp_cuda_epoch;

/* A timestamp that has been issued. */
typedef struct sp_cuda_stamp {
    uint64_t value; /* of its submission */
    CUevent event;
    sp_cuda_epoch *epoch;
    sp_atomic_u64 *target;
    struct sp_cuda_stamp *next;
} sp_cuda_stamp;

/* Of a queue; guarded by its lock. */
typedef struct sp_cuda_stamps {
    sp_cuda_stamp *first; /* oldest first */
    sp_cuda_stamp **end;
    sp_cuda_stamp *free;
} sp_cuda_stamps;

typedef struct sp_cuda_queue {
    sp_gpu_queue gpu;
    CUstream stream; /* constant */
    sp_cuda_stamps stamps;
} sp_cuda_queue;

struct sp_cuda_device {
    sp_gpu_device gpu;
    CUdevice ordinal;
    CUcontext context;
    /* Of other GPUs by ordinal: bit 2 * n, the driver was asked; bit 2 * n + 1, copies reach it.
     * Set by the asking threads with release, after the driver; acquire by the others. */
    sp_atomic_u64 peers;
    sp_cuda_programs programs;
    sp_cuda_words words;
    /* An event that no thread uses, or NULL: acquire where it is taken, release where it is put. */
    SP_ATOMIC(CUevent) spare_event;
    CUstream clock_stream;
    sp_mutex clock_lock;
    sp_cuda_epoch *epoch SP_GUARDED_BY(clock_lock); /* the newest */
};

static inline sp_cuda_device *sp__cuda_device(sp_dev *dev)
{
    return SP_CONTAINER_OF(sp__gpu_device(dev), sp_cuda_device, gpu);
}

static inline sp_cuda_queue *sp__cuda_queue(sp_command_queue *queue)
{
    return SP_CONTAINER_OF(sp__gpu_queue(queue), sp_cuda_queue, gpu);
}

static inline sp_cuda_device *sp__cuda_device_of(const sp_cuda_queue *queue)
{
    return sp__cuda_device(queue->gpu.common.base.device);
}

/* Makes the device's context current on the calling thread; leave restores the previous one. */
void sp__cuda_enter(const sp_cuda_device *device);
void sp__cuda_leave(void);

/* Checks a call on a queue of the device; a result that means loss of the device loses it. */
sp_status sp__cuda_check_on(sp_cuda_device *device, CUresult result, const char *call,
                            const char *what);

/* cuda_interop.c: of sp_device_vtable */
void *sp__cuda_queue_native(sp_queue *queue);
sp_status sp__cuda_queue_follow(sp_queue *queue, void *native);
sp_status sp__cuda_native_follow(sp_queue *queue, uint64_t value, void *native);
sp_status sp__cuda_native_wait(sp_dev *dev, void *native);
/* Between enter and leave. */
void sp__cuda_interop_close(sp_cuda_device *device);

/* cuda_memory.c: around a call of the driver that gets or returns memory, with the context current
 */
void sp__cuda_gate_close(sp_cuda_device *device);
void sp__cuda_gate_open(sp_cuda_device *device);
/* The same file: of sp_device_vtable */
sp_status sp__cuda_memory_create(sp_dev *dev, uint64_t bytes, sp_memory *out);
void sp__cuda_memory_destroy(sp_memory *memory);
sp_status sp__cuda_memory_adopt(sp_dev *dev, void *data, uint64_t bytes, sp_memory *out);
sp_status sp__cuda_staging_create(sp_dev *dev, uint64_t bytes, sp_memory *out);
void sp__cuda_staging_destroy(sp_memory *memory);
sp_status sp__cuda_host_register(sp_dev *dev, void *data, uint64_t bytes);
void sp__cuda_host_unregister(sp_dev *dev, void *data);

/* cuda_range.c: of sp_device_vtable; and limits.range_unit */
sp_status sp__cuda_range_create(sp_dev *dev, uint64_t bytes, sp_memory *out);
void sp__cuda_range_destroy(sp_memory *range);
sp_status sp__cuda_range_map(const sp_memory *range, uint64_t offset, uint64_t bytes);
void sp__cuda_range_unmap(const sp_memory *range, uint64_t offset, uint64_t bytes);
sp_status sp__cuda_range_unit(const sp_cuda_device *device, uint64_t *out);

/* cuda_peer.c */
bool sp__cuda_reaches(sp_dev *dev, sp_dev *other); /* of sp_device_vtable */
static inline bool sp__cuda_is_peer_copy(const sp_binding *to, const sp_binding *from)
{
    return to->memory->device != from->memory->device && to->memory->host == NULL &&
           from->memory->host == NULL;
}
sp_status sp__cuda_copy_peer(sp_cuda_queue *queue, const sp_binding *to, const sp_binding *from);

/* cuda_clock.c: timestamps */
sp_status sp__cuda_clock_open(sp_cuda_device *device);
void sp__cuda_clock_close(sp_cuda_device *device);
/* Issues a timestamp of the submission at the cursor. */
sp_status sp__cuda_stamp(sp_cuda_queue *queue, sp_atomic_u64 *target);
void sp__cuda_stamps_init(sp_cuda_queue *queue);
/* Writes the times of all stamps up to `value`, which the GPU has completed. */
void sp__cuda_stamps_resolve_locked(sp_cuda_queue *queue, uint64_t value)
    SP_REQUIRES(&queue->gpu.lock);
void sp__cuda_stamps_deinit(sp_cuda_queue *queue);

/* cuda_issue.c */
sp_status sp__cuda_issue(sp_command_queue *queue, const sp_record *record,
                         const sp_binding *bindings);

/* cuda_graph.c: lists without slots as graphs */
sp_status sp__cuda_list_create(sp_dev *device, const sp_command *commands, uint32_t command_count,
                               uint32_t slot_count, sp_list **out);
/* Launches the graph of a list that has one, and nothing else: for benchmarks. */
CUresult sp__cuda_list_launch(const sp_list *list, CUstream stream);
sp_status sp__cuda_issue_list(sp_command_queue *queue, const sp_record *record);

/* cuda_queue.c */
extern const sp_queue_engine sp__cuda_engine;
extern const sp_gpu_driver sp__cuda_driver;

#endif
