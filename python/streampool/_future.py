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
import typing
import weakref

from . import _core
from ._errors import Status

_log = logging.getLogger("streampool")


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
        self._run = run
        self._finish = finish
        self._taken = None
        self.set_running_or_notify_cancel()

    def _complete(self):
        """Sets the result of a run that is done; the first of several threads does it."""
        outcome = self._run.finish()
        if outcome is None:
            return
        is_ok, value = outcome
        raised = None
        try:
            if is_ok:
                value = self._finish(value)
        except Exception as error:
            is_ok, value = False, error
            raised = error
        try:
            if is_ok:
                self.set_result(value)
            else:
                self.set_exception(_exception_of(value))
        except concurrent.futures.InvalidStateError:  # set by another thread, or a call that was ended
            self._invoke_callbacks()
        else:
            raised = None
        self._run.forget()  # not before: an exception of a signal handler may end this call anywhere
        if raised is not None and threading.current_thread() is threading.main_thread():
            raise raised  # perhaps of a signal handler: the future does not have it

    def _invoke_callbacks(self):
        """Of the base class, too: calls each once, and keeps none."""
        while self._done_callbacks:
            try:
                callback = self._done_callbacks.pop(0)
            except IndexError:  # another thread was first
                break
            try:
                callback(self)
            except Exception:
                logging.getLogger("concurrent.futures").exception("exception calling callback for %r", self)

    def _complete_if_free(self, timeout):
        """False: another thread keeps the lock, perhaps for good. An exception of a signal handler can end
        concurrent.futures.wait() with locks taken."""
        if not self._condition.acquire(timeout=timeout):
            return False
        self._condition.release()
        self._complete()
        return True

    def _take(self):
        """What _complete sets, for the main thread, in which the exception of a signal handler could end
        that anywhere: another thread or the event loop does it. None: it is done, or about to be."""
        outcome = self._run.finish()
        if outcome is None:
            return None
        is_ok, value = outcome
        self._taken = is_ok, self._finish(value) if is_ok else _exception_of(value)
        return self._taken

    def _wait(self, timeout):
        """Waits in the library, which needs no other thread to complete the future. What _take gives."""
        if self._taken is not None or super().done():
            return self._taken
        if not self._run.wait(timeout):
            raise TimeoutError("the run is not done yet")
        if has_drainer() and threading.current_thread() is threading.main_thread():
            return self._take()
        self._complete()
        return None

    def done(self) -> bool:
        """Whether the result can be had at once."""
        return self._taken is not None or super().done()

    def running(self) -> bool:
        """Whether it cannot yet."""
        return not self.done()

    def result(self, timeout: "float | None" = None) -> typing.Any:
        """The result of the run; waits for it, at most `timeout` seconds.

        Raises TimeoutError, CancelledError, or what the run has failed with.
        """
        taken = self._wait(timeout)
        if taken is None:
            return super().result()
        is_ok, value = taken
        if not is_ok:
            raise value
        return value

    def exception(self, timeout: "float | None" = None) -> "BaseException | None":
        """The exception of the run, or None; waits as result()."""
        taken = self._wait(timeout)
        if taken is None:
            return super().exception()
        is_ok, value = taken
        return None if is_ok else value

    def cancel(self) -> bool:
        """Asks the run to end early. Returns False, since it has begun."""
        if not self.done():
            self._run.cancel()
        return False

    def __await__(self) -> "typing.Generator[typing.Any, None, typing.Any]":
        if self._taken is not None:
            return self.result()
        loop = _running_loop()
        if _is_in_child and not self.done():
            self._run.wait(0)  # raises FORKED: no thread of this process completes the run
        if loop is not None:
            waiter = loop.create_future()
            self.add_done_callback(functools.partial(_wake, loop, waiter))
            try:
                yield from waiter
            except BaseException:  # the task was cancelled
                self.cancel()
                raise
        elif not self.done():
            raise RuntimeError("a future is awaited in a running event loop")
        return super().result()


def _exception_of(error):
    if getattr(error, "status", None) == Status.CANCELLED:
        return concurrent.futures.CancelledError(str(error))
    return error


def _set_done(waiter):
    if not waiter.done():
        waiter.set_result(None)


def _wake(loop, waiter, _):
    if _get_running_loop() is loop:  # which is that of a loop
        _set_done(waiter)
        return
    try:
        loop.call_soon_threadsafe(_set_done, waiter)
    except RuntimeError:  # the loop was closed: nothing waits in it
        pass


# ---- the drainer: a thread for runs that were submitted outside of event loops ----

_lock = threading.Lock()
_drainer = None
_is_ending = False


def _complete_all(completions, kept=None):
    """Completes the futures whose runs are done, but with `kept` those that another thread keeps, which
    are added to it. What an exception ends before its end, as that of a signal handler may anywhere, is
    found again."""
    done = []
    try:
        completions.take(done)
        while done:
            if kept is None:
                done[-1]._complete()
            elif not done[-1]._complete_if_free(timeout=0.001 if kept else 0.1):
                kept.append(done[-1])
            done.pop()
    finally:
        if done:
            completions.put_back(done)


def _drain_until_the_end():
    kept = []
    while not _is_ending:
        _core.wait_for_drain(1000 if kept else -1)  # milliseconds
        try:
            _core.memory_list.take([])
            kept = [future for future in kept if not future._complete_if_free(timeout=0)]
            _complete_all(_core.default_list, kept)
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


atexit.register(_end)
os.register_at_fork(after_in_child=_after_fork)

# ---- event loops ----

_loop_lists = weakref.WeakKeyDictionary()
_newest = None, None  # a weak reference to the loop that was looked up last, and its list


class _Reader:
    """What a loop calls when runs are done. The loop has the only reference, which it drops when it
    is closed, or with itself."""

    def __init__(self, completions):
        self._completions = completions

    def __call__(self):
        try:
            _complete_all(self._completions)
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
    _newest = weakref.ref(loop, _forget), completions
    return completions


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
