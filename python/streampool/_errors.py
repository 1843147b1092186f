# SPDX-License-Identifier: Apache-2.0
"""Exceptions: one class for each kind of status, with the library's message."""
import enum
import errno
import os

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


class FileError(Error, OSError):
    """Its text is the library's message, which OSError would replace once it has an errno."""

    __str__ = Exception.__str__

    def __reduce__(self):
        return _file_error, (self.args, self.__dict__, self.errno, self.filename)


_CLASSES = {
    Status.INVALID: _InvalidError,
    Status.MISMATCH: _InvalidError,
    Status.NOT_FOUND: _InvalidError,
    Status.OUT_OF_MEMORY: _MemoryError,
    Status.TIMEOUT: _TimeoutError,
    Status.IO: FileError,
}

Error.__module__ = "streampool"
_FILE_CLASSES = {code: type("Error", (FileError, kind), {}) for code, kind in {
    errno.ENOENT: FileNotFoundError, errno.EACCES: PermissionError, errno.EPERM: PermissionError,
    errno.EISDIR: IsADirectoryError, errno.ENOTDIR: NotADirectoryError}.items()}

for _class in (*_CLASSES.values(), *_FILE_CLASSES.values()):  # as tracebacks show them
    _class.__name__ = _class.__qualname__ = "Error"
    _class.__module__ = "streampool"

_core.set_error_classes([(_CLASSES.get(status, Error), status) for status in Status])


def _file_error(arguments, state, code, filename):
    """An exception of the class that Python has for an errno."""
    error = _FILE_CLASSES.get(code, FileError)(*arguments)
    error.__dict__.update(state)
    error.errno, error.filename = code, filename
    error.strerror = None if code is None else os.strerror(code)
    return error


def of_file(error: FileError, path: "str | bytes | os.PathLike") -> FileError:
    """The failure to load a model from that path, or from a file beside it."""
    state = dict(error.__dict__)
    own = os.fspath(path)
    file, code = state.pop("_file", (os.fsencode(own), None))
    return _file_error(error.args, state, code, own if file == os.fsencode(own) else os.fsdecode(file))
