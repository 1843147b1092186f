// SPDX-License-Identifier: Apache-2.0
#include "borrow.hpp"

#include <algorithm>

#include <c10/core/CPUAllocator.h>
#include <c10/core/TensorImpl.h>

namespace streampool_torch
{
namespace
{
// A tensor with the layout of `like` over another storage.
at::Tensor tensor_over(const c10::Storage &storage, c10::DispatchKey key, const at::Tensor &like)
{
    auto tensor = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(storage),
                                                           c10::DispatchKeySet(key), like.dtype());
    c10::TensorImpl *impl = tensor.unsafeGetTensorImpl();
    impl->set_storage_offset(like.storage_offset());
    impl->set_sizes_and_strides(like.sizes(), like.strides());
    if (like.is_conj()) tensor._set_conj(true);
    if (like.is_neg()) tensor._set_neg(true);
    if (like.unsafeGetTensorImpl()->is_wrapped_number()) impl->set_wrapped_number(true);
    return tensor;
}

// Over the same bytes, which the result does not own. A kernel may resize it: then it has memory of
// its own.
c10::Storage host_storage(const c10::Storage &storage)
{
    void *address = storage.unsafeGetStorageImpl()->data_ptr().get();
    return c10::Storage(c10::Storage::use_byte_size_t(), storage.nbytes(),
                        c10::DataPtr(address, c10::DeviceType::CPU), c10::GetCPUAllocator(), true);
}

bool is_same(const c10::Storage &a, const c10::Storage &b)
{
    return a.unsafeGetStorageImpl() == b.unsafeGetStorageImpl();
}

bool covers_its_storage(const at::Tensor &tensor)
{
    return tensor.is_non_overlapping_and_dense() &&
           static_cast<size_t>(tensor.numel()) * tensor.itemsize() == tensor.storage().nbytes();
}
} // namespace

Borrow::~Borrow()
{
    close_all();
}

Borrow::Use &Borrow::use_of(const c10::Storage &storage, sp_access access)
{
    for (Use &use : uses_) {
        if (!is_same(use.storage, storage)) continue;
        // Reading and overwriting one storage is reading and writing it.
        if (use.access != access) use.access = SP_READ_WRITE;
        return use;
    }
    const sp_storage handle = handle_of(storage.unsafeGetStorageImpl());
    uses_.push_back({storage, host_storage(storage), handle, access, false});
    return uses_.back();
}

// A result of a kernel may share the memory of an argument on the host.
at::Tensor Borrow::note_foreign(const at::Tensor &tensor)
{
    if (!tensor.defined()) return tensor;
    if (!is_sparse(tensor)) {
        foreign_.push_back(tensor);
        return tensor;
    }
    for (const at::Tensor &part : form_of(tensor).parts) foreign_.push_back(part);
    return tensor;
}

bool Borrow::is_foreign(const at::Tensor &host) const
{
    return std::any_of(foreign_.begin(), foreign_.end(), [&](const at::Tensor &argument) {
        return argument.has_storage() && is_same(argument.storage(), host.storage());
    });
}

// The pair of a tensor that was borrowed before.
Borrow::Pair *Borrow::pair_of(const at::Tensor &tensor)
{
    for (Pair &pair : pairs_) {
        if (pair.tensor.is_same(tensor)) return &pair;
    }
    return nullptr;
}

at::Tensor Borrow::keep(const at::Tensor &tensor, const at::Tensor &host, sp_access access)
{
    pairs_.push_back({tensor, host, access != SP_READ});
    return host;
}

at::Tensor Borrow::borrow(const at::Tensor &tensor, sp_access access)
{
    if (!is_ours(tensor)) return note_foreign(tensor);
    if (is_sparse(tensor)) return borrow_sparse(tensor, access);
    const Use &use = use_of(tensor.storage(), access);
    if (Pair *pair = pair_of(tensor)) {
        pair->is_written |= access != SP_READ;
        return pair->host;
    }
    return keep(tensor, tensor_over(use.host, c10::DispatchKey::CPU, tensor), access);
}

// Its parts are borrowed before it, so finish() comes to them first.
at::Tensor Borrow::borrow_sparse(const at::Tensor &tensor, sp_access access)
{
    SparseForm form = form_of(tensor);
    for (at::Tensor &part : form.parts) part = borrow(part, access);
    if (Pair *pair = pair_of(tensor)) {
        pair->is_written |= access != SP_READ;
        return pair->host;
    }
    return keep(tensor, tensor_of(form), access);
}

at::Tensor Borrow::overwrite(const at::Tensor &tensor)
{
    if (!is_ours(tensor)) return tensor;
    return borrow(tensor, covers_its_storage(tensor) ? SP_WRITE : SP_READ_WRITE);
}

void Borrow::keep_requires_grad()
{
    for (const Pair &pair : pairs_) {
        if (pair.tensor.requires_grad()) pair.host.set_requires_grad(true);
    }
}

sp_status Borrow::open(Use &use)
{
    void *data;
    const sp_status status =
        sp_storage_host_begin(use.handle, static_cast<sp_access>(use.access), &data);
    use.is_open = status == SP_OK;
    return status;
}

// The first use that cannot be opened, with its status; the end if all are open.
std::pair<size_t, sp_status> Borrow::open_all()
{
    for (size_t i = 0; i < uses_.size(); i++) {
        if (uses_[i].handle.bits == 0) continue;
        const sp_status status = open(uses_[i]);
        if (status != SP_OK) return {i, status};
    }
    return {uses_.size(), SP_OK};
}

void Borrow::close_all()
{
    for (Use &use : uses_) {
        if (!use.is_open) continue;
        (void)sp_storage_host_end(use.handle, static_cast<sp_access>(use.access));
        use.is_open = false;
    }
}

// Several storages cannot be opened in one step. A command that was queued between two begins may
// wait for the first access while the second begin waits for the command: SP_DEADLOCK. Then all
// accesses end, and the storage that was refused is waited for alone, which is for that command.
// Callers open storages in one order, so they form no cycle among themselves; every further round
// follows a command that another thread has queued on these storages since. If the storage is
// refused alone too, the calling thread has an access of its own open.
void Borrow::begin()
{
    std::sort(uses_.begin(), uses_.end(),
              [](const Use &a, const Use &b) { return a.handle.bits < b.handle.bits; });
    for (;;) {
        const auto [place, status] = open_all();
        if (status == SP_OK) return;
        if (status != SP_DEADLOCK) fail(status);
        close_all();
        check(open(uses_[place]));
        close_all();
    }
}

const Borrow::Use *Borrow::use_at(const c10::Storage &host) const
{
    for (const Use &use : uses_) {
        if (is_same(use.host, host)) return &use;
    }
    return nullptr;
}

c10::Storage Borrow::device_storage(const c10::Storage &host)
{
    const Use *use = use_at(host);
    if (use != nullptr) return use->storage;
    for (const auto &[from, to] : adopted_) {
        if (is_same(from, host)) return to;
    }
    c10::Storage made(c10::Storage::use_byte_size_t(), host.nbytes(), adopt(host), allocator(),
                      true);
    adopted_.emplace_back(host, made);
    return made;
}

at::Tensor Borrow::give(const at::Tensor &host)
{
    if (!host.defined() || !host.device().is_cpu()) return host;
    for (const Pair &pair : pairs_) {
        if (pair.host.is_same(host)) return pair.tensor;
    }
    if (is_sparse(host)) return tensor_of(give_form(host));
    TORCH_CHECK_NOT_IMPLEMENTED(host.layout() == c10::kStrided,
                                "streampool has dense and sparse tensors only; this result is ",
                                host.layout());
    // Memory of a tensor on the host stays that tensor's.
    const at::Tensor own = is_foreign(host) ? host.clone() : host;
    return tensor_over(device_storage(own.storage()), c10::DispatchKey::PrivateUse1, own);
}

SparseForm Borrow::give_form(const at::Tensor &host)
{
    SparseForm form = form_of(host);
    for (at::Tensor &part : form.parts) part = give(part);
    return form;
}

void Borrow::finish()
{
    adopt_resized();
    for (const Pair &pair : pairs_) {
        if (!pair.is_written) continue;
        if (is_sparse(pair.host)) set_form(pair.tensor, give_form(pair.host));
        else set_layout(pair);
    }
}

void Borrow::adopt_resized()
{
    for (Use &use : uses_) {
        c10::StorageImpl *impl = use.storage.unsafeGetStorageImpl();
        c10::StorageImpl *host = use.host.unsafeGetStorageImpl();
        if (host->data_ptr().get() == impl->data_ptr().get()) continue;
        // Resized, into memory of the kernel. The open accesses concern the former memory.
        close_all();
        const size_t bytes = host->nbytes();
        c10::DataPtr data = host->set_data_ptr(c10::DataPtr(nullptr, c10::DeviceType::CPU));
        const c10::Storage moved(c10::Storage::use_byte_size_t(), bytes, std::move(data),
                                 c10::GetCPUAllocator(), true);
        impl->set_data_ptr_noswap(adopt(moved));
        impl->set_nbytes(bytes);
    }
}

void Borrow::set_layout(const Pair &pair)
{
    c10::TensorImpl *impl = pair.tensor.unsafeGetTensorImpl();
    if (use_at(pair.host.storage()) == nullptr) {
        impl->set_storage_keep_dtype(device_storage(pair.host.storage()));
    }
    if (pair.host.sizes() == pair.tensor.sizes() && pair.host.strides() == pair.tensor.strides()) {
        return;
    }
    impl->set_storage_offset(pair.host.storage_offset());
    impl->set_sizes_and_strides(pair.host.sizes(), pair.host.strides());
}
} // namespace streampool_torch
