# SPDX-License-Identifier: Apache-2.0
"""Models: loading, calling, submitting."""
import collections
import functools
import os
import typing

import streampool  # whose Future is imported by its first use

from . import _core
from ._convert import convert
from ._lifetime import futures

_call = _core.call
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


def _as_pair(inputs):
    """(values, named) of one array, a sequence of arrays or a mapping. Of a mapping a copy: another
    thread may change it during the run."""
    if isinstance(inputs, dict):
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


class Model:
    """A loaded model, for any number of threads at once. Made by load().

    Arrays are anything with the buffer protocol, __dlpack__ or __array__; they are used in place if
    they are contiguous and of the input's dtype, and converted if that loses nothing.
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
        output is a Tensor. Raises TypeError (count or dtype of inputs, one that is missing), ValueError
        (shapes, names that no input has), MemoryError, Error.
        """
        result = _call(self._core, values, named, None, False)
        if result is NotImplemented:
            result = _call(self._core, *convert(self.inputs, values, named), None, True)
        return result if self._type is None else tuple.__new__(self._type, result)

    def run(self, inputs: typing.Any, outputs: typing.Any = None) -> typing.Any:
        """Runs the model on one array, a sequence or a mapping of arrays, and waits.

        `outputs` None is as a call. One array is the only output. A sequence has an array for each
        output, or None for a new one; the results are a named tuple of them. A mapping requests the
        outputs that it names, and the results are a dict. Arrays given are writable, contiguous,
        aligned, of the output's dtype and shape, and overlap neither inputs nor each other:
        TypeError or ValueError otherwise, with their elements undefined where the shape is known
        only after the run.
        """
        values, named = _as_pair(inputs)
        if isinstance(outputs, dict):
            outputs = dict(outputs)
        elif isinstance(outputs, (list, tuple)):
            outputs = tuple(outputs)
        elif outputs is not None:
            outputs = (outputs,)
        result = _call(self._core, values, named, outputs, False)
        if result is NotImplemented:
            result = _call(self._core, *convert(self.inputs, values, named), outputs, True)
        if isinstance(outputs, dict):
            return dict(zip(outputs, result))
        return result if self._type is None else tuple.__new__(self._type, result)

    def submit(self, /, *values: typing.Any, **named: typing.Any) -> "streampool.Future":
        """Submits a run and returns its future, whose result is what a call returns.

        The arrays must not be written before the future is done; it keeps them alive. In an event
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
        if not module.is_drained(completions):
            future.exception()
        return future

    @property
    def info(self) -> "dict[str, int]":
        """Counts of the model, by name: nodes, plans, contexts, weight bytes."""
        return self._core.info()

    def statistics(self) -> "dict[str, typing.Any]":
        """What became of the model's runs, by name; times in nanoseconds."""
        return self._core.statistics()

    def close(self) -> None:
        """Releases the model. Runs in flight finish; later calls raise Error."""
        self._core.close()

    def __enter__(self) -> typing.Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self):
        state = " (closed)" if self._core.is_closed else ""
        names = [", ".join(port.name for port in ports) for ports in (self.inputs, self.outputs)]
        return f"<streampool.Model ({names[0]}) -> ({names[1]}){state}>"


def load(source: typing.Any, device: typing.Any = "cpu", *, release_gil: "bool | str" = "auto",
         **options: typing.Any) -> Model:
    """Loads an ONNX model from a path, or from the bytes of a file.

    `release_gil`: "auto" keeps the interpreter's lock for runs that are expected to take less than
    20 us and need no wait; True always releases it, False never. Other options, all numbers but the
    last: max_plans, max_run_bytes, max_loop_trips, max_partial_bytes, weight, max_concurrent_runs,
    max_waiting, cpu_ops (a string). Raises Error (OSError for a file that cannot be read).
    """
    if release_gil not in _RELEASE:
        raise ValueError(f"release_gil is {release_gil!r}; it can be True, False or 'auto'")
    is_path = isinstance(source, (str, os.PathLike))
    given = os.fsencode(source) if is_path else source
    return Model(_core.load(given, is_path, device, _RELEASE[release_gil], options))
