# SPDX-License-Identifier: Apache-2.0
"""The results of a compiled module against the module's own."""
import torch

from .._errors import Error
from ._errors import CompileError

# Relative to the largest magnitude of the output, by the significant bits of its dtype. An output of
# less than the least magnitude may be what is left of larger terms.
_LEAST = 1e-3
_TOLERANCES = {torch.float64: 1e-6, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 5e-2}


def _is_close(got, want):
    if not want.is_floating_point():
        return torch.equal(got, want)
    finite = want[torch.isfinite(want)].abs()
    largest = float(finite.max()) if finite.numel() else 0.0
    bound = _TOLERANCES[want.dtype] * max(largest, _LEAST)
    return torch.allclose(got, want, rtol=0, atol=bound, equal_nan=True)


def _describe(got, want):
    if not want.is_floating_point():
        return f"{int((got != want).sum())} of {want.numel()} elements differ"
    return f"the largest difference is {float((got.double() - want.double()).abs().max()):.3g}"


def _difference(name, got, want):
    """Why an output is not the module's own, or None."""
    if got.dtype != want.dtype:
        return f"'{name}' is {got.dtype}, the module's is {want.dtype}"
    if got.shape != want.shape:
        return f"'{name}' has the shape {tuple(got.shape)}, the module's has {tuple(want.shape)}"
    return None if _is_close(got, want) else f"'{name}': {_describe(got, want)}"


def check(run, exported, what):
    """Compares the outputs of `run(inputs)` for each example. CompileError if they differ."""
    hint = "; compile the module with dynamic_batch=False if its code fixes the batch"
    for inputs, wanted in exported.examples:
        shapes = ", ".join(str(list(tensor.shape)) for tensor in inputs)
        place = f"{what}, exported, on inputs of the shapes {shapes}"
        end = hint if len(exported.examples) > 1 else ""
        try:
            outputs = run(inputs)
        except Error as error:
            raise CompileError(f"{place}: {error}{end}", error.status) from error
        for name, got, want in zip(exported.names, outputs, wanted):
            difference = _difference(name, got, want)
            if difference is not None:
                raise CompileError(f"{place} does not give the module's results: {difference}{end}")
