# SPDX-License-Identifier: Apache-2.0
"""Futures of submitted runs. Who completes them: _completion.py."""
import _thread
import collections
import concurrent.futures
import logging
import threading
import typing

from . import _core
from ._completion import (current_list, find_asyncio, has_drainer, is_drainer, is_in_child,  # noqa: F401 some for others
                          is_main_thread, running_loop, start_drainer, taken_futures)
from ._errors import Status

_FINISHED = concurrent.futures._base.FINISHED


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
        """_complete, unless it might block for good: False."""
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
        if not self._settle_if_alone(outcome):
            return False
        self._invoke_callbacks()
        self._forget()
        return True

    def _settle_if_alone(self, outcome, may_call=True):
        """False: a thread must be notified, or, unless the caller does that, a task or a callback. Or this
        thread is amid a step of its own, which a signal handler or a finalizer has interrupted: it has seen
        that the run is in flight, and begins to wait then."""
        if self._condition._is_owned():
            return False
        with self._condition:
            if self._waiters or self._condition._waiters:
                return False
            if not may_call and (self._awaiters or self._done_callbacks):
                return False
            self._settle(*outcome)
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
        taken_futures.discard(self)
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
        """What is known then. Waits in the library, which needs no other thread to complete the future. If
        the future has callbacks or others wait for it, the drainer or the event loop completes it: the
        caller could be ended by a signal handler anywhere, or have a lock that a callback takes."""
        known = self._known()
        if known is not None:
            return known
        if not self._run.wait(timeout):
            raise TimeoutError("the run is not done yet")
        outcome = self._outcome()
        if outcome is not None and not self._end_quietly(outcome):
            taken_futures.add(self)
            self._taken = outcome
            if self._state == _FINISHED:
                taken_futures.discard(self)
            if not has_drainer():
                self._complete()
        return self._known()

    def _end_quietly(self, outcome):
        """Sets the result if nobody is to hear of it: then it does not wait for the drainer. False: not."""
        if not is_main_thread():  # only handlers leave locks taken: its own, which it may take again
            if not self._condition.acquire(timeout=0.1):
                return False
            self._condition.release()
        if not self._settle_if_alone(outcome, may_call=False):
            return False
        self._forget()
        return True

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
            if is_in_child():
                self._run.wait(0)  # raises FORKED: no thread of this process completes the run
            loop = running_loop()
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


def _exception_of(error):
    if isinstance(error, type):  # there was no memory for it
        return error()
    if getattr(error, "status", None) == Status.CANCELLED:
        return concurrent.futures.CancelledError(str(error))
    return error


def _set_done(waiter):
    if not waiter.done():
        waiter.set_result(None)


def _wake(waiter):
    loop = waiter.get_loop()
    if running_loop() is loop:
        _set_done(waiter)
        return
    try:
        loop.call_soon_threadsafe(_set_done, waiter)
    except RuntimeError:
        if not loop.is_closed():
            raise
        # nothing waits in it
