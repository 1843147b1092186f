// SPDX-License-Identifier: Apache-2.0
// Sparse tensors, of coordinates (COO) and compressed ones (CSR, CSC, BSR, BSC), as what they are
// made of.
#ifndef STREAMPOOL_TORCH_SPARSE_HPP
#define STREAMPOOL_TORCH_SPARSE_HPP

#include <mutex>
#include <vector>

#include <ATen/core/Tensor.h>

namespace streampool_torch
{
struct SparseForm {
    c10::Layout layout;
    caffe2::TypeMeta dtype;
    std::vector<int64_t> sizes;
    std::vector<at::Tensor> parts; // indices and values, or compressed and plain indices and values
    int64_t sparse_dim;            // of coordinates
    bool is_coalesced;             // of coordinates
};

bool is_sparse(const at::Tensor &tensor);

SparseForm form_of(const at::Tensor &sparse);

// A tensor on the device of the parts.
at::Tensor tensor_of(const SparseForm &form);

// Makes the tensor one of this form, with the same layout and dtype. What is so already is not
// written.
void set_form(const at::Tensor &sparse, const SparseForm &form);

// The same for a tensor of coordinates that is copied into, whose size PyTorch may refuse to
// change.
void resize_and_set_form(const at::Tensor &sparse, const SparseForm &form);

// Held while the form of a tensor is read or changed: of threads that write to one tensor, and
// replace its parts, each has those of one write, and none that is gone.
std::mutex &form_lock();
} // namespace streampool_torch

#endif
