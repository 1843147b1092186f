// SPDX-License-Identifier: Apache-2.0
#include "memory.hpp"

#include <cstring>
#include <memory>

#include "compat.hpp"

namespace streampool_torch
{
namespace
{
void release_handle(void *context)
{
    (void)sp_storage_release({reinterpret_cast<uint64_t>(context)});
}

c10::DataPtr data_of(sp_storage storage)
{
    sp_storage_info info;
    const sp_status status = sp_storage_get_info(storage, &info);
    if (status != SP_OK) (void)sp_storage_release(storage);
    check(status);
    return {info.address, reinterpret_cast<void *>(storage.bits), release_handle, this_device()};
}

class DeviceAllocator final : public c10::Allocator
{
  public:
    c10::DataPtr allocate(size_t bytes) SP_TORCH_ALLOCATE_CONST override
    {
        if (bytes == 0) return {nullptr, this_device()};
        sp_storage storage;
        check(sp_storage_create({0}, bytes, nullptr, &storage));
        return data_of(storage);
    }

    // A context is no data pointer, so there is no raw deleter.
    c10::DeleterFnPtr raw_deleter() const override
    {
        return nullptr;
    }

#if SP_TORCH_HAS_COPY_DATA
    // Nothing says which storages the two belong to: all that is queued comes first.
    void copy_data(void *to, const void *from, std::size_t bytes) const override
    {
        check(sp_device_synchronize({0}));
        std::memcpy(to, from, bytes);
    }
#endif
};

void release_host(void *context, void *)
{
    delete static_cast<c10::Storage *>(context);
}
} // namespace

c10::Allocator *allocator()
{
    static DeviceAllocator *const only = new DeviceAllocator; // static tensors may outlive statics
    return only;
}

sp_storage handle_of(const c10::StorageImpl *storage)
{
    const c10::DataPtr &data = storage->data_ptr();
    if (data.get_deleter() != release_handle) return {0};
    return {reinterpret_cast<uint64_t>(data.get_context())};
}

c10::DataPtr adopt(const c10::Storage &host)
{
    c10::StorageImpl *impl = host.unsafeGetStorageImpl();
    void *address = impl->data_ptr().get();
    if (impl->nbytes() == 0 || address == nullptr) return {nullptr, this_device()};
    auto kept = std::make_unique<c10::Storage>(host);
    sp_adopt_options options{};
    options.release = release_host;
    options.ctx = kept.get();
    sp_storage storage;
    check(sp_storage_adopt({0}, address, impl->nbytes(), &options, &storage));
    (void)kept.release();
    return data_of(storage);
}

void grow(c10::StorageImpl *storage, size_t bytes)
{
    const size_t former = storage->nbytes();
    if (bytes <= former) return;
    TORCH_CHECK(storage->resizable(), "Trying to resize storage that is not resizable");
    c10::DataPtr data = allocator()->allocate(bytes);
    const sp_storage from = handle_of(storage);
    const sp_storage to = {reinterpret_cast<uint64_t>(data.get_context())};
    if (from.bits != 0 && former > 0) {
        submit([&] {
            return sp_storage_copy_async(current_stream(), {to, 0, former}, {from, 0, former});
        });
    }
    storage->set_data_ptr_noswap(std::move(data));
    storage->set_nbytes(bytes);
}

REGISTER_ALLOCATOR(c10::DeviceType::PrivateUse1, allocator())
} // namespace streampool_torch
