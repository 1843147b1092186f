# SPDX-License-Identifier: Apache-2.0
"""PyTorch modules as models that any number of threads call.

    f = streampool.torch.compile(module, example)
    y = f(x)                    # tensors, from any thread
    future = f.submit(x)        # future.result(), or await future
"""
from ._compile import compile
from ._compiled import CompiledModule
from ._errors import CompileError

__all__ = ["CompileError", "CompiledModule", "compile"]
