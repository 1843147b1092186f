// SPDX-License-Identifier: Apache-2.0
// New tensors, views, and changes of a tensor's size and storage. None waits for a stream.
#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/InferSize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

#include "compat.hpp"
#include "devices.hpp"
#include "memory.hpp"

namespace streampool_torch
{
namespace
{
constexpr c10::DispatchKeySet our_key(c10::DispatchKey::PrivateUse1);

c10::ScalarType type_or_default(optional<c10::ScalarType> dtype)
{
    return dtype.has_value() ? *dtype : c10::typeMetaToScalarType(c10::get_default_dtype());
}

void require_dense(optional<c10::Layout> layout)
{
    TORCH_CHECK_NOT_IMPLEMENTED(!layout.has_value() || *layout == c10::kStrided,
                                "streampool has dense and sparse tensors only; given: ", *layout);
}

void require_this_device(optional<c10::Device> device)
{
    TORCH_CHECK(!device.has_value() || device->index() <= 0,
                "streampool has one device, of index 0; given: ", *device);
}

at::Tensor empty(at::IntArrayRef size, optional<c10::ScalarType> dtype,
                 optional<c10::Layout> layout, optional<c10::Device> device, optional<bool>,
                 optional<c10::MemoryFormat> format)
{
    require_this_device(device);
    require_dense(layout);
    return at::detail::empty_generic(size, allocator(), our_key, type_or_default(dtype), format);
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride,
                         optional<c10::ScalarType> dtype, optional<c10::Layout> layout,
                         optional<c10::Device> device, optional<bool>)
{
    require_this_device(device);
    require_dense(layout);
    return at::detail::empty_strided_generic(size, stride, allocator(), our_key,
                                             type_or_default(dtype));
}

// Bytes of a storage that has all elements of this layout.
size_t bytes_of(at::IntArrayRef size, at::IntArrayRef stride, int64_t offset, size_t item)
{
    return at::detail::computeStorageNbytes(size, stride, item, static_cast<size_t>(offset));
}

// A tensor that has the size already keeps its strides.
const at::Tensor &resize_(const at::Tensor &self, at::IntArrayRef size,
                          optional<c10::MemoryFormat> format)
{
    c10::TensorImpl *impl = self.unsafeGetTensorImpl();
    if (self.sizes() != size) {
        impl->set_sizes_contiguous(size);
        grow(impl->storage().unsafeGetStorageImpl(),
             bytes_of(size, impl->strides(), impl->storage_offset(), self.itemsize()));
    }
    if (format.has_value()) {
        TORCH_CHECK(*format != c10::MemoryFormat::Preserve, "Unsupported memory format", *format);
        impl->empty_tensor_restride(*format);
    }
    return self;
}

at::Tensor &set_storage(at::Tensor &self, const c10::Storage &source, int64_t offset,
                        at::IntArrayRef size, at::IntArrayRef given_stride)
{
    TORCH_CHECK(source.device().type() == c10::DeviceType::PrivateUse1, "set_: the storage is on ",
                source.device(), ", the tensor on ", this_device());
    TORCH_CHECK(offset >= 0, "Tensor: invalid storage offset ", offset);
    c10::TensorImpl *impl = self.unsafeGetTensorImpl();
    impl->set_storage_keep_dtype(source);
    impl->set_storage_offset(offset);
    if (given_stride.data() != nullptr || size.empty()) {
        impl->set_sizes_and_strides(size, given_stride);
    } else {
        impl->set_sizes_contiguous(size);
    }
    grow(source.unsafeGetStorageImpl(), bytes_of(size, impl->strides(), offset, self.itemsize()));
    return self;
}

at::Tensor &set_source_storage_part(at::Tensor &self, at::Storage source, int64_t offset,
                                    at::IntArrayRef size, at::IntArrayRef stride)
{
    return set_storage(self, source, offset, size, stride);
}

at::Tensor &set_source_storage(at::Tensor &self, at::Storage source)
{
    const int64_t count = static_cast<int64_t>(source.nbytes() / self.itemsize());
    return set_storage(self, source, 0, {count}, {1});
}

at::Tensor &set_source_tensor(at::Tensor &self, const at::Tensor &source)
{
    if (self.is_same(source)) return self;
    return set_storage(self, source.storage(), source.storage_offset(), source.sizes(),
                       source.strides());
}

at::Tensor &set_nothing(at::Tensor &self)
{
    const c10::Storage none(c10::Storage::use_byte_size_t(), 0, allocator(), true);
    return set_storage(self, none, 0, {0}, {1});
}

void record_stream(at::Tensor &self, c10::Stream stream)
{
    const sp_storage storage = handle_of(self.storage().unsafeGetStorageImpl());
    if (storage.bits != 0) check(sp_storage_record_stream(storage, handle_of(stream)));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
    m.impl("empty.memory_format", empty);
    m.impl("empty_strided", empty_strided);
    m.impl("as_strided", at::native::as_strided_tensorimpl);
    m.impl("view", at::native::view);
    m.impl("_reshape_alias", at::native::_reshape_alias);
    m.impl("unfold", at::native::unfold);
    m.impl("resize_", resize_);
    m.impl("set_.source_Storage", set_source_storage);
    m.impl("set_.source_Storage_storage_offset", set_source_storage_part);
    m.impl("set_.source_Tensor", set_source_tensor);
    m.impl("set_", set_nothing);
    m.impl("record_stream", record_stream);
}
} // namespace
} // namespace streampool_torch
