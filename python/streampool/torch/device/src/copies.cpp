// SPDX-License-Identifier: Apache-2.0
// Copies between the device and the host, which wait for the uses that they follow, and copies on
// the device, which are queued if one kernel does them; fills.
#include <cmath>
#include <limits>

#include <ATen/ATen.h>
#include <torch/library.h>

#include "borrow.hpp"
#include "fallback.hpp"
#include "views_of.hpp"

namespace streampool_torch
{
namespace
{
bool is_queued_copy(const at::Tensor &from, const at::Tensor &to)
{
    return is_ours(from) && is_ours(to) && from.scalar_type() == to.scalar_type() &&
           from.is_conj() == to.is_conj() && from.is_neg() == to.is_neg() && is_viewable(from) &&
           is_viewable(to);
}

// False if elements of the destination may share memory: the library refuses it, PyTorch accepts
// what it cannot prove to overlap.
bool queue_copy(const at::Tensor &from, const at::Tensor &to)
{
    const View source(from);
    const View destination(to);
    bool is_refused = false;
    submit([&] {
        const sp_status status = sp_tensor_copy(destination.handle(), source.handle());
        is_refused = status == SP_INVALID;
        return is_refused ? SP_OK : status;
    });
    return !is_refused;
}

at::Tensor copy_from(const at::Tensor &self, const at::Tensor &to, bool)
{
    if (to.numel() == 0) return to;
    const at::Tensor from = self.expand(to.sizes());
    if (is_queued_copy(from, to) && queue_copy(from, to)) return to;
    Borrow borrow;
    const at::Tensor source = borrow.read(from);
    at::Tensor destination = borrow.overwrite(to);
    borrow.begin();
    at::AutoDispatchBelowADInplaceOrView guard;
    destination.copy_(source);
    return to;
}

// Whether the elements are one range of bytes.
bool is_range(const at::Tensor &tensor)
{
    return is_viewable(tensor) && tensor.is_non_overlapping_and_dense();
}

template <class Element> void fill_range(const at::Tensor &tensor, Element element)
{
    const sp_storage storage = handle_of(tensor.storage().unsafeGetStorageImpl());
    const uint64_t offset = static_cast<uint64_t>(tensor.storage_offset()) * tensor.itemsize();
    const uint64_t bytes = static_cast<uint64_t>(tensor.numel()) * tensor.itemsize();
    submit([&] {
        return sp_storage_fill_async(current_stream(), {storage, offset, bytes}, &element,
                                     sizeof element);
    });
}

at::Tensor &zero_kernel(at::Tensor &self)
{
    if (!is_range(self)) return SP_FALLBACK(zero_)(self);
    fill_range(self, uint8_t{0});
    return self;
}

// PyTorch refuses finite numbers out of the range of float32.
bool is_float32(const at::Scalar &value)
{
    if (value.isComplex()) return false;
    const double number = value.toDouble();
    return !std::isfinite(number) || std::abs(number) <= std::numeric_limits<float>::max();
}

at::Tensor &fill_kernel(at::Tensor &self, const at::Scalar &value)
{
    const bool is_float = self.scalar_type() == c10::ScalarType::Float && is_float32(value);
    if (!is_float || !is_range(self)) return SP_FALLBACK(fill__Scalar)(self, value);
    fill_range(self, static_cast<float>(value.toDouble()));
    return self;
}

at::Tensor copy_from_and_resize(const at::Tensor &self, const at::Tensor &to)
{
    to.resize_(self.sizes());
    return copy_from(self, to, false);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
    m.impl("_copy_from", copy_from);
    m.impl("_copy_from_and_resize", copy_from_and_resize);
    m.impl("zero_", zero_kernel);
    m.impl("fill_.Scalar", fill_kernel);
}

// Copies of lazily conjugated or negated tensors come here as they are: resolving them first would
// copy them, and so on without an end.
TORCH_LIBRARY_IMPL(aten, Conjugate, m)
{
    m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(aten, Negative, m)
{
    m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}
} // namespace
} // namespace streampool_torch
