/* SPDX-License-Identifier: Apache-2.0 */
/* DLPack import and export. A producer's struct gives neither the size of its memory nor its users,
 * so an import computes the byte range that the elements occupy and adopts exactly that; an export
 * is memory that code outside the library uses. */
#include <streampool/dlpack.h>

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "base/macros.h"
#include "base/size.h"
#include "runtime/checker.h"
#include "runtime/foreign_stream.h"
#include "runtime/host_access.h"
#include "runtime/runtime_state.h"
#include "runtime/storage.h"
#include "tensor/tensor.h"

_Static_assert(sizeof(sp_dlpack_view) == 48 && sizeof(sp_dlpack_managed) == 80,
               "the structs of DLPack 1.x, where pointers have 8 bytes");

/* By sp_dtype; lanes are 1. */
static const sp_dlpack_dtype dtypes[] = {
    [SP_F32] = {SP_DLPACK_FLOAT, 32, 1}, [SP_F64] = {SP_DLPACK_FLOAT, 64, 1},
    [SP_F16] = {SP_DLPACK_FLOAT, 16, 1}, [SP_BF16] = {SP_DLPACK_BFLOAT, 16, 1},
    [SP_I8] = {SP_DLPACK_INT, 8, 1},     [SP_I16] = {SP_DLPACK_INT, 16, 1},
    [SP_I32] = {SP_DLPACK_INT, 32, 1},   [SP_I64] = {SP_DLPACK_INT, 64, 1},
    [SP_U8] = {SP_DLPACK_UINT, 8, 1},    [SP_U16] = {SP_DLPACK_UINT, 16, 1},
    [SP_U32] = {SP_DLPACK_UINT, 32, 1},  [SP_U64] = {SP_DLPACK_UINT, 64, 1},
    [SP_BOOL] = {SP_DLPACK_BOOL, 8, 1},
};

/* ---- import ---- */

static sp_status find_dtype(sp_dlpack_dtype dtype, sp_dtype *out)
{
    for (uint32_t i = SP_DTYPE_NONE + 1; i < SP_COUNT_OF(dtypes); i++) {
        if (dtypes[i].code == dtype.code && dtypes[i].bits == dtype.bits && dtype.lanes == 1) {
            *out = (sp_dtype)i;
            return SP_OK;
        }
    }
    return sp__fail(SP_UNSUPPORTED,
                    "elements of DLPack's type code %u with %u bits and %u lanes are not supported",
                    dtype.code, dtype.bits, dtype.lanes);
}

static sp_status check_gpu(const sp_dev *dev, int32_t id)
{
    const bool is_its = dev->vtable->kind->dlpack_type == SP_DLPACK_CUDA && id >= 0 &&
                        (uint32_t)id == dev->limits.ordinal;
    if (is_its) return SP_OK;
    return sp__fail(SP_UNSUPPORTED,
                    "DLPack memory of GPU %" PRId32 " cannot be adopted by %s: name cuda:%" PRId32
                    " as the device, or copy it to the host first",
                    id, dev->limits.name, id);
}

static sp_status check_device(const sp_dev *dev, sp_dlpack_device device)
{
    switch (device.device_type) {
    case SP_DLPACK_CPU:
    case SP_DLPACK_CUDA_HOST:
        return SP_OK;
    case SP_DLPACK_CUDA:
    case SP_DLPACK_CUDA_MANAGED:
        return check_gpu(dev, device.device_id);
    default:
        return sp__fail(SP_UNSUPPORTED,
                        "DLPack memory of device type %" PRId32
                        " is not supported: copy it to the host first",
                        device.device_type);
    }
}

/* The memory of the elements: the layout counts from the lowest of them, at `data`. */
typedef struct element_range {
    sp_layout layout;
    void *data;
    uint64_t bytes;
} element_range;

static sp_status find_elements(const sp_dev *dev, const sp_dlpack_view *view, element_range *out)
{
    sp_dtype dtype = SP_DTYPE_NONE;
    sp_shape shape;
    SP_TRY(check_device(dev, view->device));
    SP_TRY(find_dtype(view->dtype, &dtype));
    if (view->ndim < 0 || (view->ndim > 0 && view->shape == NULL)) {
        return sp__fail(SP_MISMATCH, "a DLPack tensor of %" PRId32 " dimensions%s", view->ndim,
                        view->ndim < 0 ? "" : " without a shape");
    }
    SP_TRY(sp__shape_make(view->shape, (uint64_t)view->ndim, &shape));
    /* In the largest possible storage, with the first element in the middle. */
    const uint64_t middle = (uint64_t)1 << 62;
    SP_TRY(sp__layout_init(&out->layout, dtype, &shape, view->strides, middle, 2 * middle));
    sp_layout_reach reach;
    (void)sp__layout_reach(&out->layout, &reach);
    out->layout.offset = reach.below;
    out->bytes = reach.below + reach.above;
    if (out->bytes == 0) {
        out->data = NULL;
        return SP_OK;
    }
    uint64_t first, end;
    if (view->data == NULL || !sp_size_add((uintptr_t)view->data, view->byte_offset, &first) ||
        first < reach.below || !sp_size_add(first, reach.above, &end)) {
        return sp__fail(SP_INVALID,
                        "a DLPack tensor at %p + %" PRIu64 " has no memory for its elements",
                        view->data, view->byte_offset);
    }
    if (first % sp_dtype_bytes(dtype) != 0) {
        return sp__fail(SP_INVALID, "a DLPack tensor at %p + %" PRIu64 " is not aligned for %s",
                        view->data, view->byte_offset, sp_dtype_name(dtype));
    }
    out->data = (char *)view->data + view->byte_offset - reach.below;
    return SP_OK;
}

static void call_deleter(void *ctx, void *data)
{
    sp_dlpack_managed *managed = ctx;
    (void)data;
    managed->deleter(managed);
}

static sp_status find_adopter(const sp_dlpack_managed *managed,
                              const sp_dlpack_import_options *options, sp_rt_device **device,
                              element_range *place)
{
    SP_TRY(sp__rt_device_find_working(options->device, device));
    if (managed == NULL) return sp__fail(SP_INVALID, "sp_tensor_from_dlpack: managed is NULL");
    if (managed->version.major != SP_DLPACK_MAJOR) {
        return sp__fail(SP_UNSUPPORTED,
                        "a tensor of DLPack %" PRIu32 ".%" PRIu32 "; this library reads %d.x",
                        managed->version.major, managed->version.minor, SP_DLPACK_MAJOR);
    }
    return find_elements((*device)->dev, &managed->dl_tensor, place);
}

sp_status sp_tensor_from_dlpack(sp_dlpack_managed *managed, const sp_dlpack_import_options *options,
                                sp_tensor *out)
{
    static const sp_dlpack_import_options defaults = {.device = {0}};
    if (out == NULL) return sp__fail(SP_INVALID, "sp_tensor_from_dlpack: out is NULL");
    *out = (sp_tensor){0};
    if (options == NULL) options = &defaults;
    sp_rt_device *device;
    element_range place;
    SP_TRY(find_adopter(managed, options, &device, &place));
    const sp_adopt_options adopt = {.ready = options->ready,
                                    .ready_after = options->ready_after,
                                    .is_frozen = (managed->flags & SP_DLPACK_READ_ONLY) != 0,
                                    .release = managed->deleter != NULL ? call_deleter : NULL,
                                    .ctx = managed};
    /* The adoption is last: nothing may fail after it. */
    sp_rt_tensor *tensor;
    sp_storage storage;
    SP_TRY(sp__tensor_acquire(&tensor));
    const sp_status status =
        sp_storage_adopt(options->device, place.data, place.bytes, &adopt, &storage);
    if (status != SP_OK) {
        sp__tensor_forget(tensor);
        return status;
    }
    *out = sp__tensor_publish(tensor, storage, sp__rt_device_handle(device), place.bytes,
                              &place.layout);
    return SP_OK;
}

/* ---- export ---- */

typedef struct exported {
    sp_dlpack_managed managed;
    sp_tensor tensor;     /* with a reference */
    sp_rt_device *device; /* of the tensor, if it has a consumer's stream; else NULL */
    void *native;         /* that stream; of the driver */
    int64_t shape[SP_MAX_RANK];
    int64_t strides[SP_MAX_RANK];
} exported;

/* Keeps the memory until the consumer's stream has done what it has now. If that fails, the device
 * is lost or closed, or the stream has failed, and does nothing more. */
static void keep_for_consumer(const exported *self)
{
    sp_rt_tensor *tensor;
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    if (sp__tensor_find(self->tensor, &tensor) == SP_OK) {
        (void)sp__foreign_use_add(self->device, tensor->storage, self->native);
        sp__tensor_drop(tensor);
    }
    sp__error_put_back(&scope);
}

static void delete_exported(sp_dlpack_managed *managed)
{
    exported *self = SP_CONTAINER_OF(managed, exported, managed);
    if (self->device != NULL && !SP_PLANTED(early_give_back)) keep_for_consumer(self);
    (void)sp_tensor_release(self->tensor);
    sp_free(self);
}

/* Pinned host memory that a GPU's storage adopted is the host's. */
static sp_dlpack_device device_of(const sp_dev *dev, const sp_memory *memory)
{
    const int32_t type = dev->vtable->kind->dlpack_type;
    const bool is_pinned = type == SP_DLPACK_CUDA && memory->host != NULL;
    return (sp_dlpack_device){is_pinned ? SP_DLPACK_CUDA_HOST : type, (int32_t)dev->limits.ordinal};
}

/* Of the storage, under its lock. */
typedef struct storage_facts {
    void *data;
    bool is_frozen;
    sp_dlpack_device device;
    sp_rt_device *owner;
} storage_facts;

/* The pointer that a consumer of this type expects: the host's pointer or the device's address. */
static sp_status find_data(const sp_memory *memory, uint64_t offset, int32_t dlpack_type,
                           void **out)
{
    if (dlpack_type == SP_DLPACK_CPU) return sp__memory_host(memory, offset, out);
    *out = (char *)memory->address + offset;
    return SP_OK;
}

static sp_status find_facts(sp_storage handle, storage_facts *out)
{
    sp_rt_storage *storage = sp__storage_peek(handle);
    if (!sp__storage_lock(storage, handle)) return SP_INVALID;
    out->is_frozen = storage->is_frozen;
    out->owner = storage->device;
    out->device = device_of(storage->device->dev, storage->memory);
    const sp_status status =
        find_data(storage->memory, storage->offset, out->device.device_type, &out->data);
    sp_mutex_unlock(&storage->lock);
    return status;
}

static sp_status wait_on_host(sp_storage storage, const storage_facts *facts)
{
    const sp_access access = facts->is_frozen ? SP_READ : SP_READ_WRITE;
    if (facts->data == NULL) return SP_OK; /* no bytes, adopted at NULL */
    sp_own_access all;
    SP_TRY(sp__host_begin_bare(storage, access, SP_CALL_SITE, &all));
    return sp__host_end_own(&all);
}

/* A write of 0 bytes: the stream waits for all uses so far, and later ones for the stream. */
static sp_status wait_on_stream(sp_storage storage, bool is_frozen, sp_stream consumer)
{
    const uint8_t nothing = 0;
    if (is_frozen) return sp_storage_record_stream(storage, consumer); /* only reads: no waits */
    return sp_storage_fill_async(consumer, (sp_storage_range){.storage = storage}, &nothing, 1);
}

static void exported_fill(const sp_rt_tensor *tensor, const storage_facts *facts, exported *out)
{
    const sp_layout *layout = &tensor->layout;
    const uint32_t rank = layout->shape.rank;
    memcpy(out->shape, layout->shape.dims, rank * sizeof out->shape[0]);
    memcpy(out->strides, layout->strides, rank * sizeof out->strides[0]);
    out->managed = (sp_dlpack_managed){
        .version = {SP_DLPACK_MAJOR, SP_DLPACK_MINOR},
        .deleter = delete_exported,
        .flags = facts->is_frozen ? SP_DLPACK_READ_ONLY : 0,
        .dl_tensor = {.data = facts->data != NULL ? (char *)facts->data + layout->offset : NULL,
                      .device = facts->device,
                      .ndim = (int32_t)rank,
                      .dtype = dtypes[layout->dtype],
                      .shape = out->shape,
                      .strides = out->strides}};
}

/* The consumer's stream follows the uses so far by way of the thread's own. */
static sp_status wait_on_native(sp_storage storage, const storage_facts *facts, void *native)
{
    sp_stream_ref ref;
    sp_stream stream;
    if (facts->owner->dev->vtable->native_follow == NULL) {
        return sp__fail(SP_UNSUPPORTED, "a tensor on %s has no order with CUDA streams",
                        facts->owner->dev->limits.name);
    }
    SP_TRY(sp_stream_current(sp__rt_device_handle(facts->owner), &stream));
    SP_TRY(sp__rt_stream_find(stream, &ref));
    SP_TRY(wait_on_stream(storage, facts->is_frozen, stream));
    return sp__foreign_follow(ref.queue, native);
}

/* What an export is for. */
typedef struct consumer {
    sp_stream stream; /* zero, and no native one: the host */
    void *native;
    bool is_native;
} consumer;

static sp_status wait_on_consumer(sp_storage storage, const storage_facts *facts,
                                  const consumer *to)
{
    if (to->is_native) return wait_on_native(storage, facts, to->native);
    if (to->stream.bits != 0) return wait_on_stream(storage, facts->is_frozen, to->stream);
    return wait_on_host(storage, facts);
}

/* The failure, known by now, of a command that wrote the storage: a consumer's stream does not
 * learn of it. */
static sp_status report_fault(sp_storage handle)
{
    sp_rt_storage *storage = sp__storage_peek(handle);
    if (!sp__storage_lock(storage, handle)) return SP_INVALID;
    const sp_fault fault = sp__poison_fault(&storage->poison, storage->epoch);
    sp_mutex_unlock(&storage->lock);
    return sp__fault_report(fault);
}

/* The caller holds the tensor. */
static sp_status tensor_export_held(sp_tensor handle, const sp_rt_tensor *tensor,
                                    const consumer *to, exported *out)
{
    storage_facts facts;
    SP_TRY(find_facts(tensor->storage, &facts));
    SP_TRY(wait_on_consumer(tensor->storage, &facts, to));
    SP_TRY(report_fault(tensor->storage));
    SP_TRY(sp_storage_record_all_streams(tensor->storage));
    exported_fill(tensor, &facts, out);
    out->tensor = handle;
    out->device = to->is_native ? facts.owner : NULL;
    out->native = to->native;
    return sp_tensor_retain(handle);
}

static sp_status tensor_export(sp_tensor handle, const consumer *to, sp_dlpack_managed **out)
{
    *out = NULL;
    sp_rt_tensor *tensor;
    SP_TRY(sp__tensor_find(handle, &tensor));
    exported *made = sp_malloc(sizeof *made);
    sp_status status = made != NULL ? tensor_export_held(handle, tensor, to, made)
                                    : sp__fail(SP_OUT_OF_MEMORY, "no memory for a DLPack tensor");
    sp__tensor_drop(tensor);
    if (status == SP_OK) *out = &made->managed;
    else sp_free(made);
    return status;
}

sp_status sp_tensor_to_dlpack(sp_tensor handle, sp_stream stream, sp_dlpack_managed **out)
{
    if (out == NULL) return sp__fail(SP_INVALID, "sp_tensor_to_dlpack: out is NULL");
    return tensor_export(handle, &(consumer){.stream = stream}, out);
}

sp_status sp_tensor_to_dlpack_cuda(sp_tensor handle, void *cuda_stream, sp_dlpack_managed **out)
{
    if (out == NULL) return sp__fail(SP_INVALID, "sp_tensor_to_dlpack_cuda: out is NULL");
    return tensor_export(handle, &(consumer){.native = cuda_stream, .is_native = true}, out);
}
