# SPDX-License-Identifier: Apache-2.0
"""PyTorch modules as models that any number of threads call.

    f = streampool.torch.compile(module, example)
    y = f(x)                    # tensors, from any thread
    future = f.submit(x)        # future.result(), or await future

The package `streampool.torch.device`, which is not imported with this one, is a device of PyTorch.
"""
from ._compile import compile
from ._compiled import CompiledModule
from ._errors import BuildError, CompileError

__all__ = ["BuildError", "CompileError", "CompiledModule", "compile"]
