// SPDX-License-Identifier: Apache-2.0
#include "sparse.hpp"

#include <algorithm>

#include <ATen/ATen.h>
#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/SparseTensorImpl.h>

#include "compat.hpp"

namespace streampool_torch
{
namespace
{
at::SparseTensorImpl *coordinates_of(const at::Tensor &sparse)
{
    return static_cast<at::SparseTensorImpl *>(sparse.unsafeGetTensorImpl());
}

at::SparseCsrTensorImpl *compressed_of(const at::Tensor &sparse)
{
    return static_cast<at::SparseCsrTensorImpl *>(sparse.unsafeGetTensorImpl());
}

bool is_compressed(c10::Layout layout)
{
    switch (layout) {
    case c10::kSparseCsr:
    case c10::kSparseCsc:
    case c10::kSparseBsr:
    case c10::kSparseBsc:
        return true;
    default:
        return false;
    }
}

SparseForm form_of_locked(const at::Tensor &sparse)
{
    SparseForm form{sparse.layout(), sparse.dtype(), sparse.sizes().vec(), {}, 0, false};
    if (is_compressed(form.layout)) {
        const at::SparseCsrTensorImpl *impl = compressed_of(sparse);
        form.parts = {impl->compressed_indices(), impl->plain_indices(), impl->values()};
    } else {
        const at::SparseTensorImpl *impl = coordinates_of(sparse);
        form.parts = {impl->indices(), impl->values()};
        form.sparse_dim = impl->sparse_dim();
        form.is_coalesced = impl->coalesced();
    }
    return form;
}

// Whether two tensors have the same elements in the same memory.
bool has_same_elements(const at::Tensor &a, const at::Tensor &b)
{
    return a.is_same(b) ||
           (a.storage().unsafeGetStorageImpl() == b.storage().unsafeGetStorageImpl() &&
            a.storage_offset() == b.storage_offset() && a.sizes() == b.sizes() &&
            a.strides() == b.strides() && a.is_conj() == b.is_conj() && a.is_neg() == b.is_neg());
}

bool has_same_parts(const SparseForm &a, const SparseForm &b)
{
    return std::equal(a.parts.begin(), a.parts.end(), b.parts.begin(), b.parts.end(),
                      has_same_elements);
}

at::Tensor empty_coordinates(const SparseForm &form, const c10::Device &device)
{
    const auto key =
        device.is_cpu() ? c10::DispatchKey::SparseCPU : c10::DispatchKey::SparsePrivateUse1;
    return at::detail::make_tensor<at::SparseTensorImpl>(c10::DispatchKeySet(key), form.dtype);
}

at::Tensor empty_compressed(const SparseForm &form, const c10::Device &device)
{
    const auto key = device.is_cpu() ? c10::DispatchKey::SparseCsrCPU : compressed_key();
    return at::detail::make_tensor<at::SparseCsrTensorImpl>(c10::DispatchKeySet(key), device,
                                                            form.layout, form.dtype);
}

void set_coordinates(at::SparseTensorImpl *impl, const SparseForm &form, const SparseForm &former)
{
    if (former.sizes != form.sizes || former.sparse_dim != form.sparse_dim) {
        const int64_t dense_dim = static_cast<int64_t>(form.sizes.size()) - form.sparse_dim;
        impl->raw_resize_(form.sparse_dim, dense_dim, form.sizes);
    }
    if (!has_same_parts(former, form))
        impl->set_indices_and_values_unsafe(form.parts[0], form.parts[1]);
    if (impl->coalesced() != form.is_coalesced) impl->set_coalesced(form.is_coalesced);
}

void set_form_locked(const at::Tensor &sparse, const SparseForm &form, const SparseForm &former)
{
    if (!is_compressed(form.layout)) set_coordinates(coordinates_of(sparse), form, former);
    else if (former.sizes != form.sizes || !has_same_parts(former, form))
        compressed_of(sparse)->set_member_tensors(form.parts[0], form.parts[1], form.parts[2],
                                                  form.sizes);
}
} // namespace

bool is_sparse(const at::Tensor &tensor)
{
    const c10::Layout layout = tensor.layout();
    return layout == c10::kSparse || is_compressed(layout);
}

std::mutex &form_lock()
{
    static std::mutex *const only = new std::mutex; // static tensors may outlive statics
    return *only;
}

SparseForm form_of(const at::Tensor &sparse)
{
    const std::lock_guard<std::mutex> held(form_lock());
    return form_of_locked(sparse);
}

at::Tensor tensor_of(const SparseForm &form)
{
    const c10::Device device = form.parts.back().device();
    at::Tensor made = is_compressed(form.layout) ? empty_compressed(form, device)
                                                 : empty_coordinates(form, device);
    set_form_locked(made, form, form_of_locked(made)); // no other thread has it
    return made;
}

// The former parts are released without the lock: one that Python has seen takes the interpreter's,
// with which another thread may wait for this one.
void set_form(const at::Tensor &sparse, const SparseForm &form)
{
    SparseForm former{};
    const std::lock_guard<std::mutex> held(form_lock());
    former = form_of_locked(sparse);
    set_form_locked(sparse, form, former);
}

void resize_and_set_form(const at::Tensor &sparse, const SparseForm &form)
{
    const int64_t dense_dim = static_cast<int64_t>(form.sizes.size()) - form.sparse_dim;
    SparseForm former{};
    const std::lock_guard<std::mutex> held(form_lock());
    coordinates_of(sparse)->resize_(form.sparse_dim, dense_dim, form.sizes);
    former = form_of_locked(sparse);
    set_form_locked(sparse, form, former);
}
} // namespace streampool_torch
