# SPDX-License-Identifier: Apache-2.0
"""A compiled module: tensors in, tensors out."""
import typing

import torch

import streampool  # whose Future is imported by its first use

from .. import _core
from .._convert import convert
from .._model import Model
from . import _structure

_call = _core.call
_from_numpy = torch.from_numpy
_NO_NAMES = {}


def _checked(tensor, port):
    """The tensor, if it has the input's dtype, without a gradient."""
    if tensor.layout != torch.strided:
        raise TypeError(f"input '{port.name}' has the layout {tensor.layout}; give it as .to_dense()")
    dtype = str(tensor.dtype).removeprefix("torch.")
    if dtype != port.dtype:
        raise TypeError(f"input '{port.name}' is {port.dtype}; the tensor given is {dtype}")
    return tensor.detach().resolve_neg()


def _array_of(tensor, port):
    """A tensor's elements as an array over the same memory, contiguous."""
    if tensor.device.type != "cpu":
        raise TypeError(f"input '{port.name}' is on {tensor.device}; give it as .cpu()")
    tensor = _checked(tensor, port).contiguous()
    return tensor if port.dtype == "bfloat16" else tensor.numpy()


def _is_on_gpu(tensors):
    return any(tensor.device.type == "cuda" for tensor in tensors)


def _tensor_of(array):
    """A tensor over an array's memory; of bfloat16, which NumPy lacks, over a Tensor's."""
    if isinstance(array, _core.Tensor):
        return torch.from_dlpack(array)
    return _from_numpy(array)


class CompiledModule:
    """A module as it was when it was compiled, for any number of threads at once. Made by compile()."""

    #: The model behind it: statistics, batch queues, calls with arrays. Its inputs are the module's
    #: tensors, in the order of forward's parameters.
    model: Model

    def __init__(self, name, model, arguments, exported):
        self.model = model
        self._name = name
        self._core = model._core
        self._arguments = arguments
        self._places = [arguments.names.index(port.name) for port in model.inputs]
        is_whole = self._places == list(range(len(arguments.names)))
        self._plain_count = arguments.plain_count if is_whole else None
        self._results = exported.results
        ports = [port.name for port in model.outputs]
        self._outputs = [ports.index(name) for name in exported.names]
        is_single = isinstance(exported.results, _structure.Leaf)
        self._finish = _tensor_of if is_single else self._rebuilt

    def __call__(self, /, *args: typing.Any, **kwargs: typing.Any) -> typing.Any:
        """Computes the module's result for tensors, in the form of the example inputs, and waits.

        Inputs are contiguous, of the example's dtypes and on the CPU; others than contiguous ones are
        copied, and so is a streampool.Tensor. Results are new tensors, in the structure of the module's own, without gradients.
        With tensors on the GPU that the module was compiled for, the results are there too: the call
        returns at once, and PyTorch's current stream is ordered behind it.
        Raises TypeError (form, dtype, device), ValueError (shapes, constants), MemoryError, Error.
        """
        if not kwargs and len(args) == self._plain_count:
            try:
                arrays = tuple([tensor.numpy() for tensor in args])
            except (AttributeError, RuntimeError, TypeError):  # it requires a gradient, is on a GPU ...
                if _core.was_interrupted() and any(isinstance(a, _core.Tensor) for a in args):
                    raise  # what a signal handler has raised
                return self._call_any(args, kwargs)
        else:
            return self._call_any(args, kwargs)
        return self._call_arrays(arrays, args, kwargs)

    def _call_any(self, args, kwargs):
        tensors = self._arguments.take(args, kwargs)
        if _is_on_gpu(tensors):
            return self._finish(self._call_on_gpu(tensors))
        return self._call_arrays(self._arrays(tensors), args, kwargs)

    def _call_on_gpu(self, tensors):
        """The outputs as Tensors, for tensors of which some are on the model's GPU."""
        inputs = {port.name: _checked(tensors[place], port)
                  for place, port in zip(self._places, self.model.inputs)}
        outputs = self.model._run_tensors((), inputs, None)
        return outputs[0] if len(outputs) == 1 else outputs

    def _call_arrays(self, arrays, args, kwargs):
        result = _call(self._core, arrays, _NO_NAMES, None, False)
        if result is NotImplemented:
            result = self._call_converted(self._arrays_of(args, kwargs))
        return self._finish(result)

    def submit(self, /, *args: typing.Any, **kwargs: typing.Any) -> "streampool.Future":
        """Submits a run and returns its future, whose result is what a call returns.

        The tensors must not be written before the future is done; it keeps them alive. Otherwise as
        Model.submit().
        """
        return self.model._submit(None, self._arrays_of(args, kwargs), _NO_NAMES, self._finish)

    def _call_converted(self, arrays):
        return _call(self._core, *convert(self.model.inputs, arrays, _NO_NAMES), None, True)

    def _arrays_of(self, args, kwargs):
        return self._arrays(self._arguments.take(args, kwargs))

    def _arrays(self, tensors):
        return tuple(_array_of(tensors[place], port)
                     for place, port in zip(self._places, self.model.inputs))

    def _run(self, tensors):
        """The outputs for all tensors of a call, as lists."""
        ports = zip(self._places, self.model.inputs)
        arrays = tuple(_array_of(tensors[place], port) for place, port in ports)
        return self._tensors_of(self._call_converted(arrays))

    def _tensors_of(self, arrays):
        if len(self.model.outputs) == 1:
            arrays = (arrays,)
        return [_tensor_of(arrays[i]) for i in self._outputs]

    def _rebuilt(self, arrays):
        return _structure.rebuild(self._results, self._tensors_of(arrays))

    def __repr__(self):
        shapes = [", ".join(f"{port.name}: {port.dtype}{_shape_text(port)}" for port in ports)
                  for ports in (self.model.inputs, self.model.outputs)]
        return f"<streampool.torch.CompiledModule {self._name}({shapes[0]}) -> ({shapes[1]})>"


def _shape_text(port):
    return f"[{', '.join(map(str, port.shape))}]" if port.shape is not None else ""
