# SPDX-License-Identifier: Apache-2.0
"""Exceptions: one class for each kind of status, with the library's message."""
import enum

from . import _core


class Status(enum.IntEnum):
    """Status codes of the library."""

    OK = 0
    INVALID = 1
    OUT_OF_MEMORY = 2
    EXHAUSTED = 3
    BUSY = 4
    TIMEOUT = 5
    NOT_READY = 6
    DEADLOCK = 7
    DEVICE_LOST = 8
    FAILED = 9
    CANCELLED = 10
    CLOSED = 11
    FORKED = 12
    UNSUPPORTED = 13
    CORRUPT = 14
    IO = 15
    NOT_FOUND = 16
    MISMATCH = 17
    INTERNAL = 18


Status.__module__ = "streampool"


def _restored(status, arguments, state):
    """An exception of the class of its status, which has no name to be found by."""
    error = _CLASSES.get(status, Error)(*arguments)
    error.__dict__.update(state)
    return error


class Error(Exception):
    """A call of the library has failed. Its `status` says why, its text what and where.

    Where Python has a class for the kind of failure, the exception is of that class too:
    ValueError, MemoryError, TimeoutError, OSError.
    """

    status: Status

    def __reduce__(self):
        if type(self) in _CLASSES.values():
            return _restored, (self.status, self.args, self.__dict__)
        return super().__reduce__()


class _InvalidError(Error, ValueError):
    pass


class _MemoryError(Error, MemoryError):
    pass


class _TimeoutError(Error, TimeoutError):
    pass


class _FileError(Error, OSError):
    pass


_CLASSES = {
    Status.INVALID: _InvalidError,
    Status.MISMATCH: _InvalidError,
    Status.NOT_FOUND: _InvalidError,
    Status.OUT_OF_MEMORY: _MemoryError,
    Status.TIMEOUT: _TimeoutError,
    Status.IO: _FileError,
}

Error.__module__ = "streampool"
for _class in _CLASSES.values():  # as tracebacks show them
    _class.__name__ = _class.__qualname__ = "Error"
    _class.__module__ = "streampool"

_core.set_error_classes([(_CLASSES.get(status, Error), status) for status in Status])
