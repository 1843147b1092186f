# SPDX-License-Identifier: Apache-2.0
"""Inputs that the extension does not take as they are: other dtypes, strides and libraries.

An array is converted only where the dtype of the input has each value of the array's dtype.
"""
import typing

import numpy as np

from . import _core
from ._lifetime import futures

_core.load_numpy()

_DLPACK_CUDA, _DLPACK_CUDA_MANAGED = 2, 13  # DLDeviceType

_SIGNIFICANT_BITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
_FLOATS_IN = {"float16": {"float32", "float64"}, "bfloat16": {"float32", "float64"},
              "float32": {"float64"}, "float64": set()}
_INTEGERS = {f"{kind}int{bits}" for kind in ("", "u") for bits in (8, 16, 32, 64)}


def _integer(dtype):
    """(is_signed, bits)."""
    return dtype[0] == "i", int(dtype.lstrip("uint"))


def is_lossless(source: str, target: str) -> bool:
    """Whether dtype `target` has every value of dtype `source`."""
    if source == target or source == "bool":
        return True
    if source in _FLOATS_IN:
        return target in _FLOATS_IN[source]
    if source not in _INTEGERS:
        return False
    is_signed, bits = _integer(source)
    if target in _SIGNIFICANT_BITS:
        return bits - is_signed <= _SIGNIFICANT_BITS[target]
    if target not in _INTEGERS:
        return False
    target_is_signed, target_bits = _integer(target)
    return target_bits - target_is_signed >= bits - is_signed and target_is_signed >= is_signed


# By dtype, of both byte orders.
_NAMES = {dtype: name for name in ["bool", *_INTEGERS, "float16", "float32", "float64"]
          for dtype in (np.dtype(name), np.dtype(name).newbyteorder())}


def _name_of(dtype):
    """dtype.name, which a module of NumPy that each use imports computes: so it is used for none that we take."""
    if dtype.isbuiltin == 2:  # of another library, as bfloat16 of ml_dtypes
        return dtype.type.__name__
    known = _NAMES.get(dtype) if dtype.kind in "biuf" else None  # others may have no hash
    return known or dtype.name


def _of_numpy(array):
    """(array, dtype); the elements of bfloat16 as uint16."""
    name = _name_of(array.dtype)
    if name == "bfloat16":  # of ml_dtypes
        return array.view(np.uint16), name
    return array, name


def _raise_of_handler(value):
    """Within `except`: raises again what a signal handler has raised while a Tensor was waited for."""
    if isinstance(value, _core.Tensor) and _core.was_interrupted():
        raise


def _of_dlpack(value):
    try:
        return _of_numpy(np.from_dlpack(value))
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError):
        _raise_of_handler(value)
        tensor = from_dlpack(value)  # a dtype that NumPy lacks
        return tensor.read(), tensor.dtype


def _capsule_of(value, **stream):
    try:
        return value.__dlpack__(max_version=(1, 0), **stream)
    except TypeError:  # of a library before DLPack 1.0
        _raise_of_handler(value)
        return value.__dlpack__(**stream)


def gpu_of(value: typing.Any) -> "str | None":
    """The name of the GPU that another library's array is on; None if it is on the host."""
    if isinstance(value, (np.ndarray, _core.Tensor)) or not hasattr(value, "__dlpack_device__"):
        return None
    try:
        kind, ordinal = map(int, value.__dlpack_device__())
    except Exception:  # of another device, or sparse: what else the object has decides
        return None
    return f"cuda:{ordinal}" if kind in (_DLPACK_CUDA, _DLPACK_CUDA_MANAGED) else None


def from_dlpack(value: typing.Any) -> _core.Tensor:
    """A Tensor over the memory of another library's array, without a copy.

    An array on a GPU gives a Tensor of that device: uses of it follow what its library has
    enqueued, without a wait.
    """
    futures().start_drainer()  # memory of the other library is given back by its thread
    device = gpu_of(value)
    if device is None:
        return _core.import_dlpack(_capsule_of(value))
    stream = _core.current_stream(device)
    return _core.import_dlpack(_capsule_of(value, stream=stream.cuda_stream), device, stream)


def without_gradient(value):
    """A tensor of PyTorch that requires a gradient refuses __dlpack__."""
    return value.detach() if getattr(value, "requires_grad", False) else value


def array_of(value, what: str):
    """(array, dtype) of an object by the buffer protocol, __dlpack__ or __array__, in this order."""
    if isinstance(value, np.ndarray):
        return _of_numpy(value)
    try:
        return _of_numpy(np.asarray(memoryview(value)))
    except (TypeError, ValueError, BufferError):
        pass
    value = without_gradient(value)
    device = gpu_of(value)
    if device is not None:
        raise TypeError(f"{what} is on {device}; copy it to the host, or use a model of that device")
    if hasattr(value, "__dlpack__"):
        try:
            return _of_dlpack(value)
        except (BufferError, RuntimeError, TypeError, ValueError):
            _raise_of_handler(value)
            if not hasattr(value, "__array__"):
                raise
    if hasattr(value, "__array__"):
        return _of_numpy(np.asarray(value))
    raise TypeError(f"{what}: {type(value).__name__} is no array: it has neither the buffer protocol "
                    "nor __dlpack__ nor __array__")


def _bfloat16_of(array):
    """Elements that bfloat16 has exactly, as uint16."""
    return (np.asarray(array, np.float32, order="C").view(np.uint32) >> 16).astype(np.uint16)


def _float32_of(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def converted(value, dtype: str, what: str):
    """A contiguous, aligned array of that dtype ("none": its own), bfloat16 as uint16."""
    array, own = array_of(value, what)
    if dtype == "none" or own == dtype:
        return np.require(array, array.dtype.newbyteorder("="), "CA")
    if not is_lossless(own, dtype):
        raise TypeError(f"{what} is {dtype}; an array of {own} cannot be converted without loss")
    if dtype == "bfloat16":
        return _bfloat16_of(array)
    return np.require(_float32_of(array) if own == "bfloat16" else array, dtype, "CA")


def convert(ports, values, named):
    """(values, named) as the extension takes them."""
    dtypes = {port.name: port.dtype for port in ports}
    if len(values) > len(ports):
        raise TypeError(f"{len(values)} inputs given; the model has {len(ports)}")
    return (tuple([converted(value, port.dtype, f"input '{port.name}'")  # no generator: StopIteration passes
                   for port, value in zip(ports, values)]),
            {name: converted(value, dtypes.get(name, "none"), f"input '{name}'")
             for name, value in named.items()})
