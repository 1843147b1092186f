/* SPDX-License-Identifier: Apache-2.0 */
#include "device.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>

#include <unistd.h>

#include <streampool/runtime.h>
#include <streampool/storage.h>

#include "arguments.hpp"
#include "errors.hpp"
#include "gil.hpp"

namespace nb = nanobind;

namespace py
{

namespace
{

sp_device opened(const char *kind)
{
    sp_device handle;
    check(unlocked([&] { return sp_device_open(kind, &handle); }));
    return handle;
}

bool is_open(sp_device device)
{
    sp_device_info info;
    return device.bits != 0 && sp_device_get_info(device, &info) == SP_OK;
}

/* What "null" names where no object is made: one device, opened by the first use, and again by the
 * first after a close. */
sp_device shared_null()
{
    static std::atomic<sp_device> null = {}; /* process-wide */
    sp_device known = null;
    if (is_open(known)) return known;
    const sp_device own = opened("null");
    if (null.compare_exchange_strong(known, own)) return own;
    check(unlocked([&] { return sp_device_close(own); })); /* another thread was first */
    return known;
}

void open(Device *self, const TextArgument &kind)
{
    new (self) Device{opened(text_of(kind, "kind"))};
}

sp_device_info info_of(const Device &device)
{
    sp_device_info info;
    check(sp_device_get_info(device.handle, &info));
    return info;
}

sp_memory_stats stats_of(nb::handle device)
{
    sp_memory_stats stats;
    check(sp_device_get_memory_stats(device_of(device), &stats));
    return stats;
}

Counters memory_stats(nb::handle device)
{
    const sp_memory_stats stats = stats_of(device);
    Counters all;
#define SP_PY_FIELD(name) all[#name] = stats.name
    SP_PY_FIELD(in_use_bytes);
    SP_PY_FIELD(cached_bytes);
    SP_PY_FIELD(reserved_bytes);
    SP_PY_FIELD(peak_bytes);
    SP_PY_FIELD(allocations);
    SP_PY_FIELD(frees);
    SP_PY_FIELD(device_allocations);
    SP_PY_FIELD(waits);
    SP_PY_FIELD(pinned_bytes);
#undef SP_PY_FIELD
    return all;
}

void set_memory_fraction(const FloatArgument &given, nb::handle device)
{
    const double fraction = number_of(given, "fraction");
    const Device chosen = {device_of(device)};
    if (!(fraction > 0 && fraction <= 1))
        raise_value("fraction is %g; it can be above 0 and at most 1", fraction);
    const double bytes = static_cast<double>(info_of(chosen).memory_bytes) * fraction;
    check(sp_device_set_memory_limit(chosen.handle, bytes < 1 ? 1 : static_cast<uint64_t>(bytes)));
}

/* A call of the library by a thread of its own, which an interrupted caller leaves behind. */
class LeftCall
{
  public:
    template <class Call> explicit LeftCall(Call call)
    {
        std::thread([shared = state, call] {
            const sp_status status = call();
            const std::string message = status == SP_OK ? "" : sp_last_error();
            const std::lock_guard<std::mutex> guard(shared->lock);
            shared->is_over = true;
            shared->status = status;
            shared->message = message;
            shared->changed.notify_all();
        }).detach();
    }
    /* Of the main thread: until the call has returned, or what a signal handler raises. */
    void wait()
    {
        const pid_t caller = getpid();
        const sp_status status = wait_unlocked(-1, [&](int64_t timeout_ns) {
            if (getpid() != caller) return SP_FORKED; /* by a handler; the thread is not here */
            std::unique_lock<std::mutex> guard(state->lock);
            const auto timeout = std::chrono::nanoseconds(timeout_ns);
            return state->changed.wait_for(guard, timeout, [&] { return state->is_over; })
                       ? SP_OK
                       : SP_TIMEOUT;
        });
        if (status != SP_OK) raise(status, "a forked child waits no more");
    }
    /* Once it is over. */
    void check_status() const
    {
        if (state->status != SP_OK) raise(state->status, state->message.c_str());
    }

  private:
    struct State {
        std::mutex lock; /* guards the others */
        std::condition_variable changed;
        bool is_over = false;
        sp_status status = SP_OK;
        std::string message;
    };
    const std::shared_ptr<State> state = std::make_shared<State>();
};

/* A wait of the main thread is cut into slices. Each call of the library begins a new wait, which
 * includes what other threads have submitted meanwhile, so that slices might never end: but for the
 * first moment another thread waits, in one call, and the slices are those of waits for it. */
sp_status synchronize(sp_device device)
{
    if (!is_main_thread()) return unlocked([&] { return sp_device_synchronize(device); });
    const auto wait_for = [&](int64_t ns) { return sp_device_synchronize_for(device, ns); };
    /* What the interrupted wait keeps from ending is found for this thread alone. */
    if (SignalCheck::is_inside()) return wait_unlocked(-1, wait_for);
    sp_status status = unlocked([&] { return wait_for(1'000'000); });
    if (status != SP_TIMEOUT) return status;
    LeftCall([=] { return sp_device_synchronize(device); }).wait();
    status = wait_for(0); /* for this thread's failures */
    return status == SP_TIMEOUT ? SP_OK : status;
}

/* What an interrupted wait leaves behind still closes the device, which takes no work any more. */
void close(const Device &device)
{
    const sp_device handle = device.handle;
    if (!is_main_thread()) {
        check(unlocked([&] { return sp_device_close(handle); }));
        return;
    }
    if (SignalCheck::is_inside()) check(synchronize(handle));
    LeftCall call([=] { return sp_device_close(handle); });
    call.wait();
    call.check_status();
}

uint32_t device_count()
{
    check(sp_init());
    return sp_device_count();
}

void bind_class(nb::module_ &m)
{
    nb::class_<Device>(m, "Device", "A device.")
        .def("__init__", open, nb::arg("kind"),
             "\"cpu\", \"null\" (a new simulated accelerator each time) or \"cuda:0\".")
        .def_prop_ro(
            "name", [](const Device &d) { return nb::str(info_of(d).name); },
            "As it is opened: \"cpu\", \"cuda:0\".")
        .def_prop_ro(
            "kind", [](const Device &d) { return nb::str(info_of(d).kind); },
            "\"cpu\", \"cuda\" or \"null\".")
        .def_prop_ro(
            "memory_bytes", [](const Device &d) { return info_of(d).memory_bytes; },
            "Bytes of memory that the device has.")
        .def_prop_ro(
            "width", [](const Device &d) { return info_of(d).width; },
            "Streams that execute at the same time.")
        .def_prop_ro(
            "run_slots", [](const Device &d) { return info_of(d).run_slots; },
            "Runs of models that compute at the same time.")
        .def_prop_ro(
            "stream_count", [](const Device &d) { return info_of(d).stream_count; },
            "Size of the pool of streams.")
        .def("close", close,
             "Waits for all accepted work and closes the device. ValueError for cpu. After an "
             "exception of a signal handler the device is closed when that work is done.")
        .def(
            "__eq__",
            [](const Device &a, nb::handle b) {
                return is_instance<Device>(b) &&
                       nb::inst_ptr<Device>(b)->handle.bits == a.handle.bits;
            },
            nb::arg("other").none())
        .def("__hash__", [](const Device &d) { return d.handle.bits; })
        .def("__repr__", [](const Device &d) {
            sp_device_info info;
            const sp_status status = sp_device_get_info(d.handle, &info);
            if (status != SP_OK) return unknown_text("Device", status);
            return nb::str("streampool.Device('{}')").format(info.name);
        });
}

void bind_memory_calls(nb::module_ &m)
{
    m.def("memory_stats", memory_stats, nb::arg("device").none() = "cpu",
          "The counters of the device's allocator, in bytes and numbers, by name.");
    m.def(
        "current_allocated_memory", [](nb::handle d) { return stats_of(d).in_use_bytes; },
        nb::arg("device").none() = "cpu", "Bytes in live tensors, models and runs.");
    m.def(
        "driver_allocated_memory", [](nb::handle d) { return stats_of(d).reserved_bytes; },
        nb::arg("device").none() = "cpu",
        "Bytes that the allocator has from the device: in use, and cached for reuse.");
    m.def(
        "max_memory_allocated", [](nb::handle d) { return stats_of(d).peak_bytes; },
        nb::arg("device").none() = "cpu",
        "The highest driver_allocated_memory(), since reset_peak_memory_stats().");
    m.def(
        "reset_peak_memory_stats",
        [](nb::handle d) { check(sp_device_reset_peak_memory(device_of(d))); },
        nb::arg("device").none() = "cpu",
        "max_memory_allocated() begins again at what is allocated now.");
    m.def(
        "recommended_max_memory",
        [](nb::handle d) { return info_of(Device{device_of(d)}).memory_bytes; },
        nb::arg("device").none() = "cpu", "Bytes of memory that the device has.");
    m.def(
        "empty_cache",
        [](nb::handle d) {
            const sp_device device = device_of(d);
            check(unlocked([&] { return sp_device_empty_cache(device); }));
        },
        nb::arg("device").none() = "cpu", "Returns unused cached memory to the device.");
    m.def("set_per_process_memory_fraction", set_memory_fraction, nb::arg("fraction"),
          nb::arg("device").none() = "cpu",
          "Limits the allocator to a part of the device's memory, above 0 and at most 1 "
          "(ValueError).");
}

} // namespace

sp_device device_of(nb::handle device)
{
    if (nb::isinstance<Device>(device)) {
        return instance_of<Device>(device, "device", "a Device").handle;
    }
    if (!PyUnicode_Check(device.ptr())) raise_kind("device", "a Device or its name", device);
    const char *name = text_of(device, "device");
    return strcmp(name, "null") == 0 ? shared_null() : opened(name);
}

void bind_device(nb::module_ &m)
{
    bind_class(m);
    bind_memory_calls(m);
    m.def("version", [] { return nb::str(sp_version()); }, "The version of the library.");
    m.def(
        "device", [](nb::handle d) { return Device{device_of(d)}; }, nb::arg("name").none() = "cpu",
        "The device of that name: \"cpu\", \"cuda:0\", or \"null\", one simulated accelerator. A "
        "Device is returned as it is.");
    m.def(
        "is_available", [] { return device_count() > 0; },
        "Whether the library has a device to run on.");
    m.def("device_count", device_count, "The number of open devices; the cpu is always open.");
    m.def(
        "synchronize", [](nb::handle d) { check(synchronize(device_of(d))); },
        nb::arg("device").none() = "cpu",
        "Waits until everything submitted to any stream of the device has completed. Raises the "
        "Error of a command of this thread that has failed.");
}

} // namespace py
