# SPDX-License-Identifier: Apache-2.0
"""Modules as ONNX files, by PyTorch's own exporter."""
import inspect
import io
import os
import re
import sys
import traceback
import typing

import torch

from . import _structure
from ._errors import CompileError
from ._modes import exporting
from ._symbolic import OPSET

# Lines of these are not the module's own.
_LIBRARIES = (os.path.dirname(torch.__file__), os.path.dirname(__file__))
# Later versions have a second exporter as the default, which needs packages of its own.
_FIRST_EXPORTER = ({"dynamo": False}
                   if "dynamo" in inspect.signature(torch.onnx.export).parameters else {})


class Exported(typing.NamedTuple):
    """A file, and the module's own results for the examples."""

    file: io.BytesIO
    results: typing.Any  #: the tree of the module's result
    names: "list[str]"  #: of its tensors
    examples: "list[tuple[list, list]]"  #: (inputs, outputs) of each batch


class _Flat(torch.nn.Module):
    """A module as a function of a list of tensors, which is what the exporter knows."""

    def __init__(self, module, arguments):
        super().__init__()
        self.module = module
        self.what = type(module).__name__
        self._arguments = arguments
        self.results = None  # the tree that forward() looks for

    def call(self, tensors):
        """What the module itself returns."""
        args, kwargs = self._arguments.rebuild(list(tensors))
        return self.module(*args, **kwargs)

    def forward(self, *tensors):
        outputs = []
        _structure.select(self.results, self.call(tensors), outputs)
        return tuple(outputs)


# ---- the module's own results ----

def _results_of(flat, tensors):
    """(tree, outputs) of the module. Copies of the inputs, since it may write to them."""
    outputs = []
    tree = _structure.flatten(flat.call([tensor.clone() for tensor in tensors]), "output", outputs)
    if not outputs:
        raise TypeError(f"{flat.what} returns no tensor")
    return tree, [output.detach() for output in outputs]


def _with_another_row(tensors, batch):
    """The inputs of a batch that is larger by one: the rows backwards, between two first ones."""
    order = torch.arange(batch.rows, -1, -1) % batch.rows
    return [tensor if axis is None else tensor.index_select(axis, order)
            for tensor, axis in zip(tensors, batch.axes)]


def _results_of_larger(flat, tensors, rows):
    try:
        return _results_of(flat, tensors)
    except Exception as error:
        raise CompileError(
            f"{flat.what} fails with a batch of {rows + 1}, made of the rows of the example: {error}. "
            "Name the dimension of each input that has the batch, as dynamic_batch={'name': 0, ...}, or "
            "compile the module with dynamic_batch=False") from error


def _free_axes(names, one, other, rows):
    """dynamic_axes for torch.onnx.export: where the tensors of two batches have other sizes."""
    axes = {}
    for name, a, b in zip(names, one, other):
        if a.dim() != b.dim():
            raise CompileError(f"'{name}' has {a.dim()} dimensions, and {b.dim()} of another batch: "
                               "compile the module with dynamic_batch=False")
        sizes = list(zip(a.shape, b.shape))
        axes[name] = {axis: "batch" if pair == (rows, rows + 1) else f"{name}_{axis}"
                      for axis, pair in enumerate(sizes) if pair[0] != pair[1]}
    return axes


# ---- the exporter ----

def _place_of(node):
    """The line of the module that has made a node of a graph, as far as PyTorch tells."""
    lines = re.findall(r"^(\S+\.py)\((\d+)\)", node.sourceRange(), re.MULTILINE)
    own = [line for line in lines if not line[0].startswith(_LIBRARIES)]
    return f" at {own[0][0]}:{own[0][1]}" if own else ""


def _unconvertible(flat, tensors):
    """The operators without an ONNX form: "aten::op at file.py:7", as far as PyTorch tells."""
    try:
        graph, ops = torch.onnx.utils.unconvertible_ops(flat, tuple(tensors), opset_version=OPSET)
    except Exception:  # the text of the first failure must do
        return []
    return list(dict.fromkeys(node.kind() + _place_of(node) for node in graph.nodes()
                              if node.kind() in ops))


def _clear_frames(error, outer):
    """Drops the locals of an exception's frames, with what PyTorch 1.13 has freed: as long as Python
    objects of a freed graph exist, an export may get them for a new graph at the same address.
    `outer` is what the caller was handling, whose frames are not the exporter's."""
    while error is not None and error is not outer:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


def _file_of(flat, tensors, input_names, output_names, axes):
    file, outer = io.BytesIO(), sys.exc_info()[1]
    try:
        torch.onnx.export(flat, tuple(tensors), file, input_names=input_names,
                          output_names=output_names, dynamic_axes=axes, opset_version=OPSET,
                          training=torch.onnx.TrainingMode.EVAL, **_FIRST_EXPORTER)
    except Exception as error:
        _clear_frames(error, outer)
        ops = _unconvertible(flat, tensors)
        what = f"no ONNX form of {', '.join(ops)}: " if ops else ""
        text = (str(error) or type(error).__name__).splitlines()[0]
        raise CompileError(f"{flat.what}: PyTorch cannot export it: {what}{text}") from error
    return file


def _export(module, arguments, batch, state):
    flat = _Flat(module, arguments)
    tensors = [tensor.detach().clone() for tensor in arguments.tensors]
    flat.results, outputs = _results_of(flat, tensors)
    names = _structure.unique([*arguments.names, *_structure.leaf_names(flat.results)])[len(tensors):]
    examples = [(tensors, outputs)]
    axes = {}
    if batch is not None:
        larger = _with_another_row(tensors, batch)
        state.restore()
        tree, others = _results_of_larger(flat, larger, batch.rows)
        if not _structure.is_same(flat.results, tree):
            raise CompileError(f"{flat.what} returns another structure, or other numbers in it, for "
                               "another batch: compile it with dynamic_batch=False")
        examples.append((larger, others))
        axes = {**_free_axes(arguments.names, tensors, larger, batch.rows),
                **_free_axes(names, outputs, others, batch.rows)}
    # Of the larger batch: a size of 1 is often taken for a broadcast.
    traced = [tensor.clone() for tensor in examples[-1][0]]
    state.restore()
    file = _file_of(flat, traced, arguments.names, names, axes)
    return Exported(file, flat.results, names, examples)


def export(module, arguments, batch):
    """The module as it is now; `batch` None: all sizes are fixed. One at a time in the process."""
    with exporting(module) as state:
        return _export(module, arguments, batch, state)
