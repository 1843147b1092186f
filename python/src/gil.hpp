/* SPDX-License-Identifier: Apache-2.0 */
/* The interpreter's lock. nanobind's own guards take it in a destructor without asking whether the
 * interpreter still runs, which aborts at exit: see exit_guard.h. */
#ifndef SP_PYTHON_GIL_HPP
#define SP_PYTHON_GIL_HPP

#include <nanobind/nanobind.h>

#include <algorithm>
#include <chrono>

#include <unistd.h>

#include <streampool/storage.h>

#include "arguments.hpp"
#include "exit_guard.h"
#include "lock_turn.h"

namespace py
{

#ifdef Py_GIL_DISABLED
constexpr bool has_gil = false;
#else
constexpr bool has_gil = true;
#endif

/* A scope without the lock. After the interpreter's end its thread never returns. */
class Unlocked
{
  public:
    Unlocked()
    {
        give();
    }
    ~Unlocked()
    {
        take();
    }
    Unlocked(const Unlocked &) = delete;
    Unlocked &operator=(const Unlocked &) = delete;

    /* With the lock, for the time of the call. */
    template <class Call> auto locked(Call call)
    {
        take();
        const auto result = call();
        give();
        return result;
    }

  private:
    void give()
    {
        state = PyEval_SaveThread();
        if constexpr (has_gil) sp_py_turn_end();
    }
    void take()
    {
        if constexpr (has_gil) sp_py_turn_await();
        if (!sp_py_guard_begin_take()) sp_py_park();
        PyEval_RestoreThread(state);
        sp_py_guard_end_take();
        if constexpr (has_gil) sp_py_turn_begin(sp_py_turn_clock());
    }

    PyThreadState *state;
};

template <class Call> auto unlocked(Call call)
{
    const Unlocked scope;
    return call();
}

/* Python runs signal handlers on the main thread. */
inline bool is_main_thread()
{
    static thread_local const bool is_main = gettid() == getpid(); /* two calls of the system */
    return is_main;
}

/* In the scope calls of the thread wait for room on a full stream. */
class RoomWait
{
  public:
    RoomWait() : RoomWait(true) {}
    ~RoomWait()
    {
        set(former);
    }
    RoomWait(const RoomWait &) = delete;
    RoomWait &operator=(const RoomWait &) = delete;

  protected:
    explicit RoomWait(bool waits) : former(is_set())
    {
        set(waits);
    }

  private:
    static bool &is_set()
    {
        static thread_local bool is;
        return is;
    }
    static void set(bool waits)
    {
        if (is_set() != waits) (void)sp_thread_set_wait_for_room(waits);
        is_set() = waits;
    }

    const bool former;
};

/* In the scope they do not: of Python code that runs inside of a call which waits. */
class NoRoomWait : RoomWait
{
  public:
    NoRoomWait() : RoomWait(false) {}
};

/* While the library waits on the main thread, in the scope, for what a call can do without,
 * Python's signal handlers run. What one raises ends the wait. */
class SignalCheck
{
  public:
    explicit SignalCheck(Unlocked &of) : scope(of)
    {
        if (is_main_thread()) is_set = sp_thread_set_wait_check(ask, this) == SP_OK;
    }
    ~SignalCheck()
    {
        if (is_set) (void)sp_thread_set_wait_check(nullptr, nullptr);
    }
    SignalCheck(const SignalCheck &) = delete;
    SignalCheck &operator=(const SignalCheck &) = delete;

    bool has_raised() const
    {
        return is_raised;
    }

    /* Does the thread run a handler inside of a wait? */
    static bool is_inside()
    {
        return depth() > 0;
    }

  private:
    static sp_status ask(void *ctx)
    {
        auto *self = static_cast<SignalCheck *>(ctx);
        if (self->is_raised) return SP_CANCELLED;
        const NoRoomWait handlers;
        depth()++;
        self->is_raised = self->scope.locked([] { return PyErr_CheckSignals() != 0; });
        depth()--;
        return self->is_raised ? SP_CANCELLED : SP_OK;
    }
    static uint32_t &depth()
    {
        static thread_local uint32_t count;
        return count;
    }

    Unlocked &scope;
    bool is_set = false;
    bool is_raised = false;
};

/* Whether what a signal handler has raised ended the thread's last unlocked_wait. */
inline bool &was_interrupted()
{
    static thread_local bool was;
    return was;
}

/* A call that may wait for elements of a Tensor, for memory, for room on a stream or for its turn,
 * without the lock. If what a signal handler has raised ended the wait, that is Python's current
 * exception, and check() throws it. */
template <class Call> sp_status unlocked_wait(Call call)
{
    Unlocked scope;
    const RoomWait room;
    const SignalCheck signals(scope);
    const sp_status status = call();
    was_interrupted() = signals.has_raised();
    return signals.has_raised() ? SP_CANCELLED : status;
}

/* A wait without the lock. On the main thread it is cut into slices, between which Python's signal
 * handlers run: KeyboardInterrupt ends it. `wait(ns)` returns SP_TIMEOUT if it is not over yet. */
template <class Wait> sp_status wait_unlocked(int64_t timeout_ns, Wait wait)
{
    using clock = std::chrono::steady_clock;
    constexpr int64_t slice_ns = 20'000'000;
    const bool is_main = is_main_thread();
    const auto begin = clock::now();
    for (;;) {
        int64_t rest_ns = -1;
        if (timeout_ns >= 0) {
            const auto spent = std::chrono::nanoseconds(clock::now() - begin).count();
            rest_ns = std::max<int64_t>(timeout_ns - spent, 0);
        }
        const bool is_slice = is_main && (rest_ns < 0 || rest_ns > slice_ns);
        const int64_t now_ns = is_slice ? slice_ns : rest_ns;
        const sp_status status = unlocked([&] { return wait(now_ns); });
        if (is_main && PyErr_CheckSignals() != 0) throw nanobind::python_error();
        if (status != SP_TIMEOUT || !is_slice) return status;
    }
}

/* Seconds as nanoseconds; None: no limit. */
inline int64_t timeout_of(nanobind::handle seconds)
{
    if (seconds.is_none()) return -1;
    const double value = number_of(seconds, "timeout");
    if (!(value > 0)) return 0;
    return value > 9e9 ? -1 : static_cast<int64_t>(value * 1e9);
}

} // namespace py

#endif
