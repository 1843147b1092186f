# SPDX-License-Identifier: Apache-2.0
"""Models: loading, calling, submitting."""
import collections
import collections.abc
import functools
import os
import typing

from numpy import ndarray

import streampool  # whose Future is imported by its first use

from . import _core
from ._convert import (array_of, convert, converted, from_dlpack, gpu_of, is_lossless,
                       without_gradient)
from ._errors import FileError, of_file
from ._handle import Handle
from ._lifetime import futures, prepare_threads

_call = _core.call
_default_list = _core.default_list
_RELEASE = {"auto": _core.ReleaseGil.automatic, True: _core.ReleaseGil.always,
            False: _core.ReleaseGil.never}


class Port(typing.NamedTuple):
    """An input or output of a model."""

    name: str
    dtype: str  #: "float32", ...; "none" if the file does not say
    shape: "tuple[int | str | None, ...] | None"  #: a free size has its name, or None
    determines_shapes: bool  #: sizes of other tensors follow from its values


def _same(value):
    return value


def _is_mapping(value):
    if isinstance(value, (tuple, list, ndarray)):  # the check of an abstract class is part of a run
        return False
    return isinstance(value, (dict, collections.abc.Mapping))


def _as_pair(inputs):
    """(values, named) of one array, a sequence of arrays or a mapping. Of a mapping a copy: another
    thread may change it during the run."""
    if _is_mapping(inputs):
        return (), dict(inputs)
    if isinstance(inputs, (tuple, list)):
        return tuple(inputs), {}
    return (inputs,), {}


def _outputs_of(names, values):
    return _outputs_type(names)._make(values)


@functools.lru_cache(maxsize=256)
def _outputs_type(names):
    """The class of the results of a model with these outputs. A pickle has the names: the class is
    no attribute of the module."""
    kind = collections.namedtuple("Outputs", names, rename=True, module="streampool")
    kind.__reduce__ = lambda self: (_outputs_of, (names, tuple(self)))
    return kind


class Model(Handle):
    """A loaded model, for any number of threads at once. Made by load().

    Arrays are anything with the buffer protocol, __dlpack__ or __array__; they are used in place if
    they are contiguous and of the input's dtype, and converted if that loses nothing.

    With a Tensor of the model's device among the inputs, the outputs are Tensors too: a call or
    run() is computed on the thread's current stream and returns at once. Arrays beside it are
    copied to the device. A failure is raised by what reads the outputs. An array of another library
    on the model's GPU counts as a Tensor.
    """

    def __init__(self, core):
        self._core = core
        inputs, outputs = core.ports()
        self.inputs: "tuple[Port, ...]" = tuple(Port(*port) for port in inputs)
        self.outputs: "tuple[Port, ...]" = tuple(Port(*port) for port in outputs)
        self._type = self._finish = None
        if len(outputs) != 1:
            self._type = _outputs_type(tuple(port.name for port in self.outputs))
        self._finish = _same if self._type is None else self._type._make

    def __call__(self, /, *values: typing.Any, **named: typing.Any) -> typing.Any:
        """Runs the model on arrays in the order of its inputs, or by name, and waits.

        Returns one new array, or a named tuple of them in the order of the outputs. A bfloat16
        output is a Tensor. On Tensors it does not wait, and returns Tensors. Raises TypeError (count or dtype of inputs, one that is missing), ValueError
        (shapes, names that no input has), MemoryError, Error.
        """
        result = _call(self._core, values, named, None, False)
        if result is NotImplemented:
            if self._takes(values) or self._takes(named.values()):
                result = self._run_tensors(values, named, None)
                return result[0] if self._type is None else self._type._make(result)
            result = _call(self._core, *convert(self.inputs, values, named), None, True)
        return result if self._type is None else tuple.__new__(self._type, result)

    def run(self, inputs: typing.Any, outputs: typing.Any = None) -> typing.Any:
        """Runs the model on one array, a list, a tuple or a mapping of arrays, and waits.

        `outputs` None is as a call. One array is the only output. A list or tuple has an array for each
        output, or None for a new one; the results are a named tuple of them. A mapping requests the
        outputs that it names, and the results are a dict. Arrays given are writable, contiguous,
        aligned, of the output's dtype and shape, and overlap neither inputs nor each other:
        TypeError or ValueError otherwise, with their elements undefined where the shape is known
        only after the run. With a Tensor of the model's device among inputs or outputs, all outputs
        are Tensors: those given may be views, and may share memory with inputs.
        """
        values, named = _as_pair(inputs)
        has_tensors = False
        if outputs is None:
            pass
        elif _is_mapping(outputs):
            outputs = dict(outputs)
            has_tensors = self._takes(outputs.values())
        else:
            outputs = tuple(outputs) if isinstance(outputs, (list, tuple)) else (outputs,)
            has_tensors = self._takes(outputs)
        result = NotImplemented
        if not has_tensors:
            result = _call(self._core, values, named, outputs, False)
        if result is NotImplemented and (has_tensors or self._takes(values)
                                         or self._takes(named.values())):
            result = self._run_tensors(values, named, outputs)
            if self._type is None and not isinstance(outputs, dict):
                return result[0]
        elif result is NotImplemented:
            result = _call(self._core, *convert(self.inputs, values, named), outputs, True)
        if isinstance(outputs, dict):
            return dict(zip(outputs, result))
        return result if self._type is None else tuple.__new__(self._type, result)

    def _takes(self, values):
        """Whether one is a Tensor of the model's device, or on a GPU. A loop: it is part of a run."""
        for value in values:
            if type(value) is not ndarray and (_core.model_takes(self._core, value)
                                               or gpu_of(value) is not None):
                return True
        return False

    def _run_tensors(self, values, named, outputs):
        """The outputs, as Tensors in the order of `outputs`: a dict by name, a tuple, or None."""
        inputs = dict(zip((port.name for port in self.inputs), values))
        if len(values) > len(self.inputs):
            raise TypeError(f"{len(values)} inputs given; the model has {len(self.inputs)}")
        for name, value in named.items():
            if name in inputs:
                raise TypeError(f"input '{name}' is given twice")
            inputs[name] = value
        for port in self.inputs:
            if port.name not in inputs:
                raise TypeError(f"input '{port.name}' is missing")
        dtypes = {port.name: port.dtype for port in self.inputs}
        inputs = {name: self._to_device(value, dtypes.get(name, "none"), f"input '{name}'")
                  for name, value in inputs.items()}
        if outputs is None:
            outputs = dict.fromkeys(port.name for port in self.outputs)
        elif not isinstance(outputs, dict):
            if len(outputs) != len(self.outputs):
                raise TypeError(f"{len(outputs)} outputs given; the model has {len(self.outputs)}")
            outputs = dict(zip((port.name for port in self.outputs), outputs))
        for name, value in outputs.items():
            if value is not None and not _core.model_takes(self._core, value):
                kind = type(value).__name__
                raise TypeError(f"output '{name}' is to be a Tensor of the model's device, as "
                                f"another input or output is, and not {kind}")
        return _core.call_tensors(self._core, inputs, outputs)

    def _to_device(self, value, dtype, what):
        """A Tensor with the elements of an array or Tensor, as an input of that dtype takes them."""
        device = _core.model_device(self._core)
        if gpu_of(value) == device.name:
            value = from_dlpack(without_gradient(value))
        if _core.model_takes(self._core, value):
            if dtype in ("none", value.dtype):
                return value
            if not is_lossless(value.dtype, dtype):
                raise TypeError(f"{what} is {dtype}; a Tensor of {value.dtype} cannot be converted "
                                "without loss")
            return value.cast(dtype)
        if dtype == "none":
            dtype = array_of(value, what)[1]
        return _core.tensor_of_buffer(converted(value, dtype, what), dtype, device)

    def submit(self, /, *values: typing.Any, **named: typing.Any) -> "streampool.Future":
        """Submits a run and returns its future, whose result is what a call on arrays returns.

        A Tensor is an array here: a call on Tensors returns at once by itself. The arrays must not be written before the future is done; it keeps them alive. In an event
        loop the future is completed by the loop, which must not block on it in other ways than
        result().
        """
        return self._submit(None, values, named)

    def _submit(self, queue, values, named, finish=None):
        module = futures()
        run = _core.Run(self._core)
        future = module.Future(run, finish or self._finish)
        completions = module.current_list()
        if not run.submit(queue, completions, future, values, named, False):
            values, named = convert(self.inputs, values, named)
            run.submit(queue, completions, future, values, named, True)
        if completions is _default_list and not module.has_drainer() and not module.is_drainer():
            future.exception()
        return future

    @property
    def info(self) -> "dict[str, int]":
        """Counts of the model, by name: nodes, plans, contexts, weight bytes."""
        return self._core.info()

    def statistics(self) -> "dict[str, typing.Any]":
        """What became of the model's runs, by name; times in nanoseconds."""
        return self._core.statistics()

    def __repr__(self):
        state = " (closed)" if self._core.is_closed else ""
        names = [", ".join(port.name for port in ports) for ports in (self.inputs, self.outputs)]
        return f"<streampool.Model ({names[0]}) -> ({names[1]}){state}>"


def load(source: typing.Any, device: typing.Any = "cpu", *, release_gil: "bool | str" = "auto",
         **options: typing.Any) -> Model:
    """Loads an ONNX model from a path, or from the bytes of a file.

    `release_gil`: "auto" keeps the interpreter's lock for runs that are expected to take less than
    7 us and need no wait; True always releases it, False never. Other options, all numbers but the
    last two: max_plans, max_run_bytes, max_loop_trips, max_partial_bytes, weight,
    max_concurrent_runs, max_waiting, cpu_ops (a string), precision ("tf32", "f16" or "bf16": products
    with constant matrices and convolutions by a GPU's tensor cores, operands of f32 rounded to that
    type; "f16" and "bf16" also the MatMuls of two computed values, as in attention). Raises Error; for a file that cannot be read
    it is also an OSError, such as FileNotFoundError.
    """
    if not isinstance(release_gil, (bool, str)) or release_gil not in _RELEASE:
        raise ValueError(f"release_gil is {release_gil!r}; it can be True, False or 'auto'")
    is_path = isinstance(source, (str, os.PathLike))
    given = os.fsencode(source) if is_path else source
    prepare_threads()
    try:
        core = _core.load(given, is_path, device, _RELEASE[release_gil], options)
    except FileError as error:
        if error.errno is not None:  # raised by the conversion of an option
            raise
        raise of_file(error, source) from None
    return Model(core)
