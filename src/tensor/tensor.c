/* SPDX-License-Identifier: Apache-2.0 */
/* Creation, destruction and information of tensors. */
#include "tensor/tensor.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "runtime/runtime_state.h"
#include "runtime/storage.h"

static void tensor_destroy(sp_object *object);

static sp_handle_table tensors = {/* process-wide: the table of all tensor handles */
                                  .kind = SP_KIND_TENSOR,
                                  .object_bytes = sizeof(sp_rt_tensor),
                                  .destroy = tensor_destroy,
                                  .lock = SP_MUTEX_INIT(SP_LOCK_HANDLE_TABLE)};

static sp_rt_tensor *tensor_of(sp_object *object)
{
    return SP_CONTAINER_OF(object, sp_rt_tensor, object);
}

static void tensor_destroy(sp_object *object)
{
    sp_rt_tensor *tensor = tensor_of(object);
    if (sp__runtime_is_forked()) return;
    /* Not an error if a caller has released this reference too: then the storage is destroyed
     * already. */
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    (void)sp_storage_release(tensor->storage);
    sp__error_put_back(&scope);
    sp__handle_recycle(&tensors, object);
}

sp_status sp__tensor_find(sp_tensor handle, sp_rt_tensor **out)
{
    SP_TRY(sp__runtime_enter());
    sp_object *object = sp__handle_hold(&tensors, handle.bits, "tensor");
    if (object == NULL) return SP_INVALID; /* or too many holds: the message says which */
    *out = tensor_of(object);
    return SP_OK;
}

void sp__tensor_drop(sp_rt_tensor *tensor)
{
    sp__object_drop(&tensors, &tensor->object);
}

sp_status sp__tensor_acquire(sp_rt_tensor **out)
{
    sp_object *object;
    SP_TRY(sp__handle_acquire(&tensors, &object));
    *out = tensor_of(object);
    return SP_OK;
}

void sp__tensor_forget(sp_rt_tensor *tensor)
{
    sp__handle_recycle(&tensors, &tensor->object);
}

sp_tensor sp__tensor_publish(sp_rt_tensor *tensor, sp_storage storage, sp_device device,
                             uint64_t storage_bytes, const sp_layout *layout)
{
    tensor->storage = storage;
    tensor->device = device;
    tensor->storage_bytes = storage_bytes;
    tensor->layout = *layout;
    return (sp_tensor){sp__handle_publish(&tensors, &tensor->object)};
}

void sp__tensors_deinit(void)
{
    sp__handle_table_reset(&tensors);
}

/* ---- creation ---- */

/* Over a storage that gets one more reference. */
static sp_status tensor_publish_over(sp_storage storage, sp_device device, uint64_t storage_bytes,
                                     const sp_layout *layout, sp_tensor *out)
{
    sp_rt_tensor *tensor;
    SP_TRY(sp__tensor_acquire(&tensor));
    const sp_status status = sp_storage_retain(storage);
    if (status != SP_OK) {
        sp__tensor_forget(tensor);
        return status;
    }
    *out = sp__tensor_publish(tensor, storage, device, storage_bytes, layout);
    return SP_OK;
}

sp_status sp__tensor_share(const sp_rt_tensor *tensor, const sp_layout *layout, sp_tensor *out)
{
    return tensor_publish_over(tensor->storage, tensor->device, tensor->storage_bytes, layout, out);
}

static sp_status find_shape(uint32_t rank, const int64_t *shape, sp_shape *out)
{
    if (shape == NULL && rank > 0) {
        return sp__fail(SP_INVALID, "shape is NULL for a tensor of rank %" PRIu32, rank);
    }
    return sp__shape_make(shape, rank, out);
}

static sp_status fail_no_out(void)
{
    return sp__fail(SP_INVALID, "out is NULL: pass a pointer for the handle of the new tensor");
}

static sp_status tensor_create(sp_device device, sp_dtype dtype, uint32_t rank,
                               const int64_t *shape, bool is_for_host, sp_tensor *out)
{
    sp_shape sizes;
    sp_layout layout;
    sp_rt_device *on;
    SP_TRY(sp__rt_device_find_working(device, &on));
    SP_TRY(find_shape(rank, shape, &sizes));
    SP_TRY(sp__layout_init_contiguous(&layout, dtype, &sizes));
    sp_rt_tensor *tensor;
    SP_TRY(sp__tensor_acquire(&tensor));
    const uint64_t bytes = sp__layout_bytes(&layout);
    sp_storage storage;
    const sp_status status = is_for_host ? sp__storage_create_for_host(on, bytes, &storage)
                                         : sp_storage_create(device, bytes, NULL, &storage);
    if (status != SP_OK) {
        sp__tensor_forget(tensor);
        return status;
    }
    *out = sp__tensor_publish(tensor, storage, sp__rt_device_handle(on), bytes, &layout);
    return SP_OK;
}

sp_status sp_tensor_create(sp_device device, sp_dtype dtype, uint32_t rank, const int64_t *shape,
                           sp_tensor *out)
{
    if (out == NULL) return fail_no_out();
    *out = (sp_tensor){0};
    return tensor_create(device, dtype, rank, shape, false, out);
}

sp_status sp__tensor_create_for_host(sp_device device, sp_dtype dtype, uint32_t rank,
                                     const int64_t *shape, sp_tensor *out)
{
    return tensor_create(device, dtype, rank, shape, true, out);
}

sp_status sp_tensor_from_host(sp_device device, sp_dtype dtype, uint32_t rank, const int64_t *shape,
                              const void *data, uint64_t bytes, sp_tensor *out)
{
    if (out == NULL) return fail_no_out();
    *out = (sp_tensor){0};
    sp_tensor tensor;
    SP_TRY(tensor_create(device, dtype, rank, shape, true, &tensor));
    const sp_status status = sp_tensor_write(tensor, data, bytes);
    if (status == SP_OK) *out = tensor;
    else (void)sp_tensor_release(tensor);
    return status;
}

typedef struct storage_facts {
    sp_device device;
    uint64_t bytes;
    uintptr_t address; /* the device's address */
} storage_facts;

static sp_status find_facts(sp_storage handle, storage_facts *out)
{
    sp_rt_storage *storage = sp__storage_peek(handle);
    if (!sp__storage_lock(storage, handle)) return SP_INVALID;
    *out = (storage_facts){.device = sp__rt_device_handle(storage->device),
                           .bytes = storage->bytes,
                           .address = (uintptr_t)storage->memory->address + storage->offset};
    sp_mutex_unlock(&storage->lock);
    return SP_OK;
}

sp_status sp_tensor_from_storage(sp_storage storage, uint64_t offset, sp_dtype dtype, uint32_t rank,
                                 const int64_t *shape, const int64_t *strides, sp_tensor *out)
{
    if (out == NULL) return fail_no_out();
    *out = (sp_tensor){0};
    SP_TRY(sp__runtime_enter());
    sp_shape sizes;
    sp_layout layout;
    storage_facts facts;
    SP_TRY(find_shape(rank, shape, &sizes));
    SP_TRY(find_facts(storage, &facts));
    SP_TRY(sp__layout_init(&layout, dtype, &sizes, strides, offset, facts.bytes));
    if ((facts.address + offset) % sp_dtype_bytes(dtype) != 0) {
        return sp__fail(SP_INVALID, "the storage's memory is not aligned for elements of type %s",
                        sp_dtype_name(dtype));
    }
    return tensor_publish_over(storage, facts.device, facts.bytes, &layout, out);
}

sp_status sp_tensor_retain(sp_tensor tensor)
{
    SP_TRY(sp__runtime_enter());
    return sp__handle_retain(&tensors, tensor.bits, "tensor");
}

sp_status sp_tensor_release(sp_tensor tensor)
{
    if (sp__runtime_is_forked()) return SP_OK;
    return sp__handle_release(&tensors, tensor.bits, "tensor");
}

/* ---- information ---- */

sp_status sp_tensor_get_info(sp_tensor handle, sp_tensor_info *out)
{
    if (out == NULL) return sp__fail(SP_INVALID, "sp_tensor_get_info: out is NULL");
    sp_rt_tensor *tensor;
    SP_TRY(sp__tensor_find(handle, &tensor));
    const sp_layout *layout = &tensor->layout;
    *out = (sp_tensor_info){.storage = tensor->storage,
                            .device = tensor->device,
                            .dtype = layout->dtype,
                            .rank = layout->shape.rank,
                            .offset = layout->offset,
                            .bytes = sp__layout_bytes(layout),
                            .is_contiguous = sp__layout_is_contiguous(layout)};
    memcpy(out->shape, layout->shape.dims, layout->shape.rank * sizeof out->shape[0]);
    memcpy(out->strides, layout->strides, layout->shape.rank * sizeof out->strides[0]);
    sp__tensor_drop(tensor);
    return SP_OK;
}

sp_storage_range sp__tensor_range(const sp_rt_tensor *tensor)
{
    sp_layout_reach reach;
    (void)sp__layout_reach(&tensor->layout, &reach);
    return (sp_storage_range){.storage = tensor->storage,
                              .offset = tensor->layout.offset - reach.below,
                              .bytes = reach.below + reach.above};
}

sp_status sp__tensor_check_writable(const sp_rt_tensor *tensor)
{
    if (!sp__layout_overlaps_itself(&tensor->layout)) return SP_OK;
    return sp__fail(SP_INVALID,
                    "elements of this tensor of shape %s share memory, or may share it, so it "
                    "cannot be written",
                    sp__shape_print(&tensor->layout.shape).text);
}
