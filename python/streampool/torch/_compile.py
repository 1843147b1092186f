# SPDX-License-Identifier: Apache-2.0
"""compile(): a module becomes an ONNX file, and the file a model."""
import typing

import torch

from .._errors import Error
from .._model import load
from ._arguments import Arguments
from ._batch import batch_of
from ._check import check as _check
from ._compiled import CompiledModule
from ._errors import CompileError
from ._exact import exact
from ._export import export


def _call_of(example_inputs, example_kwargs):
    """(args, kwargs) of the example."""
    if not isinstance(example_kwargs, (dict, type(None))):
        raise TypeError(f"example_kwargs is of type {type(example_kwargs).__name__}; it must be a dict of "
                        "keyword arguments")
    kwargs = dict(example_kwargs or {})
    if isinstance(example_inputs, torch.Tensor):
        return (example_inputs,), kwargs
    if isinstance(example_inputs, (tuple, list)):
        return tuple(example_inputs), kwargs
    if isinstance(example_inputs, dict):
        return (), {**example_inputs, **kwargs}
    raise TypeError(f"example_inputs is of type {type(example_inputs).__name__}; it can be a tensor, a "
                    "tuple of positional arguments or a dict of keyword arguments")


def _require_plain(names, tensors):
    """What no input of a model can be, before the exporter fails for a reason of its own."""
    for name, tensor in zip(names, tensors):
        what = f"example input '{name}'"
        if tensor.layout != torch.strided:
            raise TypeError(f"{what} has the layout {tensor.layout}; give it as .to_dense()")
        if tensor.is_quantized:
            raise TypeError(f"{what} is quantized; give it as .dequantize()")
        if tensor.is_complex():
            raise TypeError(f"{what} is {str(tensor.dtype).removeprefix('torch.')}, which no input can be: give "
                            "real and imaginary parts, as of torch.view_as_real")


def _require_cpu(module, tensors):
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        if tensor.device.type != "cpu":
            raise TypeError(f"'{name}' of the module is on {tensor.device}; compile module.cpu()")
    for tensor in tensors:
        if tensor.device.type != "cpu":
            raise TypeError(f"an example input is on {tensor.device}; give it as .cpu()")


def _load(exported, what, device, options):
    try:
        with exported.file.getbuffer() as data:
            return load(data, device, **options)
    except Error as error:
        raise CompileError(f"{what}: the exported model cannot be loaded: {error}",
                           error.status) from error


def _judged(compiled, exported, device, options):
    """What the check runs: of a model with a precision one without, since that rounds more than a
    mistake may."""
    if options.get("precision", "default") == "default":
        return compiled
    plain = {name: value for name, value in options.items() if name != "precision"}
    model = _load(exported, compiled._name, device, plain)
    return CompiledModule(compiled._name, model, compiled._arguments, exported)


def compile(module: torch.nn.Module, example_inputs: typing.Any, *, example_kwargs: "dict | None" = None,
            dynamic_batch: "bool | dict[str, int]" = True, check: bool = True, device: typing.Any = "cpu",
            **options: typing.Any) -> CompiledModule:
    """Compiles a module, as it is now, into a function of tensors that any number of threads call.

    example_inputs: a tensor, a tuple of positional arguments or a dict of keyword arguments, with
    example_kwargs as keyword arguments beside them. Tensors may be in tuples, lists and dicts. What is
    no tensor (numbers, strings, None) is a constant of the compilation and must be equal in each call.

    dynamic_batch: dimension 0 is free, of each input where it has the size that it has of the first
    tensor. A dict names the dimension of each input that has the batch: {"x": 0, "state": 1}, by the
    names of the parameters (with _0, _1 or _key of tensors inside of one). All other sizes are those of
    the example; False: all sizes are.

    check: the result is compared with the module's own, on the example and on one more row; a
    difference of more than 1e-4 of an output's largest magnitude is an error, unless the module's own
    result in double precision shows that its rounding is of that size: an output may be what is left of
    larger terms. With a precision it is the result without it that is compared, of a second model that
    is loaded meanwhile. Modules whose results are random need check=False.

    The module is exported in eval mode, by PyTorch's exporter to ONNX; its parameters, buffers and
    control flow are frozen: later changes of the module do not reach the function. The module is as
    before afterwards, but must not be used by other threads in between. `device` and the other options
    are those of streampool.load().

    Raises CompileError (the module, or one of its operators, cannot be exported or loaded; its text
    names operator and node), TypeError, ValueError, and what the module itself raises.
    """
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"module is of type {type(module).__name__}; it must be a torch.nn.Module")
    if isinstance(module, torch.jit.ScriptModule):
        raise TypeError("module is a ScriptModule; compile the module that it was made of")
    what = type(module).__name__
    arguments = Arguments(module, *_call_of(example_inputs, example_kwargs))
    if not arguments.tensors:
        raise TypeError("the example inputs have no tensor")
    _require_cpu(module, arguments.tensors)
    _require_plain(arguments.names, arguments.tensors)
    exported = export(module, arguments, batch_of(arguments, dynamic_batch))
    arguments.tensors = None  # they are not needed again
    compiled = CompiledModule(what, _load(exported, what, device, options), arguments, exported)
    if check:
        judged = _judged(compiled, exported, device, options)
        _check(judged._run, exported, what, lambda: exact(module, arguments, exported))
    return compiled
