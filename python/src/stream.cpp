/* SPDX-License-Identifier: Apache-2.0 */
#include "stream.hpp"

#include <algorithm>
#include <iterator>
#include <new>
#include <vector>

#include "arguments.hpp"
#include "device.hpp"
#include "errors.hpp"
#include "gil.hpp"

namespace nb = nanobind;

namespace py
{

namespace
{

/* By their names in the stubs. */
class StreamObject : public nb::object
{
    NB_OBJECT(StreamObject, nb::object, "_core.Stream", nb::isinstance<Stream>)
};

class EventObject : public nb::object
{
    NB_OBJECT(EventObject, nb::object, "_core.Event", nb::isinstance<Event>)
};

const Stream &stream_of(nb::handle object)
{
    return instance_of<Stream>(object, "stream", "a Stream");
}

/* `with streampool.stream(s)`; one object may be entered several times, by several threads. */
class Scope
{
  public:
    explicit Scope(nb::object of) : stream(std::move(of))
    {
        (void)stream_of(stream);
    }
    const nb::object stream;
};

/* The scopes that a thread has entered, outermost first. They need not be left in that order: those
 * of tasks of an event loop overlap. The newest is never one that was left, but for the time of
 * leave(). A scope that is not left keeps its stream, which is the thread's, until the thread ends.
 */
class EnteredScopes
{
  public:
    /* Of the calling thread: an object in the dictionary that Python has for it. */
    static EnteredScopes &of_thread();

    void enter(nb::handle_t<Scope> scope)
    {
        sp_stream_guard guard;
        check(sp_stream_guard_begin(stream_of(nb::cast<Scope &>(scope).stream).handle, &guard));
        all.push_back({nb::borrow(scope), guard, false});
    }
    void leave(nb::handle_t<Scope> scope)
    {
        const auto is_it = [&](const Entered &e) { return e.scope.is(scope) && !e.is_left; };
        const auto found = std::find_if(all.rbegin(), all.rend(), is_it);
        if (found == all.rend()) raise(SP_INVALID, "this thread has not entered the scope");
        found->is_left = true;
        while (!all.empty() && all.back().is_left) {
            const Entered newest = std::move(all.back());
            all.pop_back();
            check(sp_stream_guard_end(&newest.guard));
        }
    }

  private:
    struct Entered {
        nb::object scope;
        sp_stream_guard guard;
        bool is_left;
    };
    std::vector<Entered> all;
};

EnteredScopes &EnteredScopes::of_thread()
{
    constexpr const char *key = "streampool.scopes";
    PyObject *dict = PyThreadState_GetDict(); /* borrowed */
    if (dict == nullptr) throw std::bad_alloc();
    if (PyObject *known = PyDict_GetItemString(dict, key))
        return nb::cast<EnteredScopes &>(nb::handle(known));
    const nb::object made = nb::cast(new EnteredScopes(), nb::rv_policy::take_ownership);
    if (PyDict_SetItemString(dict, key, made.ptr()) != 0) throw nb::python_error();
    return nb::cast<EnteredScopes &>(made);
}

StreamObject enter_scope(nb::handle_t<Scope> scope)
{
    EnteredScopes::of_thread().enter(scope);
    return nb::borrow<StreamObject>(nb::cast<Scope &>(scope).stream);
}

sp_stream current_of(sp_device device)
{
    sp_stream handle;
    check(unlocked([&] { return sp_stream_current(device, &handle); }));
    return handle;
}

/* None: the thread's current stream of cpu. */
sp_stream stream_or_current(nb::handle stream)
{
    return stream.is_none() ? current_of({}) : stream_of(stream).handle;
}

void new_stream(Stream *self, nb::handle device)
{
    sp_stream handle;
    const sp_device chosen = device_of(device);
    check(unlocked([&] { return sp_stream_from_pool(chosen, &handle); }));
    new (self) Stream(handle, true);
}

Stream *current_stream(nb::handle device)
{
    return new Stream(current_of(device_of(device)), false);
}

Stream *default_stream(nb::handle device)
{
    sp_stream handle;
    check(sp_stream_default(device_of(device), &handle));
    return new Stream(handle, false);
}

/* False: not ready yet. */
bool is_done(sp_status status)
{
    if (status == SP_NOT_READY) return false;
    check(status);
    return true;
}

void event_wait(const Event &event, nb::handle timeout)
{
    check(wait_unlocked(timeout_of(timeout),
                        [&](int64_t ns) { return sp_event_synchronize_for(event.handle, ns); }));
}

const Event &event_of(nb::handle object, const char *what)
{
    return instance_of<Event>(object, what, "an Event");
}

double elapsed_ms(const Event &start, const EventArgument &given)
{
    int64_t ns;
    const Event &end = event_of(given, "end");
    event_wait(start, nb::none());
    event_wait(end, nb::none());
    check(unlocked([&] { return sp_event_elapsed(start.handle, end.handle, &ns); }));
    return static_cast<double>(ns) / 1e6;
}

Counters info_of(const Stream &stream)
{
    sp_stream_info info;
    Counters all;
    check(sp_stream_get_info(stream.handle, &info));
#define SP_PY_FIELD(name) all[#name] = info.name
    SP_PY_FIELD(index);
    SP_PY_FIELD(holders);
    SP_PY_FIELD(submissions);
    SP_PY_FIELD(done);
    SP_PY_FIELD(failed);
    SP_PY_FIELD(commits);
    SP_PY_FIELD(by_workers);
    SP_PY_FIELD(by_helpers);
    SP_PY_FIELD(by_host);
#undef SP_PY_FIELD
    return all;
}

void stream_wait(sp_stream stream, const Event &event)
{
    check(unlocked_wait([&] { return sp_stream_wait_event(stream, event.handle); }));
}

/* With the lock, unless it has to wait for room. */
void record(const Event &event, sp_stream stream)
{
    sp_status status = sp_event_record(event.handle, stream);
    if (status == SP_BUSY) {
        status = unlocked_wait([&] { return sp_event_record(event.handle, stream); });
    }
    check(status);
}

/* The event, or a new one for None. */
EventObject record_event(const Stream &stream, nb::handle given)
{
    nb::object event = nb::borrow(given);
    if (given.is_none()) event = nb::cast(new Event(false), nb::rv_policy::take_ownership);
    record(event_of(event, "event"), stream.handle);
    return nb::borrow<EventObject>(event);
}

void bind_stream_class(nb::module_ &m)
{
    nb::class_<Stream>(m, "Stream", "An in-order queue of commands on a device.")
        .def("__init__", new_stream, nb::arg("device").none() = "cpu",
             "A stream of the device's pool, leased until the object is forgotten.")
        .def(
            "synchronize",
            [](const Stream &s, nb::handle timeout) {
                check(wait_unlocked(timeout_of(timeout), [&](int64_t ns) {
                    return sp_stream_synchronize_for(s.handle, ns);
                }));
            },
            nb::arg("timeout") = nb::none(),
            "Waits for everything submitted so far, at most `timeout` seconds (TimeoutError).")
        .def_prop_ro(
            "cuda_stream",
            [](const Stream &s) {
                sp_stream_info info;
                check(sp_stream_get_info(s.handle, &info));
                return reinterpret_cast<uintptr_t>(info.native);
            },
            "The CUstream behind a stream of a GPU, as a number; else 0.")
        .def(
            "query", [](const Stream &s) { return is_done(sp_stream_query(s.handle)); },
            "Whether everything submitted has completed.")
        .def(
            "wait_event",
            [](const Stream &s, const EventArgument &e) {
                stream_wait(s.handle, event_of(e, "event"));
            },
            nb::arg("event"), "Later commands of the stream wait, on the device, for the event.")
        .def(
            "wait_stream",
            [](const Stream &s, const StreamArgument &other) {
                const nb::object event = record_event(stream_of(other), nb::none());
                stream_wait(s.handle, nb::cast<const Event &>(event));
            },
            nb::arg("stream"),
            "Later commands of this stream wait for everything submitted to the other one so far.")
        .def("record_event", record_event, nb::arg("event") = nb::none(),
             "Records an event, a new one by default, on this stream, and returns it.")
        .def(
            "flush", [](const Stream &s) { check(sp_stream_flush(s.handle)); },
            "Starts submitted work now.")
        .def("info", info_of, "Counters of the stream, by name.")
        .def(
            "__eq__",
            [](const Stream &a, nb::handle b) {
                return is_instance<Stream>(b) &&
                       nb::inst_ptr<Stream>(b)->handle.bits == a.handle.bits;
            },
            nb::arg("other").none())
        .def("__hash__", [](const Stream &s) { return s.handle.bits; });
}

void bind_stream_calls(nb::module_ &m)
{
    nb::class_<Scope>(m, "stream",
                      "`with streampool.stream(s):` makes `s` the thread's current stream of its "
                      "device.")
        .def(nb::init<nb::object>(), nb::arg("stream").none())
        .def("__enter__", enter_scope)
        .def("__exit__", [](nb::handle_t<Scope> scope, const nb::args &) {
            EnteredScopes::of_thread().leave(scope);
        });
    nb::class_<EnteredScopes>(m, "EnteredScopes", "The scopes that a thread has entered.");
    m.def("current_stream", current_stream, nb::rv_policy::take_ownership,
          nb::arg("device").none() = "cpu", "The calling thread's current stream of the device.");
    m.def("default_stream", default_stream, nb::rv_policy::take_ownership,
          nb::arg("device").none() = "cpu",
          "The default stream of the device, which is the main thread's.");
    m.def(
        "release_current_thread_slot",
        [] { check(unlocked([] { return sp_thread_release_stream(); })); },
        "Gives the calling thread's own streams back to their pools before it ends.");
}

} // namespace

Event::Event(bool enable_timing)
{
    const sp_event_options options = {.enable_timing = enable_timing};
    check(sp_event_create(&options, &handle));
}

void bind_stream(nb::module_ &m)
{
    nb::class_<Event>(m, "Event", "A recorded point of a stream.")
        .def(
            "__init__",
            [](Event *self, const BoolArgument &with_timing) {
                new (self) Event(truth_of(with_timing));
            },
            nb::arg("enable_timing") = false, "With `enable_timing` records also take the time.")
        .def(
            "record",
            [](const Event &e, nb::handle stream) { record(e, stream_or_current(stream)); },
            nb::arg("stream") = nb::none(),
            "Records everything submitted to the stream so far; None: the thread's current one.")
        .def(
            "wait",
            [](const Event &e, nb::handle stream) { stream_wait(stream_or_current(stream), e); },
            nb::arg("stream") = nb::none(),
            "Later commands of the stream wait for the last record; None: the thread's current "
            "stream.")
        .def(
            "query", [](const Event &e) { return is_done(sp_event_query(e.handle)); },
            "Whether the last record was reached. ValueError if there is none.")
        .def("synchronize", event_wait, nb::arg("timeout") = nb::none(),
             "Waits for the last record, at most `timeout` seconds (TimeoutError).")
        .def("elapsed_time", elapsed_ms, nb::arg("end"),
             "Milliseconds from this event's record to that of `end`. Waits for both; ValueError "
             "for an event without timing.");
    bind_stream_class(m);
    bind_stream_calls(m);
}

} // namespace py
