// SPDX-License-Identifier: Apache-2.0
// Operators on sparse tensors of the device. PyTorch's kernels for the host compute on the memory
// of their parts, as on that of dense tensors. What concerns the tensor alone is PyTorch's kernel
// for any device, which waits for no stream; a copy is one of the parts.
#include <ATen/ATen.h>
#include <ATen/NativeFunctions.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include "compat.hpp"
#include "fallback.hpp"
#include "sparse.hpp"

namespace streampool_torch
{
namespace
{
// Gives the fallback of `key` to the operators that have a kernel for `host`. Those with a
// composite kernel too would otherwise run that one, which the dispatcher prefers to the fallback
// of a key.
template <c10::DispatchKey host> void serve_kernels_of(torch::Library &m, c10::DispatchKey key)
{
    auto &dispatcher = c10::Dispatcher::singleton();
    for (const c10::OperatorName &name : dispatcher.getAllOpNames()) {
        if (name.name.rfind("aten::", 0) != 0) continue;
        const auto op = dispatcher.findOp(name);
        if (!op.has_value() || !op->hasKernelForDispatchKey(host)) continue;
        if (op->hasKernelForDispatchKey(key)) continue;
        const std::string full =
            name.name + (name.overload_name.empty() ? "" : ".") + name.overload_name;
        m.impl(full.c_str(), torch::CppFunction::makeFromBoxedFunction<&fallback_to<host>>());
    }
}

// PyTorch's kernel, which reads the form.
template <auto kernel> struct Locked;
template <class Result, class... Args, Result (*kernel)(Args...)> struct Locked<kernel> {
    static Result call(Args... args)
    {
        const std::lock_guard<std::mutex> held(form_lock());
        return kernel(args...);
    }
};

// One of the two is on the device.
at::Tensor &copy_coordinates(at::Tensor &self, const at::Tensor &source, bool non_blocking)
{
    if (self.is_same(source)) return self;
    SparseForm form = form_of(source);
    for (at::Tensor &part : form.parts) {
        const bool is_values = part.is_same(form.parts.back());
        const c10::ScalarType dtype = is_values ? self.scalar_type() : part.scalar_type();
        part = part.to(self.device(), dtype, non_blocking, true);
    }
    resize_and_set_form(self, form);
    return self;
}

TORCH_LIBRARY_IMPL(_, SparsePrivateUse1, m)
{
    m.fallback(
        torch::CppFunction::makeFromBoxedFunction<&fallback_to<c10::DispatchKey::SparseCPU>>());
}

TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, m)
{
    m.impl("sparse_dim", at::native::sparse_dim_sparse);
    m.impl("dense_dim", at::native::dense_dim_sparse);
    m.impl("_dimI", at::native::sparse_dim_sparse);
    m.impl("_dimV", at::native::dense_dim_sparse);
    m.impl("_nnz", Locked<at::native::_nnz_sparse>::call);
    m.impl("is_coalesced", at::native::is_coalesced_sparse);
    m.impl("_coalesced_", at::native::_coalesced_sparse_);
    m.impl("_indices", Locked<at::native::_indices_sparse>::call);
    m.impl("_values", Locked<at::native::_values_sparse>::call);
    m.impl("indices", Locked<at::native::indices_sparse>::call);
    m.impl("values", Locked<at::native::values_sparse>::call);
    m.impl("empty_like", at::native::empty_like_sparse_coo);
    m.impl("copy_", at::native::copy_sparse_wrapper_);
    m.impl("copy_sparse_to_sparse_", copy_coordinates);
    serve_kernels_of<c10::DispatchKey::SparseCPU>(m, c10::DispatchKey::SparsePrivateUse1);
}

#if SP_TORCH_HAS_COMPRESSED
TORCH_LIBRARY_IMPL(_, SparseCsrPrivateUse1, m)
{
    m.fallback(
        torch::CppFunction::makeFromBoxedFunction<&fallback_to<c10::DispatchKey::SparseCsrCPU>>());
}

TORCH_LIBRARY_IMPL(aten, SparseCsrPrivateUse1, m)
{
    m.impl("sparse_dim", at::native::sparse_dim_sparse_csr);
    m.impl("dense_dim", Locked<at::native::dense_dim_sparse_csr>::call);
    m.impl("_nnz", Locked<at::native::_nnz_sparse_csr>::call);
    m.impl("crow_indices", Locked<at::native::crow_indices_sparse_csr>::call);
    m.impl("col_indices", Locked<at::native::col_indices_sparse_csr>::call);
    m.impl("ccol_indices", Locked<at::native::ccol_indices_sparse_csr>::call);
    m.impl("row_indices", Locked<at::native::row_indices_sparse_csr>::call);
    m.impl("values", Locked<at::native::values_sparse_csr>::call);
    m.impl("empty_like", at::native::empty_like_sparse_csr);
    m.impl("copy_", at::native::copy_sparse_compressed_);
    serve_kernels_of<c10::DispatchKey::SparseCsrCPU>(m, c10::DispatchKey::SparseCsrPrivateUse1);
}
#endif
} // namespace
} // namespace streampool_torch
