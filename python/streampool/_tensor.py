# SPDX-License-Identifier: Apache-2.0
"""Tensors from arrays, and with arrays as operands."""
import typing

import numpy as np

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


# What NumPy calls for an operator: the method of the left operand, and of the right one.
_OPERATORS = {
    np.add: ("__add__", "__radd__"), np.subtract: ("__sub__", "__rsub__"),
    np.multiply: ("__mul__", "__rmul__"), np.divide: ("__truediv__", "__rtruediv__"),
    np.power: ("__pow__", "__rpow__"), np.matmul: ("__matmul__", "__rmatmul__"),
    np.bitwise_and: ("__and__", "__rand__"), np.bitwise_or: ("__or__", "__ror__"),
    np.bitwise_xor: ("__xor__", "__rxor__"), np.less: ("__lt__", "__gt__"),
    np.less_equal: ("__le__", "__ge__"), np.greater: ("__gt__", "__lt__"),
    np.greater_equal: ("__ge__", "__le__"), np.equal: ("__eq__", "__eq__"),
    np.not_equal: ("__ne__", "__ne__"),
}


def _array_ufunc(self, ufunc, method, *inputs, **options):
    """The operators of Python on an array and a Tensor are the Tensor's; other functions of NumPy, and
    what writes into an array (a += t), are NumPy's own, on a copy of the Tensor."""
    if any(isinstance(out, Tensor) for out in options.get("out", ())):
        raise TypeError(f"numpy.{ufunc.__name__} does not write into a Tensor")
    result = NotImplemented
    if ufunc in _OPERATORS and method == "__call__" and not options:
        own, reflected = _OPERATORS[ufunc]
        left, right = inputs
        result = getattr(left, own)(right) if left is self else getattr(right, reflected)(left)
    if result is not NotImplemented:
        return result
    arrays = [value.numpy() if isinstance(value, Tensor) else value for value in inputs]
    return getattr(ufunc, method)(*arrays, **options)


Tensor.__array_ufunc__ = _array_ufunc
Tensor._of_array = staticmethod(tensor)  # what the extension makes of an array that is an operand
