// SPDX-License-Identifier: Apache-2.0
// Streams and events. Each thread has a stream of its own as its current one.
#include <array>
#include <mutex>

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "compat.hpp"
#include "devices.hpp"
#include "memory.hpp"

namespace streampool_torch
{
namespace
{
sp_stream default_stream()
{
    sp_stream stream;
    check(sp_stream_default({0}, &stream));
    return stream;
}

// Streams of PyTorch are never released, so a few leases serve all of them, in turns.
sp_stream pooled_stream()
{
    static std::mutex *const lock = new std::mutex;
    static std::array<sp_stream, 8> leases{};
    static size_t next = 0;
    const std::lock_guard<std::mutex> held(*lock);
    sp_stream &lease = leases[next];
    if (lease.bits == 0) check(sp_stream_from_pool({0}, &lease));
    next = (next + 1) % leases.size();
    return lease;
}

sp_event event_at(void *event)
{
    return {reinterpret_cast<uint64_t>(event)};
}

class Guard final : public c10::impl::DeviceGuardImplInterface
{
  public:
    c10::DeviceType type() const override
    {
        return c10::DeviceType::PrivateUse1;
    }
    c10::Device exchangeDevice(c10::Device device) const override
    {
        setDevice(device);
        return this_device();
    }
    c10::Device getDevice() const override
    {
        return this_device();
    }
    void setDevice(c10::Device device) const override
    {
        TORCH_CHECK(device.index() <= 0, "streampool has one device, of index 0; given: ",
                    static_cast<int>(device.index()));
    }
    void uncheckedSetDevice(c10::Device) const noexcept override {}
    c10::DeviceIndex deviceCount() const noexcept override
    {
        return 1;
    }

    // Without a free stream, and in a forked child, the default stream: its next use says why.
    c10::Stream getStream(c10::Device) const noexcept override
    {
        sp_stream stream;
        if (sp_stream_current({0}, &stream) != SP_OK)
            return c10::Stream(c10::Stream::DEFAULT, this_device());
        return stream_of(stream);
    }
    c10::Stream getDefaultStream(c10::Device) const override
    {
        return c10::Stream(c10::Stream::DEFAULT, this_device());
    }
    c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override
    {
        return stream_of(pooled_stream());
    }
#if SP_TORCH_HAS_HOOKS
    c10::Stream getNewStream(c10::Device, int) const override
    {
        return stream_of(pooled_stream());
    }
#endif
    c10::Stream exchangeStream(c10::Stream stream) const noexcept override
    {
        const c10::Stream former = getStream(stream.device());
        sp_stream next = {static_cast<uint64_t>(stream.id())};
        if (next.bits == 0) (void)sp_stream_default({0}, &next);
        if (next.bits != 0) (void)sp_stream_set_current(next); // 0 would be the thread's own
        return former;
    }
    bool queryStream(const c10::Stream &stream) const override
    {
        return is_reached(sp_stream_query(streampool_torch::handle_of(stream)));
    }
    void synchronizeStream(const c10::Stream &stream) const override
    {
        check(sp_stream_synchronize(streampool_torch::handle_of(stream)));
    }
    void recordDataPtrOnStream(const c10::DataPtr &data, const c10::Stream &stream) const override
    {
        if (data.get() == nullptr) return;
        const sp_storage storage = {reinterpret_cast<uint64_t>(data.get_context())};
        check(sp_storage_record_stream(storage, streampool_torch::handle_of(stream)));
    }

    // Events are created when they are first recorded.
    void record(void **event, const c10::Stream &stream, const c10::DeviceIndex,
                const c10::EventFlag flag) const override
    {
        if (*event == nullptr) {
            sp_event_options options{};
            options.enable_timing = flag == c10::EventFlag::BACKEND_DEFAULT;
            sp_event made;
            check(sp_event_create(&options, &made));
            *event = reinterpret_cast<void *>(made.bits);
        }
        const sp_stream on = streampool_torch::handle_of(stream);
        submit([&] { return sp_event_record(event_at(*event), on); });
    }
    void block(void *event, const c10::Stream &stream) const override
    {
        if (event == nullptr) return;
        const sp_stream on = streampool_torch::handle_of(stream);
        submit([&] { return sp_stream_wait_event(on, event_at(event)); });
    }
    bool queryEvent(void *event) const override
    {
        return event == nullptr || is_reached(sp_event_query(event_at(event)));
    }
    void destroyEvent(void *event, const c10::DeviceIndex) const noexcept override
    {
        (void)sp_event_release(event_at(event));
    }
#if SP_TORCH_HAS_HOOKS
    void synchronizeEvent(void *event) const override
    {
        if (event != nullptr) check(sp_event_synchronize(event_at(event)));
    }
    void synchronizeDevice(const c10::DeviceIndex) const override
    {
        check(sp_device_synchronize({0}));
    }
    double elapsedTime(void *start, void *end, const c10::DeviceIndex) const override
    {
        int64_t ns = 0;
        check(sp_event_elapsed(event_at(start), event_at(end), &ns));
        return static_cast<double>(ns) * 1e-6;
    }
#endif

  private:
    static bool is_reached(sp_status status)
    {
        if (status == SP_NOT_READY) return false;
        check(status);
        return true;
    }
};
} // namespace

// Throws nothing: callers may not.
c10::Stream stream_of(sp_stream stream)
{
    sp_stream usual;
    if (sp_stream_default({0}, &usual) == SP_OK && stream.bits == usual.bits)
        return c10::Stream(c10::Stream::DEFAULT, this_device());
    return c10::Stream(c10::Stream::UNSAFE, this_device(), static_cast<c10::StreamId>(stream.bits));
}

sp_stream handle_of(const c10::Stream &stream)
{
    if (stream.id() == 0) return default_stream();
    return {static_cast<uint64_t>(stream.id())};
}

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)
} // namespace streampool_torch
