// SPDX-License-Identifier: Apache-2.0
// Of hooks.cpp: generators, hooks and autocast of PyTorch 2.
#include <ATen/CPUGeneratorImpl.h>
#if SP_TORCH_REGISTERS_GENERATORS
#include <ATen/core/GeneratorForPrivateuseone.h>
#endif
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/GeneratorImpl.h>
#include <torch/library.h>

#include "memory.hpp"

namespace streampool_torch
{
namespace
{
// A generator of the host under the name of the device, since the kernels that use it are the
// host's.
class DeviceGenerator final : public c10::GeneratorImpl
{
  public:
    explicit DeviceGenerator(at::Generator host)
        : GeneratorImpl(this_device(), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
          host_(std::move(host))
    {
    }

    const at::Generator &host() const
    {
        return host_;
    }

    void set_current_seed(uint64_t seed) override
    {
        host_.set_current_seed(seed);
    }
    void set_offset(uint64_t offset) override
    {
        host_.set_offset(offset);
    }
    uint64_t get_offset() const override
    {
        return host_.get_offset();
    }
    uint64_t current_seed() const override
    {
        return host_.current_seed();
    }
    uint64_t seed() override
    {
        return host_.seed();
    }
    void set_state(const c10::TensorImpl &state) override
    {
        host_.unsafeGetGeneratorImpl()->set_state(state);
    }
    c10::intrusive_ptr<c10::TensorImpl> get_state() const override
    {
        return host_.unsafeGetGeneratorImpl()->get_state();
    }

  private:
    GeneratorImpl *clone_impl() const override
    {
        return new DeviceGenerator(host_.clone());
    }

    at::Generator host_;
};

at::Generator new_generator(c10::DeviceIndex)
{
    return at::Generator(c10::make_intrusive<DeviceGenerator>(at::detail::createCPUGenerator()));
}

#if SP_TORCH_REGISTERS_GENERATORS
REGISTER_GENERATOR_PRIVATEUSE1(new_generator)
#endif

class Hooks final : public at::PrivateUse1HooksInterface
{
  public:
    bool hasPrimaryContext(c10::DeviceIndex) const override
    {
        return true;
    }
    c10::DeviceIndex deviceCount() const override
    {
        return 1;
    }
    void setCurrentDevice(c10::DeviceIndex device) const override
    {
        TORCH_CHECK(device == 0,
                    "streampool has one device, of index 0; given: ", static_cast<int>(device));
    }
    c10::DeviceIndex getCurrentDevice() const override
    {
        return 0;
    }
    c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override
    {
        setCurrentDevice(device);
        return 0;
    }
    c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override
    {
        return exchangeDevice(device);
    }

    // Shared with the host: torch.manual_seed seeds both.
    const at::Generator &getDefaultGenerator(c10::DeviceIndex) const override
    {
        static const auto *const only = new at::Generator(
            c10::make_intrusive<DeviceGenerator>(at::detail::getDefaultCPUGenerator()));
        return *only;
    }
    at::Generator getNewGenerator(c10::DeviceIndex device) const override
    {
        return new_generator(device);
    }

    void resizePrivateUse1Bytes(const c10::Storage &storage, size_t bytes) const override
    {
        c10::StorageImpl *impl = storage.unsafeGetStorageImpl();
        grow(impl, bytes);
        if (bytes == 0) impl->set_data_ptr_noswap(allocator()->allocate(0));
        impl->set_nbytes(bytes);
    }

    bool isPinnedPtr(const void *data) const override
    {
        return sp_host_is_pinned(data, 1);
    }
    c10::Allocator *getPinnedMemoryAllocator() const override;
};

void free_pinned(void *data)
{
    (void)sp_host_free(data);
}

class PinnedAllocator final : public c10::Allocator
{
  public:
    c10::DataPtr allocate(size_t bytes) SP_TORCH_ALLOCATE_CONST override
    {
        void *data = nullptr;
        if (bytes > 0) check(sp_host_alloc({0}, bytes, &data));
        return {data, data, free_pinned, c10::DeviceType::CPU};
    }
    c10::DeleterFnPtr raw_deleter() const override
    {
        return free_pinned;
    }
    void copy_data(void *to, const void *from, std::size_t bytes) const override
    {
        default_copy_data(to, from, bytes);
    }
};

c10::Allocator *Hooks::getPinnedMemoryAllocator() const
{
    static PinnedAllocator *const only = new PinnedAllocator;
    return only;
}

const bool has_hooks = [] {
    at::RegisterPrivateUse1HooksInterface(new Hooks);
    return true;
}();
} // namespace

at::Generator host_generator(const at::Generator &generator)
{
    if (!generator.defined() || generator.device().is_cpu()) return generator;
    return static_cast<const DeviceGenerator *>(generator.unsafeGetGeneratorImpl())->host();
}

// Without it every operator inside torch.autocast("sp") raises.
TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m)
{
    m.fallback(torch::CppFunction::makeFallthrough());
}
} // namespace streampool_torch
