// SPDX-License-Identifier: Apache-2.0
// Tensors of the device as tensors of the host, without a copy, for kernels of PyTorch. A sparse
// tensor is one over the host's forms of its parts.
//
//     Borrow borrow;
//     at::Tensor a = borrow.read(x), b = borrow.write(y);
//     borrow.begin();
//     at::Tensor c = borrow.give(kernel(a, b));
//     borrow.finish();
//
// Between begin and the end of the object each storage has an open host access: queued commands
// that conflict have completed, and later ones wait. Kernels compute on the calling thread only.
#ifndef STREAMPOOL_TORCH_BORROW_HPP
#define STREAMPOOL_TORCH_BORROW_HPP

#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "memory.hpp"
#include "one_thread.hpp"
#include "sparse.hpp"

namespace streampool_torch
{
inline bool is_ours(const at::Tensor &tensor)
{
    return tensor.defined() && tensor.device().type() == c10::DeviceType::PrivateUse1;
}

class Borrow
{
  public:
    Borrow() = default;
    ~Borrow();
    Borrow(const Borrow &) = delete;
    Borrow &operator=(const Borrow &) = delete;

    // The tensor on the host. Tensors of other devices, and undefined ones, are returned as they
    // are; one that is given again is the same tensor.
    at::Tensor read(const at::Tensor &tensor)
    {
        return borrow(tensor, SP_READ);
    }
    at::Tensor write(const at::Tensor &tensor)
    {
        return borrow(tensor, SP_READ_WRITE);
    }
    // For a kernel that writes all elements and reads none.
    at::Tensor overwrite(const at::Tensor &tensor);

    // Makes hosts require a gradient where their tensors do, for kernels that compute more for the
    // backward pass then.
    void keep_requires_grad();

    // Opens the accesses; throws if a queued command that wrote one of the storages has failed.
    void begin();

    // The result of a kernel on the device: the tensor that was borrowed, a view of its storage, or
    // a tensor in the result's memory, which is adopted.
    at::Tensor give(const at::Tensor &host);

    // Gives written tensors the sizes and memory that the kernel gave them.
    void finish();

  private:
    struct Use { // of a storage
        c10::Storage storage;
        c10::Storage host;
        sp_storage handle;
        int access; // of sp_access
        bool is_open;
    };
    struct Pair {
        at::Tensor tensor;
        at::Tensor host;
        bool is_written;
    };

    at::Tensor borrow(const at::Tensor &tensor, sp_access access);
    at::Tensor borrow_sparse(const at::Tensor &tensor, sp_access access);
    at::Tensor note_foreign(const at::Tensor &tensor);
    bool is_foreign(const at::Tensor &host) const;
    Pair *pair_of(const at::Tensor &tensor);
    at::Tensor keep(const at::Tensor &tensor, const at::Tensor &host, sp_access access);
    SparseForm give_form(const at::Tensor &host);
    void adopt_resized();
    void set_layout(const Pair &pair);
    Use &use_of(const c10::Storage &storage, sp_access access);
    const Use *use_at(const c10::Storage &host) const;
    c10::Storage device_storage(const c10::Storage &host);
    static sp_status open(Use &use);
    std::pair<size_t, sp_status> open_all();
    void close_all();

    std::vector<Use> uses_;
    std::vector<Pair> pairs_;
    std::vector<at::Tensor> foreign_;
    std::vector<std::pair<c10::Storage, c10::Storage>> adopted_; // host, device
    OneThread one_thread_;
};
} // namespace streampool_torch

#endif
