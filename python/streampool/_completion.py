# SPDX-License-Identifier: Apache-2.0
"""Who completes the futures of submitted runs: a thread, and event loops.

A thread of the library only pushes a finished run to a list. Of a run that was submitted in an event
loop, the loop drains the list, many runs at one wake-up; of others a thread of its own.
"""
import _thread
import logging
import os
import sys
import threading
import time
import weakref

from . import _core
from ._lifetime import at_the_end

_log = logging.getLogger("streampool")

taken_futures = set()  # whose outcome a thread has, and which are not completed yet

_is_child = False  # in a forked child
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


def running_loop():
    """The event loop of the calling thread, or None. asyncio, which is slow to import, is not."""
    if _get_running_loop is None:
        find_asyncio()
    return None if _get_running_loop is None else _get_running_loop()


def is_in_child():
    """Whether this process is a fork of one that had imported the package."""
    return _is_child


def is_main_thread():
    """Whether the caller may be ended by the exception of a signal handler."""
    return threading.current_thread() is threading.main_thread()


# ---- the drainer: a thread for runs that were submitted outside of event loops ----

_lock = threading.Lock()
_drainer = None
_is_ending = False
_LOOK_MS = 100  # between looks at what cannot wake the drainer: locks that are kept, and loops that stop


def _complete_each(done, complete_last):
    while done:
        complete_last(done)


def _complete_all(completions, complete_last):
    """Completes the futures whose runs are done. What an exception ends before its end, as that of a signal
    handler may anywhere, is found again."""
    done = []
    try:
        completions.take(done)
        _complete_each(done, complete_last)  # a loop's jump back is outside of the try in Python 3.13
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


def is_drainer():
    """Whether the caller is that thread, which may be in its last callback: what it submits stays in flight."""
    return threading.current_thread() is _drainer


def _end():
    """Ends the drainer, or keeps one from being started."""
    global _is_ending
    _is_ending = True
    if _drainer is not None:
        _core.default_list.wake()
        _drainer.join(timeout=1)


def _after_fork():
    global _drainer, _is_child, _lock
    _drainer = None
    _is_child = True
    _lock = threading.Lock()
    for completions in _loop_lists.values():
        completions.after_fork()
    while taken_futures:
        taken_futures.pop()._after_fork()


at_the_end(_end)
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
        elif not (future._complete_if_alone() if is_main_thread()
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
    if closed is not None and _loop_lists.get(closed) is completions:
        _loop_lists.pop(closed, None)
    if _newest[1] is completions:
        _newest = None, None


def _forget(loop):
    global _newest
    if _newest[0] is loop:
        _newest = None, None


def current_list():
    """The list for runs that the calling thread submits now."""
    loop = running_loop()
    if loop is None:
        start_drainer()
        return _core.default_list
    newest, completions = _newest  # many requests of one loop follow each other
    if newest is not None and newest() is loop:
        return completions
    known = _loop_lists.get(loop)
    return known if known is not None else _list_of_loop(loop)
