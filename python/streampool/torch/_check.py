# SPDX-License-Identifier: Apache-2.0
"""The results of a compiled module against the module's own."""
import functools
import re

import torch

from .._errors import Error, Status
from ._errors import CompileError

# Relative to the largest magnitude of the output, by the significant bits of its dtype. An output of
# less than the least magnitude may be what is left of larger terms.
_LEAST = 1e-3
_TOLERANCES = {torch.float64: 1e-6, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 5e-2}
# The errors of two right results, against the one in double precision, may have this ratio, and so may
# the numbers of elements that have errors of a size: both are of sums in two orders.
_ERRORS = 8


def _bound(want):
    finite = want[torch.isfinite(want)].abs()
    largest = float(finite.max()) if finite.numel() else 0.0
    return _TOLERANCES[want.dtype] * max(largest, _LEAST)


def _is_close(got, want):
    if not want.is_floating_point():
        return torch.equal(got, want)
    return torch.allclose(got, want, rtol=0, atol=_bound(want), equal_nan=True)


def _errors(values, exact):
    """The largest first."""
    return (values.double() - exact).abs().sort(descending=True).values


def _is_as_exact(got, want, exact):
    """Whether rounding may be all that parts them, by the module's result in double precision. Where
    `want` is not finite they are equal.

    Not the largest error alone: where the module rounds, compares or chooses, a few elements may differ
    by whole steps in double precision, which says nothing of the others.
    """
    finite = torch.isfinite(want)
    if not torch.allclose(got[~finite], want[~finite], equal_nan=True):
        return False
    own = _errors(want[finite], exact[finite])
    errors = _errors(got[finite], exact[finite])[::_ERRORS]
    return bool((errors <= _bound(want) + _ERRORS * own[:len(errors)]).all())


def _describe(got, want):
    if not want.is_floating_point():
        return f"{int((got != want).sum())} of {want.numel()} elements differ"
    differs = (got != want) & ~(got.isnan() & want.isnan())
    return f"the largest difference is {float((got.double() - want.double())[differs].abs().max()):.3g}"


def _difference(name, got, want, exact):
    """Why an output is not the module's own, or None. `exact()`: what Exact.of() returns, or None."""
    if got.dtype != want.dtype:
        return f"'{name}' is {got.dtype}, the module's is {want.dtype}"
    if got.shape != want.shape:
        return f"'{name}' has the shape {tuple(got.shape)}, the module's has {tuple(want.shape)}"
    if _is_close(got, want):
        return None
    values = exact() if want.is_floating_point() else None
    if values is not None and _is_as_exact(got, want, values):
        return None
    return f"'{name}': {_describe(got, want)}"


def _hint(error, examples):
    """What to do about a failure of the exported module; `error` None: it has other results."""
    lacks = re.search(r"not supported: (\w+) version .* (?:for|of) type \w+$", str(error))
    if lacks:
        return f"; convert the input in the module to a dtype that help(streampool.ops.{lacks[1]}) tells"
    if len(examples) == 1 or getattr(error, "status", None) == Status.UNSUPPORTED:
        return ""
    return "; compile the module with dynamic_batch=False if its code fixes the batch"


def check(run, exported, what, exact):
    """Compares the outputs of `run(inputs)` for each example. CompileError if they differ.

    `exact()`: the module's results in double precision, an Exact or None; called if they are needed.
    """
    exact = functools.lru_cache(exact)
    for example, (inputs, wanted) in enumerate(exported.examples):
        shapes = ", ".join(str(list(tensor.shape)) for tensor in inputs)
        place = f"{what}, exported, on inputs of the shapes {shapes}"
        try:
            outputs = run(inputs)
        except Error as error:
            hint = _hint(error, exported.examples)
            raise CompileError(f"{place}: {error}{hint}", error.status) from error
        for output, (name, got, want) in enumerate(zip(exported.names, outputs, wanted)):
            difference = _difference(name, got, want,
                                     lambda: exact() and exact().of(example, output, want))
            if difference is not None:
                hint = _hint(None, exported.examples)
                raise CompileError(f"{place} does not give the module's results: {difference}{hint}")
