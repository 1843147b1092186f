# SPDX-License-Identifier: Apache-2.0
"""The end of the interpreter, forks, and the part of the package that is imported by its first use."""
import atexit
import os
import sys

from . import _core

_is_ending = False
_endings = []


def at_the_end(end):
    """Calls end() at exit, before threads that come back from the library are parked; at once if that has begun.

    An exit handler that is registered by another one is never called, and any part of the package may be
    imported by one.
    """
    _endings.append(end)  # before the look: the exit handler calls it, or has begun
    if _is_ending:
        end()


def _end():
    global _is_ending
    _is_ending = True
    try:
        for end in _endings:
            end()
    finally:
        _core.close_guard()


atexit.register(_end)


def _after_fork():
    _core.after_fork()
    _core.default_list.after_fork()
    _core.memory_list.after_fork()


os.register_at_fork(after_in_child=_after_fork)

_futures = None


def futures():
    """The module of futures. Its own imports take longer than the rest of the package."""
    global _futures
    if _futures is None:
        from . import _future
        _futures = _future
    return _futures


_inspect = None


def inspect_module():
    """The module inspect, which the functions of operators need. It too takes long to import."""
    global _inspect
    if _inspect is None:
        import inspect
        _inspect = inspect
    return _inspect


_HAS_GIL = getattr(sys, "_is_gil_enabled", lambda: True)()


def prepare_threads():
    """Before threads use the package, where there is no interpreter's lock: imports what they would.

    Daemon threads that wait for the mutex of sys.modules while Python 3.13 ends may hang it (decision 0063).
    Ours do not read it where nothing was imported since.
    """
    if not _HAS_GIL:
        futures().find_asyncio()
        inspect_module()
