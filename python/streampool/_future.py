# SPDX-License-Identifier: Apache-2.0
"""Futures of submitted runs, and the threads and event loops that complete them.

A thread of the library only pushes a finished run to a list. Of a run that was submitted in an event
loop, the loop drains the list, many runs at one wake-up; of others a thread of its own.
"""
import _thread
import atexit
import collections
import concurrent.futures
import functools
import logging
import os
import sys
import threading
import time
import typing
import weakref

from . import _core
from ._errors import Status

_FINISHED = concurrent.futures._base.FINISHED

_log = logging.getLogger("streampool")

_taken_futures = set()  # which the main thread has the outcome of, and no other thread has completed yet

_is_in_child = False  # in a forked child
_get_running_loop = None  # of asyncio, once something has imported it
_modules_without_asyncio = 0


def find_asyncio():
    """Notes whether asyncio has been imported, unless it is known or no module has been imported since.

    A lookup in sys.modules may lock it for all threads, so it is done only where there are new modules.
    """
    global _get_running_loop, _modules_without_asyncio
    count = len(sys.modules)
    if _get_running_loop is not None or count == _modules_without_asyncio:
        return
    events = sys.modules.get("asyncio.events")
    if events is None:
        _modules_without_asyncio = count
    elif not getattr(events.__spec__, "_initializing", False):  # its function is replaced at the end
        _get_running_loop = events._get_running_loop


def _running_loop():
    """The event loop of the calling thread, or None. asyncio, which is slow to import, is not."""
    if _get_running_loop is None:
        find_asyncio()
    return None if _get_running_loop is None else _get_running_loop()


class _Condition(_thread.RLock):
    """threading.Condition, but entered and left by C code: an exception of a signal handler cannot
    end the entry with the lock taken."""

    def __init__(self):
        self._waiters = collections.deque()

    wait = threading.Condition.wait
    wait_for = threading.Condition.wait_for
    notify = threading.Condition.notify
    notify_all = threading.Condition.notify_all


class Future(concurrent.futures.Future):
    """The result of a submitted run: a future of concurrent.futures that can also be awaited.

    The run is in flight from the start, so cancel() is a request: it returns False, and the future
    ends with CancelledError if it came in time, as the exception of the run: cancelled() is False.
    """

    def __init__(self, run, finish):
        super().__init__()
        self._condition = _Condition()
        self._awaiters = []  # futures of event loops; appended with the lock, while the run is in flight
        self._run = run
        self._finish = finish
        self._taken = None
        self.set_running_or_notify_cancel()

    def _outcome(self):
        """(True, result) or (False, exception) of a run that is done; None: the future has it. Raises what
        the making of the result does, or a signal handler meanwhile."""
        if self._taken is not None:
            return self._taken
        outcome = self._run.finish()
        if outcome is None:
            return None
        is_ok, value = outcome
        return is_ok, self._finish(value) if is_ok else _exception_of(value)

    def _complete(self):
        """Sets the result of a run that is done; the first of several threads does it. Not in a thread with
        signal handlers, whose exceptions could end it anywhere, if there is another one."""
        try:
            outcome = self._outcome()
        except Exception as error:
            outcome = False, error
        if outcome is None:
            return
        is_ok, value = outcome
        try:
            if is_ok:
                self.set_result(value)
            else:
                self.set_exception(value)
        except concurrent.futures.InvalidStateError:  # set by another thread, or a call that was ended
            self._invoke_callbacks()
        self._forget()

    def _is_kept(self, timeout):
        """Whether another thread keeps a lock that a completion needs, perhaps for good: an exception of a
        signal handler can end concurrent.futures.wait() with locks taken."""
        locks = [self._condition]
        for waiter in self._waiters.copy():
            locks.append(waiter.event._cond)
            if hasattr(waiter, "lock"):
                locks.append(waiter.lock)
        for lock in locks:
            if not lock.acquire(timeout=timeout):
                return True
            lock.release()
        return False

    def _complete_if_free(self, timeout):
        if self._is_kept(timeout):
            return False
        self._complete()
        return True

    def _complete_if_alone(self):
        """In a thread with signal handlers: each step can be done again. False: other threads wait for
        the future, and must be notified by one without."""
        outcome = self._outcome()
        if outcome is None:
            return True
        with self._condition:
            if self._waiters or self._condition._waiters:
                return False
            self._settle(*outcome)
        self._invoke_callbacks()
        self._forget()
        return True

    def _settle(self, is_ok, value):
        if self._state == _FINISHED:
            return
        if is_ok:
            self._result = value
        else:
            self._exception = value
        self._state = _FINISHED

    def _forget(self):
        _taken_futures.discard(self)
        self._run.forget()  # last: what was ended before is done again

    def _invoke_callbacks(self):
        """Of the base class, too: calls each once, and keeps none."""
        for waiter in self._awaiters.copy():  # the awaiting tasks remove them
            _wake(waiter)
        is_left = True
        while is_left:
            try:
                is_left = _core.call_next(self._done_callbacks, self)
            except Exception:
                logging.getLogger("concurrent.futures").exception("exception calling callback for %r", self)

    def _known(self):
        """(True, result) or (False, exception), without a lock, which a forked child might never get; None:
        not yet."""
        if self._taken is not None:
            return self._taken
        if self._state != _FINISHED:  # written last
            return None
        return (True, self._result) if self._exception is None else (False, self._exception)

    def _wait(self, timeout):
        """What is known then. Waits in the library, which needs no other thread to complete the future. Nor
        does the caller, who could be ended by a signal handler anywhere, and is not to call callbacks: the
        drainer or the event loop does it."""
        known = self._known()
        if known is not None:
            return known
        if not self._run.wait(timeout):
            raise TimeoutError("the run is not done yet")
        outcome = self._outcome()
        if outcome is not None:
            _taken_futures.add(self)
            self._taken = outcome
            if self._state == _FINISHED:
                _taken_futures.discard(self)
            if not has_drainer():
                self._complete()
        return self._known()

    def _after_fork(self):
        """In the child, of a future that was taken: calls no callback, as the parent does."""
        if not self._condition._is_owned():
            self._condition._at_fork_reinit()
        self._done_callbacks.clear()
        if self._taken is not None:
            self._settle(*self._taken)

    def done(self) -> bool:
        """Whether the result can be had at once."""
        return self._known() is not None

    def running(self) -> bool:
        """Whether it cannot yet."""
        return self._known() is None

    def result(self, timeout: "float | None" = None) -> typing.Any:
        """The result of the run; waits for it, at most `timeout` seconds.

        Raises TimeoutError, CancelledError, or what the run has failed with.
        """
        is_ok, value = self._wait(timeout)
        if is_ok:
            return value
        try:
            raise value
        finally:
            self = value = None  # the exception has this frame

    def exception(self, timeout: "float | None" = None) -> "BaseException | None":
        """The exception of the run, or None; waits as result()."""
        is_ok, value = self._wait(timeout)
        return None if is_ok else value

    def cancel(self) -> bool:
        """Asks the run to end early. Returns False, since it has begun."""
        if not self.done():
            self._run.cancel()
        return False

    def __await__(self) -> "typing.Generator[typing.Any, None, typing.Any]":
        if self._known() is None:
            if _is_in_child:
                self._run.wait(0)  # raises FORKED: no thread of this process completes the run
            loop = _running_loop()
            if loop is None:
                raise RuntimeError("a future is awaited in a running event loop")
            yield from self._end_in(loop)
        return self.result()

    def _end_in(self, loop):
        waiter = loop.create_future()
        with self._condition:
            if self._state == _FINISHED:
                return
            self._awaiters.append(waiter)
        try:
            yield from waiter
        except BaseException:  # the task was cancelled
            self.cancel()
            raise
        finally:  # a future that is kept does not keep the loop
            self._awaiters.remove(waiter)


def _is_main_thread():
    return threading.current_thread() is threading.main_thread()


def _exception_of(error):
    if getattr(error, "status", None) == Status.CANCELLED:
        return concurrent.futures.CancelledError(str(error))
    return error


def _set_done(waiter):
    if not waiter.done():
        waiter.set_result(None)


def _wake(waiter):
    loop = waiter.get_loop()
    if _running_loop() is loop:
        _set_done(waiter)
        return
    try:
        loop.call_soon_threadsafe(_set_done, waiter)
    except RuntimeError:
        if not loop.is_closed():
            raise
        # nothing waits in it


# ---- the drainer: a thread for runs that were submitted outside of event loops ----

_lock = threading.Lock()
_drainer = None
_is_ending = False
_LOOK_MS = 100  # between looks at what cannot wake the drainer: locks that are kept, and loops that stop


def _complete_all(completions, complete_last):
    """Completes the futures whose runs are done. What an exception ends before its end, as that of a signal
    handler may anywhere, is found again."""
    done = []
    try:
        completions.take(done)
        while done:
            complete_last(done)
    finally:
        if done:
            completions.put_back(done)


def _drain_until_the_end():
    kept = []

    def complete_last(done):
        if not done[-1]._complete_if_free(timeout=0.001 if kept else 0.1):
            kept.append(done[-1])
        done.pop()

    next_look = 0
    while not _is_ending:
        _core.wait_for_drain(_LOOK_MS if kept or _loop_lists else -1)
        try:
            _core.memory_list.take([])
            _complete_all(_core.default_list, complete_last)
            if time.monotonic() < next_look:
                continue
            next_look = time.monotonic() + _LOOK_MS / 1000
            kept[:] = [future for future in kept if not future._complete_if_free(timeout=0)]
            for completions in _lists_of_stopped_loops():
                _complete_all(completions, complete_last)
        except BaseException:  # SystemExit in a callback; the base class logs other exceptions
            _log.exception("exception in a callback of a future")


def _make_drainer(is_made):
    """In a thread without signal handlers: what one raises in Thread.start() may end the new thread."""
    global _drainer
    try:
        with _lock:
            if _drainer is None and not _is_ending:
                thread = threading.Thread(target=_drain_until_the_end, name="streampool", daemon=True)
                thread.start()
                _drainer = thread
    except RuntimeError:  # no thread can be started
        pass
    finally:
        is_made.release()


def start_drainer():
    """Starts the thread that completes futures, unless it runs.

    From Python 3.12 on none can be started once the main thread has ended.
    """
    if _drainer is not None or _is_ending:
        return
    is_made = _thread.allocate_lock()
    is_made.acquire()
    try:
        _thread.start_new_thread(_make_drainer, (is_made,))
    except RuntimeError as error:
        if not str(error).startswith("can't "):  # of a signal handler
            raise
        return
    is_made.acquire()


def has_drainer():
    """Whether the thread completes the runs of the default list."""
    return _drainer is not None and not _is_ending


def _end():
    """At exit, before the guard is closed: ends the drainer."""
    global _is_ending
    _is_ending = True
    if _drainer is not None:
        _core.default_list.wake()
        _drainer.join(timeout=1)


def _after_fork():
    global _drainer, _is_in_child, _lock
    _drainer = None
    _is_in_child = True
    _lock = threading.Lock()
    for completions in _loop_lists.values():
        completions.after_fork()
    while _taken_futures:
        _taken_futures.pop()._after_fork()


atexit.register(_end)
os.register_at_fork(after_in_child=_after_fork)

# ---- event loops ----

_loop_lists = weakref.WeakKeyDictionary()
_newest = None, None  # a weak reference to the loop that was looked up last, and its list


def _complete_last_in_loop(done):
    """The drainer completes what the loop cannot."""
    future = done[-1]
    try:
        if not has_drainer():
            future._complete()
        elif not (future._complete_if_alone() if _is_main_thread()
                  else future._complete_if_free(timeout=0)):
            _core.default_list.put_back([future])
    except Exception:  # of a signal handler, or in the making of the result: the drainer has no handlers
        _core.default_list.put_back([future])
        done.pop()
        raise
    done.pop()


class _Reader:
    """What a loop calls when runs are done. The loop has the only reference, which it drops when it
    is closed, or with itself."""

    def __init__(self, completions):
        self._completions = completions

    def __call__(self):
        try:
            _complete_all(self._completions, _complete_last_in_loop)
        except (KeyboardInterrupt, SystemExit):  # it ends the loop, and its frames keep this object
            self._completions.forward(_core.default_list)
            raise


def _list_of_loop(loop):
    start_drainer()  # for runs that outlive the loop
    completions = _core.CompletionList()
    reader = _Reader(completions)
    weakref.finalize(reader, _leave_loop, completions, weakref.ref(loop)).atexit = False
    try:
        loop.add_reader(completions.fileno(), reader)
    except NotImplementedError:  # a loop without file descriptors
        return _core.default_list
    global _newest
    _loop_lists[loop] = completions
    _core.default_list.wake()  # the drainer looks at loops from now on
    _newest = weakref.ref(loop, _forget), completions
    return completions


def _lists_of_stopped_loops():
    """Of loops that are not closed: they may never run again, and other threads and loops may wait."""
    loops = [ref() for ref in _loop_lists.keyrefs()]
    lists = [_loop_lists.get(loop) for loop in loops if loop is not None and not loop.is_running()]
    return [completions for completions in lists if completions is not None]


def _leave_loop(completions, loop):
    """The loop is closed, or gone; the drainer completes the rest."""
    completions.forward(_core.default_list)
    global _newest
    closed = loop()
    if closed is not None:
        _loop_lists.pop(closed, None)
        if _newest[1] is completions:
            _newest = None, None


def _forget(loop):
    global _newest
    if _newest[0] is loop:
        _newest = None, None


def current_list():
    """The list for runs that the calling thread submits now."""
    loop = _running_loop()
    if loop is None:
        start_drainer()
        return _core.default_list
    newest, completions = _newest  # many requests of one loop follow each other
    if newest is not None and newest() is loop:
        return completions
    known = _loop_lists.get(loop)
    return known if known is not None else _list_of_loop(loop)
