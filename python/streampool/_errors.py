# SPDX-License-Identifier: Apache-2.0
"""Exceptions: one class for each kind of status, with the library's message."""
import enum

from . import _core

Status = enum.IntEnum("Status", {name.removeprefix("SP_"): value
                                 for name, value, _ in _core.statuses()}, module="streampool")
Status.__doc__ = "Status codes of the library."


class Error(Exception):
    """A call of the library has failed. Its `status` says why, its text what and where.

    Where Python has a class for the kind of failure, the exception is of that class too:
    ValueError, MemoryError, TimeoutError, OSError.
    """

    status: Status


class _InvalidError(Error, ValueError):
    __qualname__ = __name__ = "Error"


class _MemoryError(Error, MemoryError):
    __qualname__ = __name__ = "Error"


class _TimeoutError(Error, TimeoutError):
    __qualname__ = __name__ = "Error"


class _FileError(Error, OSError):
    __qualname__ = __name__ = "Error"


_CLASSES = {
    Status.INVALID: _InvalidError,
    Status.MISMATCH: _InvalidError,
    Status.NOT_FOUND: _InvalidError,
    Status.OUT_OF_MEMORY: _MemoryError,
    Status.TIMEOUT: _TimeoutError,
    Status.IO: _FileError,
}

_core.set_error_classes([(_CLASSES.get(status, Error), status) for status in Status])
