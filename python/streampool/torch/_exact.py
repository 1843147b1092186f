# SPDX-License-Identifier: Apache-2.0
"""A module's results in double precision: how far rounding takes its own results from them."""
import copy
import math

import torch
import torch.overrides

from . import _structure
from ._modes import State, exporting

# Of the largest term, by the dtype of an output: what rounding cannot account for. A module that does
# something else in double precision, by its code, is further off.
_MOST = {torch.float64: 1e-6, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 5e-2}


class Exact:
    """The results of a module's copy in double precision for the examples.

    `outputs`: a list for each example. `largest`: of each example, the largest finite magnitude of a
    term: a tensor of a call, or a product of two tensors of one.
    """

    def __init__(self, outputs, largest):
        self._outputs = outputs
        self._largest = largest

    def of(self, example, output, want):
        """The output in double precision, or None where it does not tell what rounding does: of another
        form, or further off than rounding takes it."""
        exact = self._outputs[example][output]
        if not exact.is_floating_point() or exact.shape != want.shape:
            return None
        error = (exact.double() - want.double())[torch.isfinite(want)].abs()
        largest = float(error.max()) if error.numel() else 0.0
        if not (math.isfinite(largest) and largest <= _MOST[want.dtype] * self._largest[example]):
            return None
        return exact.double()


def _magnitude(tensor):
    values = tensor.detach().abs()
    values = values[torch.isfinite(values)]
    return float(values.max()) if values.numel() else 0.0


class _Terms(torch.overrides.TorchFunctionMode):
    """Keeps the largest magnitude of what the functions of PyTorch take and return meanwhile."""

    def __init__(self):
        super().__init__()
        self.largest = 0.0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        taken, given = [], []
        for tensors, value in [(taken, [args, kwargs]), (given, result)]:
            _collect(value, tensors)
        factors = sorted(map(_magnitude, taken))[-2:]
        product = factors[0] * factors[1] if len(factors) == 2 else 0.0
        self.largest = max([self.largest, product, *factors, *map(_magnitude, given)])
        return result


def _collect(value, tensors):
    """Appends the floating-point tensors of a value."""
    if isinstance(value, torch.Tensor):
        if value.is_floating_point():
            tensors.append(value)
    elif isinstance(value, dict):
        _collect(list(value.values()), tensors)
    elif isinstance(value, (tuple, list)):
        for part in value:
            _collect(part, tensors)


def _in_double(tensor):
    return tensor.to(torch.float64 if tensor.is_floating_point() else tensor.dtype, copy=True)


def _outputs_of(module, arguments, results, tensors):
    """The tensors of a result, in order; ValueError if it has another structure."""
    args, kwargs = arguments.rebuild([_in_double(tensor) for tensor in tensors])
    outputs = []
    if not _structure.is_same(results, _structure.flatten(module(*args, **kwargs), "output", outputs)):
        raise ValueError("another structure in double precision")
    return [output.detach() for output in outputs]


def _computed(module, arguments, exported):
    double = copy.deepcopy(module).double()
    state = State(double)
    outputs, largest = [], []
    for inputs, _ in exported.examples:
        with _Terms() as terms:
            first = _outputs_of(double, arguments, exported.results, inputs)
        state.restore()
        second = _outputs_of(double, arguments, exported.results, inputs)
        state.restore()
        if not all(map(_is_equal, first, second)):
            return None  # they are random
        outputs.append(first)
        largest.append(terms.largest)
    return Exact(outputs, largest)


def _is_equal(one, other):
    return one.shape == other.shape and torch.allclose(one, other, rtol=0, atol=0, equal_nan=True)


def exact(module, arguments, exported):
    """The results for the examples, of a copy of the module in double precision; None where it has
    none, by whatever it raises, or gives other ones each time."""
    with exporting(module):
        try:
            return _computed(module, arguments, exported)
        except Exception:
            return None
