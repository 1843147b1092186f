# SPDX-License-Identifier: Apache-2.0
"""Tensors from arrays."""
import typing

from . import _core
from ._convert import array_of, converted
from ._core import Tensor


def tensor(array: typing.Any, dtype: typing.Any = None, device: typing.Any = "cpu") -> Tensor:
    """A tensor with a copy of an array's elements, on a device.

    `dtype` None is the array's own; another one must have each value of it (TypeError).
    """
    own = array_of(array, "the array")[1]
    name = own if dtype is None else _core.dtype_name(dtype)
    return _core.tensor_of_buffer(converted(array, name, "the tensor"), name, device)
