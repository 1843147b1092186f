/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between tensors: a plain copy if both are contiguous, else the kernel that copies elements
 * between any two layouts. Between devices only plain copies: what is not contiguous is packed, or
 * unpacked, on its own device. */
#include "ops/tensor_copy.h"

#include <string.h>

#include "base/error.h"
#include "ops/cpu/arch/kernels.h"
#include "ops/device_kernels.h"
#include "ops/lowering.h"
#include "ops/ops.h"
#include "runtime/checker.h"
#include "runtime/current_stream.h"
#include "runtime/device_copy.h"
#include "runtime/submit.h"
#include "tensor/strided_copy.h"

static sp_use tensor_use(const sp_rt_tensor *tensor, sp_access access)
{
    const sp_storage_range range = sp__tensor_range(tensor);
    const bool has_gaps = range.bytes != sp__layout_bytes(&tensor->layout);
    return (sp_use){.storage = range.storage,
                    .offset = range.offset,
                    .bytes = range.bytes,
                    .access = access,
                    .is_overwritten = access == SP_WRITE && !has_gaps};
}

static sp_status submit_plain(const sp_stream_ref *stream, const sp_rt_tensor *to,
                              const sp_rt_tensor *from, const void *call_site)
{
    const sp_use uses[2] = {tensor_use(to, SP_WRITE), tensor_use(from, SP_READ)};
    sp_room room = {.stream = stream};
    sp_status status;
    do {
        status = sp__copy_submit(stream, uses, call_site);
    } while (sp__submit_again(&room, &status));
    return status;
}

static sp_status copy_by_packing(const sp_rt_tensor *to, const sp_rt_tensor *from,
                                 const void *call_site);

static void fill_constants(const sp_strided_copy *copy, sp_copy_constants *out)
{
    *out = (sp_copy_constants){.rank = copy->rank,
                               .element_bytes = copy->element_bytes,
                               .count = copy->count,
                               .x_first = copy->from_first,
                               .y_first = copy->to_first};
    memcpy(out->dims, copy->dims, sizeof out->dims);
    memcpy(out->x, copy->from, sizeof out->x);
    memcpy(out->y, copy->to, sizeof out->y);
}

static sp_status submit_strided(const sp_stream_ref *stream, const sp_rt_tensor *to,
                                const sp_rt_tensor *from, const sp_strided_copy *copy,
                                const void *call_site)
{
    const sp_kernel *kernels = sp__device_kernels(stream->queue->device);
    if (kernels == NULL) kernels = sp__cpu_kernels(sp__cpu_isa_selected());
    _Alignas(16) sp_copy_constants constants;
    fill_constants(copy, &constants);
    const sp_use uses[2] = {tensor_use(from, SP_READ), tensor_use(to, SP_WRITE)};
    sp_command command = {.type = SP_COMMAND_DISPATCH,
                          .kernel = &kernels[SP_KERNEL_ID_copy_strided],
                          .constants = &constants,
                          .constant_bytes = sizeof constants};
    sp_point point;
    sp_room room = {.stream = stream};
    sp_status status;
    do {
        status = sp__submit_command(stream, &command, uses, 2, call_site, &point);
    } while (sp__submit_again(&room, &status));
    return status;
}

static bool is_between_devices(const sp_rt_tensor *to, const sp_rt_tensor *from)
{
    return to->device.bits != from->device.bits;
}

/* Of two devices, the one that copies between them. */
static sp_status copying_stream(const sp_rt_tensor *to, const sp_rt_tensor *from,
                                sp_stream_ref *out)
{
    sp_rt_device *device, *source;
    SP_TRY(sp__rt_device_find_working(to->device, &device));
    if (SP_UNLIKELY(is_between_devices(to, from))) {
        SP_TRY(sp__rt_device_find_working(from->device, &source));
        device = sp__copy_device(device, source);
    }
    return sp__current_stream(device, out);
}

static sp_status submit_copy(const sp_rt_tensor *to, const sp_rt_tensor *from,
                             const void *call_site)
{
    sp_stream_ref stream;
    sp_strided_copy copy;
    sp__strided_copy_plan(&to->layout, &from->layout, &copy);
    const bool is_plain = sp__strided_copy_is_plain(&copy);
    if (!is_plain && is_between_devices(to, from)) return copy_by_packing(to, from, call_site);
    SP_TRY(copying_stream(to, from, &stream));
    return is_plain ? submit_plain(&stream, to, from, call_site)
                    : submit_strided(&stream, to, from, &copy, call_site);
}

/* ---- copy ---- */

static sp_status check_copy(const sp_rt_tensor *to, const sp_rt_tensor *from)
{
    if (to->layout.dtype != from->layout.dtype ||
        !sp__shape_equal(&to->layout.shape, &from->layout.shape)) {
        return sp__fail(SP_MISMATCH, "cannot copy %s of shape %s to %s of shape %s",
                        sp_dtype_name(from->layout.dtype),
                        sp__shape_print(&from->layout.shape).text, sp_dtype_name(to->layout.dtype),
                        sp__shape_print(&to->layout.shape).text);
    }
    return sp__tensor_check_writable(to);
}

static bool is_same_memory(const sp_rt_tensor *a, const sp_rt_tensor *b)
{
    return a->storage.bits == b->storage.bits && a->layout.offset == b->layout.offset &&
           memcmp(a->layout.strides, b->layout.strides,
                  a->layout.shape.rank * sizeof a->layout.strides[0]) == 0;
}

static bool may_overlap(const sp_rt_tensor *a, const sp_rt_tensor *b)
{
    const sp_storage_range x = sp__tensor_range(a), y = sp__tensor_range(b);
    return x.storage.bits == y.storage.bits && x.offset < y.offset + y.bytes &&
           y.offset < x.offset + x.bytes;
}

/* A contiguous copy on any device. */
static sp_status copy_on(sp_device device, const sp_rt_tensor *tensor, const void *call_site,
                         sp_tensor *out)
{
    const sp_shape *shape = &tensor->layout.shape;
    sp_tensor copy;
    sp_rt_tensor *object;
    SP_TRY(sp_tensor_create(device, tensor->layout.dtype, shape->rank, shape->dims, &copy));
    sp_status status = sp__tensor_find(copy, &object);
    if (status == SP_OK) {
        status = submit_copy(object, tensor, call_site);
        sp__tensor_drop(object);
    }
    if (status == SP_OK) *out = copy;
    else (void)sp_tensor_release(copy);
    return status;
}

sp_status sp__tensor_copy_of(const sp_rt_tensor *tensor, const void *call_site, sp_tensor *out)
{
    return copy_on(tensor->device, tensor, call_site, out);
}

/* Copies through a temporary, contiguous tensor of the device. */
static sp_status copy_through(sp_device device, const sp_rt_tensor *to, const sp_rt_tensor *from,
                              const void *call_site)
{
    sp_tensor copy;
    sp_rt_tensor *object;
    SP_TRY(copy_on(device, from, call_site, &copy));
    sp_status status = sp__tensor_find(copy, &object);
    if (status == SP_OK) {
        status = submit_copy(to, object, call_site);
        sp__tensor_drop(object);
    }
    (void)sp_tensor_release(copy); /* its memory is kept until the commands are done */
    return status;
}

static sp_status copy_by_packing(const sp_rt_tensor *to, const sp_rt_tensor *from,
                                 const void *call_site)
{
    const bool is_packed = sp__layout_is_contiguous(&from->layout);
    return copy_through(is_packed ? to->device : from->device, to, from, call_site);
}

/* Overlapping ones through a temporary tensor, since tiles run in any order. */
sp_status sp__tensor_copy(const sp_rt_tensor *to, const sp_rt_tensor *from, const void *call_site)
{
    SP_TRY(check_copy(to, from));
    if (sp__shape_count(&to->layout.shape) == 0 || is_same_memory(to, from)) return SP_OK;
    return may_overlap(to, from) ? copy_through(to->device, to, from, call_site)
                                 : submit_copy(to, from, call_site);
}

sp_status sp_tensor_copy(sp_tensor destination, sp_tensor source)
{
    const void *call_site = SP_CALL_SITE;
    sp_rt_tensor *to, *from;
    SP_TRY(sp__tensor_find(destination, &to));
    sp_status status = sp__tensor_find(source, &from);
    if (status == SP_OK) {
        status = sp__tensor_copy(to, from, call_site);
        sp__tensor_drop(from);
    }
    sp__tensor_drop(to);
    return status;
}

sp_status sp_tensor_contiguous(sp_tensor handle, sp_tensor *out)
{
    const void *call_site = SP_CALL_SITE;
    if (out == NULL) return sp__fail(SP_INVALID, "sp_tensor_contiguous: out is NULL");
    *out = (sp_tensor){0};
    sp_rt_tensor *tensor;
    SP_TRY(sp__tensor_find(handle, &tensor));
    sp_status status;
    if (sp__layout_is_contiguous(&tensor->layout)) {
        status = sp_tensor_retain(handle);
        if (status == SP_OK) *out = handle;
    } else {
        status = sp__tensor_copy_of(tensor, call_site, out);
    }
    sp__tensor_drop(tensor);
    return status;
}

sp_status sp_tensor_to(sp_tensor handle, sp_device device, sp_tensor *out)
{
    const void *call_site = SP_CALL_SITE;
    if (out == NULL) return sp__fail(SP_INVALID, "sp_tensor_to: out is NULL");
    *out = (sp_tensor){0};
    sp_rt_device *to;
    sp_rt_tensor *tensor;
    SP_TRY(sp__rt_device_find_working(device, &to));
    SP_TRY(sp__tensor_find(handle, &tensor));
    const sp_device target = sp__rt_device_handle(to);
    sp_status status;
    if (tensor->device.bits == target.bits) {
        status = sp_tensor_retain(handle);
        if (status == SP_OK) *out = handle;
    } else {
        status = copy_on(target, tensor, call_site, out);
    }
    sp__tensor_drop(tensor);
    return status;
}
