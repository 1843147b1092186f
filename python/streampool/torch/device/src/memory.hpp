// SPDX-License-Identifier: Apache-2.0
// Memory of the device as storages of PyTorch. The context of a data pointer is the handle of an
// sp_storage, with one reference; the pointer is the storage's address. Nothing but a host access
// (borrow.hpp) may use the address: commands on other streams may still use the bytes.
#ifndef STREAMPOOL_TORCH_MEMORY_HPP
#define STREAMPOOL_TORCH_MEMORY_HPP

#include <c10/core/Allocator.h>
#include <c10/core/Device.h>
#include <c10/core/Storage.h>

#include "errors.hpp"

namespace streampool_torch
{
// The one device.
inline c10::Device this_device()
{
    return c10::Device(c10::DeviceType::PrivateUse1, 0);
}

// Lives as long as the process.
c10::Allocator *allocator();

// The handle behind a storage of the device, borrowed; zero for one without memory.
sp_storage handle_of(const c10::StorageImpl *storage);

// A data pointer over the memory of a storage of the host, which it keeps: the memory is given back
// in the order of the streams, when no queued command uses it.
c10::DataPtr adopt(const c10::Storage &host);

// Makes a storage at least that large; its bytes are kept.
void grow(c10::StorageImpl *storage, size_t bytes);
} // namespace streampool_torch

#endif
